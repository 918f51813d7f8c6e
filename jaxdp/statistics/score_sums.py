"""Sums of a score test: blocks of variants at a time, so that many variants need no wide copy of themselves.

Variants x (n, K) hold allele counts less one, -1, 0, 1 (dosages between them); what is missing is NaN or below -1.5.
Theory: docs/theory/score_test.md.
"""

import jax
import jax.numpy as jnp

from jaxdp.statistics import moments

BLOCK = 512  # variants that are floats at a time
MISSING_BELOW = -1.5


def present(x):
    """Where a variant was read, bool; of a column's raw values."""
    return x > MISSING_BELOW  # NaN compares false


def values(x, dtype):
    """Variants within [-1, 1] on the grid of exact sums; a missing one counts as 0."""
    return jnp.where(present(x), moments.on_grid(x.astype(dtype)), 0.0)


def in_blocks(make, x):
    """make(block of columns (n, k)) -> pytree of (k, ...), for all columns of x: (K, ...)."""
    num = x.shape[1]
    if num <= BLOCK:
        return make(x)
    count = -(-num // BLOCK)
    starts = jnp.minimum(jnp.arange(count) * BLOCK, num - BLOCK)
    made = jax.lax.map(lambda start: make(jax.lax.dynamic_slice_in_dim(x, start, BLOCK, 1)), starts)
    column = jnp.arange(num)
    block = jnp.minimum(column // BLOCK, count - 1)
    place = column - starts[block]
    return jax.tree.map(lambda part: part[block, place], made)


def products(x, weights):
    """Sum over records of x_ij w_il: (K, w), for weights (n, w) on the grid."""

    def block(columns):
        return jnp.matmul(values(columns, weights.dtype).T, weights, precision="highest")

    return in_blocks(block, x)


def scores(x, lines, design, residuals):
    """For each variant: sum of h r, sum of (h r)^2, sum of h^2, each (K,).

    h = clip(x - design lines_j, -1, 1), 0 where the variant is missing. lines: (K, d). design: (n, d).
    residuals: r (n,) within [-1, 1]. h, r and h r are rounded to the grid: the sums are exact in float64.
    """
    fitted = jnp.matmul(design, lines.T, precision="highest")
    h = jnp.where(present(x), moments.on_grid(values(x, fitted.dtype) - fitted), 0.0)
    product = moments.on_grid(h * residuals[:, None])
    return {
        "scores": jnp.sum(product, axis=0),
        "squares": jnp.sum(product**2, axis=0),
        "spread": jnp.sum(h**2, axis=0),
    }
