"""Sums over records in whole numbers: equal however the records are cut into chunks, whatever order these come in.

A statistic that is a sum over records is taken in three steps: a map of each record by itself, rounded to a lattice;
sums of the lattice's whole numbers in int64; a function of the sums. Integers add up exactly, so that neither the
chunks nor their order can be seen in a sum. Theory: docs/theory/sums.md.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base.bounded import bounded_jit

if TYPE_CHECKING:
    from scipy import sparse

GRID = 2.0**17  # values in [-1, 1] are rounded to its multiples; products of two of them to 2^-34
GRID_ERROR = 2.0**-15  # of second moments within cells, per record (docs/theory/sums.md#grid)
MAX_RECORDS = 2**27  # sums of such products stay below 2^62
EXACT = 2.0**53  # float64 adds whole numbers up to here without rounding
EXACT_PRODUCTS = int(EXACT / GRID**2)  # so many products of two values on the grid add up without rounding
BLOCK_RECORDS = 1 << 17  # mapped at a time
ADDED_RECORDS = 1 << 14  # added up at a time: they stay in the cache
BUCKETS = 1 << 16  # of a table of places
MANY_CELLS = 1 << 13  # from here on adding up sums of blocks would take longer than making them
MIN_BLOCK = 1 << 8
MAX_CELLS = 1 << 20  # of sums by cell


def to_grid(values):
    """Values in [-1, 1] as whole numbers, in units of 1/GRID; a missing one counts as 0."""
    return jnp.round(jnp.clip(jnp.nan_to_num(values, nan=0.0), -1.0, 1.0) * GRID)


def added(query: Any, name: str, chunk: Any, num_records: int, add: Callable[..., Any], cells: int = 1) -> Any:
    """What `add` makes of the arrays that a method of the query returns, added up block by block.

    name: of the method, (chunk, num_records) -> arrays (n, ...), computed in float64. add: those of a block -> its
    sums. Blocks lie in the cache, and have few sizes, so that few programs are compiled.
    cells: of the sums; where they are many, all records are added at once.
    """
    if cells > MANY_CELLS:
        return add(*mapped(query, name, chunk, num_records))
    parts = _blocks(query, name, chunk, num_records)
    return functools.reduce(functools.partial(jax.tree.map, np.add), (add(*part) for part in parts))


def mapped(query: Any, name: str, chunk: Any, num_records: int) -> tuple[np.ndarray, ...]:
    """The arrays that a method of the query returns, (n, ...) each, computed block by block (`added`)."""
    return jax.tree.map(lambda *some: np.concatenate(some), *_blocks(query, name, chunk, num_records))


def _blocks(query: Any, name: str, chunk: Any, num_records: int) -> Iterator[Any]:
    rows = len(jax.tree.leaves(chunk)[0])
    with jax.enable_x64(True):
        for start in range(0, max(rows, 1), BLOCK_RECORDS):
            size = min(BLOCK_RECORDS, rows - start)
            room = max(MIN_BLOCK, 1 << (size - 1).bit_length())
            block = jax.tree.map(lambda leaf, at=start, n=size, m=room: _filled(leaf[at : at + n], m), chunk)
            found = _program(query, block, name, num_records)
            yield tuple(np.asarray(leaf)[:size] for leaf in (found if isinstance(found, tuple) else (found,)))


@functools.partial(bounded_jit, static_argnames=("name", "num_records"))
def _program(query, block, name: str, num_records: int):
    return getattr(query, name)(block, num_records)


def _filled(rows, room: int) -> np.ndarray:
    rows = np.asarray(rows)
    if np.issubdtype(rows.dtype, np.floating):
        rows = rows.astype(np.float64, copy=False)
    if len(rows) == room:
        return rows
    full = np.zeros((room, *rows.shape[1:]), rows.dtype)
    full[: len(rows)] = rows
    return full


def counts(cell: np.ndarray, num_cells: int) -> np.ndarray:
    """Records in each cell, int64 (K,)."""
    return np.bincount(cell, minlength=num_cells).astype(np.int64, copy=False)


def cell_sums(cell: np.ndarray, values: np.ndarray, num_cells: int, largest: float) -> np.ndarray:
    """Sums of whole numbers (n,) of at most `largest` within cells: int64 (K,), exact."""
    piece = int(EXACT / largest)
    total = np.zeros(num_cells, np.int64)
    for start in range(0, len(cell), piece):
        part = slice(start, start + piece)
        total += np.bincount(cell[part], weights=values[part], minlength=num_cells).astype(np.int64)
    return total


def cell_moments(cell: np.ndarray, x: np.ndarray, y: np.ndarray, num_cells: int) -> dict[str, np.ndarray]:
    """First and second moments within cells of columns x (n, p), y (n, q) on the grid; all int64.

    Returns `count` (K,), `x` (K, p), `y` (K, q), `xx` (K, p), `yy` (K, q) and `xy` (K, p, q), in units of 1/GRID and
    1/GRID^2.
    """
    p, q = x.shape[1], y.shape[1]
    ends = np.cumsum([1, p, q, p, q])
    total = np.zeros((num_cells, ends[-1] + p * q), np.int64)
    piece = ADDED_RECORDS if num_cells <= MANY_CELLS else EXACT_PRODUCTS
    room = np.ones((min(len(cell), piece), total.shape[1]))
    cell, places = cell.astype(np.int32, copy=False), None
    for start in range(0, len(cell), piece):
        rows = slice(start, start + piece)
        if places is None or places.shape[1] != len(cell[rows]):
            places = _one_place_each(len(cell[rows]), num_cells)
        places.indices = cell[rows]
        total += (places @ _products(x[rows], y[rows], room)).astype(np.int64)
    count, of_x, of_y, xx, yy, xy = np.split(total, ends, axis=1)
    return {"count": count[:, 0], "x": of_x, "y": of_y, "xx": xx, "yy": yy, "xy": xy.reshape(num_cells, p, q)}


def _products(x: np.ndarray, y: np.ndarray, room: np.ndarray) -> np.ndarray:
    """1, x, y, their squares and their products, side by side: (n, 1 + 2p + 2q + pq), written into `room`."""
    made, xs, ys = room[: len(x)], list(x.T), list(y.T)
    values = xs + ys
    pairs = [(one, one) for one in values] + [(one, other) for one in xs for other in ys]
    for place, column in enumerate(values, 1):
        made[:, place] = column
    for place, (one, other) in enumerate(pairs, 1 + len(values)):
        np.multiply(one, other, out=made[:, place])
    return made


def _one_place_each(rows: int, num_cells: int) -> sparse.csc_array:
    """A matrix (K, rows) with one 1 in each column: times columns of values it adds them within cells in one pass."""
    from scipy import sparse  # most tests never come here

    ends = np.arange(rows + 1, dtype=np.int32)
    return sparse.csc_array((np.ones(rows), np.zeros(rows, np.int32), ends), shape=(num_cells, rows))


def centred_moments(sums: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(sum (x - mean)(y - mean), sum (x - mean)^2, sum (y - mean)^2) within cells: (K, p, q), (K, p), (K, q), float64.

    Each is off by at most 6 n_b 2^-53 for a cell of n_b records (docs/theory/sums.md#rounding).
    """
    size = np.maximum(sums["count"], 1).astype(float)
    x, y = (sums[name].astype(float) / GRID for name in ("x", "y"))
    products = sums["xy"].astype(float) / GRID**2 - x[:, :, None] * y[:, None, :] / size[:, None, None]
    squares = [sums[name].astype(float) / GRID**2 for name in ("xx", "yy")]
    within = [np.maximum(square - mean**2 / size[:, None], 0.0) for square, mean in zip(squares, (x, y), strict=True)]
    return products, *within


def second_moments(values: np.ndarray, largest: float) -> np.ndarray:
    """values' values of whole numbers (n, p) of at most `largest`: int64 (p, p), exact."""
    piece = int(EXACT / largest**2)
    total = np.zeros((values.shape[1],) * 2, np.int64)
    for start in range(0, len(values), piece):
        part = values[start : start + piece]
        total += (part.T @ part).astype(np.int64)
    return total


def totals(values: np.ndarray, largest: float) -> np.ndarray:
    """Sums of the columns of whole numbers (n, p) of at most `largest`: int64 (p,), exact."""
    piece = int(EXACT / largest)
    total = np.zeros(values.shape[1], np.int64)
    for start in range(0, len(values), piece):
        part = values[start : start + piece]
        total += np.einsum("ij->j", part).astype(np.int64)
    return total


def places(grid: np.ndarray, values: np.ndarray) -> np.ndarray:
    """np.searchsorted(grid, values), left, of an increasing grid: by a table of equal buckets, many times faster."""
    first, steps, ends = _buckets(np.ascontiguousarray(grid, float).tobytes())
    low, high = float(grid[0]), float(grid[-1])
    bucket = values - low
    bucket *= BUCKETS / (high - low)
    found = first[np.clip(bucket, 0, BUCKETS - 1, out=bucket).astype(np.int32)]
    for _ in range(steps):
        found += ends[found] < values
    return found


@functools.lru_cache(maxsize=16)
def _buckets(grid: bytes) -> tuple[np.ndarray, int, np.ndarray]:
    """(first place that a value of each bucket can have, how many further ones it may have, the grid and infinity)."""
    ends = np.frombuffer(grid, float)
    edges = ends[0] + (ends[-1] - ends[0]) / BUCKETS * np.arange(-1, BUCKETS + 2)
    # one bucket of room on either side, for the rounding of a bucket's number
    first, last = np.searchsorted(ends, edges[:-3]), np.searchsorted(ends, edges[3:])
    first[0], last[-1] = 0, len(ends)
    return first, int(np.max(last - first)), np.append(ends, np.inf)


def joint_code(codes, levels) -> np.ndarray:
    """Mixed-radix code of each record from codes (n,) of each column, int64; NaN is 0, the rest is clipped."""
    code = np.zeros(len(codes[0]), np.int64)
    for column, count in zip(codes, levels, strict=True):
        code *= count
        code += as_codes(column, count)
    return code


def as_codes(values, levels: int) -> np.ndarray:
    """Codes 0, ..., levels - 1 as `contingency.as_codes` takes them, by NumPy."""
    values = np.asarray(values)
    if np.issubdtype(values.dtype, np.floating):
        return np.fmin(np.fmax(values, 0.0), levels - 1.0).astype(np.int64)  # fmax: 0 for NaN
    return np.clip(values.astype(np.int64), 0, levels - 1)


def table(columns, levels) -> np.ndarray:
    """Joint table of code columns, int64 of shape `levels`."""
    cells, rows = math.prod(levels), len(columns[0])
    step = ADDED_RECORDS if cells <= MANY_CELLS else max(rows, 1)
    total = np.zeros(cells, np.int64)
    for start in range(0, rows, step):
        total += counts(joint_code([column[start : start + step] for column in columns], levels), cells)
    return total.reshape(tuple(levels))


def too_large(cells: int, num_records: int = 0) -> str:
    """Why sums by so many cells, of so many records on the grid, are not kept; "" where they are."""
    if cells > MAX_CELLS:
        return f"its sums have {cells} cells, more than {MAX_CELLS}"
    return f"{num_records} records are too many for exact sums, at most {MAX_RECORDS}" * (num_records > MAX_RECORDS)
