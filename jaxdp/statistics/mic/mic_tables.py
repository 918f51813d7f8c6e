"""MICr from tables instead of records: one table per grid, or one fine lattice for all grids.

Post-processing of noisy tables. Entries are masses >= 0 that need not sum to n.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.statistics.mic import mic_bins, mic_grids, mic_scores


class GridTable(NamedTuple):
    """One master table of the definition: `axis` 0 fixes the bins of x, 1 those of y."""

    axis: int
    grid: mic_grids.Grid


def grid_tables(budget: float, c: float, shape: str) -> tuple[GridTable, ...]:
    """The master tables of definition 4.1: 2 floor(B/2) - 3 of them.

    Entries (k, l) with k <= l fix x and those with k > l fix y, so y never serves k = l and never l = 2.
    """
    sizes = mic_grids.grids(budget, c, shape)
    upper = [GridTable(0, grid) for grid in sizes]
    lower = [GridTable(1, g._replace(parts=min(g.parts, g.fixed - 1))) for g in sizes if g.fixed > 2]
    return tuple(upper + lower)


def flat_counts(x, y, tables: tuple[GridTable, ...], dtype=float):
    """All tables of unit positions x, y (n,), one after the other, each (master, fixed) in row order: (N,)."""
    axis, fixed, master, offset = (jnp.asarray(column)[:, None] for column in _layout(tables))
    number_fixed = mic_bins.bins(jnp.where(axis == 0, x[None], y[None]), fixed, mic_bins.RANGE)
    number_master = mic_bins.bins(jnp.where(axis == 0, y[None], x[None]), master, mic_bins.RANGE)
    index = offset + number_master * fixed + number_fixed
    return jnp.zeros(flat_size(tables), dtype).at[index.ravel()].add(1.0)


def flat_size(tables: tuple[GridTable, ...]) -> int:
    """Entries of `flat_counts`."""
    return sum(table.grid.master * table.grid.fixed for table in tables)


def _layout(tables):
    fixed = np.array([t.grid.fixed for t in tables], np.int32)
    master = np.array([t.grid.master for t in tables], np.int32)
    offset = np.concatenate([[0], np.cumsum(fixed * master)[:-1]]).astype(np.int32)
    return np.array([t.axis for t in tables], np.int32), fixed, master, offset


@functools.partial(jax.jit, static_argnums=(1,))
def score_of_flat(flat, tables: tuple[GridTable, ...]):
    """The largest normalised information over tables laid out as in `flat_counts`, (N, b) to (b,)."""
    offsets = dict(zip(tables, _layout(tables)[3], strict=True))
    padded = jnp.concatenate([flat, jnp.zeros((1, flat.shape[1]), flat.dtype)])
    best = []
    for bucket, members in _grouped(tables, flat.shape[1]):
        index = np.stack([_cells_of(t.grid, offsets[t], bucket, flat.shape[0]) for t in members])
        best.append(_scored(index, members, bucket, lambda cells: padded[cells]))
    return functools.reduce(jnp.maximum, best)


def _grouped(tables, problems: int):
    """Buckets with the tables that use them."""
    distinct = tuple(dict.fromkeys(table.grid for table in tables))
    for bucket in mic_grids.buckets(distinct, problems):
        yield bucket, [table for table in tables if table.grid in bucket.grids]


def _cells_of(grid, offset: int, bucket, empty: int):
    """Where each cell of the padded table lies in the flat vector; padding points at an empty entry."""
    index = np.full((bucket.master, bucket.fixed), empty, np.int32)
    index[: grid.master, : grid.fixed] = offset + np.arange(grid.master * grid.fixed).reshape(grid.master, grid.fixed)
    return index


def _scored(index, members, bucket, read):
    sizes = np.array([table.grid for table in members], np.int32)

    def one(item):
        cells, size = item
        return jnp.max(mic_scores.normalised(read(cells), size, bucket.parts), axis=0)

    return jnp.max(jax.lax.map(one, (jnp.asarray(index), jnp.asarray(sizes))), axis=0)


def lattice_counts(x, y, side: int, dtype=float):
    """Counts of unit positions x, y (n,) on a square lattice: (side, side), y by x."""
    rows, columns = (mic_bins.bins(v[:, None], side, mic_bins.RANGE) for v in (y, x))
    return mic_bins.table(rows, columns, side, side, dtype)[..., 0]


@functools.partial(jax.jit, static_argnums=(1, 2, 3))
def score_of_lattice(weights, budget: float, c: float, shape: str):
    """The largest normalised information over the grids of MICr, of masses on a square lattice (F, F, b): (b,).

    Bin edges are moved to the nearest lattice line; master bins are never finer than the lattice.
    """
    side = weights.shape[0]
    sizes = tuple(g._replace(master=min(g.master, side)) for g in mic_grids.grids(budget, c, shape) if g.fixed <= side)
    best = []
    for sums in (_prefix(weights), _prefix(jnp.swapaxes(weights, 0, 1))):
        for bucket in mic_grids.buckets(sizes, weights.shape[2]):
            best.append(_lattice_bucket(sums, bucket, side))
    return functools.reduce(jnp.maximum, best)


def _prefix(weights):
    """Sums over all lattice cells below and to the left, (F + 1, F + 1, b)."""
    side = weights.shape[0]
    steps = jnp.tril(jnp.ones((side + 1, side), weights.dtype), -1)
    exact = jax.lax.Precision.HIGHEST
    return jnp.einsum("sp,tq,pqb->stb", steps, steps, weights, precision=exact)


def _lattice_bucket(sums, bucket, side: int):
    lines = [
        [np.rint(np.minimum(np.arange(most + 1), own) * side / own).astype(np.int32) for own in owned]
        for most, owned in (
            (bucket.master, [g.master for g in bucket.grids]),
            (bucket.fixed, [g.fixed for g in bucket.grids]),
        )
    ]
    sizes = np.array(bucket.grids, np.int32)

    def one(item):
        rows, columns, size = item
        corners = sums[rows][:, columns]
        table = jnp.diff(jnp.diff(corners, axis=0), axis=1)
        return jnp.max(mic_scores.normalised(jnp.maximum(table, 0.0), size, bucket.parts), axis=0)

    found = jax.lax.map(one, (jnp.asarray(np.stack(lines[0])), jnp.asarray(np.stack(lines[1])), jnp.asarray(sizes)))
    return jnp.max(found, axis=0)
