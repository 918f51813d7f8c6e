"""A page tells its result in words, from result.json alone."""

import json

import pytest

from jaxdp.ask.answer import verdict
from jaxdp.cli.main import main
from jaxdp.data.schema import Schema
from jaxdp.report.sections import DOUBTS, FLAGS, narrative, waterfall

RESULT = {
    "title": "Is a independent of b given c?",
    "answer": "Dependence found at level 0.05 (p = 0.001).",
    "method": "band-gcm",
    "effect": 0.31,
    "interval": [0.2, 0.42],
    "effect_is": "partial correlation",
    "sees": "covariance of X and Y given Z",
    "epsilon": 1.0,
    "delta": 0.0,
    "relation": "replace_one",
    "mode": "release",
    "n": 1000,
    "level_rule": {"sentence": "Level holds if Z is smooth.", "flags": ["few records"]},
    "command": "jaxdp test d.csv --x a --y b",
    "budget": {"left": "epsilon=4", "granted": "epsilon=5", "ledger": "l.db"},
}


def told(**changes):
    return {heading: " ".join(sentences) for heading, sentences in narrative({**RESULT, **changes})}


def test_a_flag_about_the_level_is_a_doubt_about_a_found_dependence():
    flagged = verdict(True, 0.001, 0.05, flags=("low power", "curvature", "coarse cells", "cells"))
    doubt = "unless X and Y bend sharply with Z or X and Y vary with Z within a cell"
    assert flagged == f"Dependence found at level 0.05 (p = 0.001), {doubt}."
    assert verdict(True, 0.001, 0.05, flags=("low power",)) == "Dependence found at level 0.05 (p = 0.001)."
    assert verdict(False, 0.4, 0.05, flags=("curvature",)) == "No dependence found at level 0.05 (p = 0.4)."


def test_every_level_flag_has_its_words():
    about_power = {"low power", "narrow column"}
    assert set(DOUBTS) == set(FLAGS) - about_power


def test_every_part_is_told():
    parts = told()
    assert parts["What was asked"] == "Is a independent of b given c? The test used 1000 records."
    assert parts["How strong it is"].startswith("0.31, 95 % interval 0.2 to 0.42: partial correlation. ")
    assert parts["What this test can see"] == "band-gcm sees covariance of X and Y given Z."
    assert parts["What the answer rests on"] == "Level holds if Z is smooth. Take care: few records."
    assert parts["What it cost"] == "epsilon = 1. epsilon=4 is left of epsilon=5 in the ledger l.db."
    assert "exp(1) = 2.72 times" in parts["What is protected"]
    assert "jaxdp test d.csv" in parts["How to run it again"]


def test_one_sentence_for_assumption_and_rule_is_told_once():
    rests = told(assumption="Level holds if Z is smooth.")["What the answer rests on"]
    assert rests.count("Level holds if Z is smooth.") == 1


def test_several_records_of_a_person_are_told():
    assert "k records in the file is protected at k times this epsilon only" in told()["What is protected"]
    assert "A person with k records" in told(unit=Schema({}, missing="drop").protects)["What is protected"]
    whole = told(unit="All rows of one patient are protected.")["What is protected"]
    assert "k times" not in whole
    assert "All rows of one patient" in whole


def test_what_can_be_guessed_of_one_record_is_told():
    guess = "Someone who knows every other record, and considers two versions of one record equally likely, identifies"
    protected = told()["What is protected"]
    assert f"{guess} the right one in up to 73.2 of 100 cases after seeing what is published here" in protected
    public = told(relation="replace_attribute")["What is protected"]
    assert "two files that differ in what one record says in columns that are not public, both accepted" in public
    assert "exp(1) = 2.72 times as likely" in public
    assert "k records in the file is protected at k times this epsilon only" in public
    assert "up to 73.2 of 100" not in told(delta=0.1)["What is protected"]
    assert "which agree in its public columns" in told(relation="replace_attribute")["What is protected"]
    assert "the presence and the absence" in told(relation="add_or_remove_one")["What is protected"]
    for unknown in ({"relation": "other"}, {"epsilon": "inf"}):
        assert "Someone who knows" not in told(**unknown)["What is protected"]


def test_the_budget_is_told_in_the_order_in_which_it_is_spent():
    budget = {**RESULT["budget"], "epsilon_left": 4.0, "epsilon_granted": 7.0}
    assert waterfall({**RESULT, "budget": budget}) == [("before", 2.0), ("this answer", 1.0), ("left", 4.0)]
    for unknown in (RESULT, {**RESULT, "budget": None}, {**RESULT, "budget": {**budget, "epsilon_granted": "inf"}}):
        assert waterfall(unknown) == []


def test_what_is_not_known_is_not_said():
    bare = {"title": "t", "answer": "yes", "epsilon": 2.0, "mode": "release", "relation": "other"}
    parts = {heading: " ".join(sentences) for heading, sentences in narrative(bare)}
    assert set(parts) == {"What was asked", "What it cost", "What is protected"}
    assert "exp(" not in parts["What is protected"]
    assert narrative({"rows": [1, 2]}) == []


def test_a_plan_claims_no_file_and_no_cost():
    checked = {"replicates": 500, "power": 0.81, "power_interval": [0.77, 0.84], "level": 0.04}
    plan = {"title": "How many records?", "answer": "447", "n": 447, "epsilon": 1.0, "effect": 0.25, "effect_is": "sds"}
    ((heading, sentences),) = narrative({**plan, "engine": "formula", "level": 0.05, "simulated": checked})
    told = " ".join(sentences)
    assert heading == "What this plan rests on"
    assert "nothing was spent" in told
    assert "Computed by a formula" in told
    assert "0.810 of the first (95 % interval 0.770 to 0.840), and 0.040 of the second" in told
    assert "The file" not in told


def test_several_tests_are_told_each_with_what_it_sees():
    sees = "quantile-table: any dependence of two columns; partition-gcm: covariance of X and Y given Z"
    assert told(method="quantile-table and partition-gcm", sees=sees)["What this test can see"] == f"{sees}."
    assert told(sees="spread: any")["What this test can see"] == "band-gcm sees spread: any."


def test_a_simulation_promises_nothing():
    parts = told(mode="simulation")
    assert "What is protected" not in parts
    assert "not private" in parts["What it cost"]


def test_a_null_result_says_what_it_does_not_show():
    assert "does not show that there is none" in told(dependence_found=False)["What this test can see"]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The page of a small test with a long file name."""
    folder = tmp_path_factory.mktemp("page")
    data, schema = folder / f"{'a_long_name_' * 6}.csv", folder / "s.toml"
    data.write_text("a,b\n" + "".join(f"{i % 2},{(i // 2) % 2}\n" for i in range(200)))
    kind = 'kind = "binary"\nlevels = ["0", "1"]\n'
    schema.write_text(f"[columns.a]\n{kind}[columns.b]\n{kind}")
    command = ["test", data, "--schema", schema, "--x", "a", "--y", "b", "--epsilon", "1", "--out", folder / "out"]
    assert main(list(map(str, command))) == 0
    return folder / "out" / "report.html"


@pytest.mark.full
def test_the_command_and_the_missing_ledger_are_on_the_page(page):
    text = page.read_text()
    assert "jaxdp test" in text
    assert "No ledger recorded" in text
    content = json.loads((page.parent / "result.json").read_text())
    assert content["command"].startswith("jaxdp test ")
    assert content["budget"] is None
