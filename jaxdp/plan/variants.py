"""Power by formula for the score test of one variant (docs/theory/score_test.md)."""

import math

import numpy as np

from jaxdp.core import Norm
from jaxdp.data.dataset import Data, Domain
from jaxdp.independence.variants import score_order, score_test
from jaxdp.mechanisms import Gaussian
from jaxdp.plan import continuous, laws
from jaxdp.plan.setting import Setting
from jaxdp.statistics import score_sums

WINSORIZE = 2.0  # the test's default


def score_power(setting: Setting, n: int, epsilon: continuous.Budget, effect: float, level: float) -> float:
    """ScoreTest of one column of levels: S ~ N(n E[h r], n var(h r)) + noise for its bound, judged with V + noise.

    What is linear in Z counts as removed, and Z as uniform; the errors of both lines add variance to S. Where S lies
    within bins, their means take a share of its mean and variance, none of V.
    """
    test = _started(setting, n, epsilon)
    shares = test.shares()
    share = {name: shares[name] / sum(shares.values()) for name in shares}
    left = 1.0 if test.bins is None else float(laws.occupied(n / test.bins[1]))
    moves = score_sums.MOVES if test.bins is None else score_sums.MOVES_WITHIN
    noise = laws.Noise.of(epsilon, share["scores"], moves)
    noise_of_variance = laws.Noise.of(epsilon, share["squares"], 1.0)
    # of a phenotype of two levels residuals reach 1 and the fitted mean beyond it
    limit = WINSORIZE if not setting.y.levels else 1.0
    seen = continuous.observed_moments(setting, effect, (1.0, limit), 0.0)
    mean, product, null = (
        n * float(np.mean(values))
        for values in (seen["covariance"], seen["product_variance"], seen["var_x"] * seen["var_y"])
    )
    mean, product = left * mean, left * product
    errors = _of_lines(setting, n, epsilon, share, limit, test.basis)
    var_x, var_y = (float(np.mean(seen[name])) for name in ("var_x", "var_y"))
    fits = n * (errors["of_y"] * var_x + errors["of_x"] * var_y + errors["of_x"] * errors["of_y"])
    added = 0.0 if test.holds_any_shape else errors["product"]
    product, null = product + added + fits, null + added + fits
    floor = min(1e-3 * n, math.sqrt(noise_of_variance.variance))
    null_sds = np.sqrt(np.maximum(null + noise_of_variance.quantiles(), floor))
    return laws.noisy_sum_power(mean, math.sqrt(product), null_sds, noise, level, noise_of_variance.variance)


def _of_lines(setting: Setting, n: int, epsilon, share, limit: float, basis) -> dict[str, float]:
    """Variance that the product of both lines' errors adds to S, and what errors of the fits add to h's and to r's."""
    norm = Norm.L2 if isinstance(epsilon, laws.Concentrated) else Norm.L1
    unit = (1.0 if setting.y.levels else setting.residual_sd) * limit  # B on the scale of [-1, 1]
    model = laws.Noise.of(epsilon, share[score_order.MODEL], basis.bound(norm is Norm.L2)).variance
    lines = laws.Noise.of(epsilon, share[score_order.LINES], basis.line_bound(norm, 1)).variance
    inverse = np.linalg.inv(n * basis.typical())
    return {
        "product": model * lines * float(np.sum(inverse**2)) / unit**2,
        "of_y": model * float(np.trace(inverse)) / (n * unit**2),
        "of_x": lines * float(np.trace(inverse)) / n,
    }


def _started(setting: Setting, n: int, epsilon) -> score_test.ScoreTest:
    """The test with what it takes for these columns, by public numbers."""
    budget = {"mechanism": Gaussian(epsilon.rho)} if isinstance(epsilon, laws.Concentrated) else {"epsilon": epsilon}
    described = Domain((setting.x,), (setting.y,), setting.z)
    z = np.zeros((n, len(setting.z))) if setting.z else None
    return score_test.ScoreTest(**budget).started(Data(np.zeros((n, 1)), np.zeros(n), z, described))
