"""What objects print: a few lines with method, p-value and privacy; arrays by shape; names escaped in HTML."""

import html.parser
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp import interop, plan
from jaxdp._base import display
from jaxdp.audit.catalogue import Audit
from jaxdp.audit.sensitivity import Attack
from jaxdp.data.dataset import Column
from jaxdp.data.records import Records
from jaxdp.discovery.graph import Decision, graph_from_arcs
from jaxdp.simulate.engine.replicates import RejectionRate
from jaxdp.simulate.engine.results import Row
from jaxdp.tune.result import LevelCheck, Tuned

NASTY = '<b onclick="x">a & b</b>'
MAX_LINES = 12
TEST = jaxdp.PartitionGCM(epsilon=1.0)
RATES = [RejectionRate(k, 1000, 0.05) for k in (50, 400, 600)]


def records(n=60, columns=2):
    return np.tanh(np.random.default_rng(0).normal(size=(n, columns)))


def published(key):
    table = records()
    return jaxdp.run(TEST, key, jaxdp.Data(table[:, 0], table[:, 1]))


def pairwise(key):
    return jaxdp.all_pairs(TEST, key, records(columns=5))


def graph(mode):
    arcs = np.zeros((3, 3), bool)
    arcs[0, 1] = arcs[1, 2] = arcs[2, 1] = True
    cost = jaxdp.Cost(epsilon=1.0)
    return graph_from_arcs((NASTY, "dose", "two\nlines"), arcs, cost=cost, mode=mode, method="table_pc", num_tests=5)


def queries():
    found = interop.PrivateQueries(
        TEST,
        Records(records(columns=3), (Column(name=NASTY), Column(name="b"), Column())),
        epsilon=3.0,
        key=jax.random.key(0),
    )
    found.p_value(0, 1)
    found.p_value(0, 2)
    return found


def tuned(refused=""):
    return Tuned(
        TEST,
        {"winsorize": np.float32(0.5), "weights": np.ones(50)},
        {"winsorize": 0.3, "weights": np.zeros(50)},
        {},
        1.0,
        0.5,
        RATES[2],
        RATES[1],
        (LevelCheck("sine", RATES[0], RATES[0], 1, 1),),
        {"design": "sine_confounder(n=100)", "seed": 3},
        refused,
    )


def planned(count=3):
    row = plan.Row("partition-gcm", "power", 100, 1.0, 0.3, 0.123456789, None, "formula", reason=NASTY)
    return display.Rows([row] * count)


READABLE = {
    "result": lambda: published(jax.random.key(0)),
    "released result": lambda: published(jaxdp.fresh_key()),
    "release": lambda: published(jaxdp.fresh_key()).release,
    "pairs": lambda: pairwise(jax.random.key(0)),
    "graph": lambda: graph("simulation"),
    "released graph": lambda: graph("release"),
    "queries": queries,
    "query log": lambda: queries().rows,
    "plan": planned,
    "long plan": lambda: planned(40),
    "audit": lambda: Audit("laplace", 1.0, 0.9, 1e-6, 1000, "output <= 0.3", "release", 0.99),
    "tuned": tuned,
    "refused": lambda: tuned("no power was gained"),
}
ONE_LINE = {
    "query": lambda: queries().rows[0],
    "row": lambda: planned()[0],
    "rate": lambda: RATES[0],
    "check": lambda: tuned().checks[0],
    "decision": lambda: Decision(0, 1, (2,), True, np.float64(0.25)),
    "attack": lambda: Attack(0.5, jaxdp.Data(records()[:, 0], records()[:, 1]), records()[:1], 9),
    "cost": lambda: jaxdp.Cost(epsilon=jnp.float32(0.5)),
    "sensitivity": lambda: jaxdp.Sensitivity(np.ones(300), jaxdp.Norm.L1, jaxdp.Relation.REPLACE_ONE),
    "simulated row": lambda: Row(
        {"n": 10, "level": 0.05}, "h", 5, 100, 0, 1.0, False, True, np.zeros(50), np.ones(100)
    ),
    "test": lambda: jaxdp.PartitionGCM(epsilon=0.3, winsorize=np.ones(40), mechanism=None),
    "mechanism": lambda: jaxdp.Laplace(epsilon=2.0),
}


class Cells(html.parser.HTMLParser):
    """The tags of a page and the texts between them."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.texts = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)

    def handle_data(self, data):
        self.texts.append(data)


@pytest.mark.parametrize("name", READABLE)
def test_a_few_lines_and_a_table(name):
    thing = READABLE[name]()
    text = repr(thing)
    assert 2 <= len(text.splitlines()) <= MAX_LINES
    assert "array(" not in text
    assert max(map(len, text.splitlines())) < 250
    page = Cells(thing._repr_html_())
    assert page.tags <= {"table", "caption", "tr", "td", "th"}
    for line in text.splitlines()[1:3]:
        assert line.split()[-1] in " ".join(page.texts)


@pytest.mark.parametrize("name", ONE_LINE)
def test_one_line(name):
    text = repr(ONE_LINE[name]())
    assert len(text.splitlines()) == 1
    assert "array(" not in text
    assert len(text) < 250


@pytest.mark.parametrize("make", [published, pairwise])
def test_results_say_method_p_value_privacy_and_mode(make):
    simulated, released = repr(make(jax.random.key(0))), repr(make(jaxdp.fresh_key()))
    for text in (simulated, released):
        assert text.startswith("partition-gcm")
        assert re.search(r"p-values? +\S", text)
        assert re.search(r"privacy +epsilon=1.0, relation=replace_one", text)
        assert re.search(r"records +60", text)
    assert "NOT PRIVATE" in simulated
    assert "NOT PRIVATE" not in released


def test_numbers_are_those_of_the_result():
    result = published(jaxdp.fresh_key())
    assert f"{float(result.p_value):.6g}" in repr(result)
    assert f"{float(result.p_value):.6g}" in result._repr_html_()
    pairs = pairwise(jax.random.key(0))
    assert f"{np.nanmin(pairs.p_values):.6g}, of features" in repr(pairs)


def test_no_unnoised_value_and_no_key_word():
    """The exact statistic, to six digits, is printed nowhere, nor is anything of a key."""
    key, table = jaxdp.fresh_key(), records()
    exact = jaxdp.run(jaxdp.PartitionGCM(mechanism=jaxdp.mechanisms.Exact()), jax.random.key(0), jaxdp.Data(*table.T))
    result = jaxdp.run(TEST, key, jaxdp.Data(*table.T))
    numbers = {f"{abs(float(value)):.6g}" for value in jax.tree.leaves(exact.release.value)}
    told = repr(result) + repr(result.release) + result._repr_html_() + str(result)
    assert not [number for number in numbers if number in told]
    assert key.fingerprint not in told
    words = np.asarray(jax.random.key_data(jax.random.key(123456789)))
    shown = repr(jaxdp.Data(jnp.zeros(3), jnp.zeros(3))) + display.shown(jax.random.key(123456789))
    assert str(words[-1]) not in shown


def test_simulated_graphs_and_queries_say_so():
    assert "NOT PRIVATE" in repr(graph("simulation"))
    assert "NOT PRIVATE" not in repr(graph("release"))
    assert "NOT PRIVATE" in repr(queries())
    assert "2: " in repr(graph("release"))
    assert "dose -- 'two\\nlines'" in repr(graph("release"))
    assert "partition-gcm" in repr(queries())


@pytest.mark.parametrize("make", [lambda: graph("release"), lambda: queries().rows, planned, queries])
def test_html_escapes_names(make):
    page = make()._repr_html_()
    assert "<b " not in page
    assert "&lt;b onclick=&quot;x&quot;&gt;a &amp; b&lt;/b&gt;" in page


def test_traced_and_batched_results_are_shown_by_shape():
    texts = []

    def act(key):
        result = published(key)
        texts.extend([repr(result), str(result), repr(result.release), result._repr_html_()])
        return result

    batched = jax.vmap(act)(jax.random.split(jax.random.key(0), 3))
    assert all("float32[]" in text and "Traced" not in text for text in texts)
    assert "float32[3]" in repr(batched)
    budgets = []
    jax.jit(lambda epsilon: budgets.append(repr(jaxdp.Laplace(epsilon=epsilon).cost(jaxdp.Relation.REPLACE_ONE))))(1.0)
    assert budgets == ["Cost(epsilon=float32[], relation=replace_one)"]


def test_costs_are_not_rounded():
    assert repr(jaxdp.Cost(epsilon=1.00000000001)) == "Cost(epsilon=1.00000000001, relation=replace_one)"
    assert "rho=0.5 (zCDP)" in repr(jaxdp.Cost(epsilon=np.inf, rho=0.5))
    assert "NOT PRIVATE" in repr(jaxdp.Cost(epsilon=np.inf))


def test_ledger_shows_what_is_left_and_survives_a_lost_file(tmp_path):
    ledger = jaxdp.Ledger.create(tmp_path / "a.db", epsilon=3.0)
    table = records()
    jaxdp.run(TEST, jaxdp.fresh_key(), jaxdp.Data(*table.T), ledger=ledger)
    assert re.search(r"left +epsilon=2,", repr(ledger))
    assert re.search(r"spent +epsilon=1,", repr(ledger))
    assert len(repr(ledger).splitlines()) <= MAX_LINES
    assert "<td>left</td>" in ledger._repr_html_()
    ledger.path.unlink()
    assert "unreadable" in repr(ledger)


def test_a_default_is_left_out_and_a_change_is_shown():
    assert repr(TEST) == "PartitionGCM(epsilon=1.0)"
    assert repr(jaxdp.PartitionGCM(epsilon=1.0, winsorize=0.25)) == "PartitionGCM(epsilon=1.0, winsorize=0.25)"
    assert repr(display.Rows()) == "[]"
    assert repr(planned(40)).endswith("... (40 rows in all)")
