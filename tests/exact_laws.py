"""Exact laws of the release samplers, by enumeration with fractions: what the thresholds really give."""

import decimal
import itertools
import math
from fractions import Fraction

from jaxdp.noise import certificate


def digit_law(table) -> list[Fraction]:
    """P(geometric = m), m = 0, ..., 2^k - 1."""
    law = [Fraction(1)]
    for threshold, bits in table.digits:
        one = Fraction(threshold, 2**bits)
        law = [p * (1 - one) for p in law] + [p * one for p in law]
    return law


def two_sided_law(table) -> dict[int, Fraction]:
    """P(noise = k) without escape."""
    zero = Fraction(table.zero[0], 2 ** table.zero[1])
    law = {0: zero}
    for m, probability in enumerate(digit_law(table), 1):
        law[m] = law[-m] = (1 - zero) / 2 * probability
    return law


def anywhere_law(low: int, high: int) -> dict[int, Fraction]:
    """The escape law: a masked integer, cut at the upper end."""
    width = max(1, (high - low).bit_length())
    law = {point: Fraction(1, 2**width) for point in range(low, high + 1)}
    law[high] += Fraction(2**width - (high - low + 1), 2**width)
    return law


def mixed(law: dict, other: dict, escape: Fraction) -> dict:
    return {o: (1 - escape) * law.get(o, 0) + escape * p for o, p in other.items()}


def additive_law(facts, table, value: int, escape_bits: int) -> dict[int, Fraction]:
    """The law of a release of the integer `value`."""
    noise = {value + k: p for k, p in two_sided_law(table).items()}
    return mixed(noise, anywhere_law(facts.low, facts.high), Fraction(1, 2**escape_bits))


def max_norm_laws(facts, table, coordinates: int, escape_bits: int) -> tuple[list[Fraction], Fraction]:
    """P(output) at max-norm 0, 1, ... from the input without escape, and P(an output) by the escape, at the least."""
    most, shift, escape = 2 ** len(table.digits) - 1, certificate.least_radius(coordinates), Fraction(1, 2**escape_bits)
    one = digit_law(table)
    total = one
    for _ in range(coordinates):
        total = [
            sum((total[m] * one[s - m] for m in range(max(0, s - most), min(s, most) + 1)), Fraction(0))
            for s in range(most + 1)
        ]
    density = [(1 - escape) * p / (2 * (s + shift) + 1) ** coordinates for s, p in enumerate(total)]
    ahead = list(itertools.accumulate(reversed(density)))[::-1]
    away = escape + (1 - escape) * (1 - sum(total))
    width = max(1, (facts.high - facts.low).bit_length())
    return [ahead[0]] * shift + ahead + [Fraction(0)], away * Fraction(1, 2 ** (width * coordinates))


def selection_law(table, scores, escape_bits: int) -> dict[int, Fraction]:
    """The law of argmax of scores + geometric noise, lowest index on ties."""
    noise = digit_law(table)
    values = sorted({score + m for score in scores for m in range(len(noise))})

    def below(score, limit):
        return sum(noise[: max(0, limit - score)], Fraction(0))

    law = {}
    for i, score in enumerate(scores):
        total = Fraction(0)
        for v in values:
            if 0 <= v - score < len(noise):
                rest = (below(s, v + (j > i)) for j, s in enumerate(scores) if j != i)
                total += noise[v - score] * math.prod(rest, start=Fraction(1))
        law[i] = total
    return mixed(law, anywhere_law(0, len(scores) - 1), Fraction(1, 2**escape_bits))


def rank_law(table, reference: int, others, count: int, escape_bits: int) -> dict[bool, Fraction]:
    """The law of `at most count noisy others reach the noisy reference`."""
    noise = two_sided_law(table)
    rejected = Fraction(0)
    for k, p in noise.items():
        reach = [sum((q for m, q in noise.items() if o + m >= reference + k), Fraction(0)) for o in others]
        for hits in itertools.product((0, 1), repeat=len(others)):
            if sum(hits) <= count:
                rejected += p * math.prod(
                    (r if h else 1 - r for h, r in zip(hits, reach, strict=True)), start=Fraction(1)
                )
    law = {True: rejected, False: 1 - rejected}
    return mixed(law, {True: Fraction(1, 2), False: Fraction(1, 2)}, Fraction(1, 2**escape_bits))


def proposal_law(table, scores, escape_bits: int, rounds: int) -> dict[int, Fraction]:
    """The law of the exponential mechanism by a fixed number of proposals."""
    width = max(1, (len(scores) - 1).bit_length())
    accept = []
    for score in scores:
        deficit, probability = max(scores) - score, Fraction(1)
        for i, (threshold, bits) in enumerate(table.digits):
            probability *= Fraction(threshold, 2**bits) if deficit >> i & 1 else 1
        accept.append(probability if deficit < 2 ** len(table.digits) else Fraction(0))
    total = sum(accept) / 2**width
    # rounding of the power keeps fractions short; its error of 2^-200 is far below every bound tested
    failure = Fraction(math.floor((1 - total) ** min(rounds << width, 64) * 2**200), 2**200)
    anywhere = anywhere_law(0, len(scores) - 1)
    law = {i: (1 - failure) * a / sum(accept) + failure * anywhere[i] for i, a in enumerate(accept)}
    return mixed(law, anywhere, Fraction(1, 2**escape_bits))


def log(ratio: Fraction) -> Fraction:
    """Natural logarithm, to 100 digits."""
    with decimal.localcontext(decimal.Context(prec=120, Emin=-999999, Emax=999999)):
        return Fraction((decimal.Decimal(ratio.numerator) / decimal.Decimal(ratio.denominator)).ln())


def worst_loss(law: dict, other: dict) -> Fraction:
    """The largest |log ratio| of two laws on the same outcomes."""
    assert law.keys() == other.keys()
    ratios = [max(law[o] / other[o], other[o] / law[o]) for o in law]
    return log(max(ratios))


def numerators(table, two_sided: bool) -> tuple[dict[int, int], int]:
    """Law of the noise as integers over one power of two, and its exponent: sums without greatest common divisors."""
    law, exponent = [1], 0
    for threshold, bits in table.digits:
        law = [p * (2**bits - threshold) for p in law] + [p * threshold for p in law]
        exponent += bits
    if not two_sided:
        return dict(enumerate(law)), exponent
    zero, bits = table.zero
    signed = {sign * (m + 1): p * (2**bits - zero) for m, p in enumerate(law) for sign in (-1, 1)}
    return {0: zero << (exponent + 1), **signed}, exponent + bits + 1


class SparseVectorLaw:
    """Exact transcript probabilities of sparse vector, as integers that are comparable for one transcript."""

    def __init__(self, tables, two_sided: bool, escape_bits: int):
        self.clip = tables.clip
        self.threshold, _ = numerators(tables.threshold, two_sided)
        noise, exponent = numerators(tables.query, two_sided)
        self._lowest, self._highest, self.escape = min(noise), max(noise), 2**escape_bits
        self._above, total = {self._highest + 1: 0}, 0
        for point in range(self._highest, self._lowest - 1, -1):
            total += noise[point]
            self._above[point] = total
        assert total == 1 << exponent
        self.one = 2 * self.escape * total

    def yes(self, gap: int) -> int:
        """P(yes) when the noisy threshold lies `gap` steps above the query, over `one`."""
        reached = self._above[min(max(gap, self._lowest), self._highest + 1)]
        return 2 * (self.escape - 1) * reached + self.one // (2 * self.escape)

    def probability(self, queries, answers, repeat=None) -> int:
        """P(answers), queries in steps from the threshold; `repeat` says how often each query is asked."""
        repeat = [1] * len(queries) if repeat is None else repeat
        clipped = [max(-self.clip, min(self.clip, q)) for q in queries]
        total = 0
        for rho, p in self.threshold.items():
            for q, answer, times in zip(clipped, answers, repeat, strict=True):
                fires = self.yes(rho - q)
                p *= (fires if answer else self.one - fires) ** times
            total += p
        return total
