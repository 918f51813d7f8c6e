"""For the owner of a table, never for release: a column that looks like the identifier of a person and repeats.

Where a person has several rows and no `unit` says so, rows that belong together are taken for independent records, and
true nulls are rejected. Whether an identifier repeats depends on the records, so it is private; its name is public.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxdp.data import batches, readers
from jaxdp.data.column_counts import texts_of
from jaxdp.data.notation import to_numbers

PERSON, WORD, NUMBER, LABEL = 4, 3, 2, 1  # what a name says: whose a row is, a person, one of something, nothing
MIN_KNOWN = {PERSON: 10, WORD: 10, NUMBER: 30, LABEL: 20}  # fewer different values are levels of a category
MAX_REPEATS = 100.0  # rows a value, from where on values are levels of a category, unless the name says more
ALIKE = 0.75  # of the values of a column without such a name occur equally often, as in a table of repeated visits
SAMPLE = 1 << 16  # rows after which most columns need not be counted any more
MAX_WHOLE = 2.0**63  # in size, that 64 bits hold
MAX_BYTES = 1 << 26  # of files of which every column is read in a pass; of larger ones those that their head leaves
MAX_KEPT = 1 << 16  # different values of a column whose rows are counted; of more, those of a part of all hashes

_WORD = (
    r"(?:person|patient|subj|subject|user|customer|client|household|hh|participant|respondent|individual|case|member|"
)
_WORD += r"pupil|student|employee)"
_PERSON = re.compile(
    rf"(?:{_WORD}_?)?(?:id|ids|iid|uid|uuid|pid|idno|idnum|idcode)|{_WORD}_?(?:no|nr|num|number|code|key)"
)
_NUMBER = re.compile(r".+_(?:id|uid|uuid)")
_TIME = re.compile(  # what repeats equally often in a table of visits, and says when a row was written, not whose it is
    r"date|day|dow|week|weekday|month|quarter|year|hour|minute|second|time|timestamp|period|wave|round|visit|session|"
    r"trial|item|question|rank|percentile|quantile|order|step|trend"
)
_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T].*)?|\d{1,2}:\d{2}.*")


def says(name: str) -> int:
    """How much the name of a column says about whose a row is: `PERSON`, `WORD`, `NUMBER` or `LABEL`. Public."""
    words = re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()).strip("_")
    if _PERSON.fullmatch(words):
        return PERSON
    if re.fullmatch(_WORD, words):
        return WORD
    return NUMBER if _NUMBER.fullmatch(words) else LABEL


def names_persons(names: Sequence[str]) -> list[str]:
    """Those of the names that say whose a row is, or which one of something it is; the clearest first. Public."""
    return sorted((name for name in names if says(name) > LABEL), key=says, reverse=True)


def unit_line(name: str) -> str:
    """What to write in a schema where the column says whose a row is."""
    return f"unit = {json.dumps(name, ensure_ascii=False)}"


class Watch:
    """Counts, in a pass over a table that is made anyway, how often the values of its columns occur.

    names: of the columns that the pass has to yield beside those it is made for (`readers.pieces(also=...)`). Private.
    """

    def __init__(self, names: Sequence[str] = ()):
        self.names = tuple(names)
        self._columns = {name: _Column(says(name)) for name in self.names}

    @classmethod
    def of(cls, source: Any, delimiter: str = ",", unit: str = "") -> Watch:
        """Of every column of the table, whether a schema has it or not; of none where there is a `unit`.

        Of tables that are computed anew for every pass those with a telling name; of large files those whose first
        rows leave the question open.
        """
        if unit:
            return cls()
        try:
            names = [name for name in readers.names_of(source, delimiter) if isinstance(name, str) and name]
        except (OSError, TypeError, ValueError):
            return cls()  # whoever reads the table says what is wrong with it
        names = [name for name in names if names.count(name) == 1]
        if _is_computed(source):
            return cls([name for name in names if says(name) > LABEL])
        return cls(_left_open(source, names, delimiter) if _is_large(source) else names)

    def add(self, piece: Mapping[str, Any]) -> None:
        """Counts a piece of the table; columns that it does not have, or whose cells cannot be read, are left alone."""
        for name, column in self._columns.items():
            if name in piece:
                column.add(piece[name])

    def look(self, columns: Mapping[str, Any]) -> None:
        """Counts whole columns beside those that it was made for."""
        for name, values in columns.items():
            self._columns[name] = _Column(says(name))
            self._columns[name].add(values)

    def left(self) -> list[str]:
        """Names of the columns that may still turn out to be identifiers."""
        return [name for name, column in self._columns.items() if column.may_be]

    def describe(self, remedy: str = "") -> str:
        """What it means that an identifier repeats, without a full stop; the empty text where none does.

        Names one column, quotes no value. remedy: what to do about it; default what a schema can say.
        """
        found = self.identifier()
        if not found:
            return ""
        by_schema = (
            f"write {unit_line(found)} at the top of the schema (in Python a key of schema={{...}}), which makes "
            "each of them one record with all of its rows"
        )
        return (
            f"warning: column {found!r} looks like the identifier of a person, and its values repeat. Rows of one "
            "person are no independent records: true nulls are rejected, and epsilon protects a single row. If it says "
            f"whose a row is, {remedy or by_schema}"
        )

    def identifier(self) -> str:
        """The repeating column whose name says most; of several the one with most values. The empty text for none."""
        known = [(says(name), one.number, name) for name, one in self._columns.items() if one.of_persons(name)]
        return max(known, key=lambda one: one[:2], default=(0, 0, ""))[2]


class _Column:
    """How often the values of a column occur: of all, or of those whose hashes lie in a part of all hashes.

    kind: what its name says. Counts of the values that are kept are exact.
    """

    def __init__(self, kind: int):
        self._kind, self._rows, self._bits = kind, 0, 0
        self._out = False  # whether the values are no identifiers
        self._hashes, self._counts = np.zeros(0, np.uint64), np.zeros(0, int)

    def add(self, values: Any) -> None:
        """Counts further cells."""
        if len(values) > SAMPLE and not self._rows:
            self.add(values[:SAMPLE])
            values = values[SAMPLE:]
        if self._out:
            return
        found = _hashed(values)
        before, self._rows = self._rows, self._rows + len(values)
        if found is None:
            self._leave()
            return
        hashes, counts = self._within(*found)  # before they are counted as too many
        both = np.concatenate([self._hashes, hashes])
        self._hashes, places = np.unique(both, return_inverse=True)
        self._counts = np.bincount(places, np.concatenate([self._counts, counts]), len(self._hashes)).astype(int)
        while len(self._hashes) > MAX_KEPT:
            self._bits += 1
            self._hashes, self._counts = self._within(self._hashes, self._counts)
        if before < SAMPLE <= self._rows and not self.may_be:
            self._leave()

    def _within(self, hashes: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Those in the part of all hashes that is kept."""
        kept = hashes <= np.uint64((1 << (64 - self._bits)) - 1)
        return hashes[kept], counts[kept]

    def _leave(self) -> None:
        self._out, self._hashes, self._counts = True, self._hashes[:0], self._counts[:0]

    @property
    def number(self) -> int:
        """Of different values, about."""
        return len(self._counts) << self._bits

    @property
    def may_be(self) -> bool:
        """Whether more rows could show identifiers: there are many values, and no more rows of each than visits."""
        return bool(self.number) and (self._kind == PERSON or float(self._counts.mean()) <= MAX_REPEATS)

    def of_persons(self, name: str) -> bool:
        """Whether the values look like identifiers, some of which have several rows."""
        counts = self._counts
        if self.number < MIN_KNOWN[self._kind] or counts.max() < 2:
            return False
        if self._kind == PERSON:
            return True
        usual = int(np.bincount(counts).argmax())
        alike = usual >= 2 and float(np.mean(counts == usual)) >= ALIKE
        return float(counts.mean()) <= MAX_REPEATS and (self._kind > LABEL or (alike and not _says_when(name)))


def _says_when(name: str) -> bool:
    return any(_TIME.fullmatch(word) for word in re.split(r"[^a-z]+", name.lower()))


def _is_computed(source: Any) -> bool:
    """Whether each pass over the table is a computation."""
    if isinstance(source, str | os.PathLike):
        return batches.is_query(source)
    return readers.is_lazy(source) or batches.of(source) is not None


def _is_large(source: Any) -> bool:
    """Whether these are files of so many bytes that a pass over every column takes long."""
    if not isinstance(source, str | os.PathLike):
        return False
    return sum(os.path.getsize(path) for path in batches.paths(source) or [os.fspath(source)]) > MAX_BYTES


def _left_open(source: str | os.PathLike, names: Sequence[str], delimiter: str) -> list[str]:
    """Those of the names whose first rows do not rule out that they are identifiers."""
    head = Watch(names)
    with contextlib.suppress(ValueError):  # the pass says what is wrong with the form
        head.add(readers.head(source, names, delimiter))
        return head.left()
    return [name for name in names if says(name) > LABEL]


def _hashed(values: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """Hashes uint64 (k,) of the values and how often each occurs (k,), for whole numbers and texts; None for others.

    Missing cells have none. Dates and times are no identifiers.
    """
    if isinstance(values, np.ndarray) and values.dtype.kind in "iuf":
        numbers = values[np.isfinite(values)]
        if not np.array_equal(numbers[:SAMPLE], np.floor(numbers[:SAMPLE])):
            return None
        found, counts = np.unique(numbers, return_counts=True)
        if found.dtype.kind == "f":  # no identifier is larger, and NumPy would warn of one that is
            found, counts = found[np.abs(found) < MAX_WHOLE], counts[np.abs(found) < MAX_WHOLE]
        return found.astype(np.int64).view(np.uint64) * np.uint64(0x9E3779B97F4A7C15), counts
    if isinstance(values, np.ndarray) and values.dtype.kind not in "OUT":
        return None
    texts = texts_of(values)
    texts.pop("", None)
    sample = list(texts)[:1000]
    numbers = to_numbers(sample)
    numbers = numbers[np.isfinite(numbers)]
    if any(map(_DATE.fullmatch, sample[:20])) or not np.array_equal(numbers, np.floor(numbers)):
        return None
    hashes = np.fromiter((hash(text) & (2**64 - 1) for text in texts), np.uint64, len(texts))
    return hashes, np.fromiter(texts.values(), int, len(texts))
