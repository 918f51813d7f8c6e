"""Power by formula for tests on a noisy moment matrix (docs/theory/partial_correlation.md) and of group scores."""

import math

import numpy as np
from scipy.special import ndtr

from jaxdp.data.dataset import CATEGORICAL
from jaxdp.independence.continuous import mean_difference, moment_test
from jaxdp.plan import continuous, laws
from jaxdp.plan.setting import Setting
from jaxdp.statistics import group_scores, moments


def partial_correlation_power(
    setting: Setting, n: int, epsilon: continuous.Budget, effect: float, level: float
) -> float:
    """A correlation r of clipped columns: r ~ N(r, 1/(n a_x a_y)) + noise of one product over n times both slopes.

    Private centres and scales cost a quarter where a column is continuous. What is linear in Z counts as removed, and
    the noise of the columns of Z is left out.
    """
    columns = (setting.x, setting.y, *setting.z)
    width = sum(column.levels - 1 if column.kind == CATEGORICAL and column.levels > 2 else 1 for column in columns)
    private = any(not column.levels for column in columns)
    left = 1.0 - (moment_test.CENTRE_SHARE + moment_test.SCALE_SHARE) * private
    normal = isinstance(epsilon, laws.Concentrated)
    bound = moments.frobenius_bound(width) / math.sqrt(2.0) if normal else moments.l1_bound(width)
    noise = laws.Noise.of(epsilon, left, bound)
    clip = float(moments.best_clip(n, math.sqrt(noise.variance)))
    inside = float(2.0 * ndtr(clip) - 1.0)
    variance = (inside - 2.0 * clip * math.exp(-0.5 * clip**2) / math.sqrt(2.0 * math.pi)) / clip**2 + 1.0 - inside
    seen = continuous.observed_moments(setting, effect, (continuous.WIDE, continuous.WIDE), 0.0)
    spreads = [float(np.mean(seen[name])) for name in ("var_x", "var_y")]
    r = float(np.mean(seen["covariance"])) / math.sqrt(spreads[0] * spreads[1])
    levels = (setting.x.levels, setting.y.levels)
    # slope of a column of the matrix on the column in sds, and its variance; levels lie on [-1, 1], limits apart
    wide = continuous.WIDE**2
    slopes = [math.sqrt(wide * v) if count else inside / clip for count, v in zip(levels, spreads, strict=True)]
    variances = [wide * v if count else variance for count, v in zip(levels, spreads, strict=True)]
    product = slopes[0] * slopes[1]
    sd = math.sqrt(variances[0] * variances[1] / n) / product
    return laws.noisy_sum_power(r, sd, sd, laws.Noise(noise.scale / (n * product), normal), level)


def mean_difference_power(setting: Setting, n: int, epsilon: continuous.Budget, effect: float, level: float) -> float:
    """Two groups of equal size, a response in the middle of its bounds: docs/theory/mean_difference.md#pivot."""
    wide = continuous.WIDE**2
    seen = continuous.observed_moments(setting, effect, (continuous.WIDE, continuous.WIDE), 0.0)
    group, response = ("y", "x") if setting.y.levels == 2 else ("x", "y")
    unit = 1.0 if getattr(setting, response).levels else setting.residual_sd
    of_group, of_response = (wide * float(np.mean(seen[f"var_{name}"])) for name in (group, response))
    slope = wide * float(np.mean(seen["covariance"])) / of_group
    within = max(of_response - slope**2 * of_group, 1e-12)
    mean, sd, null_sd = (
        unit * value for value in (2.0 * slope, 2.0 * (within / n) ** 0.5, 2.0 * (of_response / n) ** 0.5)
    )
    normal = isinstance(epsilon, laws.Concentrated)
    shares = {name: float((1 - mean_difference.SIZES_SHARE) * part) for name, part in mean_difference.SHARES.items()}
    in_size = laws.Noise.of(epsilon, float(mean_difference.SIZES_SHARE), mean_difference.size_bound(normal))
    if 0.5 * n < group_scores.CLEAR * math.sqrt(in_size.variance):
        return 0.0
    # the noise in size and mean stretches the range of the scores: mean sizes of it, in half ranges
    size, centre = (
        in_size.scale * (0.8 if normal else 1.0) / n * unit for unit in (2.0, 1.0 / mean_difference.SUM_WEIGHT)
    )
    noise = laws.Noise.of(epsilon, shares["scores"], 4.0 * (1.0 + size + centre - size * centre / (size + centre)) / n)
    largest = (2.0 * (1.0 + size + centre)) ** 2
    of_squares = laws.Noise.of(epsilon, shares["squares"], largest / n**2)
    variances = np.maximum(null_sd**2 + of_squares.quantiles(), 1e-3 * null_sd**2)
    of_variance = of_squares.variance + largest / n**2 * null_sd**2
    return laws.noisy_sum_power(mean, sd, np.sqrt(variances), noise, level, of_variance, scores=True)
