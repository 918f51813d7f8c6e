"""One call from a table to an answer: `jaxdp.test`, `discover`, `mic`, `plan`, `Session`; the command line agrees."""

import json
import sys

import jax
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import jaxdp
from jaxdp.cli.main import main

BOUNDS = {"dose": (-1, 1), "response": (-1, 1), "age": (-1, 1)}
LEVELS = {"clinic": ["north", "south"], "grade": [1, 2, 3]}
QUERY = {"x": "dose", "y": "response", "given": "age", "epsilon": 1.0}
SCHEMA = {
    "columns": {
        **{name: {"kind": "continuous", "bounds": list(bounds)} for name, bounds in BOUNDS.items()},
        "clinic": {"kind": "binary", "levels": ["north", "south"]},
        "grade": {"kind": "ordinal", "levels": [1, 2, 3]},
    }
}
SECRET = 0.123454321


def columns(n=400, effect=1.0, seed=8):
    random = np.random.default_rng(seed)
    age = random.uniform(-1, 1, n)
    own = random.normal(size=n)
    dose = 0.3 * np.sin(3 * age) + 0.2 * own
    response = -0.3 * np.sin(3 * age) + 0.2 * (random.normal(size=n) + effect * own)
    table = {"dose": dose, "response": response, "age": age}
    table |= {"clinic": np.where(random.random(n) < 0.5, "north", "south"), "grade": random.integers(1, 4, n)}
    table["dose"][0] = SECRET
    return table


def key(seed=3):
    return jax.random.key(seed)


def test_every_kind_of_table_and_the_command_line_give_one_answer(tmp_path):
    table = columns()
    frame = pd.DataFrame(table)
    frame.to_csv(tmp_path / "d.csv", index=False, float_format="%.17g")
    (tmp_path / "s.json").write_text(json.dumps(SCHEMA))
    found = [
        jaxdp.test(source, **QUERY, key=key(), **known)
        for source, known in (
            (frame, {"bounds": BOUNDS, "levels": LEVELS}),
            (pl.DataFrame(table), {"schema": SCHEMA}),
            (pa.table(table), {"schema": jaxdp.Schema.from_dict(SCHEMA)}),
            (table, {"schema": str(tmp_path / "s.json")}),
            (tmp_path / "d.csv", {"schema": tmp_path / "s.json"}),
        )
    ]
    command = ["test", str(tmp_path / "d.csv"), "--schema", str(tmp_path / "s.json"), "--x", "dose", "--y", "response"]
    assert main([*command, "--given", "age", "--epsilon", "1", "--seed", "3", "--out", str(tmp_path / "out")]) == 0
    written = json.loads((tmp_path / "out" / "result.json").read_text())
    for answer in found:
        told = answer.to_dict()
        assert {name: written[name] for name in told} == json.loads(json.dumps(told))
        assert answer.p_value == written["p_value"]
    assert written["method"] == "band-gcm"
    assert written["dependence_found"] is True


def test_an_answer_is_a_result_in_sentences_without_a_record(tmp_path):
    pytest.importorskip("matplotlib")
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=3.0)
    answer = jaxdp.test(pd.DataFrame(columns()), **QUERY, bounds=BOUNDS, ledger=ledger)
    statistic, p_value = answer
    assert isinstance(answer, jaxdp.Result)
    assert (answer.mode, answer.dependence_found) == ("release", bool(p_value <= 0.05))
    assert float(statistic) == answer.content["statistic"]
    shown = repr(answer).splitlines()
    assert shown[0] == "Is dose independent of response given age?"
    assert shown[1].startswith("  answer     Dependence found at level 0.05 (p = ")
    assert "  privacy    epsilon = 1, delta = 0, replace_one, release" in str(answer).splitlines()
    assert "<caption>Is dose independent of response given age?</caption>" in answer._repr_html_()
    picture = answer.plot()
    assert picture._repr_png_().startswith(b"\x89PNG")
    assert picture.save(tmp_path / "p.png").read_bytes() == picture.png
    (row,) = ledger.rows()
    assert (row.columns, row.source, row.method) == ("dose ~ response | age", "DataFrame", "band-gcm")
    for text in (repr(answer), answer._repr_html_(), json.dumps(answer.to_dict()), repr(answer.__dict__)):
        assert "0.12345" not in text


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"x": "doze"}, "did you mean 'dose'"),
        ({"given": "dose,age"}, r"Python takes a list: \['dose', 'age'\]"),
        ({"fields": "num_bins=4"}, "fields must be a mapping"),
        ({"method": "band-gmc"}, "did you mean 'band-gcm'"),
        ({"rigde": 1.0}, "did you mean 'ridge'"),
        ({"epsilon": 0.0}, "epsilon must be a finite number > 0"),
        ({"epsilon": 1e9}, "above, nothing is protected"),
        ({"epsilon": None}, "epsilon must be one number"),
        ({"epsilon": "1"}, "epsilon must be one number"),
        ({"bounds": None}, "never computed from the data"),
        ({"bounds": {"dose": 3}}, "bounds of 'dose' must be a list"),
        ({"levels": {"dose": [0, 1]}}, "has bounds and levels"),
        ({"schema": SCHEMA}, "not both"),
        ({"method": "gcm"}, "is not private and releases nothing"),
        ({"key": 7}, "key"),
        ({"strict": True, "force": True}, "never refuses a column"),
    ],
)
def test_mistakes_are_one_sentence_before_anything_is_charged(tmp_path, wrong, said):
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=3.0)
    with pytest.raises((ValueError, TypeError), match=said):
        jaxdp.test(columns(), **{**QUERY, "bounds": BOUNDS, "ledger": ledger, **wrong})
    assert ledger.rows() == []


def test_a_frame_in_another_notation_is_refused_before_the_charge(tmp_path):
    frame = pd.DataFrame(columns()).astype({"dose": str})
    frame["dose"] = frame["dose"].str.replace(".", ",")
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=3.0)
    with pytest.raises(ValueError, match=r"column .dose. does not parse.*decimal comma") as refused:
        jaxdp.test(frame, **QUERY, bounds=BOUNDS, ledger=ledger)
    assert "12345" not in str(refused.value)
    assert ledger.rows() == []
    forced = jaxdp.test(frame, **QUERY, bounds=BOUNDS, ledger=ledger, force=True)
    assert forced.mode == "release"
    assert jaxdp.test(frame, **QUERY, bounds=BOUNDS, ledger=ledger, strict=True).content["n"] == 400
    assert len(ledger.rows()) == 2


def test_three_queries_within_epsilon_1():
    session = jaxdp.Session(columns(), bounds=BOUNDS, levels=LEVELS, epsilon=1.0, queries=3)
    answer = session.test("dose", "response", "age")
    assert answer.mode == "release"
    assert float(answer.cost.epsilon) == pytest.approx(1 / 3)
    session.test("clinic", "grade")
    graph = session.discover(["clinic", "grade"])
    assert float(graph.cost.epsilon) == pytest.approx(1 / 3)
    assert session.left == "epsilon=0"
    with pytest.raises(jaxdp.BudgetExhausted, match="epsilon=0 left of this session"):
        session.test("dose", "age")
    assert [row.columns for row in session.asked] == ["dose ~ response | age", "clinic ~ grade", "graph of 2 columns"]
    assert "0.12345" not in repr(session) + session._repr_html_() + repr(session.asked)
    assert session.plan("dose", "response", "age", method="partition-gcm", n=400, epsilon=1.0, power=0.8).effect > 0


def test_a_session_is_charged_to_a_ledger_or_simulated(tmp_path):
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=1.0)
    session = jaxdp.Session(columns(), bounds=BOUNDS, levels=LEVELS, ledger=ledger)
    session.test("clinic", "grade", epsilon=0.25)
    assert ledger.spent.epsilon == pytest.approx(0.25)
    with pytest.raises(ValueError, match="say what this query may cost"):
        session.test("clinic", "grade")
    with pytest.raises(TypeError, match="belongs to the session"):
        session.test("clinic", "grade", epsilon=0.1, key=key())
    simulated = [
        jaxdp.Session(columns(), levels=LEVELS, epsilon=1.0, queries=2, key=key()).test("clinic", "grade").p_value
        for _ in range(2)
    ]
    assert simulated[0] == simulated[1]
    with pytest.raises(ValueError, match="one of them"):
        jaxdp.Session(columns(), levels=LEVELS)
    with pytest.raises(ValueError, match="can't be charged"):
        jaxdp.Session(columns(), levels=LEVELS, ledger=ledger, key=key())
    with pytest.raises(ValueError, match="works once"):
        jaxdp.Session(columns(), levels=LEVELS, epsilon=1.0, key=jaxdp.fresh_key())
    with pytest.raises(TypeError, match=r"such as jaxdp.Ledger.open\(path\), got str"):
        jaxdp.Session(columns(), levels=LEVELS, ledger="study.db")


@pytest.mark.full
def test_mic_and_discover_in_one_call(tmp_path):
    pytest.importorskip("matplotlib")
    table = columns()
    pair = jaxdp.mic(table, x="dose", y="response", epsilon=2.0, bounds=BOUNDS, key=key())
    assert pair.to_dict()["pairs"][0]["x"] == "dose"
    assert repr(pair).startswith("How strongly are dose and response related?\n  answer     MIC = ")
    assert 0.0 <= pair.p_value <= 1.0
    every = jaxdp.mic(table, columns=["dose", "response", "age"], epsilon=2.0, bounds=BOUNDS, key=key())
    assert (len(every.pairs), every.matrix.shape) == (3, (3, 3))
    for found in (pair, every):
        assert found.plot()._repr_png_().startswith(b"\x89PNG")
        assert "<table>" in found._repr_html_()
    graph = jaxdp.discover(table, epsilon=1.0, levels=LEVELS, key=key())
    assert graph.names == ("clinic", "grade")
    assert graph.plot()._repr_png_().startswith(b"\x89PNG")
    with pytest.raises(TypeError, match="no keyword 'orders'"):
        jaxdp.discover(table, epsilon=1.0, levels=LEVELS, orders=2)
    with pytest.raises(ValueError, match="at least two columns"):
        jaxdp.discover(table, epsilon=1.0, levels=LEVELS, columns="clinic")
    with pytest.raises(ValueError, match="give x and y for one pair"):
        jaxdp.mic(table, x="dose", epsilon=1.0, bounds=BOUNDS)


@pytest.mark.full
def test_the_planner_is_a_module_that_may_be_called(monkeypatch):
    row = jaxdp.plan("partition-gcm", epsilon=1.0, effect=0.25, power=0.8)
    assert row.n == jaxdp.plan.required_n("partition-gcm", epsilon=1.0, effect=0.25)
    assert str(row) == row.sentence
    assert row.sentence.startswith(f"partition-gcm finds an effect of 0.25 in {row.n} records")
    monkeypatch.setattr(sys.modules["jaxdp.plan.compare"], "SIMULATED_ROW", 20)  # of rows without a formula
    table = jaxdp.plan(x="clinic", y="grade", levels=LEVELS, n=1000, epsilon=1.0, effect=0.3)
    assert table[0].power >= table[1].power
    with pytest.raises(ValueError, match="give three of"):
        jaxdp.plan("partition-gcm", epsilon=1.0)
    with pytest.raises(ValueError, match="belong to a schema"):
        jaxdp.plan("partition-gcm", x="dose", epsilon=1.0, effect=0.2, power=0.8)


def test_the_function_called_test_is_no_test():
    assert jaxdp.test.__test__ is False


def test_an_answer_without_a_finding_is_not_flagged_by_what_doubts_findings():
    """The released check of roughness is in doubt about nearly every null: only a finding has something to doubt."""
    random = np.random.default_rng(3)
    a, b = random.uniform(-1, 1, (2, 2500))
    table = {
        "a": a,
        "b": b,
        "x": 0.5 * a + 0.2 * random.normal(size=2500),
        "y": 0.5 * b + 0.2 * random.normal(size=2500),
    }
    bounds = dict.fromkeys("abxy", (-1.5, 1.5))
    answer = jaxdp.test(table, x="x", y="y", given=["a", "b"], bounds=bounds, epsilon=4.0, key=jax.random.key(5))
    assert answer.content["built"].get("check_roughness", True)
    assert answer.p_value > 0.05
    assert "curvature" not in answer.content["level_rule"]["flags"]


@pytest.mark.parametrize("how", [{"method": np.arange(3)}, {"sees": 3}])
def test_a_method_that_is_no_name_is_refused_in_one_sentence(how):
    with pytest.raises(ValueError, match=r"must be a name, got (ndarray|int)"):
        jaxdp.test(columns(), bounds=BOUNDS, key=jax.random.key(0), **(QUERY | how))


def test_a_test_that_is_built_already_is_led_to_run():
    with pytest.raises(ValueError, match=r"must be a name, got BandGCM: .* goes to jaxdp\.run"):
        jaxdp.test(columns(), x="x", y="y", bounds=BOUNDS, method=jaxdp.BandGCM(epsilon=1.0))


OF_ONE_COLUMN = {"method": "goodness-of-fit", "epsilon": 1.0, "levels": {**LEVELS, "level": ["a", "b", "c", "d"]}}
RARE = {"probabilities": [0.997, 0.001, 0.001, 0.001]}


def levels_alone(n=3000):
    return columns(n) | {"level": np.random.default_rng(1).choice(list("abcd"), n)}


def test_goodness_of_fit_asks_about_one_column_and_finds_a_departure():
    """It demanded a y that it did not read, spoke of dependence, and gave p = 1 where a level expects few records."""
    found = jaxdp.test(levels_alone(), x="level", fields=RARE, **OF_ONE_COLUMN, key=key())
    told = " ".join(found.sentences())
    assert found.p_value <= 0.01
    assert found.content["title"] == "Does level have the stated probabilities?"
    assert found.content["answer"].startswith("Departure from the probabilities found at level 0.05")
    assert "goodness-of-fit (probabilities [0.997, 0.001, 0.001, 0.001])" in told
    assert (found.content["departure_found"], found.content["y"]) == (True, [])
    none = jaxdp.test(levels_alone(), x="level", fields={"probabilities": [0.25] * 4}, **OF_ONE_COLUMN, key=key())
    assert none.content["answer"].startswith("No departure from the probabilities found")
    assert none.content["departure_found"] is False
    for answer in (found, none):
        assert "depend" not in (repr(answer) + json.dumps(answer.to_dict())).lower()
    session = jaxdp.Session(levels_alone(), levels=OF_ONE_COLUMN["levels"], epsilon=2.0, key=key())
    session.test("level", method="goodness-of-fit", fields=RARE, epsilon=1.0)
    assert session.asked[0].columns == "level"


def test_the_command_and_its_page_speak_of_the_departure_of_one_column(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    pd.DataFrame(levels_alone()).to_csv(tmp_path / "d.csv", index=False)
    (tmp_path / "s.toml").write_text('[columns.level]\nkind = "categorical"\nlevels = ["a", "b", "c", "d"]\n')
    command = ["test", str(tmp_path / "d.csv"), "--schema", str(tmp_path / "s.toml"), "--x", "level", "--epsilon", "1"]
    fit = ["--method", "goodness-of-fit", "--set", "probabilities=0.25,0.25,0.25,0.25", "--seed", "3"]
    for number, more in enumerate(([], ["--strict"])):
        out = tmp_path / f"out{number}"
        assert main([*command, *fit, "--out", str(out), *more]) == 0
        page, result = (out / "report.html").read_text(), (out / "result.json").read_text()
        shown = capsys.readouterr().out
        assert "Does level have the stated probabilities?" in page
        assert json.loads(result)["departure_found"] is False
        assert "No departure from the probabilities found" in shown
        assert "depend" not in (page + result + shown).replace("jaxdp-dependence", "").lower()
    assert main([*command, "--method", "projected-chi2"]) == 2
    assert "y is missing: give --y B" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"x": "level", "y": "clinic"}, "asks about x alone: leave y out"),
        ({"x": ["level", "clinic"]}, "there are 2: ask about one at a time"),
        ({"x": "level", "given": "clinic"}, "leave out the columns that are given"),
        ({"x": "dose", "bounds": BOUNDS}, "dose holds numbers"),
        ({"x": "clinic"}, "x has 2 levels, and there are 4 probabilities"),
        ({"x": "level", "fields": None}, "needs probabilities: give one for each level, --set probabilities="),
        ({"x": "level", "margin": 0.1}, "has no p-value for a margin"),
    ],
)
def test_what_goodness_of_fit_cannot_be_asked_is_refused_before_the_charge(tmp_path, asked, told):
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=3.0)
    with pytest.raises(ValueError, match=told):
        jaxdp.test(levels_alone(200), **{**OF_ONE_COLUMN, "fields": RARE, **asked}, ledger=ledger)
    assert ledger.remaining.epsilon == 3.0


def test_goodness_of_fit_takes_one_row_of_each_person():
    table = {name: np.repeat(values[:500], 2) for name, values in levels_alone().items()}
    table |= {"person": np.repeat(np.arange(500), 2)}
    schema = {"unit": "person", "columns": {"level": {"kind": "categorical", "levels": ["a", "b", "c", "d"]}}}
    asked = {"method": "goodness-of-fit", "fields": RARE, "epsilon": 1.0, "schema": schema, "key": key()}
    found = jaxdp.test(table, x="level", **asked)
    assert (found.content["n"], found.content["departure_found"]) == (500, True)


def test_empty_cells_of_one_column_would_be_taken_for_a_departure():
    table = levels_alone()
    table["level"][:600] = ""
    with pytest.raises(ValueError, match="taken for a departure from the probabilities"):
        jaxdp.test(table, x="level", fields=RARE, **OF_ONE_COLUMN)


def test_two_of_several_levels_are_compared_as_the_refusal_says():
    random = np.random.default_rng(1)
    arm = random.integers(0, 6, 8000)
    table = {"arm": np.array(list("abcdef"))[arm], "died": np.where(random.random(8000) < 0.2 + 0.1 * arm, "yes", "no")}
    asked = {"x": "arm", "y": "died", "epsilon": 4.0}
    levels = {"arm": list("abcdef"), "died": ["no", "yes"]}
    with pytest.raises(ValueError, match=r"arm has 6 levels .* --missing drop .* --force .* linear-regression"):
        jaxdp.test(table, levels=levels, method="logistic-regression", **asked)
    pair = {"levels": levels | {"arm": ["a", "f"]}, "missing": "drop", "force": True}
    found = jaxdp.test(table, method="logistic-regression", **pair, **asked, key=key())
    assert found.content["n"] == np.sum((arm == 0) | (arm == 5))
    assert "arm = f against a" in found.content["effect_is"]
    every = jaxdp.test(table, levels=levels, method="linear-regression", **asked, key=key())
    assert every.content["effect_rows"] == [f"arm = {level} against a" for level in "bcdef"]
