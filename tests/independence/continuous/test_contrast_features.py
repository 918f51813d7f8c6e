"""ContrastFeatures: its bound under attack, the oddness that keeps its level, what it sees, where it stands."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binom

import jaxdp
from jaxdp import catalogue, core
from jaxdp.audit import bounds, cases
from jaxdp.data import Column, Data, Domain
from jaxdp.spec import Options
from jaxdp.statistics.neighbours import contrasts, window_features

TWO_Z = Domain((Column(),), (Column(),), (Column(), Column()))
L1, ZCDP = cases.declared(catalogue.find("contrast-features"))


def given_two(key, n, kind=0.0):
    """A slow wave of both columns of z in x and y; 0 independent given z, 1 a parabola, 2 spread, 3 a product."""
    key_z, key_x, key_e = jax.random.split(key, 3)
    z = jax.random.uniform(key_z, (n, 2), minval=-1.0)
    a, e = jax.random.normal(key_x, (n,)), jax.random.normal(key_e, (n,))
    wave = jnp.sin(2.0 * z[:, 0]) + jnp.sin(2.0 * z[:, 1])
    effects = jnp.stack([e, 0.8 * (a**2 - 1) / 2**0.5 + e, jnp.exp(a / 2) * e, a * e])
    y = effects[jnp.asarray(kind, int)] - wave
    return Data(jnp.clip((wave + a) / 4, -1, 1), jnp.clip(y / 4, -1, 1), z, TWO_Z)


def built(n, epsilon=1.0):
    return catalogue.find("contrast-features").build(epsilon, TWO_Z, Options(num_records=n))


def test_an_attack_reaches_the_bound_and_never_passes_it():
    """Cut by a tenth, the bound would be passed."""
    pairs = L1.pairs()
    query = core.specialize(L1.build(jaxdp.ContrastFeatures, 1.0), pairs[0][0])
    assert query.sensitivity(16).bound == 22.0
    assert 0.99 < bounds.reached_by(query, pairs)[""].share <= 1.0
    gaussian = core.specialize(ZCDP.build(jaxdp.ContrastFeatures, 1.0), pairs[0][0])
    assert gaussian.sensitivity(16).bound == 22.0
    assert 0.84 < bounds.reached_by(gaussian, pairs)[""].share <= 1.0


def windows_of(seed, scale, count=4000, size=6):
    """Symmetric contrasts of two columns of z, and values of windows."""
    keys = jax.random.split(jax.random.key(seed), 4)
    axes = [jax.random.normal(keys[k], (size, count)) for k in range(2)]
    contrast = contrasts.symmetric_contrast(axes, jax.random.normal(keys[2], (size, count)))
    return contrast, scale * jax.random.exponential(keys[3], (size, count))


@pytest.mark.parametrize("scale", [1e-3, 0.5, 1.0, 1e3, 1e300])
def test_features_of_a_window_lie_in_the_ball_on_the_grid(scale):
    with jax.enable_x64(True):
        found = np.asarray(window_features.features(*windows_of(0, scale), 1.0))
    assert np.abs(found).sum(axis=1).max() <= 1.0
    assert (found * 1024 == np.round(found * 1024)).all()


def test_exchanging_the_records_of_every_pair_changes_the_sign():
    """So g has mean 0 for every law that the records of a window share, however skewed."""
    with jax.enable_x64(True):
        contrast, values = windows_of(1, 1.0)
        exchanged = values.reshape(3, 2, -1)[:, ::-1].reshape(values.shape)
        found = [np.asarray(window_features.features(contrast, side, 1.0)) for side in (values, exchanged)]
    assert np.abs(found[0]).max() > 0.5
    np.testing.assert_allclose(found[0], -found[1], atol=2.0**-9)  # sums in another order may round otherwise


def test_trends_below_the_dead_zone_are_no_sizes():
    contrast, values = windows_of(2, 1.0)
    small = 0.7 * (values / jnp.max(values))
    assert np.abs(window_features.features(contrast, small, 1.0)[:, 1]).max() == 0.0


def test_it_serves_the_wish_for_any_dependence_given_several_columns():
    assert catalogue.default(TWO_Z, sees="any").name == "contrast-features"
    assert catalogue.default(TWO_Z).name == "contrast-gcm"
    data = given_two(jax.random.key(1), 300)
    with pytest.raises(ValueError, match="use ContrastFeatures"):
        jaxdp.run(jaxdp.FeatureGCM(epsilon=1.0), jax.random.key(0), data)
    one = Data(data.x, data.y, data.z[:, 0])
    with pytest.raises(ValueError, match="use FeatureGCM"):
        jaxdp.run(jaxdp.ContrastFeatures(epsilon=1.0), jax.random.key(0), one)


def test_the_rule_speaks_of_laws_and_flags_every_answer():
    rule = built(2000).validity(core.public_shapes(given_two(jax.random.key(0), 2000)))
    assert rule.flags == ("curvature",)
    assert "the laws of X and of Y hardly change" in rule.sentence
    few = built(1000).validity(core.public_shapes(given_two(jax.random.key(0), 1000)))
    assert few.flags == ("curvature", "low power")
    assert "Low power" in few.sentence
    assert built(100).validity(core.public_shapes(given_two(jax.random.key(0), 100))).verdict == "refuse"


def rejections(kind, replicates, n, epsilon):
    design = functools.partial(given_two, n=n, kind=float(kind))
    return jaxdp.power.rejection_rate(built(n, epsilon), design, jax.random.key(5), replicates).rejections


@pytest.mark.optimised
@pytest.mark.full
def test_level_given_a_wave_of_both_columns():
    assert rejections(0, 300, 1000, 8.0) <= binom.ppf(1 - 1e-4, 300, 0.05)


@pytest.mark.optimised
@pytest.mark.full
def test_it_sees_bends_spread_and_products():
    for kind in (1, 2, 3):
        assert rejections(kind, 40, 1500, 4.0) >= 30
