"""Fast normals of simulated data: the cipher's known answers, the law both ways, and who gets them."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxdp
from jaxdp.randomness import keys, normals, threefry_words
from jaxdp.simulate.designs import confounder
from jaxdp.statistics import partition

COUNT = 2**20
# sup |F_n - F| stays below this with probability 1 - 1e-6 (Dvoretzky, Kiefer, Wolfowitz; Massart's constant)
BAND = np.sqrt(np.log(2.0 / 1e-6) / (2.0 * COUNT))


def fast(seed):
    return normals.for_data(jax.random.key(seed))


@pytest.fixture(scope="module")
def drawn():
    return np.asarray(normals.normal(fast(11), (COUNT,)), float)


# counters, key and answer as the authors publish them for 20 rounds (Random123, kat_vectors)
@pytest.mark.parametrize(
    ("counter", "key", "answer"),
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_the_cipher_gives_its_known_answers(counter, key, answer):
    key, counter = jnp.array(key, jnp.uint32), [jnp.array([word], jnp.uint32) for word in counter]
    found = threefry_words.threefry(*key, *counter)
    assert [int(word[0]) for word in found] == list(answer)


def test_the_blocks_are_those_of_jax_at_counters_that_jax_does_not_use():
    data = jax.random.key_data(jax.random.key(5))
    found = normals.threefry(data, 7)
    counters = jnp.concatenate([jnp.full(7, normals.TAG, jnp.uint32), jnp.arange(7, dtype=jnp.uint32)])
    np.testing.assert_array_equal(jnp.concatenate(found), jax.extend.random.threefry_2x32(data, counters))
    own = np.asarray(jax.random.bits(jax.random.key(5), (4096,)))
    words = np.concatenate([np.asarray(part) for part in normals.threefry(data, 4096)])
    # birthday: two sets of 4096 and 8192 words of 32 bits share 8 of them or more with probability below 1e-18
    assert len(np.intersect1d(own, words)) < 8


def distance(values, law=stats.norm):
    """Kolmogorov's distance to a law."""
    ordered = law.cdf(np.sort(values))
    steps = np.arange(len(values) + 1) / len(values)
    return max(np.max(steps[1:] - ordered), np.max(ordered - steps[:-1]))


def test_the_law_is_normal_and_no_other(drawn):
    assert distance(drawn) < BAND
    for wrong in (1.02 * drawn, drawn / 1.02, drawn + 0.01, drawn + 0.01 * drawn**3):
        assert distance(wrong) > BAND


def test_moments_and_tails_are_those_of_the_normal_law(drawn):
    for power, mean in ((1, 0.0), (2, 1.0), (3, 0.0), (4, 3.0), (6, 15.0)):
        sd = np.sqrt(stats.norm.moment(2 * power) - mean**2)
        assert abs(np.mean(drawn**power) - mean) < 5.0 * sd / np.sqrt(COUNT)
    for at in (2.0, 3.0, 4.0, 4.75):
        for tail in (np.sum(drawn > at), np.sum(drawn < -at)):
            low, high = stats.binom.ppf([1e-7, 1 - 1e-7], COUNT, stats.norm.sf(at))
            assert low <= tail <= high
    assert abs(np.mean((1.01 * drawn) ** 2) - 1.0) > 5.0 * np.sqrt(2.0 / COUNT)


def test_the_two_of_a_block_and_neighbours_are_independent(drawn):
    half = COUNT // 2
    pairs = [(drawn[:half], drawn[half:]), (drawn[:-1], drawn[1:])]
    pairs.append((drawn, np.asarray(normals.normal(fast(12), (COUNT,)), float)))
    for one, other in pairs:
        for change in (lambda v: v, np.square, np.abs, lambda v: (v > 1.5) * 1.0):
            assert abs(np.corrcoef(change(one), change(other))[0, 1]) < 5.0 / np.sqrt(half)
    octants = np.arctan2(drawn[:half], drawn[half:]) // (np.pi / 4)
    counts = np.unique(octants, return_counts=True)[1]
    assert len(counts) == 8
    assert stats.chisquare(counts).pvalue > 1e-6
    radius = np.hypot(drawn[:half], drawn[half:])
    within = np.mod(np.arctan2(drawn[:half], drawn[half:]), np.pi / 4)
    assert distance(radius, stats.rayleigh) < BAND * np.sqrt(2.0)
    assert distance(within, stats.uniform(0, np.pi / 4)) < BAND * np.sqrt(2.0)


def test_every_word_gives_finite_numbers_out_to_the_end_of_the_grid():
    corners = np.array([0, 1, 7, 8, 2**31 - 1, 2**31, 2**32 - 8, 2**32 - 1], np.uint32)
    first, second = (jnp.asarray(part.ravel()) for part in np.meshgrid(corners, corners))
    one, other = (np.asarray(part, float) for part in normals.box_muller(first, second))
    assert np.all(np.isfinite(one) & np.isfinite(other))
    radius = np.sqrt(-2.0 * np.log((np.asarray(first, float) + 0.5) / 2.0**32))
    np.testing.assert_allclose(np.hypot(one, other), radius, rtol=1e-6, atol=4e-4)
    assert 6.7 < max(np.abs(one).max(), np.abs(other).max()) < 6.8


def test_only_keys_of_data_in_single_precision_draw_fast():
    key = jax.random.key(3)
    data_key = normals.for_data(key)
    assert keys.mode_of(data_key) == keys.SIMULATION
    plain = jax.random.normal(key, (9,))
    with jax.debug_key_reuse(False):
        np.testing.assert_array_equal(normals.normal(key, (9,)), plain)
        np.testing.assert_array_equal(jax.random.normal(data_key, (9,)), plain)  # a design of one's own
        children = (jax.random.key_data(jax.random.split(k, 4)) for k in (key, data_key))
        np.testing.assert_array_equal(*children)
        assert not np.array_equal(normals.normal(data_key, (9,)), plain)
        with jax.enable_x64(True):
            assert normals.normal(data_key, (9,)).dtype == jnp.float64
            np.testing.assert_array_equal(normals.normal(data_key, (9,)), jax.random.normal(key, (9,)))
        other = jax.random.key(3, impl="rbg")
        assert normals.for_data(other) is other
    assert normals.normal(fast(4), (3, 5)).shape == (3, 5)
    several = jax.vmap(normals.for_data)(jax.random.split(jax.random.key(6), 2))
    batched = jax.vmap(lambda key: normals.normal(key, (3,)))(several)
    assert len(np.unique(batched)) == 6


@pytest.mark.full
def test_replicates_reject_as_often_as_with_jax_s_own_normals():
    """Power of a cell, the same law either way: pooled two-sample test at 1e-6."""
    test, count = jaxdp.PartitionGCM(epsilon=1.0), 4000
    design = functools.partial(confounder.sine_confounder, n=300, effect=0.3)
    rates = []
    for draw in (design, lambda key: design(jax.random.wrap_key_data(jax.random.key_data(key)))):
        p_values = np.asarray(jaxdp.power.p_values(test, draw, jax.random.key(8), count))
        rates.append(np.mean(p_values <= 0.05))
    assert rates[0] != rates[1]  # other draws
    pooled = np.mean(rates)
    assert abs(rates[0] - rates[1]) < 4.9 * np.sqrt(2.0 * pooled * (1.0 - pooled) / count)


def test_cells_of_a_cauchy_reference_are_its_quantiles():
    u = np.concatenate([stats.cauchy.ppf(np.linspace(1e-6, 1 - 1e-6, 20_001)), [0.0, 1.0, -1.0, 1e30, np.inf, -np.inf]])
    shares = np.asarray(partition.Cauchy().cdf(jnp.asarray(u, jnp.float32)), float)
    np.testing.assert_allclose(shares, stats.cauchy.cdf(u.astype(np.float32).astype(float)), atol=2e-7)
    assert np.isnan(partition.Cauchy().cdf(jnp.float32(np.nan)))
    assert np.all((shares >= 0.0) & (shares <= 1.0))
    with jax.enable_x64(True):  # releases: as JAX has it
        wide = jnp.asarray(u)
        np.testing.assert_array_equal(partition.Cauchy().cdf(wide), jax.scipy.stats.cauchy.cdf(wide))


@pytest.mark.parametrize("prepare", [normals.for_data, lambda key: key], ids=["fast", "plain"])
def test_ordered_normals_have_the_law_of_sorted_ones(prepare):
    count, sets = 200, 400
    drawn = np.asarray(
        jax.jit(jax.vmap(lambda key: normals.ordered(prepare(key), count)))(jax.random.split(jax.random.key(5), sets))
    )
    assert np.all(np.diff(drawn, axis=1) >= -1e-5)  # up to the rounding of sums
    for place in (0, 31, 32, 100, 199):  # ends, the seam of two blocks of sums, the middle
        assert stats.kstest(drawn[:, place], _of_place(place, count)).pvalue > 1e-3
    # joint: the range, and neighbours, against NumPy's sorted normals
    other = np.sort(np.random.default_rng(6).standard_normal((sets, count)), axis=1)
    for statistic in (np.ptp, lambda rows, axis: np.max(np.diff(rows, axis=axis), axis=axis)):
        assert stats.ks_2samp(statistic(drawn, axis=1), statistic(other, axis=1)).pvalue > 1e-3


def _of_place(place, count):
    """Distribution function of the normal of this rank, counted from 0."""
    return lambda value: stats.beta(place + 1, count - place).cdf(stats.norm.cdf(value))
