"""A keyword that is declared is an argument in Python, with its default, and an option of the command."""

import argparse
import inspect
import os
import sys
from typing import Annotated, Any

import pytest
import queries

from jaxdp._base import arguments
from jaxdp._base.keywords import Keyword, complete, declared, flat
from jaxdp.ask import calls
from jaxdp.cli import asking, options
from jaxdp.cli.main import build_parser


class NewOptions(calls.DescribeOptions, total=False):
    """A call with two keywords more, one of them for Python alone."""

    bins: Annotated[int, Keyword("B", arguments.count, 8), "bins of a column"]
    law: Any


def read(*words, call=NewOptions, required=True):
    parser = argparse.ArgumentParser(exit_on_error=False)
    asking.add_keywords(parser, call, required=required)
    return parser.parse_args(words)


def test_a_new_keyword_is_an_option():
    given = asking.given(read("--columns", "a,b", "--epsilon", "1", "--bins", "3", "--strict"), NewOptions)
    assert given == {"columns": ["a", "b"], "epsilon": 1.0, "bins": 3}  # a way of reading belongs to the table
    assert asking.given(read("--epsilon", "1"), NewOptions) == {"epsilon": 1.0}
    assert asking.given(read(required=False), NewOptions) == {}
    for wrong in (["--law", "1", "--epsilon", "1"], ["--epsilon", "1", "--bins", "0"], ["--bins", "3"]):
        with pytest.raises((argparse.ArgumentError, SystemExit)):
            read(*wrong)


def test_a_new_keyword_has_its_default_in_python():
    @flat(NewOptions)
    def call(table, **how):
        return complete(NewOptions, how)

    shown = inspect.signature(call).parameters
    assert list(shown)[:3] == ["table", "bins", "law"]
    assert (shown["bins"].default, shown["law"].default) == (8, None)
    assert shown["epsilon"].default is inspect.Parameter.empty
    found = call({}, epsilon=1.0, law="known")
    assert (found["bins"], found["law"], found["delta"], found["strict"]) == (8, "known", 0.0, False)
    passed_on = call({}, epsilon=1.0, strict=None)  # by a wrapper whose own argument is None
    assert passed_on["strict"] is False
    with pytest.raises(TypeError, match="no keyword 'bin'; did you mean 'bins'"):
        call({}, epsilon=1.0, bin=3)
    with pytest.raises(TypeError, match="epsilon is missing"):
        call({}, bins=3)


@pytest.mark.parametrize("name", queries.EVERY)
def test_a_command_has_an_option_for_each_keyword_with_a_help(name):
    asked = queries.EVERY[name]
    words = asked.words.split() if asked.of_a_table else ["gwas"]
    parser = build_parser()
    for word in words[: 2 if words[0] == "schema" else 1]:
        (commands,) = (action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction))
        parser = commands[word]
    known = {option: action for action in parser._actions for option in action.option_strings}
    for keyword, (_, said) in declared(asked.query.keywords).items():
        if said.help:
            assert known[asking.option(keyword, said)].help == said.help
    assert asked.query.ways == tuple(way for way in calls.READING if asking.option(way, Keyword()) in known)


def one_kind(**given):
    known = dict.fromkeys([*declared(calls.TestOptions), *declared(calls.PairsOptions)])
    return argparse.Namespace(**{**known, "all_pairs": False, **given})


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"x": ["a"], "y": ["b"], "delta": 0.1}, "--delta goes with --all-pairs"),
        ({"x": ["a"], "y": ["b"], "columns": ["c"]}, "--columns goes with --all-pairs"),
        ({"all_pairs": True, "margin": 1.0}, "--margin goes with --x and --y"),
        ({"all_pairs": True, "x": ["a"]}, "not both"),
        ({"x": ["a"]}, "give --x A and --y B, or --all-pairs"),
    ],
)
def test_an_option_of_the_other_call_is_refused(given, told):
    with pytest.raises(options.UserError, match=told):
        asking.require_one_kind(one_kind(**given), calls.TestOptions, calls.PairsOptions)


def test_what_belongs_to_the_call_is_not_refused():
    asking.require_one_kind(one_kind(x=["a"], y=["b"], margin=1.0), calls.TestOptions, calls.PairsOptions)
    asking.require_one_kind(one_kind(x=["a"], method="goodness-of-fit"), calls.TestOptions, calls.PairsOptions)
    asking.require_one_kind(one_kind(all_pairs=True, delta=0.1, columns=["c"]), calls.TestOptions, calls.PairsOptions)


@pytest.mark.parametrize(("own", "given", "wanted"), [(True, None, "cpu"), (True, "cuda", "cuda"), (False, None, None)])
def test_a_command_runs_on_the_cpu_unless_a_platform_is_named(monkeypatch, own, given, wanted):
    monkeypatch.delitem(sys.modules, "jax")  # whose platform the tests need
    monkeypatch.setenv("JAX_PLATFORMS", given or "")
    if given is None:
        monkeypatch.delenv("JAX_PLATFORMS")
    options.prefer_cpu(argparse.Namespace(own_process=own))
    assert os.environ.get("JAX_PLATFORMS") == wanted
