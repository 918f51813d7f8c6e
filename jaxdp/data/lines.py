"""Strict reading of a CSV file: a record is one line, and nothing that a record holds is an error.

Each physical line is parsed by itself, so that an open quote cannot swallow the lines after it; a line break inside
quotes ends the record there and makes two lines. A line that is empty, longer than a mebibyte, not UTF-8, badly
quoted or of another number of fields than the header counts as a record of empty cells, which the schema codes
as missing. Only the header and the file itself, both public, can be refused.
"""

from __future__ import annotations

import csv
import functools
import itertools
import operator
import os
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

from jaxdp.data import files, header

LONGEST_LINE = 1 << 20
PIECE_LINES = 65_536
_BLOCK = 1 << 20
_BOM = b"\xef\xbb\xbf"
EMPTY, TOO_LONG, NOT_UTF8, BAD_QUOTES, WIDTH = (
    files.EMPTY,
    "too long",
    "not UTF-8",
    "badly quoted",
    "of another number of fields",
)


def count(path: str | os.PathLike, names: Sequence[str], delimiter: str = ",") -> int:
    """Lines after the header: the n of a strict run without a public number. Errors: as `pieces`."""
    with files.unpacking(path), _opened(path) as file:
        _columns(path, file, names, delimiter)
        lines, last = 0, b"\n"
        while block := file.read(_BLOCK):
            lines, last = lines + block.count(b"\n"), block[-1:]
    return lines + (last != b"\n")


def pieces(
    path: str | os.PathLike,
    names: Sequence[str],
    delimiter: str = ",",
    records: int | None = None,
    faults: Counter[str] | None = None,
) -> Iterator[Mapping[str, list[str]]]:
    """Yields dicts name -> cells of consecutive lines.

    records: public number of records; lines beyond it are dropped, missing ones filled with empty cells. Without it
    every line counts. faults: counts the malformed lines by kind, for the owner of the file.
    Errors: OSError if the file cannot be opened; ValueError for its header, or if it is not a regular file.
    """
    with files.unpacking(path), _opened(path) as file:
        width, places = _columns(path, file, names, delimiter)
        take = [operator.itemgetter(place) for place in places]
        blank = [""] * width
        lines: Iterator[bytes] = iter(functools.partial(file.readline, LONGEST_LINE), b"")
        rows: Iterator[list[str]] = (_fields(line, file, delimiter, width, faults) or blank for line in lines)
        if records is not None:
            rows = itertools.islice(itertools.chain(rows, itertools.repeat(blank)), records)
        while piece := list(itertools.islice(rows, PIECE_LINES)):
            yield {name: list(map(get, piece)) for name, get in zip(names, take, strict=True)}


def _opened(path: str | os.PathLike) -> BinaryIO:
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        raise ValueError(f"{os.fspath(path)} is not a regular file: strict reading goes over the file more than once.")
    return files.opened(path)


def _columns(path: Any, file: BinaryIO, names: Sequence[str], delimiter: str) -> tuple[int, list[int]]:
    """The number of fields, and the places of the named columns; leaves the file at the first record."""
    name, line = os.fspath(path), file.readline(LONGEST_LINE).removeprefix(_BOM)
    if b"\r" in line.rstrip(b"\r\n"):
        raise ValueError(
            f"data file {name} ends its lines with carriage returns alone, as old spreadsheets do: save it with line "
            "feeds, which `jaxdp check` and strict reading go by."
        )
    try:
        fields = next(csv.reader(_texts(line, file), delimiter=delimiter, strict=True), [])
    except (UnicodeDecodeError, csv.Error):
        raise ValueError(
            f"data file {name} has a header line, which names the columns, that is not CSV in UTF-8: save it as CSV in "
            f"UTF-8, or convert it by `iconv -f latin1 -t UTF-8 {shlex.quote(name)} > NEW.csv`."
        ) from None
    fields = [field.strip() for field in fields]
    return len(fields), header.positions(name, fields, names, delimiter)


def _texts(line: bytes, file: BinaryIO) -> Iterator[str]:
    """The lines of a header, of which a quoted name may hold breaks. Errors: csv.Error for an endless one."""
    while line:
        if len(line) == LONGEST_LINE:
            raise csv.Error
        yield line.decode()
        line = file.readline(LONGEST_LINE)


def _fields(line: bytes, file: BinaryIO, delimiter: str, width: int, faults) -> list[str] | None:
    """The fields of one line; None for a malformed one."""
    fault = None
    if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
        fault = TOO_LONG
        while (rest := file.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
            pass
    else:
        fields, fault = _parsed(line.rstrip(b"\r\n"), delimiter)
        if fault is None and len(fields) != width:
            fault = WIDTH
    if fault is None:
        return fields
    if faults is not None:
        faults[fault] += 1
    return None


def _parsed(line: bytes, delimiter: str) -> tuple[list[str], str | None]:
    if not line:
        return [], EMPTY
    try:
        text = line.decode()
        if '"' not in text:
            return text.split(delimiter), None
        return next(csv.reader([text], delimiter=delimiter, strict=True)), None
    except UnicodeDecodeError:
        return [], NOT_UTF8
    except csv.Error:
        return [], BAD_QUOTES
