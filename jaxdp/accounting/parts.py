"""Costs as exact host numbers: what every rule of this folder works on."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from jaxdp._base import check
from jaxdp._base.rounding import as_fraction
from jaxdp.core import Cost, Relation

INFINITE = math.inf


class Part(NamedTuple):
    """One release: (epsilon, delta)-DP and, with the same delta, rho-zCDP. Infinite means not known to hold."""

    epsilon: Fraction | float
    delta: Fraction
    rho: Fraction | float


def parts_of(costs: Cost | Iterable[Cost]) -> tuple[list[Part], Relation]:
    """Every single release in costs that may be batched (array leaves), and their common relation."""
    costs = [costs] if isinstance(costs, Cost) else list(costs)
    if not costs:
        raise ValueError("costs is empty: give at least one Cost (Cost.none(relation) for no release).")
    for cost in costs:
        if not isinstance(cost, Cost):
            raise TypeError(f"costs must hold jaxdp.Cost, got {type(cost).__name__}.")
    relations = sorted({cost.relation.value for cost in costs})
    if len(relations) > 1:
        raise ValueError(
            f"costs under {' and '.join(relations)} do not compose; state all mechanisms under one relation."
        )
    return [part for cost in costs for part in _split(cost)], costs[0].relation


def part_of(cost: Cost) -> Part:
    """The sum of the releases in one cost."""
    return total(parts_of(cost)[0])


def total(parts: Iterable[Part]) -> Part:
    """Sequential composition: everything adds up."""
    epsilons, deltas, rhos = zip(*parts, strict=True)
    return Part(add(epsilons), sum(deltas, Fraction(0)), add(rhos))


def add(values) -> Fraction | float:
    """Exact sum; infinite as soon as one value is."""
    values = list(values)
    return INFINITE if INFINITE in values else sum(values, Fraction(0))


def _split(cost: Cost) -> list[Part]:
    for name in ("epsilon", "delta", "rho"):
        if not check.is_concrete(getattr(cost, name)):
            raise ValueError(f"{name} of the cost is a traced value: do accounting outside jit, vmap and lax.map.")
    columns = np.broadcast_arrays(*(np.asarray(leaf, np.float64) for leaf in (cost.epsilon, cost.delta, cost.rho)))
    return [_part(*map(float, row)) for row in zip(*(column.ravel() for column in columns), strict=True)]


def _part(epsilon: float, delta: float, rho: float) -> Part:
    for name, value in (("epsilon", epsilon), ("rho", rho)):
        if not value >= 0:
            raise ValueError(f"{name} of a cost must be >= 0, got {value}.")
    if not 0 <= delta <= 1:
        raise ValueError(f"delta of a cost must be between 0 and 1, got {delta}.")
    exact = Part(_finite(epsilon), as_fraction(delta), _finite(rho))
    implied = pure_rho(exact)
    # A rho that is epsilon^2/2 in floats may lie just below it; the exact one counts.
    return exact._replace(rho=implied if rho >= (1 - 1e-6) * implied else exact.rho)


def _finite(value: float) -> Fraction | float:
    return as_fraction(value) if math.isfinite(value) else INFINITE


def pure_rho(part: Part) -> Fraction | float:
    """epsilon-DP implies (epsilon^2/2)-zCDP (Bun and Steinke 2016, Prop. 1.4); with a delta nothing is implied."""
    return part.epsilon**2 / 2 if part.delta == 0 and part.epsilon != INFINITE else INFINITE
