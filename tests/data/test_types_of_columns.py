"""No record decides how the others are read: neither by the type of its cell, nor by its length."""

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp.ask.reading import Reading, Selection, Table
from jaxdp.data import batches, streamed
from jaxdp.data.coding import to_text
from jaxdp.data.schema import Schema

CODES = [401, 250, 530, 272, 2**53 + 1, 0] * 20
HASHED = Schema.from_dict({"columns": {"icd": {"kind": "categorical", "levels": "hashed:64"}}})
NAMED = {"kind": "categorical", "levels": ["401", "250", "530", "other"], "missing": "other", "other": "other"}
FRAMES = {
    "lists": lambda cells: {"icd": cells},
    "tuples": lambda cells: {"icd": tuple(cells)},
    "pandas": lambda cells: pytest.importorskip("pandas").DataFrame({"icd": cells}),
    "polars": lambda cells: pytest.importorskip("polars").DataFrame({"icd": cells}, strict=False),
    "pyarrow": lambda cells: pytest.importorskip("pyarrow").table(
        {"icd": pytest.importorskip("pandas").Series(cells).convert_dtypes(convert_floating=False)}
    ),
}


def codes(source, schema=HASHED):
    return schema.read_table(source, ["icd"])[0][:, 0]


@pytest.mark.parametrize("odd", [None, 1.5, float("nan"), "401x", True])
@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("schema", [HASHED, Schema.from_dict({"columns": {"icd": NAMED}})])
def test_an_odd_cell_changes_the_level_of_its_own_record_alone(kind, odd, schema):
    """One empty cell turned "401" into "401.0" in all records, and so their cells of a hash: epsilon was not true."""
    if kind in ("polars", "pyarrow") and isinstance(odd, str | bool):
        pytest.skip("such tables have one type a column")
    whole, other = codes(FRAMES[kind](CODES), schema), codes(FRAMES[kind]([*CODES[:-1], odd]), schema)
    np.testing.assert_array_equal(whole[:-1], other[:-1])


@pytest.mark.parametrize("odd", [None, 1.5])
def test_an_odd_cell_changes_the_texts_that_a_draft_may_release_in_its_own_record_alone(odd):
    pandas = pytest.importorskip("pandas")
    found = [
        jaxdp.draft_schema(pandas.DataFrame({"icd": cells}), levels_of=["icd"], epsilon=50.0, delta=1e-3)
        for cells in ([*CODES[:-1], 401], [*CODES[:-1], odd])
    ]
    first, second = (set(drafted.columns["icd"]["levels"]) for drafted in found)
    assert {"401", "250", "530", "272"} <= first & second


TEXTS = {
    "401": (401, 401.0, np.int64(401), np.float32(401.0)),
    "0": (0, -0.0),
    "0.5": (0.5,),
    "1.0": ("1.0",),
    "True": (True,),
    "inf": (float("inf"),),
    str(2**53): (2**53 + 1, float(2**53 + 1)),
    "": (None, float("nan"), 10**400),
}


@pytest.mark.parametrize(("cell", "text"), [(cell, text) for text, cells in TEXTS.items() for cell in cells])
def test_texts_of_numbers(cell, text):
    assert to_text(cell) == text


@pytest.mark.parametrize("levels", [["1", "2"], ["1.0", "2.0"]])
@pytest.mark.parametrize("cells", [[1, 2, 1], [1.0, 2.0, 1.0], [1, 2.0, None]])
def test_numbers_match_levels_that_are_texts_in_either_notation(levels, cells):
    schema = Schema.from_dict({"columns": {"icd": {"kind": "binary", "levels": levels, "missing": levels[0]}}})
    np.testing.assert_array_equal(codes({"icd": cells}, schema), [0.0, 1.0, 0.0])


def test_excel_cells_are_read_each_by_itself(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    found = []
    for name, odd in (("a.xlsx", 401), ("b.xlsx", 1.5)):
        book = openpyxl.Workbook()
        for cell in ("icd", *CODES[:50], odd):
            book.active.append([cell])
        book.save(tmp_path / name)
        found.append(codes(str(tmp_path / name)))
    np.testing.assert_array_equal(found[0][:-1], found[1][:-1])


def test_ids_that_a_table_has_rounded_are_refused_and_whole_ones_are_told_apart():
    pandas = pytest.importorskip("pandas")
    schema = Schema.from_dict({"unit": "id", "columns": {"a": {"kind": "continuous", "bounds": [0, 1]}}})
    ids = [2**60 + k for k in range(40)]
    table = pandas.DataFrame({"id": np.array(ids), "a": np.linspace(0.0, 1.0, 40)})
    assert len(schema.read_table(table, ["a"])[0]) == 40
    gap = pandas.DataFrame({"id": [*ids[:-1], None], "a": np.linspace(0.0, 1.0, 40)})
    with pytest.raises(ValueError, match=r"'id' of the privacy unit .* beyond 2\^53, .* give them as texts"):
        jaxdp.test(gap.assign(b=0.5), x="a", y="b", epsilon=1.0, schema={"unit": "id", "columns": {
            name: {"kind": "continuous", "bounds": [0, 1]} for name in ("a", "b")}})  # fmt: skip


TEXTS_IN_QUERIES = (
    *("'d.csv'", "read_csv('d.txt')", "'x/*.tsv'", "read_json('d.ndjson')", "'d.csv.gz'"),
    "read_csv('d.csv', types = {'x': 'INTEGER'})",  # of other columns the records decide
)


@pytest.mark.parametrize("table", TEXTS_IN_QUERIES)
def test_a_query_of_text_files_says_the_types_of_their_columns(table):
    pytest.importorskip("duckdb")
    with pytest.raises(ValueError, match="must say the types of their columns"):
        batches.of(f"duckdb:select * from {table}")


def test_a_query_whose_types_are_said_is_read(tmp_path):
    pytest.importorskip("duckdb")
    (tmp_path / "d.csv").write_text("icd\n" + "".join(f"{code:05d}.0\n" for code in CODES))
    query = f"duckdb:select * from read_csv('{tmp_path}/d.csv', all_varchar = true)"
    np.testing.assert_array_equal(codes(query), codes(str(tmp_path / "d.csv")))


def text_of(path, rows: int, long: int = 1, lines: int = 0) -> str:
    middle = f'"{"n" * long}{chr(10) * lines}"'
    path.write_text("x,y,note\n" + "1,2,n\n" * (rows // 2) + f"1,2,{middle}\n" + "1,2,n\n" * (rows - rows // 2 - 1))
    return str(path)


@pytest.mark.parametrize("form", [{"long": 25_000}, {"lines": 5_000}])
@pytest.mark.parametrize("strict", [False, True])
def test_a_long_record_does_not_decide_whether_a_table_fits_into_memory(tmp_path, form, strict):
    """By the size of the file and its first lines it did, and with it on the method that was run."""
    rows = 20_000
    if strict and "lines" in form:
        pytest.skip("each line is a record")
    schema = Schema.from_dict({"columns": {name: {"kind": "continuous", "bounds": [0, 9]} for name in ("x", "y")}})
    paths = text_of(tmp_path / "a.csv", rows), text_of(tmp_path / "b.csv", rows, **form)
    assert [streamed.rows_of(path, strict=strict) for path in paths] == [rows, rows]
    for most in (rows - 1, rows):
        selections = [Selection(Table(path, schema, Reading(strict=strict)), ("x", "y")) for path in paths]
        expected = None if most == rows else "refused" if strict else rows
        assert [outcome(selection, most) for selection in selections] == [expected] * 2


def outcome(selection, most: int):
    """What becomes of a table of which a test can hold so many rows."""
    try:
        return selection.rows_beyond(lambda rows: 10**15 * (rows > most))
    except ValueError:
        return "refused"


def test_a_stated_number_of_records_decides_whether_a_table_fits(tmp_path):
    schema = Schema.from_dict({"columns": {name: {"kind": "continuous", "bounds": [0, 9]} for name in ("x", "y")}})
    path = text_of(tmp_path / "a.csv", 20_000)
    for records, fits in ((4_000, True), (6_000, False)):
        selection = Selection(Table(path, schema, Reading(records=records)), ("x", "y"))
        assert (selection.rows_beyond(lambda rows: 10**15 * (rows > 5_000)) is None) == fits


@pytest.mark.parametrize("levels", [["0", "1"], ["0.0", "1.0"]])
def test_a_report_for_the_owner_reads_levels_as_a_query_does(levels):
    table = {name: np.random.default_rng(seed).integers(0, 2, 400) for seed, name in enumerate("ab")}
    schema = {"columns": {name: {"kind": "binary", "levels": levels} for name in table}}
    answers = [
        jaxdp.test(table, schema=schema, x="a", y="b", epsilon=1.0, key=jax.random.key(0), strict=strict)
        for strict in (False, True)
    ]
    assert answers[0].p_value == answers[1].p_value
