"""Maximal information coefficients: MICe, MICr, the characteristic matrix, MIC* of a density.

Sources: Reshef et al. 2016 (MICe, MIC*), Lazarsfeld et al. 2022 (MICr; definitions 2.3, 4.1, appendix E.1);
docs/theory/mic.md. Symbols: B = `budget`, the number of cells k l that a grid may have (a float such as n**0.6);
c = `c`.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base.layout import automatic_layout
from jaxdp._base.types import Array
from jaxdp.statistics.mic import mic_bins, mic_grids, mic_scores

__all__ = ["characteristic_matrix_e", "characteristic_matrix_r", "mic_e", "mic_r", "mic_star"]


@automatic_layout
def mic_e(
    x: Array, y: Array, *, budget: float, c: float, grid: str = mic_grids.CAPPED, priority: Any = None
) -> jax.Array:
    """MICe in [0, 1]: the best normalised mutual information over grids of equal numbers of records.

    x, y: arrays (n,); only their order counts; NaN counts as the smallest value. budget: B >= 4; c >= 1.
    grid: "capped" (default) or "full" master sizes, see `mic_grids.grids`: of l bins, bin floor(rank l/n) on every
        axis, ties split by `priority`, a pair of arrays (n,) for x and y (default: a fixed public scrambling
        of the record numbers).
    minepy's own grids, of about the same value: `jaxdp.published.mic_minepy`.
    """
    return _largest(characteristic_matrix_e(x, y, budget=budget, c=c, grid=grid, priority=priority))


@automatic_layout
def mic_r(x: Array, y: Array, *, bounds: Any, budget: float, c: float, grid: str = mic_grids.CAPPED) -> jax.Array:
    """MICr in [0, 1]: the best normalised mutual information over grids of equal ranges (paper, definition 4.1).

    x, y: arrays (n,). bounds: public ((x0, x1), (y0, y1)); points outside count at the boundary, NaN at the
    lower end. budget: B >= 4; c >= 1. grid: "capped" or "full" master sizes.
    """
    return _largest(characteristic_matrix_r(x, y, bounds=bounds, budget=budget, c=c, grid=grid))


@automatic_layout
def characteristic_matrix_e(
    x: Array, y: Array, *, budget: float, c: float, grid: str = mic_grids.CAPPED, priority: Any = None
) -> jax.Array:
    """Equicharacteristic matrix of MICe, as `characteristic_matrix_r`; arguments as `mic_e`."""
    return _mass_matrix(*as_columns(x, y), priority, mic_grids.grids(budget, c, grid))


@functools.partial(jax.jit, static_argnums=3)
def _mass_matrix(x, y, priority, sizes):
    if priority is None:
        priority = [mic_bins.record_priority(x.shape[0], stream) for stream in (1, 2)]
    features = jnp.stack([mic_bins.ranks(column, order) for column, order in zip((x, y), priority, strict=True)], 1)
    return assembled(sizes, _pair_scores(features, sizes, mic_bins.MASS))


@automatic_layout
def characteristic_matrix_r(
    x: Array, y: Array, *, bounds: Any, budget: float, c: float, grid: str = mic_grids.CAPPED
) -> jax.Array:
    """Range equicharacteristic matrix: entry [k - 2, l - 2] is the best score with k rows (y), l columns (x).

    Array (floor(B/2) - 1, floor(B/2) - 1), NaN where k l > B. Off the diagonal the axis with more bins is
    the fixed one; on it the better of the two choices counts, so exchanging x and y transposes the matrix.
    """
    x, y = as_columns(x, y)
    return _range_matrix(x, y, np.asarray(check_bounds(bounds), x.dtype), mic_grids.grids(budget, c, grid))


@functools.partial(jax.jit, static_argnums=3)
def _range_matrix(x, y, bounds, sizes):
    features = [mic_bins.unit_position(v, *b) for v, b in zip((x, y), bounds, strict=True)]
    return assembled(sizes, _pair_scores(jnp.stack(features, 1), sizes, mic_bins.RANGE))


def mic_star(density: Any, *, max_parts: int | None = None) -> jax.Array:
    """MIC* of a law given as masses on a dense grid, (..., a, b) to (...): Reshef et al. 2016, section 3.5.

    Largest I(X; Y|P)/log2 k over segmentations P of one axis into k <= max_parts parts (default
    min(40, its bins)), the other axis at full resolution. Converges from below as the grid is refined.
    """
    density = jnp.asarray(density)
    density = density if jnp.issubdtype(density.dtype, jnp.floating) else density.astype(float)
    flat = jnp.moveaxis(density.reshape(-1, *density.shape[-2:]), 0, -1)
    best = jnp.zeros(flat.shape[-1], flat.dtype)
    for table in (flat, jnp.swapaxes(flat, 0, 1)):
        parts = min(max_parts or 40, table.shape[0])
        best = jnp.maximum(
            best, jnp.max(mic_scores.normalised(table, (table.shape[1], parts, table.shape[0]), parts), axis=0)
        )
    return best.reshape(density.shape[:-2])


def check_bounds(bounds):
    """Public ((x0, x1), (y0, y1)) with x0 < x1 and y0 < y1, or ValueError."""
    if np.shape(bounds) != (2, 2):
        raise ValueError(f"bounds must be ((x0, x1), (y0, y1)), got shape {np.shape(bounds)}.")
    for low, high in bounds:
        if not (np.isfinite(low) and np.isfinite(high) and low < high):
            raise ValueError(f"bounds must be finite with lower < upper, got ({low}, {high}).")
    return bounds


def as_columns(x: Any, y: Any) -> tuple[jax.Array, jax.Array]:
    """Both columns as floating arrays (n,), or ValueError."""
    x, y = (jnp.asarray(v) for v in (x, y))
    if x.ndim != 1 or x.shape != y.shape or x.shape[0] < 2:
        raise ValueError(f"x and y must be arrays (n,) of one length n >= 2, got {x.shape} and {y.shape}.")
    return tuple(v if jnp.issubdtype(v.dtype, jnp.floating) else v.astype(float) for v in (x, y))


def _pair_scores(features, sizes, kind: str):
    """Scores by bucket: list of (grids, array (grids, most parts - 1, 2))."""
    one = jnp.zeros(1, jnp.int32)
    return [(members, scores[..., 0]) for members, scores in mic_scores.all_scores(features, one, one + 1, sizes, kind)]


def assembled(sizes, found, both: bool = True) -> jax.Array:
    """The matrix from scores by bucket. both: the diagonal takes the better orientation, otherwise x fixed."""
    place = np.zeros((2, len(sizes), len(sizes)), np.int32)  # at most two scores per entry; 0 stands for none
    offset = 1
    for members, scores in found:
        for i, grid in enumerate(members):
            column, parts = grid.fixed - 2, np.arange(grid.parts - 1)
            x_fixed = offset + 2 * (i * scores.shape[1] + parts)
            below = parts < column
            place[:, parts, column] = x_fixed
            place[:, column, parts[below]] = x_fixed[below] + 1
            if both and grid.parts == grid.fixed:
                place[1, column, column] = x_fixed[-1] + 1
        offset += scores.size
    none = jnp.full(1, jnp.nan, found[0][1].dtype)
    flat = jnp.concatenate([none, *(scores.ravel() for _, scores in found)])
    return jnp.max(flat[place], axis=0)


def _largest(matrix):
    return jnp.nanmax(matrix)
