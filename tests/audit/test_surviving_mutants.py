"""Constants that an error of a tenth in must be seen: each bound attained, each share and each key accounted for.

Every test here is an exact argument: neighbours that attain a declared bound, a law in closed form against its declared
cost, or the sum of what was drawn against what was charged.
"""

import itertools
import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp import discovery
from jaxdp.core import Norm, Relation
from jaxdp.data.records import as_records
from jaxdp.discovery.engine import max_min_budget
from jaxdp.discovery.methods import em_pc, max_min_pc
from jaxdp.independence.continuous.partition_stages import AxisSelection, Standardization
from jaxdp.independence.tables import margin_adaptive
from jaxdp.independence.tables.gwas import BestTables, Tables, TableSelection
from jaxdp.independence.tables.margin_adaptive import MarginAdaptive, largest_step
from jaxdp.independence.tables.unit_circle import UnitCircle
from jaxdp.mechanisms import Gaussian, Laplace, RankThreshold
from jaxdp.mechanisms.sparse_vector import SparseVector
from jaxdp.noise.source import FloatNoise


@pytest.fixture(autouse=True)
def _x64():
    with jax.enable_x64(True):
        yield


def size_in(norm, change):
    """Length of a change in a norm."""
    change = np.abs(np.ravel(change))
    return {Norm.L1: change.sum(), Norm.L2: np.sqrt((change**2).sum()), Norm.LINF: change.max()}[norm]


# Keys


@pytest.mark.parametrize("key", [lambda: jax.random.key(5), jaxdp.fresh_key], ids=["simulation", "release"])
def test_queries_of_a_search_have_noise_of_their_own(key):
    """Equal columns give equal statistics, so equal noise would give equal p-values (`_private_answers` of `pc`)."""
    column = np.random.default_rng(0).integers(0, 2, 60)
    data = np.stack([column] * 3, axis=1)
    test = jaxdp.ConditionalKendall(epsilon=0.05)
    graph = discovery.pc(key(), data, test=test, level=1e-9, max_order=0, max_tests=3, levels=(2, 2, 2))
    values = [decision.value for decision in graph.decisions]
    assert len(values) == len(set(values)) == 3


# Bounds that neighbours attain


def test_selection_of_tables_attains_its_bound():
    """Every pair of neighbouring counts of two small groups."""
    query = TableSelection(epsilon=1.0, count=1, num_cases=6, num_controls=9, num_tables=1)
    cases, controls = (part.ravel() for part in np.meshgrid(np.arange(7), np.arange(10), indexing="ij"))
    scores = np.asarray(query.statistic(None, Tables(cases, controls))).reshape(7, 10)
    bound = query.sensitivity(15)
    largest = float(largest_step(jnp.asarray(scores)))
    assert (bound.norm, bound.relation) == (Norm.LINF, Relation.REPLACE_ATTRIBUTE)
    assert largest == float(bound.bound) == 1.0
    assert float(bound.lower) <= scores.min() <= scores.max() <= float(bound.upper)


@pytest.mark.parametrize("mechanism", [Gaussian(rho=0.5), Laplace(1.0)], ids=["l2", "l1"])
def test_standardisation_attains_its_bounds(mechanism):
    """One record leaves a cell with x = y = 1 for another cell with x = y = -1."""
    query = Standardization(mechanism=mechanism)
    z = np.where(np.arange(600) % 2, 3.0, -3.0)
    x = np.where(np.arange(600) == 0, 1.0, 0.25)
    data = jaxdp.Data(x, x, z)
    count = len(z)
    parts = []
    for row in ((-1.0, -1.0, 3.0), (-1.0, -1.0, -3.0)):
        other = jaxdp.Data(*(np.where(np.arange(count) == 0, v, c) for v, c in zip(row, (x, x, z), strict=True)))
        first, second = (query.statistic(None, version) for version in (data, other))
        parts.append({name: np.asarray(first[name]) - np.asarray(second[name]) for name in first})
    for name, bound in query.sensitivity(count).items():
        largest = max(size_in(bound.norm, change[name]) for change in parts)
        assert 0.999 * bound.bound <= largest <= bound.bound + 2.0 * bound.error, name


@pytest.mark.parametrize("mechanism", [Gaussian(rho=0.5), Laplace(1.0)], ids=["l2", "l1"])
def test_released_margin_of_unit_circle_attains_its_bound(mechanism):
    """One control becomes exposed: M1 rises by one. u moves by nearly its bound on the lattice."""
    y = np.arange(50) < 20
    test = UnitCircle(mechanism=mechanism, null="estimated", num_cases=20, num_controls=30)
    bounds = test.sensitivity(50)
    values = []
    for exposed in itertools.product((0, 7, 20), (0, 12, 29)):
        table = np.where(y, np.arange(50) < exposed[0], np.arange(50) - 20 < exposed[1])
        one_more = np.where(y, table, np.arange(50) - 20 < exposed[1] + 1)
        first, second = (test.statistic(None, jaxdp.Data(v.astype(float), y.astype(float))) for v in (table, one_more))
        values.append({name: abs(float(first[name]) - float(second[name])) for name in first})
    margin, norm = (max(change[name] for change in values) for name in ("margin", "norm"))
    assert margin == float(bounds["margin"].bound) == 1.0
    cases, controls = (jnp.arange(size + 1.0) for size in test.groups)
    lattice = float(largest_step(test.score(cases[:, None], controls[None, :])))
    bound = float(bounds["norm"].bound)
    assert norm <= lattice + 1e-12
    assert 0.97 * bound <= lattice <= bound + 2.0 * float(bounds["norm"].error)


@pytest.mark.parametrize(("cases", "controls"), [(30, 30), (40, 15)])
def test_bound_of_large_tables_is_the_enumerated_one(cases, controls, monkeypatch):
    """Above the limit of enumeration, D + max |t_L(m + 1) - t_L(m)| stands for it; small groups can have both."""
    test = MarginAdaptive(epsilon=1.0, num_cases=cases, num_controls=controls).prepared()
    enumerated = float(test.move())
    monkeypatch.setattr(margin_adaptive, "ENUMERATED_CELLS", 0)
    bound = float(test.move())
    assert 0.97 * bound <= enumerated <= bound + 1e-12


# Laws in closed form against declared costs


def exponential_law(epsilon, scores):
    """P(k) proportional to exp(epsilon score_k/2), for scores that move by 1."""
    weights = np.exp(0.5 * epsilon * (scores - np.max(scores)))
    return weights / weights.sum()


def renyi(p, q, order):
    """Renyi divergence of this order (1: Kullback-Leibler)."""
    if order == 1.0:
        return float(np.sum(p * np.log(p / q)))
    return float(np.log(np.sum(p**order * q ** (1.0 - order))) / (order - 1.0))


@pytest.mark.parametrize("rho", [0.5, 0.005])
def test_selection_bought_by_zcdp_stays_within_rho_and_reaches_it(rho):
    """Two scores that pass each other: Kullback-Leibler (epsilon/2) tanh(epsilon/4), rho in the limit."""
    mechanism = Gaussian(rho=rho).selector()
    epsilon = float(mechanism.epsilon)
    scores = np.array([0.5, -0.5])
    p, q = exponential_law(epsilon, scores), exponential_law(epsilon, -scores)
    orders = [1.0, 1.01, 1.5, 2.0, 8.0, 64.0]
    spent = [renyi(p, q, order) / (order * rho) for order in orders]
    assert max(spent) <= 1.0 + 1e-12
    assert spent[0] == pytest.approx(math.tanh(epsilon / 4) * epsilon / 2 / rho)
    assert epsilon**2 / 8 == pytest.approx(rho, rel=1e-9)
    assert float(mechanism.cost(Relation.REPLACE_ONE).rho) == pytest.approx(rho, rel=1e-9)
    if rho < 0.01:
        assert spent[0] >= 0.99


def test_selection_bought_by_laplace_costs_its_epsilon():
    assert float(Laplace(0.7).selector().epsilon) == 0.7


@pytest.mark.parametrize("mechanism", [Gaussian(rho=0.5), Laplace(1.0)], ids=["rho", "epsilon"])
def test_stages_spend_what_the_test_declares(mechanism):
    """Axes and centres are bought from the budget: their shares and the rest add up to it, not to more or less."""
    data = jaxdp.Data(*np.zeros((2, 600)), np.zeros((600, 5)))
    name = "rho" if isinstance(mechanism, Gaussian) else "epsilon"
    for fields in ({}, {"standardize": True}, {"standardize": True, "select_axes": False}):
        cost = jaxdp.core.cost_of(jaxdp.PartitionGCM(mechanism=mechanism, accept_coarse_cells=True, **fields), data)
        total = float(getattr(mechanism, name))
        assert 0.999 * total <= float(getattr(cost, name)) <= total * (1 + 1e-9)
    halves = AxisSelection(mechanism=mechanism).mechanism_in_force().parts
    assert sum(float(getattr(half.cost(Relation.REPLACE_ONE), name)) for half in halves.values()) == pytest.approx(
        total
    )


def test_stages_of_best_tables_spend_what_the_test_declares():
    test = BestTables(epsilon=2.0, count=2, num_cases=6, num_controls=6, kind=UnitCircle)
    cost = jaxdp.core.cost_of(test, Tables(np.arange(4), np.arange(4)))
    assert 1.999 <= float(cost.epsilon) <= 2.0 + 1e-12


# Sums of what is drawn against what is charged


class Tape:
    """An exponential mechanism that writes down its budget and returns a scripted choice."""

    def __init__(self, script):
        self.script, self.drawn = iter(script), []

    def __call__(self, epsilon):
        self.epsilon = epsilon
        return self

    def perturb(self, source, scores, sensitivity):
        self.drawn.append((self.epsilon, float(sensitivity.bound), np.array(scores, float)))
        return min(next(self.script, 0), len(scores) - 1)


@pytest.mark.parametrize("owners", [[0, 1, 2], [0, 0, 1]])
def test_every_call_of_em_pc_draws_exactly_its_budget(owners, monkeypatch):
    """Count and picks, whatever the count is: their budgets add up to the call's, at one bound of 1 each."""
    scores = np.array([3.0, -1.0, 2.0])
    for count in range(1, len(set(owners)) + 1):
        tape = Tape([count, 0, 0, 0])
        monkeypatch.setattr(em_pc, "ExponentialMechanism", tape)
        assert len(em_pc.removals(FloatNoise(jax.random.key(0)), scores, 0.8, owners=np.array(owners))) == count
        assert len(tape.drawn) == 1 + count
        assert sum(epsilon for epsilon, _, _ in tape.drawn) == pytest.approx(0.8, rel=1e-12)
        assert tape.drawn[0][0] == pytest.approx(0.4, rel=1e-12)
        assert {bound for _, bound, _ in tape.drawn} == {1.0}


def removal_law(scores, epsilon):
    """Exact law of the sets of picks of one call, in order: {picks: probability}."""
    law = {}

    def pick(left, remaining, each, picked, chance):
        if remaining == 0:
            law[picked] = law.get(picked, 0.0) + chance
            return
        for place, probability in enumerate(exponential_law(each, scores[left])):
            rest = np.delete(left, place)
            pick(rest, remaining - 1, each, (*picked, int(left[place])), chance * probability)

    for count, chance in enumerate(exponential_law(0.5 * epsilon, em_pc.count_scores(scores))):
        pick(np.arange(len(scores)), count, 0.5 * epsilon / max(count, 1), (), chance)
    return law


def test_exact_loss_of_a_removal_call_is_within_its_epsilon():
    epsilon, worst = 1.0, 0.0
    for scores in itertools.product((-3.0, 0.0, 1.0), repeat=3):
        for move in itertools.product((-1.0, 1.0), repeat=3):
            first, second = (removal_law(np.array(s), epsilon) for s in (scores, np.add(scores, move)))
            assert sum(first.values()) == pytest.approx(1.0)
            worst = max(worst, max(abs(math.log(first[picks] / second[picks])) for picks in first))
    assert 0.3 * epsilon <= worst <= epsilon


def test_em_pc_charges_what_its_calls_draw(monkeypatch):
    """Every vertex and order takes part at most once; nothing is removed, so every call is made."""
    spent = []

    def spend(source, scores, epsilon, *rest):
        spent.append(epsilon)
        return []

    monkeypatch.setattr(em_pc, "removals", spend)
    data = np.random.default_rng(1).integers(0, 2, (50, 4))
    graph = discovery.em_pc(jax.random.key(0), as_records(data, (2,) * 4), epsilon=3.0, max_order=2)
    assert len(spent) == 4 * 3
    assert sum(spent) == pytest.approx(float(graph.cost.epsilon), rel=1e-12)
    assert float(graph.cost.epsilon) == 3.0


# What an epsilon costs in zCDP


@pytest.mark.parametrize(
    ("mechanism", "divisor"),
    [
        (lambda epsilon: jaxdp.Laplace(epsilon), 2),
        (lambda epsilon: jaxdp.Geometric(epsilon), 2),
        (lambda epsilon: jaxdp.ReportNoisyMax(epsilon=epsilon), 2),
        (lambda epsilon: jaxdp.RandomStopping(epsilon=epsilon), 2),
        (lambda epsilon: RankThreshold(epsilon=epsilon), 2),
        (lambda epsilon: SparseVector(epsilon=epsilon), 2),
        # bounded range: epsilon^2/8 (Cesar and Rogers 2021)
        (lambda epsilon: jaxdp.ExponentialMechanism(epsilon=epsilon), 8),
    ],
)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_zcdp_price_of_pure_mechanisms(mechanism, divisor, epsilon):
    """Pure epsilon-DP is epsilon^2/2-zCDP: neither more is charged nor less."""
    cost = mechanism(epsilon).cost(Relation.REPLACE_ONE)
    assert float(cost.epsilon) == epsilon
    assert float(cost.rho) == pytest.approx(epsilon**2 / divisor, rel=1e-12)


# Max-min selection


def test_draws_of_max_min_selection_have_noise_of_their_own(monkeypatch):
    """`Selection._next` opens another source for every draw."""
    seen, following = [], max_min_pc.Selection._next

    def noted(self):
        source = following(self)
        seen.append(tuple(np.asarray(jax.random.key_data(source.key)).ravel().tolist()))
        return source

    monkeypatch.setattr(max_min_pc.Selection, "_next", noted)
    data = np.random.default_rng(3).integers(0, 2, (200, 4))
    discovery.max_min_pc(jax.random.key(1), data, epsilon=1.0, levels=(2,) * 4, prune="tree")
    assert len(seen) == len(set(seen)) >= 3


def test_max_min_selection_buys_what_its_budget_says():
    """`Budget.cost`, `Budget.draw` and `Budget.draw_scale` in closed form."""
    pure = max_min_budget.Budget.of(2.0, 0.0, Relation.REPLACE_ONE)
    assert float(pure.cost().rho) == pytest.approx(2.0)
    half = Fraction(1, 2)
    assert pure.draw_scale(half, 3.0) == pytest.approx(2.0 * 3.0 / 1.0, rel=1e-9)
    zcdp = max_min_budget.Budget.of(1.0, 1e-6, Relation.REPLACE_ONE)
    rho = float(zcdp.whole.rho) / 2
    assert float(zcdp.draw(half).epsilon) ** 2 / 8 == pytest.approx(rho, rel=1e-9)
