"""Epsilon as people read it is never below what was spent: on screens and pages, in tables and lines of ledgers."""

import ast
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

import jaxdp
from jaxdp._base import amounts, display
from jaxdp.ask.coefficients import Coefficients
from jaxdp.ask.pair_answers import PairAnswers
from jaxdp.cli import ledger as ledgers
from jaxdp.cli import simulate
from jaxdp.core import Cost
from jaxdp.report.html import _bar, _csv_table, value_table
from jaxdp.report.sections import narrative, screen

ROOT = Path(__file__).parents[2]
SPENT, SHOWN = 0.70000004, "0.700001"  # six digits, to the nearest: 0.7
COSTS = ("epsilon", "whole", "budget")


def rounded(path):
    """Expressions of costs that an f-string rounds by itself, with their lines."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FormattedValue) and node.format_spec is not None:
            text, spec = ast.unparse(node.value), ast.unparse(node.format_spec).strip("f'\"")
            costly = re.search(rf"(?<![A-Z]){'|'.join(COSTS)}", text)
            if costly and spec[-1:] in ("g", "f", "e") and not text.startswith(("spent(", "left(", "amounts.")):
                yield f"{path.relative_to(ROOT)}:{node.lineno}: {text}:{spec}"


def test_no_string_of_the_package_rounds_a_cost_by_itself():
    found = [line for path in sorted((ROOT / "jaxdp").rglob("*.py")) for line in rounded(path)]
    advice = "a cost is shown by amounts.spent or amounts.left; another number, computed first, has a name of its own:"
    assert not found, "\n".join([advice, *found])


@pytest.mark.parametrize("text", ["row.epsilon", "content['epsilon']", "total_epsilon", "whole"])
def test_the_guard_finds_a_cost(text, tmp_path, monkeypatch):
    monkeypatch.setattr("test_costs_are_not_rounded_down.ROOT", tmp_path)
    path = tmp_path / "planted.py"
    path.write_text(f'a = f"{{{text}:.6g}}"\n')
    assert len(list(rounded(path))) == 1


@pytest.mark.parametrize("value", [SPENT, 1.0, 1 - 2.0**-48, 1e-6, 999.9999, 0.3333333333333333, 123456.7, 5e-324])
@pytest.mark.parametrize("digits", [3, 4, 6])
def test_what_is_spent_is_rounded_up_and_what_is_left_down(value, digits):
    assert float(amounts.spent(value, digits)) >= value * (1 - 1e-12)
    assert float(amounts.left(value, digits)) <= value * (1 + 1e-12)
    assert float(amounts.spent(value, digits)) <= value * (1 + 10.0 ** (1 - digits)) or value < 1e-300


COMMON = {
    "title": "T", "answer": "A.", "epsilon": SPENT, "delta": 0.0, "relation": "replace_one", "mode": "release", "n": 99,
    "method": "m", "built": {}, "statistic": 1.0, "p_value": 0.5, "sees": "", "public_columns": [], "level_rule": None,
    "effect": None, "interval": None, "effect_is": "", "cells": [], "conditioned_on": "", "assumption": "", "unit": "",
    "cautions": [], "noise_sd": 0.1, "power": "", "num_tests": 1, "complete": True,
    "adjusted_by": "holm", "columns": [],
}  # fmt: skip


def pairs():
    return PairAnswers([], COMMON, Cost(epsilon=SPENT), "release", "m")


def coefficients():
    return Coefficients(("a", "b"), [], None, Cost(epsilon=SPENT), "release", "m", COMMON)


PLACES = {
    "screen": lambda folder: screen(COMMON),
    "all pairs": lambda folder: repr(pairs()),
    "coefficients": lambda folder: repr(coefficients()),
    "coefficients in a notebook": lambda folder: coefficients()._repr_html_().replace(repr(SPENT), SHOWN),
    "page": lambda folder: str(narrative(COMMON)),
    "values of a page": lambda folder: value_table({"epsilon": SPENT}),
    "bar of a page": lambda folder: _bar([("before", 0.0), ("this answer", SPENT), ("left", 0.0)]),
    "table of a page": lambda folder: _csv_table(f"a,epsilon\n1,{SPENT}\n".encode()).replace("0.7001", SHOWN),
    "value of a title": lambda folder: display.as_text("T", {"epsilon": SPENT}),
    "ledger": lambda folder: _ledger(folder),
    "row of a simulation": lambda folder: simulate.summary([_row()], folder, 1.0),
}


def _ledger(folder):
    ledger = jaxdp.Ledger.create(folder / "l.db", epsilon=2.0)
    ledger.charge("m", Cost(epsilon=SPENT), jaxdp.fresh_key())
    return ledgers._line(ledger.rows()[0])


def _row():
    setting = {"method": "m", "design": "d", "n": 9, "epsilon": SPENT, "effect": 0.0}
    return SimpleNamespace(identity=setting, rate=0.1, interval=(0.0, 0.2), replicates=9, complete=True, failures=0)


@pytest.mark.parametrize("place", PLACES)
def test_a_place_shows_no_less_than_was_spent(place, tmp_path):
    text = PLACES[place](tmp_path)
    assert SHOWN in text
    assert "0.7 " not in text.replace(",", " ").replace("<", " ")
