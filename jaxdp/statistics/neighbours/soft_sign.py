"""Odd, bounded functions of a difference, with values on a grid.

A grid makes products of two values multiples of 2^-20, so that float64 sums of them are exact in any order
(docs/theory/ordered_neighbours.md#lattice).
"""

import jax
import jax.numpy as jnp

GRID = 2.0**10
KERNELS = ("soft", "sign", "plain")


def on_grid(values):
    """Values rounded to multiples of 2^-10, ties to even (an odd function); the gradient is that of the values."""
    scaled = values * GRID
    # adding the exact difference gives the rounded number exactly, and a derivative of one
    return (scaled + jax.lax.stop_gradient(jnp.round(scaled) - scaled)) / GRID


def squared(values):
    """Squares of numbers on the grid in [-1, 1], rounded up to the grid: at least the square, at most the size."""
    scaled = values**2 * GRID
    return (scaled + jax.lax.stop_gradient(jnp.ceil(scaled) - scaled)) / GRID


def soft_sign(difference, width):
    """clip(difference/width, -1, 1) on the grid; an infinite or undefined quotient counts as +-1 or 0."""
    return on_grid(jnp.clip(jnp.nan_to_num(difference / width, nan=0.0), -1.0, 1.0))


def odd(difference, width, kernel: str):
    """The kernel at a difference: `soft_sign`, the sign, or the difference itself ("plain")."""
    if kernel == "soft":
        return soft_sign(difference, width)
    # differences of values on the grid are on the grid
    return jnp.sign(difference) if kernel == "sign" else difference


def finite(values):
    """Values without NaN (they count as 0) and infinities, small enough that differences don't overflow."""
    limit = float(jnp.finfo(values.dtype).max) / 16
    return jnp.clip(jnp.nan_to_num(values, nan=0.0), -limit, limit)
