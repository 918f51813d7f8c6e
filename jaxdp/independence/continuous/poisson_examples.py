"""Data and worst neighbours for `PoissonRegression`."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.data.dataset import Column, Data, Domain
from jaxdp.examples import BestKnown
from jaxdp.independence.continuous import logistic_examples
from jaxdp.independence.continuous.logistic_examples import ABOUT, FEW, HALF, UNKNOWN
from jaxdp.statistics.regression_families import CAP_LEAST, POISSON

COUNT = Column(from_zero=True)
ONE_GIVEN = Domain((Column(),), (COUNT,), (Column(),))
MOST, MEAN = 10, 1.5  # largest count, and the mean of one where X and Z are 0
SLIGHT = 1e-3  # slope that makes a shift count
SHARE = 0.1  # mean of Y that a public start supposes, of its upper end


def known(euclidean: bool = False, slope: float = 0.0, shift: float = 0.0):
    """A public start about which everybody is expected to count as much, but for a slope of X."""
    slopes, shifts = (float(np.log(SHARE)), 0.0, slope), np.array([0.0, shift])
    return logistic_examples.known(
        euclidean, slopes, shift=shifts, dispersion=np.array(1.0 / MOST), reach=np.array(1.0), family=POISSON
    )


def at_the_cap(euclidean: bool = False):
    """The same, where the mean of all is so far below that everybody is at the cap: records of most information."""
    return known(euclidean, SLIGHT, float(np.log(CAP_LEAST)) / SLIGHT)


def counted(uniform, mean, most: int):
    """Counts by Poisson's law, those above `most` counting as it, from uniform numbers (n,): for any kind of key."""
    ratios = jnp.concatenate([jnp.exp(-mean)[:, None], mean[:, None] / jnp.arange(1.0, most)[None]], axis=1)
    return 1.0 * jnp.sum(uniform[:, None] > jnp.cumsum(jnp.cumprod(ratios, axis=1), axis=1), axis=1)


def answers(key, n: int, slope: float = 0.4) -> Data:
    """X and Z correlated; the log mean of a count rises with both, by `slope` per sd of X."""
    key_columns, key_y = jax.random.split(key)
    found = logistic_examples.answers(key_columns, n)
    along = slope * found.x + 0.2 * found.z[:, 0]
    counts = counted(jax.random.uniform(key_y, (n,)), MEAN * jnp.exp(along / HALF), MOST)
    return Data(found.x, 2.0 * counts / MOST - 1.0, found.z, ONE_GIVEN)


def made(z, x, y) -> Data:
    """Three records, the first with Y at this share of its upper end."""
    return Data(
        np.array([x, 0.1, -0.2]), np.array([2.0 * y - 1.0, 1.0, -1.0]), np.array([[z], [0.1], [0.0]]), ONE_GIVEN
    )


def worst_pairs():
    """All columns at their upper ends, and at their middle; and records of full length, nearly orthogonal."""
    return [(made(1.0, 1.0, 1.0), made(0.0, 0.0, 0.5)), (made(1.0, 1.0, 1.0), made(-1.0, 1.0, 0.0))]


PARTS = ("scores", "information", "squares")
EXAMPLES = logistic_examples.examples_of(
    answers,
    functools.partial(answers, slope=0.0),
    worst_pairs,
    reached={"MomentMatrix": 0.93, **{f"PoissonRegression.{part}": BestKnown(0.001, UNKNOWN) for part in PARTS}},
    alone={**dict.fromkeys(PARTS, 0.98), "squares": 0.95},  # of the grid of records
    whole=FEW,
    about={**ABOUT, "scaled": True},
    starts=(at_the_cap(), at_the_cap(euclidean=True)),
    made=made,
)
