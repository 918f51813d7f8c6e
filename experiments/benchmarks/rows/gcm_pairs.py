"""All pairs of 100 features given one Z: one factor, 100 right-hand sides, two q x q products."""

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from sklearn.kernel_ridge import KernelRidge

from experiments.benchmarks.harness import Case, Peer
from jaxdp.statistics.kernel_ridge import kernels, ridge

RIDGE, GAMMA, SKLEARN_PAIRS = 0.02, 0.5, 20  # alpha = n ridge/2 = 10 at n = 1000

CASES = {
    "n1000_q100": {"n": 1000, "q": 100, "goals": (1e4, 1.0)},
    "n100_q10": {"n": 100, "q": 10, "goals": (None, None)},
}
QUICK = ("n100_q10",)


def build(n: int, q: int, goals) -> Case:
    """q features with n records, d = 3; the statistics of all q (q - 1)/2 pairs."""
    z, features = draw(n, q)
    alpha = n * RIDGE / 2.0
    arguments = (jnp.asarray(z, jnp.float32), jnp.asarray(features, jnp.float32))

    def agree() -> dict[str, float]:
        ours, reference = np.asarray(pair_statistics(*arguments)), numpy_pairs(z, features, alpha)
        above = np.triu_indices(q, 1)
        return {"error": float(np.abs(ours - reference)[above].max()), "tolerance": 2e-4}

    pairs = q * (q - 1) / 2
    return Case(
        ours=jax.jit(pair_statistics),
        arguments=arguments,
        units=pairs,
        unit="pair",
        agree=agree,
        peers={
            "sklearn_loop": Peer(sklearn_loop, (z, features, alpha), min(SKLEARN_PAIRS, pairs), goal=goals[0]),
            "numpy_cholesky": Peer(
                numpy_pairs,
                (z.astype(np.float32), features.astype(np.float32), alpha),
                pairs,
                goal=goals[1],
                both_cores=False,
            ),
        },
    )


def draw(n: int, q: int):
    """Z normal (n, 3); features sin(Z w) + noise, scaled into [-1, 1]."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(n, 3))
    features = np.sin(z @ rng.normal(size=(3, q))) + 0.3 * rng.normal(size=(n, q))
    return z, np.clip(features / 2.0, -1.0, 1.0)


def pair_statistics(z, features):
    """GCM statistics of all pairs, (q, q)."""
    residuals = ridge.krr_residuals(kernels.RBF.from_gamma(GAMMA), RIDGE, z, features)

    def square(a):
        return jnp.matmul(a.T, a, precision=jax.lax.Precision.HIGHEST) / a.shape[0]

    mean = square(residuals)
    return jnp.sqrt(1.0 * z.shape[0]) * mean / jnp.sqrt(square(residuals**2) - mean**2)


def numpy_pairs(z, features, alpha):
    """The same from one LAPACK factor."""
    squared = np.sum(z**2, 1)
    gram = np.exp(-GAMMA * np.maximum(squared[:, None] + squared[None] - 2.0 * z @ z.T, 0.0))
    gram[np.diag_indices_from(gram)] += alpha
    factor = scipy.linalg.cho_factor(gram, lower=True, overwrite_a=True, check_finite=False)
    residuals = alpha * scipy.linalg.cho_solve(factor, features, check_finite=False)
    mean, second = residuals.T @ residuals / len(z), (residuals**2).T @ residuals**2 / len(z)
    return np.sqrt(len(z)) * mean / np.sqrt(second - mean**2)


def sklearn_loop(z, features, alpha):
    """Two fits per pair, the first SKLEARN_PAIRS pairs."""
    model = KernelRidge(alpha=alpha, kernel="rbf", gamma=GAMMA)
    statistics = []
    for a, b in list(zip(*np.triu_indices(features.shape[1], 1), strict=True))[:SKLEARN_PAIRS]:
        r = [features[:, c] - model.fit(z, features[:, c]).predict(z) for c in (a, b)]
        product = r[0] * r[1]
        statistics.append(np.sqrt(len(z)) * product.mean() / product.std())
    return statistics
