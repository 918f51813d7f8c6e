"""`StabilityThreshold`: its law, and audits of its epsilon and its delta that a tenth less of either fails."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxdp
from jaxdp.core import Norm, Relation, Sensitivity
from jaxdp.mechanisms.stability import StabilityThreshold
from jaxdp.noise import certificate
from jaxdp.noise.source import source_from_key

DRAWS = 400_000
RARE = 1e-7  # chance of a wrong alarm of an audit by draws


def two(size=DRAWS):
    return Sensitivity(2.0, Norm.L1, Relation.REPLACE_ONE, lower=0.0, upper=1.0 * size)


def drawn(mechanism, count, key):
    """Independent outputs for a count, one for each place."""
    with jax.enable_x64(True):
        value = jnp.full(DRAWS, count, int)
        return np.asarray(mechanism.perturb(source_from_key(key), value, two()))


def law(epsilon, threshold, count, reach=400):
    """Probabilities of "not released" and of every released count from the threshold on, of one place."""
    rate = 0.5 * epsilon
    outputs = np.arange(threshold, threshold + reach)
    mass = np.tanh(rate / 2.0) * np.exp(-rate * np.abs(outputs - count))
    mass = mass if count else 0.0 * mass
    return np.concatenate([[1.0 - mass.sum()], mass])


def delta_of(first, second, epsilon):
    """The hockey-stick divergence of two data sets, each the laws of the two places that differ."""
    p, q = np.outer(*first), np.outer(*second)
    return float(np.maximum(p - np.exp(epsilon) * q, 0.0).sum())


SETTINGS = [(0.3, 1e-6), (1.0, 1e-6), (1.0, 1e-3), (3.0, 1e-9)]


def worst(epsilon, delta, threshold, rate_factor=1.0):
    """The largest exact delta over neighbours: counts of the two levels that a record leaves and enters."""
    at = [0, 1, 2, threshold - 1, threshold, threshold + 7]
    found = 0.0
    for left in at[1:]:
        for entered in at:
            before = [law(epsilon * rate_factor, threshold, count) for count in (left, entered)]
            after = [law(epsilon * rate_factor, threshold, count) for count in (left - 1, entered + 1)]
            found = max(found, delta_of(before, after, epsilon), delta_of(after, before, epsilon))
    return found


@pytest.mark.parametrize(("epsilon", "delta"), SETTINGS)
def test_the_exact_delta_of_all_neighbours_is_within_the_stated_one_and_not_far_below(epsilon, delta):
    threshold = StabilityThreshold(epsilon=epsilon, delta=delta).threshold()
    found = worst(epsilon, delta, threshold)
    assert found <= delta * (1 + 1e-6)
    assert found >= delta * np.exp(-0.5 * epsilon)  # the threshold is a whole number
    assert worst(epsilon, delta, round(0.9 * threshold)) > delta  # cut by a tenth
    assert worst(epsilon, delta, threshold, rate_factor=1 / 0.9) > delta


@pytest.mark.parametrize("key", [lambda: jax.random.key(7), jaxdp.fresh_key], ids=["simulation", "release"])
def test_a_level_of_one_record_is_released_with_probability_delta_at_most(key):
    delta = 0.05
    mechanism = StabilityThreshold(epsilon=0.5, delta=delta)
    hits = int(np.sum(drawn(mechanism, 1, key()) > 0))
    assert stats.binom.sf(hits - 1, DRAWS, delta) > RARE
    assert hits > 0.7 * delta * DRAWS
    assert not np.any(drawn(mechanism, 0, key()))  # what does not occur is never released


@pytest.mark.parametrize("key", [lambda: jax.random.key(8), jaxdp.fresh_key], ids=["simulation", "release"])
def test_draws_of_neighbouring_counts_differ_by_epsilon_at_most(key):
    """One place moves by 1: at most epsilon/2 of it, and nearly that; the other half is for the level it enters."""
    epsilon = 1.0
    mechanism = StabilityThreshold(epsilon=epsilon, delta=1e-3)
    threshold = mechanism.threshold()
    low, high = (np.sum(drawn(mechanism, threshold - 2 + more, key()) > 0) for more in (0, 1))
    most = low / DRAWS * np.exp(0.5 * epsilon)
    assert stats.binom.sf(high - 1, DRAWS, most + 5.0 * np.sqrt(low) / DRAWS * np.exp(0.5 * epsilon)) > RARE
    assert np.log(high / low) > 0.45 * epsilon


def test_a_release_has_a_certificate_of_epsilon_and_of_delta():
    mechanism = StabilityThreshold(epsilon=0.5, delta=1e-6)
    with jax.enable_x64(True):
        source = source_from_key(jaxdp.fresh_key())
        found = mechanism.perturb(source, jnp.array([500, 1, 0, 0]), two(1000))
    (facts,) = source.certificates
    assert found[0] > 0
    assert float(facts.epsilon) <= 0.5
    assert float(facts.delta) == 1e-6
    assert facts.rho is None
    assert (
        certificate.tail(facts, mechanism.threshold() - 1) <= 1e-6 < certificate.tail(facts, mechanism.threshold() - 2)
    )


def test_the_tail_of_a_certificate_is_that_of_its_digits():
    facts, table = certificate.additive("geometric", certificate.Fraction(2), certificate.Fraction(4), 1, 0, 1, 2)
    law = certificate.law_of(table)
    for steps in (1, 2, 5):
        exact = float(sum(mass for value, mass in law.items() if value >= steps))
        assert exact <= certificate.tail(facts, steps) <= exact * (1 + 1e-6) + 2.0**-49


@pytest.mark.parametrize(
    ("epsilon", "delta", "told"),
    [(1.0, 0.0, "delta"), (1.0, 1e-13, "at least 1e-12"), (0.1, 0.06, "1 - exp"), (0.0, 1e-6, "epsilon")],
)
def test_a_bad_budget_is_refused(epsilon, delta, told):
    with pytest.raises(ValueError, match=told):
        StabilityThreshold(epsilon=epsilon, delta=delta)


def test_it_takes_the_bound_of_counts_alone():
    with pytest.raises(ValueError, match="two by 1"):
        StabilityThreshold(epsilon=1.0, delta=1e-6).require(Sensitivity(1.0, Norm.L1, Relation.REPLACE_ONE))


def test_shares_add_up():
    whole = StabilityThreshold(epsilon=1.0, delta=1e-6)
    half = whole.share(0.5)
    assert (half.epsilon, half.delta) == (0.5, 5e-7)
