"""The tool that changes privacy constants: what it finds, what it changes, which tests it asks, and how it judges."""

import subprocess
import sys
from pathlib import Path

import pytest

from experiments.evidence.mutants import __main__ as tool
from experiments.evidence.mutants import compare, run
from experiments.evidence.mutants.choose import rounds
from experiments.evidence.mutants.find import find, of_source, scaled

ROOT = Path(__file__).parents[2]
STAGES = "jaxdp/independence/continuous/partition_stages.py"


@pytest.fixture(scope="module")
def mutants():
    return find(ROOT)


@pytest.mark.parametrize(
    ("path", "name", "old", "new"),
    [
        ("jaxdp/independence/continuous/partition_gcm.py", "COVARIANCE_L1", "8.0", "7.2"),
        ("jaxdp/independence/continuous/partition_gcm.py", "SHARES", "0.85", "0.935"),
        (STAGES, "COUNT_L2", "2.0", "1.8"),
        (STAGES, "SCORE_SENSITIVITY", "4.0", "3.6"),
        ("jaxdp/mechanisms/sparse_vector.py", "scales", "2.0", "1.8"),
        ("jaxdp/mechanisms/additive.py", "selector", "8.0", "8.8"),
        ("jaxdp/mechanisms/additive.py", "scale", "2.0", "1.8"),
        ("jaxdp/discovery/methods/pc.py", "_private_answers", "asked", "0"),
    ],
)
def test_known_constants_are_found(mutants, path, name, old, new):
    assert (path, name, old, new) in {(m.path, m.name, m.old, m.new) for m in mutants}


def test_splits_of_keys_are_found_and_most_numbers_are(mutants):
    keys = {(m.path, m.name) for m in mutants if m.kind == "key"}
    assert {("jaxdp/core.py", "_execute"), ("jaxdp/core.py", "_execute_sequential")} <= keys
    assert len(mutants) > 300
    assert len({m.path for m in mutants}) > 50
    assert len({run.identity(row_of(m)) for m in mutants}) > 0.97 * len(mutants)


def row_of(mutant):
    return run.described(mutant, (ROOT / mutant.path).read_text())


SOURCE = '''"""Docs 1."""

COUNT_L1 = 2.0 ** 0.5 * 3
SHARES = {"é": 0.85, "b": 0.15}
lower = 9.0


class Test:
    def sensitivity(self, n):
        return 4.0 * n + self.parts[2]

    def other(self, n):
        return 7.0 * n + 2.0 * self.epsilon

    def draw(self, key):
        a, b = jax.random.split(key)
        return a, jax.random.fold_in(b, n)
'''


def test_every_mutant_changes_one_place_and_compiles():
    found = of_source(SOURCE, "x.py")
    told = {(m.kind, m.name, m.old, m.new) for m in found}
    assert ("constant", "COUNT_L1", "2.0", "1.8") in told
    assert ("constant", "COUNT_L1", "2.0", "2.2") not in told  # a larger bound is safe
    assert {("constant", "SHARES", "0.15", repr(0.15 * f)) for f in (0.9, 1.1)} <= told
    assert ("literal", "sensitivity", "4.0", "3.6") in told
    assert ("literal", "other", "2.0", "1.8") in told
    assert not {m.old for m in found} & {"0.5", "9.0", "1"}  # an exponent, a lower-case name, a docstring
    assert ("key", "draw", "n", "0") in told
    for mutant in found:
        changed = mutant.apply(SOURCE)
        compile(changed, "x.py", "exec")
        assert len(changed) - len(SOURCE) == len(mutant.new) - len(mutant.old)
        assert changed.splitlines()[mutant.line - 1] != SOURCE.splitlines()[mutant.line - 1]
        with pytest.raises(ValueError, match="anew"):
            mutant.apply(SOURCE.replace(mutant.old, "?" * len(mutant.old)))


def test_whole_numbers_stay_whole_and_move():
    assert [scaled(value, 0.9) for value in (1, 2, 64, 2.0)] == ["0", "1", "57", "1.8"]
    assert [scaled(value, 1.1) for value in (1, 10, 50_000)] == ["2", "11", "55000"]


def test_the_tests_that_name_a_constant_come_first(mutants):
    mutant = next(m for m in mutants if m.name == "VARIANCE_ONE_REGION")
    first, *others = rounds(ROOT, mutant)
    assert (
        "tests/independence/continuous/test_partition_gcm.py::test_an_attack_reaches_the_variance_bounds" in first.nodes
    )
    assert any("partition-gcm" in tests.narrow for tests in others)
    nodes = [node for tests in (first, *others) for node in tests.nodes]
    assert len(nodes) == len(set(nodes))


def test_survivors_without_a_reason_fail_the_run(tmp_path, monkeypatch, capsys):
    row = dict.fromkeys(run.FIELDS, "") | {"path": "jaxdp/a.py", "line": 3, "name": "K", "old": "2.0", "new": "1.8"}
    run.append(tmp_path / "r.csv", row | {"status": run.SURVIVED})
    run.append(tmp_path / "r.csv", row | {"status": run.KILLED, "new": "2.2"})
    monkeypatch.setattr(tool, "reasons", lambda: [])
    assert tool.report(tmp_path / "r.csv") == 1
    assert "survived: jaxdp/a.py:3 K 2.0 -> 1.8" in capsys.readouterr().out
    reason = {"path": r"jaxdp/a\.py", "name": "K", "old": ".*", "new": "1.8", "reason": "wider noise"}
    monkeypatch.setattr(tool, "reasons", lambda: [reason])
    assert tool.report(tmp_path / "r.csv") == 0
    assert tool.reason_of(row | {"new": "2.2"}, [reason]) == ""


def test_stated_reasons_are_about_changes_that_exist(mutants):
    rows = [row_of(mutant) for mutant in mutants]
    for entry in tool.reasons():
        assert entry["reason"]
        assert any(tool.reason_of(row, [entry]) for row in rows), entry


@pytest.mark.nightly
def test_the_tool_kills_and_lists_survivors(tmp_path):
    """A package of one constant: its guarded use dies, its unguarded one survives, a broken test kills nothing."""
    files = {
        "jaxdp/__init__.py": "",
        "jaxdp/mechanisms/__init__.py": "",
        "jaxdp/mechanisms/tiny.py": "GUARDED_L1 = 2.0\nOPEN_L1 = 4.0\nBROKEN_L1 = 6.0\n",
        "tests/cases.py": "",
        "tests/conftest.py": "def pytest_addoption(parser):\n    parser.addoption('--full', action='store_true')\n",
        "tests/test_tiny.py": "from jaxdp.mechanisms import tiny\n\n"
        "def test_guard():\n    assert tiny.GUARDED_L1 >= 2.0\n\n"
        "def test_open():\n    assert tiny.OPEN_L1 > 0\n\ndef test_broken():\n    assert tiny.BROKEN_L1 == 1.0\n",
    }
    for name, text in files.items():
        (tmp_path / "root" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "root" / name).write_text(text)
    record = tmp_path / "record.csv"
    for _ in range(2):  # the second run has nothing left to do
        run.run(tmp_path / "root", lambda found: found, record, seconds=120)
    found = {row["name"]: (row["status"], row["test"]) for row in run.read(record)}
    assert len(run.read(record)) == 3
    assert found["GUARDED_L1"] == (run.KILLED, "tests/test_tiny.py::test_guard")
    assert found["OPEN_L1"] == (run.SURVIVED, "")
    assert found["BROKEN_L1"][0] == run.SURVIVED
    assert (tmp_path / "root/jaxdp/mechanisms/tiny.py").read_text() == files["jaxdp/mechanisms/tiny.py"]


@pytest.mark.nightly
def test_a_few_mutants_of_the_package_die(tmp_path):
    command = [sys.executable, "scripts/mutate", "--only", "COVARIANCE_L1|VARIANCE_ONE_REGION|SCORE_SENSITIVITY"]
    done = subprocess.run([*command, "--record", str(tmp_path / "r.csv")], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {row["status"] for row in run.read(tmp_path / "r.csv")} == {run.KILLED}


def test_every_mutant_judged_before_has_one_counterpart_today(mutants):
    pairs = compare.counterparts()
    assert len(pairs) == 35
    places = [(m.path, m.owner, m.name, m.old, m.new) for m in mutants]
    for before, place in pairs:
        assert places.count(tuple(place.values())) == 1, (before["path"], place)
    verdicts = {before["status"] for before, _ in pairs} | {compare.NOT_YET}
    assert {row[-1].partition(",")[0] for row in compare.compared()} <= verdicts
