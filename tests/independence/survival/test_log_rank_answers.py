"""What a query of times and events answers, says and refuses."""

import json

import jax
import numpy as np
import pytest
from trial_tables import EVENT, OUTCOME, TWO, asked, trial

import jaxdp
from jaxdp.ask.independence import Query
from jaxdp.cli.main import main
from jaxdp.data.dataset import BINARY, CATEGORICAL, Column, Data, Domain
from jaxdp.independence.survival import log_rank as private


@pytest.mark.parametrize(
    ("x", "y", "z", "told"),
    [
        ((Column(CATEGORICAL, 9, "site"),), (Column(), EVENT), (), "site has 9; name or merge levels"),
        ((Column(BINARY, 1, "arm"),), (Column(), EVENT), (), "arm has 1; name or merge levels"),
        ((Column(name="dose"),), (Column(), EVENT), (), "dose is continuous: cut it at public values"),
        ((Column(levels=2, name="arm"),), (Column(), EVENT), (), "arm was read as numbers: read with codes=True"),
        ((TWO,), (Column(), Column(levels=2, name="died")), (), "died was read as numbers: read with codes=True"),
        ((TWO,), (Column(), Column(CATEGORICAL, 3, "cause")), (), "cause has 3 levels"),
        ((TWO,), (Column(),), (), "two columns as Y"),
        ((TWO,), (EVENT, EVENT), (), "two columns as Y"),
        ((TWO,), (Column(), EVENT), (Column(name="age"),), "cut age at public values into levels, or leave it out"),
        ((TWO,), (Column(), EVENT), (Column(CATEGORICAL, 17),), "at most 16 strata, and the levels of Z make 17"),
    ],
)
def test_other_columns_are_refused_in_one_sentence_before_anything_is_charged(tmp_path, x, y, z, told):
    wide = lambda part: (20,) if len(part) == 1 else (20, len(part))  # noqa: E731
    data = Data(np.zeros(wide(x)), np.zeros(wide(y)), np.zeros((20, 1)) if z else None, Domain(x, y, z))
    ledger = jaxdp.Ledger.create(tmp_path / "ledger.json", epsilon=5.0)
    refused = private.refusal(data.domain)
    assert told in refused
    assert not refused.endswith(".")
    with pytest.raises(ValueError, match="log-rank"):
        jaxdp.run(jaxdp.LogRank(epsilon=1.0), jaxdp.fresh_key(), data, ledger=ledger)
    assert float(ledger.spent.epsilon) == 0.0


def test_an_event_column_of_three_levels_is_refused_by_a_query():
    table = {"arm": ["a", "b"] * 10, "days": np.arange(20.0), "cause": ["no", "flu", "other", "no"] * 5}
    with pytest.raises(ValueError, match="cause has 3 levels: name two, the second of which is the event"):
        jaxdp.test(
            table,
            x="arm",
            y=["days", "cause"],
            epsilon=1.0,
            method="log-rank",
            bounds={"days": (0.0, 30.0)},
            levels={"arm": ["a", "b"], "cause": ["no", "flu", "other"]},
            key=jax.random.key(0),
        )


def test_a_query_gives_the_log_hazard_ratio_and_says_of_what():
    answer = asked(trial(3000, 0.6), 2.0)
    low, high = answer.interval
    assert answer.p_value < 0.001
    assert low < np.log(0.6) < high < 0.0
    assert "log hazard ratio of died = yes, arm = drug against control" in " ".join(
        "\n".join(answer.sentences()).split()
    )


@pytest.mark.parametrize("y", ["survival", ["days", "died"], ["died", "days"]])
def test_times_and_events_that_the_schema_declares_are_compared_by_log_rank(y):
    table, schema = trial(2000, 0.5), jaxdp.Schema.from_dict({"columns": OUTCOME})
    answer = jaxdp.test(table, x="arm", y=y, epsilon=2.0, schema=schema, key=jax.random.key(2))
    assert answer.content["method"] == "log-rank"
    assert answer.p_value < 0.01
    if y != ["died", "days"]:
        assert answer.content["title"] == "Is arm independent of survival (time days, event died)?"
        assert answer.p_value == pytest.approx(asked(table, 2.0).p_value, rel=1e-6)


def test_the_command_takes_a_declared_outcome_as_y_and_as_nothing_else(tmp_path, capsys):
    table, schema, data = trial(400, 0.5), tmp_path / "s.json", tmp_path / "t.csv"
    schema.write_text(json.dumps({"columns": OUTCOME}))
    lines = zip(*(table[name] for name in ("arm", "days", "died")), strict=True)
    data.write_text("arm,days,died\n" + "".join(",".join(map(str, line)) + "\n" for line in lines))
    asked_of = [
        "test",
        str(data),
        "--schema",
        str(schema),
        "--epsilon",
        "2",
        "--seed",
        "1",
        "--out",
        str(tmp_path / "o"),
    ]
    assert main([*asked_of, "--x", "arm", "--y", "survival"]) == 0
    assert json.loads((tmp_path / "o" / "result.json").read_text())["method"] == "log-rank"
    assert main([*asked_of, "--x", "survival", "--y", "arm"]) == 2
    assert "name it as y, by itself" in capsys.readouterr().err


@pytest.mark.parametrize("y", [["days", "died"], ["died", "days"]])
def test_a_time_and_an_event_that_nobody_declared_are_named_as_such(y):
    undeclared = jaxdp.Schema.from_dict({"columns": {k: v for k, v in OUTCOME.items() if k != "survival"}})
    asking = Query.of(undeclared, x="arm", y=y, epsilon=1.0, method="log-rank")
    assert asking.sentence == "Is arm independent of the time days to the event died?"


def test_declared_times_and_events_are_ordinary_columns_elsewhere():
    schema = jaxdp.Schema.from_dict({"columns": OUTCOME})
    assert schema.names == ("arm", "died", "days")
    for y in ("died", "days"):
        undeclared = jaxdp.Schema.from_dict({"columns": {k: v for k, v in OUTCOME.items() if k != "survival"}})
        assert (
            Query.of(schema, x="arm", y=y, epsilon=1.0).entry is Query.of(undeclared, x="arm", y=y, epsilon=1.0).entry
        )
    assert Query.of(undeclared, x="arm", y=["days", "died"], epsilon=1.0).entry.name != "log-rank"
    with pytest.raises(
        ValueError, match=r"'week' is not in the schema; it describes 'arm', 'died', 'days', 'survival'"
    ):
        Query.of(schema, x="arm", y="week", epsilon=1.0)
    with pytest.raises(ValueError, match=r"'week' is not in the schema; it describes 'arm', 'died', 'days'\."):
        Query.of(schema, x="week", y="survival", epsilon=1.0)
    for said in ({"x": "survival", "y": "arm"}, {"x": "arm", "y": ["survival", "died"]}):
        with pytest.raises(
            ValueError, match="'survival' stands for the times 'days' and the events 'died': name it as"
        ):
            Query.of(schema, **said, epsilon=1.0)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"time": "died"}, "time must name a column of this schema that is continuous, with bounds, got 'died'"),
        ({"event": "days"}, "event must name a column of this schema that is of two levels, the second"),
        ({"event": "deaths"}, "event must name a column of this schema"),
        ({"event": None}, "event must name a column of this schema"),
        ({"bounds": [0, 1]}, "column 'survival' says bounds of 'days', which has its own entry: remove one of the two"),
        ({"levels": ["no", "yes"]}, "column 'survival' says levels of 'died', which has its own entry"),
        ({"unit": "days"}, "column 'survival' has an unknown key 'unit'"),
        ({"time": "week", "bounds": [1, 0]}, "column 'week': the lower bound must be below"),
    ],
)
def test_an_outcome_is_checked_when_the_schema_is_read(more, told):
    with pytest.raises(ValueError, match=told):
        jaxdp.Schema.from_dict({"columns": OUTCOME | {"survival": {**OUTCOME["survival"], **more}}})


def test_an_outcome_may_describe_its_own_columns():
    """Bounds in the entry of the outcome were refused as an unknown key."""
    alone = {key: OUTCOME["survival"][key] for key in ("kind", "time", "event")}
    told = alone | {key: OUTCOME["days"][key] for key in OUTCOME["days"] if key != "kind"}
    apart = jaxdp.Schema.from_dict({"columns": OUTCOME})
    schema = jaxdp.Schema.from_dict(
        {"columns": {"arm": OUTCOME["arm"], "survival": told | {"levels": OUTCOME["died"]["levels"]}}}
    )
    assert (dict(schema.rules), schema.outcomes) == (dict(apart.rules), apart.outcomes)
    coded = jaxdp.Schema.from_dict({"columns": {"arm": OUTCOME["arm"], "survival": told}})
    assert coded.rules["died"].levels == (0, 1)
    with pytest.raises(ValueError, match="time must name a column of this schema that is continuous, with bounds"):
        jaxdp.Schema.from_dict({"columns": {"arm": OUTCOME["arm"], "survival": alone}})


def test_too_few_events_are_said_from_the_release_alone():
    answer = asked(trial(300, 1.0, rate=0.01), 0.5)
    assert answer.content["interval"] is None or np.isnan(answer.interval[0])
    assert private.FEW_EVENTS in answer.content["effect_notes"]
    assert answer.p_value > 0.01


@pytest.mark.parametrize("y", ["survival", ["days", "died"]])
@pytest.mark.parametrize(
    ("asked_of", "told"),
    [
        ({"x": "dose"}, "X must be one column of 2 to 8 levels, and dose is continuous: cut it"),
        ({"x": "dose", "sees": "any"}, "dose is continuous: cut it"),
        ({"x": "arm", "given": "dose"}, "cut dose at public values into levels, or leave it out"),
        ({"x": "arm", "given": ["site", "ward"]}, "at most 16 strata, and the levels of Z make 18 together"),
        ({"x": "city"}, "city has 9; name or merge levels"),
        ({"x": ["arm", "dose"]}, "X must be one column of 2 to 8 levels, and there are more columns"),
    ],
)
def test_an_outcome_that_log_rank_cannot_ask_about_goes_to_no_test_of_plain_numbers(tmp_path, y, asked_of, told):
    columns = OUTCOME | {
        "dose": {"kind": "continuous", "bounds": [0, 1]},
        "site": {"kind": "categorical", "levels": ["p", "q", "r"]},
        "ward": {"kind": "categorical", "levels": [str(level) for level in range(6)]},
        "city": {"kind": "categorical", "levels": [str(level) for level in range(9)]},
    }
    schema, table = jaxdp.Schema.from_dict({"columns": columns}), trial(200, 1.0)
    table |= {"dose": np.linspace(0.0, 1.0, 200), "site": np.array(["p", "q", "r", "p"] * 50), "ward": ["1"] * 200}
    table["city"] = table["ward"]
    ledger = jaxdp.Ledger.create(tmp_path / "ledger.json", epsilon=5.0)
    with pytest.raises(ValueError, match=told) as refused:
        jaxdp.test(table, y=y, epsilon=1.0, schema=schema, ledger=ledger, **asked_of)
    assert "of the time and the event as plain columns, such as" in str(refused.value), "the other way out"
    assert float(ledger.spent.epsilon) == 0.0
    asked_of = {name: asked for name, asked in asked_of.items() if name != "sees"}
    named = Query.of(schema, y=y, epsilon=1.0, method="partition-gcm", **asked_of)
    assert named.entry.name == "partition-gcm"


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_times_on_a_logarithmic_scale_are_cut_evenly_on_it(scale):
    columns = {**OUTCOME, "days": {"kind": "continuous", "bounds": [1, 10_000], "scale": scale}}
    schema = jaxdp.Schema.from_dict({"columns": columns})
    table = trial(2000, 0.6)
    table["days"] = np.maximum(table["days"], 1.0)
    answer = jaxdp.test(table, x="arm", y="survival", epsilon=2.0, schema=schema, key=jax.random.key(2))
    at = np.array(answer.to_dict()["curves"]["groups"][0]["at"])
    assert (at[0], at[-1]) == pytest.approx((1.0, 10_000.0))
    assert np.diff(np.log(at) if scale == "log" else np.sqrt(at - 1.0), 2) == pytest.approx(0.0, abs=1e-9)
    assert answer.interval[0] < np.log(0.6) < answer.interval[1] < 0.0
    assert ("restricted_means" in answer.to_dict()["curves"]) is False


@pytest.mark.parametrize(("mean", "said"), [(0.5, True), (8.0, False)])
def test_an_answer_about_crowded_times_says_so(mean, said):
    rng = np.random.default_rng(0)
    time = np.minimum(rng.exponential(mean, 2000), 182.0)
    table = {"arm": rng.integers(0, 2, 2000), "days": time, "died": np.ones(2000, int)}
    public = {"bounds": {"days": (0, 182)}, "levels": {"arm": [0, 1], "died": [0, 1]}}
    answer = jaxdp.test(table, x="arm", y=["days", "died"], method="log-rank", epsilon=1.0, **public)
    assert said == (private.CROWDED in answer.content.get("effect_notes", {}))
    assert "When a record is censored says nothing" in " ".join(" ".join(answer.sentences()).split())


@pytest.mark.parametrize(("end", "has_interval"), [(60, False), (15, True)])
def test_a_ratio_has_no_interval_where_one_group_is_followed_for_a_shorter_time(end, has_interval):
    """Its share at risk falls to nothing within a block, of which the noisy counts say too little: bounds say more."""
    rng = np.random.default_rng(5)
    group = rng.random(20_000) < 0.5
    time = 25.0 * rng.exponential(size=group.size) * np.exp(-0.8 * group)
    left = np.where(group, 15.0, 60.0)
    columns = {
        "days": {"kind": "continuous", "bounds": [0, end]},
        "died": {"kind": "binary", "levels": ["no", "yes"]},
        "arm": {"kind": "binary", "levels": ["a", "b"]},
    }
    table = {
        "days": np.minimum(time, left),
        "died": np.where(time < left, "yes", "no"),
        "arm": np.where(group, "b", "a"),
    }
    how = {"x": "arm", "y": ["days", "died"], "method": "log-rank", "epsilon": 4.0, "key": jax.random.key(1)}
    answer = jaxdp.test(table, schema={"columns": columns}, **how)
    assert answer.p_value < 1e-6
    assert ("one group leaves almost at once" in " ".join(str(answer).split())) is not has_interval
    assert (answer.interval is not None and answer.interval[0] <= 0.8 <= answer.interval[1]) is has_interval
