"""Reading a table for a release: the owner's channel unless strict, charge first and never refuse if strict.

If not strict the person who holds the file is told (exit code 2, nothing charged) what is wrong with its form and
which column does not parse. That depends on records: it must not be published. If strict a caller who is not
trusted learns only what was released: the charge is on disk before a record is looked at, and what one record holds
changes neither the number of records, nor the exit code, nor the form of what is printed.
"""

from __future__ import annotations

import dataclasses
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jaxdp.data import files


@dataclasses.dataclass(frozen=True, repr=False)
class Source:
    """A table and how to read it. names: the columns used. records: the public number of records, if any.

    table: path of a file, a pandas, polars or pyarrow table, or a mapping of name -> (n,) values.
    strict: for callers who may see errors but not records. force: go on although a column does not parse.
    given: those of the columns that are conditioned on.
    Errors: ValueError for strict with force, which contradict each other.
    """

    table: Any
    names: tuple[str, ...]
    delimiter: str
    strict: bool = False
    records: int | None = None
    force: bool = False
    given: tuple[str, ...] = ()

    def __post_init__(self):
        if self.strict and self.force:
            raise ValueError("--force goes without --strict, which never refuses a column.")

    @property
    def is_text(self) -> bool:
        """Whether the table is the path of a text, whose lines may be malformed."""
        return isinstance(self.table, str | os.PathLike) and not files.is_typed(self.table)


def is_release(key: Any) -> bool:
    """Whether the key makes a release, for which records of several rows are put into a random order."""
    from jaxdp.randomness import keys

    return isinstance(key, keys.ReleaseKey)


def ask[Data, Answer](
    question: Callable[[Data, Any], Answer],
    load: Callable[..., Data],
    source: Source,
    account: Any,
    *,
    public: Sequence[str] = (),
) -> Answer:
    """question(data, account) on the data of the table, charged to the account once.

    load(table, strict=, records=, tally=) reads a path or a mapping of columns. public: columns that are not
    protected. The question must charge the account before it uses a value, and draw from one key.
    """
    if not source.strict:
        return question(_checked(load, source), account)
    if not source.is_text:  # nothing about a typed table is an error that its records decide
        return question(load(source.table, strict=True, records=source.records), account)
    from jaxdp.data import lines

    counted = lines.count(source.table, source.names, source.delimiter)  # refuses a bad header, a public mistake
    records = counted if source.records is None else source.records
    if account is None:
        return question(load(source.table, strict=True, records=records), None)
    blank = _without_records(source, public, records)
    paid = _UpToTheCharge(account)
    try:
        question(load(blank, strict=True), paid)
    except _Charged:
        return question(load(source.table, strict=True, records=records), _Paid(*paid.charged))
    raise RuntimeError("a question was answered without a charge.")


def _checked(load: Callable[..., Any], source: Source) -> Any:
    """The data, unless a column does not parse: told to the owner of the table, before anything is charged."""
    from jaxdp.data import lines
    from jaxdp.data.readers import OWNER
    from jaxdp.data.tally import Tally

    tally = Tally()
    data = load(source.table, records=source.records, tally=tally)
    failing = tally.failing()
    if failing and not source.force:
        more = f" (and {len(failing) - 1} more: jaxdp check)" if len(failing) > 1 else ""
        raise ValueError(
            f"{failing[0].sentence}{more}; nothing was charged: correct the file or the schema, or go on with --force "
            f"(in Python: force=True) ({OWNER})."
        )
    passed_over = tally.faults[lines.EMPTY]
    if passed_over:
        print(f"jaxdp: {passed_over} empty lines were passed over ({OWNER}).", file=sys.stderr)
    for column in tally.tied(source.given):
        print(f"jaxdp: warning: {column.ties} ({OWNER}).", file=sys.stderr)
    return data


def _without_records(source: Source, public: Sequence[str], records: int) -> Mapping[str, Sequence[str]]:
    """The table with an empty cell for every cell that is protected."""
    from jaxdp.data import lines

    table: dict[str, Any] = {name: [""] * records for name in source.names}
    if public:
        pieces = list(lines.pieces(source.table, public, source.delimiter, records))
        table |= {name: [cell for piece in pieces for cell in piece[name]] for name in public}
    return table


class _Charged(Exception):
    """Raised by an account once the charge is on disk, so that nothing else happens to the blank records."""


class _UpToTheCharge:
    """An account that charges and then stops whoever asked."""

    def __init__(self, account: Any):
        self._account = account
        self.charged: tuple[str, Any, Any] = ("", None, None)

    def require(self, cost: Any) -> None:
        self._account.require(cost)

    def charge(self, method: str, cost: Any, key: Any) -> None:
        self._account.charge(method, cost, key)
        self.charged = method, cost, key
        raise _Charged


class _Paid:
    """An account from which one charge was made: it lets that one pass and nothing else."""

    def __init__(self, method: str, cost: Any, key: Any):
        self._method, self._cost, self._key = method, cost, key

    def require(self, cost: Any) -> None:
        if not _same(cost, self._cost):
            raise RuntimeError("a release costs something else than was charged for it.")

    def charge(self, method: str, cost: Any, key: Any) -> None:
        self.require(cost)
        if method != self._method or key is not self._key:
            raise RuntimeError("a release is not the one that was charged.")


def _same(cost: Any, other: Any) -> bool:
    amounts = [[float(getattr(c, name)) for name in ("epsilon", "delta", "rho")] for c in (cost, other)]
    return cost.relation == other.relation and all(map(_equal, *amounts))


def _equal(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))
