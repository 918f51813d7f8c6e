"""Contrasts of neighbouring records that no linear trend in z can move.

In a window of m records that follow each other along a curve through the box, a = unit vector orthogonal to (1, z);
T = sum over windows of q phi, phi = psi(a'x/c) psi(a'y/c), Q = sum over windows of q phi^2
(docs/theory/ordered_neighbours.md#contrast). Arrays (m, windows) hold the r-th record of every window in row r.
"""

import functools

import jax
import jax.numpy as jnp

from jaxdp.statistics.neighbours.bands import products
from jaxdp.statistics.neighbours.soft_sign import soft_sign, squared

RIDGE = 1e-7  # squared length below which a direction counts as none, relative to the rows' squared lengths


WEIGHT_OF_SQUARES = 0.5  # of Q beside T: the largest that leaves their joint L1 bound that of T alone (#squares)


def contrast_sums(x, y, z, scores, kept, widths, symmetric: bool):
    """T and Q/2 for all pairs of columns, (p, q, 2).

    x (n, p), y (n, q), z (n, d), scores (n,): finite, in the order of the keys; scores: of the records' priorities.
    kept: weight of each window (n - m + 1,) in [0, 1]. widths: c of x and y.
    """
    contrast = symmetric_contrast if symmetric else simplex_contrast
    size = window_size(z.shape[1], symmetric)
    weights = contrast([windows(z[:, j], size) for j in range(z.shape[1])], windows(scores, size))
    sides = []  # psi of the contrasts of x (windows, p) and of y (windows, q)
    for values, width in ((x, widths[0]), (y, widths[1])):
        applied = [dot(weights, windows(values[:, j], size)) for j in range(values.shape[1])]
        sides.append(soft_sign(jnp.stack(applied, axis=1), width))
    kept = kept.astype(x.dtype)[:, None]
    squares = products(squared(sides[0]) * kept, squared(sides[1]))
    return jnp.stack([products(sides[0] * kept, sides[1]), WEIGHT_OF_SQUARES * squares], axis=-1)


def window_size(depth: int, symmetric: bool) -> int:
    """Records in a window: d + 2, or 2 (d + 1) in the symmetric form."""
    return 2 * (depth + 1) if symmetric else depth + 2


def windows(values, size: int):
    """The windows of `size` records that follow each other: (size, n - size + 1) from values (n,)."""
    count = values.shape[0] - size + 1
    return jnp.stack([values[r : r + count] for r in range(size)])


def ranges(values, size: int):
    """Largest coordinate range within each window, (windows,); values (n, d)."""
    widest = [jnp.ptp(windows(values[:, j], size), axis=0) for j in range(values.shape[1])]
    return functools.reduce(jnp.maximum, widest)


def all_of(flags, size: int):
    """Whether every record of each window has the flag, (windows,); flags (n,) booleans."""
    return jnp.all(windows(flags, size), axis=0)


def closest(widths, count):
    """Whether each window is among the `count` with the smallest of these widths, ties in the order of the curve.

    Replacing a record changes at most 2m - 1 windows, and the order of all others stays; so at most 2m - 1 leave
    this set and as many enter it, whatever the widths are. count: a number, may be traced.
    """
    count = jnp.clip(jnp.floor(count), 1, widths.shape[0]).astype(int)
    last = jnp.sort(widths)[count - 1]
    nearer, tied = widths < last, widths == last
    return nearer | (tied & (jnp.cumsum(tied) <= count - jnp.sum(nearer)))


def simplex_contrast(axes, scores):
    """The unit vector orthogonal to 1 and to every axis of z, (m, windows); axes: d arrays, scores one (m, windows)."""
    return _residual(axes, scores, centred=True)


def symmetric_contrast(axes, scores):
    """A contrast of the differences of pairs (1, 2), (3, 4), ..., orthogonal to z; shapes as in `simplex_contrast`.

    a'x has a symmetric law under the hypothesis wherever the two records of each pair share their law.
    """
    parts = _residual([_differences(axis) for axis in axes], _differences(scores), centred=False)
    return jnp.stack([-parts, parts], axis=1).reshape(-1, parts.shape[1]) * 0.5**0.5


def _differences(values):
    return values[1::2] - values[::2]


def _residual(rows, start, centred: bool):
    """`start` projected off the rows (and off constants), of length one; 0 where nothing is left.

    Gram-Schmidt, each projection done twice: in a window whose records do not determine the direction, the
    start vector, made of the records' own priorities, picks one.
    """
    basis: list = []
    for row in rows:
        row = less_mean(row) if centred else row
        original = dot(row, row)
        for _ in range(2):
            row = _off(less_mean(row) if centred else row, basis)
        basis.append(_scaled(row, RIDGE**2 * original))
    for _ in range(3):
        start = _scaled(_off(less_mean(start) if centred else start, basis), 0.0)
    return start


def _scaled(row, least):
    """Columns of length one, or zero where their squared length is at most `least`."""
    length = dot(row, row)
    kept = length > least
    return _product(row, jnp.where(kept, 1.0 / jnp.sqrt(jnp.where(kept, length, 1.0)), 0.0)[None])


def less_mean(row):
    # XLA makes a product of a quotient by a constant
    return row - _product(jnp.sum(row, axis=0), 1.0 / row.shape[0])[None]


def _off(row, basis):
    for direction in basis:
        row = row - _product(dot(row, direction)[None], direction)
    return row


def dot(left, right):
    return jnp.sum(_product(left, right), axis=0)


def _product(a, b):
    """a b, never fused with the sum that follows.

    A window must give the same number wherever it stands in the array. Fused multiply-adds may be formed in one part
    of a compiled loop and not in another; a product that is rounded on its own (to 51 bits) cannot be part of one.
    """
    product = a * b
    return jax.lax.reduce_precision(product, 11, 51) if product.dtype == jnp.float64 else product
