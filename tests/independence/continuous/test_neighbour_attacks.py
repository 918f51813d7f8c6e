"""BandGCM and ContrastGCM: attacks on their sensitivities, and the inequalities of the proofs."""

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
from jaxdp.independence.continuous import band_gcm
from jaxdp.statistics.neighbours import bands, contrasts, hilbert, neighbour_order, soft_sign

SIZE = 12  # records of the attacked data sets

GRID = jnp.linspace(-1.0, 1.0, 9)


def key(seed):
    return jax.random.key(seed)


@functools.cache
def largest_change(statistic, depth=1, grid_z=False, steps=400, climbers=64, size=SIZE):
    """The largest change, in L1, of a statistic (x, y, z, priority) that hill climbing finds, in float64.

    One climb: `size` records and a replacement of the first; a step redraws one entry and is kept if it does no harm.
    """

    def change(table, priority):
        other = jnp.concatenate([table[-1:], table[1:-1]])
        ends = [statistic(part[:, 0], part[:, 1], part[:, 2:], priority) for part in (table[:-1], other)]
        return jnp.sum(jnp.abs(ends[0] - ends[1]))

    def drawn(key_value, column):
        key_grid, key_free = jax.random.split(key_value)
        free = jax.random.uniform(key_free, minval=-1.0, maxval=1.0)
        on_grid = GRID[jax.random.randint(key_grid, (), 0, GRID.shape[0])]
        return jnp.where((column < 2) | grid_z, on_grid, free)

    def climb(key_climb):
        keys = jax.random.split(key_climb, 3)
        priority = jax.random.bits(keys[0], (size,), jnp.uint32)
        table = jax.random.uniform(keys[1], (size + 1, 2 + depth), minval=-1.0, maxval=1.0)
        table = jnp.round(table * 4) / 4 if grid_z else table.at[:, :2].set(jnp.round(table[:, :2] * 4) / 4)

        def step(state, key_step):
            table, best = state
            key_row, key_column, key_value = jax.random.split(key_step, 3)
            column = jax.random.randint(key_column, (), 0, 2 + depth)
            row = jax.random.randint(key_row, (), 0, size + 1)
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


def without_squares(*arguments):
    return contrasts.contrast_sums(*arguments)[..., 0]


def contrast(
    x,
    y,
    z,
    priority,
    per_place=False,
    symmetric=False,
    which=lambda wide, x, y: jnp.ones(wide.shape),
    codes=None,
    sums=without_squares,
    width=0.01,
):
    """T of records sorted by their Hilbert keys (d = 1: by z); per_place is the flawed start.

    which: the windows that count, from their widths and the sorted x and y. codes: levels that no window mixes.
    """
    depth = z.shape[1]
    high, low = hilbert.hilbert_key(0.5 + 0.5 * z, 30 // depth)
    order = neighbour_order.order_by_words(high, low, 30, priority, codes)
    scores = neighbour_order.normal_scores(priority if per_place else priority[order], x.dtype)
    size = contrasts.window_size(depth, symmetric)
    kept = which(contrasts.ranges(z[order], size), x[order], y[order])
    if codes is not None:
        kept = kept * (contrasts.ranges(codes[order][:, None], size) == 0)
    table = (x[order][:, None], y[order][:, None], z[order], scores, kept)
    return sums(*table, (width, width), symmetric)[0, 0]


def contrast_and_squares(x, y, z, priority):
    """T and Q/2, of kernels wide enough for products between 0 and 1."""
    return contrast(x, y, z, priority, sums=contrasts.contrast_sums, width=0.2)


def contrast_per_place(x, y, z, priority):
    return contrast(x, y, z, priority, per_place=True)


def contrast_of_the_closest(x, y, z, priority):
    return contrast(x, y, z, priority, which=lambda wide, x, y: contrasts.closest(wide, wide.shape[0] // 2))


def contrast_in_classes(x, y, z, priority):
    return contrast(x, y, z, priority, codes=neighbour_order.classes(priority, 2))


def contrast_in_strides(x, y, z, priority):
    """Flawed: every second record of the order, whose class changes for all that follow an arrival."""
    order = neighbour_order.order_by_value(z[:, 0], priority)
    place = jnp.zeros_like(order).at[order].set(jnp.arange(order.shape[0], dtype=order.dtype))
    return contrast(x, y, z, priority, codes=place % 2)


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
        (contrast_and_squares, 1, 10.0, 9.0),
    ],
)
def test_attacks_reach_the_sensitivity_and_never_pass_it(statistic, depth, bound, planted):
    found = largest_change(statistic, depth, steps=400 if depth == 2 else 800)
    assert found <= bound
    assert found >= 0.95 * bound
    assert found > planted


@pytest.mark.parametrize(("weight", "sound"), [(contrasts.WEIGHT_OF_SQUARES, True), (0.6, False)])
def test_squares_are_free_up_to_half_the_weight_of_the_sum(weight, sound):
    """Windows of one size before and of one size after; the proof shows that unlike ones do no more."""
    before, after = np.meshgrid(np.linspace(0, 1, 201), np.linspace(0, 1, 201))
    moved = before + after + weight * np.abs(after**2 - before**2)
    assert moved.max() == pytest.approx(2.0) if sound else moved.max() > 2.01


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_squares_on_the_grid_lie_between_the_square_and_the_size(dtype):
    with jax.enable_x64(dtype is np.float64):
        values = np.arange(-1024, 1025, dtype=dtype) / 1024
        found = np.asarray(soft_sign.squared(jnp.asarray(values)))
    assert np.all((values**2 <= found) & (found <= np.abs(values)))
    np.testing.assert_array_equal(found * 1024, np.round(found * 1024))


def test_the_attacked_bound_is_the_declared_one():
    data = jax.ShapeDtypeStruct((300,), float), jax.ShapeDtypeStruct((300,), float)
    declared = {
        depth: core.specialize(
            jaxdp.ContrastGCM(epsilon=1.0), jaxdp.Data(*data, jax.ShapeDtypeStruct((300, depth), float))
        )
        .sensitivity(300)
        .bound
        for depth in (2,)
    }
    assert declared == {2: 14.0}
    checked = dataclasses.replace(jaxdp.ContrastGCM(epsilon=1.0), check_roughness=True).sensitivity(2000)
    assert {name: part.bound for name, part in checked.items()} == {"windows": 14.0, "coarse": 14.0}
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
def test_classes_of_records_keep_the_sensitivity_and_classes_of_places_break_it():
    """Both classes hold 12 records, so that a record has all its windows."""
    found = largest_change(contrast_in_classes, size=2 * SIZE, steps=1200)
    assert 0.95 * 10.0 <= found <= 10.0
    assert largest_change(contrast_in_strides, size=2 * SIZE, steps=1200) > 1.05 * 10.0


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


def test_one_arrival_touches_2m_minus_1_windows():
    rng = np.random.default_rng(11)
    values = rng.normal(size=40)
    for size in (3, 4, 8):
        before = {tuple(window) for window in np.asarray(contrasts.windows(jnp.asarray(values), size)).T}
        after = {
            tuple(window) for window in np.asarray(contrasts.windows(jnp.asarray(np.insert(values, 20, 9.0)), size)).T
        }
        assert len(before ^ after) == 2 * size - 1


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
