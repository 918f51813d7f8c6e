"""Kernels: frozen pytrees that are callable on two points and build Gram matrices.

Every kernel here satisfies k(z, z) <= 1 for every z, which the sensitivity theorems need.
A value that is not finite is replaced per record (NaN by 0, infinities by the largest float), so that
one bad record can never spread into the matrix.
"""

from typing import Any, Protocol

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree

HIGHEST = jax.lax.Precision.HIGHEST
# Assumed accuracy of exp and sqrt in float64, in units of roundoff (measured: below 2 on CPU).
LIBRARY_ULPS = 4.0


class Kernel(Protocol):
    """What kernel ridge regression needs of a kernel."""

    def gram(self, z: Any) -> Any:
        """Gram matrix (n, n) of points z, (n,) or (n, d)."""


def as_points(z):
    """Finite float array (n, d) of z: (n,) or (n, d); what is not finite is filled entry by entry."""
    z = jnp.asarray(z)
    z = z if jnp.issubdtype(z.dtype, jnp.floating) else z.astype(float)
    return jnp.nan_to_num(z[:, None] if z.ndim == 1 else z, nan=0.0)


def squared_distances(z, other=None):
    """|z_i - other_j|^2, array (n, m); relative error (d + 2) units of roundoff, exactly symmetric.

    z: (n,) or (n, d). other: (m,) or (m, d), default z. Sums the differences instead of expanding the
    square, because |a|^2 + |b|^2 - 2ab loses all digits of near neighbours far from the origin.
    """
    z = as_points(z)
    other = z if other is None else as_points(other)
    if z.shape[1] != other.shape[1]:
        raise ValueError(
            f"the two sets of points must have the same number of columns, got {z.shape[1]} and {other.shape[1]}."
        )

    def add(total, pair):
        a, b = pair
        return total + (a[:, None] - b[None, :]) ** 2, None

    start = jnp.zeros((z.shape[0], other.shape[0]), jnp.result_type(z, other))
    return jax.lax.scan(add, start, (z.T, other.T), unroll=min(z.shape[1], 8) or 1)[0]


def _safe_sqrt(value):
    """sqrt with derivative 0 at 0, where the true derivative is infinite."""
    positive = value > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, value, 1.0)), 0.0)


class _Pairwise:
    """What kernels with a Gram matrix have in common."""

    def gram(self, z, other=None):
        """Matrix k(z_i, other_j), (n, m); z: (n,) or (n, d), other: default z."""
        raise NotImplementedError

    def __call__(self, a, b):
        """k(a, b) for two points of shape () or (d,)."""
        return self.gram(jnp.atleast_1d(a)[None, :], jnp.atleast_1d(b)[None, :])[0, 0]


class _OfDistances(_Pairwise):
    """Kernels of the distance of two points alone."""

    lengthscale: ArrayLike

    def __post_init__(self):
        check.positive(lengthscale=self.lengthscale)

    def gram(self, z, other=None):
        return self.of_squared_distances(squared_distances(z, other))

    def of_squared_distances(self, squared):
        """Kernel values of given squared distances, elementwise."""
        raise NotImplementedError


class OfFeatures(_Pairwise):
    """Kernels phi(z).phi(other) of finitely many features, |phi(z)| <= 1."""

    def features(self, z):
        """phi(z), a row for each point."""
        raise NotImplementedError

    def gram(self, z, other=None):
        phi = self.features(z)
        return jnp.matmul(phi, (phi if other is None else self.features(other)).T, precision=HIGHEST)


@frozen_pytree
class RBF(_OfDistances):
    """Gaussian kernel k(a, b) = exp(-|a - b|^2 / (2 lengthscale^2)); k(z, z) = 1.

    lengthscale: > 0, in the units of z; scikit-learn's gamma is 1/(2 lengthscale^2).
    """

    lengthscale: ArrayLike = 1.0

    @classmethod
    def from_gamma(cls, gamma: ArrayLike) -> "RBF":
        """The kernel exp(-gamma |a - b|^2)."""
        check.positive(gamma=gamma)
        return cls(lengthscale=(2.0 * gamma) ** -0.5)

    def of_squared_distances(self, squared):
        return jnp.exp(-squared / (2.0 * check.positive_or_nan(self.lengthscale) ** 2))

    def entry_error(self, depth: int) -> float:
        """Bound on |computed - exact| of a Gram entry in units of roundoff, for z with `depth` columns."""
        # exponent t has relative error depth + 6, and t exp(-t) <= 1/e
        return (depth + 6.0) / 2.718 + LIBRARY_ULPS


@frozen_pytree
class LaplaceKernel(_OfDistances):
    """Exponential kernel k(a, b) = exp(-|a - b|_2 / lengthscale); k(z, z) = 1, any dimension.

    lengthscale: > 0, in the units of z.
    """

    lengthscale: ArrayLike = 1.0

    def of_squared_distances(self, squared):
        return jnp.exp(-_safe_sqrt(squared) / check.positive_or_nan(self.lengthscale))

    def entry_error(self, depth: int) -> float:
        """Bound on |computed - exact| of a Gram entry in units of roundoff, for z with `depth` columns."""
        return (depth / 2.0 + LIBRARY_ULPS + 3.0) / 2.718 + LIBRARY_ULPS


@frozen_pytree
class Linear(OfFeatures):
    """Linear kernel k(a, b) = a.b / radius^2 on the public ball |z| <= radius; k(z, z) <= 1.

    radius: public bound of |z|_2; points outside are projected onto the ball, each on its own.
    There is no intercept: append a constant column to z for one.
    """

    radius: ArrayLike = 1.0

    def __post_init__(self):
        check.positive(radius=self.radius)

    def features(self, z):
        """Points scaled into the unit ball, (n, d); z: (n,) or (n, d)."""
        # in units of the largest entry, so that squares cannot overflow
        scaled = as_points(z) / check.positive_or_nan(self.radius)
        scaled = jnp.nan_to_num(scaled)
        largest = jnp.maximum(jnp.max(jnp.abs(scaled), axis=1, keepdims=True, initial=0.0), 1.0)
        inner = scaled / largest
        norm = _safe_sqrt(jnp.sum(inner**2, axis=1, keepdims=True))
        return inner * jnp.minimum(largest, 1.0 / jnp.where(norm > 0, norm, 1.0))

    def entry_error(self, depth: int) -> float:
        """Bound on |computed - exact| of a Gram entry in units of roundoff, for z with `depth` columns."""
        return 2.0 * (depth + LIBRARY_ULPS + 6.0)
