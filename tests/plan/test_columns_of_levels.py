"""Plans of columns with levels: formulas against simulation, and no formula where there is none for such columns."""

import pytest
from simulated_power import simulated

from jaxdp import plan
from jaxdp.cli import plan as cli_plan
from jaxdp.data.dataset import Column

NUMBER, TWO, FOUR = Column(), Column("binary", 2), Column("ordinal", 4)
NOMINAL = Column("categorical", 3)
RUNS = 300


def test_a_search_for_n_takes_no_more_records_than_exact_sums_do():
    two_levels = plan.Setting(x=TWO, y=NUMBER, z=(), scaled=True)
    n = plan.required_n("score-test", epsilon=1.0, effect=0.4, setting=two_levels)
    assert plan.power("score-test", n=n, epsilon=1.0, effect=0.4, setting=two_levels) >= 0.8
    with pytest.raises(ValueError, match=r"needs more than 1\.34218e[+]08 records"):
        plan.required_n("score-test", epsilon=1.0, effect=1e-6, setting=two_levels)


@pytest.mark.full
@pytest.mark.parametrize("x", [TWO, FOUR], ids=["two", "four"])
@pytest.mark.parametrize("method", ["conditional-kendall", "conditional-spearman"])
def test_ranks_of_tied_columns_are_found_as_often_as_planned(method, x):
    setting = plan.Setting(x=x, y=NUMBER, z=(FOUR,), scaled=True)
    n = plan.required_n(method, epsilon=1.0, effect=0.25, setting=setting)
    found = plan.power(method, n=n, epsilon=1.0, effect=0.25, setting=setting, engine="simulation", replicates=RUNS)
    assert found == pytest.approx(0.8, abs=0.07)  # three standard errors


@pytest.mark.parametrize("method", ["linear-regression", "partial-correlation", "winsorised-partial-correlation"])
def test_groups_without_an_order_have_no_formula_of_one_slope(method):
    setting = plan.Setting(x=NOMINAL, y=NUMBER, z=(), scaled=True)
    with pytest.raises(ValueError, match="no power formula"):
        plan.power(method, n=1000, epsilon=1.0, effect=0.3, setting=setting, engine="formula")


@pytest.mark.full
@pytest.mark.parametrize(
    ("n", "epsilon", "effect", "y", "z"),
    [
        (268, 1.0, 0.3, NUMBER, ()),
        (268, 1.0, 0.3, TWO, ()),
        (558, 1.0, 0.3, NUMBER, (NUMBER,)),
        (2000, 1.0, 0.12, NUMBER, (NUMBER,)),
    ],
)
def test_score_tests_are_planned_with_what_the_noise_hides(n, epsilon, effect, y, z):
    """It hides that a covariate varies, and then p = 1; the unit of the residuals is as uncertain as their variance."""
    setting = plan.Setting(x=TWO, y=y, z=z, scaled=True, bent=False)
    planned = plan.power("score-test", n=n, epsilon=epsilon, effect=effect, setting=setting)
    counted = simulated("score-test", n, epsilon, effect, setting, replicates=1000)
    assert planned == pytest.approx(counted.rate, abs=0.03 + 2.0 * (counted.rate * (1.0 - counted.rate) / 1000) ** 0.5)


@pytest.mark.full
def test_a_slope_given_many_levels_is_found_as_often_as_planned():
    setting = plan.Setting(x=NUMBER, y=NUMBER, z=(Column("categorical", 14),), scaled=True)
    effect = plan.detectable_effect("linear-regression", n=20_000, epsilon=2.0, power=0.8, setting=setting)
    assert effect < 0.1
    counted = simulated("linear-regression", 20_000, 2.0, effect, setting, replicates=200)
    assert counted.rate == pytest.approx(0.8, abs=0.085)  # three standard errors


@pytest.mark.full
def test_strata_of_few_records_are_planned():
    """The noise may leave no record in a table whose margins make a null."""
    setting = plan.Setting(x=FOUR, y=FOUR, z=(TWO,), scaled=True)
    assert plan.power("stratified-table", n=50, epsilon=0.01, effect=0.3, setting=setting) < 0.2


@pytest.mark.parametrize(("power", "told"), [(0.3, "less often"), (0.97, "more often"), (0.82, "")])
def test_a_check_that_contradicts_the_formula_is_said_to(power, told):
    checked = {"planned": 0.8, "note": "", "power": power, "power_interval": [power - 0.04, power + 0.04]}
    said = cli_plan.contradiction(checked)
    assert told in said
    assert bool(said) == bool(told)
    assert "fewer records would do" not in cli_plan.contradiction(checked | {"note": "It takes no fewer records."})
