"""CSV files, data frames and mappings as pieces of raw columns.

Errors speak of files, positions and names that the caller already knows: never of a value, nor of a header
text that was not asked for (a file without a header line has a record there).
"""

from __future__ import annotations

import csv
import itertools
import operator
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

PIECE_ROWS = 65_536
USUAL_DELIMITERS = (",", ";", "\t", "|")


def pieces(source: Any, names: Sequence[str], delimiter: str = ",") -> Iterator[Mapping[str, Any]]:
    """Yields dicts name -> values of consecutive rows; at least one row in all.

    source: path of a CSV file, a pandas, polars or pyarrow table, or a mapping of name -> (n,) values.
    Errors: OSError if a file cannot be opened; ValueError or TypeError with one sentence otherwise.
    """
    if isinstance(source, str | os.PathLike):
        yield from _csv_pieces(os.fspath(source), names, delimiter)
    else:
        yield _frame_columns(source, names)


def _csv_pieces(path: str, names: Sequence[str], delimiter: str) -> Iterator[Mapping[str, Any]]:
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file, delimiter=delimiter, strict=True)
            header = [name.strip() for name in next(rows, [])]
            positions = _positions(path, header, names, delimiter)
            take = [operator.itemgetter(position) for position in positions]
            count = 0
            while piece := list(itertools.islice(rows, PIECE_ROWS)):
                piece = [row for row in piece if row]
                _require_width(path, piece, len(header), count)
                if piece:
                    yield {name: list(map(get, piece)) for name, get in zip(names, take, strict=True)}
                count += len(piece)
    except UnicodeDecodeError:
        raise ValueError(f"data file {path} is not UTF-8 text: save it as CSV in UTF-8.") from None
    except csv.Error:
        raise ValueError(
            f"data file {path} is not well-formed CSV: look for an open quote or an endless field."
        ) from None
    if count == 0:
        raise ValueError(f"data file {path} has a header but no rows.")


def _positions(path: str, header: list[str], names: Sequence[str], delimiter: str) -> list[int]:
    """Where the named columns stand in the header."""
    if not any(header):
        raise ValueError(f"data file {path} is empty: it needs a header line and at least one row.")
    if len(header) == 1:
        likely = [mark for mark in USUAL_DELIMITERS if mark != delimiter and mark in header[0]]
        if likely:
            raise ValueError(
                f"data file {path} has one column only and looks separated by {likely[0]!r}: "
                f"write delimiter = {_quoted(likely[0])} at the top of the schema."
            )
    for position, name in enumerate(header):
        first = header.index(name)
        if first < position:
            raise ValueError(
                f"data file {path} names two columns alike, number {first + 1} and number {position + 1}: rename one."
            )
    for name in names:
        if name not in header:
            raise ValueError(
                f"column {name!r} is not in the header of {path} ({len(header)} columns): "
                "check the spelling and that the first line names the columns."
            )
    return [header.index(name) for name in names]


def _quoted(mark: str) -> str:
    return '"\\t"' if mark == "\t" else f'"{mark}"'


def _require_width(path: str, rows: list[list[str]], width: int, before: int) -> None:
    for number, row in enumerate(rows, start=before + 1):
        if len(row) != width:
            raise ValueError(
                f"data file {path}: row {number} does not have the {width} fields of the header; "
                "quote fields that contain the delimiter."
            )


def _frame_columns(source: Any, names: Sequence[str]) -> dict[str, np.ndarray]:
    """The named columns of a data frame or a mapping, by duck typing."""
    if isinstance(source, Mapping):
        available = list(source)
    elif hasattr(source, "column_names"):  # pyarrow, where .columns holds the arrays themselves
        available = list(source.column_names)
    elif hasattr(source, "columns") and hasattr(source, "__getitem__"):
        available = list(source.columns)
    else:
        raise TypeError(
            "source must be the path of a CSV file, a pandas, polars or pyarrow table or a mapping of arrays, "
            f"got {type(source).__name__}."
        )
    columns: dict[str, np.ndarray] = {}
    for name in names:
        matches = [label for label in available if label == name]
        if not matches:
            raise ValueError(f"column {name!r} is not in the table ({len(available)} columns): check the spelling.")
        if len(matches) > 1:
            raise ValueError(f"the table has {len(matches)} columns named {name!r}: rename them.")
        columns[name] = _values(name, source[name])
    _require_one_length(columns)
    return columns


def _values(name: str, column: Any) -> np.ndarray:
    """One column as an array (n,) of numbers, booleans or objects."""
    if isinstance(column, np.ma.MaskedArray):
        column = np.ma.filled(column.astype(object), None)
    if hasattr(column, "to_pylist") and column.null_count:
        # pyarrow decodes a null in a dictionary-encoded column as one of its values
        column = np.fromiter(column.to_pylist(), object, len(column))
    values = np.asarray(column.to_numpy() if hasattr(column, "to_numpy") else column)
    if values.ndim != 1:
        raise ValueError(f"column {name!r} must have one dimension, got shape {values.shape}.")
    if values.dtype.kind not in "biufOUT":
        raise TypeError(f"column {name!r} has type {values.dtype}: convert it to numbers or texts first.")
    return values if values.dtype.kind in "biuf" else values.astype(object)


def _require_one_length(columns: dict[str, np.ndarray]) -> None:
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"the columns differ in length: {', '.join(f'{k!r} has {v}' for k, v in lengths.items())}.")
    if 0 in lengths.values():
        raise ValueError("the table has no rows.")
