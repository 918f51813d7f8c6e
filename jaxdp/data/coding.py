"""How the values of one column become numbers: by public knowledge alone, record by record.

Nothing here raises on a value or looks at two records together: an unreadable value counts as the declared
`missing`, an unknown level goes to the declared `other`, a number outside the bounds is clipped.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from jaxdp.data import hashed_levels
from jaxdp.data.columns import BINARY, CATEGORICAL, CONTINUOUS, ORDINAL, Column, equally_spaced, level_name
from jaxdp.data.notation import DAYS_TO_1970, ISO, PLAIN, Notation, truth_word
from jaxdp.data.private_drafts import PrivateDraft
from jaxdp.data.texts import TextColumn

MAX_LOOKED_UP, MAX_INTEGER = 1 << 12, 1 << 31  # integers whose codes are kept, and how large they may be
SHOWN_BY_DAY = 3.0  # days of bounds from which on people read days, not minutes
BLOCK = 1 << 14  # numbers that are scaled at a time
KINDS = (CONTINUOUS, ORDINAL, CATEGORICAL, BINARY)
PERCENTAGES, DATES = "percentages", "dates or times"
THOUSANDS, DECIMAL_COMMA = "numbers with thousands separators", "numbers with a decimal comma"
BY_HAND = "private bounds are found of plain numbers and dates: write bounds from public knowledge in a schema, with "
OF_A_DRAFT = {  # what to do about such cells where bounds are looked for
    PERCENTAGES: f"{BY_HAND}percent = true",
    DATES: 'name it in dates too (--dates NAME; in Python dates=["NAME"]), with its form unless that is 2024-12-31 '
    '(--dates NAME=%d.%m.%Y; in Python dates={"NAME": "%d.%m.%Y"})',
    THOUSANDS: f'{BY_HAND}thousands = ","',
    DECIMAL_COMMA: "say --decimal , of the command, or convert the column",
}
FLOATS, EXACT = (float, np.floating), 1 << 53  # whole numbers of float64 up to there are no others, rounded
EQUALLY_SPACED = "levels count as equally spaced"
SAME_STEP = 1e-9  # relative rounding of the distances of levels such as 0.1, 0.2, 0.3
MISSING_MARKS = frozenset({"", "na", "n/a", "nan", "null", "none", "<na>"})


@dataclasses.dataclass(frozen=True)
class ColumnRule:
    """What the schema says about one column, checked: bounds (continuous) or levels (the other kinds).

    logarithmic: continuous values are scaled on the logarithm, for quantities that spread over magnitudes.
    step: distance of the values that a continuous column can take, 0 if it can take any.
    missing: what an empty or unreadable value counts as, a number within the bounds or a code; fills: whether the
    schema says so, else nobody said what such a cell means.
    other: code of an unknown level; collects: whether the schema says so. notation: how the cells of numbers and dates
    are written. truth: the two levels are truth values, in any usual spelling.
    cycles, heaps, labels: what conditioning on the column adds to it, and whether values are compared with equal ones
    alone; ignored: what the schema switches off; times: what is public about times of day; days: of dates whose days
    are compared, how many the bounds hold; parts: into how many each hour of them is cut, where only records of one
    part of one day are compared, else 0; unsaid: cycles that the schema says nothing of (`conditioning`).
    event: the schema says that it tells whether the event came at a time in another column.
    hashed: the levels are cells of a public hash of the texts (`hashed_levels`).
    pools: `other` collects the levels that a private draft did not name: of a column that is conditioned on they are
    levels that the schema does not list. asked: it is not conditioned on, so that `other` is a level as any.
    guessed: nobody has said that its levels have an order: they are numbers.
    drafted: nobody has described it yet, and its bounds or levels are being looked for: what is said of it names no
    schema. vocabulary: numbers the texts of such a column of levels (`jaxdp.data.vocabulary`).
    draft: the private draft that found its bounds or levels, if one did.
    """

    name: str
    kind: str
    lower: float = -1.0
    upper: float = 1.0
    levels: tuple[float, ...] | tuple[str, ...] = ()
    missing: float = 0.0
    other: int = 0
    logarithmic: bool = False
    step: float = 0.0
    notation: Notation = PLAIN
    truth: bool = False
    fills: bool = False
    collects: bool = False
    cycles: tuple[str, ...] = ()
    heaps: tuple[float, ...] = ()
    labels: bool = False
    ignored: tuple[str, ...] = ()
    times: str = ""
    days: int = 0
    parts: int = 0
    unsaid: tuple[str, ...] = ()
    event: bool = False
    hashed: bool = False
    pools: bool = False
    asked: bool = False
    guessed: bool = False
    drafted: bool = False
    draft: PrivateDraft | None = None
    vocabulary: Any = None

    @property
    def is_date(self) -> bool:
        return bool(self.notation.date)

    @property
    def is_continuous(self) -> bool:
        return self.kind == CONTINUOUS

    @property
    def half_range(self) -> float:
        """What a step of 1 of `scaled` means in the column's own units: of its logarithm, or as `spacing` says."""
        if self.is_continuous:
            lower, upper = (math.log(end) if self.logarithmic else end for end in (self.lower, self.upper))
            return 0.5 * upper - 0.5 * lower
        return 0.5 if self.needs_indicators else 0.5 * (len(self.levels) - 1) * (self.spacing or 1.0)

    @property
    def spacing(self) -> float:
        """The distance of ordered levels that are rising numbers, equally far apart, so that units are theirs; else 0.

        0 of two levels too, which are compared as such, and where the units are steps from a level to the next.
        """
        if not self._on_a_ladder:
            return 0.0
        try:
            numbers = [float(level) for level in self.levels]
        except ValueError:
            return 0.0
        step = (numbers[-1] - numbers[0]) / (len(numbers) - 1)
        even = all(math.isclose(b - a, step, rel_tol=SAME_STEP) for a, b in itertools.pairwise(numbers))
        return step if even and math.isfinite(step) and step > 0.0 else 0.0

    @property
    def counts_in_steps(self) -> bool:
        """Whether the column's own unit is a step from one ordered level to the next."""
        return self._on_a_ladder and not self.spacing

    @property
    def in_steps(self) -> str:
        """In what a difference of the column counts, for people; "" where that is the unit of its numbers."""
        return f" in steps between levels of {self.name} ({EQUALLY_SPACED})" if self.counts_in_steps else ""

    @property
    def _on_a_ladder(self) -> bool:
        return self.kind == ORDINAL and len(self.levels) > 2

    @property
    def unit(self) -> str:
        """What a slope on the column is per, and between which numbers or bounds, for people."""
        if self.counts_in_steps:
            return f"step from one level of {self.name} to the next ({EQUALLY_SPACED})"
        ends = f" {self.clipped}" if self.is_continuous else f" (levels {self.levels[0]} to {self.levels[-1]})"
        return f"unit of {self.name}{ends}"

    def shown(self, value: float) -> float | str:
        """A number in the column's own units for people: of dates the day, of bounds within a few days the minute too.

        Where the format has no day, as of clock times, the minute alone.
        """
        if not self.is_date:
            return value
        day = datetime.date.fromordinal(math.floor(value) + DAYS_TO_1970)
        if self.upper - self.lower >= SHOWN_BY_DAY:
            return day.isoformat()
        minutes = datetime.timedelta(minutes=round((value - math.floor(value)) * 1440))
        when = datetime.datetime.combine(day, datetime.time()) + minutes
        has_day = self.notation.date == ISO or any(part in self.notation.date for part in ("%d", "%j", "%x", "%c"))
        return when.isoformat(" ", "minutes") if has_day else when.strftime("%H:%M")

    @property
    def clipped(self) -> str:
        """Between which bounds values count, for people."""
        ends = (self.shown(end) for end in (self.lower, self.upper))
        return f"clipped to [{', '.join(end if isinstance(end, str) else f'{end:g}' for end in ends)}]"

    def unscaled(self, place: float) -> float:
        """The number of a continuous column at a place on [-1, 1]; of dates their day since 1970."""
        lower, upper = (math.log(end) if self.logarithmic else end for end in (self.lower, self.upper))
        value = 0.5 * (lower + upper) + 0.5 * (upper - lower) * float(place)
        return min(max(math.exp(value) if self.logarithmic else value, self.lower), self.upper)

    def codes(self, values: Sequence) -> np.ndarray:
        """Levels as codes 0, ..., L - 1; continuous values scaled to [-1, 1]. float64, (n,)."""
        if self.vocabulary is not None:
            return self.vocabulary.codes(values)
        return self._scaled_numbers(values) if self.is_continuous else self._level_codes(values)

    def filled(self, values: Sequence) -> np.ndarray:
        """What the cells of a continuous column count as, within the bounds, in its own units."""
        numbers = self.numbers(values)
        return np.clip(np.where(np.isfinite(numbers), numbers, self.missing), self.lower, self.upper)

    def scaled(self, values: Sequence) -> np.ndarray:
        """Values on [-1, 1], float64 of shape (n,), or (n, L) indicators (-1, 1) of more than two unordered levels."""
        return self.spread(self.codes(values))

    def spread(self, codes: np.ndarray) -> np.ndarray:
        """What `scaled` returns for the values whose `codes` these are."""
        if self.is_continuous:
            return codes
        if self.needs_indicators:
            return np.where(codes[:, None] == np.arange(len(self.levels)), 1.0, -1.0)
        return equally_spaced(codes, len(self.levels))

    @property
    def needs_indicators(self) -> bool:
        """True for unordered levels that do not fit on a line."""
        return self.kind == CATEGORICAL and len(self.levels) > 2

    def code_column(self) -> tuple[Column, ...]:
        """Public description of `codes`."""
        more: dict[str, Any] = {"logarithmic": self.logarithmic, "from_zero": self.from_zero, "event": self.event}
        more["level_names"] = tuple(map(level_name, self.levels))
        return (Column(self.kind, len(self.levels), self.name, self._num_values, **more),)

    def scaled_columns(self) -> tuple[Column, ...]:
        """Public descriptions of the columns of `scaled`."""
        if self.needs_indicators:
            return tuple(Column(CONTINUOUS, 2, f"{self.name}={level}") for level in self.levels)
        more: dict[str, Any] = {"logarithmic": self.logarithmic, "from_zero": self.from_zero}
        return (Column(CONTINUOUS, len(self.levels), self.name, **more),)

    @property
    def from_zero(self) -> bool:
        """Whether the values are numbers whose public range begins at 0: bounds [0, HIGH], or levels 0, 1, 2, ..."""
        if self.is_continuous:
            return self.lower == 0.0 and not (self.logarithmic or self.is_date)
        return self.kind == ORDINAL and self.levels == tuple(range(len(self.levels)))

    @property
    def _num_values(self) -> int:
        """Values that the declared step leaves within the bounds; 0 without one."""
        return 1 + math.floor((self.upper - self.lower) / self.step * (1.0 + 1e-12)) if self.step else 0

    def numbers(self, values: Sequence) -> np.ndarray:
        """float64 of the cells in the column's notation; NaN where one cannot be read. Not to be written to.

        Errors: TypeError for a typed column of dates that the schema does not call dates.
        """
        if isinstance(values, np.ndarray) and values.dtype.kind == "M" and not self.notation.date:
            told = OF_A_DRAFT[DATES] if self.drafted else "write date = true in the schema, and dates as bounds"
            raise TypeError(f"column {self.name!r} holds dates: {told}.")
        return self.notation.numbers(values)

    def level_of(self, value: Any) -> str:
        """The level that a cell means; its text where it means none."""
        text = self.level(to_text(value))
        if not _is_text(value) and text.removeprefix("-").isdecimal() and text not in self.levels:
            shown = f"{text}.0"  # of a level that was written as tables of floats show it
            return shown if shown in self.levels else text
        return text

    def level(self, text: str) -> str:
        """The level that a text means; the text itself where it means none."""
        if self.hashed and text.lower() not in MISSING_MARKS:
            return self.levels[hashed_levels.cell(text, len(self.levels))]  # type: ignore[return-value]
        return (truth_word(text, self.levels) or text) if self.truth else text  # type: ignore[arg-type]

    def present(self, values: Sequence) -> np.ndarray:
        """bool (n,): whether each cell says a value of the column, in itself or by what the schema declares."""
        if self.is_continuous:
            return np.full(len(values), True) if self.fills else np.isfinite(self.numbers(values))
        found = dataclasses.replace(self, missing=-1.0, other=-2).codes(values)
        return (
            (found >= 0.0)
            | ((found == -1.0) & self.fills)
            | ((found == -2.0) & self.collects & (self.asked or not self.pools))
        )

    def _scaled_numbers(self, values: Sequence) -> np.ndarray:
        numbers = self.numbers(values)
        scaled = np.empty(numbers.shape)
        for start in range(0, len(numbers), BLOCK):  # stays in the cache
            block, out = numbers[start : start + BLOCK], scaled[start : start + BLOCK]
            finite = np.isfinite(block)
            np.clip(block if finite.all() else np.where(finite, block, self.missing), self.lower, self.upper, out=out)
            self._scale(out)
        return scaled

    def scaled_number(self, numbers: np.ndarray) -> np.ndarray:
        """Numbers within the bounds on [-1, 1]."""
        return self._scale(np.array(numbers, float))

    def _scale(self, numbers: np.ndarray) -> np.ndarray:
        """`scaled_number`, in place."""
        lower, upper = self.lower, self.upper
        if self.logarithmic:
            np.log(numbers, out=numbers)
            lower, upper = math.log(lower), math.log(upper)
        numbers -= 0.5 * lower + 0.5 * upper
        numbers /= 0.5 * upper - 0.5 * lower
        return np.clip(numbers, -1.0, 1.0, out=numbers)

    def _level_codes(self, values: Sequence) -> np.ndarray:
        if isinstance(self.levels[0], str):
            return self._text_codes(values)
        if isinstance(values, np.ndarray) and values.dtype.kind in "iu" and values.dtype != np.uint64:
            known = self._codes_of_integers
            if known is not None:
                if values.dtype.itemsize == 1:
                    return self._codes_of_bytes[values.dtype.kind][values.view(np.uint8)]
                first, codes = known
                return codes[np.clip(values, first, first + len(codes) - 1, dtype=np.int64) - first]
        numbers = self.numbers(values)
        codes = np.full(numbers.shape, float(self.other))
        for code, level in enumerate(self.levels):
            codes[numbers == level] = code
        return np.where(np.isfinite(numbers), codes, self.missing)

    @functools.cached_property
    def _codes_of_integers(self) -> tuple[int, np.ndarray] | None:
        """(first, codes of first, first + 1, ...), whose ends stand for all integers beyond; None for a wide range."""
        levels: Any = self.levels
        first, last = math.floor(min(levels)) - 1, math.ceil(max(levels)) + 1
        if last - first > MAX_LOOKED_UP or max(abs(first), abs(last)) > MAX_INTEGER:
            return None
        values: Any = np.arange(first, last + 1, dtype=float)
        return first, self._level_codes(values)

    @functools.cached_property
    def _codes_of_bytes(self) -> dict[str, np.ndarray]:
        """Codes (256,) of the integers of one byte, with a sign and without, by what their bits read as unsigned."""
        bits: Any = np.arange(256, dtype=np.uint8)
        return {kind: self._level_codes(bits.view(f"{kind}1").astype(np.int16)) for kind in "iu"}

    def _text_codes(self, values: Sequence) -> np.ndarray:
        code_of = {level: code for code, level in enumerate(self.levels)}

        def code(value) -> float:
            text = self.level_of(value)
            if text in code_of:
                return code_of[text]
            return self.missing if text.lower() in MISSING_MARKS else self.other

        if isinstance(values, TextColumn):
            texts, places = values.distinct
            return np.fromiter(map(code, texts), float, len(texts))[places]
        # Texts repeat, so each is looked at once. Texts only: 1, 1.0 and True are one dictionary key, and what
        # a record counts as must not depend on the records before it.
        known: dict[str, float] = {}
        for text in set(filter(_is_text, values)):
            known[text] = code(text)
        found = (known[value] if _is_text(value) else code(value) for value in values)
        return np.fromiter(found, float, len(values))


def _is_text(value) -> bool:
    return type(value) is str


def to_text(value) -> str:
    """The text of a level; None, NaN and what has no text (whole numbers of thousands of digits) are the empty text.

    1 and 1.0 have one text, and so have whole numbers that are one number of float64: tables turn all whole numbers of
    a column into such where one record has none or a fraction, and no record may change the texts of the others.
    """
    if value is None or (isinstance(value, FLOATS) and math.isnan(value)):
        return ""
    try:
        if isinstance(value, FLOATS) and float(value).is_integer():
            return str(int(value))
        if isinstance(value, int | np.integer) and abs(int(value)) > EXACT:
            return str(int(float(value)))
        return str(value).strip()
    except (ValueError, OverflowError):
        return ""


def duplicates(items: Iterable) -> list:
    """The items that occur more than once, in order, each once."""
    seen: set = set()
    found: dict = {}
    for item in items:
        if item in seen:
            found[item] = None
        seen.add(item)
    return list(found)
