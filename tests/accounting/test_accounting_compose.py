"""Composition against exact sums over all outcomes, published figures and dp-accounting."""

import itertools
import math
import re
import subprocess
import sys
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, stats

from jaxdp import accounting
from jaxdp._base.rounding import as_fraction, round_down, round_up
from jaxdp.accounting import convert, renyi
from jaxdp.core import Cost, Relation
from jaxdp.mechanisms import Gaussian, Laplace
from jaxdp.privacy import Claim

DELTA = 1e-6


def exact_delta(epsilons, total):
    """Hockey-stick divergence of randomised responses, by all 2^k outcomes: the dominating pair of the list."""
    found = 0.0
    for truths in itertools.product((1, -1), repeat=len(epsilons)):
        loss = math.fsum(sign * epsilon for sign, epsilon in zip(truths, epsilons, strict=True))
        likely = math.exp(loss / 2) / math.prod(2 * math.cosh(epsilon / 2) for epsilon in epsilons)
        found += max(likely * -math.expm1(total - loss), 0.0)
    return found


def exact_epsilon(epsilons, delta):
    if exact_delta(epsilons, 0.0) <= delta:
        return 0.0
    return optimize.brentq(lambda total: exact_delta(epsilons, total) - delta, 0.0, sum(epsilons), xtol=1e-13)


# --- sums --------------------------------------------------------------------------------------------------------


def test_floats_are_read_as_decimals():
    assert as_fraction(0.1) == Fraction(1, 10)
    assert as_fraction(np.float32(0.5)) == Fraction(1, 2)
    for value in (Fraction(1, 3), Fraction(2, 3), Fraction(1, 10), Fraction(10**17 + 1, 10**17)):
        assert as_fraction(round_down(value)) <= value <= as_fraction(round_up(value))
        assert round_up(value) <= math.nextafter(round_down(value), math.inf)


def test_pure_sum_is_exact():
    assert accounting.compose([Cost(epsilon=0.1)] * 10).epsilon == 1.0
    rng = np.random.default_rng(0)
    for size in (2, 7, 100):
        epsilons = rng.uniform(0, 1, size)
        total = accounting.compose([Cost(epsilon=float(value), delta=1e-9) for value in epsilons])
        exact = sum(Fraction(repr(float(value))) for value in epsilons)
        assert exact <= as_fraction(total.epsilon) <= exact * (1 + Fraction(1, 2**52))
        assert total.delta == pytest.approx(size * 1e-9, rel=1e-15)


def test_batched_costs():
    laplace = jax.vmap(lambda epsilon: Laplace(epsilon).cost(Relation.REPLACE_ONE))(jnp.full(8, 0.25))
    total = accounting.compose(laplace)
    assert (total.epsilon, total.delta, total.rho) == (2.0, 0.0, 8 * 0.25**2 / 2)
    grid = accounting.compose([Cost(epsilon=np.full((2, 3), 0.5)), Cost(epsilon=1.0)])
    assert grid.epsilon == 4.0


def test_claims_of_normal_noise_compose_by_their_rho():
    """Three claims of (1, 1e-6), of rho .0244 each, cost 1.8 at 1e-6, where their deltas did not fit."""
    rho = renyi.zcdp_rho(1.0, DELTA)
    claim = Claim(epsilon=1.0, delta=DELTA, rho=rho)
    normal = Cost(epsilon=math.inf, rho=rho)
    assert accounting.compose([claim] * 3, delta=DELTA).epsilon == accounting.compose([normal] * 3, delta=DELTA).epsilon
    assert accounting.compose(claim, delta=DELTA).epsilon == pytest.approx(1.0, rel=1e-9)
    assert accounting.compose([claim] * 3, delta=1e-5).epsilon < accounting.compose([normal] * 3, delta=DELTA).epsilon
    summed = accounting.compose([claim] * 3)
    assert (summed.epsilon, summed.delta, summed.rho) == (3.0, 3e-6, pytest.approx(3 * rho))
    with pytest.raises(ValueError, match="add up"):
        accounting.compose([Cost(epsilon=1.0, delta=DELTA, rho=rho)] * 3, delta=DELTA)


def test_filters_of_rho_count_the_rho_of_a_claim():
    claim = Claim(epsilon=1.0, delta=DELTA, rho=0.02)
    for keeper in (accounting.ConcentratedFilter(rho=0.05), accounting.RenyiFilter(epsilon=1.6, delta=DELTA)):
        keeper.spend(claim)
        keeper.spend(claim)
        assert not keeper.admits(claim)
        with pytest.raises(ValueError, match="without a delta"):
            keeper.require(Cost(epsilon=1.0, delta=DELTA, rho=0.001))
    assert accounting.PureFilter(epsilon=1.0, delta=DELTA).admits(claim)
    assert not accounting.PureFilter(epsilon=2.0).admits(claim)


def test_zcdp_adds_up():
    costs = [Gaussian(0.125).cost(Relation.REPLACE_ONE)] * 3 + [Laplace(0.5).cost(Relation.REPLACE_ONE)]
    total = accounting.compose(costs)
    assert (total.epsilon, total.rho) == (math.inf, 0.5)


@pytest.mark.parametrize(
    ("costs", "delta", "message"),
    [
        ([Cost(epsilon=1.0), Cost(epsilon=1.0, relation=Relation.ADD_OR_REMOVE_ONE)], 0, "one relation"),
        ([], 0, "empty"),
        ([Cost(epsilon=math.nan)], 0, "must be >= 0"),
        ([Cost(epsilon=-1.0)], 0, "must be >= 0"),
        ([Cost(epsilon=1.0, delta=2.0)], 0, "delta"),
        ([Cost(epsilon=1.0, delta=1e-6)] * 3, 2e-6, "add up to"),
        ([Cost(epsilon=1.0)], 1.0, "less than 1"),
        ([Cost(epsilon=1.0)], math.nan, "less than 1"),
    ],
)
def test_mistakes(costs, delta, message):
    with pytest.raises(ValueError, match=message):
        accounting.compose(costs, delta)


def test_traced_costs_are_refused():
    with pytest.raises(ValueError, match="traced"):
        jax.jit(lambda epsilon: accounting.compose([Cost(epsilon=epsilon)]).epsilon)(1.0)


def test_non_private_stays_infinite():
    assert accounting.compose([Cost(epsilon=math.inf), Cost(epsilon=1.0)], DELTA).epsilon == math.inf


def test_one_lazy_module_touches_dp_accounting():
    package = Path(accounting.__file__).parents[1]
    touching = [
        path.name for path in package.rglob("*.py") if re.search(r"(from|import) dp_accounting", path.read_text())
    ]
    assert touching == ["convert.py"]
    program = (
        "import sys, jaxdp.accounting.composition, jaxdp.accounting.convert; sys.exit('dp_accounting' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


# --- the exact optimum -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "published"), [(1, 0.1), (10, 0.9994), (100, 4.7746), (1000, 19.345)])
def test_optimum_of_the_survey(count, published):
    # Table of interface notes, section 2.2, printed to the digits shown.
    assert accounting.optimal_epsilon(0.1, count, DELTA) == pytest.approx(published, rel=3e-5)


@pytest.mark.parametrize(
    ("epsilon", "count", "published"),
    [(0.05, 20, 0.87), (0.1, 20, 1.79), (1.0, 20, 20.0), (0.1, 100, 4.78), (0.02, 400, 1.76)],
)
def test_optimum_of_the_table(epsilon, count, published):
    # docs/theory/composition.md#equal-rounds, two decimals; it rounds 4.7746 up.
    assert accounting.optimal_epsilon(epsilon, count, DELTA) == pytest.approx(published, abs=0.0055)


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 5.0])
@pytest.mark.parametrize("count", [1, 2, 5, 10])
@pytest.mark.parametrize("delta", [0.2, 1e-3, 1e-9])
def test_optimum_equals_the_sum_over_outcomes(epsilon, count, delta):
    found, exact = accounting.optimal_epsilon(epsilon, count, delta), exact_epsilon([epsilon] * count, delta)
    assert found == pytest.approx(exact, abs=1e-6 * count * epsilon)  # at 1e-9 the float sum is the rougher one
    for total in (0.0, 0.4 * count * epsilon, found):
        assert accounting.optimal_delta(epsilon, count, total) == pytest.approx(
            exact_delta([epsilon] * count, total), rel=1e-9, abs=1e-14
        )


@pytest.mark.parametrize(
    ("epsilon", "count", "delta"), [(0.1, 100, 1e-6), (0.7, 30, 1e-10), (2.0, 9, 1e-3), (1e-3, 2000, 1e-12)]
)
def test_optimum_is_tight_and_on_the_safe_side(epsilon, count, delta):
    found = accounting.optimal_epsilon(epsilon, count, delta)
    assert accounting.optimal_delta(epsilon, count, found) <= delta
    assert accounting.optimal_delta(epsilon, count, found * (1 - 1e-9)) > delta


def test_optimum_at_the_edges():
    assert accounting.optimal_epsilon(0.3, 7, 0.0) == 2.1
    assert accounting.optimal_epsilon(1e-4, 10, 0.5) == 0.0
    assert accounting.optimal_epsilon(3.0, 2, 1e-30) <= 6.0
    assert accounting.optimal_epsilon(5.0, 1000, 1e-6) <= 5000.0
    assert accounting.optimal_delta(0.5, 4, 2.0) == 0.0


def test_largest_count():
    count = accounting.largest_count(0.1, total_epsilon=4.7746, delta=DELTA)
    assert count == 100
    assert accounting.largest_count(0.1, total_epsilon=1.0, delta=0.0) == 10
    assert accounting.largest_count(2.0, total_epsilon=1.0, delta=DELTA) == 0
    for epsilon, total in ((0.03, 1.0), (0.5, 3.0)):
        count = accounting.largest_count(epsilon, total_epsilon=total, delta=DELTA)
        assert accounting.optimal_delta(epsilon, count, total) <= DELTA
        assert accounting.optimal_delta(epsilon, count + 1, total) > DELTA


def test_optimum_equals_dp_accounting():
    distributions = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    common = pytest.importorskip("dp_accounting.pld.common")
    for epsilon, count in ((0.1, 100), (0.05, 400), (1.0, 20)):  # multiples of their grid: no rounding on either side
        single = distributions.from_privacy_parameters(common.DifferentialPrivacyParameters(epsilon, 0))
        theirs = single.self_compose(count).get_epsilon_for_delta(DELTA)
        assert accounting.optimal_epsilon(epsilon, count, DELTA) == pytest.approx(theirs, rel=1e-5)


def test_deltas_of_the_parts_are_set_aside():
    costs = [Cost(epsilon=0.1, delta=5e-9)] * 100
    total = accounting.compose(costs, DELTA)
    assert total.delta == DELTA
    assert total.epsilon == accounting.optimal_epsilon(
        0.1, 100, round_down(as_fraction(DELTA) - 100 * as_fraction(5e-9))
    )
    assert total.epsilon > accounting.optimal_epsilon(0.1, 100, DELTA)
    assert accounting.compose(costs, 5e-7).epsilon == 10.0


# --- unequal rounds ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("delta", [1e-2, 1e-6])
def test_unequal_rounds_against_all_outcomes(seed, delta):
    epsilons = np.random.default_rng(seed).uniform(0.02, 0.6, 11).tolist()
    exact = exact_epsilon(epsilons, delta)
    counts = dict.fromkeys(epsilons, 1)
    found = convert.pld_epsilon(counts, delta)
    # Never below; above by at most the grid, a thousandth of the sum.
    assert exact <= found <= exact + 1.1e-3 * sum(epsilons)
    total = accounting.compose([Cost(epsilon=value) for value in epsilons], delta)
    assert exact <= total.epsilon <= min(found, sum(epsilons) * (1 + 1e-15))


def test_unequal_rounds_with_repeats():
    total = accounting.compose([Cost(epsilon=0.1)] * 60 + [Cost(epsilon=0.2)] * 30, DELTA)
    low, high = (accounting.optimal_epsilon(0.1, rounds, DELTA) for rounds in (60, 120))
    assert low < total.epsilon < 12.0
    assert total.epsilon > high  # thirty rounds of 0.2 lose more than sixty of 0.1


# --- Renyi and zCDP ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "published"), [(1, 0.219), (10, 0.700), (100, 2.419), (1000, 8.847)])
def test_zcdp_of_the_survey(count, published):
    # Exponential mechanism, rho = epsilon^2/8. Published with a fixed list of orders, so never below ours.
    found = accounting.zcdp_epsilon(count * 0.1**2 / 8, DELTA)
    assert found <= published * 1.001
    assert found == pytest.approx(published, rel=1e-3 if count > 1 else 0.07)


@pytest.mark.parametrize("rho", [1e-4, 0.01, 0.5, 5.0, 40.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12])
def test_zcdp_covers_the_gaussian_and_is_near(rho, delta):
    found = accounting.zcdp_epsilon(rho, delta)
    assert gaussian_delta(rho, found) <= delta
    # No bound from zCDP alone can be below what a gaussian mechanism loses; ours is never far above it.
    assert gaussian_delta(rho, 0.7 * found) > delta


def gaussian_delta(rho, epsilon):
    """Exact delta of a gaussian mechanism that is rho-zCDP (Balle and Wang 2018, Theorem 8)."""
    mean = math.sqrt(2 * rho)
    upper, lower = stats.norm.logsf((epsilon / mean) - mean / 2), stats.norm.logsf((epsilon / mean) + mean / 2)
    return math.exp(upper) - math.exp(epsilon + lower)


def test_zcdp_equals_dp_accounting():
    rdp = pytest.importorskip("dp_accounting.rdp")
    dp_event = pytest.importorskip("dp_accounting").dp_event
    for rho in (0.02, 0.3, 2.0):
        best = 1 + math.sqrt(math.log(1 / DELTA) / rho)
        accountant = rdp.RdpAccountant(np.linspace(0.7 * best, 1.3 * best, 400))
        theirs = accountant.compose(dp_event.ZCDpEvent(rho)).get_epsilon(DELTA)
        assert accounting.zcdp_epsilon(rho, DELTA) == pytest.approx(theirs, rel=1e-6)


@pytest.mark.parametrize("order", [1.001, 1.5, 2.0, 17.0, 1e4])
@pytest.mark.parametrize("epsilon", [1e-8, 1e-3, 0.1, 1.0, 9.0])
def test_pure_divergence_is_that_of_randomised_response(order, epsilon):
    with localcontext(Context(prec=60)):
        growth, a = Decimal(epsilon).exp(), Decimal(order)
        yes, no = growth / (1 + growth), 1 / (1 + growth)
        exact = float(((yes**a * no ** (1 - a)) + (no**a * yes ** (1 - a))).ln() / (a - 1))
    found = renyi.pure_divergence(epsilon, order)
    assert found >= exact * (1 - 1e-12)
    assert found <= min(epsilon, order * epsilon**2 / 2) * (1 + 1e-9)
    if order >= 1.5 and epsilon >= 1e-3:
        assert found == pytest.approx(exact, rel=1e-12)


def test_mixed_pure_and_zcdp():
    costs = [Cost(epsilon=math.inf, rho=0.1), Cost(epsilon=0.5)]
    total = accounting.compose(costs, DELTA)
    apart = 0.5 + accounting.zcdp_epsilon(0.1, DELTA)
    together = accounting.zcdp_epsilon(0.1 + 0.125, DELTA)
    assert total.epsilon <= min(apart, together)
    assert total.epsilon > accounting.zcdp_epsilon(0.1, DELTA)


def test_a_smaller_rho_is_used():
    # The exponential mechanism: epsilon^2/8, a quarter of what pure epsilon implies.
    bounded_range = [Cost(epsilon=0.1, rho=0.1**2 / 8)] * 100
    assert accounting.compose(bounded_range, DELTA).epsilon == pytest.approx(2.419, rel=1e-3)
    assert accounting.compose([Cost(epsilon=0.1)] * 100, DELTA).epsilon == pytest.approx(4.7746, rel=1e-4)


def test_every_delta_is_at_most_the_sum():
    for epsilon, count in itertools.product((0.01, 1.0, 6.0), (1, 3, 40)):
        total = accounting.compose([Cost(epsilon=epsilon)] * count, 1e-8)
        assert total.epsilon <= count * epsilon * (1 + 1e-15)
