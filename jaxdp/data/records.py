"""Records: several columns at once, with what is publicly known about each; what discovery reads."""

import dataclasses
import numbers
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from jaxdp._base.display import described
from jaxdp._base.owner import OWNER, warn_owner
from jaxdp._base.printed import printed
from jaxdp._base.pytree import as_pytree
from jaxdp._base.untraced import is_traced
from jaxdp.data import admit
from jaxdp.data.chunks import Chunks
from jaxdp.data.dataset import CATEGORICAL, CONTINUOUS, ORDINAL, Column, Data, Domain, equally_spaced
from jaxdp.data.parse_report import max_filled

MAX_OUTSIDE = 0.01  # of a column's cells: so few, clipped outliers say, hardly change an answer
ROUNDED = 1e-5  # beyond [-1, 1], where scaled numbers may come by rounding in float32


class Described:
    """What follows from the public descriptions of columns alone."""

    columns: tuple[Column, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Column names; a without_names column is called after its position."""
        return tuple(column.name or f"v{j}" for j, column in enumerate(self.columns))

    @property
    def levels(self) -> tuple[int, ...]:
        """Levels of each column, 0 for a continuous one."""
        return levels_of(self.columns)

    @property
    def num_pairs(self) -> int:
        """Pairs of columns."""
        return len(self.columns) * (len(self.columns) - 1) // 2


@as_pytree
@dataclasses.dataclass(frozen=True, repr=False)
class Records(Described):
    """Values (n, d) and one public description per column.

    Coded columns hold 0, ..., levels - 1, continuous ones lie in [-1, 1] (`Schema.read_table` makes both).
    bare: of the coded columns nothing is declared but the number of their levels.
    Errors: TypeError or ValueError, by type, dtype and shape alone. Printed, it shows no value.
    """

    values: Any
    columns: tuple[Column, ...] = jax.tree.static()
    bare: bool = jax.tree.static(default=False)

    def __post_init__(self):
        if not all(isinstance(column, Column) for column in self.columns):
            raise TypeError("columns must be a tuple of jaxdp.data.Column, one public description per column.")
        object.__setattr__(self, "values", admit.table(self.values, len(self.columns)))

    def __repr__(self) -> str:
        return f"Records({described(self.values)}, columns={self.columns!r})"

    @property
    def num_records(self) -> int:
        """Rows."""
        return self.values.shape[0]

    @property
    def accepted_as(self) -> tuple[Column, ...]:
        """The columns as tests may take them: levels of which nobody said that they have no order have one."""
        if not self.bare:
            return self.columns
        return tuple(
            dataclasses.replace(column, kind=ORDINAL) if column.kind == CATEGORICAL else column
            for column in self.columns
        )

    def blank(self) -> "Records":
        """Zeros in place of all values: what a search is rehearsed on before it is paid."""
        return dataclasses.replace(self, values=np.zeros(np.shape(self.values), self.values.dtype))

    def query(self, i: int, j: int, given: Sequence[int] = (), scores: bool = False) -> Data:
        """The data of the query whether column i is independent of column j given others.

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
        return equally_spaced(values, column.levels), column.spread


@dataclasses.dataclass(frozen=True, repr=False)
class RecordsInChunks(Described):
    """Records that do not lie in memory, for searches that take sums of them alone (`SearchSpec.sums`).

    chunks: of all columns as x, and again as y. columns: their public descriptions.
    """

    chunks: Chunks
    columns: tuple[Column, ...]

    def __repr__(self) -> str:
        return f"RecordsInChunks({self.chunks!r}, columns={self.columns!r})"

    @property
    def num_records(self) -> int:
        """Rows."""
        return self.chunks.num_records

    @property
    def accepted_as(self) -> tuple[Column, ...]:
        """The columns as tests may take them."""
        return self.columns

    def blank(self) -> "RecordsInChunks":
        """One record of zeros in place of all: what a search is rehearsed on before it is paid."""
        return dataclasses.replace(self, chunks=self.chunks.blank())


def levels_of(columns: Sequence[Column]) -> tuple[int, ...]:
    """Levels of each column, 0 for a continuous one."""
    return tuple(0 if column.kind == CONTINUOUS else column.levels for column in columns)


def as_records(data, levels: Sequence[int] | None = None, names: Sequence[str] | None = None) -> Records:
    """Records from what callers have: Records, the pair of `Schema.read_table`, or an array (n, d) of codes.

    levels: public number of levels of each column, required with a bare array, since levels seen in the
    data are private; 0 marks a continuous column scaled to [-1, 1]. A column of k levels holds the codes 0, ..., k - 1.
    Other values are moved into the coding, and a bare array of which more than a hundredth of a column needs it warns
    the owner (`OwnerWarning`, private: not for release); so does anything of which more than sqrt(n)/4 cells of a
    column are NaN. No traced array is looked at. Tests of ordered levels take such codes in their order; a schema that
    calls a column categorical says that it has none.
    """
    if isinstance(data, RecordsInChunks):
        return data  # type: ignore[return-value]  # the same public numbers; searches that need values were refused
    if isinstance(data, Records):
        # admitted again: a pytree operation may have put anything into it
        return _looked_at(dataclasses.replace(data))
    if isinstance(data, tuple) and len(data) == 2 and isinstance(data[1], list | tuple) and levels is None:
        return _looked_at(Records(data[0], tuple(data[1])))
    if levels is None:
        raise ValueError(
            "levels is needed with a bare array: give levels=(2, 3, ...), public knowledge (0: continuous)."
        )
    counts = _counts(levels)
    columns = tuple(
        Column(CATEGORICAL if count else CONTINUOUS, count, name)
        for count, name in zip(counts, _names(names, len(counts)), strict=True)
    )
    return _looked_at(Records(data, columns, bare=True))


def _counts(levels: Any) -> list[int]:
    """Levels of each column; tables of numbers, and R, write them as 2.0."""
    items = np.asarray(levels, dtype=object)
    whole = [isinstance(item, numbers.Real) and not isinstance(item, bool | np.bool) for item in items.flat]
    if items.ndim != 1 or not all(whole) or not all(item >= 0 and item % 1 == 0 for item in items):
        raise ValueError(
            f"levels must be whole numbers >= 0, one for each column, as levels=(2, 3, 0) (0: continuous), got "
            f"{printed(levels)}."
        )
    return [int(item) for item in items]


def _names(names: Any, count: int) -> list[str]:
    """A name for each column; without any, columns are called after their positions."""
    if names is None:
        return [""] * count
    listed = [] if isinstance(names, str) else list(names)
    if len(listed) != count or not all(isinstance(name, str) for name in listed):
        got = printed(names) if len(listed) == count or not listed else len(listed)
        raise ValueError(f"names must be {count} texts, one for each of levels, got {got}.")
    return [str(name) for name in listed]


def warn_of_missing(**columns: Any) -> None:
    """Warns the owner where more cells of a column (n,) or of columns (n, d) are NaN than may be filled.

    Arrays without refusal: whether it is refused would depend on values, which no refusal of arrays does (`admit`).
    """
    for name, values in columns.items():
        if (cells := _concrete(values)) is None or cells.dtype.kind != "f":
            continue
        count = int(np.max(np.count_nonzero(np.isnan(cells), axis=0), initial=0))
        if count > max_filled(len(cells)):
            warn_owner(
                f"{count} of {len(cells)} cells of {name} are NaN. They count as one value, and dependence may be "
                "invented, also where there is none: leave such records out before the call, or read the table through "
                f"a jaxdp.Schema ({OWNER})."
            )
            return


def _concrete(values: Any) -> np.ndarray | None:
    """Values that can be looked at, as NumPy; None of traced ones and of those of other processes."""
    if is_traced(values) or not (isinstance(values, np.ndarray) or getattr(values, "is_fully_addressable", False)):
        return None
    return np.asarray(values)  # before it is sliced: inside a program, JAX would trace that


def _looked_at(records: Records) -> Records:
    """The records, of which the owner is warned where many cells are NaN or, of a bare array, in another coding.

    Errors: ValueError where two columns have one name.

    Codes 1 and 2 of two levels are: moved into 0 and 1, all of them are one level, and a test finds nothing.
    """
    repeated = [name for place, name in enumerate(records.names) if name in records.names[:place]]
    if repeated:
        raise ValueError(f"two columns are called {repeated[0]!r}: give each a name of its own.")
    cells = _concrete(records.values)
    if cells is None:
        return records
    warn_of_missing(**{f"column {name!r}": cells[:, j] for j, name in enumerate(records.names)})
    if records.bare:
        _warn_of_other_coding(records, cells)
    return records


def _warn_of_other_coding(records: Records, cells: np.ndarray) -> None:
    outside = [_outside(cells[:, j], column) for j, column in enumerate(records.columns)]
    many = [j for j, count in enumerate(outside) if count > max(1, MAX_OUTSIDE * len(cells))]
    if not many:
        return
    first = many[0]
    more = f" (and {len(many) - 1} more)" if many[1:] else ""
    coding, way_out = "are no numbers from -1 to 1", "scale it by public bounds to [-1, 1]"
    if count := records.levels[first]:
        coding, way_out = f"are none of its codes 0 to {count - 1}", "subtract 1 from codes that begin at 1"
    warn_owner(
        f"{outside[first]} of {len(cells)} cells of column {records.names[first]!r}{more} {coding}: they are moved to "
        f"the nearest or to the middle, and dependence may be lost; {way_out}, or read the table through a "
        f"jaxdp.Schema ({OWNER})."
    )


def _outside(values: np.ndarray, column: Column) -> int:
    """Cells that hold a number which is none of the column's codes, or beyond its scale; NaN is no number."""
    low, high = (-1.0 - ROUNDED, 1.0 + ROUNDED) if column.kind == CONTINUOUS else (0, column.levels - 1)
    within = (values >= low) & (values <= high)
    if column.kind != CONTINUOUS and values.dtype.kind not in "iu":
        within &= values == np.floor(values)
    return int(np.count_nonzero(~within & (values == values)))
