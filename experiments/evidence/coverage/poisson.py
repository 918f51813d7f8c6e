"""Coverage, level and width of `poisson-regression` (docs/evidence/coverage.md).

    python -m experiments.evidence.coverage.poisson [--replicates 200] [--only NAME ...]
    python -m experiments.evidence.coverage.poisson --table     # the table of the page, from the record

One JSON line per design, n and epsilon, as of `experiments.evidence.coverage.logistic`. The log mean of Y is linear in
the columns as clipped at the bounds, and Y is clipped at its own, which few counts reach, so that the truth is the
design's own slope. `plain_*`: of the interval of Poisson maximum likelihood with the sandwich variance on the same
data, without privacy.
"""

import dataclasses
import functools
import time
from pathlib import Path

import jax
import jax.numpy as jnp

from experiments.evidence.coverage import logistic
from experiments.evidence.coverage.logistic import CHUNK, FOUR, PAGE, SKEWED, TEN, close, heavy, lognormal, normal
from experiments.record import keys_of
from jaxdp.data.dataset import Column, Domain

METHOD = "poisson-regression"
RECORD = Path(__file__).parent / "poisson.jsonl"
CELLS = [(n, epsilon) for n in (1000, 10_000, 50_000) for epsilon in (0.5, 1.0, 4.0)]
SEED = 3309


def in_two(key, n: int, count: int):
    """X is 0 or 1, with 30 % of ones, and goes with the others."""
    found = normal(key, n, count)
    return found.at[:, -1].set(1.0 * (found[:, -1] > 0.52))


def skewed_x(key, n: int, count: int):
    """X lognormal with sigma .8, independent of the others."""
    found = normal(key, n, count)
    return found.at[:, -1].set(jnp.exp(0.8 * jax.random.normal(jax.random.fold_in(key, 9), (n,))))


@dataclasses.dataclass(frozen=True)
class Design(logistic.Design):
    """Columns as of logistic regression; mean: of Y, most: its upper bound; extra: variance beyond mu, over mu^2.

    zeros: share of records whose count is 0 whatever X and Z are, beside a mean that makes up for them.
    """

    mean: float = 1.5
    most: float = 10.0
    extra: float = 0.0
    zeros: float = 0.0

    @property
    def domain(self) -> Domain:
        """As the schema describes the columns."""
        return dataclasses.replace(super().domain, y=(Column(from_zero=True),))


TWO, THREE, FIVE = (FOUR,) * 2, (0.2, -0.15, 0.1), (0.2, -0.15, 0.1, -0.2, 0.15)
DESIGNS = {
    "no z": Design(normal, (0.3,), (FOUR,)),
    "no z, null": Design(normal, (0.0,), (FOUR,)),
    "rare: mean .2 of up to 5": Design(normal, (-0.2, 0.3), TWO, mean=0.2, most=5.0),
    "rare, null": Design(normal, (-0.2, 0.0), TWO, mean=0.2, most=5.0),
    "one z": Design(normal, (-0.2, 0.3), TWO),
    "one z, null": Design(normal, (-0.4, 0.0), TWO),
    "one z, correlated .9": Design(close, (-0.2, 0.3), TWO),
    "one z, overdispersed": Design(normal, (-0.2, 0.3), TWO, most=20.0, extra=1.0),
    "one z, overdispersed, null": Design(normal, (-0.4, 0.0), TWO, most=20.0, extra=1.0),
    "one lognormal z": Design(lognormal, (0.1, 0.3), (SKEWED, FOUR), most=20.0),
    "one lognormal z, overdispersed, null": Design(lognormal, (0.1, 0.0), (SKEWED, FOUR), most=30.0, extra=1.0),
    "x with tails of t3, one z": Design(heavy, (0.3, 0.2), (FOUR, TEN), most=20.0),
    "three z": Design(normal, (*THREE, 0.3), (FOUR,) * 4),
    "three z, null": Design(normal, (*THREE, 0.0), (FOUR,) * 4),
    "five z, overdispersed": Design(normal, (*FIVE, 0.3), (FOUR,) * 6, most=20.0, extra=0.7),
    "five z, overdispersed, null": Design(normal, (*FIVE, 0.0), (FOUR,) * 6, most=20.0, extra=0.7),
    "x of two levels, one z": Design(in_two, (0.2, 0.5), (FOUR, None)),
    "x of two levels, one z, null": Design(in_two, (0.4, 0.0), (FOUR, None)),
    "x of two values declared continuous, one z": Design(in_two, (0.2, 0.5), (FOUR, (0.0, 1.0))),
    "steep, one z": Design(normal, (-0.4, 0.7), TWO, most=30.0),
    "lognormal x, mean .2 of up to 40": Design(skewed_x, (0.4, 0.3), (FOUR, (0.0, 6.0)), mean=0.2, most=40.0),
    "lognormal x, mean .2 of up to 40, null": Design(skewed_x, (0.4, 0.0), (FOUR, (0.0, 6.0)), mean=0.2, most=40.0),
    "half of them zero, one z, null": Design(normal, (-0.4, 0.0), TWO, most=20.0, zeros=0.5),
}


@functools.cache
def constant(name: str) -> float:
    """That gives the design's mean."""
    design = DESIGNS[name]
    along = design.clipped(jax.random.key(1), 1_000_000) @ jnp.array(design.slopes)
    return float(jnp.log(design.mean) - jax.nn.logsumexp(along) + jnp.log(len(along)))


def draw(key, n: int, name: str):
    """(Data as the schema scales them, the columns in their own units, Y in its own)."""
    design = DESIGNS[name]
    values = design.clipped(key, n)
    mean = jnp.exp(constant(name) + values @ jnp.array(design.slopes))
    key_y, key_extra = jax.random.split(jax.random.fold_in(key, 3))
    if design.zeros:
        some = jax.random.uniform(jax.random.fold_in(key, 4), (n,)) >= design.zeros
        mean = mean * some / (1.0 - design.zeros)
    if design.extra:
        mean = mean * design.extra * jax.random.gamma(key_extra, 1.0 / design.extra, (n,))
    y = jnp.minimum(1.0 * jax.random.poisson(key_y, mean, (n,)), design.most)
    return design.data(values, 2.0 * y / design.most - 1.0), values, y


def plain(values, y):
    """(slope of the last column, half width of its interval) by maximum likelihood, with the sandwich variance."""
    design = jnp.concatenate([jnp.ones((len(values), 1)), values], axis=1)

    def step(_, slopes):
        mean = jnp.exp(design @ slopes)
        return slopes + jnp.linalg.solve((design * mean[:, None]).T @ design, design.T @ (y - mean))

    begun = jnp.zeros(design.shape[1]).at[0].set(jnp.log(jnp.mean(y) + 1e-9))
    slopes = jax.lax.fori_loop(0, 15, step, begun)
    mean = jnp.exp(design @ slopes)
    back = jnp.linalg.inv((design * mean[:, None]).T @ design)
    squares = (design * ((y - mean) ** 2)[:, None]).T @ design
    return slopes[-1], 1.959964 * jnp.sqrt((back @ squares @ back)[-1, -1])


@jax.jit
def sandwich(values, y):
    """`plain` of many data sets."""
    return jax.lax.map(lambda both: plain(*both), (values, y))


@functools.cache
def drawn(name: str, n: int):
    """keys -> many data sets, their columns and Y in their own units."""
    return jax.jit(lambda keys: jax.lax.map(lambda key: draw(key, n, name), keys))


def measure(name: str, n: int, epsilon: float, replicates: int) -> dict:
    """One row."""
    start, design, _ = time.process_time(), DESIGNS[name], constant(name)  # known before anything is traced
    row = {"design": name, "n": n, "epsilon": epsilon}
    test = logistic.built(design.domain, n, epsilon, 0.0, METHOD)
    shapes = jax.eval_shape(lambda key: draw(key, n, name)[0], jax.random.key(0))
    if test.validity(shapes).verdict == "refuse":
        return row | {"refused": True, "replicates": 0}
    split, told = jax.vmap(jax.random.split)(keys_of(SEED, f"{name} {n} {epsilon:g}", replicates)), []
    for first in range(0, replicates, CHUNK):
        key_data, key_run = (split[first : first + CHUNK, side] for side in (0, 1))
        data, values, y = drawn(name, n)(key_data)
        run = logistic.answers(design.domain, n, epsilon, 0.0, METHOD)
        told.append([*run(key_run, data), *sandwich(values, y)])
    found = logistic.summary(told, design.slopes[-1], design.bounds[-1])
    return row | found | {"seconds": round(time.process_time() - start, 1)}


if __name__ == "__main__":
    logistic.run_cells(__doc__, RECORD, (PAGE, "poisson"), DESIGNS, CELLS, measure)
