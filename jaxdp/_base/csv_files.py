"""The one writer of CSV files: text that a spreadsheet would run as a formula is written so that it stays text.

A column name, a note or a file name is whatever its author wrote. A cell of text that begins like a formula gets an
apostrophe before it; so does text that begins with an apostrophe, so that nothing is lost: dropping one leading
apostrophe of every cell gives the text back. Numbers, truth values and empty cells are written as they are.
"""

from __future__ import annotations

import csv
import io
import numbers
import os
from collections.abc import Iterable, Sequence
from typing import Any

# what spreadsheets take for the beginning of a formula, the full-width forms included
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
ESCAPE = "'"


def cell(value: Any) -> Any:
    """A value as its cell holds it."""
    if value is None or isinstance(value, numbers.Number):  # truth values are numbers too
        return value
    text = str(value)
    return ESCAPE + text if text.startswith((*FORMULA_STARTS, ESCAPE)) else text


def text(cell: str) -> str:
    """The text that a cell was written from."""
    return cell.removeprefix(ESCAPE)


class _Lines(io.StringIO):
    """Lines that end in a newline alone. Python 3.12 quotes only the line breaks that end its own lines, hence both."""

    def write(self, line: str) -> int:
        return super().write(line.removesuffix("\r\n") + "\n")


def lines(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A CSV file as text, lines ending in a newline alone."""
    file = _Lines()
    writer = csv.writer(file)  # which calls `write` once for each line
    writer.writerow(list(map(cell, header)))
    writer.writerows(list(map(cell, row)) for row in rows)
    return file.getvalue()


def write(path: str | os.PathLike[str], header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Writes a CSV file in UTF-8."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(lines(header, rows))
