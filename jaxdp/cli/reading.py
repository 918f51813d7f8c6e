"""Reading a data file for a release: the owner's channel without --strict, charge first and never refuse with it.

Without --strict the person who holds the file is told (exit code 2, nothing charged) what is wrong with its form and
which column does not parse. That depends on records: it must not be published. With --strict a caller who is not
trusted learns only what was released: the charge is on disk before a record is looked at, and what one record holds
changes neither the number of records, nor the exit code, nor the form of what is printed.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jaxdp.cli.options import UserError


@dataclasses.dataclass(frozen=True)
class Source:
    """A data file and how to read it. names: the columns used. records: the public number of records, if any."""

    path: str
    names: tuple[str, ...]
    delimiter: str
    strict: bool = False
    records: int | None = None
    force: bool = False

    @classmethod
    def of(cls, args: argparse.Namespace, schema, names: Sequence[str]) -> Source:
        """From the arguments that `options.add_reading` adds. Errors: `UserError` where they contradict each other."""
        if args.strict and args.force:
            raise UserError("--force goes without --strict, which never refuses a column.")
        for name in names:
            schema.rule(name)
        return cls(args.data, tuple(names), schema.delimiter, args.strict, args.records, args.force)


def ask[Data, Answer](
    question: Callable[[Data, Any], Answer],
    load: Callable[..., Data],
    source: Source,
    account: Any,
    *,
    public: Sequence[str] = (),
) -> Answer:
    """question(data, account) on the data of the file, charged to the account once.

    load(table, strict=, records=, tally=) reads a path or a mapping of columns. public: columns that are not
    protected. The question must charge the account before it uses a value, and draw from one key.
    """
    if not source.strict:
        return question(_checked(load, source), account)
    from jaxdp.data import lines

    counted = lines.count(source.path, source.names, source.delimiter)  # refuses a bad header, a public mistake
    records = counted if source.records is None else source.records
    if account is None:
        return question(load(source.path, strict=True, records=records), None)
    blank = _without_records(source, public, records)
    paid = _UpToTheCharge(account)
    try:
        question(load(blank, strict=True), paid)
    except _Charged:
        return question(load(source.path, strict=True, records=records), _Paid(*paid.charged))
    raise RuntimeError("a question was answered without a charge.")


def _checked(load: Callable[..., Any], source: Source) -> Any:
    """The data, unless a column does not parse: told to the owner of the file, before anything is charged."""
    from jaxdp.data import lines
    from jaxdp.data.readers import OWNER
    from jaxdp.data.tally import Tally

    tally = Tally()
    data = load(source.path, records=source.records, tally=tally)
    failing = tally.failing()
    if failing and not source.force:
        more = f" (and {len(failing) - 1} more: jaxdp check)" if len(failing) > 1 else ""
        raise UserError(
            f"{failing[0].sentence}{more}; nothing was charged: correct the file or the schema, or go on with --force "
            f"({OWNER})."
        )
    passed_over = tally.faults[lines.EMPTY]
    if passed_over:
        print(f"jaxdp: {passed_over} empty lines were passed over ({OWNER}).", file=sys.stderr)
    return data


def _without_records(source: Source, public: Sequence[str], records: int) -> Mapping[str, Sequence[str]]:
    """The table with an empty cell for every cell that is protected."""
    from jaxdp.data import lines

    table: dict[str, Any] = {name: [""] * records for name in source.names}
    if public:
        pieces = list(lines.pieces(source.path, public, source.delimiter, records))
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
