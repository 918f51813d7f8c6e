"""Pairs of laws that dominate lattice noise: the hockey-stick divergences of both, computed."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import log_ndtr

from jaxdp.noise import certificate, discrete_gaussian, dominating
from jaxdp.noise.certificate import Certificate
from jaxdp.noise.dominating import Geometric, Normal, Pure, pair_of


def normal_delta(distance, e):
    """sup_S P(S) - exp(e) P'(S) of N(0, 1) and N(distance, 1) (Balle and Wang 2018, Theorem 8)."""
    left, right = 0.5 * distance - e / distance, -0.5 * distance - e / distance
    return np.exp(log_ndtr(left)) - np.exp(e + log_ndtr(right))


def laplace_delta(epsilon, e):
    """The same of continuous Laplace noise."""
    return np.maximum(-np.expm1(0.5 * (e - epsilon)), 0.0)


def discrete_delta(log_law, moves, e):
    """The same of a law on whole numbers and of that law moved: a sum over all outputs."""
    first = np.concatenate([log_law, np.full(moves, -np.inf)])
    second = np.concatenate([np.full(moves, -np.inf), log_law])
    return np.array([np.sum(np.maximum(np.exp(first) - np.exp(shift + second), 0.0)) for shift in np.atleast_1d(e)])


def normal_law(variance, sds=12.0):
    steps = np.arange(-math.ceil(sds * math.sqrt(variance)), math.ceil(sds * math.sqrt(variance)) + 1)
    log_law = -(steps**2) / (2.0 * variance)
    return log_law - np.log(np.sum(np.exp(log_law)))


def geometric_law(rate, sds=40.0):
    steps = np.arange(-math.ceil(sds / rate), math.ceil(sds / rate) + 1)
    return -rate * np.abs(steps) + math.log(math.tanh(0.5 * rate))


def gaussian_certificate(rho, moves=1500, coordinates=1):
    return discrete_gaussian.gaussian(Fraction(moves) ** 2, Fraction(rho), Fraction(1), -(10**4), 10**4, coordinates)[0]


@pytest.mark.parametrize("rho", [0.005, 0.1, 0.9])
def test_the_normal_pair_is_further_apart_than_the_discrete_noise_and_hardly(rho):
    moves = 1500
    found = gaussian_certificate(rho, moves)
    pair = pair_of(found)
    variance = float(found.rate)
    assert pair.distance == pytest.approx(moves / math.sqrt(variance), rel=1e-5)
    reach = moves**2 / (2.0 * variance) + 6.0 * moves / math.sqrt(variance)
    e = np.linspace(0.0, reach, 400)
    exact = discrete_delta(normal_law(variance), moves, e)
    dominating_delta = normal_delta(pair.distance, e)
    assert np.all(exact <= dominating_delta * (1.0 + 1e-11))
    assert np.all(dominating_delta <= exact * (1.0 + 1e-3))


@pytest.mark.parametrize(("variance", "moves"), [(6.0, 3), (9.0, 2), (30.0, 7), (30.0, 1)])
def test_discrete_normal_noise_is_further_apart_than_normal_noise_of_its_variance(variance, moves):
    """Why the event is not the one of the continuous namesake: between the points of the lattice it claims less."""
    e = np.linspace(0.0, moves**2 / (2.0 * variance) + 3.0 * moves / math.sqrt(variance), 1000)
    exact = discrete_delta(normal_law(variance), moves, e)
    assert np.max(exact / normal_delta(moves / math.sqrt(variance), e)) > 1.0 + 1e-4
    assert np.all(exact <= normal_delta(moves / math.sqrt(variance - dominating.KERNEL), e) * (1.0 + 1e-9))


@pytest.mark.parametrize("moves", [(1, 2), (3, 0), (2, 2)])
def test_several_coordinates_are_no_further_apart_than_the_pair_at_their_distance(moves):
    variance = 7.0
    laws = [normal_law(variance, 8.0)] * 2

    def both(shifts):
        padded = [
            np.pad(law, (shift, max(moves) - shift), constant_values=-np.inf)
            for law, shift in zip(laws, shifts, strict=True)
        ]
        return np.add.outer(*padded)

    first, second = both((0, 0)), both(moves)
    for e in np.linspace(0.0, 4.0, 30):
        exact = np.sum(np.maximum(np.exp(first) - np.exp(e + second), 0.0))
        assert exact <= normal_delta(math.hypot(*moves) / math.sqrt(variance - dominating.KERNEL), e) + 1e-12


@pytest.mark.parametrize(("epsilon", "moves"), [(0.2, 1500), (1.0, 1500), (4.0, 2000), (1.0, 1), (0.3, 7)])
def test_the_geometric_pair_is_further_apart_than_the_noise_and_hardly(epsilon, moves):
    law = "laplace" if moves > 1000 else "geometric"
    found, table = certificate.additive(law, Fraction(moves), Fraction(epsilon), Fraction(1), 0, 100, 1)
    pair = pair_of(found)
    assert isinstance(pair, Geometric)
    e = np.linspace(0.0, epsilon, 301)
    exact, claimed = (discrete_delta(geometric_law(rate), moves, e) for rate in (float(found.rate), pair.rate))
    assert np.all(exact <= claimed)
    assert np.all(claimed <= exact + 1e-5)
    assert pair.rate * moves <= epsilon * (1.0 + 2e-6)
    if moves < 10:
        assert np.max(exact - laplace_delta(epsilon, e)) > 1e-6  # of continuous noise it would be too little
    if moves == 1:  # by enumeration of what the sampler compares, with its errors
        steps = certificate.law_of(table)
        sampled = np.log([float(steps[step]) for step in sorted(steps)])
        assert np.all(discrete_delta(sampled, moves, e[:-1]) <= claimed[:-1])


def test_what_is_not_additive_is_randomised_response():
    found, _ = certificate.one_sided("argmax_exponential", Fraction(1000), Fraction(1), Fraction(1), 5, factor=2)
    assert pair_of(found) == Pure(pytest.approx(float(found.epsilon), rel=1e-12))
    found, _ = certificate.additive("laplace", Fraction(1500), Fraction(25), Fraction(1), 0, 100, 1)
    assert pair_of(found) == Pure(
        pytest.approx(float(found.epsilon), rel=1e-12)
    )  # the slack does not cover the errors surely


@pytest.mark.parametrize(
    "found",
    [
        gaussian_certificate(400.0, 10**5),  # exp(-distance^2/8) is below the errors
        Certificate("gaussian", Fraction(1), Fraction(400), Fraction(1), None, Fraction(1, 799)),  # too coarse
        Certificate("laplace", Fraction(1), Fraction(1, 400), Fraction(1), Fraction(1), None, delta=Fraction(1, 9)),
    ],
)
def test_where_no_pair_is_surely_true_there_is_none(found):
    with pytest.raises(ValueError, match="event"):
        pair_of(found)


def test_a_normal_pair_grows_with_what_is_not_known_of_the_noise():
    """A certificate that spends more than its noise does has errors that the slack must cover."""
    found = gaussian_certificate(0.1)
    assert isinstance(pair_of(found), Normal)
    loose = Certificate("gaussian", found.step, found.rate, found.moves, None, found.rho * (1 + Fraction(1, 1000)))
    with pytest.raises(ValueError, match="no event that is surely true"):
        pair_of(loose)
