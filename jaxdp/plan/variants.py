"""Power by formula for the score test of one variant (docs/theory/score_test.md)."""

import math

import numpy as np

from jaxdp.independence.variants import score_test
from jaxdp.plan import continuous, laws
from jaxdp.plan.setting import Setting
from jaxdp.statistics import moments

WINSORIZE = 2.0  # the test's default
UNIFORM_VARIANCE = 1.0 / 3.0  # of a covariate on [-1, 1]


def score_power(setting: Setting, n: int, epsilon: continuous.Budget, effect: float, level: float) -> float:
    """ScoreTest of one column of levels: S ~ N(n E[h r], n var(h r)) + noise for the bound 2, judged with V + noise.

    What is linear in Z counts as removed, and Z as uniform; the errors of both lines add variance to S.
    """
    names = (score_test.MODEL, score_test.MEAN, score_test.LINES, *score_test.SCORES)
    total = sum(score_test.SHARES[name] for name in names)
    share = {name: score_test.SHARES[name] / total for name in names}
    noise = laws.Noise.of(epsilon, share["scores"], 2.0)
    noise_of_variance = laws.Noise.of(epsilon, share["squares"], 1.0)
    # of a phenotype of two levels residuals reach 1 and the fitted mean beyond it
    limit = WINSORIZE if not setting.y.levels else 1.0
    seen = continuous.observed_moments(setting, effect, (1.0, limit), 0.0)
    mean, product, null = (
        n * float(np.mean(values))
        for values in (seen["covariance"], seen["product_variance"], seen["var_x"] * seen["var_y"])
    )
    errors = _of_lines(setting, n, epsilon, share, limit)
    product, null = product + errors["product"] + errors["fit"] * null, null + errors["product"] + errors["fit"] * null
    floor = min(1e-3 * n, math.sqrt(noise_of_variance.variance))
    null_sds = np.sqrt(np.maximum(null + noise_of_variance.quantiles(), floor))
    return laws.noisy_sum_power(mean, math.sqrt(product), null_sds, noise, level, noise_of_variance.variance)


def _of_lines(setting: Setting, n: int, epsilon, share, limit: float) -> dict[str, float]:
    """Variance that the product of both lines' errors adds to S, and what errors of the fit add to a residual's own."""
    d = len(setting.z)
    unit = (1.0 if setting.y.levels else setting.residual_sd) * limit  # B on the scale of [-1, 1]
    model = laws.Noise.of(epsilon, share[score_test.MODEL], _moments_bound(d + 1, epsilon)).variance
    lines = laws.Noise.of(epsilon, share[score_test.LINES], _sums_bound(d + 1, epsilon)).variance
    gram = n * UNIFORM_VARIANCE
    return {"product": d * model * lines / (gram * unit) ** 2, "fit": d * model / (n * gram * unit**2)}


def _moments_bound(columns: int, epsilon) -> float:
    normal = isinstance(epsilon, laws.Concentrated)
    return moments.frobenius_bound(columns) if normal else moments.l1_bound(columns)


def _sums_bound(count: int, epsilon) -> float:
    return 2.0 * (math.sqrt(count) if isinstance(epsilon, laws.Concentrated) else count)
