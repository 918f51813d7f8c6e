"""In which notation the cells of a column are written: decimal comma, thousands, percent, dates, truth values.

A cell is read by the declared notation or not at all: "1.5" in a column with decimal = "," is no number, so that no
value is off by a factor that nobody sees. Numbers and dates of typed tables are taken as they are.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxdp.data.texts import TextColumn, WholeColumn, as_number

ISO = "iso"
DAYS_TO_1970 = datetime.date(1970, 1, 1).toordinal()
SECONDS_PER_DAY = 86_400.0
SPACES = " \u00a0\u202f"  # plain, no-break and narrow no-break
TRUE_WORDS = frozenset({"true", "t", "yes", "y", "1", "1.0"})
FALSE_WORDS = frozenset({"false", "f", "no", "n", "0", "0.0"})


class PercentCell(float):
    """The number of a cell that a spreadsheet shows a hundred times as large, with a percent sign."""


@dataclasses.dataclass(frozen=True)
class Notation:
    """decimal: mark before the fraction. thousands: mark between groups of three digits, or "". percent: cells may end
    in a percent sign, which is dropped: "12 %" is 12, and so is .12 where a spreadsheet shows it so. date: "" for
    numbers, "iso", or a format of `strptime`; a date counts as days since 1970.
    """

    decimal: str = "."
    thousands: str = ""
    percent: bool = False
    date: str = ""

    def numbers(self, values: Sequence) -> np.ndarray:
        """float64 (n,); NaN where a cell cannot be read."""
        kind = values.dtype.kind if isinstance(values, np.ndarray) else ""
        if isinstance(values, np.ndarray) and kind == "M":
            return _days(values) if self.date else np.full(len(values), math.nan)
        if self.date:
            return np.fromiter(map(self._day, values), float, len(values))
        if self == PLAIN or kind in ("b", "i", "u", "f") or isinstance(values, WholeColumn):
            return to_numbers(values)
        return np.fromiter(map(self._number, values), float, len(values))

    def number(self, value: Any) -> float:
        """One value of the schema itself, such as a bound: a number, or a date in this notation. NaN if neither."""
        if self.date:
            return self._day(value)
        return self._number(value) if isinstance(value, str) else as_number(value)

    def _number(self, value: Any) -> float:
        if isinstance(value, PercentCell) and self.percent:
            return float(f"{100.0 * value:.15g}")  # 7 % is 7, not 7.000000000000001
        if not isinstance(value, str):
            return as_number(value)
        text = value.strip()
        if self.percent:
            text = text.removesuffix("%").rstrip()
        found = _pattern(self.decimal, self.thousands).fullmatch(text)
        if found is None or not re.search("[0-9]", found["whole"] + (found["fraction"] or "")):
            return math.nan
        whole = re.sub(r"[^-+0-9]", "", found["whole"])
        return as_number(f"{whole}.{found['fraction'] or '0'}{found['power'] or ''}")

    def _day(self, value: Any) -> float:
        if isinstance(value, str):
            value = _parsed(value.strip(), self.date)
        if isinstance(value, np.datetime64):
            return float(_days(np.array([value]))[0])
        if isinstance(value, datetime.datetime) and value == value:  # the missing date of pandas is unlike itself
            seconds = (value.hour * 60 + value.minute) * 60 + value.second + value.microsecond * 1e-6
            return value.toordinal() - DAYS_TO_1970 + seconds / SECONDS_PER_DAY
        is_day = isinstance(value, datetime.date) and not isinstance(value, datetime.datetime)
        return float(value.toordinal() - DAYS_TO_1970) if is_day else math.nan


PLAIN = Notation()


def _days(values: np.ndarray) -> np.ndarray:
    """Days since 1970 of NumPy dates; NaN where there is none."""
    microseconds = values.astype("datetime64[us]")
    days = microseconds.astype(np.int64) / (1e6 * SECONDS_PER_DAY)
    return np.where(np.isnat(microseconds), math.nan, days)


def _parsed(text: str, form: str) -> Any:
    try:
        return datetime.datetime.fromisoformat(text) if form == ISO else datetime.datetime.strptime(text, form)
    except ValueError:
        return None


@functools.cache
def _pattern(decimal: str, thousands: str) -> re.Pattern:
    """A number in this notation: groups of three digits where there is a mark for them, or none at all."""
    mark = f"[{SPACES}]" if thousands and thousands in SPACES else re.escape(thousands)
    grouped = rf"\d{{1,3}}(?:{mark}\d{{3}})+|" if thousands else ""
    fraction = rf"(?:{re.escape(decimal)}(?P<fraction>\d*))?"
    return re.compile(rf"(?P<whole>[-+]?(?:{grouped}\d*)){fraction}(?P<power>[eE][-+]?\d+)?", re.ASCII)


def to_numbers(values: Sequence) -> np.ndarray:
    """float64 of the values as Python writes numbers; NaN where one is not a number. Not to be written to."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        return values.astype(float, copy=False)
    if isinstance(values, TextColumn | WholeColumn):
        return values.numbers
    return np.fromiter(map(as_number, values), float, len(values))


def truth_word(text: str, words: tuple[str, ...]) -> str | None:
    """The level, of `words` (false, true), that a text means; None where it is no truth value.

    Words are compared without letter case; the words "false" and "true" stand for all usual spellings.
    """
    lower = text.lower()
    for word in words:
        usual = {"true": TRUE_WORDS, "false": FALSE_WORDS}.get(word, frozenset())
        if lower == word.lower() or lower in usual:
            return word
    return None
