"""Lattice Gaussian noise for zCDP: small tables, their convolution, and its certificate.

Symbols of docs/theory/lattice_noise.md: sigma^2 = `variance` in squared lattice steps, c = BASE, zeta =
`shape_error` of the convolution, delta = `table_error` of truncation and rounding, tau = escape probability.
"""

import dataclasses
import decimal
import functools
import math
from fractions import Fraction

import numpy as np

from jaxdp._base.rounding import as_decimal
from jaxdp.noise import certificate, samplers
from jaxdp.noise.certificate import Certificate, floor_log2, window_bits

BASE = 32  # each finer table refines the coarser one by this factor
FINE_SD = 64  # sd of a finer table, twice the base: neighbouring comb teeth overlap
MAX_SD = 128
REACH = 17  # tables end at 17 sd: exp(-17^2/2) < 2^-208
TABLE_BITS = 192


@dataclasses.dataclass(frozen=True)
class GaussianTables:
    """Cumulative tables of |x_j| (uint64 limbs) and the factor of each x_j in the sum."""

    tables: tuple[np.ndarray, ...]
    bases: tuple[int, ...]
    reach: int
    shape_error: Fraction
    table_error: Fraction


@functools.lru_cache(maxsize=64)
def _table(variance: Fraction) -> tuple[np.ndarray, int]:
    """Cumulative thresholds of |x|, P(x) proportional to exp(-x^2/(2 variance)), and its last value."""
    last = math.isqrt(math.ceil(REACH**2 * variance)) + 1
    with certificate._context():
        first = (-1 / (2 * as_decimal(variance))).exp()
        weights, ratio, square = [decimal.Decimal(1)], first, first * first
        for _ in range(last):
            weights.append(weights[-1] * ratio)
            ratio *= square
        weights = [weights[0], *(2 * weight for weight in weights[1:])]
        total, running, cumulative = sum(weights), decimal.Decimal(0), []
        for weight in weights[:-1]:
            running += weight
            cumulative.append(int((running / total * 2**TABLE_BITS).to_integral_value(decimal.ROUND_HALF_EVEN)))
    count = TABLE_BITS // certificate.LIMB
    return np.array([samplers.limbs_of(min(c, 2**TABLE_BITS - 1), count) for c in cumulative], np.uint64), last


@functools.lru_cache(maxsize=64)
def gaussian_tables(variance: Fraction) -> GaussianTables:
    """Tables whose combination sum_j base_j x_j has the discrete Gaussian law of this variance parameter."""
    tables, bases, reach, base = [], [], 0, 1
    shape_error, table_error = Fraction(0), Fraction(0)
    while True:
        fine = variance > MAX_SD**2
        table, last = _table(Fraction(FINE_SD**2) if fine else variance)
        tables.append(table)
        bases.append(base)
        reach += base * last
        table_error += Fraction(last + 3, 2**TABLE_BITS) + Fraction(1, 2**200)
        if not fine:
            return GaussianTables(tuple(tables), tuple(bases), reach, shape_error, table_error)
        variance = (variance - FINE_SD**2) / BASE**2
        shape_error += _comb_error(variance)
        base *= BASE


def _comb_error(coarse: Fraction) -> Fraction:
    """Bound on |log P - log discrete Gaussian| of x_0 + BASE x_1, x_0 of sd FINE_SD, x_1 of variance `coarse`.

    Poisson summation: theta = 2.1 exp(-2 pi^2 v), 1/v = BASE^2/FINE_SD^2 + 1/coarse; twice 1.1 theta.
    """
    v = 1 / (Fraction(BASE, FINE_SD) ** 2 + 1 / coarse)
    return Fraction(5 * math.exp(-19.7 * float(v)))


def gaussian(moves_squared: Fraction, rho: Fraction, step: Fraction, low: int, high: int, coordinates: int):
    """Certificate and tables: discrete Gaussian noise with moves^2/(2 variance) close to rho, at most rho in all."""
    for shrink in certificate.SHRINK:
        variance = 1 / certificate.dyadic_below(2 * rho * (1 - Fraction(1, 2**shrink)) / moves_squared)
        tables = gaussian_tables(variance)
        width = window_bits(low - tables.reach, high + tables.reach)
        if width > certificate.EXACT_FLOAT:
            raise ValueError(
                f"the public range spans 2^{width} lattice steps, more than 2^{certificate.EXACT_FLOAT}; "
                "give the sensitivity a narrower range (lower, upper)."
            )
        error = coordinates * (tables.shape_error + 3 * tables.table_error * 2 ** (certificate.ESCAPE_BITS + width))
        spent = certificate.robust_rho(moves_squared / (2 * variance), error)
        if spent <= rho * (1 - Fraction(1, 2 ** (shrink + 1))):
            ends = (low - tables.reach, high + tables.reach)
            spent = certificate.dyadic_above(spent)
            return Certificate("gaussian", step, variance, moves_squared, None, spent, *ends), tables
    raise ValueError(f"no certificate holds at rho = {float(rho):.3g}; give the release a larger budget.")


def step_exponent(reach: Fraction, rho: Fraction, coordinates: int) -> int:
    """log2 of the lattice step: 2^-10 of min(bound, sd)/sqrt(coordinates)."""
    sd_squared = reach**2 / (2 * rho)
    return floor_log2(min(reach**2, sd_squared) / coordinates) // 2 - certificate.RESOLUTION
