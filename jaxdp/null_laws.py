"""From a released statistic to a p-value. Null laws live here; nothing here reads data.

xp: the namespace that computes a law: `jax.numpy`, or `numpy` for numbers of the planner, for which nothing compiles.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erfc
from jax.scipy.stats import norm

from jaxdp._base.bisection import bisected

_TINY = 1e-30
_CLOSE = 4.0  # where Mills' ratio passes to its continued fraction
_FAR, _NODES = 9.0, 361  # of the trapezoid rule for a normal variable, in sds
RANK = "its p-value is a rank among simulated draws"  # why a test has no gradient (`PrivateTest.no_gradient`)
DECISION = "it releases a decision at one level"


def never_so_small(test, level) -> bool:
    """Whether the p-value of a test of tables is a rank among too few draws to be at most this level."""
    return test.no_gradient("epsilon") == RANK and level * (1.0 + test.num_null) < 1.0 - 1e-9


def normal(value, sd, *, xp: Any = jnp):
    """Two-sided p-value P(|N(0, sd^2)| >= |value|); any shapes that broadcast."""
    return 2.0 * normal_tail(xp.abs(value) / xp.maximum(sd, _TINY), xp=xp)


def normal_plus_laplace(value, sd, scale, *, xp: Any = jnp):
    """Two-sided p-value P(|N(0, sd^2) + Laplace(scale)| >= |value|), exact in the noise.

    docs/theory/partition_gcm.md#p-value, rearranged so that no large exponents cancel: with
    u = |value|/sd, r = sd/scale and Mills' M(w) = e^(w^2/2) P(N > w), the two Laplace terms are
    e^(-u^2/2) M(r - u) and e^(-u^2/2) M(r + u). Smooth in all three arguments.
    """
    _, tail, toward, away = _laplace_terms(value, sd, scale, xp)
    return xp.clip(2.0 * tail + toward - away, 0.0, 1.0)


def _laplace_terms(value, sd, scale, xp):
    """u, P(N(0, 1) > u) and the two terms whose difference is what the noise adds to P(|N(0, 1)| >= u)."""
    value = xp.abs(value)
    sd = xp.maximum(sd, 1e-6 * scale)
    scale = xp.maximum(scale, 1e-6 * sd)
    u, r = xp.broadcast_arrays(value / sd, sd / scale)
    inside = u >= r
    # For u >= r the scaled form overflows and the plain one is safe; the other way round for u < r.
    plain = xp.where(inside, r * (0.5 * r - u), 0.0)
    ratios = xp.stack([xp.where(inside, 0.0, r - u), r + u])
    tails = normal_tail(xp.stack([u, xp.where(inside, r - u, 0.0), *xp.minimum(ratios, _CLOSE)]), xp=xp)
    toward, away = xp.exp(-0.5 * u * u)[None] * _mills(ratios, tails[2:], xp)
    return u, tails[0], xp.where(inside, xp.exp(plain) * tails[1], toward), away


def widened_for_normal(value, sd, scale, variance_noise, *, xp: Any = jnp):
    """`sd` so much larger that the p-value of N(0, sd^2) + N(0, scale^2) keeps its level for a noisy sd^2.

    variance_noise: variance of the noise in sd^2. Second order: adds variance_noise (z^2 + 1)/(4 T) to sd^2, with
    T = sd^2 + scale^2 and z^2 = value^2/T, 16 at most: p-values go on falling (docs/theory/partition_gcm.md#level).
    """
    total = xp.maximum(sd**2 + scale**2, _TINY)
    squared = xp.minimum(value**2 / total, 16.0)
    return xp.sqrt(sd**2 + variance_noise * (squared + 1.0) / (4.0 * total))


def widened_for_laplace(value, sd, scale, variance_noise, *, xp: Any = jnp):
    """`widened_for_normal` for `normal_plus_laplace`: adds variance_noise/(2 scale^2) (1/2 - phi/f + phi'/(2 f')).

    f is the density of N(0, sd^2) + Laplace(scale) at the value, phi that of N(0, sd^2).
    """
    u, _, toward, away = _laplace_terms(value, sd, scale, xp)
    density, slope = toward + away, away - toward  # 2 scale f, 2 scale^2 f'
    ratio = scale / xp.maximum(sd, _TINY)
    bell = 2.0 * xp.exp(-0.5 * u * u) / xp.sqrt(2.0 * xp.pi)
    seen = (density > 1e-25) & (slope < -1e-25)
    first = xp.where(seen, bell * ratio / xp.where(seen, density, 1.0), 0.0)
    second = xp.where(seen, -u * bell * ratio**2 / xp.where(seen, slope, 1.0), 0.0)
    # no density left: the limit far out; no slope: the value is zero and its p-value one
    bracket = xp.where(seen, xp.clip(0.5 - first + 0.5 * second, 0.0, 0.5), 0.5)
    widened = xp.sqrt(sd**2 + variance_noise / (2.0 * scale**2) * bracket)
    # next to no Laplace noise: that of a normal law, without the cancellation
    little = widened_for_normal(value, sd, xp.sqrt(2.0) * scale, variance_noise, xp=xp)
    return xp.where(scale < 0.02 * sd, little, widened)


def skewed(noise_tail, value, sd, skewness):
    """P(|C + noise| >= |value|) for a centred C of this sd and skewness >= 0; shapes that broadcast.

    noise_tail(t): P(|noise| >= |t|) of symmetric noise. C is a gamma variable by Wilson and Hilferty's cube of a normal
    one, averaged over the latter by the trapezoid rule; at skewness 0 it is normal. A two-sided tail is the same for
    -C, so that the sign does not matter. Skewness counts up to 2 (an exponential variable).
    """
    value, sd, skewness = (jnp.asarray(item)[..., None] for item in (jnp.abs(value), sd, jnp.clip(skewness, 0.0, 2.0)))
    z = jnp.linspace(-_FAR, _FAR, _NODES).reshape((1,) * (value.ndim - 1) + (-1,))
    bend = skewness * (z / 6.0 - skewness / 36.0)
    # the cube's base is not negative, and (z - s/6)(1 + b + b^2/3) is (2/s)((1 + b)^3 - 1) without cancellation
    bend = jnp.maximum(bend, -1.0)
    standard = jnp.where(
        bend > -1.0, (z - skewness / 6.0) * (1.0 + bend + bend**2 / 3.0), -2.0 / jnp.maximum(skewness, 1e-3)
    )
    center = sd * standard

    def above(threshold):
        half = 0.5 * noise_tail(threshold)
        return jnp.where(threshold >= 0.0, half, 1.0 - half)

    weights = norm.pdf(z) / jnp.sum(norm.pdf(z))
    return jnp.sum(weights * (above(value - center) + above(value + center)), axis=-1)


def noisy_sd(variance, noise_variance, num_records):
    """Standard deviation from a noisy variance, which may be negative: floored at n/1000 or the noise's own sd.

    The smaller of the two: the first is a tiny public share of n (docs/theory/partition_gcm.md#p-value), the second
    keeps a small variance that was released with little noise from being replaced by the first.
    """
    return jnp.sqrt(jnp.maximum(variance, jnp.minimum(1e-3 * num_records, jnp.sqrt(noise_variance))))


def normal_tail(x, *, xp: Any = jnp):
    """P(N(0, 1) > x), of all of an array by one error function: its expansion is most of what a p-value compiles."""
    if xp is np:
        from scipy import special  # the planner's alone

        return 0.5 * special.erfc(x / math.sqrt(2.0))
    return 0.5 * erfc(x / math.sqrt(2.0))


def mills(w):
    """e^(w^2/2) P(N(0,1) > w) for w >= 0, without overflow or cancellation."""
    return _mills(w, normal_tail(jnp.minimum(w, _CLOSE)), jnp)


def _mills(w, tail, xp):
    """`mills` of w, whose P(N(0, 1) > min(w, 4)) is known."""
    small = xp.minimum(w, _CLOSE)
    large = xp.maximum(w, _CLOSE)
    fraction = large
    for level in range(14, 0, -1):  # Laplace's continued fraction; 14 levels reach 1e-12 at w = 4
        fraction = large + level / fraction
    return xp.where(w < _CLOSE, xp.exp(0.5 * small**2) * tail, 1.0 / (math.sqrt(2.0 * math.pi) * fraction))


def monte_carlo(value, null):
    """One-sided Monte Carlo p-value (1 + #{null >= value}) / (1 + m); null of shape (..., m).

    Exact (super-uniform) if value and null are exchangeable under the null hypothesis.
    """
    value = jnp.asarray(value)
    exceed = jnp.sum(null >= jnp.expand_dims(value, -1), axis=-1)
    # NaN compares as False and would count as significant
    spoiled = jnp.isnan(value) | jnp.any(jnp.isnan(null), axis=-1)
    return jnp.where(spoiled, jnp.nan, (1.0 + exceed) / (1.0 + null.shape[-1]))


def smallest_rank(values):
    """p-value of the smallest of several Monte Carlo p-values, calibrated among the same draws.

    values: (k, 1 + m), k statistics (large is evidence) of the release, first, and of m null draws. Each statistic is
    ranked among its own; the smallest rank of the release is ranked among the smallest ranks of the draws. Exact if
    the 1 + m columns are exchangeable under the null hypothesis.
    """
    count = values.shape[1]
    below = jax.vmap(lambda row: jnp.searchsorted(jnp.sort(row), row, side="left"))(values)
    smallest = jnp.min(count - below, axis=0)  # how many reach each value, itself included
    p_value = jnp.sum(smallest <= smallest[0]) / count
    # NaN compares as False and would count as significant
    return jnp.where(jnp.any(jnp.isnan(values)), jnp.nan, p_value)


def critical_of_smallest_rank(null, level: float):
    """A first statistic beyond this makes `smallest_rank` at most `level` by itself; infinite where none does.

    null: (k, m), k statistics of m null draws. If r - 1 draws reach the release's first statistic, its `smallest_rank`
    is at most 1 + #{draws whose smallest rank is at most r} over 1 + m; r is the largest for which this is at most
    `level`, and the value returned is the r-th largest draw of the first statistic.
    """
    count = null.shape[1]
    ordered = jnp.sort(null, axis=1)
    ranks = count - jax.vmap(lambda row, of: jnp.searchsorted(row, of, side="left"))(ordered, null)
    smallest = jnp.sort(jnp.min(ranks, axis=0))
    at_most = jnp.searchsorted(smallest, jnp.arange(1, count + 1), side="right")
    allowed = jnp.sum(1 + at_most <= level * (1 + count))  # at_most grows with the rank
    return jnp.where(allowed > 0, ordered[0, count - jnp.maximum(allowed, 1)], jnp.inf)


def max_normal(key, correlation, num_draws: int):
    """Draws of max |N(0, correlation)|, shape (num_draws,); correlation of shape (c, c)."""
    ridge = 1e-6 * jnp.eye(correlation.shape[0])  # singular correlations are common: x with itself
    factor = jnp.linalg.cholesky(correlation + ridge)
    draws = jax.random.normal(key, (num_draws, correlation.shape[0]))
    return jnp.max(jnp.abs(jnp.matmul(draws, factor.T, precision="highest")), axis=1)


def decision(rejected, level):
    """A decision at one preset level as a valid p-value: `level` where rejected, 1 elsewhere."""
    return jnp.where(rejected, level, 1.0)


def bonferroni(p_values):
    """p-value of the global null from a pytree array of p-values: min(1, m min p)."""
    flat = jnp.ravel(p_values)
    return jnp.minimum(1.0, flat.size * least(flat))


def least(values):
    """The least of an array, by its place.

    The gradient of `jnp.min` compares numbers that a compiled program may have rounded twice, and can be NaN.
    """
    flat = jnp.ravel(values)
    return flat[jnp.argmin(flat)]


def holm(p_values):
    """Holm's step-down adjusted p-values (family-wise error), same shape; post-processing."""
    flat = jnp.ravel(p_values)
    order = jnp.argsort(flat)
    steps = flat.size - jnp.arange(flat.size)
    adjusted = jax.lax.cummax(steps * flat[order])
    return jnp.minimum(1.0, jnp.zeros_like(flat).at[order].set(adjusted)).reshape(jnp.shape(p_values))


def benjamini_hochberg(p_values):
    """Benjamini-Hochberg adjusted p-values (false discovery rate), same shape; post-processing.

    NumPy arrays are adjusted by NumPy: a command that has its numbers on the host compiles nothing for them.
    """
    on_host = isinstance(p_values, np.ndarray)
    xp, least_so_far = (np, np.minimum.accumulate) if on_host else (jnp, jax.lax.cummin)
    flat = xp.ravel(p_values)
    falling = xp.argsort(flat)[::-1]
    adjusted = least_so_far(flat.size / (flat.size - xp.arange(flat.size)) * flat[falling])
    return xp.minimum(1.0, adjusted[xp.argsort(falling)]).reshape(np.shape(p_values))


SUM_NODES, SUM_PERIOD, SUM_FAR = 512, 60.0, 25.0


def normal_plus_laplaces(value, sd, scales):
    """P(|N(0, sd^2) + sum of Laplace(scales)| >= |value|); scales: (..., D), independent.

    The characteristic function inverted at 512 nodes, errors below 1e-5 of float32 and 1e-9 of float64 where sd is not
    far below the whole spread; smaller p-values are bounded from above by Chernoff's inequality.
    """
    spread = jnp.sqrt(sd**2 + 2.0 * jnp.sum(scales**2, axis=-1))
    shape = jnp.broadcast_shapes(jnp.shape(value), jnp.shape(spread))
    x, sd = (jnp.ravel(jnp.broadcast_to(part / spread, shape)) for part in (jnp.abs(value), sd))
    scales = jnp.broadcast_to(scales / spread[..., None], (*shape, scales.shape[-1])).reshape(-1, scales.shape[-1])
    found = jax.vmap(_tail)(x, sd, scales)
    return found.reshape(shape)


def _tail(x, sd, scales):
    """`normal_plus_laplaces` of one number, in units of the whole spread."""
    half = jnp.arange(SUM_NODES) + 0.5
    t = 2.0 * jnp.pi / SUM_PERIOD * half
    logs = -0.5 * (t * sd) ** 2 - jnp.sum(jnp.log1p((t[:, None] * scales[None, :]) ** 2), axis=1)
    inverted = 1.0 - 2.0 / jnp.pi * jnp.sum(jnp.sin(jnp.minimum(x, SUM_FAR) * t) * jnp.exp(logs) / half)
    trusted = 1e-4 if x.dtype == jnp.float32 else 1e-8
    far = jnp.minimum(_chernoff(x, sd, scales), trusted)
    return jnp.where((inverted > trusted) & (x < SUM_FAR), jnp.clip(inverted, 0.0, 1.0), far)


def _chernoff(x, sd, scales):
    """2 min over s of E exp(s error) exp(-s x), for errors of variance 1."""
    s = (jnp.arange(64) + 0.5) / 64.0 / jnp.maximum(jnp.max(jnp.abs(scales)), 1e-2)
    squares = jnp.minimum((s[:, None] * scales[None, :]) ** 2, 1.0 - 1e-6)
    logs = 0.5 * (s * sd) ** 2 - jnp.sum(jnp.log1p(-squares), axis=1) - s * x
    return 2.0 * jnp.exp(jnp.clip(jnp.min(logs), -600.0, 0.0))


def normal_plus_normals(value, sd, scales):
    """P(|N(0, sd^2) + sum of N(0, scales^2)| >= |value|); scales: (..., D), independent."""
    return normal(value, jnp.sqrt(sd**2 + jnp.sum(scales**2, axis=-1)))


def two_sided_quantile(p_value, spread, level: float = 0.05):
    """x with p_value(x) = level, by bisection on [0, 25 spreads]: half the width of an interval."""
    low, high = bisected(lambda x: p_value(x) > level, jnp.zeros_like(spread), SUM_FAR * spread, 26)
    return 0.5 * (low + high)
