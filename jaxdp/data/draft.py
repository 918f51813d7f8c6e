"""A schema to be filled in, from the header of a data file alone: no record is looked at.

Names are public, and so is what a typed column holds. Everything else is left as TODO, which a schema refuses, since
bounds and levels are public knowledge that no file can give.
"""

from __future__ import annotations

import csv
import datetime
import json
import os
import re
from collections.abc import Mapping
from typing import Any

from jaxdp.data import batches, files, identifiers
from jaxdp.data.column_rules import column_rule
from jaxdp.data.columns import CONTINUOUS
from jaxdp.data.header import USUAL_DELIMITERS
from jaxdp.data.notation import to_numbers

LONGEST_NAME = 200
_VALUE = re.compile(  # cells of a record and no names: amounts in any notation, dates and times, addresses
    r"""[-+(]?\s*[$€£¥]?\s*\d[\d.,'\u00a0\u202f ]*\s*[%$€£¥)]?
    |\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T].*)?
    |\d{1,2}:\d{2}.*
    |[^@\s]+@[^@\s]+\.[^@\s]+""",
    re.VERBOSE,
)
CYCLES_OF_TIMES = ("day", "week")  # of a column whose type has times of day
_HINTS = (
    (re.compile(r"date|day|datum|_at$|time", re.I), "date = true", '2024-12-31; or a format such as "%d.%m.%Y"'),
    (
        re.compile(r"_at$|time", re.I),
        'cycles = ["day", "week"]',
        "of dates with a time of day, as columns to condition on",
    ),
    (
        re.compile(r"income|salary|wage|price|amount|cost|revenue", re.I),
        "heaps = [1000, 500]",
        "as a column to condition on, if people round to such multiples",
    ),
    (re.compile(r"%|percent|prozent|pct|share|rate$", re.I), "percent = true", "if cells end in a percent sign"),
)
_BOUNDS = 'bounds = "TODO"            # [LOW, HIGH], limits that are public knowledge, never the observed ones'
_LEVELS = 'levels = "TODO"            # ["no", "yes"], every public level, never those that occur; X or Y: "hashed:16"'
_EXAMPLE = [
    "# Two columns as they look when they are filled in:",
    "#   [columns.age]                       #   [columns.clinic]",
    '#   kind = "continuous"                 #   kind = "categorical"',
    '#   bounds = [18, 90]                   #   levels = ["north", "south"]',
]


def draft(
    path: str | os.PathLike,
    every: Mapping[str, Any] | None = None,
    known: Mapping[str, str] | None = None,
    unit: str = "",
    mark: str = "",
) -> str:
    """The TOML text. Errors: OSError; ValueError for a first line that does not look like names.

    every: keys that are publicly true of every column, such as {"kind": "binary", "levels": [0, 1]} of coded answers.
    known: name -> TOML of columns that are described already; the others are comments then.
    unit: column that says whose a row is. mark: comment that comes first.
    """
    name, names, kinds, delimiter = _columns(path)
    unnamed = _is_unnamed(names)
    names = names[1:] if unnamed else names
    _require_names(name, names, unnamed)
    top = [
        *([mark] if mark else []),
        f"# What is public about the columns of {os.path.basename(name)}. Fill in every TODO from public knowledge,",
        "# never from the records; delete columns that you do not ask about. docs/schema.md explains every key.",
    ]
    if unnamed:
        top.append("# The first column has no name and is left out: programs write the number of the row there.")
    if delimiter != ",":
        top.append(f"delimiter = {json.dumps(delimiter)}")
    if delimiter == ";":
        top.append('# decimal = ","              # files with ";" often write decimal commas; thousands = "." then too')
    if not every and not kinds and known is None:
        top += _EXAMPLE
    units = identifiers.names_persons(names)
    if unit:
        top.append(identifiers.unit_line(unit))
    elif units:
        top.append(
            f"# {identifiers.unit_line(units[0])}    # if a person may have several rows: one record for each person"
        )
    if every:
        column_rule(names[0], every)  # a mistake in the keys is told now, not by the next command
    if known is None:
        sections = [_section(column, kinds.get(column, ""), every) for column in names]
    else:
        others = [_commented(_section(column, kinds.get(column, ""), every)) for column in names if column not in known]
        sections = [*known.values(), *(["# Columns of which nothing was released:\n", *others] if others else [])]
    return "\n".join([*top, "", *sections])


def _commented(text: str) -> str:
    return "".join(f"# {line}\n" if line.strip() else "\n" for line in text.splitlines()) + "\n"


def header_of(path: str | os.PathLike) -> tuple[list[str], str]:
    """Names of the columns and the delimiter. Errors: as `draft`."""
    name, names, _, delimiter = _columns(path)
    unnamed = _is_unnamed(names)
    _require_names(name, names[1:] if unnamed else names, unnamed)
    return names, delimiter


def _is_unnamed(names: list[str]) -> bool:
    """Whether the first column holds the row names that R and pandas write; nobody can ask about them."""
    return len(names) > 1 and not names[0]


def _columns(path: str | os.PathLike) -> tuple[str, list[str], dict[str, str], str]:
    """What the file is called, the names and types of its columns, and the delimiter."""
    several = batches.paths(path)
    path = path if several is None else several[0]  # files of one table have the same columns
    name = batches.called(path) if batches.is_query(path) else os.fspath(path)
    if batches.is_query(path):
        found = batches.of(path)
        return name, [] if found is None else list(found.names), {}, ","
    if files.is_typed(path):
        return name, files.names_of(path), files.kinds_of(path), ","
    names, delimiter = _header(path)
    return name, names, {}, delimiter


def _header(path: str | os.PathLike) -> tuple[list[str], str]:
    """The names of the first line, and the delimiter that cuts it into most pieces."""
    try:
        cut = {mark: fields for mark in USUAL_DELIMITERS if (fields := _cut(path, mark)) is not None}
    except UnicodeDecodeError:
        raise ValueError(f"data file {os.fspath(path)} is not UTF-8 text: save it as CSV in UTF-8.") from None
    if not cut:
        raise ValueError(f"data file {os.fspath(path)} has a header line that is not CSV.")
    delimiter = max(cut, key=lambda mark: len(cut[mark]))
    return [field.strip() for field in cut[delimiter]], delimiter


def _cut(path: str | os.PathLike, delimiter: str) -> list[str] | None:
    """The fields of the header; None where its quotes do not stand beside this delimiter."""
    try:
        with files.text(path) as file:
            lines = iter(lambda: file.readline(1 << 20), "")
            return next(csv.reader(lines, delimiter=delimiter, strict=True), [])
    except csv.Error:
        return None


def _require_names(path: str, names: list[str], unnamed: bool) -> None:
    """Refuses a first line that may be a record: its cells must not be written into a schema.

    unnamed: whether a column without a name stands before these.
    """
    if not names:
        raise ValueError(f"data file {path} is empty: it needs a header line that names the columns.")
    values = any(map(_VALUE.fullmatch, names)) or any(number == number for number in to_numbers(names))
    if values or "" in names or any(len(name) > LONGEST_NAME for name in names):
        raise ValueError(
            f"the first line of {path} does not look like names of columns (a number, a date, an empty cell, a long "
            "text): it may be a record, so no draft was made; add a header line."
        )
    twice = next((place for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        first, second = (1 + unnamed + place for place in (names.index(names[twice]), twice))
        raise ValueError(
            f"data file {path} names two columns alike, number {first} and number {second}: rename one (or, if its "
            "first line is a record, add a header line)."
        )


def section(name: str, entry: Mapping[str, Any], told: str = "") -> str:
    """TOML of one column. told: a remark."""
    lines = [f"[columns.{_quoted(name)}]", *(f"{key} = {_toml(value)}" for key, value in entry.items())]
    if "released" in entry and "bounds" not in entry and "levels" not in entry:
        lines.append(_BOUNDS if entry["kind"] == CONTINUOUS else _LEVELS)
    return "\n".join([*lines, *([f"# {told}"] if told else []), ""])


def _toml(value: Any) -> str:
    """A value of a schema as TOML."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return str(value) if isinstance(value, datetime.date) else json.dumps(value, ensure_ascii=False)


def _section(name: str, kind: str, every: Mapping[str, Any] | None) -> str:
    if every:
        return section(name, every)
    lines = [f"[columns.{_quoted(name)}]", *_body(kind)]
    for pattern, key, meaning in _HINTS:
        if pattern.search(name) and not any(line.startswith(key) for line in lines):
            lines.append(f"# {key:26} # {meaning}")
    return "\n".join([*lines, ""])


def _body(kind: str) -> list[str]:
    """Kind and bounds or levels, as far as the type of the column says."""
    if kind == "bool":
        return ['kind = "binary"', "boolean = true"]
    if kind.startswith(("date", "timestamp")):
        times = kind.startswith("timestamp")
        return [
            'kind = "continuous"',
            "date = true",
            _BOUNDS,
            _cycles(*CYCLES_OF_TIMES) if times else f"# {_cycles('fortnight')}",
        ]
    if kind.startswith(("float", "double", "halffloat", "decimal")):
        return ['kind = "continuous"', _BOUNDS]
    if kind.startswith(("string", "large_string", "dictionary")):
        return ['kind = "categorical"       # or "ordinal", "binary"', _LEVELS]
    return [
        'kind = "TODO"              # "continuous" with bounds; "ordinal", "categorical" or "binary" with levels',
        "# choose one of the two lines: bounds of a continuous column, levels (without the #) of any other",
        _BOUNDS,
        f"# {_LEVELS}",
    ]


def _cycles(*cycles: str) -> str:
    """What repeats within a column of dates that is conditioned on."""
    return f"cycles = {json.dumps(list(cycles)):17} # as a column to condition on; [] if X and Y follow none of them"


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) and name else json.dumps(name, ensure_ascii=False)
