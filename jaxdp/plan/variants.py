"""Power for the score test of one variant (docs/theory/score_test.md), through the stages of the test itself."""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base.kept_programs import kept_jit
from jaxdp.data.dataset import Data, Domain
from jaxdp.independence.variants import covariates, score_test
from jaxdp.independence.variants.score_order import STAGES
from jaxdp.mechanisms import Gaussian
from jaxdp.plan import continuous, laws
from jaxdp.plan.setting import SCALED, Setting, made_of
from jaxdp.statistics import score_sums

PLACES = 4096  # records that stand for the law of the columns
DRAWS, BATCH = 1000, 25  # of the noise of the stages
GROUPS = 64  # at most, in place of the bins of a covariate
SEED = 20_251


def score_power(setting: Setting, n: int, epsilon: continuous.Budget, effect: float, level: float) -> float:
    """ScoreTest of one column of levels, for `DRAWS` draws of the noise in its null model, mean and lines.

    That noise decides the unit B of the residuals, what is left of Z in S, and whether a covariate is hidden, so that
    p = 1. S ~ N(its mean, its variance) + noise, judged with V + noise, by the law of the columns. The same draws at
    every n, budget and effect.
    """
    test, left = _started(setting, n, epsilon), 1.0
    if test.bins is not None:
        place, count = test.bins
        groups = min(count, GROUPS)
        # the share of the records that is left where both means of their bins are taken off
        left = float(laws.occupied(n / count) / laws.occupied(PLACES / groups))
        test = dataclasses.replace(test, bins=(place, groups))
    times, shares = n / PLACES, test.shares()
    # noise is as large against sums of so many records as it is against those of n
    fewer = {name: part.share(times**2 if isinstance(part, Gaussian) else times) for name, part in test.parts.items()}
    with jax.enable_x64(True):
        found = _cases(dataclasses.replace(test, parts=fewer), _records(setting, effect))
        case = {name: np.asarray(values) for name, values in found.items()}
    noise, of_squares = (
        laws.Noise.of(epsilon, shares[name] / sum(shares.values()), bound)
        for name, bound in (("scores", test._moves), ("squares", 1.0))
    )
    seen = ~case["lost"]
    if not seen.any():
        return 0.0
    case = {name: values[seen] for name, values in case.items()}
    squares = np.maximum(times * case["squares"][:, None] + of_squares.quantiles(), 0.0)
    least = times * case["squared"] * np.maximum(left * case["spread"], 0.0)
    null = np.maximum(squares, least[:, None]) + (times**2 * case["products"])[:, None]
    mean = times * (left * case["scores"] - case["bias"])
    power = laws.noisy_sum_power(
        mean=mean,
        sd=np.sqrt(np.maximum(times * left * case["variance"], 0.0)),
        null_sds=np.sqrt(np.maximum(null, min(1e-3 * n, math.sqrt(of_squares.variance)))),
        noise=noise,
        level=level,
        variance_noise=of_squares.variance,
    )
    return power * float(seen.mean())


@kept_jit
def _cases(test: score_test.ScoreTest, data: Data):
    """What the scores of `data` are about, and what the test counts beside them, for each draw of the noise (s,).

    scores, squares, spread: S, V and D. variance: that of S. squared: what D is multiplied by where V is less.
    products, bias: variance and mean that errors of the lines add to S. lost: whether p = 1.
    """

    ahead = test.ahead or ()

    def of(key):
        about, keys = test, jax.random.split(key, len(ahead))
        for name, own in zip(ahead, keys, strict=True):
            query_of, then = STAGES[name]
            query = query_of(mechanism=test.parts[name], of=about)
            noisy = laws.released(query, query.sensitivity(PLACES), own, query.statistic(None, data), PLACES)
            about = then(about, query, noisy)
        sums = {name: total[0] for name, total in about.statistic(None, data).items()}
        return sums | {
            "variance": _squares(about, data) - sums["scores"] ** 2 / PLACES,
            "squared": about.model.residual_variance / about.model.limit**2,
            "products": about.lines.product_variance[0],
            "bias": about.lines.mean[0],
            "lost": about._loses,
        }

    return jax.lax.map(of, jax.random.split(jax.random.key(SEED), DRAWS), batch_size=BATCH)


def _squares(test: score_test.ScoreTest, data: Data):
    """Sum of (h r)^2, both about the means of their bins: the variance of S."""
    x, residuals = test.tested(data), test.residuals(data)
    fitted = test.line_design(data) @ test.lines.coefficients.T
    h = jnp.clip(score_sums.values(x, fitted.dtype) - fitted, -1.0, 1.0)[:, 0]
    if test.bins is not None:
        bins = covariates.cut(data.z, test.basis.columns, *test.bins, test.bound), test.bins[1]
        size = jax.ops.segment_sum(jnp.ones(len(h)), *bins)
        h, residuals = (part - (jax.ops.segment_sum(part, *bins) / size)[bins[0]] for part in (h, residuals))
    return jnp.sum((h * residuals) ** 2)


@functools.lru_cache(maxsize=16)
def _records(setting: Setting, effect: float) -> Data:
    """`PLACES` records that fill the law of the columns evenly.

    Each comes with both signs of both residuals, or chance would leave a covariance beside that of a small effect.
    """
    from scipy.special import ndtri
    from scipy.stats import qmc

    drawn = qmc.Sobol(2 + len(setting.z), seed=SEED).random(PLACES // 4)
    x, y = ndtri(np.clip(drawn[:, :2], 1e-9, 1.0 - 1e-9)).T
    x, y, places = np.r_[x, x, -x, -x], np.r_[y, -y, y, -y], np.tile(drawn[:, 2:].T, 4)
    return made_of(list(places), x, y, setting=setting, form=SCALED, effect=effect)


def _started(setting: Setting, n: int, epsilon) -> score_test.ScoreTest:
    """The test with what it takes for these columns, by public numbers."""
    described = Domain((setting.x,), (setting.y,), setting.z)
    z = np.zeros((n, len(setting.z))) if setting.z else None
    shapes = Data(np.zeros((n, 1)), np.zeros(n), z, described)
    return score_test.ScoreTest(**laws.budget(epsilon)).started(shapes)
