"""What a search declares is what it takes: arguments, columns, sums; and a search from outside of the package."""

import dataclasses
import json
import pickle
import types
from pathlib import Path

import jax
import numpy as np
import pytest
from queries import plain

import jaxdp
from jaxdp import catalogue, discovery
from jaxdp.cli.main import main
from jaxdp.data.dataset import BINARY, CONTINUOUS, Column
from jaxdp.data.records import Records, RecordsInChunks
from jaxdp.discovery import choose
from jaxdp.discovery.abilities import ABILITIES, Abilities
from jaxdp.discovery.spec import SearchSpec, search, searches
from jaxdp.noise.recorder import Tape
from jaxdp.randomness.keys import RecordedKey

DELTA = 1e-6
KNOWLEDGE = discovery.Knowledge(forbidden=[("v0", "v1")])
VALUES = {"keep": "answers", "directions": 0.0, "knowledge": KNOWLEDGE, "delta": DELTA, "max_order": 0}
VALUES["accept_coarse_cells"] = True
OFFERED = {**searches(), "PC with a test": choose.pc_with(catalogue.find("partition-gcm"))}


def records(kind=BINARY, size=300):
    generator = np.random.default_rng(0)
    first = generator.integers(0, 2, size)
    values = np.stack([first, np.where(generator.random(size) < 0.05, 1 - first, first), 1 - first], axis=1)
    values = values if kind == BINARY else np.clip(values - 0.5 + 0.1 * generator.normal(size=values.shape), -1, 1)
    return Records(values, tuple(Column(kind, 2 * (kind == BINARY), f"v{place}") for place in range(3)))


def needed(one):
    """What it cannot do without, at a budget at which it finds the edges of `records`."""
    budget = {"rho": 50.0} if "rho" in one.spec.needs else {"epsilon": 100.0}
    return budget | ({"delta": DELTA} if "delta" in one.spec.needs else {})


def accepted(one):
    """The abilities whose argument the function has, tried with what is no key: a missing argument is found before."""
    found = set()
    for name, value in VALUES.items():
        with pytest.raises((TypeError, ValueError)) as error:
            one(None, None, **needed(one) | {name: value})
        if not any(told in str(error.value) for told in ("unexpected keyword argument", "there is no keyword")):
            found.add(name)
    return found


def declared(one):
    return {name for name in ABILITIES if one.takes(name)}


@pytest.mark.parametrize("name", OFFERED)
def test_a_search_takes_the_arguments_that_it_declares_and_no_others(name):
    assert set(VALUES) == set(ABILITIES) == set(Abilities.__annotations__)
    assert accepted(OFFERED[name]) == declared(OFFERED[name])


def test_every_search_has_a_row_on_the_page():
    rows = (Path(__file__).parents[2] / "docs" / "discovery.md").read_text(encoding="utf-8").splitlines()
    ours = [name for name, one in searches().items() if not one.spec.true_epsilon]
    missing = [name for name in ours if not any(row.startswith(f"| `{name}`") for row in rows)]
    assert not missing, f"docs/discovery.md, 'Which search': a row for each of {missing}"


def test_a_wrong_declaration_would_be_seen():
    for takes in ((), ("max_order", "knowledge", "keep", "delta")):
        wrong = discovery.Search(dataclasses.replace(discovery.table_pc.spec, takes=takes), discovery.table_pc.function)
        assert accepted(wrong) != declared(wrong)
    with pytest.raises(ValueError, match="takes must be one of"):
        SearchSpec("mine", "of mine", takes=("dleta",))


@pytest.mark.full
@pytest.mark.parametrize("name", OFFERED)
def test_what_a_search_takes_has_an_effect(name, tmp_path):
    """One simulation with everything that the search declares."""
    one = OFFERED[name]
    data = records(BINARY if one.spec.accepts((2, 2, 2)) and "PC with" not in one.spec.name else CONTINUOUS)
    options = {ability: VALUES[ability] for ability in declared(one)}
    if "keep" in options:
        options["keep"] = tmp_path / "answers"
    graph = one(jax.random.key(0), data, **needed(one) | options)
    assert (float(graph.cost.delta) == DELTA) == ("delta" in options)
    assert (tmp_path / "answers").exists() == ("keep" in options)
    assert "knowledge" not in options or ("v0", "v1") not in graph.edges
    if "max_order" in options and graph.decisions:
        assert all(decision.given == () for decision in graph.decisions)


@pytest.mark.parametrize("name", [name for name, one in searches().items() if not one.spec.accepts((0, 0, 0))])
def test_searches_of_codes_refuse_other_columns(name):
    one = OFFERED[name]
    with pytest.raises(ValueError, match=r"coded|levels"):
        one(jax.random.key(0), records(CONTINUOUS), **needed(one))


@pytest.mark.parametrize("name", OFFERED)
def test_discover_refuses_what_is_not_declared(name):
    """With the value and the searches that take it, which is true of them."""
    one = OFFERED[name]
    data = records(CONTINUOUS if one.spec.accepts((0, 0, 0)) else BINARY)
    for ability in set(ABILITIES) - declared(one):
        with pytest.raises(ValueError, match=f"^{one.spec.name} (keeps no|pays nothing|takes no|has no)") as error:
            discovery.discover(jax.random.key(0), data, epsilon=1.0, method=one, **{ability: VALUES[ability]})
        assert (f"leave out {ability} = {DELTA}" if ability == "delta" else f"leave out {ability}") in str(error.value)
        others = str(error.value).rpartition("or use ")[2].rstrip(".").split(" or ")
        assert others
        assert all(searches()[other].takes(ability) for other in others)


@pytest.mark.parametrize(
    ("method", "words", "told"),
    [
        ("table_pc", ["--delta", "1e-6"], "table_pc takes no delta: leave out delta = 1e-06, or use max_min_pc"),
        ("contrast-gcm", ["--accept-coarse-cells"], "has no coarse cells to accept: leave out accept_coarse_cells"),
        ("auto", ["--accept-coarse-cells"], "has no coarse cells to accept: leave out accept_coarse_cells"),
        ("own_without_order:plain", ["--max-order", "1"], "plain takes no largest conditioning set: leave out max_ord"),
    ],
)
def test_the_command_refuses_before_anything_is_charged(method, words, told, tmp_path, monkeypatch, capsys):
    plain = OWN.replace("halved", "plain").replace("max_order=None, ", "").replace("max_order=max_order, ", "")
    plain = plain.replace('budget")', 'budget", takes=())')
    (tmp_path / "own_without_order.py").write_text(plain)
    monkeypatch.syspath_prepend(tmp_path)
    described_table(tmp_path, monkeypatch)
    assert main(["ledger", "create", "l.db", "--epsilon", "5"]) == 0
    capsys.readouterr()
    asked = ["discover", "t.csv", "--schema", "s.toml", "--epsilon", "1", "--ledger", "l.db", "--method", method]
    assert main([*asked, *words]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert error.count("\n") == 1
    assert jaxdp.Ledger.open("l.db").spent.epsilon == 0


def test_the_automatic_choice_says_what_it_leaves_unused():
    graph = discovery.discover(jax.random.key(0), records(), epsilon=100.0, delta=DELTA)
    assert (graph.method, float(graph.cost.delta)) == ("table_pc", 0.0)
    assert "leaves the delta of 1e-06 unspent" in graph.note
    assert "unspent" not in discovery.discover(jax.random.key(0), records(), epsilon=100.0).note
    graph = discovery.discover(jax.random.key(0), records(CONTINUOUS), epsilon=100.0, max_order=3)
    assert graph.method == "neighbour_pc"
    assert "neighbour_pc conditions on at most 2 columns, not on the 3 allowed" in graph.note


def test_a_largest_order_of_zero_is_one():
    """Its queries condition on nothing."""
    data, asked = records(), {"epsilon": 100.0, "method": "table_pc"}
    assert discovery.discover(jax.random.key(0), data, **asked).num_tests > 3
    assert discovery.discover(jax.random.key(0), data, **asked, max_order=0).num_tests == 3
    for wrong in (-1, 1.5, True):
        with pytest.raises(ValueError, match="max_order must be a whole number >= 0"):
            discovery.discover(jax.random.key(0), data, **asked, max_order=wrong)


@pytest.mark.parametrize("name", [name for name, one in OFFERED.items() if not one.spec.sums])
def test_discover_refuses_chunks_for_a_search_without_sums(name):
    data = records(CONTINUOUS if OFFERED[name].spec.accepts((0, 0, 0)) else BINARY)
    chunks = RecordsInChunks(types.SimpleNamespace(num_records=300), data.columns)
    options = {ability: DELTA for ability in OFFERED[name].spec.needs if ability == "delta"}
    if "rho" not in OFFERED[name].spec.needs:
        with pytest.raises(ValueError, match=r"needs all records in memory.*use (table|moment)_pc"):
            discovery.discover(jax.random.key(0), chunks, epsilon=1.0, method=OFFERED[name], **options)


def test_a_search_is_itself_after_pickling_and_can_not_be_changed():
    assert pickle.loads(pickle.dumps(discovery.table_pc)) is discovery.table_pc
    assert discovery.table_pc.__doc__.startswith("PC on a noisy joint histogram")
    with pytest.raises(dataclasses.FrozenInstanceError):
        discovery.table_pc.spec = None


OWN = '''
from jaxdp import discovery
from jaxdp.discovery.spec import SearchSpec, search


@search(SearchSpec("halved", "table_pc at half of the budget"))
def halved(key, data, *, epsilon, max_order=None, levels=None, ledger=None):
    """`table_pc` at half of the budget."""
    return discovery.table_pc(key, data, epsilon=epsilon / 2, max_order=max_order, levels=levels, ledger=ledger)
'''


@search(SearchSpec("own", "table_pc at half of the budget"))
def own(key, data, *, epsilon, max_order=None, levels=None, ledger=None):
    """`table_pc` at half of the budget."""
    return discovery.table_pc(key, data, epsilon=epsilon / 2, max_order=max_order, levels=levels, ledger=ledger)


def test_a_search_of_your_own_is_given_as_it_is(tmp_path):
    table = dict(zip(records().names, records().values.T, strict=True))
    described = {name: [0, 1] for name in table}
    found = jaxdp.discover(table, epsilon=1.0, levels=described, method=own, key=jax.random.key(0))
    assert float(found.cost.epsilon) == 0.5
    with pytest.raises(ValueError, match="own takes no background knowledge"):
        jaxdp.discover(
            table, epsilon=1.0, levels=described, method=own, key=jax.random.key(0), knowledge=VALUES["knowledge"]
        )


def described_table(tmp_path, monkeypatch):
    """`records` as t.csv with s.toml, in the working directory."""
    monkeypatch.chdir(tmp_path)
    values = records().values
    (tmp_path / "t.csv").write_text(
        "\n".join(["v0,v1,v2", *(",".join(map(str, row)) for row in values.tolist())]) + "\n"
    )
    columns = "".join(f'[columns.v{k}]\nkind = "binary"\nlevels = ["0", "1"]\n' for k in range(3))
    (tmp_path / "s.toml").write_text(columns)


def test_a_search_of_your_own_is_named_by_its_place(tmp_path, monkeypatch, capsys):
    (tmp_path / "own_search.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    described_table(tmp_path, monkeypatch)
    words = ["discover", "t.csv", "--schema", "s.toml", "--epsilon", "1", "--seed", "0", "--json"]
    assert main([*words, "--method", "own_search:halved"]) == 0
    assert json.loads(capsys.readouterr().out)["epsilon"] == 0.5
    assert main([*words, "--method", "own_search:halved", "--directions", "0"]) == 2
    assert "halved pays nothing for directions" in capsys.readouterr().err
    assert main([*words, "--method", "own_search:absent"]) == 2


def leaking(key, data, *, epsilon, levels=None, ledger=None):
    """The graph of a search, with the exact number of records in which two columns agree."""
    graph = discovery.table_pc(key, data, epsilon=epsilon, ledger=ledger)
    agree = float(np.sum(data.values[:, 0] == data.values[:, 1]))
    return dataclasses.replace(graph, decisions=(dataclasses.replace(graph.decisions[0], value=agree),))


def require_that_the_graph_follows_from_releases(one):
    """Runs the search on two tables, of which the second gets what was drawn for the first, and compares the graphs."""
    data = records(BINARY if one.spec.accepts(records().levels) else CONTINUOUS)
    other = dataclasses.replace(data, values=np.concatenate([data.values[:200], data.values[200:, ::-1]]))
    graphs, tape = [], Tape()
    for table in (data, other):
        with jax.debug_key_reuse(False):
            graphs.append(one(RecordedKey(jax.random.key(0), tape), table, **needed(one)))
        tape = Tape(outputs=[call.output for call in tape.calls])
    assert tape.outputs, "nothing is drawn from the source of the session"
    assert plain(graphs[0]) == plain(graphs[1]), "with the same releases, the graph depends on the records"


@pytest.mark.parametrize("name", [name for name, one in OFFERED.items() if not one.spec.true_epsilon])
def test_a_graph_follows_from_what_was_released(name):
    """Not of a search as published, which draws from its key by itself."""
    require_that_the_graph_follows_from_releases(OFFERED[name])


def test_a_graph_that_holds_a_count_without_noise_is_found():
    with pytest.raises(AssertionError, match="depends on the records"):
        require_that_the_graph_follows_from_releases(search(SearchSpec("leaking", "a search", takes=()))(leaking))
