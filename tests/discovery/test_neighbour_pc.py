"""Selection by sums over neighbours: sensitivity, the score against a loop, bends that are found, budgets."""

import itertools
import re
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from experiments.evidence.moments.run import model
from jaxdp import discovery
from jaxdp._base.rounding import as_fraction
from jaxdp.core import Relation
from jaxdp.data.dataset import BINARY, CONTINUOUS, Column
from jaxdp.data.records import Records
from jaxdp.discovery.engine.max_min_budget import Budget
from jaxdp.discovery.methods.neighbour_pc import CHANCE, SENSITIVITY, WIDTH, NeighbourScores
from jaxdp.discovery.spec import Setting, forecasts
from jaxdp.noise.recorder import Tape
from jaxdp.randomness.keys import RecordedKey
from jaxdp.statistics.neighbours.neighbour_order import priorities

DEPTH = 3


def scores_of(values, scale=0.1):
    values = np.asarray(values, float)
    return NeighbourScores(values, np.zeros(values.shape[1]), np.full(values.shape[1], scale))


def one(values, given=(2,)):
    return float(scores_of(values)([(0, 1, given)])[0][0])


def worst_pair(size=20):
    """Three pairs of neighbours change from discordant to concordant, where all others are concordant."""
    side = np.where(np.arange(size) % 2, 0.4, -0.4)
    quiet = np.stack([side, side, 0.3 + 0.01 * np.arange(size)], axis=1)
    around = [(0.0, 0.0, 0.0), (0.4, -0.4, 0.02), (0.0, 0.0, 0.1), (0.4, 0.4, 0.12)]
    first, second = (np.vstack([quiet, around, moved]) for moved in ((0.8, 0.8, 0.01), (0.8, -0.4, 0.11)))
    return first, second


def test_one_record_moves_a_score_by_three_and_by_no_more():
    first, second = worst_pair()
    assert 0.95 * SENSITIVITY < abs(one(first) - one(second)) <= SENSITIVITY
    generator, worst = np.random.default_rng(0), 0.0
    grid = np.array([-0.8, -0.4, 0.0, 0.02, 0.4, 0.8])
    for _ in range(30):
        data = generator.choice(grid, (13, DEPTH))
        other = data.copy()
        other[generator.integers(13)] = generator.choice(grid, DEPTH)
        queries = [(0, 1, ()), (0, 1, (2,)), (0, 2, (1,))]
        change = np.abs(scores_of(data)(queries)[0] - scores_of(other)(queries)[0])
        worst = max(worst, change.max())
    assert 1.0 < worst <= SENSITIVITY


def test_a_score_is_the_sum_of_a_loop():
    data = np.random.default_rng(1).uniform(-1, 1, (60, DEPTH))
    data[:, 1] = np.clip(data[:, 0] ** 2 + 0.1 * data[:, 1], -1, 1)
    found = one(data, ())
    order = np.argsort(np.asarray(priorities(None, 60)), kind="stable")
    sorted_data = data[order] / 0.1
    largest = 0.0
    for left in (sorted_data[:, 0], np.abs(sorted_data[:, 0])):
        for right in (sorted_data[:, 1], np.abs(sorted_data[:, 1])):
            psi = [np.round(np.clip(np.diff(side) / WIDTH, -1, 1) * 1024) / 1024 for side in (left, right)]
            largest = max(largest, abs(np.sum(psi[0] * psi[1])) / 2)
    expected = largest - CHANCE * np.sqrt(60 * (1 / 9 + 7 / 36))
    assert found == pytest.approx(expected, abs=1e-9)


def test_a_parabola_is_seen_and_is_explained_by_its_cause():
    generator = np.random.default_rng(2)
    cause = generator.normal(size=4000)
    left, right = (0.1 * np.clip(cause**2 - 1 + 0.3 * generator.normal(size=4000), -9, 9) for _ in range(2))
    scores = scores_of(np.stack([0.1 * cause, left, right], axis=1))
    alone, given = scores([(1, 2, ()), (1, 2, (0,))])[0]
    assert scores([(0, 1, ())])[0][0] > 300
    assert alone > 300
    assert given < 0


def chain(count=4000, seed=3):
    """Columns 0 -> 1 -> 2 -> 3 by parabolas, and two columns of their own; on [-1, 1] with wide bounds."""
    generator = np.random.default_rng(seed)
    values = generator.normal(size=(count, 6))
    for j in (1, 2, 3):
        parent = values[:, j - 1]
        parent = (parent - parent.mean()) / parent.std()
        values[:, j] = parent**2 - 1 + 0.5 * values[:, j]
    truth = np.zeros((6, 6), bool)
    truth[[0, 1, 2], [1, 2, 3]] = True
    return Records(np.clip(values / 12, -1, 1), tuple(Column(CONTINUOUS, 0, f"v{j}") for j in range(6))), truth


@pytest.mark.full
def test_bends_are_found_that_correlations_miss():
    records, truth = chain()
    graph = discovery.neighbour_pc(jax.random.key(0), records, epsilon=10.0)
    assert discovery.skeleton_f1(graph, truth) >= 0.8
    linear = discovery.moment_pc(jax.random.key(0), records, epsilon=10.0)
    assert discovery.skeleton_f1(linear, truth) < 0.75
    assert "any smooth shape" in graph.note
    assert "as far from the truth" not in graph.note


def test_a_graph_that_noise_leaves_far_from_the_truth_says_so_first():
    records, _ = model("linear", 8, 1)
    few = Records(records.values[:1500], records.columns)
    note = discovery.neighbour_pc(jax.random.key(0), few, epsilon=0.3).note
    told = "Expect this graph to be about as far from the truth as a graph without edges"
    assert note.startswith(told)
    epsilon, count = map(float, re.search(r"From about epsilon ([\d.]+) or ([\d.]+) records on", note).groups())
    assert told not in discovery.neighbour_pc(jax.random.key(0), few, epsilon=epsilon).note
    assert 0.3 < epsilon < 10.0
    assert 1500 < count < 100_000


@pytest.mark.parametrize(("kind", "least"), [("linear", 0.9), ("coded", 0.85)])
def test_it_is_the_default_where_draws_are_quiet(kind, least):
    records, truth = model(kind, 6, 1)
    graph = discovery.discover(jax.random.key(0), records, epsilon=2.0, max_order=3)  # two columns are what it takes
    assert graph.method == "neighbour_pc"
    assert discovery.skeleton_f1(graph, truth) >= least
    assert "detects bends as well as lines" in graph.note
    assert "will not be found" in graph.note


def test_the_choice_follows_the_noise_of_a_draw():
    def first(columns, n, epsilon, delta=0.0, in_chunks=False):
        return forecasts(Setting(columns, n, epsilon, delta, in_chunks))[0].method

    # measured: docs/theory/neighbour_pc.md#choice
    assert first((0,) * 10, 10_000, 1.0) == "neighbour_pc"
    assert first((0,) * 10, 10_000, 0.5) == "moment_pc"
    assert first((0,) * 5, 10_000, 0.3) == "moment_pc"
    assert first((0,) * 20, 10_000, 2.0) == "neighbour_pc"
    assert first((0,) * 20, 10_000, 1.0) == "neighbour_pc"
    assert first((0,) * 20, 10_000, 1.0, 1e-6) == "neighbour_pc"
    assert first((0,) * 10, 3000, 2.0) == "moment_pc"
    assert first((0, 3, 2, 0), 10_000, 2.0) == "neighbour_pc"
    assert first((0,) * 10, 10_000, 1.0, in_chunks=True) == "moment_pc"
    assert first((0,) * 60, 1_000_000, 1.0) == "moment_pc"
    assert first((2,) * 8, 10_000, 1.0) == "table_pc"


def recorded(records, outputs=None, **settings):
    tape = Tape(outputs=outputs)
    graph = discovery.neighbour_pc(RecordedKey(jax.random.key(5), tape), records, **settings)
    return graph, tape.calls


@pytest.mark.parametrize("delta", [0.0, pytest.param(1e-6, marks=pytest.mark.full)])
def test_budgets_of_all_answers_add_up_to_the_budget(delta):
    records, _ = chain(600)
    graph, calls = recorded(records, epsilon=0.7, delta=delta, directions=0.0)
    spent = Fraction(0)
    for call in calls:
        exact = as_fraction(float(call.parameters[1]))
        spent += exact**2 / 8 if call.law.name == "argmax_gumbel" else exact
    whole = Budget.of(0.7, delta, Relation.REPLACE_ONE).whole
    total = as_fraction(float(whole.rho)) if delta else as_fraction(0.7)
    assert Fraction(9, 10) * total < spent <= total
    assert (graph.cost.epsilon, graph.cost.delta) == (0.7, delta)


@pytest.mark.full
def test_every_number_of_a_release_moves_within_its_cube():
    """Edges and contrasts of neighbouring records, the same answers given; a pure epsilon, noise of the cube."""
    generator, worst, contrasts = np.random.default_rng(6), 0.0, 0
    for number in range(6):
        records, _ = chain(60, seed=number)
        values = np.array(records.values)
        values[generator.integers(60)] = generator.choice([-1.0, 0.0, 1.0], values.shape[1])
        _, calls = recorded(records, epsilon=8.0, directions=0.4)
        outputs = [call.output for call in calls]
        place = next(place for place, call in enumerate(calls) if call.law.name == "max_norm")
        outputs[place:] = [np.full(np.shape(outputs[place]), 50.0)]  # every edge stays, and has contrasts
        (_, first), (_, second) = (
            recorded(each, outputs, epsilon=8.0, directions=0.4) for each in (records, Records(values, records.columns))
        )
        for call, other in zip(first[place:], second[place:], strict=True):
            assert (call.law.name, call.parameters) == ("max_norm", other.parameters)
            worst = max(worst, np.abs(np.subtract(call.value, other.value)).max() / float(call.parameters[0]))
        contrasts += len(first) == place + 2
        assert [float(call.parameters[0]) for call in first[place:]] == pytest.approx([SENSITIVITY, 2.0 * SENSITIVITY])
    assert contrasts == 6
    assert 0.2 < worst <= 1.0


FIRST, SECOND, MIDDLE, OTHER = range(4)
STEP = 0.1  # of the values around the record that moves, above WIDTH scales


def worst_records():
    """Neighbouring records: one moves a sum of the first two columns by 3 in the order of the third, by -3 in that of
    the fourth. In both orders other sums are smaller, in the order of neither they are larger."""
    runs = np.where(np.arange(96) // 4 % 2, 0.4, -0.4)
    after = 0.3 + 0.005 * np.arange(96)
    quiet = np.stack([runs, runs, after, after], axis=1)
    around = []
    for column, left, entered in (
        (MIDDLE, ((0, 1), (1, 0)), ((0, 0), (1, 1))),
        (OTHER, ((3, 0), (4, 1)), ((1, -3), (0, -2))),
    ):
        for place, elsewhere, (before, behind) in ((-0.8, -0.1, left), (-0.6, 0.0, entered)):
            for number, corner in enumerate((before, before, behind, behind)):
                record = [*STEP * np.array(corner), elsewhere + 0.01 * number, elsewhere + 0.01 * number]
                record[column] = place + (-0.02, -0.01, 0.01, 0.02)[number]
                around.append(record)
    moved = (2 * STEP, 2 * STEP, -0.8, -0.8), (2 * STEP, -STEP, -0.6, -0.6)
    columns = tuple(Column(CONTINUOUS, 0, f"v{j}") for j in range(4))
    return [Records(np.vstack([quiet, around, record]), columns) for record in moved]


@pytest.mark.parametrize(
    ("tree", "released"),
    [
        (((FIRST, SECOND), (FIRST, MIDDLE), (MIDDLE, OTHER)), -2),
        (((FIRST, MIDDLE), (SECOND, MIDDLE), (FIRST, OTHER)), -1),
    ],
    ids=["number of an edge", "contrast"],
)
def test_a_whole_search_reaches_nine_tenths_of_its_bound(tree, released):
    """All that is released of neighbours, the same answers given: red if the bound is cut by a tenth."""
    pairs = [*itertools.combinations(range(4), 2), None]
    drawn = [2048] * 4 + [60] * 4 + [pairs.index(edge) for edge in (*tree, None)]  # centres near 0, scales of 0.026
    outputs = [*map(jnp.asarray, drawn), jnp.full(3, 2e5)]
    settings = {"epsilon": 8.0, "directions": 0.2, "max_order": 1}
    with jax.enable_x64(True):  # as in a release
        (graph, first), (_, second) = (recorded(each, outputs, **settings) for each in worst_records())
    assert graph.skeleton.sum() == 6
    assert [call.law.name for call in first[8:]] == ["argmax_exponential"] * 4 + ["max_norm"] * 2
    ratios = []
    for call, other in zip(first, second, strict=True):
        assert call.parameters == other.parameters
        one, two = (np.asarray(each.value, float) for each in (call, other))
        finite = np.isfinite(one)
        assert np.array_equal(finite, np.isfinite(two))
        ratios.append(np.abs(one[finite] - two[finite]).max() / float(call.parameters[0]))
    assert max(ratios) <= 1.0
    assert ratios[released] > 0.9


def test_the_graph_follows_from_what_was_released():
    (first, _), (second, _) = chain(600), chain(600, seed=9)
    graph, calls = recorded(first, epsilon=3.0)
    other, again = recorded(second, [call.output for call in calls], epsilon=3.0)
    np.testing.assert_array_equal(graph.cpdag, other.cpdag)
    assert [(call.law.name, np.shape(call.value)) for call in calls] == [
        (call.law.name, np.shape(call.value)) for call in again
    ]


def test_a_release_of_mixed_columns_is_charged_once_and_can_be_kept(tmp_path):
    records, _ = chain(600)
    values = np.array(records.values)
    values[:, 5] = values[:, 5] > 0
    mixed = Records(values, (*records.columns[:5], Column(BINARY, 2, "v5")))
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=2.0)
    graph = discovery.discover(
        jaxdp.fresh_key(), mixed, epsilon=1.5, method="neighbour_pc", ledger=ledger, keep=tmp_path / "answers"
    )
    assert graph.mode == "release"
    assert float(ledger.spent.epsilon) == 1.5
    again = discovery.discover(
        jaxdp.fresh_key(), mixed, epsilon=1.5, method="neighbour_pc", ledger=ledger, keep=tmp_path / "answers"
    )
    np.testing.assert_array_equal(graph.cpdag, again.cpdag)  # read, not drawn again
    assert float(ledger.spent.epsilon) == 1.5


def test_public_mistakes_are_told():
    records, _ = chain(50)
    coded = Records(np.zeros((50, 2)), (Column(BINARY, 2, "a"), Column(BINARY, 2, "b")))
    key = jax.random.key(0)
    for data, settings, told in (
        (records, {"epsilon": -1.0}, "epsilon"),
        (records, {"epsilon": 1.0, "max_order": 3}, "at most 2"),
        (coded, {"epsilon": 1.0}, "max_min_pc"),
    ):
        with pytest.raises(ValueError, match=told):
            discovery.neighbour_pc(key, data, **settings)


def test_unordered_levels_have_an_indicator_each():
    """Level 2 of four raises the child; no order of the levels shows it. A fourth column is explained by the first."""
    generator = np.random.default_rng(4)
    code = generator.integers(0, 4, 4000)
    child, other = (np.clip((code == 2) * 0.3 + 0.1 * generator.normal(size=4000), -1, 1) for _ in range(2))
    values = np.stack([2.0 * code / 3.0 - 1.0, child, other], axis=1)
    centre, scale = np.zeros(3), np.array([1.0, 0.1, 0.1])
    asked = [(0, 1, ()), (1, 2, ()), (1, 2, (0,))]
    seen = NeighbourScores(values, centre, scale, (4, 0, 0))(asked)[0]
    assert min(seen[:2]) > 200
    assert seen[2] < 0
    order = np.argsort(np.asarray(priorities(None, 4000)), kind="stable")
    sides = [((code == level)[order].astype(float), values[order, 1] / 0.1) for level in range(4)]
    by_hand = max(abs(sum_of_neighbours(indicator, u)) for indicator, raw in sides for u in (raw, np.abs(raw)))
    assert seen[0] == pytest.approx(by_hand - CHANCE * np.sqrt(4000 * (1 / 9 + 7 / 72)), abs=1e-6)


def sum_of_neighbours(first, second, most=2):
    """1/(2k) of the sum over pairs at most k = 2 ranks apart."""
    total = 0.0
    for apart in range(1, most + 1):
        psi = [
            np.round(np.clip((side[apart:] - side[:-apart]) / WIDTH, -1, 1) * 1024) / 1024 for side in (first, second)
        ]
        total += np.sum(psi[0] * psi[1])
    return total / (2 * most)


def test_one_record_moves_a_score_with_indicators_by_three_at_most():
    generator, worst = np.random.default_rng(5), 0.0
    for _ in range(20):
        data = np.stack([generator.integers(0, 3, 12) - 1.0, *generator.choice([-0.8, 0.0, 0.8], (2, 12))], axis=1)
        other = data.copy()
        other[3] = (generator.integers(0, 3) - 1.0, *generator.choice([-0.8, 0.0, 0.8], 2))
        both = [NeighbourScores(v, np.zeros(3), np.full(3, 0.1), (3, 0, 0)) for v in (data, other)]
        queries = [(0, 1, ()), (0, 1, (2,)), (1, 2, (0,))]
        worst = max(worst, np.abs(both[0](queries)[0] - both[1](queries)[0]).max())
    assert 0.5 < worst <= SENSITIVITY
