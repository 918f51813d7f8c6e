"""The querier for Lomas, against a stand-in: its server pins an older jax, so that both are in no lock file.

(Tried by hand with lomas-server 0.4.1: `handle_query` charges its budgets, and its models take query and result.)
"""

import sys
import types

import numpy as np
import pytest

from jaxdp import interop

N = 400
BOUNDED = types.SimpleNamespace(type="float", lower=0.0, upper=1.0)
COLUMNS = {
    "dose": BOUNDED,
    "response": BOUNDED,
    "sex": types.SimpleNamespace(type="string", categories=["f", "m"]),
    "ill": types.SimpleNamespace(type="boolean"),
    "note": types.SimpleNamespace(type="string"),
}


class InvalidQueryException(Exception):
    pass


class Model:
    """What pydantic's BaseModel does here: fields by keyword, defaults of the class."""

    def __init__(self, **fields):
        self.given = []
        self.__dict__ |= fields


class DPQuerier:
    def __init__(self, data_connector, admin_database):
        self.data_connector, self.admin_database = data_connector, admin_database


def field(default=None, **rules):
    return default if default is not ... else None


@pytest.fixture
def lomas(monkeypatch):
    made = {
        "pydantic": {"BaseModel": Model, "Field": field},
        "lomas_core.error_handler": {"InvalidQueryException": InvalidQueryException},
        "lomas_core.models.requests": {"QueryModel": Model},
        "lomas_server.dp_queries.dp_querier": {"DPQuerier": DPQuerier},
    }
    for name, held in made.items():
        parts = name.split(".")
        for end in range(1, len(parts) + 1):
            monkeypatch.setitem(sys.modules, ".".join(parts[:end]), types.ModuleType(parts[end - 1]))
        vars(sys.modules[name]).update(held)
    return interop.lomas_querier()


@pytest.fixture
def querier(lomas):
    import pandas

    def of(max_ids=1, row_privacy=False):
        numbers = np.random.default_rng(0).uniform(size=(N, 2))
        frame = pandas.DataFrame({"dose": numbers[:, 0], "response": numbers[:, 0]})
        frame["sex"], frame["ill"], frame["note"] = np.where(numbers[:, 1] < 0.5, "f", "m"), numbers[:, 1] < 0.5, "x"
        metadata = types.SimpleNamespace(columns=COLUMNS, max_ids=max_ids, rows=N, row_privacy=row_privacy)
        connector = types.SimpleNamespace(get_metadata=lambda: metadata, get_pandas_df=lambda: frame)
        return lomas(connector, None)

    return of


def test_an_answer_is_by_the_metadata_and_costs_what_was_asked(lomas, querier):
    asked = lomas.Query(x=["sex"], y=["ill"], epsilon=2.0)
    assert querier().cost(asked) == (2.0, 0.0)
    result = querier().query(asked)
    assert result.content["epsilon"] == 2.0
    assert result.content["n"] == N
    assert result.content["p_value"] < 0.05
    assert result.content["mode"] == "release"
    assert "Dependence found" in result.text


@pytest.mark.full
@pytest.mark.parametrize(("row_privacy", "epsilon"), [(False, 1.0), (True, 4.0)])
def test_the_rows_of_a_person_share_epsilon(lomas, querier, row_privacy, epsilon):
    asked = lomas.Query(x=["dose"], y=["response"], epsilon=4.0)
    found = querier(max_ids=4, row_privacy=row_privacy)
    assert found.cost(asked) == (4.0, 0.0)
    assert found.query(asked).content["epsilon"] == epsilon


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"x": ["dose"], "y": ["note"]}, "must list its categories"),
        ({"x": ["dose"], "y": ["age"]}, "no column 'age'"),
        ({"x": ["dose"], "y": ["response"], "method": "nope"}, "no test called"),
    ],
)
def test_mistakes_of_what_is_asked_are_lomas_own_errors(lomas, querier, asked, told):
    with pytest.raises(InvalidQueryException, match=told):
        querier().query(lomas.Query(epsilon=1.0, **asked))
