"""Power by formula for tests of tables and of ranks.

Theory: the pages of docs/theory named after the tests. Case/control tests have equal groups and rates
1/2 +- asin(correlation)/pi; their counts count as normal. Constants are the tests' own.
"""

import functools
import math

import numpy as np

from jaxdp.core import Norm
from jaxdp.independence.ranks import conditional_kendall, conditional_spearman, rank_test
from jaxdp.independence.tables import margin_adaptive
from jaxdp.independence.tables.noisy_table import MOVE
from jaxdp.plan import laws
from jaxdp.plan.setting import Setting, correlation, rates
from jaxdp.statistics import concordance
from jaxdp.statistics.tables import unit_circle
from jaxdp.statistics.tables.unit_circle import Groups

SURROGATE_LEVELS = 32  # a continuous column beside one with levels


def kendall_power(setting: Setting, n: int, epsilon: float, effect: float, level: float) -> float:
    """ConditionalKendall: U ~ N(mean, V) + noise, V released and guarded."""
    binary = setting.x.levels == setting.y.levels == 2
    row = sum(0 < c.levels <= 2 for c in (setting.x, setting.y))
    agreement, _, untied = _rank_profile(setting, effect)
    offset = 0.0 if binary else concordance.KENDALL_OFFSET

    def pairs(count):
        return 0.5 * count * (count - 1.0) / np.maximum(count + offset, 1.0)

    if binary:  # 1 - p^3 - q^3 = 3 p q

        def variance(count):
            return np.maximum(count - 1.0, 0.0) / 9.0
    else:

        def variance(count):
            return count * (count - 1.0) / (9.0 * (count + offset)) * _free(setting, count)

    bounds = conditional_kendall.KENDALL_BOUNDS[row], conditional_kendall.VARIANCE_BOUNDS[row]
    cap = conditional_kendall.ConditionalKendall.maximal_variance
    expected = _stratum_sizes(setting, n)
    mean = n * np.mean(agreement * laws.mean_of_counts(pairs, expected))
    total = n * np.mean(untied * laws.mean_of_counts(variance, expected))
    return _rank_power(setting, n, epsilon, level, mean, total, bounds, cap)


def spearman_power(setting: Setting, n: int, epsilon: float, effect: float, level: float) -> float:
    """ConditionalSpearman: U ~ N(mean, V) + noise, V released and guarded."""
    agreement, large, untied = _rank_profile(setting, effect)
    expected = _stratum_sizes(setting, n)
    # E rho of n records mixes the large-sample value with Kendall's (Moran 1948)
    one = laws.mean_of_counts(lambda count: np.maximum(count - 1.0, 0.0), expected)
    mixed = laws.mean_of_counts(lambda count: np.maximum(count - 1.0, 0.0) * 3.0 / (count + 1.0), expected)
    mean = n * np.mean(large * one + (agreement - large) * mixed)
    bounds = conditional_spearman.SPEARMAN_BOUNDS[0], conditional_spearman.VARIANCE_BOUNDS[0]
    return _rank_power(setting, n, epsilon, level, mean, n * np.mean(untied * one), bounds, 1.0)


def _rank_power(setting: Setting, n, epsilon, level, mean, variance, bounds, cap) -> float:
    bound_u, bound_v = (row[1] if setting.z else row[2] for row in bounds)
    share = rank_test.STATISTIC_SHARE
    noise = laws.Noise.of(epsilon, 1.0 - share, bound_v)
    guard = rank_test.VARIANCE_GUARD * math.sqrt(0.5 * noise.variance)
    released = np.maximum(variance + noise.quantiles(), 0.0) + guard
    shrink = 1.0 - min(abs(mean) / n, 1.0) ** 2
    null_sds = np.sqrt(np.minimum(released, cap * n))
    sd = math.sqrt(variance * shrink)
    return laws.noisy_sum_power(mean, sd, null_sds, laws.Noise.of(epsilon, share, bound_u), level)


def _stratum_sizes(setting: Setting, n: int) -> np.ndarray:
    _, _, ratio = setting.profile()
    return n * ratio / setting.num_cells(n) if setting.z else np.full(ratio.shape, float(n))


def _free(setting: Setting, count):
    """1 - sum of cubed shares where no two values of a continuous column tie."""
    free = np.maximum(1.0 - 1.0 / np.maximum(count, 1.0) ** 2, 0.0)
    return free ** sum(not c.levels for c in (setting.x, setting.y))


@functools.lru_cache(maxsize=256)
def _rank_profile(setting: Setting, effect: float):
    """By place in Z: E sgn(x - x') sgn(y - y') of two records, 3 E sgn(x - x') sgn(y - y'') of three, untied shares."""
    value = float(correlation(effect))
    bend_x, bend_y, ratio = setting.profile()
    if not (setting.x.levels or setting.y.levels):
        found = 2.0 / math.pi * math.asin(value), 6.0 / math.pi * math.asin(value / 2.0), 1.0
        return tuple(np.full(ratio.shape, part) for part in found)
    edges = [
        laws.Steps.equal(column.levels or SURROGATE_LEVELS, sd).edges
        for column, sd in zip((setting.x, setting.y), setting.hidden_sds(effect), strict=True)
    ]
    tables = laws.shifted_tables(bend_x, bend_y, effect, edges[0], edges[1])
    cubes = [1.0 - np.sum(tables.sum(axis) ** 3, axis=1) for axis in (2, 1)]
    shares = [part for part, column in zip(cubes, (setting.x, setting.y), strict=True) if column.levels]
    agreements, grades = (np.array([of(table) for table in tables]) for of in (_agreement, _of_grades))
    return agreements, grades, np.prod(shares, axis=0)


def _agreement(table: np.ndarray) -> float:
    below = np.zeros((table.shape[0] + 1, table.shape[1] + 1))
    below[1:, 1:] = table.cumsum(0).cumsum(1)
    margin = np.concatenate([[0.0], table.sum(1).cumsum()])[:-1, None]
    return float(2.0 * np.sum(table * (below[:-1, :-1] - (margin - below[:-1, 1:]))))


def _of_grades(table: np.ndarray) -> float:
    grades = (part.cumsum() + part.cumsum() - part - 1.0 for part in (table.sum(1), table.sum(0)))
    return float(3.0 * np.einsum("ij,i,j", table, *grades))


def noisy_table_power(setting: Setting, n: int, epsilon: float, effect: float, level: float) -> float:
    """NoisyTableChi2: the limit law of sum (H~ - E)^2/E at equally likely levels."""
    size = setting.x.levels * setting.y.levels
    # E follows the margins, but its total is n whatever the noise of the total
    off = _without_margins(setting) + 1.0 / size
    return _table_power(setting, n, epsilon, effect, level, off, size / n * np.eye(size))


def projected_power(setting: Setting, n: int, epsilon: float, effect: float, level: float) -> float:
    """ProjectedChi2: the limit law of its quadratic form at equally likely levels."""
    size = setting.x.levels * setting.y.levels
    noise = 2.0 * (MOVE[Norm.L1] / epsilon) ** 2
    even = np.full(size, 1.0 / size)
    covariance = np.diag(even) - np.outer(even, even) + noise / n * np.eye(size)
    centred = np.eye(size) - 1.0 / size
    metric = centred @ np.linalg.inv(covariance) @ centred / n
    return _table_power(setting, n, epsilon, effect, level, _without_margins(setting), metric)


def _without_margins(setting: Setting) -> np.ndarray:
    """The matrix that takes row and column effects off a table, at equally likely levels."""
    return np.kron(*(np.eye(size) - 1.0 / size for size in (setting.x.levels, setting.y.levels)))


def _table_power(setting: Setting, n, epsilon, effect, level, off, metric) -> float:
    table = laws.normal_table(setting.x.levels, setting.y.levels, float(correlation(effect)))
    signal = n * (table - 1.0 / table.size).ravel()
    return laws.quadratic_power(signal, off, metric, n, table.ravel(), MOVE[Norm.L1] / epsilon, level)


def chi_squared_power(setting: Setting, n: int, epsilon: float, effect: float, level: float) -> float:
    """The non-private chi-squared test of a table. epsilon is not used."""
    from scipy.stats import chi2, ncx2

    table = laws.normal_table(setting.x.levels, setting.y.levels, float(correlation(effect)))
    degrees = (table.shape[0] - 1) * (table.shape[1] - 1)
    moved = n * table.size * np.sum((table - 1.0 / table.size) ** 2)
    return float(ncx2.sf(chi2.isf(level, degrees), degrees, max(moved, 1e-12)))


def margin_adaptive_power(setting: Setting, n: int, epsilon: float, effect: float, level: float) -> float:
    """MarginAdaptive: |Y| + Laplace(D (1 + L)/eps) against its null quantile at the margin 1/2."""
    first, second = rates(effect)
    lipschitz = margin_adaptive.MarginAdaptive(epsilon=1.0).lipschitz
    sd = math.sqrt(n / 8.0 * (first * (1.0 - first) + second * (1.0 - second)))
    return laws.folded_power(
        n / 4.0 * (first - second), sd, math.sqrt(n) / 4.0, 0.5 * (1.0 + lipschitz) / epsilon, level
    )


def unit_circle_power(setting: Setting, n: int, epsilon: float, effect: float, level: float) -> float:
    """UnitCircle: u + Laplace(Delta/eps) against its largest null quantile over rates."""
    from scipy.stats import chi2

    groups, threshold = Groups(n // 2, n - n // 2), float(chi2.isf(level, 1))
    scale = unit_circle.norm_sensitivity(groups, threshold) / epsilon
    null = [_norms(n, p, p, threshold) for p in np.linspace(0.0, 0.5, 26)]
    other = _norms(n, *rates(effect), threshold)
    return laws.largest_quantile_power(null, other, scale, level)


def _norms(n: int, first: float, second: float, threshold: float):
    """Values of u and their weights: the margin on 9 nodes, the difference on 201."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(9)
    deviate = np.linspace(-6.0, 6.0, 201)
    mass = np.exp(-0.5 * deviate**2)
    spread = [p * (1.0 - p) for p in (first, second)]
    margin = (first + second) / 2.0 + nodes * math.sqrt(sum(spread) / 8.0 / (n / 4.0)) / math.sqrt(2.0)
    excess = n / 4.0 * (first - second) + deviate * math.sqrt(n / 8.0 * sum(spread))
    vertical = 2.0 * math.sqrt(4.0 / (threshold * n)) * excess
    values = np.hypot(1.0 - 2.0 * margin[:, None], vertical[None, :])
    return values.ravel(), (weights[:, None] * mass[None, :]).ravel() / (weights.sum() * mass.sum())


def chi2_laplace_power(setting: Setting, n: int, epsilon: float, effect: float, level: float) -> float:
    """ChiSquaredLaplace: noncentral chi-squared plus Laplace noise against the limit null law."""
    first, second = rates(effect)
    groups = Groups(n // 2, n - n // 2)
    scale = unit_circle.chi_squared_sensitivity(groups) / epsilon
    deviate, mass = laws.normal_points()
    average = (first + second) / 2.0
    shift = math.sqrt(n / 4.0) * (first - second) / math.sqrt(average * (1.0 - average))
    sd = math.sqrt((first * (1 - first) + second * (1 - second)) / (2.0 * average * (1.0 - average)))
    return laws.largest_quantile_power([(deviate**2, mass)], ((shift + sd * deviate) ** 2, mass), scale, level)


def noisy_proportions_power(setting: Setting, n: int, epsilon: float, effect: float, level: float) -> float:
    """NoisyProportions: normal difference plus the two Laplace noises, against its null law at the rate 1/2."""
    first, second = rates(effect)
    scale = 2.0 / (epsilon * n)
    sd = math.sqrt(2.0 / n * (first * (1.0 - first) + second * (1.0 - second)))
    return laws.two_noises_power(first - second, sd, math.sqrt(1.0 / n), scale, level)
