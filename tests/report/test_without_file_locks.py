"""A system without POSIX file locks, such as Windows: what shares no file works, what does says so in one sentence."""

import pytest

import jaxdp
from jaxdp._base import file_lock
from jaxdp.cli.main import main
from jaxdp.discovery.engine import checkpoint
from jaxdp.simulate.engine.record_file import RecordFile


@pytest.fixture(autouse=True)
def _without_locks(monkeypatch):
    monkeypatch.setattr(file_lock, "fcntl", None)


def test_a_plan_with_its_files_and_a_ledger_need_none(tmp_path):
    query = ["--method", "partition-gcm", "--epsilon", "1", "--effect", "0.25", "--power", "0.8", "--replicates", "0"]
    assert main(["plan", *query, "--out", str(tmp_path / "plan")]) == 0
    assert (tmp_path / "plan" / "plan.json").exists()
    assert jaxdp.Ledger.create(tmp_path / "study.db", epsilon=1.0).remaining.epsilon == 1.0


def test_files_that_two_runs_could_write_are_refused_in_one_sentence(tmp_path):
    with pytest.raises(ValueError, match=r"no POSIX file locks \(Windows\)"):
        RecordFile(tmp_path / "records.jsonl")
    with (
        pytest.raises(ValueError, match=r"no POSIX file locks \(Windows\)"),
        checkpoint.keeping(tmp_path / "answers.jsonl"),
    ):
        pass
