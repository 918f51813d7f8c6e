"""Readers: one table as CSV file, mapping, pandas, polars and pyarrow gives the same arrays."""

import csv
import time

import numpy as np
import pytest

from jaxdp.data import readers
from jaxdp.data.schema import Schema

SCHEMA = Schema.from_dict(
    {
        "columns": {
            "u": {"kind": "continuous", "bounds": [-3, 3], "missing": 0},
            "k": {"kind": "ordinal", "levels": [0, 1, 2]},
            "c": {"kind": "categorical", "levels": ["a", "b, c", "d"], "missing": "d"},
        }
    }
)
COLUMNS = {
    "u": [0.5, None, -2.25, 1e6, 3.0, -0.125],
    "k": [0, 1, 2, 2, 1, 0],
    "c": ["a", "b, c", None, "d", "a", "zzz"],
}
EXPECTED = SCHEMA.read_table(COLUMNS)[0]


def write_csv(path, columns, delimiter=",", encoding="utf-8", end="\n"):
    with path.open("w", encoding=encoding, newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator=end)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def test_the_mapping_is_read_as_written():
    np.testing.assert_allclose(EXPECTED[:, 0], np.array([0.5, 0.0, -2.25, 3.0, 3.0, -0.125]) / 3.0, atol=1e-15)
    np.testing.assert_array_equal(EXPECTED[:, 1], COLUMNS["k"])
    np.testing.assert_array_equal(EXPECTED[:, 2], [0, 1, 2, 2, 0, 0])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_csv(tmp_path, encoding, end):
    path = write_csv(tmp_path / "t.csv", COLUMNS, encoding=encoding, end=end)
    np.testing.assert_array_equal(SCHEMA.read_table(path)[0], EXPECTED)
    np.testing.assert_array_equal(SCHEMA.read_table(str(path))[0], EXPECTED)


def test_csv_with_other_columns_blank_lines_and_another_order(tmp_path):
    shuffled = {"extra": ["x"] * 6, " c ": COLUMNS["c"], "u": COLUMNS["u"], "k": COLUMNS["k"]}
    path = write_csv(tmp_path / "t.csv", shuffled)
    path.write_text(path.read_text().replace("\n", "\n\n") + "\n\n")
    np.testing.assert_array_equal(SCHEMA.read_table(path)[0], EXPECTED)


def test_csv_with_another_delimiter(tmp_path):
    schema = Schema(SCHEMA.rules, delimiter=";")
    np.testing.assert_array_equal(schema.read_table(write_csv(tmp_path / "t.csv", COLUMNS, ";"))[0], EXPECTED)


def test_pieces_join_seamlessly(tmp_path, monkeypatch):
    monkeypatch.setattr(readers, "PIECE_ROWS", 4)
    path = write_csv(tmp_path / "t.csv", COLUMNS)
    assert len(list(readers.pieces(path, ["u"]))) == 2
    np.testing.assert_array_equal(SCHEMA.read_table(path)[0], EXPECTED)


def frame_of(library):
    module = pytest.importorskip(library)
    return module.table(COLUMNS) if library == "pyarrow" else module.DataFrame(COLUMNS)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames(library):
    np.testing.assert_array_equal(SCHEMA.read_table(frame_of(library))[0], EXPECTED)


def test_dictionary_encoded_columns():
    pandas, polars, pyarrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    frame = pandas.DataFrame(COLUMNS).astype({"c": "category", "k": "Int64"})
    np.testing.assert_array_equal(SCHEMA.read_table(frame)[0], EXPECTED)
    table = pyarrow.table({**COLUMNS, "c": pyarrow.array(COLUMNS["c"]).dictionary_encode()})
    np.testing.assert_array_equal(SCHEMA.read_table(table)[0], EXPECTED)
    categories = polars.DataFrame(COLUMNS).with_columns(polars.col("c").cast(polars.Categorical))
    np.testing.assert_array_equal(SCHEMA.read_table(categories)[0], EXPECTED)


def test_masked_values_are_missing():
    masked = np.ma.masked_array([0.5, 2.0], mask=[False, True])
    np.testing.assert_allclose(SCHEMA.read_table({"u": masked}, ["u"])[0][:, 0], [0.5 / 3.0, 0.0], atol=1e-15)


@pytest.mark.parametrize(
    ("source", "error", "words"),
    [
        ({"u": [1.0]}, ValueError, "'k' is not in the table"),
        ({**COLUMNS, "k": [1]}, ValueError, "differ in length"),
        ({name: [] for name in COLUMNS}, ValueError, "no rows"),
        ({**COLUMNS, "u": np.zeros((6, 2))}, ValueError, "one dimension"),
        ({**COLUMNS, "u": np.zeros(6, "datetime64[s]")}, TypeError, "write date = true"),
        ({**COLUMNS, "u": np.zeros(6, "timedelta64[s]")}, TypeError, "convert it"),
        ({**COLUMNS, "u": np.zeros(6, complex)}, TypeError, "convert it"),
        (np.zeros((6, 3)), TypeError, "must be the path of a data file"),
        (None, TypeError, "must be the path of a data file"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_public_mistakes_raise(source, error, words):
    with pytest.raises(error, match=words):
        SCHEMA.read_table(source)


def test_a_frame_with_a_column_twice_raises():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(np.zeros((3, 4)), columns=["u", "k", "c", "u"])
    with pytest.raises(ValueError, match="2 columns named 'u'"):
        SCHEMA.read_table(frame)


def test_large_files_are_read_in_linear_time(tmp_path):
    rows = 200_000
    lines = [f"{(i % 61) / 10 - 3},{i % 3},a\n" for i in range(6_000)]
    path = tmp_path / "t.csv"
    path.write_text("u,k,c\n" + "".join(lines[i % 6_000] for i in range(rows)))
    on_stage = time.process_time()
    values, _ = SCHEMA.read_table(path)
    elapsed = time.process_time() - on_stage
    assert values.shape == (rows, 3)
    np.testing.assert_array_equal(values[:, 1], np.arange(rows) % 6_000 % 3)
    # 0.3 s of processor time here; a per-cell Python path with a try block takes ten times that.
    assert elapsed < 10.0
