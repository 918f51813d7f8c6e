"""`jaxdp ledger`: exit codes, what is printed, what is written."""

import csv
import json
import math
import secrets
from pathlib import Path

import pytest

from jaxdp.accounting.ledger import Ledger
from jaxdp.cli.main import main
from jaxdp.report.waterfall import waterfall


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.db"


def fill(path):
    ledger = Ledger.open(path)
    for epsilon in (0.1, 0.25, 0.4):
        ledger.reserve("partition-gcm", epsilon=epsilon, digest=secrets.token_hex(32), note="x ~ y | z")
    return ledger


def test_create(path, capsys):
    assert main(["ledger", "create", str(path), "--epsilon", "1", "--delta", "1e-6"]) == 0
    assert "epsilon=1, delta=1e-06, relation replace_one" in capsys.readouterr().out
    assert Ledger.open(path).total.epsilon == 1.0


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--epsilon", "0"],
        ["--epsilon", "nan"],
        ["--epsilon", "1", "--delta", "1"],
        ["--epsilon", "1", "--relation", "x"],
    ],
)
def test_create_mistakes(path, capsys, options):
    assert main(["ledger", "create", str(path), *options]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
    assert not path.exists()


def test_create_twice(path, capsys):
    arguments = ["ledger", "create", str(path), "--epsilon", "1"]
    assert main(arguments) == 0
    assert main(arguments) == 2
    assert "exists already" in capsys.readouterr().err


def test_show(path, capsys):
    main(["ledger", "create", str(path), "--epsilon", "1"])
    fill(path)
    assert main(["ledger", "show", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "spent      epsilon=0.75" in shown
    assert "remaining  epsilon=0.25" in shown
    assert "partition-gcm x ~ y | z" in shown
    assert "had the list of charges been fixed in advance" in shown


def test_show_an_empty_ledger(path, capsys):
    main(["ledger", "create", str(path), "--rho", "0.5"])
    assert main(["ledger", "show", str(path)]) == 0
    assert "granted    delta=0, rho=0.5" in capsys.readouterr().out


@pytest.mark.parametrize("action", ["show", "verify", "export"])
def test_a_missing_ledger(path, capsys, action):
    assert main(["ledger", action, str(path)]) == 2
    assert "does not exist" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device")
@pytest.mark.parametrize("buffering", [1, -1])
def test_a_full_disk_is_one_sentence(path, capsys, monkeypatch, buffering):
    """It was an internal error that "may quote data"; where output is buffered, Python failed as it ended."""
    Ledger.create(path, epsilon=1.0)
    with open("/dev/full", "w", buffering=buffering) as full:
        monkeypatch.setattr("sys.stdout", full)
        code = main(["ledger", "show", str(path)])
        monkeypatch.undo()
    said = capsys.readouterr().err
    assert (code, said.count("\n")) == (2, 1)
    assert "a file or standard output cannot be read or written: no space left on device" in said


def test_verify(path, capsys):
    main(["ledger", "create", str(path), "--epsilon", "1"])
    fill(path)
    assert main(["ledger", "verify", str(path)]) == 0
    assert "3 charges add up, epsilon=0.75" in capsys.readouterr().out
    content = path.read_bytes()
    path.write_bytes(content.replace(b"partition-gcm", b"partition-xxx", 1)[:-100])
    assert main(["ledger", "verify", str(path)]) == 2


def test_export(path, tmp_path):
    main(["ledger", "create", str(path), "--epsilon", "1", "--rho", "0.5"])
    fill(path).reserve("mean", rho=0.125, digest=secrets.token_hex(32))
    out = tmp_path / "out"
    assert main(["ledger", "export", str(path), "--out", str(out)]) == 0
    rows = list(csv.DictReader((out / "ledger.csv").open()))
    assert [float(row["cumulative_epsilon"]) for row in rows] == [0.1, 0.35, 0.75, 0.75]
    content = json.loads((out / "ledger.json").read_text())
    assert content["remaining"] == {"epsilon": 0.25, "delta": 0.0, "rho": 0.375}
    assert [charge["method"] for charge in content["charges"]] == ["partition-gcm"] * 3 + ["mean"]
    events = json.loads((out / "dp_event.json").read_text())["events"]
    assert [event["class_name"] for event in events] == ["RandomizedResponseDpEvent"] * 3 + ["ZCDpEvent"]
    assert events[0]["noise_parameter"] == pytest.approx(2 / (1 + math.exp(0.1)))
    assert (out / "waterfall.png").read_bytes().startswith(b"\x89PNG")
    assert main(["report", str(out)]) == 0
    page = (out / "report.html").read_text()
    assert "no results" not in page
    assert "<img" in page


@pytest.mark.parametrize("count", [0, 1, 24, 400])
def test_waterfall_of_any_length(tmp_path, count):
    picture = waterfall(
        tmp_path / "w.png", ["m"] * count, {"epsilon": ([1 / max(count, 1)] * count, 1.0)}, notes=["sum 1"]
    )
    assert picture.stat().st_size > 5000


def test_json_in_place_of_the_screen(path, tmp_path, capsys):
    def told(*arguments):
        capsys.readouterr()
        assert main(["ledger", *arguments, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    assert told("create", str(path), "--epsilon", "1")["charges"] == []
    fill(path)
    shown = told("show", str(path), "--out", str(tmp_path / "shown"))
    assert shown["remaining"] == {"epsilon": 0.25, "delta": 0.0, "rho": None}
    assert [charge["epsilon"] for charge in shown["charges"]] == [0.1, 0.25, 0.4]
    assert "fixed in advance" in shown["notes"][-1]
    assert told("verify", str(path))["seal"] == Ledger.open(path).seal
    exported = told("export", str(path), "--out", str(tmp_path / "out"))
    assert exported.pop("results") == str(tmp_path / "out")
    assert exported == json.loads((tmp_path / "out" / "ledger.json").read_text())
