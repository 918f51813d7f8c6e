"""Tables of many small sets of columns of a wide data set, exact, without a joint table of all columns.

Every level but the last of every column is one bit per record. A table needs the counts of conjunctions of such
bits only: cells that hold a last level follow by subtraction from the tables of fewer columns (Moebius
inversion), and every conjunction is counted once, by AND and popcount, for all sets that share it.
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Iterable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.statistics import contingency

WORD_BITS = 64
BLOCK_WORDS = 512  # 4 KiB of each bitmap: the blocks of all bitmaps stay in the second-level cache
CHUNK = 256  # conjunctions per inner step
CAPACITY = 64  # chunks per call of the compiled program
MOST_CORNERS = 512  # of one set; beyond, one pass over the records is cheaper than ANDs
CODE_BITS = 62


class Bitmaps:
    """The records of coded columns as bits. Private, like the data.

    codes: (n, d) integers, or an iterable of such chunks (the bits of the whole data are kept, n d/8 bytes
    per level but one). levels: public number of levels of each column; codes outside fall into the nearest.
    """

    def __init__(self, codes, levels: Sequence[int]):
        self.levels = tuple(int(count) for count in levels)
        chunks = [codes] if hasattr(codes, "shape") else codes
        self._columns, packed = _pack(chunks, self.levels)
        self.num_records = self._columns.shape[1]
        self._pages = _paged(packed)
        self._first_item = np.concatenate([[0], np.cumsum(np.maximum(np.array(self.levels, int) - 1, 0))])
        self._forget()

    def _forget(self) -> None:
        self._pool = np.array([self.num_records], np.int64)
        # the empty set is known from the start: its only count is n
        self._known, self._offset = np.zeros(1, np.int64), np.zeros(1, np.int64)

    def emptied(self) -> Bitmaps:
        """The same bits, with every count forgotten."""
        fresh = copy.copy(self)
        fresh._forget()
        return fresh

    def tables(self, sets: np.ndarray) -> np.ndarray:
        """Tables of many sets of columns, int64 (len(sets), *levels).

        sets: (m, k) different columns in each row, increasing; all rows must have the same tuple of levels.
        """
        sets = np.asarray(sets, np.int64)
        shape = tuple(self.levels[k] for k in sets[0])
        contingency.check_cells(shape)
        if not self._by_bits(shape):
            return np.stack([self._count_records(row, shape) for row in sets])
        codes = self._codes(sets)
        unique, first, inverse = np.unique(codes[:, -1], return_index=True, return_inverse=True)
        if unique.size == len(sets):
            return self._assemble(sets, codes, shape)
        return self._assemble(sets[first], codes[first], shape)[inverse]

    def prepare(self, groups: Sequence[np.ndarray]) -> None:
        """Counts what `tables` of all these groups of sets will need, in few large calls."""
        wanted: dict[tuple[int, ...], list[tuple[np.ndarray, np.ndarray]]] = {}
        for sets in groups:
            shape = tuple(self.levels[k] for k in sets[0])
            if not self._by_bits(shape):
                continue
            codes = self._codes(sets)
            missing = self._known[self._places(codes)] != codes
            for number in np.flatnonzero(missing.any(axis=0)):
                axes = _axes(len(shape))[number]
                rows = missing[:, number]
                corner = tuple(shape[axis] - 1 for axis in axes)
                wanted.setdefault(corner, []).append((codes[rows, number], sets[rows][:, axes]))
        by_size: dict[int, list[tuple[np.ndarray, np.ndarray, int]]] = {}
        for corner, parts in wanted.items():
            code, first = np.unique(np.concatenate([part[0] for part in parts]), return_index=True)
            chosen = np.concatenate([part[1] for part in parts])[first]
            by_size.setdefault(len(corner), []).append((code, self._items(chosen, corner), math.prod(corner)))
        for new in by_size.values():
            self._count(new)

    def _by_bits(self, shape: tuple[int, ...]) -> bool:
        """Whether tables of this shape come from bitmaps: few corners, and a code of a set fits in 64 bits."""
        few = math.prod(max(count - 1, 1) for count in shape) <= MOST_CORNERS
        return few and len(shape) * math.log2(len(self.levels) + 1) < CODE_BITS

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
        """Corner counts, with "any level" in the place of every last level; then subtract along each axis."""
        place = self._places(codes)
        if not np.array_equal(self._known[place], codes):
            self.prepare([sets])
            place = self._places(codes)
        subset, inside = _corner_of_cells(shape)
        result = self._pool[self._offset[place][:, subset] + inside].reshape(len(sets), *shape)
        for axis, count in enumerate(shape, start=1):
            lead = (slice(None),) * axis
            for level in range(count - 1):
                result[(*lead, -1)] -= result[(*lead, level)]
        return result

    def _items(self, sets: np.ndarray, corner: tuple[int, ...]) -> np.ndarray:
        """Bitmaps of every conjunction of non-last levels, (len(sets) prod(corner), columns)."""
        items = np.zeros((len(sets), *corner, len(corner)), np.int32)
        for axis, count in enumerate(corner):
            along = [1] * len(corner)
            along[axis] = count
            start = self._first_item[sets[:, axis]].reshape(-1, *[1] * len(corner))
            items[..., axis] = start + np.arange(count).reshape(along)
        return items.reshape(-1, len(corner))

    def _count(self, new: Sequence[tuple[np.ndarray, np.ndarray, int]]) -> None:
        """Adds counts of conjunctions of one size: (codes of sets, their items, conjunctions per set)."""
        end = self._pool.size
        counts = count_conjunctions(self._pages, np.concatenate([items for _, items, _ in new]))
        self._pool = np.concatenate([self._pool, counts])
        codes, offsets = [self._known], [self._offset]
        for code, items, size in new:
            codes.append(code)
            offsets.append(end + size * np.arange(code.size))
            end += len(items)
        known = np.concatenate(codes)
        order = np.argsort(known)
        self._known, self._offset = known[order], np.concatenate(offsets)[order]

    def _count_records(self, columns, shape: tuple[int, ...]) -> np.ndarray:
        """One pass over the records, for sets of many cells."""
        code = np.zeros(self.num_records, np.int32)
        for k, count in zip(columns, shape, strict=True):
            np.multiply(code, np.int32(count), out=code)
            np.add(code, self._columns[k], out=code)
        return np.bincount(code, minlength=math.prod(shape)).reshape(shape)


@functools.cache
def _axes(size: int) -> tuple[tuple[int, ...], ...]:
    """All subsets of the axes: bit k of the position says whether axis k is in it."""
    return tuple(tuple(k for k in range(size) if number >> k & 1) for number in range(1 << size))


@functools.cache
def _corner_of_cells(shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """For each cell, the subset of axes where it has no last level, and its position among that subset's corners."""
    levels = np.indices(shape).reshape(len(shape), -1)
    subset, inside = np.zeros(levels.shape[1], np.int64), np.zeros(levels.shape[1], np.int64)
    for axis, count in enumerate(shape):
        within = levels[axis] < count - 1
        subset += within << axis
        inside = np.where(within, inside * (count - 1) + levels[axis], inside)
    return subset, inside


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


@jax.jit
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
