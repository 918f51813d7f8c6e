"""Records: several columns at once, with what is publicly known about each; what discovery reads."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from jaxdp.data.dataset import CATEGORICAL, CONTINUOUS, Column, Data, Domain


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Records:
    """Values (n, d) and one public description per column.

    Coded columns hold 0, ..., levels - 1, continuous ones lie in [-1, 1] (`Schema.read_table` makes both).
    """

    values: Any
    columns: tuple[Column, ...] = jax.tree.static()

    def __post_init__(self):
        shape = getattr(self.values, "shape", None)
        if shape is not None and (len(shape) != 2 or shape[1] != len(self.columns)):
            raise ValueError(f"values must be (n, {len(self.columns)}), one column per description, got {shape}.")

    @property
    def names(self) -> tuple[str, ...]:
        """Column names; a nameless column is called after its position."""
        return tuple(column.name or f"v{j}" for j, column in enumerate(self.columns))

    @property
    def levels(self) -> tuple[int, ...]:
        """Levels of each column, 0 for a continuous one."""
        return tuple(0 if column.kind == CONTINUOUS else column.levels for column in self.columns)

    @property
    def num_records(self) -> int:
        """Rows."""
        return self.values.shape[0]

    def question(self, i: int, j: int, given: Sequence[int] = (), scores: bool = False) -> Data:
        """The data of the question whether column i is independent of column j given others.

        scores: coded columns i and j become equally spaced numbers on [-1, 1], for tests of numbers.
        """
        columns, values = self.columns, self.values
        (x, column_x), (y, column_y) = (self._scores(k) if scores else (values[:, k], columns[k]) for k in (i, j))
        return Data(
            x,
            y,
            values[:, np.array(given, dtype=int)] if len(given) else None,
            domain=Domain((column_x,), (column_y,), tuple(columns[k] for k in given)),
        )

    def _scores(self, k: int) -> tuple[Any, Column]:
        column, values = self.columns[k], self.values[:, k]
        if column.kind == CONTINUOUS:
            return values, column
        scaled = values * (2.0 / max(column.levels - 1, 1)) - 1.0
        return scaled, Column(CONTINUOUS, column.levels, column.name)


def as_records(data, levels: Sequence[int] | None = None, names: Sequence[str] | None = None) -> Records:
    """Records from what callers have: Records, the pair of `Schema.read_table`, or an array (n, d) of codes.

    levels: public number of levels of each column, required with a bare array, since levels seen in the
    data are private; 0 marks a continuous column scaled to [-1, 1].
    """
    if isinstance(data, Records):
        return data
    if isinstance(data, tuple):
        values, columns = data
        return Records(values, tuple(columns))
    if levels is None:
        raise ValueError(
            "levels is needed with a bare array: give levels=(2, 3, ...), public knowledge (0: continuous)."
        )
    names = [""] * len(levels) if names is None else list(names)
    columns = tuple(
        Column(CATEGORICAL if count else CONTINUOUS, int(count), name)
        for count, name in zip(levels, names, strict=True)
    )
    return Records(data, columns)
