"""What a secret random subsample is worth, exactly, and under which relation.

A base mechanism of epsilon on the subsample costs log(1 + q (exp(epsilon) - 1)) on the population, and
delta becomes q delta (Balle, Barthe and Gaboardi 2018, Theorems 8 and 9; docs/theory/composition.md#subsampling). Both
cases are tight:

    fixed size m of n, without replacement    q = m/n    REPLACE_ONE         base: REPLACE_ONE on m records
    Poisson, each record with probability q   q          ADD_OR_REMOVE_ONE   base: ADD_OR_REMOVE_ONE

The other two pairings are false with this formula, so they are refused. The whole interactive
use of one subsample is the base mechanism. Host numbers are rounded to the safe side; traced
ones (simulations under jit) are plain float formulas.
"""

from __future__ import annotations

from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

import jax.numpy as jnp

from jaxdp._base import check
from jaxdp._base.rounding import as_fraction, round_down, round_up
from jaxdp.accounting.parts import INFINITE, part_of
from jaxdp.core import Cost, Relation

_DIGITS = 80
_TINY = Fraction(1, 10**50)


def subsample_fixed_size(cost: Cost, *, sample_size: int, num_records: int) -> Cost:
    """The cost, for all `num_records`, of a release made on a secret uniform subset of `sample_size` of them.

    Privacy: under REPLACE_ONE, which `cost` must state for data sets of `sample_size` records.
    Errors: ValueError under ADD_OR_REMOVE_ONE, or for sizes that are not 1 <= sample_size <= num_records.
    """
    if cost.relation is not Relation.REPLACE_ONE:
        raise ValueError(
            "subsamples of a fixed size amplify under replace_one only; "
            "under add_or_remove_one draw a Poisson subsample (subsample_poisson)."
        )
    return _subsampled(cost, _share(sample_size, num_records))


def subsample_poisson(cost: Cost, *, rate: float) -> Cost:
    """The cost of a release made on a secret subset that holds each record independently with probability `rate`.

    Privacy: under ADD_OR_REMOVE_ONE, which `cost` must state for data sets of any size.
    Errors: ValueError under REPLACE_ONE, or for a rate outside (0, 1].
    """
    if cost.relation is not Relation.ADD_OR_REMOVE_ONE:
        raise ValueError(
            "Poisson subsamples amplify under add_or_remove_one only; "
            "under replace_one draw a subsample of a fixed size (subsample_fixed_size)."
        )
    return _subsampled(cost, _rate(rate))


def fixed_size_epsilon(epsilon: float, *, sample_size: int, num_records: int) -> Any:
    """Epsilon under REPLACE_ONE of an `epsilon`-DP release on a secret uniform `sample_size`-subset, rounded up."""
    return amplified(epsilon, _share(sample_size, num_records))


def fixed_size_base_epsilon(epsilon: float, *, sample_size: int, num_records: int) -> Any:
    """Epsilon that a release on the subset may spend to cost `epsilon` in all (REPLACE_ONE), rounded down."""
    return before_amplification(epsilon, _share(sample_size, num_records))


def poisson_epsilon(epsilon: float, *, rate: float) -> Any:
    """Epsilon under ADD_OR_REMOVE_ONE of an `epsilon`-DP release on a secret Poisson subset, rounded up."""
    return amplified(epsilon, _rate(rate))


def poisson_base_epsilon(epsilon: float, *, rate: float) -> Any:
    """Epsilon that a release on the Poisson subset may spend to cost `epsilon` in all, rounded down."""
    return before_amplification(epsilon, _rate(rate))


def _share(sample_size: int, num_records: int) -> Fraction:
    check.at_least(1, sample_size=sample_size)
    check.at_least(1, num_records=num_records)
    if sample_size > num_records:
        raise ValueError(f"sample_size must be at most num_records={num_records}, got {sample_size}.")
    return Fraction(int(sample_size), int(num_records))


def _rate(rate: float) -> Fraction:
    # Not read as a decimal: a sampler compares with the float itself, and this one may be larger.
    return max(_in_unit_interval(rate), Fraction(float(rate)))


def _subsampled(cost: Cost, share: Fraction) -> Cost:
    part = part_of(cost)
    if part.epsilon == INFINITE:
        raise ValueError(
            f"subsampling is exact for pure epsilon only, and this cost has none ({cost}); "
            "give the base release a pure mechanism."
        )
    epsilon, delta = amplified(part.epsilon, share), round_up(share * part.delta)
    rho = round_up(as_fraction(epsilon) ** 2 / 2) if delta == 0 else INFINITE
    return Cost(epsilon=epsilon, delta=delta, rho=rho, relation=cost.relation)


def amplified(epsilon: Any, rate: float | Fraction) -> Any:
    """log(1 + rate (exp(epsilon) - 1)), rounded up; a rate m/n that is a Fraction is not rounded itself."""
    return _transformed(epsilon, _in_unit_interval(rate), round_up)


def before_amplification(epsilon: Any, rate: float | Fraction) -> Any:
    """The inverse of `amplified`: what may be spent on the subset, log(1 + (exp(epsilon) - 1)/rate), rounded down."""
    return _transformed(epsilon, 1 / _in_unit_interval(rate), round_down)


def _in_unit_interval(rate: float | Fraction) -> Fraction:
    if not 0 < rate <= 1:
        raise ValueError(f"rate must be greater than 0 and at most 1, got {rate}.")
    return as_fraction(rate)


def _transformed(epsilon, factor: Fraction, rounded):
    """log(1 + factor (exp(epsilon) - 1))."""
    if not (isinstance(epsilon, Fraction) or (check.is_concrete(epsilon) and jnp.ndim(epsilon) == 0)):
        return jnp.log1p(float(factor) * jnp.expm1(check.positive_or_nan(epsilon)))
    exact = as_fraction(epsilon) if isinstance(epsilon, Fraction) else _positive(epsilon)
    if factor == 1:
        return rounded(exact)
    with localcontext(Context(prec=_DIGITS)):
        growth = (Decimal(exact.numerator) / exact.denominator).exp() - 1
        value = Fraction((1 + growth * factor.numerator / factor.denominator).ln())
    return rounded(value + _TINY if rounded is round_up else value - _TINY)


def _positive(epsilon) -> Fraction:
    check.positive(epsilon=epsilon)
    return as_fraction(epsilon)
