"""Searches: oracle exactness, metrics, orientation, budgets, F1 on the benchmark networks, bad input."""

import dataclasses
import itertools
import json
import math
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp import discovery, published
from jaxdp.accounting.amplification import amplified
from jaxdp.core import Relation
from jaxdp.data import networks
from jaxdp.data.records import as_records
from jaxdp.discovery.engine import table_scores
from jaxdp.discovery.engine.counts import Counts
from jaxdp.discovery.engine.decision_query import default_query
from jaxdp.discovery.engine.orientation import cpdag_of, extension, is_acyclic, meek
from jaxdp.discovery.engine.skeleton import find_skeleton
from jaxdp.discovery.graph import graph_from_arcs, graph_from_dict
from jaxdp.discovery.methods import em_pc, priv_pc
from jaxdp.discovery.methods.pc import d_separated
from jaxdp.discovery.metrics import cpdag_f1, shd, sid, skeleton_f1
from jaxdp.noise.source import FloatNoise
from jaxdp.published.priv_pc import printed_round, published_round
from jaxdp.simulate.designs.networks import sample_network

networkx = pytest.importorskip("networkx")
SEARCHES = [discovery.table_pc, discovery.svt_pc, discovery.priv_pc, discovery.em_pc]


def random_dag(seed, d=7, density=0.35):
    rng = np.random.default_rng(seed)
    dag = np.triu(rng.random((d, d)) < density, 1)
    order = rng.permutation(d)
    return dag[np.ix_(order, order)]


def draw(name, n, seed=0):
    return sample_network(jax.random.key(seed), networks.load(name), n)


@pytest.mark.parametrize("seed", range(12))
def test_pc_with_the_oracle_returns_the_equivalence_class(seed):
    dag = random_dag(seed)
    graph = discovery.pc(jax.random.key(0), None, test=discovery.DSeparation(dag))
    assert np.array_equal(graph.cpdag, cpdag_of(dag))
    assert (skeleton_f1(graph, dag), shd(graph, dag), cpdag_f1(graph, dag)) == (1.0, 0, 1.0)
    assert graph.complete
    moved = np.random.default_rng(seed).permutation(len(dag))
    again = discovery.pc(jax.random.key(0), None, test=discovery.DSeparation(dag[np.ix_(moved, moved)]), stable=False)
    assert np.array_equal(again.cpdag, cpdag_of(dag)[np.ix_(moved, moved)])


@pytest.mark.parametrize("seed", range(5))
def test_d_separation_equals_networkx(seed):
    dag = random_dag(seed, d=6)
    graph = networkx.DiGraph(dag.astype(int))
    for i, j in itertools.combinations(range(6), 2):
        others = [k for k in range(6) if k not in (i, j)]
        for size in range(len(others) + 1):
            for given in itertools.combinations(others, size):
                assert d_separated(dag, i, j, given) == networkx.is_d_separator(graph, {i}, {j}, set(given))


@pytest.mark.parametrize("seed", range(6))
def test_cpdag_is_the_union_of_all_equivalent_dags(seed):
    dag = random_dag(seed, d=5, density=0.5)
    pairs = [tuple(pair) for pair in np.argwhere(np.triu(dag | dag.T))]

    def colliders(g):
        return {
            (i, k, j)
            for k in range(5)
            for i, j in itertools.combinations(np.flatnonzero(g[:, k]), 2)
            if not (g[i, j] or g[j, i])
        }

    union = np.zeros_like(dag)
    for flips in itertools.product([False, True], repeat=len(pairs)):
        other = np.zeros_like(dag)
        for (i, j), flip in zip(pairs, flips, strict=True):
            other[(j, i) if flip else (i, j)] = True
        if is_acyclic(other) and colliders(other) == colliders(dag):
            union |= other
    assert np.array_equal(cpdag_of(dag), union)


def test_meek_rule_four_orients():
    arcs = np.zeros((4, 4), bool)  # a - b, a - c, a - e, c -> e, e -> b; c and b not adjacent
    a, b, c, e = range(4)
    for i, j in ((a, b), (a, c), (a, e)):
        arcs[i, j] = arcs[j, i] = True
    arcs[c, e] = arcs[e, b] = True
    closed = meek(arcs)
    assert closed[a, b]
    assert not closed[b, a]


def test_metrics_by_hand():
    truth, found = np.zeros((3, 3), bool), np.zeros((3, 3), bool)
    truth[0, 1] = truth[2, 1] = True
    found[0, 1] = found[1, 0] = True
    assert skeleton_f1(found, truth) == pytest.approx(2 / 3)
    assert shd(graph_from_arcs("abc", found), truth) == 2
    assert skeleton_f1(np.zeros((2, 2)), np.zeros((2, 2))) == 1.0
    named = graph_from_arcs(("c", "a", "b"), truth[np.ix_([2, 0, 1], [2, 0, 1])])
    assert shd(named, graph_from_arcs(("a", "b", "c"), truth)) == 0
    with pytest.raises(ValueError, match="different columns"):
        shd(named, graph_from_arcs(("a", "b", "d"), truth))


def knowing(arrows, lines=(), **knowledge):
    """A graph of age, bmi, sex and smoker that was found with some knowledge."""
    content = {"names": ["age", "bmi", "sex", "smoker"], "directed": arrows, "undirected": list(lines)}
    return graph_from_dict(content | ({"knowledge": knowledge} if knowledge else {}))


@pytest.mark.parametrize(
    ("found", "f1", "distance"),
    [
        (knowing([("bmi", "age"), ("smoker", "sex")], tiers=[["bmi", "smoker"], ["age", "sex"]]), 0.0, 2),
        (knowing([("age", "bmi")], [("sex", "smoker")], tiers=[["age"], ["bmi"]]), 1.0, 0),
        (knowing([("bmi", "age"), ("smoker", "sex")]), 1.0, 0),
        (knowing([("age", "bmi"), ("smoker", "sex")], tiers=[["age"], ["bmi"]]), 1.0, 0),  # a member of the class
        (knowing([], [("age", "bmi"), ("sex", "smoker")], tiers=[["age"], ["sex"]]), 1.0, 0),
    ],
)
def test_arrows_that_were_known_are_judged_by_the_true_graph(found, f1, distance):
    """Reversed ones were right where all edges had an arrow, and right ones were wrong where some had none."""
    truth = knowing([("age", "bmi"), ("sex", "smoker")])
    assert (cpdag_f1(found, truth), shd(found, truth)) == (f1, distance)
    order = [3, 1, 0, 2]
    mixed = graph_from_arcs([truth.names[k] for k in order], truth.cpdag[np.ix_(order, order)])
    assert (cpdag_f1(found, mixed), shd(found, mixed)) == (f1, distance)
    again = graph_from_dict(json.loads(json.dumps(found.to_dict() | {"epsilon": 2.0})))
    assert (again.knowledge, shd(again, truth)) == (found.knowledge, distance)


def test_what_follows_from_right_tiers_is_asked_and_nothing_from_wrong_ones():
    chain = knowing([("age", "bmi"), ("bmi", "sex")])
    line = [("bmi", "sex")]
    assert shd(knowing([("age", "bmi"), ("bmi", "sex")], tiers=[["age"], ["bmi"]]), chain) == 0
    assert shd(knowing([("bmi", "age")], line, tiers=[["bmi"], ["age"]]), chain) == 1
    open_ends = knowing([], [("age", "bmi"), *line])  # a class: what the tiers say of its open edges counts as true
    assert shd(knowing([("age", "bmi"), ("bmi", "sex")], tiers=[["age"], ["bmi"]]), open_ends) == 0


def test_a_search_with_tiers_and_the_oracle_has_no_distance_to_the_truth():
    for seed in range(12):
        dag = random_dag(seed)
        depth = np.linalg.matrix_power(np.eye(7, dtype=int) + dag, 7).sum(axis=0)  # grows along every arrow
        order = [f"v{k}" for k in np.argsort(depth)]
        known = discovery.Knowledge(tiers=[order[:3], order[3:]])
        found = discovery.pc(jax.random.key(0), None, test=discovery.DSeparation(dag), knowledge=known)
        assert (shd(found, dag), cpdag_f1(found, dag)) == (0, 1.0)


@pytest.mark.parametrize("knowledge", [5, [["a"]], {"tier": []}, {"tiers": 5}, {"tiers": [["z"]]}, {"required": ["a"]}])
def test_knowledge_of_a_file_that_cannot_be_read_is_one_sentence(knowledge):
    with pytest.raises(ValueError, match=r"knowledge|pairs"):
        graph_from_dict({"names": ["a", "b"], "knowledge": knowledge})


@pytest.mark.parametrize("seed", range(20))
def test_an_extension_belongs_to_the_equivalence_class_that_it_was_made_from(seed):
    cpdag = cpdag_of(random_dag(seed))
    dag = extension(cpdag)
    assert is_acyclic(dag)
    assert np.array_equal(cpdag_of(dag), cpdag)


def test_edges_round_four_columns_without_a_collider_have_no_extension():
    ring = np.zeros((4, 4), bool)
    for i in range(4):
        ring[i, (i + 1) % 4] = ring[(i + 1) % 4, i] = True
    assert extension(ring) is None
    with pytest.raises(ValueError, match="the graph found is none"):
        sid(ring, random_dag(0, d=4))


def test_the_intervention_distance_names_its_package_and_wants_a_dag(monkeypatch):
    monkeypatch.setitem(sys.modules, "gadjid", None)
    with pytest.raises(ImportError, match=r"pip install 'jaxdp-dependence\[sid\]'"):
        sid(np.zeros((7, 7), bool), random_dag(0))
    with pytest.raises(ValueError, match="all edges directed"):
        sid(np.zeros((2, 2), bool), np.array([[0, 1], [1, 0]], bool))


def test_graph_exchange():
    arcs = np.array([[0, 1, 0], [0, 0, 1], [0, 1, 0]], bool)  # a -> b, b - c
    graph = graph_from_arcs(("a", "b", "c"), arcs)
    assert graph.directed == [("a", "b")]
    assert graph.undirected == [("b", "c")]
    again = graph_from_dict(json.loads(json.dumps(graph.to_dict() | {"epsilon": 2.0})))
    assert np.array_equal(again.cpdag, arcs)
    assert set(graph.to_networkx().edges) == {("a", "b"), ("b", "c"), ("c", "b")}
    assert graph.to_causal_learn().tolist() == [[0, -1, 0], [1, 0, -1], [0, -1, 0]]
    assert graph.to_pcalg().tolist() == arcs.T.astype(int).tolist()
    assert graph.to_tigramite().tolist() == [["", "-->", ""], ["<--", "", "o-o"], ["", "o-o", ""]]
    assert '"a" -> "b"' in graph.to_dot()
    assert graph.to_dot().startswith("// NOT PRIVATE: simulation\ndigraph {")
    assert dataclasses.replace(graph, mode="release").to_dot().startswith("digraph {")
    for content in (
        {},
        {"names": ["a", "a"]},
        {"names": ["a"], "directed": [["a", "z"]]},
        {"names": ["a"], "directed": [1]},
    ):
        with pytest.raises(ValueError, match=r"graph needs|must hold|holds"):
            graph_from_dict(content)


@pytest.mark.full
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_default_reaches_the_targets_of_the_benchmark(epsilon):
    """Pure epsilon, n = 1e5: Cancer and Earthquake exactly, Asia at least .78/.77/.83."""
    scores = {}
    for name in ("cancer", "earthquake", "asia"):
        graphs = [
            discovery.table_pc(jax.random.key(seed), draw(name, 100_000, 50 + seed), epsilon=epsilon)
            for seed in range(16)
        ]
        scores[name] = float(np.mean([skeleton_f1(graph, networks.load(name)) for graph in graphs]))
        assert all(float(graph.cost.epsilon) == epsilon for graph in graphs)
    assert (scores["cancer"], scores["earthquake"]) == (1.0, 1.0)
    assert scores["asia"] >= {0.3: 0.78, 1.0: 0.77, 3.0: 0.83}[epsilon]


@pytest.mark.parametrize("search", [discovery.table_pc, discovery.svt_pc, discovery.priv_pc])
@pytest.mark.parametrize("name", ["cancer", "survey"])
def test_large_budget_equals_the_search_without_noise(search, name):
    records = draw(name, 20_000)
    how = {"statistic": "kendall"} if search is discovery.table_pc else {}
    found = search(jax.random.key(1), records, epsilon=1e7, **how)
    counts, z = Counts(records), 4.0
    if search is discovery.table_pc:
        exact = discovery.pc(jax.random.key(1), records)
        assert np.array_equal(found.skeleton, exact.skeleton)
    else:
        decision = default_query(z, records.num_records)

        def ask(queries):
            return [decision.value(counts, query) >= 0 for query in queries]

        exact = find_skeleton(len(records.columns), ask, max_order=None, batched=False)
        assert np.array_equal(found.skeleton, exact.adjacency)


def test_batched_and_sequential_searches_agree():
    records = draw("asia", 20_000)
    counts = Counts(records)

    def ask(queries):
        return list(table_scores.scores(counts, queries) < 3.9)

    together = find_skeleton(8, ask, max_order=None, batched=True)
    in_turn = find_skeleton(8, ask, max_order=None, batched=False)
    assert np.array_equal(together.adjacency, in_turn.adjacency)
    assert together.separators == in_turn.separators


def test_counting_engine_with_and_without_the_joint_table():
    records = draw("survey", 3000)
    whole, by_set = Counts(records), Counts(records, joint_cells=1)
    for query in [(0, 1, ()), (4, 2, (5, 0)), (3, 5, (1,))]:
        assert np.array_equal(whole.pair_given(*query), by_set.pair_given(*query))


def test_uninformative_strata_do_not_remove_edges():
    """xray and either given both parents of either, which determine it: no evidence, so the edge stays."""
    records = draw("asia", 100_000)
    names = list(records.names)
    i, j = sorted((names.index("either"), names.index("xray")))
    query = (i, j, (names.index("tub"), names.index("lung")))
    assert table_scores.scores(Counts(records), [query])[0] == np.inf
    assert table_scores.scores(Counts(records), [query], min_variance=0.0)[0] < 4.0


def neighbours_of_codes(rng, shape, n):
    codes = np.stack([np.minimum(rng.integers(0, k, n), rng.integers(0, k, n)) for k in shape], axis=1)
    other = codes.copy()
    other[rng.integers(n)] = [rng.integers(k) for k in shape]
    return as_records(codes, shape), as_records(other, shape)


def test_histogram_and_queries_move_within_their_bounds():
    rng = np.random.default_rng(5)
    for shape in [(2, 2, 2), (3, 2, 3), (3, 4, 2)]:
        for _ in range(40):
            before, after = neighbours_of_codes(rng, shape, int(rng.integers(2, 12)))
            query = discovery.NoisyHistogram(epsilon=1.0, levels=shape)
            tables = [query.statistic(jax.random.key(0), records) for records in (before, after)]
            assert np.abs(tables[0] - tables[1]).sum() <= float(query.sensitivity(before.num_records).bound)
            decision = default_query(4.0, before.num_records)
            for query in [(0, 1, ()), (0, 1, (2,)), (1, 2, (0,))]:
                moves = [decision.value(Counts(records), query) for records in (before, after)]
                assert abs(moves[0] - moves[1]) <= 1.0 + 1e-9


def test_decision_query_bound_is_needed():
    """Worst pair of Theorem B: the query moves by most of its bound, so a tenth less would be wrong."""
    low, high = np.arange(1, 301), np.arange(1, 401)
    x, y = np.concatenate([[0], low, high]), np.concatenate([[0], low[::-1], high])
    z = np.repeat([0, 0, 1], [1, low.size, high.size])
    first = np.arange(x.size) == 0
    moved = (x, np.where(first, 401, y), np.where(first, 1, z))
    shape = (402, 402, 2)
    pair = [as_records(np.stack(columns, axis=1), shape) for columns in ((x, y, z), moved)]
    query = default_query(0.0, x.size)  # z = 0 leaves |U| alone
    values = [query.value(Counts(records), (0, 1, (2,))) * query.bound((0, 1, (2,)), shape) for records in pair]
    assert 0.9 * 3.0 < abs(values[0] - values[1]) <= 3.0


def test_exponential_scores_are_lipschitz():
    rng = np.random.default_rng(6)
    for _ in range(300):
        scores = rng.normal(0, 3, rng.integers(1, 6))
        moved = scores + rng.uniform(-1, 1, scores.size)
        assert np.max(np.abs(em_pc.count_scores(scores) - em_pc.count_scores(moved))) <= 1.0 + 1e-12
    sharp = em_pc.count_scores(np.array([5.0, 4.0, -3.0]))
    assert sharp.tolist() == [-5.0, -4.0, -0.0, -4.0] or np.argmax(sharp) == 2
    assert em_pc.removals(FloatNoise(jax.random.key(0)), np.array([50.0, -50.0, 60.0]), 40.0) in ([0, 2], [2, 0])


def test_rounds_of_sieve_and_examine_cost_what_they_say():
    for rate, share in ((1.0, 0.5), (0.25, 0.5), (0.25, 0.7)):
        plan = priv_pc.corrected_round(0.4, rate, 1.0, 1.0, share)
        loss = 1.0 / plan.scale_threshold + 2.0 / plan.scale_query
        assert amplified(loss, rate) + 1.0 / plan.scale_examine == pytest.approx(0.4, rel=1e-12)
    n, m, epsilon = 10_000, 2000, 1.0
    paper = published_round(epsilon, n, m)
    true = 36 / math.sqrt(297)
    loss = true / paper.scale_threshold + 2 * true / paper.scale_query
    assert paper.epsilon == pytest.approx(math.log1p(m / n * math.expm1(loss)) + true / paper.scale_examine, rel=1e-9)
    assert paper.epsilon > 20 * epsilon


@pytest.mark.parametrize(
    ("algorithm", "ratio", "true"), [(1, 1, 1.25), (1, 2, 1.06), (2, 2, 1.12), (2, 5, 1.56), (2, 20, 4.73)]
)
def test_printed_rounds_cost_more_than_they_claim(algorithm, ratio, true):
    """The values of docs/theory/priv_pc.md#printed-rounds, of rounds that the paper calls 1-DP."""
    assert printed_round(algorithm, 1.0, 1 / ratio) == pytest.approx(true, abs=0.006)


def test_the_number_of_rounds_is_a_hard_budget():
    records = draw("asia", 5000)
    graph = discovery.priv_pc(jax.random.key(1), records, epsilon=5.0, max_rounds=3)
    assert not graph.complete
    assert graph.untested
    assert all(graph.skeleton[i, j] for i, j in graph.untested)
    assert float(graph.cost.epsilon) == pytest.approx(5.0)
    fired = [item for item in graph.decisions if item.independent]
    assert len(fired) <= 3


def test_failed_examinations_are_charged(monkeypatch):
    monkeypatch.setattr(priv_pc.Rounds, "_examine", lambda self, value: -1.0)
    graph = discovery.priv_pc(jax.random.key(1), draw("cancer", 5000), epsilon=50.0, max_rounds=4)
    assert not graph.complete
    assert np.sum(np.triu(graph.skeleton)) == 10  # nothing passed, and four failures used up the four rounds


@pytest.mark.full
def test_private_tests_plug_in_under_a_hard_budget():
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, 2000)
    values = np.stack([x, np.clip(0.8 * x + 0.1 * rng.normal(size=2000), -1, 1), rng.integers(0, 2, 2000)], axis=1)
    records = as_records(jnp.asarray(values), (0, 0, 2), ("a", "b", "c"))
    graph = discovery.pc(jax.random.key(0), records, test=jaxdp.PartitionGCM(epsilon=2.0), level=0.01, max_tests=10)
    assert graph.skeleton[0, 1]
    assert not graph.skeleton[0, 2]
    assert float(graph.cost.epsilon) == pytest.approx(20.0)
    short = discovery.pc(jax.random.key(0), records, test=jaxdp.PartitionGCM(epsilon=2.0), max_tests=1)
    assert not short.complete
    assert short.num_tests <= 1
    with pytest.raises(ValueError, match="max_tests"):
        discovery.pc(jax.random.key(0), records, test=jaxdp.PartitionGCM(epsilon=2.0))
    mixed = discovery.discover(jax.random.key(0), records, epsilon=20.0)
    assert mixed.skeleton[0, 1]
    assert float(mixed.cost.epsilon) == pytest.approx(20.0)


def test_callables_plug_in_and_are_labelled():
    dag = random_dag(3, d=5)
    asked = []

    def oracle(i, j, given):
        asked.append((i, j, given))
        return 0.0, 1.0 if d_separated(dag, i, j, given) else 0.0

    records = as_records(np.zeros((2, 5), int), (2,) * 5)
    graph = discovery.pc(jax.random.key(0), records, test=oracle)
    assert np.array_equal(graph.cpdag, cpdag_of(dag))
    assert np.isinf(float(graph.cost.epsilon))
    assert len(asked) == len(set(asked))
    with pytest.raises(ValueError, match="not private"):
        discovery.pc(jaxdp.fresh_key(), records, test=oracle)


def test_releases_and_ledger(tmp_path):
    from jaxdp.accounting.ledger import Ledger

    records = draw("cancer", 20_000)
    ledger = Ledger.create(str(tmp_path / "l.db"), epsilon=1.0)
    graph = discovery.table_pc(jaxdp.fresh_key(), records, epsilon=0.75, ledger=ledger)
    assert graph.mode == "release"
    with pytest.raises(Exception, match=r"budget|epsilon"):
        discovery.table_pc(jaxdp.fresh_key(), records, epsilon=0.75, ledger=ledger)
    assert discovery.em_pc(jaxdp.fresh_key(), records, epsilon=2.0, max_order=1).mode == "release"
    with pytest.raises(ValueError, match="simulation key"):
        published.priv_pc_paper(jaxdp.fresh_key(), records, epsilon=1.0)
    with pytest.raises(Exception, match=r"budget|epsilon"):
        discovery.svt_pc(jaxdp.fresh_key(), records, epsilon=0.75, ledger=ledger)


def test_simulated_and_released_histograms_share_a_law():
    records, epsilon = as_records(np.zeros((50, 2), int), (2, 2)), 1.0
    query = discovery.NoisyHistogram(epsilon=epsilon, levels=(2, 2))
    draws = np.concatenate(
        [
            np.asarray(jaxdp.release(query, jax.random.key(seed), records).value).ravel() - [50, 0, 0, 0]
            for seed in range(200)
        ]
    )
    variance = 2 * math.exp(-0.5) / (1 - math.exp(-0.5)) ** 2
    # kurtosis of Laplace noise is 6, so the sd of the sample variance is sqrt(5/800) = 8 %
    assert np.var(draws) == pytest.approx(variance, rel=0.39)
    assert np.all(draws == np.round(draws))


@pytest.mark.parametrize("search", SEARCHES)
def test_degenerate_data_give_graphs(search):
    for codes, levels in (
        (np.zeros((1, 3), int), (2, 2, 2)),
        (np.zeros((50, 3), int), (1, 2, 3)),
        (np.tile(np.arange(2), 25)[:, None].repeat(3, 1), (2, 2, 2)),
        (np.full((5, 2), 7.5), (2, 3)),
        (np.full((5, 2), np.nan), (2, 3)),
        (np.zeros((5, 1), int), (2,)),
    ):
        graph = search(jax.random.key(0), codes, epsilon=1.0, levels=levels)
        d = len(levels)
        assert graph.skeleton.shape == (d, d)
        assert not np.any(np.diag(graph.skeleton))


def test_copies_stay_joined_and_constants_stay_alone():
    rng = np.random.default_rng(1)
    coin = rng.integers(0, 2, 5000)
    codes = np.stack([coin, coin, np.zeros(5000, int), rng.integers(0, 2, 5000)], axis=1)
    for graph in (
        discovery.pc(jax.random.key(0), codes, levels=(2, 2, 2, 2)),
        discovery.table_pc(jax.random.key(0), codes, levels=(2, 2, 2, 2), epsilon=5.0),
    ):
        assert graph.edges == [("v0", "v1")]


def test_public_mistakes_raise_before_data_are_read():
    codes = np.zeros((5, 2), int)
    for settings, message in (
        ({"epsilon": -1.0, "levels": (2, 2)}, "epsilon"),
        ({"epsilon": 1.0}, "levels is needed"),
        ({"epsilon": 1.0, "levels": (2, 0)}, "continuous"),
        ({"epsilon": 1.0, "levels": (2000, 2000)}, "cells"),
        ({"epsilon": 1.0, "levels": (2, 2), "level": 2.0}, "level"),
    ):
        with pytest.raises(ValueError, match=message):
            discovery.table_pc(jax.random.key(0), codes, **settings)
    with pytest.raises(TypeError, match="key"):
        discovery.table_pc(0, codes, epsilon=1.0, levels=(2, 2))
    with pytest.raises(TypeError, match="test must be"):
        discovery.pc(jax.random.key(0), codes, test=3, levels=(2, 2))
    with pytest.raises(ValueError, match="subset"):
        discovery.priv_pc(jax.random.key(0), codes, epsilon=1.0, subset=9, levels=(2, 2))


def test_automatic_choice_uses_public_numbers_only():
    choose = discovery.choose_method
    small = as_records(np.zeros((5, 8), int), (2,) * 8)
    assert choose(small, 1.0) == "table_pc"
    wide = as_records(np.zeros((5, 30), int), (2,) * 30)
    assert choose(wide, 1.0) == "max_min_pc"
    assert choose(as_records(np.zeros((5, 2)), (2, 0)), 1.0) == "moment_pc"


def test_add_or_remove_one_costs_half_the_noise():
    replaced = discovery.NoisyHistogram(epsilon=1.0, levels=(2,)).sensitivity(10)
    added = discovery.NoisyHistogram(epsilon=1.0, levels=(2,), relation=Relation.ADD_OR_REMOVE_ONE).sensitivity(10)
    assert (replaced.bound, added.bound) == (2, 1)
    graph = discovery.table_pc(
        jax.random.key(0), draw("cancer", 20_000), epsilon=1.0, relation=Relation.ADD_OR_REMOVE_ONE
    )
    assert graph.cost.relation is Relation.ADD_OR_REMOVE_ONE


def test_marginal_tables_find_the_graph_under_zcdp():
    records = draw("asia", 100_000, 3)
    graph = discovery.marginal_pc(jax.random.key(0), records, rho=0.5)
    assert skeleton_f1(graph, networks.load("asia")) >= 0.87
    assert np.isinf(float(graph.cost.epsilon))
    assert float(graph.cost.rho) == pytest.approx(0.5)
    exact = discovery.pc(jax.random.key(0), records, max_order=1)
    assert np.array_equal(discovery.marginal_pc(jax.random.key(0), records, rho=1e9).cpdag, exact.cpdag)
    for settings, message in (({"width": 9}, "width"), ({"max_order": 2}, "orders up to 1"), ({"rho": -1.0}, "rho")):
        with pytest.raises(ValueError, match=message):
            discovery.marginal_pc(jax.random.key(0), records, **({"rho": 1.0} | settings))


def test_marginals_move_within_their_l2_bound():
    rng = np.random.default_rng(8)
    query = discovery.NoisyMarginals(mechanism=jaxdp.Gaussian(rho=1.0), levels=(2, 3, 2, 2), width=2)
    statistic = jax.jit(lambda records: query.statistic(jax.random.key(0), records))
    largest = 0.0
    for _ in range(60):
        before, after = neighbours_of_codes(rng, (2, 3, 2, 2), 6)
        values = [np.asarray(statistic(records), float) for records in (before, after)]
        largest = max(largest, float(np.linalg.norm(values[0] - values[1])))
    assert values[0].size == sum(a * b for a, b in itertools.combinations((2, 3, 2, 2), 2))
    bound = float(query.sensitivity(6).bound)
    assert 0.9 * bound < largest <= bound + 1e-12


def test_a_search_of_continuous_columns_says_so_to_coded_ones():
    with pytest.raises(ValueError, match="neighbour_pc takes only several columns of which some are continuous; use"):
        discovery.discover(
            jax.random.key(0), np.zeros((50, 3), int), levels=(2, 2, 2), epsilon=1.0, method="neighbour_pc"
        )
