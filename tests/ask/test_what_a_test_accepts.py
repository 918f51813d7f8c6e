"""What a test says that it accepts it takes: no query is refused by the shape of arrays that nobody gave."""

import itertools

import pytest

from jaxdp import catalogue
from jaxdp.ask.independence import Query
from jaxdp.data.schema import Schema

KINDS = {
    "number": {"kind": "continuous", "bounds": [-4, 4]},
    "binary": {"kind": "binary", "levels": ["no", "yes"]},
    "ordinal": {"kind": "ordinal", "levels": [1, 2, 3, 4]},
    "nominal": {"kind": "categorical", "levels": ["p", "q", "r"]},
}
GIVEN = ((), ("number",), ("nominal",), ("number", "number"), ("binary", "number"), ("number",) * 3)
SCHEMA = Schema.from_dict({"columns": {f"{role}_{kind}": rule for role in "xyabc" for kind, rule in KINDS.items()}})
ROWS = 4000
# what a query cannot give: settings of Python, public group sizes, several columns
ELSEWHERE = (" needs ", "would find dependence where there is none")


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(catalogue.entries()))
def test_columns_that_a_test_accepts_are_not_refused_when_it_is_built(name):
    entry = catalogue.entries()[name]
    asked = 0
    for x, y, given in itertools.product(KINDS, KINDS, GIVEN):
        columns = {
            "x": [f"x_{x}"],
            "y": [f"y_{y}"],
            "given": [f"{role}_{kind}" for role, kind in zip("abc", given, strict=False)],
        }
        try:
            query = Query.of(SCHEMA, epsilon=1.0, method=name, **columns)
        except ValueError as error:
            assert "shape" not in str(error)
            continue
        asked += 1
        try:
            query._needs_all(ROWS)
        except ValueError as error:
            assert any(words in str(error) for words in ELSEWHERE), f"{columns}: {error}"
    assert asked or entry.spec.of_times
