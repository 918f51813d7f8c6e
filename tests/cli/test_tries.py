"""What new users try: each ends in the right answer or in one sentence that says what to do.

The right answer of a file in another notation is that of the plain file, to the last bit, at the same seed.
"""

import contextlib
import functools
import gzip
import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import jaxdp
from jaxdp.cli.main import main
from jaxdp.report import figures
from jaxdp.report.written import reserved

ROWS = 60
PLAIN = {
    "dose": {"kind": "continuous", "bounds": [0, 4000]},
    "response": {"kind": "continuous", "bounds": [0, 4000]},
    "clinic": {"kind": "binary", "levels": ["false", "true"]},
    "ward, floor": {"kind": "binary", "levels": ["a", "b"]},
}


def frame():
    random = np.random.default_rng(8)
    dose = random.integers(0, 4000, ROWS) / 4 + 1500
    flags = random.random((2, ROWS)) < 0.5
    return pd.DataFrame(
        {
            "dose": dose,
            "response": np.clip(dose + random.integers(-80, 80, ROWS), 0, 4000),
            "clinic": np.where(flags[0], "true", "false"),
            "ward, floor": np.where(flags[1], "a", "b"),
        }
    )


def written(folder, table, columns=PLAIN, top=None, name="d.csv", sep=","):
    """The table and its schema as files; the first arguments of a command."""
    path = folder / name
    if name.endswith(".parquet"):
        table.to_parquet(path)
    elif name.endswith(".gz"):
        path.write_bytes(gzip.compress(table.to_csv(index=False).encode()))
    else:
        table.to_csv(path, index=False, sep=sep)
    (folder / "s.json").write_text(json.dumps({**(top or {}), "columns": columns}))
    return [str(path), "--schema", str(folder / "s.json")]


def asked(folder, table, *more, command="test", out="out"):
    """Exit code, and result.json where there is one."""
    code = main([command, *table, *more, "--epsilon", "1", "--out", str(folder / out)])
    result = folder / out / "result.json"
    return code, json.loads(result.read_text()) if result.exists() else None


QUERY = ("--x", "dose", "--y", "response", "--given", "clinic", "--seed", "3")


@functools.cache
def _plain_p_value(folder):
    folder.mkdir(exist_ok=True)
    return asked(folder, written(folder, frame()), *QUERY)[1]["p_value"]


@pytest.fixture
def plain_p_value(tmp_path_factory):
    return _plain_p_value(tmp_path_factory.getbasetemp() / "plain")


def german(numbers):
    """1.234,5 for 1234.5."""
    return numbers.map(lambda number: f"{number:,.2f}".translate(str.maketrans(",.", ".,")))


DAY = np.datetime64("2020-01-01")
DATES = {"kind": "continuous", "date": True, "bounds": ["1970-01-01", "1980-12-14"]}  # 4000 days
NOTATIONS = {
    "German decimals": (lambda t: t.assign(dose=german(t.dose)), {}, {"decimal": ",", "thousands": "."}),
    "thousands": (lambda t: t.assign(dose=t.dose.map("{:,.2f}".format)), {"dose": {"thousands": ","}}, {}),
    "percent": (lambda t: t.assign(dose=t.dose.map("{} %".format)), {"dose": {"percent": True}}, {}),
    "booleans": (
        lambda t: t.assign(clinic=t.clinic.map({"true": "True", "false": "NO"})),
        {"clinic": {"boolean": True, "levels": None}},
        {},
    ),
    "dates": (
        lambda t: t.assign(dose=(np.datetime64("1970-01-01") + (t.dose * 86400).astype("timedelta64[s]")).astype(str)),
        {"dose": DATES},
        {},
    ),
}


def changed(changes):
    """The plain columns with these keys changed; None takes a key away."""
    columns = {name: {**entry, **changes.get(name, {})} for name, entry in PLAIN.items()}
    return {name: {k: v for k, v in entry.items() if v is not None} for name, entry in columns.items()}


@pytest.mark.parametrize("notation", NOTATIONS)
def test_another_notation_gives_the_answer_of_the_plain_file(tmp_path, notation, plain_p_value, capsys):
    change, changes, top = NOTATIONS[notation]
    table, sep = change(frame()), ";" if top else ","
    if top:
        table, top = table.assign(response=german(table.response)), {**top, "delimiter": ";"}
    code, result = asked(tmp_path, written(tmp_path, table, changed(changes), top, sep=sep), *QUERY)
    assert (code, result["p_value"]) == (0, plain_p_value)
    capsys.readouterr()
    # with the schema of the plain file: one sentence, nothing charged
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=1.0)
    delimiter = {"delimiter": sep} if top else {}
    wrong = written(tmp_path, table, PLAIN, delimiter, sep=sep)
    code, result = asked(tmp_path, wrong, *QUERY[:-2], "--ledger", str(ledger.path), out="refused")
    said = capsys.readouterr()
    assert (code, result, said.out, ledger.rows()) == (2, None, "", [])
    assert said.err.count("\n") == 1
    assert "does not parse" in said.err
    assert "write " in said.err or "letter case" in said.err


@pytest.mark.parametrize("name", ["d.parquet", "d.csv.gz"])
def test_another_kind_of_file_gives_the_answer_of_the_plain_file(tmp_path, name, plain_p_value):
    code, result = asked(tmp_path, written(tmp_path, frame(), name=name), *QUERY)
    assert (code, result["p_value"]) == (0, plain_p_value)


@pytest.mark.full
def test_commas_in_names_and_given_twice(tmp_path, capsys):
    table = written(tmp_path, frame())
    query = ("--x", "dose", "--y", "response", "--seed", "3")
    ways = [("--given", "clinic", "--given", "ward, floor"), ("--given", 'clinic,"ward, floor"')]
    found = [asked(tmp_path, table, *query, *way, out=str(i))[1] for i, way in enumerate(ways)]
    assert found[0]["given"] == found[1]["given"] == ["clinic", "ward, floor"]
    assert found[0]["p_value"] == found[1]["p_value"]
    assert asked(tmp_path, table, *query, "--given", "ward, flor", out="x")[0] == 2
    assert "did you mean 'ward, floor'" in capsys.readouterr().err


def test_a_rerun_into_the_same_folder_loses_nothing(tmp_path, capsys, monkeypatch):
    table = written(tmp_path, frame())
    assert asked(tmp_path, table, *QUERY)[0] == 0
    before = (tmp_path / "out" / "result.json").read_bytes()
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=1.0)
    capsys.readouterr()
    assert asked(tmp_path, table, *QUERY[:-2], "--ledger", str(ledger.path))[0] == 2
    said = capsys.readouterr().err
    assert "holds the results of an earlier run" in said
    assert "--overwrite" in said
    assert ((tmp_path / "out" / "result.json").read_bytes(), ledger.rows()) == (before, [])
    assert asked(tmp_path, table, *QUERY[:-1], "4", "--overwrite")[0] == 0
    assert (tmp_path / "out" / "result.json").read_bytes() != before
    monkeypatch.chdir(tmp_path)
    shutil.rmtree(tmp_path / "out")
    for folder in ("out/test", "out/test-2"):
        assert main(["test", *table, *QUERY, "--epsilon", "1"]) == 0
        assert (tmp_path / folder / "result.json").is_file()


def test_two_runs_at_once_share_no_folder(tmp_path, capsys, monkeypatch):
    table = written(tmp_path, frame())
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=1.0)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out" / "test").mkdir(parents=True)
    with reserved(tmp_path / "out" / "test") as ours:
        assert ours
        assert main(["test", *table, *QUERY, "--epsilon", "1"]) == 0
        assert (tmp_path / "out" / "test-2" / "result.json").is_file()
        charged = [*QUERY[:-2], "--epsilon", "1", "--ledger", str(ledger.path), "--out", "out/test"]
        assert main(["test", *table, *charged]) == 2
    assert "another run writes to" in capsys.readouterr().err
    assert ledger.rows() == []
    assert not list((tmp_path / "out" / "test").iterdir())
    assert main(["test", *table, *charged]) == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device")
def test_an_answer_that_the_screen_does_not_take_is_said_to_be_kept(tmp_path, capsys, monkeypatch):
    table = written(tmp_path, frame())
    with open("/dev/full", "w") as full:
        monkeypatch.setattr("sys.stdout", full)
        assert asked(tmp_path, table, *QUERY)[0] == 2
        monkeypatch.undo()
        with contextlib.suppress(OSError):
            full.close()
    assert "the answer is kept in" in capsys.readouterr().err
    assert (tmp_path / "out" / "result.json").is_file()


@pytest.mark.parametrize(
    "cell", ["53,46", "01.02.2021", "2021-02-01", "12%", "$12", "12:30", "anna@example.org", "1 234"]
)
def test_no_draft_copies_a_record(tmp_path, cell, capsys):
    (tmp_path / "d.csv").write_text(f"Bonn;{cell};yes\nKoeln;{cell};no\n")
    assert main(["schema", "draft", str(tmp_path / "d.csv")]) == 2
    shown = capsys.readouterr()
    assert "does not look like names of columns" in shown.err
    assert cell not in shown.out + shown.err


@pytest.mark.parametrize(
    ("header", "told"),
    [
        ("age,weight,age,arm", "number 1 and number 3"),
        (",age,weight,weight", "number 3 and number 4"),  # row names, which have no name
    ],
)
def test_a_draft_says_which_columns_share_a_name(tmp_path, header, told, capsys):
    (tmp_path / "d.csv").write_text(f"{header}\n1,2,3,4\n")
    assert main(["schema", "draft", str(tmp_path / "d.csv")]) == 2
    shown = capsys.readouterr()
    assert f"names two columns alike, {told}: rename one" in shown.err
    assert "weight" not in shown.out + shown.err


def test_lines_that_end_with_carriage_returns_alone_are_named(tmp_path, capsys):
    data, *schema = written(tmp_path, frame())
    text = Path(data).read_bytes().replace(b"\r\n", b"\n").replace(b"\n", b"\r")
    Path(data).write_bytes(text)
    assert main(["check", data, *schema]) == 2
    assert "carriage returns alone" in capsys.readouterr().err


def test_ten_records_are_answered_and_nine_refused(tmp_path, capsys):
    for rows, expected in ((10, 0), (9, 2)):
        code, result = asked(tmp_path, written(tmp_path, frame()[:rows]), *QUERY, out=str(rows))
        assert code == expected
        assert (result is None) == (expected == 2)
    assert "a private test needs at least 10" in capsys.readouterr().err


@pytest.mark.full
@pytest.mark.parametrize("command", ["test", "discover", "mic", "plan"])
def test_no_matplotlib_no_picture_but_an_answer(tmp_path, monkeypatch, capsys, command):
    monkeypatch.setattr(figures, "can_draw", lambda: False)
    table = written(tmp_path, frame())
    query = {
        "test": QUERY,
        "discover": ("--columns", 'clinic,"ward, floor"', "--seed", "3"),
        "mic": ("--x", "dose", "--y", "response", "--seed", "3"),
        "plan": ("--method", "partition-gcm", "--effect", "0.25", "--power", "0.8", "--replicates", "0"),
    }[command]
    assert (
        main([command, *(table if command != "plan" else ()), *query, "--epsilon", "1", "--out", str(tmp_path / "out")])
        == 0
    )
    assert "none without matplotlib" in capsys.readouterr().out
    assert (tmp_path / "out" / "report.html").is_file()
    assert not list((tmp_path / "out").glob("*.png"))


def test_one_line_for_a_data_frame_and_a_notebook(tmp_path, plain_p_value):
    pytest.importorskip("matplotlib")
    import jax

    answer = jaxdp.test(
        frame(), x="dose", y="response", given="clinic", epsilon=1.0, schema={"columns": PLAIN}, key=jax.random.key(3)
    )
    assert answer.p_value == plain_p_value
    assert answer._repr_html_().startswith("<table>")
    assert answer.plot()._repr_png_().startswith(b"\x89PNG")
    session = jaxdp.Session(frame(), schema={"columns": PLAIN}, epsilon=1.0)
    for shown in (session._repr_html_(), repr(session), repr(answer), answer._repr_html_()):
        assert str(frame().dose[0]) not in shown


def test_a_ledger_tells_what_was_asked_and_what_is_left(tmp_path, capsys):
    assert main(["ledger", "create", str(tmp_path / "l.db"), "--epsilon", "2"]) == 0
    code, _ = asked(tmp_path, written(tmp_path, frame()), *QUERY[:-2], "--ledger", str(tmp_path / "l.db"))
    assert code == 0
    assert "budget     epsilon=1, delta=0 left in l.db" in capsys.readouterr().out
    assert main(["ledger", "show", str(tmp_path / "l.db")]) == 0
    shown = capsys.readouterr().out
    assert "dose ~ response | clinic of d.csv" in shown
    assert "remaining" in shown


def test_without_a_ledger_the_answer_says_that_nothing_was_recorded(tmp_path, capsys):
    assert asked(tmp_path, written(tmp_path, frame()), *QUERY[:-2])[0] == 0
    assert "No ledger recorded this spending" in " ".join(capsys.readouterr().out.split())


@pytest.mark.full
def test_a_null_answer_says_what_would_have_been_found(tmp_path, capsys):
    dose = frame().dose.sample(4000, replace=True, random_state=1)
    table = frame().sample(4000, replace=True, random_state=2).assign(dose=dose.to_numpy())
    code, result = asked(tmp_path, written(tmp_path, table), *QUERY)
    assert (code, result["dependence_found"]) == (0, False)
    half = 0.5 * (result["interval"][1] - result["interval"][0])
    assert result["detectable_effect"] == pytest.approx(half * (1.96 + 0.84) / 1.96, rel=0.25)  # on its scale
    assert f"an effect size of {result['detectable_effect']:.3g} or more" in " ".join(capsys.readouterr().out.split())


@pytest.mark.full
def test_json_is_the_result_file(tmp_path, capsys):
    table = written(tmp_path, frame())
    _, result = asked(tmp_path, table, *QUERY, "--json")
    assert json.loads(capsys.readouterr().out) == result
    _, result = asked(
        tmp_path, table, "--columns", "clinic,response", "--seed", "1", "--json", command="discover", out="g"
    )
    assert json.loads(capsys.readouterr().out) == result


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["tset", "d.csv"], "did you mean 'test'? (see jaxdp --help)"),
        (["test", "d.csv", "--schma", "s.toml"], "did you mean --schema? (see jaxdp test --help)"),
        (["test", "d.csv", "--epsilom=1"], "did you mean --epsilon? (see jaxdp test --help)"),
        (["ledger", "shwo", "l.db"], "did you mean 'show'? (see jaxdp ledger --help)"),
        (["discover"], "(see jaxdp discover --help)"),
        (["zzz"], "it must be one of"),
    ],
)
def test_misspelt_commands_and_options_are_told(command, said, capsys):
    assert main(command) == 2
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1


def test_version_is_one_line_without_jax(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"jaxdp {jaxdp.__version__}\n"


def test_colour_is_for_terminals(monkeypatch):
    import io

    from jaxdp.cli.options import RED, coloured

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert coloured("no", RED, io.StringIO()) == "no"
    assert coloured("no", RED, Terminal()) == "\033[31mno\033[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert coloured("no", RED, Terminal()) == "no"


def test_a_graph_of_twenty_columns(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    random = np.random.default_rng(8)
    names = [f"v{k}" for k in range(20)]
    bits = random.random((40_000, 20)) < 0.5
    for k in range(1, 20, 2):  # ten pairs, each a noisy copy
        bits[:, k] = bits[:, k - 1] ^ (random.random(40_000) < 0.02)
    table = pd.DataFrame(np.where(bits, "yes", "no"), columns=names)
    columns = {name: {"kind": "binary", "boolean": True} for name in names}
    more = ("--max-order", "1", "--seed", "3")
    code, result = asked(tmp_path, written(tmp_path, table, columns), *more, command="discover")
    assert code == 0
    graph = json.loads((tmp_path / "out" / "graph.json").read_text())
    edges = {frozenset(edge) for edge in graph["directed"] + graph["undirected"]}
    assert {frozenset((f"v{k}", f"v{k + 1}")) for k in range(0, 20, 2)} <= edges
    assert result["n"] == 40_000
    assert (tmp_path / "out" / "graph.png").is_file()
