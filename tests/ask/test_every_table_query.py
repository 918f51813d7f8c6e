"""Every query of a table has an example in tests/queries.py, which its command and its Python call both ask."""

import argparse
import contextlib
import inspect

import jax
import pytest
import queries

import jaxdp
from jaxdp._base.keywords import declared
from jaxdp.ask.table_query import TableQuery
from jaxdp.cli.main import main


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
