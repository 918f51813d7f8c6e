"""The units of effects of ordered columns: their numbers where these are equally spaced, else steps between levels."""

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp.data.coding import ColumnRule

TENS = [70, 80, 90, 100]
STAGES = ["mild", "moderate", "severe", "fatal"]
STEPS = "from one level of stage to the next (levels count as equally spaced)"
SPACED = [
    ("ordinal", TENS, 10.0),
    ("ordinal", ["1", "2", "3"], 1.0),
    ("ordinal", [0.1, 0.2, 0.3], 0.1),
    ("ordinal", ["2", "4", "6.0"], 2.0),
]
IN_STEPS = [[0, 1, 9], [100, 90, 80], ["a", "b", "c"], ["1", "2", "3+"], ["nan", "inf", "1"]]
TWO_OR_UNORDERED = [("ordinal", [70, 100]), ("binary", [0, 1]), ("categorical", [70, 80, 90])]


def rule_of(kind, levels):
    return jaxdp.Schema.from_dict({"columns": {"grade": {"kind": kind, "levels": levels}}}).rule("grade")


@pytest.mark.parametrize(("kind", "levels", "spacing"), SPACED)
def test_levels_that_are_equally_spaced_numbers_have_their_unit(kind, levels, spacing):
    rule = rule_of(kind, levels)
    assert rule.spacing == pytest.approx(spacing)
    assert rule.half_range == pytest.approx(0.5 * (float(levels[-1]) - float(levels[0])))
    assert not rule.counts_in_steps
    assert rule.in_steps == ""


@pytest.mark.parametrize("levels", IN_STEPS)
def test_other_ordered_levels_count_in_steps(levels):
    rule = rule_of("ordinal", levels)
    assert rule.counts_in_steps
    assert rule.half_range == 0.5 * (len(levels) - 1)
    assert "step from one level of grade to the next (levels count as equally spaced)" in rule.unit


@pytest.mark.parametrize(("kind", "levels"), TWO_OR_UNORDERED)
def test_two_levels_are_compared_as_such_and_unordered_ones_have_no_steps(kind, levels):
    rule: ColumnRule = rule_of(kind, levels)
    assert (rule.spacing, rule.half_range, rule.counts_in_steps) == (0.0, 0.5, False)


def patients(levels=TENS, n=6000):
    """cd4 rises by 2.4 per point of karnof (24 per level); karnof is 1.7 points lower with symptoms."""
    rng = np.random.default_rng(3)
    symptom = rng.integers(0, 2, n)
    level = rng.choice(4, n, p=[0.1, 0.2, 0.4, 0.3])
    level = np.where((symptom == 1) & (rng.random(n) < 0.2), np.maximum(level - 1, 0), level)
    cd4 = np.clip(150 + 24 * level + 80 * rng.normal(size=n), 0, 600)
    ill = rng.random(n) < 1 / (1 + np.exp(0.5 * level - 1))
    return {"stage": np.array(levels)[level], "cd4": cd4, "symptom": symptom, "ill": 1 * ill}


def schema(levels=TENS, **more):
    columns = {
        "stage": {"kind": "ordinal", "levels": levels},
        "cd4": {"kind": "continuous", "bounds": [0, 600]},
        "symptom": {"kind": "binary", "levels": [0, 1]},
        "ill": {"kind": "binary", "levels": [0, 1]},
    }
    return jaxdp.Schema.from_dict({"columns": columns, **more})


def asked(x, y, method="linear-regression", levels=TENS, **how):
    how = {"epsilon": 20.0, "key": jax.random.key(1), "schema": schema(levels)} | how
    return jaxdp.test(patients(levels), x=x, y=y, method=method, **how)


def truth(x, y):
    table = patients()
    return np.polyfit(table[x], table[y], 1)[0]


@pytest.mark.parametrize(("x", "y"), [("stage", "cd4"), ("symptom", "stage")])
def test_a_slope_is_per_unit_of_the_numbers(x, y):
    """The level numbers are 10 points apart: a slope per step would be ten times as large, or as small."""
    answer = asked(x, y)
    low, high = answer.interval
    assert low < truth(x, y) < high
    assert high - low < 2 * abs(truth(x, y))
    assert "step" not in answer.content["effect_is"]


def test_only_the_unit_depends_on_what_the_levels_are_called():
    """The same release, told in points and in steps."""
    points, steps = asked("stage", "cd4"), asked("stage", "cd4", levels=STAGES)
    assert steps.p_value == points.p_value
    assert steps.statistic == points.statistic
    assert steps.effect == pytest.approx(10 * points.effect)
    assert steps.content["detectable_effect"] == pytest.approx(10 * points.content["detectable_effect"])
    assert f"per step {STEPS}" in steps.content["effect_is"]


@pytest.mark.parametrize(("margin", "found"), [(0.5, False), (5.0, True)])
def test_a_margin_is_in_points_where_levels_are_points(margin, found):
    """The true difference is about 1.7 points, .17 steps."""
    content = asked("symptom", "stage", margin=margin).content["equivalence"]
    assert content["found"] is found
    assert "steps" not in content["sentence"]


@pytest.mark.parametrize("method", ["linear-regression", "mean-difference"])
def test_a_margin_in_steps_says_so(method):
    answer = asked("symptom", "stage", method, STAGES, margin=0.5)
    assert answer.content["equivalence"]["found"]
    told = answer.content["equivalence"]["sentence"]
    assert "less than 0.5 in size, where stage counts in steps from one level to the next" in told
    assert "in steps between levels of stage" in answer.content["effect_is"]


def test_a_margin_that_every_effect_is_within_is_refused_in_the_unit_of_the_effect():
    with pytest.raises(ValueError, match=r"below 30, got 31: .* in its own units, is"):
        asked("symptom", "stage", "mean-difference", margin=31)
    with pytest.raises(ValueError, match=r"below 3, got 31: .* where stage counts in steps"):
        asked("symptom", "stage", "mean-difference", STAGES, margin=31)


def test_a_difference_of_means_is_in_points():
    answer = asked("symptom", "stage", "mean-difference")
    assert answer.interval[0] < truth("symptom", "stage") < answer.interval[1]
    assert answer.effect < -1.0
    assert answer.content["effect_is"].startswith("difference of the means of stage, 1 - 0")


def test_log_odds_are_per_point_or_per_step():
    points, steps = asked("stage", "ill", "logit"), asked("stage", "ill", "logit", STAGES)
    assert points.interval[0] < -0.05 < points.interval[1]
    assert steps.effect == pytest.approx(10 * points.effect)
    assert "per unit of stage (levels 70 to 100)" in points.content["effect_is"]
    assert f"per step {STEPS}" in steps.content["effect_is"]


def test_all_rows_of_persons_and_sessions_give_the_same_units():
    table = patients()
    table["person"] = np.arange(len(table["cd4"])) // 2
    how = {"x": "stage", "y": "cd4", "method": "linear-regression", "epsilon": 20.0}
    of_persons = jaxdp.test(table, schema=schema(unit="person"), rows="all", key=jax.random.key(1), **how)
    of_rows = jaxdp.Session(table, schema=schema(), epsilon=20.0, key=jax.random.key(1)).test(**how)
    for answer in (of_persons, of_rows):
        assert answer.interval[0] < truth("stage", "cd4") < answer.interval[1]
        assert answer.interval[1] < 12.0
