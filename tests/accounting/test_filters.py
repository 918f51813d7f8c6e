"""Filters against the strongest adaptive adversary, random sequences, and OpenDP's filters."""

import copy
import functools
import importlib
import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest

from jaxdp import accounting
from jaxdp.accounting import ApproximateFilter as Approximate
from jaxdp.accounting import BudgetExhausted, Odometer
from jaxdp.accounting import ConcentratedFilter as Concentrated
from jaxdp.accounting import PureFilter as Pure
from jaxdp.accounting import RenyiFilter as Renyi
from jaxdp.core import Cost, Relation


def admitted(spending_filter, costs):
    """Which costs of a sequence a filter lets through."""
    answers = []
    for cost in costs:
        fits = spending_filter.admits(cost)
        if fits:
            spending_filter.spend(cost)
        else:
            with pytest.raises(BudgetExhausted, match="nothing was charged"):
                spending_filter.spend(cost)
        answers.append(fits)
    return answers


# --- the strongest adversary -------------------------------------------------------------------------------------
#
# Every epsilon-DP release is dominated by randomised response, so an adversary who may ask responses of two
# sizes, one after the other, chosen on the loss so far, is worked out exactly: backward over (how many of
# each, loss so far), taking the better of both queries and of stopping.


def stop_value(loss, total):
    return np.maximum(-np.expm1(np.minimum(total - loss, 0.0)), 0.0)


def reachable(admits):
    """All (count of small, count of large) that the filter can be brought to."""
    states, seen = [(0, 0)], {(0, 0)}
    for small, large in states:
        for state in ((small + 1, large), (small, large + 1)):
            if state not in seen and admits(*state):
                seen.add(state)
                states.append(state)
    return states


def worst_delta(admits, total, unit, sizes):
    """The largest delta at epsilon=total over all adaptive strategies that the filter lets through."""
    states = reachable(admits)
    reach = max(sizes[0] * small + sizes[1] * large for small, large in states)
    stop = stop_value(np.arange(-reach, reach + 1) * unit, total)
    value = {}
    for small, large in sorted(states, key=sum, reverse=True):
        best = stop
        for size, after in ((sizes[0], (small + 1, large)), (sizes[1], (small, large + 1))):
            if after in value:
                truth = 1 / (1 + math.exp(-size * unit))
                up, down = np.roll(value[after], -size), np.roll(value[after], size)
                up[-size:], down[:size] = value[after][-1], value[after][0]
                best = np.maximum(best, truth * up + (1 - truth) * down)
        value[small, large] = best
    return value[0, 0][reach]


def asking(make, unit, sizes):
    """Whether a fresh filter admits so many small and large responses (order does not matter to any of them)."""

    @functools.cache
    def admits(small, large):
        epsilons = np.concatenate([np.full(small, sizes[0] * unit), np.full(large, sizes[1] * unit)])
        return make().admits(Cost(epsilon=epsilons))

    return admits


GAMES = [(0.25, (1, 2), 3.0, 1e-3), (0.1, (1, 3), 2.0, 1e-4), (0.5, (1, 3), 4.0, 1e-2)]


@pytest.mark.parametrize(("unit", "sizes", "epsilon", "delta"), GAMES)
def test_pure_filter_is_exact(unit, sizes, epsilon, delta):
    admits = asking(lambda: Pure(epsilon=epsilon), unit, sizes)
    assert worst_delta(admits, epsilon, unit, sizes) == 0.0
    assert worst_delta(admits, 0.999 * epsilon, unit, sizes) > 0.0  # the promise cannot be cut


@pytest.mark.parametrize(("unit", "sizes", "epsilon", "delta"), GAMES[:2])
def test_renyi_filter_holds_and_is_near(unit, sizes, epsilon, delta):
    order = Renyi(epsilon=epsilon, delta=delta).order
    admits = asking(lambda: Renyi(epsilon=epsilon, delta=delta, order=order), unit, sizes)
    assert worst_delta(admits, epsilon, unit, sizes) <= delta
    assert worst_delta(admits, 0.9 * epsilon, unit, sizes) > delta  # a budget cut by a tenth is passed


@pytest.mark.parametrize(("unit", "sizes", "epsilon", "delta"), GAMES)
def test_approximate_filter_holds(unit, sizes, epsilon, delta):
    admits = asking(lambda: Approximate(epsilon=epsilon, delta=delta), unit, sizes)
    assert worst_delta(admits, epsilon, unit, sizes) <= delta
    assert worst_delta(admits, 0.45 * epsilon, unit, sizes) > delta  # advanced composition is loose here


@pytest.mark.parametrize(("unit", "sizes", "epsilon", "delta"), GAMES[:2])
def test_concentrated_filter_holds(unit, sizes, epsilon, delta):
    rho = 0.3
    admits = asking(lambda: Concentrated(rho=rho), unit, sizes)
    total = accounting.zcdp_epsilon(rho, delta)
    assert worst_delta(admits, total, unit, sizes) <= delta
    assert worst_delta(admits, 0.75 * total, unit, sizes) > delta


@pytest.mark.parametrize(("unit", "sizes", "epsilon", "delta"), GAMES[:2])
def test_why_exact_composition_is_no_filter(unit, sizes, epsilon, delta):
    """A filter that admits every list whose exact (epsilon, delta) fits lets an adaptive adversary pass delta."""

    @functools.cache
    def admits(small, large):
        law = np.ones(1)
        for size in [sizes[0]] * small + [sizes[1]] * large:
            truth = 1 / (1 + math.exp(-size * unit))
            law = np.convolve(law, [1 - truth, *[0.0] * (2 * size - 1), truth])
        loss = np.arange(-(law.size // 2), law.size // 2 + 1) * unit
        return float(np.sum(law * stop_value(loss, epsilon))) <= delta

    assert worst_delta(admits, epsilon, unit, sizes) > 1.4 * delta
    for kind in ("pld", "kov"):
        with pytest.raises(ValueError, match="not sound as an adaptive filter"):
            accounting.privacy_filter(kind, epsilon=epsilon, delta=delta)


# --- sequences ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_pure_sums_never_pass(seed):
    rng = np.random.default_rng(seed)
    spending, exact = Pure(epsilon=1.0, delta=1e-6), [Fraction(0), Fraction(0)]
    for epsilon, delta in zip(rng.exponential(0.1, 60), rng.exponential(1e-7, 60), strict=True):
        (fits,) = admitted(spending, [Cost(epsilon=float(epsilon), delta=float(delta))])
        after = [exact[0] + Fraction(repr(float(epsilon))), exact[1] + Fraction(repr(float(delta)))]
        assert fits == (after[0] <= 1 and after[1] <= Fraction(1, 10**6))
        exact = after if fits else exact
    assert Fraction(repr(spending.spent.epsilon)) >= exact[0]
    assert spending.guarantee.epsilon == 1.0


def test_ten_tenths_fit_and_no_more():
    spending = Pure(epsilon=1.0)
    assert admitted(spending, [Cost(epsilon=0.1)] * 11) == [True] * 10 + [False]
    assert spending.spent.epsilon == 1.0
    assert admitted(spending, [Cost(epsilon=1e-12)]) == [False]


def test_zcdp_counts_rho_or_half_the_square():
    spending = Concentrated(rho=0.5)
    assert admitted(spending, [Cost(epsilon=math.inf, rho=0.3), Cost(epsilon=0.6), Cost(epsilon=0.3)]) == [
        True,
        True,
        False,
    ]
    assert spending.spent.rho == 0.48


def test_batches_are_all_or_nothing():
    spending = Pure(epsilon=1.0)
    assert admitted(spending, [Cost(epsilon=np.full(11, 0.1)), Cost(epsilon=np.full(10, 0.1))]) == [False, True]


def test_approximate_formula():
    # sqrt(2 log(1/slack) k e^2) + k e^2/2 <= epsilon, worked out for equal rounds.
    spending = Approximate(epsilon=1.0, delta=1e-6)
    rounds = sum(admitted(spending, [Cost(epsilon=0.02)] * 200))
    spent = [math.sqrt(2 * math.log(1e6) * k * 0.02**2) + k * 0.02**2 / 2 for k in (rounds, rounds + 1)]
    assert spent[0] <= 1.0 < spent[1]
    assert rounds > 50  # more than the plain sum admits


def test_approximate_deltas():
    spending = Approximate(epsilon=1.0, delta=1e-6, delta_sum=4e-7)
    assert admitted(spending, [Cost(epsilon=0.01, delta=2e-7)] * 3) == [True, True, False]
    assert spending.guarantee.delta == 1e-6


def test_renyi_order_is_fixed_and_public():
    best = Renyi(epsilon=1.0, delta=1e-6)
    rounds = sum(admitted(best, [Cost(epsilon=math.inf, rho=1e-3)] * 60))
    for order in (0.8 * best.order, 1.5 * best.order):
        other = Renyi(epsilon=1.0, delta=1e-6, order=order)
        assert sum(admitted(other, [Cost(epsilon=math.inf, rho=1e-3)] * 60)) < rounds
    assert best.guarantee == Cost(1.0, 1e-6, math.inf, Relation.REPLACE_ONE)
    with pytest.raises(ValueError, match="leaves nothing to spend"):
        Renyi(epsilon=0.1, delta=1e-6, order=2.0)


def test_odometer_adds_up():
    odometer = Odometer()
    for _ in range(3):
        odometer.spend(Cost(epsilon=0.1, delta=1e-9))
    assert (odometer.spent.epsilon, odometer.spent.delta) == (0.3, 3e-9)


FILTERS = {
    "pure": lambda: Pure(epsilon=1.0),
    "zcdp": lambda: Concentrated(rho=1.0),
    "renyi": lambda: Renyi(epsilon=1.0, delta=1e-6),
    "approximate": lambda: Approximate(epsilon=1.0, delta=1e-6),
    "odometer": Odometer,
}


@pytest.mark.parametrize("make", FILTERS.values(), ids=FILTERS)
@pytest.mark.parametrize(
    "cost",
    [
        Cost(epsilon=math.inf),
        Cost(epsilon=math.nan),
        Cost(epsilon=-0.1),
        Cost(epsilon=0.1, relation=Relation.ADD_OR_REMOVE_ONE),
    ],
)
def test_costs_that_cannot_be_counted(make, cost):
    with pytest.raises(ValueError, match=r"counts|must be|holds under"):
        make().spend(cost)


@pytest.mark.parametrize("make", FILTERS.values(), ids=FILTERS)
def test_a_budget_is_not_copied(make):
    spending = make()
    spending.spend(Cost(epsilon=0.01))
    assert copy.deepcopy(spending) is copy.copy(spending) is spending
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(spending)


def test_threads_share_a_budget():
    spending = Pure(epsilon=1.0)

    def attempt(_):
        try:
            spending.spend(Cost(epsilon=0.01))
        except BudgetExhausted:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(200))) == 100


def test_filters_by_name():
    assert isinstance(accounting.privacy_filter("zcdp", rho=0.5), Concentrated)
    with pytest.raises(ValueError, match="must be one of"):
        accounting.privacy_filter("moments", epsilon=1.0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Pure(epsilon=math.nan),
        lambda: Pure(epsilon=1.0, delta=1.0),
        lambda: Concentrated(rho=0.0),
        lambda: Renyi(epsilon=1.0, delta=0.0),
        lambda: Renyi(epsilon=1.0, delta=1e-6, order=1.0),
        lambda: Approximate(epsilon=1.0, delta=1e-6, delta_sum=1e-6),
    ],
)
def test_bad_budgets(make):
    with pytest.raises(ValueError, match="must be"):
        make()


# --- OpenDP ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def opendp():
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    return dp


def their_answers(dp, measure, budget, measurements):
    """Which measurements OpenDP's filter lets through, up to the first refusal: it ends there, ours goes on."""
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    odometer = dp.c.make_fully_adaptive_composition(*space, output_measure=measure)
    queryable = dp.c.make_privacy_filter(odometer, d_in=1.0, d_out=budget)(0.0)
    answers = []
    for measurement in measurements:
        try:
            queryable(measurement)
        except importlib.import_module("opendp.mod").OpenDPException as error:
            assert_exhausted(error)
            return [*answers, False]
        else:
            answers.append(True)
    return answers


def assert_exhausted(error):
    assert "filter is now exhausted" in str(error)


@pytest.mark.parametrize("seed", range(3))
def test_pure_filter_agrees_with_opendp(opendp, seed):
    space = opendp.atom_domain(T=float, nan=False), opendp.absolute_distance(T=float)
    epsilons = np.random.default_rng(seed).choice([0.0625, 0.125, 0.25, 0.5], 20)
    measurements = [opendp.m.make_laplace(*space, scale=float(1 / epsilon)) for epsilon in epsilons]
    # No sum of these meets 1.51, so that their rounding of each loss cannot decide.
    theirs = their_answers(opendp, opendp.max_divergence(), 1.51, measurements)
    ours = admitted(Pure(epsilon=1.51), [Cost(epsilon=float(value)) for value in epsilons])
    assert theirs == ours[: len(theirs)]
    assert not theirs[-1]


@pytest.mark.parametrize("seed", range(3))
def test_zcdp_filter_agrees_with_opendp(opendp, seed):
    space = opendp.atom_domain(T=float, nan=False), opendp.absolute_distance(T=float)
    rhos = np.random.default_rng(seed).choice([0.125, 0.5, 0.03125], 20)
    measurements = [opendp.m.make_gaussian(*space, scale=math.sqrt(1 / (2 * rho))) for rho in rhos]
    theirs = their_answers(opendp, opendp.zero_concentrated_divergence(), 1.01, measurements)
    ours = admitted(Concentrated(rho=1.01), [Cost(epsilon=math.inf, rho=float(value)) for value in rhos])
    assert theirs == ours[: len(theirs)]
    assert not theirs[-1]


@pytest.mark.parametrize("make", [lambda: Pure(epsilon=1.0), lambda: Concentrated(rho=1.0), Odometer])
def test_a_budget_in_memory_is_not_spent_again_in_a_forked_process(make, monkeypatch):
    """Each child of multiprocessing.Pool had the whole budget once more, and the parent counted nothing."""
    budget, cost = make(), Cost(epsilon=0.25, delta=0.0, rho=0.03125, relation=Relation.REPLACE_ONE)
    budget.spend(cost)
    with monkeypatch.context() as child:
        child.setattr("jaxdp.accounting.filters.os.getpid", lambda: -1)
        for act in (budget.admits, budget.require, budget.spend, lambda cost: budget.charge("test", cost)):
            with pytest.raises(RuntimeError, match="memory of another process, and would be spent a second time here"):
                act(cost)
    assert float(budget.spent.epsilon) == 0.25
    assert budget.admits(cost)
