"""Files of every kind give the arrays of the CSV; one record per unit; drafts know the header alone."""

import gzip
import json

import jax
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import jaxdp
from jaxdp.cli.main import main
from jaxdp.data.draft import draft
from jaxdp.data.schema import Schema
from jaxdp.data.units import Units

SCHEMA = {
    "columns": {
        "dose, mg": {"kind": "continuous", "bounds": [0, 10]},
        "seen": {"kind": "continuous", "bounds": ["2024-01-01", "2024-12-31"], "date": True},
        "smoker": {"kind": "binary", "boolean": True},
        "clinic": {"kind": "categorical", "levels": ["north", "south", "west"]},
    }
}
NAMES = list(SCHEMA["columns"])


def table(n=40):
    random = np.random.default_rng(8)
    days = np.datetime64("2024-01-01") + random.integers(0, 365, n)
    return pd.DataFrame(
        {
            "dose, mg": random.uniform(0, 10, n).round(6),
            "seen": days.astype("datetime64[ns]"),
            "smoker": random.random(n) < 0.5,
            "clinic": random.choice(["north", "south", "west"], n),
        }
    )


def write(folder, kind):
    """The table as a file of this kind; returns its path."""
    frame, path = table(), folder / f"d{kind}"
    typed = pa.Table.from_pandas(frame, preserve_index=False)
    if kind == ".csv":
        frame.to_csv(path, index=False)
    elif kind == ".csv.gz":
        path.write_bytes(gzip.compress(frame.to_csv(index=False).encode()))
    elif kind == ".parquet":
        pyarrow.parquet.write_table(typed, path)
    elif kind == ".xlsx":
        pytest.importorskip("openpyxl")
        frame.to_excel(path, index=False)
    else:
        pyarrow.feather.write_feather(typed, str(path))
    return path


KINDS = (".csv", ".csv.gz", ".parquet", ".feather", ".arrow", ".xlsx")


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_file_gives_the_same_arrays(tmp_path, kind):
    path = write(tmp_path, kind)
    schema = Schema.from_dict(SCHEMA)
    expected, columns = schema.read_table(table())
    found, same = schema.read_table(path)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert same == columns
    strict, _ = schema.read_table(path, strict=True, records=50)
    np.testing.assert_allclose(strict[:40], expected, atol=1e-12)
    np.testing.assert_array_equal(strict[40:], [[0.0, 0.0, 0.0, 0.0]] * 10)
    with pytest.raises(ValueError, match="nobody"):
        Schema.from_dict({"columns": {"nobody": SCHEMA["columns"]["smoker"]}}).read_table(path)


@pytest.mark.parametrize("kind", [".csv.gz", ".parquet", ".feather", ".xlsx"])
def test_a_file_that_is_not_what_its_name_says(tmp_path, kind):
    if kind == ".xlsx":
        pytest.importorskip("openpyxl")
    (tmp_path / f"d{kind}").write_text("dose\n0.123454321\n")
    with pytest.raises(ValueError, match=r"gzip file|cannot be read as what its name says") as refused:
        Schema.from_dict(SCHEMA).read_table(tmp_path / f"d{kind}", ["smoker"])
    assert "12345" not in str(refused.value)
    with pytest.raises(FileNotFoundError):
        Schema.from_dict(SCHEMA).read_table(tmp_path / f"absent{kind}", ["smoker"])


@pytest.mark.parametrize("kind", [".csv", ".parquet"])
@pytest.mark.parametrize("strict", [[], ["--strict", "--records", "40"]])
def test_commands_take_typed_files_and_names_with_commas(tmp_path, kind, strict):
    path = write(tmp_path, kind)
    (tmp_path / "s.json").write_text(json.dumps(SCHEMA, default=str))
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=1.0)
    command = ["test", str(path), "--schema", str(tmp_path / "s.json"), "--x", "dose, mg", "--y", "smoker", *strict]
    assert main([*command, "--epsilon", "1", "--ledger", str(ledger.path), "--out", str(tmp_path / "out")]) == 0
    written = json.loads((tmp_path / "out" / "result.json").read_text())
    assert (written["x"], written["n"], len(ledger.rows())) == (["dose, mg"], 40, 1)


def units(rows):
    """A table with several rows a person, from (id, value) pairs."""
    ids, values = zip(*rows, strict=True)
    return {"person": list(ids), "v": list(values), "w": [0.0] * len(ids)}


UNITS = {"unit": "person", "columns": {name: {"kind": "continuous", "bounds": [0, 100]} for name in ("v", "w")}}


def values(schema, source, **how):
    """The values of v, back on their own scale."""
    return (schema.read_table(source, **how)[0][:, 0] * 50 + 50).round(9).tolist()


def test_one_record_per_unit_and_a_replaced_person_moves_one_record():
    schema = Schema.from_dict({**UNITS, "rows": "first"})
    rows = [("b", 1.0), ("a", 2.0), ("b", 3.0), ("c", 4.0), ("a", 5.0)]
    assert values(schema, units(rows)) == [2.0, 1.0, 4.0]
    for other in ([("b", 9.0)], [("b", 9.0)] * 7):  # all rows of b replaced, by fewer and by more
        neighbour = units([row for row in rows if row[0] != "b"] + other)
        found = values(schema, neighbour)
        assert [found[0], found[2]] == [2.0, 4.0]
        assert found[1] == 9.0
    assert sorted(values(schema, units([(f"z{row[0]}" if row[0] == "b" else row[0], row[1]) for row in rows]))) == [
        1.0,
        2.0,
        4.0,
    ]
    many = units([(str(i), i / 10) for i in range(200)])
    assert values(schema, many, shuffled=True) != values(schema, many, shuffled=True)
    assert sorted(values(schema, many, shuffled=True)) == sorted(many["v"])
    with pytest.raises(ValueError, match="cannot be combined with strict"):
        schema.read_table(many, strict=True)
    with pytest.raises(TypeError, match="unit must be the name"):
        Schema.from_dict({**UNITS, "unit": 3})


def test_units_reach_over_the_pieces_of_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr(jaxdp.data.readers, "PIECE_ROWS", 2)
    (tmp_path / "d.csv").write_text("person,v,w\n" + "".join(f"p{i % 3},{i},0\n" for i in range(11)))
    assert values(Schema.from_dict({**UNITS, "rows": "first"}), tmp_path / "d.csv") == [0.0, 1.0, 2.0]


@pytest.mark.full
def test_answers_say_whose_records_they_protect(monkeypatch):
    orders, make = [], Units.__init__
    monkeypatch.setattr(Units, "__init__", lambda self, hidden=False: orders.append(hidden) or make(self, hidden))
    rows = units([(f"p{i % 60}", float(i % 97)) for i in range(240)])
    rows["w"] = [float(i % 53) for i in range(240)]
    answer = jaxdp.test(rows, x="v", y="w", epsilon=1.0, schema=UNITS)
    assert answer.content["n"] == 60
    assert "One record per person, one of its rows, drawn at random" in repr(answer)
    graph = jaxdp.discover(rows, epsilon=1.0, schema=UNITS)
    assert "One record per person" in graph.note
    assert orders == [True, True]  # releases: a random order, so that ids are protected as well
    jaxdp.test(rows, x="v", y="w", epsilon=1.0, schema=UNITS, key=jax.random.key(1))
    assert orders[2:] == [False]  # simulations are repeatable


def test_a_draft_knows_the_header_alone(tmp_path, capsys):
    (tmp_path / "d.csv").write_text("patient_id;Alter;dose, mg;seen_date;share\n1;55,5;8,25;2024-05-06;31 %\n", "utf-8")
    text = draft(tmp_path / "d.csv")
    assert '[columns."dose, mg"]' in text
    assert 'delimiter = ";"' in text
    for hint in ('unit = "patient_id"', "decimal = ", "date = true", "percent = true"):
        assert hint in text
    for value in ("55", "8,25", "2024-05-06", "31 %"):
        assert value not in text
    assert main(["schema", "draft", str(tmp_path / "d.csv"), "--out", str(tmp_path / "s.toml")]) == 0
    assert (tmp_path / "s.toml").read_text() == text
    assert main(["schema", "draft", str(tmp_path / "d.csv"), "--out", str(tmp_path / "s.toml")]) == 2
    with pytest.raises(ValueError, match="kind must be one of"):
        Schema.load(tmp_path / "s.toml")
    capsys.readouterr()
    filled = text.replace('kind = "TODO"', 'kind = "continuous"').replace('"TODO"', "[0, 1]")
    (tmp_path / "f.toml").write_text(filled)
    assert set(Schema.load(tmp_path / "f.toml").names) == {"patient_id", "Alter", "dose, mg", "seen_date", "share"}


def test_a_draft_of_a_typed_file_knows_its_types(tmp_path):
    text = draft(write(tmp_path, ".parquet"))
    assert text.count('kind = "continuous"') == 2
    assert "date = true" in text
    assert 'kind = "binary"\nboolean = true' in text
    assert "north" not in text


def test_a_draft_of_a_quoted_header_and_of_row_names(tmp_path):
    """R quotes every name, and R and pandas leave the column of row names without one."""
    for header, names in (
        ('"a","b"', ["a", "b"]),
        ('"","a","b, c"', ["a", "b, c"]),
        (",a,b", ["a", "b"]),
        ('"a; b";"c"', ["a; b", "c"]),
    ):
        (tmp_path / "d.csv").write_text(f"{header}\n")
        text = draft(tmp_path / "d.csv")
        assert [line for line in text.splitlines() if line.startswith("[")] == [
            f"[columns.{name}]" if name.isalnum() else f'[columns."{name}"]' for name in names
        ]
        assert ("first column has no name" in text) == header.startswith((",", '""'))
        assert "choose one of the two lines" in text
        assert 'levels = ["north", "south"]' in text


@pytest.mark.parametrize("line", ["a,0.123454321,c", "a,,c", "a,a,b", "x" * 300, ""])
def test_a_first_line_that_may_be_a_record_is_not_written_down(tmp_path, line, capsys):
    (tmp_path / "d.csv").write_text(f"{line}\n1,2,3\n")
    assert main(["schema", "draft", str(tmp_path / "d.csv")]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "12345" not in said.err


def test_check_shows_how_values_crowd_in_their_bounds(tmp_path, capsys):
    days = np.random.default_rng(8).exponential(20, 500).clip(1, 365)
    (tmp_path / "d.csv").write_text("age,u\n" + "".join(f"{day},{place / 500}\n" for place, day in enumerate(days)))
    columns = {"age": {"kind": "continuous", "bounds": [1, 365]}, "u": {"kind": "continuous", "bounds": [0, 1]}}
    (tmp_path / "s.json").write_text(json.dumps({"columns": columns}))
    assert main(["check", str(tmp_path / "d.csv"), "--schema", str(tmp_path / "s.json")]) == 0
    shown = capsys.readouterr().out
    assert "nine in ten values of 'age' lie within" in shown
    assert "values of 'u' crowd" not in shown
    columns["age"]["scale"] = "log"
    (tmp_path / "s.json").write_text(json.dumps({"columns": columns}))
    assert main(["check", str(tmp_path / "d.csv"), "--schema", str(tmp_path / "s.json")]) == 0
    assert "lie within" not in capsys.readouterr().out


def test_dates_in_another_format_than_the_schema_says_are_told_so(tmp_path, capsys):
    (tmp_path / "d.csv").write_text("a\n" + "".join(f"01/{10 + i}/2024\n" for i in range(20)))
    for date, said in ((True, "2024-12-31"), ("%d.%m.%Y", "%d.%m.%Y")):
        column = {"kind": "continuous", "bounds": ["2024-01-01", "2024-12-31"], "date": date}
        column["bounds"] = column["bounds"] if date is True else ["01.01.2024", "31.12.2024"]
        (tmp_path / "s.json").write_text(json.dumps({"columns": {"a": column}}))
        assert main(["check", str(tmp_path / "d.csv"), "--schema", str(tmp_path / "s.json")]) == 2
        told = capsys.readouterr().err
        assert f"not as the schema says, {said}: write their own format" in told
        assert "date = true" not in told


@pytest.mark.parametrize(
    ("column", "cell", "way_out"),
    [
        ({"kind": "continuous", "bounds": [0, 100]}, "{},5", 'write decimal = ","'),
        ({"kind": "continuous", "bounds": [0, 9e6]}, "{},000", 'write thousands = ","'),
        ({"kind": "continuous", "bounds": [0, 100]}, "{} %", "write percent = true"),
        ({"kind": "continuous", "bounds": [0, 100]}, "2024-01-{}", "write date = true"),
        ({"kind": "binary", "levels": ["no", "yes"]}, "True", "write boolean = true"),
    ],
)
def test_the_way_out_of_another_notation_is_a_key_of_the_schema(tmp_path, capsys, column, cell, way_out):
    (tmp_path / "d.csv").write_text("a\n" + "".join(f'"{cell.format(10 + i)}"\n' for i in range(20)))
    (tmp_path / "s.json").write_text(json.dumps({"columns": {"a": column}}))
    command = ["check", str(tmp_path / "d.csv"), "--schema", str(tmp_path / "s.json")]
    assert main(command) == 2
    assert way_out in capsys.readouterr().err
    key, _, value = way_out.removeprefix("write ").partition(" = ")
    column = {**column, key: json.loads(value)}
    column = {**column, "bounds": ["2024-01-01", "2024-12-31"]} if key == "date" else column
    if key == "boolean":
        column = {"kind": "binary", "boolean": True}
    (tmp_path / "s.json").write_text(json.dumps({"columns": {"a": column}}))
    assert main(command) == 0


@pytest.mark.filterwarnings("error:Cell")
def test_a_row_of_excel_without_a_value_is_a_record_if_strict_and_told_otherwise(tmp_path, capfd):
    """Cells that are no dates are quoted by no warning."""
    openpyxl = pytest.importorskip("openpyxl")
    book, rows = openpyxl.Workbook(), 60
    book.active.append(["x", "y"])
    for place in range(rows):
        book.active.append([None, None] if place == 20 else [place % 7, place % 5])
    book.active["A7"] = 98765432109
    book.active["A7"].number_format = "yyyy-mm-dd"
    path = tmp_path / "d.xlsx"
    book.save(path)
    schema = {"columns": {name: {"kind": "continuous", "bounds": [0, 7]} for name in "xy"}}

    def size(**how):
        asked = {"x": "x", "y": "y", "schema": schema, "epsilon": 1.0, "key": jax.random.key(0)}
        return jaxdp.test(path, **asked, **how).to_dict()["n"]

    assert size(strict=True) == size(strict=True, records=rows) == rows
    assert capfd.readouterr().err == ""
    assert size() == rows - 1
    assert "1 empty lines were passed over (for the owner" in capfd.readouterr().err


def test_a_cell_that_excel_shows_in_percent_is_what_is_shown(tmp_path):
    """Excel holds 54 % as .54, which in a column of percent was 100 times too small, and its difference equivalent."""
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    forms = ("0.0%", "0%;[Red]-0%", "General", '0.0"%"', "0\\%", "0%")
    cells = (0.54, 0.07, 54, 7.5, 3, "12%")
    book.active.append(["s"])
    for place, (cell, form) in enumerate(zip(cells, forms, strict=True), start=2):
        book.active.append([cell])
        book.active.cell(row=place, column=1).number_format = form
    book.save(tmp_path / "d.xlsx")
    for entry, wanted in (
        ({"kind": "continuous", "bounds": [0, 100], "percent": True}, [54, 7, 54, 7.5, 3, 12]),
        ({"kind": "continuous", "bounds": [0, 100]}, [0.54, 0.07, 54, 7.5, 3, 50]),  # a fraction; no number is filled
        ({"kind": "ordinal", "levels": [3, 7, 7.5, 12, 54], "percent": True}, [4, 1, 4, 2, 0, 3]),
    ):
        schema = Schema.from_dict({"columns": {"s": entry}})
        for strict in (False, True):
            values, _ = schema.read_table(tmp_path / "d.xlsx", strict=strict)
            shown = values[:, 0] if entry["kind"] == "ordinal" else 50.0 + 50.0 * values[:, 0]
            np.testing.assert_allclose(shown, wanted, rtol=1e-12)
