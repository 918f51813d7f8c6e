"""Adapters: one budget, repeats free, exhaustion as chosen; causal-learn and pgmpy runs where they are installed."""

import copy
import pickle

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp import interop
from jaxdp.accounting.ledger import BudgetExhausted, Ledger
from jaxdp.data import networks
from jaxdp.simulate.designs.networks import sample_network

TEST = jaxdp.ConditionalKendall(epsilon=5.0)


@pytest.fixture(scope="module")
def records():
    return sample_network(jax.random.key(3), networks.load("cancer"), 20_000)


def asked(records, **settings):
    return interop.PrivateQuestions(TEST, records, key=jax.random.key(1), **settings)


def test_repeats_are_free_and_equal(records):
    questions = asked(records, epsilon=10.0)
    first = questions.p_value(2, 3, (0, 1))
    assert questions.p_value(3, 2, [1, 0, 1]) == first
    assert questions.by_name("Xray", "Cancer", ["Smoker", "Pollution"]) == first
    assert float(questions.spent.epsilon) == pytest.approx(5.0)
    row = questions.rows[0]
    assert (row.pair, row.given, row.epsilon, row.mode) == (
        ("Cancer", "Xray"),
        ("Pollution", "Smoker"),
        pytest.approx(5.0),
        "simulation",
    )


@pytest.mark.parametrize(("policy", "p_value"), [("dependent", 0.0), ("independent", 1.0)])
def test_exhaustion_answers_as_chosen_in_advance(records, policy, p_value):
    questions = asked(records, epsilon=5.0, exhausted=policy)
    questions.p_value(2, 3)
    assert questions.p_value(0, 1) == p_value
    assert len(questions.rows) == 1
    assert float(questions.spent.epsilon) <= 5.0
    with pytest.raises(BudgetExhausted):
        asked(records, epsilon=4.0).p_value(0, 1)


def test_copies_share_the_budget_and_pickling_is_refused(records):
    questions = asked(records, epsilon=10.0)
    test = interop.pgmpy_ci_test(questions)
    assert copy.deepcopy(test).questions is questions
    assert copy.copy(questions) is questions
    for item in (questions, test):
        with pytest.raises(TypeError, match="pickled"):
            pickle.dumps(item)


def test_releases_are_charged_to_the_ledger(records, tmp_path):
    ledger = Ledger.create(str(tmp_path / "l.db"), epsilon=5.0)
    questions = interop.PrivateQuestions(TEST, records, epsilon=100.0, ledger=ledger, exhausted="dependent")
    questions.p_value(2, 3)
    assert questions.p_value(0, 1) == 0.0
    assert float(ledger.spent.epsilon) == pytest.approx(5.0)
    assert float(questions.spent.epsilon) == pytest.approx(5.0)
    assert questions.rows[0].mode == "release"


def test_mistakes(records):
    for settings, message in (({}, "one of them"), ({"epsilon": 1.0, "budget": object()}, "one of them")):
        with pytest.raises(ValueError, match=message):
            asked(records, **settings)
    with pytest.raises(TypeError, match="private test"):
        interop.PrivateQuestions(print, records, epsilon=1.0)
    with pytest.raises(ValueError, match="works once"):
        interop.PrivateQuestions(TEST, records, epsilon=1.0, key=jaxdp.fresh_key())
    questions = asked(records, epsilon=5.0)
    for question in ((0, 0), (0, 1, (1,)), (0, 9)):
        with pytest.raises(ValueError, match="different columns"):
            questions.p_value(*question)
    with pytest.raises(ValueError, match="not among"):
        questions.by_name("Cancer", "zip")
    assert not questions.rows


def test_causal_learn_runs_on_private_answers(records):
    search = pytest.importorskip("causallearn.search.ConstraintBased.PC")
    interop.causal_learn_test("jaxdp-test")
    codes = np.asarray(records.values)
    graph = search.pc(
        codes,
        0.01,
        indep_test="jaxdp-test",
        show_progress=False,
        test=TEST,
        columns=records.columns,
        epsilon=500.0,
        key=jax.random.key(5),
    )
    spends = graph.test.questions.rows
    assert len(spends) == len({(row.pair, row.given) for row in spends})
    adjacency = np.asarray(graph.G.graph) != 0
    private = jaxdp.discovery.pc(jax.random.key(0), records, test=graph.test, level=0.01)
    assert np.array_equal(adjacency, private.skeleton)
    assert len(graph.test.questions.rows) == len(spends)  # our search asked nothing new
    with pytest.raises(ValueError, match="cache"):
        type(graph.test)(codes, "cache.json", test=TEST, columns=records.columns, epsilon=1.0)


def test_pgmpy_runs_on_private_answers(records):
    pandas = pytest.importorskip("pandas")
    discovery = pytest.importorskip("pgmpy.causal_discovery")
    questions = asked(records, epsilon=500.0)
    frame = pandas.DataFrame(np.asarray(records.values), columns=list(records.names))
    found = discovery.PC(
        ci_test=interop.pgmpy_ci_test(questions), variant="stable", significance_level=0.01, return_type="pdag"
    ).fit(frame)
    edges = {frozenset(edge) for edge in found.causal_graph_.edges()}

    def ask(i, j, given):
        return questions.p_value(i, j, given)

    before = len(questions.rows)
    ours = jaxdp.discovery.pc(jax.random.key(0), records, test=ask, level=0.01)
    assert edges == {frozenset(edge) for edge in ours.edges}
    assert len(questions.rows) == before
