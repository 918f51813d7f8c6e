"""Answers about columns whose bounds or levels were drafted privately say so, and what the drafts cost."""

import dataclasses
import json
import re

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp.cli.main import main
from jaxdp.data import private_drafts
from jaxdp.data.schema import Schema
from jaxdp.report import sections

PAID = {"epsilon": 0.5, "columns": 3, "method": "quartiles", "delta": 1e-6, "draft": "0a1b2c3d"}
LEVELS = {"kind": "categorical", "levels": ["x", "y", "(other)"], "other": "(other)"}
COLUMNS = {
    "a": {"kind": "continuous", "bounds": [-3, 3], "released": PAID},
    "b": {"kind": "continuous", "bounds": [-3, 3]},
    "g": LEVELS | {"released": PAID | {"method": "stability-histogram", "least": 54}},
    "h": LEVELS,
}
FOUND = "were found by a private draft, which cost epsilon = 0.5, delta = 1e-06 for 3 columns together"
ASKED = {  # how each kind of question is asked, and the drafted columns among those that it reads
    "test": (lambda rows, **how: jaxdp.test(rows, x="b", y="h", given="g", **how), ["g"]),
    "pairs": (lambda rows, **how: jaxdp.test_pairs(rows, columns=["a", "b", "g"], **how), ["a", "g"]),
    "describe": (lambda rows, **how: jaxdp.describe(rows, columns=["a", "h"], **how), ["a"]),
    "mic": (lambda rows, **how: jaxdp.mic(rows, x="a", y="b", **how), ["a"]),
}


def table(size=600):
    rng = np.random.default_rng(3)
    numbers = {name: rng.normal(size=size) for name in "ab"}
    return numbers | {name: rng.choice(["x", "y"], size).astype(object) for name in "gh"}


@pytest.mark.parametrize("kind", ASKED)
def test_each_kind_of_answer_names_the_draft_and_its_cost(kind):
    """In its content, on its screen and on its page, with a guess for both together; without a draft, nothing."""
    ask, names = ASKED[kind]
    found = ask(table(), schema={"columns": COLUMNS}, epsilon=1.0)
    (draft,) = found.content["drafted"]
    assert draft == {"columns": names, "columns_of_draft": 3, "epsilon": 0.5, "delta": 1e-6}
    assert found.content["with_drafts"] == {"epsilon": 1.5, "delta": found.content.get("delta", 0.0) + 1e-6}
    told = dict(sections.narrative(found.to_dict()))
    assert any(f"{', '.join(names)} {FOUND}" in one for one in told[sections.COST])
    assert FOUND in re.sub(r"\s+", " ", str(found))
    protected = " ".join(told[sections.PROTECTED])
    assert "up to 73.2 of 100 cases after" in protected
    assert "with the private draft, epsilon = 1.5, delta = 1e-06 in all, in up to 81.8." in protected
    assert f"the schema (but for what was released of {', '.join(names)}) and the settings" in protected
    public = {name: {key: value for key, value in own.items() if key != "released"} for name, own in COLUMNS.items()}
    plain = ask(table(), schema={"columns": public}, epsilon=1.0)
    assert not {"drafted", "with_drafts"} & plain.content.keys()
    assert "draft" not in str(sections.narrative(plain.to_dict()))
    assert "the number of records, the schema and the settings" in str(sections.narrative(plain.to_dict()))


def test_a_graph_names_the_draft():
    found = jaxdp.discover(table(), columns=["a", "b", "g"], schema={"columns": COLUMNS}, epsilon=1.0)
    assert f"a, g {FOUND}" in found.note


@pytest.mark.parametrize("command", ["test", "discover"])
def test_the_page_and_the_result_of_a_command_name_the_draft_without_a_ledger(command, tmp_path):
    rows = table()
    lines = ["a,b,g,h", *(",".join(map(str, row)) for row in zip(*(rows[name] for name in "abgh"), strict=True))]
    (tmp_path / "d.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "s.json").write_text(json.dumps({"columns": COLUMNS}))
    words = {"test": ["--x", "a", "--y", "b"], "discover": ["--columns", "a,b"]}[command]
    asked = [command, str(tmp_path / "d.csv"), "--schema", str(tmp_path / "s.json"), *words, "--epsilon", "1"]
    assert main([*asked, "--out", str(tmp_path / "out")]) == 0
    assert json.loads((tmp_path / "out" / "result.json").read_text())["drafted"][0]["columns"] == ["a"]
    page = (tmp_path / "out" / "report.html").read_text()
    assert f"a {FOUND}" in page
    assert page.count("the schema (but for what was released of a) and the settings") == 2  # of it, and of all pages
    assert "the schema and the settings" not in page


def test_drafts_that_do_not_add_up_are_not_added():
    """Of another unit or with other neighbours than the answer; one with a seed is no cost."""
    told = [{"columns": ["a"], "columns_of_draft": 1, "epsilon": 0.5, "delta": 0.0}]
    content = {"epsilon": 1.0, "relation": "replace_one", "mode": "release"}
    assert private_drafts.counted_in(content, told, "")["with_drafts"] == {"epsilon": 1.5, "delta": 0.0}
    tenths = [told[0] | {"epsilon": 0.1}, told[0] | {"epsilon": 0.2 - 1e-15}]  # as shares are rounded down
    assert private_drafts.counted_in(content, tenths, "")["with_drafts"]["epsilon"] == 1.3
    assert private_drafts.counted_in(content, [told[0] | {"epsilon": 1e-7 / 3}], "")["with_drafts"]["epsilon"] > 1.0
    assert "with_drafts" not in private_drafts.counted_in(content, told, "patient")
    joins = content | {"relation": "add_or_remove_one"}
    assert "with_drafts" not in private_drafts.counted_in(joins, told, "")
    sentences = sections.narrative({"answer": "", **joins, **private_drafts.counted_in(joins, told, "")})
    assert "adds to it, by an amount that is not known here" in str(sentences)
    seeded = [told[0] | {"simulated": True}]
    assert "with_drafts" not in private_drafts.counted_in(content, seeded, "")
    assert "with a seed, which is not private" in sections.describe_drafts({"drafted": seeded})[0]


def test_columns_of_two_drafts_count_twice_and_those_of_one_once():
    other = PAID | {"draft": "99999999"}
    known = {"columns": COLUMNS | {"b": COLUMNS["b"] | {"released": other}}}
    found = private_drafts.described(Schema.from_dict(known).rules, "abgh")
    assert [draft["columns"] for draft in found] == [["a", "g"], ["b"]]
    names = {
        jaxdp.draft_schema(table(), columns=["a"], epsilon=1.0, key=jax.random.key(seed)).columns["a"]["released"][
            "draft"
        ]
        for seed in range(2)
    }
    assert len(names) == 2


@pytest.mark.parametrize(
    "released", ["by hand", {"method": "quartiles"}, PAID | {"epsilon": -1}, PAID | {"delta": "x"}]
)
def test_a_draft_without_its_cost_is_refused(released):
    with pytest.raises(ValueError, match=r"column 'a': released must hold what was paid.*copy it from the draft"):
        Schema.from_dict({"columns": {"a": COLUMNS["a"] | {"released": released}}})


def test_a_draft_stands_for_its_schema_wherever_a_schema_does():
    """`schema=found` as `schema=found.schema`; a draft without bounds names the column and the way out."""
    found = jaxdp.draft_schema(table(), columns=["a", "b"], epsilon=5.0)
    same = {name: {**entry, "bounds": [-3, 3]} for name, entry in found.columns.items()}  # in every run: kept programs
    drafted = dataclasses.replace(found, columns=same)
    how = {"schema": drafted, "epsilon": 1.0}
    asked = {"x": "a", "y": "b"}
    for schema in (drafted, drafted.schema):
        assert jaxdp.test(table(), **asked, **how | {"schema": schema}).content["with_drafts"]["epsilon"] == 6.0
    assert jaxdp.test_pairs(table(), **how).content["columns"] == ["a", "b"]
    assert jaxdp.discover(table(), **how).names == ("a", "b")
    assert jaxdp.mic(table(), **asked, **how).names == ("a", "b")
    assert jaxdp.describe(table(), **how).content["drafted"]
    assert jaxdp.plan(n=1000, epsilon=1.0, power=0.8, schema=drafted, method="partition-gcm", **asked)
    session = jaxdp.Session(table(), schema=drafted, epsilon=1.0)
    assert session.test(**asked, epsilon=0.5).content["drafted"]
    empty = jaxdp.draft_schema({"a": np.zeros(600)}, columns=["a"], epsilon=5.0, key=jax.random.key(0))
    with pytest.raises(ValueError, match=r"column 'a': .*; write bounds from public knowledge"):
        jaxdp.test(table(), **asked, **how | {"schema": empty})
    with pytest.raises(TypeError, match=r"or what jaxdp\.draft_schema returns, got int"):
        jaxdp.test(table(), **asked, **how | {"schema": 3})
