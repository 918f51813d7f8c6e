"""BandGCM and ContrastGCM: what leaves in a release, level, and what the level rule refuses and says."""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp import core
from jaxdp.data.dataset import Column, Domain
from jaxdp.independence.continuous import contrast_gcm, contrast_order, validity
from jaxdp.statistics.partition import Uniform


def key(seed):
    return jax.random.key(seed)


@pytest.mark.full
def test_same_value_ignores_jumps_between_values():
    """Site numbers declared continuous: effects per site fool the band and not the pairs of one site."""
    rng = np.random.default_rng(14)
    site = rng.integers(300, size=1000).astype(float)
    effect = 2.0 * rng.normal(size=300)[site.astype(int)]
    x, y = effect + rng.normal(size=1000), effect + rng.normal(size=1000)
    p_values = {}
    for same in (False, True):
        test = jaxdp.BandGCM(epsilon=8.0, same_value=same, scale_x=1.0, scale_y=1.0)
        p_values[same] = float(jaxdp.run(test, key(1), jaxdp.Data(x, y, site)).p_value)
    assert p_values[False] < 1e-3
    assert p_values[True] > 0.05


def sites(key, num_sites: int, values: int, n=1000):
    """Site numbers declared continuous, with effects that X and Y share; they are independent within a site."""
    key_z, key_effect, key_x, key_y = jax.random.split(key, 4)
    site = jax.random.randint(key_z, (n,), 0, num_sites)
    effect = 0.25 * jax.random.normal(key_effect, (num_sites,))[site]
    x, y = (jnp.clip(effect + 0.25 * jax.random.normal(k, (n,)), -1, 1) for k in (key_x, key_y))
    return jaxdp.Data(x, y, 2.0 * site / (num_sites - 1) - 1.0, Domain(z=(Column(values=values),)))


@pytest.mark.full
def test_a_declared_step_keeps_the_level_of_site_numbers():
    """The band rejects nearly always; pairs of one value keep the level (binomial(400, 0.05): beyond 40 at 1e-4)."""
    test = jaxdp.BandGCM(epsilon=8.0)

    def rejections(values):
        design = functools.partial(sites, num_sites=200, values=values)
        return int(jaxdp.power.rejection_rate(test, design, key(1), 400).rejections)

    assert rejections(200) <= 40
    assert rejections(0) > 300


def test_equal_values_alone_are_compared_where_the_step_leaves_few():
    def rule(values, n=1000, test=None):
        domain = Domain(z=(Column(values=values),) * (2 if test else 1))
        shapes = core.public_shapes(jaxdp.Data(jnp.zeros(n), jnp.zeros(n), jnp.zeros((n, len(domain.z))), domain))
        return (test or jaxdp.BandGCM(epsilon=1.0)).validity(shapes)

    assert "equal Z" in rule(250).sentence  # k = 2: 1000/4
    assert rule(251).flags == ("labels",)
    assert "categorical" in rule(251).sentence
    assert rule(0).flags == ()
    assert "step" in rule(0).sentence
    unchecked = jaxdp.ContrastGCM(epsilon=1.0, check_roughness=False)
    assert rule(5, n=20_000, test=unchecked).flags == ("curvature", "labels")


def test_the_caliper_grows_with_the_levels_of_coded_columns():
    """Neighbours of one hour are 24 times as far apart as neighbours: a correlation of 0.5 is found all the same."""
    rng, n = np.random.default_rng(1), 1000
    day, (own, other) = rng.uniform(0, 365, n), rng.normal(size=(2, n))
    trend = np.sin(2 * np.pi * day / 365) + 1.5 * np.sin(2 * np.pi * day)
    table = {"x": trend + own, "y": trend + 0.5 * own + 0.87 * other, "day": day, "hour": np.floor(24 * (day % 1))}
    bounds = {"x": (-6, 6), "y": (-6, 6), "day": (0, 365)}
    how = {"x": "x", "y": "y", "given": ["day", "hour"], "epsilon": 1.0, "key": key(1)}
    answer = jaxdp.test(table, bounds=bounds, levels={"hour": list(range(24))}, **how)
    assert answer.p_value < 1e-3  # a caliper of 4k/n left 0.5 or more
    alone = jaxdp.test(table, bounds=bounds, **(how | {"given": "day", "key": key(2)}))
    jumps = [one.content["level_rule"]["jumps"] for one in (answer, alone)]
    assert jumps[0] == pytest.approx(jumps[1] / 24)  # a jump is crossed once in each hour
    assert "should not jump" in answer.content["level_rule"]["sentence"]


@pytest.mark.full
def test_a_release_is_an_exact_sum_plus_lattice_noise():
    rng = np.random.default_rng(16)
    x, y = np.clip(rng.normal(size=(2, 300)) / 4, -1, 1)
    z = rng.uniform(-1, 1, size=(300, 2))
    band, contrast = (jaxdp.Data(x, y, z[:, :d], Domain((Column(),), (Column(),), (Column(),) * d)) for d in (1, 2))
    for test, data in (
        (jaxdp.BandGCM(epsilon=1e4), band),
        (jaxdp.BandGCM(epsilon=1e4, variance="released"), band),
        (jaxdp.BandGCM(mechanism=jaxdp.Gaussian(1e8)), band),
        (jaxdp.ContrastGCM(epsilon=1e4), contrast),
    ):
        result = jaxdp.run(test, jaxdp.fresh_key(), data)
        assert (result.mode, result.release.mode) == ("release", "release")
        assert result.release.certificates
        assert 0.0 <= result.p_value <= 1.0
        with jax.enable_x64(True):
            exact = core.specialize(test, data).statistic(key(0), data)  # no ties: priorities do not matter
        for released, sum_, bound in zip(
            *(jax.tree.leaves(t) for t in (result.release.value, exact, result.release.sensitivity)), strict=False
        ):
            on_grid = np.asarray(sum_) * 8 * 2**20
            np.testing.assert_array_equal(on_grid, np.round(on_grid))
            assert np.max(np.abs(np.asarray(released) - np.asarray(sum_))) < 0.1, bound


NULLS = ("sine", "low noise", "heavy tails")


def null_data(key_data, null, count=200):
    """x and y share a wave of z; noise by the name of the null."""
    key_z, key_noise, key_heavy = jax.random.split(key_data, 3)
    z = jax.random.normal(key_z, (count,))
    noise = jax.random.normal(key_noise, (2, count))
    heavy = noise / jnp.sqrt(jax.random.exponential(key_heavy, (2, count)))  # Student, two degrees of freedom
    noise = jnp.where(null == 2, heavy, jnp.array([1.0, 0.1, 1.0])[null] * noise)
    shared = 1.5 * jnp.sin(3.0 * z)
    return jaxdp.Data(shared + noise[0], shared + noise[1], z)


@pytest.mark.full
@pytest.mark.optimised
def test_level_of_the_band_at_200_records():
    """3 nulls x 1000 replicates in one batched program; 0.05 + 4 standard errors."""
    test = jaxdp.BandGCM(epsilon=1.0, scale_x=1.0, scale_y=1.0, reference=Uniform(lower=-4.0, upper=4.0))

    @jax.jit
    @jax.vmap
    def p_value(key_run, null):
        key_data, key_test = jax.random.split(key_run)
        return jaxdp.run(test, key_test, null_data(key_data, null)).p_value

    null = jnp.repeat(jnp.arange(3), 1000)
    rejected = np.asarray(p_value(jax.random.split(key(17), 3000), null) <= 0.05).reshape(3, 1000).mean(axis=1)
    assert dict(zip(NULLS, rejected <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / 1000), strict=True)) == dict.fromkeys(
        NULLS, True
    )


def test_the_rule_refuses_before_anything_is_spent(tmp_path):
    rng = np.random.default_rng(18)
    ledger = jaxdp.Ledger.create(tmp_path / "budget.db", epsilon=2.0)
    for test, count, depth, hint in (
        (jaxdp.BandGCM(epsilon=1.0), 99, 1, "at least 100"),
        (jaxdp.BandGCM(epsilon=1.0), 200, 2, "use ContrastGCM"),
        (jaxdp.ContrastGCM(epsilon=1.0), 199, 2, "at least 200"),
        (jaxdp.ContrastGCM(epsilon=1.0), 499, 3, "at least 500"),
        (jaxdp.ContrastGCM(epsilon=1.0), 999, 4, "at least 1000"),
        (jaxdp.ContrastGCM(epsilon=1.0), 5000, 6, "partial-correlation"),
        (jaxdp.ContrastGCM(epsilon=1.0, skewed=True), 5000, 3, "log"),
        (jaxdp.ContrastGCM(epsilon=1.0), 5000, 1, "use BandGCM"),
    ):
        data = jaxdp.Data(*rng.normal(size=(2, count)), rng.normal(size=(count, depth)))
        with pytest.raises(ValueError, match=hint):
            jaxdp.run(test, jaxdp.fresh_key(), data, ledger=ledger)
    assert float(ledger.spent.epsilon) == 0.0


def test_the_rule_states_how_rough_is_too_rough():
    def shapes(n, d):
        return jaxdp.Data(*(jax.ShapeDtypeStruct(s, float) for s in ((n,), (n,), (n, d))))

    band, contrast = jaxdp.BandGCM(epsilon=1.0), jaxdp.ContrastGCM(epsilon=1.0, scale_x=1.0, scale_y=1.0)
    rule = band.validity(shapes(200, 1))
    assert (rule.verdict, rule.flags) == ("run", ())
    assert rule.jumps == pytest.approx(1.2 * math.sqrt(200 * 11 / 36 + 18) / 2)
    assert f"at {math.floor(rule.jumps)} values at most (n = 200, 1 neighbour);" in rule.sentence
    assert "(n = 1000, 2 neighbours);" in band.validity(shapes(1000, 1)).sentence
    assert "low power" in dataclasses.replace(band, epsilon=0.05).validity(shapes(200, 1)).flags
    rule = contrast.validity(shapes(1000, 2))
    assert rule.flags == ("curvature",)
    unchecked = dataclasses.replace(contrast, check_roughness=False)
    for depth in (2, 3, 4, 5):  # a jump along a surface is harmless at no n
        assert unchecked.validity(shapes(1_000_000, depth)).flags == ("curvature",)
    assert "Z must be a quantity" in band.validity(shapes(200, 1)).sentence
    assert rule.deviation == pytest.approx(0.5 * math.sqrt(0.3 * math.sqrt(750 + 8 * 49) / 4000))
    assert rule.curvature == pytest.approx(2 * rule.deviation / (2 * rule.side**2 / 4))
    assert contrast.validity(shapes(1000, 3)).flags == ("curvature",)
    assert contrast.validity(shapes(10_000, 6)).verdict == validity.REFUSE
    narrow = dataclasses.replace(band, scale_x=0.1).validity(
        dataclasses.replace(shapes(200, 1), domain=Domain(z=(Column(),)))
    )
    assert narrow.flags == ("narrow kernel",)


def test_the_null_rate_belongs_to_the_number_of_curves_and_of_records():
    """A smaller variance may be claimed only where four curves are averaged, and wider windows only of many records."""
    test = jaxdp.ContrastGCM(epsilon=1.0)
    assert [test.curves(d) for d in contrast_order.DEPTHS] == [4, 4, 1, 1]
    assert [test._rate(d, 999) for d in contrast_order.DEPTHS] == [1.7, 2.0, 2.2, 2.2]
    assert [test._rate(d, 1000) for d in contrast_order.DEPTHS] == [1.5, 1.7, 2.2, 2.2]
    assert [test._side(2, n) * n**0.5 for n in (999, 1000)] == pytest.approx([2.0, 3.0])
    for curves in (1, 2):
        few = dataclasses.replace(test, num_rotations=curves)
        assert [few._rate(d, 1000) for d in contrast_order.DEPTHS] == [1.7, 2.2, 2.2, 2.2]


def test_wrong_settings_are_refused():
    for fields, hint in (
        ({"kernel": "plain"}, 'variance="released"'),
        ({"kernel": "hard"}, "kernel must be one of"),
        ({"scale_x": -1.0}, "scale_x"),
        ({"num_neighbors": 0}, "num_neighbors"),
    ):
        with pytest.raises(ValueError, match=hint):
            jaxdp.BandGCM(epsilon=1.0, **fields)
    assert contrast_gcm.NULL_RATE.keys() == contrast_order.CALIPER.keys() == set(contrast_order.DEPTHS)
