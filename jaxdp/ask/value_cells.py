"""Into which cells the values of a continuous column are counted: equal bins, and single values that are public."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Mapping

import numpy as np

from jaxdp.data.coding import ColumnRule


@dataclasses.dataclass(frozen=True)
class ValueCells:
    """Cells on [-1, 1], ascending, one beside the other: a value is in the last cell that starts at it or below.

    starts: of all cells but the first. low, high: between which the values of each cell lie; a single value has both.
    """

    starts: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]

    def __len__(self) -> int:
        return len(self.low)

    @classmethod
    def equal(cls, bins: int, points: Iterable[float] = ()) -> ValueCells:
        """Bins of equal width, and a cell of its own for each of some values."""
        points = set(points)
        breaks = sorted(points | set(np.linspace(-1.0, 1.0, bins + 1).tolist()))
        found: list[tuple[float, float, float]] = []  # start, low, high
        for place, here in enumerate(breaks):
            if here in points:
                found.append((here, here, here))
            if here < 1.0:
                start = math.nextafter(here, 2.0) if here in points else here
                found.append((start, here, breaks[place + 1]))
        starts, low, high = zip(*found, strict=True)
        return cls(starts[1:], low, high)

    @classmethod
    def of_values(cls, values: Iterable[float]) -> ValueCells:
        """A cell for each of the values, which are all that there are; others count as the closest one."""
        values = tuple(values)
        middles = tuple(0.5 * (a + b) for a, b in itertools.pairwise(values))
        return cls(middles, values, values)

    def in_bins(self, counts: np.ndarray, bins: int) -> np.ndarray:
        """The counts of equal bins, from those of the cells."""
        places = np.clip(np.floor(0.5 * (np.array(self.low) + 1.0) * bins), 0, bins - 1).astype(int)
        return np.bincount(places, np.asarray(counts, float), bins)


def points_of(rule: ColumnRule) -> Mapping[float, float]:
    """Single values of a column that are public: its bounds, on which what lies beyond counts, and 0.

    Returns their places on [-1, 1], with the values.
    """
    values = {rule.lower, rule.upper}
    if not rule.is_date and rule.lower < 0.0 < rule.upper:
        values.add(0.0)
    return _scaled(rule, values)


def values_of(rule: ColumnRule, most: int) -> Mapping[float, float]:
    """All values that the declared step leaves, by their places on [-1, 1]; none where there are more than `most`."""
    count = rule.code_column()[0].values
    if not 2 <= count <= most:
        return {}
    return _scaled(rule, [rule.lower + rule.step * place for place in range(count)])


def _scaled(rule: ColumnRule, values: Iterable[float]) -> dict[float, float]:
    known = sorted(min(float(value), rule.upper) for value in values)
    return dict(zip(rule.scaled_number(np.array(known)).tolist(), known, strict=True))
