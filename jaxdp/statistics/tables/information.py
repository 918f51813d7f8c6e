"""Mutual information of a table of counts or masses, in bits."""

import math

import jax
import jax.numpy as jnp
from jax import lax

from jaxdp._base.types import Array

# log2(m)/(m - 1) on [sqrt(1/2), sqrt(2)]: least squares on 4000 Chebyshev points; |error of log2| < 1e-7.
_LOG2_POLYNOMIAL = (
    1.4426949580,
    -0.7213527588,
    0.4809240386,
    -0.3602419859,
    0.2870756112,
    -0.2488218056,
    0.2342098512,
    -0.1462035342,
)


def mutual_information(table: Array) -> jax.Array:
    """Mutual information of the row and column of a table, in bits.

    table: non-negative counts or masses, (..., k, l); its sum need not be 1. Returns (...), never negative;
    0 for a table without mass. Mass entries far apart in size lose no accuracy: every term is a ratio's log.
    """
    table = jnp.asarray(table)
    table = table if jnp.issubdtype(table.dtype, jnp.floating) else table.astype(float)
    total = jnp.sum(table, axis=(-2, -1), keepdims=True)
    joint = table / jnp.where(total > 0, total, 1.0)
    rows = jnp.sum(joint, axis=-1, keepdims=True)
    columns = jnp.sum(joint, axis=-2, keepdims=True)
    inside = joint > 0
    ratio = jnp.where(inside, joint, 1.0) / jnp.where(inside, rows * columns, 1.0)
    return jnp.maximum(jnp.sum(joint * jnp.log2(ratio), axis=(-2, -1)), 0.0)


def xlog2x(x):
    """x log2(x) for x >= 0, elementwise, 0 at 0; float32 values use a short polynomial (error of the log 1e-7)."""
    if x.dtype == jnp.float32:
        return x * _fast_log2(x)
    return x * jnp.log2(jnp.where(x > 0, x, 1.0))


def _fast_log2(x):
    """log2 of normal positive float32 values, -127 at 0: exponent bits plus a polynomial, which vectorises."""
    bits = lax.bitcast_convert_type(x, jnp.int32)
    exponent = (bits - 0x3F3504F3) >> 23  # offset by sqrt(1/2): the mantissa then lies in [sqrt(1/2), sqrt(2))
    shifted = lax.bitcast_convert_type(bits - (exponent << 23), jnp.float32) - 1.0
    series = jnp.float32(_LOG2_POLYNOMIAL[-1])
    for coefficient in _LOG2_POLYNOMIAL[-2::-1]:
        series = series * shifted + jnp.float32(coefficient)
    return exponent.astype(jnp.float32) + shifted * series


def gain_of_one_more(count: int) -> float:
    """h(a) = a log2 a - (a - 1) log2(a - 1), h(0) = h(1) = 0: what one more record adds to x log2 x (host float)."""
    if count <= 1:
        return 0.0
    # a log2 a - (a-1) log2(a-1) = log2 a - (a - 1) log2(1 - 1/a), without cancellation.
    return math.log2(count) - (count - 1) * math.log1p(-1.0 / count) / math.log(2.0)
