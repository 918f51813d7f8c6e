"""Cauchy noise whose scale is private: exact tables, one row per rung of a public ladder of scales.

Proof: docs/proofs/smooth_sensitivity.md. Symbols there: g = `step`, beta = `decay`, h = beta/`split` (distance of two
rungs on the log scale), w = width of the noise per unit of sensitivity, A = sensitivity in steps plus one.
"""

import dataclasses
import decimal
import functools
import math
from fractions import Fraction

import numpy as np

from jaxdp.noise.certificate import Certificate, dyadic_above, floor_log2

RESOLUTION = 11  # bits of the lattice below the public range
FINEST = 0.1  # rungs are at most this far apart, so that rounding the scale up costs 10 % at most
SMALLEST_DECAY = 2.0**-11
LARGEST_TABLE = 1 << 22
BITS = 64
FIXED = 112  # bits of the fixed-point arctangents
NODES = 256
_SHRINK = (30, 24, 18, 12)


@dataclasses.dataclass(frozen=True, eq=False)
class Ladder:
    """Public: certificate, distance h of two rungs, and thresholds uint64 (rungs, entries) of |noise|."""

    facts: Certificate
    rung: float
    table: np.ndarray


def rungs_per_decay(decay: float) -> int:
    """How many rungs the scale may climb between neighbours."""
    return max(1, math.ceil(decay / FINEST))


def step_exponent(lower: Fraction, upper: Fraction) -> int:
    """g = 2^exponent: between 2^11 and 2^12 steps in the public range, whose width is rounded as `smooth_grid` does."""
    return floor_log2(Fraction(float(upper) - float(lower))) - RESOLUTION


@functools.lru_cache(maxsize=8)
def ladder(epsilon: Fraction, decay: Fraction, exponent: int, low: int, high: int) -> Ladder:
    """Certificate and table for outputs on low..high steps. decay: of the ladder, a little above the sensitivity's.

    Errors: ValueError where no certificate holds or the table would be too large, before it is computed.
    """
    if decay < SMALLEST_DECAY:
        raise ValueError(f"smoothness {float(decay):.3g} is too small for a release; give at least {SMALLEST_DECAY}.")
    split, entries = rungs_per_decay(float(decay)), high - low
    rung = decay / split
    rungs = math.ceil(Fraction(math.log(entries + 2)) / rung) + 2
    if rungs * entries > LARGEST_TABLE:
        raise ValueError(
            f"Cauchy noise at epsilon={float(epsilon):.3g}, smoothness={float(decay):.3g} needs a table of "
            f"{rungs * entries * 8 >> 20} MiB; give a larger smoothness= (half of epsilon, say)."
        )
    for shrink in _SHRINK:
        width = _width(epsilon * (1 - Fraction(1, 2**shrink)), decay)
        if width is None:
            continue
        table = _table(width, rung, rungs, entries)
        spent = _loss(width, decay) + 2 * _error(table)
        if spent <= epsilon:
            spent = dyadic_above(spent)
            facts = Certificate(
                "smooth_cauchy", Fraction(2) ** exponent, width, Fraction(1), spent, spent**2 / 2, low, high
            )
            return Ladder(facts, float(rung), table)
    raise ValueError(f"no certificate holds at epsilon={float(epsilon):.3g}; give a smaller smoothness=.")


def _context():
    return decimal.localcontext(decimal.Context(prec=120, Emin=-999999, Emax=999999))


def _decimal(value: Fraction) -> decimal.Decimal:
    return decimal.Decimal(value.numerator) / decimal.Decimal(value.denominator)


def _cosh(value: decimal.Decimal) -> decimal.Decimal:
    return (value.exp() + (-value).exp()) / 2


def _width(epsilon: Fraction, decay: Fraction) -> Fraction | None:
    """Smallest w with cosh(epsilon) >= max(1 + 1/(2 w^2), cosh(decay) + exp(-decay)/(2 w^2)), rounded up."""
    with _context():
        wanted, beta = _cosh(_decimal(epsilon)), _decimal(decay)
        square = min(2 * (wanted - 1), 2 * beta.exp() * (wanted - _cosh(beta)))
        return dyadic_above(Fraction(1 / square.sqrt())) if square > 0 else None


def _loss(width: Fraction, decay: Fraction) -> Fraction:
    """The hyperbolic distance of the worst pair of Cauchy laws, arccosh of the maximum above; rounded up."""
    with _context():
        square, beta = 1 / _decimal(width) ** 2, _decimal(decay)
        cosh = max(1 + square / 2, _cosh(beta) + square * (-beta).exp() / 2)
        return Fraction((cosh + (cosh * cosh - 1).sqrt()).ln()) + Fraction(1, 10**50)


def _error(table: np.ndarray) -> Fraction:
    """Bound on |log(probability / ideal)| of every output: thresholds are within one unit, atoms within two."""
    smallest = min(int(np.min(np.diff(table, axis=1))), int(np.min(table[:, 0])), 2**BITS - int(np.max(table)))
    if smallest <= 2**16:
        raise ValueError("the public range is too wide for Cauchy noise of this width; give a narrower range.")
    return Fraction(3, smallest - 3)


def _table(width: Fraction, rung: Fraction, rungs: int, entries: int) -> np.ndarray:
    """P(|N| <= i) = (2/pi) arctan((i + 1/2)/(w e^(h j))), i < entries, j < rungs, in units of 2^-64."""
    places = np.arange(1, 2 * entries, 2).astype(object)
    rows = []
    pi = _arctan_nodes()[1]
    with _context():
        for j in range(rungs):
            scale = _decimal(width) * (_decimal(rung) * j).exp()
            slope = int(decimal.Decimal(2) ** (2 * FIXED) / (2 * scale))  # of (i + 1/2)/scale per half step
            angles = _arctan(places * slope >> FIXED)
            rows.append(np.minimum((angles << BITS + 1) // pi, 2**BITS - 1).astype(np.uint64))
    return np.stack(rows)


def _arctan(values: np.ndarray) -> np.ndarray:
    """arctan of fixed-point numbers >= 0 (object array of integers in units of 2^-112), within 2^-100."""
    nodes, pi = _arctan_nodes()
    one = 1 << FIXED
    large = values > one
    inside = np.where(large, (one << FIXED) // np.maximum(values, 1), values)
    node = (inside * NODES + (one >> 1)) >> FIXED
    # arctan x = arctan c + arctan((x - c)/(1 + c x)), c = node/256
    rest = ((inside * NODES - node * one) << FIXED) // (one * NODES + node * inside)
    square = rest * rest >> FIXED
    series = one // 11
    for power in (9, 7, 5, 3, 1):
        series = one // power - (series * square >> FIXED)
    angle = nodes[node.astype(np.int64)] + (series * rest >> FIXED)
    return np.where(large, pi // 2 - angle, angle)


@functools.cache
def _arctan_nodes() -> tuple[np.ndarray, int]:
    """arctan(c/256), c = 0, ..., 256, and pi, in units of 2^-112."""

    def series(value: Fraction) -> Fraction:
        total, term, power = Fraction(0), value, 1
        while abs(term) > Fraction(1, 2 ** (FIXED + 16)):
            total += term / power * (-1 if power % 4 == 3 else 1)
            term, power = _short(term * value * value), power + 2
        return total

    pi = 4 * (4 * series(Fraction(1, 5)) - series(Fraction(1, 239)))
    angles = []
    for c in range(NODES + 1):
        x = Fraction(c, NODES)
        small = x <= Fraction(1, 2)
        angle = series(x) if small else pi / 4 - series((1 - x) / (1 + x))
        angles.append(math.floor(angle * 2**FIXED))
    return np.array(angles, dtype=object), math.floor(pi * 2**FIXED)


def _short(value: Fraction) -> Fraction:
    return Fraction(math.floor(value * 2 ** (FIXED + 40)), 2 ** (FIXED + 40))
