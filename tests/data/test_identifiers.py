"""An identifier of persons that repeats is named to the owner of a table, and to nobody else."""

import json
import warnings

import jax
import numpy as np
import pandas as pd
import polars as pl
import pytest

import jaxdp
from jaxdp._base.owner import OwnerWarning
from jaxdp.cli.main import main
from jaxdp.data import identifiers

PERSONS, VISITS, MARK = 60, 8, 7_000_001
SCHEMA = """[columns.dose]
kind = "continuous"
bounds = [-4, 4]
[columns.response]
kind = "continuous"
bounds = [-4, 4]
"""


def panel(name="subject", seed=0, visits=VISITS):
    """Dose and response of each person, one value in all rows: independent persons, dependent rows."""
    rng = np.random.default_rng(seed)
    persons = np.repeat(np.arange(PERSONS), visits)
    made = {column: np.clip(rng.normal(size=PERSONS), -4, 4)[persons] for column in ("dose", "response")}
    return {name: persons + MARK, **made}


def asked(table, **how):
    return jaxdp.test(
        table, x="dose", y="response", epsilon=1.0, key=jax.random.key(0),
        **({"bounds": {"dose": (-4, 4), "response": (-4, 4)}} | how),
    )  # fmt: skip


def warned(table, **how):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        asked(table, **how)
    return [str(one.message) for one in caught if issubclass(one.category, OwnerWarning)]


@pytest.fixture
def files(tmp_path):
    def write(table, schema=SCHEMA):
        pd.DataFrame(table).to_csv(tmp_path / "d.csv", index=False)
        (tmp_path / "s.toml").write_text(schema)
        return str(tmp_path / "d.csv"), str(tmp_path / "s.toml")

    return write


@pytest.mark.parametrize("kind", [dict, pd.DataFrame, pl.DataFrame, pl.LazyFrame])
@pytest.mark.parametrize("name", ["subject", "patient_id", "code"])
def test_the_python_call_warns_about_a_column_that_no_schema_has(kind, name):
    told = warned(kind(panel(name)))
    if kind is pl.LazyFrame and name == "code":  # each look at a lazy table is a computation
        assert told == []
        return
    assert len(told) == 1
    assert repr(name) in told[0]
    assert f'unit = "{name}"' in told[0]
    assert "not for release" in told[0]
    assert str(MARK)[:4] not in told[0]


def test_no_warning_where_the_schema_says_unit_or_nothing_repeats():
    columns = {name: {"kind": "continuous", "bounds": [-4, 4]} for name in ("dose", "response")}
    assert warned(panel(), bounds=None, schema={"unit": "subject", "columns": columns}) == []
    assert warned(panel(visits=1)) == []


def test_the_warning_stands_in_the_line_of_the_caller():
    with pytest.warns(OwnerWarning) as caught:
        asked(panel())
    assert caught[0].filename == __file__


def test_the_command_warns_on_standard_error_and_writes_nothing_of_it(files, tmp_path, capsys):
    data, schema = files(panel())
    out = tmp_path / "out"
    command = ["test", data, "--schema", schema, "--x", "dose", "--y", "response", "--epsilon", "1", "--seed", "1"]
    assert main([*command, "--out", str(out)]) == 0
    shown = capsys.readouterr()
    assert shown.err.count("'subject'") == 1
    assert "jaxdp: warning: column 'subject'" in shown.err
    written = shown.out + "".join(path.read_text() for path in out.iterdir() if path.suffix in (".json", ".html"))
    assert "subject" not in written
    assert str(MARK)[:4] not in shown.err


def test_a_failing_budget_is_not_charged_before_the_warning(files, tmp_path, capsys):
    data, schema = files(panel())
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", OwnerWarning)
        with pytest.raises(OwnerWarning):
            jaxdp.test(data, x="dose", y="response", epsilon=1.0, schema=schema, ledger=ledger)
    assert float(ledger.spent.epsilon) == 0.0


def test_a_strict_caller_learns_nothing(files, tmp_path, capsys):
    data, schema = files(panel())
    command = ["test", data, "--schema", schema, "--x", "dose", "--y", "response", "--epsilon", "1", "--seed", "1"]
    assert main([*command, "--strict", "--out", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr()
    assert "subject" not in shown.err + shown.out


def test_check_names_the_column(files, capsys):
    data, schema = files(panel())
    assert main(["check", data, "--schema", schema]) == 0
    assert "warning: column 'subject' looks like the identifier" in capsys.readouterr().out
    assert main(["check", data, "--schema", schema, "--json"]) == 0
    assert "'subject'" in json.loads(capsys.readouterr().out)["notes"][0]
    data, schema = files(panel(), f'unit = "subject"\n{SCHEMA}')
    assert main(["check", data, "--schema", schema]) == 0
    assert "looks like the identifier" not in capsys.readouterr().out


def test_a_draft_says_by_the_name_alone_what_the_schema_may_need(files, capsys):
    data, _ = files(panel(visits=1))
    assert main(["schema", "draft", data]) == 0
    assert 'the schema must say unit = "subject"' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("id", identifiers.PERSON), ("PatientID", identifiers.PERSON), ("subject_no", identifiers.PERSON),
        ("person.id", identifiers.PERSON), ("hhid", identifiers.PERSON), ("subject", identifiers.NUMBER),
        ("clinic_id", identifiers.NUMBER), ("paid", identifiers.LABEL), ("width", identifiers.LABEL),
        ("region", identifiers.LABEL), ("caseload", identifiers.LABEL),
    ],
)  # fmt: skip
def test_what_a_name_says(name, kind):
    assert identifiers.says(name) == kind


def ordinary(rows, seed=1):
    """Columns that repeat and identify nobody."""
    rng = np.random.default_rng(seed)
    return {
        "age": rng.integers(18, 81, rows),
        "day": np.arange(rows) % 31 + 1,
        "clinic_id": rng.integers(0, 12, rows),
        "country": rng.choice([f"c{i}" for i in range(60)], rows),
        "income": (rng.lognormal(10, 1, rows) // 1000 * 1000).astype(int),
        "salary": rng.integers(30_000, 60_000, rows),
        "score": rng.normal(size=rows).round(1),
        "date": np.array([f"2024-{i % 12 + 1:02d}-{i % 28 + 1:02d}" for i in range(rows)]),
        "patient": rng.choice(["in", "out"], rows),
        "dose": np.arange(rows) % 5,
        "row": np.arange(rows),
    }


@pytest.mark.parametrize("rows", [60, 400, 3000, 70_000])
def test_ordinary_columns_raise_no_alarm(rows, tmp_path):
    table = ordinary(rows)
    assert identifiers.repeated(table) == ""
    pd.DataFrame(table).to_csv(tmp_path / "t.csv", index=False)
    assert identifiers.repeated(tmp_path / "t.csv") == ""


def test_repeats_that_begin_after_many_rows_are_found(tmp_path):
    ids = np.tile(np.arange(50_000), 2)
    pd.DataFrame({"code": ids, "a": np.zeros(100_000)}).to_csv(tmp_path / "t.csv", index=False)
    assert "'code'" in identifiers.repeated(tmp_path / "t.csv")


def test_columns_of_odd_kinds_are_passed_over():
    table = {"lists": np.array([[1], [2]] * 240, object), "when": np.array(["2020-01-01"] * 480, "M8[D]"), **panel()}
    assert "'subject'" in identifiers.repeated(table)
