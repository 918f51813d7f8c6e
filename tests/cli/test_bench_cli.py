"""`jaxdp bench`: rows, files, mistakes."""

import json

import pytest

from jaxdp import catalogue
from jaxdp.cli.bench import recommended
from jaxdp.cli.main import main


@pytest.mark.full
def test_rows_and_picture(tmp_path, capsys):
    command = ["bench", "--method", "partition-gcm", "--n", "40,80", "--replicates", "32", "--out", str(tmp_path)]
    assert main(command) == 0
    result = json.loads((tmp_path / "result.json").read_text())
    assert [(row["method"], row["n"], row["replicates"]) for row in result["rows"]] == [
        ("partition-gcm", 40, 32),
        ("partition-gcm", 80, 32),
    ]
    assert all(row["per_second"] > 0 for row in result["rows"])
    assert (tmp_path / "bench.png").read_bytes()[:4] == b"\x89PNG"
    assert "replicates/s" in capsys.readouterr().out
    assert main(["bench", "--method", "nonsense", "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_without_names_the_recommended_tests_are_timed():
    names = recommended()
    assert len(names) > 2
    assert all(catalogue.find(name).spec.rank for name in names)
