"""Attacks on a ledger file: many processes at once, and processes killed in the middle of a charge.

    python -m jaxdp.accounting.attack FOLDER --processes 16 --spends 1000 --kills 100 --out ledger.json

Run it on the file system a ledger is to live on: a disk that does not keep locks or flushes fails here.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import secrets
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from jaxdp.accounting.ledger import BudgetExhausted, Ledger


def race(
    path: str | os.PathLike[str], *, total: float, epsilon: float, processes: int, spends: int, seconds: float = 1800
) -> dict[str, Any]:
    """`processes` workers that each try `spends` charges of `epsilon` on a new ledger of `total`, at the same time.

    Returns the counts: attempted, accepted (what the workers were told), charged (what the file holds) and the
    amounts. Errors: `LedgerError` if the file does not add up afterwards.
    """
    ledger, began = Ledger.create(path, epsilon=total), time.perf_counter()
    workers = [_start(ledger, epsilon, spends) for _ in range(processes)]
    accepted: list[str] = []
    refused = 0
    for worker in workers:
        _, *said = worker.communicate(timeout=seconds)[0].splitlines()
        if worker.returncode != 0:
            raise RuntimeError(f"a worker ended with {worker.returncode}.")
        refused += int(said.pop().removeprefix("refused "))
        accepted += said
    ledger.verify()
    return {
        "processes": processes,
        "attempted": processes * spends,
        "accepted": len(accepted),
        "refused": refused,
        "charged": len(ledger.rows()),
        "acknowledged_but_lost": len(set(accepted) - {row.txid for row in ledger.rows()}),
        "total": total,
        "spent": ledger.spent.epsilon,
        "seconds": round(time.perf_counter() - began, 3),
    }


def kill_repeatedly(
    path: str | os.PathLike[str], *, total: float, epsilon: float, kills: int, seed: int, longest: float = 0.08
) -> dict[str, Any]:
    """Workers that charge without end, each killed (`kill -9`) at a random moment within `longest` seconds.

    Returns the counts: acknowledged (what the workers were told), charged, and acknowledged_but_lost.
    Errors: `LedgerError` if the file does not add up after any kill.
    """
    ledger, rng = Ledger.create(path, epsilon=total), random.Random(seed)
    acknowledged: list[str] = []
    for _ in range(kills):
        worker = _start(ledger, epsilon, sys.maxsize)
        assert worker.stdout is not None
        worker.stdout.readline()
        time.sleep(rng.uniform(0.0, longest))
        worker.send_signal(signal.SIGKILL)
        # What follows the last line end was not said in full.
        acknowledged += worker.communicate()[0].split("\n")[:-1]
        ledger.verify()
    charged = {row.txid for row in ledger.rows()}
    return {
        "kills": kills,
        "acknowledged": len(acknowledged),
        "charged": len(charged),
        "acknowledged_but_lost": len(set(acknowledged) - charged),
        "total": total,
        "spent": ledger.spent.epsilon,
    }


def _start(ledger: Ledger, epsilon: float, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "jaxdp.accounting.attack", str(ledger.path)]
    command += ["--work", repr(epsilon), str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _work(path: str, epsilon: float, count: int) -> None:
    """Spends; says 'ready', the id of every accepted charge, then how many were refused."""
    ledger, refused = Ledger.open(path), 0
    _say("ready")
    for _ in range(count):
        try:
            _say(ledger.reserve("attack", epsilon=epsilon, digest=secrets.token_hex(32)))
        except BudgetExhausted:
            refused += 1
    _say(f"refused {refused}")


def _say(text: str) -> None:
    os.write(1, f"{text}\n".encode())  # one unbuffered write: what a reader sees was acknowledged


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", help="folder for the ledgers under attack")
    parser.add_argument("--processes", type=int, default=16)
    parser.add_argument("--spends", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default="ledger.json")
    parser.add_argument("--work", nargs=2, metavar=("EPSILON", "COUNT"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.work:
        return _work(args.path, float(args.work[0]), int(args.work[1]))
    folder = Path(args.path)
    affordable = args.processes * args.spends // 8  # so that most attempts have to be refused
    found = {
        "race": race(
            folder / "race.db", total=affordable / 1000, epsilon=0.001, processes=args.processes, spends=args.spends
        ),
        "kill": kill_repeatedly(folder / "kill.db", total=1000.0, epsilon=0.001, kills=args.kills, seed=args.seed),
        "affordable": affordable,
        "sqlite": sqlite3.sqlite_version,
        "python": sys.version.split()[0],
        "arguments": {name: value for name, value in vars(args).items() if name not in ("path", "work", "out")},
    }
    Path(args.out).write_text(json.dumps(found, indent=2) + "\n")
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
