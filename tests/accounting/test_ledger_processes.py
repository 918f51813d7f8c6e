"""The ledger under attack: many processes at once, and processes killed in the middle of a charge."""

import subprocess
import sys

import pytest

from jaxdp.accounting import attack

pytestmark = pytest.mark.optimised


@pytest.mark.parametrize(
    ("total", "epsilon", "affordable"), [(1.0, 0.01, 100), (0.3, 0.1, 3), (1.0, 1 / 3, 2), (2e-8, 1e-9, 20)]
)
def test_processes_never_overspend(tmp_path, total, epsilon, affordable):
    # A third rounds up to 0.333333333334, so three of them do not fit into 1.
    processes, spends = (16, 50) if affordable == 100 else (3, 10)
    found = attack.race(tmp_path / "l.db", total=total, epsilon=epsilon, processes=processes, spends=spends)
    assert found["accepted"] == found["charged"] == affordable
    assert found["accepted"] + found["refused"] == found["attempted"] == processes * spends
    assert found["acknowledged_but_lost"] == 0
    assert found["spent"] <= total


def check_kills(found, kills):
    assert found["acknowledged_but_lost"] == 0
    assert found["acknowledged"] > kills / 2, "the workers hardly ran: the test shows nothing"
    # A kill between the commit and the acknowledgement keeps the charge: at most one each.
    assert found["acknowledged"] <= found["charged"] <= found["acknowledged"] + kills
    assert found["spent"] == pytest.approx(0.001 * found["charged"], abs=1e-12)


def test_kill_loses_nothing(tmp_path):
    check_kills(attack.kill_repeatedly(tmp_path / "l.db", total=50.0, epsilon=0.001, kills=20, seed=1, longest=0.2), 20)


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_attacks_of_nightly_size(tmp_path):
    found = attack.race(tmp_path / "race.db", total=2.0, epsilon=0.001, processes=16, spends=1000)
    assert found["accepted"] == found["charged"] == 2000
    assert (found["spent"], found["acknowledged_but_lost"]) == (2.0, 0)
    check_kills(attack.kill_repeatedly(tmp_path / "kill.db", total=1000.0, epsilon=0.001, kills=100, seed=2), 100)


def test_the_ledger_starts_without_jax():
    program = "import sys, jaxdp.accounting.ledger; sys.exit('jax' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
