"""Dates with times as Z, where there are records enough: only records of one hour of one day are compared."""

import dataclasses
import datetime
import itertools
import json

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp import catalogue, plan
from jaxdp.cli.main import main
from jaxdp.data import conditioning
from jaxdp.data.column_rules import column_rule
from jaxdp.data.columns import TIMED_RECORDS_A_DAY
from jaxdp.data.dataset import Column, Data, Domain
from jaxdp.data.schema import Schema
from jaxdp.plan.methods import default_method, plan_of
from jaxdp.simulate import grids

REAL = {"kind": "continuous", "bounds": [-9, 9]}
STAMPS = {"kind": "continuous", "date": True, "bounds": ["2023-01-01T00:00", "2023-03-01T00:00"]}
DAYS = 60  # within the bounds, of which the last holds midnight alone
ENOUGH = TIMED_RECORDS_A_DAY * DAYS
KNOWN = {"columns": {"x": REAL, "y": REAL, "v": REAL, "t": STAMPS, "s": {"kind": "binary", "levels": ["a", "b"]}}}
ASK = {"x": "x", "y": "y", "given": "t", "epsilon": 2.0, "schema": KNOWN}


def stamps(days):
    return np.datetime64("2023-01-01T00:00:00") + np.round(np.asarray(days) * 86_400.0).astype("timedelta64[s]")


def records(rng, n=ENOUGH, of_days=3.0, effect=0.0):
    """X and Y follow the day, and nothing else joins them but `effect`."""
    days, shared = rng.uniform(0.0, 59.0, n), of_days * rng.normal(size=60)
    own, other = rng.normal(size=(2, n))
    mean = shared[days.astype(int)] + np.sin(2.0 * np.pi * days)
    levels = rng.choice(["a", "b"], n)
    table = {"x": mean + own, "y": mean + effect * own + other, "v": rng.normal(size=n), "s": levels}
    return table | {"t": stamps(days)}


HOURLY = "Conditioned on t by day and hour: only records of the same hour of one day are compared."
SURELY = 0.001  # a true null has a smaller p-value in one of 1000 tables
SEEDS = itertools.count(1)


def asked(table, **how):
    return jaxdp.test(table, **ASK | how, key=jax.random.key(next(SEEDS)))


def flags(answer):
    return answer.content["level_rule"]["flags"]


def test_a_date_with_times_stands_for_its_day_and_its_hour():
    rule = column_rule("t", STAMPS | {"missing": "2023-01-15T08:30"})
    hourly = conditioning.hour_by_hour(rule)
    cells = ["2023-01-01 00:00", "2023-01-02 12:59:59", "2023-01-02T13:00", "2023-02-28 23:59:59.999", "", "2024-01-01"]
    found = conditioning.values(hourly, cells)
    assert (found[:, 0] * 29.5 + 29.5).tolist() == pytest.approx([0, 1, 1, 58, 14, 59])
    assert found[:, 1].tolist() == [0, 12, 13, 23, 8, 0]
    day, hour = conditioning.columns(hourly)
    assert (day.name, day.days, day.labels, hour.name, hour.levels) == ("t (day)", 60, True, "t (hour of the day)", 24)
    for row, cell in enumerate(cells):
        assert np.array_equal(conditioning.values(hourly, [cell])[0], found[row])
    every = [datetime.datetime(2023, 1, 1) + datetime.timedelta(minutes=15 * k) for k in range(96 * 59)]
    known = np.array([[(one - every[0]).days, one.hour] for one in every])
    own = conditioning.values(hourly, every)
    assert np.array_equal(np.round(own[:, 0] * 29.5 + 29.5), known[:, 0])
    assert np.array_equal(own[:, 1], known[:, 1])
    quarters = conditioning.values(conditioning.hour_by_hour(rule, 4), every)
    assert np.array_equal(quarters[:, 1], np.arange(len(every)) % 96)
    assert conditioning.columns(conditioning.hour_by_hour(rule, 4))[1].name == "t (15 minutes of the day)"


def test_what_was_read_becomes_what_would_have_been_read():
    rng = np.random.default_rng(3)
    table = records(rng, 500)
    schema = Schema.from_dict(KNOWN)
    given = ("s", "t", "v")
    plain = schema.read(table, x="x", y="y", given=given)
    rules = [schema.rule(name) for name in given]
    assert plain.z.shape[1] == 5
    draws = np.stack([plain.z, plain.z[::-1]], axis=1)
    for parts in (1, 3):
        known = {name: conditioning.hour_by_hour(schema.rule(name), parts) for name in given}
        hourly = dataclasses.replace(schema, rules={**schema.rules, **known}).read(table, x="x", y="y", given=given)
        assert np.array_equal(conditioning.values_hour_by_hour(rules, plain.z, parts), hourly.z)
        assert np.array_equal(conditioning.values_hour_by_hour(rules, draws, parts)[:, 0], hourly.z)


def test_from_how_many_records_on_is_public():
    rules = Schema.from_dict(KNOWN).rules
    assert conditioning.hourly_from([rules["t"]]) == ENOUGH
    assert conditioning.hourly_from(iter([rules["s"], rules["t"]])) == 2 * ENOUGH
    parts = [conditioning.parts_of([rules["t"]], n) for n in (1, ENOUGH, 1.5 * ENOUGH - 1, 1.5 * ENOUGH, 100 * ENOUGH)]
    assert parts == [1, 1, 1, 2, 60]
    assert conditioning.hourly_from([rules["t"], rules["v"]]) is None  # another continuous column
    assert conditioning.hourly_from([rules["s"]]) is None
    assert conditioning.hourly_from([rules["t"], dataclasses.replace(rules["t"], name="u")]) is None
    assert conditioning.hourly_from([conditioning.hour_by_hour(rules["t"])]) is None
    for entry in ({"cycles": []}, {"cycles": ["week"]}, {"bounds": ["2023-01-01", "2023-02-28"]}):
        assert conditioning.hourly_from([column_rule("t", STAMPS | entry)]) is None
    assert conditioning.hourly_from([column_rule("t", STAMPS | {"cycles": ["day", "month"]})]) == ENOUGH


def test_effects_of_days_are_no_finding_where_records_of_one_hour_are_compared():
    """20 tables; binomial(20, 0.05): beyond 6 at 1e-4. Given the date, its time and its weekday all are rejected."""
    rng = np.random.default_rng(5)
    answers = [asked(records(rng)) for _ in range(20)]
    assert sum(answer.dependence_found for answer in answers) <= 6
    assert {answer.content["method"] for answer in answers} == {"band-gcm"}
    assert answers[0].content["conditioned_on"] == HOURLY
    assert not any(flags(answer) for answer in answers)
    found = asked(records(rng, effect=1.0))
    assert found.dependence_found
    assert flags(found) == []
    told = found.content["level_rule"]["sentence"]
    assert "Only records of the same hour of one day" in told
    assert "comes and goes within it" in told
    assert "count as no agreement" in found.content["effect_notes"]["compared pairs"]


def test_fewer_records_keep_the_flag_and_are_told_the_way_out():
    rng = np.random.default_rng(6)
    for n, how in ((ENOUGH - 1, {}), (ENOUGH, {"method": "contrast-gcm"})):
        table = records(rng, n, of_days=0.0, effect=2.0)  # true findings carry it too
        answer = asked(table, **how)
        assert answer.content["method"] == "contrast-gcm"
        assert answer.dependence_found
        assert "single days" in flags(answer)
        assert "X and Y follow single days" in answer.content["answer"]
        assert f"by default from {ENOUGH} records on" in answer.content["level_rule"]["sentence"]
    named = asked(records(rng, 300), method="band-gcm")
    assert named.content["conditioned_on"] == HOURLY
    assert flags(named) == []


def test_other_columns_of_z_and_other_wishes():
    rng = np.random.default_rng(17)
    table = records(rng, 2 * ENOUGH)
    strata = asked(table, given=["t", "s"])
    assert strata.content["method"] == "band-gcm"
    assert strata.p_value > SURELY
    assert asked(records(rng, 2 * ENOUGH - 1), given=["t", "s"]).content["method"] == "contrast-gcm"
    assert asked(table, sees="any").content["method"] == "feature-gcm"
    continuous = asked(records(rng, of_days=0.0, effect=2.0), given=["t", "v"])
    assert continuous.content["method"] == "contrast-gcm"
    assert "single days" in flags(continuous)
    assert "band-gcm" not in continuous.content["level_rule"]["sentence"]  # no way out that there is not


def test_persons_and_pairs_are_asked_alike():
    rng = np.random.default_rng(8)
    table = records(rng, 2 * ENOUGH)
    table["person"] = [f"p{k // 2}" for k in range(2 * ENOUGH)]
    with jax.debug_key_reuse(False):  # the draws of a person share their priorities
        of_persons = asked(table, schema=KNOWN | {"unit": "person"})
    assert of_persons.content["n"] == ENOUGH
    assert of_persons.content["method"] == "band-gcm"
    assert of_persons.p_value > SURELY
    how = {"columns": ["x", "y", "v"], "given": "t", "epsilon": 3.0, "schema": KNOWN}
    pairs = jaxdp.test_pairs(table, **how, key=jax.random.key(next(SEEDS)))
    assert pairs.content["method"] == "band-gcm"
    assert pairs.content["conditioned_on"] == HOURLY.replace("hour", "20 minutes")
    assert not pairs.content["level_rule"]["flags"]
    assert min(pair["adjusted"] for pair in pairs.pairs) > SURELY


def test_simulations_shaped_like_the_schema_have_what_the_test_takes():
    roles = {"x": ["x"], "y": ["y"], "given": ["t"]}
    design = grids.shaped(Schema.from_dict(KNOWN), roles, {})
    for name, levels in (("band-gcm", [0, 72]), ("contrast-gcm", [0, 0, 7])):
        drawn, _, _ = design.at(2 * ENOUGH, 0.0, catalogue.find(name))
        data = drawn(jax.random.key(next(SEEDS)))
        assert [column.levels for column in data.domain.z] == levels


def test_check_says_from_how_many_records_on(tmp_path, capsys):
    table = records(np.random.default_rng(10), 30)
    rows = zip(table["x"], table["y"], map(str, table["t"]), strict=True)
    (tmp_path / "d.csv").write_text("x,y,t\n" + "".join(f"{x:.3f},{y:.3f},{t}\n" for x, y, t in rows))
    (tmp_path / "s.json").write_text(json.dumps({"columns": {name: KNOWN["columns"][name] for name in "xyt"}}))
    assert main(["check", str(tmp_path / "d.csv"), "--schema", str(tmp_path / "s.json")]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"t by its date, its time of day and its weekday; alone and from {ENOUGH} records on, by day" in said


def test_what_is_charged_is_what_was_asked(tmp_path):
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=3.0)
    answer = jaxdp.test(records(np.random.default_rng(9)), **ASK, ledger=ledger)
    assert answer.content["method"] == "band-gcm"
    (row,) = ledger.rows()
    assert float(row.epsilon) == 2.0


def test_k_is_that_of_the_records_of_a_part_of_an_hour():
    columns = (Column(), Column()), Column(days=60, labels=True), Column("categorical", 24)

    def k(n, **fields):
        (x, y), *z = columns
        data = Data(np.zeros(n), np.zeros(n), np.zeros((n, 2)), Domain((x,), (y,), tuple(z)))
        return jaxdp.BandGCM(epsilon=1.0, variance="released", **fields).specialize(data).num_neighbors

    cells = 24 * 60
    assert k(ENOUGH) == k(8 * cells - 1) == 1
    assert k(8 * cells) == 2
    assert k(36 * cells) == 8
    assert k(ENOUGH, num_neighbors=4) == 4


def test_the_planner_takes_the_same_columns():
    schema = Schema.from_dict(KNOWN)
    setting = plan.Setting.of_schema(schema, "x", "y", ["t"])
    assert default_method(setting, ENOUGH) == "band-gcm"
    assert default_method(setting, ENOUGH - 1) == default_method(setting) == "contrast-gcm"
    for n, parts in ((10, 1), (2 * ENOUGH, 3)):
        assert [column.levels for column in plan_of("band-gcm").fitted(setting, n).z] == [0, 24 * parts]
        test = plan_of("band-gcm").make(setting, 1.0, 0.05, n)
        assert test.variance == "released"
    assert plan_of("contrast-gcm").fitted(setting) == setting
    assert plan_of("band-gcm").applies(setting)
    assert plan.power("band-gcm", n=ENOUGH, setting=setting, epsilon=1.0, effect=1.0, replicates=100) > 0.7
    assert plan.Setting.of_schema(schema, "x", "y", ["v"]).hourly == ()
