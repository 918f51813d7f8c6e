"""The rule that docs/which_test.md states in six lines is the one by which the catalogue takes a test."""

import re
from pathlib import Path

import pytest

from jaxdp import catalogue
from jaxdp.data.schema import Schema

PAGE = (Path(__file__).parents[2] / "docs" / "which_test.md").read_text(encoding="utf-8")
COLUMNS = {
    "number": {"kind": "continuous", "bounds": [0, 1]},
    "other": {"kind": "continuous", "bounds": [0, 1]},
    "third": {"kind": "continuous", "bounds": [0, 1]},
    "fourth": {"kind": "continuous", "bounds": [0, 1]},
    "grade": {"kind": "ordinal", "levels": [0, 1, 2]},
    "answer": {"kind": "binary", "levels": [0, 1]},
    "site": {"kind": "categorical", "levels": [0, 1, 2]},
}
CASES = [
    (1, "number", "grade", ["third", "fourth"]),
    (2, "number", "answer", ["third"]),
    (2, "grade", "answer", ["third", "site"]),
    (3, "grade", "answer", ["site"]),
    (4, "number", "other", []),
    (4, "number", "answer", []),
    (4, "grade", "answer", []),
    (4, "site", "answer", []),
    (3, "number", "other", ["site"]),
    (3, "number", "answer", ["grade", "site"]),
    (5, "site", "answer", ["grade"]),
    (6, "site", "other", ["grade"]),
]


@pytest.mark.parametrize(("line", "x", "y", "given"), CASES)
def test_the_stated_rule_is_the_rule(line, x, y, given):
    from jaxdp.ask.independence import Query

    stated = re.search(rf"^{line}\. .*: `([a-z-]+)`[;.]$", PAGE, re.M)
    query = Query.of(Schema.from_dict({"columns": COLUMNS}), x=x, y=y, given=given, epsilon=1.0)
    assert query.entry == catalogue.find(stated[1])
