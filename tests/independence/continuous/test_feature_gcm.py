"""FeatureGCM: its features' diameter, its variance bound, level, what it sees, where it stands in the choice."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binom

import jaxdp
from jaxdp import catalogue
from jaxdp.data import Column, Data, Domain
from jaxdp.spec import Options
from jaxdp.statistics.neighbours import size_features

ONE_Z = Domain((Column(),), (Column(),), (Column(),))


def given_z(key, n, kind=0.0):
    """A wave of z in x and y; 0 independent given z, 1 a parabola, 2 spread, 3 linear."""
    key_z, key_x, key_e = jax.random.split(key, 3)
    z = 2 * jax.random.normal(key_z, (n,))
    a, e = jax.random.normal(key_x, (n,)), jax.random.normal(key_e, (n,))
    wave = jnp.exp(-(z**2) / 2) * jnp.sin(2 * z)
    effects = jnp.stack([e, 0.8 * (a**2 - 1) / 2**0.5 + e, jnp.exp(a / 2) * e, 0.25 * a + e])
    y = effects[jnp.asarray(kind, int)] - wave
    return Data(jnp.clip((wave + a) / 4, -1, 1), jnp.clip(y / 4, -1, 1), jnp.clip(z / 8, -1, 1), ONE_Z)


def built(n=1000, epsilon=1.0):
    return catalogue.find("feature-gcm").build(epsilon, ONE_Z, Options(num_records=n))


def test_the_size_comes_for_nothing():
    places = np.linspace(-1.5, 1.5, 301)
    phi = np.asarray(size_features.features(places, 0.0, 1.0))
    apart = np.abs(phi[:, None, :] - phi[None, :, :]).sum(axis=2)
    assert apart.max() == size_features.DIAMETER
    assert np.abs(phi[:, None, 0] - phi[None, :, 0]).max() == size_features.DIAMETER
    squares = np.asarray(size_features.squares(jnp.asarray(phi)))
    assert squares.min() == 0.0
    assert squares.max() == 1.0


def test_the_squares_bound_the_null_variance():
    """Over data sets of skewed noise about a wrong centre, S varies no more than R says."""
    test = jaxdp.FeatureGCM(epsilon=1.0, centres=(0.3, -0.2), winsorize=1.0, scale_x=1.0, scale_y=1.0)

    @jax.jit
    @jax.vmap
    def one(key):
        x, y, z = jax.random.exponential(key, (3, 600)) - 1.0
        return test.statistic(None, Data(x, y, z))

    found = one(jax.random.split(jax.random.key(0), 800))
    bound = (1.0 + 0.5 / test.neighbors(600)) * size_features.SPREADS * jnp.mean(found["squares"], axis=0)
    ratio = np.asarray(jnp.var(found["sums"], axis=0) / bound)
    assert (ratio < 1.0 + 5 * (2 / 800) ** 0.5).all()
    assert ratio.min() > 0.2


def test_it_serves_the_wish_for_any_dependence_given_one_z():
    assert catalogue.default(ONE_Z, sees="any").name == "feature-gcm"
    assert catalogue.default(ONE_Z).name == "band-gcm"


def test_private_centres_come_first():
    staged = jaxdp.core.specialize(built(300), given_z(jax.random.key(0), 300))
    assert type(staged.first).__name__ == "QuantileCuts"


def rejections(kind, replicates, epsilon=1.0):
    design = functools.partial(given_z, n=1000, kind=float(kind))
    return jaxdp.power.rejection_rate(built(epsilon=epsilon), design, jax.random.key(5), replicates).rejections


@pytest.mark.optimised
@pytest.mark.full
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_level_given_a_wave(epsilon):
    assert rejections(0, 1000, epsilon) <= binom.ppf(1 - 1e-4, 1000, 0.05)


@pytest.mark.optimised
@pytest.mark.full
@pytest.mark.parametrize("kind", [1, 2, 3])
def test_it_sees_bends_spread_and_lines(kind):
    assert rejections(kind, 100) >= 85
