"""The ledger under attack: many processes at once, and processes killed in the middle of a charge."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jaxdp.accounting.ledger import Ledger

WORKER = str(Path(__file__).with_name("ledger_worker.py"))


def start(ledger: Ledger, epsilon: float, count: int) -> subprocess.Popen:
    command = [sys.executable, WORKER, str(ledger.path), repr(epsilon), str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def race(path: Path, total: float, epsilon: float, processes: int, spends: int) -> tuple[Ledger, int]:
    """Runs the processes; returns the ledger and how many charges they were told to be accepted."""
    ledger = Ledger.create(path, epsilon=total)
    workers = [start(ledger, epsilon, spends) for _ in range(processes)]
    accepted = []
    for worker in workers:
        lines = worker.communicate(timeout=250)[0].split("\n")
        assert worker.returncode == 0
        ids = lines[1:-2]
        assert int(lines[-2].removeprefix("refused ")) == spends - len(ids)
        accepted += ids
    assert sorted(accepted) == sorted(row.txid for row in ledger.rows())
    ledger.verify()
    return ledger, len(accepted)


@pytest.mark.parametrize(
    ("total", "epsilon", "affordable"), [(1.0, 0.01, 100), (0.3, 0.1, 3), (1.0, 1 / 3, 2), (2e-8, 1e-9, 20)]
)
def test_processes_never_overspend(tmp_path, total, epsilon, affordable):
    # A third rounds up to 0.333333333334, so three of them do not fit into 1.
    processes, spends = (16, 50) if affordable == 100 else (3, 10)
    ledger, accepted = race(tmp_path / "l.db", total, epsilon, processes, spends)
    assert accepted == affordable
    assert ledger.spent.epsilon <= total


@pytest.mark.nightly
def test_processes_never_overspend_long(tmp_path):
    ledger, accepted = race(tmp_path / "l.db", 10.0, 0.001, 16, 1000)
    assert accepted == 10_000
    assert ledger.remaining.epsilon == 0


def killed(ledger: Ledger, rng: random.Random) -> list[str]:
    """The charges a worker was told to be accepted before `kill -9` at a random moment."""
    worker = start(ledger, 0.001, 1_000_000)
    assert worker.stdout.readline() == "ready\n"
    time.sleep(rng.uniform(0.0, 0.08))
    worker.send_signal(signal.SIGKILL)
    lines = worker.communicate(timeout=60)[0].split("\n")
    return lines[:-1]  # what follows the last line end was not said in full


def kill_repeatedly(path: Path, kills: int, seed: int) -> None:
    ledger, rng = Ledger.create(path, epsilon=5.0), random.Random(seed)
    acknowledged: list[str] = []
    for _ in range(kills):
        acknowledged += killed(ledger, rng)
        ledger.verify()
    charged = [row.txid for row in ledger.rows()]
    assert set(acknowledged) <= set(charged), "an acknowledged charge was lost"
    assert len(acknowledged) > kills / 2, "the workers hardly ran: the test shows nothing"
    # A kill between the commit and the acknowledgement keeps the charge: at most one each.
    assert len(charged) <= len(acknowledged) + kills
    assert ledger.spent.epsilon == pytest.approx(0.001 * len(charged), abs=1e-12)


def test_kill_loses_nothing(tmp_path):
    kill_repeatedly(tmp_path / "l.db", kills=20, seed=1)


@pytest.mark.nightly
def test_kill_loses_nothing_long(tmp_path):
    kill_repeatedly(tmp_path / "l.db", kills=100, seed=2)
