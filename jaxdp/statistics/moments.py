"""Second moments of bounded columns as one vector: its layout, how far one record moves it, and where to clip.

Columns w (n, p) in [-1, 1]. The vector holds sum w_j w_k for j <= k, row by row, then t0 sum w_j, t0 = `MEAN_WEIGHT`:
p(p + 1)/2 + p numbers. For L2 the off-diagonal entries and the means count sqrt(2) times, so that its norm is the
Frobenius norm of the augmented matrix. Theory: docs/theory/partial_correlation.md#sensitivity.
"""

import math

import jax.numpy as jnp
import numpy as np

MEAN_WEIGHT = 0.5  # t0
ROUNDED = "its columns are rounded to a grid, so that they move in steps"  # why a test has no gradient
GRID = 2.0**13  # columns are rounded to its multiples, so that sums of products are exact in float64
MAX_RECORDS = 2**27
# Clip levels T in sds of a normal column, the variance v of the clipped column, and the efficiency a of its
# correlation: a = P(|xi| < T)^2/v, v = E min(xi^2/T^2, 1). Below 0.5 first-order intervals fail.
CLIPS = np.array([0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.3, 2.6])
CLIPS_OF_Z = np.array([*CLIPS, 3.0, 3.5, 4.0])
WIDE, WIDE_EACH = 0.9, 0.6


def num_entries(num_columns: int) -> int:
    """Length of the vector."""
    return num_columns * (num_columns + 1) // 2 + num_columns


def squares(num_columns: int) -> np.ndarray:
    """Places of the columns' mean squares in the vector, (p,)."""
    rows, columns = np.triu_indices(num_columns)
    return np.flatnonzero(rows == columns)


def l1_bound(num_columns: int) -> float:
    """How far replacing one record moves the vector in L1, at most."""
    p = num_columns
    return p * (p + 1.0 + MEAN_WEIGHT) ** 2 / (2.0 * (p + 1.0))


def frobenius_bound(num_columns: float) -> float:
    """How far replacing one record moves the vector for L2, at most; attained."""
    return math.sqrt(2.0) * (num_columns + MEAN_WEIGHT**2)


def weights(num_columns: int, euclidean: bool) -> np.ndarray:
    """What each number of the vector is multiplied by: 1 (sqrt(2) off the diagonal for L2), and t0 (times that)."""
    rows, columns = np.triu_indices(num_columns)
    twice = math.sqrt(2.0) if euclidean else 1.0
    return np.concatenate([np.where(rows == columns, 1.0, twice), np.full(num_columns, MEAN_WEIGHT * twice)])


def on_grid(values):
    """Values within [-1, 1] rounded to the grid; a missing one counts as 0."""
    return jnp.round(jnp.clip(jnp.nan_to_num(values, nan=0.0), -1.0, 1.0) * GRID) / GRID


def vector(values, euclidean: bool):
    """The vector of columns (n, p) on the grid: exact sums in float64, times `weights`."""
    rows, columns = np.triu_indices(values.shape[1])
    products = jnp.matmul(values.T, values, precision="highest")[rows, columns]
    return jnp.concatenate([products, jnp.sum(values, axis=0)]) * jnp.asarray(
        weights(values.shape[1], euclidean), values.dtype
    )


def vector_of_means(matrix, num_records, euclidean: bool):
    """`vector` of so many records, from their mean products with (1, w), (p + 1, p + 1)."""
    size = matrix.shape[0] - 1
    rows, columns = np.triu_indices(size)
    entries = jnp.concatenate([matrix[1:, 1:][rows, columns], matrix[0, 1:]])
    return entries * num_records * jnp.asarray(weights(size, euclidean))


def means(vector, num_records: int, num_columns: int, euclidean: bool):
    """The vector as mean products and means: what `estimates` read."""
    return vector / (jnp.asarray(weights(num_columns, euclidean), vector.dtype) * num_records)


def unrelated(theta, columns, variance):
    """Mean products and means (D,) in which the columns of the mask (p,) are centred and unrelated to all others.

    variance: (p,), what their mean squares become.
    """
    p = len(variance)
    j, k = np.triu_indices(p)
    own = jnp.where(jnp.asarray(j == k), variance[j], 0.0)
    gone = columns[j] | columns[k]
    return jnp.concatenate([jnp.where(gone, own, theta[: len(j)]), jnp.where(columns, 0.0, theta[len(j) :])])


def best_clip(num_records: int, noise_sd):
    """The clip level T in sds with the least predicted variance of a correlation; noise_sd: of one off-diagonal sum."""
    return jnp.asarray(CLIPS)[jnp.argmin(_variances(num_records, noise_sd))]


def wide_clip(num_records: int, noise_sd, clip, num_given: int):
    """T of `num_given` columns of Z: the widest that the noise allows, not below `clip`.

    Wide clips bend less where a column is not normal, and cost noise. In a correlation of two such columns the noise
    may have (`WIDE` + `WIDE_EACH` columns) times the variance of sampling (docs/theory/partial_correlation.md#wide).
    """
    _, noise = _sampling_and_noise(num_records, noise_sd, CLIPS_OF_Z)
    allowed = jnp.where(noise * num_records <= WIDE + WIDE_EACH * num_given, jnp.asarray(CLIPS_OF_Z), 0.0)
    return jnp.maximum(jnp.max(allowed), clip)


def correlation_sd(num_records: int, noise_sd) -> float:
    """Predicted sd of a small correlation at the best clip level."""
    return math.sqrt(float(jnp.min(_variances(num_records, noise_sd))))


def _variances(num_records: int, noise_sd):
    """Predicted variance of a small correlation at each of `CLIPS`."""
    return sum(_sampling_and_noise(num_records, noise_sd, CLIPS))


def clipped_variance(clips):
    """Variance of a normal column clipped at so many sds, in units of its clip limit."""
    from jax.scipy.stats import norm

    inside = norm.cdf(clips) - norm.cdf(-clips)
    return (inside - 2.0 * clips * norm.pdf(clips)) / clips**2 + 1.0 - inside


def _sampling_and_noise(num_records: int, noise_sd, clips):
    """Predicted variances of a small correlation at each clip level: of the sampling, and of the noise."""
    from scipy.stats import norm

    inside = norm.cdf(clips) - norm.cdf(-clips)
    variance = (inside - 2.0 * clips * norm.pdf(clips)) / clips**2 + 1.0 - inside
    efficiency = (inside / clips) ** 2 / variance
    noise = (jnp.asarray(noise_sd) / (num_records * variance * efficiency)) ** 2
    return 1.0 / (num_records * efficiency), noise
