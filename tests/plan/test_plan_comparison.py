"""Planning: the comparison of tests, departures from the plan, the command."""

import argparse
import csv
import dataclasses
import json
import math
import os
import subprocess
import sys
import time

import jax
import numpy as np
import pytest
from planned_columns import SCHEMA, TOML

from jaxdp import catalogue, plan
from jaxdp.cli import plan as cli_plan
from jaxdp.cli.main import main
from jaxdp.data.dataset import BINARY, Column
from jaxdp.data.schema import Schema
from jaxdp.plan.changes import changes


def test_every_private_method_of_the_command_line_can_be_planned():
    assert {name for name, entry in catalogue.offered().items() if entry.spec.planning} <= set(plan.METHODS)


@pytest.mark.full
def test_the_comparison_lists_what_fits_best_first(monkeypatch):
    schema = Schema.from_dict(SCHEMA)
    rows = plan.compare(
        plan.Setting.of_schema(schema, "dose", "response", ["age"]),
        epsilon=1.0,
        effect=0.25,
        power=0.8,
        methods=["test-of-tests", "partition-gcm", "margin-adaptive", "conditional-kendall", "private-gcm"],
    )
    found = [row.n for row in rows if not row.reason]
    assert found == sorted(found)
    assert {"partition-gcm", "conditional-kendall"} <= {row.method for row in rows}
    assert all(row.cost_of_privacy > 1.0 for row in rows if not row.reason)
    monkeypatch.setattr(sys.modules["jaxdp.plan.compare"], "SIMULATED_ROW", 20)  # from here on, names alone are asked
    tables = plan.compare(plan.Setting.of_schema(schema, "smoker", "town"), n=500, effect=0.3, epsilon=1.0)
    assert {"noisy-table", "projected-chi2"} <= {row.method for row in tables}
    assert not {"margin-adaptive", "conditional-kendall"} & {row.method for row in tables}
    lines = plan.Setting(scaled=True, z=())
    left_out = [row for row in plan.compare(lines, n=500, effect=0.3, epsilon=1.0) if row.reason]
    assert {row.method for row in left_out if "by name" in row.reason} == {
        "micr-laplace",
        "mice-laplace",
        "micr-geometric",
    }
    weak = plan.compare(plan.Setting(), n=40, epsilon=0.1, power=0.99, methods=["private-gcm-paper"])
    assert weak[0].reason
    assert weak[0].effect is None


def test_a_comparison_measures_one_effect_and_names_the_tests_that_measure_another():
    """Y from zero, or of two levels, is an outcome of regressions too, whose effects are log rates and log odds."""
    numbers = plan.Setting(scaled=True, z=(), y=Column(from_zero=True), bent=False)
    for setting, name, unit in (
        (numbers, "poisson-regression", "log rate ratio"),
        (plan.Setting(scaled=True, z=(), y=Column(BINARY, 2), bent=False), "logistic-regression", "log odds ratio"),
    ):
        rows = plan.compare(setting, n=1000, epsilon=1.0, effect=0.5, replicates=20)
        (row,) = (row for row in rows if row.method == name)
        assert row.reason == f"{name} measures an effect as a {unit}, not in sds: ask for it by name."
        assert not rows[0].reason
        by_name = plan.answer(name, n=1000, epsilon=4.0, effect=0.3, setting=setting, replicates=20)
        assert by_name.engine == "simulation"
        plans = plan.solve.PlannedTest.of(name, setting)
        assert plans.public_n(0.3, 0.8) == plan.solve.PlannedTest.of("partition-gcm", setting).public_n(0.3, 0.8)


def test_a_test_that_rejects_without_the_effect_is_listed_with_this_reason():
    bent = plan.Setting(scaled=True)  # it removes what is linear in Z alone
    (lost,) = plan.compare(bent, n=3000, epsilon=1.0, power=0.8, methods=["winsorised-partial-correlation"])
    assert cli_plan.LEVEL_LOST in lost.reason
    assert lost.effect is None


def test_the_command_answers_and_writes_its_files(tmp_path, capsys):
    out = tmp_path / "plan"
    arguments = ["plan", "--method", "partition-gcm", "--epsilon", "1", "--effect", "0.4", "--power", "0.8"]
    arguments += ["--replicates", "300"]
    assert main([*arguments, "--out", str(out)]) == 0
    content = json.loads((out / "plan.json").read_text())
    assert (content["method"], content["found"]) == ("partition-gcm", "n")
    assert abs(content["simulated"]["power"] - 0.8) <= 0.1
    assert content["simulated"]["level"] <= 0.12
    assert {"power.png", "report.html"} <= {path.name for path in out.iterdir()}
    assert str(content["n"]) in capsys.readouterr().out


@pytest.mark.full
def test_a_plan_says_what_it_finds_where_the_data_are_not_as_planned():
    """Halved residuals under the same guess of their scale: the kernel is twice as wide against them."""
    row = plan.Row("band-gcm", "n", 470, 1.0, 0.25, 0.8, None, "simulation")
    found = {
        c.name: c for c in changes(row, plan.Setting(scaled=True), level=0.05, replicates=200, key=jax.random.key(1))
    }
    assert set(found) == {"heavy tails", "half the residual scale", "means of three sds"}
    assert found["half the residual scale"].power < 0.75 < found["heavy tails"].interval[1]
    assert found["means of three sds"].interval[0] < found["means of three sds"].power
    table = plan.Row("noisy-table", "n", 500, 1.0, 0.25, 0.8, None, "formula")
    assert changes(table, plan.Setting.table(), level=0.05, replicates=200, key=jax.random.key(1)) == []


@pytest.mark.full
@pytest.mark.parametrize(("name", "least", "most"), [("skewed values", 0.3, 0.55), ("a small group", 0.12, 0.32)])
def test_a_plan_of_two_groups_says_what_it_finds_at_an_end_of_the_bounds_and_in_a_small_group(name, least, most):
    """756 records were planned for .8; .442 of 600 sets of exponential values were found, .193 with a fifth."""
    setting = plan.Setting(x=Column(BINARY, 2), y=Column(), z=(), scaled=True)
    row = plan.Row("mean-difference", "n", 756, 0.5, 0.3, 0.8, None, "formula")
    found = {c.name: c for c in changes(row, setting, level=0.05, replicates=400, key=jax.random.key(1))}
    assert set(found) == {"heavy tails", "half the residual scale", "skewed values", "a small group"}
    assert least < found[name].power < most


def test_a_small_group_has_means_as_far_apart():
    setting = plan.Setting(x=Column(BINARY, 2), y=Column(), z=(), scaled=True)
    for share in (0.5, 0.2, 0.8):
        data = dataclasses.replace(setting, second_share=share).design(200_000, 0.3)(jax.random.key(0))
        second = np.asarray(data.x) > 0.0
        apart = np.asarray(data.y)[second].mean() - np.asarray(data.y)[~second].mean()
        assert second.mean() == pytest.approx(share, abs=0.005)
        assert apart / setting.residual_sd == pytest.approx(2.0 * 0.3 * math.sqrt(2.0 / math.pi), abs=0.02)


def test_the_command_says_what_a_record_is(tmp_path, capsys):
    schema = tmp_path / "s.toml"
    query = [
        "--schema",
        str(schema),
        "--x",
        "dose",
        "--y",
        "grade",
        "--given",
        "age",
        "--replicates",
        "0",
        "--n",
        "800",
    ]
    query += ["--method", "partition-gcm", "--epsilon", "1", "--effect", "0.2", "--out", str(tmp_path / "plan")]
    told = {}
    for unit in ("", 'unit = "person"\n'):
        schema.write_text(unit + TOML)
        assert main(["plan", *query]) == 0
        told[unit] = " ".join(capsys.readouterr().out.split())
    (without, by_person) = told.values()
    assert "One record per person" not in without
    assert "One record per person, which counts once with all of its rows" in by_person
    assert "The plan takes one row of each, where the test averages over all" in by_person
    schema.write_text('unit = "person"\nrows = "random"\n' + TOML)
    assert main(["plan", *query[:-1], str(tmp_path / "other")]) == 0
    of_one = " ".join(capsys.readouterr().out.split())
    assert "records One record per person, one of its rows, drawn at random" in of_one
    assert "The plan takes one row of each." in of_one


@pytest.mark.full
def test_the_command_compares_the_tests_of_a_schema(tmp_path, capsys):
    schema, out = tmp_path / "s.toml", tmp_path / "plan"
    schema.write_text(TOML)
    query = ["--schema", str(schema), "--x", "dose", "--y", "grade", "--given", "age", "--replicates", "0"]
    assert main(["plan", *query, "--n", "800", "--epsilon", "1", "--effect", "0.2", "--out", str(out)]) == 0
    with (out / "comparison.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert rows[0]["method"] == json.loads((out / "plan.json").read_text())["method"]
    powers = [float(row["power"]) for row in rows if row["power"]]
    assert powers == sorted(powers, reverse=True)
    assert len(powers) >= 3
    assert "cost of privacy" in capsys.readouterr().out


def test_a_comparison_never_recommends_a_test_that_loses_its_level(monkeypatch):
    """Blocks of 30 leave the kernel fit biased: the median of 101 of them rejects a fifth of the nulls."""
    rows = [
        plan.Row(name, "n", n, 1.0, 0.3, 0.8, None, "formula")
        for name, n in (("median", 3030), ("sum", 4000), ("x", 9000))
    ]
    levels = {"median": (0.16, 0.26), "sum": (0.04, 0.06), "x": (0.2, 0.3)}

    def found(row, setting, args):
        return {"planned": 0.8, "power_interval": (0.77, 0.83), "level": 0.21, "level_interval": levels[row.method]}

    monkeypatch.setattr(cli_plan, "check", found)
    asked = argparse.Namespace(method=None, level=0.05)
    kept, checked = cli_plan.keeping_level(rows, plan.Setting(), asked)
    assert [row.method for row in kept] == ["sum", "x", "median"]
    assert checked["level_interval"] == levels["sum"]
    assert [bool(row.reason) for row in kept] == [False, False, True]
    assert "rejects 21% of such data" in kept[2].reason
    assert "loses its level" in cli_plan._table_line(kept[2], wide=6)
    none, nothing = cli_plan.keeping_level([rows[0], rows[2]], plan.Setting(), asked)
    assert nothing is None
    assert all("loses its level" in row.reason for row in none)
    by_name, _ = cli_plan.keeping_level(rows[:1], None, argparse.Namespace(method="median", level=0.05))
    assert not by_name[0].reason


@pytest.mark.parametrize("wanted", ["n", "power"])
def test_a_test_that_made_up_data_contradict_is_told_and_ranked_by_what_they_find(monkeypatch, wanted):
    records = {"hidden": 558, "plain": 700, "slow": 900}
    power = {"hidden": 0.8, "plain": 0.8, "slow": 0.8} if wanted == "n" else {"hidden": 0.9, "plain": 0.8, "slow": 0.2}
    rows = [plan.Row(name, wanted, records[name], 1.0, 0.3, power[name], 3.0, "formula") for name in records]
    found = {"hidden": 0.36, "plain": 0.81}

    def checked(row, setting, args):
        one = found[row.method]
        near = {"power": one, "power_interval": (one - 0.04, one + 0.04), "level": 0.05, "level_interval": (0.04, 0.06)}
        return {"planned": row.power, "note": row.note, "replicates": 400, **near}

    monkeypatch.setattr(cli_plan, "check", checked)
    kept, simulated = cli_plan.keeping_level(rows, plan.Setting(), argparse.Namespace(method=None, level=0.05))
    last = ["slow", "hidden"] if wanted == "n" else ["hidden", "slow"]
    assert [row.method for row in kept] == ["plain", *last]
    assert simulated["power"] == 0.81
    (hidden,) = (row for row in kept if row.method == "hidden")
    assert (hidden.power, hidden.cost_of_privacy) == (0.36, None)
    asked = argparse.Namespace(method="hidden", level=0.05)
    (by_name,), simulated = cli_plan.keeping_level(rows[:1], plan.Setting(), asked)
    assert "with power 0.36." in by_name.sentence
    assert "less often" in " ".join(cli_plan.checked_lines(simulated, 0.05))


def test_a_plan_says_where_the_test_takes_no_fewer_records():
    """Winsorising is refused with fewer: the power there is far above the wanted one."""
    groups = plan.Setting(x=Column(BINARY, 2), z=(), scaled=True)
    row = plan.answer("winsorised-mean-difference", epsilon=1.0, effect=0.3, power=0.8, setting=groups)
    assert row.power > 0.95
    assert row.note
    assert row.note in row.sentence
    cheap = plan.answer("winsorised-mean-difference", n=row.n, effect=0.3, power=0.8, setting=groups)
    assert "no smaller epsilon" in cheap.note
    plain = plan.answer("mean-difference", epsilon=1.0, effect=0.3, power=0.8, setting=groups)
    assert plain.power == pytest.approx(0.8, abs=0.005)
    assert not plain.note


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--epsilon", "1", "--power", "0.8"], "give three of"),
        (["--n", "5", "--epsilon", "1", "--effect", "0.2"], "n must be"),
        (["--method", "magic", "--epsilon", "1", "--effect", "0.2", "--power", "0.8"], "method must be one of"),
        (["--x", "a", "--epsilon", "1", "--effect", "0.2", "--power", "0.8"], "belongs to --schema"),
        (["--quick", "--replicates", "9", "--n", "50", "--epsilon", "1", "--effect", "1"], "--quick or --replicates"),
        (["--epsilon", "-1", "--effect", "0.2", "--power", "0.8"], "finite number > 0"),
        (["--epsilon-curve", "--epsilon", "1", "--n", "500", "--effect", "0.2"], "leave out --epsilon"),
        (["--epsilon-curve", "--effect", "0.2"], "needs --n and --effect"),
        (
            ["--discover", "--schema", "s", "--n", "99", "--epsilon", "1", "--epsilon-curve"],
            "--epsilon-curve is of tests",
        ),
        (["--studies", "3", "--n", "500", "--effect", "0.2"], "--studies belongs to --epsilon-curve"),
    ],
)
def test_mistakes_on_the_command_line_exit_with_two(arguments, message, tmp_path, capsys):
    assert main(["plan", *arguments, "--out", str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.nightly
def test_the_command_answers_within_ten_seconds(tmp_path):
    command = [sys.executable, "-m", "jaxdp", "plan", "--method", "partition-gcm", "--epsilon", "1"]
    started = time.monotonic()
    subprocess.run(
        [*command, "--effect", "0.25", "--power", "0.8", "--out", str(tmp_path)], check=True, env=os.environ, timeout=60
    )
    assert time.monotonic() - started < 10.0
