"""A privacy budget on disk that cannot be overspent: reserve, then read the data, then release.

One SQLite file. Every charge is one transaction that is on disk before `charge` returns, so a crash
afterwards keeps the charge; a crash before leaves nothing. The file counts whole numbers (1e-12 of
epsilon and rho, 1e-18 of delta): charges round up, grants round down. Amounts are read as the
decimals that people type, so ten charges of 0.1 fill a budget of 1.

Adding up is sound for releases that depend on earlier answers: epsilon and delta by basic composition,
rho as the zCDP filter of Feldman and Zrnic 2021. This file needs neither JAX nor NumPy, so that
worker processes start fast.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import math
import os
import re
import secrets
import shlex
import sqlite3
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from jaxdp._base import csv_files
from jaxdp._base.printed import path_of, printed
from jaxdp._base.rounding import as_fraction
from jaxdp.accounting import ledger_file
from jaxdp.accounting.ledger_file import DELTA_UNIT, UNIT
from jaxdp.accounting.shared import Uncopied

if TYPE_CHECKING:
    from jaxdp.core import Cost, Relation

# The values of core.Relation, which this file does not import.
RELATIONS = ("replace_one", "add_or_remove_one", "replace_attribute")
_LONGEST_TEXT = 500
_REQUEST = ("columns", "source", "result")
_UNITS = {"epsilon": UNIT, "delta": DELTA_UNIT, "rho": UNIT}


class BudgetExhausted(RuntimeError):
    """A charge exceeds the remaining budget. Nothing was charged, and nothing about the records was released."""


class LedgerError(ValueError):
    """A ledger file that is missing, foreign, damaged or changed by hand."""


@dataclasses.dataclass(frozen=True)
class Budget:
    """Amounts of a ledger: epsilon, delta and rho, exact to the ledger's units. None: no such budget."""

    epsilon: float | None
    delta: float
    rho: float | None

    def __str__(self) -> str:
        named = [("epsilon", self.epsilon), ("delta", self.delta), ("rho", self.rho)]
        return ", ".join(f"{name}={value:.12g}" for name, value in named if value is not None)


@dataclasses.dataclass(frozen=True)
class Row:
    """One charge: when, what for, how much, and the running totals after it. Holds nothing private."""

    number: int
    time: str
    method: str
    note: str
    epsilon: float
    delta: float
    rho: float
    relation: str
    cumulative_epsilon: float
    cumulative_delta: float
    cumulative_rho: float
    txid: str
    columns: str = ""
    source: str = ""
    result: str = ""


@dataclasses.dataclass(frozen=True)
class Request:
    """What was asked, in public words, kept with the charges: the columns, the data's name, where results go."""

    columns: str = ""
    source: str = ""
    result: str = ""


class Ledger(Uncopied):
    """A privacy budget in a file, shared by threads and processes; made by `create` or `open`.

    Promise: what is charged in epsilon is (epsilon, delta)-DP in total, what is charged in rho is rho-zCDP in
    total, under one neighbouring relation; both hold together by sequential composition, for releases
    chosen adaptively. A charge goes to epsilon where its epsilon is finite and the ledger has an epsilon
    budget, else to rho. Normal noise claimed as (epsilon, delta), as of `jaxdp.test_pairs(delta=)`, goes to rho alone
    where the ledger has a rho budget and lacks epsilon or delta.
    Copies share the ledger; pickling raises: open the path again in another process. An object is bound to the file
    that it opened, and to the charges that it saw: it refuses a file put in its place. The file must be on a local
    disk (SQLite's locks do not hold over every network file system).
    """

    def __init__(self, path: str | os.PathLike[str]):
        self._path = Path(path_of("a ledger", path)).absolute()
        with ledger_file.connection(self._path, LedgerError) as connected:
            granted = ledger_file.budget(connected)
            # None of these can change: the file itself forbids it.
            self._relation, self._id = granted["relation"], granted["ledger"]
            self._total = ledger_file.amounts(connected, "total")
            self._file, self._seen = self._place_on_disk(), ledger_file.place(connected)

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        epsilon: float | None = None,
        delta: float = 0.0,
        rho: float | None = None,
        relation: Relation | str = "replace_one",
    ) -> Self:
        """A new ledger file with these totals, rounded down to the ledger's units.

        Errors: ValueError unless epsilon or rho is given, finite and > 0, and 0 <= delta < 1; `LedgerError` if the
        file exists already.
        """
        if epsilon is None and rho is None:
            raise ValueError(
                "a ledger needs a budget: give epsilon=1.0 or rho=0.5 (zCDP), on the command line --epsilon or --rho."
            )
        totals = {"epsilon": _grant("epsilon", epsilon), "delta": _delta_grant(delta), "rho": _grant("rho", rho)}
        ledger_file.create(Path(path_of("a ledger", path)), _relation_name(relation), totals, _now(), LedgerError)
        return cls(path)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """The ledger in this file. Errors: `LedgerError` if there is none, or it is not a ledger."""
        return cls(path)

    @property
    def path(self) -> Path:
        """The file, as an absolute path."""
        return self._path

    @property
    def relation(self) -> str:
        """The neighbouring relation the budget is stated for, such as 'replace_one'."""
        return self._relation

    @property
    def total(self) -> Budget:
        """The budget granted."""
        return _budget(self._total)

    @property
    def spent(self) -> Budget:
        """What has been charged."""
        return self._read("spent")

    @property
    def remaining(self) -> Budget:
        """What is left."""
        return self._read("remaining")

    @property
    def seal(self) -> str:
        """A fingerprint of the grant and of every charge so far. Noted elsewhere, it lets `verify` find a rewritten
        file."""
        with self._connection() as connected:
            return ledger_file.place(connected)[1]

    def asked(self, *, columns: str = "", source: str = "", result: str = "") -> AskedLedger:
        """This ledger as an account that writes with every charge what was asked: public texts of up to 500
        characters."""
        request = Request(_text("columns", columns), _text("source", source), _text("result", result))
        return AskedLedger(self, request)

    def charge(
        self,
        method: str,
        cost: Cost,
        key: Any,
        *,
        note: str = "",
        txid: str | None = None,
        request: Request = Request(),
    ) -> str:
        """Reserves a release's cost before its data are read; returns the transaction id.

        method: what is released. note: public detail. key: the release key, used once.
        txid: names the transaction (default: random); it can be charged once. request: what was asked.
        Errors: `BudgetExhausted` (its text depends on the ledger and the cost only); ValueError for a simulation key,
        a key or txid charged before, an infinite, NaN or traced cost, or another relation.
        """
        digest = _digest(key)
        epsilon, delta, rho = self._compartments(cost)
        return self.reserve(
            method,
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            relation=cost.relation,
            digest=digest,
            note=note,
            txid=txid,
            request=request,
        )

    def reserve(
        self,
        method: str,
        *,
        epsilon: float | Fraction = 0,
        delta: float | Fraction = 0,
        rho: float | Fraction = 0,
        relation: Relation | str = "replace_one",
        digest: str,
        note: str = "",
        txid: str | None = None,
        request: Request = Request(),
    ) -> str:
        """`charge` for callers without JAX: exact amounts, and the SHA-256 (hex) of the 256-bit key used."""
        self._require_relation(relation)
        amounts = _asked(epsilon, delta, rho)
        if len(digest) != 64 or not set(digest) <= set("0123456789abcdef"):
            raise ValueError("digest must be the SHA-256 of the release key, 64 hexadecimal digits.")
        txid = secrets.token_hex(16) if txid is None else _text("txid", txid)
        with self._transaction() as connected:
            self._refuse_damage(ledger_file.quick_problem(connected))
            self._refuse_repeats(connected, txid, digest)
            self._refuse_overspending(connected, amounts)
            ledger_file.insert(
                connected,
                amounts,
                time=_now(),
                method=_text("method", method),
                note=_text("note", note),
                txid=txid,
                digest=digest,
                **dataclasses.asdict(request),
            )
            seen = ledger_file.place(connected)
        self._seen = seen
        return txid

    def require(self, cost: Cost) -> None:
        """Raises what `charge` would raise for this cost now, and charges nothing.

        For callers that want to stop before they open a data file. Another process may be faster: only
        `charge` decides.
        """
        self._require_relation(cost.relation)
        amounts = _asked(*self._compartments(cost))
        with self._connection() as connected:
            self._refuse_overspending(connected, amounts)

    def require_epsilon(self, epsilon: float) -> None:
        """As `require`, of a cost of this epsilon; raises nothing where the ledger grants rho alone."""
        if self._total["epsilon"] is None:
            return
        amounts = _asked(epsilon, 0, 0)
        with self._connection() as connected:
            self._refuse_overspending(connected, amounts)

    def admits(self, cost: Cost) -> bool:
        """Whether the cost would fit now."""
        try:
            self.require(cost)
        except BudgetExhausted:
            return False
        return True

    def store(self, txid: str, release: str) -> None:
        """Keeps the text of a finished release beside its charge, once, so that a repeat can return it."""
        with self._transaction() as connected:
            changed = connected.execute(
                "UPDATE charge SET release = ? WHERE txid = ? AND release IS NULL", (release, txid)
            ).rowcount
        if changed != 1:
            raise ValueError(f"transaction {txid} was never charged, or has its release already.")

    def stored(self, txid: str) -> str | None:
        """The release kept for a transaction; None if it was charged but never finished, or never charged."""
        with self._connection() as connected:
            row = connected.execute("SELECT release FROM charge WHERE txid = ?", (txid,)).fetchone()
        return row[0] if row else None

    def keep(self, txid: str, number: int, answer: str) -> None:
        """Keeps an answer that a charge paid for, before anybody uses it; numbers count from 0.

        Errors: `LedgerError` for any number but the next: the answer of that number was given by another run.
        """
        with self._transaction() as connected:
            try:
                ledger_file.keep_answer(connected, txid, number, answer)
            except sqlite3.IntegrityError:
                raise LedgerError(
                    f"answer {number} of transaction {txid} was given by another run, or is not the next one; start "
                    "the search again to go on from what is kept."
                ) from None

    def checkpoint(self, txid: str, cost: Cost | None = None) -> list[str] | None:
        """The answers kept for a transaction, in order; None if it was never charged.

        cost: what the transaction must have been charged. Errors: `LedgerError` if it was charged anything else.
        """
        with self._connection() as connected:
            charged = connected.execute("SELECT epsilon, delta, rho FROM charge WHERE txid = ?", (txid,)).fetchone()
            if not charged:
                return None
            if cost is not None:
                self._require_relation(cost.relation)
                asked = _asked(*self._compartments(cost))
                if tuple(charged) != tuple(asked[name] for name in ("epsilon", "delta", "rho")):
                    raise LedgerError(
                        f"transaction {txid} of ledger {self._path.name} was charged another cost than this release "
                        "has: nothing was released. Give another place for a new search."
                    )
            return ledger_file.kept_answers(connected, txid)

    def holds(self, key: Any) -> bool:
        """Whether a charge of this release key is on disk, for callers whose charge was interrupted."""
        digest = _digest(key)
        with self._connection() as connected:
            return bool(connected.execute("SELECT 1 FROM charge WHERE digest = ?", (digest,)).fetchone())

    @property
    def statement(self) -> str:
        """The command that shows every charge."""
        return f"jaxdp ledger show {shlex.quote(str(self._path))}"

    def rows(self) -> list[Row]:
        """Every charge, oldest first."""
        with self._connection() as connected:
            return [_row(record) for record in ledger_file.charges(connected)]

    def verify(self, seal: str | None = None) -> None:
        """Raises `LedgerError` unless file, rules, running totals, seals and the sum of all charges agree.

        seal: one that was noted earlier, of which the ledger must be a continuation; `LedgerError` for what is no seal.
        """
        noted = None if seal is None else _noted(seal)
        with self._connection() as connected:
            problem = ledger_file.first_problem(connected)
            if not problem and noted is not None and not ledger_file.holds_seal(connected, noted):
                problem = "the seal noted earlier is none of its seals, so it was rewritten since"
        self._refuse_damage(problem)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Writes every charge as a line of a CSV file."""
        names = [field.name for field in dataclasses.fields(Row)]
        csv_files.write(path, names, ([getattr(row, name) for name in names] for row in self.rows()))

    def to_registry(self, path: str | os.PathLike[str]) -> list[tuple[str, str]]:
        """Writes a draft for the registry of deployments (YAML); returns the fields that the owner must write or check.

        Errors: ValueError for a ledger without charges.
        """
        from jaxdp.accounting import registry

        fields = registry.known(self)
        Path(path).write_text(registry.yaml(fields, self._path.name), encoding="utf-8", newline="")
        return registry.owners(fields)

    def to_dp_event(self) -> Any:
        """The charges as a dp-accounting `ComposedDpEvent`, for its accountants.

        A pure charge is the randomised response that dominates it; see `accounting.convert.pure_event`.
        What an accountant makes of it holds only if the charges had been fixed in advance.
        """
        from jaxdp.accounting import convert

        rows = [(row.epsilon, row.delta, row.rho) for row in self.rows()]
        return convert.event_of(rows, fixed_size=self._relation != "add_or_remove_one")

    def _display(self) -> tuple[str, dict[str, Any]]:
        values = {"file": str(self._path), "relation": self._relation, "granted": str(self.total)}
        try:
            return "Ledger", {**values, "spent": str(self.spent), "left": str(self.remaining)}
        except (LedgerError, OSError) as error:
            return "Ledger", {**values, "unreadable": str(error)}

    def __repr__(self) -> str:
        from jaxdp._base import display as _display  # not at the top: the ledger itself needs neither JAX nor NumPy

        return _display.as_text(*self._display())

    def _repr_html_(self) -> str:
        from jaxdp._base import display as _display

        return _display.as_html(*self._display())

    @contextlib.contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        # One connection per operation: no state to share over threads or to inherit over forks.
        with ledger_file.connection(self._path, LedgerError) as connected:
            self._require_same_file(connected)
            yield connected

    def _require_same_file(self, connected: sqlite3.Connection) -> None:
        number, seal = self._seen
        same = self._place_on_disk() == self._file and ledger_file.budget(connected)["ledger"] == self._id
        if not same or ledger_file.seal(connected, number) != seal:
            raise LedgerError(
                f"ledger {self._path.name} is not the file that was opened: it was replaced, or set back to an earlier "
                "state; find out why, then open it again."
            )

    def _place_on_disk(self) -> tuple[int, int]:
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            raise LedgerError(f"ledger {self._path} does not exist any more.") from None
        return found.st_dev, found.st_ino

    def _refuse_damage(self, problem: str | None) -> None:
        if problem:
            raise LedgerError(f"ledger {self._path.name} does not add up: {problem}.")

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._connection() as connected:
            try:
                connected.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                raise LedgerError(
                    f"ledger {self._path.name} stays locked by another process ({error}); nothing was charged."
                ) from error
            try:
                yield connected
            except BaseException:
                if connected.in_transaction:
                    connected.execute("ROLLBACK")
                raise
            connected.execute("COMMIT")
            if self._place_on_disk() != self._file:
                raise LedgerError(
                    f"ledger {self._path.name} was replaced while it was charged: nothing may be released."
                )

    def _read(self, what: str) -> Budget:
        with self._connection() as connected:
            return _budget(ledger_file.amounts(connected, what))

    def _require_relation(self, relation: Relation | str) -> str:
        name = _relation_name(relation)
        if name != self._relation:
            raise ValueError(f"this ledger holds under {self._relation}; a cost under {name} cannot be charged to it.")
        return name

    def _compartments(self, cost: Cost) -> tuple[Fraction | float, Fraction, Fraction | float]:
        """What to charge in epsilon, delta and rho."""
        from jaxdp.accounting.parts import part_of
        from jaxdp.privacy import Claim

        concentrated = self._total["rho"] is not None
        if isinstance(cost, Claim) and concentrated and not (self._total["epsilon"] and self._total["delta"]):
            cost = cost.concentrated()  # the budget that a claim needs was never granted
        epsilon, delta, rho = part_of(cost)
        if epsilon != math.inf and self._total["epsilon"] is not None:
            return epsilon, delta, 0
        if rho != math.inf and concentrated:
            return 0, delta, rho
        if epsilon == rho == math.inf:
            raise ValueError("a release without a finite epsilon or rho is not private and cannot be charged.")
        missing = "epsilon" if concentrated else "rho"
        raise ValueError(
            f"this ledger has no {missing} budget, and the cost has no other finite amount; "
            f"create a ledger with {missing}=, or use another mechanism."
        )

    def _refuse_repeats(self, connected: sqlite3.Connection, txid: str, digest: str) -> None:
        if connected.execute("SELECT 1 FROM charge WHERE txid = ?", (txid,)).fetchone():
            raise ValueError(
                f"transaction {txid} was charged before and is never run twice; its release is Ledger.stored(txid)."
            )
        if connected.execute("SELECT 1 FROM charge WHERE digest = ?", (digest,)).fetchone():
            raise ValueError("this release key was charged before; take a new one, jaxdp.fresh_key().")

    def _refuse_overspending(self, connected: sqlite3.Connection, amounts: dict[str, int]) -> None:
        left = ledger_file.amounts(connected, "remaining")
        for name, unit in _UNITS.items():
            available = left[name] or 0
            if amounts[name] > available:
                raise BudgetExhausted(
                    f"budget exhausted: {name} {_amount(amounts[name], unit):.15g} is asked and "
                    f"{_amount(available, unit):.15g} is left in ledger {self._path.name}; "
                    "nothing was charged, and nothing about the records was released."
                )


class AskedLedger(Uncopied):
    """An account that charges a ledger and writes down what was asked; made by `Ledger.asked`."""

    def __init__(self, ledger: Ledger, request: Request):
        self.ledger, self.request = ledger, request

    def require(self, cost: Cost) -> None:
        """As `Ledger.require`."""
        self.ledger.require(cost)

    def charge(self, method: str, cost: Cost, key: Any, **details: Any) -> str:
        """As `Ledger.charge`, with the request."""
        return self.ledger.charge(method, cost, key, request=self.request, **details)

    def holds(self, key: Any) -> bool:
        """As `Ledger.holds`."""
        return self.ledger.holds(key)

    @property
    def statement(self) -> str:
        """As `Ledger.statement`."""
        return self.ledger.statement


def _noted(seal: str) -> str:
    """The seal as ledgers write it. Errors: `LedgerError` where it is cut short or mistyped."""
    found = str(seal).strip().lower()
    if not re.fullmatch("[0-9a-f]{64}", found):
        raise LedgerError(f"a seal has 64 hexadecimal digits, got {len(found)} characters: copy it whole.")
    return found


def _digest(key: Any) -> str:
    """SHA-256 of a release key, in hexadecimal."""
    from jaxdp.randomness import keys

    if keys.admit(key) != keys.RELEASE:
        raise ValueError(
            "a simulation cannot be charged to a ledger: use a release key, jaxdp.fresh_key(), or leave out ledger=."
        )
    return key.fingerprint


def _row(record: dict[str, Any]) -> Row:
    amounts = {
        f"{prefix}{name}": _amount(record[f"{prefix}{name}"], unit)
        for name, unit in _UNITS.items()
        for prefix in ("", "cumulative_")
    }
    texts = {name: record[name] for name in ("number", "time", "method", "note", "relation", "txid", *_REQUEST)}
    return Row(**texts, **amounts)


def _amount(units: int | None, unit: int) -> Any:
    """Units as a float; int division rounds correctly, so 0.1 comes back as 0.1."""
    return None if units is None else units / unit


def _budget(amounts: dict[str, int | None]) -> Budget:
    return Budget(**{name: _amount(amounts[name], unit) for name, unit in _UNITS.items()})


def _asked(epsilon: Any, delta: Any, rho: Any) -> dict[str, int]:
    values = {"epsilon": epsilon, "delta": delta, "rho": rho}
    return {name: _units(name, values[name], unit) for name, unit in _UNITS.items()}


def _units(name: str, value: float | Fraction, unit: int) -> int:
    """A charge in whole units, rounded up."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{name} of a charge must be finite, got {value}.")
    if not value >= 0:
        raise ValueError(f"{name} of a charge must be >= 0, got {value}.")
    return math.ceil(as_fraction(value) * unit)


def _grant(name: str, value: float | None) -> int | None:
    """A total in whole units, rounded down."""
    if value is None:
        return None
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(f"{name} must be a finite number > 0, got {value}.")
    units = math.floor(as_fraction(value) * UNIT)
    if not 0 < units < ledger_file.LARGEST:
        raise ValueError(f"{name} must be between 1e-12 and 9e6 in a ledger, got {value}.")
    return units


def _delta_grant(value: float) -> int:
    if not 0 <= value < 1:
        raise ValueError(f"delta must be at least 0 and less than 1, got {value}.")
    return math.floor(as_fraction(value) * DELTA_UNIT)


def _relation_name(relation: Relation | str) -> str:
    name = getattr(relation, "value", relation)
    if name not in RELATIONS:
        raise ValueError(f"relation must be one of {', '.join(map(repr, RELATIONS))}, got {printed(name)}.")
    return name


def _text(name: str, value: str) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT:
        raise ValueError(f"{name} must be a text of at most {_LONGEST_TEXT} characters.")
    return value


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="microseconds")
