"""Exact arithmetic on privacy parameters: fractions in, floats out, rounded to the safe side.

A float is read as the shortest decimal that names it: 0.1 means one tenth. So ten tenths are one,
and what a user typed is what is counted.
"""

import math
from decimal import Decimal
from fractions import Fraction


def as_fraction(value) -> Fraction:
    """The exact number that a finite int, float, Fraction or scalar array stands for."""
    if isinstance(value, int | Fraction):
        return Fraction(value)
    return Fraction(repr(float(value)))


def as_decimal(value: Fraction) -> Decimal:
    """The fraction, rounded to the digits of the decimal context."""
    return Decimal(value.numerator) / Decimal(value.denominator)


def round_up(value: Fraction) -> float:
    """The smallest float that is read as no less than the value."""
    nearest = float(value)
    return nearest if as_fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def round_down(value: Fraction) -> float:
    """The largest float that is read as no more than the value."""
    nearest = float(value)
    return nearest if as_fraction(nearest) <= value else math.nextafter(nearest, -math.inf)
