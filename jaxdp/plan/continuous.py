"""Power by formula for tests of residual products: the GCM family, permutations, randomisation, votes of GCM.

Theory: the pages of docs/theory named after the tests. Cells of Z are resolved as
far as `Setting.profile` has places in them; kernel fits of the reference count as exact. Constants are the tests' own.
"""

import math
from typing import Any

import numpy as np

from jaxdp.independence.builders import CONTINUOUS_RESIDUAL_SCALE, DISCRETE_RESIDUAL_SCALE
from jaxdp.independence.continuous import local_permutation, partition_gcm, partition_stages, private_crt
from jaxdp.independence.continuous.private_gcm import natural_scale
from jaxdp.independence.meta.subsample_aggregate import blocks_for
from jaxdp.independence.meta.test_of_tests import TestOfTests
from jaxdp.plan import laws
from jaxdp.plan.setting import Setting
from jaxdp.statistics import partition
from jaxdp.statistics.kernel_ridge import ridge_bounds

Budget = float | laws.Concentrated
WIDE = 12.0  # sds; a limit beyond it clips nothing
PUBLISHED_RIDGE = 10.0
CENTRE_CASES = 24  # of the noise of cell means
SUM_SHARE = 0.4  # of the stage's budget, for the sums of x and for those of y


def partition_gcm_power(setting: Setting, n: int, epsilon: Budget, effect: float, level: float) -> float:
    """PartitionGCM: S ~ N(mean, sd^2) + noise for the bound 8 (4 without Z), judged with V + noise for the bound 6.

    In a scaled setting as the command line runs it: noisy cell means are taken off first (Laplace noise only).
    """
    left = 1.0 - partition_gcm.STANDARDIZATION_SHARE if setting.scaled else 1.0
    share = partition_gcm.SHARES
    bound = partition_gcm.COVARIANCE_L1 if setting.z else partition_gcm.COVARIANCE_ONE_CELL
    noise = laws.Noise.of(epsilon, left * share["covariance"], bound)
    noise_of_variance = laws.Noise.of(epsilon, left * share["variance"], partition_gcm.VARIANCE_ONE_REGION)
    floor = min(1e-3 * n, math.sqrt(noise_of_variance.variance))
    tau = laws.winsorising_level(n, noise.variance)
    sums = [_cell_sums(setting, n, effect, _limits(setting, tau), shift) for shift in _centres(setting, n, epsilon)]
    mean, variance, null_variance = np.array(sums).T
    null = np.maximum(null_variance[:, None] + noise_of_variance.quantiles()[None, :], floor)
    return laws.noisy_sum_power(mean, np.sqrt(variance), np.sqrt(null), noise, level, noise_of_variance.variance)


def local_permutation_power(setting: Setting, n: int, epsilon: float, effect: float, level: float) -> float:
    """LocalPermutation, two-sided: T_0 + noise beyond a quantile of the noisy copies, each side at half of all."""
    scale = 2.0 * (local_permutation.REFERENCE_BOUND + local_permutation.PERMUTED_BOUND) / epsilon
    tau = laws.winsorising_level(n, 2.0 * scale**2) if not setting.scaled else 1.0
    limits = (tau, tau) if not setting.scaled else (1.0 / setting.residual_sd,) * 2
    mean, variance, null_variance = _cell_sums(setting, n, effect, limits, 0.0)
    return laws.noisy_sum_power(mean, math.sqrt(variance), math.sqrt(null_variance), laws.Noise(scale), level)


def gcm_power(setting: Setting, n: int, epsilon: float, effect: float, level: float) -> float:
    """The non-private GCM with an exact fit: T ~ N(sqrt(n) mean(R)/sd(R), 1). epsilon is not used."""
    mean, sd = _gcm_ratio(setting, effect)
    return laws.two_sided_power(math.sqrt(n) * mean / sd, level)


def _private_gcm_power(constant):
    """PrivateGCM as published, ridge 10: per-record noise; the fit, which explains next to nothing, counts as 0."""

    def power(setting: Setting, n: int, epsilon: Budget, effect: float, level: float) -> float:
        limit = 1.0 / setting.residual_sd if setting.scaled else natural_scale(n)
        bend_x, bend_y, _ = setting.profile()
        moments = laws.winsorised_moments(bend_x, bend_y, effect, limit, limit)
        mean = np.mean(moments["plain_mean"])
        between = np.var(moments["plain_mean"])
        noise = laws.Noise.of(epsilon, 1.0, float(constant(PUBLISHED_RIDGE)))
        variance = np.mean(moments["plain_variance"]) + between + noise.variance
        return laws.two_sided_power(math.sqrt(n) * mean / math.sqrt(variance), level)

    return power


private_gcm_tight_power = _private_gcm_power(ridge_bounds.delta_vector)
private_gcm_paper_power = _private_gcm_power(ridge_bounds.paper_delta)


def crt_normal_power(setting: Setting, n: int, epsilon: Budget, effect: float, level: float) -> float:
    """CRTNormal for a known normal law of X given Z."""
    noise = laws.Noise.of(epsilon, private_crt.SHARES["statistic"], private_crt.PLAIN_BOUND)
    tau = laws.winsorising_level(n, noise.variance)
    moments = _crt_moments(setting, effect, tau)
    null_variance = n * np.mean(moments["var_x"] * moments["square_y"])
    noise_of_variance = laws.Noise.of(epsilon, private_crt.SHARES["variance"], float(np.mean(moments["var_x"])))
    floor = min(1e-3 * n, math.sqrt(noise_of_variance.variance))
    return laws.noisy_sum_power(
        mean=n * np.mean(moments["plain_mean"]),
        sd=math.sqrt(n * np.mean(moments["plain_variance"])),
        null_sds=np.sqrt(np.maximum(null_variance + noise_of_variance.quantiles(), floor)),
        noise=noise,
        level=level,
    )


def crt_threshold_power(setting: Setting, n: int, epsilon: float, effect: float, level: float) -> float:
    """PrivateCRT: |T_0| + Laplace(4/eps) against the noisy |T_j|, two-sided."""
    scale = 2.0 * private_crt.PLAIN_BOUND / epsilon
    tau = laws.winsorising_level(n, 2.0 * scale**2)
    moments = _crt_moments(setting, effect, tau)
    null_sd = math.sqrt(n * np.mean(moments["var_x"] * moments["square_y"]))
    mean, sd = n * np.mean(moments["plain_mean"]), math.sqrt(n * np.mean(moments["plain_variance"]))
    return laws.folded_power(mean, sd, null_sd, scale, level)


def test_of_tests_power(setting: Setting, n: int, epsilon: float, effect: float, level: float) -> float:
    """TestOfTests of the GCM with its default blocks: the exact law of the noisy vote."""
    default = TestOfTests(epsilon=epsilon, test=lambda block: 0.0)
    blocks = default.num_blocks
    chance = gcm_power(setting, n // blocks, math.inf, effect, default.block_level)
    return laws.vote_power(blocks, default.block_level, chance, epsilon, level)


def subsample_power(setting: Setting, n: int, epsilon: float, effect: float, level: float) -> float:
    """SubsampleAggregate of the squared correlation without Z: replicates of the limit laws of its blocks.

    A block of m records has the deviate sqrt((m - 2) ln(1 + t^2/(m - 2))), so its mean is sqrt(-(m - 2) ln(1 - rho^2)).
    """
    squared = effect**2 / (1.0 + effect**2)
    if setting.x.levels or setting.y.levels:
        moments = observed_moments(setting, effect, (WIDE, WIDE), 0.0)
        squared = float(np.mean(moments["covariance"]) ** 2 / np.mean(moments["var_x"] * moments["var_y"]))
    blocks = blocks_for(n)
    return laws.median_power(blocks, math.sqrt(-(n // blocks - 2) * math.log1p(-squared)), epsilon, level)


def _gcm_ratio(setting: Setting, effect: float) -> tuple[float, float]:
    """Mean and sd of the residual products, each residual with sd 1 up to `effect`."""
    if setting.scaled and (setting.x.levels or setting.y.levels):
        moments = observed_moments(setting, effect, (WIDE, WIDE), 0.0)
        spread = np.mean(moments["product_variance"]) + np.var(moments["covariance"])
        return float(np.mean(moments["covariance"])), math.sqrt(spread)
    return effect, math.sqrt(1.0 + 2.0 * effect**2)


def _cell_sums(setting: Setting, n: int, effect: float, limits, shift) -> tuple[float, float, float]:
    """Mean and variance of the sum of within-cell products, and its null variance."""
    _, _, ratio = setting.profile()
    expected = n * ratio / setting.num_cells(n) if setting.z else np.full(ratio.shape, float(n))
    moments = laws.within_cells(observed_moments(setting, effect, limits, shift), setting.cell_of_places(n))

    def total(values):
        return float(np.mean(n * laws.occupied(expected) * values))

    null = total(moments["var_x"] * moments["var_y"])
    return total(moments["covariance"]), total(moments["product_variance"]), null


def _limits(setting: Setting, tau: float) -> tuple[float, float]:
    """Clipping limits of PartitionGCM in sds of N_X, from its default guesses of the residual scale."""
    if not setting.scaled:
        return tau, tau
    guess = [DISCRETE_RESIDUAL_SCALE if c.levels else CONTINUOUS_RESIDUAL_SCALE for c in (setting.x, setting.y)]
    unit = [1.0 if c.levels else setting.residual_sd for c in (setting.x, setting.y)]
    return tau * guess[0] / unit[0], tau * guess[1] / unit[1]


def observed_moments(setting: Setting, effect: float, limits, shift):
    """`laws.winsorised_moments` of the columns as they are seen: through levels where they have some."""
    bend_x, bend_y, _ = setting.profile()
    if not setting.scaled:
        return laws.winsorised_moments(bend_x, bend_y, effect, limits[0], limits[1])
    steps = [
        laws.Steps.equal(column.levels, sd) if column.levels else None
        for column, sd in zip((setting.x, setting.y), setting.hidden_sds(effect), strict=True)
    ]
    return laws.winsorised_moments(bend_x, bend_y, effect, limits[0], limits[1], shift, (steps[0], steps[1]))


def _crt_moments(setting: Setting, effect: float, tau: float):
    """x about its known mean, y as it is."""
    _, bend_y, _ = setting.profile()
    return laws.winsorised_moments(0.0 * bend_y, bend_y, effect, tau, tau)


def _centres(setting: Setting, n: int, epsilon: Any):
    """What the noisy cell means take off X and Y, in their units: equally likely cases, each (2, nodes)."""
    if not setting.scaled:
        return [0.0]
    number, cells = _centring_groups(setting, n)
    bends = [np.asarray(bend) for bend in setting.profile()[:2]]
    units = [1.0 if c.levels else setting.residual_sd for c in (setting.x, setting.y)]
    # columns with levels sit on both sides of 0; their means move about as far as those of the hidden variable
    means = [
        np.array([unit * bend[number == c].mean() for c in range(number.max() + 1)])
        for unit, bend in zip(units, bends, strict=True)
    ]
    share = partition_gcm.STANDARDIZATION_SHARE * SUM_SHARE
    scale = partition_stages.SUM_L1 / (share * epsilon) / (n / cells)
    kept = 1.0 / (1.0 + 2.0 * scale**2 / partition_stages.TYPICAL_SPREAD)
    noise = laws.stratified_noise(CENTRE_CASES, (2, number.max() + 1)) * scale
    found = kept * np.clip(np.stack(means)[None] + noise, -1.0, 1.0)
    return found[:, :, number] / np.array(units)[None, :, None]


def _centring_groups(setting: Setting, n: int) -> tuple[np.ndarray, int]:
    """Group of the test's cells that each place of the first column of Z lies in, from 0, and groups of all columns."""
    cell = setting.cell_of_places(n)
    if not setting.z:
        return cell, 1
    bins = partition.bins_per_column(setting.z, partition.target_cells(n))
    groups = partition.groups_per_column(setting.z, bins, partition_stages.num_centres(n))
    number = np.asarray(partition.group_of(cell, bins[0], groups[0]))
    return np.unique(number, return_inverse=True)[1], math.prod(groups)
