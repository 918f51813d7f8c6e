"""What several releases cost together, when the list of their budgets was fixed in advance."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction

from jaxdp._base.rounding import as_fraction, round_down, round_up
from jaxdp.accounting import optimal, renyi
from jaxdp.accounting.parts import INFINITE, Part, add, parts_of, total
from jaxdp.core import Cost
from jaxdp.privacy import Claim

# Above this many equal rounds the exact optimum takes seconds; the Renyi bound is then nearly as good.
_MAX_ROUNDS = 50_000
# Under this delta the float64 transforms of a privacy loss distribution are not trusted.
_MIN_PLD_DELTA = 1e-8


def compose(costs: Cost | Iterable[Cost], delta: float = 0.0) -> Cost:
    """The cost of releasing everything in `costs`.

    costs: `Cost` objects, or one `Cost` with array leaves (one release per element).
    delta: 0 gives the plain sums, which hold however the releases were chosen. A delta > 0 gives the
    smallest epsilon known at this total delta. That holds only for a list of budgets fixed in
    advance (tests may be chosen adaptively, their budgets and number may not); for budgets that
    depend on answers use a filter or the ledger.

    Privacy, each valid, the smallest is taken: sums; the exact optimum for equal pure rounds (Kairouz, Oh
    and Viswanath 2015, Theorem 3.3); privacy loss distributions for unequal pure rounds (dp-accounting,
    rounded to the pessimistic side); Renyi divergences with zCDP (Canonne, Kamath and Steinke 2020, Prop. 12).
    Deltas of the parts are set aside first: sum_i delta_i + the rest <= delta. Normal noise claimed as (epsilon, delta)
    counts by its rho too, without its delta.

    Returns a `Cost` of Python floats, exact sums rounded up; `rho` is the sum of the parts' rho.
    Errors: ValueError for costs under different relations, an empty list, traced, negative or NaN
    values, and a delta smaller than the sum of the parts' deltas.
    """
    costs = [costs] if isinstance(costs, Cost) else list(costs)
    parts, relation = parts_of(costs)
    if not 0 <= delta < 1:
        raise ValueError(f"delta must be at least 0 and less than 1, got {delta}.")
    summed = total(parts)
    if delta == 0:
        return Cost(_float(summed.epsilon), _float(summed.delta), _float(summed.rho), relation)
    ways = [parts]
    if any(isinstance(cost, Claim) for cost in costs):
        ways.append(parts_of(cost.concentrated() if isinstance(cost, Claim) else cost for cost in costs)[0])
    spares = [as_fraction(delta) - total(way).delta for way in ways]
    if max(spares) < 0:
        raise ValueError(f"the deltas of the costs add up to {_float(summed.delta)}, more than delta={delta}.")
    smallest = min(_smallest_epsilon(way, spare) for way, spare in zip(ways, spares, strict=True) if spare >= 0)
    return Cost(smallest, delta, _float(summed.rho), relation)


def _smallest_epsilon(parts: list[Part], spare: Fraction) -> float:
    parts = [part for part in parts if part.epsilon != 0]
    if not parts or spare == 0:
        return _float(add(part.epsilon for part in parts)) if parts else 0.0
    delta = round_down(spare)
    return min(
        _float(add(part.epsilon for part in parts)),
        renyi.renyi_epsilon(parts, delta),
        _only_pure(parts, delta),
        _pure_beside_concentrated(parts, delta),
    )


def _only_pure(parts: list[Part], delta: float) -> float:
    """By the pure epsilons alone. A part with a delta counts too: its delta has been set aside already."""
    counts = Counter(part.epsilon for part in parts)
    if INFINITE in counts:
        return INFINITE
    if len(counts) == 1:
        ((epsilon, count),) = counts.items()
        return optimal.optimal_epsilon(_float(epsilon), count, delta) if count <= _MAX_ROUNDS else INFINITE
    if delta < _MIN_PLD_DELTA:
        return INFINITE
    from jaxdp.accounting import convert

    return convert.pld_epsilon({_float(epsilon): count for epsilon, count in counts.items()}, delta)


def _pure_beside_concentrated(parts: list[Part], delta: float) -> float:
    """Sum of the pure epsilons plus the conversion of those that are zCDP only."""
    pure = [part for part in parts if part.epsilon != INFINITE]
    rest = [part for part in parts if part.epsilon == INFINITE]
    if not pure or not rest:
        return INFINITE
    return math.nextafter(_float(add(part.epsilon for part in pure)) + renyi.renyi_epsilon(rest, delta), INFINITE)


def _float(value: Fraction | float) -> float:
    return INFINITE if value == INFINITE else round_up(Fraction(value))
