"""BandGCM and ContrastGCM: attacks on their sensitivities, exact sums, invariances, level."""

import dataclasses
import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp import core
from jaxdp.data.dataset import CATEGORICAL, Column, Data, Domain
from jaxdp.independence.continuous import band_gcm, contrast_gcm, contrast_order, level_rule
from jaxdp.mechanisms import Exact
from jaxdp.statistics.neighbours import bands, contrasts, hilbert, neighbour_order
from jaxdp.statistics.partition import Uniform

SIZE = 12  # records of the attacked data sets
GRID = jnp.linspace(-1.0, 1.0, 9)


def key(seed):
    return jax.random.key(seed)


# --- attacks


@functools.cache
def largest_change(statistic, depth=1, grid_z=False, steps=400, climbers=64):
    """The largest |change| of a statistic (x, y, z, priority) that hill climbing over neighbours finds, in float64.

    One climb: SIZE records and a replacement of the first; each step redraws one entry and is kept if it does no harm.
    """

    def change(table, priority):
        other = jnp.concatenate([table[-1:], table[1:-1]])
        ends = [statistic(part[:, 0], part[:, 1], part[:, 2:], priority) for part in (table[:-1], other)]
        return jnp.abs(ends[0] - ends[1])

    def drawn(key_value, column):
        key_grid, key_free = jax.random.split(key_value)
        free = jax.random.uniform(key_free, minval=-1.0, maxval=1.0)
        on_grid = GRID[jax.random.randint(key_grid, (), 0, GRID.shape[0])]
        return jnp.where((column < 2) | grid_z, on_grid, free)

    def climb(key_climb):
        keys = jax.random.split(key_climb, 3)
        priority = jax.random.bits(keys[0], (SIZE,), jnp.uint32)
        table = jax.random.uniform(keys[1], (SIZE + 1, 2 + depth), minval=-1.0, maxval=1.0)
        table = jnp.round(table * 4) / 4 if grid_z else table.at[:, :2].set(jnp.round(table[:, :2] * 4) / 4)

        def step(state, key_step):
            table, best = state
            key_row, key_column, key_value = jax.random.split(key_step, 3)
            column = jax.random.randint(key_column, (), 0, 2 + depth)
            row = jax.random.randint(key_row, (), 0, SIZE + 1)
            moved = table.at[row, column].set(drawn(key_value, column))
            found = change(moved, priority)
            better = found >= best
            return (jnp.where(better, moved, table), jnp.where(better, found, best)), None

        first = change(table, priority)
        return jax.lax.scan(step, (table, first), jax.random.split(keys[2], steps))[0][1]

    with jax.enable_x64(True), jax.debug_key_reuse(False):
        return float(jnp.max(jax.jit(jax.vmap(climb))(jax.random.split(key(1), climbers))))


def everyone(first, second):
    """Weights of a band that leaves no pair out."""
    del second
    return jnp.ones((first.stop - first.start, 1))


def band_of(order, x, y, k, kernel):
    return bands.band_sum(x[order][:, None], y[order][:, None], everyone, k, (0.25, 0.25), kernel)[0, 0]


def band(x, y, z, priority, k=2, kernel="soft"):
    return band_of(neighbour_order.order_by_value(z[:, 0], priority), x, y, k, kernel)


def band_squares(x, y, z, priority):
    order = neighbour_order.order_by_value(z[:, 0], priority)
    return bands.band_squares(x[order][:, None], y[order][:, None], everyone, 2, (0.25, 0.25))[0, 0]


def plain_band(x, y, z, priority):
    return band(x, y, z, priority, kernel="plain")


def band_with_ties_broken_after_sorting(x, y, z, priority):
    """Flawed: the priority belongs to a place in the sorted file."""
    order = jnp.argsort(z[:, 0])
    return band_of(order[jnp.lexsort((priority, z[:, 0][order]))], x, y, 2, "soft")


def blocks_of_ranks(x, y, z, priority):
    """Flawed: pairs within blocks of four ranks."""
    order = neighbour_order.order_by_value(z[:, 0], priority)
    x, y = x[order].reshape(-1, 4), y[order].reshape(-1, 4)
    psi = [jnp.clip((v[:, :, None] - v[:, None, :]) / 0.25, -1.0, 1.0) for v in (x, y)]
    return jnp.sum(psi[0] * psi[1]) / 2 / 4


def contrast(x, y, z, priority, per_place=False, symmetric=False, which=lambda wide, x, y: jnp.ones(wide.shape)):
    """T of records sorted by their Hilbert keys (d = 1: by z); per_place is the flawed start.

    which: the windows that count, from their widths and the sorted x and y.
    """
    depth = z.shape[1]
    high, low = hilbert.hilbert_key(0.5 + 0.5 * z, 30 // depth)
    order = neighbour_order.order_by_words(high, low, 30, priority)
    scores = neighbour_order.normal_scores(priority if per_place else priority[order], x.dtype)
    size = contrasts.window_size(depth, symmetric)
    kept = which(contrasts.ranges(z[order], size), x[order], y[order])
    table = (x[order][:, None], y[order][:, None], z[order], scores, kept)
    return contrasts.contrast_sum(*table, (0.01, 0.01), symmetric)[0, 0]


def contrast_per_place(x, y, z, priority):
    return contrast(x, y, z, priority, per_place=True)


def contrast_of_the_closest(x, y, z, priority):
    return contrast(x, y, z, priority, which=lambda wide, x, y: contrasts.closest(wide, wide.shape[0] // 2))


def contrast_of_the_narrow(x, y, z, priority):
    """Flawed: windows that are no wider than the mean count, and one record moves the mean."""
    return contrast(x, y, z, priority, which=lambda wide, x, y: wide <= jnp.mean(wide))


@pytest.mark.full
@pytest.mark.parametrize(
    ("statistic", "depth", "bound", "planted"),
    [
        (band, 1, band_gcm.BAND_L1, 2.9),
        (band_squares, 1, band_gcm.SQUARES_L1, 2.0),
        (plain_band, 1, band_gcm.PLAIN_L1, 7.9),
        (contrast, 1, 10.0, 9.0),
        (contrast, 2, 14.0, 13.0),
        (contrast_of_the_closest, 1, 10.0, 9.0),
    ],
)
def test_attacks_reach_the_sensitivity_and_never_pass_it(statistic, depth, bound, planted):
    found = largest_change(statistic, depth, steps=400 if depth == 2 else 800)
    assert found <= bound
    assert found >= 0.95 * bound
    assert found > planted


def test_the_attacked_bound_is_the_declared_one():
    data = jax.ShapeDtypeStruct((300,), float), jax.ShapeDtypeStruct((300,), float)
    declared = {
        depth: core.resolve(
            jaxdp.ContrastGCM(epsilon=1.0), jaxdp.Data(*data, jax.ShapeDtypeStruct((300, depth), float))
        )
        .sensitivity(300)
        .bound
        for depth in (2,)
    }
    assert declared == {2: 14.0}
    assert jaxdp.BandGCM(epsilon=1.0).sensitivity(300).bound == 3.0
    released = jaxdp.BandGCM(epsilon=1.0, kernel="plain", variance="released").sensitivity(300)
    assert (released["band"].bound, released["squares"].bound) == (8.0, 48.0)


@pytest.mark.full
@pytest.mark.parametrize(
    ("statistic", "sound", "depth", "bound"),
    [
        (band_with_ties_broken_after_sorting, band, 1, 3.0),
        (contrast_per_place, contrast, 2, 14.0),
        (contrast_of_the_narrow, contrast_of_the_closest, 1, 10.0),
    ],
)
def test_the_search_refutes_what_a_record_moves_for_all(statistic, sound, depth, bound):
    assert largest_change(statistic, depth, grid_z=True, steps=800) > 1.05 * bound
    assert largest_change(sound, depth, grid_z=True, steps=800, climbers=32) <= bound


@pytest.mark.full
def test_the_search_refutes_blocks_of_ranks():
    assert largest_change(blocks_of_ranks) > 1.05 * 3.0


def test_a_pair_that_attains_three():
    """Two triples: one loses three agreements, the other gains three."""
    left, right = [(1.0, 0.5)] * 3, [(0.5, 1.0)] * 3
    arrival = ([*left, *right], (0.0, 0.0))
    departure = ([(-0.5, -0.5)] * 3 + [(0.5, 0.5)] * 3, (1.0, -1.0))
    for k in (1, 2, 3):
        changes = [_inserted(*side, k) for side in (arrival, departure)]
        assert changes == [1.5, -1.5]


def _inserted(records, middle, k):
    """How S changes when a record arrives in the middle."""
    both = [np.array(records), np.array([*records[:3], middle, *records[3:]])]
    before, after = (
        bands.band_sum(jnp.asarray(t[:, :1]), jnp.asarray(t[:, 1:]), everyone, k, (0.25, 0.25))[0, 0] for t in both
    )
    return float(after - before)


# --- the inequalities of the proofs


def test_the_triple_inequality_on_the_corners():
    values = np.array(list(itertools.product((-1.0, 0.0, 1.0), repeat=3)))
    assert len(values) == 27
    assert np.abs(values @ [1.0, 1.0, -1.0]).max() == 3.0
    corners = np.array(list(itertools.product((-1.0, 1.0), repeat=4)))  # x and y differences from the middle record
    a, b, c, d = corners.T
    assert np.abs(a * c + b * d - (b - a) * (d - c)).max() == 2.0
    a, b, c, d = (2.0 * corners).T
    assert np.abs(a * d + b * c).max() == 8.0
    squares = np.array(list(itertools.product((0.0, 0.5, 1.0), repeat=3))) @ [1.0, 1.0, -1.0]
    assert (squares.min(), squares.max()) == (-1.0, 2.0)


def test_the_inequality_behind_one_ninth():
    a, b, e = np.meshgrid(*[np.linspace(-1, 1, 21)] * 3)
    left = a * b - a * e + b * e
    assert left.max() <= 1.0 + 1e-12
    assert np.all(left <= (a**2 + b**2 + e**2) / 2 + 1e-12)


@pytest.mark.parametrize("k", [2, 8])
def test_the_variance_bound_is_attained(k):
    """Sign kernel, normal data: the variance of S is the bound up to its sampling error."""
    count, replicates = 500, 2000
    x, y = jax.random.normal(key(3), (2, replicates, count, 1))
    sums = jax.jit(jax.vmap(lambda x, y: bands.band_sum(x, y, everyone, k, (1.0, 1.0), "sign")[0, 0]))(x, y)
    ratio = float(jnp.var(sums)) / bands.null_variance(count, k)
    error = 4.0 * math.sqrt(2.0 / replicates)
    assert 0.95 - error < ratio < 1.0 + error


# --- agreement with slow references


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
        found = contrasts.contrast_sum(*arrays, (0.5, 0.5), False)[0, 0]
    assert float(found) == pytest.approx(slow_contrast(x, y, z, 0.5), abs=2.0**-9)


@pytest.mark.full
def test_several_columns_are_their_pairs():
    data = columns(key(7), 120)
    test = jaxdp.BandGCM(epsilon=1.0)
    together = core.resolve(test, data).statistic(key(0), data)
    for i, j in itertools.product(range(2), range(3)):
        alone = test.statistic(key(0), jaxdp.Data(data.x[:, i], data.y[:, j], data.z))
        np.testing.assert_allclose(together[i, j], alone, rtol=1e-5)


def columns(key_data, count):
    x, y, z = (jax.random.normal(k, (count, c)) for k, c in zip(jax.random.split(key_data, 3), (2, 3, 1), strict=True))
    return jaxdp.Data(x, y, z[:, 0])


# --- invariances


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
            contrasts.contrast_sum(jnp.asarray(v), *arguments, (0.5, 0.5), symmetric)
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
            values.append(float(test.statistic(key(0), jaxdp.Data(x[order], y[order], z[order]))))
    assert values[0] == values[1]


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


def test_one_arrival_touches_2m_minus_1_windows():
    rng = np.random.default_rng(11)
    values = rng.normal(size=40)
    for size in (3, 4, 8):
        before = {tuple(window) for window in np.asarray(contrasts.windows(jnp.asarray(values), size)).T}
        after = {
            tuple(window) for window in np.asarray(contrasts.windows(jnp.asarray(np.insert(values, 20, 9.0)), size)).T
        }
        assert len(before ^ after) == 2 * size - 1


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


# --- columns of z, missing values


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
        return (test or jaxdp.BandGCM(epsilon=1.0)).level_rule(shapes)

    assert "equal Z" in rule(250).sentence  # k = 2: 1000/4
    assert rule(251).flags == ("labels",)
    assert "categorical" in rule(251).sentence
    assert rule(0).flags == ()
    assert "step" in rule(0).sentence
    assert rule(5, n=20_000, test=jaxdp.ContrastGCM(epsilon=1.0)).flags == ("curvature", "labels")


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
            before, after = (float(test.statistic(key(0), jaxdp.Data(*t))) for t in ((x, y, z), spoiled))
        assert abs(before - after) <= 6 * core.resolve(test, jaxdp.Data(x, y, z)).sensitivity(250).bound


# --- releases, levels, rule


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
            exact = core.resolve(test, data).statistic(key(0), data)  # no ties: priorities do not matter
        for released, sum_, bound in zip(
            *(jax.tree.leaves(t) for t in (result.release.value, exact, result.release.sensitivity)), strict=False
        ):
            assert float(sum_) * 4 * 2**20 == round(float(sum_) * 4 * 2**20)
            assert abs(float(released) - float(sum_)) < 0.1, bound


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
    rule = band.level_rule(shapes(200, 1))
    assert (rule.verdict, rule.flags) == ("run", ())
    assert rule.jumps == pytest.approx(1.2 * math.sqrt(200 * 11 / 36 + 18) / 2)
    assert f"at {math.floor(rule.jumps)} values at most (n = 200" in rule.sentence
    assert "low power" in dataclasses.replace(band, epsilon=0.05).level_rule(shapes(200, 1)).flags
    rule = contrast.level_rule(shapes(1000, 2))
    assert rule.flags == ("curvature",)
    for depth in (2, 3, 4, 5):  # a jump along a surface is harmless at no n
        assert contrast.level_rule(shapes(1_000_000, depth)).flags == ("curvature",)
    assert "Z must be a quantity" in band.level_rule(shapes(200, 1)).sentence
    assert rule.deviation == pytest.approx(0.5 * math.sqrt(0.3 * math.sqrt(1500 + 8 * 49) / 4000))
    assert rule.curvature == pytest.approx(2 * rule.deviation / (2 * rule.side**2 / 4))
    assert contrast.level_rule(shapes(1000, 3)).flags == ("curvature",)
    assert contrast.level_rule(shapes(10_000, 6)).verdict == level_rule.REFUSE
    narrow = dataclasses.replace(band, scale_x=0.1).level_rule(
        dataclasses.replace(shapes(200, 1), domain=Domain(z=(Column(),)))
    )
    assert narrow.flags == ("narrow kernel",)


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
    assert test.statistic(key(0), bent) == pytest.approx(float(plain.statistic(key(0), jaxdp.Data(*noise, z))), abs=0.5)
    assert float(plain.statistic(key(0), bent)) > 60


@pytest.mark.full
def test_the_mean_over_curves_is_the_mean_of_its_curves():
    rng = np.random.default_rng(21)
    data = jaxdp.Data(*rng.normal(size=(2, 300)), rng.normal(size=(300, 3)))
    test = jaxdp.ContrastGCM(epsilon=1.0, num_rotations=1, enforce_rule=False)
    with jax.enable_x64(True):
        single = [float(dataclasses.replace(test, rotation=r).statistic(key(0), data)) for r in (0, 1)]
        mean = float(dataclasses.replace(test, num_rotations=2).statistic(key(0), data))
    assert mean == sum(single) / 2
    assert single[0] != single[1]


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


@pytest.mark.parametrize("round_to", [0, 8])
def test_a_replacement_moves_few_of_the_closest_windows(round_to):
    """Of n - m + 1 windows at most 2m - 1 leave the closest half and as many enter it, ties or not."""
    rng, size, count = np.random.default_rng(6), 4, 40
    most = 0
    for _ in range(60):
        z = rng.uniform(-1, 1, (count + 1, 1))
        z = np.round(z * round_to) / round_to if round_to else z
        kept = []
        for records in (np.arange(count), np.r_[count, np.arange(1, count)]):
            order = records[np.lexsort((records, z[records, 0]))]
            near = np.asarray(contrasts.closest(contrasts.ranges(jnp.asarray(z[order]), size), 18.0))
            assert near.sum() == 18
            kept.append({tuple(order[j : j + size]) for j in np.flatnonzero(near)})
        most = max(most, len(kept[0] - kept[1]), len(kept[1] - kept[0]))
    assert 4 <= most <= 2 * size - 1
