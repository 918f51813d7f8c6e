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

from jaxdp._base.bounded import power_of_two
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
    """q(i, j | S): the largest |S| of a feature of i and a feature of j, less 2.25 null sds.

    values (n, d); centre, scale: (d,), public or released. Features: value and size; of a column of unordered levels an
    indicator of each. Order of the records: drawn at random for the empty set, by the value of one column, along a
    Hilbert curve for two.
    unordered: levels of each column of unordered ones, whose values are equally spaced on [-1, 1]; 0 for the others.
    """

    def __init__(self, values, centre: np.ndarray, scale: np.ndarray, unordered: Sequence[int] = ()):
        count, self._num_columns = values.shape
        levels = tuple(unordered) or (0,) * self._num_columns
        with jax.enable_x64(True):
            given = jnp.asarray(values, float)
            self._u, self._features = _standardised(given, jnp.asarray(centre), jnp.asarray(scale))
            if any(levels):
                self._features = _with_indicators(given, self._features, levels)
            self._priority = neighbour_order.priorities(None, count)
        self._k = _num_neighbors(count)
        self._chance = null_level(count)
        self.looks = (self._features.shape[1] // self._num_columns) ** 2  # pairs of features of a pair of columns

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
        padded = rows + rows[:1] * (power_of_two(len(rows)) - len(rows))  # few shapes, few programs
        with jax.enable_x64(True):
            order = _order(self._u[:, list(given)], self._priority)
            found = _largest(self._features, order, jnp.asarray(padded), self._k, self._num_columns)
        return np.asarray(found, float)[: len(rows)] - self._chance


def _num_neighbors(num_records: int) -> int:
    return min(next(k for below, k in NEIGHBORS if num_records < below), MAX_NEIGHBORS)


def null_level(num_records: int) -> float:
    """What is subtracted from every sum: 2.25 null standard deviations."""
    return CHANCE * math.sqrt(bands.null_variance(num_records, _num_neighbors(num_records)))


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


@functools.partial(jax.jit, static_argnames=("levels",))
def _with_indicators(values, features, levels: tuple[int, ...]):
    """The features of `_standardised`, where columns of unordered levels have an indicator of each level instead.

    (n, m d), m the most levels, at least 2; columns of fewer features have zeros in the place of the rest.
    """
    depth, most = len(levels), max(2, *levels)
    codes = jnp.round((values + 1.0) * 0.5 * (jnp.maximum(jnp.asarray(levels), 2) - 1)[None])
    blocks = []
    for feature in range(most):
        indicators = (codes == feature).astype(features.dtype)
        own = features[:, feature * depth : (feature + 1) * depth] if feature < 2 else jnp.zeros_like(indicators)
        blocks.append(jnp.where((jnp.asarray(levels) > 0)[None], indicators, own))
    return jnp.concatenate(blocks, axis=1)


@functools.partial(jax.jit, static_argnames=("num_neighbors", "depth"))
def _largest(features, order, rows, num_neighbors: int, depth: int):
    """The largest |S| of any feature of each row's column and any feature of each column, (rows, d).

    features: (n, m d), the first feature of all d columns, the second of all, to the m-th.
    """
    each = features.shape[1] // depth
    (ordered,) = neighbour_order.in_order(order, features)
    chosen = ordered[:, jnp.concatenate([rows + depth * feature for feature in range(each)])]

    def near(first, second):
        del second
        return jnp.ones(ordered[first].shape[:1])[:, None]

    sums = jnp.abs(bands.band_sum(chosen, ordered, near, num_neighbors, (WIDTH, WIDTH)))
    return jnp.max(sums.reshape(each, len(rows), each, depth), axis=(0, 2))
