"""docs/deploy.md: the officer's questions name sections of the points above them, all of them; its lists."""

import functools
import re
import shlex
from pathlib import Path

import jax
import pytest

from jaxdp import core
from jaxdp.audit import cases
from jaxdp.cli.main import build_parser
from jaxdp.privacy import Relation

PAGE = (Path(__file__).parents[2] / "docs" / "deploy.md").read_text(encoding="utf-8")
POINTS, REST = PAGE.split("## NIST's points")[1].split("## Threat model")
ASKED = REST.split("## Questions of a data-protection officer")[1].split("\n## ")[0]
NOT_OURS = {"3.5 to 3.7"}  # what jaxdp does not do
DETAILS = {"2.5", "3.3.2", "3.3.3"}  # of how results are reported, which 2.1 and 3.2 ask about


def sections(text):
    """Numbers in the first cell of each row of the tables."""
    firsts = re.findall(r"^\| ([^|]*) \|", text, re.M)
    return {number for cell in firsts for number in cell.split(", ") if number not in ("", " ")}


def test_every_row_of_the_officer_names_a_section_or_says_that_it_is_ours():
    rows = [line for line in ASKED.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 15
    assert sections("\n".join(rows)) - {"ours"} <= sections(POINTS)
    assert all(re.match(r"\| (?:ours|[\d., ]+) \| ", row) for row in rows)


def test_every_section_with_a_point_is_asked_about():
    assert sections(POINTS) - sections(ASKED) == NOT_OURS | DETAILS


def test_the_plan_and_the_test_of_the_seven_commands_are_of_one_method():
    lines = re.findall(r"^jaxdp (.*)$", PAGE, re.M)[:7]
    asked = [build_parser().parse_args(shlex.split(line, comments=True)) for line in lines]
    methods = {line.split()[0]: args.method for line, args in zip(lines, asked, strict=True) if hasattr(args, "method")}
    assert methods == {"plan": "noisy-table", "test": "noisy-table"}


def test_every_word_of_the_glossary_is_used_on_the_page():
    text, glossary = PAGE.split("\n## Glossary\n")
    words = [word.strip("` ") for row in re.findall(r"^\| (.+?) \|", glossary, re.M)[1:] for word in row.split(", ")]
    assert len(words) > 25
    assert not [word for word in words if word.split()[-1].lower() not in text.lower()]


@pytest.mark.full
def test_the_page_names_every_test_that_takes_a_column_as_public():
    part = PAGE.split("### Where one column is public")[1].split("###")[0].split("take the group")[0]
    assert set(re.findall(r"`([\w-]+)`", part)) == {
        one.entry.name
        for one in cases.all_examples().values()
        if one.private and relation(one) is Relation.REPLACE_ATTRIBUTE
    }


def relation(one):
    """The neighbours of a release of the example."""
    records = one.settings.records
    shapes = jax.eval_shape(functools.partial(one.searched, n=records), jax.random.key(0))
    return core.cost_of(one.build(1.0, records, one.settings.fields), shapes).relation
