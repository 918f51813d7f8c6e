"""ColumnCounts: how many records have each value of each column, all columns at once, with noise on every count."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.ask.value_cells import ValueCells
from jaxdp.core import Norm, PrivateQuery, Relation, Sensitivity
from jaxdp.independence import noise_law
from jaxdp.mechanisms import Laplace
from jaxdp.statistics.tables import contingency

MISSING, UNKNOWN = -1.0, -2.0  # codes of cells without a value and of levels that the schema does not list
MIN_BINS, MAX_BINS = 4, 256


def default_bins(num_records: int, noise_sd: float) -> int:
    """Bins of a continuous column: a power of two, so many that the width of a bin costs as much as the noise.

    The median is off by half a bin, n/(2 bins) records where values are even, and by the noise of the sum of its
    halves, sd sqrt(bins)/2: the two are equal at bins^(3/2) = n/sd.
    """
    wanted = (num_records / noise_sd) ** (2.0 / 3.0)
    return int(min(max(2 ** round(math.log2(max(wanted, 1.0))), MIN_BINS), MAX_BINS))


@frozen_pytree
class ColumnCounts(PrivateQuery):
    """The number of records in each cell of each of d columns: its levels or equal bins, no value, an unknown level.

    Statistic: d histograms, one after the other. data: (n, d), codes or numbers on [-1, 1], NaN or -1 for no value,
    -2 for an unknown level. A record is in one cell of each column, whatever the cells are.
    Of persons with several rows it is the mean over draws of one row each, of the same sensitivity.
    Sensitivity: a replaced record leaves a cell of each column and enters another: 2 d in L1, sqrt(2 d) in L2.
    Privacy: epsilon-DP, or rho-zCDP with mechanism=Gaussian(rho). Relation REPLACE_ONE.

    levels: of each column, 0 for a continuous one. bins: of each continuous column. cells: of each column, where they
    are not these bins.
    """

    levels: tuple[int, ...] = jax.tree.static(default=())
    bins: int = jax.tree.static(default=MIN_BINS)
    cells: tuple[ValueCells | None, ...] = jax.tree.static(default=())

    method: ClassVar[str] = "describe"
    reads_missing: ClassVar[bool] = True
    many_columns: ClassVar[bool] = True
    default_mechanism = Laplace

    def __post_init__(self):
        super().__post_init__()
        check.at_least(1, bins=self.bins)
        if not self.levels:
            raise ValueError("levels must hold the number of levels of at least one column, 0 for a continuous one.")

    @property
    def sizes(self) -> tuple[int, ...]:
        """Cells of each column: its values, then "no value", then "unknown level"."""
        return tuple((count or len(self.cells_of(place))) + 2 for place, count in enumerate(self.levels))

    def cells_of(self, place: int) -> ValueCells:
        """The cells of the values of a continuous column."""
        cells = self.cells[place] if self.cells else None
        return cells or ValueCells.equal(self.bins)

    def statistic(self, key, data):
        """All counts (cells,), as floats."""
        values = jnp.asarray(data)
        counts = [
            contingency.table([self._cell(values[:, place], place, count)], (size,))
            for place, (count, size) in enumerate(zip(self.levels, self.sizes, strict=True))
        ]
        return jnp.concatenate(counts).astype(float)

    def statistic_of_persons(self, key, rows):
        """The mean counts over draws: each person counts once, by its rows in parts that are equal up to one draw."""
        return rows.mean(lambda _, draw: self.statistic(None, draw.x.reshape(len(draw.x), -1)), key)

    def _cell(self, values, place: int, levels: int):
        """The cell (n,) of each value."""
        if levels:
            return jnp.where(values >= 0.0, values, levels - 1.0 - values)  # -1, -2 -> levels, levels + 1
        cells = self.cells_of(place)
        found = jnp.searchsorted(jnp.asarray(cells.starts, values.dtype), values, side="right")
        return jnp.where(jnp.isnan(values), len(cells), found)

    def sensitivity(self, num_records):
        norm, moved = self.mechanism_in_force().norm, 2.0 * len(self.levels)
        bare = Sensitivity(moved if norm is Norm.L1 else moved**0.5, norm, Relation.REPLACE_ONE)
        room = noise_law.margin(self.mechanism_in_force(), bare)
        return dataclasses.replace(bare, lower=-room, upper=num_records + room)

    def noise_sd(self, num_records: int) -> float:
        """Of each count; public."""
        return float(jnp.sqrt(self.mechanism_in_force().variance(self.sensitivity(num_records))))

    def columns_of(self, counts: Any) -> list[np.ndarray]:
        return np.split(np.asarray(counts, float), np.cumsum(self.sizes)[:-1])
