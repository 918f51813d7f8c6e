"""How many records of a stratified table would have to move for independence, less what chance alone explains.

Theory: docs/theory/max_min_pc.md#score. NumPy float64 on the host, for exact counts, in batches of one shape.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from jaxdp.core import Relation

UNIT_ROUNDOFF = 2.0**-53
LARGER_SPREAD = 0.75  # of the largest sd, at least that of u in a table of more than four cells (simulated: 0.7)
FROM_Z = 3.0  # null sds; the law of null scores is used beyond it
HALF_NORMAL = math.sqrt(2.0 / math.pi)  # E|N(0, 1)|
ROUND_UP = 1.0 + 2.0**-40  # of constants in float64


@dataclasses.dataclass(frozen=True)
class Excess:
    """The score q of a pair of columns given others, in records: moved rows, less their null mean and some spread.

    q = sum_s w (u - mean) - deviations (sqrt(total + total_offset) - sqrt(total_offset)), over strata s of T rows with
    row and column sums R, C: u = sum |N - R C/T|/2 are the rows that must move for independence; V = R (T - R) C (T -
    C)/T^3 is the null variance of a cell, mean = weight/2 sum (sqrt(V + offset) - sqrt(offset)) about the null mean of
    u (E|N(0, 1)| = 0.8), total = sum_s w sum V; w = T/(T + shrink cells) takes strata with few rows per cell down.
    The offsets make the roots flat enough that one record moves them little.
    """

    weight: float = 0.8
    offset: float = 25.0
    deviations: float = 1.2
    total_offset: float = 2500.0
    shrink: float = 1.0

    def of_tables(self, tables: np.ndarray, cells: np.ndarray) -> np.ndarray:
        """q of each table (B, strata, La, Lb) of counts, float64 (B,). cells (B,): public, of one stratum."""
        tables = np.asarray(tables, float)
        rows, columns = tables.sum(-1), tables.sum(-2)
        size = rows.sum(-1)
        divisor = np.maximum(size, 1.0)[..., None]  # an empty stratum has no rows to divide by its size
        moved = np.abs(tables - rows[..., None] * (columns / divisor)[..., None, :]).sum((-2, -1))
        spread_a = rows * ((size[..., None] - rows) / divisor)
        spread_b = columns * ((size[..., None] - columns) / divisor) / divisor
        variance = spread_a[..., None] * spread_b[..., None, :]
        means = self.weight * (np.sqrt(variance + self.offset) - math.sqrt(self.offset)).sum((-2, -1))
        weights = size / (size + self.shrink * np.asarray(cells, float)[:, None])
        total = np.sum(weights * variance.sum((-2, -1)), axis=-1)
        spread = np.sqrt(total + self.total_offset) - math.sqrt(self.total_offset)
        return 0.5 * np.sum(weights * (moved - means), axis=-1) - self.deviations * spread

    def sensitivity(self, relation: Relation) -> float:
        """How far one record moves q, given any columns."""
        per_row = ROUND_UP * (2.0 + 3.0 * self._slope())
        return per_row if relation is Relation.ADD_OR_REMOVE_ONE else 2.0 * per_row

    def marginal_sensitivity(self, relation: Relation, binary: bool = False) -> float:
        """How far one record moves q of two columns alone; binary: both columns have two levels."""
        if relation is Relation.ADD_OR_REMOVE_ONE:
            return self.sensitivity(relation)
        return ROUND_UP * ((2.0 if binary else 3.0) + 4.0 * self._slope())

    def null_law(self, num_records: int, levels: Sequence[int]) -> tuple[float, float]:
        """(sd, deducted): q of independent columns hardly passes sd (|z| - deducted), z normal, from |z| = 3 on.

        levels: of all columns, public. No sum of residuals with signs has a variance above n/4, which two balanced
        binary columns reach; of larger tables u spreads less, but its mean is more than what q takes off where counts
        are few (docs/theory/max_min_pc.md#false).
        """
        sd = 0.5 * math.sqrt(num_records)
        pairs = ((2, 2), tuple(sorted(levels)[-2:]))
        binary, largest = (self._taken_off(num_records, *pair) / sd for pair in pairs)
        return sd, binary if max(levels) == 2 else min(binary, largest + (1.0 - LARGER_SPREAD) * FROM_Z)

    def _taken_off(self, n: int, rows: int, columns: int) -> float:
        """What q takes off u of two balanced independent columns, less the mean of u beyond that of two binary ones."""
        cells = rows * columns
        variance = n * (1.0 - 1.0 / rows) * (1.0 - 1.0 / columns) / cells
        weight = n / (n + self.shrink * cells)
        mean = 0.5 * cells * self.weight * (math.sqrt(variance + self.offset) - math.sqrt(self.offset))
        total = weight * cells * variance
        spread = self.deviations * (math.sqrt(total + self.total_offset) - math.sqrt(self.total_offset))
        beyond = 0.0 if cells == 4 else 0.5 * cells * HALF_NORMAL * math.sqrt(variance)
        return weight * (mean - beyond) + spread

    def _slope(self) -> float:
        """How far the two penalties move per unit of variance that moves between cells."""
        return self.weight / (4.0 * math.sqrt(self.offset)) + self.deviations / (2.0 * math.sqrt(self.total_offset))

    def rounding(self, num_records: int, cells: int) -> float:
        """Bound on |computed - exact| of q in float64, for tables of at most so many cells."""
        size = num_records + (16.0 + self.offset) * cells + self.total_offset
        return (4.0 * cells + 64.0) * (1.0 + self.weight + self.deviations) * size * UNIT_ROUNDOFF


def variation(tables: np.ndarray) -> np.ndarray:
    """Rows outside the commonest level of the less varied of two columns within each stratum, summed: (B,).

    tables: (B, strata, La, Lb). 0 where every stratum fixes one of the columns. A record that comes raises it by at
    most 1 and never lowers it.
    """
    tables = np.asarray(tables, float)
    rows, columns = tables.sum(-1), tables.sum(-2)
    return np.sum(rows.sum(-1) - np.maximum(rows.max(-1), columns.max(-1)), axis=-1)
