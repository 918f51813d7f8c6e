"""The best segmentation of one axis, for many tables at once: OPTIMIZEAXIS as a max-plus recurrence.

Theory: docs/theory/mic.md#segments. Symbols: T[p, q] master bins by fixed bins, A[t] = counts of the first t
master bins, v[s, t] = gain of the segment of master bins s..t, F_k[t] = best gain of at most k segments up to t.
"""

import functools
import math

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxdp.statistics.tables.information import xlog2x

ROWS = 2  # fixed bins per step of the accumulation: fewer passes over the gains
_RUN = 8  # master bins whose sums are unrolled
_STEP_COST = 500  # logarithms that take as long as starting one step of a loop
_SIDES = range(4, 129)
_UNROLLED, _NARROW = 8, 4  # a reduction over more rows is not vectorised, which few lanes are not anyway
_BLOCK = 6144  # gains of a block that stay in the nearest cache, with their rows


def cumulative(table, dtype=None):
    """A[t, q, b] = counts of the first t master bins; table (p, q, b) to (p + 1, q, b), of `dtype` if given."""
    dtype = table.dtype if dtype is None else dtype
    count = table.shape[0]
    runs = -(-count // _RUN)
    table = jnp.pad(table, ((0, runs * _RUN - count), (0, 0), (0, 0)))

    def add(i, found):
        sums, last = found
        run = lax.dynamic_slice_in_dim(table, i * _RUN, _RUN)
        for j in range(_RUN):
            last = last + run[j].astype(dtype)
            sums = lax.dynamic_update_index_in_dim(sums, last, i * _RUN + j + 1, 0)
        return sums, last

    start = jnp.zeros((runs * _RUN + 1, *table.shape[1:]), dtype)
    return lax.fori_loop(0, runs, add, (start, start[0]))[0][: count + 1]


def pad_rows(table):
    """Zero columns up to a multiple of `ROWS`: empty fixed bins change nothing."""
    return jnp.pad(table, ((0, 0), (0, -table.shape[1] % ROWS), (0, 0)))


def best_information(sums, parts: int, used=(None, None, None)):
    """Largest mutual information of at most 2, ..., parts segments, in bits: array (parts - 1, b).

    sums: cumulative counts or masses (p + 1, q, b) with the batch last, q a multiple of `ROWS`.
    parts: most segments, static. used: fixed bins, segments and master bins in use (may be traced), the rest
    being zero; entries beyond the segments in use mean nothing. An empty table has information 0.
    """
    whole_grid = (sums.shape[1], parts, sums.shape[0] - 1)
    rows, levels, bins = whole(*(size if own is None else own for size, own in zip(whole_grid, used, strict=True)))
    steps = -(-rows // ROWS)
    head, tail, total = _first_and_last(sums, steps)
    first = xlog2x(total[-1]) - jnp.sum(lax.optimization_barrier(xlog2x(sums[-1])), axis=0)
    if parts == 2:
        best = largest(head + tail)[None]
    else:
        best = _recurrence(sums, total, head, tail, steps, levels - 1, bins, parts)
    return jnp.maximum(first[None] + best, 0.0) / jnp.where(total[-1] > 0, total[-1], 1.0)[None]


def whole(*numbers):
    """Indices of one type, int32, whether or not 64-bit numbers are enabled."""
    return tuple(jnp.asarray(number, jnp.int32) for number in numbers)


def largest(values):
    """Maximum over the first axis, by halves: a reduction would not be vectorised."""
    while values.shape[0] > 1:
        half = -(-values.shape[0] // 2)
        values = jnp.maximum(values[:half], values[-half:])
    return values[0]


def _first_and_last(sums, steps):
    """Gains of the segments (0, t) and (t, p) alone, all that two segments need, and the counts of all fixed bins."""

    def add(i, found):
        rows = lax.dynamic_slice_in_dim(sums, ROWS * i, ROWS, axis=1)
        head, tail, total = found
        for r in range(ROWS):
            head, tail = head + xlog2x(rows[:, r]), tail + xlog2x(rows[-1:, r] - rows[:, r])
            total = total + rows[:, r]
        return head, tail, total

    none = jnp.zeros((sums.shape[0], sums.shape[2]), sums.dtype)
    head, tail, total = lax.fori_loop(0, steps, add, (none, none, none))
    return head - xlog2x(total), tail - xlog2x(total[-1:] - total), total


def _recurrence(sums, total, head, tail, steps, levels, bins, parts: int):
    """F_k[p] for k = 2, ..., parts, from F_k[t] = max_s F_(k-1)[s] + v[s, t].

    v is made and used in square blocks of the points 1, ..., p - 1, column by column of blocks, so that a block
    stays in the nearest cache and F at its rows is final: all blocks above and to the left come before it.
    """
    side = _side(sums.shape[0] - 1, sums.shape[2])
    across = -(-(sums.shape[0] - 2) // side)
    sums, total, head, tail = (_points(values, across * side) for values in (sums, total, head, tail))
    order = jnp.asarray(np.array([(s, t) for t in range(across) for s in range(t + 1)], np.int32))
    below = np.where(np.arange(side)[:, None] <= np.arange(side)[None, :], 0.0, -np.inf)[:, :, None]

    def gains(s, t):
        def add(i, found):
            starts = lax.dynamic_slice(sums, whole(s, ROWS * i, 0), (side, ROWS, sums.shape[2]))
            ends = lax.dynamic_slice(sums, whole(t, ROWS * i, 0), (side, ROWS, sums.shape[2]))
            for r in range(ROWS):
                found = found + xlog2x(ends[None, :, r] - starts[:, None, r])
            return found

        starts, ends = (lax.dynamic_slice_in_dim(total, first, side) for first in (s, t))
        allowed = jnp.where(s == t, below.astype(sums.dtype), 0.0)
        return lax.fori_loop(0, steps, add, allowed - xlog2x(ends[None] - starts[:, None]))

    def visit(number, best):
        s, t = order[number, 0] * side, order[number, 1] * side
        found = gains(s, t)

        def extend(k, best):
            before = lax.dynamic_slice(best, whole(k - 1, s, 0), (1, side, best.shape[2]))[0]
            here = lax.dynamic_slice(best, whole(k, t, 0), (1, side, best.shape[2]))[0]
            if side > _UNROLLED:
                here = jnp.maximum(here, jnp.max(before[:, None] + found, axis=0))
            else:  # spelt out: a reduction over the rows of the block would not be vectorised
                here = functools.reduce(jnp.maximum, [before[i][None] + found[i] for i in range(side)], here)
            return lax.dynamic_update_slice(best, here[None], whole(k, t, 0))

        return lax.fori_loop(1, levels, extend, best)

    blocks = -(-(bins - 1) // side)
    start = jnp.full((parts - 1, *head.shape), -jnp.inf, head.dtype).at[0].set(head)
    best = lax.fori_loop(0, blocks * (blocks + 1) // 2, visit, start)
    return largest(jnp.swapaxes(best + tail[None], 0, 1))


def _points(values, count: int):
    """Points 1, ..., count; those beyond the last one repeat it, which adds empty segments only."""
    missing = max(0, count + 1 - values.shape[0])
    return jnp.pad(values, ((0, missing), *[(0, 0)] * (values.ndim - 1)), mode="edge")[1 : count + 1]


def _side(master: int, batch: int) -> int:
    """Side of a block, for the least work: small blocks leave out more of s > t, large ones take fewer steps."""

    def work(side):
        across = math.ceil((master - 1) / side)
        return across * (across + 1) * (side * side * batch + _STEP_COST)

    most = max(_SIDES[0], math.isqrt(_BLOCK // batch) if batch < _BLOCK else 0)
    return min((side for side in _SIDES if side <= (most if batch <= _NARROW else min(most, _UNROLLED))), key=work)
