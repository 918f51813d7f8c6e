"""Rules of single columns: the checked `ColumnRule` of what a schema says about one column."""

from __future__ import annotations

import dataclasses
import datetime
import difflib
import math
import numbers
import re
from collections.abc import Mapping, Sequence
from typing import Any

from jaxdp._base.printed import printed
from jaxdp.data import conditioning, hashed_levels
from jaxdp.data.coding import KINDS, ColumnRule, duplicates
from jaxdp.data.columns import BINARY, CATEGORICAL, CONTINUOUS, ORDINAL
from jaxdp.data.notation import ISO, PLAIN, Notation
from jaxdp.data.private_drafts import RELEASED, PrivateDraft

NUMBER_KEYS = ("decimal", "thousands", "percent")
COLUMN_KEYS = ("kind", "bounds", "scale", "step", "levels", "missing", "other", *NUMBER_KEYS, "date", "boolean")
GIVEN_KEYS = ("cycles", "heaps", "labels")  # of a continuous column that is conditioned on
STABILITY = "stability-histogram"  # how levels were: `other` then collects those that were not
SCALES = ("linear", "log")
MIDDLE = "middle"
SURVIVAL = "survival"  # a kind of outcome: a column of times and one of events
OF_TIME = ("bounds", "step", "scale")  # what such an outcome may say of its time, in place of an entry of its own
EVENTS = (0, 1)  # levels of its event, where neither it nor an entry of its own names any
TRUTH = ("false", "true")
# What other software calls the kinds.
SYNONYMS = {
    **dict.fromkeys(("numeric", "number", "float", "double", "real", "integer", "int", "count"), CONTINUOUS),
    **dict.fromkeys(("nominal", "category", "factor", "string", "text", "object", "unordered"), CATEGORICAL),
    **dict.fromkeys(("ordered", "ranked", "rank", "likert"), ORDINAL),
    **dict.fromkeys(("bool", "boolean", "logical", "dichotomous"), BINARY),
}


def column_rule(name: str, entry: Any, shared: Mapping[str, Any] | None = None) -> ColumnRule:
    """The checked rule of one column; errors are one sentence that says what to write.

    shared: notation of the whole table, for columns of numbers that say nothing else.
    """
    where = f"column {name!r}"
    if not isinstance(entry, Mapping):
        raise TypeError(f'{where} must be a table of keys such as kind = "continuous", got {type(entry).__name__}.')
    reject_unknown_keys(where, entry, (*COLUMN_KEYS, *GIVEN_KEYS, RELEASED))
    kind = entry.get("kind")
    if kind is None:
        raise ValueError(f'{where} has no kind: write kind = "continuous" (or {", ".join(KINDS[1:])}).')
    if kind not in KINDS:
        todo = "; fill in every TODO, and delete columns that you do not ask about" if kind == "TODO" else ""
        if isinstance(kind, str) and (known := SYNONYMS.get(kind.lower(), kind.lower())) in KINDS:
            todo = f'; write kind = "{known}"'
        raise ValueError(f"{where}: kind must be one of {', '.join((*KINDS, SURVIVAL))}, got {printed(kind)}{todo}.")
    if kind == CONTINUOUS:
        rule = _continuous_rule(name, entry, notation_of(where, entry, shared or {}))
    else:
        rule = _level_rule(name, kind, entry, shared or {})
    return dataclasses.replace(rule, draft=PrivateDraft.of(where, entry))


def columns_of_outcome(name: str, entry: Mapping, entries: Mapping[str, Any]) -> dict[str, dict]:
    """Entries of the columns of an outcome that describes them itself, its time by bounds and its event by levels.

    Errors: ValueError where a column is described there and in its own entry too.
    """
    where, found = f"column {name!r}", {}
    reject_unknown_keys(where, entry, ("kind", "time", "event", "levels", *OF_TIME))
    time, event = entry.get("time"), entry.get("event")
    for told, keys in ((time, OF_TIME), (event, ("levels",))):
        for key in keys:
            if key in entry and isinstance(told, str) and told in entries:
                raise ValueError(f"{where} says {key} of {told!r}, which has its own entry: remove one of the two.")
    if isinstance(time, str) and time not in entries and any(key in entry for key in OF_TIME):
        found[time] = {"kind": CONTINUOUS, **{key: entry[key] for key in OF_TIME if key in entry}}
    if isinstance(event, str) and event not in entries and ("levels" in entry or found):
        found[event] = {"kind": BINARY, "levels": entry.get("levels", EVENTS)}
    return found


def outcome(name: str, entry: Mapping, rules: Mapping[str, ColumnRule]) -> tuple[str, str]:
    """Names of the columns of times and of events of kind = "survival", checked."""
    where = f"column {name!r}"
    for key, wanted in (("time", "continuous, with bounds"), ("event", "of two levels, the second of which is it")):
        told = entry.get(key)
        rule = rules.get(told) if isinstance(told, str) else None
        if rule is None or (not rule.is_continuous if key == "time" else len(rule.levels) != 2):
            raise ValueError(
                f"{where} is of kind {SURVIVAL!r}: {key} must name a column of this schema that is {wanted}, "
                f"got {printed(told)}."
            )
    return entry["time"], entry["event"]


def notation_of(where: str, entry: Mapping, shared: Mapping[str, Any]) -> Notation:
    """How the numbers or dates of a column are written."""
    date = entry.get("date", False)
    if date is not False:
        stray = [key for key in NUMBER_KEYS if key in entry]
        if stray:
            raise ValueError(f"{where} holds dates and takes no {stray[0]}: remove {stray[0]} or date.")
        if date is not True and not (isinstance(date, str) and "%" in date):
            raise ValueError(f'{where}: date must be true (2024-12-31) or a format ("%d.%m.%Y"), got {printed(date)}.')
        return Notation(date=ISO if date is True else date)
    decimal, thousands = (
        entry.get(key, shared.get(key, usual)) for key, usual in (("decimal", "."), ("thousands", ""))
    )
    if decimal not in (".", ","):
        raise ValueError(f'{where}: decimal must be "." or ",", got {printed(decimal)}.')
    if thousands not in ("", ".", ",", " ", "'") or thousands == decimal:
        raise ValueError(
            f'{where}: thousands must be one of ".", ",", " " and "\'", not the decimal mark, got {printed(thousands)}.'
        )
    return Notation(decimal, thousands, _truth(f"{where}: percent", entry.get("percent", False)))


def _truth(what: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{what} must be true or false, got {printed(value)}.")
    return value


def _continuous_rule(name: str, entry: Mapping, notation: Notation) -> ColumnRule:
    where = f"column {name!r}"
    for key in ("levels", "other", "boolean"):
        if key in entry:
            raise ValueError(f"{where} is continuous and takes bounds, not {key}: remove {key} or change the kind.")
    if "bounds" not in entry:
        raise ValueError(
            f"{where} has no bounds: write bounds = [LOW, HIGH], limits that are public knowledge; "
            "they are never computed from the data."
        )
    bounds = entry["bounds"]
    if not isinstance(bounds, Sequence) or isinstance(bounds, str) or len(bounds) != 2:
        raise ValueError(
            f"{where}: bounds must be two numbers [LOW, HIGH] from public knowledge, got {printed(bounds)}: write "
            "them, or delete the section of a column that is not asked about."
        )
    lower, upper = (_read(f"{where}: each bound", bound, notation) for bound in bounds)
    if not lower < upper:
        raise ValueError(f"{where}: the lower bound must be below the upper one.")
    if not math.isfinite(upper - lower) or not math.isfinite(2.0 / (upper - lower)):
        raise ValueError(f"{where}: the bounds are too wide or too close for float64.")
    logarithmic = _is_logarithmic(where, entry.get("scale", "linear"), lower, upper)
    missing = entry.get("missing", MIDDLE)
    if missing == MIDDLE:  # on the scale in force, where the two halves are equally far
        missing = math.sqrt(lower) * math.sqrt(upper) if logarithmic else 0.5 * lower + 0.5 * upper
    else:
        missing = _read(f"{where}: missing", missing, notation)
    if not lower <= missing <= upper:
        raise ValueError(f"{where}: missing must lie within the bounds, got {printed(entry['missing'])}.")
    step = _step(where, entry["step"], upper - lower) if "step" in entry else 0.0
    if step and "missing" not in entry:  # the middle among the values that are possible
        missing = min(lower + step * round((missing - lower) / step), upper)
    return ColumnRule(
        name,
        CONTINUOUS,
        lower,
        upper,
        missing=missing,
        logarithmic=logarithmic,
        step=step,
        notation=notation,
        fills="missing" in entry,
        **conditioning.fields(where, entry, notation.date, lower, upper, step),
    )


_LAST_OF_2024 = datetime.datetime(2024, 12, 31)


def _step(where: str, value: Any, width: float) -> float:
    step = _finite(f"{where}: step", value)
    if not 0.0 < step <= width or width / step >= 2**31:
        raise ValueError(
            f"{where}: step must be the distance of possible values, above 0 and at most {width:g} (1 for whole "
            f"numbers), got {value}."
        )
    return step


def _read(what: str, value: Any, notation: Notation) -> float:
    """A number of the schema; a date in a column of dates."""
    if not notation.date:
        if isinstance(value, str) and re.fullmatch(r"\d+[-./]\d+[-./]\d+", value.strip()):
            raise ValueError(
                f'{what} must be a number, got {printed(value)}; of dates write date = true or date = "%d.%m.%Y".'
            )
        return _finite(what, value)
    found = notation.number(value)
    if math.isnan(found):
        own = "" if notation.date == ISO else f", or a text such as {_LAST_OF_2024:{notation.date}}"
        if own and not math.isnan(Notation(date=ISO).number(value)):  # the text of a date, but in another form
            own = f" without quotes{own}"
        raise ValueError(f"{what} must be a date such as 2024-12-31{own}, got {printed(value)}.")
    return found


def _is_logarithmic(where: str, scale: Any, lower: float, upper: float) -> bool:
    if scale not in SCALES:
        raise ValueError(f"{where}: scale must be one of {', '.join(SCALES)}, got {printed(scale)}.")
    if scale == "log" and not (lower > 0.0 and math.log(upper) > math.log(lower)):
        raise ValueError(f'{where}: scale = "log" needs bounds > 0 that differ, got [{lower:g}, {upper:g}].')
    return scale == "log"


def _level_rule(name: str, kind: str, entry: Mapping, shared: Mapping[str, Any]) -> ColumnRule:
    where = f"column {name!r}"
    for key in ("bounds", "scale", "step", "date", *GIVEN_KEYS):
        if key in entry:
            raise ValueError(f"{where} is {kind} and takes levels, not {key}: write levels = [...] or change the kind.")
    if "boolean" in entry or _are_truth_values(entry.get("levels")):
        return _truth_rule(name, kind, entry)
    if "levels" not in entry:
        raise ValueError(
            f'{where} has no levels: write levels = ["no", "yes"] with every public level (or, where nobody may list '
            f'them, levels = "{hashed_levels.FORM}"); they are never read from the data.'
        )
    cells = hashed_levels.count_of(where, entry["levels"])
    if cells:
        return _hashed_rule(name, kind, entry, cells)
    levels = _levels(where, entry["levels"])
    if kind == BINARY and len(levels) != 2:
        raise ValueError(f"{where} is binary and needs two levels, got {len(levels)}: use categorical or ordinal.")
    notation = PLAIN if isinstance(levels[0], str) else notation_of(where, entry, shared)
    stray = [key for key in NUMBER_KEYS if key in entry]
    if stray and isinstance(levels[0], str):
        raise ValueError(f"{where} has levels that are texts, which take no {stray[0]}: remove it.")
    released = entry.get(RELEASED)
    pools = isinstance(released, Mapping) and released.get("method") == STABILITY and "other" in entry
    return _rule_of_levels(name, kind, entry, levels, notation=notation, pools=pools)


def _hashed_rule(name: str, kind: str, entry: Mapping, cells: int) -> ColumnRule:
    """levels = "hashed:16": no level is unknown, and an empty cell may count as a text."""
    where = f"column {name!r}"
    if kind != CATEGORICAL:
        raise ValueError(f'{where} is {kind}, and hashed levels have no order: write kind = "{CATEGORICAL}".')
    stray = [key for key in ("other", *NUMBER_KEYS) if key in entry]
    if stray:
        raise ValueError(f"{where}: hashed levels take every text and no {stray[0]}: remove {stray[0]}.")
    rule = ColumnRule(name, kind, levels=hashed_levels.names(cells), hashed=True, fills="missing" in entry)
    if not rule.fills:
        return rule
    text = str(entry["missing"]).strip()
    if isinstance(entry["missing"], bool) or not isinstance(entry["missing"], str | numbers.Real):
        raise TypeError(f"{where}: missing must be a text, got {printed(entry['missing'])}.")
    return dataclasses.replace(rule, missing=float(hashed_levels.cell(text, cells)))


def _rule_of_levels(name: str, kind: str, entry: Mapping, levels: tuple, **fields: Any) -> ColumnRule:
    """The rule of these levels, with those where missing and unknown cells go."""
    said = {key: entry.get(key, levels[0]) for key in ("missing", "other")}
    if fields.get("truth"):
        said = {key: TRUTH[value] if isinstance(value, bool) else value for key, value in said.items()}
    codes = {key: _code(f"column {name!r}: {key}", value, levels) for key, value in said.items()}
    return ColumnRule(
        name,
        kind,
        levels=levels,
        missing=float(codes["missing"]),
        other=codes["other"],
        fills="missing" in entry,
        collects="other" in entry,
        **fields,
    )


def _are_truth_values(levels: Any) -> bool:
    return isinstance(levels, list | tuple) and len(levels) == 2 and sorted(map(repr, levels)) == ["False", "True"]


def _truth_rule(name: str, kind: str, entry: Mapping) -> ColumnRule:
    """boolean = true, or boolean = ["nein", "ja"], the words for false and true; or levels = [false, true]."""
    where = f"column {name!r}"
    if kind != BINARY:
        raise ValueError(f"{where} is {kind} and holds truth values: write kind = {BINARY!r}.")
    words = entry.get("boolean", True)
    if "boolean" in entry and "levels" in entry:
        raise ValueError(f"{where}: boolean names the levels itself: remove levels.")
    levels: tuple[str, ...] = TRUTH if words is True else _words(where, words)
    if "levels" in entry:
        levels = tuple(TRUTH[level] for level in entry["levels"])
    return _rule_of_levels(name, kind, entry, levels, truth=True)


def _words(where: str, words: Any) -> tuple[str, str]:
    if not isinstance(words, list | tuple) or len(words) != 2 or not all(isinstance(word, str) for word in words):
        raise ValueError(
            f'{where}: boolean must be true, or the words for false and true, ["no", "yes"], got {printed(words)}.'
        )
    found = words[0].strip(), words[1].strip()
    if found[0].lower() == found[1].lower():
        raise ValueError(f"{where}: the words for false and true must differ, got {printed(words)}.")
    return found


def _levels(where: str, levels: Any) -> tuple:
    if not isinstance(levels, Sequence) or isinstance(levels, str):
        hint = f' (or "{hashed_levels.FORM}")' if isinstance(levels, str) else ""
        raise TypeError(f"{where}: levels must be a list{hint}, got {type(levels).__name__}.")
    for level in levels:
        if isinstance(level, bool) or not isinstance(level, str | numbers.Real):
            raise TypeError(
                f'{where}: levels must be texts or numbers, got {printed(level)}; write texts such as "true".'
            )
    if len(levels) < 2:
        raise ValueError(f"{where} needs at least two levels, got {len(levels)}.")
    if all(not isinstance(level, str) for level in levels):
        found: tuple = tuple(_finite(f"{where}: each level", level) for level in levels)
        found = tuple(
            int(level) if level.is_integer() else level for level in found
        )  # 1, not 1.0, where they are named
    else:
        found = tuple(str(level).strip() for level in levels)
    if duplicates(found):  # which ones is not said: a column may stand here in their place
        raise ValueError(f"{where}: of {len(found)} levels some are the same: write each once, from public knowledge.")
    return found


def _code(what: str, level: Any, levels: tuple) -> int:
    if isinstance(levels[0], str) and isinstance(level, str | numbers.Real):
        level = str(level).strip()
    if isinstance(level, bool) or not isinstance(level, str | numbers.Real) or level not in levels:
        raise ValueError(f"{what} must be one of the levels, got {printed(level)}.")
    return levels.index(level)


def _finite(what: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{what} must be a number, got {printed(value)}.")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{what} must be a finite number, got {str(value)[:40]}.")
    return number


def reject_unknown_keys(where: str, entry: Mapping, known: Sequence[str]) -> None:
    """Raises ValueError for a key that is not known, with the nearest one that is."""
    for key in entry:
        if key not in known:
            close = difflib.get_close_matches(str(key), known, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"the keys are {', '.join(known)}."
            if isinstance(entry[key], Mapping):
                hint = 'a name with a dot stands in quotes, as in [columns."a.b"].'
                if "columns" in known:
                    hint = f"a column stands under columns, as in [columns.{key}]; {hint}"
            name = printed(key) if isinstance(key, str) else f"of type {type(key).__name__}"
            raise ValueError(f"{where} has an unknown key {name}; {hint}")
