"""All pairs of a table by one query: its tests, its one charge, the adjustment, what is refused before spending."""

import csv
import itertools
import json
import re
import shlex
import sys
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from scipy.stats import false_discovery_control

import jaxdp
from jaxdp import catalogue, core
from jaxdp._base.display import duration
from jaxdp._base.rounding import as_fraction
from jaxdp.accounting.renyi import zcdp_rho
from jaxdp.ask import pairs as pairs_query
from jaxdp.ask import pairs_plan
from jaxdp.ask.calls import ADJUSTMENTS
from jaxdp.ask.pair_answers import COLUMNS
from jaxdp.ask.pairs import PairsQuery
from jaxdp.ask.reading import Table
from jaxdp.cli.main import build_parser, main
from jaxdp.data.dataset import Domain
from jaxdp.data.known import schema_of
from jaxdp.independence import pair_by_pair
from jaxdp.plan.setting import Setting
from jaxdp.spec import P_VALUE, Columns

sys.path.insert(0, str(Path(jaxdp.__file__).parent.parent / "examples"))

SCHEMA = {
    "columns": {
        **{name: {"kind": "continuous", "bounds": [-4, 4]} for name in ("a", "b", "c", "z", "w")},
        "two": {"kind": "binary", "levels": ["no", "yes"]},
        "other": {"kind": "binary", "levels": ["no", "yes"]},
        "grade": {"kind": "ordinal", "levels": [1, 2, 3]},
        "clinic": {"kind": "categorical", "levels": ["north", "south", "west"]},
    }
}
LINE = ("a", "b", "c")


def table(n=300, seed=1):
    """b follows a, grade follows two; all else is independent given z."""
    random = np.random.default_rng(seed)
    z, w = random.normal(size=(2, n)) / 2
    a, b, c = 0.3 * z + random.normal(size=(3, n))
    two, other = random.integers(0, 2, (2, n))
    words = np.array(["no", "yes"])
    return {
        "a": a,
        "b": b + a,
        "c": c,
        "z": z,
        "w": w,
        "two": words[two],
        "other": words[other],
        "grade": 1 + np.clip(two + random.integers(0, 2, n), 0, 2),
        "clinic": np.array(["north", "south", "west"])[random.integers(0, 3, n)],
    }


def ask(key=3, **how):
    made = {"schema": SCHEMA, "epsilon": 6.0, "key": None if key is None else jax.random.key(key), **how}
    return jaxdp.test_pairs(made.pop("table", table()), **made)


def test_one_pair_is_asked_about_as_one():
    assert ask(columns=["two", "other"]).content["title"] == "Are two and other dependent?"


def by_pair(answers, name):
    return {(pair["x"], pair["y"]): pair[name] for pair in answers.pairs}


@pytest.mark.full
def test_mixed_columns_get_their_own_tests_and_one_exact_charge(tmp_path):
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=0.7)
    answers = ask(None, columns=["two", "other", "clinic"], given="grade", epsilon=0.7, ledger=ledger)
    (row,) = ledger.rows()
    assert row.method == "all-pairs[conditional-kendall, stratified-table]"
    assert row.columns.startswith("all pairs of two, other, clinic")
    assert float(ledger.spent.epsilon) == 0.7
    assert as_fraction(float(answers.cost.epsilon)) <= as_fraction(0.7)
    assert answers.mode == "release"
    assert by_pair(answers, "method")[("two", "other")] == "conditional-kendall"
    assert by_pair(answers, "method")[("two", "clinic")] == "stratified-table"


@pytest.mark.full
@pytest.mark.parametrize("adjust", ADJUSTMENTS)
def test_p_values_are_adjusted_for_the_number_of_pairs(adjust):
    answers = ask(columns=[*LINE, "w"], given="z", adjust=adjust)
    values = np.array([pair["p_value"] for pair in answers.pairs])
    found = np.array([pair["adjusted"] for pair in answers.pairs])
    if adjust == "bh":
        wanted = false_discovery_control(values)
    else:
        order = np.argsort(values)
        wanted = np.empty(len(values))
        wanted[order] = np.minimum(1.0, np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1)))
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert np.all(np.diff(found) >= 0)
    assert answers.found[0] == ("a", "b")
    assert [pair["dependence_found"] for pair in answers.pairs] == (found <= 0.05).tolist()


def test_the_command_writes_the_same_table(tmp_path, capsys):
    with (tmp_path / "d.csv").open("w", newline="") as file:
        columns = table()
        csv.writer(file).writerows([list(columns), *zip(*columns.values(), strict=True)])
    (tmp_path / "s.json").write_text(json.dumps(SCHEMA))
    command = ["test", str(tmp_path / "d.csv"), "--schema", str(tmp_path / "s.json"), "--all-pairs", "--given", "z"]
    command += ["--columns", "a,b,c", "--adjust", "bh", "--epsilon", "6", "--out", str(tmp_path / "out")]
    assert main([*command, "--seed", "3"]) == 0
    answers = ask(columns=LINE, given="z", adjust="bh")
    written = json.loads((tmp_path / "out" / "result.json").read_text())
    told = json.loads(json.dumps(answers.to_dict() | answers.missed(str(tmp_path / "s.json"))))
    assert {name: written[name] for name in told} == told
    rows = list(csv.DictReader((tmp_path / "out" / "pairs.csv").open()))
    assert tuple(rows[0]) == COLUMNS
    assert [(row["x"], row["y"]) for row in rows] == list(by_pair(answers, "p_value"))
    assert [float(row["adjusted"]) for row in rows] == [pair["adjusted"] for pair in answers.pairs]
    printed = capsys.readouterr().out
    assert "a ~ b" in printed
    assert "epsilon = 6, delta = 0 for all pairs together" in printed
    page = (tmp_path / "out" / "report.html").read_text()
    assert "pairs.csv" in page
    assert page.count(answers.content["title"]) == 2  # in the head and as the only heading
    assert "<th>effect</th>" in page
    assert "<th>smallest p</th>" not in page  # the table fits the page
    assert (tmp_path / "out" / "pairs.png").read_bytes() == answers.plot().png
    frame = answers.to_dataframe()
    assert tuple(frame.columns) == COLUMNS
    assert frame["adjusted"].tolist() == [pair["adjusted"] for pair in answers.pairs]
    assert "Benjamini-Hochberg" in page


def test_a_test_that_knows_how_makes_one_release_of_all_pairs(tmp_path):
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=0.7)
    answers = ask(None, columns=LINE, given="z", epsilon=0.7, ledger=ledger)
    assert [row.method for row in ledger.rows()] == ["all-pairs"]
    assert float(ledger.spent.epsilon) == 0.7
    assert answers.content["epsilon"] == 0.7
    assert all(np.isfinite(pair["statistic"]) for pair in answers.pairs)
    assert answers.content["sees"] == catalogue.find("band-gcm").spec.alternatives


@pytest.mark.full
def test_an_answer_about_pairs_says_what_its_level_rests_on():
    flagged = ask(table=table(n=300), columns=("a", "b"), given=("z", "w"))
    assert flagged.pairs[0]["dependence_found"]
    assert flagged.content["level_rule"]["flags"] == ["curvature"]
    assert flagged.content["answer"].endswith(", unless X and Y bend sharply with Z.")
    assert ask(columns=("a", "b")).content["level_rule"] is None


def test_laws_belong_to_columns_and_own_tests_are_asked():
    law = jaxdp.simulate.SineLaw(noise_sd=1.0, complexity=2.0)
    few = {"columns": LINE, "given": "z", "epsilon": 30.0}
    crt = ask(method="private-crt-normal", law={"a": law, "b": law}, **few)
    assert len(crt.pairs) == 3
    with pytest.raises(ValueError, match="needs law"):
        ask(method="private-crt-normal", law={"a": law}, **few)
    own = ask(method="cell_signs:CellSigns", **few)
    assert by_pair(own, "method")[("a", "b")] == "cell-signs"


@pytest.mark.parametrize("method", [None, "partition-gcm"])
def test_a_law_that_no_test_uses_is_refused(method, tmp_path):
    """By all pairs, as one law and as a mapping, and by one test; before the table is opened."""
    law = jaxdp.simulate.SineLaw(noise_sd=1.0, complexity=2.0)
    for given in ({}, {"given": "z"}):
        for one in (law, {"a": law}, {"b": law}, {"z": law}):
            with pytest.raises(ValueError, match=r"^\S+ does not use law; it belongs to crt, private-crt, "):
                PairsQuery.of(schema_of(SCHEMA), columns=LINE, epsilon=6.0, method=method, law=one, **given)
        with pytest.raises(ValueError, match=r"does not use law; it belongs to crt, "):
            jaxdp.test("absent.csv", schema=SCHEMA, x="a", y="b", epsilon=1.0, method=method, law=law, **given)


def test_laws_of_other_columns_are_refused():
    law = jaxdp.simulate.SineLaw(noise_sd=1.0, complexity=2.0)
    asked = {"columns": LINE, "given": "z", "epsilon": 30.0, "method": "private-crt-normal"}
    with pytest.raises(ValueError, match=r"^law has column 'w', of no pair"):
        PairsQuery.of(schema_of(SCHEMA), law={"w": law}, **asked)
    with pytest.raises(ValueError, match=r"^law has column number 4 of 4 names, of no pair"):
        PairsQuery.of(schema_of(SCHEMA), law=dict.fromkeys([*LINE, "0.123 of a record"], law), **asked)


def test_mixed_columns_without_z_are_one_release_with_its_power_told(tmp_path):
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=2.0)
    answers = ask(None, table=table(400), columns=["a", "b", "two", "clinic"], epsilon=2.0, ledger=ledger)
    assert [row.method for row in ledger.rows()] == ["pair-contrasts"]
    assert float(ledger.spent.epsilon) == 2.0
    assert answers.method == "pair-contrasts"
    assert ("a", "b") in answers.found
    assert by_pair(answers, "low")[("a", "b")] > 0.0
    assert all(pair["low"] <= pair["effect"] <= pair["high"] for pair in answers.pairs)
    assert 0.0 < answers.content["detectable_effect"] < 1.0
    assert answers.content["power"].startswith("With power 0.8 a correlation between halves (phi) of 0.")
    assert "delta" in answers.content["power"]


@pytest.mark.full
def test_a_delta_is_charged_only_where_gaussian_noise_is_smaller(tmp_path):
    names = [f"c{k}" for k in range(16)]
    values = dict(zip(names, np.random.default_rng(0).uniform(-1, 1, (16, 800)), strict=True))
    how = {"table": values, "schema": {"columns": {n: {"kind": "continuous", "bounds": [-1, 1]} for n in names}}}
    how |= {"epsilon": 1.0, "delta": 1e-6, "method": "pair-contrasts", "fields": {"num_null": 39}}
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=2.0, delta=1e-6)
    many = ask(None, ledger=ledger, **how)
    assert (many.content["epsilon"], many.content["delta"]) == (1.0, 1e-6)
    assert (float(ledger.spent.epsilon), float(ledger.spent.delta)) == (1.0, 1e-6)
    assert "The delta of 1e-06 finds" in many.content["power"]
    of_rho = jaxdp.Ledger.create(tmp_path / "rho.db", rho=1.0)
    again = ask(None, ledger=of_rho, **how)
    assert (again.content["epsilon"], again.content["delta"]) == (1.0, 1e-6)
    assert (of_rho.spent.delta, of_rho.spent.rho) == (0.0, pytest.approx(zcdp_rho(1.0, 1e-6)))
    few = ask(columns=names[:4], **how)
    assert few.content["delta"] == 0.0
    assert "none was spent" in few.content["power"]
    with pytest.raises(ValueError, match="delta goes with one joint release"):
        ask(columns=LINE, given="z", delta=1e-6)


@pytest.mark.parametrize("granted", [{"rho": 1.0}, {"rho": 1.0, "delta": 1e-5}], ids=str)
def test_a_ledger_of_rho_is_charged_the_rho_of_normal_noise(tmp_path, granted):
    """With a delta it was charged that too; without one pairs lacked a delta, they said, and coefficients epsilon."""
    names = [f"c{k}" for k in range(6)]
    values = dict(zip(names, np.random.default_rng(0).uniform(-1, 1, (6, 100)), strict=True))
    how = {"schema": {"columns": {n: {"kind": "continuous", "bounds": [-1, 1]} for n in names}}}
    how |= {"epsilon": 1.0, "delta": 1e-6}
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", **granted)
    found = jaxdp.mic(values, ledger=ledger, max_cells=4, **how), jaxdp.describe(values, ledger=ledger, **how)
    rho = zcdp_rho(1.0, 1e-6)
    assert [(row.epsilon, row.delta) for row in ledger.rows()] == [(0.0, 0.0)] * 2
    assert [row.rho for row in ledger.rows()] == pytest.approx([rho] * 2)
    assert all(row.rho >= rho * (1 - 1e-9) for row in ledger.rows())
    assert [(one.content["epsilon"], one.content["delta"]) for one in found] == [(1.0, 1e-6)] * 2


def test_many_pairs_get_null_tables_enough_to_be_found():
    """36 pairs at level 0.05: the smallest p-value of a rank among tables is a tenth of a pair's share of the level."""
    schema = jaxdp.Schema.from_dict(SCHEMA)
    many = PairsQuery.of(schema, epsilon=1.0)
    drawn = {query.settings.fields.get("num_null") for query in many.asked}
    assert drawn == {7199}
    assert pytest.approx(0.05 / 10) == 36 * 1 / 7200
    few = PairsQuery.of(schema, columns=LINE, epsilon=1.0)
    own = PairsQuery.of(schema, columns=LINE[:2], method="quantile-table", fields={"num_null": 39}, epsilon=1.0)
    assert all("num_null" not in query.settings.fields for query in few.asked)
    assert own.asked[0].settings.fields == {"num_null": 39}
    other = PairsQuery.of(schema, columns=[*LINE, "w"], given="z", epsilon=1.0)
    assert all(not query.settings.fields for query in other.asked)


@pytest.mark.full
def test_kendall_is_asked_about_codes():
    kendall = ask(columns=["two", "other", "grade"], given="clinic", epsilon=60.0)
    assert kendall.method == "conditional-kendall"
    assert kendall.found == [("two", "grade")]


@pytest.mark.full
def test_a_decision_is_made_at_its_share_of_the_level():
    fields = {"num_permutations": 199}
    answers = ask(columns=LINE, given="two", method="local-permutation", epsilon=90.0, fields=fields)
    assert {pair["p_value"] for pair in answers.pairs} <= {0.05 / 3, 1.0}
    assert answers.found == [("a", "b")]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"columns": ["a"]}, "at least two columns"),
        ({"columns": ["a", "a"]}, "used twice"),
        ({"columns": ["a", "z"], "given": "z"}, "used twice"),
        ({"columns": ["a", "doze"]}, "not in the schema"),
        ({"adjust": "fdr"}, "adjust must be one of"),
        ({"level": 1.5}, "level"),
        ({"method": "margin-adaptive"}, "whether a and b are independent: it takes x of"),
        ({"method": "projected-chi2"}, "whether a and b are independent: it takes x of"),
        ({"method": "band-gmc"}, "did you mean 'band-gcm'"),
        ({"sees": "bent"}, "sees must be one of"),
        ({"epsilon": 2e-6}, "name fewer columns"),
        ({"epsilon": 4.0}, "budget"),
        ({"method": "gcm"}, "is not private"),
    ],
)
def test_mistakes_are_refused_before_anything_is_charged(tmp_path, wrong, said):
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=3.0)
    with pytest.raises((ValueError, jaxdp.BudgetExhausted), match=said):
        ask(None, **{"columns": LINE, "epsilon": 3.0, "ledger": ledger, **wrong})
    assert ledger.rows() == []


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--all-pairs", "--x", "a"], "not both"),
        (["--x", "a"], "--x A and --y B"),
        (["--x", "a", "--y", "b", "--adjust", "bh"], "--adjust goes with --all-pairs"),
        (["--x", "a", "--y", "b", "--columns", "a,b"], "--columns goes with --all-pairs"),
    ],
)
def test_options_that_exclude_each_other(more, said, capsys):
    assert main(["test", "d.csv", "--schema", "s.toml", "--epsilon", "1", *more]) == 2
    assert said in capsys.readouterr().err


def test_strict_callers_are_charged_once_and_sessions_share_their_budget(tmp_path):
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=1.0)
    lines = [",".join(("a", "b", "c")), *(f"{k / 50 - 3},{-k / 50},x" for k in range(60)), "broken"]
    (tmp_path / "d.csv").write_text("\n".join(lines))
    answers = ask(None, table=tmp_path / "d.csv", columns=LINE, epsilon=1.0, ledger=ledger, strict=True)
    assert answers.content["n"] == 61
    assert len(ledger.rows()) == 1
    session = jaxdp.Session(table(), schema=SCHEMA, epsilon=2.0, queries=2, key=jax.random.key(1))
    found = session.test_pairs(LINE, given="z")
    assert found.content["epsilon"] == pytest.approx(1.0)
    assert session.asked[0].columns == "all pairs of 3 columns | z"


KINDS = {  # columns, given: the first that a test fits is what it is asked about
    "line": (LINE, ("z",)),
    "two": (LINE, ("z", "w")),
    "free": (LINE, ()),
    "coded": (("two", "other"), ("clinic",)),
    "tables": (("two", "other"), ()),
    "groups": (("two", "a"), ()),
}


def kind_of(entry):
    """What a test can be asked about; None for none of these."""
    rules = jaxdp.Schema.from_dict(SCHEMA).rule
    for name, (columns, given) in KINDS.items():
        x, y = (rules(column).code_column() for column in columns[:2])
        if entry.spec.accepts(Domain(x, y, tuple(c for column in given for c in rules(column).code_column()))):
            return name
    return None


@pytest.mark.nightly
@pytest.mark.parametrize("name", [name for name, entry in catalogue.offered().items() if entry.spec.private])
def test_every_test_is_asked_about_all_pairs_or_says_why_not(name):
    entry = catalogue.find(name)
    columns, given = KINDS[kind_of(entry)]
    how = {"columns": columns, "given": given, "method": name, "epsilon": 20.0}
    if entry.spec.columns is Columns.GROUPS or getattr(entry.cls, "public_columns", ()):
        with pytest.raises(ValueError, match=r"compares groups|public"):
            ask(**how)
        return
    answers = ask(table=table(500), **how)
    assert all(0.0 <= pair["p_value"] <= pair["adjusted"] <= 1.0 for pair in answers.pairs)
    assert {pair["method"] for pair in answers.pairs} == {name}
    if not entry.spec.true_epsilon and entry.spec.publishes == P_VALUE:
        assert float(answers.cost.epsilon) == pytest.approx(20.0)


@pytest.mark.parametrize("columns", [["two", "other", "grade"], ["two", "grade", "clinic"]])  # together, one by one
def test_a_release_of_all_pairs_says_how_long_it_will_take_before_it_is_charged(columns):
    told, charged = [], []

    class Account:
        def require(self, cost):
            charged.append("asked")

        def charge(self, name, cost, key):
            charged.append(len(told))
            raise KeyboardInterrupt

    query = PairsQuery.of(schema_of(SCHEMA), columns=columns, epsilon=6.0)
    with pytest.raises(KeyboardInterrupt):
        query.ask(Table.of(table(60), SCHEMA), jaxdp.fresh_key(), Account(), on_estimate=told.append)
    assert charged[0] == "asked"  # before time is spent on zeros
    assert charged[-1] == len(told) == 1
    assert told[0].startswith("3 pairs of 60 records by ")
    assert " s, " in told[0]


@pytest.mark.full
@pytest.mark.parametrize("method", [None, "projected-chi2"])  # together, one by one
def test_the_time_that_is_told_is_the_time_from_then_on(monkeypatch, method):
    """Compiling and the planner take long, and are over by then: a clock that only they and the runs move."""
    clock, runs, told = SimpleNamespace(now=0.0), [], []
    run_opened = core.run_opened

    def run(test, *rest):
        clock.now += 2.0 if type(test) in runs else 30.0
        runs.append(type(test))
        return run_opened(test, *rest)

    def plan(*of, **how):
        clock.now += 170.0
        return {"detectable_effect": None, "power": ""}

    monkeypatch.setattr(core, "run_opened", run)
    monkeypatch.setattr(pair_by_pair, "time", SimpleNamespace(perf_counter=lambda: clock.now))
    monkeypatch.setattr(pairs_plan, "of_joint_release", plan)
    monkeypatch.setattr(pairs_plan, "of_single_pairs", plan)
    account = SimpleNamespace(require=lambda cost: None, charge=lambda *of: None)
    query = PairsQuery.of(schema_of(SCHEMA), columns=["two", "other", "grade"], epsilon=6.0, method=method)
    query.ask(
        Table.of(table(60), SCHEMA), jaxdp.fresh_key(), account, on_estimate=lambda text: told.append((text, clock.now))
    )
    ((text, then),) = told
    seconds = float(re.search(r"about (\d+) s,", text)[1])
    assert seconds == pytest.approx(clock.now - then)


def test_the_planner_is_asked_once_for_columns_of_one_kind():
    schema = schema_of(None, bounds=dict.fromkeys("abcd", (0, 1)))
    assert Setting.of_schema(schema, "a", "b", ["c"]) == Setting.of_schema(schema, "b", "d", ["a"])


def test_the_rest_of_the_pairs_is_told_by_what_most_of_them_took(monkeypatch):
    """The first pair of a kind compiles; its time is not that of the others."""
    clock = iter([0.0, 60.0, 61.0, 62.0, 63.0, 64.0, 65.0])
    monkeypatch.setattr(pairs_query, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    told = []
    turn = pairs_query._Turns(PairsQuery.of(schema_of(SCHEMA), columns=LINE, epsilon=6.0).asked[:1] * 100, told.append)
    for place in range(7):
        turn(place)
    assert not any("left" in line for line in told[:5])
    assert told[6].endswith(", about 94 s left")


def test_a_simulation_foretells_nothing():
    told = []
    query = PairsQuery.of(schema_of(SCHEMA), columns=LINE, epsilon=6.0)
    query.ask(Table.of(table(60), SCHEMA), jax.random.key(1), on_estimate=told.append)
    assert not told


def test_a_time_to_wait_is_told_as_one_plans_with_it():
    assert [duration(seconds) for seconds in (0.2, 99.0, 720.0, 12600.0)] == ["1 s", "99 s", "12 minutes", "3.5 hours"]


def test_a_table_given_for_a_setting_is_compared_with_nothing():
    """A lazy frame warns where it is compared, and an array of several cells has no truth value."""

    class Table:
        def __eq__(self, other):
            raise AssertionError("compared")

        __hash__ = None

    with pytest.raises(ValueError, match="residual_scale takes one number or two, got a Table"):
        PairsQuery.of(schema_of(SCHEMA), columns=LINE, epsilon=6.0, given="z", residual_scale=Table())


def test_every_effect_says_what_it_is():
    one_by_one = ask(columns=("a", "two", "other"), given="grade", method="conditional-kendall")
    measures = by_pair(one_by_one, "effect_is")
    assert "Peto's odds ratio" in measures["two", "other"]
    assert measures["a", "two"].startswith("association of X and Y given Z: Kendall's tau-a, the share of pairs")
    coarse, fine = (ask(columns=("a", "two", "clinic"), epsilon=epsilon) for epsilon in (1.0, 100.0))
    assert coarse.method == fine.method == "pair-contrasts"
    assert set(by_pair(coarse, "effect_is").values()) == {"phi coefficient of 2 by 2 classes"}
    assert by_pair(fine, "effect_is") == {
        ("a", "two"): "Cramer's V of 4 by 2 classes",
        ("a", "clinic"): "Cramer's V of 4 by 3 classes",
        ("two", "clinic"): "Cramer's V of 2 by 3 classes",
    }
    assert set(coarse.content["effect_notes"]) == {"ends"}
    assert all(pair["high"] == 1.0 for pair in fine.pairs)
    for told in (repr(fine).replace("\n             ", " "), str(fine.to_dict()), fine._repr_html_()):
        assert "95 % interval of its effect, each pair by itself" in told.replace("\n", " ")
        assert "high is 1 whatever the records" in told.replace("\n", " ")


def test_a_pair_without_a_cramers_v_says_why_and_what_gives_phi():
    """Columns of which four fifths are one value: three of their four classes are nearly empty."""
    rng = np.random.default_rng(0)
    values = {name: np.where(rng.random(1000) < 0.8, 0.0, rng.exponential(1.0, 1000)) for name in LINE}
    schema = {"columns": {name: {"kind": "continuous", "bounds": [0, 5]} for name in LINE}}
    how = {"table": values, "schema": schema, "epsilon": 40.0, "columns": LINE, "method": "pair-contrasts"}
    answers = ask(**how, fields={"num_null": 39})
    assert {(pair["effect"], pair["low"], pair["high"]) for pair in answers.pairs} == {(None, None, None)}
    assert {pair["effect_is"] for pair in answers.pairs} == {"not given: rare levels"}
    assert "--set classes=2" in answers.content["effect_notes"]["rare levels"]
    assert "no Cramer's V is given" in repr(answers).replace("\n             ", " ")
    halves = ask(**how, fields={"num_null": 39, "classes": 2})
    assert {pair["effect_is"] for pair in halves.pairs} == {"phi coefficient of 2 by 2 classes"}
    assert all(pair["effect"] is not None for pair in halves.pairs)


def with_columns(count):
    names = [f"c{k}" for k in range(count)]
    return schema_of({"columns": {name: {"kind": "binary", "levels": [0, 1]} for name in names}})


def test_more_than_a_hundred_columns_can_be_found_or_are_refused_before_anything_is_spent():
    """5050 pairs ask Holm for 9.9e-6, and ranks among 99 999 tables are 1e-5 or more."""
    many = PairsQuery.of(with_columns(101), epsilon=8.0).asked[0].settings.fields["num_null"]
    assert 1.0 / (1.0 + many) < 0.05 / 5050
    with pytest.raises(ValueError, match=r"Holm's adjustment of 51040 pairs .* nothing could be found.*bh"):
        PairsQuery.of(with_columns(320), epsilon=8.0)
    assert PairsQuery.of(with_columns(320), epsilon=8.0, adjust="bh").adjust == "bh"


def test_the_power_of_pairs_knows_the_smallest_p_value_and_balanced_classes():
    columns = {"columns": ["two", "other", "grade"], "method": "pair-contrasts"}
    ranked = ask(**columns, fields={"num_null": 39}).content
    assert "No effect in one pair alone would have been found at level 0.05/3" in ranked["power"]
    assert "num_null=599" in ranked["power"]
    assert ranked["detectable_effect"] is None
    balanced = ask(**columns, fields={"num_null": 99}).content["power"]
    assert "in a pair of columns with equally full classes" in balanced
    assert "where a level or class is rare, only a larger effect, or none" in balanced


ODD = {"mean texture": "a", "-flow": "b", "it's z": "z"}  # names that a shell would split, and one like an option


def odd_columns(folder):
    """Files of columns with such names; returns (arguments of the command, the schema's path)."""
    rows, path = table(150), folder / "my s.json"
    values = np.stack([rows[own] for own in ODD.values()], axis=1).tolist()
    path.write_text(json.dumps({"columns": {name: SCHEMA["columns"][own] for name, own in ODD.items()}}))
    lines = [",".join(ODD), *(",".join(map(repr, row)) for row in values)]
    (folder / "d.csv").write_text("\n".join(lines) + "\n")
    asked = ["test", str(folder / "d.csv"), "--schema", str(path), "--all-pairs", "--given", "it's z"]
    return [*asked, "--method", "band-gcm", "--epsilon", "2", "--seed", "0", "--out", str(folder / "out")], path


def test_the_planners_command_for_pairs_has_their_z_and_quotes_names(tmp_path, capsys):
    """It lacked --given and quotes, so that it failed, and named no schema."""
    asked, path = odd_columns(tmp_path)
    assert main(asked) == 0
    screen = capsys.readouterr().out
    (command,) = [line for line in screen.splitlines() if line.startswith("jaxdp plan")]
    assert command == json.loads((tmp_path / "out" / "result.json").read_text())["power"].partition(": ")[2]
    words = shlex.split(command)
    told = dict(itertools.pairwise(words))
    assert (told["--x"], told["--given"], told["--schema"]) == ("mean texture", "it's z", str(path))
    assert "--y=-flow" in words
    assert build_parser().parse_args(words[1:]).given


@pytest.mark.full
def test_the_planners_command_for_pairs_runs_as_it_is_printed(tmp_path, capsys):
    asked, _ = odd_columns(tmp_path)
    assert main(asked) == 0
    (command,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("jaxdp plan")]
    assert main(shlex.split(command)[1:]) == 0
    assert "power" in capsys.readouterr().out


def test_in_python_the_command_names_a_schema_to_put_in_and_none_is_told_without_a_plan():
    told = ask(columns=["a", "b", "c"], given=["z"], method="band-gcm").content["power"]
    assert told.startswith(
        "How small an effect the test of one pair would have found, at no cost, simulated in minutes"
    )
    assert "--schema S.toml --x a --y b --given z" in told
    few = pairs_plan.of_single_pairs(
        PairsQuery.of(schema_of(SCHEMA), columns=LINE, given=["z"], epsilon=3.0).asked, 5, 0.05
    )
    assert "The planner needs at least" in few["power"]
    assert "simulated" not in few


def test_settings_of_pairs_whose_names_hold_a_slash_are_all_kept():
    """Of (a/b, c) and (a, b/c) one was lost, by a common key "a/b/c"."""
    names = {"a/b": "a", "c": "b", "a": "c", "b/c": "z"}
    rows = table()
    schema = {"columns": {name: SCHEMA["columns"][own] for name, own in names.items()}}
    named = {name: rows[own] for name, own in names.items()}
    asked = {"method": "partial-correlation", "epsilon": 6.0, "key": jax.random.key(0)}
    built = jaxdp.test_pairs(named, schema=schema, **asked).to_dict()["built"]
    assert sum(map(len, built.values())) == 6
    assert {"a/b": {"c", "a", "b/c"}, "c": {"a", "b/c"}, "a": {"b/c"}} == {x: set(row) for x, row in built.items()}
