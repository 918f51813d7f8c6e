"""docs/deploy.md: the officer's questions name sections of the points above them, and together leave none out."""

import re
from pathlib import Path

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
