"""The owner's channel: `jaxdp check`, and columns in another notation, which must not be paid for."""

import json

import numpy as np
import pytest

import jaxdp
from jaxdp.cli.main import main
from jaxdp.data.column_rules import column_rule
from jaxdp.data.parse_report import ColumnReport, ParseReport
from jaxdp.data.schema import Schema

pytest.importorskip("matplotlib")

OWNER = "for the owner of the file, not for release"
SCHEMA = """
delimiter = ";"

[columns.x]
kind = "continuous"
bounds = [0, 1]

[columns.k]
kind = "binary"
levels = ["true", "false"]

[columns.m]
kind = "ordinal"
levels = [1, 2, 3]
"""
ROWS = 40
NUMBERS = {
    "numbers with a decimal comma": "0,{0:04d}",
    "percentages": "{0}.25%",
    "numbers with thousands separators": "1,{0:03d}",
    "dates or times": "2020-03-{0:02d}",
    "numbers with a sign of currency": "$0.{0}",
    "numbers with a unit": "0.{0} kg",
    "correct the bounds or the unit": "{0}31337",
}


def write(folder, x="0.{0:04d}", k=("true", "false"), m=("1", "2", "3"), spoiled=ROWS):
    """A file of three columns; the first `spoiled` records have x in the given notation."""
    rows = [
        f"{(x if i < spoiled else '0.{0:04d}').format(i + 10)};{k[i % len(k)]};{m[i % len(m)]}\n" for i in range(ROWS)
    ]
    (folder / "d.csv").write_text("x;k;m\n" + "".join(rows), encoding="utf-8")
    (folder / "s.toml").write_text(SCHEMA)
    return [str(folder / "d.csv"), "--schema", str(folder / "s.toml")]


def refused(folder, capsys, command, *options):
    """What a command says that refuses, with nothing charged and nothing written."""
    ledger = jaxdp.Ledger.create(folder / f"{command}.db", epsilon=1.0)
    table = [str(folder / "d.csv"), "--schema", str(folder / "s.toml"), "--ledger", str(ledger.path)]
    assert main([command, *table, *options, "--epsilon", "1", "--out", str(folder / "out")]) == 2
    said = capsys.readouterr()
    assert (said.out, ledger.rows(), list((folder / "out").iterdir())) == ("", [], [])
    assert said.err.count("\n") == 1
    assert OWNER in said.err
    assert "--force" in said.err
    return said.err


@pytest.mark.parametrize(("notation", "form"), NUMBERS.items(), ids=NUMBERS)
def test_numbers_in_another_notation_are_refused(tmp_path, capsys, notation, form):
    table = write(tmp_path, x=form)
    said = refused(tmp_path, capsys, "test", "--x", "x", "--y", "k")
    assert ("column 'x' does not parse: of 40 cells 40" in said) == (form != "{0}31337")
    assert notation in said
    assert main(["check", *table]) == 2
    shown = capsys.readouterr()
    assert notation in shown.err
    for text in (said, shown.out, shown.err):
        assert not any(form.format(i + 10) in text for i in range(ROWS)), "a cell is quoted"


@pytest.mark.parametrize(
    ("columns", "name", "notation"),
    [
        ({"k": ("True", "False")}, "k", "levels in another letter case"),
        ({"k": ("yes", "no")}, "k", "truth values in other words"),
        ({"k": ("0", "1")}, "k", "truth values in other words"),
        ({"k": ("zanzibar", "true", "zanzibar")}, "k", ""),
        ({"m": ("I", "II", "III")}, "m", ""),
        ({"m": ("2,0", "1,0")}, "m", "decimal comma"),
        ({"m": ("7", "8")}, "m", ""),
        ({"m": ("", "NA")}, "m", "all of its 40 cells are empty or marked as missing"),
    ],
)
def test_levels_in_another_notation_are_refused(tmp_path, capsys, columns, name, notation):
    write(tmp_path, **columns)
    said = refused(tmp_path, capsys, "discover", "--columns", "k,m")
    assert f"column '{name}' does not parse" in said
    assert notation in said
    assert "zanzibar" not in said


def test_mic_refuses_too_and_names_how_many(tmp_path, capsys):
    write(tmp_path, x="{0}%", m=("x", "y"))
    said = refused(tmp_path, capsys, "mic", "--x", "x", "--y", "m")
    assert "and 1 more: jaxdp check" in said


@pytest.mark.parametrize(("spoiled", "parses"), [(ROWS // 2 - 1, True), (ROWS // 2, False)])
def test_half_of_the_cells_decide(tmp_path, spoiled, parses):
    write(tmp_path, x="{0}%", spoiled=spoiled)
    report = ParseReport()
    Schema.load(tmp_path / "s.toml").read_table(tmp_path / "d.csv", report=report)
    assert (report.failing() == []) is parses
    assert report.columns["x"].unreadable == spoiled


def test_missing_cells_are_no_fault():
    report = ColumnReport(column_rule("c", {"kind": "continuous", "bounds": [0, 1]}))
    report.add(["", "NA", "nan", "0.5", "7"] + [None] * 10)
    assert (report.cells, report.missing, report.outside, report.unreadable) == (15, 13, 1, 0)
    assert not report.parses
    report.add(["0.5"])
    assert report.parses
    report.add(np.array([0.5, np.nan, np.inf, -1.0]))
    assert (report.missing, report.outside, report.unreadable) == (14, 2, 1)


@pytest.mark.full
def test_force_goes_on(tmp_path, capsys):
    table = write(tmp_path, x="{0}%")
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=1.0)
    command = ["mic", *table, "--x", "x", "--y", "m", "--epsilon", "1", "--cells", "6", "--force"]
    assert main([*command, "--ledger", str(ledger.path), "--out", str(tmp_path / "out")]) == 0
    assert "left in l.db" in capsys.readouterr().out
    assert len(ledger.rows()) == 1


def test_the_number_of_records_may_be_stated(tmp_path, capsys):
    write(tmp_path)
    options = ["--x", "x", "--y", "m", "--epsilon", "1", "--records", "41", "--out", str(tmp_path / "out")]
    assert main(["mic", str(tmp_path / "d.csv"), "--schema", str(tmp_path / "s.toml"), *options]) == 2
    assert "40 rows and not the 41 that were stated" in capsys.readouterr().err


# --- jaxdp check -------------------------------------------------------------------------------------------------


def test_a_good_file_passes(tmp_path, capsys):
    assert main(["check", *write(tmp_path)]) == 0
    shown = capsys.readouterr()
    assert OWNER in shown.out
    assert "each line of the file is one row" in shown.out
    assert shown.err == ""


def test_cells_and_lines_are_counted(tmp_path, capsys):
    table = write(tmp_path, x="{0}%", spoiled=3)
    content = (tmp_path / "d.csv").read_bytes().split(b"\n")
    content[10:14] = [b"", b'0.5;"true;1', b"0.5;zanzibar;1", b"0.5;true\xff;1"]
    (tmp_path / "d.csv").write_bytes(b"\n".join(content))
    assert main(["check", *table]) == 2
    shown = capsys.readouterr()
    assert "1 empty" in shown.out
    assert "1 badly quoted" in shown.out
    assert "1 not UTF-8" in shown.out
    counts = {line.split()[0]: line.split()[2:] for line in shown.out.splitlines() if line.startswith("  ")}
    assert counts["x"] == ["40", "3", "3", "0", "0"]  # the three malformed lines count as missing
    assert counts["k"] == ["40", "3", "0", "1", "0"]
    assert OWNER in shown.err
    assert "zanzibar" not in shown.out + shown.err


def test_columns_may_be_chosen(tmp_path, capsys):
    table = write(tmp_path, x="{0}%")
    assert main(["check", *table, "--columns", "k,m"]) == 0
    assert main(["check", *table, "--columns", "nope"]) == 2
    assert "not in the schema" in capsys.readouterr().err


def test_empty_lines_are_told_to_the_owner(tmp_path, capsys):
    table = write(tmp_path)
    (tmp_path / "d.csv").write_text((tmp_path / "d.csv").read_text() + "\n\n")
    out = ["--out", str(tmp_path / "out"), "--seed", "1"]
    assert main(["mic", *table, "--x", "x", "--y", "m", "--epsilon", "1", "--cells", "6", *out]) == 0
    shown = capsys.readouterr()
    assert "2 empty lines were passed over" in shown.err
    assert OWNER in shown.err
    assert "empty lines" not in shown.out


def sites(folder, step=""):
    """A file whose column z holds ten site numbers, declared continuous."""
    rng = np.random.default_rng(0)
    (x, y), z = rng.uniform(-1, 1, (2, 200)), rng.integers(10, size=200)
    rows = [f"{x[i]:.4f},{y[i]:.4f},{z[i]}\n" for i in range(200)]
    (folder / "d.csv").write_text("x,y,z\n" + "".join(rows))
    bounds = {"x": "[-1, 1]", "y": "[-1, 1]", "z": "[0, 9]"}
    schema = [f'[columns.{name}]\nkind = "continuous"\nbounds = {bound}\n' for name, bound in bounds.items()]
    (folder / "s.toml").write_text("".join(schema) + step)
    return [str(folder / "d.csv"), "--schema", str(folder / "s.toml")]


@pytest.mark.full
def test_the_owner_is_warned_of_codes_that_are_declared_continuous(tmp_path, capsys):
    query = ["--x", "x", "--y", "y", "--given", "z", "--epsilon", "1", "--seed", "1", "--out", str(tmp_path / "out")]
    for step, strict, warned in (("", [], True), ("", ["--strict"], False), ("step = 1\n", [], False)):
        table = sites(tmp_path, step)
        assert main(["test", *table, *query, *strict, "--overwrite"]) == 0
        shown = capsys.readouterr()
        assert ("may be codes" in shown.err) == warned
        assert (OWNER in shown.err) == warned
        assert "may be codes" not in shown.out + (tmp_path / "out" / "result.json").read_text()
        assert ("records with equal Z" in " ".join(shown.out.split())) == bool(step)
    report, rng = ColumnReport(column_rule("k", {"kind": "continuous", "bounds": [0, 1000]})), np.random.default_rng(1)
    report.add(rng.integers(200, size=200).astype(float))  # 200 labels in 200 records: about 126 differ
    assert report.tied
    report.add(rng.uniform(0, 1000, 200))
    assert not report.tied
    assert main(["check", *sites(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert "'z'" in told
    assert 'kind = "categorical"' in told
    assert "'x'" not in told
    assert main(["check", *sites(tmp_path, "step = 1\n")]) == 0
    assert "warning" not in capsys.readouterr().out


def test_json_says_what_the_screen_says(tmp_path, capsys):
    table = write(tmp_path, x=NUMBERS["percentages"])
    assert main(["check", *table, "--json"]) == 2
    said = capsys.readouterr()
    told = json.loads(said.out)
    assert OWNER in told["notice"]
    assert told["columns"]["x"] | {"notes": []} == {
        "kind": "continuous",
        "cells": ROWS,
        "missing": 0,
        "unreadable": ROWS,
        "unknown": 0,
        "outside": 0,
        "parses": False,
        "notes": [],
    }
    assert "percentages" in told["columns"]["x"]["notes"][0]
    assert told["columns"]["k"]["parses"]
    assert not any(f"{i + 10}.25%" in said.out + said.err for i in range(ROWS))
    assert OWNER in said.err


def test_units_are_counted_as_a_query_counts_them(tmp_path, capsys):
    """Whole numbers beyond 2^53 are told apart in both."""
    ids = [2**60 + k for k in range(40)]
    (tmp_path / "t.csv").write_text("id,a\n" + "".join(f"{one},0.5\n" for one in ids))
    pandas = pytest.importorskip("pandas")
    pandas.DataFrame({"id": ids, "a": np.linspace(0.0, 1.0, 40)}).to_parquet(tmp_path / "t.parquet")
    schema = tmp_path / "s.toml"
    schema.write_text('unit = "id"\n[columns.a]\nkind = "continuous"\nbounds = [0, 1]\n')
    for name in ("t.csv", "t.parquet"):
        assert main(["check", str(tmp_path / name), "--schema", str(schema)]) == 0
        assert "a query reads 40 records" in capsys.readouterr().out


@pytest.mark.parametrize("share", [0.3, 0.49])
def test_levels_in_another_letter_case_are_named_below_half_of_the_cells_too(tmp_path, capsys, share):
    rows = 1000
    cells = ["Yes" if place < share * rows else ("yes", "no")[place % 2] for place in range(rows)]
    (tmp_path / "d.csv").write_text("k,m\n" + "".join(f"{cell},{place % 2}\n" for place, cell in enumerate(cells)))
    levels = {"k": '["no", "yes"]', "m": '["0", "1"]'}
    schema = "".join(f'[columns.{name}]\nkind = "binary"\nlevels = {all_of}\n' for name, all_of in levels.items())
    (tmp_path / "s.toml").write_text(schema)
    hint = "look like levels in another letter case: write them as the file does"
    assert f"none of its levels, which {hint}" in refused(tmp_path, capsys, "test", "--x", "k", "--y", "m")
    assert main(["check", str(tmp_path / "d.csv"), "--schema", str(tmp_path / "s.toml")]) == 2
    assert f"they {hint}" in capsys.readouterr().out


def test_a_bound_in_quotes_says_how_a_date_is_written():
    entry = {"kind": "continuous", "date": "%d.%m.%Y", "bounds": ["2020-01-01", "2021-01-01"]}
    with pytest.raises(
        ValueError, match=r"date such as 2024-12-31 without quotes, or a text such as 31\.12\.2024, got"
    ):
        column_rule("t", entry)
    with pytest.raises(ValueError, match=r"date such as 2024-12-31, or a text such as 31\.12\.2024, got 'soon'"):
        column_rule("t", entry | {"bounds": ["soon", "2021-01-01"]})


def test_a_repeated_header_and_a_row_of_units_are_pointed_out_and_cells_of_one_column_are_not(tmp_path, capsys):
    (tmp_path / "s.toml").write_text(SCHEMA)
    rows = [f"0.{i + 10};true;{1 + i % 3}\n" for i in range(ROWS)]
    path, options = tmp_path / "d.csv", ["--schema", str(tmp_path / "s.toml")]

    def notes_of(*more) -> list[str]:
        path.write_text("".join(["x;k;m\n", *rows[:9], *more, *rows[9:]]), encoding="utf-8")
        main(["check", str(path), *options, "--json"])
        return json.loads(capsys.readouterr().out)["notes"]

    assert notes_of("high;true;1\n", "0.5;true;low\n", ";true;\n") == []
    (note,) = notes_of("x;k;m\n", "cm;;points\n")
    assert note.startswith("2 rows hold text in every column of numbers")
    main(["check", str(path), *options, "--columns", "x"])
    assert "every column of numbers" not in capsys.readouterr().out
