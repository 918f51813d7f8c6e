"""The best of a random number of runs, exactly: what `RandomStopping` draws in a release.

Each run takes a random index and the score there plus lattice Laplace noise; K, the number of runs, is geometric. All
runs that K can reach are made, so that time says nothing about K. Proof: docs/theory/random_stopping.md.
"""

import functools
import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base import amounts
from jaxdp.noise import certificate, lattice, samplers
from jaxdp.noise.certificate import ESCAPE_BITS, Certificate, exact

FACTOR = 3  # the best of K geometric runs costs three runs (Liu and Talwar 2019; Papernot and Steinke 2022)
MAX_DIGITS = 18  # 2^18 runs are made at most
_KEPT = 1 - Fraction(1, 2**30)  # of the budget; the rest pays for rounding in the law of K


def plan(sensitivity, epsilon, mean_runs, outcomes: int):
    """(certificate, plan of one run's noise, digits of K - 1), all public. Errors: ValueError if none holds."""
    epsilon, mean = exact(epsilon, "epsilon"), exact(mean_runs, "mean_runs")
    one = lattice.plan_laplace(1, sensitivity, epsilon * _KEPT / FACTOR)
    assert one.facts.epsilon is not None
    rate = certificate.dyadic_below(Fraction(-math.log1p(-1.0 / float(mean))))
    width = max(1, (outcomes - 1).bit_length())
    count = certificate.digits_needed(rate, lambda _: 2 * ESCAPE_BITS + width + 4)
    if count > MAX_DIGITS:
        raise ValueError(f"mean_runs = {float(mean):g} needs 2^{count} runs in a release; give mean_runs <= 2000.")
    number = certificate.geometric_digits(rate, count)
    spent = FACTOR * one.facts.epsilon + 2 * number.error + Fraction(1, 2 ** (ESCAPE_BITS + 1))
    if spent > epsilon:
        raise ValueError(
            f"no certificate holds at a budget of {amounts.spent(epsilon, 3)}; give the release a larger budget."
        )
    spent = certificate.dyadic_above(spent)
    facts = Certificate("best_of_runs", one.facts.step, one.facts.rate, one.facts.moves, spent, spent**2 / 2)
    return facts, one, number


def best_of_runs(key, scores, sensitivity, epsilon, mean_runs):
    """Index of the best noisy score of K runs, and the certificate; Linf bound, public range required."""
    scores = lattice._scores(scores)
    facts, one, number = plan(sensitivity, epsilon, mean_runs, scores.size)
    key_count, key_index, key_noise, key_escape = jax.random.split(key, 4)
    runs = 1 << len(number.digits)
    steps = lattice._steps(scores, one.exponent, [min(one.low)], [max(one.high)])
    words = samplers.random_bits(key_index, runs)[:runs]
    index = ((words >> np.uint64(32)) * np.uint64(scores.size) >> np.uint64(32)).astype(np.int64)
    noisy = _noisy(key_noise, steps[index], one)
    allowed = np.arange(runs) <= lattice._one_sided_noise(key_count, number, 1)[0]
    spare = samplers.random_bits(key_escape, 2)
    other = samplers.anywhere(spare[1], np.int64(0), np.int64(scores.size - 1), lattice._mask(scores.size))
    return jnp.where(samplers.escapes(spare[0], ESCAPE_BITS), other, best(noisy, index, allowed)), facts


def best(noisy, index, allowed):
    """The largest index among the allowed runs with the largest noisy score."""
    top = jnp.max(jnp.where(allowed, noisy, np.iinfo(noisy.dtype).min))
    return jnp.max(jnp.where(allowed & (noisy == top), index, -1))


def _noisy(key, steps, one):
    """Integers with the plan's noise, each drawn by itself."""
    table = one.table
    layout, thresholds = samplers.layout_of(table.digits), samplers.packed((*table.digits, table.zero))
    window = lattice._ends(one.facts)
    draw = functools.partial(
        samplers.released, thresholds=thresholds, window=window, layout=layout, escape_bits=ESCAPE_BITS
    )
    return lattice._in_passes(key, samplers.rows_of(layout) + 5, draw, steps)
