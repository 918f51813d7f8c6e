"""A cell of a power curve of BandGCM: draw data, sort by Z, differences of neighbours, noise, p-value; replicates.

Peer: the same test in NumPy, sixteen data sets at a time. `ordered`: our records are drawn in the order of Z, which
makes XLA's sort cheaper; the peer draws and sorts as ever. `contrast`: ContrastGCM, four curves through two columns of
Z (`contrast_style`).
"""

import functools

import jax
import numpy as np

import jaxdp
from experiments.benchmarks import contrast_style
from experiments.benchmarks.harness import Case, Peer
from experiments.benchmarks.rows import partition_gcm
from jaxdp.independence.continuous import contrast_gcm
from jaxdp.simulate import power
from jaxdp.simulate.designs import confounder
from jaxdp.statistics.neighbours import bands, neighbour_order

EPSILON, EFFECT, BATCH, GRID = 1.0, 0.25, 16, 2.0**10
CASES = {
    "n1000": {"n": 1000, "replicates": 6000, "goal": 2},
    "n10000": {"n": 10_000, "replicates": 600, "goal": 2},
    "n1000_ordered": {"n": 1000, "replicates": 6000, "goal": 2, "ordered": True},
    "n10000_ordered": {"n": 10_000, "replicates": 600, "goal": 2, "ordered": True},
    "contrast_n1000": {"n": 1000, "replicates": 1500, "goal": 2, "contrast": True},
    "n100": {"n": 100, "replicates": 320, "goal": None},
}
QUICK = ("n100",)


def build(n: int, replicates: int, goal, contrast: bool = False, ordered: bool = False) -> Case:
    """Replicates of one cell; one unit is a replicate."""
    return _contrast(n, replicates, goal) if contrast else _band(n, replicates, goal, ordered)


def _contrast(n: int, replicates: int, goal) -> Case:
    test = jaxdp.ContrastGCM(epsilon=EPSILON)
    design = functools.partial(confounder.sine_confounder, n=n, effect=EFFECT, dim=2)
    asked = test.specialize(jax.eval_shape(design, jax.random.key(0)))
    side, width, rate = (float(part) for part in (asked._side(2, n), asked.widths()[0], asked._rate(2, n)))
    scale = float(asked.mechanism_in_force().scale(asked.sensitivity(n)))

    def agree() -> dict[str, float]:
        data = design(jax.random.key(7))
        ours = float(asked.statistic(jax.random.key(0), data)[0])
        arrays = (np.asarray(part)[None] for part in (data.x, data.y, data.z))
        return {"error": abs(ours - contrast_style.sums(*arrays, side, width)[0, 0]), "tolerance": 1e-2}

    peer = Peer(numpy_contrasts, (n, min(replicates, 320), side, width, rate, scale), min(replicates, 320), None, goal)
    return Case(
        ours=lambda: power.p_values(test, design, jax.random.key(0), replicates),
        units=replicates,
        agree=agree,
        compiled=False,
        peers={"numpy": peer},
    )


def _band(n: int, replicates: int, goal, ordered: bool) -> Case:
    test = jaxdp.BandGCM(epsilon=EPSILON)
    design = functools.partial(confounder.sine_confounder, n=n, effect=EFFECT, ordered=ordered)
    k, width = test.neighbors(n), float(test.widths()[0])
    scale = float(test.mechanism_in_force().scale(test.sensitivity(n)))

    def agree() -> dict[str, float]:
        data = design(jax.random.key(7))
        ours = float(test.statistic(jax.random.key(0), data))
        priority = np.asarray(neighbour_order.priorities(jax.random.key(0), n))  # of equal z, as the test breaks ties
        place = np.argsort(np.lexsort((priority, np.asarray(data.z))))
        x, y, place = (np.asarray(a)[None] for a in (data.x, data.y, place))
        return {"error": abs(ours - sums(x, y, place, k, width)[0]), "tolerance": 1e-2}

    return Case(
        ours=lambda: power.p_values(test, design, jax.random.key(0), replicates),
        units=replicates,
        agree=agree,
        compiled=False,
        peers={"numpy": Peer(numpy_cell, (n, min(replicates, 800), k, width, scale), min(replicates, 800), None, goal)},
    )


def numpy_cell(n, replicates, k, width, scale):
    """P-values of the replicates."""
    rng = np.random.default_rng(0)
    sd = np.sqrt(bands.null_variance(n, k))
    p_values = []
    for _ in range(replicates // BATCH):
        z = 2.0 * rng.standard_normal((BATCH, n), np.float32)
        noise = rng.standard_normal((2, BATCH, n), np.float32)
        wave = np.exp(-0.5 * z * z) * np.sin(2.0 * z)
        s = sums(wave + noise[0], noise[1] - wave + EFFECT * noise[0], z, k, width)
        p_values.append(partition_gcm.p_value(np.abs(s + rng.laplace(0.0, scale, BATCH)), sd, scale))
    return np.concatenate(p_values)


def numpy_contrasts(n, replicates, side, width, rate, scale):
    """P-values of the replicates of ContrastGCM given two columns."""
    rng = np.random.default_rng(0)
    p_values = []
    for _ in range(replicates // BATCH):
        z = 2.0 * rng.standard_normal((BATCH, n, 2), np.float32)
        noise = rng.standard_normal((2, BATCH, n), np.float32)
        first = z[..., 0]
        wave = np.exp(-0.5 * first * first) * np.sin(2.0 * first)
        x, y = wave + noise[0], noise[1] - wave + EFFECT * noise[0]
        total, squares = contrast_style.sums(x, y, z, side, width) + rng.laplace(0.0, scale, (2, BATCH)) * [[1], [2]]
        variance = np.clip(contrast_gcm.RATE_OF_SQUARES * squares, contrast_gcm.FLOOR[2] * rate * n, rate * n)
        p_values.append(partition_gcm.p_value(np.abs(total), np.sqrt(variance), scale))
    return np.concatenate(p_values)


def sums(x, y, z, k, width):
    """S of each row of (batch, n) arrays."""
    order = np.argsort(z, axis=1)
    x, y = np.take_along_axis(x, order, 1), np.take_along_axis(y, order, 1)
    total = 0.0
    for distance in range(1, k + 1):
        one = soft(x[:, distance:] - x[:, :-distance], width)
        total = total + np.einsum("bn,bn->b", one, soft(y[:, distance:] - y[:, :-distance], width), dtype=float)
    return total / (2 * k)


def soft(difference, width):
    """clip(t / width, -1, 1) on the grid."""
    return np.round(np.clip(difference / width, -1.0, 1.0) * GRID) / GRID
