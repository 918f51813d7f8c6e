"""Standard noise draws in floating point: for simulations only, never for a release."""

import jax
import jax.numpy as jnp


def reach(sensitivity):
    """How far the computed statistic can move: the exact bound plus twice the numerical error."""
    return sensitivity.bound + 2.0 * sensitivity.error


def laplace(key, shape=(), dtype=float):
    """Laplace draws of scale 1 (sd sqrt(2))."""
    return jax.random.laplace(key, shape, dtype)


def gaussian(key, shape=(), dtype=float):
    """Standard normal draws."""
    return jax.random.normal(key, shape, dtype)


def max_norm(key, shape, among: int, dtype=float):
    """Coordinates (..., k) of vectors of `among` coordinates with density proportional to exp(-max |x_j|).

    A radius of the gamma law of among + 1, and a uniform point of the cube of that radius.
    """
    key_radius, key_point = jax.random.split(key)
    radius = jax.random.gamma(key_radius, among + 1.0, shape[:-1], dtype)
    return radius[..., None] * jax.random.uniform(key_point, shape, dtype, -1.0, 1.0)


def exponential(key, shape=(), dtype=float):
    """Exponential draws of mean 1."""
    return jax.random.exponential(key, shape, dtype)


def gumbel(key, shape=(), dtype=float):
    """Standard Gumbel draws."""
    return jax.random.gumbel(key, shape, dtype)


def two_sided_geometric(key, scale, shape=(), dtype=float):
    """Integer draws with P(k) proportional to exp(-|k|/scale), as floats."""
    # The difference of two geometric variables, each the floor of an exponential of the same scale.
    up, down = jnp.floor(scale * jax.random.exponential(key, (2, *shape), dtype))
    return up - down
