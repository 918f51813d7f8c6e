"""Directions: the bound of a contrast, equivalence classes, and what a posterior makes of noisy contrasts."""

import itertools
import math
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate
from scipy.special import gammaincc
from scipy.stats import poisson

import jaxdp
from jaxdp.core import Relation
from jaxdp.data.records import as_records
from jaxdp.discovery.engine import directions
from jaxdp.discovery.engine.counts import Counts
from jaxdp.discovery.engine.directions import (
    RARE,
    Contrasts,
    Orientation,
    Rule,
    Shown,
    _by_parents,
    oriented,
)
from jaxdp.discovery.engine.knowledge import Known
from jaxdp.discovery.engine.max_min_scores import MaxMinScores, TableScores
from jaxdp.discovery.engine.number_noise import CubeNoise, LaplaceNoise, NormalNoise
from jaxdp.discovery.engine.orientation import compelled, cpdag_of, meek, unshielded
from jaxdp.discovery.methods.max_min_pc import CUBE_ARROWS
from jaxdp.discovery.methods.neighbour_pc import ARROWS
from jaxdp.noise.recorder import Tape
from jaxdp.randomness.keys import RecordedKey
from jaxdp.statistics.tables.excess import Excess

EXCESS = Excess()
FIRST, MIDDLE, SECOND, OTHER = range(4)


def worst_records(moved: bool, size=250_000, rare=1500):
    """Columns i, k, j, l: what raises the score given l lowers the one given k.

    One record goes from k = l = 0 to k = l = 1. Given k it leaves a cell that holds all of its row and column and joins
    a rare row and column in their empty cell; given l it is the other way round. Further levels of k and l hold blocks
    that make i and j dependent if nothing is given.
    """
    full, empty = [(0, 0, rare), (1, 1, size)], [(0, 1, rare), (1, 0, rare), (1, 1, size)]
    places = [(full, 0, 2), (empty, 1, 3), (empty, 2, 0), (full, 3, 1)]
    rows = [(i, k, j, other, count) for block, k, other in places for i, j, count in block]
    rows += [(0, 4, 0, 4, 2 * size), (1, 5, 1, 5, 2 * size), (0, int(moved), 0, int(moved), 1)]
    values = np.array([row[:4] for row in rows], np.int32)
    return as_records(np.repeat(values, [row[4] for row in rows], axis=0), (2, 6, 2, 6))


def contrast(records):
    scores = MaxMinScores(records.levels, TableScores(Counts(records), EXCESS), 1, Known.nothing(4))
    scores.add([(FIRST, MIDDLE), (MIDDLE, SECOND), (FIRST, OTHER)])
    return float(scores.contrast([(FIRST, MIDDLE, SECOND)])[0])


def test_a_contrast_reaches_nine_tenths_of_its_bound():
    bound = 2.0 * EXCESS.sensitivity(Relation.REPLACE_ONE)
    change = abs(contrast(worst_records(False)) - contrast(worst_records(True)))
    assert 0.9 * bound < change <= bound


def calls_of(records):
    """The noise of a whole search whose tree is i - k - j and i - l, and of which no edge goes."""
    pairs = [*itertools.combinations(range(4), 2), None]
    tree = [pairs.index(pair) for pair in ((FIRST, MIDDLE), (MIDDLE, SECOND), (FIRST, OTHER), None)]
    tape = Tape(outputs=[*map(jnp.asarray, tree), jnp.full(3, 2e5)])
    settings = {"epsilon": 2.0, "prune": "guarded", "directions": 0.2, "max_order": 1}
    graph = jaxdp.discovery.max_min_pc(RecordedKey(jax.random.key(0), tape), records, **settings)
    assert graph.skeleton.sum() == 6
    return tape.calls


def test_a_contrast_of_a_whole_search_reaches_nine_tenths_of_the_bound_of_its_noise():
    """All that is released of neighbours, the same answers given: red if the bound of contrasts is cut by a tenth."""
    first, second = (calls_of(worst_records(moved)) for moved in (False, True))
    assert [call.law.name for call in first] == ["argmax_exponential"] * 4 + ["max_norm"] * 2
    ratios = []
    for call, other in zip(first, second, strict=True):
        assert call.parameters == other.parameters
        one, two = (np.asarray(each.value, float) for each in (call, other))
        finite = np.isfinite(one)
        assert np.array_equal(finite, np.isfinite(two))
        ratios.append(np.abs(one[finite] - two[finite]).max() / float(call.parameters[0]))
    assert max(ratios) <= 1.0
    assert ratios[-1] > 0.9


def random_dag(generator, d, share):
    order, dag = generator.permutation(d), np.zeros((d, d), bool)
    for first, second in itertools.combinations(range(d), 2):
        dag[order[first], order[second]] = generator.random() < share
    return dag


def test_compelled_arcs_are_those_of_the_equivalence_class():
    """Chickering's labels against v-structures closed under Meek's rules."""
    generator = np.random.default_rng(0)
    for number in range(150):
        dag = random_dag(generator, 3 + number % 6, generator.choice([0.2, 0.5, 0.8]))
        arcs = dag | dag.T
        for k in range(len(dag)):
            for i, j in itertools.combinations(np.flatnonzero(dag[:, k]), 2):
                if not (dag[i, j] or dag[j, i]):
                    arcs[k, i] = arcs[k, j] = False
        closed = meek(arcs)
        assert set(map(tuple, np.argwhere(closed & ~closed.T).tolist())) == compelled(dag)
        np.testing.assert_array_equal(cpdag_of(dag), closed)


def numbers(dag, size, scale, generator, laplace=False):
    triples = unshielded(dag | dag.T)
    signs = np.array([-1.0 if dag[i, k] and dag[j, k] else 1.0 for i, k, j in triples])
    noise = (generator.laplace if laplace else generator.normal)(0.0, scale, len(triples))
    return Contrasts(triples, signs * size + noise, (LaplaceNoise if laplace else NormalNoise)(scale), 100_000)


@pytest.mark.parametrize("laplace", [False, True])
def test_quiet_numbers_give_the_equivalence_class(laplace):
    generator = np.random.default_rng(1)
    for _ in range(5):
        dag = random_dag(generator, 8, 0.25)
        found = oriented(dag | dag.T, numbers(dag, 2000.0, 20.0, generator, laplace))
        np.testing.assert_array_equal(found.cpdag, cpdag_of(dag))
        drawn = found.cpdag & ~found.cpdag.T
        assert found.arrow_shares[drawn].min(initial=1.0) > 0.9


def test_one_wrong_number_does_not_turn_an_edge():
    """Four parents of one column: one of six contrasts has the wrong sign, and the others say what it should be."""
    dag = np.zeros((5, 5), bool)
    dag[:4, 4] = True
    contrasts = numbers(dag, 2000.0, 500.0, np.random.default_rng(2))
    contrasts.values[2] = 800.0
    np.testing.assert_array_equal(oriented(dag | dag.T, contrasts).cpdag, dag)


def star(values, strengths, scale=500.0, laplace=False):
    """Column 0 joined to all others: contrasts of each pair of them by `values`, a released number of each edge."""
    d = len(strengths) + 1
    skeleton = np.zeros((d, d), bool)
    skeleton[0, 1:] = skeleton[1:, 0] = True
    triples = unshielded(skeleton)
    strength = np.array([[strengths[i - 1], strengths[j - 1]] for i, _, j in triples])
    noise = (LaplaceNoise if laplace else NormalNoise)(scale)
    return skeleton, Contrasts(triples, np.array(values(strength)), noise, 100_000, strength)


@pytest.mark.parametrize("laplace", [False, True])
def test_small_contrasts_of_weak_edges_draw_no_collider(laplace):
    """Nine effects of one column, five of them weak, whose contrasts are as small as products make them."""
    strengths = np.array([20_000.0] * 4 + [1500.0] * 5)
    skeleton, contrasts = star(lambda s: 2.0 * s.prod(axis=1) / 100_000, strengths, laplace=laplace)
    np.testing.assert_array_equal(oriented(skeleton, contrasts).cpdag, skeleton)


def test_a_number_near_0_speaks_against_a_collider_where_edges_are_weak():
    """The product of two weak edges is far smaller than either; that of two strong ones is not."""
    near_zero, size = np.zeros((1, 2)), 25_000.0
    values = np.array([0.0])
    strong = Contrasts([(1, 0, 2)], values, NormalNoise(500.0), 100_000, near_zero + size).weights()
    weak = Contrasts([(1, 0, 2)], values, NormalNoise(500.0), 100_000, near_zero + 1000.0).weights()
    assert strong[0] > weak[0] + 0.5
    assert weak[0] < -1.0


def test_edges_without_a_number_take_part_by_the_mean_size():
    triples, values = [(0, 1, 2), (1, 2, 3)], np.array([-1500.0, 2500.0])
    strengths = np.array([[4000.0, np.nan], [np.nan, np.nan]])
    mixed = Contrasts(triples, values, LaplaceNoise(600.0), 100_000, strengths).weights()
    np.testing.assert_array_equal(mixed, Contrasts(triples, values, LaplaceNoise(600.0), 100_000).weights())
    assert np.isfinite(Contrasts(triples, values, LaplaceNoise(600.0), 0, strengths).weights()).all()


def test_a_loud_number_says_less_of_weak_edges():
    """About edges of a known, small size the same number of a hub's triple is noise, in either direction."""
    triples, strengths = [(0, 1, 2)], np.array([[4000.0, 900.0]])
    for value in (-4000.0, 4000.0):
        sized, plain = (
            Contrasts(triples, np.array([value]), LaplaceNoise(5000.0), 100_000, given).weights()[0]
            for given in (strengths, None)
        )
        assert abs(sized + RARE) < 0.7 * abs(plain)


@pytest.mark.parametrize(
    ("x", "mean"), [(-2000.0, 100.0), (-5.0, 600.0), (0.0, 2000.0), (900.0, 100.0), (5000.0, 3000.0)]
)
def test_densities_are_those_of_an_exponential_signal_with_noise(x, mean):
    scale = 600.0

    def density(noise):
        ends = [0.0, max(x, 0.0), max(x, 0.0) + 60.0 * mean]
        parts = itertools.pairwise(ends)
        return sum(
            integrate.quad(lambda m: np.exp(-m / mean) / mean * noise(x - m), *part, limit=400)[0] for part in parts
        )

    at, means = np.array([x]), np.array([mean])
    normal = density(lambda e: np.exp(-0.5 * (e / scale) ** 2))
    laplace = density(lambda e: np.exp(-abs(e) / scale) / (2.0 * scale))
    sd = np.sqrt(2.0 * np.pi) * scale
    np.testing.assert_allclose(NormalNoise(scale).log_density(at, means)[0], np.log(normal / sd), rtol=0, atol=1e-4)
    expected = np.log(laplace) + np.log(2.0 * scale)
    np.testing.assert_allclose(LaplaceNoise(scale).log_density(at, means)[0], expected, rtol=0, atol=1e-4)
    count, growth = 6, 100.0
    cube = density(lambda e: gammaincc(count, abs(e) / growth) / (2.0 * count * growth))
    np.testing.assert_allclose(CubeNoise(growth, count).log_density(at, means)[0], np.log(cube), rtol=0, atol=0.03)


def test_a_number_beyond_the_cube_leaves_a_doubt():
    """Tails of the cube end, so a number of the wrong sign would outweigh all others."""
    noise, values = CubeNoise(50.0, 20), np.array([-30_000.0, 0.0, 30_000.0])
    triples = [(0, 1, 2), (0, 2, 3), (0, 3, 4)]
    sure, doubted = (Contrasts(triples, values, noise, 100_000, doubt=doubt).weights() for doubt in (0.0, 0.02))
    assert sure[0] > 100.0
    np.testing.assert_allclose(doubted, [np.log(49.0), 0.0, -np.log(49.0)], atol=1e-6)


def test_arrows_against_time_are_never_drawn():
    dag = np.zeros((3, 3), bool)
    dag[0, 1] = dag[2, 1] = True
    contrasts = Contrasts([(0, 1, 2)], np.array([-5000.0]), LaplaceNoise(100.0), 100_000)
    against = np.zeros((3, 3), bool)
    against[0, 1] = True
    found = oriented(dag | dag.T, contrasts, against)
    assert found.cpdag[1, 0]
    assert not found.cpdag[0, 1]
    assert found.arrow_shares[1, 0] == 1.0


def test_shares_of_arrows_are_probabilities_where_the_model_holds():
    """Contrasts drawn by the model: of arrows with a share of 0.6 to 0.9 about that share is right."""
    generator = np.random.default_rng(3)
    said, right = [], []
    for _ in range(60):
        dag = random_dag(generator, 9, 0.25)
        contrasts = numbers(dag, generator.exponential(2000.0, len(unshielded(dag | dag.T))), 1500.0, generator)
        found, true = oriented(dag | dag.T, contrasts), cpdag_of(dag)
        for i, j in np.argwhere((found.arrow_shares > 0.6) & (found.arrow_shares < 0.9)):
            said.append(found.arrow_shares[i, j])
            right.append(bool(true[i, j] and not true[j, i]))
    assert len(said) > 80
    sd = 0.5 / np.sqrt(len(said))
    assert abs(np.mean(said) - np.mean(right)) < 3.0 * sd + 0.03


def test_pure_epsilon_draws_arrows_and_the_share_of_the_budget_can_be_given():
    generator = np.random.default_rng(4)
    n = 30_000
    columns = {f"u{place}": generator.integers(0, 2, n) for place in range(11)}
    columns["c"] = np.where(generator.random(n) < 0.1, generator.integers(0, 2, n), columns["u0"] | columns["u1"])
    table = {name: value.tolist() for name, value in columns.items()}
    levels = {name: [0, 1] for name in columns}
    settings = {"epsilon": 3.0, "levels": levels, "key": jax.random.key(0), "method": "max_min_pc"}
    graph = jaxdp.discover(table, **settings)
    assert sorted(graph.directed) == [("u0", "c"), ("u1", "c")]
    assert "2 of 2 edges have an arrow" in graph.note
    assert not jaxdp.discover(table, directions=0.0, **settings).directed
    with pytest.raises(ValueError, match="directions"):
        jaxdp.discover(table, directions=0.2, **settings | {"method": "svt_pc"})


def undecided(leaves):
    """A column joined to `leaves` others, and contrasts that say nothing."""
    skeleton = np.zeros((leaves + 1, leaves + 1), bool)
    skeleton[0, 1:] = skeleton[1:, 0] = True
    triples = unshielded(skeleton)
    return skeleton, Contrasts(triples, np.zeros(len(triples)), LaplaceNoise(1000.0), 100_000)


@pytest.mark.parametrize(("few", "open_share"), [(False, 2 / 7), (True, 1440 / 1957)])
def test_beforehand_a_hub_is_open_as_often_as_the_rule_says(few, open_share):
    """All edges are open where at most one of six neighbours is a parent: 2 of 7 numbers; by a Poisson law every
    further parent has weight 1/m: the numbers have weights 1/m!, 2 of 1957/720."""
    skeleton, contrasts = undecided(6)
    shares = oriented(skeleton, contrasts, rule=Rule(few)).arrow_shares
    pointed = (shares[0, 1:] + shares[1:, 0]).mean()
    assert abs(1.0 - pointed - open_share) < 0.1  # 240 samples of four chains; the rules differ by 0.45


def test_a_poisson_law_of_parents_is_that_of_every_network_of_so_many_edges():
    """Columns whose numbers of parents have independent Poisson laws of any mean: its product over the columns is the
    prior's but for a factor that all orientations of a skeleton share."""
    degrees, mean = (4, 3, 2, 1), 1.7
    edges = sum(degrees) // 2

    def by_law(parents):
        sets = [math.comb(k, m) for k, m in zip(degrees, parents, strict=True)]
        return sum(poisson.logpmf(m, mean) - math.log(ways) for m, ways in zip(parents, sets, strict=True))

    def by_prior(parents):
        return sum(_by_parents(k, True)[m] for k, m in zip(degrees, parents, strict=True))

    every = [parents for parents in itertools.product(*(range(k + 1) for k in degrees)) if sum(parents) == edges]
    ratios = [by_law(parents) - by_prior(parents) for parents in every]
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-12)


def arrows_of(dag, rule, runs=12):
    """Mean numbers of arrows that are right and that are reversed, by contrasts whose noise is as large as they are."""
    generator, counts, true = np.random.default_rng(6), [], cpdag_of(dag)
    for _ in range(runs):
        found = oriented(dag | dag.T, numbers(dag, 2000.0, 1800.0, generator, laplace=True), rule=rule).cpdag
        drawn = found & ~found.T
        counts.append(((drawn & true & ~true.T).sum(), (drawn & dag.T).sum()))
    return np.mean(counts, axis=0)


def test_a_hub_keeps_its_edges_open_and_a_sink_its_arrows_where_the_noise_counts():
    hub = np.zeros((9, 9), bool)
    hub[0, 1:] = True
    with mock.patch.object(directions, "_by_parents", lambda degree, few: [0.0] * (degree + 1)):
        before = arrows_of(hub, Rule())[1]  # every orientation equally probable
    assert before > 1.0  # else nothing is compared
    for rule in (ARROWS, CUBE_ARROWS):
        assert arrows_of(hub, rule)[1] < before / 3.0
    assert arrows_of(hub.T, ARROWS)[0] > 7.0


def test_a_reversed_arrow_counts_more_than_an_open_edge():
    """The larger it counts, the fewer arrows are drawn."""
    generator, drawn = np.random.default_rng(7), []
    dag = random_dag(generator, 9, 0.25)
    contrasts = numbers(dag, 1000.0, 1500.0, generator)
    for reversal in (1.0, 4.0, 1000.0):
        found = oriented(dag | dag.T, contrasts, rule=Rule(reversal=reversal)).cpdag
        drawn.append(int((found & ~found.T).sum()))
    assert drawn[0] >= drawn[1] >= drawn[2]
    assert drawn[0] > drawn[2]


@pytest.mark.parametrize("method", ["neighbour_pc", "moment_pc"])
def test_the_note_says_how_many_arrows_to_expect_wrong(method):
    """Three causes of one column: sure numbers, and shares of what was right where that was measured."""
    generator = np.random.default_rng(8)
    causes = generator.normal(size=(4000, 3))
    values = np.column_stack([causes, causes.sum(axis=1) + generator.normal(size=4000)])
    table = {name: values[:, k] for k, name in enumerate("abcd")}
    bounds = dict.fromkeys(table, (-8.0, 8.0))
    graph = jaxdp.discover(table, bounds=bounds, epsilon=30.0, method=method, key=jax.random.key(0))
    assert sorted(graph.directed) == [("a", "d"), ("b", "d"), ("c", "d")]
    shares = graph.arrow_shares[:3, 3]
    assert shares.max() < 1.0
    assert shares.min() > 0.7
    wrong = (1.0 - shares).sum()
    told = f"Of these 3 arrows about {wrong:.1f} are expected to be wrong ({100 * wrong / 3:.0f} %), that is"
    assert told in graph.note
    known = jaxdp.discovery.Knowledge(tiers=[["a"], ["b", "c", "d"]])
    graph = jaxdp.discover(table, bounds=bounds, epsilon=30.0, method=method, key=jax.random.key(0), knowledge=known)
    assert len(graph.directed) == 3
    assert "1 of them points as the public knowledge says" in graph.note  # its edge may be false all the same
    assert "Of the other 2 arrows about" in graph.note


@pytest.mark.parametrize(
    ("forward", "known", "told"),
    [
        ((), (), "0 of 3 edges have an arrow."),
        ((0,), (), "1 of 3 edges has an arrow. Of 100 arrows such as this one about 20 are expected to be wrong, that"),
        (
            (0, 1),
            (),
            "2 of 3 edges have an arrow. Of these 2 arrows about 0.4 are expected to be wrong (20 %), that is",
        ),
        ((0,), (0,), "1 of 3 edges has an arrow. It points as the public knowledge says; such an edge may still be"),
        ((0, 1), (0, 1), "2 of 3 edges have an arrow. All of them point as the public knowledge says; such an edge"),
        (
            (0, 1),
            (0,),
            "1 of them points as the public knowledge says; such an edge may still be false. Of 100 arrows "
            "such as the other one about 20 are expected to be wrong, that is",
        ),
        ((0, 1, 2), (0, 1), "3 of 3 edges have an arrow. 2 of them point as the public knowledge says; such an edge"),
    ],
)
def test_arrows_are_counted_in_words(forward, known, told):
    """Expect about 0.7 of these arrows to be wrong: that was read as 70 %."""
    cpdag, shares = np.zeros((6, 6), bool), np.zeros((6, 6))
    for number in range(3):
        i, j = 2 * number, 2 * number + 1
        cpdag[i, j], cpdag[j, i] = True, number not in forward
        shares[i, j] = 1.0 if number in known else 0.8
    sentence = Orientation(cpdag, shares).sentence
    assert told in sentence
    assert ("expected to be wrong" in sentence) is bool(set(forward) - set(known))


def test_what_is_known_of_time_keeps_its_share():
    dag = np.zeros((3, 3), bool)
    dag[0, 1] = dag[2, 1] = True
    against = np.zeros((3, 3), bool)
    against[0, 1] = True
    found = oriented(
        dag | dag.T, Contrasts([(0, 1, 2)], np.array([-5000.0]), LaplaceNoise(100.0), 100_000), against, ARROWS
    )
    assert found.arrow_shares[1, 0] == 1.0
    assert found.arrow_shares.max(where=~(against | against.T), initial=0.0) <= ARROWS.trust.of(Shown(0.0)) < 1.0


def test_what_follows_from_tiers_has_a_share_too():
    """Along a chain whose first arrow is known: the others had shares of 0, and all were expected to be wrong."""
    dag, against = np.zeros((4, 4), bool), np.zeros((4, 4), bool)
    dag[0, 1] = dag[1, 2] = dag[2, 3] = against[1, 0] = True
    contrasts = Contrasts(unshielded(dag | dag.T), np.array([5000.0, 5000.0]), LaplaceNoise(100.0), 100_000)
    found, trust = oriented(dag | dag.T, contrasts, against, ARROWS), ARROWS.trust.of(Shown(0.0))
    assert np.array_equal(found.cpdag, dag)
    assert found.arrow_shares[dag] == pytest.approx([1.0, trust, trust], abs=0.02)
    wrong = 2.0 * (1.0 - trust)
    assert f"Of the other 2 arrows about {wrong:.1f} are expected to be wrong (" in found.sentence
