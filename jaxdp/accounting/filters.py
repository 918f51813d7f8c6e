"""Privacy filters: budgets for releases whose mechanisms and epsilons depend on earlier answers.

Fully adaptive composition. A filter is asked before every release (`spend`) and refuses the one that
would break its guarantee, so that whatever was released up to then keeps `guarantee`. Which rules
may be used this way is a theorem for each, stated at its class; privacy loss distributions and
the exact optimum for equal rounds may not (`privacy_filter` says why).
"""

from __future__ import annotations

import math
import os
import threading
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any, ClassVar

from jaxdp._base import check
from jaxdp._base.rounding import as_decimal, as_fraction, round_up
from jaxdp.accounting import renyi
from jaxdp.accounting.ledger import BudgetExhausted
from jaxdp.accounting.parts import INFINITE, Part, parts_of, total
from jaxdp.accounting.shared import Uncopied
from jaxdp.core import Cost, Relation
from jaxdp.privacy import Claim

_NOTHING = Part(Fraction(0), Fraction(0), Fraction(0))
_DIGITS = 60
_TINY = Decimal("1e-50")


class _Accountant(Uncopied):
    """Adds up what was spent, one release at a time, safely over threads; only in the process that made it.

    A subclass counts every release by a few exact numbers (`_measure`) and accepts totals (`_within`).
    """

    _counts_rho: ClassVar[bool] = False  # of normal noise that is claimed as (epsilon, delta)

    def __init__(self, relation: Relation):
        self._relation = relation
        self._spent = _NOTHING
        self._used: tuple[Fraction, ...] = ()
        self._lock = threading.Lock()
        self._process = os.getpid()

    @property
    def spent(self) -> Cost:
        """The sum of the admitted costs, as a `Cost` (exact sums, rounded up)."""
        with self._lock:
            return _cost(self._spent, self._relation)

    def admits(self, cost: Cost) -> bool:
        """Whether `spend` would accept this cost now. Costs may be batched."""
        asked = self._read(cost)
        with self._lock:
            return self._within(self._with(asked))

    def require(self, cost: Cost) -> None:
        """Raises what `spend` would raise for this cost now, and reserves nothing."""
        asked = self._read(cost)
        with self._lock:
            self._admitted(asked)

    def charge(self, method: str, cost: Cost, key: Any = None, /) -> None:
        """`spend`, as an account is charged: a filter is an account that is kept in memory."""
        self.spend(cost)

    def spend(self, cost: Cost) -> None:
        """Reserves a cost, before the release is made. All of it, or nothing.

        Errors: `BudgetExhausted` if the guarantee would break; ValueError for infinite, NaN, negative or
        traced costs, for a cost this rule cannot count, and under another relation.
        """
        asked = self._read(cost)
        with self._lock:
            self._used, self._spent = self._admitted(asked), total([self._spent, *asked])

    def _admitted(self, asked: list[Part]) -> tuple[Fraction, ...]:
        """What would be used with these parts. Errors: `BudgetExhausted`."""
        used = self._with(asked)
        if not self._within(used):
            raise BudgetExhausted(
                f"budget exhausted: {self!r} cannot take {_cost(total(asked), self._relation)}; nothing was charged."
            )
        return used

    def _read(self, cost: Cost) -> list[Part]:
        if os.getpid() != self._process:
            raise RuntimeError(
                "this budget is kept in the memory of another process, and would be spent a second time here: run with "
                "threads, or open a jaxdp.Ledger by its path in each process."
            )
        counted = cost.concentrated() if self._counts_rho and isinstance(cost, Claim) else cost
        parts, relation = parts_of(counted)
        if relation is not self._relation:
            raise ValueError(f"this budget holds under {self._relation.value}, the cost under {relation.value}.")
        return parts

    def _with(self, asked: list[Part]) -> tuple[Fraction, ...]:
        rows = [self._measure(part) for part in asked]
        rows += [self._used] if self._used else []
        return tuple(sum(column, Fraction(0)) for column in zip(*rows, strict=True))

    def _measure(self, part: Part) -> tuple[Fraction, ...]:
        """What the rule adds up: epsilon and delta."""
        return self._pure(part), part.delta

    def _pure(self, part: Part) -> Fraction:
        if part.epsilon == INFINITE:
            raise ValueError(
                f"{type(self).__name__} counts pure epsilon and this cost has none (epsilon=inf); "
                "use ConcentratedFilter for zCDP."
            )
        return Fraction(part.epsilon)

    def _within(self, used: tuple[Fraction, ...]) -> bool:
        raise NotImplementedError


class Odometer(_Accountant):
    """Spent so far, without a budget: plain sums, true at every moment (Rogers, Roth, Ullman and Vadhan 2016)."""

    def __init__(self, *, relation: Relation = Relation.REPLACE_ONE):
        super().__init__(relation)

    def _within(self, used: tuple[Fraction, ...]) -> bool:
        return True


class PureFilter(_Accountant):
    """Sums of epsilon and delta stay within (epsilon, delta).

    Privacy: the whole interaction is (epsilon, delta)-DP (basic composition holds fully adaptively:
    the privacy losses add up on every path; Rogers et al. 2016, section 3).
    """

    def __init__(self, *, epsilon: float, delta: float = 0.0, relation: Relation = Relation.REPLACE_ONE):
        super().__init__(relation)
        check.positive(epsilon=epsilon)
        check.delta(delta)
        self._epsilon, self._delta = as_fraction(epsilon), as_fraction(delta)

    @property
    def guarantee(self) -> Cost:
        """What the whole interaction costs, however it goes."""
        rho = self._epsilon**2 / 2 if self._delta == 0 else INFINITE
        return _cost(Part(self._epsilon, self._delta, rho), self._relation)

    def _within(self, used: tuple[Fraction, ...]) -> bool:
        epsilon, delta = used
        return epsilon <= self._epsilon and delta <= self._delta

    def __repr__(self) -> str:
        return f"PureFilter(epsilon={float(self._epsilon)}, delta={float(self._delta)})"


class ConcentratedFilter(_Accountant):
    """The sum of rho stays within rho; a pure epsilon counts as epsilon^2/2.

    Privacy: the whole interaction is rho-zCDP (the Renyi filter of Feldman and Zrnic 2021, Theorem 3.1, at every
    order at once); at any delta, `zcdp_epsilon(rho, delta)`.
    """

    _counts_rho: ClassVar[bool] = True

    def __init__(self, *, rho: float, relation: Relation = Relation.REPLACE_ONE):
        super().__init__(relation)
        check.positive(rho=rho)
        self._rho = as_fraction(rho)

    @property
    def guarantee(self) -> Cost:
        """What the whole interaction costs, however it goes."""
        return _cost(Part(INFINITE, Fraction(0), self._rho), self._relation)

    def _measure(self, part: Part) -> tuple[Fraction, ...]:
        if part.rho == INFINITE or part.delta != 0:
            raise ValueError("ConcentratedFilter counts rho, and this cost has no finite rho without a delta.")
        return (Fraction(part.rho),)

    def _within(self, used: tuple[Fraction, ...]) -> bool:
        return used[0] <= self._rho

    def __repr__(self) -> str:
        return f"ConcentratedFilter(rho={float(self._rho)})"


class RenyiFilter(_Accountant):
    """Renyi divergences at one order, fixed before the first release, add up to at most a budget.

    Privacy: the whole interaction is (epsilon, delta)-DP (Feldman and Zrnic 2021, Theorem 3.1, then Canonne, Kamath
    and Steinke 2020, Prop. 12). A pure epsilon counts with the divergence of randomised response.
    order: default the one that admits the most rho at this epsilon and delta.
    """

    _counts_rho: ClassVar[bool] = True

    def __init__(
        self, *, epsilon: float, delta: float, order: float | None = None, relation: Relation = Relation.REPLACE_ONE
    ):
        super().__init__(relation)
        check.positive(epsilon=epsilon)
        check.in_range(0.0, 1.0, delta=delta)
        self.order = _best_order(epsilon, delta) if order is None else float(order)
        if not 1 < self.order < INFINITE:
            raise ValueError(f"order must be a finite number > 1, got {order}.")
        self._epsilon, self._delta = epsilon, delta
        self._budget = as_fraction(epsilon) - as_fraction(renyi.conversion(self.order, delta))
        if self._budget <= 0:
            raise ValueError(
                f"order={self.order} leaves nothing to spend at epsilon={epsilon}, delta={delta}; "
                "take a larger order (or none, for the best one)."
            )

    @property
    def guarantee(self) -> Cost:
        """What the whole interaction costs, however it goes."""
        return Cost(self._epsilon, self._delta, INFINITE, self._relation)

    def _measure(self, part: Part) -> tuple[Fraction, ...]:
        divergence = renyi.divergence(part, self.order)
        if part.delta != 0 or divergence == INFINITE:
            raise ValueError("RenyiFilter counts pure epsilon or rho, and this cost has neither without a delta.")
        return (Fraction(divergence),)

    def _within(self, used: tuple[Fraction, ...]) -> bool:
        return used[0] <= self._budget

    def __repr__(self) -> str:
        return f"RenyiFilter(epsilon={self._epsilon}, delta={self._delta}, order={self.order:.4g})"


class ApproximateFilter(_Accountant):
    """Advanced composition with adaptively chosen (epsilon_i, delta_i).

    Privacy: the whole interaction is (epsilon, delta)-DP, delta = slack + delta_sum, if
    sqrt(2 log(1/slack) sum epsilon_i^2) + sum epsilon_i^2 / 2 <= epsilon and sum delta_i <= delta_sum, the next
    release included (Whitehouse, Ramdas, Rogers and Wu 2023; docs/theory/composition.md#filters).
    delta_sum: share of delta kept for the deltas of the releases; the rest is the slack.
    """

    def __init__(
        self, *, epsilon: float, delta: float, delta_sum: float = 0.0, relation: Relation = Relation.REPLACE_ONE
    ):
        super().__init__(relation)
        check.positive(epsilon=epsilon)
        check.in_range(0.0, 1.0, delta=delta)
        check.delta(delta_sum)
        self._epsilon, self._delta, self._delta_sum = map(as_fraction, (epsilon, delta, delta_sum))
        slack = self._delta - self._delta_sum
        if slack <= 0:
            raise ValueError(f"delta_sum must be less than delta={delta}, got {delta_sum}.")
        with localcontext(Context(prec=_DIGITS)):
            self._log_term = -2 * as_decimal(slack).ln() + _TINY

    @property
    def guarantee(self) -> Cost:
        """What the whole interaction costs, however it goes."""
        return _cost(Part(self._epsilon, self._delta, INFINITE), self._relation)

    def _measure(self, part: Part) -> tuple[Fraction, ...]:
        return self._pure(part) ** 2, part.delta

    def _within(self, used: tuple[Fraction, ...]) -> bool:
        squares, deltas = used
        with localcontext(Context(prec=_DIGITS)):
            square = as_decimal(squares)
            spent = (self._log_term * square).sqrt() + square / 2 + _TINY
            return deltas <= self._delta_sum and spent <= as_decimal(self._epsilon)

    def __repr__(self) -> str:
        return f"ApproximateFilter(epsilon={float(self._epsilon)}, delta={float(self._delta)})"


_FILTERS: dict[str, Any] = {
    "pure": PureFilter,
    "zcdp": ConcentratedFilter,
    "renyi": RenyiFilter,
    "approximate": ApproximateFilter,
}
_UNSOUND = {"pld": "a privacy loss distribution", "kov": "the exact optimum for equal rounds"}


def privacy_filter(kind: str, **budget: Any) -> Any:
    """A filter by name: 'pure', 'zcdp', 'renyi' or 'approximate', with the arguments of its class.

    Errors: ValueError for 'pld' and 'kov', which are not sound as filters.
    """
    if kind in _UNSOUND:
        raise ValueError(
            f"{_UNSOUND[kind]} is not sound as an adaptive filter: budgets that depend on earlier answers can "
            "lose more than any fixed list that fits (Regehr et al. 2026); use 'pure', 'zcdp', 'renyi' or "
            "'approximate', or fix the list of budgets first and use jaxdp.accounting.compose."
        )
    check.one_of(tuple(_FILTERS), kind=kind)
    return _FILTERS[kind](**budget)


def _best_order(epsilon: float, delta: float) -> float:
    """The order with the largest (epsilon - conversion)/order, on a grid of public numbers."""
    grid = [1 + math.exp(0.01 * step) for step in range(-700, 2500)]
    return max(grid, key=lambda order: (epsilon - renyi.conversion(order, delta)) / order)


def _cost(part: Part, relation: Relation) -> Cost:
    epsilon, delta, rho = (INFINITE if value == INFINITE else round_up(Fraction(value)) for value in part)
    return Cost(epsilon=epsilon, delta=delta, rho=rho, relation=relation)
