"""For the owner of a table, never for release: a column that looks like the identifier of a person and repeats.

Where a person has several rows and no `unit` says so, rows that belong together are taken for independent records, and
true nulls are rejected. Whether an identifier repeats depends on the records, so it is private; its name is public.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxdp.data import batches, readers
from jaxdp.data.notation import to_numbers
from jaxdp.data.tally import texts_of

PERSON, NUMBER, LABEL = 3, 2, 1  # how much a name says: whose a row is, which one of something it is, nothing
MIN_KNOWN = {PERSON: 10, NUMBER: 30, LABEL: 20}  # fewer different values are levels of a category
MAX_REPEATS = 100.0  # rows a value, from where on values are levels of a category, unless the name says more
ALIKE = 0.75  # of the values of a column without such a name occur equally often, as in a table of repeated visits
SAMPLE = 1 << 16  # rows that most columns need not be read beyond
MAX_BYTES = 1 << 26  # of files of which every column is looked at; of larger ones those whose name says something

_WORD = (
    r"(?:person|patient|subj|subject|user|customer|client|household|hh|participant|respondent|individual|case|member|"
)
_WORD += r"pupil|student|employee)"
_PERSON = re.compile(
    rf"(?:{_WORD}_?)?(?:id|ids|iid|uid|uuid|pid|idno|idnum|idcode)|{_WORD}_?(?:no|nr|num|number|code|key)"
)
_NUMBER = re.compile(rf"{_WORD}|.+_(?:id|uid|uuid)")
_TIME = re.compile(  # what repeats equally often in a table of visits, and says when a row was written, not whose it is
    r"date|day|dow|week|weekday|month|quarter|year|hour|minute|second|time|timestamp|period|wave|round|visit|session|"
    r"trial|item|question|rank|percentile|quantile|order|step|trend"
)
_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T].*)?|\d{1,2}:\d{2}.*")


def says(name: str) -> int:
    """How much the name of a column says about whose a row is: `PERSON`, `NUMBER` or `LABEL`. Public."""
    words = re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()).strip("_")
    if _PERSON.fullmatch(words):
        return PERSON
    return NUMBER if _NUMBER.fullmatch(words) else LABEL


def names_persons(names: Sequence[str]) -> list[str]:
    """Those of the names that say whose a row is, or which one of something it is; the clearest first. Public."""
    return sorted((name for name in names if says(name) > LABEL), key=says, reverse=True)


def unit_line(name: str) -> str:
    """What to write in a schema where the column says whose a row is."""
    return f"unit = {json.dumps(name, ensure_ascii=False)}"


def repeated(source: Any, delimiter: str = ",", unit: str = "") -> str:
    """What it means that an identifier repeats, without a full stop; the empty text where none does or `unit` is set.

    source, delimiter: as of `readers.pieces`. Every column of the table is looked at, whether a schema has it or not;
    of tables that do not lie in memory, are very large or are computed anew for every pass, those with a telling name.
    Names one column, quotes no value. Private: for the owner of the table. Errors: OSError.
    """
    found = "" if unit else _identifier(source, delimiter)
    if not found:
        return ""
    return (
        f"warning: column {found!r} looks like the identifier of a person, and its values repeat. Rows of one person "
        "are no independent records: true nulls are rejected, and epsilon protects a single row. If it says whose a "
        f"row is, write {unit_line(found)} at the top of the schema (in Python a key of schema={{...}}), which makes "
        "the first row of each the record"
    )


def _identifier(source: Any, delimiter: str) -> str:
    """The repeating column whose name says most; of several the one with most values. The empty text for none."""
    known = [
        (says(name), repeats.number, name)
        for name, repeats in _repeats(source, delimiter).items()
        if repeats.of_persons(name)
    ]
    return max(known, key=lambda one: one[:2], default=(0, 0, ""))[2]


@dataclasses.dataclass(frozen=True)
class _Repeats:
    """How often the values of a column occur. counts: (k,), none where the values are no identifiers."""

    counts: np.ndarray

    @property
    def number(self) -> int:
        """Of different values."""
        return len(self.counts)

    def of_persons(self, name: str) -> bool:
        """Whether the values look like identifiers, some of which have several rows."""
        kind = says(name)
        if self.number < MIN_KNOWN[kind] or self.counts.max() < 2:
            return False
        if kind == PERSON:
            return True
        usual = int(np.bincount(self.counts).argmax())
        alike = usual >= 2 and float(np.mean(self.counts == usual)) >= ALIKE
        return float(self.counts.mean()) <= MAX_REPEATS and (kind == NUMBER or (alike and not _says_when(name)))

    def may_be(self, name: str) -> bool:
        """Whether more rows could show identifiers: there are many values, and no more rows of each than visits."""
        return bool(self.number) and (says(name) == PERSON or float(self.counts.mean()) <= MAX_REPEATS)


def _says_when(name: str) -> bool:
    return any(_TIME.fullmatch(word) for word in re.split(r"[^a-z]+", name.lower()))


def _repeats(source: Any, delimiter: str) -> dict[str, _Repeats]:
    """How often the values of the columns occur that are worth a look."""
    names = [name for name in readers.names_of(source, delimiter) if isinstance(name, str) and name]
    names = [name for name in names if names.count(name) == 1]
    if _is_costly(source):
        names = [name for name in names if says(name) != LABEL]
    return _counted_where_possible(source, names, delimiter)


def _counted_where_possible(source: Any, names: Sequence[str], delimiter: str) -> dict[str, _Repeats]:
    """Of all names together; one by one where cells of a kind that nobody asked about cannot be read."""
    if not names:
        return {}
    try:
        return _counted(source, names, delimiter)
    except (TypeError, ValueError):
        singles = [] if len(names) == 1 else [[name] for name in names]
        return {
            name: found for one in singles for name, found in _counted_where_possible(source, one, delimiter).items()
        }


def _is_costly(source: Any) -> bool:
    """Whether each pass over the table is a computation or a long way."""
    if not isinstance(source, str | os.PathLike) or batches.is_query(source):
        return readers.is_lazy(source) or batches.of(source) is not None
    return sum(os.path.getsize(path) for path in batches.paths(source) or [os.fspath(source)]) > MAX_BYTES


def _counted(source: Any, names: Sequence[str], delimiter: str) -> dict[str, _Repeats]:
    """By the first rows, and by all of them where these do not rule a column out."""
    pieces = readers.pieces(source, names, delimiter)
    first = next(pieces)
    known = {name: _Repeats(_counts([first[name][:SAMPLE]])) for name in names}
    left = [name for name in names if known[name].may_be(name)]
    more = len(first[names[0]]) > SAMPLE or next(pieces, None) is not None
    if left and more:
        rows = list(readers.pieces(source, left, delimiter))
        known |= {name: _Repeats(_counts([piece[name] for piece in rows])) for name in left}
    return known


def _counts(parts: Sequence[Any]) -> np.ndarray:
    """How often each value of the parts occurs (k,), for whole numbers and texts that are no dates; (0,) for others."""
    none = np.zeros(0, int)
    if all(isinstance(part, np.ndarray) and part.dtype.kind in "iuf" for part in parts):
        values = np.concatenate([np.asarray(part) for part in parts])
        values = values[np.isfinite(values)]
        if not np.array_equal(values[:SAMPLE], np.floor(values[:SAMPLE])):
            return none
        found = np.unique(values, return_counts=True)
        return found[1]
    if any(isinstance(part, np.ndarray) and part.dtype.kind not in "OUT" for part in parts):
        return none
    texts = sum((texts_of(part) for part in parts[1:]), texts_of(parts[0]))
    texts.pop("", None)
    sample = list(texts)[:1000]
    numbers = to_numbers(sample)
    numbers = numbers[np.isfinite(numbers)]
    if any(map(_DATE.fullmatch, sample[:20])) or not np.array_equal(numbers, np.floor(numbers)):
        return none
    return np.fromiter(texts.values(), int, len(texts))
