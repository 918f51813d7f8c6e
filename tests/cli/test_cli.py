"""The command line from a CSV file to a report: results, exit codes, modes, and what must never be printed."""

import csv
import json
import subprocess
import sys

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp import catalogue
from jaxdp._base import arguments as texts
from jaxdp._base import json_files
from jaxdp.cli import main as door
from jaxdp.cli import options
from jaxdp.cli.main import main
from jaxdp.core import Relation, cost_of
from jaxdp.data.dataset import Column, Domain
from jaxdp.data.schema import Schema
from jaxdp.independence import builders, null_curve

ROWS = 400
SCHEMA = """
[columns.dose]
kind = "continuous"
bounds = [-4, 4]

[columns.response]
kind = "continuous"
bounds = [-6, 6]

[columns."age, years"]
kind = "continuous"
bounds = [0, 100]

[columns.clinic]
kind = "categorical"
levels = ["north", "south", "west"]

[columns.smoker]
kind = "binary"
levels = ["no", "yes"]

[columns.grade]
kind = "ordinal"
levels = ["low", "middle", "high"]

[columns.case]
kind = "binary"
levels = [0, 1]
"""
# Tests of two discrete columns without Z.
GIVEN = Domain((Column(),), (Column(),), (Column(),))
TWO_GIVEN = Domain((Column(),), (Column(),), (Column(), Column()))
TWO_BY_TWO = Domain((Column("binary", 2),), (Column("binary", 2),))
LEVELS_GIVEN = Domain((Column("binary", 2),), (Column("ordinal", 3),), (Column("categorical", 3),))
EVENTS = Domain((Column("binary", 2),), (Column(), Column("binary", 2)))  # a time, and whether the event came
NUMBERS = Domain((Column(),), (Column(),))
AMOUNT = Domain((Column(),), (Column(from_zero=True),))  # an amount from 0 on
CANARY_TEXTS = ("xyzzyplugh", "31337.0625", "-27182.8125", "\u2603snow")


def table(rows=ROWS, effect=0.9):
    """Made-up records: response follows age and, by `effect`, dose; grade follows smoker within clinics."""
    random = np.random.default_rng(5)
    age = random.uniform(0, 100, rows)
    dose = np.sin(age / 20) + random.normal(size=rows)
    response = np.cos(age / 30) + effect * dose + random.normal(size=rows)
    clinic = random.integers(0, 3, rows)
    smoker = random.integers(0, 2, rows)
    grade = np.clip(smoker + random.integers(0, 2, rows), 0, 2)
    case = np.where(random.random(rows) < 0.7, smoker, random.integers(0, 2, rows))
    return {
        "dose": dose.round(4),
        "response": response.round(4),
        "age, years": age.round(2),
        "clinic": np.array(["north", "south", "west"])[clinic],
        "smoker": np.array(["no", "yes"])[smoker],
        "grade": np.array(["low", "middle", "high"])[grade],
        "case": case,
    }


def write_csv(path, columns, canaries=False):
    rows = [list(map(str, row)) for row in zip(*columns.values(), strict=True)]
    if canaries:
        rows[0][:4] = ["31337.0625", "-27182.8125", "xyzzyplugh", "\u2603snow"]
        rows[1][:2] = ["xyzzyplugh", ""]
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([list(columns), *rows])
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    write_csv(folder / "d.csv", table(), canaries=True)
    (folder / "s.toml").write_text(SCHEMA)
    return folder


def arguments(files, out, *more, x="dose", y="response", given='"age, years"'):
    parts = ["test", str(files / "d.csv"), "--schema", str(files / "s.toml"), "--x", x, "--y", y]
    return [*parts, *(["--given", given] if given else []), "--out", str(out), *more]


def result_of(out):
    return json.loads((out / "result.json").read_text())


def test_a_simulation_writes_result_picture_and_report(files, tmp_path, capsys):
    assert main(arguments(files, tmp_path, "--epsilon", "2", "--seed", "7")) == 0
    printed, result = capsys.readouterr(), result_of(tmp_path)
    assert set(result) >= {"method", "p_value", "statistic", "epsilon", "delta", "relation", "mode", "n"}
    assert result["method"] == "band-gcm"
    assert result["level_rule"]["verdict"] == "run"
    assert "values at most" in " ".join(printed.out.split())
    assert result["epsilon"] == pytest.approx(2.0)
    assert (result["delta"], result["relation"], result["mode"]) == (0.0, "replace_one", "simulation")
    assert (result["n"], result["seed"]) == (ROWS, 7)
    assert result["p_value"] < 0.01
    assert result["dependence_found"] is True
    assert "NOT PRIVATE: simulation" in printed.out
    assert printed.err == ""
    assert len(printed.out.splitlines()) <= 24
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    assert "NOT PRIVATE" in (tmp_path / "report.html").read_text()


def test_the_command_says_what_the_library_says(files, tmp_path):
    main(arguments(files, tmp_path, "--epsilon", "2", "--seed", "7"))
    data = Schema.load(files / "s.toml").read(files / "d.csv", x="dose", y="response", given=["age, years"])
    with jax.enable_x64(True):
        test = catalogue.default(GIVEN).build(2.0, data.domain)
        statistic, p_value = jaxdp.run(test, jax.random.key(7), data)
    result = result_of(tmp_path)
    assert result["p_value"] == pytest.approx(float(p_value), rel=1e-9)
    assert result["statistic"] == pytest.approx(float(statistic), rel=1e-12)


def test_a_release_charges_the_ledger_and_stops_at_its_end(files, tmp_path, capsys):
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=1.5)
    command = arguments(files, tmp_path / "first", "--epsilon", "1", "--ledger", str(tmp_path / "l.db"))
    assert main(command) == 0
    result = result_of(tmp_path / "first")
    assert result["mode"] == "release"
    assert "seed" not in result
    assert "key" not in json.dumps(result).lower()
    assert "NOT PRIVATE" not in capsys.readouterr().out + (tmp_path / "first" / "report.html").read_text()
    assert ledger.spent.epsilon == pytest.approx(1.0)

    command[command.index(str(tmp_path / "first"))] = str(tmp_path / "second")
    command[1] = str(tmp_path / "no-such.csv")  # exit code 3, not 2: the file is never opened
    assert main(command) == 3
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert not (tmp_path / "second" / "result.json").exists()
    assert ledger.spent.epsilon == pytest.approx(1.0)


@pytest.mark.parametrize("epsilon", [0.05, 0.1, 0.2, 0.3, 0.7, 1.0, 1.7, 2.3])
def test_a_ledger_of_epsilon_pays_for_a_test_of_epsilon(files, tmp_path, epsilon):
    schema = Schema.load(files / "s.toml")
    asked = {
        "partition-gcm": {"x": "dose", "y": "response", "given": ["age, years"]},
        "conditional-kendall": {"x": "smoker", "y": "grade", "given": ["clinic"]},
    }
    with jax.enable_x64(True):
        for name, columns in asked.items():
            data = schema.read(files / "d.csv", **columns)
            test = catalogue.find(name).within(epsilon, data)
            cost = cost_of(test, data)
            assert epsilon * (1 - 1e-12) <= float(cost.epsilon) <= epsilon
            ledger = jaxdp.Ledger.create(tmp_path / f"{name}.db", epsilon=epsilon)
            ledger.charge("test", cost, jaxdp.fresh_key())


@pytest.mark.full
def test_two_releases_differ_and_two_simulations_agree(files, tmp_path):
    values = {}
    for name, more in {"a": (), "b": (), "c": ("--seed", "3"), "d": ("--seed", "3")}.items():
        assert main(arguments(files, tmp_path / name, "--epsilon", "1", *more, given=None)) == 0
        values[name] = result_of(tmp_path / name)["statistic"]
    assert values["a"] != values["b"]
    assert values["c"] == values["d"]


def test_values_of_the_data_never_appear(files, tmp_path, capsys):
    for name, more in {"s": ("--seed", "1"), "r": ()}.items():
        given = '"age, years",clinic'
        assert main(arguments(files, tmp_path / name, "--epsilon", "1", *more, given=given)) == 0
    main(arguments(files, tmp_path / "s", "--epsilon", "1", "--seed", "1", x="doze"))
    printed = capsys.readouterr()
    texts = [printed.out, printed.err]
    texts += [path.read_text() for path in tmp_path.rglob("*") if path.suffix in (".json", ".html", ".csv")]
    assert len(texts) >= 6
    for canary in CANARY_TEXTS:
        assert not any(canary in text for text in texts)
        assert canary.encode() not in b"".join(path.read_bytes() for path in tmp_path.rglob("*.png"))


EVERYDAY = ("partition-gcm", "band-gcm", "unit-circle")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in EVERYDAY else pytest.mark.full) for name in catalogue.offered()]
)
def test_every_method_runs(name, files, tmp_path, capsys):
    accepts = catalogue.find(name).spec.accepts
    columns = {}
    if not accepts(GIVEN):
        columns = {"x": "smoker", "y": "case", "given": None} if accepts(TWO_BY_TWO) else {"given": None}
    if accepts(TWO_GIVEN) and not accepts(GIVEN):
        columns = {"x": "smoker", "y": "grade", "given": 'dose,"age, years"'}
    if getattr(catalogue.find(name).cls, "max_continuous", 1) == 0 or (accepts(LEVELS_GIVEN) and not accepts(GIVEN)):
        columns = {"x": "smoker", "y": "grade", "given": "clinic"}
    if accepts(EVENTS) and not accepts(GIVEN) and not accepts(TWO_BY_TWO):
        columns = {"x": "smoker", "y": "dose,case", "given": None}
    if accepts(AMOUNT) and not accepts(NUMBERS):
        columns = {"x": "dose", "y": '"age, years"', "given": None}
    assert main(arguments(files, tmp_path, "--epsilon", "20", "--seed", "2", "--method", name, **columns)) == 0
    result, printed = result_of(tmp_path), capsys.readouterr().out
    assert 0.0 <= result["p_value"] <= 1.0
    assert result["method"] == name
    truth = catalogue.find(name).spec.true_epsilon  # of a published form: what it really costs, in words
    if not truth or truth.startswith("as "):
        assert result["epsilon"] == ("inf" if name == "gcm" else pytest.approx(20.0))
    else:
        assert 0.0 < result["epsilon"] != pytest.approx(20.0)
    assert (tmp_path / "picture.png").stat().st_size > 5_000
    # The effect is strong: every method that is not called weak finds it at epsilon 20.
    assert result["dependence_found"] or "weak" in catalogue.find(name).spec.summary
    assert ("epsilon = inf" in printed) is (name == "gcm")
    # What a method takes as public knowledge is said, never implied.
    assert (result["public_columns"] == ["case"]) is (result["relation"] == "replace_attribute")
    assert ("case: not protected" in printed) is (result["relation"] == "replace_attribute")


def test_discrete_columns_go_to_kendall(files, tmp_path):
    assert main(arguments(files, tmp_path, "--epsilon", "3", "--seed", "2", x="smoker", y="grade", given="clinic")) == 0
    result = result_of(tmp_path)
    assert result["method"] == "conditional-kendall"
    assert result["p_value"] < 0.01


@pytest.mark.full
def test_indicators_and_several_columns(files, tmp_path):
    more = ("--epsilon", "5", "--seed", "2", "--set", "residual_scale=0.3,0.5")
    assert main(arguments(files, tmp_path, *more, x="clinic", y="response,dose", given=None)) == 0
    assert np.shape(result_of(tmp_path)["statistic"]) == (3, 2)


@pytest.mark.parametrize(("text", "given"), [("true", True), ("True", True), ("False", False), ("false", False)])
def test_a_setting_that_is_true_or_false_may_be_written_as_python_does(text, given):
    assert texts.setting(f"by_person={text}") == ("by_person", given)


@pytest.mark.parametrize("given", ["no", 1, "0.5"])
def test_a_setting_that_is_neither_true_nor_false_is_refused(files, tmp_path, capsys, given):
    """Any text counted as true."""
    command = arguments(files, tmp_path, "--method", "partition-gcm", "--epsilon", "1", "--set", f"standardize={given}")
    assert main(command) == 2
    assert "standardize must be true or false" in capsys.readouterr().err


def test_json_schema_gives_the_same_answer(files, tmp_path):
    import tomllib

    (tmp_path / "s.json").write_text(json.dumps(tomllib.loads(SCHEMA)))
    command = arguments(files, tmp_path / "toml", "--epsilon", "1", "--seed", "4", given=None)
    assert main(command) == 0
    command = [part.replace("toml", "json") for part in command]
    command[command.index(str(files / "s.json"))] = str(tmp_path / "s.json")
    assert main(command) == 0
    assert result_of(tmp_path / "json")["statistic"] == result_of(tmp_path / "toml")["statistic"]


def test_huge_kernels_are_refused_before_they_start(files, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(builders, "KERNEL_COPIES", 10**9)
    assert main(arguments(files, tmp_path, "--epsilon", "1", "--seed", "1", "--method", "gcm")) == 2
    assert "GB" in capsys.readouterr().err


@pytest.mark.full
def test_demo_needs_no_arguments_and_no_network(tmp_path, capsys, monkeypatch):
    import socket

    def refuse(*_, **__):
        raise AssertionError("the demo must not use the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.chdir(tmp_path)
    assert main(["demo"]) == 0
    folder = tmp_path / "out" / "demo"
    page, printed = (folder / "report.html").read_text(), capsys.readouterr().out
    continuous, categorical = (result_of(folder / name) for name in ("continuous", "categorical"))
    assert continuous["mode"] == categorical["mode"] == "release"
    assert continuous["p_value"] < 0.01  # dose acts on response
    assert continuous["title"] in page
    assert categorical["title"] in page
    assert str(folder / "report.html").removeprefix(str(tmp_path) + "/") in printed
    assert jaxdp.Ledger.open(folder / "demo-ledger.db").remaining.epsilon == pytest.approx(0.0, abs=1e-9)


def test_every_command_has_help_with_an_example(capsys):
    parser = door.build_parser()
    commands = next(action for action in parser._actions if action.dest == "command").choices
    assert {"test", "demo", "report"} <= set(commands)
    for name in commands:
        assert main([name, "--help"]) == 0
        _, found, example = " ".join(capsys.readouterr().out.split()).rpartition("example")
        assert found
        assert f"jaxdp {name} " in example


def test_help_is_instant_and_the_module_runs():
    code = "import sys, jaxdp.cli.main as m; m.build_parser(); sys.exit('jax' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=1500).returncode == 0


@pytest.mark.full
def test_as_a_process(files, tmp_path):
    command = [sys.executable, "-m", "jaxdp"]
    good = arguments(files, tmp_path, "--epsilon", "1", given=None)
    done = subprocess.run([*command, *good], capture_output=True, text=True, timeout=1500)
    assert done.returncode == 0, done.stderr
    assert "p-value" in done.stdout
    bad = subprocess.run([*command, *good, "--epsilon", "0"], capture_output=True, text=True, timeout=1500)
    assert (bad.returncode, bad.stdout, bad.stderr.count("\n")) == (2, "", 1)


def test_column_lists_and_numbers():
    assert texts.names('a, "b, c" ,d') == ["a", "b, c", "d"]
    assert texts.counts("100,1000") == [100, 1000]
    assert list(options.progress([1, 2], "x")) == [1, 2]


def test_bars_are_for_terminals_only(capsys, monkeypatch):
    for terminal in (False, True):
        monkeypatch.setattr(sys.stderr, "isatty", lambda shown=terminal: shown, raising=False)
        with options.stages(2) as on_stage:
            on_stage("first")
            on_stage("second")
        assert list(options.progress(range(3), "label")) == [0, 1, 2]
        printed = capsys.readouterr()
        assert printed.out == ""
        assert ("second" in printed.err) is terminal


def test_json_has_no_numbers_that_other_readers_refuse(tmp_path):
    content = {
        "a": np.float32(0.5),
        "b": np.inf,
        "c": [np.nan, -np.inf],
        "d": np.arange(2),
        "e": Relation.REPLACE_ONE.value,
    }
    json_files.write(tmp_path / "r.json", content)
    text = (tmp_path / "r.json").read_text()
    assert "NaN" not in text
    assert "Infinity" not in text
    assert json.loads(text) == {"a": 0.5, "b": "inf", "c": [None, "-inf"], "d": [0, 1], "e": "replace_one"}


@pytest.mark.full
def test_the_curve_in_the_picture_is_the_p_value(files):
    data = Schema.load(files / "s.toml").read(files / "d.csv", x="dose", y="response", given=["age, years"])
    with jax.enable_x64(True):
        for test in (
            jaxdp.PartitionGCM(epsilon=1.0, standardize=True),
            jaxdp.ConditionalKendall(epsilon=1.0, accept_coarse_cells=True),
            jaxdp.GCM(),
        ):
            result = jaxdp.run(test, jax.random.key(1), data)
            curve = null_curve.null_curve(test, result)
            assert curve is not None
            tails = curve.tail(np.array([0.0, abs(curve.statistic), 1e9]))
            np.testing.assert_allclose(tails, [1.0, float(result.p_value), 0.0], atol=1e-9)
        local = jaxdp.LocalPermutation(epsilon=1.0)
        assert null_curve.null_curve(local, jaxdp.run(local, jax.random.key(1), data)) is None


def test_stage_costs_add_up(files):
    data = Schema.load(files / "s.toml").read(files / "d.csv", x="dose", y="response", given=["age, years"])
    result = jaxdp.run(jaxdp.PartitionGCM(epsilon=1.0, standardize=True), jax.random.key(1), data)
    assert null_curve.stage_epsilons(result.release) == pytest.approx([0.2, 0.8])


@pytest.mark.parametrize("command", ["test", "describe", "discover"])
def test_a_ledger_of_rho_alone_pays_and_the_answer_is_there(files, tmp_path, command):
    """The page once wanted an epsilon of it, after the charge."""
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", rho=2.0)
    asked = arguments(files, tmp_path / "out", "--epsilon", "1", "--ledger", str(tmp_path / "l.db"))
    if command != "test":
        names = "smoker,grade,clinic" if command == "discover" else "dose"
        asked = [command, *asked[1:4], "--columns", names, *asked[asked.index("--out") :]]
    assert main(asked) == 0
    assert ledger.spent.rho > 0.0
    assert result_of(tmp_path / "out")["mode"] == "release"
    assert "rho" in (tmp_path / "out/report.html").read_text()


@pytest.mark.parametrize(("place", "where"), [("put", "printed above"), ("put_picture", "result.json")])
@pytest.mark.parametrize("kind", [OSError, KeyboardInterrupt])
def test_an_answer_whose_files_cannot_be_written_is_not_lost(files, tmp_path, capsys, monkeypatch, place, where, kind):
    """On a full disk it was charged, and neither a file nor the screen had it."""

    def full(*arguments, **options):
        raise kind(28, "No space left on device")

    jaxdp.Ledger.create(tmp_path / "l.db", epsilon=1.0)
    monkeypatch.setattr(f"jaxdp.report.written.{place}", full)
    command = arguments(files, tmp_path / "out", "--epsilon", "1", "--ledger", str(tmp_path / "l.db"))
    assert main(command) != 0
    printed = capsys.readouterr()
    assert "The charge stands; the answer is" in printed.err
    assert where in printed.err
    assert ("No space left on device" in printed.err) is (kind is OSError)
    assert ("p-value" in printed.out) is (place == "put")
    assert (tmp_path / "out/result.json").exists() is (place == "put_picture")
