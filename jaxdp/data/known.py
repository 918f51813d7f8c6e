"""What a caller says is publicly known: a schema, or bounds and levels by column."""

from __future__ import annotations

import dataclasses
import datetime
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from jaxdp._base.printed import printed
from jaxdp.data import hashed_levels
from jaxdp.data.columns import BINARY, CATEGORICAL, CONTINUOUS, ORDINAL
from jaxdp.data.schema import Schema


class HasSchema(Protocol):
    """What has a schema of its own, as a private draft."""

    @property
    def schema(self) -> Schema: ...


def schema_of(
    schema: Schema | HasSchema | str | os.PathLike | Mapping | None,
    bounds: Mapping[str, Sequence[Any]] | None = None,
    levels: Mapping[str, Sequence[Any]] | None = None,
    missing: str | None = None,
    rows: str | None = None,
) -> Schema:
    """The schema: given itself, as a path, as a mapping or as what `jaxdp.draft_schema` returns, or else made of
    bounds and levels by column.

    bounds: name -> (low, high) of a continuous column, numbers or dates. levels: name -> every public
    level; two make a binary column, more of them a categorical one. More than two numbers make X and Y ordinal (in the
    order of the list), and Z categorical, since nobody has said that they have an order; a schema says it. "hashed:16"
    for a column whose levels nobody may list.
    missing: "drop" leaves out records without a value in a column that is asked about; rows: which rows of a person
    count, "all", "random" or "first"; default of both as the schema says.
    Errors: ValueError or TypeError that says what to write; nothing is ever computed from records.
    """
    known = _known(schema, bounds, levels)
    if rows is not None and not known.unit:
        raise ValueError(f"rows = {printed(rows)} needs a unit: write in the schema which column says whose a row is.")
    said: dict[str, Any] = {"missing": missing, "rows": rows}
    return dataclasses.replace(known, **{name: value for name, value in said.items() if value is not None})


def _known(schema: Any, bounds: Any, levels: Any) -> Schema:
    if schema is not None:
        if bounds or levels:
            raise ValueError("give schema=, or bounds= and levels=, not both: a schema holds them.")
        return _given(schema)
    columns: dict[str, dict[str, Any]] = {}
    for name, limits in _mapping("bounds", bounds).items():
        columns[name] = _of_bounds(list(_sequence(f"bounds of {name!r}", limits)))
    for name, known in _mapping("levels", levels).items():
        if name in columns:
            raise ValueError(f"column {name!r} has bounds and levels: give bounds if it is continuous, else levels.")
        if hashed_levels.count_of(f"column {name!r}", known):
            columns[name] = {"kind": CATEGORICAL, "levels": known}
        else:
            columns[name] = _of_levels(list(_sequence(f"levels of {name!r}", known)))
    if not columns:
        raise ValueError(
            'what is publicly known about the columns is missing: give schema="trial.toml", or '
            'bounds={"age": (18, 90)} and levels={"smoker": ["no", "yes"]}; they are never computed from the data.'
        )
    found = Schema.from_dict({"columns": columns})
    rules = {name: dataclasses.replace(rule, guessed=rule.kind == ORDINAL) for name, rule in found.rules.items()}
    return dataclasses.replace(found, rules=rules)


def _given(schema: Any) -> Schema:
    if isinstance(schema, Schema):
        return schema
    if isinstance(schema, str | os.PathLike):
        return Schema.load(schema)
    if isinstance(schema, Mapping):
        return Schema.from_dict(schema)
    if isinstance(drafted := getattr(schema, "schema", None), Schema):
        return drafted
    raise TypeError(
        "schema must be a jaxdp.Schema, the path of one, a mapping, or what jaxdp.draft_schema returns, got "
        f"{type(schema).__name__}."
    )


def _of_bounds(bounds: list) -> dict[str, Any]:
    """Of numbers, or of dates: objects of `datetime` or NumPy, or texts such as 2024-12-31."""
    dates = [_as_date(bound) for bound in bounds]
    if dates and all(dates):
        return {"kind": CONTINUOUS, "bounds": dates, "date": True}
    return {"kind": CONTINUOUS, "bounds": bounds}


def _as_date(bound: Any) -> str:
    """ISO text of a date; the empty text for what is none."""
    bound = str(bound) if isinstance(bound, np.datetime64) else bound
    if isinstance(bound, datetime.datetime):
        return bound.isoformat(" ", "seconds")
    if isinstance(bound, datetime.date):
        return bound.isoformat()
    return bound if isinstance(bound, str) and re.fullmatch(r"\d{4}-\d\d-\d\d([T ].*)?", bound.strip()) else ""


def _of_levels(levels: list) -> dict[str, Any]:
    numeric = all(isinstance(level, int | float) and not isinstance(level, bool) for level in levels)
    kind = BINARY if len(levels) == 2 else ORDINAL if numeric else CATEGORICAL
    return {"kind": kind, "levels": levels}


def _mapping(what: str, value: Any) -> Mapping:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f'{what} must be a mapping by column such as {{"age": ...}}, got {type(value).__name__}.')
    return value


def _sequence(what: str, value: Any) -> Sequence:
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise TypeError(f"{what} must be a list, got {type(value).__name__}.")
    return value
