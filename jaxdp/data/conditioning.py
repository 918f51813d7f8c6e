"""What a column of Z stands for: itself, and what public knowledge says repeats, or piles up, within it.

Records that are neighbours in time may lie in different hours of a day and on different days of a week, and records of
neighbouring amounts may or may not be rounded. Where X and Y follow the hour, the weekday or the rounding, no order of
the column itself shows it (docs/theory/ordered_neighbours.md#cycles). So a date is conditioned on with its time of day
and its weekday or day of the fortnight, an amount with its roundness: functions of the record's own value, with public
levels. Records of one day are alike in every cycle, so dates without times say how many days there are. Dates with
times stand for their day and the hour of the day where there are records enough to compare those of one hour of one day
alone: then nothing that holds through an hour is taken for dependence. The more records, the shorter the part of an
hour: what changes within it would be found the more surely.
"""

from __future__ import annotations

import dataclasses
import datetime
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from jaxdp._base.printed import printed
from jaxdp.data.coding import ColumnRule
from jaxdp.data.columns import CATEGORICAL, CONTINUOUS, RECORDS_A_DAY, TIMED_RECORDS_A_DAY, Column
from jaxdp.data.notation import ISO

DAY, WEEK, FORTNIGHT, MONTH = "day", "week", "fortnight", "month"
KNOWN, UNSAID, NONE = "known", "unsaid", "none"  # what is public about times of day in a column of dates
CYCLES = {DAY: 1, WEEK: 7, FORTNIGHT: 14, MONTH: 31}  # with their lengths in days, the most of a month
NAMES = {DAY: "time of day", WEEK: "weekday", FORTNIGHT: "day of the fortnight", MONTH: "day of the month"}
SWITCHED_OFF = {"cycles": True, "heaps": False}  # flags, and whether they are about dates
FEW_A_DAY = "few records a day"
SINGLE_DAYS = "single days"
FLAGS = (*SWITCHED_OFF, FEW_A_DAY, SINGLE_DAYS)  # of answers given such columns
FIRST_WEEKDAY = 3  # 1 January 1970 was a Thursday; Monday is 0
HOURS = 24  # of a day
PARTS = (1, 2, 3, 4, 6, 12, 20, 30, 60)  # into which an hour is cut
ROUNDING = 1e-6  # of an hour: what the arithmetic of a date may lose
MARGIN = 1.0 / 1440.0  # of a day: midnight lies inside the bounds of the time of day, where values are known
TIME_FORMATS = ("%H", "%I", "%M", "%S", "%f", "%p", "%X", "%c", "%T", "%R")
MANY_VALUES = 100  # of a column of whole steps: with fewer, records of equal value alone are compared in most tables
MULTIPLES = 20  # at least so many multiples of a heap lie within the bounds


def columns(rule: ColumnRule) -> tuple[Column, ...]:
    """Public descriptions of `values`."""
    if rule.parts:
        day = Column(CONTINUOUS, name=f"{rule.name} (day)", labels=True, days=rule.days)
        return day, Column(CATEGORICAL, HOURS * rule.parts, f"{rule.name} ({_part(rule.parts)} of the day)")
    (own,) = rule.code_column()
    found = [Column(own.kind, own.levels, own.name, own.values, rule.labels, days=rule.days)]
    for cycle in rule.cycles:
        name = f"{rule.name} ({NAMES[cycle]})"
        found.append(
            Column(CONTINUOUS, name=name)
            if cycle == DAY
            else Column(CATEGORICAL, CYCLES[cycle], name, repeats=rule.days > 0)
        )
    if rule.heaps:
        found.append(Column(CATEGORICAL, len(rule.heaps) + 1, f"{rule.name} (roundness)"))
    return tuple(found)


def values(rule: ColumnRule, cells: Sequence) -> np.ndarray:
    """The cells of a column of Z, float64 (n, columns): each row by itself."""
    if rule.parts:
        plain = dataclasses.replace(rule, parts=0)
        return _day_and_hour(plain, values(plain, cells), rule.parts)
    own = rule.codes(cells)
    if not rule.cycles and not rule.heaps:
        return own[:, None]
    found, numbers = [own], rule.filled(cells)
    day = np.floor(numbers)
    for cycle in rule.cycles:
        if cycle == DAY:
            found.append(2.0 * (numbers - day + MARGIN) / (1.0 + 2.0 * MARGIN) - 1.0)
        elif cycle == MONTH:
            dates = day.astype("datetime64[D]")
            found.append((dates - dates.astype("datetime64[M]")).astype(float))
        else:
            found.append((day + FIRST_WEEKDAY) % CYCLES[cycle])
    if rule.heaps:
        found.append(roundness(numbers, rule.heaps))
    return np.stack(found, axis=1)


def hour_by_hour(rule: ColumnRule, parts: int = 1) -> ColumnRule:
    """The rule of a date with times, conditioned on by its day and the part of an hour; any other rule as it is."""
    if DAY not in rule.cycles or rule.parts:
        return rule
    days = 1 + math.floor(rule.upper) - math.floor(rule.lower)
    return dataclasses.replace(rule, parts=parts, days=days, ignored=())


def hourly_from(rules: Iterable[ColumnRule]) -> int | None:
    """From how many records on these columns of Z are by default conditioned on `hour_by_hour`; None: never.

    One date with times, beside columns of levels alone: TIMED_RECORDS_A_DAY records for each day and joint level.
    """
    found, rules = 1, list(rules)
    timed = [rule for rule in rules if hour_by_hour(rule) is not rule]
    for rule in rules:
        if rule not in timed and rule.is_continuous:
            return None
        found *= hour_by_hour(rule).days if rule in timed else len(rule.levels)
    return TIMED_RECORDS_A_DAY * found if len(timed) == 1 else None


def records_for(parts: int, least: int) -> int:
    """From how many records on an hour is cut into so many parts: `least` for whole hours, half of it for each more.

    So the number of compared pairs grows with n, and what a steady drift within a part adds to them does not.
    """
    return math.ceil(0.5 * (parts + 1) * least)


def parts_of(rules: Iterable[ColumnRule], num_records: int) -> int:
    """Into how many parts each hour is cut, of `PARTS`."""
    least = hourly_from(rules)
    return 1 if least is None else max((one for one in PARTS if records_for(one, least) <= num_records), default=1)


def values_hour_by_hour(rules: Iterable[ColumnRule], found: np.ndarray, parts: int = 1) -> np.ndarray:
    """What `values` of the rules `hour_by_hour` returns, from those of the rules as they are, all columns (..., d)."""
    made, start = [], 0
    for rule in rules:
        stop = start + len(columns(rule))
        own = found[..., start:stop]
        made.append(own if hour_by_hour(rule) is rule else _day_and_hour(rule, own, parts))
        start = stop
    return np.concatenate(made, axis=-1)


def _day_and_hour(rule: ColumnRule, found: np.ndarray, parts: int) -> np.ndarray:
    """(day on [-1, 1], part of the day) from the date and the time of day, as the columns of the rule hold them."""
    first, last, count = math.floor(rule.lower), math.floor(rule.upper), HOURS * parts
    time = 0.5 * (found[..., 1 + rule.cycles.index(DAY)] + 1.0) * (1.0 + 2.0 * MARGIN) - MARGIN
    date = 0.5 * (rule.lower + rule.upper) + 0.5 * (rule.upper - rule.lower) * found[..., 0]
    day = np.clip(np.round(date - time), first, last)
    part = np.clip(np.floor(count * time + ROUNDING), 0, count - 1)
    return np.stack([2.0 * (day - first) / (last - first) - 1.0, part], axis=-1)


def _part(parts: int) -> str:
    """What so many parts of an hour are called."""
    return "hour" if parts == 1 else "minute" if parts == 60 else f"{60 // parts} minutes"


def roundness(numbers: np.ndarray, heaps: Sequence[float]) -> np.ndarray:
    """The place of the first of `heaps` (from large to small) that divides each number; how many they are, if none."""
    found = np.full(numbers.shape, float(len(heaps)))
    for place in reversed(range(len(heaps))):
        found[np.abs(numbers - heaps[place] * np.round(numbers / heaps[place])) <= 1e-9 * heaps[place]] = place
    return found


def fields(where: str, entry: Mapping[str, Any], date: str, lower: float, upper: float, step: float) -> dict[str, Any]:
    """Fields of the rule of a continuous column, from its section of a schema. Errors: ValueError or TypeError."""
    if date:
        for key in ("heaps", "labels"):
            if key in entry:
                raise ValueError(f"{where} holds dates and takes cycles, not {key}: remove {key}.")
        return _cycles(where, entry, date, lower, upper)
    if "cycles" in entry:
        raise ValueError(f"{where}: cycles are those of dates; write date = true too, or remove cycles.")
    return _heaps(where, entry, lower, upper, step)


def _cycles(where: str, entry: Mapping[str, Any], date: str, lower: float, upper: float) -> dict[str, Any]:
    """As the schema says, else those that its format and bounds leave room for.

    A cycle that the bounds hold only once is no cycle. Times of day are known publicly where a format or a bound has
    one, or where the schema says that the day is a cycle. A fortnight holds the weekdays too. `cycles = []` says that
    neighbouring days are alike.
    """
    said = entry.get("cycles")
    if said is not None and (not isinstance(said, list | tuple) or not set(said) <= set(CYCLES)):
        raise ValueError(
            f'{where}: cycles must be a list of "day", "week", "fortnight" and "month", or [], got {printed(said)}.'
        )
    times = any(mark in date for mark in TIME_FORMATS) or any(map(_has_time, entry["bounds"])) or DAY in (said or ())
    perhaps = date == ISO and said is not None and not said  # switched off, whether or not cells have times
    possible = [cycle for cycle in CYCLES if upper - lower > CYCLES[cycle] and (cycle != DAY or times or perhaps)]
    usual = {DAY, WEEK} if times else {WEEK, FORTNIGHT}
    wanted = [cycle for cycle in possible if cycle in (usual if said is None else said)]
    ignored = [cycle for cycle in (DAY, WEEK) if cycle in possible and cycle not in wanted]
    if FORTNIGHT in wanted:
        wanted, ignored = [cycle for cycle in wanted if cycle != WEEK], [cycle for cycle in ignored if cycle != WEEK]
    whole_days = not (times or perhaps) and (said is None or bool(said))
    return {
        "cycles": tuple(wanted),
        "ignored": tuple(NAMES[cycle] for cycle in ignored),
        "times": KNOWN if times or perhaps else UNSAID if date == ISO and said is None else NONE,
        "days": 1 + math.floor(upper) - math.floor(lower) if whole_days else 0,
        "unsaid": (NAMES[MONTH],) if whole_days and said is None and MONTH in possible else (),
    }


def _has_time(bound: Any) -> bool:
    return isinstance(bound, datetime.datetime) or (isinstance(bound, str) and ":" in bound)


def _heaps(where: str, entry: Mapping[str, Any], lower: float, upper: float, step: float) -> dict[str, Any]:
    """As the schema says, else 5, 10, 50, 100, ... steps of a column of many of them."""
    labels = entry.get("labels", False)
    if not isinstance(labels, bool):
        raise TypeError(f"{where}: labels must be true or false, got {printed(labels)}.")
    if labels and entry.get("heaps"):
        raise ValueError(f"{where}: only records of equal value are compared with labels = true: remove heaps.")
    said = entry.get("heaps")
    if isinstance(said, int | float) and not isinstance(said, bool):
        said = [said]
    if said is None:
        many = step > 0.0 and (upper - lower) / step >= MANY_VALUES and not labels
        return {"heaps": usual_heaps(lower, upper, step) if many else (), "labels": labels}
    if not isinstance(said, list | tuple) or any(isinstance(heap, bool | str) for heap in said):
        raise TypeError(
            f"{where}: heaps must be a number such as 1000, a list such as [1000, 500], or [], got {printed(said)}."
        )
    heaps = tuple(sorted({float(heap) for heap in said}, reverse=True))
    if any(not (math.isfinite(heap) and 0.0 < heap < upper - lower and heap > step) for heap in heaps):
        raise ValueError(
            f"{where}: heaps are the numbers to whose multiples values are rounded, above 0 (and the step) and below "
            f"the width of the bounds, got {printed(said)}."
        )
    return {"heaps": heaps, "labels": labels, "ignored": () if heaps or labels else ("roundness",)}


def usual_heaps(lower: float, upper: float, step: float) -> tuple[float, ...]:
    found: list[float] = []
    size = 5.0 * step
    while (upper - lower) / size >= MULTIPLES:
        found = [size, *found]
        size *= 2.0 if len(found) % 2 else 5.0
    return tuple(found)


def described(rules: Iterable[ColumnRule]) -> str:
    """What is conditioned on beyond the values themselves, in a sentence; the empty text where nothing is."""
    told = [text for text in map(_described, rules) if text]
    return f"Conditioned on {'; '.join(told)}." if told else ""


def _described(rule: ColumnRule) -> str:
    if rule.labels:
        return f"{rule.name} value by value"
    if rule.parts:
        part = _part(rule.parts)
        return f"{rule.name} by day and {part}: only records of the same {part} of one day are compared"
    if rule.notation.date:
        parts = [f"its {part}" for part in ("date", *(NAMES[cycle] for cycle in rule.cycles))]
        return f"{rule.name} by {' and '.join(part for part in (', '.join(parts[:-1]), parts[-1]) if part)}"
    if rule.heaps:
        return f"{rule.name} and whether it is a multiple of {', '.join(f'{heap:g}' for heap in rule.heaps)}"
    return ""


def flags(rules: Iterable[ColumnRule], num_records: int, found: bool) -> dict[str, str]:
    """Flags of an answer by name, with their sentences: what the schema switches off, or says nothing of.

    num_records: public. found: whether a dependence was found, which alone can be a cycle that nobody spoke of.
    """
    rules = list(rules)
    raised = _switched_off(rules)
    sparse = [rule for rule in rules if rule.unsaid and num_records < RECORDS_A_DAY * rule.days]
    if found and sparse:
        raised[FEW_A_DAY] = " ".join(
            f"{rule.days} days of {rule.name} are too many to compare only records of one day (n = {num_records}), so "
            f"the {' and the '.join(rule.unsaid)} is not conditioned on: use more records, or write in the schema "
            'what X and Y may follow, cycles = ["month"] or cycles = ["fortnight"].'
            for rule in sparse
        )
    timed = [rule for rule in rules if rule.times == KNOWN and not rule.ignored and not rule.parts]
    timed = [rule for rule in timed if rule.upper - rule.lower > 1.0]
    if found and timed:
        raised[SINGLE_DAYS] = (
            f"What belongs to single days of {', '.join(rule.name for rule in timed)} (weather, holidays, shifts) is "
            f"not conditioned on: where X and Y both follow it, true nulls are rejected.{_way_out(rules, timed)}"
        )
    return raised


def _way_out(rules: list[ColumnRule], timed: list[ColumnRule]) -> str:
    """How to ask the same without effects of single days, as a sentence with a space before it; "" without a way."""
    least = hourly_from(rules)
    if least is None:
        return ""
    return (
        f" With method band-gcm, only records of one hour of one day of {timed[0].name} are compared, which it is by "
        f"default from {least} records on."
    )


def _switched_off(rules: list[ColumnRule]) -> dict[str, str]:
    found = {}
    for name, dates in SWITCHED_OFF.items():
        off = [f"{rule.name} ({', '.join(rule.ignored)})" for rule in rules if rule.ignored and dates == rule.is_date]
        if off:
            found[name] = (
                f"The schema leaves out of Z: {', '.join(off)}. Where X and Y both follow it, true nulls are rejected."
            )
    return found


def require_said(rules: Iterable[ColumnRule]) -> None:
    """Raises ValueError for dates of which the schema does not say whether they have a time of day.

    For strict callers: nobody may tell them whether the cells have one.
    """
    for rule in rules:
        if rule.times == UNSAID:
            raise ValueError(
                f"column {rule.name!r}: to condition on dates in strict mode say whether cells hold times of day: "
                f'cycles = ["day", "week"], or a format without times such as date = "%Y-%m-%d".'
            )
