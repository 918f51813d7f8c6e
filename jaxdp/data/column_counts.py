"""How many cells of each column of a file do not say what the schema expects, and which values there are.

The counts are private: they go to the owner of the file alone, never into a release.
"""

from __future__ import annotations

import dataclasses
import heapq
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from jaxdp.data.coding import DATES, DECIMAL_COMMA, MISSING_MARKS, PERCENTAGES, THOUSANDS, ColumnRule, to_text
from jaxdp.data.notation import to_numbers
from jaxdp.data.texts import TextColumn

MAX_LOOKED_AT = 1000  # cells per column whose notation is guessed
MAX_VALUES = 100_000  # distinct values of a column that are kept to see ties
BINS = 40  # of a histogram of the scaled values
CODE_RATIO, FAR = 10.0, 3.0  # a code: so many times as frequent as the others beyond a bound, or so many widths off
MIN_CODED = 5  # fewer cells of one value beyond the bounds are no code
DECIMAL_COMMA_TOO = "numbers with a decimal comma and points at the thousands"
_TRUTH = frozenset({"true", "false", "yes", "no", "y", "n", "t", "f", "0", "1"})
_NOTATIONS = (
    (DECIMAL_COMMA_TOO, re.compile(r"[-+]?\d{1,3}(\.\d{3})+,\d+")),
    (PERCENTAGES, re.compile(r"[-+]?[\d.,]+\s*%")),
    ("numbers with a sign of currency", re.compile(r"[$€£¥]\s*[-+]?\d[\d.,' ]*|[-+]?\d[\d.,' ]*\s*[$€£¥]")),
    (DATES, re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T].*)?|\d{1,2}:\d{2}.*")),
    (THOUSANDS, re.compile(r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?|[-+]?\d{1,3}([.' \u00a0\u202f]\d{3})+(,\d+)?")),
    (DECIMAL_COMMA, re.compile(r"[-+]?\d*,\d+([eE][-+]?\d+)?")),
    ("numbers with a unit", re.compile(r"[-+]?\d+(\.\d+)?\s*[^\W\d]+.*")),
)


@dataclasses.dataclass
class ColumnCounts:
    """Counts of one column. cells: all. missing: empty or marked. The rest that is not `plain` is doubtful.

    values: how many records have each, until there are too many, of those within the bounds; beyond: of the others.
    times: dates with a time of day.
    """

    rule: ColumnRule
    cells: int = 0
    missing: int = 0
    unreadable: int = 0
    unknown: int = 0
    outside: int = 0
    notations: Counter[str] = dataclasses.field(default_factory=Counter)
    values: Counter[float] = dataclasses.field(default_factory=Counter)
    beyond: Counter[float] = dataclasses.field(default_factory=Counter)
    times: int = 0
    sums: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(2))  # of scaled values and their squares
    histogram: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(BINS, int))

    def add(self, values: Sequence) -> np.ndarray | None:
        """Counts some cells. Which hold text that is no number, bool (k,); None for columns of text."""
        self.cells += len(values)
        if self.rule.vocabulary is not None:
            self.missing += sum(count for text, count in texts_of(values).items() if text.lower() in MISSING_MARKS)
        elif self.rule.levels and isinstance(self.rule.levels[0], str):
            self._add_texts(values)
        else:
            return self._add_numbers(values)
        return None

    def _add_texts(self, values: Sequence) -> None:
        for text, count in texts_of(values, self.rule.level_of).items():
            if text in self.rule.levels:
                continue
            if text.lower() in MISSING_MARKS:
                self.missing += count
            else:
                self.unknown += count
                self._guess([text] * min(count, MAX_LOOKED_AT))

    def _add_numbers(self, values: Sequence) -> np.ndarray:
        numbers = self.rule.numbers(values)
        finite = np.isfinite(numbers)
        texts = {place: to_text(values[place]) for place in np.flatnonzero(~finite).tolist()}
        unreadable = {place: text for place, text in texts.items() if text.lower() not in MISSING_MARKS}
        self.missing += len(texts) - len(unreadable)
        self.unreadable += len(unreadable)
        self._guess(unreadable.values())
        if self.rule.is_continuous:
            if self.rule.is_date:
                self.times += int(np.sum(numbers[finite] != np.floor(numbers[finite])))
            inside = finite & (numbers >= self.rule.lower) & (numbers <= self.rule.upper)
            self.outside += int(np.sum(finite) - np.sum(inside))
            self._tally(self.beyond, numbers[finite & ~inside])
            self._add_inside(numbers[inside])
        else:
            self.unknown += int(np.sum(finite & ~np.isin(numbers, self.rule.levels)))
        is_text = np.zeros(len(values), bool)
        is_text[list(unreadable)] = True
        return is_text

    @staticmethod
    def _tally(found: Counter[float], numbers: np.ndarray) -> None:
        if len(found) <= MAX_VALUES:
            values, counts = np.unique(numbers, return_counts=True)
            found.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))

    def _add_inside(self, numbers: np.ndarray) -> None:
        self._tally(self.values, numbers)
        scaled = self.rule.scaled_number(numbers)
        self.sums += scaled.sum(), scaled @ scaled
        bins = np.floor((scaled + 1.0) * (BINS / 2)).astype(int)
        self.histogram += np.bincount(np.clip(bins, 0, BINS - 1), minlength=BINS)

    def _guess(self, texts: Iterable[str]) -> None:
        for text in texts:
            if self.notations.total() >= MAX_LOOKED_AT:
                return
            self.notations[self._notation(text)] += 1

    def _notation(self, text: str) -> str:
        """A kind of notation; the empty text where none fits."""
        levels = [str(level).lower() for level in self.rule.levels]
        if text.lower() in levels:
            return "levels in another letter case"
        if levels and text.lower() in _TRUTH and set(levels) <= _TRUTH | {"0.0", "1.0"}:
            return "truth values in other words"
        if levels and text.lower() in ("false", "true"):
            return "truth values"
        number = float(to_numbers([text])[0])
        if any(number == float(to_numbers([level])[0]) for level in levels):
            return "numbers in another form than the levels"
        return next((name for name, pattern in _NOTATIONS if pattern.fullmatch(text)), "")

    @property
    def is_whole(self) -> bool:
        """Whether all its numbers are whole, as codes are."""
        return all(value.is_integer() for value in self.values)

    @property
    def empty(self) -> int:
        """Cells without a value for which a value stands in that the schema does not declare."""
        return 0 if self.rule.fills else self.missing + self.unreadable

    @property
    def pooled(self) -> int:
        """Cells counted as a value that they do not say and that the schema does not declare."""
        return self.empty + (0 if self.rule.collects and not self.rule.pools else self.unknown)

    @property
    def unnamed(self) -> int:
        """As `pooled`, of X or Y: there the level that a draft made for all others is one of its own."""
        return self.empty + (0 if self.rule.collects else self.unknown)

    @property
    def doubtful(self) -> int:
        """Cells that count as something else than they say, which a level for all others is not."""
        return self.unreadable + (0 if self.rule.pools else self.unknown) + self.outside

    @property
    def coded(self) -> tuple[int, float]:
        """How many cells hold one value beyond the bounds, as codes for missing do, and the bound that they count as.

        The bound on the scale of [-1, 1]; (0, 0.) where there is no such value. A tail that is clipped has many values,
        each about as frequent as the next one, or, in steps, ever less frequent ones; a value far from the bounds that
        many share is a code beside a tail, too. On the logarithm 0 is a value, which no bounds can hold.
        """
        return max(self._coded_beyond(-1.0), self._coded_beyond(1.0))

    def _coded_beyond(self, bound: float) -> tuple[int, float]:
        rule = self.rule
        counts = {value: n for value, n in self.beyond.items() if (value > rule.upper) == (bound > 0.0)}
        if rule.logarithmic:
            counts.pop(0.0, None)
        first, second, *_ = (*sorted(counts.values(), reverse=True), 0, 0)
        ends = (heapq.nlargest if bound > 0.0 else heapq.nsmallest)(2, self.values)
        last, before, *_ = (*(self.values[value] for value in ends), 0, 0)
        alone = first > CODE_RATIO * second and not first <= last < before  # else the end of a tail in steps
        total = sum(counts.values())
        far = (n for value, n in counts.items() if CODE_RATIO * n >= total and self._widths_beyond(value) > FAR)
        count = max([first * alone, *far])
        return (count, bound) if count >= MIN_CODED else (0, 0.0)

    def _widths_beyond(self, value: float) -> float:
        """How far beyond the bounds a value lies, in widths of them."""
        lower, upper = self.rule.lower, self.rule.upper
        if self.rule.logarithmic:
            lower, upper, value = math.log(lower), math.log(upper), math.log(value) if value > 0.0 else -math.inf
        return max(value - upper, lower - value) / (upper - lower)

    @property
    def reach(self) -> float:
        """How many sds of the column, as it is filled, empty cells count beside the mean of its values; of levels 0."""
        return self.sds_beside(float(self.rule.scaled_number(np.array([self.rule.missing]))[0]), self.empty)

    def sds_beside(self, place: float, cells: int) -> float:
        """How many sds of the column, with so many cells at a place on [-1, 1], the place is beside its mean."""
        count = int(self.histogram.sum())
        if not count:
            return 0.0
        mean, square = self.sums / count
        distance = abs(place - mean)
        spread = max(square - mean**2, 0.0) + distance**2 * cells / self.cells
        return distance / math.sqrt(spread) if spread else 0.0


def texts_of(values: Sequence, text_of: Callable[[Any], str] = to_text) -> Counter[str]:
    """How often each text occurs."""
    if not isinstance(values, TextColumn):
        return Counter(map(text_of, values))
    texts, places = values.distinct
    found: Counter[str] = Counter()
    for text, count in zip(texts, np.bincount(places, minlength=len(texts)).tolist(), strict=True):
        found[text_of(text)] += count
    return found
