"""Cells of one column as Arrow's readers left them: texts, or whole numbers with gaps, read many at a time."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

# What Arrow and Python surely read alike; everything else is left to Python.
PLAIN_NUMBER = r"^-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,4})?$"


class _Cells(Sequence):
    """A sequence (n,) of what a pyarrow array holds."""

    def __init__(self, cells: Any) -> None:
        self._cells = cells

    def __len__(self) -> int:
        return len(self._cells)

    def __getitem__(self, place: Any) -> Any:
        return type(self)(self._cells[place]) if isinstance(place, slice) else self._cells[place].as_py()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._cells.to_pylist())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} cells)"


class TextColumn(_Cells):
    """A sequence of texts (n,). cells: a pyarrow array of strings without nulls."""

    @functools.cached_property
    def numbers(self) -> np.ndarray:
        """float64 (n,), each cell as `as_number` reads it."""
        import pyarrow as pa
        import pyarrow.compute as pc

        try:
            filled = pc.if_else(pc.equal(self._cells, ""), None, self._cells)
            return _floats(pc.cast(filled, pa.float64()))
        except pa.ArrowInvalid:
            pass
        plain = pc.match_substring_regex(self._cells, PLAIN_NUMBER)
        try:
            found = _floats(pc.cast(pc.if_else(plain, self._cells, None), pa.float64()))
        except pa.ArrowInvalid:  # out of range, which Python reads as infinite
            return np.fromiter(map(as_number, self), float, len(self))
        places = np.flatnonzero(~plain.to_numpy(zero_copy_only=False))
        found[places] = [as_number(text) for text in self._cells.take(pa.array(places)).to_pylist()]
        return found

    @functools.cached_property
    def distinct(self) -> tuple[list[str], np.ndarray]:
        """The texts that occur, and int (n,): which of them each cell is."""
        encoded = self._cells.dictionary_encode()
        return encoded.dictionary.to_pylist(), encoded.indices.to_numpy(zero_copy_only=False)


class WholeColumn(_Cells):
    """A sequence of whole numbers or truth values (n,), None where there is none. cells: a pyarrow array of them."""

    @functools.cached_property
    def numbers(self) -> np.ndarray:
        """float64 (n,), each cell as Python's `float` makes it of a whole number; NaN where there is none."""
        import pyarrow as pa
        import pyarrow.compute as pc

        cells = pc.cast(self._cells, pa.uint8()) if pa.types.is_boolean(self._cells.type) else self._cells
        return _floats(pc.cast(cells, pa.float64(), safe=False))


def taken(values: Any, places: np.ndarray) -> Any:
    """Some cells of a column, in the form that it has. places: int (k,)."""
    if isinstance(values, _Cells):
        import pyarrow as pa

        return type(values)(values._cells.take(pa.array(places)))
    return values[places] if isinstance(values, np.ndarray) else [values[place] for place in places.tolist()]


def _floats(cells: Any) -> np.ndarray:
    """float64 of an Arrow array, NaN for nulls; writable."""
    return np.array(cells.to_numpy(zero_copy_only=False), float)


def as_number(value: Any) -> float:
    """One value as a number; NaN where it is none, as a text with the underscore of Python's source ("1_0")."""
    if isinstance(value, str) and "_" in value:
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
