"""Parts of a budget as people read them: what is spent is never rounded down, what is left never up."""

import decimal
import math
import re
from collections.abc import Mapping
from typing import Any

NAMES = re.compile(r"(.*_)?(epsilon|delta|rho)|claimed")  # of what is spent, asked or claimed, in tables
EXACT = 1e-12  # relative; sums of shares differ from the whole by less: 1 - 2^-48 is read as 1


def spent(value: Any, digits: int = 6) -> str:
    """An amount that is spent, asked or claimed, with so many significant digits, never below the value."""
    return _rounded(float(value), digits, decimal.ROUND_CEILING)


def left(value: Any, digits: int = 6) -> str:
    """An amount that is left or granted, never above the value."""
    return _rounded(float(value), digits, decimal.ROUND_FLOOR)


def is_cost(name: str) -> bool:
    """Whether the column or the key of this name holds what is spent, asked or claimed."""
    return NAMES.fullmatch(name) is not None


def cost(content: Mapping[str, Any], *, every: bool = False) -> str:
    """The cost in the content of an answer: "epsilon = 1", and a delta where there is one, or with `every` always."""
    delta = f", delta = {spent(content.get('delta') or 0.0)}" if every or content.get("delta") else ""
    return f"epsilon = {spent(content['epsilon'])}{delta}"


def _rounded(value: float, digits: int, rounding: str) -> str:
    nearest = f"{value:.{digits}g}"
    if not math.isfinite(value) or abs(float(nearest) - value) <= EXACT * abs(value):
        return nearest
    return f"{float(decimal.Context(prec=digits, rounding=rounding).create_decimal_from_float(value)):.{digits}g}"
