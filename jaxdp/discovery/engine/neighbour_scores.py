"""Scores of pairs of columns by neighbours in the order of a conditioning set: values and sizes, bends included.

Symbols: u = (value - centre)/scale, psi(t) = clip(t/c, -1, 1), S = sum over pairs of neighbours
(docs/theory/neighbour_pc.md). Private, like the data.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.discovery.engine.skeleton import CIQuery
from jaxdp.independence.continuous.band_gcm import BAND_L1
from jaxdp.independence.continuous.band_order import NEIGHBORS
from jaxdp.statistics.neighbours import bands, hilbert, neighbour_order
from jaxdp.statistics.neighbours.soft_sign import finite

WIDTH = 0.5  # c, in units of the scale of a column
CHANCE = 2.25  # null sds below which a sum counts as nothing
MAX_NEIGHBORS = 4
MAX_SET = 2  # columns of a conditioning set whose order is drawn
SENSITIVITY = BAND_L1  # of every score, replace-one


class NeighbourScores:
    """q(i, j | S): the largest |S| of the value or size of i and the value or size of j, less 2.25 null sds.

    values (n, d); centre, scale: (d,), public or released. Order of the records: drawn at random for the empty set, by
    the value of one column, along a Hilbert curve for two.
    """

    def __init__(self, values, centre: np.ndarray, scale: np.ndarray):
        count, self._num_columns = values.shape
        with jax.enable_x64(True):
            self._u, self._features = _standardised(jnp.asarray(values, float), jnp.asarray(centre), jnp.asarray(scale))
            self._priority = neighbour_order.priorities(None, count)
        self._k = min(next(k for below, k in NEIGHBORS if count < below), MAX_NEIGHBORS)
        self._chance = CHANCE * math.sqrt(bands.null_variance(count, self._k))

    def __call__(self, queries: Sequence[CIQuery]) -> tuple[np.ndarray, np.ndarray]:
        """q of each query, float64, and zeros: no variation is looked at."""
        values, places = np.zeros(len(queries)), dict[tuple[int, ...], list[int]]()
        for place, (_, _, given) in enumerate(queries):
            places.setdefault(given, []).append(place)
        for given, asked in places.items():
            rows = _covering([queries[place][:2] for place in asked])
            found = self._sums(given, rows)
            for place in asked:
                i, j, _ = queries[place]
                values[place] = found[rows.index(i), j] if i in rows else found[rows.index(j), i]
        return values, np.zeros(len(queries))

    def _sums(self, given: tuple[int, ...], rows: list[int]) -> np.ndarray:
        """q of each of these columns and every column, (rows, d)."""
        padded = rows + rows[:1] * (_bucket(len(rows)) - len(rows))  # few shapes, few programs
        with jax.enable_x64(True):
            order = _order(self._u[:, list(given)], self._priority)
            found = _largest(self._features, order, jnp.asarray(padded), self._k)
        return np.asarray(found, float)[: len(rows)] - self._chance


def rounding(num_records: int) -> float:
    """Bound on the rounding error of a score: sums are exact, and one number is subtracted."""
    return 4.0 * num_records * bands.UNIT_ROUNDOFF


def _covering(pairs: list[tuple[int, int]]) -> list[int]:
    """Columns such that every pair holds one: a column that many pairs share comes first."""
    chosen: list[int] = []
    while pairs:
        places, counts = np.unique(np.array(pairs), return_counts=True)
        chosen.append(int(places[np.argmax(counts)]))
        pairs = [pair for pair in pairs if chosen[-1] not in pair]
    return chosen


def _bucket(count: int) -> int:
    return 1 << (count - 1).bit_length()


@jax.jit
def _standardised(values, centre, scale):
    """u (n, d) and the features u, |u| (n, 2 d), in units of a column's scale."""
    u = finite(finite(values - centre[None]) / scale[None])
    return u, jnp.concatenate([u, jnp.abs(u)], axis=1)


@jax.jit
def _order(u, priority):
    """Record numbers in the order of zero, one or two columns; ties by priority."""
    if u.shape[1] < 2:
        return neighbour_order.order_by_value(u[:, 0] if u.shape[1] else jnp.zeros(len(u)), priority)
    bits = min(neighbour_order.spare_bits(len(u)) // u.shape[1], hilbert.WORD_BITS)
    high, low = hilbert.hilbert_key(jax.scipy.stats.norm.cdf(u), bits)
    return neighbour_order.order_by_words(high, low, bits * u.shape[1], priority)


@functools.partial(jax.jit, static_argnames=("num_neighbors",))
def _largest(features, order, rows, num_neighbors: int):
    """The largest |S| of either feature of each row's column and either feature of each column, (rows, d)."""
    depth = features.shape[1] // 2
    (ordered,) = neighbour_order.in_order(order, features)
    chosen = ordered[:, jnp.concatenate([rows, rows + depth])]

    def near(first, second):
        del second
        return jnp.ones(ordered[first].shape[:1])[:, None]

    sums = jnp.abs(bands.band_sum(chosen, ordered, near, num_neighbors, (WIDTH, WIDTH)))
    return jnp.max(sums.reshape(2, len(rows), 2, depth), axis=(0, 2))
