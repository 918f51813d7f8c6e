"""What a test says that it accepts it takes: no query is refused by the shape of arrays that nobody gave."""

import functools
import itertools

import pytest

from jaxdp import catalogue
from jaxdp.ask.independence import Query
from jaxdp.data.schema import Schema

KINDS = {
    "number": {"kind": "continuous", "bounds": [-4, 4]},
    "count": {"kind": "continuous", "bounds": [0, 9]},
    "binary": {"kind": "binary", "levels": ["no", "yes"]},
    "ordinal": {"kind": "ordinal", "levels": [1, 2, 3, 4]},
    "nominal": {"kind": "categorical", "levels": ["p", "q", "r"]},
}
GIVEN = ((), ("number",), ("nominal",), ("number", "number"), ("binary", "number"), ("number",) * 3)
SCHEMA = Schema.from_dict({"columns": {f"{role}_{kind}": rule for role in "xyabc" for kind, rule in KINDS.items()}})
ROWS = 100_000
# what a query cannot give: settings of Python, public group sizes, several columns
ELSEWHERE = (" needs ", "would find dependence where there is none")


def refused(call) -> tuple[str, object]:
    """Why a call is refused, and what it gives where it is not."""
    try:
        return "", call()
    except ValueError as error:
        return str(error), None


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(catalogue.entries()))
def test_columns_that_a_test_accepts_are_not_refused_when_it_is_built(name):
    asked, one_column = 0, catalogue.entries()[name].spec.one_column
    for x, y, given in itertools.product(KINDS, KINDS if one_column is None else [""], GIVEN):
        columns = {
            "x": [f"x_{x}"],
            "y": [f"y_{y}"] if y else [],
            "given": [f"{role}_{kind}" for role, kind in zip("abc", given, strict=False)],
        }
        why, query = refused(functools.partial(Query.of, SCHEMA, epsilon=1.0, method=name, **columns))
        assert "shape" not in why
        if why:
            continue
        asked += 1
        why, _ = refused(functools.partial(query._needs_all, ROWS))
        assert not why or any(words in why for words in ELSEWHERE), f"{columns}: {why}"
    assert asked or catalogue.entries()[name].spec.of_times
