"""What tests of slopes share: replicates by one program for any slope, the range of scores, stages, refusals."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binom

import jaxdp
from jaxdp.data.dataset import Data, Domain
from jaxdp.simulate.engine import replicates
from jaxdp.statistics.regression_scores import Start


def answers_of(tests, draw, num_records: int):
    """(name of a test, slope, replicates) -> p-values, lower and upper ends of intervals, arrays (replicates,).

    tests: by name. draw: (key, number of records, slope) -> Data. Replicates: a multiple of fifty.
    """

    @functools.cache
    def of_fifty(name: str):
        def one(slope, key):
            found = jaxdp.run(tests[name], key, draw(jax.random.fold_in(key, 1), num_records, slope))
            return found.p_value, *found.interval

        return jax.jit(lambda slope, keys: jax.lax.map(functools.partial(one, slope), keys, batch_size=25))

    def answers(name: str, slope: float, replicates: int):
        keys = jax.random.split(jax.random.key(6), (replicates // 50, 50))
        return map(np.concatenate, zip(*(of_fifty(name)(slope, some) for some in keys), strict=True))

    return answers


def check_level(answers, name: str, count: int):
    """Of `answers_of`: no more true nulls are rejected than the level says, and not far fewer."""
    p, _, _ = answers(name, 0.0, count)
    assert np.sum(p < 0.05) <= binom.isf(1e-4, count, 0.05)
    assert np.sum(p < 0.5) >= binom.ppf(1e-4, count, 0.35)


def check_intervals(found, true: float, share: float) -> float:
    """That intervals, which more than a share has, agree with p-values and hold the slope; returns the power."""
    p, low, high = found
    known = ~np.isnan(low)
    assert np.mean(known) > share
    assert np.array_equal(((low > 0) | (high < 0))[known], (p < 0.05)[known])
    assert np.sum((low <= true) & (true <= high)) >= binom.ppf(1e-4, known.sum(), 0.95)
    return np.mean(p < 0.05)


def near_start(slopes, euclidean: bool, **fields) -> Start:
    """About columns of which [-1, 1] is the whole range where scores are large."""
    count = len(slopes) - 1
    fields = {"mean": jnp.zeros(count), "root": 20.0 * jnp.eye(count), "clear": jnp.array(9.0)} | fields
    return Start(slopes=jnp.asarray(slopes), euclidean=euclidean, **fields)


def of_grid(start: Start, own: int, rest: int, of=Start.of):
    """What records on a grid of X, of the other columns together and of both ends of Y add."""
    own, rest, y = np.meshgrid(np.linspace(-1, 1, own), 0.25 * np.linspace(-1, 1, rest), (0.0, 1.0), indexing="ij")
    near = np.column_stack([np.repeat(rest.reshape(-1, 1), len(start.mean) - 1, axis=1), own.reshape(-1)])
    return np.asarray(of(start, jnp.asarray(near), jnp.asarray(y.reshape(-1))))


def farthest(part, euclidean: bool) -> float:
    """How far any row is from the longest one, in the norm of the bound."""
    order = 2 if euclidean else 1
    longest = part[np.linalg.norm(part, ord=order, axis=1).argmax()]
    return np.linalg.norm(part - longest, ord=order, axis=1).max()


def check_units(parts, leasts, euclidean: bool, seed: int):
    """No two records differ by more than one unit in a part, and some by more than its least."""
    rng = np.random.default_rng(seed)
    for part, least in zip(parts, leasts, strict=True):
        assert least < farthest(part, euclidean) <= 1.0 + 1e-12
        some = part[rng.choice(len(part), 2000, replace=False)]
        assert np.linalg.norm(some[:, None] - some[None, :500], ord=2 if euclidean else 1, axis=-1).max() <= 1.0 + 1e-12


def columns_without_records(x, y, z) -> Data:
    """Twenty records of zeros in these columns."""
    wide = lambda part: np.zeros((20,) if len(part) == 1 else (20, len(part)))  # noqa: E731
    return Data(wide(x), wide(y), np.zeros((20, len(z))) if z else None, Domain(x, y, z))


def check_refused(test, data: Data, folder, told: str):
    """That a release of these data is refused in these words before anything is charged."""
    ledger = jaxdp.Ledger.create(folder / "ledger.json", epsilon=5.0)
    with pytest.raises(ValueError, match=told):
        jaxdp.run(test, jaxdp.fresh_key(), data, ledger=ledger)
    assert float(ledger.spent.epsilon) == 0.0


def check_margins(test, data: Data):
    """That one-sided p-values at the ends of the interval are those of its coverage."""
    found = jaxdp.run(test, jax.random.key(1), data)
    for place, effect in enumerate(map(float, found.interval)):
        sides = test.one_sided(jax.eval_shape(lambda: data), found.release, effect)
        assert float(sides[place]) == pytest.approx(0.025, abs=2e-3)


def simulated_stages(test, draw, n: int) -> int:
    """Stages before the last of a simulated release, whose budget is traced."""
    design = replicates.Design.of(functools.partial(draw, n=n))

    def release(test, key):
        return jaxdp.run(test, key, design(jax.random.fold_in(key, 1))).release

    return len(jax.eval_shape(release, replicates.decided(test, design), jax.random.key(0)).earlier)
