"""Means of two groups behind the clipped moments of both."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import jaxdp
from jaxdp.independence.continuous.moment_examples import two_groups as groups
from jaxdp.mechanisms import Exact
from jaxdp.statistics import two_groups

FAR = jnp.array([0.3, 0.6, -0.5, -1.0])  # balance, means, log sd


def test_moments_are_those_of_the_mixture():
    balance, second, first, log_sd = map(float, FAR)

    def mean(power, sign):
        total = 0.0
        for g, share, centre in ((1.0, 0.5 * (1 + balance), second), (-1.0, 0.5 * (1 - balance), first)):
            law = norm(centre, np.exp(log_sd))
            inside = quad(lambda u, law=law: u**power * law.pdf(u), -1.0, 1.0)[0]
            total += share * (g if sign else 1.0) * (inside + law.sf(1.0) + (-1.0) ** power * law.cdf(-1.0))
        return total

    wanted = [balance, mean(1, True), mean(1, False), mean(2, False)]
    np.testing.assert_allclose(two_groups.moments_of(FAR), wanted, atol=1e-6)


@pytest.mark.parametrize("far", [(0.0, 0.1, -0.1, -0.4), tuple(map(float, FAR)), (-0.8, -0.7, 0.7, -1.5)])
def test_parameters_are_found_again(far):
    with jax.enable_x64(True):
        np.testing.assert_allclose(two_groups.fitted(two_groups.moments_of(jnp.array(far))), far, atol=1e-6)


def test_moments_out_of_reach_give_numbers():
    for moments in ((1.3, -1.2, 1.1, 0.2), (-2.0, 0.5, 0.0, 5.0), (0.0, 0.0, 0.0, -1.0)):
        assert np.isfinite(two_groups.fitted(jnp.array(moments))).all()


@pytest.mark.parametrize("effect", [0.0, 0.8, 2.5])
def test_the_difference_of_distant_groups_is_not_bent(effect):
    test = jaxdp.WinsorisedMeanDifference(epsilon=1.0, centres=0.0, scales=0.2, clip=2.0)
    exact = dataclasses.replace(test, epsilon=None, mechanism=Exact())
    with jax.enable_x64(True):
        found = jaxdp.run(exact, jax.random.key(1), groups(jax.random.key(2), 20_000, effect))
    low, high = found.interval
    assert high - low == pytest.approx(2 * 1.96 * 0.4 / 20_000**0.5, rel=0.15)  # of the t-test, a little wider
    assert abs(float(found.effect) - 0.2 * effect) < high - low


@pytest.mark.full
def test_the_correlation_of_two_groups_is_that_of_the_difference():
    data = groups(jax.random.key(2), 20_000, 2.5)
    data = dataclasses.replace(data, x=data.y, y=data.x, domain=type(data.domain)(data.domain.y, data.domain.x))
    public = {"mechanism": Exact(), "centres": 0.0, "scales": 0.2, "clip": 1.0}
    with jax.enable_x64(True):
        correlation = float(jaxdp.run(jaxdp.WinsorisedPartialCorrelation(**public), jax.random.key(1), data).effect)
    x, y = np.asarray(data.x, float), np.asarray(data.y, float)
    assert correlation == pytest.approx(np.corrcoef(x, y)[0, 1], rel=0.02)
