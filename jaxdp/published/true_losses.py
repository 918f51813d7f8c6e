"""True privacy losses of mechanisms that cost more than their papers claim, by quadrature.

Theory: docs/theory/crt.md#whole-rank (noisy ranks), docs/theory/priv_pc.md#printed-rounds (sieve-and-examine as
printed), docs/theory/gwas.md#algorithm-3-as-printed.
"""

import itertools
import math
from typing import Any

import numpy as np

from jaxdp.noise import survival
from jaxdp.published.priv_pc import printed_round

WITNESS = (-6.233, -0.316, 3.977, 3.788, -0.818, -0.42)  # T_0, ..., T_5
WITNESS_SHIFTS = (1, -1, 1, 1, -1, -1)
_NODES = 40


def _quadrature(kinks, scale):
    """Nodes and weights of Gauss-Legendre pieces between kinks, out to 60 scales."""
    ends = np.unique(np.concatenate([kinks, np.linspace(min(kinks) - 60 * scale, max(kinks) + 60 * scale, 241)]))
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    width = np.diff(ends) / 2
    middle = (ends[1:] + ends[:-1]) / 2
    return (middle[:, None] + width[:, None] * nodes).ravel(), (width[:, None] * weights).ravel()


def noisy_rank_law(statistics, epsilon: float, sensitivity: float = 1.0):
    """P(k of the noisy copies reach the noisy reference), k = 0, ..., m; exact quadrature.

    statistics: T_0, ..., T_m; all carry Laplace noise of scale 2 sensitivity/epsilon.
    """
    statistics = np.asarray(statistics, float)
    scale = 2.0 * sensitivity / epsilon
    x, weight = _quadrature(statistics, scale)
    density = np.exp(-np.abs(x - statistics[0]) / scale) / (2 * scale)
    law = np.zeros((statistics.size, x.size))
    law[0] = 1.0
    for other in statistics[1:]:
        reach = survival.laplace(x - other, scale, xp=np)
        law = law * (1 - reach) + np.concatenate([np.zeros((1, x.size)), law[:-1]]) * reach
    return law @ (density * weight)


def noisy_rank_loss(
    epsilon: float, statistics: Any = WITNESS, shifts: Any = WITNESS_SHIFTS, *, level_count: int | None = None
) -> float:
    """Privacy loss of releasing the whole noisy rank (p-value), claimed to be epsilon.

    level_count: only the decision `rank <= level_count` is released instead; that one is epsilon-DP.
    """
    laws = [noisy_rank_law(t, epsilon) for t in (np.array(statistics), np.array(statistics) + np.array(shifts))]
    if level_count is not None:
        laws = [np.array([law[: level_count + 1].sum(), law[level_count + 1 :].sum()]) for law in laws]
    return float(np.max(np.abs(np.log(laws[0] / laws[1]))))


def algorithm_2_loss(epsilon: float, ratio: float) -> float:
    """True cost of one round of Priv-PC's Algorithm 2 as printed, claimed to be epsilon.

    ratio: n/m. Line 15 redraws the threshold noise with the scale 2 Delta_n/eps' of the full data, which is
    sqrt(n/m) times too small for the subsample: the threshold costs sqrt(n/m) eps'/2 instead of eps'/2.
    """
    return printed_round(2, epsilon, 1.0 / ratio)


def algorithm_3_loss(epsilon: float, accepts: int, rejections: int = 1) -> float:
    """True cost of the unit-circle paper's Algorithm 3 as printed after `accepts` accepted tests.

    The realised threshold noise cancels, so each accept is a comparison of u + Laplace(4 s1 Delta/epsilon) with
    a public number, and nothing pays for it but its own noise.
    """
    scale = 4.0 * rejections / epsilon
    far = 40.0 * scale
    each = np.log(survival.laplace(far, scale, xp=np) / survival.laplace(far + 1.0, scale, xp=np))
    return float(accepts * each)


def published_mic_loss(epsilon: float, n: int = 8) -> float:
    """Loss of the published MICr-Geom by the event {coefficient = 0} alone: c = 1, B = 6, hence three tables.

    docs/theory/mic.md#published-geometric-mechanism: n records in one corner against one of them moved to the other
    corner. The coefficient is 0 exactly when no noisy table has a 2 x 2 minor that differs from 0; counted over all
    integer tables.
    """
    chances = [math.prod(_flat_chance(side, n, corner, epsilon / 2.0) for side in (2, 3, 3)) for corner in (n, n - 1)]
    return abs(math.log(chances[0] / chances[1]))


def _flat_chance(side: int, n: int, in_corner: int, rate: float) -> float:
    """P(a noisy side x side table, side 2 or 3, has parallel rows) under truncated geometric noise per cell."""
    counts = np.zeros((side, side), int)
    counts[0, 0], counts[-1, -1] = in_corner, n - in_corner
    rows = np.stack(np.meshgrid(*[np.arange(n + 1)] * side, indexing="ij"), -1).reshape(-1, side)
    laws = [
        np.prod([truncated_geometric(count, n, rate)[rows[:, j]] for j, count in enumerate(row)], axis=0)
        for row in counts
    ]
    parallel = np.ones((len(rows), len(rows)))
    for a, b in itertools.combinations(range(side), 2):
        parallel *= np.outer(rows[:, a], rows[:, b]) == np.outer(rows[:, b], rows[:, a])
    if side == 2:
        return float(laws[0] @ parallel @ laws[1])
    return float(np.sum(np.outer(laws[0], laws[1]) * parallel * ((parallel * laws[2]) @ parallel)))


def truncated_geometric(count: int, n: int, rate: float):
    """Definition 4.5 of the MIC paper: probabilities of 0, ..., n."""
    ratio = math.exp(-rate)
    law = (1 - ratio) / (1 + ratio) * ratio ** np.abs(np.arange(n + 1.0) - count)
    law[0], law[n] = ratio**count / (1 + ratio), ratio ** (n - count) / (1 + ratio)
    return law
