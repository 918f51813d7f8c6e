"""Arrow's reader of plain CSV files against Python's: the same codes, the same counts, or the same sentence."""

import itertools
import random

import numpy as np
import pytest

import jaxdp
from jaxdp.data import arrow_csv, parse_report, readers, texts

pa = pytest.importorskip("pyarrow")

SCHEMA = jaxdp.Schema.from_dict(
    {
        "columns": {
            "a": {"kind": "continuous", "bounds": [-10, 10]},
            "b": {"kind": "categorical", "levels": ["no", "yes", "é"], "other": "yes"},
            "c": {"kind": "ordinal", "levels": [1, 2, 3]},
            "d": {"kind": "continuous", "bounds": [0, 2000], "decimal": ",", "thousands": "."},
        }
    }
)
NUMBERS = [
    "1",
    "-1",
    "0.5",
    ".5",
    "5.",
    "+5",
    "1e3",
    "1E-3",
    "1e400",
    "-1e400",
    "1e-400",
    "4.9e-324",
    "1_000",
    "0x10",
    "inf",
    "-inf",
    "Infinity",
    "nan",
    "NaN",
    "nan(7)",
    "-nan",
    "1,5",
    "--1",
    "1e",
    "1e+",
    ".",
    "-",
    "0.1000000000000000055511151231257827",
    "9007199254740993",
    "1.7976931348623159e308",
    "١٢",
    "1\xa0",
    "true",
    "1d0",
]
NUMBERS += ["", " 2 ", "2 ", "\t3", "a b", "1" * 400, "0." + "0" * 300 + "1e300"]
LEVELS = ["no", "yes", "é", " no", "NO", "", "na", "nan", "1", "2.0", "zz", "N/A"]
LINES = {
    "quote": '"1",no,1,2',
    "open quote": '1,"no,1,2',
    "empty": "",
    "few": "1,no",
    "many": "1,no,1,2,3",
    "spaces": "  ",
    "return": "1,no\r,1,2",
    "separator": "1,no\u2028,1,2\x0b\x0c\x1c",
    "nul": "1,no\0,1,2",
    "long": "1," + "x" * 140_000 + ",1,2",
    "longer than a stretch": "1," + "x" * 70_000 + ",1,2",
    "text": "x,y,z,w",
}


def outcome(path, monkeypatch, arrow):
    """Codes and counts by one of the readers, or the error's text."""
    monkeypatch.setattr(arrow_csv, "MIN_BYTES", 0)
    monkeypatch.setattr(arrow_csv.serves, "__defaults__", (0 if arrow else 1 << 60,))
    counts = parse_report.ParseReport()
    try:
        values, _ = SCHEMA.read_table(path, report=counts)
    except (ValueError, OSError) as error:
        return type(error), str(error)
    columns = {name: (c.cells, c.missing, c.unreadable, c.unknown, c.outside) for name, c in counts.columns.items()}
    return values, columns, +counts.faults


def assert_same(path, monkeypatch):
    one, other = (outcome(path, monkeypatch, arrow) for arrow in (True, False))
    assert len(one) == len(other), (one, other)
    if len(one) == 3:
        np.testing.assert_array_equal(one[0], other[0])
    assert one[-2:] == other[-2:]


HEADERS = [
    '"a","b","c","d"',
    '"a",b,"c",d',
    'a,"b",c,d',
    '"a","b","c","d',
    'a","b,c,d',
    '"a\n","b","c","d"',
    '"a,b",b,c,d',
]


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_headers_with_quotes(tmp_path, monkeypatch, header, end):
    path = tmp_path / "t.csv"
    path.write_bytes(end.join([header, *["1,no,1,2", "2,yes,2,3"] * 40, ""]).encode())
    assert_same(path, monkeypatch)


def test_a_quoted_header_goes_the_fast_way(tmp_path):
    (tmp_path / "t.csv").write_text('"a","b"\n1,no\n')
    (tmp_path / "u.csv").write_text('"a","b"\n1,"no"\n')
    assert arrow_csv.serves(tmp_path / "t.csv", ",", 0)
    assert not arrow_csv.serves(tmp_path / "u.csv", ",", 0)


def random_file(seed):
    """Bytes of a file of odd cells; some have lines or bytes that Arrow and Python may read in two ways."""
    draw = random.Random(seed)
    rows = [
        ",".join([draw.choice(NUMBERS).replace(",", ""), draw.choice(LEVELS), draw.choice(NUMBERS[:7]), "1.000"])
        for _ in range(draw.choice([1, 3, 40, 3000]))
    ]
    for _ in range(draw.choice([0, 0, 1, 2])):
        rows[draw.randrange(len(rows))] = draw.choice(list(LINES.values()))
    end = draw.choice(["\n", "\n", "\r\n", "\r"])
    text = end.join(["a,b,c,d", *rows]) + draw.choice(["", end, end + end])
    content = text.encode()
    if draw.random() < 0.1:
        place = draw.randrange(len(content))
        content = content[:place] + draw.choice([b"\xff", b"\xc3", b"\xed\xa0\x80", b"\r", b"\n"]) + content[place:]
    return draw.choice([b"", b"", b"\xef\xbb\xbf", b"\n"]) + content


@pytest.mark.parametrize("seeds", [range(0, 60)], ids=str)
def test_adversarial_files_read_alike(tmp_path, monkeypatch, seeds):
    for seed in seeds:
        path = tmp_path / f"{seed}.csv"
        path.write_bytes(random_file(seed))
        assert_same(path, monkeypatch)


@pytest.mark.full
def test_many_adversarial_files_read_alike(tmp_path, monkeypatch):
    test_adversarial_files_read_alike(tmp_path, monkeypatch, range(60, 400))


@pytest.mark.parametrize("kind", LINES)
@pytest.mark.parametrize("place", [0, 2, 3000])
def test_one_odd_line_anywhere(tmp_path, monkeypatch, kind, place):
    rows = ["1,no,1,2"] * 3001
    rows[place] = LINES[kind]
    path = tmp_path / "t.csv"
    path.write_bytes("\n".join(["a,b,c,d", *rows, ""]).encode())
    assert_same(path, monkeypatch)


def test_where_arrow_gives_up_no_row_is_lost_or_read_twice(tmp_path, monkeypatch):
    """A ragged row in a late block: the rows before it come from Arrow, the error from Python."""
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["a,b,c,d", *(f"{k % 10},no,1,2" for k in range(5000)), "1,no", ""]))
    monkeypatch.setattr(arrow_csv, "BLOCK_BYTES", 1 << 12)
    assert_same(path, monkeypatch)
    monkeypatch.setattr(readers, "_require_width", lambda *a: None)

    def broken(*args):
        yield from itertools.islice(real(*args), 3)
        raise pa.ArrowInvalid("as if")

    real = arrow_csv.pieces
    path.write_text("\n".join(["a,b,c,d", *(f"{k % 10},no,1,2" for k in range(5000)), ""]))
    monkeypatch.setattr(arrow_csv, "pieces", broken)
    monkeypatch.setattr(arrow_csv.serves, "__defaults__", (0,))
    values, _ = SCHEMA.read_table(path)
    np.testing.assert_allclose(values[:, 0], np.arange(5000) % 10 / 10)


def test_the_fast_way_is_taken(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,no\n2,yes\n")
    assert arrow_csv.serves(path, ",", 0)
    assert not arrow_csv.serves(path, ",")
    (piece,) = readers.pieces(path, ["b", "a"])
    assert isinstance(piece["a"], list)
    monkeypatch.setattr(arrow_csv.serves, "__defaults__", (0,))
    (piece,) = readers.pieces(path, ["b", "a"])
    assert isinstance(piece["a"], texts.TextColumn)
    assert list(piece["b"]) == ["no", "yes"]
    assert "no" not in repr(piece["b"])


def test_numbers_are_those_of_python():
    column = texts.TextColumn(pa.array(NUMBERS))
    wanted = [np.nan if value is None else value for value in map(texts.as_number, NUMBERS)]
    np.testing.assert_array_equal(column.numbers, wanted)
    for text, value in zip(NUMBERS, wanted, strict=True):
        np.testing.assert_array_equal(texts.TextColumn(pa.array([text, "1.5"])).numbers, [value, 1.5], err_msg=text)
