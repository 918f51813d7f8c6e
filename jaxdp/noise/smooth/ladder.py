"""Noise whose scale is private: exact tables, one row per rung of a public ladder of scales.

Proof: docs/theory/smooth_sensitivity.md. Symbols there: g = `step`, beta = `decay`, h = beta/`split` (distance of two
rungs on the log scale), w = width of the noise per unit of sensitivity, A = sensitivity in steps plus one.
"""

import dataclasses
import decimal
import functools
import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Protocol

import numpy as np

from jaxdp._base.rounding import as_decimal
from jaxdp.noise.certificate import Certificate, dyadic_above, floor_log2

RESOLUTION = 11  # bits of the lattice below the public range
FINEST = 0.1  # rungs are at most this far apart, so that rounding the scale up costs 10 % at most
MIN_DECAY = 2.0**-11
MAX_TABLE = 1 << 22
BITS = 64
FIXED = 112  # bits of fixed-point numbers


class SmoothLaw(Protocol):
    """An exact noise law Z with the budget that it must keep. decay: of the ladder, just above the sensitivity's."""

    @property
    def name(self) -> str: ...

    @property
    def decay(self) -> Fraction: ...

    def widths(self) -> Iterable[Fraction]:
        """Candidates for w, growing."""
        ...

    def row(self, scale: decimal.Decimal, entries: int) -> np.ndarray:
        """P(|Z| <= (i + 1/2)/scale), i < entries, in units of 2^-64, within one unit; uint64 (entries,)."""
        ...

    def spent(self, width: Fraction, table: np.ndarray) -> tuple[Fraction, Fraction] | None:
        """(epsilon, delta) of the tabulated law at this width; None if above the budget."""
        ...


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
def ladder(law: SmoothLaw, exponent: int, low: int, high: int) -> Ladder:
    """Certificate and table for outputs on low..high steps.

    Errors: ValueError where no certificate holds or the table would be too large, before it is computed.
    """
    if law.decay < MIN_DECAY:
        raise ValueError(f"smoothness {float(law.decay):.3g} is too small for a release; give at least {MIN_DECAY}.")
    entries = high - low
    rung = law.decay / rungs_per_decay(float(law.decay))
    rungs = math.ceil(Fraction(math.log(entries + 2)) / rung) + 2
    if rungs * entries > MAX_TABLE:
        raise ValueError(
            f"{law.name.capitalize()} noise at smoothness={float(law.decay):.3g} needs a table of "
            f"{rungs * entries * 8 >> 20} MiB; give a larger smoothness=, or use SmoothCauchy."
        )
    for width in law.widths():
        table = _table(law, width, rung, rungs, entries)
        spent = law.spent(width, table)
        if spent is not None:
            epsilon, delta = map(dyadic_above, spent) if spent[1] else (dyadic_above(spent[0]), Fraction(0))
            rho = None if delta else epsilon**2 / 2
            facts = Certificate(
                f"smooth_{law.name}", Fraction(2) ** exponent, width, Fraction(1), epsilon, rho, low, high, delta=delta
            )
            return Ladder(facts, float(rung), table)
    raise ValueError(f"no certificate holds for {law.name} noise at this budget; give a smaller smoothness=.")


def _table(law: SmoothLaw, width: Fraction, rung: Fraction, rungs: int, entries: int) -> np.ndarray:
    rows = []
    with context():
        for j in range(rungs):
            rows.append(law.row(as_decimal(width) * (as_decimal(rung) * j).exp(), entries))
    return np.stack(rows)


def half_steps(scale: decimal.Decimal, entries: int) -> np.ndarray:
    """(i + 1/2)/scale, i < entries, as fixed-point numbers (object array of integers in units of 2^-112)."""
    slope = int(decimal.Decimal(2) ** (2 * FIXED) / (2 * scale))
    return np.arange(1, 2 * entries, 2).astype(object) * slope >> FIXED


def context(digits: int = 120):
    """Decimal arithmetic of so many digits, without overflow."""
    return decimal.localcontext(decimal.Context(prec=digits, Emin=-999999, Emax=999999))


def smallest_atom(table: np.ndarray) -> int:
    """The least probable value of |noise| over all rungs, in units of 2^-64."""
    return min(int(np.min(np.diff(table, axis=1))), int(np.min(table[:, 0])), 2**BITS - int(np.max(table)))
