"""Correlations from noisy second moments, partial correlations and slopes of any query about them, and their errors.

Everything here is post-processing of one released vector (`moments`). The error of an estimate is a weighted sum of the
released numbers' noise, whose law is known, and a normal part of the sampling.
Theory: docs/theory/partial_correlation.md#errors.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base.pytree import frozen_pytree
from jaxdp.statistics import clipped_normal

DRAWS = 1500  # of a record, for the sampling variance
PUBLIC_SEED = 20
MAX_FLOOR = 0.25


@frozen_pytree
class Correlations:
    """What one release says about p columns, K = p(p - 1)/2 pairs j < k in the order of `numpy.triu_indices`.

    matrix: (p, p) positive definite correlations. log_sd: (p,), of the columns in units of their clip limits.
    weights: (K + p, D), derivatives of correlations and log sds by the D released mean products and means.
    noise: (D,), scale of the noise of each of these. sampling: (K + p, K + p), covariance of the estimates without
    noise. noise_variance: of a number of noise scale 1. moments: (D,), the released numbers. num_records: n.
    """

    matrix: jax.Array
    log_sd: jax.Array
    weights: jax.Array
    noise: jax.Array
    sampling: jax.Array
    noise_variance: jax.Array
    moments: jax.Array
    num_records: jax.Array


@frozen_pytree
class Estimate:
    """An estimate with its error law: normal of this sd, plus noise of known law times `noise` (D,)."""

    value: jax.Array
    sd: jax.Array
    noise: jax.Array


def _pairs(num_columns: int):
    return np.triu_indices(num_columns, k=1)


def _split(theta, num_columns: int):
    """Mean products off the diagonal (K,), on it (p,), and means (p,)."""
    rows, columns = np.triu_indices(num_columns)
    size = len(rows)
    return theta[:size][rows != columns], theta[:size][rows == columns], theta[size:]


def law_of(theta, linear) -> clipped_normal.ClipLaw:
    """The clipped normals that have these squares and means (D,). linear: (p,) bool, columns that no clip touches."""
    _, squares, means = _split(theta, len(linear))
    return clipped_normal.law(means, squares, jnp.asarray(linear))


def raw_estimates(theta, found: clipped_normal.ClipLaw):
    """Correlations of pairs (K,) and log sds (p,) from mean products and means (D,), and their Jacobian (K + p, D)."""
    p = len(found.mean)
    products, _, _ = _split(theta, p)
    i, j = _pairs(p)
    first, second = found.coefficients[i], found.coefficients[j]
    pairs = clipped_normal.correlation_of(products - found.mean[i] * found.mean[j], first, second)
    return pairs, found.log_sd, _jacobian(found, pairs)


def _jacobian(found, pairs):
    p = len(found.mean)
    rows, columns = np.triu_indices(p)
    off, diagonal = np.flatnonzero(rows != columns), np.flatnonzero(rows == columns)
    i, j = _pairs(p)
    pair, mean = np.arange(len(i)), len(rows) + np.arange(p)
    steep = clipped_normal.slope_of(pairs, found.coefficients[i], found.coefficients[j])
    made = jnp.zeros((len(i) + p, len(rows) + p), pairs.dtype).at[pair, off].set(1.0 / steep)
    for own, other in ((i, j), (j, i)):
        by_mean = found.mean[other] + clipped_normal.covariance_of(
            pairs, found.by_mean[0][own], found.coefficients[other]
        )
        by_square = clipped_normal.covariance_of(pairs, found.by_square[0][own], found.coefficients[other])
        made = made.at[pair, mean[own]].add(-by_mean / steep).at[pair, diagonal[own]].add(-by_square / steep)
    sd = len(i) + np.arange(p)
    return made.at[sd, mean].set(found.by_mean[1]).at[sd, diagonal].set(found.by_square[1])


def estimates(theta, linear, num_records: int, noise, noise_variance) -> Correlations:
    """Everything that queries need. noise: scale of the noise of each number of theta; its variance at scale 1."""
    p = len(linear)
    theta = jax.lax.stop_gradient(theta)
    law = law_of(theta, linear)
    pairs, log_sd, jacobian = raw_estimates(theta, law)
    noise_sd = jnp.sqrt(noise_variance * ((jacobian**2) @ (noise**2)))[: len(pairs)]
    matrix = _positive(_symmetric(pairs, p), jax.lax.stop_gradient(noise_sd))
    sampling = _sampling_covariance(law, matrix, linear) / num_records
    return Correlations(
        matrix=matrix,
        log_sd=log_sd,
        weights=jacobian,
        noise=noise,
        sampling=jacobian @ sampling @ jacobian.T,
        noise_variance=jnp.asarray(noise_variance),
        moments=theta,
        num_records=jnp.asarray(num_records),
    )


def _symmetric(pairs, num_columns: int):
    i, j = _pairs(num_columns)
    return jnp.eye(num_columns, dtype=pairs.dtype).at[i, j].set(pairs).at[j, i].set(pairs)


def _positive(matrix, noise_sd):
    """Eigenvalues raised to 2 sqrt(p) sd of the noise (0.25 at most), the diagonal back to one.

    noise_sd: of each pair (K,). A column of more noise than the largest floor covers counts less, or what its
    correlations need, which are mostly noise, would move those of all others (#rare).
    """
    p = len(matrix)
    i, j = _pairs(p)
    loud = jnp.maximum(_loudness(noise_sd, p), math.sqrt(MAX_FLOOR / (2.0 * math.sqrt(p))))
    weights = jnp.min(loud) / loud
    both = weights[:, None] * weights[None, :]
    sd = jnp.sqrt(jnp.mean((noise_sd * both[i, j]) ** 2))
    floor = jnp.clip(2.0 * jnp.sqrt(1.0 * p) * sd, 1e-3, MAX_FLOOR)
    values, vectors = jnp.linalg.eigh(jnp.nan_to_num(matrix) * both)
    raised = (vectors * jnp.maximum(values, floor)[None, :]) @ vectors.T
    scale = jnp.sqrt(jnp.diagonal(raised))
    return raised / (scale[:, None] * scale[None, :])


def _loudness(noise_sd, num_columns: int):
    """Numbers (p,) whose products are nearest, in logarithms, to the noise of the pairs (K,); alike if p = 2."""
    logs = jnp.log(jnp.maximum(noise_sd, 1e-12))
    holds = np.arange(num_columns)[:, None, None] == np.stack(_pairs(num_columns))
    own = jnp.matmul(jnp.asarray(holds.any(axis=1), logs.dtype), logs, precision="highest")
    if num_columns < 3:
        return jnp.exp(0.5 * own)
    return jnp.exp((own - jnp.sum(logs) / (num_columns - 1)) / (num_columns - 2))


def _sampling_covariance(found: clipped_normal.ClipLaw, matrix, linear):
    """Covariance (D, D) of one record's products and values, by draws of normal columns with these correlations."""
    p = len(linear)
    root = jnp.linalg.cholesky(matrix)
    normal = jax.random.normal(jax.random.key(PUBLIC_SEED), (DRAWS, p), root.dtype) @ root.T
    clipped = jnp.clip((normal - found.mu[None]) / jnp.exp(found.log_tau)[None], -1.0, 1.0)
    plain = found.mean[None] + found.coefficients[None, :, 0] * normal
    columns = jnp.where(jnp.asarray(linear)[None], plain, clipped)
    i, j = np.triu_indices(p)
    features = jnp.concatenate([columns[:, i] * columns[:, j], columns], axis=1)
    features = features - jnp.mean(features, axis=0, keepdims=True)
    return features.T @ features / (DRAWS - 1)


def residuals(matrix, x, y, given):
    """Vectors A and C (p,) with A'u and C'u the residuals of columns x and y given those of the mask `given` (p,)."""
    p = len(matrix)
    both = given[:, None] & given[None, :]
    inside = jnp.where(both, matrix, jnp.eye(p, dtype=matrix.dtype))
    sides = jnp.stack([matrix[:, x], matrix[:, y]], axis=1) * given[:, None]
    fitted = jnp.linalg.solve(inside, sides) * given[:, None]
    return jnp.eye(p)[x] - fitted[:, 0], jnp.eye(p)[y] - fitted[:, 1]


def _block(matrix, a, c):
    return a @ matrix @ a, c @ matrix @ c, a @ matrix @ c


def partial_correlation(found: Correlations, x, y, given) -> tuple[Estimate, Estimate]:
    """Partial correlation of columns x and y given a mask (p,): with its law if the true one is 0, and at its value."""
    a, c = residuals(found.matrix, x, y, given)
    of_x, of_y, of_both = _block(found.matrix, a, c)
    scale = jnp.sqrt(of_x * of_y)
    value = jnp.clip(of_both / scale, -0.999, 0.999)
    cross = jnp.outer(a, c) / scale
    bend = 0.5 * value * (jnp.outer(a, a) / of_x + jnp.outer(c, c) / of_y)
    return _estimate(found, value, cross), _estimate(found, value, cross - bend)


def slope(found: Correlations, x, y, given) -> Estimate:
    """Slope of column y on x given a mask (p,), both in units of their clip limits."""
    a, c = residuals(found.matrix, x, y, given)
    of_x, _, of_both = _block(found.matrix, a, c)
    value, unit = of_both / of_x, jnp.exp(found.log_sd[y] - found.log_sd[x])
    p = len(found.matrix)
    by_sd = value * (jnp.eye(p)[y] - jnp.eye(p)[x])
    return _estimate(found, value * unit, jnp.outer(a, c - value * a) / of_x * unit, by_sd * unit)


def _estimate(found: Correlations, value, gradient, by_sd=None) -> Estimate:
    """An estimate of this gradient (p, p) in the correlations and (p,) in the log sds."""
    i, j = _pairs(len(gradient))
    pairs = gradient[i, j] + gradient[j, i]
    direction = jnp.concatenate([pairs, jnp.zeros(len(gradient)) if by_sd is None else by_sd])
    spread = jnp.sqrt(jnp.maximum(direction @ found.sampling @ direction, 1e-12))
    return Estimate(value=value, sd=spread, noise=(direction @ found.weights) * found.noise)


def scaled(estimate: Estimate, factor) -> Estimate:
    """An estimate and its errors in other units."""
    return Estimate(value=estimate.value * factor, sd=estimate.sd * jnp.abs(factor), noise=estimate.noise * factor)
