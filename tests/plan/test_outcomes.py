"""Planning for outcomes of their own: times to an event, yes or no, counts."""

import jax
import numpy as np
import pytest
from scipy import stats
from simulated_power import simulated

import jaxdp
from jaxdp import plan
from jaxdp.data.dataset import BINARY, CATEGORICAL, Column
from jaxdp.data.schema import Schema
from jaxdp.plan import methods
from jaxdp.plan.methods import default_method, plans
from jaxdp.plan.solve import PlannedTest

ARMS = {
    "arm": {"kind": "binary", "levels": ["control", "drug"]},
    "died": {"kind": "binary", "levels": ["no", "yes"]},
    "days": {"kind": "continuous", "bounds": [0, 730]},
    "survival": {"kind": "survival", "time": "days", "event": "died"},
    "site": {"kind": "categorical", "levels": ["p", "q", "r"]},
    "dose": {"kind": "continuous", "bounds": [0, 1]},
}


@pytest.mark.full
@pytest.mark.parametrize(
    ("setting", "n", "epsilon", "effect"),
    [
        (plan.SurvivalSetting(), 404, 1.0, 0.405),
        pytest.param(plan.SurvivalSetting(), 700, 0.5, 0.405, marks=pytest.mark.nightly),
        (plan.SurvivalSetting(share=0.2, events=0.3, lost=0.4), 700, 1.0, 0.69),
        pytest.param(plan.SurvivalSetting(share=0.2, events=0.3, lost=0.4), 400, 4.0, 0.69, marks=pytest.mark.nightly),
        (plan.SurvivalSetting(z=(Column(CATEGORICAL, 3),)), 700, 1.0, 0.405),
    ],
)
@pytest.mark.optimised
def test_times_to_an_event_are_planned(setting, n, epsilon, effect):
    predicted = plan.power("log-rank", n=n, epsilon=epsilon, effect=effect, setting=setting)
    counted = simulated("log-rank", n, epsilon, effect, setting, replicates=2000)
    assert abs(predicted - counted.rate) <= 0.03  # sds of at most 0.009 and 0.009


def test_the_tables_of_a_plan_are_those_of_its_records():
    from jaxdp.plan.survival import times
    from jaxdp.statistics import log_rank

    setting = plan.SurvivalSetting(share=0.3, events=0.4, lost=0.3)
    data = times(jax.random.key(1), n=200_000, setting=setting, effect=0.5)
    bins, event = log_rank.codes(data.y[:, 0], data.y[:, 1])
    counted = np.zeros(setting.cells(0.5).shape)
    np.add.at(counted[0], tuple(np.asarray(part, int) for part in (data.x, bins, event)), 1.0)
    expected = 200_000 * setting.cells(0.5)
    assert expected.sum() == pytest.approx(200_000)
    full = expected > 0
    assert not counted[~full].any()
    off = np.sum((counted - expected)[full] ** 2 / expected[full])
    assert off < stats.chi2.isf(1e-6, full.sum() - 1)
    alone = setting.cells(0.0)[0, 0] / 0.7
    assert alone[..., 1].sum() == pytest.approx(0.4)
    assert alone[:-1, 0].sum() == pytest.approx(0.3)


def test_times_and_events_of_a_schema_are_planned_by_log_rank_alone():
    schema = Schema.from_dict({"columns": ARMS})
    setting = plan.SurvivalSetting.of_schema(schema, "arm", "survival")
    assert isinstance(setting, plan.SurvivalSetting)
    assert [name for name, found in plans().items() if found.applies(setting)] == ["log-rank"]
    assert default_method(setting) == "log-rank"
    assert not plans()["log-rank"].applies(plan.Setting())
    numeric = plan.SurvivalSetting.of_schema(schema, "arm", "survival", ["dose"])
    assert not plans()["log-rank"].applies(numeric)
    in_strata = plan.SurvivalSetting.of_schema(schema, "arm", "survival", ["site"])
    assert [name for name, found in plans().items() if found.applies(in_strata)] == ["log-rank"]
    assert in_strata.cells(0.4).shape[0] == 3
    assert in_strata.cells(0.4).sum(0) == pytest.approx(setting.cells(0.4)[0])
    power = [plan.power("log-rank", n=400, epsilon=1.0, effect=0.6, setting=one) for one in (setting, in_strata)]
    assert power[0] > power[1] + 0.1, "strata cost records"
    assert plan.power("log-rank", n=60, epsilon=0.5, effect=0.6, setting=in_strata) == 0.0, "refused"
    with pytest.raises(ValueError, match=r"events \+ lost must be < 1, got 0.8 \+ 0.3"):
        plan.SurvivalSetting(events=0.8, lost=0.3)


FOUR_COLUMNS = {
    "dose": {"kind": "continuous", "bounds": [0, 10]},
    "arm": {"kind": "binary", "levels": ["control", "drug"]},
    "age": {"kind": "continuous", "bounds": [18, 90]},
    "town": {"kind": "categorical", "levels": ["a", "b", "c"]},
    "ill": {"kind": "binary", "levels": ["no", "yes"]},
}


def odds(covariates=0, **fields):
    return plan.LogisticSetting.of_fields(covariates, **fields)


@pytest.mark.full
@pytest.mark.parametrize(
    ("setting", "n", "epsilon", "delta", "effect"),
    [
        (odds(), 1000, 4.0, 0.0, 0.2),
        pytest.param(odds(3, rate=0.4), 5000, 1.0, 0.0, 0.12, marks=pytest.mark.nightly),
        pytest.param(odds(3, rate=0.1), 10_000, 1.0, 0.0, 0.16, marks=pytest.mark.nightly),
        (odds(1, rate=0.05), 10_000, 4.0, 1e-6, 0.2),
        (odds(3, rate=0.4), 3146, 1.0, 0.0, 0.3),  # the noise of scales decides whether anything is found
    ],
)
@pytest.mark.optimised
def test_slopes_in_log_odds_are_planned(setting, n, epsilon, delta, effect):
    how = {"n": n, "epsilon": epsilon, "effect": effect, "setting": setting, "delta": delta}
    predicted = plan.power("logistic-regression", **how)
    assert 0.2 < predicted < 0.97
    planned = PlannedTest.of(
        "logistic-regression", setting, engine="simulation", replicates=500, key=jax.random.key(3), delta=delta
    )
    assert abs(predicted - planned.simulated(n, epsilon, effect).rate) <= 0.05 + 0.035  # two sds of both counts


def test_records_of_a_logistic_setting_have_its_rate_its_correlation_and_its_slope():
    setting = plan.LogisticSetting.of_schema(
        Schema.from_dict({"columns": FOUR_COLUMNS}), "dose", "ill", ["age", "arm"], rate=0.1, correlation=0.5
    )
    data = setting.design(200_000, 0.6)(jax.random.key(1))
    x, z, y = np.asarray(data.x), np.asarray(data.z), np.asarray(data.y) > 0.0
    assert y.mean() == pytest.approx(0.1, abs=4e-3)
    assert np.corrcoef(x, z[:, 0])[0, 1] == pytest.approx(0.5, abs=0.01)
    assert x.std() == pytest.approx(setting.residual_sd, rel=0.01)
    columns = np.stack([np.ones(len(x)), z[:, 0] / setting.residual_sd, 2.0 * z[:, 1] - 1.0, x / setting.residual_sd])
    slopes = np.zeros(4)
    for _ in range(12):
        chance = 1.0 / (1.0 + np.exp(-slopes @ columns))
        information = (columns * (chance * (1.0 - chance))) @ columns.T
        slopes = slopes + np.linalg.solve(information, columns @ (y - chance))
    assert slopes[3] == pytest.approx(0.6, abs=0.05)
    expected = 0.5 / np.sqrt(2.0 + 2.0 * 0.5)
    assert slopes[1:3] == pytest.approx([expected, expected], abs=0.05)


def test_an_x_of_two_levels_is_planned_by_the_odds_ratio_of_the_second_against_the_first():
    setting = plan.LogisticSetting(x=Column(BINARY, 2))
    data = setting.design(100_000, 0.8)(jax.random.key(2))
    x, y = np.asarray(data.x) > 0.0, np.asarray(data.y) > 0.0
    found = np.log(y[x].mean() / (1.0 - y[x].mean())) - np.log(y[~x].mean() / (1.0 - y[~x].mean()))
    assert found == pytest.approx(0.8, abs=0.06)
    assert "second against its first: 0.8 is an odds ratio of 2.23" in setting.effect_is(0.8)
    assert "per sd of X, Z held fixed: 0.8" in odds(2).effect_is(0.8)


def test_fields_of_a_logistic_setting_need_no_schema_and_others_are_refused():
    schema = Schema.from_dict({"columns": FOUR_COLUMNS})
    made = methods.setting_of("logistic-regression", None, None, None, (), {"rate": 0.1, "covariates": 3})
    assert (made.rate, len(made.z)) == (0.1, 3)
    described = methods.setting_of("logit", schema, "dose", "ill", ["age", "town"], {"rate": 0.2})
    assert isinstance(described, plan.LogisticSetting)
    assert [column.levels for column in described.z] == [0, 3]
    plain = methods.setting_of(None, schema, "dose", "ill", ["age"], {})
    assert type(plain) is plan.Setting, "a comparison has one meaning of an effect"
    assert plans()["logistic-regression"].applies(plain)
    assert not plans()["logistic-regression"].has_formula(plain, 0.0)
    with pytest.raises(ValueError, match="leave covariates out"):
        plan.LogisticSetting.of_schema(schema, "dose", "ill", ["age"], covariates=2)
    with pytest.raises(ValueError, match="rate: no field of SurvivalSetting"):
        methods.setting_of(None, schema, "dose", "ill", ["age"], {"rate": 0.1})
    with pytest.raises(ValueError, match="rate belongs to columns of a schema"):
        jaxdp.plan("partition-gcm", epsilon=1.0, effect=0.2, power=0.8, rate=0.1)
    with pytest.raises(ValueError, match="correlation must be at least 0 and below 1, got 1"):
        odds(1, correlation=1.0)
    with pytest.raises(ValueError, match="leave tails out"):
        odds(1, tails=3.0)


def test_wald_s_test_without_privacy_needs_the_records_that_its_information_says():
    """Of one column, hardly any effect: n = (1.96 + .84)^2/(effect^2 rate (1 - rate))."""
    setting = odds(rate=0.2)
    expected = (stats.norm.isf(0.025) + stats.norm.isf(0.2)) ** 2 / (0.05**2 * 0.2 * 0.8)
    assert PlannedTest.of("logistic-regression", setting).public_n(0.05, 0.8) == pytest.approx(expected, rel=0.01)
    alike = odds(1, rate=0.2, correlation=0.6, confounding=1e-6)
    more = expected / (1.0 - 0.6**2)
    assert PlannedTest.of("logistic-regression", alike).public_n(0.05, 0.8) == pytest.approx(more, rel=0.02)


def rates(covariates=0, **fields):
    return plan.PoissonSetting.of_fields(covariates, **fields)


@pytest.mark.full
@pytest.mark.parametrize(
    ("setting", "n", "epsilon", "delta", "effect"),
    [
        pytest.param(rates(), 3000, 4.0, 0.0, 0.06, marks=pytest.mark.nightly),
        (rates(1), 12_000, 1.0, 0.0, 0.08),
        (rates(2, dispersion=3.0), 10_000, 2.0, 1e-6, 0.09),
    ],
)
@pytest.mark.optimised
def test_slopes_in_log_means_are_planned(setting, n, epsilon, delta, effect):
    how = {"n": n, "epsilon": epsilon, "effect": effect, "setting": setting, "delta": delta}
    predicted = plan.power("poisson-regression", **how)
    assert 0.2 < predicted < 0.97
    planned = PlannedTest.of(
        "poisson-regression", setting, engine="simulation", replicates=300, key=jax.random.key(3), delta=delta
    )
    assert abs(predicted - planned.simulated(n, epsilon, effect).rate) <= 0.06 + 0.04


def test_records_of_a_poisson_setting_have_its_mean_its_variance_and_its_slope():
    columns = {**FOUR_COLUMNS, "visits": {"kind": "continuous", "bounds": [0, 20]}}
    schema = Schema.from_dict({"columns": columns})
    setting = plan.PoissonSetting.of_schema(schema, "dose", "visits", ["age"], dispersion=2.0)
    assert setting.most == 20.0
    data = setting.design(400_000, 0.3)(jax.random.key(1))
    x, z, y = np.asarray(data.x), np.asarray(data.z).reshape(-1), 10.0 * (np.asarray(data.y) + 1.0)
    assert y.mean() == pytest.approx(2.0, rel=0.02)
    design = np.stack([np.ones(len(x)), z / setting.residual_sd, x / setting.residual_sd], axis=1)
    slopes = np.array([np.log(y.mean()), 0.0, 0.0])
    for _ in range(12):
        mean = np.exp(design @ slopes)
        slopes = slopes + np.linalg.solve((design * mean[:, None]).T @ design, design.T @ (y - mean))
    assert slopes[1:] == pytest.approx([0.5, 0.3], abs=0.03)
    assert np.sum((y - mean) ** 2) / np.sum(mean) == pytest.approx(2.0, rel=0.05)
    assert "0.3 is a rate ratio of 1.35. Planned for a Y with a mean of 2, of up to 20, 2 times" in setting.effect_is(
        0.3
    )


@pytest.mark.full
@pytest.mark.optimised
def test_the_smallest_slope_is_looked_for_where_means_stay_below_the_bound():
    found = plan.detectable_effect("poisson-regression", n=20_000, epsilon=1.0, setting=rates(1))
    assert 0.02 < found < 0.15


def test_without_privacy_a_poisson_slope_needs_the_records_that_its_information_says():
    """Of one column, hardly any effect: n = (1.96 + .84)^2 dispersion/(effect^2 mean of Y)."""
    setting = rates(rate=0.2, most=10.0, dispersion=1.5)
    expected = (stats.norm.isf(0.025) + stats.norm.isf(0.2)) ** 2 * 1.5 / (0.05**2 * 2.0)
    assert PlannedTest.of("poisson-regression", setting).public_n(0.05, 0.8) == pytest.approx(expected, rel=0.01)
