"""Sums over records in whole numbers: equal however the records are cut into chunks, whatever order these come in.

A statistic that is a sum over records is taken in three steps: a map of each record by itself, rounded to a lattice;
sums of the lattice's whole numbers in int64; a function of the sums. Integers add up exactly, so that neither the
chunks nor their order can be seen in a sum. Theory: docs/theory/sums.md.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

GRID = 2.0**17  # values in [-1, 1] are rounded to its multiples; products of two of them to 2^-34
GRID_ERROR = 2.0**-15  # of second moments within cells, per record (docs/theory/sums.md#grid)
MAX_RECORDS = 2**27  # sums of such products stay below 2^62
EXACT = 2.0**53  # float64 adds whole numbers up to here without rounding
BLOCK_RECORDS = 1 << 16  # mapped at a time: a few megabytes, which stay in the cache
BUCKETS = 1 << 16  # of a table of places
MIN_BLOCK = 1 << 8
MAX_CELLS = 1 << 20  # of sums by cell


def to_grid(values):
    """Values in [-1, 1] as whole numbers, in units of 1/GRID; a missing one counts as 0."""
    return jnp.round(jnp.clip(jnp.nan_to_num(values, nan=0.0), -1.0, 1.0) * GRID)


def mapped(query: Any, name: str, chunk: Any, num_records: int) -> Any:
    """The method `name` of a query, (chunk, num_records) -> arrays (n, ...), computed block by block, in float64.

    Blocks have few sizes, so that few programs are compiled; what fills up the last one is cut off again.
    """
    parts = list(_blocks(query, name, chunk, num_records))
    return parts[0] if len(parts) == 1 else jax.tree.map(lambda *some: np.concatenate(some), *parts)


def _blocks(query: Any, name: str, chunk: Any, num_records: int) -> Iterator[Any]:
    rows = len(jax.tree.leaves(chunk)[0])
    with jax.enable_x64(True):
        for start in range(0, rows, BLOCK_RECORDS):
            size = min(BLOCK_RECORDS, rows - start)
            room = max(MIN_BLOCK, 1 << (size - 1).bit_length())
            block = jax.tree.map(lambda leaf, at=start, n=size, m=room: _filled(leaf[at : at + n], m), chunk)
            found = _program(query, block, name, num_records)
            yield jax.tree.map(lambda leaf, n=size: np.asarray(leaf)[:n], found)


@functools.partial(jax.jit, static_argnames=("name", "num_records"))
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
    return np.bincount(cell, minlength=num_cells)


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

    def total(values, largest=GRID**2):
        return cell_sums(cell, values, num_cells, largest)

    def columns(made, *shape):
        return np.stack(made, axis=-1).reshape(num_cells, *shape)

    p, q = x.shape[1], y.shape[1]
    xs, ys = ([np.ascontiguousarray(values[:, j]) for j in range(values.shape[1])] for values in (x, y))
    return {
        "count": counts(cell, num_cells),
        "x": columns([total(values, GRID) for values in xs], p),
        "y": columns([total(values, GRID) for values in ys], q),
        "xx": columns([total(values * values) for values in xs], p),
        "yy": columns([total(values * values) for values in ys], q),
        "xy": columns([total(one * other) for one in xs for other in ys], p, q),
    }


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
    low, high, buckets = float(grid[0]), float(grid[-1]), BUCKETS
    edges = low + (high - low) / buckets * np.arange(-1, buckets + 2)
    # one bucket of room on either side, for the rounding of a bucket's number
    first, last = np.searchsorted(grid, edges[:-3]), np.searchsorted(grid, edges[3:])
    first[0], last[-1] = 0, len(grid)
    bucket = np.clip((values - low) * (buckets / (high - low)), 0, buckets - 1).astype(np.int32)
    found, ends = first[bucket], np.append(grid, np.inf)
    for _ in range(int(np.max(last - first))):
        found += ends[found] < values
    return found


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
    return counts(joint_code(columns, levels), math.prod(levels)).reshape(tuple(levels))


def too_large(cells: int, num_records: int = 0) -> str:
    """Why sums by so many cells, of so many records on the grid, are not kept; "" where they are."""
    if cells > MAX_CELLS:
        return f"its sums have {cells} cells, more than {MAX_CELLS}"
    return f"{num_records} records are too many for exact sums, at most {MAX_RECORDS}" * (num_records > MAX_RECORDS)
