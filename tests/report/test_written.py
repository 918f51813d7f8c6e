"""`--out` beside one's data: a page shows what its command wrote, and no file of anybody else is shown or lost."""

import base64
import hashlib
import json
import os
import re

import numpy as np
import pytest
import queries

import jaxdp
from jaxdp.cli import demo
from jaxdp.cli.main import main
from jaxdp.report import figures, written
from jaxdp.report.html import rebuild_report, write_report

CANARIES = ("8675309.25", "canary-8675309")
FILES_OF_A_QUERY = {"DATA": "data.csv", "SCHEMA": "s.toml"}
PLAN = ("--epsilon", "1", "--effect", "0.25", "--power", "0.8", "--replicates", "0", "--out", ".")
SMALL = ("--design", "sine", "--n", "50", "--replicates", "20", "--chunk", "20", "--out", ".")
ASKED = {  # whose answers are not overwritten unless that is asked for
    name: (*(FILES_OF_A_QUERY.get(word, word) for word in asked.words.split()), "--epsilon", "1", "--seed", "1")
    for name, asked in queries.WRITTEN.items()
}
COMMANDS = {
    **{name: (*words, "--out", ".") for name, words in ASKED.items()},
    "plan": ("plan", "--method", "partition-gcm", *PLAN),
    "simulate": ("simulate", "--method", "partition-gcm", *SMALL),
    "ledger": ("ledger", "export", "study.db", "--out", "."),
    "demo": ("demo", "--seed", "1", "--out", "."),
    "report": ("report", "."),
}
# what each command writes beside the record; a new query all files of its answer
FILES = {name: set(asked.query.form.files) for name, asked in queries.WRITTEN.items()} | {
    "test": {"result.json", "picture.png", "report.html"},
    "discover": {"graph.json", "result.json", "edges.csv", "graph.dot", "graph.png", "report.html"},
    "mic": {"result.json", "picture.png", "report.html"},
    "mic of all pairs": {"result.json", "matrix.csv", "top_pairs.csv", "heatmap.png", "report.html"},
    "plan": {"plan.json", "power.png", "report.html"},
    "simulate": {"results.csv", "results.parquet", "result.json", "null_p_values.png", "null_qq.png", "report.html"},
    "ledger": {"ledger.csv", "ledger.json", "dp_event.json", "waterfall.png", "report.html"},
    "demo": {"report.html"},
    "report": {"report.html"},
}
LONG = {"mic": pytest.mark.nightly, "mic of all pairs": pytest.mark.nightly, "pairs": pytest.mark.full}
SLOW = ("audit", "bench")  # refused before they begin


def rows():
    spoiled = [f"no,0,{CANARIES[0]}", f"{CANARIES[1]},0,0.5"]
    return "\n".join(["a,b,c", *spoiled, *(line.decode() for line in queries.records())]) + "\n"


@pytest.fixture
def study(tmp_path, monkeypatch):
    """The working folder: data in files and folders of many names, none of which a command writes."""
    monkeypatch.chdir(tmp_path)
    table = rows()
    (tmp_path / "s.toml").write_text(queries.SCHEMA_FILE)
    (tmp_path / "data.csv").write_text(table)
    (tmp_path / "edges_old.csv").write_text(table)
    (tmp_path / "Edges.csv").write_text(table)
    (tmp_path / "notes.json").write_text(json.dumps({"title": CANARIES[1], "answer": CANARIES[0]}))
    (tmp_path / "photo.png").write_bytes(b"\x89PNG" + CANARIES[1].encode())
    for inner in ("more", "data_of_others"):
        (tmp_path / inner).mkdir()
        (tmp_path / inner / "result.json").write_text(json.dumps({"title": CANARIES[1]}))
        (tmp_path / inner / "edges.csv").write_text(table)
        (tmp_path / inner / "results.csv").write_text(table)
    jaxdp.Ledger.create(tmp_path / "study.db", epsilon=9.0).charge("test", jaxdp.Cost(epsilon=0.5), jaxdp.fresh_key())
    return tmp_path


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def small_demo(monkeypatch):
    for name in ("CONTINUOUS_ROWS", "CATEGORICAL_ROWS", "DISCOVERY_ROWS"):
        monkeypatch.setattr(demo, name, 300)


def assert_nothing_of(before, folder):
    """Files that were there are as they were, and no new one holds a canary, encoded pictures included."""
    after = contents(folder)
    for path, content in before.items():
        if path.suffix != ".db":
            assert after[path] == content, path
    for path in after.keys() - before.keys():
        for canary in CANARIES:
            assert canary.encode() not in after[path], path
    pages = [content for path, content in after.items() if path.name == "report.html"]
    for page in pages:
        for name, content in before.items():
            if name.suffix == ".png":
                assert base64.b64encode(content)[:40] not in page
    return after.keys() - before.keys()


@pytest.mark.parametrize("command", [pytest.param(name, marks=LONG.get(name, ())) for name in COMMANDS])
def test_no_page_shows_what_lies_beside_it(command, study, monkeypatch, capsys):
    small_demo(monkeypatch)
    before = contents(study)
    assert main(list(COMMANDS[command])) == 0, capsys.readouterr().err
    made = {str(path) for path in assert_nothing_of(before, study)}
    top = {name for name in made if "/" not in name} - {written.RECORD, "config.json"}
    assert top == FILES[command]
    assert main(["report", "."]) == 0
    assert_nothing_of(before, study)
    printed = capsys.readouterr()
    assert not any(canary in printed.out + printed.err for canary in CANARIES)
    if command in ("discover", "ledger", "report"):  # its own files it replaces
        assert main([*COMMANDS[command], *(["--overwrite"] if command in ASKED else [])]) == 0


def test_the_demo_shows_no_row_of_its_data_and_deletes_no_ledger(tmp_path, monkeypatch):
    small_demo(monkeypatch)
    (tmp_path / "demo-ledger.db").write_text("mine")
    assert main(["demo", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "demo-ledger.db").read_text() == "mine"
    assert jaxdp.Ledger.open(tmp_path / "demo-ledger-2.db").remaining.epsilon == pytest.approx(0.0, abs=1e-9)
    page = (tmp_path / "report.html").read_text()
    lines = [line for path in (tmp_path / "data").glob("*.csv") for line in path.read_text().splitlines()]
    assert len(lines) > 900
    first = [line.split(",")[0] for line in (tmp_path / "data" / "continuous.csv").read_text().splitlines()[1:26]]
    assert not any(value in page for value in first)
    assert "age_score</th>" not in page
    assert page.count("data:image/png;base64") == 3


@pytest.mark.parametrize("command", [name for name in FILES if name != "ledger"] + ["ledger", *SLOW])
def test_no_file_of_somebody_else_is_lost(command, study, monkeypatch, capsys):
    """A file of the name of a result is neither overwritten nor shown, and nothing is computed or charged."""
    small_demo(monkeypatch)
    arguments = {"audit": ("audit", "laplace", "--out", "."), "bench": ("bench", "--out", ".")}
    arguments = list({**COMMANDS, **arguments}[command])
    if "--seed" in arguments and command not in ("demo",):
        place = arguments.index("--seed")
        arguments[place : place + 2] = ["--ledger", "study.db"]
    if "data.csv" in arguments:
        arguments[arguments.index("data.csv")] = "never-opened.csv"
    names = FILES.get(command, {"result.json", f"{command}.png"})
    for name in sorted(names):
        (study / name).write_text(rows())
        before = contents(study)
        assert main(arguments) == 2, name
        error = capsys.readouterr().err
        assert f"{name} was not written by jaxdp" in error
        assert error.count("\n") == 1
        assert_nothing_of(before, study)
        (study / name).unlink()
    assert jaxdp.Ledger.open(study / "study.db").spent.epsilon == pytest.approx(0.5)


def record(files, shown=None):
    return json.dumps({"version": 1, "files": files, "shown": list(files) if shown is None else shown})


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_planted_record_shows_nothing(study):
    """Names of other folders, absolute ones and strange ones make the record none of ours."""
    real = digest(study / "data.csv")
    for name in (
        "data.csv/../data.csv",
        "more/edges.csv",
        "../data.csv",
        str(study / "data.csv"),
        "./data.csv",
        "Edges.csv",
        ".hidden.csv",
        "s.csv\n",
        "data.txt",
        "",
    ):
        for content in (record({name: [real]}), record({"result.json": [real]}, [name])):
            (study / written.RECORD).write_text(content)
            before = contents(study)
            assert main(["report", "."]) == 2
            assert main(list(COMMANDS["test"])) == 2
            assert contents(study) == before
    for content in ("", "[]", "{}", "null", '{"version": 2, "files": {}, "shown": []}', record({"a.csv": ["00"]})):
        (study / written.RECORD).write_text(content)
        assert main(["report", "."]) == 2


def test_an_inherited_record_shows_no_file_that_changed(study):
    """The record of another folder, with files of the same names and other contents."""
    (study / "edges.csv").write_text(rows())
    (study / "picture.png").write_bytes(b"\x89PNG" + CANARIES[1].encode())
    strange = {name: ["0" * 64] for name in ("edges.csv", "picture.png", "result.json")}
    (study / written.RECORD).write_text(record(strange))
    rebuild_report(study, "t")
    page = (study / "report.html").read_text()
    assert not any(canary in page for canary in CANARIES)
    assert page.count("was changed since it was written and is not shown") == 2
    with pytest.raises(ValueError, match=r"edges\.csv was not written by jaxdp, or was changed since"):
        written.put_text(study, "edges.csv", "mine")
    assert (study / "edges.csv").read_text() == rows()


def test_links_are_not_followed(study):
    """Neither by the page, nor by what is written, nor from the folder to a subfolder."""
    table = (study / "data.csv").read_bytes()
    (study / "edges.csv").symlink_to("data.csv")
    (study / written.RECORD).write_text(record({"edges.csv": [digest(study / "data.csv")]}))
    page = rebuild_report(study, "t").read_text()
    assert not any(canary in page for canary in CANARIES)
    with pytest.raises(ValueError, match="was not written by jaxdp"):
        written.put_text(study, "edges.csv", "mine")
    assert (study / "data.csv").read_bytes() == table
    other = study / "elsewhere"
    other.mkdir()
    written.put_text(other, "result.json", json.dumps({"title": CANARIES[1]}))
    written.show(other, ["result.json"])
    (study / "linked").symlink_to(other)
    assert written.has_record(other)
    assert not written.has_record(study / "linked")
    (study / "kept").mkdir()
    (study / "kept" / written.RECORD).symlink_to(other / written.RECORD)
    with pytest.raises(ValueError, match="was not written by jaxdp"):
        written.shown(study / "kept")
    os.mkfifo(study / "pipe.csv")
    with pytest.raises(ValueError, match="was not written by jaxdp"):
        written.claim(study, ["pipe.csv"])


def test_a_page_shows_what_this_command_wrote_not_an_earlier_one(study):
    """Two commands in one folder: the page of the second leaves out the pictures of the first, which stay ours."""
    assert main(list(COMMANDS["discover"])) == 0
    assert main(list(COMMANDS["plan"])) == 0
    page = (study / "report.html").read_text()
    assert page.count("data:image/png;base64") == 1
    assert "edges.csv" not in page
    assert main([*COMMANDS["discover"], "--overwrite"]) == 0
    assert "edges.csv" in (study / "report.html").read_text()


def test_a_file_appears_whole_or_not_at_all(tmp_path, monkeypatch):
    written.put_text(tmp_path, "result.json", "{}")

    def fail(path):
        path.write_text("half")
        raise RuntimeError("no space")

    with pytest.raises(RuntimeError):
        written.put(tmp_path, "result.json", fail)
    assert (tmp_path / "result.json").read_text() == "{}"
    replace = os.replace

    def crash(source, target):
        if str(target).endswith("result.json"):
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr(os, "replace", crash)
    with pytest.raises(KeyboardInterrupt):
        written.put_text(tmp_path, "result.json", "[]")
    monkeypatch.undo()
    assert (tmp_path / "result.json").read_text() == "{}"
    written.claim(tmp_path, ["result.json"])  # what a crash left is ours still
    written.put_text(tmp_path, "result.json", "[1]")
    assert {path.name for path in tmp_path.iterdir()} == {"result.json", written.RECORD}
    assert set(json.loads((tmp_path / written.RECORD).read_text())["files"]) == {"result.json"}


def test_drop_deletes_only_ours(tmp_path):
    (tmp_path / "power.png").write_text("mine")
    with pytest.raises(ValueError, match="was not written by jaxdp"):
        written.drop(tmp_path, "power.png")
    assert (tmp_path / "power.png").exists()
    written.put_text(tmp_path, "plan.json", "{}")
    written.drop(tmp_path, "plan.json")
    assert not (tmp_path / "plan.json").exists()


def test_names_of_columns_are_texts_in_pages_and_pictures(tmp_path):
    """Whatever a column is called: escaped in the page, no formula of matplotlib in the picture."""
    names = ("<script>alert(1)</script>", "$\\frac{$", '"><img src=x onerror=alert(1)>')
    from jaxdp.report.graphs import draw_graph
    from jaxdp.report.waterfall import waterfall

    arcs = np.eye(3, k=1, dtype=bool)
    written.put(tmp_path, "graph.png", draw_graph, names, arcs, title=names[1])
    written.put(tmp_path, "waterfall.png", waterfall, list(names), {"epsilon": ([0.1] * 3, 1.0)}, notes=names)
    content = {"title": names[0], "answer": names[2], "x": list(names), **dict.fromkeys(names, names[0])}
    written.put_text(tmp_path, "result.json", json.dumps(content))
    page = write_report(tmp_path, names[0], ["graph.png", "waterfall.png", "result.json"]).read_text()
    assert "<script" not in page
    assert not re.search(r"<[^>]*onerror", page)
    assert page.count("&lt;script&gt;") >= 5
    figures.p_value_scale(tmp_path / "p.png", p_value=0.5, level=0.05, title=names[1])
