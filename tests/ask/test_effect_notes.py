"""What an answer says in place of an effect, or of its interval, where the release cannot give one."""

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp._base import programs
from jaxdp.ask import detectable, effects
from jaxdp.ask.effects import ANY_SIZE_TOLD
from jaxdp.independence.continuous import residual_test
from jaxdp.independence.tables import cramers_v, noisy_table
from jaxdp.independence.variants import score_test


def levels(count):
    return {"kind": "categorical", "levels": [str(level) for level in range(count)]}


def real(low, high):
    return {"kind": "continuous", "bounds": [low, high]}


def asked(columns, kinds, **how):
    return jaxdp.test(columns, schema={"columns": kinds}, epsilon=1.0, key=jax.random.key(how.pop("seed", 0)), **how)


def test_an_interval_of_every_possible_size_is_told_and_not_shown():
    rng = np.random.default_rng(0)
    columns = {"x": rng.normal(size=15), "y": rng.normal(size=15)}
    found = asked(columns, {"x": real(-4, 4), "y": real(-4, 4)}, x="x", y="y", seed=1)
    assert found.method == "quantile-table"
    assert found.effect is None
    assert found.interval is None
    assert f"  effect     {ANY_SIZE_TOLD[:40]}" in str(found)


@pytest.mark.parametrize("key", [None, jax.random.key(0)])
def test_an_answer_is_told_where_programs_of_its_release_are_kept(monkeypatch, key):
    """Elsewhere they would be compiled a second time, and go to a cache that is not the owner's."""
    settings = dict.fromkeys(programs._NOWHERE, None)
    monkeypatch.setattr(programs, "_kept", [])
    kept = []
    monkeypatch.setattr(effects, "notes", lambda *_: kept.append({n: getattr(jax.config, n) for n in settings}) or {})
    columns = {name: np.random.default_rng(0).integers(0, 2, 200).astype(str) for name in "xy"}
    schema = {"columns": {"x": levels(2), "y": levels(2)}}
    jaxdp.test(columns, schema=schema, epsilon=1.0, key=key, x="x", y="y", method="projected-chi2")
    assert (kept == [programs._NOWHERE]) == (key is None)


def test_two_levels_each_have_a_size():
    rng = np.random.default_rng(2)
    columns = {name: rng.integers(0, 2, 600).astype(str) for name in "xy"}
    found = asked(columns, {"x": levels(2), "y": levels(2)}, x="x", y="y", method="projected-chi2")
    assert found.interval[0] < found.effect < found.interval[1]
    assert found.to_dict()["effect_notes"] == {}


@pytest.mark.parametrize(
    ("method", "kinds"),
    [
        ("projected-chi2", {"x": levels(3), "y": levels(4)}),
        ("noisy-table", {"x": levels(3), "y": levels(4)}),
        ("quantile-table", {"x": levels(3), "y": levels(4)}),
        ("quantile-table", {"x": levels(3), "y": real(-4, 4)}),
    ],
)
def test_levels_without_an_order_have_a_size_in_words(method, kinds):
    rng = np.random.default_rng(1)
    columns = {
        name: rng.integers(0, len(kind["levels"]), 600).astype(str) if "levels" in kind else rng.normal(size=600)
        for name, kind in kinds.items()
    }
    found = asked(columns, kinds, x="x", y="y", method=method)
    low, high = found.interval
    assert low == 0.0
    assert 0.0 <= found.effect <= high < 0.3
    assert not found.dependence_found
    second = "4 levels" if "levels" in kinds["y"] else f"{found.test.num_bins} quantile groups"
    told = found.to_dict()["effect_is"]
    assert told.startswith(f"Cramer's V of x (3 levels) and y ({second}), from 0 (neither tells anything about")
    assert f"The interval begins at 0: no dependence is shown, and one stronger than {high:.3g} is ruled out" in told
    missed = found.missed()
    assert 0.1 < missed["detectable_effect"] < 0.4
    assert missed["power"].startswith("With power 0.8 at level 0.05 Cramer's V of 0.")
    assert "up or down" not in missed["power"]


def test_rare_levels_beside_the_noise_are_merged_and_said_to_be():
    rng = np.random.default_rng(1)
    columns = {name: rng.choice(["0", "1", "2"], size=600, p=[0.55, 0.4, 0.05]) for name in "xy"}
    found = asked(columns, {"x": levels(3), "y": levels(3)}, x="x", y="y")
    assert found.interval[0] == 0.0 <= found.effect <= found.interval[1] < 0.3
    told = found.to_dict()["effect_notes"][cramers_v.MERGED]
    assert told.startswith("Cramer's V counts level 2 of x as one with the commonest level of that column")


def test_rare_levels_of_two_beside_the_noise_have_no_size_and_say_so():
    rng = np.random.default_rng(1)
    columns = {"x": rng.choice(["0", "1"], size=600, p=[0.99, 0.01]), "y": rng.choice(["0", "1", "2"], size=600)}
    found = asked(columns, {"x": levels(2), "y": levels(3)}, x="x", y="y")
    assert found.effect is None
    assert found.interval is None
    assert found.to_dict()["effect_notes"] == cramers_v.SENTENCES


@pytest.mark.parametrize(
    ("method", "seed"),
    [
        ("noisy-table", 0),
        *(pytest.param(*of, marks=pytest.mark.full) for of in [("projected-chi2", 0), ("quantile-table", 1)]),
    ],
)
def test_an_answer_that_could_find_nothing_for_a_level_without_records_says_so(method, seed):
    rng = np.random.default_rng(5)
    x = rng.integers(0, 3, 5000)
    y = np.where(rng.random(5000) < 0.8, x, rng.integers(0, 3, 5000))
    columns = {"x": x.astype(str), "y": y.astype(str)}
    lost = method != "quantile-table"
    found = asked(columns, {"x": levels(3), "y": levels(4)}, x="x", y="y", method=method, seed=seed)
    assert found.dependence_found != lost
    told = found.to_dict()["effect_notes"]
    assert (noisy_table.TOO_FEW in told) == lost
    if lost:
        assert found.p_value == 1.0
        assert "independence expects at most 5 records in some cell" in told[noisy_table.TOO_FEW]
        assert "Nothing could be found" in " ".join(str(found).split())
        assert found.missed()["power"] == "Nothing could have been found, however strong; the answer says why."
    full = asked(columns, {"x": levels(3), "y": levels(3)}, x="x", y="y", method=method)
    assert full.dependence_found
    assert full.to_dict()["effect_notes"] == {}


def test_a_log_rank_answer_without_a_finding_says_what_could_have_been_found():
    rng = np.random.default_rng(3)
    event, censored = rng.exponential(2.0, 1000), rng.uniform(0.0, 2.0, 1000)
    columns = {
        "x": rng.integers(0, 2, 1000).astype(str),
        "time": np.minimum(event, censored),
        "event": (event <= censored).astype(int).astype(str),
    }
    kinds = {"x": levels(2), "time": real(0, 2), "event": levels(2)}
    found = asked(columns, kinds, x="x", y=["time", "event"], method="log-rank")
    assert not found.dependence_found
    assert "would have been found" in found.missed()["power"]
    assert found.missed()["detectable_effect"] == found.to_dict()["detectable_effect"] > 0.0


def test_agreement_is_told_in_plain_words():
    rng = np.random.default_rng(4)
    columns = dict(zip("xyz", rng.normal(size=(3, 500)), strict=True))
    found = asked(columns, dict.fromkeys("xyz", real(-4, 4)), x="x", y="y", given="z", method="band-gcm")
    assert "agreement of X and Y among records with nearly the same Z" in found.to_dict()["effect_is"]


@pytest.mark.parametrize(
    ("method", "x", "y"), [("linear-regression", "amount", "length"), ("mean-difference", "arm", "amount")]
)
def test_an_effect_of_a_column_read_by_its_logarithm_says_so(method, x, y):
    random = np.random.default_rng(4)
    length = random.normal(size=4000)
    table = {"length": length, "amount": np.exp(length + random.normal(size=4000)), "arm": np.repeat(["a", "b"], 2000)}
    schema = {
        "columns": {
            "length": {"kind": "continuous", "bounds": [-4, 4]},
            "amount": {"kind": "continuous", "bounds": [0.01, 1000], "scale": "log"},
            "arm": {"kind": "binary", "levels": ["a", "b"]},
        }
    }
    answer = jaxdp.test(table, schema=schema, x=x, y=y, method=method, epsilon=4.0, key=jax.random.key(0))
    assert "units are those of the natural logarithm of amount" in " ".join(str(answer).split())


def test_an_effect_of_a_date_counts_days_and_shows_its_bounds_as_dates():
    random = np.random.default_rng(4)
    days = np.datetime64("2024-01-01") + random.integers(0, 365, 4000)
    table = {"day": days, "arm": np.repeat(["a", "b"], 2000), "size": random.normal(size=4000)}
    schema = {
        "columns": {
            "day": {"kind": "continuous", "bounds": ["2024-01-01", "2024-12-31"], "date": True},
            "arm": {"kind": "binary", "levels": ["a", "b"]},
            "size": {"kind": "continuous", "bounds": [-4, 4]},
        }
    }
    for method, x, y in (("linear-regression", "size", "day"), ("mean-difference", "arm", "day")):
        answer = jaxdp.test(table, schema=schema, x=x, y=y, method=method, epsilon=4.0, key=jax.random.key(0))
        told = answer.to_dict()["effect_is"]
        assert "clipped to [2024-01-01, 2024-12-31]" in told
        assert told.endswith("; day in days")


def test_a_slope_of_two_levels_says_which_is_compared_with_which():
    random = np.random.default_rng(4)
    table = {"arm": np.repeat(["a", "b"], 2000), "size": random.normal(size=4000)}
    schema = {"arm": {"kind": "binary", "levels": ["a", "b"]}, "size": {"kind": "continuous", "bounds": [-4, 4]}}
    for method in ("linear-regression", "partial-correlation"):
        answer = jaxdp.test(
            table, schema={"columns": schema}, x="arm", y="size", method=method, epsilon=4.0, key=jax.random.key(0)
        )
        assert "arm = b against a" in answer.to_dict()["effect_is"]


def binary_table(size=800, seed=3):
    rng = np.random.default_rng(seed)
    old, ill, ward = rng.integers(0, 2, (3, size))
    words = np.array(["no", "yes"])
    return {"old": words[old], "ill": words[np.where(rng.random(size) < 0.4, old, ill)], "ward": ward.astype(str)}


@pytest.mark.parametrize(
    ("method", "given", "name"),
    [
        ("noisy-table", None, "phi coefficient of a 2 x 2 table (old by ill). old = yes"),
        ("projected-chi2", None, "phi coefficient of a 2 x 2 table (old by ill). old = yes"),
        ("stratified-table", "ward", "phi coefficient within the strata (old by ill). old = yes"),
    ],
)
def test_a_phi_coefficient_is_named_once(method, given, name):
    two = {"kind": "binary", "levels": ["no", "yes"]}
    kinds = {"old": two, "ill": two, "ward": levels(2)}
    found = asked(binary_table(), kinds, x="old", y="ill", given=given, method=method)
    assert found.content["effect_is"].startswith(name)


def test_kendalls_tau_given_z_says_how_strata_are_averaged():
    rng = np.random.default_rng(0)
    columns = {"x": rng.normal(size=600), "y": rng.normal(size=600), "ward": rng.integers(0, 2, 600).astype(str)}
    kinds = {"x": real(-4, 4), "y": real(-4, 4), "ward": levels(2)}
    how = {"x": "x", "y": "y", "method": "conditional-kendall"}
    averaged = "that of pairs that disagree, averaged over the strata of Z by their numbers of records"
    assert averaged in asked(columns, kinds, given="ward", **how).content["effect_is"]
    without = asked(columns, kinds, **how).content["effect_is"]
    assert "that of pairs that disagree" in without
    assert "strata" not in without


@pytest.mark.parametrize("dependent", [True, False])
def test_an_effect_that_could_not_be_found_is_no_word_beside_one_that_was(monkeypatch, dependent):
    monkeypatch.setattr(jaxdp.PartialCorrelation, "detectable_effect", lambda *_: np.inf)
    rng = np.random.default_rng(0)
    x = rng.normal(size=2000)
    columns = {"x": x, "y": rng.normal(size=2000) + dependent * x}
    found = asked(columns, {"x": real(-6, 6), "y": real(-6, 6)}, x="x", y="y", method="partial-correlation")
    assert found.dependence_found == dependent
    assert found.content["detectable_effect"] == (None if dependent else np.inf)


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_the_detectable_effect_of_persons_counts_the_noise_that_the_interval_counts(epsilon):
    """It lay inside the interval about 0: an effect of this size was found with power .45, not .8."""
    rng = np.random.default_rng(0)
    persons = np.repeat(np.arange(1100), rng.integers(1, 6, 1100))
    table = {"person": persons} | {name: rng.normal(size=len(persons)) for name in "xyzw"}
    schema = {"unit": "person", "columns": {name: {"kind": "continuous", "bounds": [-3, 3]} for name in "xyzw"}}
    for method, given in (("band-gcm", "z"), ("contrast-gcm", ["z", "w"])):
        how = {"x": "x", "y": "y", "given": given, "method": method, "schema": schema, "epsilon": epsilon}
        answer = jaxdp.test(table, **how, key=jax.random.key(1))
        low, high = answer.interval
        assert answer.content["detectable_effect"] > 1.3 * 0.5 * (high - low)  # 1.43 of normal errors


def test_a_covariate_hidden_by_noise_has_no_detectable_effect_beside_it():
    rng = np.random.default_rng(6)
    columns = {"x": rng.binomial(2, 0.3, 1000).astype(str), "y": rng.normal(size=1000), "z": rng.normal(size=1000)}
    kinds = {"x": {"kind": "ordinal", "levels": ["0", "1", "2"]}, "y": real(-4, 4), "z": real(-1000, 1000)}
    found = asked(columns, kinds, x="x", y="y", given="z", method="score-test")
    assert found.p_value == 1.0
    assert score_test.LOST in found.to_dict()["effect_notes"]
    assert "knots=2" not in found.to_dict()["effect_notes"][score_test.LOST]  # these are straight lines
    assert found.missed()["power"] == "Nothing could have been found, however strong; the answer says why."


def test_functions_of_a_covariate_that_noise_hides_leave_straight_lines():
    rng = np.random.default_rng(6)
    columns = {"x": rng.binomial(2, 0.3, 3000).astype(str), "y": rng.normal(size=3000), "z": rng.normal(size=3000)}
    kinds = {"x": {"kind": "ordinal", "levels": ["0", "1", "2"]}, "y": real(-4, 4), "z": real(-4, 4)}
    how = {"x": "x", "y": "y", "given": "z", "method": "score-test", "seed": 1}
    found = asked(columns, kinds, **how)
    assert found.p_value == 1.0
    assert "knots=2" in found.to_dict()["effect_notes"][score_test.LOST]
    assert score_test.LOST not in asked(columns, kinds, fields={"knots": 2}, **how).to_dict()["effect_notes"]


@pytest.mark.parametrize("method", ["mean-difference", "noisy-table", "conditional-kendall"])
def test_the_effect_that_would_have_been_found_is_that_of_the_level(method):
    rng = np.random.default_rng(3)
    x = rng.integers(0, 2, 800)
    alike = np.where(x == 1, np.cumsum(x), np.cumsum(1 - x)) % 2  # as often 1 beside either level of x
    columns = {"x": x.astype(str), "y": rng.normal(size=800), "w": alike.astype(str)}
    kinds = {"x": levels(2), "y": real(-4, 4), "w": levels(2)}
    how = {"x": "x", "y": "w" if method == "noisy-table" else "y", "method": method, "seed": 1}
    found = {}
    for level in (0.001, 0.01, 0.05, 0.2):
        fields = {"num_null": 999} if method == "noisy-table" else {}
        missed = asked(columns, kinds, level=level, fields=fields, **how).missed()
        assert missed["power"].startswith(f"With power 0.8 at level {level:g} an effect size of ")
        found[level] = missed["detectable_effect"] / 2.802  # sds of a normal law, at level 0.05
    sd = found[0.05]
    if method != "noisy-table":  # whose critical values are quantiles of 400 tables
        assert found[0.01] == pytest.approx(sd * 3.417 / 2.802, rel=0.08)
    assert found[0.001] > 1.3 * sd
    assert found[0.2] < 0.8 * sd


def test_a_rank_among_too_few_draws_finds_nothing_at_a_level_below_it():
    rng = np.random.default_rng(2)
    columns = {name: rng.integers(0, 2, 600).astype(str) for name in "xy"}
    how = {"x": "x", "y": "y", "method": "noisy-table", "level": 0.001}
    found = asked(columns, {"x": levels(2), "y": levels(2)}, **how).missed()
    told = "Nothing could have been found at level 0.001, however strong: the p-value is a rank among 199 draws"
    assert found["power"].startswith(f"{told}, so that it is 0.005 or more. With --set num_null=9999 ")
    assert found["detectable_effect"] == np.inf


def test_without_an_interval_it_is_not_known_what_would_have_been_found_where_the_p_value_is_not_lost():
    """It was said that nothing could have been found, beside a p-value that needs no interval."""
    rng = np.random.default_rng(0)
    columns = {name: rng.normal(size=400) for name in "xy"}
    kinds = {"x": real(-30, 30), "y": real(-30, 30)}
    for method in ("linear-regression", "partial-correlation"):
        found = asked(columns, kinds, x="x", y="y", method=method, seed=1)
        assert found.interval is None
        assert 0.05 < found.p_value < 1.0
        assert "The p-value needs no such number." in found.content["effect_notes"][residual_test.LOST]
        told = "The noise hides the scale of the effect, so how small an effect would have been found is not known."
        assert found.missed() == {"detectable_effect": None, "power": told}


@pytest.mark.parametrize(("interval", "said"), [(None, False), ([-0.1, 0.2], True)])
def test_an_answer_without_an_interval_is_not_told_of_one(monkeypatch, interval, said):
    monkeypatch.setattr(detectable, "by_formula", lambda *_: 0.2)
    names = {"x": ["x"], "y": ["y"], "given": ["z"], "method": "score-test"}
    schema = jaxdp.Schema.from_dict({"columns": {"x": levels(2), "y": real(-4, 4), "z": real(-4, 4)}})
    content = {**names, "n": 800, "epsilon": 1.0, "level": 0.01, "interval": interval}
    power = detectable.by_plan(content, schema, "S.toml")["power"]
    assert power.startswith("With power 0.8 at level 0.01 an effect of 0.2 or more would have been found")
    assert ("where Z explains little" in power) == ("interval" in power or not said)
    assert ("the interval shows" in power) == said
