"""The exact privacy of equal pure-epsilon rounds whose number is fixed in advance.

Kairouz, Oh and Viswanath 2015, Theorem 3.3; docs/theory/composition.md#equal-rounds. With k rounds of
epsilon e0 each, the composition is (epsilon, delta)-DP exactly for

    delta(epsilon) = sum_l C(k, l) max(exp((k - l) e0) - exp(epsilon + l e0), 0) / (1 + exp(e0))^k.

Stopping early is allowed (a round not run is a round that says nothing); choosing e0 or k from
earlier answers is not. Decimal arithmetic; floats come out rounded to the safe side.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Context, Decimal, localcontext
from fractions import Fraction

from jaxdp._base import check
from jaxdp._base.rounding import as_decimal, as_fraction, round_up

# 70 digits leave 1e-60 for sums of up to 1e8 terms below 1; anything under this margin counts against us.
_DIGITS = 70
_MARGIN = Decimal("1e-55")


def optimal_epsilon(epsilon: float, count: int, delta: float) -> float:
    """The smallest total epsilon of `count` rounds of pure `epsilon` at this total delta, rounded up.

    Work: O(count) decimal operations (about 3e4 rounds per second). Errors: ValueError on bad numbers.
    """
    _validate(epsilon, count)
    check.delta(delta)
    each = as_fraction(epsilon)
    if delta == 0:
        return round_up(count * each)
    with localcontext(Context(prec=_DIGITS)):
        allowed = as_decimal(as_fraction(delta))
        largest = round_up(count * each)
        found = min(round_up(max(_root(each, count, allowed), Fraction(0))), largest)
        step = math.ulp(found)
        # The root is right to dozens of digits; this says so instead of trusting it.
        while found < largest and _delta(each, count, as_decimal(as_fraction(found))) + _MARGIN > allowed:
            found, step = min(found + step, largest), 2 * step
    return found


def optimal_delta(epsilon: float, count: int, total_epsilon: float) -> float:
    """The smallest total delta of `count` rounds of pure `epsilon` at this total epsilon, rounded up."""
    _validate(epsilon, count)
    check.non_negative(total_epsilon=total_epsilon)
    each, total = as_fraction(epsilon), as_fraction(total_epsilon)
    if total >= count * each:
        return 0.0
    with localcontext(Context(prec=_DIGITS)):
        return round_up(Fraction(_delta(each, count, as_decimal(total)) + _MARGIN))


def largest_count(epsilon: float, *, total_epsilon: float, delta: float) -> int:
    """The largest number of rounds of pure `epsilon` that stays within (total_epsilon, delta)."""
    _validate(epsilon, 1)
    check.non_negative(total_epsilon=total_epsilon)
    check.delta(delta)
    fits, over = int(as_fraction(total_epsilon) / as_fraction(epsilon)), None
    if delta == 0:
        return fits
    while over is None or over - fits > 1:
        middle = 2 * fits + 1 if over is None else (fits + over) // 2
        if optimal_delta(epsilon, middle, total_epsilon) <= delta:
            fits = middle
        else:
            over = middle
    return fits


def _terms(each: Fraction, count: int) -> Iterator[tuple[Decimal, Decimal]]:
    """For l = 0, 1, ...: the probabilities of l lies in `count` randomised responses, under both inputs."""
    growth = as_decimal(each).exp()
    likely = (growth / (1 + growth)) ** count
    unlikely = (1 / (1 + growth)) ** count
    for lies in range(count + 1):
        yield likely, unlikely
        ratio = Decimal(count - lies) / (lies + 1)
        likely, unlikely = likely * ratio / growth, unlikely * ratio * growth


def _delta(each: Fraction, count: int, total: Decimal) -> Decimal:
    """delta(total): the terms l with (count - 2 l) each > total."""
    growth, step, total_growth, found = count * as_decimal(each), 2 * as_decimal(each), total.exp(), Decimal(0)
    for likely, unlikely in _terms(each, count):
        if growth <= total:
            break
        found += likely - total_growth * unlikely
        growth -= step
    return found


def _root(each: Fraction, count: int, delta: Decimal) -> Fraction:
    """The epsilon with delta(epsilon) = delta: exp(epsilon) is linear between the losses (count - 2 l) each."""
    first, second, loss, step = Decimal(0), Decimal(0), count * as_decimal(each), 2 * as_decimal(each)
    for likely, unlikely in _terms(each, count):
        first, second, loss = first + likely, second + unlikely, loss - step
        if loss <= 0 or first - loss.exp() * second >= delta:
            break
    return Fraction(((first - delta) / second).ln()) if first - delta > second else Fraction(0)


def _validate(epsilon, count) -> None:
    check.positive(epsilon=epsilon)
    check.at_least(1, count=count)
