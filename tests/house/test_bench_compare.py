"""What `scripts/bench --compare` calls slower."""

import copy
import importlib
import json
import subprocess
import sys

import pytest

from experiments.benchmarks import __main__ as command
from experiments.benchmarks import compare

RESULTS = compare.pathlib.Path(compare.__file__).parent / "results"


def test_records_compared_with_themselves_are_not_slower(capsys):
    assert compare.main(RESULTS, RESULTS) == 0
    told = capsys.readouterr().out
    assert "SLOWER" not in told
    assert "partition_gcm/n1000" in told


@pytest.mark.parametrize(("times", "slower"), [(1.2, False), (1.3, True)])
def test_a_slower_case_is_found_whatever_the_load(times, slower, tmp_path, capsys):
    report = json.loads((RESULTS / "partition_gcm.json").read_text())
    changed = copy.deepcopy(report)
    figures = changed["cases"]["n1000"]
    figures["processor_seconds_per_unit"] *= 3.0 * times  # a machine three times slower, for the peer too
    figures["seconds_per_unit"] *= 3.0 * times
    for peer in figures["peers"].values():
        peer["processor_ratio"] /= times
        peer["ratio"] /= times
    (tmp_path / "new.json").write_text(json.dumps(changed))
    assert compare.main(RESULTS / "partition_gcm.json", tmp_path / "new.json") == int(slower)
    assert ("SLOWER" in capsys.readouterr().out) is slower


def test_a_case_that_fails_now_is_slower(tmp_path):
    report = json.loads((RESULTS / "partition_gcm.json").read_text())
    report["cases"]["n1000"] = {"failed": "error 2"}
    (tmp_path / "new.json").write_text(json.dumps(report))
    assert compare.main(RESULTS, tmp_path / "new.json") == 1


def test_the_table_has_every_case_of_both_and_names_the_others(tmp_path):
    report = json.loads((RESULTS / "partition_gcm.json").read_text())
    report["cases"]["n1000"]["processor_seconds_per_unit"] = 0.25
    report["cases"]["another"] = report["cases"].pop("n300")
    (tmp_path / "new.json").write_text(json.dumps(report))
    written = tmp_path / "table.md"
    compare.main(RESULTS / "partition_gcm.json", tmp_path / "new.json", write=written)
    told = written.read_text()
    assert "| 250 ms/replicate |" in told
    assert "Only before: partition_gcm/n300" in told
    assert "Only after: partition_gcm/another." in told


def test_nothing_to_compare_is_said(tmp_path):
    with pytest.raises(SystemExit, match="no results"):
        compare.read(tmp_path)


def recorded():
    """Of every row, its first case that has a record and a peer."""
    measured = compare.read(RESULTS)
    for name in command.row_names():
        cases = importlib.import_module(f"experiments.benchmarks.rows.{name}").CASES
        found = [case for case in cases if measured.get(f"{name}/{case}", {}).get("peers")]
        if found:
            yield name, found[0]


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("row", "case"), list(recorded()))
def test_no_row_is_half_as_fast_as_on_record(row, case, tmp_path):
    run = [sys.executable, "-m", "experiments.benchmarks", "run", row, "--case", case, "--json", str(tmp_path)]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert compare.main(RESULTS, tmp_path, factor=2.0) == 0
