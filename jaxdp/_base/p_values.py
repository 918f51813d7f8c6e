"""A p-value as it is told: never 0, and with a word where it is the smallest that its test can give."""

from __future__ import annotations

from typing import Any

SMALLEST = 1e-300  # told in the place of anything below: no computation in float64 is exact further out


def floored(p_value: float) -> float:
    """The p-value, or 1e-300 for anything below it, which floats can round to 0. NaN stays."""
    return SMALLEST if p_value < SMALLEST else p_value


def describe(p_value: float, smallest: float | None = None, digits: int = 3) -> str:
    """`p = 0.0123`, `p < 1e-300`, or `p = 0.001, the smallest this test can give`. smallest: see `smallest_of`."""
    if p_value <= SMALLEST:
        return f"p < {SMALLEST:g}"
    least = ", the smallest this test can give" if at_smallest(p_value, smallest) else ""
    return f"p = {p_value:.{digits}g}{least}"


def number(p_value: float, digits: int = 3) -> str:
    """The same without the `p =`, for tables."""
    return f"<{SMALLEST:g}" if p_value <= SMALLEST else f"{p_value:.{digits}g}"


def smallest_of(test: Any, p_value: float) -> float | None:
    """1/(1 + m), if the p-value is the one that a rank among the `num_null` = m draws of the test cannot fall below.

    Else None: nothing is said of tests that draw nothing, nor of those whose law of this release is a formula.
    """
    if test.num_null is None:
        return None
    smallest = 1.0 / (1.0 + test.num_null)
    return smallest if at_smallest(p_value, smallest) else None


def at_smallest(p_value: float, smallest: float | None) -> bool:
    """Whether the p-value is the smallest, but for the rounding of a float32."""
    return smallest is not None and abs(p_value - smallest) <= 1e-6 * smallest
