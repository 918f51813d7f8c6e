"""Pure laws for noise of private scale: Cauchy and Student t with an odd number of degrees.

Their tails are heavy enough for every probability in the table to be many units of 2^-64, so that rounding costs next
to nothing in epsilon. Proof and symbols: docs/theory/smooth_sensitivity.md.
"""

import dataclasses
import decimal
import functools
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from jaxdp._base.rounding import as_decimal
from jaxdp.noise.certificate import dyadic_above
from jaxdp.noise.smooth.ladder import BITS, FIXED, context, half_steps, rungs_per_decay, smallest_atom

NODES = 256
_SHRINK = (30, 24, 18, 12)


@dataclasses.dataclass(frozen=True)
class CauchyLaw:
    """Cauchy noise: the privacy loss is the hyperbolic distance of the two laws (section 2)."""

    epsilon: Fraction
    decay: Fraction
    name: str = "cauchy"

    def widths(self) -> Iterator[Fraction]:
        """Smallest w with cosh(epsilon) >= max(1 + 1/(2 w^2), cosh(decay) + exp(-decay)/(2 w^2)), rounded up."""
        for shrink in _SHRINK:
            with context():
                wanted, beta = _cosh(as_decimal(self.epsilon * (1 - Fraction(1, 2**shrink)))), as_decimal(self.decay)
                square = min(2 * (wanted - 1), 2 * beta.exp() * (wanted - _cosh(beta)))
                if square > 0:
                    yield dyadic_above(Fraction(1 / square.sqrt()))

    def row(self, scale: decimal.Decimal, entries: int) -> np.ndarray:
        """(2/pi) arctan((i + 1/2)/scale)."""
        return _units(arctan(half_steps(scale, entries)))

    def spent(self, width: Fraction, table: np.ndarray) -> tuple[Fraction, Fraction] | None:
        """Arccosh of the maximum above, and rounding."""
        with context():
            square, beta = 1 / as_decimal(width) ** 2, as_decimal(self.decay)
            cosh = max(1 + square / 2, _cosh(beta) + square * (-beta).exp() / 2)
            ideal = Fraction((cosh + (cosh * cosh - 1).sqrt()).ln()) + Fraction(1, 10**50)
        return _within(ideal + 2 * _error(table), self.epsilon)


@dataclasses.dataclass(frozen=True)
class StudentLaw:
    """Student t noise with nu = `degrees` degrees of freedom, odd (section 3)."""

    epsilon: Fraction
    decay: Fraction
    degrees: int
    name: str = "student"

    def widths(self) -> Iterator[Fraction]:
        """Smallest w with (nu + 1)/(2 sqrt(nu) w) + nu decay within the budget, rounded up; the loss is less."""
        for shrink in _SHRINK:
            left = self.epsilon * (1 - Fraction(1, 2**shrink)) - self.degrees * self.decay
            if left > 0:
                with context():
                    degrees = decimal.Decimal(self.degrees)
                    yield dyadic_above(Fraction((degrees + 1) / (2 * degrees.sqrt()) / as_decimal(left)))

    def row(self, scale: decimal.Decimal, entries: int) -> np.ndarray:
        """(2/pi)(arctan y + y c (1 + 2/3 c + (2 4)/(3 5) c^2 + ...)), y = x/sqrt(nu), c = 1/(1 + y^2)."""
        with context():
            y = half_steps(scale * decimal.Decimal(self.degrees).sqrt(), entries)
        one = 1 << FIXED
        cosine = (one << FIXED) // (one + (y * y >> FIXED))
        total = np.zeros_like(y)
        for k in range((self.degrees - 3) // 2, -1, -1):
            # Horner: each factor is (2k + 2)/(2k + 3)
            total = one + (total * cosine >> FIXED) * (2 * k + 2) // (2 * k + 3)
        return _units(arctan(y) + ((y * cosine >> FIXED) * total >> FIXED))

    def spent(self, width: Fraction, table: np.ndarray) -> tuple[Fraction, Fraction] | None:
        """The largest loss over the ratios of scales on the ladder, each at its largest shift, and rounding."""
        split = rungs_per_decay(float(self.decay))
        with context():
            ratios = [(as_decimal(self.decay / split) * k).exp() for k in range(-split, split + 1)]
            ideal = max(self.loss(min(decimal.Decimal(1), r) / as_decimal(width), r) for r in ratios)
        return _within(Fraction(ideal) + Fraction(1, 10**50) + 2 * _error(table), self.epsilon)

    def loss(self, shift: decimal.Decimal, ratio: decimal.Decimal) -> decimal.Decimal:
        """max |log p/q|, q moved by `shift` > 0 and `ratio` times as wide: at the roots of a quadratic."""
        degrees, square = decimal.Decimal(self.degrees), shift * shift
        middle = degrees * (1 - ratio**2) - square
        root = (middle * middle + 4 * degrees * square).sqrt()
        # the stable one first, the other from their product, -degrees
        outer = -(middle + root * (1 if middle >= 0 else -1)) / (2 * shift)

        def tails(x):
            return (1 + x * x / degrees).ln() * (degrees + 1) / 2

        return max(abs(ratio.ln() + tails((x - shift) / ratio) - tails(x)) for x in (outer, -degrees / outer))


def _within(spent: Fraction, epsilon: Fraction) -> tuple[Fraction, Fraction] | None:
    return (spent, Fraction(0)) if spent <= epsilon else None


def _error(table: np.ndarray) -> Fraction:
    """Bound on |log(probability / ideal)| of every output: thresholds are within one unit, atoms within two."""
    smallest = smallest_atom(table)
    if smallest <= 2**16:
        raise ValueError("the public range is too wide for noise of this width; give a narrower range.")
    return Fraction(3, smallest - 3)


def _cosh(value: decimal.Decimal) -> decimal.Decimal:
    return (value.exp() + (-value).exp()) / 2


def _units(angles: np.ndarray) -> np.ndarray:
    """Angles (fixed-point) over pi/2, in units of 2^-64."""
    return np.minimum((angles << BITS + 1) // _arctan_nodes()[1], 2**BITS - 1).astype(np.uint64)


def arctan(values: np.ndarray) -> np.ndarray:
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
            term, power = Fraction(math.floor(term * value * value * 2 ** (FIXED + 40)), 2 ** (FIXED + 40)), power + 2
        return total

    pi = 4 * (4 * series(Fraction(1, 5)) - series(Fraction(1, 239)))
    angles = []
    for c in range(NODES + 1):
        x = Fraction(c, NODES)
        small = x <= Fraction(1, 2)
        angle = series(x) if small else pi / 4 - series((1 - x) / (1 + x))
        angles.append(math.floor(angle * 2**FIXED))
    return np.array(angles, dtype=object), math.floor(pi * 2**FIXED)
