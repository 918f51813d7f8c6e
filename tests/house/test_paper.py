"""The draft of the paper: its sections, its references, and every figure in it stands on a page of the repository."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import site_pages  # noqa: E402

FOLDER = ROOT / "docs" / "paper"
HEAD, BODY = re.fullmatch(r"---\n(.*?)\n---\n(.*)", (FOLDER / "paper.md").read_text(encoding="utf-8"), re.S).groups()
CLAIMS = tomllib.loads((FOLDER / "claims.toml").read_text(encoding="utf-8"))["claim"]
SECTIONS = [
    "Summary",
    "Statement of need",
    "State of the field",
    "Software design",
    "Research impact statement",
    "AI usage disclosure",
    "Acknowledgements",
    "References",
]


def flat(text):
    return " ".join(text.split())


def unsupported(body, claims):
    """Decimals of a text that no claim holds."""
    for claim in claims:
        body = body.replace(claim, "")
    return re.findall(r"(?<![\w.])\d+\.\d+", body)


def test_it_has_the_sections_and_the_length_that_the_journal_asks_for():
    assert re.findall(r"^# (.*)$", BODY, re.M) == SECTIONS
    assert 750 <= len(BODY.split()) <= 1750


def test_every_reference_is_cited_and_every_citation_is_there():
    entries = re.findall(r"^@\w+\{(\w+),$", (FOLDER / "paper.bib").read_text(encoding="utf-8"), re.M)
    assert len(entries) == len(set(entries)) > 10
    assert set(re.findall(r"@(\w+)", BODY)) == set(entries)


def test_its_pictures_are_those_of_the_documentation():
    pictures = re.findall(r"!\[[^]]*\\label\{(\w+)\}\]\((\S+)\)", BODY)
    assert len(pictures) == BODY.count("![") == 2
    for label, path in pictures:
        assert (FOLDER / path).is_file()
        assert f"\\autoref{{{label}}}" in BODY


@pytest.mark.parametrize("claim", CLAIMS, ids=[claim["paper"][:40] for claim in CLAIMS])
def test_a_figure_of_the_paper_stands_on_its_page(claim):
    page = (ROOT / claim["page"]).read_text(encoding="utf-8")
    page = flat(site_pages.MARKER.sub(lambda found: site_pages.MAKERS[found[1]](), page))
    assert claim["paper"] in flat(BODY), f"the paper does not say {claim['paper']!r}"
    for shown in claim["shown"]:
        assert shown in page, f"{claim['page']} does not show {shown!r}: what does the paper have to say now?"


def test_no_decimal_is_without_a_page():
    assert not unsupported(flat(BODY), [claim["paper"] for claim in CLAIMS])


def test_the_check_sees_a_decimal_without_a_page():
    assert unsupported("found in 0.25 of 40, and 0.5 of those", ["0.5 of those"]) == ["0.25"]


def test_what_only_authors_can_state_is_left_open():
    """Red when they fill it in: then this test goes, and with it the rows of docs/paper/index.md."""
    assert re.search(r"^authors: \[\]", HEAD, re.M)
    left_open = re.findall(r"^# (.*)\n\n(?:[^#]*?)Left open|(?<=: )left open, for", BODY, re.M)
    assert len(left_open) == 3
