"""Planning: inverses of power, searches by formula and by simulation, mistakes."""

import dataclasses

import jax
import numpy as np
import pytest
from planned_columns import SCHEMA

from jaxdp import plan
from jaxdp.data.dataset import Column
from jaxdp.data.schema import Schema
from jaxdp.plan import solve
from jaxdp.plan.solve import PlannedTest


@pytest.mark.full
def test_the_inverses_agree_with_each_other():
    for method in ("partition-gcm", "unit-circle", "test-of-tests"):
        n = plan.required_n(method, epsilon=1.0, effect=0.2)

        def at(method=method, n=n, **other):
            return plan.power(method, **{"n": n, "epsilon": 1.0, "effect": 0.2, **other})

        assert at() >= 0.8
        assert plan.minimum_epsilon(method, n=n, effect=0.2) == pytest.approx(1.0, rel=0.03)
        assert plan.detectable_effect(method, n=n, epsilon=1.0) == pytest.approx(0.2, rel=0.03)
        assert min(at(effect=0.25), at(epsilon=1.5), at(n=2 * n)) > at()


@pytest.mark.full
def test_simulation_finds_nearly_the_same_effect_as_the_formula():
    formula = plan.detectable_effect("margin-adaptive", n=200, epsilon=1.0)
    replicated = plan.detectable_effect("margin-adaptive", n=200, epsilon=1.0, engine="simulation", replicates=1000)
    # power rises by about 0.6 as the effect doubles: 0.05 of power (4 sd) is 8 % of the effect
    assert replicated == pytest.approx(formula, rel=0.08)


@pytest.mark.nightly
def test_simulation_finds_nearly_the_same_records_as_the_formula():
    formula = plan.required_n("partition-gcm", epsilon=1.0, effect=0.4)
    replicated = plan.required_n("partition-gcm", epsilon=1.0, effect=0.4, engine="simulation", replicates=1000)
    assert replicated == pytest.approx(formula, rel=0.15)


def test_a_search_stops_a_step_where_the_side_is_clear(monkeypatch):
    """A rate of 0.3 or less is clearly below 0.8 after one stage, one near 0.8 takes all replicates."""
    counted = []

    def fake(test, design, key, count, start=0):
        counted.append((start, count))
        return np.where(np.arange(count) < count * fake.rate, 0.01, 0.9)

    monkeypatch.setattr(solve.replicates_of, "p_values", fake)
    planned = dataclasses.replace(
        PlannedTest.of("margin-adaptive", engine="simulation", replicates=250, key=jax.random.key(1)), wanted=0.8
    )
    fake.rate = 0.3
    assert planned.power(200, 1.0, 0.5) == pytest.approx(0.3)
    assert counted == [(0, 100)]
    counted.clear()
    fake.rate = 0.78
    assert planned.power(200, 1.0, 0.5) == pytest.approx(0.78)
    assert counted == [(0, 100), (100, 100), (200, 50)]  # the same replicates as without stages


def test_a_search_by_simulation_tells_its_steps():
    heard = []
    with solve.listening(heard.append):
        found = solve._smallest_simulated(solve._reported(lambda n: 1.0 - np.exp(-n / 100.0)), 0.8, 20, 1e4)
    assert found == pytest.approx(161, rel=0.03)
    assert heard[0].startswith("power 0.18 at 20")
    assert "steps more at most, about " in heard[-1]


def test_a_search_by_simulation_ends_within_its_own_error():
    """Steps between powers that so many replicates cannot tell apart cost most of the replicates."""
    asked = []

    def power(n):
        asked.append(n)
        return 1.0 - np.exp(-n / 100.0)

    exact = solve._smallest_simulated(lambda n, left=None: power(n), 0.8, 20, 1e4)
    steps = len(asked)
    asked.clear()
    found = solve._smallest_simulated(lambda n, left=None: power(n), 0.8, 20, 1e4, 0.03)
    assert len(asked) < steps
    assert 0.8 <= power(found) <= 0.83
    assert found == pytest.approx(exact, rel=0.1)


def test_common_random_numbers_make_power_monotone_in_epsilon():
    planned = PlannedTest.of("partition-gcm", engine="simulation", replicates=200, key=jax.random.key(1))
    counts = [planned.simulated(120, epsilon, 0.5).rejections for epsilon in (0.5, 0.7, 1.0, 1.4, 2.0, 4.0)]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]


def test_privacy_costs_more_records_for_smaller_epsilon_and_few_in_the_limit():
    cost = [plan.cost_of_privacy("partition-gcm", epsilon=e, effect=0.25) for e in (0.5, 1.0, 4.0)]
    assert cost[0] > cost[1] > cost[2] > 1.0
    assert plan.cost_of_privacy("margin-adaptive", epsilon=1000.0, effect=0.25) == pytest.approx(1.0, abs=0.05)
    assert plan.cost_of_privacy("noisy-table", epsilon=1000.0, effect=0.25) == pytest.approx(1.0, abs=0.05)


def test_a_test_without_a_plan_says_what_to_do():
    """`m-estimator` was answered as a name that no test has."""
    asked = {"epsilon": 1.0, "effect": 0.3, "power": 0.8}
    with pytest.raises(ValueError, match=r"^m-estimator has no plan, .* plan logistic-reg.* jaxdp.rejection_rate"):
        plan("m-estimator", **asked)
    with pytest.raises(ValueError, match=r"^pair-contrasts has no plan; these have one: .*partition-gcm"):
        plan("pair-contrasts", **asked)


def test_a_plan_with_a_delta_says_how_its_answer_is_got():
    """No command of two columns takes a delta."""
    asked = {"epsilon": 1.0, "effect": 0.25, "power": 0.8}
    assert "jaxdp.run, with mechanism=jaxdp.Gaussian(rho)" in plan("partition-gcm", delta=1e-6, **asked).sentence
    assert "jaxdp.run" not in plan("partition-gcm", **asked).sentence


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="method must be one of"):
        plan.required_n("nonsense", epsilon=1.0, effect=0.1)
    with pytest.raises(ValueError, match="effect must be"):
        plan.required_n("partition-gcm", epsilon=1.0, effect=0.0)
    with pytest.raises(ValueError, match="power must be"):
        plan.required_n("partition-gcm", epsilon=1.0, effect=0.1, power=1.0)
    with pytest.raises(ValueError, match="does not fit"):
        plan.power("margin-adaptive", n=100, epsilon=1.0, effect=0.1, setting=plan.Setting())
    with pytest.raises(ValueError, match="needs more than"):
        plan.required_n("private-gcm-paper", epsilon=0.01, effect=0.001)
    with pytest.raises(ValueError, match="at least 450"):
        plan.power("test-of-tests", n=100, epsilon=1.0, effect=0.1)
    with pytest.raises(ValueError, match="give three of"):
        plan.answer("partition-gcm", n=100, effect=0.1)
    two = plan.Setting(scaled=True, z=(Column(), Column()), accept_coarse_cells=True)
    with pytest.raises(ValueError, match="no power formula"):
        plan.power("partition-gcm", n=100, epsilon=1.0, effect=0.1, setting=two, engine="formula")


SCALED_LINE = plan.Setting(scaled=True)


@pytest.mark.full
def test_a_search_takes_refused_numbers_of_records_for_powerless():
    """The band refuses fewer than 100 records, where the search begins."""
    found = plan.required_n("band-gcm", epsilon=8.0, effect=1.5, setting=SCALED_LINE, replicates=60)
    assert found == pytest.approx(100, abs=3)
    with pytest.raises(ValueError, match="at most 5"):
        plan.power(
            "contrast-gcm", n=1000, epsilon=1.0, effect=0.3, setting=plan.Setting(scaled=True, z=(Column(),) * 6)
        )


@pytest.mark.full
def test_a_test_that_refuses_few_records_is_planned_all_the_same():
    setting = plan.Setting.of_schema(Schema.from_dict(SCHEMA), "dose", "response", ["age"])
    given = {"setting": setting, "epsilon": 3.0, "effect": 0.5}
    (few,) = plan.compare(**given, n=40, methods=["band-gcm"])
    assert "needs at least 100" in few.reason  # the comparison goes on
    needed = plan.required_n("band-gcm", **given, power=0.8, replicates=60)
    assert 100 <= needed <= 400
