"""Conditional randomisation test with m resamples: one fit of Y on Z, or a fit of X for every resample too.

Cases `given`: both sides get the same resamples and compute m + 1 statistics. The others also draw the resamples, both
sides with their own generator. Cases `refit`: X and every (given) resample are regressed on Z as well.
"""

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.kernel_ridge import KernelRidge

import jaxdp
from experiments.benchmarks.harness import Case, Peer
from jaxdp.statistics.kernel_ridge import kernels, ridge

GAMMA, RIDGE, REFITS = 0.5, 0.02, 10
SCALE = 10.0 * 0.3 * 10.0  # the test divides the residual of x by its clipping limit, and y by 10
CASES = {
    "m19": {"n": 1000, "m": 19, "goal": 7},
    "m99": {"n": 1000, "m": 99, "goal": 7},
    "m999": {"n": 1000, "m": 999, "goal": 7},
    "m19_given": {"n": 1000, "m": 19, "goal": 7, "given": True},
    "m99_given": {"n": 1000, "m": 99, "goal": 7, "given": True},
    "m999_given": {"n": 1000, "m": 999, "goal": 7, "given": True},
    "m99_refit": {"n": 1000, "m": 99, "goal": 100, "refit": True},
    "m999_refit": {"n": 1000, "m": 999, "goal": 100, "refit": True},
    "n100_m19": {"n": 100, "m": 19, "goal": None},
}
QUICK = ("n100_m19",)


def build(n: int, m: int, goal, refit: bool = False, given: bool = False) -> Case:
    """All m + 1 statistics of one data set."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=n)
    x, y = mean_of(z) + 0.3 * rng.normal(size=n), np.clip((mean_of(z) + 0.3 * rng.normal(size=n)) / 2.0, -1.0, 1.0)
    if refit:
        return _refit_case(rng, z, x, y, m, goal)
    return _given_case(rng, z, x, y, m, goal) if given else _one_fit_case(z, x, y, m, goal)


def mean_of(z):
    """f(z) = exp(-z^2/2) sin(2 z)."""
    return np.exp(-(z**2) / 2.0) * np.sin(2.0 * z)


def _one_fit_case(z, x, y, m, goal) -> Case:
    test = _test(m)
    data = jaxdp.Data(*(jnp.asarray(a, jnp.float32) for a in (x, y, z)))
    run = jax.jit(lambda key, data: test.statistic(key, data))

    def agree() -> dict[str, float]:
        observed, copies = jax.tree.map(np.asarray, run(jax.random.key(1), data))
        wanted, others = sklearn_one_fit(z, x, y, m)
        gap = abs(copies.std() * SCALE / others.std() - 1.0)
        assert gap < 6.0 / np.sqrt(m), gap  # resamples differ, their spread may not
        return {"error": abs(observed * SCALE / wanted - 1.0), "tolerance": 1e-4, "spread_gap": gap}

    return Case(
        ours=run,
        arguments=(jax.random.key(0), data),
        units=1,
        unit="data set",
        agree=agree,
        peers={"sklearn_one_fit": Peer(sklearn_one_fit, (z, x, y, m), goal=goal)},
    )


def _test(m):
    return jaxdp.CRT(
        law=jaxdp.GaussianLaw(function=lambda z: jnp.exp(-0.5 * z**2) * jnp.sin(2.0 * z), noise_sd=0.3),
        kernel=kernels.RBF.from_gamma(GAMMA),
        ridge=RIDGE,
        num_resamples=m,
        alternative="greater",
        winsorize=10.0,
    )


def _given_case(rng, z, x, y, m, goal) -> Case:
    resamples = mean_of(z) + 0.3 * rng.normal(size=(m, len(z)))
    test = _test(m)
    data = jaxdp.Data(*(jnp.asarray(a, jnp.float32) for a in (x, y, z)))
    arguments = (data, jnp.asarray(resamples, jnp.float32))
    run = jax.jit(lambda data, resamples: test.statistic_of_resamples(data, resamples))

    def agree() -> dict[str, float]:
        observed, copies = jax.tree.map(np.asarray, run(*arguments))
        wanted, others = sklearn_given(z, x, y, resamples)
        error = max(abs(observed * SCALE - wanted), np.abs(copies * SCALE - others).max())
        return {"error": float(error / others.std()), "tolerance": 1e-4}

    return Case(
        ours=run,
        arguments=arguments,
        units=1,
        unit="data set",
        agree=agree,
        peers={
            "sklearn_loop": Peer(sklearn_given, (z, x, y, resamples), goal=goal),
            "sklearn_product": Peer(sklearn_given_at_once, (z, x, y, resamples), goal=None),
        },
    )


def _refit_case(rng, z, x, y, m, goal) -> Case:
    resamples = np.column_stack([x, mean_of(z)[:, None] + 0.3 * rng.normal(size=(len(z), m))])
    arguments = tuple(jnp.asarray(a, jnp.float32) for a in (z, resamples, y))

    def agree() -> dict[str, float]:
        ours = np.asarray(refit_statistics(*arguments))[: REFITS + 1]
        wanted = sklearn_refit(z, resamples, y)
        return {"error": float(np.abs(ours / wanted - 1.0).max()), "tolerance": 1e-3}

    return Case(
        ours=jax.jit(refit_statistics),
        arguments=arguments,
        units=m + 1,
        unit="resample",
        agree=agree,
        peers={"sklearn_refit": Peer(sklearn_refit, (z, resamples, y), REFITS + 1, goal=goal)},
    )


def refit_statistics(z, resamples, y):
    """Residuals of y and of every resample from one factor, then one product."""
    targets = jnp.concatenate([y[:, None], resamples], axis=1)
    left = ridge.krr_residuals(kernels.RBF.from_gamma(GAMMA), RIDGE, z, targets)
    return jnp.matmul(left[:, 1:].T, left[:, 0], precision=jax.lax.Precision.HIGHEST)


def _model(n):
    return KernelRidge(alpha=n * RIDGE / 2.0, kernel="rbf", gamma=GAMMA)


def sklearn_one_fit(z, x, y, m):
    """One fit of y, a loop over resamples."""
    rng = np.random.default_rng(1)
    column = z[:, None]
    left = y - _model(len(z)).fit(column, y).predict(column)
    mean = mean_of(z)
    observed = (x - mean) @ left
    return observed, np.array([(0.3 * rng.normal(size=len(z))) @ left for _ in range(m)])


def sklearn_given(z, x, y, resamples):
    """One fit of y, a loop over given resamples."""
    column, mean = z[:, None], mean_of(z)
    left = y - _model(len(z)).fit(column, y).predict(column)
    return (x - mean) @ left, np.array([(row - mean) @ left for row in resamples])


def sklearn_given_at_once(z, x, y, resamples):
    """One fit of y, one product with given resamples."""
    column, mean = z[:, None], mean_of(z)
    left = y - _model(len(z)).fit(column, y).predict(column)
    return (x - mean) @ left, (resamples - mean) @ left


def sklearn_refit(z, resamples, y):
    """A fit of every resample, the first REFITS of them."""
    column, model = z[:, None], _model(len(z))
    left = y - model.fit(column, y).predict(column)
    fits = (resamples[:, j] - model.fit(column, resamples[:, j]).predict(column) for j in range(REFITS + 1))
    return np.array([residual @ left for residual in fits])
