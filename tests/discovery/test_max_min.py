"""Max-min selection: sensitivity, scores kept up to date, budgets to the last bit, what a graph may depend on."""

import itertools
import re
from fractions import Fraction

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp._base.rounding import as_fraction
from jaxdp.core import Relation
from jaxdp.data.networks import Network, Variable
from jaxdp.data.records import Records, as_records
from jaxdp.discovery.engine.counts import Counts
from jaxdp.discovery.engine.knowledge import Known
from jaxdp.discovery.engine.max_min_budget import Budget, Shares
from jaxdp.discovery.engine.max_min_scores import MaxMinScores, TableScores, rounding
from jaxdp.discovery.methods import max_min_pc as method
from jaxdp.noise.recorder import Tape
from jaxdp.randomness.keys import RecordedKey
from jaxdp.statistics.tables.excess import Excess, variation

EXCESS = Excess()
REPLACE, ARRIVAL = Relation.REPLACE_ONE, Relation.ADD_OR_REMOVE_ONE


def score(table):
    """q of one table (strata, La, Lb)."""
    table = np.asarray(table)
    return float(EXCESS.of_tables(table[None], np.array([table.shape[-1] * table.shape[-2]]))[0])


def moved(table, source, target):
    """The change of q when a row of one cell goes, and comes to another."""
    other = np.array(table)
    if source is not None:
        other[source] -= 1
    if target is not None:
        other[target] += 1
    assert other.min() >= 0
    return abs(score(other) - score(table))


def worst_table(size=10**6, rare=2000):
    """Two strata from the proof: a rare cell that holds all of its row and column, and one that holds none of them."""
    full = [[rare, 0], [0, size - rare]]
    empty = [[0, rare], [rare, size - 2 * rare]]
    return np.array([full, empty])


def worst_marginal(size=10**6, rare=2000):
    """Three levels: a cell that holds all of a rare row and column, and an empty cell of two other rare ones."""
    return np.array([[[rare, 0, 0], [0, 0, rare], [0, rare, size - 3 * rare]]])


def test_the_bounds_are_those_of_the_proof():
    """docs/theory/max_min_pc.md#sensitivity, h = 0.052; attacks stop short of the last percent."""
    h = 0.8 / (4.0 * 25.0**0.5) + 1.2 / (2.0 * 2500.0**0.5)
    assert EXCESS.sensitivity(ARRIVAL) == pytest.approx(2.0 + 3.0 * h, rel=1e-6)
    assert EXCESS.sensitivity(REPLACE) == pytest.approx(2.0 * (2.0 + 3.0 * h), rel=1e-6)
    assert EXCESS.marginal_sensitivity(REPLACE) == pytest.approx(3.0 + 4.0 * h, rel=1e-6)
    assert EXCESS.marginal_sensitivity(REPLACE, True) == pytest.approx(2.0 + 4.0 * h, rel=1e-6)


def test_the_worst_tables_reach_nine_tenths_of_the_bounds():
    conditional = moved(worst_table(), (0, 0, 0), (1, 0, 0))
    assert 0.9 * EXCESS.sensitivity(REPLACE) < conditional <= EXCESS.sensitivity(REPLACE)
    arrival = moved(worst_table(), None, (1, 0, 0))
    assert 0.9 * EXCESS.sensitivity(ARRIVAL) < arrival <= EXCESS.sensitivity(ARRIVAL)
    marginal = moved(worst_marginal(), (0, 0, 0), (0, 1, 1))
    assert 0.9 * EXCESS.marginal_sensitivity(REPLACE) < marginal <= EXCESS.marginal_sensitivity(REPLACE)
    binary = moved([[[1, 0], [0, 10**6]]], (0, 0, 0), (0, 0, 1))
    assert 0.9 * EXCESS.marginal_sensitivity(REPLACE, True) < binary <= EXCESS.marginal_sensitivity(REPLACE, True)


def every_move(table):
    """Changes of q when a row of one cell goes to another, of all such moves; and when a row arrives in each cell."""
    shape, flat = table.shape, table.reshape(-1)
    each = np.eye(flat.size, dtype=int)
    occupied = np.flatnonzero(flat)
    replaced = (flat - each[occupied])[:, None] + each[None]
    changed = np.concatenate([replaced.reshape(-1, flat.size), flat + each, flat[None]]).reshape(-1, *shape)
    scores = EXCESS.of_tables(changed, np.full(len(changed), shape[1] * shape[2]))
    changes = np.abs(scores[:-1] - scores[-1])
    return changes[: -flat.size].max(), changes[-flat.size :].max()


def test_no_small_table_passes_the_bounds():
    generator, worst = np.random.default_rng(0), dict.fromkeys(("any", "one stratum", "binary", "arrival"), 0.0)
    for number in range(400):
        shape = (1, 2, 2) if number % 4 == 0 else tuple(generator.integers((1, 2, 2), (4, 5, 5)))
        size = generator.choice([4, 12, 60, 1000])
        table = generator.multinomial(size, generator.dirichlet(np.full(np.prod(shape), 0.3))).reshape(shape)
        replaced, arrived = every_move(table)
        kinds = ["any", *["one stratum"] * bool(shape[0] == 1), *["binary"] * bool(shape == (1, 2, 2))]
        worst.update({kind: max(worst[kind], replaced) for kind in kinds})
        worst["arrival"] = max(worst["arrival"], arrived)
    assert 0.5 * EXCESS.sensitivity(REPLACE) < worst["any"] <= EXCESS.sensitivity(REPLACE)
    assert 0.5 * EXCESS.marginal_sensitivity(REPLACE) < worst["one stratum"] <= EXCESS.marginal_sensitivity(REPLACE)
    assert 0.5 * EXCESS.marginal_sensitivity(REPLACE, True) < worst["binary"]
    assert worst["binary"] <= EXCESS.marginal_sensitivity(REPLACE, True)
    assert worst["arrival"] <= EXCESS.sensitivity(ARRIVAL)


def test_a_row_that_arrives_moves_the_residuals_by_one_product():
    generator = np.random.default_rng(1)
    for _ in range(50):
        table = generator.integers(0, 9, (3, 4)).astype(float)
        size, row, column = table.sum(), table.sum(1), table.sum(0)
        a, b = generator.integers(3), generator.integers(4)
        other = table.copy()
        other[a, b] += 1
        change = (other - np.outer(other.sum(1), other.sum(0)) / other.sum()) - (table - np.outer(row, column) / size)
        direct = np.outer(np.eye(3)[a] - row / size, np.eye(4)[b] - column / size) * size / (size + 1)
        np.testing.assert_allclose(change, direct, atol=1e-12)


def test_a_row_that_arrives_never_lowers_the_variation_and_raises_it_by_at_most_one():
    generator = np.random.default_rng(2)
    for _ in range(100):
        table = generator.integers(0, 4, (1, 2, 3, 3))
        for cell in itertools.product(range(2), range(3), range(3)):
            other = table.copy()
            other[(0, *cell)] += 1
            assert 0 <= variation(other)[0] - variation(table)[0] <= 1


def test_scores_are_near_zero_or_below_under_independence():
    generator = np.random.default_rng(3)
    for levels, strata in ((2, 1), (3, 1), (2, 4), (3, 9)):
        cells = generator.integers(0, [strata, levels, levels], (20_000, 3))
        table = np.zeros((strata, levels, levels), int)
        np.add.at(table, tuple(cells.T), 1)
        assert -3 * 20_000**0.5 < score(table) < 0.5 * 20_000**0.5


def network(d=8, seed=0, levels=(2, 3)):
    """A random network in which every column but the first has one or two parents."""
    generator = np.random.default_rng(seed)
    sizes, variables = generator.choice(levels, d), {}
    for i in range(d):
        parents = sorted(generator.choice(i, min(i, int(generator.integers(1, 3))), replace=False).tolist())
        table = generator.dirichlet(np.full(sizes[i], 0.6), size=[sizes[k] for k in parents])
        states = tuple(map(str, range(sizes[i])))
        variables[f"v{i}"] = Variable(states, tuple(f"v{k}" for k in parents), 0.95 * table + 0.05 / sizes[i])
    return Network(variables)


def sampled(net, n, seed=0):
    return jaxdp.simulate.sample_network(jax.random.key(seed), net, n)


def every_minimum(records, adjacency, known=None, max_order=2):
    """The smallest q by a loop over all sets, one table at a time."""
    counts, d = Counts(records), len(records.columns)
    found = np.full((d, d), np.inf)
    for i, j in itertools.combinations(range(d), 2):
        sets = {()}
        for node, other in ((i, j), (j, i)):
            near = [int(k) for k in np.flatnonzero(adjacency[node]) if k != other]
            sets |= {given for size in range(1, max_order + 1) for given in itertools.combinations(near, size)}
        sets = [given for given in sets if known is None or known.may_condition(i, j, given)]
        found[i, j] = found[j, i] = min(score(counts.pair_given(i, j, given)) for given in sets)
    return found


@pytest.mark.parametrize("joint_cells", [1 << 20, 0])
def test_minima_are_kept_up_to_date(joint_cells):
    records = sampled(network(6), 400)
    tier = np.array([0, 0, 1, 1, -1, 2])
    known = Known(np.zeros((6, 6), bool), np.zeros((6, 6), bool), tier)
    scores = MaxMinScores(records.levels, TableScores(Counts(records, joint_cells), EXCESS), 2, known)
    for edges in ([(0, 1), (1, 2), (2, 3)], [(3, 4)], [(2, 5)], [(1, 4)]):
        scores.add(edges)
        expected = every_minimum(records, scores.adjacency, known)
        off = ~np.eye(6, dtype=bool)
        np.testing.assert_allclose(scores.minimum[off], expected[off], atol=1e-9)
        assert (scores.guarded >= scores.minimum)[off].all()


def test_contrasts_compare_sets_with_and_without_the_middle():
    records = sampled(network(6), 3000)
    scores = MaxMinScores(records.levels, TableScores(Counts(records), EXCESS), 2, Known.nothing(6))
    scores.add([(0, 1), (1, 2), (1, 3), (3, 4)])
    counts = Counts(records)
    # neighbours of 0: 1; of 2: 1. Only {1} holds the middle, only the empty set does not
    value = score(counts.pair_given(0, 2, ())) - score(counts.pair_given(0, 2, (1,)))
    np.testing.assert_allclose(scores.contrast([(0, 1, 2)]), [value], atol=1e-9)


def test_a_function_of_another_column_is_guarded():
    generator = np.random.default_rng(4)
    a, b = generator.integers(0, 2, (2, 4000))
    either = a | b
    noisy = np.where(generator.random(4000) < 0.1, 1 - either, either)
    records = as_records(np.stack([a, b, either, noisy], 1).astype(np.int32), (2, 2, 2, 2))
    scores = MaxMinScores(records.levels, TableScores(Counts(records), EXCESS), 2, Known.nothing(4))
    scores.add([(0, 2), (1, 2)])
    assert scores.minimum[2, 3] <= 0.0 < 100.0 < scores.guarded[2, 3]


def recorded(records, outputs=None, **settings):
    """The graph and the noise calls of a search."""
    tape = Tape(outputs=outputs)
    graph = jaxdp.discovery.max_min_pc(RecordedKey(jax.random.key(5), tape), records, **settings)
    return graph, tape.calls


@pytest.mark.parametrize("prune", ["guarded", "keep", "all", "forest", "tree"])
@pytest.mark.parametrize("stop", [0.0, 0.3, 100.0])
def test_budgets_of_all_draws_add_up_to_no_more_than_the_budget(prune, stop):
    records = sampled(network(), 2000)
    for delta in (0.0, 1e-6):
        graph, calls = recorded(records, epsilon=0.7, delta=delta, prune=prune, stop=stop, directions=0.1)
        spent = Fraction(0)
        for call in calls:
            reach, amount = call.parameters
            exact = as_fraction(float(amount))
            spent += exact**2 / 8 if call.law.name == "argmax_gumbel" else exact
            assert float(reach) >= 2.0
        whole = Budget.of(0.7, delta, REPLACE).whole
        total = as_fraction(0.7) if delta == 0.0 else as_fraction(float(whole.rho))
        assert spent <= total
        assert graph.cost.epsilon == 0.7
        assert graph.cost.delta == delta
        if prune in ("guarded", "all", "forest"):
            assert spent > Fraction(85, 100) * total  # what a stop leaves goes to the numbers


def test_the_graph_follows_from_what_was_released():
    first, second = sampled(network(), 2000, 1), sampled(network(seed=9), 2000, 2)
    settings = {"epsilon": 3.0, "directions": 0.2, "prune": "guarded"}
    graph, calls = recorded(first, **settings)
    other, again = recorded(Records(second.values, first.columns), [call.output for call in calls], **settings)
    np.testing.assert_array_equal(graph.cpdag, other.cpdag)
    assert [(c.law.name, c.parameters, np.shape(c.value)) for c in calls] == [
        (c.law.name, c.parameters, np.shape(c.value)) for c in again
    ]
    assert any(not np.array_equal(c.value, o.value) for c, o in zip(calls, again, strict=True))


def test_noise_is_scaled_by_the_bound_and_the_rounding():
    records = sampled(network(), 2000)
    error = rounding(EXCESS, records.levels, 2000)
    assert 0.0 < error < 1e-5
    _, calls = recorded(records, epsilon=3.0, prune="guarded")
    assert calls[0].parameters[0] == pytest.approx(EXCESS.marginal_sensitivity(REPLACE), rel=1e-6)
    assert calls[len(records.columns) - 1].parameters[0] == pytest.approx(EXCESS.sensitivity(REPLACE), rel=1e-6)


def test_numbers_released_together_for_a_pure_epsilon_cost_the_bound_of_one():
    """Noise of the cube: however many numbers, each moves by its bound, and so does the largest move of all."""
    records = sampled(network(), 20_000)
    graph, calls = recorded(records, epsilon=5.0, prune="guarded", directions=0.2)
    weighed, contrasts = (call for call in calls if call.law.name in ("laplace", "max_norm"))
    assert (weighed.law.name, contrasts.law.name) == ("max_norm", "max_norm")
    assert np.size(weighed.value) == len(graph.decisions) > 7
    assert np.size(contrasts.value) > 3
    for call, bound in ((weighed, 1.0), (contrasts, 2.0)):
        assert float(call.parameters[0]) == pytest.approx(bound * EXCESS.sensitivity(REPLACE), rel=1e-6)
    assert float(contrasts.parameters[1]) == pytest.approx(1.0)
    _, calls = recorded(records, epsilon=5.0, delta=1e-6, prune="guarded")
    assert {call.law.name for call in calls} == {"argmax_gumbel", "gaussian"}


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_network_is_found(delta):
    net = network(12, seed=3)
    graph = jaxdp.discovery.max_min_pc(jax.random.key(0), sampled(net, 50_000), epsilon=2.0, delta=delta)
    assert jaxdp.discovery.skeleton_f1(graph, net) >= 0.85
    q_values = graph.q_values
    assert np.nanmax(q_values) <= 0.05
    assert np.isfinite(q_values[graph.skeleton]).all()


def test_directions_are_found():
    net = network(8, seed=3)
    records = sampled(net, 50_000)
    graph = jaxdp.discovery.max_min_pc(jax.random.key(0), records, epsilon=30.0, directions=0.2)
    assert graph.directed
    assert jaxdp.discovery.cpdag_f1(graph, net) >= 0.7
    bare = jaxdp.discovery.max_min_pc(jax.random.key(0), records, epsilon=30.0, directions=0.0)
    assert not bare.directed
    assert "no direction" in bare.note


@pytest.mark.parametrize("delta", [0.0, pytest.param(1e-6, marks=pytest.mark.full)])
def test_a_release_charges_the_ledger(tmp_path, delta):
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=2.0, delta=1e-5)
    records = sampled(network(4), 500)
    graph = jaxdp.discovery.max_min_pc(jaxdp.fresh_key(), records, epsilon=1.5, delta=delta, ledger=ledger)
    assert graph.mode == "release"
    assert ledger.remaining.delta == pytest.approx(1e-5 - delta)
    assert ledger.remaining.epsilon == pytest.approx(0.5)
    with pytest.raises(jaxdp.BudgetExhausted):
        jaxdp.discovery.max_min_pc(jaxdp.fresh_key(), records, epsilon=1.0, ledger=ledger)


def test_a_tree_takes_the_whole_budget_where_the_rest_would_be_chance():
    records = sampled(network(), 2000)
    graph, calls = recorded(records, epsilon=0.3, directions=0.0)
    assert "spanning tree" in graph.note
    assert len(calls) == len(graph.decisions) + 1  # a draw for each edge, and their numbers
    assert sum(as_fraction(float(call.parameters[1])) for call in calls) <= as_fraction(0.3)
    spared, _ = recorded(records, epsilon=0.3, prune="tree")
    assert spared.skeleton.sum() == 2 * 7
    private_size = jaxdp.discovery.max_min_pc(jax.random.key(5), records, epsilon=0.3, relation=ARRIVAL)
    assert "spanning tree" not in private_size.note


def test_the_border_of_forests_counts_the_share_that_draws_have():
    """0.45 of a pure epsilon, 0.3 of a rho; a pure border that counted 0.3 at 2 % drew forests that were farther."""
    records, directions = sampled(network(), 2000), {"directions": 0.0}
    assert method._noise(Budget.of(1.0, 0.0, REPLACE), 8) == pytest.approx(2 * 4.312 * 8 / 0.45, rel=1e-4)
    border = 2 * 4.312 * 8 / 0.45 / (0.035 * 2000)
    for epsilon, forest in ((1.01 * border, False), (0.99 * border, True)):
        graph = jaxdp.discovery.max_min_pc(jax.random.key(0), records, epsilon=epsilon, **directions)
        assert ("spanning tree" in graph.note) is forest


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_graph_no_nearer_than_none_says_so_first_and_proposes_what_would_do(delta):
    records = sampled(network(), 2000)
    settings = {"delta": delta, "directions": 0.0}
    graph = jaxdp.discovery.max_min_pc(jax.random.key(0), records, epsilon=0.3 if not delta else 0.05, **settings)
    assert graph.note.startswith("Expect this graph to be about as far from the truth as a graph without edges")
    found = re.search(r"about epsilon ([0-9.e+-]+), or from about ([0-9]+) records", graph.note)
    epsilon, size = float(found[1]), int(found[2])
    enough = jaxdp.discovery.max_min_pc(jax.random.key(0), records, epsilon=epsilon, **settings)
    assert "spanning tree" not in enough.note
    below = jaxdp.discovery.max_min_pc(jax.random.key(0), records, epsilon=0.85 * epsilon, **settings)
    assert "spanning tree" in below.note
    more = jaxdp.discovery.max_min_pc(
        jax.random.key(0), sampled(network(), size), epsilon=0.3 if not delta else 0.05, **settings
    )
    assert "spanning tree" not in more.note


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("epsilon", [0.02, 0.2, 0.5, 3.0])
def test_a_forest_has_as_many_edges_as_are_drawn_within_the_noise(epsilon, delta):
    records, known = sampled(network(), 5000), jaxdp.discovery.Knowledge(required=[("v0", "v1")])
    for knowledge, whole in ((None, 7), (known, 6)):
        settings = {"epsilon": epsilon, "delta": delta, "prune": "forest", "knowledge": knowledge, "directions": 0.0}
        graph, calls = recorded(records, **settings)
        drawn = len(graph.decisions)
        assert 1 <= drawn <= whole

        def noise(draws):
            budget = Budget.of(epsilon, delta, REPLACE)
            return budget.draw_scale(Fraction(1, 2) / draws, EXCESS.marginal_sensitivity(REPLACE))

        assert drawn == 1 or noise(drawn) <= 0.035 * 5000
        assert drawn == whole or noise(drawn + 1) > 0.035 * 5000
        assert len(calls) == drawn + 1


def test_an_edge_of_a_forest_goes_that_a_column_beside_it_explains():
    generator = np.random.default_rng(6)
    first = generator.integers(0, 2, 5000)
    second = np.where(generator.random(5000) < 0.1, 1 - first, first)
    third = np.where(generator.random(5000) < 0.1, 1 - second, second)
    records = as_records(np.stack([first, second, third], 1).astype(np.int32), (2, 2, 2))
    settings = {"epsilon": 30.0, "prune": "forest", "directions": 0.0}
    graph = jaxdp.discovery.max_min_pc(jax.random.key(0), records, **settings)
    assert graph.edges == [graph.names[:2], graph.names[1:]]
    # without its first edge the tree must draw the third, which the second column explains
    known = jaxdp.discovery.Knowledge(forbidden=[graph.names[:2]])
    graph = jaxdp.discovery.max_min_pc(jax.random.key(0), records, knowledge=known, **settings)
    assert {(item.i, item.j) for item in graph.decisions} == {(0, 2), (1, 2)}
    assert graph.edges == [(graph.names[1], graph.names[2])]


def test_a_forest_of_a_private_number_of_records_and_a_whole_tree_are_not_cut():
    records = sampled(network(), 2000)
    for settings in ({"prune": "forest", "relation": ARRIVAL}, {"prune": "tree"}, {"prune": "keep"}):
        _, calls = recorded(records, epsilon=0.05, directions=0.0, **settings)
        assert sum(call.law.name != "laplace" for call in calls) >= 7, settings


def test_a_forest_that_was_asked_for_proposes_nothing():
    records = sampled(network(), 2000)
    graph = jaxdp.discovery.max_min_pc(jax.random.key(0), records, epsilon=30.0, prune="forest")
    assert "about epsilon" not in graph.note


def test_public_mistakes_are_told():
    records = sampled(network(4), 50)
    search, key = jaxdp.discovery.max_min_pc, jax.random.key(0)
    for settings, text in (
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": 1.0, "delta": 1.0}, "delta"),
        ({"epsilon": 1.0, "prune": "some"}, "prune"),
        ({"epsilon": 1.0, "directions": 1.0}, "directions"),
    ):
        with pytest.raises(ValueError, match=text):
            search(key, records, **settings)
    with pytest.raises(ValueError, match="continuous"):
        search(key, np.zeros((5, 2)), epsilon=1.0, levels=(2, 0))
    with pytest.raises(ValueError, match="add up to 1"):
        Shares(Fraction(1, 2))
    assert method.SHARES["keep"].with_directions(0.5).tree == Fraction(1, 5)


def neighbour(records, generator):
    """The records with one row replaced by another of the data, or by an extreme one."""
    values = np.array(records.values)
    levels = np.array(records.levels)
    new = [values[generator.integers(len(values))], np.zeros(len(levels), int), levels - 1, generator.integers(levels)]
    values[generator.integers(len(values))] = new[generator.integers(4)]
    return Records(values, records.columns)


@pytest.mark.parametrize("delta", [0.0, pytest.param(1e-6, marks=pytest.mark.full)])
def test_every_value_of_a_search_moves_within_its_bound(delta):
    generator, ratios = np.random.default_rng(7), []
    for number in range(12):
        records = sampled(network(5, seed=number, levels=(2, 3)), int(generator.choice([30, 200])), number)
        settings = {"epsilon": 2.0, "delta": delta, "directions": 0.2, "prune": "guarded"}
        _, calls = recorded(records, **settings)
        outputs = [call.output for call in calls]
        for _ in range(4):
            _, others = recorded(neighbour(records, generator), outputs, **settings)
            for call, other in zip(calls, others, strict=True):
                first, second = np.asarray(call.value, float), np.asarray(other.value, float)
                assert np.array_equal(np.isfinite(first), np.isfinite(second))
                moved = np.abs(first[np.isfinite(first)] - second[np.isfinite(second)])
                norm = {"laplace": np.sum, "gaussian": np.linalg.norm}.get(call.law.name, np.max)
                ratios.append(float(norm(moved)) / float(call.parameters[0]))
    assert 0.3 < max(ratios) <= 1.0


def test_a_ledger_of_rho_is_charged_rho_alone_for_a_search_with_a_delta(tmp_path):
    """Its noise is that of rho, which needs no delta; it was charged 1e-6 beside the rho."""
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", rho=1.0)
    cost = Budget.of(1.0, 1e-6, REPLACE).cost()
    assert (cost.epsilon, cost.delta) == (1.0, 1e-6)
    ledger.charge("max-min-pc", cost, jaxdp.fresh_key())
    assert (ledger.spent.delta, ledger.spent.rho) == (0.0, pytest.approx(cost.rho))
    assert ledger.spent.rho >= cost.rho * (1 - 1e-9)
    assert not hasattr(Budget.of(1.0, 0.0, REPLACE).cost(), "concentrated")
