"""Tables of many small sets of columns of a wide data set, exact, without a joint table of all columns.

Every level but the last of every column is one bit per record. A table needs the counts of conjunctions of such
bits only: cells that hold a last level follow by subtraction from the tables of fewer columns (Moebius
inversion), and every conjunction is counted once, by AND and popcount, for all sets that share it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base.kept_programs import kept_jit
from jaxdp.statistics.tables import contingency

WORD_BITS = 64
BLOCK_WORDS = 512  # 4 KiB of each bitmap: the blocks of all bitmaps stay in the second-level cache
CHUNK = 32  # conjunctions per inner step
CAPACITY = 128  # chunks per call of the compiled program
MAX_CORNERS = 512  # of one set; beyond, one pass over the records is cheaper than ANDs
CODE_BITS = 62


class Bitmaps:
    """The records of coded columns as bits. Private, like the data.

    codes: (n, d) integers, or an iterable of such chunks (the bits of the whole data are kept, n d/8 bytes
    per level but one). levels: public number of levels of each column; codes outside fall into the nearest.
    order: sets number the columns by their places in this permutation; by default as they come.
    """

    def __init__(self, codes, levels: Sequence[int], order: np.ndarray | None = None):
        given = np.array([int(count) for count in levels], np.int64)
        self._order = np.arange(given.size) if order is None else order
        self._levels = given[self._order]
        self.levels = tuple(self._levels.tolist())
        chunks = [codes] if hasattr(codes, "shape") else codes
        self._columns, packed = _pack(chunks, tuple(given.tolist()))
        self.num_records = self._columns.shape[1]
        self._pages = _paged(packed)
        self._first_item = np.concatenate([[0], np.cumsum(np.maximum(given - 1, 0))])[:-1][self._order]
        self._pool = np.array([self.num_records], np.int64)
        # the empty set is known from the start: its only count is n
        self._known, self._offset = np.zeros(1, np.int64), np.zeros(1, np.int64)

    def tables(self, sets: np.ndarray, shape: tuple[int, ...] | None = None) -> np.ndarray:
        """Tables of many sets of columns, int64 (len(sets), *shape).

        sets: (m, k) different columns in each row, increasing. shape: at least the levels of the columns along each
        axis, by default those of the first row. A column of fewer levels has its last one in the last place; the
        places before it that it lacks count 0.
        """
        sets = np.asarray(sets, np.int64)
        shape = tuple(self._levels[sets[0]].tolist()) if shape is None else shape
        contingency.check_cells(shape)
        codes = self._codes(sets)
        _, first, inverse = np.unique(codes[:, -1], return_index=True, return_inverse=True)
        if first.size == len(sets):
            return self._tables(sets, codes, shape)
        return self._tables(sets[first], codes[first], shape)[inverse]

    def _tables(self, sets: np.ndarray, codes: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        by_bits = self._by_bits(sets)
        if by_bits.all():
            return self._assemble(sets, codes, shape)
        result = np.zeros((len(sets), *shape), np.int64)
        if by_bits.any():
            result[by_bits] = self._assemble(sets[by_bits], codes[by_bits], shape)
        for row in np.flatnonzero(~by_bits):
            levels = self._levels[sets[row]].tolist()
            places = [[*range(count - 1), room - 1] for count, room in zip(levels, shape, strict=True)]
            result[row][np.ix_(*places)] = self._count_records(sets[row], tuple(levels))
        return result

    def prepare(self, groups: Sequence[np.ndarray]) -> None:
        """Counts what `tables` of all these groups of sets will need, in few large calls."""
        wanted: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {}
        by_size: dict[int, list[np.ndarray]] = {}
        for sets in groups:
            by_size.setdefault(sets.shape[1], []).append(sets)
        for size, parts in by_size.items():
            sets = np.concatenate(parts)
            sets = sets[self._by_bits(sets)]
            codes = self._codes(sets)
            missing = self._known[self._places(codes)] != codes
            for number in np.flatnonzero(missing.any(axis=0)):
                axes, rows = _axes(size)[number], missing[:, number]
                wanted.setdefault(len(axes), []).append((codes[rows, number], sets[rows][:, axes]))
        for new in wanted.values():
            code, first = np.unique(np.concatenate([part[0] for part in new]), return_index=True)
            self._count(code, np.concatenate([part[1] for part in new])[first])

    def _by_bits(self, sets: np.ndarray) -> np.ndarray:
        """Which tables come from bitmaps, bool (m,): few corners, and a code of a set fits in 64 bits."""
        fits = sets.shape[1] * math.log2(len(self.levels) + 1) < CODE_BITS
        return fits & (np.prod(np.maximum(self._levels[sets] - 1, 1), axis=1, dtype=float) <= MAX_CORNERS)

    def _codes(self, sets: np.ndarray) -> np.ndarray:
        """One integer for each subset of each row, (m, 2^k), in the order of `_axes`."""
        codes = np.zeros((len(sets), 1 << sets.shape[1]), np.int64)
        for axis in range(sets.shape[1]):
            half = 1 << axis
            codes[:, half : 2 * half] = codes[:, :half] * (len(self.levels) + 1) + sets[:, axis, None] + 1
        return codes

    def _places(self, codes: np.ndarray) -> np.ndarray:
        return np.minimum(np.searchsorted(self._known, codes), self._known.size - 1)

    def _assemble(self, sets: np.ndarray, codes: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """Corner counts, with "any level" in the last place of every axis; then subtract along each axis."""
        place = self._places(codes)
        if not np.array_equal(self._known[place], codes):
            self.prepare([sets])
            place = self._places(codes)
        # sets along the last axis: every step below goes through memory in order
        corners = self._levels[sets].T - 1
        same = (corners == corners[:, :1]).all()
        inside = np.zeros((1, 1 if same else len(sets)), np.int64)
        for axis, count in enumerate(shape):
            within = inside[:, None] * corners[axis, : inside.shape[1]] + np.arange(count - 1)[:, None]
            inside = np.concatenate([within, inside[:, None]], axis=1).reshape(-1, inside.shape[1])
        index = self._offset[place.T][_subset_of_cells(shape)]
        index += inside
        # levels that a column lacks point anywhere; they are set to zero below
        result = self._pool.take(index, mode="clip").reshape(*shape, len(sets))
        for axis, count in enumerate(shape):
            lead = (slice(None),) * axis
            for level in range(count - 1):
                part = result[(*lead, level)]
                has = corners[axis] > level
                if not has.all():
                    part *= has
                result[(*lead, -1)] -= part
        return np.ascontiguousarray(np.moveaxis(result, -1, 0))

    def _count(self, codes: np.ndarray, sets: np.ndarray) -> None:
        """Counts every conjunction of non-last levels of sets (m, size) of these codes."""
        corners = self._levels[sets] - 1
        ends = np.cumsum(np.prod(corners, axis=1))
        starts = np.concatenate([[0], ends[:-1]])
        row = np.repeat(np.arange(len(sets)), ends - starts)
        rest = np.arange(row.size) - starts[row]
        items = np.empty((row.size, sets.shape[1]), np.int32)
        for axis in reversed(range(sets.shape[1])):
            rest, level = np.divmod(rest, corners[row, axis])
            items[:, axis] = self._first_item[sets[row, axis]] + level
        known, offset = np.concatenate([self._known, codes]), np.concatenate([self._offset, self._pool.size + starts])
        self._pool = np.concatenate([self._pool, count_conjunctions(self._pages, items)])
        order = np.argsort(known)
        self._known, self._offset = known[order], offset[order]

    def _count_records(self, columns, shape: tuple[int, ...]) -> np.ndarray:
        """One pass over the records, for sets of many cells."""
        code = np.zeros(self.num_records, np.int32)
        for k, count in zip(columns, shape, strict=True):
            np.multiply(code, np.int32(count), out=code)
            np.add(code, self._columns[self._order[k]], out=code)
        return np.bincount(code, minlength=math.prod(shape)).reshape(shape)


@functools.cache
def _axes(size: int) -> tuple[tuple[int, ...], ...]:
    """All subsets of the axes: bit k of the position says whether axis k is in it."""
    return tuple(tuple(k for k in range(size) if number >> k & 1) for number in range(1 << size))


@functools.cache
def _subset_of_cells(shape: tuple[int, ...]) -> np.ndarray:
    """For each cell, the subset of axes along which it is not in the last place."""
    within = np.indices(shape).reshape(len(shape), -1) < np.array(shape)[:, None] - 1
    return (within << np.arange(len(shape))[:, None]).sum(axis=0)


def _pack(chunks: Iterable, levels: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Codes by column (d, n), in the smallest integers, and bits (items, words) of all levels but the last."""
    kind = np.min_scalar_type(max(max(levels, default=1) - 1, 0))
    columns = [contingency.codes_by_column(chunk, levels).astype(kind, copy=False) for chunk in chunks]
    whole = columns[0] if len(columns) == 1 else np.concatenate(columns, axis=1)
    words = -(-whole.shape[1] // WORD_BITS)
    bits = np.zeros((sum(max(count - 1, 0) for count in levels), 8 * words), np.uint8)
    item = 0
    for column, count in zip(whole, levels, strict=True):
        for level in range(count - 1):
            packed = np.packbits(column == level)
            bits[item, : packed.size] = packed
            item += 1
    return whole, bits.view(np.uint64)


def _paged(words: np.ndarray):
    """Bits (items, words) cut into blocks, (blocks, items, words of a block), zeros after the last record."""
    items, count = words.shape
    blocks = max(1, -(-count // BLOCK_WORDS))
    block = max(8, 8 * -(-count // (8 * blocks)))
    padded = np.zeros((items, blocks * block), np.uint64)
    padded[:, :count] = words
    with jax.enable_x64(True):
        return jnp.asarray(np.ascontiguousarray(padded.reshape(items, blocks, block).swapaxes(0, 1)))


def count_conjunctions(pages, items: np.ndarray) -> np.ndarray:
    """Records that have all items of each row: items (m, size) are bitmaps' numbers; int64 (m,)."""
    total, size = items.shape
    result = np.empty(total, np.int64)
    room = CAPACITY * CHUNK
    padded = np.zeros((room, size), np.int32)
    with jax.enable_x64(True):
        for start in range(0, total, room):
            part = items[start : start + room]
            padded[: len(part)] = part
            counts = _popcounts(pages, padded.reshape(CAPACITY, CHUNK, size), -(-len(part) // CHUNK))
            result[start : start + room] = np.asarray(counts).ravel()[: len(part)]
    return result


@kept_jit
def _popcounts(pages, items, num_chunks):
    """Counts of the first num_chunks chunks of conjunctions, int32 (CAPACITY, CHUNK); one program per size."""

    def add_block(page, counts):
        bits = jax.lax.dynamic_index_in_dim(pages, page, 0, keepdims=False)

        def add_chunk(chunk, counts):
            chosen = jax.lax.dynamic_index_in_dim(items, chunk, 0, keepdims=False)
            words = bits[chosen[:, 0]]
            for position in range(1, items.shape[2]):
                words = words & bits[chosen[:, position]]
            ones = jnp.sum(jax.lax.population_count(words).astype(jnp.int32), axis=1, dtype=jnp.int32)
            return counts.at[chunk].add(ones)

        return jax.lax.fori_loop(0, num_chunks, add_chunk, counts)

    start = jnp.zeros(items.shape[:2], jnp.int32)
    return jax.lax.fori_loop(0, pages.shape[0], add_block, start)
