"""Which files hold tables, by the end of their name: CSV (gzip too) as text, Parquet, Arrow and Excel as typed tables.

A typed table says what its columns hold; that, as their names, is public. Errors name the file and what is missing.
"""

from __future__ import annotations

import codecs
import contextlib
import functools
import gzip
import importlib.util
import io
import os
import re
import shlex
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

from jaxdp._base.printed import path_of
from jaxdp.data.notation import PercentCell
from jaxdp.data.texts import as_number

PARQUET, ARROW, EXCEL = (".parquet", ".pq"), (".arrow", ".feather", ".ipc"), (".xlsx", ".xlsm")
GZIP = ".gz"
EMPTY = "empty"  # a line or row without any value


def is_typed(path: str | os.PathLike) -> bool:
    """Whether the file is a typed table and no text."""
    return os.fspath(path).lower().endswith((*PARQUET, *ARROW, *EXCEL))


def opened(path: str | os.PathLike) -> BinaryIO:
    """A text file as bytes, unpacked if its name ends in .gz. Errors: OSError if it cannot be opened,
    ValueError for a text that is no path, and for a file in UTF-16.
    """
    if path_of("the table", path).lower().endswith(GZIP):
        return _in_utf8(path, gzip.open(path, "rb"))
    return _in_utf8(path, open(path, "rb"))


def _in_utf8(path: str | os.PathLike, file: Any) -> BinaryIO:
    """The file, unless it begins with the mark of UTF-16 or with a letter of two bytes: its broken lines would be
    refused for what they are not.
    """
    with contextlib.ExitStack() as undo:
        undo.callback(file.close)
        start = file.peek(2)[:2]
        undo.pop_all()
    if start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) or (len(start) == 2 and start.count(b"\0") == 1):
        file.close()
        name = os.fspath(path)
        raise ValueError(
            f"data file {name} is UTF-16, which spreadsheets call Unicode text: save it as CSV in UTF-8, or convert it "
            f"by `iconv -f UTF-16 -t UTF-8 {shlex.quote(name)} > NEW.csv`."
        )
    return file


@contextlib.contextmanager
def unpacking(path: str | os.PathLike) -> Iterator[None]:
    """Says in one sentence that a packed file is damaged or not packed."""
    try:
        yield
    except (gzip.BadGzipFile, EOFError):
        raise ValueError(f"data file {os.fspath(path)} is no whole gzip file: pack it again, or rename it.") from None


@contextlib.contextmanager
def text(path: str | os.PathLike) -> Iterator[Any]:
    """A text file in UTF-8, as `csv.reader` takes it."""
    with unpacking(path), opened(path) as file, io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as lines:
        yield lines


def names_of(path: str | os.PathLike) -> list[str]:
    """Names of the columns of a typed table; no record is read."""
    name = os.fspath(path)
    if name.lower().endswith(EXCEL):
        return _excel_header(next(iter(_excel_rows(name, 1)), ()))
    return list(_arrow_schema(name).names)


def kinds_of(path: str | os.PathLike) -> dict[str, str]:
    """What the columns of a Parquet or Arrow file hold, by its header; empty for Excel, whose header has names only."""
    name = os.fspath(path)
    if name.lower().endswith(EXCEL):
        return {}
    return {field.name: str(field.type) for field in _arrow_schema(name)}


def typed(
    path: str | os.PathLike, names: Sequence[str], strict: bool = False, faults: Counter[str] | None = None
) -> Any:
    """The named columns of a typed table, as far as it has them: a pyarrow table, or a dict of lists of cells.

    strict, faults: of rows of Excel without any cell, as in `readers.pieces`.
    """
    name = os.fspath(path)
    if name.lower().endswith(EXCEL):
        return _excel(name, names, strict, faults)
    with readable(name):
        if name.lower().endswith(PARQUET):
            parquet = library("pyarrow.parquet", name)
            known = set(parquet.read_schema(name).names)
            return parquet.read_table(name, columns=[column for column in names if column in known])
        feather = library("pyarrow.feather", name)
        known = set(_arrow_schema(name).names)
        return feather.read_table(name, columns=[column for column in names if column in known])


def _arrow_schema(name: str) -> Any:
    with readable(name):
        if name.lower().endswith(PARQUET):
            return library("pyarrow.parquet", name).read_schema(name)
        ipc = library("pyarrow.ipc", name)
        with open(name, "rb") as file:
            return ipc.open_file(file).schema


def _excel(name: str, names: Sequence[str], strict: bool, faults: Counter[str] | None) -> dict[str, list]:
    """The first table of the workbook: its first row names the columns.

    A row without any value is a record if strict; otherwise it is none, and `faults` counts it.
    """
    top, *rows = _excel_rows(name) or [()]
    header = _excel_header(top)
    records = rows if strict else [row for row in rows if any(cell is not None for cell in row)]
    if faults is not None:
        faults[EMPTY] += len(rows) - len(records)
    found: dict[str, list] = {}
    for place, column in enumerate(header):
        if column in found:
            raise ValueError(f"data file {name} names two columns alike, one of them number {place + 1}: rename it.")
        if column in names:
            found[column] = [row[place] if place < len(row) else None for row in records]
    return found


def _excel_rows(name: str, most: int | None = None) -> list[Sequence[Any]]:
    """The rows of the first table, at most so many. The library's warnings quote cells."""
    openpyxl = library("openpyxl", name)
    with readable(name), warnings.catch_warnings(action="ignore"):
        book = openpyxl.load_workbook(name, read_only=True, data_only=True)
        with contextlib.closing(book):
            return [list(map(_excel_value, row)) for row in book.worksheets[0].iter_rows(max_row=most)]


def _excel_value(cell: Any) -> Any:
    """What a cell holds; a `PercentCell` where it is shown with a percent sign."""
    value = cell.value
    return (
        PercentCell(as_number(value)) if type(value) in (int, float) and _shows_percent(cell.number_format) else value
    )


@functools.cache
def _shows_percent(number_format: str) -> bool:
    """Whether numbers are shown a hundred times as large; a percent sign in quotes is a text behind the number."""
    return "%" in re.sub(r'"[^"]*"|\\.', "", number_format)


def _excel_header(row: Sequence[Any]) -> list[str]:
    return ["" if cell is None else str(cell).strip() for cell in row]


def library(module: str, name: str) -> Any:
    """A module of an optional library. Errors: ValueError that names the library and the file."""
    package = module.partition(".")[0]
    if importlib.util.find_spec(package) is None:
        raise ValueError(f"{name} needs the library {package}: install it, or save the table as CSV in UTF-8.")
    return importlib.import_module(module)


@contextlib.contextmanager
def readable(name: str) -> Iterator[None]:
    """A library's error may quote the file; ours says which it is. Files that cannot be opened stay OSErrors."""
    try:
        yield
    except OSError as error:
        if error.filename is not None:
            raise
        if error.errno is not None:  # pyarrow leaves the name out
            raise OSError(error.errno, os.strerror(error.errno), name) from None
        wrong = True
    except ValueError as error:
        if type(error) is ValueError and str(error).startswith((name, "data file")):
            raise
        wrong = True
    except Exception:
        wrong = True
    else:
        wrong = False
    if wrong:
        raise ValueError(f"data file {name} cannot be read as what its name says it is: save it again, or rename it.")
