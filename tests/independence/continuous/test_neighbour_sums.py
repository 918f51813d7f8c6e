"""BandGCM and ContrastGCM: exact sums, invariances, which records are compared."""

import dataclasses
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp import core
from jaxdp.data.dataset import CATEGORICAL, Column, Data, Domain
from jaxdp.mechanisms import Exact
from jaxdp.statistics.neighbours import contrasts, hilbert, neighbour_order


def key(seed):
    return jax.random.key(seed)


def slow_band(x, y, z, k, width):
    """S by a double loop in float64, in units of 2^-20; z without ties."""
    order = np.argsort(z)
    x, y = x[order], y[order]

    def psi(t):
        return np.round(np.clip(t / width, -1, 1) * 1024)

    pairs = [(i, i + j) for j in range(1, k + 1) for i in range(len(x) - j)]
    return int(sum(psi(x[j] - x[i]) * psi(y[j] - y[i]) for i, j in pairs))


def slow_contrast(x, y, z, width):
    """T for records in this order, contrasts by singular values."""
    size, total = z.shape[1] + 2, 0.0
    for start in range(len(x) - size + 1):
        rows = slice(start, start + size)
        null = np.linalg.svd(np.column_stack([np.ones(size), z[rows]]).T)[2][-1]
        psi = [np.round(np.clip(null @ v[rows] / width, -1, 1) * 1024) / 1024 for v in (x, y)]
        total += psi[0] * psi[1]
    return total


def test_the_band_is_an_exact_sum():
    rng = np.random.default_rng(5)
    x, y, z = rng.normal(size=(3, 200))
    test = jaxdp.BandGCM(epsilon=1.0, num_neighbors=4, scale_x=1.0, scale_y=1.0)
    expected = slow_band(x, y, z, 4, 0.5) / 2**20 / 8
    with jax.enable_x64(True):
        assert float(test.statistic(key(0), jaxdp.Data(x, y, z))) == expected
    assert float(jax.jit(test.statistic)(key(0), jaxdp.Data(x, y, z))) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("depth", [2, 3, 5])
def test_contrasts_agree_with_singular_values(depth):
    rng = np.random.default_rng(6)
    x, y, z = rng.normal(size=60), rng.normal(size=60), rng.normal(size=(60, depth))
    kept = np.ones(60 - depth - 1)
    with jax.enable_x64(True):
        arrays = [jnp.asarray(a) for a in (x[:, None], y[:, None], z, rng.normal(size=60), kept)]
        found = contrasts.contrast_sums(*arrays, (0.5, 0.5), False)[0, 0, 0]
    assert float(found) == pytest.approx(slow_contrast(x, y, z, 0.5), abs=2.0**-9)


@pytest.mark.full
def test_several_columns_are_their_pairs():
    data = columns(key(7), 120)
    test = jaxdp.BandGCM(epsilon=1.0)
    together = core.specialize(test, data).statistic(key(0), data)
    for i, j in itertools.product(range(2), range(3)):
        alone = test.statistic(key(0), jaxdp.Data(data.x[:, i], data.y[:, j], data.z))
        np.testing.assert_allclose(together[i, j], alone, rtol=1e-5)


def columns(key_data, count):
    x, y, z = (jax.random.normal(k, (count, c)) for k, c in zip(jax.random.split(key_data, 3), (2, 3, 1), strict=True))
    return jaxdp.Data(x, y, z[:, 0])


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("depth", [2, 3])
def test_a_plane_changes_nothing(depth, symmetric):
    rng = np.random.default_rng(8)
    count, size = 300, contrasts.window_size(depth, symmetric)
    x, y, z = rng.normal(size=(count, 1)), rng.normal(size=(count, 1)), rng.normal(size=(count, depth))
    slopes = 30.0 * rng.normal(size=depth)
    with jax.enable_x64(True):
        arguments = (jnp.asarray(y), jnp.asarray(z), jnp.asarray(rng.normal(size=count)), jnp.ones(count - size + 1))
        found, moved = (
            contrasts.contrast_sums(jnp.asarray(v), *arguments, (0.5, 0.5), symmetric)[..., 0]
            for v in (x, x + (z @ slopes + 5.0)[:, None])
        )
    np.testing.assert_allclose(found, moved, atol=2.0**-9)


@pytest.mark.full
@pytest.mark.parametrize("test", [jaxdp.BandGCM(epsilon=1.0), jaxdp.ContrastGCM(epsilon=1.0)], ids=lambda t: t.method)
def test_the_order_of_the_file_does_not_matter(test, monkeypatch):
    """Priorities belong to records: moved with them, the sum is the same to the last bit."""
    rng = np.random.default_rng(9)
    depth = 1 if test.method == "BandGCM" else 2
    z = np.round(2 * rng.normal(size=(300, depth))) / 2  # many ties
    x, y = rng.normal(size=(2, 300))
    place, priority = rng.permutation(300), rng.integers(2**32, size=300, dtype=np.uint32)
    values = []
    with jax.enable_x64(True):
        for order in (np.arange(300), place):
            monkeypatch.setattr(neighbour_order, "priorities", lambda *_, order=order: jnp.asarray(priority[order]))
            values.append(test.statistic(key(0), jaxdp.Data(x[order], y[order], z[order])))
    np.testing.assert_array_equal(*values)


@pytest.mark.full
@pytest.mark.optimised  # as users' programs are compiled: vectorised loops with remainders
@pytest.mark.parametrize("symmetric", [False, True])
def test_a_window_does_not_feel_its_place_in_the_array(symmetric):
    """Bit for bit: an arrival shifts the windows behind it, and their terms must not change."""
    rng = np.random.default_rng(10)
    for depth in (2, 3, 5):
        size = contrasts.window_size(depth, symmetric)
        make = contrasts.symmetric_contrast if symmetric else contrasts.simplex_contrast

        @jax.jit
        def terms(x, z, scores, make=make, size=size, depth=depth):
            weights = make([contrasts.windows(z[:, j], size) for j in range(depth)], contrasts.windows(scores, size))
            return contrasts.dot(weights, contrasts.windows(x, size))

        x, z, scores = rng.normal(size=203), rng.normal(size=(203, depth)), rng.normal(size=203)
        with jax.enable_x64(True):
            for shift in (1, 3):
                whole, later = (
                    terms(x[:-shift], z[:-shift], scores[:-shift]),
                    terms(x[shift:], z[shift:], scores[shift:]),
                )
                np.testing.assert_array_equal(np.asarray(whole)[shift:], np.asarray(later)[:-shift])


@pytest.mark.parametrize(("depth", "bits"), [(2, 4), (3, 3), (4, 2), (5, 2)])
def test_the_hilbert_curve_visits_neighbours(depth, bits):
    cells = np.array(list(itertools.product(range(2**bits), repeat=depth)))
    high, low = hilbert.hilbert_key(jnp.asarray((cells + 0.5) / 2**bits), bits)
    order = np.lexsort((np.asarray(low), np.asarray(high)))
    steps = np.abs(np.diff(cells[order], axis=0)).sum(axis=1)
    assert set(steps) == {1}


def test_packed_and_plain_sorts_agree():
    rng = np.random.default_rng(12)
    values = jnp.asarray(np.round(4 * rng.normal(size=500)) / 4, jnp.float32).at[:9].set(-0.0)
    priority = jnp.asarray(rng.permutation(2**32 // 4096)[:500] * 4096, jnp.uint32)  # differ in the kept bits
    packed = neighbour_order.order_by_value(values, priority)
    plain = neighbour_order.order_by_value(values, priority, jnp.zeros(500, jnp.int32))
    np.testing.assert_array_equal(packed, plain)
    np.testing.assert_array_equal(packed, np.lexsort((priority, np.where(values == 0, 0.0, values))))


@pytest.mark.full
def test_coded_columns_compare_equal_codes_only():
    rng = np.random.default_rng(13)
    sites, z = rng.integers(3, size=200).astype(float), rng.uniform(-1, 1, size=200)
    x, y = rng.normal(size=(2, 200))
    domain = Domain(z=(Column(CATEGORICAL, 3), Column()))
    test = jaxdp.BandGCM(epsilon=1.0, caliper=math.inf)
    with jax.enable_x64(True):
        together = float(test.statistic(key(0), jaxdp.Data(x, y, np.column_stack([sites, z]), domain)))
        apart = [test.statistic(key(0), jaxdp.Data(x[m], y[m], z[m])) for m in (sites == s for s in range(3))]
    assert together == sum(map(float, apart))


@pytest.mark.full
def test_missing_and_infinite_values_have_a_place():
    rng = np.random.default_rng(15)
    x, y = rng.normal(size=(2, 250))
    for test, depth in ((jaxdp.BandGCM(epsilon=1.0), 1), (jaxdp.ContrastGCM(epsilon=1.0), 2)):
        z = rng.normal(size=(250, depth))
        spoiled = [values.copy() for values in (x, y, z)]
        for values in spoiled:
            values[:6] = np.array([np.nan, np.nan, np.inf, -np.inf, 1e300, -1e300]).reshape(6, *[1] * (values.ndim - 1))
        with jax.enable_x64(True):
            before, after = (test.statistic(key(0), jaxdp.Data(*t)) for t in ((x, y, z), spoiled))
        assert jnp.sum(jnp.abs(before - after)) <= 6 * core.specialize(test, jaxdp.Data(x, y, z)).sensitivity(250).bound


@pytest.mark.full
def test_public_trends_are_subtracted_record_by_record():
    rng = np.random.default_rng(19)
    z = rng.normal(size=(400, 2))
    noise = 0.1 * rng.normal(size=(2, 400))

    def bend(z):
        return 9.0 * z[:, 0] * z[:, 1]

    test = jaxdp.ContrastGCM(epsilon=8.0, caliper=1.0, trend_x=bend, trend_y=bend)
    bent = jaxdp.Data(noise[0] + bend(z), noise[1] + bend(z), z)
    plain = dataclasses.replace(test, trend_x=None, trend_y=None)
    found, wanted = test.statistic(key(0), bent), plain.statistic(key(0), jaxdp.Data(*noise, z))
    np.testing.assert_allclose(found, wanted, atol=0.5)
    assert float(plain.statistic(key(0), bent)[0]) > 60


@pytest.mark.full
def test_the_mean_over_curves_is_the_mean_of_its_curves():
    rng = np.random.default_rng(21)
    data = jaxdp.Data(*rng.normal(size=(2, 300)), rng.normal(size=(300, 3)))
    test = jaxdp.ContrastGCM(epsilon=1.0, num_rotations=1, enforce_rule=False)
    with jax.enable_x64(True):
        single = [np.asarray(dataclasses.replace(test, rotation=r).statistic(key(0), data)) for r in (0, 1)]
        mean = dataclasses.replace(test, num_rotations=2).statistic(key(0), data)
    np.testing.assert_array_equal(mean, sum(single) / 2)
    assert np.all(single[0] != single[1])


@pytest.mark.parametrize("build", [jaxdp.BandGCM, jaxdp.FeatureGCM])
def test_records_beyond_a_bound_are_not_compared_with_each_other(build):
    rng = np.random.default_rng(3)
    z = np.clip(np.concatenate([rng.uniform(-1, 1, 300), np.full(200, 3.0), np.full(100, np.nan)]), -1, 1)
    hidden = np.concatenate([np.zeros(300), rng.normal(size=300)])  # what z beyond the bound, or missing, moves
    x, y = (np.clip(hidden + 0.05 * rng.normal(size=600), -1, 1) for _ in range(2))
    domain = Domain((Column(),), (Column(),), (Column(),))
    fields = {"centres": (0.0, 0.0), "winsorize": 4.0} if build is jaxdp.FeatureGCM else {}
    test = build(mechanism=Exact(), caliper=1.0, **fields)

    def total(domain):
        found = core.run(test, jax.random.key(1), Data(x, y, z[:, None], domain)).statistic
        return float(np.ravel(found)[0])

    counted = Domain((Column(),), (Column(),), (Column(values=3),))  # whole numbers end at their bounds
    assert abs(total(domain)) < 10
    assert total(counted) > 30


@pytest.mark.parametrize("build", [jaxdp.ContrastGCM, jaxdp.ContrastFeatures])
def test_windows_with_a_record_at_a_bound_or_without_z_do_not_count(build):
    rng = np.random.default_rng(4)
    z = rng.uniform(-1, 1, (300, 2))
    z[:150, 0] = np.repeat([1.0, -1.0, np.nan], 50)
    hidden = np.where(np.arange(300) < 150, rng.normal(size=300), 0.0)  # what z beyond the bound, or missing, moves
    x, y = np.clip(hidden + 0.05 * rng.normal(size=(2, 300)), -1, 1)
    test = build(mechanism=Exact(), caliper=2.0, num_rotations=1)

    def total(last):
        domain = Domain((Column(),), (Column(),), (last, Column()))
        return float(np.ravel(core.run(test, jax.random.key(1), Data(x, y, z, domain)).statistic)[0])

    assert abs(total(Column())) < 5
    assert total(Column(values=3)) > 30
