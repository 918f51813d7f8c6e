"""What a newcomer gets wrong on the way to a first answer: each place says what to write instead."""

import argparse
import csv
import gzip
import json
import tomllib

import jax
import numpy as np
import pandas
import pytest

import jaxdp
from jaxdp.cli import discover
from jaxdp.cli.main import main
from jaxdp.data import files
from jaxdp.data.parse_report import ParseReport
from jaxdp.data.schema import Schema
from jaxdp.plan.setting import Setting


def said(capsys, *words):
    """The one line of a refusal."""
    assert main(list(words)) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    return told


def german(folder):
    """Amounts with points at the thousands and decimal commas, most of them below a thousand."""
    amounts = [f"{number},50" for number in range(100, 130)] + ["1.234,50", "12.345,50"]
    (folder / "d.csv").write_text("betrag;ort\n" + "".join(f"{amount};Nord\n" for amount in amounts), "utf-8")
    (folder / "s.toml").write_text(
        'delimiter = ";"\n[columns.betrag]\nkind = "continuous"\nbounds = [0, 100000]\n'
        '[columns.ort]\nkind = "categorical"\nlevels = ["Nord", "West"]\n',
        "utf-8",
    )
    return str(folder / "d.csv"), "--schema", str(folder / "s.toml")


def test_the_hint_for_a_german_column_names_both_marks(tmp_path, capsys):
    table = german(tmp_path)
    hint = 'write decimal = "," and thousands = "." in the schema'
    assert hint in said(capsys, "check", *table)
    schema = (tmp_path / "s.toml").read_text("utf-8")
    (tmp_path / "s.toml").write_text('decimal = ","\nthousands = "."\n' + schema, "utf-8")
    assert main(["check", *table]) == 0


def test_check_lists_every_column_that_does_not_parse_and_says_so_once(tmp_path, capsys):
    (tmp_path / "d.csv").write_text("a,b\n" + "x,y\n" * 20)
    (tmp_path / "s.toml").write_text("".join(f'[columns.{c}]\nkind = "continuous"\nbounds = [0, 1]\n' for c in "ab"))
    assert main(["check", str(tmp_path / "d.csv"), "--schema", str(tmp_path / "s.toml")]) == 2
    told = capsys.readouterr()
    assert told.out.count("  error: column ") == 2
    assert "(and 1 more, listed above)" in told.err
    assert told.err.count("not for release") == 1


def test_check_says_what_cells_count_as_that_fit_no_level_or_bound():
    schema = Schema.from_dict(
        {
            "columns": {
                "k": {"kind": "categorical", "levels": ["a", "b", "c"], "other": "b"},
                "v": {"kind": "continuous", "bounds": [0, 1]},
            }
        }
    )
    report = ParseReport()
    schema.read_table({"k": ["a"] * 9 + ["z"], "v": [0.1] * 7 + ["?", 2.0, 0.1]}, report=report)
    (unknown,) = report.columns["k"].replaced
    assert unknown.startswith("1 of 10 cells of 'k' hold none of its levels and count as 'b'")
    assert [sentence.split(" cells of ")[0] for sentence in report.columns["v"].replaced] == ["1 of 10", "1 of 10"]
    assert "z" not in unknown.replace("'k'", "")


def test_a_draft_of_columns_that_are_all_alike_is_ready(tmp_path, capsys):
    (tmp_path / "d.csv").write_text("q1,q2\n" + "0,1\n1,0\n" * 10)
    words = ["schema", "draft", str(tmp_path / "d.csv")]
    assert main([*words, "--kind", "binary", "--levels", "0,1", "--out", str(tmp_path / "s.toml")]) == 0
    assert main(["check", str(tmp_path / "d.csv"), "--schema", str(tmp_path / "s.toml")]) == 0
    capsys.readouterr()
    assert "--levels goes with --kind" in said(capsys, *words, "--levels", "0,1")
    assert "kind must be one of" in said(capsys, *words, "--kind", "binry")


@pytest.mark.parametrize(
    ("column", "hint"),
    [
        ('kind = "TODO"', "fill in every TODO"),
        ('kind = "continuous"\nbounds = ["01.01.2024", "31.12.2024"]', 'date = "%d.%m.%Y"'),
    ],
)
def test_a_schema_says_what_to_write(tmp_path, capsys, column, hint):
    (tmp_path / "d.csv").write_text("a\n1\n")
    (tmp_path / "s.toml").write_text(f"[columns.a]\n{column}\n")
    assert hint in said(capsys, "check", str(tmp_path / "d.csv"), "--schema", str(tmp_path / "s.toml"))


def test_commands_say_what_they_need(tmp_path, capsys):
    (tmp_path / "d.csv").write_text("a\n1\n")
    table = [str(tmp_path / "d.csv"), "--schema", "s.toml"]
    assert "jaxdp schema draft" in said(capsys, "test", "d.csv", "--x", "a", "--y", "b", "--epsilon", "1")
    assert "this command reads no data" in said(capsys, "plan", table[0], "--n", "100")
    assert "--columns goes with --all-pairs" in said(capsys, "mic", *table, "--columns", "a,b", "--epsilon", "1")


def test_an_argument_that_is_misspelt_in_python_is_told():
    with pytest.raises(TypeError, match="did you mean 'method'"):
        jaxdp.test({}, x="a", y="b", epsilon=1.0, bounds={"a": (0, 1), "b": (0, 1)}, methd="gcm")


def test_nothing_is_said_about_z_where_there_is_none():
    random = np.random.default_rng(1)
    table = {"a": random.integers(0, 2, 60), "b": random.integers(0, 3, 60)}
    levels = {"a": [0, 1], "b": [0, 1, 2]}
    answer = jaxdp.test(table, x="a", y="b", epsilon=1.0, levels=levels, method="partition-gcm", key=jax.random.key(1))
    assert answer.to_dict()["sees"] == "covariance of X and Y"
    assert "given Z" not in answer._repr_html_() + repr(answer)


def test_a_plan_shows_in_a_notebook():
    row = jaxdp.plan("partition-gcm", n=1000, epsilon=1.0, power=0.8)
    assert row.sentence in row._repr_html_()
    assert "<td>effect</td>" in row._repr_html_()


def in_whole_years():
    """A setting given an age whose values are whole numbers."""
    age = {"kind": "continuous", "bounds": [18, 90], "step": 1}
    number = {"kind": "continuous", "bounds": [0, 1]}
    schema = Schema.from_dict({"columns": {"x": number, "y": number, "age": age}})
    return Setting.of_schema(schema, "x", "y", ["age"])


def test_the_planner_draws_a_column_of_whole_steps_in_whole_steps():
    """Tests that compare records of equal Z would find nothing in made-up data without ties."""
    z = np.asarray(in_whole_years().design(2000, 0.3)(jax.random.key(1)).z)[:, 0]
    assert len(np.unique(z)) == 73
    assert (z.min(), z.max()) == (-1.0, 1.0)
    np.testing.assert_allclose(36.0 * (z + 1.0), np.round(36.0 * (z + 1.0)), atol=1e-4)


@pytest.mark.full
def test_the_default_test_of_a_column_of_whole_steps_is_planned_with_power():
    how = {"setting": in_whole_years(), "replicates": 100}
    with_steps = jaxdp.plan.power("band-gcm", n=1200, epsilon=1.0, effect=0.3, **how)
    assert with_steps > 0.9


def test_a_bare_command_prints_the_help(capsys):
    assert main([]) == 0
    told = capsys.readouterr()
    assert told.out.startswith("usage: jaxdp")
    assert told.err == ""


def test_a_plan_refuses_what_the_test_would_refuse(tmp_path, capsys):
    arguments = ["plan", "--method", "winsorised-partial-correlation", "--effect", "0.25", "--epsilon", "1"]
    told = said(capsys, *arguments, "--n", "300", "--out", str(tmp_path / "p"))
    assert "about 1000 records are needed" in told  # of two columns; three are tested below
    data = Setting().design(300, 0.25, "scores")(jax.random.key(0))
    with pytest.raises(ValueError, match="about 1500 records are needed"):
        jaxdp.run(jaxdp.WinsorisedPartialCorrelation(epsilon=1.0, bound=32.0), jax.random.key(0), data)


@pytest.mark.parametrize("name", ["none.csv", "none.parquet", "none.feather", "none.xlsx", "none.csv.gz"])
def test_a_file_that_is_not_there_is_named(tmp_path, capsys, name):
    told = said(capsys, "schema", "draft", str(tmp_path / name))
    assert told.endswith(f"{name}: no such file or directory\n")


def test_no_plan_is_offered_that_the_planner_refuses():
    rows = np.random.default_rng(0).uniform(-1, 1, (2, 10))
    table, bounds = dict(zip("ab", rows, strict=True)), {"a": (-1, 1), "b": (-1, 1)}
    answer = jaxdp.test(table, x="a", y="b", epsilon=1.0, bounds=bounds, key=jax.random.key(0))
    assert "at least 20 records" in answer.missed()["power"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("command", ["check", "test", "draft"])
def test_a_file_in_utf16_says_how_to_save_it(tmp_path, capsys, encoding, command):
    (tmp_path / "d.csv").write_text("a,b\n" + "0.5,0.25\n" * 20, encoding)
    (tmp_path / "s.toml").write_text("".join(f'[columns.{c}]\nkind = "continuous"\nbounds = [0, 1]\n' for c in "ab"))
    table, schema = str(tmp_path / "d.csv"), ["--schema", str(tmp_path / "s.toml")]
    asked = {
        "check": ["check", table, *schema],
        "test": ["test", table, *schema, "--x", "a", "--y", "b", "--epsilon", "1"],
        "draft": ["schema", "draft", table],
    }
    told = said(capsys, *asked[command])
    assert "is UTF-16, which spreadsheets call Unicode text: save it as CSV in UTF-8" in told
    assert "iconv -f UTF-16 -t UTF-8" in told


def test_a_header_in_another_encoding_is_refused_with_a_way_out(capsys, tmp_path):
    table = tmp_path / "table.csv"
    table.write_bytes("größe,b\n1,2\n".encode("latin-1"))
    (tmp_path / "s.toml").write_text('[columns.b]\nkind = "continuous"\nbounds = [0, 5]\n')
    told = said(capsys, "check", str(table), "--schema", str(tmp_path / "s.toml"))
    assert "save it as CSV in UTF-8, or convert it by `iconv -f latin1 -t UTF-8" in told


def test_a_packed_file_in_utf16_is_refused_too_and_a_short_file_is_none(tmp_path):
    (tmp_path / "d.csv.gz").write_bytes(gzip.compress("a,b\n1,2\n".encode("utf-16")))
    with pytest.raises(ValueError, match="UTF-16"):
        files.opened(tmp_path / "d.csv.gz")
    for start in (b"", b"a", b"\xef\xbb\xbfa\n"):
        (tmp_path / "d.csv").write_bytes(start)
        with files.opened(tmp_path / "d.csv") as file:
            assert file.read() == start


def test_a_value_that_begins_with_a_dash_says_how_it_is_written(capsys):
    rest = ["d.csv", "--schema", "s.toml", "--y", "b", "--epsilon", "1"]
    hint = "; a value that begins with a dash is written"
    assert f"argument --x: expected one argument{hint} --x=-x (see" in said(capsys, "test", *rest, "--x", "-x")
    assert f"{hint} --given=-z (see" in said(capsys, "test", *rest, "--x", "x", "--given", "-z")
    for forgotten in (["--x", "--given", "z"], ["--given", "z", "--x"]):
        assert hint not in said(capsys, "test", *rest, *forgotten)
    told = said(capsys, "test", *rest, "--x", "--seed")
    assert "; a column named --seed is written --x=--seed (see" in told
    assert "is written" not in said(capsys, "test", *rest, "--level", "--seed")


ODD = ("dose\nmg", "y;z", "--epsilon")


@pytest.fixture
def odd(tmp_path):
    """A table whose names hold a line break, a semicolon and the dashes of an option, with its schema."""
    values = np.random.default_rng(0).normal(size=(300, 3)).round(2)
    with (tmp_path / "d.csv").open("w", newline="") as file:
        csv.writer(file).writerows([ODD, *values])
    sections = (f'[columns.{json.dumps(name)}]\nkind = "continuous"\nbounds = [-3, 3]\n' for name in ODD)
    (tmp_path / "s.toml").write_text("".join(sections))
    return [str(tmp_path / "d.csv"), "--schema", str(tmp_path / "s.toml")]


@pytest.mark.parametrize("strict", [[], ["--strict"]])
@pytest.mark.parametrize("name", ['"dose\nmg"', "dose\nmg", "--epsilon"])
def test_columns_with_odd_names_are_tested(odd, name, strict, tmp_path, capsys):
    asked = ["test", *odd, f"--x={name}", "--y", "y;z", "--epsilon", "1", "--seed", "1", *strict]
    assert main([*asked, "--out", str(tmp_path / "out")]) == 0
    assert ("--x=--epsilon --y 'y;z'" in capsys.readouterr().out) == (name == "--epsilon")


def test_a_line_break_in_a_name_of_the_header_is_checked_and_drafted(odd, tmp_path, capsys):
    assert main(["check", *odd]) == 0
    assert main(["schema", "draft", odd[0], "--out", str(tmp_path / "draft.toml")]) == 0
    assert list(tomllib.loads((tmp_path / "draft.toml").read_text())["columns"]) == list(ODD)


def test_a_group_of_columns_may_hold_a_quoted_semicolon():
    assert discover.tiers("a,b; c") == [["a", "b"], ["c"]]
    assert discover.tiers('"y;z",a; "b,c";5" pipe') == [["y;z", "a"], ["b,c"], ['5" pipe']]
    with pytest.raises(argparse.ArgumentTypeError):
        discover.tiers("a;;b")


def test_numbered_columns_of_a_frame_say_how_they_are_renamed():
    frame = pandas.DataFrame(np.zeros((40, 2)))
    way_out = r"df\.columns = df\.columns\.astype\(str\)"
    for names in ((0, 1), ("0", "1")):
        with pytest.raises((TypeError, ValueError), match=way_out):
            jaxdp.test(frame, x=names[0], y=names[1], bounds={"0": (-3, 3), "1": (-3, 3)}, epsilon=1.0)
    with pytest.raises(ValueError, match=r"check the spelling"):
        jaxdp.test(frame.rename(columns=str), x="0", y="2", bounds={"0": (-3, 3), "2": (-3, 3)}, epsilon=1.0)


@pytest.mark.parametrize(
    ("cells", "hint"),
    [
        (["1,5", "2,25", "3,125"], 'decimal comma: write decimal = "," in the schema'),
        (["1,234"] * 40 + ["1,5"], 'thousands separators: write thousands = ","'),
    ],
)
def test_a_comma_before_other_than_three_digits_is_the_decimal_mark(cells, hint):
    schema = {"columns": {name: {"kind": "continuous", "bounds": [0, 9]} for name in "ab"}}
    with pytest.raises(ValueError, match=hint):
        jaxdp.test({"a": cells * 10, "b": [1.0] * 10 * len(cells)}, schema=schema, x="a", y="b", epsilon=1.0)


def test_the_list_of_methods_says_what_each_one_publishes(capsys):
    assert main(["methods"]) == 0
    _, _, row = capsys.readouterr().out.partition("  micr-pairs ")
    assert "publishes a list of coefficients; needs columns" in row.split("\n")[1]


def test_truth_values_beside_other_levels_name_the_key():
    schema = {"a": {"kind": "binary", "levels": ["old", "new"]}, "b": {"kind": "continuous", "bounds": [0, 1]}}
    table = {"a": np.arange(40) % 2 == 0, "b": np.linspace(0, 1, 40)}
    with pytest.raises(ValueError, match=r'truth values: write kind = "binary" and boolean = true in the schema'):
        jaxdp.test(table, schema={"columns": schema}, x="a", y="b", epsilon=1.0, key=jax.random.key(0))
    schema["a"] = {"kind": "binary", "boolean": True}
    assert jaxdp.test(table, schema={"columns": schema}, x="a", y="b", epsilon=1.0, key=jax.random.key(0)).p_value


@pytest.mark.parametrize(
    "words",
    [
        ("test", "d.csv", "--x", "a", "--x", "b", "--y", "c", "--epsilon", "1"),
        ("discover", "d.csv", "--columns", "a,b", "--columns", "c", "--epsilon", "1"),
        ("test", "d.csv", "--x", "a", "--y", "c", "--y=b", "--epsilon", "1"),
    ],
)
def test_columns_that_are_named_in_two_options_are_not_lost(words, capsys):
    assert "is given twice" in said(capsys, *words)
