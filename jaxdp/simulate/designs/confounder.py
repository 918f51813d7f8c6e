"""Continuous designs with a confounder: X and Y share a wave of the first column of Z.

The data model of the GCM paper (section 5): f_s(z) = exp(-z^2/2) sin(s z), whose squared norm in the
unit-bandwidth Gaussian RKHS is sinh(s^2). Signs and standard deviations that the paper leaves open are
arguments; the Shah-Peters original is z_sd=1, noise_sd=0.3, sign=1.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.data.dataset import Data
from jaxdp.randomness import normals
from jaxdp.statistics.conditional_law import GaussianLaw
from jaxdp.statistics.kernel_ridge.random_features import cos_sin_of_turns


def wave(z, complexity):
    """f_s(z) = exp(-z^2/2) sin(s z)."""
    _, sine = cos_sin_of_turns(z * (complexity / (2.0 * np.pi)))  # XLA's sine would be a sixth of a replicate
    return jnp.exp(-0.5 * z**2) * sine


@frozen_pytree
class SineLaw(GaussianLaw):
    """The known law of X given Z in `sine_confounder`: N(f_s(z_1), noise_sd^2)."""

    complexity: ArrayLike = 2.0

    def mean(self, z):
        first = z if z.ndim == 1 else z[:, 0]
        return wave(first, self.complexity)


def sine_confounder(
    key: jax.Array,
    n: int,
    *,
    effect: ArrayLike = 0.0,
    complexity: ArrayLike = 2.0,
    dim: int = 1,
    z_sd: ArrayLike = 2.0,
    noise_sd: ArrayLike = 1.0,
    sign: float = -1.0,
    ordered: bool = False,
) -> Data:
    """X = f_s(Z_1) + N_X, Y = sign f_s(Z_1) + N_Y + effect N_X; x, y of shape (n,), z (n,) or (n, dim).

    effect: coefficient of N_X in Y; 0 is the null. Z_j ~ N(0, z_sd^2), N_X, N_Y ~ N(0, noise_sd^2).
    ordered: the same law, its records listed by increasing z (dim = 1). A test that sorts its records by Z does it in
    less than half of the time; not for a test that cuts the records into parts by their number.
    Everything but n, dim and ordered may be traced, so one program serves a sweep.
    """
    check.at_least(1, n=n, dim=dim)
    if ordered and dim != 1:
        raise ValueError(f"ordered lists records by one column of Z, got dim = {dim}.")
    drawn_z, drawn_x, drawn_y = _ordered_normals(key, n) if ordered else _three_normals(key, n, dim)
    z, noise_x, noise_y = z_sd * drawn_z, noise_sd * drawn_x, noise_sd * drawn_y
    shared = jax.lax.optimization_barrier(wave(z if dim == 1 else z[:, 0], complexity))
    return Data(shared + noise_x, sign * shared + noise_y + effect * noise_x, z)


def _three_normals(key, n: int, dim: int):
    """Standard normal arrays (n,) or (n, dim), (n,), (n,), from a key each.

    Behind a barrier, as the wave above: XLA would draw and bend them again for every array that they enter, which makes
    a simulation half as slow again.
    """
    keys = jax.random.split(key, 3)
    if dim == 1 and normals.are_fast(key):
        return tuple(jax.lax.optimization_barrier(normals.normal(key, (3, n))))
    if dim == 1:
        return tuple(jax.lax.optimization_barrier(jax.vmap(lambda k: jax.random.normal(k, (n,)))(keys)))
    key_z, key_x, key_y = keys
    drawn = normals.normal(key_z, (n, dim)), normals.normal(key_x, (n,)), normals.normal(key_y, (n,))
    return jax.lax.optimization_barrier(drawn)


def _ordered_normals(key, n: int):
    """As `_three_normals` for one column of Z, the first array in increasing order."""
    key_z, key_noise = jax.random.split(key)
    noise_x, noise_y = normals.normal(key_noise, (2, n))
    return jax.lax.optimization_barrier((normals.ordered(key_z, n), noise_x, noise_y))


def shah_peters(
    key: jax.Array,
    n: int,
    *,
    effect: ArrayLike = 0.0,
    complexity: ArrayLike = 2.0,
    dim: int = 1,
    z_sd: ArrayLike = 1.0,
    noise_sd: ArrayLike = 0.3,
) -> Data:
    """The design of Shah and Peters (2020): X = f_s(Z_1) + N_X, Y = f_s(Z_1) + N_Y + effect N_X, Z ~ N(0, 1).

    `sine_confounder` with their constants (docs/theory/private_gcm.md#data-model); shapes as there.
    """
    return sine_confounder(
        key, n, effect=effect, complexity=complexity, dim=dim, z_sd=z_sd, noise_sd=noise_sd, sign=1.0
    )


def heteroscedastic_confounder(
    key: jax.Array,
    n: int,
    *,
    effect: ArrayLike = 0.0,
    complexity: ArrayLike = 2.0,
    z_sd: ArrayLike = 2.0,
    sign: ArrayLike = -1.0,
    least_spread: ArrayLike = 0.5,
    spread_slope: ArrayLike = 0.5,
) -> Data:
    """`sine_confounder` with skewed noise whose spread grows with |Z|; shapes (n,).

    Noise: (E - 1) (least_spread + spread_slope |z|) with E standard exponential, for X and for Y; Y adds effect
    times X's noise.
    """
    key_z, key_x, key_y = jax.random.split(key, 3)
    z = z_sd * normals.normal(key_z, (n,))
    spread = least_spread + spread_slope * jnp.abs(z)
    noise_x = spread * (jax.random.exponential(key_x, (n,)) - 1.0)
    noise_y = spread * (jax.random.exponential(key_y, (n,)) - 1.0)
    shared = wave(z, complexity)
    return Data(shared + noise_x, noise_y + sign * shared + effect * noise_x, z)


def heavy_tailed_confounder(
    key: jax.Array,
    n: int,
    *,
    effect: ArrayLike = 0.0,
    complexity: ArrayLike = 2.0,
    freedom: ArrayLike = 2.5,
    z_sd: ArrayLike = 2.0,
    noise_sd: ArrayLike = 1.0,
    sign: ArrayLike = -1.0,
) -> Data:
    """`sine_confounder` with Student noise; shapes (n,).

    freedom: degrees of freedom of the noise of X and of Y; at 2 and below its variance is infinite.
    noise_sd: its scale (not its standard deviation).
    """
    key_z, key_x, key_y = jax.random.split(key, 3)
    z = z_sd * normals.normal(key_z, (n,))
    noise_x = noise_sd * jax.random.t(key_x, freedom, (n,))
    noise_y = noise_sd * jax.random.t(key_y, freedom, (n,))
    shared = wave(z, complexity)
    return Data(shared + noise_x, sign * shared + noise_y + effect * noise_x, z)


OUTER = {
    "identity": lambda value: value,
    "tanh": jnp.tanh,
    "cube": lambda value: value**3,
    "signed_root": lambda value: jnp.sign(value) * jnp.sqrt(jnp.abs(value)),
    "softplus": jax.nn.softplus,
}


def post_nonlinear(
    key: jax.Array,
    n: int,
    *,
    effect: ArrayLike = 0.0,
    dim: int = 1,
    z_sd: ArrayLike = 1.0,
    noise_sd: ArrayLike = 0.5,
    slope_x: ArrayLike = 1.0,
    slope_y: ArrayLike = -1.0,
    outer_x: str = "tanh",
    outer_y: str = "cube",
) -> Data:
    """X = g_x(slope_x m(Z) + N_X), Y = g_y(slope_y m(Z) + N_Y + effect N_X), m(Z) the sum of sin(Z_j) over sqrt(dim).

    The post-nonlinear model of the kernel tests' literature (Zhang et al. 2011): outer functions are applied after
    the noise. outer_x, outer_y: identity, tanh, cube, signed_root or softplus, all increasing. x, y of shape (n,),
    z (n,) or (n, dim), Z_j ~ N(0, z_sd^2), noises ~ N(0, noise_sd^2).
    """
    check.at_least(1, n=n, dim=dim)
    check.one_of(tuple(OUTER), outer_x=outer_x, outer_y=outer_y)
    key_z, key_x, key_y = jax.random.split(key, 3)
    z = z_sd * normals.normal(key_z, (n,) if dim == 1 else (n, dim))
    middle = jnp.sin(z) if dim == 1 else jnp.sum(jnp.sin(z), axis=1) / jnp.sqrt(1.0 * dim)
    noise_x = noise_sd * normals.normal(key_x, (n,))
    noise_y = noise_sd * normals.normal(key_y, (n,))
    x = OUTER[outer_x](slope_x * middle + noise_x)
    return Data(x, OUTER[outer_y](slope_y * middle + noise_y + effect * noise_x), z)
