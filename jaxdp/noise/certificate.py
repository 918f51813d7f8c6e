"""Exact certificates of the lattice laws, computed on the host with fractions and 120-digit decimals.

A certificate states the lattice step, the rate of the noise, by how many steps neighbours differ, and an
upper bound on the epsilon (or rho) of the bits that the sampler really compares. No certificate, no release.
Proofs of every bound: docs/theory/lattice_noise.md. Symbols there: g = `step`, lambda = `rate`,
s = `moves`, tau = `escape`, eta = `error`.
"""

import dataclasses
import decimal
import functools
import math
from fractions import Fraction

import numpy as np

from jaxdp._base import amounts, check
from jaxdp._base.rounding import as_decimal

RESOLUTION = 10  # bits of the lattice below the noise scale: rounding costs at most 2^-10 of the noise
ESCAPE_BITS = 50  # with probability 2^-50 a coordinate is uniform on the window (what makes delta zero)
GUARD_BITS = 60  # bits of a threshold below the smallest probability it stands for
LIMB = 64
WIDEST = 60  # bits of the output window: integers stay far from the edge of int64
EXACT_FLOAT = 52  # bits of the window that float64 outputs carry exactly
SHRINK = range(40, 5, -2)  # the rate is tried at (1 - 2^-j) of the budget until a certificate holds
DIGITS = 120
MAX_RADIUS_BITS = 31  # 2 radius + 1 stays below 2^32, so that one product of 32 bits scales a uniform coordinate
EDGE_SLACK = 2.0  # in a log density: log 2 for 1/(1 - sigma)^(d + 1), the rest for the error and float64's rounding
_UNIFORM_ERROR = Fraction(1, 2**95)  # |log| of 2^128 points laid on at most 2^32, against equal shares
_SLACK = Fraction(1, 10**100)  # covers the rounding of decimals of 120 digits


@dataclasses.dataclass(frozen=True)
class Certificate:
    """What is public about one draw of lattice noise.

    step: lattice step g, a power of two. rate: lambda, P(k) proportional to exp(-lambda |k|) in steps (for
    Gaussian noise: the variance in squared steps). moves: steps by which neighbours differ, in the norm of
    the sensitivity. epsilon, rho, delta: exact upper bounds on the cost of the draw.
    low, high: the outputs are g times an integer in [low, high]; None for decisions and selections.
    """

    law: str
    step: Fraction
    rate: Fraction
    moves: Fraction
    epsilon: Fraction | None
    rho: Fraction | None
    low: int | None = None
    high: int | None = None
    delta: Fraction = Fraction(0)


@dataclasses.dataclass(frozen=True)
class DigitTable:
    """Thresholds of independent binary digits, each a pair (threshold, bits).

    A digit is 1 if a uniform integer of `bits` bits lies below its threshold. error: bound on the sum of
    |log odds - wanted log odds| (of |log probability - wanted| for `acceptance`) over the digits and `zero`.
    """

    rate: Fraction
    digits: tuple[tuple[int, int], ...]
    zero: tuple[int, int]
    error: Fraction


def exact(value, name: str) -> Fraction:
    """The fraction behind a public number; releases need it concrete and finite."""
    if isinstance(value, Fraction):
        return value
    if not check.is_concrete(value):
        raise ValueError(f"{name} is traced, but releases run outside jit: call run without jax.jit around it.")
    array = np.asarray(value)
    if array.ndim != 0:
        raise ValueError(f"{name} must be one number in a release, got an array of shape {array.shape}.")
    number = float(array)
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite in a release, got {number}.")
    return Fraction(number)


def floor_log2(value: Fraction) -> int:
    """Largest integer e with 2^e <= value, for value > 0."""
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    return exponent if Fraction(2) ** exponent <= value else exponent - 1


def _context():
    return decimal.localcontext(decimal.Context(prec=DIGITS, Emin=-999999, Emax=999999))


def _bits_for(log_odds: Fraction) -> int:
    """Bits, whole limbs, that resolve a probability of exp(-log_odds)."""
    return LIMB * math.ceil((float(log_odds) / math.log(2) + GUARD_BITS) / LIMB)


def _threshold(probability: decimal.Decimal, bits: int) -> int:
    return int((probability * 2**bits).to_integral_value(decimal.ROUND_HALF_EVEN))


def _log_odds(threshold: int, bits: int) -> decimal.Decimal:
    return (decimal.Decimal(threshold) / decimal.Decimal(2**bits - threshold)).ln()


@functools.lru_cache(maxsize=256)
def geometric_digits(rate: Fraction, count: int) -> DigitTable:
    """Digits i < count of a geometric variable: P(digit i = 1) = 1/(1 + exp(rate 2^i)).

    `zero` has probability tanh(rate/2), that of 0 under P(k) proportional to exp(-rate |k|).
    """
    digits, error = [], Fraction(0)
    with _context():
        for i in range(count):
            bits = _bits_for(rate * 2**i)
            wanted = as_decimal(rate * 2**i)
            threshold = _threshold(1 / (1 + wanted.exp()), bits)
            if not 0 < threshold < 2**bits:
                raise ValueError(f"rate {float(rate)} is too large for a digit sampler.")
            digits.append((threshold, bits))
            error += abs(Fraction(_log_odds(threshold, bits) + wanted)) + _SLACK
        decay = (-as_decimal(rate)).exp()
        bits = 2 * LIMB
        zero = _threshold((1 - decay) / (1 + decay), bits)
        if not 0 < zero < 2**bits:
            raise ValueError(f"rate {float(rate)} is outside what the sampler resolves.")
        error += abs(Fraction(_log_odds(zero, bits) - ((1 - decay) / (2 * decay)).ln())) + _SLACK
    return DigitTable(rate, tuple(digits), (zero, bits), error)


@functools.lru_cache(maxsize=256)
def acceptance_digits(rate: Fraction, count: int) -> DigitTable:
    """Factors i < count of exp(-rate d), d = sum d_i 2^i: thresholds of probability exp(-rate 2^i)."""
    digits, error = [], Fraction(0)
    with _context():
        for i in range(count):
            bits, wanted = _bits_for(rate * 2**i), -as_decimal(rate * 2**i)
            threshold = _threshold(wanted.exp(), bits)
            digits.append((threshold, bits))
            error += abs(Fraction((decimal.Decimal(threshold) / 2**bits).ln() - wanted)) + _SLACK
    return DigitTable(rate, tuple(digits), (0, LIMB), error)


def digits_needed(rate: Fraction, bits) -> int:
    """Smallest k with exp(-rate 2^k) <= 2^-bits(k); `bits` is a function of k."""
    natural = Fraction(math.log(2)) * (1 + Fraction(1, 10**12))
    for count in range(1, WIDEST + 1):
        if rate * 2**count >= bits(count) * natural:
            return count
    raise ValueError(f"noise of {float(1 / rate):.3g} lattice steps is too wide for a release; coarsen the statistic.")


def window_bits(low: int, high: int) -> int:
    """w such that the window has at most 2^w points."""
    return max(1, (high - low).bit_length())


def additive(law: str, moves: Fraction, epsilon: Fraction, step: Fraction, low: int, high: int, coordinates: int):
    """Certificate and digits of two-sided geometric noise on the integers low..high (after clipping).

    The outputs lie in [low - 2^k, high + 2^k]; every one of them has positive probability under every input,
    so the law is pure epsilon-DP: rate moves + min(coordinates, moves) error <= epsilon.
    """
    changed = min(Fraction(coordinates), Fraction(math.floor(moves)))

    def attempt(rate):
        count = digits_needed(rate, lambda k: ESCAPE_BITS + 1 + window_bits(low - 2**k, high + 2**k))
        table = geometric_digits(rate, count)
        total = table.error + Fraction(1, 2 ** (ESCAPE_BITS + 1))  # the second term: truncation at 2^k digits
        return table, rate * moves + changed * total

    table, spent = _largest_rate(attempt, epsilon, moves, epsilon)
    reach = 2 ** len(table.digits)
    return _certified(law, step, table, moves, spent, (low - reach, high + reach)), table


def tail(facts: Certificate, steps: int) -> float:
    """Upper bound on the probability that the noise of an `additive` certificate is `steps` > 0 or more.

    That of the ideal law, times exp(error) of its digits, which `facts.epsilon` holds beyond rate moves, and an escape.
    """
    spent = Fraction(0) if facts.epsilon is None else facts.epsilon
    error = float(spent - facts.rate * facts.moves)
    rate = float(facts.rate)
    return math.exp(error - rate * steps) / (1.0 + math.exp(-rate)) * (1.0 + 1e-9) + 2.0**-ESCAPE_BITS


def _certified(law: str, step: Fraction, table: DigitTable, moves: Fraction, spent: Fraction, ends: tuple[int, int]):
    """The certificate of outputs between these ends. Errors: ValueError where floats do not hold them exactly."""
    bits = window_bits(*ends)
    if bits > EXACT_FLOAT:
        raise ValueError(
            f"the public range spans 2^{bits} lattice steps, more than 2^{EXACT_FLOAT}; "
            "give the sensitivity a narrower range (lower, upper)."
        )
    spent = dyadic_above(spent)
    return Certificate(law, step, table.rate, moves, spent, spent**2 / 2, *ends)


def least_radius(coordinates: int) -> int:
    """What is added to the radius of max-norm noise, so that its density falls by exp(rate) a step at most."""
    return coordinates // 2 + 1


def max_norm(moves: Fraction, epsilon: Fraction, step: Fraction, low: int, high: int, coordinates: int):
    """Certificate and digits of max-norm noise on vectors of integers low..high (after clipping).

    rate moves + 2 error <= epsilon, error = (d + 1) that of the digits + d that of a uniform coordinate, where the
    escape law covers the edge of the largest cube (docs/theory/lattice_noise.md#max-norm).
    """
    shift = least_radius(coordinates)

    def attempt(rate):
        count = _radius_digits(rate, low, high, coordinates)
        table = geometric_digits(rate, count)
        error = (coordinates + 1) * table.error + coordinates * _UNIFORM_ERROR
        return table, rate * moves + 2 * error

    table, spent = _largest_rate(attempt, epsilon, moves, epsilon)
    reach = shift + 2 ** len(table.digits) - 1
    return _certified("max_norm", step, table, moves, spent, (low - reach, high + reach)), table


def _radius_digits(rate: Fraction, low: int, high: int, coordinates: int) -> int:
    """Smallest k for which the density at the edge of the largest cube is at most (exp(rate) - 1) the escape's."""
    d, shift, slope = coordinates, least_radius(coordinates), float(rate)
    for count in range(1, MAX_RADIUS_BITS):
        most = 2**count - 1
        edge = shift + most
        if (d + 1) * math.exp(-slope * 2**count) > 0.5:
            continue
        log_density = math.lgamma(most + d + 1) - math.lgamma(most + 1) - math.lgamma(d + 1) - slope * most
        log_density += d * math.log(slope) - d * math.log(2 * edge + 1)
        floor = -math.log(2.0) * (ESCAPE_BITS + d * window_bits(low - edge, high + edge))
        if log_density + EDGE_SLACK <= floor:
            return count
    raise ValueError(f"noise of {float(d / rate):.3g} lattice steps is too wide for a release; coarsen the statistic.")


def one_sided(law: str, moves: Fraction, epsilon: Fraction, step: Fraction, outcomes: int, factor: int):
    """Certificate and digits for noise that only decides: factor rate moves + error <= epsilon.

    factor 2 for a selection among `outcomes`, 1 for a comparison. The noise is compared, never released, and
    the error counts once because only one noisy value is compared with a threshold.
    """
    width = max(1, (outcomes - 1).bit_length())

    def attempt(rate):
        table = geometric_digits(rate, digits_needed(rate, lambda _: ESCAPE_BITS + 2 + width))
        return table, factor * rate * moves + table.error + Fraction(1, 2 ** (ESCAPE_BITS + 1))

    table, spent = _largest_rate(attempt, epsilon, factor * moves, epsilon)
    spent = dyadic_above(spent)
    return Certificate(law, step, table.rate, moves, spent, spent**2 / 2), table


@dataclasses.dataclass(frozen=True)
class SparseTables:
    """Digits of the two noises of sparse vector, and how far (in steps) a query may lie from the threshold."""

    threshold: DigitTable
    query: DigitTable
    clip: int


def sparse_vector(moves: Fraction, first: Fraction, each: Fraction, step: Fraction, above: int):
    """Certificate and digits of sparse vector: first for the threshold, `each` for every yes-answer.

    Threshold noise of rate first/moves, query noise of rate each/(2 moves); any number of no-answers is free,
    in the certificate too, because they only grow more likely when queries and threshold move up together.
    Queries are clipped to `clip` steps around the threshold. Proof: docs/theory/sparse_vector.md#theorem.
    """
    target, natural = first + above * each, Fraction(math.log(2)) * (1 + Fraction(1, 10**12))
    rounding = Fraction(1, 2 ** (ESCAPE_BITS + 1))
    for shrink in SHRINK:
        kept = 1 - Fraction(1, 2**shrink)
        rates = [dyadic_below(kept * first / moves), dyadic_below(kept * each / (2 * moves))]
        clip = math.ceil((ESCAPE_BITS + 3) * natural / min(rates))
        query = geometric_digits(rates[1], digits_needed(rates[1], lambda _: ESCAPE_BITS + 3))
        # beyond this threshold noise no query fires on its own, so all of it means the same
        hopeless = clip + 2 ** len(query.digits) + 1
        needed = hopeless + moves + math.ceil((ESCAPE_BITS + 3) * natural / rates[0])
        threshold = geometric_digits(rates[0], math.ceil(needed).bit_length())
        spent = rates[0] * moves + threshold.error + 2 * rounding
        spent += above * (2 * rates[1] * moves + query.error + rounding)
        if spent <= target * (1 - Fraction(1, 2 ** (shrink + 1))):
            spent = dyadic_above(spent)
            facts = Certificate("sparse_vector", step, rates[1], moves, spent, spent**2 / 2)
            return facts, SparseTables(threshold, query, clip)
    raise ValueError(f"no certificate holds at a budget of {float(target):.3g}; give the release a larger budget.")


def _largest_rate(attempt, epsilon: Fraction, moves: Fraction, target: Fraction):
    """The first shrunken rate whose certificate stays within the target."""
    for shrink in SHRINK:
        rate = dyadic_below(epsilon * (1 - Fraction(1, 2**shrink)) / moves)
        found, spent = attempt(rate)
        if spent <= target * (1 - Fraction(1, 2 ** (shrink + 1))):
            return found, spent
    raise ValueError(f"no certificate holds at a budget of {float(target):.3g}; give the release a larger budget.")


def dyadic_below(value: Fraction) -> Fraction:
    """The value rounded down to 96 significant bits."""
    scale = Fraction(2) ** (95 - floor_log2(value))
    return Fraction(math.floor(value * scale)) / scale


def dyadic_above(value: Fraction) -> Fraction:
    """The value rounded up to 96 significant bits."""
    scale = Fraction(2) ** (95 - floor_log2(value))
    return Fraction(math.ceil(value * scale)) / scale


def robust_rho(rho: Fraction, error: Fraction) -> Fraction:
    """zCDP of a law whose log probabilities are within `error` of those of a rho-zCDP law.

    rho (1 + t) + error (2 + 1/t), at a t near the best one, sqrt(error/rho).
    """
    if error == 0:
        return rho
    t = Fraction(2) ** (floor_log2(error / rho) // 2)
    return rho * (1 + t) + error * (2 + 1 / t)


def law_of(table: DigitTable) -> dict[int, Fraction]:
    """The exact probabilities of the two-sided law without escape, by enumeration; for small tables."""
    zero = Fraction(table.zero[0], 2 ** table.zero[1])
    law = {0: zero}
    for magnitude in range(2 ** len(table.digits)):
        probability = (1 - zero) / 2
        for i, (threshold, bits) in enumerate(table.digits):
            one = Fraction(threshold, 2**bits)
            probability *= one if magnitude >> i & 1 else 1 - one
        law[magnitude + 1] = law[-magnitude - 1] = probability
    return law


def exponential(moves: Fraction, epsilon: Fraction, step: Fraction, outcomes: int, *, escape_bits: int, rounds: int):
    """Certificate and digits of the exponential mechanism by proposals: epsilon-DP and epsilon^2/8-zCDP.

    rounds: proposals per padded outcome, so that all fail with probability at most exp(-rounds).
    """
    width = max(1, (outcomes - 1).bit_length())
    failure = Fraction(1, 2 ** math.floor(rounds / math.log(2)))
    for shrink in SHRINK:
        rate = dyadic_below(epsilon * (1 - Fraction(1, 2**shrink)) / (2 * moves))
        bits = escape_bits + 2 * width + 62
        table = acceptance_digits(rate, digits_needed(rate, lambda _, bits=bits: bits))
        beyond = Fraction(1, 2**bits)
        escape = Fraction(1, 2**escape_bits)
        error = 2 * table.error + 3 * outcomes * beyond + 3 * failure / escape + 2 * beyond * 2**width / escape
        spent = 2 * rate * moves + 2 * error
        rho = robust_rho((2 * rate * moves) ** 2 / 8, error)
        if spent <= epsilon and rho <= epsilon**2 / 8 * (1 - Fraction(1, 2 ** (shrink + 1))):
            return Certificate("argmax_gumbel", step, rate, moves, dyadic_above(spent), dyadic_above(rho)), table
    raise ValueError(f"no certificate holds at a budget of {amounts.spent(epsilon, 3)}; use ReportNoisyMax.")
