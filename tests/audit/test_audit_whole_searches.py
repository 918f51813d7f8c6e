"""Audits of whole causal searches: sound ones keep their claim, mutants and the published one are refuted."""

import collections
import dataclasses

import jax
import numpy as np
import pytest
import scipy.stats

from jaxdp import audit
from jaxdp.audit import catalogue, searches
from jaxdp.audit.searches import walk
from jaxdp.discovery import spec
from jaxdp.discovery.engine.max_min_budget import Budget
from jaxdp.discovery.methods import priv_pc
from jaxdp.mechanisms.sparse_vector import SparseVector
from jaxdp.published import curate
from jaxdp.statistics import moments

pytestmark = pytest.mark.optimised

RUNS = 8192
L1_BOUND, NUMBERS = moments.l1_bound, Budget.numbers
OPPOSED = [9, 1, 51, 6, 7, 0, 24, 2], [9, 0, 51, 6, 7, 0, 24, 3]  # two queries move against each other by 0.8
TOGETHER = [95, 0, 0, 0, 0, 0, 0, 5], [96, 0, 0, 0, 0, 0, 0, 4]  # all three rise by 0.7, from below 0 to above


def neighbours(tables):
    return tuple(searches._records(np.reshape(table, searches.LEVELS)) for table in tables)


def bound(name, epsilon, tables, runs=RUNS):
    subject, key = searches.SEARCHES[name], jax.random.key(3)
    return searches.sampled_bound(subject, subject.build(epsilon), neighbours(tables), key, runs, alpha=1e-6).epsilon


def test_every_search_has_an_audit_or_says_why_not():
    for name, search in spec.searches().items():
        told = f"{name} needs audits=(SearchAudit(...),) in its SearchSpec, or without_audit= with the reason, not both"
        assert bool(search.spec.audits) != bool(search.spec.without_audit), told
    pilots = {subject.pilot for subject in searches.SEARCHES.values()} - {None}
    assert all(searches.SEARCHES[pilot].walked for pilot in pilots)
    assert searches.SEARCHES["pc"].build(1.0).keywords["max_tests"] == 4


NIGHTLY = [pytest.param(name, 2.0, 5, marks=pytest.mark.nightly) for name in ("priv_pc", "em_pc")]


@pytest.mark.full
@pytest.mark.parametrize(("name", "epsilon", "outcomes"), [("svt_pc", 2.0, 5), ("max_min_pc-turned", 8.0, 4), *NIGHTLY])
def test_walked_runs_have_the_law_of_single_runs(name, epsilon, outcomes):
    """outcomes: that many are common, at least."""
    subject = searches.SEARCHES[name]
    search = subject.build(epsilon)
    records = (subject.neighbours() if name == "max_min_pc-turned" else neighbours(OPPOSED))[0]
    walked = walk(search, records, jax.random.split(jax.random.key(0), 4096), searches.released)
    single = [searches.released(search(key, records)) for key in jax.random.split(jax.random.key(1), 400)]
    common = [name for name, count in collections.Counter(walked).items() if count > 80]
    table = [[sum(outcome == name for outcome in side) for name in common] for side in (walked, single)]
    table = np.array([[*row, len(side) - sum(row)] for row, side in zip(table, (walked, single), strict=True)])
    assert table.shape[1] >= outcomes
    assert scipy.stats.chi2_contingency(table[:, table.sum(0) > 0]).pvalue > 1e-6


@pytest.mark.full
@pytest.mark.parametrize("name", ["svt_pc", "priv_pc-one-round", "adaptive_pc"])
def test_sound_searches_keep_their_claim(name):
    assert 0.1 < bound(name, 3.0, TOGETHER) <= 3.0


def own_bound(name, epsilon, runs):
    """On the pair that the search names."""
    subject = searches.SEARCHES[name]
    search, pair = subject.build(epsilon), subject.neighbours()
    return searches.sampled_bound(subject, search, pair, jax.random.key(3), runs, alpha=1e-6).epsilon


@pytest.mark.parametrize(("name", "least"), [("moment_pc", 0.3), ("table_pc-numbers", 2.0)])
def test_numbers_of_one_release_keep_their_claim(name, least):
    assert least < own_bound(name, 3.0, 20_000) <= 3.0


def test_a_moment_matrix_with_a_tenth_of_its_noise_is_refuted(monkeypatch):
    monkeypatch.setattr(moments, "l1_bound", lambda columns: 0.1 * L1_BOUND(columns))
    assert own_bound("moment_pc", 1.0, 20_000) > 1.0


@pytest.mark.full
@pytest.mark.parametrize("name", ["max_min_pc-turned", "neighbour_pc"])
def test_draws_of_edges_keep_their_claim(name):
    assert own_bound(name, 20.0, RUNS) <= 20.0


@pytest.mark.full
def test_edges_weighed_with_a_hundredth_of_the_noise_are_refuted(monkeypatch):
    def loud(budget, fraction, *settings):
        return NUMBERS(dataclasses.replace(budget, epsilon=100.0 * budget.epsilon), fraction, *settings)

    monkeypatch.setattr(Budget, "numbers", loud)
    assert own_bound("max_min_pc-weighed", 1.0, RUNS) > 1.0


class Unexamined(priv_pc.Rounds):
    """Examines with the exact query."""

    def _examine(self, value):
        return value


@pytest.mark.full
def test_a_search_that_examines_without_noise_is_refuted(monkeypatch):
    monkeypatch.setattr(priv_pc, "Rounds", Unexamined)
    assert bound("priv_pc-one-round", 1.0, TOGETHER) > 1.0


def test_a_sieve_with_a_hundredth_of_its_noise_is_refuted(monkeypatch):
    def loud(epsilon, error, above=1):
        return SparseVector(epsilon=100.0 * epsilon, max_above=above)

    monkeypatch.setattr(priv_pc, "_sieve", loud)
    assert bound("priv_pc-one-round", 1.0, TOGETHER) > 1.0


def test_a_search_that_pays_for_one_query_of_all_is_refuted(monkeypatch):
    monkeypatch.setattr(curate._Plan, "reserve", lambda plan, query: 2.0)
    assert bound("adaptive_pc", 2.0, TOGETHER) > 2.0


@pytest.mark.full
def test_the_published_search_is_refuted_at_the_epsilon_of_its_authors():
    found = audit.audit("priv_pc_paper", 1.0, runs=400, key=jax.random.key(0))
    assert not found.holds
    assert found.lower > 1.0


def test_outcomes_are_ranked_by_what_they_tell():
    generator = np.random.default_rng(0)
    first, second = (
        generator.choice(6, 40_000, p=law) for law in ([0.05, 0.3, 0.05, 0.3, 0.1, 0.2], [0.2, 0.1, 0.2, 0.1, 0.2, 0.2])
    )
    best = np.log((0.3 + 0.3) / (0.1 + 0.1))
    assert audit.outcomes_bound(first, second).epsilon > 0.85 * best
    assert audit.outcomes_bound(first, first[::-1]).epsilon == 0.0


@pytest.mark.full
def test_a_search_by_name():
    found = audit.audit("svt_pc", 1.0, runs=RUNS, key=jax.random.key(5), attack=[neighbours(OPPOSED)])
    assert found.holds
    assert found.mode == "simulation"
    assert found.lower == 0.0 or "outcomes" in found.event
    with pytest.raises(ValueError, match="pair must be between 0 and 0"):
        audit.audit("svt_pc", 1.0, runs=400, key=jax.random.key(5), pair=1, attack=[neighbours(OPPOSED)])


def test_an_attack_finds_neighbours_that_a_sparse_vector_tells_apart(monkeypatch):
    monkeypatch.setattr(searches, "TABLES", 100)
    pairs = searches._evolved(np.random.default_rng(0))
    assert len(pairs) == searches.TRIED
    noise = searches._sieve_noise(np.random.default_rng(1))
    scores = [searches._told_apart(*(searches._queries(table) for table in pair), noise) for pair in pairs]
    assert max(scores) > 0.15
    for first, second in pairs:
        assert np.abs(first - second).sum() == 2


@pytest.mark.nightly
def test_exact_releases_of_a_search():
    subject = searches.SEARCHES["svt_pc"]
    found = searches.sampled_bound(
        subject, subject.build(1.0), neighbours(OPPOSED), jax.random.key(0), 400, alpha=1e-6, release=True
    )
    assert found.epsilon <= 1.0


@pytest.mark.nightly
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("name", sorted(searches.SEARCHES))
def test_every_search_at_a_hundred_thousand_runs(name, epsilon):
    runs = 100_000 if searches.SEARCHES[name].walked else 10_000
    attack = catalogue.attacked(name, jax.random.key(7))
    for pair in range(len(attack) if searches.SEARCHES[name].walked else 1):
        assert audit.audit(name, epsilon, runs=runs, key=jax.random.key(pair), pair=pair, attack=attack).holds
