"""Coverage, level and width of `m-estimator` for losses of one's own (docs/theory/m_estimator.md#coverage).

    python -m experiments.evidence.coverage.m_estimator [--replicates 200] [--only NAME ...] [--cells 0 1 ...]
    python -m experiments.evidence.coverage.m_estimator --table     # the table of the page, from the record

One JSON line per design, n and epsilon, as of `experiments.evidence.coverage.logistic`. The mean of Y follows the
model of the loss in the columns as clipped at the bounds, and Y is clipped at its own, which few reach. `plain_*`: of
the interval that minimises the mean loss, with the sandwich variance, on the same data, without privacy.
"""

import dataclasses
import functools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.stats import norm

from experiments.evidence.coverage import logistic
from experiments.evidence.coverage.logistic import CHUNK, FOUR, SKEWED, lognormal, normal
from experiments.record import keys_of
from jaxdp import catalogue
from jaxdp.data.dataset import BINARY, Column, Domain
from jaxdp.spec import Options

METHOD = "m-estimator"
RECORD = Path(__file__).parent / "m_estimator.jsonl"
PAGE = Path(__file__).parents[3] / "docs" / "theory" / "m_estimator.md"
CELLS = [(n, epsilon) for n in (2000, 10_000) for epsilon in (1.0, 4.0)]
SEED = 3311
MOST, MEAN = 15.0, 1.5
EXTRA = 0.5  # variance of a count beyond its mean, over the mean squared, and of an amount altogether


def exponential(t, y):
    """Amounts with the mean exp(t) and a variance that goes with its square."""
    return t + y * jnp.exp(-t)


def negative_binomial(t, y):
    """Counts with the mean exp(t) and a variance of mean + EXTRA mean^2."""
    return (y + 1.0 / EXTRA) * jax.nn.softplus(t + jnp.log(EXTRA)) - y * t


def probit(t, y):
    """Y is 1 with the chance Phi(t)."""
    return -y * norm.logcdf(t) - (1.0 - y) * norm.logcdf(-t)


def amounts(key, t):
    """Of gamma's law, twice as regular as exponential ones."""
    return jnp.minimum(jnp.exp(t) * EXTRA * jax.random.gamma(key, 1.0 / EXTRA, t.shape), MOST)


def counts(key, t):
    """Negative binomial."""
    key_mean, key_count = jax.random.split(key)
    mean = jnp.exp(t) * EXTRA * jax.random.gamma(key_mean, 1.0 / EXTRA, t.shape)
    return jnp.minimum(1.0 * jax.random.poisson(key_count, mean), MOST)


def answers(key, t):
    """0 or 1."""
    return 1.0 * (jax.random.normal(key, t.shape) < t)


@dataclasses.dataclass(frozen=True)
class Design(logistic.Design):
    """Columns and slopes as of logistic regression; the loss, the law of Y of t, its public end, and the constant."""

    loss: Callable[[Any, Any], Any] = exponential
    law: Callable[[Any, Any], Any] = amounts
    most: float = MOST
    constant: float = 0.4

    @property
    def domain(self) -> Domain:
        """As the schema describes the columns."""
        y = Column(BINARY, 2) if self.law is answers else Column()
        return dataclasses.replace(super().domain, y=(y,))


def design(loss, law, columns, slopes, bounds, constant=0.2):
    most = 1.0 if law is answers else MOST
    return Design(columns, slopes, bounds, loss=loss, law=law, most=most, constant=constant)


TWO, MIXED, THREE = (FOUR,) * 2, (SKEWED, FOUR), (0.2, -0.15, 0.1)
DESIGNS = {
    "amounts, one z": design(exponential, amounts, normal, (-0.2, 0.3), TWO),
    "amounts, one z, null": design(exponential, amounts, normal, (-0.4, 0.0), TWO),
    "amounts, one lognormal z": design(exponential, amounts, lognormal, (0.1, 0.3), MIXED, 0.0),
    "amounts, one lognormal z, null": design(exponential, amounts, lognormal, (0.1, 0.0), MIXED, 0.0),
    "counts, three z": design(negative_binomial, counts, normal, (*THREE, 0.3), (FOUR,) * 4),
    "counts, three z, null": design(negative_binomial, counts, normal, (*THREE, 0.0), (FOUR,) * 4),
    "probit, one z": design(probit, answers, normal, (-0.3, 0.4), TWO, -0.3),
    "probit, one z, null": design(probit, answers, normal, (-0.5, 0.0), TWO, -0.3),
    "probit, one lognormal z": design(probit, answers, lognormal, (0.2, 0.4), MIXED, -0.6),
    "probit, one lognormal z, null": design(probit, answers, lognormal, (0.2, 0.0), MIXED, -0.6),
}


def draw(key, n: int, name: str):
    """(Data as the schema scales them, the columns in their own units, Y in its own)."""
    about = DESIGNS[name]
    values = about.clipped(key, n)
    y = about.law(jax.random.fold_in(key, 3), about.constant + values @ jnp.array(about.slopes))
    return about.data(values, y if about.law is answers else 2.0 * y / about.most - 1.0), values, y


def plain(values, y, loss):
    """(slope of the last column, half width of its interval) by the least mean loss, with the sandwich variance."""
    columns = jnp.concatenate([jnp.ones((len(values), 1)), values], axis=1)
    score, curvature = (jax.vmap(one) for one in (jax.grad(loss), jax.grad(jax.grad(loss))))

    def parts(slopes):
        t = columns @ slopes
        return score(t, y), (columns * curvature(t, y)[:, None]).T @ columns

    def step(_, slopes):
        off, found = parts(slopes)
        moved = jnp.linalg.solve(found, columns.T @ off)
        return slopes - moved * jnp.minimum(1.0, 1.0 / (jnp.sqrt(jnp.sum(moved**2)) + 1e-12))

    slopes = jax.lax.fori_loop(0, 15, step, jnp.zeros(columns.shape[1]))
    off, found = parts(slopes)
    back = jnp.linalg.inv(found)
    squares = (columns * (off**2)[:, None]).T @ columns
    return slopes[-1], 1.959964 * jnp.sqrt((back @ squares @ back)[-1, -1])


def built(name: str, n: int, epsilon: float):
    """The test of `jaxdp.test`."""
    about = DESIGNS[name]
    fields = {"loss": about.loss, "low": 0.0, "high": about.most}
    return catalogue.find(METHOD).build(epsilon, about.domain, Options(num_records=n, fields=fields))


@functools.cache
def programs(loss, law, count: int, n: int, epsilon: float, name: str):
    """keys -> (p, effect, ends) and what is had without privacy; one program for a loss and so many columns."""
    return (
        logistic.answering(built(name, n, epsilon)),
        jax.jit(lambda values, y: jax.lax.map(lambda both: plain(*both, loss), (values, y))),
    )


def measure(name: str, n: int, epsilon: float, replicates: int) -> dict:
    """One row."""
    start, about = time.process_time(), DESIGNS[name]
    row = {"design": name, "n": n, "epsilon": epsilon}
    shapes = jax.eval_shape(lambda key: draw(key, n, name)[0], jax.random.key(0))
    if built(name, n, epsilon).validity(shapes).verdict == "refuse":
        return row | {"refused": True, "replicates": 0}
    split, told = jax.vmap(jax.random.split)(keys_of(SEED, f"{name} {n} {epsilon:g}", replicates)), []
    first_of = next(
        other for other, it in DESIGNS.items() if (it.loss, len(it.slopes)) == (about.loss, len(about.slopes))
    )
    run, without = programs(about.loss, about.law, len(about.slopes), n, epsilon, first_of)
    drawn = jax.jit(lambda keys: jax.lax.map(lambda key: draw(key, n, name), keys))
    for first in range(0, replicates, CHUNK):
        key_data, key_run = (split[first : first + CHUNK, side] for side in (0, 1))
        data, values, y = drawn(key_data)
        told.append([*run(key_run, data), *without(values, y)])
    found = logistic.summary(told, about.slopes[-1], about.bounds[-1])
    return row | found | {"seconds": round(time.process_time() - start, 1)}


if __name__ == "__main__":
    logistic.run_cells(__doc__, RECORD, (PAGE, "m-estimator"), DESIGNS, CELLS, measure)
