"""The best segmentation of one axis, for many tables at once: OPTIMIZEAXIS as a max-plus recurrence.

Formula sheet on MIC, section 4.4. Symbols: T[p, q] master cells by fixed cells, A = cumulative counts,
v[s, t] = `gain` of the segment of master cells s..t, F_k[t] = best total gain of at most k segments up to t.
"""

import functools

import jax.numpy as jnp
from jax import lax

from jaxdp.statistics.information import xlog2x

ROWS = 2  # fixed cells per step of the accumulation: fewer passes over the gains


def cumulative(table):
    """A[t, q, b] = counts of the first t master cells; table (p, q, b) to (p + 1, q, b)."""
    steps = jnp.tril(jnp.ones((table.shape[0] + 1, table.shape[0]), table.dtype), -1)
    return jnp.einsum("tp,pqb->tqb", steps, table, precision=lax.Precision.HIGHEST)


def pad_rows(table):
    """Zero columns up to a multiple of `ROWS`: empty fixed cells change nothing."""
    return jnp.pad(table, ((0, 0), (0, -table.shape[1] % ROWS), (0, 0)))


def best_information(sums, parts: int, fixed=None):
    """Largest mutual information of at most 2, ..., parts segments, in bits: array (parts - 1, b).

    sums: cumulative counts or masses (p + 1, q, b) with the batch last, q a multiple of `ROWS`.
    parts: most segments, static. fixed: fixed cells in use (may be traced), the rest being zero.
    An empty table has information 0.
    """
    steps = -(-(sums.shape[1] if fixed is None else fixed) // ROWS)
    total = jnp.sum(sums[-1], axis=0)
    first = xlog2x(total) - jnp.sum(xlog2x(sums[-1]), axis=0)
    gains = _first_and_last(sums, steps) if parts == 2 else _segment_gains(sums, steps)
    best = _extend(*gains) if parts == 2 else _recurrence(gains, parts)
    return jnp.maximum(first[None] + best, 0.0) / jnp.where(total > 0, total, 1.0)[None]


def _first_and_last(sums, steps):
    """Gains of the segments (0, t) and (t, p) alone, all that two segments need."""

    def add(i, gains):
        rows = lax.dynamic_slice_in_dim(sums, ROWS * i, ROWS, axis=1)
        for r in range(ROWS):
            gains = (gains[0] + xlog2x(rows[:, r]), gains[1] + xlog2x(rows[-1:, r] - rows[:, r]))
        return gains

    total = jnp.sum(sums, axis=1)
    return lax.fori_loop(0, steps, add, (-xlog2x(total), -xlog2x(total[-1:] - total)))


def _extend(head, tail):
    """Best gain of one more segment that ends at the last master cell, as a (1, b) array."""
    return jnp.max(head + tail, axis=0)[None]


def _segment_gains(sums, steps):
    """v[s, t] for s <= t, -inf elsewhere, as row blocks [s0..s1, s0..p] that leave out most of s > t."""
    points = sums.shape[0]
    total = jnp.sum(sums, axis=1)
    width = points if points <= 40 else -(-points // 3)  # fewer blocks compile faster
    spans = [(start, min(start + width, points)) for start in range(0, points, width)]

    def difference(values, span):
        return jnp.maximum(values[None, span[0] :] - values[span[0] : span[1], None], 0.0)

    def start(span):
        ordered = jnp.arange(span[0], span[1])[:, None] <= jnp.arange(span[0], points)[None, :]
        return jnp.where(ordered[..., None], -xlog2x(difference(total, span)), -jnp.inf)

    def add(i, gains):
        rows = lax.dynamic_slice_in_dim(sums, ROWS * i, ROWS, axis=1)
        terms = [[xlog2x(difference(rows[:, r], span)) for r in range(ROWS)] for span in spans]
        return tuple(functools.reduce(jnp.add, term, gain) for gain, term in zip(gains, terms, strict=True))

    gains = lax.fori_loop(0, steps, add, tuple(start(span) for span in spans))
    # Fused into the reductions below, the logarithms would run once per use and unvectorised.
    return list(zip(spans, lax.optimization_barrier(gains), strict=True))


def _recurrence(gains, parts: int):
    """F_k[p] for k = 2, ..., parts, from F_k[t] = max_s F_(k-1)[s] + v[s, t]."""
    tail = jnp.concatenate([gain[:, -1] for _, gain in gains])

    def step(best, _):
        return lax.optimization_barrier(_step(best, gains)), jnp.max(best + tail, axis=0)

    best, ends = lax.scan(step, gains[0][1][0], None, length=parts - 2)
    return jnp.concatenate([ends, _extend(best, tail)])


def _step(best, gains):
    rows = [
        jnp.pad(jnp.max(best[s0:s1, None] + gain, axis=0), ((s0, 0), (0, 0)), constant_values=-jnp.inf)
        for (s0, s1), gain in gains
    ]
    return functools.reduce(jnp.maximum, rows)
