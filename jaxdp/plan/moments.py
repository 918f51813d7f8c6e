"""Power by formula for tests on a noisy moment matrix (docs/theory/partial_correlation.md)."""

import math

import numpy as np
from scipy.special import ndtr

from jaxdp.data.dataset import CATEGORICAL
from jaxdp.independence.continuous import moment_test
from jaxdp.plan import continuous, laws
from jaxdp.plan.setting import Setting
from jaxdp.statistics import moments


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
