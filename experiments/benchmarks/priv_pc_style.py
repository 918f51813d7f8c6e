"""Peers in the style of the published Priv-PC code, written from its description: data matrix, strata, masks, loops.

Definition 6 on one pair: the distinct rows of the conditioning columns, one mask over the whole matrix per
stratum, the rows copied, one Kendall tau (merge sort) per copy. PC and sieve-and-examine ask it one query at a time.

The published code itself is the peer too where `JAXDP_PRIV_PC` names the folder of its `indep_test.py` (it is never
part of this repository).
"""

import functools
import itertools
import math
import os
import sys
import types

import numpy as np
from scipy.stats import kendalltau, norm

FOLDER = "JAXDP_PRIV_PC"


def conditional_tau(data: np.ndarray, i: int, j: int, given: tuple[int, ...]) -> float:
    """Definition 6 with signed tau-a in every stratum: sum w_k tau_k / sqrt(sum w_k)."""
    total, weight = 0.0, 0.0
    strata = np.unique(data[:, list(given)], axis=0) if given else [()]
    for levels in strata:
        rows = np.ones(len(data), bool)
        for column, level in zip(given, levels, strict=True):
            rows = (data[..., column] == level) & rows
        part = data[rows, :] if given else data
        n = len(part)
        if n < 2:
            continue
        variance = (4.0 * n + 10.0) / (9.0 * n * (n - 1.0))
        total += 2.0 * concordant_minus_discordant(part[:, i], part[:, j]) / (n * (n - 1.0)) / variance
        weight += 1.0 / variance
    return total / math.sqrt(weight) if weight else 0.0


def concordant_minus_discordant(x, y) -> float:
    """S from SciPy's tau-b and the numbers of untied pairs."""
    untied = [(len(v) * (len(v) - 1) - np.sum(c * (c - 1.0))) / 2 for v in (x, y) for c in [np.bincount(v)]]
    tau = kendalltau(x, y).statistic
    return 0.0 if np.isnan(tau) else float(tau) * math.sqrt(untied[0] * untied[1])


def answers(data: np.ndarray, queries, function=conditional_tau) -> list[float]:
    """One query after the other."""
    return [function(data, i, j, given) for i, j, given in queries]


def published_tau(data: np.ndarray, i: int, j: int, given: tuple[int, ...]) -> float:
    """Definition 6 by the published code."""
    with np.errstate(all="ignore"):
        return float(_published().bincondKendall(data, i, j, set(given))[0])


def has_published() -> bool:
    """Whether the published code is at hand."""
    return bool(os.environ.get(FOLDER))


@functools.cache
def _published():
    """Its module of tests; the G-test package that it also imports is not needed here."""
    for name in ("gsq", "gsq.ci_tests"):
        sys.modules.setdefault(name, types.ModuleType(name))
    sys.modules["gsq.ci_tests"].ci_test_bin = sys.modules["gsq.ci_tests"].ci_test_dis = None  # type: ignore[attr-defined]
    sys.path.append(os.environ[FOLDER])
    import indep_test

    return indep_test


def sieve_and_examine(data, rng, *, epsilon: float, level: float, max_order: int, tau=conditional_tau):
    """Priv-PC with budget epsilon per round, order-independent removals; returns (adjacency, queries asked).

    Half of the budget sieves on a subset of the rows, drawn anew after each above-threshold answer, half examines on
    all rows; noise is added to the one-sided p-value, with the scale Phi(6/sqrt n) - 1/2 of the published code.
    """
    n, d = data.shape
    half = epsilon / 2
    rates = np.linspace(0.05, 1.0, 2000)
    rate = rates[np.argmin(1 / np.sqrt(rates) / np.log1p(np.expm1(min(half, 500.0)) / rates))]
    spread = norm.cdf(6.0 / math.sqrt(n)) - 0.5
    amplified = math.log1p(math.expm1(half) / rate) if half < 500 else half - math.log(rate)
    threshold = 2.0 * spread / math.sqrt(rate) / amplified

    def draw():
        return (level + rng.laplace(0, threshold), data[rng.permutation(n)[: int(n * rate)]])

    noisy_level, subset = draw()
    adjacency, asked = ~np.eye(d, dtype=bool), 0
    for order in range(max_order + 1):
        frozen = adjacency.copy()
        for i, j in itertools.permutations(range(d), 2):
            if not frozen[i, j]:
                continue
            for given in itertools.combinations([k for k in np.flatnonzero(frozen[i]) if k != j], order):
                asked += 1
                if norm.sf(abs(tau(subset, i, j, given))) + rng.laplace(0, 2 * threshold) < noisy_level:
                    continue
                noisy_level, subset = draw()
                asked += 1
                if norm.sf(abs(tau(data, i, j, given))) + rng.laplace(0, spread / half) >= level:
                    adjacency[i, j] = adjacency[j, i] = False
                    break
    return adjacency, asked
