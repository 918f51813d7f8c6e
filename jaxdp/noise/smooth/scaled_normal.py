"""Approximate laws for noise of private scale: Laplace and Gaussian, with their exact delta.

The scale climbs a ladder, so that two neighbours have one of finitely many ratios of scales; for each, the worst shift
is the largest. delta is a maximum over these few pairs. Proof: docs/theory/smooth_sensitivity.md#laplace-and-gaussian.
"""

import dataclasses
import decimal
import functools
from collections.abc import Iterator
from fractions import Fraction
from typing import ClassVar

import numpy as np

from jaxdp._base.rounding import as_decimal
from jaxdp.noise.certificate import dyadic_above
from jaxdp.noise.smooth.ladder import BITS, FIXED, context, half_steps, rungs_per_decay

PRECISION = 60  # decimal digits of a divergence
SLACK = decimal.Decimal(10) ** -30  # covers their rounding
FAR = decimal.Decimal(10) ** 6  # in scales: nothing is left beyond
_GROW = (20, 14, 10, 6)
NODES = 32  # of the normal integral, per unit
LAST_NODE = 10 * NODES  # P(|N| > 9.5) is below 2^-64
TERMS = 12
Decimal = decimal.Decimal


@dataclasses.dataclass(frozen=True)
class _ApproximateLaw:
    """Base. width: w as calibrated in floating point; the certificate takes it a little larger."""

    epsilon: Fraction
    delta: Fraction
    decay: Fraction
    width: Fraction

    name: ClassVar[str]

    def widths(self) -> Iterator[Fraction]:
        for grow in _GROW:
            yield dyadic_above(self.width * (1 + Fraction(1, 2**grow)))

    def spent(self, width: Fraction, table: np.ndarray) -> tuple[Fraction, Fraction] | None:
        """The budget's epsilon, and delta: the largest divergence, and rounding of the table."""
        with context(PRECISION):
            grow = Fraction(as_decimal(self.epsilon).exp()) + Fraction(1, 10**40)
        # thresholds within one unit of 2^-64 (and 2^-20 of it), so a row within (entries + 1) units in total variation
        rounding = Fraction(table.shape[1] + 1, 2**BITS) * (1 + Fraction(1, 2**20))
        delta = self.ideal(width) + (1 + grow) * rounding
        return (self.epsilon, delta) if delta <= self.delta else None

    def ideal(self, width: Fraction) -> Fraction:
        """Largest divergence over the ratios of scales e^(h k), |k| <= rungs per decay, each at its largest shift."""
        split = rungs_per_decay(float(self.decay))
        with context(PRECISION):
            rung, epsilon = as_decimal(self.decay / split), as_decimal(self.epsilon)
            ratios = [(rung * k).exp() for k in range(-split, split + 1)]
            worst = max(self.divergence(min(Decimal(1), r) / as_decimal(width), r, epsilon) for r in ratios)
            return Fraction(max(worst, Decimal(0)) + SLACK)

    @classmethod
    def divergence(cls, shift: Decimal, ratio: Decimal, epsilon: Decimal) -> Decimal:
        """P(E) - e^epsilon Q(E) on E = {p > e^epsilon q}; p standard, q moved by `shift` and `ratio` times as wide."""
        grow = epsilon.exp()
        total = Decimal(0)
        for low, high in cls.favoured(shift, ratio, epsilon):
            inside = cls.below(high) - cls.below(low)
            total += inside - grow * (cls.below((high - shift) / ratio) - cls.below((low - shift) / ratio))
        return total

    @staticmethod
    def favoured(shift: Decimal, ratio: Decimal, epsilon: Decimal) -> list[tuple[Decimal, Decimal]]:
        """The intervals that make up E."""
        raise NotImplementedError

    @staticmethod
    def below(x: Decimal) -> Decimal:
        """P(Z <= x)."""
        raise NotImplementedError


class LaplaceLaw(_ApproximateLaw):
    """Laplace noise, density exp(-|x|)/2."""

    name = "laplace"

    def row(self, scale: Decimal, entries: int) -> np.ndarray:
        """1 - exp(-(i + 1/2)/scale): the exponential of i = 64 a + b is a product of two."""
        one = 1 << FIXED
        with context(PRECISION):
            fine = [int((-(b + Decimal("0.5")) / scale).exp() * one) for b in range(64)]
            coarse = [int((-64 * a / scale).exp() * one) for a in range(-(-entries // 64))]
        tails = np.multiply.outer(np.array(coarse, object), np.array(fine, object)).ravel()[:entries] >> FIXED
        return _units(one - tails)

    @staticmethod
    def favoured(shift: Decimal, ratio: Decimal, epsilon: Decimal) -> list[tuple[Decimal, Decimal]]:
        """log(p/q) is linear between the two centres and beyond them: one root at most on each piece."""
        constant = ratio.ln() - epsilon

        def loss(x):
            return abs(x - shift) / ratio - abs(x) + constant

        found = []
        for low, high in ((-FAR, Decimal(0)), (Decimal(0), shift), (shift, FAR)):
            at_low, at_high = loss(low), loss(high)
            if at_low > 0 and at_high > 0:
                found.append((low, high))
            elif at_low > 0 or at_high > 0:
                root = low - at_low * (high - low) / (at_high - at_low)
                found.append((low, root) if at_low > 0 else (root, high))
        return found

    @staticmethod
    def below(x: Decimal) -> Decimal:
        tail = (-abs(x)).exp() / 2
        return tail if x < 0 else 1 - tail


class GaussianLaw(_ApproximateLaw):
    """Normal noise of variance one."""

    name = "gaussian"

    def row(self, scale: Decimal, entries: int) -> np.ndarray:
        """2 Phi((i + 1/2)/scale) - 1."""
        with context():
            values = half_steps(scale, entries)
        near = int(np.searchsorted(values, int(Decimal("9.5") * (1 << FIXED))))
        whole = np.full(entries - near, 1 << FIXED, object)
        return _units(np.concatenate([normal_integral(values[:near]), whole]))

    @staticmethod
    def favoured(shift: Decimal, ratio: Decimal, epsilon: Decimal) -> list[tuple[Decimal, Decimal]]:
        """log(p/q) - epsilon = a x^2 + b x + c is positive between its roots (a < 0), beyond them or on a half-line."""
        a, b = (1 / ratio**2 - 1) / 2, -shift / ratio**2
        c = shift**2 / (2 * ratio**2) + ratio.ln() - epsilon
        if a == 0:
            return [(-FAR, -c / b)] if b else ([(-FAR, FAR)] if c > 0 else [])
        discriminant = b * b - 4 * a * c
        if discriminant <= 0:
            return [] if a < 0 else [(-FAR, FAR)]
        outer = -(b + discriminant.sqrt() * (1 if b >= 0 else -1)) / 2
        low, high = sorted((outer / a, c / outer if outer else Decimal(0)))
        return [(low, high)] if a < 0 else [(-FAR, low), (high, FAR)]

    @staticmethod
    def below(x: Decimal) -> Decimal:
        return (1 + _integral(x)) / 2


def _units(shares: np.ndarray) -> np.ndarray:
    """Fixed-point numbers in [0, 1] in units of 2^-64, uint64."""
    return np.clip(shares >> FIXED - BITS, 0, 2**BITS - 1).astype(np.uint64)


def _integral(x: Decimal) -> Decimal:
    """2 Phi(x) - 1 to the context's digits, less the tail beyond 30: 2 phi(x) sum of x^(2n+1)/(2n+1)!!."""
    if abs(x) > 30:  # the tail is below 10^-196
        return Decimal(1).copy_sign(x)
    with decimal.localcontext() as inner:
        inner.prec += 10
        term, total, n = x, x, 1
        while abs(term) > abs(total) * Decimal(10) ** -inner.prec:
            term *= x * x / (2 * n + 1)
            total, n = total + term, n + 1
        value = total * (-x * x / 2).exp() * (2 / _pi(inner.prec)).sqrt()
    return +value


@functools.cache
def _pi(digits: int) -> Decimal:
    """pi by Machin's formula."""
    with context(digits + 10):
        return 16 * _inverse_arctan(5) - 4 * _inverse_arctan(239)


def _inverse_arctan(k: int) -> Decimal:
    """arctan(1/k), k > 1, to the context's digits."""
    power = total = Decimal(1) / k
    n, smallest = 1, Decimal(10) ** -decimal.getcontext().prec
    while abs(power) > smallest:
        power, n = -power / (k * k), n + 2
        total += power / n
    return total


def normal_integral(values: np.ndarray) -> np.ndarray:
    """2 Phi(x) - 1 of fixed-point numbers 0 <= x <= 9.5 (object array, units of 2^-112), within 2^-95: Taylor."""
    node = (values * NODES + (1 << FIXED - 1)) >> FIXED
    rest = values - (node << FIXED) // NODES
    coefficients = _taylor()[node.astype(np.int64)]
    total = coefficients[:, TERMS]
    for power in range(TERMS - 1, -1, -1):
        total = coefficients[:, power] + (total * rest >> FIXED)
    return total


@functools.cache
def _taylor() -> np.ndarray:
    """Coefficients of 2 Phi - 1 about k/32, (nodes, TERMS + 1) in units of 2^-112: 2 phi(c) (-1)^n He_n(c)/(n + 1)!."""
    rows = []
    with context(PRECISION):
        for k in range(LAST_NODE + 1):
            c = Decimal(k) / NODES
            density = (-c * c / 2).exp() * (2 / _pi(PRECISION)).sqrt()
            row, before, hermite, factorial = [_integral(c)], Decimal(0), Decimal(1), 1
            for n in range(TERMS):
                factorial *= n + 1
                row.append(density * hermite * (-1) ** n / factorial)
                before, hermite = hermite, c * hermite - n * before
            rows.append([int((value * 2**FIXED).to_integral_value()) for value in row])
    return np.array(rows, dtype=object)
