"""Public partitions of the space of Z into cells, and sums within cells.

A cell boundary never depends on data: it comes from a public reference law (equal mass under it),
from public levels, or from something already released. Groups of cells are unions of whole cells.
"""

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.stats import cauchy, norm
from jax.typing import ArrayLike

from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.data.dataset import CONTINUOUS, Column
from jaxdp.statistics.per_record import per_record


@frozen_pytree
class Uniform:
    """Reference law: uniform on [lower, upper]; values outside fall into the end cells."""

    lower: Any = -1.0
    upper: Any = 1.0

    def cdf(self, z):
        return jnp.clip((z - self.lower) / (self.upper - self.lower), 0.0, 1.0)


@frozen_pytree
class Normal:
    """Reference law: normal with a publicly guessed mean and sd."""

    mean: ArrayLike = 0.0
    sd: ArrayLike = 1.0

    def __post_init__(self):
        check.positive(sd=self.sd)

    def cdf(self, z):
        return norm.cdf((z - self.mean) / self.sd)


@frozen_pytree
class Cauchy:
    """Reference law with heavy tails: the default when nothing is known but a rough scale."""

    center: ArrayLike = 0.0
    scale: ArrayLike = 1.0

    def __post_init__(self):
        check.positive(scale=self.scale)

    def cdf(self, z):
        return _share_below_cauchy((z - self.center) / self.scale)


MAX_CELLS = 1_000_000  # that n alone asks for: sums by cell stay bounded however many records there are
# arctan(t)/(pi t) as a polynomial in t^2 on [0, 1], interpolated at Chebyshev nodes: error below 6e-8 in float32
_ARCTAN = (0.31830984, -0.10609846, 0.06355681, -0.04457386, 0.03141357, -0.01872609, 0.00756957, -0.00145143)


def _share_below_cauchy(u):
    """P(C <= u) for a standard Cauchy C; in float32 by a polynomial, as XLA's arctan costs more than all else there."""
    if jnp.result_type(u) != jnp.float32:
        return cauchy.cdf(u)
    size = jnp.abs(u)
    beyond = size > 1.0
    t = jnp.where(beyond, 1.0 / jnp.where(beyond, size, 1.0), size)
    square, share = t * t, jnp.full_like(t, _ARCTAN[-1])
    for coefficient in _ARCTAN[-2::-1]:
        share = share * square + coefficient
    share = t * share
    return 0.5 + jnp.sign(u) * jnp.where(beyond, 0.5 - share, share)


LAWS = (Uniform, Normal, Cauchy)  # elementwise; any other reference is asked about one value at a time


def as_matrix(values):
    """(n,) to (n, 1); (n, d) stays; None becomes (n, 0) elsewhere."""
    values = jnp.asarray(values)
    values = values if jnp.issubdtype(values.dtype, jnp.floating) else values.astype(float)
    return values[:, None] if values.ndim == 1 else values


def target_cells(num_records: int, num_cells: int | None = None) -> int:
    """Wanted number of cells: as given, or about eight records in each, a million at most."""
    return num_cells or min(max(4, num_records // 8), MAX_CELLS)


def bins_per_column(columns: tuple[Column, ...], num_cells: int) -> tuple[int, ...]:
    """How many bins each column gets so that their product is about num_cells; levels are never merged."""
    levels = math.prod(column.levels for column in columns if column.kind != CONTINUOUS)
    continuous = sum(column.kind == CONTINUOUS for column in columns)
    share = max(2, math.floor((num_cells / levels) ** (1 / continuous) + 1e-9)) if continuous else 1
    return tuple(share if column.kind == CONTINUOUS else column.levels for column in columns)


def groups_per_column(columns: tuple[Column, ...], bins: tuple[int, ...], num_groups: int) -> tuple[int, ...]:
    """How many groups the bins of each column form so that the product is about num_groups; levels stay apart."""
    return tuple(map(min, bins_per_column(columns, num_groups), bins))


def group_of(bins, count: int, groups: int):
    """Group of each bin 0, ..., count - 1: `groups` <= count runs of neighbours, whose sizes differ by one at most."""
    if groups == count:
        return bins
    size, larger = divmod(count, groups)
    first = larger * (size + 1)  # bins in the larger groups, which come first
    return jnp.where(bins < first, bins // (size + 1), larger + (bins - first) // size)


@dataclasses.dataclass(frozen=True)
class AxisBins:
    """How a column of z is cut: into so many bins, of this width in its own units.

    width: None where bins are levels, or where they are equally likely but not equally wide.
    """

    name: str
    number: int
    levels: bool
    width: float | None


def axis_bins(data, target: int, reference=None) -> tuple[AxisBins, ...]:
    """Public description of the cells that `cells_of` cuts, a product of bins; () without z."""
    if data.z is None:
        return ()
    columns = columns_of_z(data)
    reference = default_reference(data) if reference is None else reference
    counts = bins_per_column(columns, target)
    return tuple(bins_of_axis(j, c, reference, n) for j, (c, n) in enumerate(zip(columns, counts, strict=True)))


def bins_of_axis(position: int, column: Column, reference, number: int) -> AxisBins:
    """The description of one column of z that is cut into so many bins."""
    cut = column.kind == CONTINUOUS
    width = float(reference.upper - reference.lower) / number if cut and isinstance(reference, Uniform) else None
    return AxisBins(column.name or f"z{position}", number if cut else column.levels, not cut, width)


def cell_index(z, columns: tuple[Column, ...], reference, bins: tuple[int, ...], groups: tuple[int, ...] | None = None):
    """Cell of each record in the product partition, int array (n,); z of shape (n, d). With groups: its group."""
    index = jnp.zeros(z.shape[0], jnp.int32)
    for j, (column, count, kept) in enumerate(zip(columns, bins, groups or bins, strict=True)):
        index = index * kept + group_of(column_bin(z[:, j], column, reference, count), count, kept)
    return index


def num_columns(values) -> int:
    """Columns of an array, a shape or None."""
    return 0 if values is None else (1 if len(values.shape) == 1 else values.shape[1])


def with_column_counts(test, shapes):
    """The test with `num_columns` set to the columns of x, y and z."""
    return dataclasses.replace(test, num_columns=tuple(map(num_columns, (shapes.x, shapes.y, shapes.z))))


def columns_of_z(data) -> tuple[Column, ...]:
    """Public descriptions of the columns of z: from the domain, or all continuous."""
    depth = num_columns(data.z)
    declared = data.domain.z if data.domain is not None else ()
    return declared or tuple(Column() for _ in range(depth))


def default_reference(data):
    """Uniform on [-1, 1] where a schema scaled the data, a standard Cauchy law where nothing is known."""
    return Cauchy() if data.domain is None else Uniform()


def clip_to(values, limit):
    """values/limit clipped to [-1, 1]; a missing value counts as 0."""
    return jnp.clip(jnp.nan_to_num(values / limit, nan=0.0), -1.0, 1.0)


def cells_of(data, target: int, reference=None, axes=None, num_groups: int | None = None):
    """Cell of each record, int array (n,), and the number of cells, from public knowledge alone.

    target: wanted number of cells. reference: law whose quantiles cut continuous columns; None means
    uniform on [-1, 1] if the data have a domain, a standard Cauchy law otherwise.
    axes: pair of (possibly traced) column numbers; the partition then uses these two columns only.
    num_groups: returns groups instead, about that many. Each is a union of the cells that the other arguments
    give: a mean taken within groups is then the same for all records of a cell.
    """
    if data.z is None:
        # behind a barrier: XLA would spend seconds on folding sums over a constant cell
        return jax.lax.optimization_barrier(jnp.zeros(data.x.shape[0], jnp.int32)), 1
    z, columns = as_matrix(data.z), columns_of_z(data)
    if len(columns) != z.shape[1]:
        raise ValueError(f"the domain describes {len(columns)} columns of z, the data have {z.shape[1]}.")
    reference = default_reference(data) if reference is None else reference
    if axes is not None:
        return _cells_of_axes(z, columns, reference, target, axes, num_groups)
    bins = bins_per_column(columns, target)
    groups = bins if num_groups is None else groups_per_column(columns, bins, num_groups)
    return cell_index(z, columns, reference, bins, groups), math.prod(groups)


def count_cells(data, target: int, axes=None, num_groups: int | None = None) -> int:
    """How many cells (or groups of them) `cells_of` cuts, from public shapes alone."""
    if data.z is None:
        return 1
    columns = columns_of_z(data)
    if axes is not None:
        side = axis_side(columns, target)
        return (side if num_groups is None else min(side, axis_side(columns, num_groups))) ** 2
    bins = bins_per_column(columns, target)
    return math.prod(bins if num_groups is None else groups_per_column(columns, bins, num_groups))


def axis_side(columns: tuple[Column, ...], target: int) -> int:
    """Bins of each of two chosen columns; a column chosen twice gets their square."""
    return max(2, math.isqrt(target), *(column.levels for column in columns))


def _cells_of_axes(z, columns, reference, target: int, axes, num_groups: int | None):
    """Product cells (or groups of them) of two chosen columns; all resolution goes to one column chosen twice."""
    side = axis_side(columns, target)
    kept = side if num_groups is None else min(side, axis_side(columns, num_groups))

    def bins(count: int, groups: int):
        found = (column_bin(z[:, j], column, reference, count) for j, column in enumerate(columns))
        # levels are as many as groups at most, and stay apart
        pairs = zip(found, columns, strict=True)
        return jnp.stack([group_of(b, count, groups) if c.kind == CONTINUOUS else b for b, c in pairs])

    once, twice = bins(side, kept), bins(side**2, kept**2)
    first, second = axes
    return jnp.where(first == second, twice[first], once[first] * kept + once[second]), kept**2


def column_bin(values, column: Column, reference, count: int):
    """Bin of each value of one column, int array in 0, ..., count - 1."""
    position = share_below(reference, values) * count if column.kind == CONTINUOUS else values
    # NaN fails every comparison of clip; the declared fill is the first bin.
    position = jnp.nan_to_num(position, nan=0.0, posinf=count - 1.0, neginf=0.0)
    return jnp.clip(jnp.floor(position).astype(jnp.int32), 0, count - 1)


def share_below(reference, values):
    """The reference's cdf of each value (n,), which depends on no other value."""
    if type(reference) in LAWS:
        return reference.cdf(values)
    return per_record(reference.cdf, values, name="the cdf of reference")


def cell_sums(values, cell, num_cells: int):
    """Sums of the rows of values (n, c) within cells, (K, c)."""
    if values.shape[1] > 8:
        return jax.ops.segment_sum(values, cell, num_cells)
    # one scatter a column: XLA's CPU scatter of rows is twice as slow
    columns = [jax.ops.segment_sum(values[:, j], cell, num_cells) for j in range(values.shape[1])]
    return jnp.stack(columns, axis=1)


def cell_counts(cell, num_cells: int, dtype=float):
    """Records in each cell, (K,) floats."""
    return jax.ops.segment_sum(jnp.ones(cell.shape, dtype), cell, num_cells)


def center(values, cell, counts):
    """Values (n, c) minus their cell means; counts (K,)."""
    means = cell_sums(values, cell, counts.shape[0]) / jnp.maximum(counts, 1.0)[:, None]
    return values - means[cell]


def sums_of_squares(values, cell, num_cells: int):
    """Within-cell sums of squares about the cell means, (K, c), of values (n, c)."""
    centred = center(values, cell, cell_counts(cell, num_cells, values.dtype))
    return cell_sums(centred**2, cell, num_cells)
