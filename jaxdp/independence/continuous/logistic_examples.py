"""Data and worst neighbours for `LogisticRegression`."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.data.dataset import BINARY, Column, Data, Domain
from jaxdp.examples import BestKnown, Example, PairSearch, in_stages, in_zcdp
from jaxdp.statistics.regression_scores import Start

ONE_GIVEN = Domain((Column(),), (Column(BINARY, 2),), (Column(),))
UNKNOWN = (
    "the pair that moves it most sits on a released start, which no pair can know; of nine records the start is steep"
)
FEW = {"enforce_rule": False}  # contracts take few records
HALF = 0.25  # sd of a column, in half ranges
# the last round alone, about a start at which everybody is as likely to say yes as no
ABOUT = {"stage": "scores", "levelled": (False, False), **FEW}


def known(euclidean: bool = False, slopes=(0.0, 0.0, 0.0), **fields) -> Start:
    """A public start; both columns have an sd of an eighth, so that records reach far."""
    root = np.array([[8.0, 0.0], [-4.0, 9.0]])
    known_of_it = {"mean": np.zeros(2), "root": root, "slopes": np.array(slopes), "clear": np.array(50.0)}
    return Start(**known_of_it, euclidean=euclidean, **fields)


def answers(key, n: int, slope: float = 1.5) -> Data:
    """X and Z correlated, on [-1, 1]; the log odds of Y rise with both, by `slope` per sd of X."""
    key_x, key_z, key_y = jax.random.split(key, 3)
    z = jax.random.normal(key_z, (n,))
    x = 0.6 * z + 0.8 * jax.random.normal(key_x, (n,))
    y = jax.random.uniform(key_y, (n,)) < jax.nn.sigmoid(slope * x + 0.5 * z - 0.3)
    scaled = [jnp.clip(HALF * part, -1.0, 1.0) for part in (x, z)]
    return Data(scaled[0], 1.0 * y, scaled[1][:, None], ONE_GIVEN)


def _made(z, x, y) -> Data:
    return Data(np.array([x, 0.1, -0.2]), np.array([y, 1.0, 0.0]), np.array([[z], [0.1], [0.0]]), ONE_GIVEN)


def worst_pairs():
    """All columns at their upper ends, and at their middle; and records of full length, nearly orthogonal."""
    return [(_made(1.0, 1.0, 1.0), _made(0.0, 0.0, 0.0)), (_made(1.0, 1.0, 1.0), _made(-1.0, 1.0, 0.0))]


def pairs_about(start: Start, made=_made):
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
    data, null, pairs, *, reached: Mapping, alone: Mapping, whole: Mapping, about: Mapping, starts, made=_made
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


EXAMPLES = examples_of(
    answers,
    functools.partial(answers, slope=0.0),
    worst_pairs,
    reached={
        "MomentMatrix": 0.93,
        "LogisticRegression.scores": BestKnown(0.3, UNKNOWN),
        "LogisticRegression.information": BestKnown(0.001, UNKNOWN),
    },
    alone={"scores": 0.98, "information": 0.98},
    whole=FEW,
    about=ABOUT,
    starts=(known(), known(euclidean=True)),
)
