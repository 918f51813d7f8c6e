"""Renyi and zero-concentrated accounting: curves that add up, converted to (epsilon, delta) once.

A curve is a function of the order alpha > 1. Every order gives a true statement, so the search for
the best one needs no care; only the value at the order that is used is rounded up.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterable

from jaxdp.accounting.parts import INFINITE, Part

# Relative rounding of a few dozen float64 operations, with room to spare.
_SLACK = 1e-12
_RHO_STEPS = 40


def pure_divergence(epsilon: float, order: float) -> float:
    """Largest Renyi divergence of an epsilon-DP mechanism: that of randomised response (Bun and Steinke 2016, 3.3).

    log(cosh((order - 1/2) epsilon) / cosh(epsilon/2)) / (order - 1); also at most epsilon, and at most
    order epsilon^2/2, which is used where the quotient is too small to be computed.
    """
    grown = (_log_cosh((order - 0.5) * epsilon) - _log_cosh(0.5 * epsilon)) / (order - 1)
    roughly = order * epsilon**2 / 2
    # Near order 1 the two logarithms cancel; there the quadratic bound is as good.
    safe = grown if order > 1.01 and epsilon > 1e-6 else roughly
    return min(safe, roughly, epsilon)


def _log_cosh(value: float) -> float:
    if value < 1:
        return math.log1p(2 * math.sinh(value / 2) ** 2)
    return value + math.log1p(math.exp(-2 * value)) - math.log(2)


def divergence(part: Part, order: float) -> float:
    """Renyi divergence bound of one release at this order, rounded up; the smaller of its two guarantees."""
    concentrated = INFINITE if part.rho == INFINITE else float(part.rho) * order
    pure = pure_divergence(float(part.epsilon), order) if part.delta == 0 and part.epsilon != INFINITE else INFINITE
    return min(concentrated, pure) * (1 + _SLACK)


def conversion(order: float, delta: float) -> float:
    """What to add to the divergence at this order to get epsilon at this delta, rounded up.

    Canonne, Kamath and Steinke 2020, Prop. 12: log(1 - 1/order) - log(order delta)/(order - 1).
    """
    first, second = math.log1p(-1 / order), -math.log(order * delta) / (order - 1)
    return first + second + _SLACK * (1 + abs(first) + abs(second))


def renyi_epsilon(parts: Iterable[Part], delta: float) -> float:
    """Total epsilon at this delta > 0 of releases composed by their Renyi divergences, rounded up."""
    counted = Counter(parts)
    if any(divergence(part, 2.0) == INFINITE for part in counted):
        return INFINITE

    def epsilon_at(order: float) -> float:
        spent = math.fsum(count * divergence(part, order) for part, count in counted.items())
        return spent * (1 + _SLACK) + conversion(order, delta)

    return max(0.0, min(epsilon_at(order) for order in _orders(epsilon_at)))


def _orders(epsilon_at) -> list[float]:
    """A coarse grid of orders 1 + e^s and a golden-section refinement around its best point."""
    grid = [-9 + 0.5 * step for step in range(70)]
    best = min(grid, key=lambda s: epsilon_at(1 + math.exp(s)))
    low, high, ratio = best - 0.5, best + 0.5, (math.sqrt(5) - 1) / 2
    for _ in range(60):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        if epsilon_at(1 + math.exp(left)) <= epsilon_at(1 + math.exp(right)):
            high = right
        else:
            low = left
    return [1 + math.exp(s) for s in (*grid, low, high)]


def zcdp_epsilon(rho: float, delta: float) -> float:
    """The epsilon of rho-zCDP at this delta, by the tight conversion (Canonne, Kamath and Steinke 2020, Prop. 12)."""
    from jaxdp.accounting.parts import parts_of
    from jaxdp.core import Cost

    if not 0 < delta < 1:
        raise ValueError(f"delta must be strictly between 0 and 1, got {delta}.")
    return renyi_epsilon(parts_of(Cost(epsilon=INFINITE, rho=rho))[0], delta)


@functools.lru_cache(maxsize=1024)
def zcdp_rho(epsilon: float, delta: float) -> float:
    """The largest rho, to rounding, whose zCDP is (epsilon, delta)-DP by `zcdp_epsilon`."""
    tail = math.log(1.0 / delta)
    low = (epsilon / (math.sqrt(tail + epsilon) + math.sqrt(tail))) ** 2  # Bun and Steinke 2016, Prop. 1.3
    high = 8.0 * low
    while zcdp_epsilon(high, delta) <= epsilon:
        high *= 2.0
    for _ in range(_RHO_STEPS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if zcdp_epsilon(middle, delta) <= epsilon else (low, middle)
    return low
