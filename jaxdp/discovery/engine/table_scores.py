"""Scores of many queries from tables, in batches of one shape: how far from independence, in standard deviations.

NumPy on the host: a table has a handful of cells, and a search asks in small batches of ever new shapes,
for which compiling would cost more than counting.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from jaxdp.discovery.engine import counts
from jaxdp.discovery.engine.skeleton import CIQuery
from jaxdp.statistics import concordance
from jaxdp.statistics.tables import stratified

Statistic = Literal["kendall", "chi2", "g"]
INFORMATIVE = 5.0  # least null variance, in effective pairs of counts, like the rule of five expected counts
MIN_STRATUM = 5.0  # in noise sd of its size: smaller strata carry noise alone and are left out


def scores(
    tables, queries: Sequence[CIQuery], statistic: Statistic = "kendall", min_variance: float = INFORMATIVE
) -> np.ndarray:
    """|z| of each query, float64. Without conditioning, tables that hold no information score 0.

    min_variance: a conditional Kendall query whose null variance is below it scores infinity: strata
    that fix one of the two columns (a deterministic relation) cannot show independence, so they must not
    remove an edge. 0 is the classical rule.

    kendall: |U|/sd from U and V of docs/theory/conditional_kendall.md#variance (two binary columns: the
    Cochran-Mantel-Haenszel form). chi2, g: the normal quantile of the same p-value.
    tables: `Counts`, or `NoisyCounts`, whose noise variance then joins the null variance.
    """
    result = np.zeros(len(queries))
    noisy = hasattr(tables, "noise_variance")
    # two binary columns have a formula of their own for Kendall's variance
    pad_from = None if noisy else 3 if statistic == "kendall" else 1
    for positions, batch in counts.batches(tables, queries, pad_from):
        noise = np.zeros(len(positions))
        if noisy:
            noise = np.array([tables.noise_variance(*queries[position]) for position in positions])
        if statistic == "kendall":
            # one batch shares the size of `given`
            least = min_variance if queries[positions[0]][2] else 0.0
            result[positions] = kendall_scores(batch, noise, np.full(len(positions), least))
        else:
            least = min_variance if queries[positions[0]][2] else 0.0
            result[positions] = _goodness(batch, noise, statistic, least)
    return result


def by_kind(tables, queries: Sequence[CIQuery], ordered: Sequence[bool], min_variance: float) -> np.ndarray:
    """`scores` by Kendall's statistic where both columns are binary or ordered, and by chi-squared elsewhere.

    ordered: of each column, whether it is one of these.
    """
    result = np.zeros(len(queries))
    of_two = np.array([ordered[i] and ordered[j] for i, j, _ in queries], bool)
    chosen: tuple[tuple[Statistic, np.ndarray], ...] = (("kendall", of_two), ("chi2", ~of_two))
    for statistic, which in chosen:
        places = np.flatnonzero(which)
        result[places] = scores(tables, [queries[place] for place in places.tolist()], statistic, min_variance)
    return result


def kendall_scores(batch: np.ndarray, noise: np.ndarray, min_variance: np.ndarray) -> np.ndarray:
    """|U|/sqrt(V + noise variance) of tables (B, strata, L_a, L_b); noise: variance per cell (B,).

    min_variance (B,): below it the score is infinite.
    """
    batch = _large_strata(batch, noise)
    strata = concordance.strata_of_table(batch, kendall_only=True)
    binary = batch.shape[-2:] == (2, 2)
    offset = 0.0 if binary else concordance.KENDALL_OFFSET
    variance = concordance.cmh_variance(strata) if binary else concordance.kendall_variance(strata)
    spread = np.maximum(variance, 0.0)
    if np.any(noise > 0):
        spread = spread + noise * _gradient_norms(batch, strata, offset)
    u = concordance.kendall_u(strata, offset)
    score = np.where(spread > 0, np.abs(u) / np.sqrt(np.where(spread > 0, spread, 1.0)), 0.0)
    # noise can push V below zero, which says nothing where no variance is asked for
    return np.where((min_variance > 0) & (variance < min_variance), np.inf, score)


def _large_strata(batch: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """The tables with strata of pure noise set to zero; exact tables are left as they are."""
    if not np.any(noise > 0):
        return batch
    size = batch.sum((-2, -1))
    least = MIN_STRATUM * np.sqrt(noise[:, None] * batch.shape[-1] * batch.shape[-2])
    return np.where((size >= np.maximum(least, 1.0))[..., None, None], batch, 0.0)


def _gradient_norms(batch: np.ndarray, strata: concordance.Strata, offset: float) -> np.ndarray:
    """Sum over cells of (dU/dcount)^2, by which independent cell noise enters U (delta method)."""
    divisor = np.maximum(strata.size, 1.0)[..., None, None] + offset
    gradient = concordance.concordance_of_cells(batch) / divisor - strata.s[..., None, None] / divisor**2
    return np.sum(np.where(strata.size[..., None, None] > 0, gradient**2, 0.0), axis=(-3, -2, -1))


def _goodness(batch: np.ndarray, noise: np.ndarray, statistic: Statistic, min_variance: float) -> np.ndarray:
    """Chi-squared or G statistic summed over strata, turned into the |z| of the same p-value.

    min_variance: the score is infinite where the records, times what the strata leave of the variation of both columns,
    are fewer; there are none where every stratum fixes one of the columns.

    Degrees of freedom count the levels seen in each stratum. Noisy tables: cells below zero count as 0
    and the noise adds (L_a - 1)(L_b - 1) noise/(mean expected cell) to the mean of a stratum, which is taken off.
    """
    from scipy.special import chdtrc, ndtri

    if statistic == "chi2" and np.any(noise > 0):
        return _noisy_chi_squared(_large_strata(batch, noise).astype(float), noise, min_variance)
    counts = np.maximum(_large_strata(batch, noise).astype(float), 0.0)
    found = stratified.chi_squared(counts) if statistic == "chi2" else stratified.g_test(counts)
    p_value = found.p_value
    if np.any(noise > 0):
        inflation = 1.0 + noise / np.maximum(_mean_expected(stratified.expected_counts(counts)), 1.0)
        p_value = chdtrc(np.maximum(found.degrees, 1), found.statistic / inflation)
    score = np.where(found.degrees > 0, -ndtri(0.5 * np.clip(p_value, 1e-300, 1.0)), 0.0)
    return np.where((min_variance > 0) & (_left(counts) < min_variance), np.inf, score)


def _noisy_chi_squared(batch: np.ndarray, noise: np.ndarray, min_variance: float) -> np.ndarray:
    """|z| of the residuals of noisy tables (B, strata, L_a, L_b), each divided by the variance of sampling and noise.

    In axes in which the noise of the residuals has variance 1 and sampling variances lie apart, so that rare levels,
    which noise hides, count as noise. Strata of no size are left out.
    """
    from scipy.special import chdtrc, ndtri

    size = batch.sum((-2, -1))
    rows, columns = (np.maximum(batch.sum(axis), 0.0) for axis in (-1, -2))
    p, q = (part / np.maximum(part.sum(-1, keepdims=True), 1e-9) for part in (rows, columns))
    (spread, left), (other, right) = residual_axes(p), residual_axes(q)
    off = (batch - size[..., None, None] * p[..., :, None] * q[..., None, :])[..., :-1, :-1]
    off = np.swapaxes(left, -1, -2) @ off @ right
    kept = (size > 0.0) & (rows.sum(-1) > 0.0) & (columns.sum(-1) > 0.0)
    variance = noise[:, None, None, None] + size[..., None, None] * spread[..., :, None] * other[..., None, :]
    squares = np.where(kept[..., None, None], off**2 / np.maximum(variance, 1e-9), 0.0).sum((-3, -2, -1))
    degrees = kept.sum(-1) * off.shape[-1] * off.shape[-2]
    p_value = chdtrc(np.maximum(degrees, 1), squares)
    score = np.where(degrees > 0, -ndtri(0.5 * np.clip(p_value, 1e-300, 1.0)), 0.0)
    return np.where((min_variance > 0) & (_left(np.maximum(batch, 0.0)) < min_variance), np.inf, score)


def residual_axes(p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sampling variances per record, and axes, of the residuals of all levels but the last; p: shares (..., L)."""
    levels = p.shape[-1]
    centred = (np.eye(levels) - p[..., :, None])[..., :-1, :]
    sampling = (np.eye(levels) * p[..., None, :] - p[..., :, None] * p[..., None, :])[..., :-1, :-1]
    back = np.linalg.inv(np.linalg.cholesky(centred @ np.swapaxes(centred, -1, -2)))
    spread, axes = np.linalg.eigh(back @ sampling @ np.swapaxes(back, -1, -2))
    return np.maximum(spread, 0.0), np.swapaxes(back, -1, -2) @ axes


def _left(counts: np.ndarray) -> np.ndarray:
    """Records times what is left of the variation of both columns within the strata, (B,)."""
    size = counts.sum((-2, -1))
    among = [np.sum(counts.sum(axis) ** 2, axis=-1) / np.maximum(size, 1.0) ** 2 for axis in (-1, -2)]
    return np.sum(size * (1.0 - among[0]) * (1.0 - among[1]), axis=-1)


def _mean_expected(expected: np.ndarray) -> np.ndarray:
    """Harmonic mean of the positive expected cells of each table: noise counts most where few are expected."""
    inverse = np.where(expected > 0, 1.0 / np.where(expected > 0, expected, 1.0), 0.0)
    count = np.maximum((expected > 0).sum((-3, -2, -1)), 1)
    return 1.0 / np.maximum(inverse.sum((-3, -2, -1)) / count, 1e-300)
