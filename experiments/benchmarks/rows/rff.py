"""Ridge regression on 512 random Fourier features: memory flat and time linear in n."""

import functools
import time

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import Ridge

from experiments.benchmarks.harness import Case, Peer
from jaxdp.statistics.kernel_ridge import kernels, random_features

GAMMA, RIDGE = 0.1, 0.01
CASES = {
    "n1e5": {"n": 100_000, "d": 5, "width": 512, "goal": None},
    "n1e6": {"n": 1_000_000, "d": 5, "width": 512, "goal": 4},
    "n3000": {"n": 3000, "d": 5, "width": 64, "goal": None},
}
QUICK = ("n3000",)


def build(n: int, d: int, width: int, goal) -> Case:
    """Residuals of X and Y on Z; one unit is one data set."""
    z, targets = draw(n, d)
    features = random_features.fourier_features(jax.random.key(0), kernels.RBF.from_gamma(GAMMA), d, width)
    run = jax.jit(gcm_statistic)
    arguments = (features, jnp.asarray(z), jnp.asarray(targets))

    def agree() -> dict[str, float]:
        ours = float(run(*arguments))
        reference = numpy_statistic(np.asarray(features.frequencies), z, targets)
        return {"error": abs(ours - reference), "tolerance": 1e-2, "statistic": reference}

    def growth() -> dict[str, float]:
        tenth = tuple(a[: n // 10] for a in arguments[1:])
        run(features, *tenth).block_until_ready()
        times = []
        for inputs in (tenth, arguments[1:]):
            start = time.perf_counter()
            run(features, *inputs).block_until_ready()
            times.append(time.perf_counter() - start)
        return {"growth_exponent": float(np.log10(times[1] / times[0])), "goal_growth_exponent": 1.05}

    return Case(
        ours=run,
        arguments=arguments,
        units=1,
        unit="data set",
        agree=agree,
        extra=growth,
        peers={"sklearn": Peer(sklearn_statistic, (n, d, width), goal=goal, both_cores=False)},
    )


@functools.cache
def draw(n: int, d: int):
    """One data set in float32."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(n, d)).astype(np.float32)
    mean = np.exp(-(z[:, :1] ** 2) / 2.0) * np.sin(2.0 * z[:, :1])
    return z, ((mean + 0.3 * rng.normal(size=(n, 2))) / 4.0).astype(np.float32)


def gcm_statistic(features, z, targets):
    """T of the residual products."""
    left = random_features.feature_residuals(features, RIDGE, z, targets)
    product = left[:, 0] * left[:, 1]
    return jnp.sqrt(1.0 * z.shape[0]) * jnp.mean(product) / jnp.std(product)


def numpy_statistic(frequencies, z, targets):
    """The same features in float64, in chunks."""
    turns = 2.0 * np.pi * frequencies.astype(float)

    def phi(rows):
        return np.hstack([f(z[rows].astype(float) @ turns) for f in (np.cos, np.sin)]) / np.sqrt(turns.shape[1])

    chunks = [slice(low, low + 20_000) for low in range(0, len(z), 20_000)]
    second = sum(phi(c).T @ phi(c) for c in chunks)
    first = sum(phi(c).T @ targets[c] for c in chunks)
    weights = scipy.linalg.solve(second + len(z) * RIDGE / 2.0 * np.eye(len(second)), first, assume_a="pos")
    product = np.prod(np.vstack([targets[c] - phi(c) @ weights for c in chunks]), axis=1)
    return np.sqrt(len(z)) * product.mean() / product.std()


def sklearn_statistic(n, d, width):
    """RBFSampler and Ridge without intercept, both targets at once, float32."""
    z, targets = draw(n, d)
    phi = RBFSampler(gamma=GAMMA, n_components=width, random_state=0).fit(z).transform(z).astype(np.float32, copy=False)
    left = targets - Ridge(alpha=n * RIDGE / 2.0, fit_intercept=False).fit(phi, targets).predict(phi)
    product = left[:, 0] * left[:, 1]
    return np.sqrt(n) * product.mean() / product.std()
