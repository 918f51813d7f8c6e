"""A cell of a power curve of PartitionGCM: draw data, cells, within-cell sums, noise, p-value, many replicates.

Peer: the same test in NumPy, sixteen data sets at a time (one bincount serves them all).
"""

import functools

import jax
import numpy as np
import scipy.special

import jaxdp
from experiments.benchmarks.harness import Case, Peer
from jaxdp.simulate import power
from jaxdp.simulate.designs import confounder

EPSILON, EFFECT, BATCH = 1.0, 0.25, 16
CASES = {
    "n1000": {"n": 1000, "replicates": 20_000, "goal": 2, "per_second": 2.5e4},
    "n300": {"n": 300, "replicates": 60_000, "goal": 2, "per_second": None},
    "n10000": {"n": 10_000, "replicates": 2000, "goal": 2, "per_second": None},
    "n100": {"n": 100, "replicates": 320, "goal": None, "per_second": None},
}
QUICK = ("n100",)


def build(n: int, replicates: int, goal, per_second) -> Case:
    """Replicates of one cell; one unit is a replicate."""
    test = jaxdp.PartitionGCM(epsilon=EPSILON)
    design = functools.partial(confounder.sine_confounder, n=n, effect=EFFECT)
    tau, cells = float(test.level(n)), max(4, n // 8)

    def agree() -> dict[str, float]:
        data = design(jax.random.key(7))
        ours = test.statistic(jax.random.key(0), data)
        x, y, z = (np.asarray(a, float)[None] for a in (data.x, data.y, data.z))
        s, v = sums(x, y, z, tau, cells)
        error = max(abs(float(ours["covariance"]) - s[0]), abs(float(ours["variance"]) - v[0]))
        rates = [
            float(np.mean(np.asarray(power.p_values(test, design, jax.random.key(3), replicates)) <= 0.05)),
            float(np.mean(numpy_cell(n, replicates, tau, cells) <= 0.05)),
        ]
        half = 6.0 * np.sqrt(max(rates[1] * (1 - rates[1]), 0.01) * 2.0 / replicates)
        assert abs(rates[0] - rates[1]) <= half, rates
        return {"error": error, "tolerance": 2e-3, "power": rates[0], "power_numpy": rates[1]}

    return Case(
        ours=lambda: power.p_values(test, design, jax.random.key(0), replicates),
        units=replicates,
        agree=agree,
        compiled=False,
        goal_per_second=per_second,
        peers={"numpy": Peer(numpy_cell, (n, min(replicates, 1600), tau, cells), min(replicates, 1600), None, goal)},
    )


def numpy_cell(n, replicates, tau, cells):
    """P-values of the replicates."""
    rng = np.random.default_rng(0)
    p_values = []
    for _ in range(replicates // BATCH):
        z = 2.0 * rng.standard_normal((BATCH, n), np.float32)
        noise = rng.standard_normal((2, BATCH, n), np.float32)
        wave = np.exp(-0.5 * z * z) * np.sin(2.0 * z)
        s, v = sums(wave + noise[0], noise[1] - wave + EFFECT * noise[0], z, tau, cells)
        scale = 8.0 / (0.85 * EPSILON)
        s = s + rng.laplace(0.0, scale, BATCH)
        v = np.maximum(v + rng.laplace(0.0, 6.0 / (0.15 * EPSILON), BATCH), 1e-3 * n)
        p_values.append(p_value(np.abs(s), np.sqrt(v), scale))
    return np.concatenate(p_values)


def sums(x, y, z, tau, cells):
    """S and V of each row of (batch, n) arrays; cells are quantiles of a standard Cauchy law."""
    batch = x.shape[0]
    x, y = np.clip(x / tau, -1.0, 1.0).ravel(), np.clip(y / tau, -1.0, 1.0).ravel()
    cell = np.clip(((np.arctan(z) / np.pi + 0.5) * cells).astype(np.int64), 0, cells - 1)
    cell = (cell + cells * np.arange(batch)[:, None]).ravel()
    count, sx, sy, sxx, syy, sxy = (
        np.bincount(cell, w, batch * cells).reshape(batch, cells) for w in (None, x, y, x * x, y * y, x * y)
    )
    inverse = 1.0 / np.maximum(count, 1.0)
    ssx, ssy = sxx - sx * sx * inverse, syy - sy * sy * inverse
    return (sxy - sx * sy * inverse).sum(1), (ssx * ssy / np.maximum(count - 1.0, 1.0)).sum(1)


def p_value(t, s, b):
    """P(|N(0, s^2) + Laplace(b)| >= t)."""
    u, r = t / s, s / b
    near = np.exp(0.5 * r * r - t / b + scipy.special.log_ndtr(u - r))
    far = np.exp(np.minimum(0.5 * r * r + t / b + scipy.special.log_ndtr(-u - r), 0.0))
    return np.clip(2.0 * (scipy.special.ndtr(-u) + 0.5 * near - 0.5 * far), 0.0, 1.0)
