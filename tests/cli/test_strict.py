"""--strict: what one record holds changes neither the charge, nor n, nor the exit code, nor the form of the output."""

import json
import re

import numpy as np
import pytest
import queries
from queries import ROWS, records, write

import jaxdp
from jaxdp import charge
from jaxdp.cli import asking
from jaxdp.cli.main import main
from jaxdp.core import Cost, Relation
from jaxdp.data import lines
from jaxdp.data.schema import Schema

pytest.importorskip("matplotlib")

CODES = {"columns": {"a": {"kind": "binary", "levels": ["no", "yes"]}, "b": {"kind": "ordinal", "levels": [0, 1, 2]}}}
# What an adversary writes in the place of one record.
MALFORMED = {
    "empty line": b"",
    "spaces": b"   ",
    "too few fields": b"no,1",
    "too many fields": b"no,1,0.5,zanzibar,,,,,",
    "open quote": b'no,"1,0.5',
    "open quote at the start": b'"no,1,0.5',
    "text after a quote": b'"no"x,1,0.5',
    "bad byte": b"no\xff\xfe,1,0.5",
    "half of a character": b"no,1,\xe2\x98",
    "NUL": b"n\x00o,1,0.5",
    "carriage return": b"no\r,1,0.5",
    "unknown level": b"zanzibar,1,0.5",
    "huge number": b"no,1," + b"9" * 5000,
    "long field": b"no,1," + b"x" * 200_000,
    "longer than a line may be": b"no,1," + b'"' * (lines.LONGEST_LINE + 1000),
    "byte-order mark": b"\xef\xbb\xbfno,1,0.5",
    "header again": b"a,b,c",
    "UTF-16": "no,1,0.5".encode("utf-16"),
}
PUBLIC = "test of a public column"
COMMANDS = {name: asked.words.split() for name, asked in queries.WRITTEN.items() if "strict" in asked.query.ways}
COMMANDS[PUBLIC] = ["test", "DATA", "--schema", "SCHEMA", "--x", "a", "--y", "a2", "--method", "margin-adaptive"]
FIRST = ("test", "discover", "mic")


def codes(path, **how):
    return Schema.load(path.parent / "s.toml").read_table(path, strict=True, **how)[0]


# --- the reader --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", MALFORMED.values(), ids=MALFORMED)
@pytest.mark.parametrize("place", [0, 7, ROWS - 1])
def test_a_record_changes_its_own_row_only(tmp_path, line, place):
    clean = records()
    expected = codes(write(tmp_path, clean))
    spoiled = codes(write(tmp_path, [*clean[:place], line, *clean[place + 1 :]]))
    assert spoiled.shape == expected.shape == (ROWS, 3)
    others = np.arange(ROWS) != place
    np.testing.assert_array_equal(spoiled[others], expected[others])
    assert codes(write(tmp_path, [line] * 5), records=5).shape == (5, 3)


def test_a_malformed_line_is_a_record_of_empty_cells(tmp_path):
    empty = [0.0, 0.0, -0.5]  # first levels, and 0.25 between 0 and 1
    for name in ("empty line", "too few fields", "open quote", "bad byte", "longer than a line may be"):
        np.testing.assert_array_equal(codes(write(tmp_path, [b"yes,2,1", MALFORMED[name]]))[1], empty)


def test_strict_and_usual_reading_agree_on_well_formed_files(tmp_path):
    path = write(tmp_path, [b'"yes",2,1', b'no,"1","0.5"', b"yes, 0 ,NA"])
    np.testing.assert_array_equal(codes(path), Schema.load(tmp_path / "s.toml").read_table(path)[0])
    windows = tmp_path / "w.csv"
    windows.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    np.testing.assert_array_equal(Schema.load(tmp_path / "s.toml").read_table(windows, strict=True)[0], codes(path))


def test_a_line_break_inside_quotes_makes_two_records(tmp_path):
    path = write(tmp_path, [b'yes,"2\n",1', b"yes,2,1"])
    assert codes(path).shape == (3, 3)
    np.testing.assert_array_equal(codes(path)[2], [1, 2, 1])


@pytest.mark.parametrize("number", [1, ROWS - 1, ROWS, ROWS + 1, 3 * ROWS])
def test_n_is_the_public_number(tmp_path, number):
    expected = codes(write(tmp_path, records()))
    found = codes(tmp_path / "d.csv", records=number)
    assert found.shape == (number, 3)
    np.testing.assert_array_equal(found[:ROWS], expected[:number])
    np.testing.assert_array_equal(found[ROWS:], np.tile([0.0, 0.0, -0.5], (max(0, number - ROWS), 1)))


def test_pieces_of_lines_join(tmp_path, monkeypatch):
    expected = codes(write(tmp_path, records()))
    monkeypatch.setattr(lines, "PIECE_LINES", 7)
    np.testing.assert_array_equal(codes(tmp_path / "d.csv"), expected)
    assert codes(tmp_path / "d.csv", records=10).shape == (10, 3)


def test_files_without_records(tmp_path):
    path = write(tmp_path, [])
    assert codes(path).shape == (0, 3)
    assert codes(path, records=4).shape == (4, 3)
    path.write_bytes(b"a,b,c")  # no line break either
    assert lines.count(path, ["a"]) == 0
    path.write_bytes(b"a,b,c\nyes,1,1")
    assert lines.count(path, ["a"]) == codes(path).shape[0] == 1


def test_tables_in_memory_have_a_public_number_too():
    schema = Schema.from_dict(CODES)
    odd = {"a": ["yes", None, 1 + 2j, ["no"], 10**5000], "b": [1, "x", [2, 3], {}, 2]}
    for number, rows in ((None, 5), (3, 3), (8, 8)):
        values, _ = schema.read_table(odd, strict=True, records=number)
        assert values.shape == (rows, 2)
        np.testing.assert_array_equal(values[:3], [[1, 1], [0, 0], [0, 0]])
    data = schema.read(odd, x="a", y="b", strict=True, records=7)
    assert data.x.shape == data.y.shape == (7,)
    assert schema.read_table({"a": [], "b": []}, strict=True, records=2)[0].shape == (2, 2)
    with pytest.raises(ValueError, match="5 rows and not the 6 that were stated"):
        schema.read_table({"a": ["yes"] * 5, "b": [1] * 5}, records=6)
    for wrong in (0, -1, 2.0, True):
        with pytest.raises(ValueError, match="records must be a whole number"):
            schema.read_table(odd, strict=True, records=wrong)


# --- the commands ------------------------------------------------------------------------------------------------


def words(folder, command):
    """The command line about the files of the folder."""
    paths = {"DATA": str(folder / "d.csv"), "SCHEMA": str(folder / "s.toml")}
    return [paths.get(word, word) for word in COMMANDS[command]]


@pytest.fixture(autouse=True)
def no_lines_by_the_clock(monkeypatch):
    """A line every ten seconds says that a run goes on, on a busy machine and not on a quiet one."""
    monkeypatch.setattr(asking, "EVERY", None)


def run(folder, command, capsys, *more):
    """Exit code, what the ledger says, the printed text without its numbers, n."""
    ledger = folder / "l.db"
    ledger.unlink(missing_ok=True)
    relation = "replace_attribute" if command == PUBLIC else "replace_one"
    jaxdp.Ledger.create(ledger, epsilon=1.0, relation=relation)
    paid = ["--epsilon", "1", "--ledger", str(ledger), "--out", str(folder / "out"), "--overwrite"]
    code = main([*words(folder, command), *paid, "--strict", *more])
    printed = capsys.readouterr()
    rows = [(row.method, row.epsilon, row.columns) for row in jaxdp.Ledger.open(ledger).rows()]
    content = json.loads((folder / "out" / "result.json").read_text()) if code == 0 else {}
    return code, rows, form_of(printed.out), without_estimate(printed.err), content.get("n")


def without_estimate(text):
    """What is told to the owner, without the line that says how long blank records take."""
    return "".join(line for line in text.splitlines(True) if "timed on zeros in place of the records" not in line)


def form_of(text):
    """What is printed, without what a noisy answer may change: the labels of the lines, and the line of the budget.

    The released numbers decide where a long line is broken, and whether the power of a null answer is told.
    """
    lines = text.splitlines()
    labels = [line.split()[0] for line in lines if re.match(r" ? ?\S", line)]
    return [label for label in labels if label != "power"] + [line for line in lines if "budget" in line]


def two_columns(folder, rows, command):
    """The files of a run; tests of a public column get two binary columns, the second of them public."""
    path = write(folder, rows)
    if command == PUBLIC:
        (folder / "s.toml").write_text(queries.SCHEMA_FILE + '[columns.a2]\nkind = "binary"\nlevels = ["no", "yes"]\n')
        lines_of = path.read_bytes().split(b"\n")[:-1]
        extra = [b"a2", *([b"no", b"yes"] * len(rows))[: len(rows)]]
        path.write_bytes(b"".join(line + b"," + more + b"\n" for line, more in zip(lines_of, extra, strict=True)))
    return path


def check_pairs(folder, capsys, command, kinds):
    """Runs the command on a clean file and on one that differs in a record, for each kind."""
    clean = records()
    two_columns(folder, clean, command)
    expected = run(folder, command, capsys)
    code, rows, printed, error, n = expected
    assert (code, n, error) == (0, ROWS, "")
    assert len(rows) == 1
    assert rows[0][1] == pytest.approx(1.0)
    assert any("epsilon=0" in str(line) and "left in l.db" in str(line) for line in printed)
    for kind in kinds:
        two_columns(folder, [*clean[:5], MALFORMED[kind], *clean[6:]], command)
        assert run(folder, command, capsys) == expected, kind


@pytest.mark.parametrize("command", FIRST)
def test_pairs_of_files_that_differ_in_one_record(tmp_path, capsys, command):
    check_pairs(tmp_path, capsys, command, ["empty line", "open quote", "bad byte"])


@pytest.mark.full
@pytest.mark.optimised
@pytest.mark.parametrize("command", sorted(COMMANDS.keys() - set(FIRST)))
def test_pairs_of_files_for_other_queries(tmp_path, capsys, command):
    check_pairs(tmp_path, capsys, command, ["empty line", "open quote", "too many fields"])


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("command", COMMANDS)
def test_pairs_of_files_with_every_kind_of_record(tmp_path, capsys, command):
    check_pairs(tmp_path, capsys, command, MALFORMED)


def test_the_same_records_are_told_to_the_owner_without_strict(tmp_path, capsys):
    clean = records()
    refused = {"too few fields", "too many fields", "open quote", "bad byte", "text after a quote", "UTF-16"}
    for kind in sorted(refused):
        write(tmp_path, [*clean[:5], MALFORMED[kind], *clean[6:]])
        ledger = jaxdp.Ledger.create(tmp_path / f"{kind}.db", epsilon=1.0)
        paid = ["--epsilon", "1", "--ledger", str(ledger.path), "--out", str(tmp_path / "out")]
        assert main([*words(tmp_path, "test"), *paid]) == 2
        said = capsys.readouterr()
        assert "for the owner of the file, not for release" in said.err
        assert "zanzibar" not in said.err
        assert said.out == ""
        assert ledger.rows() == []


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != PUBLIC])
def test_the_charge_comes_before_the_records(tmp_path, capsys, monkeypatch, command):
    write(tmp_path, records())

    def fail(*_, **__):
        raise MemoryError

    monkeypatch.setattr(lines, "pieces", fail)
    code, rows, *_ = run(tmp_path, command, capsys)
    assert code == 1  # a fault of the machine, by which time the charge was made
    assert len(rows) == 1


def test_public_mistakes_are_refused_before_the_charge(tmp_path, capsys):
    for header in (b"", b"a,b,d", b'a,"b,c', b"a,b,c,c", b"a,b,\xff"):
        write(tmp_path, records(), header=header)
        code, rows, _, error, _ = run(tmp_path, "test", capsys)
        assert (code, rows) == (2, [])
        assert error.count("\n") == 1
    write(tmp_path, records())
    assert run(tmp_path, "test", capsys, "--records", "5")[:2] == (
        2,
        [],
    )  # too few for any test, whatever the file holds
    assert run(tmp_path, "test", capsys, "--force")[:2] == (2, [])
    (tmp_path / "d.csv").unlink()
    assert run(tmp_path, "test", capsys)[:2] == (2, [])


def test_no_records_at_all_are_an_answer_too(tmp_path, capsys):
    write(tmp_path, [])
    code, rows, _, _, n = run(tmp_path, "test", capsys, "--records", "40")
    assert (code, len(rows), n) == (0, 1, 40)
    assert run(tmp_path, "test", capsys)[:2] == (2, [])  # n = 0 is public here


def test_an_exhausted_budget_stops_before_the_records(tmp_path, capsys):
    write(tmp_path, records())
    ledger = jaxdp.Ledger.create(tmp_path / "small.db", epsilon=0.5)
    paid = ["--epsilon", "1", "--ledger", str(ledger.path), "--out", str(tmp_path / "out")]
    assert main([*words(tmp_path, "test"), *paid, "--strict"]) == 3
    assert ledger.rows() == []


def test_what_was_asked_is_in_the_ledger(tmp_path, capsys):
    write(tmp_path, records())
    run(tmp_path, "test", capsys)
    (row,) = jaxdp.Ledger.open(tmp_path / "l.db").rows()
    assert (row.columns, row.source, row.result) == ("a ~ b | c", "d.csv", str((tmp_path / "out").resolve()))


def test_a_release_that_is_not_the_charged_one_is_a_fault():
    key, charged = object(), charge.UpToTheCharge(jaxdp.accounting.PureFilter(epsilon=1.0))
    with pytest.raises(charge.Charged):
        charged.charge("m", Cost(epsilon=1.0), key)
    paid = charge.Paid(charged)
    paid.charge("m", Cost(epsilon=1.0), key)
    for method, other in (("n", key), ("m", object())):
        with pytest.raises(RuntimeError, match="not the one"):
            paid.charge(method, Cost(epsilon=1.0), other)
    for cost in (Cost(epsilon=2.0), Cost(epsilon=1.0, relation=Relation.ADD_OR_REMOVE_ONE)):
        with pytest.raises(RuntimeError, match="something else"):
            paid.require(cost)
