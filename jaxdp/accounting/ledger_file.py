"""The SQLite file behind a ledger: its rules, and the statements that touch it.

The rules that matter are kept by the database itself, against every SQL statement, REPLACE included: a row is
only ever added, each charge continues the one before it, stays within the total and has a key and a transaction
of its own, and the row of totals mirrors the last charge. No rule relies on a delete trigger, which REPLACE
skips. `first_problem` finds what an owner of the file does to it after switching the rules off, up to
rewriting the whole file. One file holds everything: there is no write-ahead log to forget in a copy.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jaxdp._base import file_lock
from jaxdp.accounting import ledger_chain
from jaxdp.accounting.ledger_chain import AMOUNTS

UNIT = 10**12  # epsilon and rho are counted in 1e-12
DELTA_UNIT = 10**18
LARGEST = 9 * 10**18  # below SQLite's 64-bit integers
BUSY_SECONDS = 60.0

_APPLICATION_ID, _VERSION = 0x6A647031, 2
_REASONS = {
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_IOERR: "the disk does not take the write (full, a size limit, or a fault)",
    sqlite3.SQLITE_CANTOPEN: "the folder cannot be written",
    sqlite3.SQLITE_READONLY: "the file is write-protected",
    sqlite3.SQLITE_BUSY: "it stays locked by another process",
    sqlite3.SQLITE_CORRUPT: "the file is damaged",
    sqlite3.SQLITE_NOTADB: "the file is damaged",
}

_BUDGET_COLUMNS = ", ".join(
    f"{name}_total INTEGER CHECK (typeof({name}_total) IN ('integer', 'null')), "
    f"{name}_spent INTEGER CHECK ({name}_spent BETWEEN 0 AND {name}_total)"
    for name in AMOUNTS
)
_CHARGE_COLUMNS = ", ".join(
    f"{column} INTEGER NOT NULL CHECK (typeof({column}) = 'integer' AND {column} >= 0)"
    for name in AMOUNTS
    for column in (name, f"cumulative_{name}")
)
_CHARGE_TEXTS = ", ".join(f"{name} TEXT NOT NULL" for name in ledger_chain.TEXTS if name not in ("txid", "digest"))
_LAST = "(SELECT {0} FROM charge ORDER BY number DESC LIMIT 1)"
_BUDGET_FIXED = ("id", "ledger", "created", "relation", *(f"{name}_total" for name in AMOUNTS))
_CHARGE_FIXED = (*ledger_chain.FIELDS, "chain")


def _differs(columns: tuple[str, ...]) -> str:
    return " OR ".join(f"NEW.{name} IS NOT OLD.{name}" for name in columns)


def _spent_after(charge: str) -> list[tuple[str, str]]:
    """Each column of what is spent and its value after a charge."""
    return [
        (f"{name}_spent", f"CASE WHEN {name}_total IS NULL THEN NULL ELSE {charge.format(f'cumulative_{name}')} END")
        for name in AMOUNTS
    ]


_MIRRORS = f"head IS {_LAST.format('chain')} AND " + " AND ".join(
    f"{column} IS {value}" for column, value in _spent_after(_LAST)
)
_CONTINUES = " AND ".join(
    [f"NEW.number IS ifnull({_LAST.format('number')}, 0) + 1", "NEW.relation IS (SELECT relation FROM budget)"]
    + [f"NEW.cumulative_{name} IS ifnull({_LAST.format(f'cumulative_{name}')}, 0) + NEW.{name}" for name in AMOUNTS]
    + [f"NEW.cumulative_{name} <= (SELECT ifnull({name}_total, 0) FROM budget)" for name in AMOUNTS]
)
_REPEATS = " ".join(
    f"WHEN EXISTS (SELECT 1 FROM charge WHERE {name} = NEW.{name}) "
    f"THEN RAISE(ABORT, 'UNIQUE constraint failed: charge.{name}')"
    for name in ("txid", "digest")
)


def _rule(name: str, event: str, condition: str | None, text: str) -> str:
    when = f" WHEN {condition}" if condition else ""
    return f"CREATE TRIGGER {name} {event}{when} BEGIN SELECT RAISE(ABORT, '{text}'); END"


_GROWS = "a ledger only grows"
_SCHEMA = (
    f"CREATE TABLE budget (id INTEGER PRIMARY KEY CHECK (id = 1), ledger TEXT NOT NULL, created TEXT NOT NULL, "
    f"relation TEXT NOT NULL, {_BUDGET_COLUMNS}, head TEXT NOT NULL) WITHOUT ROWID",
    f"CREATE TABLE charge (number INTEGER PRIMARY KEY, txid TEXT NOT NULL UNIQUE, digest TEXT NOT NULL UNIQUE, "
    f"{_CHARGE_TEXTS}, {_CHARGE_COLUMNS}, chain TEXT NOT NULL, release TEXT) WITHOUT ROWID",
    _rule("budget_is_one_row", "BEFORE INSERT ON budget", "EXISTS (SELECT 1 FROM budget)", _GROWS),
    _rule("budget_stays", "BEFORE DELETE ON budget", None, _GROWS),
    _rule(
        "budget_mirrors",
        "AFTER UPDATE ON budget",
        f"{_differs(_BUDGET_FIXED)} OR NOT EXISTS (SELECT 1 FROM budget WHERE {_MIRRORS})",
        _GROWS,
    ),
    # A unique column alone would let REPLACE drop the older charge.
    f"CREATE TRIGGER charge_continues BEFORE INSERT ON charge BEGIN SELECT CASE {_REPEATS} "
    f"WHEN NOT ifnull({_CONTINUES}, 0) THEN RAISE(ABORT, '{_GROWS}') END; END",
    _rule("charge_stays", "BEFORE DELETE ON charge", None, _GROWS),
    _rule(
        "charge_is_final",
        "BEFORE UPDATE ON charge",
        f"{_differs(_CHARGE_FIXED)} OR OLD.release IS NOT NULL OR typeof(NEW.release) IS NOT 'text'",
        _GROWS,
    ),
    f"CREATE TRIGGER charge_is_spent AFTER INSERT ON charge "
    f"BEGIN UPDATE budget SET {', '.join(f'{c} = {v}' for c, v in _spent_after('NEW.{0}'))}, head = NEW.chain; END",
)

# Made when a search first keeps its answers. An answer is in here before the search goes on, each number once per
# charge: whoever continues from an old copy of a results folder finds the answers here and draws none of them again.
_ANSWERS = (
    "CREATE TABLE answer (txid TEXT NOT NULL, number INTEGER NOT NULL CHECK (number >= 0), content TEXT NOT NULL, "
    "PRIMARY KEY (txid, number)) WITHOUT ROWID",
    "CREATE TRIGGER answer_continues BEFORE INSERT ON answer WHEN NEW.number IS NOT "
    "(SELECT count(*) FROM answer WHERE txid = NEW.txid) OR NOT EXISTS (SELECT 1 FROM charge WHERE txid = NEW.txid) "
    f"BEGIN SELECT RAISE(ABORT, 'UNIQUE constraint failed: {_GROWS}'); END",
    _rule("answer_stays", "BEFORE DELETE ON answer", None, _GROWS),
    _rule("answer_is_final", "BEFORE UPDATE ON answer", None, _GROWS),
)


def create(path: Path, relation: str, totals: dict[str, int | None], created: str, error: type[Exception]) -> None:
    """Makes the file under a name of its own and puts it in place only when it is complete."""
    path = path.absolute()
    draft = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    try:
        _fill(draft, relation, totals, created)
        os.link(draft, path)  # atomic, and fails where a file exists
        file_lock.flush_folder(path.parent)
    except FileExistsError:
        raise error(f"ledger {path} exists already; open it, or choose another name.") from None
    except (sqlite3.DatabaseError, OSError) as problem:
        raise error(f"ledger {path} cannot be created: {reason(problem)}.") from None
    finally:
        for suffix in ("", "-journal"):
            draft.with_name(draft.name + suffix).unlink(missing_ok=True)


def reason(problem: Exception) -> str:
    """What went wrong with the file, in words of the file's owner."""
    if isinstance(problem, OSError):
        return (problem.strerror or str(problem)).lower()
    text = str(problem)
    if text.startswith("Could not decode"):  # it goes on with the text of the file
        return _REASONS[sqlite3.SQLITE_CORRUPT]
    return _REASONS.get(getattr(problem, "sqlite_errorcode", 0) & 0xFF, text)


def _fill(path: Path, relation: str, totals: dict[str, int | None], created: str) -> None:
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connected:
        _use_one_file(connected)
        connected.execute("BEGIN IMMEDIATE")
        connected.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        connected.execute(f"PRAGMA user_version = {_VERSION}")
        for statement in _SCHEMA:
            connected.execute(statement)
        row: dict[str, Any] = {"id": 1, "ledger": secrets.token_hex(16), "created": created, "relation": relation}
        row |= {f"{name}_total": totals[name] for name in AMOUNTS}
        row |= {f"{name}_spent": None if totals[name] is None else 0 for name in AMOUNTS}
        _insert_row(connected, "budget", {**row, "head": ledger_chain.genesis(row)})
        connected.execute("COMMIT")


def _use_one_file(connected: sqlite3.Connection) -> None:
    """Every commit is in this file and on disk; a write-ahead log would be missing from a copy of the file.

    EXTRA flushes the folder too: a journal that came back after a power cut would take the charge back.
    """
    connected.execute("PRAGMA synchronous = EXTRA")
    if connected.execute("PRAGMA journal_mode").fetchone()[0] != "delete":
        connected.execute("PRAGMA journal_mode = DELETE")


def _insert_row(connected: sqlite3.Connection, table: str, values: dict[str, Any]) -> None:
    marks = ", ".join(f":{name}" for name in values)
    connected.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", values)


@contextlib.contextmanager
def connection(path: Path, error: type[Exception]) -> Iterator[sqlite3.Connection]:
    """A connection with every commit flushed to disk, closed at the end."""
    if not path.is_file():
        raise error(f"ledger {path} does not exist; create it first.")
    try:
        with contextlib.closing(sqlite3.connect(path, isolation_level=None, timeout=BUSY_SECONDS)) as connected:
            _require_version(path, connected, error)
            _use_one_file(connected)
            yield connected
    except sqlite3.IntegrityError:
        raise
    except sqlite3.DatabaseError as problem:
        raise error(f"ledger {path} cannot be used: {_unreadable(path) or reason(problem)}.") from problem
    except UnicodeDecodeError:  # SQLite quotes what is damaged, and that is no text any more
        raise error(f"ledger {path} cannot be used: the file is damaged.") from None


def _unreadable(path: Path) -> str:
    """Why this user may not read the file, which is to SQLite as a folder without room for a journal; "" otherwise."""
    try:
        path.open("rb").close()
    except OSError as problem:
        return reason(problem)
    return ""


def _require_version(path: Path, connected: sqlite3.Connection, error: type[Exception]) -> None:
    try:
        known = connected.execute("PRAGMA application_id").fetchone()[0] == _APPLICATION_ID
        version = connected.execute("PRAGMA user_version").fetchone()[0]
    except sqlite3.DatabaseError as problem:
        if problem.sqlite_errorcode != sqlite3.SQLITE_NOTADB:
            raise
        known = False
    if not known:
        raise error(f"{path} is not a ledger of jaxdp.")
    if version < _VERSION:
        raise error(_outdated(path, connected))
    if version > _VERSION:
        raise error(f"ledger {path} was made by a later version of jaxdp: use that version.")


def _outdated(path: Path, connected: sqlite3.Connection) -> str:
    left = amounts(connected, "remaining")
    units = {"epsilon": UNIT, "delta": DELTA_UNIT, "rho": UNIT}
    shown = ", ".join(f"{name} {amount / units[name]:.12g}" for name, amount in left.items() if amount is not None)
    return (
        f"ledger {path} was made by an earlier version of jaxdp, whose files could be changed by ordinary SQL: "
        f"it says that {shown} is left; create a new ledger with that."
    )


def budget(connected: sqlite3.Connection) -> dict[str, Any]:
    """The row of totals: what was granted, under which relation, what is spent, and the ledger's own id."""
    rows = _named(connected.execute("SELECT * FROM budget"))
    if len(rows) != 1:
        raise sqlite3.DatabaseError("it has no row of totals")
    return rows[0]


def amounts(connected: sqlite3.Connection, what: str) -> dict[str, int | None]:
    """'total', 'spent' or 'remaining' of each amount in units; None where there is no such budget."""
    expression = {"total": "{0}_total", "spent": "{0}_spent", "remaining": "{0}_total - {0}_spent"}[what]
    columns = ", ".join(expression.format(name) for name in AMOUNTS)
    return dict(zip(AMOUNTS, connected.execute(f"SELECT {columns} FROM budget").fetchone(), strict=True))


def insert(connected: sqlite3.Connection, charged: dict[str, int], **texts: str) -> None:
    """Writes a charge, which adds it to the totals, inside the caller's transaction."""
    granted = budget(connected)
    last = connected.execute("SELECT max(number) FROM charge").fetchone()[0] or 0
    values: dict[str, Any] = {**texts, **charged, "number": last + 1, "relation": granted["relation"]}
    values |= {f"cumulative_{name}": (granted[f"{name}_spent"] or 0) + charged[name] for name in AMOUNTS}
    _insert_row(connected, "charge", {**values, "chain": ledger_chain.link(granted["head"], values)})


def keep_answer(connected: sqlite3.Connection, txid: str, number: int, content: str) -> None:
    """Writes the next answer of a charge. Errors: sqlite3.IntegrityError for any number but the next one."""
    if not _keeps_answers(connected):
        for statement in _ANSWERS:
            connected.execute(statement)
    _insert_row(connected, "answer", {"txid": txid, "number": number, "content": content})


def kept_answers(connected: sqlite3.Connection, txid: str) -> list[str]:
    """The answers kept for a charge, in order."""
    if not _keeps_answers(connected):
        return []
    found = connected.execute("SELECT content FROM answer WHERE txid = ? ORDER BY number", (txid,))
    return [content for (content,) in found]


def _keeps_answers(connected: sqlite3.Connection) -> bool:
    return bool(connected.execute("SELECT 1 FROM sqlite_master WHERE name = 'answer'").fetchone())


def charges(connected: sqlite3.Connection) -> list[dict[str, Any]]:
    """Every charge in the order it was made."""
    return _named(connected.execute("SELECT * FROM charge ORDER BY number"))


def _named(cursor: sqlite3.Cursor) -> list[dict[str, Any]]:
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, record, strict=True)) for record in cursor]


def seal(connected: sqlite3.Connection, number: int) -> str | None:
    """The seal of the ledger after so many charges; None if it has fewer."""
    if number == 0:
        return ledger_chain.genesis(budget(connected))
    row = connected.execute("SELECT chain FROM charge WHERE number = ?", (number,)).fetchone()
    return row[0] if row else None


def holds_seal(connected: sqlite3.Connection, seal: str) -> bool:
    """Whether the grant or a charge has this seal."""
    known = {ledger_chain.genesis(budget(connected)), *(charge["chain"] for charge in charges(connected))}
    return seal in known


def place(connected: sqlite3.Connection) -> tuple[int, str]:
    """How many charges there are, and the seal after them."""
    number = connected.execute("SELECT max(number) FROM charge").fetchone()[0] or 0
    return number, seal(connected, number) or ""


def quick_problem(connected: sqlite3.Connection) -> str | None:
    """What is wrong with the rules, the totals, the first charge and the last ones, or None; before every charge."""
    found = {sql for (sql,) in connected.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
    if found not in (set(_SCHEMA), {*_SCHEMA, *_ANSWERS}):
        return "its rules (tables, checks, triggers) were changed"
    ends = _named(
        connected.execute("SELECT * FROM charge WHERE number = 1 OR number > (SELECT max(number) FROM charge) - 2")
    )
    return ledger_chain.first_break(budget(connected), ends, whole=False)


def first_problem(connected: sqlite3.Connection) -> str | None:
    """What is wrong with the file, or None."""
    connected.execute("BEGIN")  # one moment for all reads
    verdict = connected.execute("PRAGMA integrity_check").fetchone()[0]
    if verdict != "ok":
        return f"the file is damaged ({'; '.join(verdict.splitlines())})"
    return quick_problem(connected) or ledger_chain.first_break(budget(connected), charges(connected), whole=True)
