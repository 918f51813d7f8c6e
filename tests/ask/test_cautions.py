"""Every kind of answer has the same cautions, on the command line and in Python, from one place."""

import json

import jax
import numpy as np
import pandas as pd
import pytest
import queries
from test_gwas_cli import files as fileset

import jaxdp
from jaxdp.ask.cautions import NO_LEDGER, cautions
from jaxdp.ask.reading import Reading
from jaxdp.cli.main import main
from jaxdp.privacy import Cost
from jaxdp.report import sections

ROWS = 40  # few
COLUMNS = ["a", "b", "c"]
QUICK, SLOW = ("all mic", "describe", "discover"), ("test", "mic", "pairs", "pair by pair", "gwas")
KINDS = (*QUICK, *(pytest.param(kind, marks=pytest.mark.full) for kind in SLOW))


def table():
    rng = np.random.default_rng(0)
    return {name: rng.integers(0, 2, ROWS).astype(float) for name in COLUMNS}


def known(kind):
    return {"schema": {"columns": {name: {"kind": "binary", "levels": [0, 1]} for name in COLUMNS}}}


CALLS = {
    "test": lambda **how: jaxdp.test(table(), x="a", y="b", **how),
    "pairs": lambda **how: jaxdp.test_pairs(table(), **how),
    "pair by pair": lambda **how: jaxdp.test_pairs(table(), method="projected-chi2", **how),
    "mic": lambda **how: jaxdp.mic(table(), x="a", y="b", **_numbers(how)),
    "all mic": lambda **how: jaxdp.mic(table(), **_numbers(how)),
    "describe": lambda **how: jaxdp.describe(table(), **how),
    "discover": lambda **how: jaxdp.discover(table(), **how),
}
COMMANDS = {
    "test": ["test", "--x", "a", "--y", "b"],
    "pairs": ["test", "--all-pairs"],
    "pair by pair": ["test", "--all-pairs", "--method", "projected-chi2"],
    "mic": ["mic", "--x", "a", "--y", "b"],
    "all mic": ["mic", "--all-pairs"],
    "describe": ["describe"],
    "discover": ["discover"],
}


def _numbers(how):
    return how | {"schema": {"columns": {name: {"kind": "continuous", "bounds": [-1, 2]} for name in COLUMNS}}}


def _of_any(content):
    """The cautions of every answer; a release of variants may say first that its noise hides the covariate."""
    found = list(content["cautions"])
    return found[1:] if "num_variants" in content and "age hardly varies" in found[0] else found


def call(kind, folder, **how):
    if kind != "gwas":
        return CALLS[kind](**({"schema": None} | known(kind) | how))
    _, prefix, *_ = fileset(folder, ROWS)
    return jaxdp.gwas(prefix, covariates=folder / "study.cov", names=["age"], bounds={"age": (18, 90)}, count=1, **how)


def command(kind, folder):
    if kind == "gwas":
        return [*fileset(folder, ROWS), "--count", "1"]
    pd.DataFrame(table()).to_csv(folder / "d.csv", index=False)
    schema = known(kind)["schema"] if "mic" not in kind else _numbers({})["schema"]
    (folder / "s.json").write_text(json.dumps(schema))
    name, *rest = COMMANDS[kind]
    return [name, str(folder / "d.csv"), "--schema", str(folder / "s.json"), *rest]


@pytest.mark.parametrize("kind", KINDS)
def test_python_says_few_records_much_epsilon_and_no_ledger(kind, tmp_path):
    found = call(kind, tmp_path, epsilon=9.0)
    expected = cautions(ROWS, Cost(epsilon=9.0), "release", recorded=False)
    assert len(expected) == 3
    shown = " ".join(repr(found).split())
    assert all(sentence in shown for sentence in expected)
    assert _of_any(found.to_dict()) == expected


def test_queries_of_a_search_are_counted():
    asked = {"title": "", "answer": "", "epsilon": 1.0, "mode": "release", "method": "table_pc"}
    told = [sections.screen({**asked, "num_tests": number}, []) for number in (1, 2)]
    assert [one for one in told if "table_pc, 1 query\n" in one + "\n"] == told[:1]
    assert "table_pc, 2 queries" in told[1]


@pytest.mark.full
@pytest.mark.parametrize("name", [name for name, asked in queries.EVERY.items() if asked.in_a_folder])
def test_the_answer_of_every_query_has_them(name, tmp_path):
    found = queries.EVERY[name].ask(tmp_path, epsilon=9.0)
    expected = cautions(queries.ROWS, Cost(epsilon=9.0), "release", recorded=False)
    assert len(expected) >= 2
    assert _of_any(found.to_dict()) == expected
    assert all(sentence in " ".join(repr(found).split()) for sentence in expected)


@pytest.mark.parametrize("kind", QUICK)
def test_a_ledger_and_a_simulation_need_no_sentence_about_ledgers(kind, tmp_path):
    expected = cautions(ROWS, Cost(epsilon=9.0), "release", recorded=False)
    recorded = call(kind, tmp_path, epsilon=9.0, ledger=jaxdp.Ledger.create(tmp_path / "l.db", epsilon=9.0))
    assert list(recorded.to_dict()["cautions"]) == expected[:2]
    assert NO_LEDGER not in " ".join(repr(recorded).split())
    simulated = call(kind, tmp_path, epsilon=9.0, key=jax.random.key(0))
    assert list(simulated.to_dict()["cautions"]) == expected[:1]


@pytest.mark.parametrize("kind", KINDS)
def test_the_command_says_the_same(kind, tmp_path, capsys):
    out = tmp_path / "out"
    assert main([*command(kind, tmp_path), "--epsilon", "9", "--out", str(out)]) == 0
    expected = cautions(ROWS, Cost(epsilon=9.0), "release", recorded=False)
    shown, page = (" ".join(text.split()) for text in (capsys.readouterr().out, (out / "report.html").read_text()))
    assert all(sentence in shown for sentence in expected)
    assert shown.count(NO_LEDGER) == 1
    assert "No ledger recorded this spending" in page
    assert _of_any(json.loads((out / "result.json").read_text())) == expected


def test_an_ordinary_answer_has_no_cautions():
    assert cautions(500, Cost(epsilon=1.0), "release", recorded=True) == []


@pytest.mark.parametrize(("epsilon", "told"), [(6.0, "in up to 99.8 of 100"), (8.0, "in more than 99.9 of 100")])
def test_no_guess_is_called_certain_at_a_finite_epsilon(epsilon, told):
    found = cautions(1000, Cost(epsilon=epsilon), "release", recorded=True)
    assert told in " ".join(found)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"strict": True, "records": 60}, "Lines that the file lacks of the 60 records asked for, and lines and cells"),
        ({"strict": True}, "Lines and cells that do not parse count as empty cells"),
        ({"force": True}, "Lines and cells that do not parse count as empty cells"),
        ({"records": ROWS}, None),
    ],
)
def test_an_answer_says_what_was_taken_for_empty_cells_where_nothing_is_refused(how, said, tmp_path):
    """Whether any did: nobody is told, so the sentence depends on the way of reading alone."""
    path = tmp_path / "t.csv"
    pd.DataFrame(table()).to_csv(path, index=False)
    how = {"epsilon": 1.0, **how, **known("test")}
    first = jaxdp.test(path, x="a", y="b", key=jax.random.key(0), **how)
    for answer in (first, jaxdp.discover(path, key=jax.random.key(1), **how)):
        cautions = answer.to_dict().get("cautions", [])
        assert any(text.startswith(said or "Lines") for text in cautions) is bool(said)


@pytest.mark.parametrize(("delta", "warned"), [(1e-6, False), (9.9e-4, False), (1e-3, True), (0.3, True)])
def test_a_delta_of_one_record_or_more_is_cautioned_about(delta, warned):
    found = cautions(1000, Cost(epsilon=1.0, delta=delta), "release", recorded=True)
    assert bool(found) is warned
    assert all("one in 1000 records or more" in sentence for sentence in found)


@pytest.mark.parametrize("name", ["strict", "force"])
@pytest.mark.parametrize("value", ["no", 1, None])
def test_a_switch_of_reading_is_true_or_false(name, value):
    with pytest.raises(TypeError, match=f"{name} must be True or False"):
        Reading(**{name: value})


def test_a_ledger_that_spent_much_in_all_is_cautioned_about_beside_the_answer(tmp_path):
    """Two answers of epsilon 3 are 6 about the same records; each by itself is below the border."""
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=20)
    told = []
    for _ in range(2):
        answer = jaxdp.test(table(), x="a", y="b", epsilon=3.0, ledger=ledger, **known("test"))
        told.append([text for text in answer.content["cautions"] if "in all, which protects little" in text])
    assert told[0] == []
    assert len(told[1]) == 1
    assert "The ledger has spent epsilon 6 in all" in told[1][0]
    assert "in up to 99.8 of 100 cases" in told[1][0]


def test_a_page_with_a_delta_says_that_it_is_added():
    """Not that all holds but for a probability of delta: under normal noise odds pass exp(epsilon) more often."""
    content = {"mode": "release", "relation": "replace_one", "epsilon": 1.0}
    first, *_ = sections._told_protected({**content, "delta": 1e-6})
    assert first.endswith("times as likely for the one as for the other, plus delta.")
    first, *_ = sections._told_protected(content)
    assert first.endswith("times as likely for the one as for the other.")
