"""Discovery from one noisy moment matrix: what it finds, what it costs, what it says."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import jaxdp
from experiments.evidence.moments.run import model
from jaxdp import discovery
from jaxdp.data.dataset import CATEGORICAL, Column
from jaxdp.data.records import Records
from jaxdp.statistics import partial_correlations


def f1(graph, edges):
    truth, found = np.triu(edges | edges.T), np.triu(graph.skeleton)
    return 2.0 * (truth & found).sum() / (truth.sum() + found.sum())


@pytest.mark.parametrize(("kind", "least"), [("linear", 0.9), pytest.param("coded", 0.85, marks=pytest.mark.full)])
def test_most_of_a_graph_is_found(kind, least):
    records, edges = model(kind, 6, 1)
    graph = discovery.discover(jax.random.key(0), records, epsilon=2.0, method="moment_pc")
    assert f1(graph, edges) >= least
    assert "linear" in graph.note


def test_it_is_the_default_where_draws_would_be_too_loud():
    records, _ = model("linear", 6, 1)
    graph = discovery.discover(jax.random.key(0), records, epsilon=0.3)
    assert graph.method == "moment_pc"
    assert "will not be found" in graph.note
    assert "no bends" in graph.note


@pytest.mark.full
def test_a_release_costs_what_it_says_in_one_charge(tmp_path):
    records, _ = model("linear", 4, 2)
    records = dataclasses.replace(records, values=records.values[:500])
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=5.0, delta=1e-5)
    pure = discovery.moment_pc(jaxdp.fresh_key(), records, epsilon=1.5, ledger=ledger)
    assert (float(pure.cost.epsilon), float(pure.cost.delta), pure.mode) == (1.5, 0.0, "release")
    both = discovery.moment_pc(jaxdp.fresh_key(), records, epsilon=1.0, delta=1e-6, ledger=ledger)
    assert (float(both.cost.epsilon), float(both.cost.delta)) == (1.0, 1e-6)
    assert float(ledger.spent.epsilon) == pytest.approx(2.5)


def test_the_stages_cost_no_more_than_the_budget():
    from jaxdp.core import cost_of
    from jaxdp.discovery.methods import moment_pc

    records, _ = model("coded", 5, 3)
    test = jaxdp.WinsorisedPartialCorrelation(epsilon=1.5, features=True)
    assert float(cost_of(test, moment_pc._features(records)).epsilon) <= 1.5 * (1 + 1e-12)


@pytest.mark.full
def test_unordered_levels_count_as_indicators():
    rng = np.random.default_rng(0)
    level = rng.integers(0, 4, 4000)
    child = np.where(level == 2, 0.3, 0.0) + 0.1 * rng.normal(size=4000)  # no order of the levels shows it
    alone = 0.1 * rng.normal(size=4000)
    columns = (Column(CATEGORICAL, 4, "a"), Column(name="b"), Column(name="c"))
    records = Records(np.column_stack([level, np.clip(child, -1, 1), np.clip(alone, -1, 1)]), columns)
    graph = discovery.moment_pc(jax.random.key(1), records, epsilon=4.0)
    assert graph.edges == [("a", "b")]


def test_mistakes_raise_before_data_are_read():
    for settings, message in (
        ({"epsilon": -1.0, "levels": (0, 0)}, "epsilon"),
        ({"epsilon": 1.0, "levels": (0, 0), "level": 2.0}, "level"),
        ({"epsilon": 1.0, "levels": (0, 0), "max_order": -1}, "order"),
        ({"epsilon": 1.0, "levels": (0, 0), "delta": 2.0}, "delta"),
    ):
        with pytest.raises(ValueError, match=message):
            discovery.moment_pc(jax.random.key(0), np.zeros((5, 2)), **settings)
    with pytest.raises(ValueError, match="two columns"):
        discovery.moment_pc(jax.random.key(0), np.zeros((5, 1)), epsilon=1.0, levels=(0,))


@pytest.mark.full
@pytest.mark.parametrize("share", [0.05, 0.1])
def test_columns_that_are_mostly_zero_have_no_edges_by_chance(share):
    drawn = 0
    for run in range(20):
        rng = np.random.default_rng(run)
        table = np.clip((rng.random((5000, 8)) < share) * rng.exponential(3.0, (5000, 8)), 0.0, 20.0)
        frame = pd.DataFrame(table, columns=[f"v{j}" for j in range(8)])
        bounds = dict.fromkeys(frame, (0.0, 20.0))
        found = jaxdp.discover(frame, bounds=bounds, epsilon=1.0, key=jax.random.key(run), method="moment_pc")
        drawn += bool(found.skeleton.any())
    assert drawn <= 3
    assert "hardly any record differs" in found.note


@pytest.mark.parametrize(("columns", "n", "cautioned"), [(12, 2000, True), (12, 20_000, False), (4, 400, False)])
def test_a_graph_that_noise_leaves_as_far_as_no_edges_says_so_first(columns, n, cautioned):
    values = np.random.default_rng(3).normal(size=(n, columns))
    table = {f"c{k}": values[:, k] for k in range(columns)}
    bounds = dict.fromkeys(table, (-4.0, 4.0))
    graph = jaxdp.discover(table, bounds=bounds, epsilon=1.0, method="moment_pc", key=jax.random.key(0))
    told = "Expect this graph to be about as far from the truth as a graph without edges"
    assert graph.note.startswith(told) is cautioned
    assert ("From about epsilon 1.7" in graph.note) is cautioned


def test_noise_of_a_rare_level_moves_no_correlation_of_two_others():
    """Of two columns with a noisy correlation of .9 each with the rare one; that of theirs became .12."""
    p, rare = 5, 0.02  # columns, variance of the last one
    moment = np.eye(p)
    moment[:2, -1] = moment[-1, :2] = 0.9 * np.sqrt(rare)
    theta = jnp.asarray([*moment[np.triu_indices(p)], *np.zeros(p - 1), -np.sqrt(1.0 - rare)])
    found = partial_correlations.estimates(theta, (True,) * p, 5000, jnp.full(len(theta), 0.02), 2.0)
    assert abs(found.matrix[0, 1]) < 0.02


@pytest.mark.full
def test_rare_levels_make_no_edges_of_other_columns_by_chance():
    """Of columns whose correlations are mostly noise; it was 25 of 40 graphs."""
    drawn = 0
    for run in range(20):
        rng = np.random.default_rng(7000 + run)
        normal, rare = np.clip(rng.normal(size=(5000, 6)) / 5.0, -1.0, 1.0), rng.random((5000, 6)) < 0.005
        budget = {"epsilon": 1.0, "delta": 1e-6}
        graph = discovery.moment_pc(jax.random.key(run), np.hstack([normal, rare]), levels=[0] * 6 + [2] * 6, **budget)
        drawn += bool(graph.edges)
    assert drawn <= 4  # binom.ppf(1 - 1e-3, 20, .05)


def test_a_column_that_hardly_varies_is_named_and_the_others_keep_their_edge():
    rng = np.random.default_rng(0)
    first = rng.normal(size=4000)
    table = {"a": first, "b": first + rng.normal(size=4000), "rare": 5.0 * (rng.random(4000) < 0.001)}
    frame = pd.DataFrame(table)
    bounds = dict.fromkeys(frame, (-8.0, 8.0))
    graph = jaxdp.discover(frame, bounds=bounds, epsilon=2.0, key=jax.random.key(1), method="moment_pc")
    assert graph.note.startswith("No edge of rare could be found")
    assert graph.undirected == [("a", "b")]
