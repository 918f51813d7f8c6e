"""Sums of a score test: blocks of variants at a time, so that many variants need no wide copy of themselves.

Variants x (n, K) hold allele counts less one, -1, 0, 1 (dosages between them); what is missing is NaN or below -1.5.
Theory: docs/theory/score_test.md.
"""

import jax
import jax.numpy as jnp

from jaxdp.statistics import moments

BLOCK = 512  # variants that are floats at a time
MISSING_BELOW = -1.5
# How far replacing one record moves the sums of h r and of h^2, also within bins (docs/theory/score_test.md#bins).
MOVES, SPREAD_MOVES = 2.0, 1.0
ROUNDING = 2.0**-11  # twice what rounding to the grid does to a sum over bins
MOVES_WITHIN, SPREAD_MOVES_WITHIN = 8.0 + ROUNDING, 4.0 + ROUNDING


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


def scores(x, lines, design, residuals, bins=None, known=None):
    """For each variant: sum of h r, sum of (h r)^2, sum of h^2, each (K,); the first and the last within bins.

    h = clip(x - design lines_j, -1, 1), 0 where the variant is missing or the record is not known. lines: (K, d).
    design: (n, d). known: mask (n,) of the records with a phenotype; the others count nowhere. Default: all.
    residuals: r (n,) within [-1, 1]. h, r and h r are rounded to the grid: the sums are exact in float64.
    bins: the records' bins (n,) and the number of bins: from the sums of h r and of h^2 is taken, for each bin, its
    number of records times the product of both means, rounded to the grid.
    """
    fitted = jnp.matmul(design, lines.T, precision="highest")
    known = jnp.ones_like(residuals, bool) if known is None else known
    h = jnp.where(present(x) & known[:, None], moments.on_grid(values(x, fitted.dtype) - fitted), 0.0)
    product = moments.on_grid(h * residuals[:, None])
    found = {
        "scores": jnp.sum(product, axis=0),
        "squares": jnp.sum(product**2, axis=0),
        "spread": jnp.sum(h**2, axis=0),
    }
    if bins is None:
        return found
    size, of_h, of_r = (jax.ops.segment_sum(part, *bins) for part in (known.astype(h.dtype), h, residuals))
    means = of_h / jnp.maximum(size, 1.0)[:, None]
    found["scores"] -= jnp.sum(_rounded(means * of_r[:, None]), axis=0)
    found["spread"] -= jnp.sum(_rounded(means * of_h), axis=0)
    return found


def _rounded(values):
    return jnp.round(values * moments.GRID) / moments.GRID
