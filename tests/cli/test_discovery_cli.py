"""`jaxdp discover`: files, exit codes, ledger, comparison with a true graph."""

import csv
import importlib.util
import json

import jax
import numpy as np
import pytest

from jaxdp.accounting.ledger import Ledger
from jaxdp.cli.main import main
from jaxdp.data import networks
from jaxdp.discovery.graph import graph_from_arcs, read_graph
from jaxdp.simulate.designs.networks import sample_network

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def survey(tmp_path_factory):
    """CSV, schema and true graph of 20 000 records of the Survey network."""
    folder = tmp_path_factory.mktemp("survey")
    network = networks.load("survey")
    codes = np.asarray(sample_network(jax.random.key(3), network, 20_000).values)
    states = [network.variables[name].states for name in network.names]
    with (folder / "data.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(network.names)
        writer.writerows([states[j][code] for j, code in enumerate(row)] for row in codes)
    columns = zip(network.names, states, strict=True)
    schema = "\n".join(f'[columns.{name}]\nkind = "categorical"\nlevels = {json.dumps(s)}\n' for name, s in columns)
    (folder / "schema.toml").write_text(schema)
    truth = graph_from_arcs(network.names, network.dag).to_dict() | {"epsilon": 1.0}
    (folder / "truth.json").write_text(json.dumps(truth))
    return folder


def command(folder, *more):
    return ["discover", str(folder / "data.csv"), "--schema", str(folder / "schema.toml"), "--epsilon", "1", *more]


def test_a_release_writes_every_file_and_charges_the_ledger(survey, tmp_path, capsys):
    Ledger.create(str(tmp_path / "l.db"), epsilon=1.0)
    extra = [
        "--compare",
        str(survey / "truth.json"),
        "--ledger",
        str(tmp_path / "l.db"),
        "--out",
        str(tmp_path / "out"),
    ]
    assert main(command(survey, *extra)) == 0
    result = json.loads((tmp_path / "out/result.json").read_text())
    assert 0 <= result["cpdag_f1"] <= result["skeleton_f1"] <= 1
    assert result["shd_of_no_edges"] == 6
    said = " ".join(capsys.readouterr().out.split())
    assert f"structural Hamming distance {result['shd']} (of a graph without edges: 6)" in said
    if importlib.util.find_spec("gadjid") is None:
        assert "needs gadjid: pip install 'jaxdp-dependence[sid]'" in result["no_sid"]
        assert result["no_sid"] in said
    else:
        assert result["sid"] < result["sid_of_no_edges"]
        assert f"{result['sid']} (of a graph without edges: {result['sid_of_no_edges']})" in said
    content = json.loads((tmp_path / "out/graph.json").read_text())
    assert set(content) == {"names", "directed", "undirected", "complete", "epsilon", "mode", "note"}
    assert "table_pc was chosen" in content["note"]
    assert (content["complete"], content["epsilon"], content["mode"]) == (True, 1.0, "release")
    assert read_graph(tmp_path / "out/graph.json").names == ("A", "S", "E", "O", "R", "T")
    rows = list(csv.DictReader((tmp_path / "out/edges.csv").open()))
    assert len(rows) == 15
    assert {row["edge"] for row in rows} == {"True", "False"}
    assert (tmp_path / "out/graph.png").read_bytes().startswith(b"\x89PNG")
    assert "data:image/png;base64" in (tmp_path / "out/report.html").read_text()
    assert main(command(survey, *extra)) == 3


def test_users_mistakes_are_one_line(survey, tmp_path, capsys):
    (tmp_path / "other.json").write_text('{"names": ["x", "y"], "directed": [["x", "y"]]}')
    (tmp_path / "earlier").mkdir()  # whose result.json has no graph: it lies beside it
    (tmp_path / "earlier" / "graph.json").write_text((tmp_path / "other.json").read_text())
    (tmp_path / "earlier" / "result.json").write_text("{}")
    for extra, message in (
        (["--compare", str(tmp_path / "earlier" / "result.json")], "different columns"),
        (["--method", "magic"], "there is no search called"),
        (["--columns", "A"], "at least two"),
        (["--columns", "A,zip"], "not in the schema"),
        (["--compare", str(tmp_path / "other.json")], "different columns"),
    ):
        assert main(command(survey, *extra, "--out", str(tmp_path / "bad"))) == 2
        error = capsys.readouterr().err
        assert message in error
        assert len(error.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("extra", "told"),
    [
        ({"directed": [["A", "S"], ["S", "E"], ["E", "A"]]}, "holds a directed cycle"),
        ({"directed": [["A", "S"]], "undirected": [["S", "A"]]}, "is given in two ways"),
        ({"directed": [["A", "S"], ["S", "A"]]}, "is given in two ways"),
        ({"directed": [["A", "S"], ["A", "S"]], "undirected": [["S", "E"], ["E", "S"]]}, ""),
    ],
)
def test_a_graph_to_compare_with_must_not_contradict_itself(survey, tmp_path, capsys, extra, told):
    """A cycle was compared with, and told to be no graph with all edges directed; two ways were an undirected edge."""
    names = json.loads((survey / "truth.json").read_text())["names"]
    (tmp_path / "t.json").write_text(json.dumps({"names": names} | extra))
    ledger = Ledger.create(str(tmp_path / "l.db"), epsilon=1.0)
    how = ["--compare", str(tmp_path / "t.json"), "--ledger", str(ledger.path), "--out", str(tmp_path / "out")]
    assert main(command(survey, *how)) == (2 if told else 0)
    assert told in capsys.readouterr().err
    assert bool(ledger.rows()) is not bool(told)


def test_knowledge_that_leaves_nothing_to_find_is_not_paid_for(survey, tmp_path, capsys):
    ledger = Ledger.create(str(tmp_path / "l.db"), epsilon=1.0)
    how = ["--columns", "A,S,E", "--forbid", "A,S", "--forbid", "A,E", "--ledger", str(ledger.path)]
    settled = ["--require", "S,E", "--tiers", "S;E"]
    for more in (["--forbid", "S,E"], settled):
        assert main(command(survey, *how, *more, "--out", str(tmp_path / "none"))) == 2
        assert "nothing is left to be found" in capsys.readouterr().err
    assert ledger.rows() == []
    assert main(command(survey, *how, *settled[:2], "--out", str(tmp_path / "arrow"))) == 0


def test_a_seed_makes_a_repeatable_simulation(survey, tmp_path, capsys):
    for name in ("a", "b"):
        assert main(command(survey, "--seed", "5", "--out", str(tmp_path / name))) == 0
    assert "NOT PRIVATE" in capsys.readouterr().out
    graphs = [(tmp_path / name / "graph.json").read_text() for name in ("a", "b")]
    assert graphs[0] == graphs[1]
    assert json.loads(graphs[0])["mode"] == "simulation"


def test_a_graph_says_whose_a_record_is(tmp_path, capsys):
    rows = "".join(f"{i // 2},{i % 2},{i // 2 % 2}\n" for i in range(80))
    (tmp_path / "d.csv").write_text(f"patient,a,b\n{rows}")
    kind = 'kind = "binary"\nlevels = ["0", "1"]\n'
    (tmp_path / "s.toml").write_text(f'unit = "patient"\n[columns.a]\n{kind}[columns.b]\n{kind}')
    data = [str(tmp_path / "d.csv"), "--schema", str(tmp_path / "s.toml"), "--method", "table_pc"]
    assert main(["discover", *data, "--epsilon", "1", "--out", str(tmp_path / "out")]) == 0
    assert "One record per patient" in " ".join(capsys.readouterr().out.split())
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert (result["n"], result["unit"].split(",")[0]) == (40, "One record per patient")
    page = (tmp_path / "out" / "report.html").read_text()
    assert "One record per patient" in page
    assert "k times this epsilon" not in page
