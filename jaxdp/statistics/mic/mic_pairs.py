"""Maximal information coefficients of many pairs of columns at once, in tiles with bounded memory."""

import concurrent.futures
import functools
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base.bounded import power_of_two
from jaxdp._base.layout import automatic_layout
from jaxdp._base.types import Array
from jaxdp.statistics.mic import mic_bins, mic_blocks, mic_grids, mic_scores

_CALLS = 8  # per bucket: shared out among the processor cores
_FEW = 1024  # pairs up to which a program is compiled in half the time; at n = 3000 it runs as fast
_DENSE = 64  # pairs from which blocks of pairs that share columns pay
# 512-bit vectors, where the processor has them: a third less time. Not allowed inside another compiled function.
_OPTIONS = {"xla_cpu_prefer_vector_width": 512}


def all_pairs(num_columns: int) -> np.ndarray:
    """Column numbers (i, j), i < j, of every pair: int array (m, 2)."""
    return np.stack(np.triu_indices(num_columns, 1), axis=1).astype(np.int32)


@automatic_layout
def mic_e_pairs(
    table: Array,
    pairs: Array | None = None,
    *,
    budget: float,
    c: float,
    grid: str = mic_grids.CAPPED,
    progress: bool = False,
) -> jax.Array:
    """MICe of columns of `table` (n, d) for `pairs` (m, 2), default all i < j: array (m,).

    Same values as `mic_e` pair by pair, except that ties of column j are split by the record priority of
    stream j. progress: a bar on standard error (only where the values are concrete).
    """
    table = _as_table(table)
    priority = jnp.stack([mic_bins.record_priority(table.shape[0], j + 1) for j in range(table.shape[1])], 1)
    return _pairs(mic_bins.ranks(table, priority), pairs, mic_bins.MASS, budget, c, grid, progress)


@automatic_layout
def mic_r_pairs(
    table: Array,
    pairs: Array | None = None,
    *,
    bounds: Any,
    budget: float,
    c: float,
    grid: str = mic_grids.CAPPED,
    progress: bool = False,
) -> jax.Array:
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
    unit = mic_bins.unit_position(table, low[None], high[None])
    return _pairs(unit, pairs, mic_bins.RANGE, budget, c, grid, progress)


def data_sets(x, y, *, bounds, budget: float, c: float, grid: str = mic_grids.CAPPED):
    """MICr of many data sets of one size, x and y of shape (r, n): array (r,). Same values as `mic_r` one by one."""
    position = [mic_bins.unit_position(v, *b).T for v, b in zip((x, y), bounds, strict=True)]
    groups = mic_grids.buckets(mic_grids.grids(budget, c, grid), x.shape[0])
    return halves(jnp.concatenate(position, 1), groups, mic_bins.RANGE)


def halves(features, groups, kind: str):
    """The largest score of features (n, 2 r), column i against column r + i, over buckets of grids: array (r,)."""
    number = np.arange(features.shape[1] // 2, dtype=np.int32)
    return _over_buckets(features, np.stack([number, number + number.size], 1), groups, kind, False)


def _as_table(table):
    table = jnp.asarray(table)
    if table.ndim != 2 or table.shape[0] < 2:
        raise ValueError(f"table must be an array (n, d) with n >= 2 rows, got shape {table.shape}.")
    return table if jnp.issubdtype(table.dtype, jnp.floating) else table.astype(float)


def _pairs(features, pairs, kind, budget, c, grid, progress):
    pairs = all_pairs(features.shape[1]) if pairs is None else np.asarray(pairs, np.int32)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.size == 0:
        raise ValueError(f"pairs must be a non-empty int array (m, 2), got shape {pairs.shape}.")
    if pairs.min() < 0 or pairs.max() >= features.shape[1]:
        raise ValueError(f"pairs must name columns 0 to {features.shape[1] - 1}, got {pairs.min()} to {pairs.max()}.")
    groups = mic_grids.buckets(mic_grids.grids(budget, c, grid), pairs.shape[0])
    return _over_buckets(features, pairs, groups, kind, progress)


class _Calls(NamedTuple):
    """The work of one bucket: `function(*arguments[i])` for each i, and what joins the answers into (m,)."""

    function: Callable
    arguments: list[tuple]
    join: Callable


def _over_buckets(features, pairs, groups, kind, progress):
    used, numbers = np.unique(pairs, return_inverse=True)
    numbers = numbers.reshape(pairs.shape)
    traced = isinstance(features, jax.core.Tracer)
    if len(pairs) >= max(_DENSE, used.size * (used.size - 1) // 4):
        work = [_in_blocks(features[:, used], numbers, bucket, kind, traced) for bucket in groups]
    else:
        work = [_in_tiles(features, pairs, bucket, kind, traced) for bucket in groups]
    return functools.reduce(jnp.maximum, _run(work, traced, progress))


def _in_blocks(features, pairs, bucket, kind, traced) -> _Calls:
    """Every ordered pair of the columns, in blocks that share what they know of a column."""
    columns = features.shape[1]
    rest = (_sizes(bucket), bucket[:3], kind, mic_blocks.shape(bucket, columns))
    filled = mic_blocks.padded(features, bucket)
    corners = mic_blocks.corners(bucket, columns)

    def join(scores):
        matrix = mic_blocks.joined(jnp.concatenate(scores)[: len(corners)], bucket, columns)
        return matrix[pairs[:, 0], pairs[:, 1]]

    calls = [(filled, group, *rest) for group in _shared_out(corners, traced)]
    return _Calls(_blocks_inside if traced else _blocks, calls, join)


def _in_tiles(features, pairs, bucket, kind, traced) -> _Calls:
    """The given pairs alone."""
    width = min(mic_scores.lanes(bucket), power_of_two(pairs.shape[0]))
    tiles = np.resize(pairs, (-(-pairs.shape[0] // width) * width, 2)).reshape(-1, width, 2)
    rest = (_sizes(bucket), bucket[:3], kind)
    calls = [(features, group, *rest) for group in _shared_out(tiles, traced)]
    quick = _few_tiles if len(pairs) <= _FEW else _tiles
    return _Calls(_tiles_inside if traced else quick, calls, lambda found: jnp.concatenate(found)[: pairs.shape[0]])


def _sizes(bucket):
    return jnp.asarray(np.array(bucket.grids, np.int32))


def _shared_out(items: np.ndarray, traced: bool) -> list[jax.Array]:
    """Groups of one size, the last filled up with items of the first."""
    each = len(items) if traced else -(-len(items) // _CALLS)
    groups = -(-len(items) // each)
    return [jnp.asarray(group) for group in np.resize(items, (groups, each, *items.shape[1:]))]


def _run(work: list[_Calls], traced: bool, progress: bool) -> list:
    """The joined answers of every bucket; calls run on all processor cores at once, which one program would not use."""
    calls = [(i, j) for i, bucket in enumerate(work) for j in range(len(bucket.arguments))]
    if traced or len(calls) == 1:
        answers = {(i, j): work[i].function(*work[i].arguments[j]) for i, j in calls}
    else:
        calls.sort(key=lambda call: call[1])  # the first call of each bucket compiles, those of others beside it
        wide = jax.config.jax_enable_x64

        def one(call):
            with jax.enable_x64(wide):  # the setting belongs to a thread
                found = work[call[0]].function(*work[call[0]].arguments[call[1]])
                return call, jax.block_until_ready(found)

        with concurrent.futures.ThreadPoolExecutor(_cores()) as pool:
            answers = dict(_shown(pool.map(one, calls), progress, len(calls)))
    return [bucket.join([answers[i, j] for j in range(len(bucket.arguments))]) for i, bucket in enumerate(work)]


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@jax.jit
def _largest(scores):
    return jnp.max(scores, axis=(0, 1, 2))


def _tiles_of(features, groups, sizes, padded, kind):
    def tile(pair):
        return _largest(mic_scores.score_sizes(features, pair[:, 0], pair[:, 1], sizes, padded, kind))

    return jax.lax.map(tile, groups).reshape(-1)


_tiles_inside = jax.jit(_tiles_of, static_argnums=(3, 4))
_blocks_inside = jax.jit(mic_blocks.block_scores, static_argnums=(3, 4, 5))
_tiles = jax.jit(_tiles_of, static_argnums=(3, 4), compiler_options=_OPTIONS)
_few_tiles = jax.jit(
    _tiles_of, static_argnums=(3, 4), compiler_options=_OPTIONS | {"xla_backend_optimization_level": 1}
)
_blocks = jax.jit(mic_blocks.block_scores, static_argnums=(3, 4, 5), compiler_options=_OPTIONS)


def _shown(items, wanted: bool, total: int):
    if not wanted:
        return items
    from tqdm import tqdm

    return tqdm(items, total=total, unit="part", desc="MIC", leave=False)
