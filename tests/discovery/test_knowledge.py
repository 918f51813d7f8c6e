"""Background knowledge in every search of the skeleton loop and in max-min selection; choosing a search; commands."""

import csv
import json

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp import discovery
from jaxdp.cli.main import main
from jaxdp.data import networks
from jaxdp.data.records import as_records
from jaxdp.discovery.choose import why
from jaxdp.discovery.engine.knowledge import known
from jaxdp.discovery.spec import Setting, forecasts
from jaxdp.simulate.designs.networks import sample_network

ASIA = networks.load("asia")
KNOWLEDGE = discovery.Knowledge(
    required=[("asia", "bronc")], forbidden=[("bronc", "dysp")], tiers=[["asia", "smoke"], ["tub", "lung", "bronc"]]
)


@pytest.fixture(scope="module")
def records():
    return sample_network(jax.random.key(1), ASIA, 20_000)


SEARCHES = {
    "table_pc": lambda key, data, **how: discovery.table_pc(key, data, epsilon=5.0, **how),
    "max_min_pc": lambda key, data, **how: discovery.max_min_pc(key, data, epsilon=5.0, **how),
    "max_min_pc directed": lambda key, data, **how: discovery.max_min_pc(
        key, data, epsilon=50.0, directions=0.2, **how
    ),
    "pc": lambda key, data, **how: discovery.pc(key, data, test="chi2", **how),
    "pc in turn": lambda key, data, **how: discovery.pc(key, data, test="chi2", stable=False, **how),
    "discover": lambda key, data, **how: discovery.discover(key, data, epsilon=5.0, **how),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_searches_keep_to_what_is_known(name, records):
    plain = SEARCHES[name](jax.random.key(0), records)
    assert ("bronc", "dysp") in plain.edges
    graph = SEARCHES[name](jax.random.key(0), records, knowledge=KNOWLEDGE)
    assert ("bronc", "dysp") not in graph.edges
    assert ("asia", "bronc") in graph.edges
    assert ("asia", "bronc") in graph.directed  # the tiers say so
    earlier, later = {"asia", "smoke"}, {"tub", "lung", "bronc"}
    between = [set(edge) for edge in graph.edges if len(set(edge) & earlier) == 1 and len(set(edge) & later) == 1]
    assert between
    assert all(arc[0] in earlier for arc in graph.directed if set(arc) in between)
    assert not [edge for edge in graph.undirected if set(edge) in between]


def test_no_query_conditions_on_the_future():
    tiers = discovery.Knowledge(tiers=[["v0", "v1"], ["v2", "v3"], ["v4"]])
    facts = known(tiers, [f"v{i}" for i in range(6)])
    assert not facts.may_condition(0, 1, (2,))
    assert not facts.may_condition(0, 2, (4,))
    assert facts.may_condition(0, 2, (1, 3))
    assert facts.may_condition(0, 4, (2, 3))
    assert facts.may_condition(0, 1, (5,))  # a column without a tier
    assert facts.may_condition(5, 0, (4,))
    asked = []

    def test(i, j, given):
        asked.append((i, j, given))
        return False

    discovery.pc(jax.random.key(0), np.zeros((4, 6), int), levels=(2,) * 6, test=test, knowledge=tiers)
    assert asked
    assert all(facts.may_condition(*query) for query in asked)


def test_mistakes_in_knowledge_are_told(records):
    for wrong, text in (
        ({"required": ["ab"]}, "pairs"),
        ({"required": [("a", "b")], "forbidden": [("b", "a")]}, "both required and forbidden"),
        ({"tiers": [["a"], ["b", "a"]]}, "twice"),
        ({"required": [("a", "a")]}, "names .a. twice"),
    ):
        with pytest.raises(ValueError, match=text):
            discovery.Knowledge(**wrong)
    with pytest.raises(ValueError, match="'smoking', which is none of the columns"):
        SEARCHES["table_pc"](jax.random.key(0), records, knowledge=discovery.Knowledge(required=[("asia", "smoking")]))
    with pytest.raises(TypeError, match="Knowledge"):
        SEARCHES["pc"](jax.random.key(0), records, knowledge={"required": []})
    with pytest.raises(ValueError, match="no background knowledge"):
        discovery.discover(jax.random.key(0), records, epsilon=1.0, method="em_pc", knowledge=KNOWLEDGE)


def test_the_choice_follows_the_cells_of_the_joint_table():
    def first(levels, n, epsilon, delta=0.0):
        return forecasts(Setting(levels, n, epsilon, delta))[0].method

    # measured crossing: docs/theory/max_min_pc.md#choice
    assert first((2,) * 8, 100_000, 0.3) == "table_pc"
    assert first((2,) * 10, 100_000, 1.0) == "table_pc"
    assert first((3,) * 9, 100_000, 1.0) == "max_min_pc"
    assert first((2,) * 14, 10_000, 1.0) == "max_min_pc"
    assert first((2,) * 40, 100_000, 1.0) == "max_min_pc"
    assert first((2, 0, 3), 1000, 1.0) not in ("table_pc", "max_min_pc", "svt_pc")
    weakest = [forecasts(Setting((3,) * 20, n, 1.0))[0].weakest for n in (10**3, 10**4, 10**5)]
    assert weakest == sorted(weakest, reverse=True)
    pure, with_delta = (forecasts(Setting((3,) * 37, 10**5, 1.0, delta))[0].weakest for delta in (0.0, 1e-6))
    assert with_delta < 0.5 * pure


def test_the_graph_says_why_and_what_it_misses(records):
    graph = discovery.discover(jax.random.key(0), records, epsilon=1.0)
    assert "table_pc was chosen for 8 columns, 20000 records and epsilon 1" in graph.note
    assert "% of the records changed, or fewer, will not be found" in graph.note
    wide = as_records(np.zeros((30, 12), int), (4,) * 12)
    assert "expect no more than chance" in discovery.discover(jax.random.key(0), wide, epsilon=0.01).note
    assert "delta 1e-06" in why(Setting((2,) * 30, 1000, 1.0, 1e-6))


def test_arrows_that_no_knowledge_settles_say_what_they_take_for_granted(records):
    """Where w is no column, x <- w -> y is found as an arrow between x and y more often than not."""
    told = "shows a cause only if every common cause of two columns is a column too"
    graph = discovery.table_pc(jax.random.key(0), records, epsilon=5.0)
    assert graph.directed
    assert f"An arrow {told}" in graph.note
    graph = discovery.table_pc(jax.random.key(0), records, epsilon=5.0, knowledge=KNOWLEDGE)
    assert f"An arrow that the tiers do not settle {told}" in graph.note
    two = as_records(np.asarray(records.values)[:, [0, 1]], (2, 2))
    known = discovery.Knowledge(required=[("v0", "v1")], tiers=[["v0"], ["v1"]])
    graph = discovery.table_pc(jax.random.key(0), two, epsilon=5.0, knowledge=known)
    assert graph.directed == [("v0", "v1")]
    assert "shows a cause" not in graph.note
    assert "common cause" not in discovery.table_pc(jax.random.key(0), two, epsilon=5.0).note  # no arrow


def test_q_values_follow_the_released_numbers(records):
    graph = discovery.table_pc(jax.random.key(0), records, epsilon=1.0)
    q_values = graph.q_values
    assert np.array_equal(np.isfinite(q_values), graph.skeleton)
    assert np.nanmax(q_values) < 1e-4


@pytest.fixture(scope="module")
def survey(tmp_path_factory, records):
    pytest.importorskip("matplotlib")
    folder = tmp_path_factory.mktemp("asia")
    states = [ASIA.variables[name].states for name in ASIA.names]
    with (folder / "data.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(ASIA.names)
        rows.writerows([states[j][code] for j, code in enumerate(row)] for row in np.asarray(records.values)[:5000])
    columns = zip(ASIA.names, states, strict=True)
    text = "\n".join(f'[columns.{name}]\nkind = "binary"\nlevels = {json.dumps(s)}\n' for name, s in columns)
    (folder / "schema.toml").write_text(text)
    return folder


def test_discover_with_a_delta_and_knowledge(survey, tmp_path, capsys):
    command = ["discover", str(survey / "data.csv"), "--schema", str(survey / "schema.toml"), "--epsilon", "2"]
    command += ["--method", "max_min_pc", "--delta", "1e-6", "--seed", "1"]
    knowledge = ["--forbid", "bronc,dysp", "--require", "asia,bronc", "--tiers", "asia,smoke;tub,lung,bronc"]
    assert main([*command, *knowledge, "--out", str(tmp_path / "out")]) == 0
    assert "delta = 1e-06" in capsys.readouterr().out
    content = json.loads((tmp_path / "out/graph.json").read_text())
    pairs = [tuple(pair) for pair in content["directed"] + content["undirected"]]
    assert ("asia", "bronc") in [tuple(arc) for arc in content["directed"]]
    assert not [pair for pair in pairs if set(pair) == {"bronc", "dysp"}]
    rows = list(csv.DictReader((tmp_path / "out/edges.csv").open()))
    q_values = [float(row["q_value"]) for row in rows if row["q_value"]]
    assert q_values
    assert all(0.0 <= q_value <= 1.0 for q_value in q_values)
    required = [row for row in rows if {row["a"], row["b"]} == {"asia", "bronc"}]
    assert [(row["edge"], row["independent"], row["q_value"]) for row in required] == [("True", "", "")]
    assert required[0]["public_knowledge"] == "required, direction"
    assert {row["public_knowledge"] for row in rows} == {"required, direction", "direction", "forbidden", ""}
    forbidden = [row for row in rows if {row["a"], row["b"]} == {"bronc", "dysp"}]
    assert [(row["edge"], row["independent"], row["public_knowledge"]) for row in forbidden] == [
        ("False", "", "forbidden")
    ]
    result = json.loads((tmp_path / "out/result.json").read_text())
    assert "asia -> bronc (required)" in result["answer"]
    assert result["answer"].count("required") == 1
    assert content["knowledge"]["required"] == [["asia", "bronc"]]
    assert all(float(row["q_value"]) <= 0.05 for row in rows if row["edge"] == "True" and row["q_value"])
    assert main([*command, "--forbid", "either,nobody", "--out", str(tmp_path / "bad")]) == 2
    assert "nobody" in capsys.readouterr().err


def test_plan_of_a_search(survey, tmp_path, capsys):
    schema, out = ["--schema", str(survey / "schema.toml")], ["--out", str(tmp_path / "plan")]
    assert main(["plan", "--discover", *schema, "--n", "20000", "--epsilon", "1", *out]) == 0
    shown = capsys.readouterr().out
    assert "table_pc was chosen" in shown
    content = json.loads((tmp_path / "plan/plan.json").read_text())
    assert content["searches"][0]["method"] == "table_pc"
    assert "no results" not in (tmp_path / "plan/report.html").read_text()
    assert "note" not in content
    rows = jaxdp.discovery.forecast(survey / "schema.toml", n=20_000, epsilon=1.0)
    assert [row.method for row in rows] == [row["method"] for row in content["searches"]]
    numbers = "".join(f'[columns.c{k}]\nkind = "continuous"\nbounds = [0, 1]\n' for k in range(12))
    (tmp_path / "numbers.toml").write_text(numbers)
    few = ["--schema", str(tmp_path / "numbers.toml"), "--n", "2000", "--epsilon", "1"]
    assert main(["plan", "--discover", *few, *out]) == 0
    content = json.loads((tmp_path / "plan/plan.json").read_text())
    assert content["searches"][0]["method"] == "moment_pc"
    assert "By it neighbour_pc would find weaker edges" in content["note"]
    capsys.readouterr()
    assert main(["plan", "--discover", *few, *out, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads((tmp_path / "plan/plan.json").read_text())
    for option in ("--given x", "--level 0.5", "--covariates 3", "--rate 0.2", "--quick", "--replicates 30"):
        assert main(["plan", "--discover", *few, *out, *option.split()]) == 2
        assert f"{option.split()[0]} is of tests" in capsys.readouterr().err
    assert main(["plan", "--discover", *schema, "--n", "20000", *out]) == 2
    assert "--discover needs --epsilon" in capsys.readouterr().err
    assert main(["plan", "--discover", *schema, "--n", "20000", "--epsilon", "1", "--power", "0.8", *out]) == 2
