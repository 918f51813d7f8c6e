"""Power by formula for tests on a noisy moment matrix (docs/theory/partial_correlation.md) and of group scores."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base.kept_programs import kept_jit
from jaxdp.independence.continuous import mean_difference, moment_test
from jaxdp.plan import continuous, laws, residuals
from jaxdp.plan.setting import Setting
from jaxdp.statistics import clipped_normal, group_scores, moments, partial_correlations

UNIFORM_SCALE = 0.741  # of a uniform column on [-1, 1]: its median distance from 0 over that of a normal one of sd 1
SIZE_CASES = 256  # of the noise in the size of a group and in the mean response


def partial_correlation_power(
    setting: Setting, n: int, epsilon: continuous.Budget, effect: float, level: float
) -> float:
    """A partial correlation of clipped normal columns, with the errors that the test counts at their expected moments.

    Private centres and scales cost a quarter where a column is continuous.
    """
    truth, x, y, given = residuals.second_moments(setting, effect)
    width, levelled = len(given), residuals.levelled(setting)
    left = 1.0 - (moment_test.CENTRE_SHARE + moment_test.SCALE_SHARE) * (not all(levelled))
    normal = isinstance(epsilon, laws.Concentrated)
    bound = moments.frobenius_bound(width) if normal else moments.l1_bound(width)
    noise = laws.Noise.of(epsilon, left, bound)
    sd = math.sqrt(noise.variance) / (math.sqrt(2.0) if normal else 1.0)  # of a product
    clip = float(moments.best_clip(n, sd))
    clips = np.where(given, float(moments.wide_clip(n, sd, clip, int(given.sum()))), clip)
    with jax.enable_x64(True):
        found = _partial(truth, clips, given, x, y, float(n), noise.scale, tuple(levelled), normal)
        value, sd, errors = (float(part) for part in found)
    # of many products together, the noise is nearly normal
    added = laws.Noise(errors, True) if normal or given.any() else laws.Noise(errors / math.sqrt(2.0))
    return laws.noisy_sum_power(value, sd, sd, added, level)


@functools.partial(kept_jit, static_argnames=("levelled", "normal"))
def _partial(truth, clips, given, x, y, num_records, scale, levelled: tuple[bool, ...], normal: bool):
    """The partial correlation, its sd by sampling where the true one is 0, and the sd of its noise."""
    p = len(levelled)
    linear = jnp.asarray(levelled)
    covariance = truth[1:, 1:] - jnp.outer(truth[0, 1:], truth[0, 1:])
    sds = jnp.sqrt(jnp.diagonal(covariance))
    limits = clips * UNIFORM_SCALE
    uniform = jnp.where(limits >= 1.0, 1.0 / (3.0 * limits**2), 1.0 - 2.0 * limits / 3.0)
    squares = jnp.where(linear, sds**2, jnp.where(given, uniform, moments.clipped_variance(clips)))
    law = clipped_normal.law(jnp.zeros(p), squares, linear)
    i, j = np.triu_indices(p)
    pairs = (covariance / jnp.outer(sds, sds))[i, j]
    products = clipped_normal.covariance_of(pairs, law.coefficients[i], law.coefficients[j])
    theta = jnp.concatenate([jnp.where(i == j, squares[i], products), jnp.zeros(p)])
    variance = 1.0 if normal else 2.0
    noise = scale / (jnp.asarray(moments.weights(p, normal)) * num_records)
    found = partial_correlations.estimates(theta, levelled, num_records, noise, variance)
    null, _ = partial_correlations.partial_correlation(found, x, y, given)
    return null.value, null.sd, jnp.sqrt(variance * jnp.sum(null.noise**2))


def mean_difference_power(setting: Setting, n: int, epsilon: continuous.Budget, effect: float, level: float) -> float:
    """Two groups of equal size, a response in the middle of its bounds: docs/theory/mean_difference.md#pivot.

    Averaged over the noise of the size and of the mean response, which sets the scale of what follows.
    """
    wide = continuous.WIDE**2
    seen = continuous.observed_moments(setting, effect, (continuous.WIDE, continuous.WIDE), 0.0)
    group, response = ("y", "x") if mean_difference.group_is_y(setting.x, setting.y) else ("x", "y")
    unit = 1.0 if getattr(setting, response).levels else setting.residual_sd
    of_group, of_response = (wide * float(np.mean(seen[f"var_{name}"])) for name in (group, response))
    slope = wide * float(np.mean(seen["covariance"])) / of_group
    difference, within = 2.0 * slope * unit, max(of_response - slope**2 * of_group, 1e-12) * unit**2
    normal = isinstance(epsilon, laws.Concentrated)
    shares = {name: float((1 - mean_difference.SIZES_SHARE) * part) for name, part in mean_difference.SHARES.items()}
    in_size = laws.Noise.of(epsilon, float(mean_difference.SIZES_SHARE), mean_difference.size_bound(normal))
    in_sum = in_size.scale / mean_difference.SUM_WEIGHT
    count, total = (laws.stratified_noise(SIZE_CASES, (2,), normal) * np.array([in_size.scale, in_sum])).T
    per_scale = in_size.variance / in_size.scale**2
    drawn = 0.5 + 0.5 / math.sqrt(n) * np.resize([1.0, -1.0], SIZE_CASES)  # share of the second group
    records = float(n)  # its square is too large for a whole number
    groups = group_scores.Groups.of(n * drawn + count, total, records, in_size.scale, in_sum, per_scale)
    known = ~np.asarray(groups.unknown)
    if not known.any():
        return 0.0
    kept = np.resize(np.flatnonzero(known), SIZE_CASES)  # one shape, so that one program serves every n
    p, m, reach, most = (
        np.asarray(part, float)[kept, None] for part in (groups.share, groups.centre, groups.range, groups.largest)
    )
    products = np.asarray(groups.products(records, per_scale)[1], float)[kept, None]
    drawn = drawn[kept, None]
    off = (drawn - p) / (p * (1.0 - p))  # docs/theory/mean_difference.md#identity
    mean = difference + off * ((1.0 - p - drawn) * difference - m)
    squared = sum(
        part * (within + (side * 0.5 * difference - m) ** 2) / share**2
        for side, part, share in ((1.0, drawn, p), (-1.0, 1.0 - drawn, 1.0 - p))
    )
    noise = laws.Noise.of(epsilon, shares["scores"], reach / n)
    of_squares = laws.Noise.of(epsilon, shares["squares"], (most / n) ** 2)
    units = laws.Noise(1.0, normal).quantiles()[None, :]
    sampling = np.maximum(squared / n + units * of_squares.scale, 0.0)
    judged = np.maximum(sampling, 1e-3 * squared / n) + products
    of_variance = of_squares.variance + (most / n) ** 2 * sampling
    sd = np.sqrt(np.maximum(squared - mean**2, 0.0) / n)
    found = laws.noisy_sum_power(mean[:, 0], sd[:, 0], np.sqrt(judged), noise, level, of_variance, scores=True)
    return float(found * known.mean())
