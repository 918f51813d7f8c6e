"""The table of docs/epsilon.md is what its formulas give."""

import math
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "epsilon.md"


def after(prior: float, epsilon: float) -> float:
    """What a suspicion of this probability becomes at most."""
    odds = prior / (1.0 - prior) * math.exp(epsilon)
    return odds / (1.0 + odds)


def test_the_table_is_what_its_formulas_give():
    rows = re.findall(r"^\| ([\d.]+) \| ([\d.]+) \|(.*)\|$", PAGE.read_text(encoding="utf-8"), flags=re.M)
    assert [float(row[0]) for row in rows] == [0.1, 0.5, 1, 2, 3, 5, 10]
    for text, odds, rest in rows:
        epsilon = float(text)
        assert odds == (f"{math.exp(epsilon):.3g}" if epsilon < 10 else f"{math.exp(epsilon):.0f}")
        told = [after(0.5, epsilon), after(0.1, epsilon), after(0.01, epsilon), after(0.5, 4 * epsilon)]
        assert [cell.strip() for cell in rest.split("|")] == [f"{number:.3f}" for number in told]
