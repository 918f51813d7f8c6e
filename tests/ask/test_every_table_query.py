"""Every query of a table has an example in tests/queries.py, which its command and its Python call both ask.

Its answer follows from what was released: of two tables with the same release it is the same.
"""

import argparse
import contextlib
import dataclasses
import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import queries

import jaxdp
from jaxdp import core
from jaxdp._base.keywords import declared
from jaxdp._base.pytree import frozen_pytree
from jaxdp.ask.describe import Description
from jaxdp.ask.reading import Table
from jaxdp.ask.table_answer import TableAnswer
from jaxdp.ask.table_query import ColumnsQuery, TableQuery
from jaxdp.cli import asking
from jaxdp.cli.main import main
from jaxdp.noise.recorder import Tape
from jaxdp.randomness.keys import RecordedKey


class Met(Exception):
    """The query was asked."""


def test_every_query_of_a_table_has_an_example():
    found = queries.defined(TableQuery)
    missing = sorted(kind.__name__ for kind in found - {asked.query for asked in queries.EVERY.values()})
    assert len(found) >= 7
    assert not missing, (
        f"no guard of privacy looks at {missing}: add an Asked(...) for each to EVERY in tests/queries.py, with its "
        "command line and its Python call on the table of that file"
    )


@pytest.mark.parametrize("name", queries.EVERY)
def test_the_command_and_the_call_ask_that_query(name, tmp_path, monkeypatch):
    asked, met = queries.EVERY[name], []

    def ask(query, *_, **__):
        met.append(type(query))
        raise Met

    monkeypatch.setattr(asked.query, "ask", ask)
    words = ["--out", str(tmp_path / "out")] if asked.in_a_folder else []
    assert main([*asked.command(tmp_path), "--seed", "1", *words]) == 1  # a fault, which the query's is here
    with pytest.raises(Met):
        asked.ask(tmp_path)
    assert met == [asked.query, asked.query]


def numbers(asked):
    """The options of the query that are read as anything but a text."""
    return [name for name, (_, said) in declared(asked.query.keywords).items() if reads_a_number(said)]


def reads_a_number(said):
    for text in ("1", "0.5"):
        with contextlib.suppress(argparse.ArgumentTypeError):
            return bool(said.help and said.metavar) and isinstance(said.read(text), int | float)
    return False


@pytest.mark.parametrize(
    ("name", "keyword"), [(name, one) for name, asked in queries.EVERY.items() for one in numbers(asked)]
)
def test_a_wrong_type_is_told_with_the_name_of_the_keyword(name, keyword, tmp_path):
    """The command reads its options from a text and refuses others; a caller of Python gives what he likes."""
    with pytest.raises((TypeError, ValueError), match=rf"\b{keyword}\b") as told:
        queries.EVERY[name].ask(tmp_path, **{keyword: ["no number"]}, key=jax.random.key(0))
    assert "not supported between" not in str(told.value), f"{keyword} has no type of numbers in jaxdp/ask/calls.py"


@pytest.mark.parametrize("name", queries.EVERY)
def test_the_call_is_exported_and_charged(name):
    """So that the guards of every exported call see it too."""
    call = queries.EVERY[name].call
    exported = [getattr(jaxdp, one) for one in jaxdp.exported_names()]
    assert any(call is one for one in exported), f"add {call.__name__} to _EXPORTS in jaxdp/__init__.py"
    assert {"epsilon", "ledger", "key"} <= set(inspect.signature(call).parameters)


@frozen_pytree
class Ones(core.PrivateQuery):
    """How many records have code 1, in floats of whatever precision is set."""

    default_mechanism = jaxdp.Laplace

    def statistic(self, key, data):
        return 1.0 * jnp.sum(jnp.asarray(data) == 1)

    def sensitivity(self, num_records):
        return core.Sensitivity(1.0, core.Norm.L1, core.Relation.REPLACE_ONE, lower=0.0, upper=1.0 * num_records)


@dataclasses.dataclass(frozen=True)
class OnesQuery(ColumnsQuery):
    """A query of columns that does no more than CONTRIBUTING asks of one."""

    form = Description
    name = "ones"
    short = "ones of a"

    schema: jaxdp.Schema
    names: tuple
    epsilon: float
    delta: float = 0.0

    def answer(self, data, key, account, on_stage, **more):
        self.require_rows(len(data[0]))
        return self.released(Ones(**self.noise()), data[0], key, account)


def test_a_query_of_columns_releases_in_float64_by_itself(tmp_path):
    """The rehearsal before a charge computed in float32 and was refused."""
    ledger, table = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=3.0), Table.of(queries.table(), queries.SCHEMA)
    released = OnesQuery(table.schema, ("a",), 1.0).ask(table, jaxdp.fresh_key(), ledger)
    assert ledger.spent.epsilon == released.cost.epsilon == 1.0
    assert released.value.dtype == np.float64
    assert not jax.config.jax_enable_x64


def test_what_a_query_paid_for_is_handed_over_on_a_drafted_schema_too(tmp_path):
    """Somebody's query may return what is no answer of a table, to which no draft can be added."""
    released = {"epsilon": 0.5, "columns": 1, "method": "stability-histogram", "draft": "0a1b2c3d"}
    column = {"kind": "categorical", "levels": ["x", "y"], "released": released}
    rows = {"a": np.array(["x", "y"] * 50, object)}
    ledger, table = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=3.0), Table.of(rows, {"columns": {"a": column}})
    found = OnesQuery(table.schema, ("a",), 1.0).ask(table, jaxdp.fresh_key(), ledger)
    assert ledger.spent.epsilon == found.cost.epsilon == 1.0


def shown(answer, folder):
    """Everything that leaves with an answer: its fields, its screen, its files."""
    if isinstance(answer, TableAnswer):
        asking.write(answer, folder, {}, lambda stage: None)
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    return {"fields": queries.plain(answer), "screen": str(answer).splitlines(), "files": files}


def require_that_it_follows_from_the_release(asked, folder):
    """Asks of two tables, of which the second gets what was drawn for the first, and compares all that is shown."""
    found, tape = [], Tape()
    for redrawn in (0, 1):
        out = folder / f"out{redrawn}"
        out.mkdir()
        answer = asked.ask(folder, redrawn, key=RecordedKey(jax.random.key(0), tape))
        found.append((shown(answer, out), tape.calls))
        tape = Tape(outputs=[call.output for call in tape.calls])
    (first, calls), (second, again) = found
    assert calls
    assert len(calls) == len(again), "another table, and the same release, is followed by other releases"
    assert repr(queries.plain([call.value for call in calls])) != repr(queries.plain([call.value for call in again])), (
        "no other table"
    )
    for part, said in first.items():
        assert said == second[part], (
            f"with the same release, the {part} of the answer depend on the records: let them follow from what "
            "core.release, core.run or the search returns, and from nothing else that was read"
        )


@pytest.mark.parametrize("name", queries.EVERY)
def test_an_answer_follows_from_what_was_released(name, tmp_path):
    require_that_it_follows_from_the_release(queries.EVERY[name], tmp_path)


def test_an_answer_that_holds_a_statistic_without_noise_is_found(tmp_path, monkeypatch):
    released = ColumnsQuery.released

    def leaking(asked, query, values, key, account):
        exact = core.exact_statistic(query, key, values)
        return dataclasses.replace(released(asked, query, values, key, account), value=exact)

    monkeypatch.setattr(ColumnsQuery, "released", leaking)
    with pytest.raises(AssertionError, match="depend on the records"):
        require_that_it_follows_from_the_release(queries.EVERY["describe"], tmp_path)
