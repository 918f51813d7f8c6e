"""Private stages before `PartitionGCM`: which axes of Z to cut, and where cell centres lie.

Both release something public that configures the test after them; costs add up (`Sequential`).
"""

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Norm, PrivateQuery, Relation, Sensitivity
from jaxdp.mechanisms import Split, divide
from jaxdp.statistics import partition, sums

SCORE_BINS = 16
SCORE_SENSITIVITY = 4.0  # a replacement moves sum_b SSx_b by at most 4 for x in [-1, 1] (docs/theory/partition_gcm.md)
SUM_L1 = 2.0  # a replacement moves the vector of cell sums of x in [-1, 1] by |x| + |x'| <= 2 in L1
COUNT_L2 = 2.0**0.5
TYPICAL_SPREAD = 0.1  # variance of conditional means on [-1, 1] that centres are shrunk against


@frozen_pytree
class AxisSelection(PrivateQuery):
    """Privately chooses the column of Z that explains x best, and the one that explains y best.

    Statistic: for each column, minus the within-bin sum of squares of x (of y) on 16 public bins.
    Sensitivity: 4 per score in Linf, for replace-one neighbours and values clipped to [-1, 1].
    Privacy: the budget is halved over two selections by report-noisy-max
    (docs/theory/partition_gcm.md#choosing-the-axes).
    """

    reference: Any = None
    limit_x: Any = 1.0
    limit_y: Any = 1.0

    method: ClassVar[str] = "AxisSelection"
    lattice: ClassVar[float] = sums.GRID_ERROR

    def mechanism_in_force(self):
        half = self.mechanism.share(0.5).selector()
        return Split(parts={"x": half, "y": half})

    def statistic(self, key, data):
        columns, z = partition.columns_of_z(data), partition.as_matrix(data.z)
        counts = [column.levels or SCORE_BINS for column in columns]
        reference = self.reference or partition.default_reference(data)
        bins = [partition.column_bin(z[:, j], c, reference, counts[j]) for j, c in enumerate(columns)]

        def scores(values, limit):
            values = partition.clip_to(partition.as_matrix(values), limit)

            def within(b):
                return -jnp.sum(partition.sums_of_squares(values, b, max(counts)))

            return jnp.stack([within(b) for b in bins]) / values.shape[1]

        return {"x": scores(data.x, self.limit_x), "y": scores(data.y, self.limit_y)}

    def partial(self, chunk, num_records=None):
        """Moments of x and of y within the bins of each column of z."""
        count = len(chunk.x) if num_records is None else num_records
        width = max(column.levels or SCORE_BINS for column in partition.columns_of_z(chunk))

        def add(bins, x, y):
            columns = [sums.cell_moments(bins[:, j], x, y, width) for j in range(bins.shape[1])]
            return jax.tree.map(lambda *some: np.stack(some), *columns)

        return sums.added(self, "on_grid", chunk, count, add, width)

    def on_grid(self, data, num_records):
        """Bins (n, d) of the columns of z, x and y on the grid."""
        columns, z = partition.columns_of_z(data), partition.as_matrix(data.z)
        reference = self.reference or partition.default_reference(data)
        bins = [partition.column_bin(z[:, j], c, reference, c.levels or SCORE_BINS) for j, c in enumerate(columns)]
        sides = ((data.x, self.limit_x), (data.y, self.limit_y))
        x, y = (sums.to_grid(partition.clip_to(partition.as_matrix(values), limit)) for values, limit in sides)
        return jnp.stack(bins, axis=1), x, y

    def finish(self, totals):
        depth = len(totals["count"])
        within = [sums.centred_moments({name: totals[name][j] for name in totals})[1:] for j in range(depth)]
        return {
            name: np.array([-np.sum(parts[side]) / parts[side].shape[1] for parts in within])
            for side, name in enumerate("xy")
        }

    def sensitivity(self, num_records):
        one = Sensitivity(
            SCORE_SENSITIVITY,
            Norm.LINF,
            Relation.REPLACE_ONE,
            error=16.0 * num_records**2 * 2.0**-53,
            lower=-1.0 * num_records,
            upper=0.0,
        )
        return {"x": one, "y": one}


def select(test, query, released):
    return dataclasses.replace(test, axes=(released.value["x"], released.value["y"]))


@frozen_pytree
class Centers:
    """Public centres of x and y in each group of cells: arrays (G, p) and (G, q), G of `centring_groups`."""

    x: jax.Array
    y: jax.Array


def centring_groups(data, num_cells: int | None, reference, axes, num_records: int | None = None):
    """The group of the test's cells that each record lies in, (n,), and the number of groups.

    num_records: of all the data, where these are a chunk of them.

    About 256 records each: few enough groups that noisy means are useful at epsilon 1. A group is a union of cells:
    a centre that changed inside a cell would put its own step into x and into y there, which is a covariance.
    """
    num_records = data.x.shape[0] if num_records is None else num_records
    target = partition.target_cells(num_records, num_cells)
    return partition.cells_of(data, target, reference, axes, num_groups=num_centres(num_records))


def num_centres(num_records: int) -> int:
    """Wanted number of groups of cells, each with a centre of its own."""
    return max(1, min(32, num_records // 256))


@frozen_pytree
class Standardization(PrivateQuery):
    """Releases noisy means of x and y in public groups of the test's cells (values clipped to [-1, 1]).

    Statistic: sums of x, of y, and counts in each group. Sensitivity: 2 in L1 each, times the number of
    columns; in L2 2 for sums, times its root, and sqrt(2) for counts; for replace-one neighbours.
    Privacy: 40 % of the budget for each kind of sum, 20 % for the counts.
    """

    reference: Any = None
    axes: Any = None
    num_cells: int | None = jax.tree.static(default=None)
    num_columns: tuple[int, int] = jax.tree.static(default=(1, 1))

    method: ClassVar[str] = "Standardization"
    lattice: ClassVar[float] = sums.GRID_ERROR

    def mechanism_in_force(self):
        return divide(self.mechanism, {"count": 0.2, "sum_x": 0.4, "sum_y": 0.4})

    def statistic(self, key, data):
        group, num_groups = centring_groups(data, self.num_cells, self.reference, self.axes)

        def total(values):
            values = partition.clip_to(partition.as_matrix(values), 1.0)
            return jax.ops.segment_sum(values, group, num_groups)

        count = jax.ops.segment_sum(jnp.ones(group.shape), group, num_groups)
        return {"count": count, "sum_x": total(data.x), "sum_y": total(data.y)}

    def partial(self, chunk, num_records=None):
        """Counts, and sums of x and of y on the grid, in each group."""
        count = len(chunk.x) if num_records is None else num_records
        cells = partition.target_cells(count, self.num_cells)
        groups = partition.count_cells(chunk, cells, self.axes, num_centres(count))

        def add(group, x, y):
            group = np.asarray(group, np.intp)
            sides = [
                [sums.cell_sums(group, side[:, j], groups, sums.GRID) for j in range(side.shape[1])] for side in (x, y)
            ]
            named = {name: np.stack(found, axis=1) for name, found in zip(("sum_x", "sum_y"), sides, strict=True)}
            return {"count": sums.counts(group, groups), **named}

        return sums.added(self, "on_grid", chunk, count, add, groups)

    def on_grid(self, data, num_records):
        """Group (n,) of each record, x and y on the grid."""
        group, _ = centring_groups(data, self.num_cells, self.reference, self.axes, num_records)
        x, y = (sums.to_grid(partition.clip_to(partition.as_matrix(values), 1.0)) for values in (data.x, data.y))
        return group, x, y

    def finish(self, totals):
        count = totals["count"].astype(float)
        return {"count": count, **{name: totals[name].astype(float) / sums.GRID for name in ("sum_x", "sum_y")}}

    def sensitivity(self, num_records):
        parts = {"count": 1, "sum_x": self.num_columns[0], "sum_y": self.num_columns[1]}
        norm = self.mechanism_in_force()["count"].norm
        return {
            name: Sensitivity(
                SUM_L1 * size if norm is Norm.L1 else (COUNT_L2 if name == "count" else SUM_L1 * size**0.5),
                norm,
                Relation.REPLACE_ONE,
                error=0.0 if name == "count" else size * num_records**2 * 2.0**-53,
                lower=0.0 if name == "count" else -1.0 * num_records,
                upper=1.0 * num_records,
            )
            for name, size in parts.items()
        }


def standardize(test, query, released):
    """The test about the released centres, shrunk towards 0 where noise dominates."""
    budget, sensitivity = query.mechanism_in_force(), released.sensitivity
    count = jnp.maximum(released.value["count"], 1.0)[:, None]

    def centers(name):
        noise = budget[name].variance(sensitivity[name]) / count**2
        return jnp.clip(released.value[name] / count, -1.0, 1.0) / (1.0 + noise / TYPICAL_SPREAD)

    return dataclasses.replace(test, centers=Centers(x=centers("sum_x"), y=centers("sum_y")))
