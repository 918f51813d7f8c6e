"""Ridge regression on features for many records: random Fourier features.

The sensitivity constants of `ridge_bounds` hold verbatim for any feature map that does not depend on the data and has
|phi(z)| <= 1 (docs/theory/kernel_ridge.md#feature-maps), as these have, whose frequencies come from a key.

A feature map is also a kernel (`gram`), so that any test takes one in place of a kernel; `feature_residuals` streams
over the records and never builds a Gram matrix.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_solve
from jax.typing import ArrayLike

from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.statistics.kernel_ridge import kernels, ridge

CHUNK = 4096  # records at a time: features stay in the cache, memory is flat in n
SHRINK = {"float32": 1.0 - 2.0**-18, "float64": 1.0 - 2.0**-48}  # more than the rounding of cos^2 + sin^2


@frozen_pytree
class FourierFeatures(kernels.OfFeatures):
    """Random Fourier features in pairs cos, sin over sqrt(number of pairs): |phi(z)| <= 1 for every z.

    frequencies: (d, pairs), in turns per unit of z; draw them with `fourier_features`. radius: public; entries of z are
    clipped to [-radius, radius] (keeps the angles, and with them rounding, bounded).
    Error against the kernel: `fourier_error`.
    """

    frequencies: ArrayLike
    radius: ArrayLike = 1e3

    def __post_init__(self):
        check.positive(radius=self.radius)

    def features(self, z):
        """phi(z), (n, 2 pairs): all cosines, then all sines."""
        cosine, sine = self.halves(z)
        return jnp.concatenate([cosine, sine], axis=1)

    def halves(self, z):
        """Cosine and sine features, each (n, pairs)."""
        cosine, sine = self.upright(z)
        return cosine.T, sine.T

    def upright(self, z):
        """Cosine and sine features, each (pairs, n): products of these run twice as fast on a CPU."""
        radius = jnp.asarray(self.radius)
        z = jnp.clip(kernels.as_points(z), -radius, radius)
        frequencies = jnp.asarray(self.frequencies, z.dtype)
        cosine, sine = cos_sin_of_turns(jnp.matmul(frequencies.T, z.T, precision=kernels.HIGHEST))
        scale = SHRINK[z.dtype.name] / np.sqrt(frequencies.shape[1])
        return scale * cosine, scale * sine

    def entry_error(self, depth: int):
        """Bound on |computed - exact| of a Gram entry in units of roundoff, for z with `depth` columns."""
        turns = jnp.max(jnp.sum(jnp.abs(jnp.asarray(self.frequencies)), axis=0)) * self.radius
        return 2.0 * jnp.shape(self.frequencies)[1] + 8.0 + 4.0 * np.pi * (depth + 4.0) * (1.0 + turns)


def fourier_features(key, kernel, depth: int, num_features: int) -> FourierFeatures:
    """Draws features whose Gram matrix approximates `kernel` (RBF or LaplaceKernel) for z with `depth` columns.

    num_features: even. The draw is public: it reads no data. Error: `fourier_error`.
    """
    check.at_least(1, depth=depth)
    check.at_least(2, num_features=num_features)
    if num_features % 2:
        raise ValueError(f"num_features must be even (pairs of cosine and sine), got {num_features}.")
    key_direction, key_length = jax.random.split(key)
    normal = jax.random.normal(key_direction, (depth, num_features // 2))
    if isinstance(kernel, kernels.RBF):
        angular = normal
    elif isinstance(kernel, kernels.LaplaceKernel):
        # the spectrum of exp(-|r|) is the multivariate Cauchy law
        angular = normal / jnp.abs(jax.random.normal(key_length, (1, num_features // 2)))
    else:
        raise TypeError(f"random Fourier features exist for RBF and LaplaceKernel, got {type(kernel).__name__}.")
    return FourierFeatures(frequencies=angular / (2.0 * jnp.pi * check.positive_or_nan(kernel.lengthscale)))


def fourier_error(num_features: int, num_points: int, failure: float = 1e-6) -> float:
    """Error of the Gram matrix: with probability 1 - failure over the frequencies no entry is off by more than this.

    sqrt(4 log(2 pairs/failure)/num_features), pairs of num_points points: Hoeffding for the num_features/2 terms of an
    entry, union over the entries. Privacy does not depend on it, only how close the test is to the kernel's.
    """
    check.at_least(2, num_features=num_features)
    check.in_range(0.0, 1.0, failure=failure)
    return float(np.sqrt(4.0 * np.log(num_points**2 / failure) / num_features)) + 1e-5


def feature_residuals(features, ridge_value, z, targets, *, batch_size: int = CHUNK):
    """In-sample residuals of ridge regression on features, streamed; equals `krr_residuals(features, ...)`.

    features: FourierFeatures, Linear, or anything with `features(z)`, |phi| <= 1, public. ridge_value: in the
    objective's units (alpha = n ridge/2). z: (n,) or (n, d). targets: (n,) or (n, q). Returns the shape of targets.
    batch_size: records at a time; memory is batch_size x features + features^2, whatever n. Time is linear in n.
    """
    check.at_least(1, batch_size=batch_size)
    z = kernels.as_points(z)
    columns = ridge.as_columns(targets, z.dtype)
    n, q = columns.shape
    size = min(batch_size, n)
    count = -(-n // size)

    def pad(a):
        return jnp.pad(a, ((0, count * size - n), (0, 0))).reshape(count, size, -1)

    chunks = (pad(z.astype(columns.dtype)), pad(columns), pad(jnp.ones((n, 1), columns.dtype)))
    width = jax.eval_shape(features.features, chunks[0][0]).shape[1]

    def accumulate(totals, chunk):
        z, x, real = chunk
        parts = _parts(features, z, real)
        first = jnp.concatenate([_dot(part, x.T) for part in parts])  # padded rows have targets 0
        return (totals[0] + _second_moments(parts), totals[1] + first), None

    start = (jnp.zeros((width, width), columns.dtype), jnp.zeros((width, q), columns.dtype))
    (second, first), _ = jax.lax.scan(accumulate, start, chunks)
    alpha = ridge.alpha_of(ridge_value, n)
    weights = cho_solve((ridge.cholesky(second, alpha), True), first)

    def subtract(_, chunk):
        z, x, _ = chunk
        phi = jnp.concatenate(_parts(features, z, 1.0))
        return None, x - jnp.matmul(weights.T, phi, precision=kernels.HIGHEST).T

    _, left = jax.lax.scan(subtract, None, chunks)
    return left.reshape(count * size, q)[:n].reshape(jnp.shape(targets))


def _parts(features, z, real):
    """Features of the real rows, as arrays (width, n): cosines and sines apart where they come in pairs."""
    pairs = features.upright(z) if hasattr(features, "upright") else (features.features(z).T,)
    # Without the barrier XLA would work the features out anew for every product.
    return jax.lax.optimization_barrier(tuple(jnp.reshape(real, (1, -1)) * part for part in pairs))


def _dot(a, b):
    """a b' for a (p, n) and b (q, n)."""
    return jax.lax.dot_general(a, b, (((1,), (1,)), ((), ())), precision=kernels.HIGHEST)


def _second_moments(parts):
    """Phi'Phi; of cosines and sines three of the four blocks, the fourth is a transpose."""
    if len(parts) == 1:
        return _dot(parts[0], parts[0])
    cosine, sine = parts
    mixed = _dot(cosine, sine)
    return jnp.block([[_dot(cosine, cosine), mixed], [mixed.T, _dot(sine, sine)]])


def _fit(function, degree: int) -> tuple[float, ...]:
    """Near-minimax polynomial in s = (4 t)^2 of an even function of t on a quarter turn, by Chebyshev nodes."""
    nodes = np.polynomial.chebyshev.chebpts1(degree + 1) / 2.0 + 0.5
    return tuple(np.polynomial.polynomial.polyfit(nodes, function(np.sqrt(nodes) / 4.0), degree))


_COSINE = _fit(lambda t: np.cos(2.0 * np.pi * t), 5)
_SINE = _fit(lambda t: np.sin(2.0 * np.pi * t) / t, 5)


def cos_sin_of_turns(turns):
    """cos and sin of 2 pi turns. Float32: polynomials, error 1e-6, four times as fast as the library on the CPU."""
    turns = turns - jnp.round(turns)
    if turns.dtype != jnp.float32:
        return jnp.cos(2.0 * jnp.pi * turns), jnp.sin(2.0 * jnp.pi * turns)
    far = jnp.abs(turns) > 0.25
    near = jnp.where(far, jnp.sign(turns) * 0.5 - turns, turns)
    squared = 16.0 * near * near
    cosine = _horner(_COSINE, squared)
    return jnp.where(far, -cosine, cosine), near * _horner(_SINE, squared)


def _horner(coefficients, value):
    total = jnp.full_like(value, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total = total * value + coefficient
    return total
