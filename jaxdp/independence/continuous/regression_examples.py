"""Data and worst neighbours for `LogisticRegression`, `PoissonRegression`, and `MEstimator` of amounts."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.data.dataset import BINARY, Column, Data, Domain
from jaxdp.examples import BestKnown, Example, PairSearch, in_stages, in_zcdp
from jaxdp.statistics.loss_family import NEAR, UNITS, Loss
from jaxdp.statistics.regression_families import CAP_LEAST, POISSON
from jaxdp.statistics.regression_scores import Start

ANSWERS_GIVEN_ONE = Domain((Column(),), (Column(BINARY, 2),), (Column(),))
UNKNOWN = (
    "the pair that moves it most sits on a released start, which no pair can know; of nine records the start is steep"
)
FEW = {"enforce_rule": False}  # contracts take few records
HALF = 0.25  # sd of a column, in half ranges
# the last round alone, about a start at which everybody is as likely to say yes as no
ABOUT = {"stage": "scores", "levelled": (False, False), **FEW}


def logistic_start(euclidean: bool = False, slopes=(0.0, 0.0, 0.0), **fields) -> Start:
    """A public start; both columns have an sd of an eighth, so that records reach far."""
    root = np.array([[8.0, 0.0], [-4.0, 9.0]])
    known_of_it = {"mean": np.zeros(2), "root": root, "slopes": np.array(slopes), "clear": np.array(50.0)}
    return Start(**known_of_it, euclidean=euclidean, **fields)


def logistic_answers(key, n: int, slope: float = 1.5) -> Data:
    """X and Z correlated, on [-1, 1]; the log odds of Y rise with both, by `slope` per sd of X."""
    key_x, key_z, key_y = jax.random.split(key, 3)
    z = jax.random.normal(key_z, (n,))
    x = 0.6 * z + 0.8 * jax.random.normal(key_x, (n,))
    y = jax.random.uniform(key_y, (n,)) < jax.nn.sigmoid(slope * x + 0.5 * z - 0.3)
    scaled = [jnp.clip(HALF * part, -1.0, 1.0) for part in (x, z)]
    return Data(scaled[0], 1.0 * y, scaled[1][:, None], ANSWERS_GIVEN_ONE)


def _answered(z, x, y) -> Data:
    return Data(np.array([x, 0.1, -0.2]), np.array([y, 1.0, 0.0]), np.array([[z], [0.1], [0.0]]), ANSWERS_GIVEN_ONE)


def logistic_pairs():
    """All columns at their upper ends, and at their middle; and records of full length, nearly orthogonal."""
    return [(_answered(1.0, 1.0, 1.0), _answered(0.0, 0.0, 0.0)), (_answered(1.0, 1.0, 1.0), _answered(-1.0, 1.0, 0.0))]


def pairs_about(start: Start, made=_answered):
    """Of each released sum of a record's numbers: the longest of a grid of records, and the one farthest from it."""
    ends = np.linspace(-1.0, 1.0, 161)
    grid = np.stack(np.meshgrid(ends, ends, (0.0, 1.0), indexing="ij"), axis=-1).reshape(-1, 3)
    found = np.asarray(start.of(jnp.asarray(grid[:, :2]), jnp.asarray(grid[:, 2])))
    order, pairs = (2 if start.euclidean else 1), []
    p = start.slopes.shape[-1]
    for part in np.split(found, (p, 2 * p)[: 2 if start.family.squares else 1], axis=1):
        first = np.linalg.norm(part, ord=order, axis=1).argmax()
        second = np.linalg.norm(part - part[first], ord=order, axis=1).argmax()
        pairs.append((made(*grid[first]), made(*grid[second])))
    return pairs


def examples_of(
    data, null, pairs, *, reached: Mapping, alone: Mapping, whole: Mapping, about: Mapping, starts, made=_answered
):
    """Examples of a regression: whole runs, and the last round about public starts, with pure noise and in zCDP.

    pairs: those of whole runs, made by hand. reached: what attacks reach of whole runs, by the stage; alone: of the
    last round, by its parts. whole, about: fields of whole runs, and of the last round. starts: about which it is
    attacked, in L1 and in L2. made: as of `pairs_about`.
    """
    in_sums, in_length = ({**about, "start": start} for start in starts)
    of_sums, of_length = (functools.partial(pairs_about, start, made) for start in starts)
    run = Example(
        data, null=null, fields=whole, attack_tightness=reached, worst_pairs=pairs, search=PairSearch(records=9)
    )
    run, last = in_stages(run, in_sums, alone, of_sums)
    return run, last, in_zcdp(run), in_zcdp(last, fields=in_length, label="scores-zcdp", worst_pairs=of_length)


LOGISTIC = examples_of(
    logistic_answers,
    functools.partial(logistic_answers, slope=0.0),
    logistic_pairs,
    reached={
        "MomentMatrix": 0.93,
        "LogisticRegression.scores": BestKnown(0.3, UNKNOWN),
        "LogisticRegression.information": BestKnown(0.001, UNKNOWN),
    },
    alone={"scores": 0.98, "information": 0.98},
    whole=FEW,
    about=ABOUT,
    starts=(logistic_start(), logistic_start(euclidean=True)),
)


COUNT = Column(from_zero=True)
COUNTS_GIVEN_ONE = Domain((Column(),), (COUNT,), (Column(),))
MAX_COUNT, MEAN_COUNT = 10, 1.5  # largest count, and the mean of one where X and Z are 0
SLIGHT = 1e-3  # slope that makes a shift count
SHARE = 0.1  # mean of Y that a public start supposes, of its upper end


def poisson_start(euclidean: bool = False, slope: float = 0.0, shift: float = 0.0):
    """A public start about which everybody is expected to count as much, but for a slope of X."""
    slopes, shifts = (float(np.log(SHARE)), 0.0, slope), np.array([0.0, shift])
    return logistic_start(
        euclidean, slopes, shift=shifts, dispersion=np.array(1.0 / MAX_COUNT), reach=np.array(1.0), family=POISSON
    )


def at_the_cap(euclidean: bool = False):
    """The same, where the mean of all is so far below that everybody is at the cap: records of most information."""
    return poisson_start(euclidean, SLIGHT, float(np.log(CAP_LEAST)) / SLIGHT)


def counted(uniform, mean, most: int):
    """Counts by Poisson's law, those above `most` counting as it, from uniform numbers (n,): for any kind of key."""
    ratios = jnp.concatenate([jnp.exp(-mean)[:, None], mean[:, None] / jnp.arange(1.0, most)[None]], axis=1)
    return 1.0 * jnp.sum(uniform[:, None] > jnp.cumsum(jnp.cumprod(ratios, axis=1), axis=1), axis=1)


def counts(key, n: int, slope: float = 0.4) -> Data:
    """X and Z correlated; the log mean of a count rises with both, by `slope` per sd of X."""
    key_columns, key_y = jax.random.split(key)
    found = logistic_answers(key_columns, n)
    along = slope * found.x + 0.2 * found.z[:, 0]
    counts = counted(jax.random.uniform(key_y, (n,)), MEAN_COUNT * jnp.exp(along / HALF), MAX_COUNT)
    return Data(found.x, 2.0 * counts / MAX_COUNT - 1.0, found.z, COUNTS_GIVEN_ONE)


def counted_records(z, x, y) -> Data:
    """Three records, the first with Y at this share of its upper end."""
    return Data(
        np.array([x, 0.1, -0.2]), np.array([2.0 * y - 1.0, 1.0, -1.0]), np.array([[z], [0.1], [0.0]]), COUNTS_GIVEN_ONE
    )


def pairs_of_counts():
    """All columns at their upper ends, and at their middle; and records of full length, nearly orthogonal."""
    return [
        (counted_records(1.0, 1.0, 1.0), counted_records(0.0, 0.0, 0.5)),
        (counted_records(1.0, 1.0, 1.0), counted_records(-1.0, 1.0, 0.0)),
    ]


PARTS = ("scores", "information", "squares")
POISSON_EXAMPLES = examples_of(
    counts,
    functools.partial(counts, slope=0.0),
    pairs_of_counts,
    reached={"MomentMatrix": 0.93, **{f"PoissonRegression.{part}": BestKnown(0.001, UNKNOWN) for part in PARTS}},
    alone={**dict.fromkeys(PARTS, 0.98), "squares": 0.95},  # of the grid of records
    whole=FEW,
    about={**ABOUT, "scaled": True},
    starts=(at_the_cap(), at_the_cap(euclidean=True)),
    made=counted_records,
)


MOST, MEAN = 10.0, 1.0  # largest amount, and the mean of one where X and Z are 0


def exponential(t, y):
    """Minus the log likelihood of an amount with the mean exp(t), but for what does not move with t."""
    return t + y * jnp.exp(-t)


LOSS: dict[str, Any] = {"loss": exponential, "low": 0.0, "high": MOST}


def _family() -> Loss:
    """What the check of this loss finds, by hand, since nothing is compiled where examples are named."""
    centre, scale = math.log(MOST) + 0.5 * math.log(NEAR * (1.0 - NEAR)), math.log((1.0 - NEAR) / NEAR) / UNITS
    size = MOST * math.exp(-centre)
    return Loss(**LOSS, centre=centre, scale=scale, size=size, largest_information=scale / size)


def m_estimator_start(euclidean: bool = False):
    """A public start about which a mean of `MEAN` is expected of everybody."""
    family = _family()
    slopes = (float(np.log(MEAN) - family.centre) / family.scale, 0.0, 0.0)
    fields = {"shift": np.zeros(2), "dispersion": np.array(0.1), "reach": np.array(1.0)}
    return logistic_start(euclidean, slopes, family=family, **fields)


def amounts(key, n: int, slope: float = 0.4) -> Data:
    """X and Z correlated; the log mean of an exponential amount rises with both, by `slope` per sd of X."""
    key_columns, key_y = jax.random.split(key)
    found = logistic_answers(key_columns, n)
    mean = MEAN * jnp.exp((slope * found.x + 0.2 * found.z[:, 0]) / HALF)
    amounts = jnp.minimum(-jnp.log1p(-jax.random.uniform(key_y, (n,))) * mean, MOST)
    return dataclasses.replace(found, y=2.0 * amounts / MOST - 1.0, domain=COUNTS_GIVEN_ONE)


M_ESTIMATOR = examples_of(
    amounts,
    functools.partial(amounts, slope=0.0),
    pairs_of_counts,
    reached={"MomentMatrix": 0.93, **{f"MEstimator.{part}": BestKnown(0.001, UNKNOWN) for part in PARTS}},
    alone={**dict.fromkeys(PARTS, 0.95), "squares": 0.93},  # of the grid of records
    whole={**FEW, **LOSS},
    about={**ABOUT, **LOSS, "scaled": True},
    starts=(m_estimator_start(), m_estimator_start(euclidean=True)),
    made=counted_records,
)
