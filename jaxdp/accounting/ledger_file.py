"""The SQLite file behind a ledger: its rules, and the statements that touch it.

The rules that matter are kept by the database itself: totals never change, what is spent only grows and
never passes the total, charges are never changed or deleted, a key and a transaction occur once.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

UNIT = 10**12  # epsilon and rho are counted in 1e-12
DELTA_UNIT = 10**18
LARGEST = 9 * 10**18  # below SQLite's 64-bit integers
AMOUNTS = ("epsilon", "delta", "rho")
BUSY_SECONDS = 60.0

_APPLICATION_ID, _VERSION = 0x6A647031, 1
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
_CHANGED = " OR ".join(
    f"NEW.{name}_total IS NOT OLD.{name}_total OR NEW.{name}_spent < OLD.{name}_spent" for name in AMOUNTS
)
_SCHEMA = (
    f"CREATE TABLE budget (id INTEGER PRIMARY KEY CHECK (id = 1), created TEXT NOT NULL, "
    f"relation TEXT NOT NULL, {_BUDGET_COLUMNS})",
    f"CREATE TABLE charge (txid TEXT PRIMARY KEY NOT NULL, number INTEGER NOT NULL UNIQUE, time TEXT NOT NULL, "
    f"method TEXT NOT NULL, note TEXT NOT NULL, relation TEXT NOT NULL, {_CHARGE_COLUMNS}, "
    f"digest TEXT NOT NULL UNIQUE, release TEXT)",
    f"CREATE TRIGGER budget_only_grows BEFORE UPDATE ON budget WHEN {_CHANGED} OR NEW.relation IS NOT OLD.relation "
    f"BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END",
    "CREATE TRIGGER budget_stays BEFORE DELETE ON budget BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END",
    "CREATE TRIGGER charge_stays BEFORE DELETE ON charge BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END",
    "CREATE TRIGGER charge_is_final BEFORE UPDATE OF txid, number, time, method, note, relation, digest, "
    + ", ".join(f"{name}, cumulative_{name}" for name in AMOUNTS)
    + " ON charge BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END",
    "CREATE TRIGGER release_is_final BEFORE UPDATE OF release ON charge WHEN OLD.release IS NOT NULL "
    "BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END",
)


def create(path: Path, relation: str, totals: dict[str, int | None], created: str, error: type[Exception]) -> None:
    """Makes the file under a name of its own and puts it in place only when it is complete."""
    path = path.absolute()
    draft = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    try:
        _fill(draft, relation, totals, created)
        os.link(draft, path)  # atomic, and fails where a file exists
        _flush_folder(path.parent)
    except FileExistsError:
        raise error(f"ledger {path} exists already; open it, or choose another name.") from None
    except (sqlite3.OperationalError, OSError) as problem:
        raise error(f"ledger {path} cannot be created: {problem}.") from None
    finally:
        for suffix in ("", "-wal", "-shm", "-journal"):
            draft.with_name(draft.name + suffix).unlink(missing_ok=True)


def _flush_folder(folder: Path) -> None:
    """Puts the new name on disk too, so that no power cut can take the file away from under its charges."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _fill(path: Path, relation: str, totals: dict[str, int | None], created: str) -> None:
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connected:
        if connected.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
            raise OSError("the file system does not support SQLite's write-ahead log")
        connected.execute("PRAGMA synchronous = FULL")
        connected.execute("BEGIN IMMEDIATE")
        connected.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        connected.execute(f"PRAGMA user_version = {_VERSION}")
        for statement in _SCHEMA:
            connected.execute(statement)
        values = [value for name in AMOUNTS for value in (totals[name], None if totals[name] is None else 0)]
        connected.execute(f"INSERT INTO budget VALUES (1, ?, ?{', ?' * len(values)})", (created, relation, *values))
        connected.execute("COMMIT")


@contextlib.contextmanager
def connection(path: Path, error: type[Exception]) -> Iterator[sqlite3.Connection]:
    """A connection with every commit flushed to disk, closed at the end."""
    if not path.is_file():
        raise error(f"ledger {path} does not exist; create it first.")
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, timeout=BUSY_SECONDS)) as connected:
        try:
            connected.execute("PRAGMA synchronous = FULL")
            known = connected.execute("PRAGMA application_id").fetchone()[0] == _APPLICATION_ID
            version = connected.execute("PRAGMA user_version").fetchone()[0]
        except sqlite3.DatabaseError:
            known, version = False, None
        if not known or version != _VERSION:
            raise error(f"{path} is not a ledger of this version of jaxdp.")
        try:
            yield connected
        except sqlite3.IntegrityError:
            raise
        except sqlite3.DatabaseError as problem:
            raise error(f"ledger {path} cannot be used: {problem}.") from problem


def relation(connected: sqlite3.Connection) -> str:
    """The neighbouring relation the budget is stated for."""
    return connected.execute("SELECT relation FROM budget").fetchone()[0]


def amounts(connected: sqlite3.Connection, what: str) -> dict[str, int | None]:
    """'total', 'spent' or 'remaining' of each amount in units; None where there is no such budget."""
    expression = {"total": "{0}_total", "spent": "{0}_spent", "remaining": "{0}_total - {0}_spent"}[what]
    columns = ", ".join(expression.format(name) for name in AMOUNTS)
    return dict(zip(AMOUNTS, connected.execute(f"SELECT {columns} FROM budget").fetchone(), strict=True))


def insert(connected: sqlite3.Connection, charged: dict[str, int], **texts: str) -> None:
    """Adds a charge to the totals and writes its row, inside the caller's transaction."""
    for name in AMOUNTS:
        connected.execute(f"UPDATE budget SET {name}_spent = {name}_spent + ?", (charged[name],))
    spent = amounts(connected, "spent")
    values: dict[str, Any] = {**texts, **charged}
    values |= {f"cumulative_{name}": spent[name] or 0 for name in AMOUNTS}
    values["number"] = connected.execute("SELECT count(*) FROM charge").fetchone()[0] + 1
    marks = ", ".join(f":{name}" for name in values)
    connected.execute(f"INSERT INTO charge ({', '.join(values)}) VALUES ({marks})", values)


def charges(connected: sqlite3.Connection) -> list[dict[str, Any]]:
    """Every charge in the order it was made."""
    cursor = connected.execute("SELECT * FROM charge ORDER BY number")
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, record, strict=True)) for record in cursor]


def first_problem(connected: sqlite3.Connection) -> str | None:
    """What is wrong with the file, or None."""
    connected.execute("BEGIN")  # one moment for all reads
    verdict = connected.execute("PRAGMA integrity_check").fetchone()[0]
    if verdict != "ok":
        return f"the file is damaged ({verdict})"
    found = {sql for (sql,) in connected.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
    if found != set(_SCHEMA):
        return "its rules (tables, checks, triggers) were changed"
    running = dict.fromkeys(AMOUNTS, 0)
    for position, record in enumerate(charges(connected), start=1):
        running = {name: running[name] + record[name] for name in AMOUNTS}
        if record["number"] != position or any(record[f"cumulative_{name}"] != running[name] for name in AMOUNTS):
            return f"charge {position} breaks the running totals"
    totals, spent = amounts(connected, "total"), amounts(connected, "spent")
    for name in AMOUNTS:
        if (spent[name] or 0) != running[name]:
            return f"{name} spent is not the sum of the charges"
        if running[name] > (totals[name] or 0):
            return f"more {name} was spent than granted"
    return None
