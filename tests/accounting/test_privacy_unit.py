"""A ledger says for each charge which privacy unit it protects, and where units are mixed what its sums mean."""

import numpy as np
import pytest
import yaml

import jaxdp
from jaxdp.cli.main import main

COLUMNS = {name: {"kind": "continuous", "bounds": [-3, 3]} for name in ("a", "b")}
ADDED = "charges of several privacy units are added (single rows, all rows of one patient)"


@pytest.fixture
def ledger(tmp_path):
    return jaxdp.Ledger.create(tmp_path / "study.db", epsilon=4.0)


def charge(ledger, unit: str = ""):
    rng = np.random.default_rng(1)
    table = {"patient": np.repeat(np.arange(150), 2), "a": rng.normal(size=300), "b": rng.normal(size=300)}
    schema = {"columns": COLUMNS} | ({"unit": unit} if unit else {})
    jaxdp.test(table, x="a", y="b", schema=schema, epsilon=1.0, ledger=ledger)


def test_a_charge_for_persons_names_them(ledger, capsys):
    charge(ledger, "patient")
    assert [row.columns for row in ledger.rows()] == ["a ~ b, for patient as the privacy unit"]
    assert main(["ledger", "show", str(ledger.path)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "for patient as the privacy unit" in told
    assert "several privacy units" not in told


def test_sums_over_several_units_say_for_what_they_hold(ledger, capsys):
    charge(ledger)
    charge(ledger, "patient")
    assert ledger.rows()[0].columns == "a ~ b"
    assert main(["ledger", "show", str(ledger.path)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert f"{ADDED}: the sums hold for single rows alone; keep one ledger for each unit" in told


@pytest.mark.parametrize(
    ("units", "unit", "details"),
    [
        (
            ["patient"],
            "All records of the table that have the same patient, of one person.",
            "The number of persons is",
        ),
        (["", "patient"], "One record of the table.", "A part of the charges protects all records of one patient"),
        ([""], "One record of the table.", "The number of records is public."),
    ],
)
def test_the_draft_for_the_registry_names_the_unit(ledger, tmp_path, units, unit, details):
    for one in units:
        charge(ledger, one)
    ledger.to_registry(tmp_path / "registry.yaml")
    found = yaml.safe_load((tmp_path / "registry.yaml").read_text())["deployment"]["privacy_loss"]
    assert found["privacy_unit"] == unit
    assert details in found["privacy_unit_details"]
