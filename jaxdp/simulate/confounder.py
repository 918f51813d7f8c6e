"""Continuous designs with a confounder: X and Y share a wave of the first column of Z.

The data model of the GCM paper (section 5): f_s(z) = exp(-z^2/2) sin(s z), whose squared norm in the
unit-bandwidth Gaussian RKHS is sinh(s^2). Signs and standard deviations that the paper leaves open are
arguments; the Shah-Peters original is z_sd=1, noise_sd=0.3, sign=1.
"""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdp._pytree import frozen_pytree
from jaxdp.data.dataset import Data
from jaxdp.statistics.conditional_law import GaussianLaw


def wave(z, complexity):
    """f_s(z) = exp(-z^2/2) sin(s z)."""
    return jnp.exp(-0.5 * z**2) * jnp.sin(complexity * z)


@frozen_pytree
class SineLaw(GaussianLaw):
    """The known law of X given Z in `sine_confounder`: N(f_s(z_1), noise_sd^2)."""

    complexity: ArrayLike = 2.0

    def mean(self, z):
        first = z if z.ndim == 1 else z[:, 0]
        return wave(first, self.complexity)


def sine_confounder(
    key,
    n: int,
    *,
    effect: ArrayLike = 0.0,
    complexity: ArrayLike = 2.0,
    dim: int = 1,
    z_sd: ArrayLike = 2.0,
    noise_sd: ArrayLike = 1.0,
    sign: float = -1.0,
) -> Data:
    """X = f_s(Z_1) + N_X, Y = sign f_s(Z_1) + N_Y + effect N_X; x, y of shape (n,), z (n,) or (n, dim).

    effect: coefficient of N_X in Y; 0 is the null. Z_j ~ N(0, z_sd^2), N_X, N_Y ~ N(0, noise_sd^2).
    Everything but n and dim may be traced, so one program serves a sweep.
    """
    key_z, key_x, key_y = jax.random.split(key, 3)
    z = z_sd * jax.random.normal(key_z, (n,) if dim == 1 else (n, dim))
    noise_x = noise_sd * jax.random.normal(key_x, (n,))
    noise_y = noise_sd * jax.random.normal(key_y, (n,))
    shared = wave(z if dim == 1 else z[:, 0], complexity)
    return Data(shared + noise_x, sign * shared + noise_y + effect * noise_x, z)


def heteroscedastic_confounder(key, n: int, *, effect: ArrayLike = 0.0, complexity: ArrayLike = 2.0) -> Data:
    """`sine_confounder` with skewed noise whose spread grows with |Z|; shapes (n,).

    Noise: (E - 1) (1 + |z|)/2 with E standard exponential, for X and for Y; Y adds effect times X's noise.
    """
    key_z, key_x, key_y = jax.random.split(key, 3)
    z = 2.0 * jax.random.normal(key_z, (n,))
    spread = 0.5 * (1.0 + jnp.abs(z))
    noise_x = spread * (jax.random.exponential(key_x, (n,)) - 1.0)
    noise_y = spread * (jax.random.exponential(key_y, (n,)) - 1.0)
    shared = wave(z, complexity)
    return Data(shared + noise_x, noise_y - shared + effect * noise_x, z)
