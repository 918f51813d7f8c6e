"""Maximal information coefficients of many pairs of columns at once, in tiles with bounded memory."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.statistics import mic_cells, mic_grids, mic_scores

_TILES_PER_CALL = 16  # tiles between two steps of the progress bar


def all_pairs(num_columns: int) -> np.ndarray:
    """Column numbers (i, j), i < j, of every pair: int array (m, 2)."""
    return np.stack(np.triu_indices(num_columns, 1), axis=1).astype(np.int32)


def mic_e_pairs(table, pairs=None, *, budget: float, c: float, grid: str = mic_grids.CAPPED, progress: bool = False):
    """MICe of columns of `table` (n, d) for `pairs` (m, 2), default all i < j: array (m,).

    Same values as `mic_e` pair by pair, except that ties of column j are split by the record priority of
    stream j. progress: a bar on standard error (only where the values are concrete).
    """
    table = _as_table(table)
    priority = jnp.stack([mic_cells.record_priority(table.shape[0], j + 1) for j in range(table.shape[1])], 1)
    return _pairs(mic_cells.ranks(table, priority), pairs, mic_cells.MASS, budget, c, grid, progress)


def mic_r_pairs(table, pairs=None, *, bounds, budget: float, c: float, grid: str = mic_grids.CAPPED, progress=False):
    """MICr of columns of `table` (n, d) for `pairs` (m, 2), default all i < j: array (m,).

    bounds: public ranges, array (d, 2). Otherwise as `mic_r`, pair by pair.
    """
    table, bounds = _as_table(table), np.asarray(bounds, float)
    if (
        bounds.shape != (table.shape[1], 2)
        or not np.all(np.isfinite(bounds))
        or not np.all(bounds[:, 0] < bounds[:, 1])
    ):
        raise ValueError(f"bounds must be a finite array ({table.shape[1]}, 2) with lower < upper in each row.")
    low, high = jnp.asarray(bounds.T, table.dtype)
    unit = mic_cells.unit_position(table, low[None], high[None])
    return _pairs(unit, pairs, mic_cells.RANGE, budget, c, grid, progress)


def data_sets(x, y, *, bounds, budget: float, c: float, grid: str = mic_grids.CAPPED):
    """MICr of many data sets of one size, x and y of shape (r, n): array (r,). Same values as `mic_r` one by one."""
    position = [mic_cells.unit_position(v, *b).T for v, b in zip((x, y), bounds, strict=True)]
    groups = mic_grids.buckets(mic_grids.grids(budget, c, grid), x.shape[0])
    return halves(jnp.concatenate(position, 1), groups, mic_cells.RANGE)


def halves(features, groups, kind: str):
    """The largest score of features (n, 2 r), column i against column r + i, over buckets of grids: array (r,)."""
    number = np.arange(features.shape[1] // 2, dtype=np.int32)
    return _over_buckets(features, np.stack([number, number + number.size], 1), groups, kind, None)


def _as_table(table):
    table = jnp.asarray(table)
    if table.ndim != 2 or table.shape[0] < 2:
        raise ValueError(f"table must be an array (n, d) with n >= 2 rows, got shape {table.shape}.")
    return table if jnp.issubdtype(table.dtype, jnp.floating) else table.astype(float)


def _pairs(features, pairs, kind, budget, c, grid, progress):
    if grid == mic_grids.MINEPY:
        raise ValueError('grid="minepy" works on one pair at a time: call mic_e.')
    pairs = all_pairs(features.shape[1]) if pairs is None else np.asarray(pairs, np.int32)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.size == 0:
        raise ValueError(f"pairs must be a non-empty int array (m, 2), got shape {pairs.shape}.")
    if pairs.min() < 0 or pairs.max() >= features.shape[1]:
        raise ValueError(f"pairs must name columns 0 to {features.shape[1] - 1}, got {pairs.min()} to {pairs.max()}.")
    groups = mic_grids.buckets(mic_grids.grids(budget, c, grid), pairs.shape[0])
    traced = isinstance(features, jax.core.Tracer)
    with _bar(progress and not traced, len(groups) * pairs.shape[0]) as bar:
        return _over_buckets(features, pairs, groups, kind, bar)


def _over_buckets(features, pairs, groups, kind, bar):
    return functools.reduce(jnp.maximum, [_bucket(features, pairs, bucket, kind, bar) for bucket in groups])


def _bucket(features, pairs, bucket, kind, bar):
    """The largest score of each pair over the grids of one bucket, a few tiles per call: one program each."""
    width = min(mic_scores.lanes(bucket), _power_of_two(pairs.shape[0]))
    tiles = -(-pairs.shape[0] // width)
    per_call = tiles if bar is None else min(tiles, _TILES_PER_CALL)
    calls = -(-tiles // per_call)
    padded = np.resize(pairs, (calls * per_call * width, 2)).reshape(calls, per_call, width, 2)
    sizes = jnp.asarray(np.array([(g.fixed, g.parts, g.master) for g in bucket.grids], np.int32))
    best = []
    for group in padded:
        best.append(_tiles(features, jnp.asarray(group), sizes, bucket[:3], kind))
        if bar is not None:
            best[-1].block_until_ready()
            bar.update(min(per_call * width, pairs.shape[0]))
    return jnp.concatenate(best)[: pairs.shape[0]]


@jax.jit
def _largest(scores):
    return jnp.max(scores, axis=(0, 1, 2))


def _tiles_of(features, groups, sizes, padded, kind):
    def tile(pair):
        return _largest(mic_scores.score_sizes(features, pair[:, 0], pair[:, 1], sizes, padded, kind))

    return jax.lax.map(tile, groups).reshape(-1)


_tiles = jax.jit(_tiles_of, static_argnums=(3, 4))


def _power_of_two(count: int) -> int:
    return 1 << max(count - 1, 0).bit_length()


class _NoBar:
    def __enter__(self):
        return None

    def __exit__(self, *_):
        return False


def _bar(wanted: bool, total: int):
    if not wanted:
        return _NoBar()
    from tqdm import tqdm

    return tqdm(total=total, unit="pair", desc="MIC", leave=False)
