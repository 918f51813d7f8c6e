"""What a draw of lattice noise costs at most, as the hockey-stick divergences of a simple pair of laws.

A pair dominates a draw if it is at least as far apart as the outputs of any two neighbours, for every e >= 0 in
sup_S P(S) - exp(e) P'(S). Noise that is discrete is not dominated by its continuous namesake: between the points of the
lattice it is further apart. Proofs: docs/theory/lattice_noise.md#dominating.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

from jaxdp._base.rounding import round_up
from jaxdp.noise.certificate import RESOLUTION, Certificate

KERNEL = 4  # variance, in squared steps, of the rounding that makes normal noise discrete: 2.1 exp(-2 pi^2 4) < 2e-34
KERNEL_ERROR = Fraction(1, 10**33)  # of a coordinate, on the log scale: more than log((1 + 2e-34)/(1 - 2e-34))
SLACK = Fraction(1, 10**9)  # by which the distance grows, for the errors of tables, kernel and escape
RATE_SLACK = Fraction(1, 10**6)  # the same of the rate of geometric noise, whose thresholds are coarser


class Normal(NamedTuple):
    """N(0, 1) and N(distance, 1)."""

    distance: float


class Geometric(NamedTuple):
    """Two-sided geometric noise, P(k) proportional to exp(-rate |k|), around 0 and around `moves`."""

    rate: float
    moves: int


class Pure(NamedTuple):
    """Binary randomised response: the furthest apart of all that is epsilon-DP."""

    epsilon: float


type Pair = Normal | Geometric | Pure


def pair_of(certificate: Certificate) -> Pair:
    """The pair that dominates a draw. Errors: ValueError for noise of which no such pair is known."""
    if certificate.law == "gaussian":
        return Normal(_distance(certificate))
    if certificate.epsilon is None or certificate.delta:
        raise ValueError(f"no event for a privacy loss distribution is known of {certificate.law} noise.")
    return _geometric(certificate) or Pure(round_up(certificate.epsilon))


def _geometric(certificate: Certificate) -> Geometric | None:
    """The pair of additive geometric noise, where the slack in its rate covers the errors of its digits."""
    whole = certificate.moves.denominator == 1  # all of `moves` in one coordinate, a whole number, is the worst
    if certificate.law not in ("laplace", "geometric") or not whole or certificate.epsilon is None:
        return None
    rate, epsilon = float(certificate.rate), float(certificate.epsilon)
    error = float(certificate.epsilon - certificate.rate * certificate.moves)
    gain = float(RATE_SLACK) * epsilon * math.exp(-0.5 * epsilon - 2.0 * rate) / 2.0
    if gain < 8.0 * error * math.exp(epsilon):
        return None
    return Geometric(round_up(certificate.rate * (1 + RATE_SLACK)), int(certificate.moves))


def _distance(certificate: Certificate) -> float:
    """Distance of the normal pair, in sds. Errors: ValueError where the slack does not cover the errors."""
    variance, moves = certificate.rate, certificate.moves  # `moves` is squared, as in `discrete_gaussian`
    narrower = variance - KERNEL
    coordinates = variance / 4**RESOLUTION  # at least so many steps make an sd, for so many coordinates at most
    if coordinates >= 1 and certificate.rho is not None:
        cost = moves / (2 * variance)
        spare = max(certificate.rho - cost, Fraction(0))
        error = coordinates * KERNEL_ERROR + spare**2 / (4 * cost)
        distance = math.sqrt(moves / narrower) * (1 + 4e-16)
        density = math.exp(-(distance**2) / 8) / 2.6  # of the standard normal law at half the distance
        if float(SLACK) * distance * density >= 8 * float(error) and distance**2 > 1e-9:
            return math.nextafter(distance * (1 + float(SLACK)), math.inf)
    raise ValueError(
        f"normal noise of rho = {float(certificate.rho or 0):.3g} has no event that is surely true for privacy loss "
        'distributions: leave out kind="tight".'
    )
