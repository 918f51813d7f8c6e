"""Effect sizes and intervals: agreement with quadrature and p-values, estimates without noise, coverage."""

import dataclasses
import itertools
import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxdp
from jaxdp import core
from jaxdp.cli.main import main
from jaxdp.data.dataset import BINARY, CATEGORICAL, Column, Data, Domain
from jaxdp.independence import effect_sizes
from jaxdp.independence.continuous.partition_stages import Centers
from jaxdp.statistics.neighbours import bands


def mean_product(r: float, *clips: float) -> float:
    """E clip(u/c) clip(v/d) of a normal pair with correlation r, on a grid of 400 by 400 midpoints."""
    u = stats.norm.ppf((np.arange(400) + 0.5) / 400)
    v = r * u[:, None] + np.sqrt(1 - r * r) * u[None, :]
    return float((np.clip(u[:, None] / clips[0], -1, 1) * np.clip(v / clips[1], -1, 1)).mean())


@pytest.mark.parametrize("r", [0.1, 0.4, 0.8, 0.98])
def test_a_concordance_of_normal_columns_never_says_more_than_their_correlation(r):
    for clips in itertools.product((0.02, 0.3, 1.0, 4.0), repeat=2):
        product = mean_product(r, *clips)
        assert 0.0 < effect_sizes.least_correlation((product, 1.0)) <= r + 0.01
        assert effect_sizes.least_correlation((-1.0, -product)) <= r + 0.01
    assert effect_sizes.least_correlation((mean_product(r, 0.02, 0.02), 1.0)) >= r - 0.03
    assert effect_sizes.least_correlation((-0.1, 0.2)) == 0.0


@pytest.mark.parametrize("sd", [0.05, 0.1, 0.2, 0.4])
def test_an_interval_of_the_band_covers_at_every_residual_scale(sd):
    """Bounds up to four times too wide for the default scale: the interval is of what was released, not of a guess."""
    test, r = jaxdp.BandGCM(epsilon=1.0), 0.4
    clip = float(test.widths()[0]) / (np.sqrt(2.0) * sd)  # in sds of a difference
    truth = mean_product(r, clip, clip)
    for seed in range(3):
        data = pair(jax.random.key(seed + 70), 2000, r, sd=sd)
        interval = [float(end) for end in jaxdp.run(test, jax.random.key(seed), data).interval]
        assert interval[0] < truth < interval[1]
        assert effect_sizes.least_correlation(interval) <= r


def test_a_law_without_concordance_is_found_as_often_as_its_interval_leaves_out_zero():
    """y = |x|: mean 0, variance of S near n/3, three times that of independence: a dependence (#concordance)."""
    n, k = 300, 8
    test = jaxdp.BandGCM(mechanism=jaxdp.mechanisms.Exact(), kernel="sign", num_neighbors=k, caliper=math.inf)

    @jax.jit
    def sums(keys):
        def one(key):
            key_x, key_z, key_run = jax.random.split(key, 3)
            x = jax.random.normal(key_x, (n,))
            z = jax.random.uniform(key_z, (n, 1), minval=-1.0)
            data = Data(x / 8, jnp.abs(x) / 8, z, Domain((Column(),), (Column(),), (Column(),)))
            result = jaxdp.run(test, key_run, data)
            return result.statistic, *result.interval, result.p_value

        return jax.vmap(one)(keys)

    found, low, high, p = map(np.asarray, sums(jax.random.split(jax.random.key(4), 300)))
    assert 1.7 * bands.null_variance(n, k) < found.var() < n / 2
    np.testing.assert_array_equal((low <= 0.0) & (high >= 0.0), p >= 0.05)
    assert 0.7 < np.mean(p >= 0.05) < 0.9


def test_the_quantiles_of_a_noise_have_its_law():
    for mechanism, law in ((jaxdp.Laplace(2.0), stats.laplace), (jaxdp.Gaussian(0.125), stats.norm)):
        one = jaxdp.Sensitivity(1.0, mechanism.norm, jaxdp.Relation.REPLACE_ONE)
        found = np.asarray(effect_sizes.noise_quantiles(mechanism, one))
        expected = law.ppf((np.arange(effect_sizes.NODES) + 0.5) / effect_sizes.NODES)
        np.testing.assert_allclose(found, expected * float(mechanism.scale(one)), rtol=1e-4)


def pair(key, n: int, r: float, with_z: bool = True, sd: float = 0.25):
    """Normal X and Y of correlation r and this sd on [-1, 1], flat in Z."""
    key_z, key_x, key_y = jax.random.split(key, 3)
    x = jax.random.normal(key_x, (n,))
    y = r * x + np.sqrt(1 - r * r) * jax.random.normal(key_y, (n,))
    z = jax.random.uniform(key_z, (n, 1), minval=-1.0)
    domain = Domain((Column(),), (Column(),), (Column(),) * with_z)
    return Data(jnp.clip(sd * x, -1, 1), jnp.clip(sd * y, -1, 1), z if with_z else None, domain)


@pytest.mark.parametrize("n", [300, 1000])
def test_an_interval_of_the_band_leaves_out_zero_exactly_where_the_p_value_is_small(n):
    test = jaxdp.BandGCM(epsilon=1.0)
    for seed in range(12):
        result = jaxdp.run(test, jax.random.key(seed), pair(jax.random.key(seed + 50), n, 0.02 * seed))
        low, high = map(float, result.interval)
        assert low < float(result.effect) < high
        assert (low > 0 or high < 0) == (float(result.p_value) < 0.05)


def exact(test, data):
    """The estimate without noise."""
    with jax.enable_x64(True):
        return float(jaxdp.run(test, jax.random.key(1), data).effect)


@pytest.mark.full
@pytest.mark.parametrize("r", [-0.5, 0.3])
def test_estimates_without_noise_are_what_they_are_called(r):
    data = pair(jax.random.key(3), 20_000, r)
    none = jaxdp.mechanisms.Exact()
    tau = 2.0 / np.pi * np.arcsin(r)
    assert exact(jaxdp.BandGCM(mechanism=none, kernel="sign"), data) == pytest.approx(tau, abs=0.02)
    no_z = jaxdp.PartitionGCM(mechanism=none, winsorize=4.0, scale_x=0.25, scale_y=0.25)
    assert exact(no_z, pair(jax.random.key(3), 20_000, r, with_z=False)) == pytest.approx(r, abs=0.03)


@pytest.mark.parametrize("sd", [0.05, 0.1, 0.2, 0.4])
def test_a_correlation_of_clipped_columns_is_no_larger_than_that_of_the_columns(sd):
    """Whatever the guess of the residual scale, here 0.2: clipping a normal column never adds correlation."""
    data, none = pair(jax.random.key(3), 20_000, 0.5, sd=sd), jaxdp.mechanisms.Exact()
    test = jaxdp.PartitionGCM(mechanism=none, winsorize=0.5, scale_x=0.2, scale_y=0.2)
    assert 0.3 < exact(test, data) < 0.51


def table(a: int, b: int, c: int, d: int) -> Data:
    """Two binary columns with these counts."""
    x, y = np.repeat([0, 0, 1, 1], [a, b, c, d]), np.repeat([0, 1, 0, 1], [a, b, c, d])
    side = (Column(BINARY, 2),)
    return Data(jnp.asarray(x), jnp.asarray(y), domain=Domain(side, side))


@pytest.mark.full
def test_two_by_two_tables_give_phi_and_petos_log_odds_ratio():
    data, none = table(300, 200, 180, 320), jaxdp.mechanisms.Exact()
    phi = np.corrcoef(np.asarray(data.x), np.asarray(data.y))[0, 1]
    # the phi whose tables lie above the release as often as below, by 400 of them at each
    assert exact(jaxdp.NoisyTableChi2(mechanism=none, num_null=19), data) == pytest.approx(phi, abs=2e-3)
    observed, expected = 320, 500 * 520 / 1000
    peto = (observed - expected) / (500 * 500 * 520 * 480 / (1000**2 * 999))
    assert exact(jaxdp.ConditionalKendall(mechanism=none), data) == pytest.approx(peto, rel=1e-3)


@pytest.mark.full
def test_rank_effects_are_tau_and_rho():
    data = pair(jax.random.key(3), 1000, 0.5, with_z=False)
    none = jaxdp.mechanisms.Exact()
    tau = stats.kendalltau(data.x, data.y).statistic
    rho = stats.spearmanr(data.x, data.y).statistic
    assert exact(jaxdp.ConditionalKendall(mechanism=none), data) == pytest.approx(tau, abs=0.01)
    assert exact(jaxdp.ConditionalSpearman(mechanism=none), data) == pytest.approx(rho, abs=0.01)


@pytest.mark.full
@pytest.mark.parametrize("levels", [[0.9], [0.6, 0.9], [0.2, 0.4, 0.6, 0.8]])
def test_rank_effects_of_columns_with_ties_are_tau_a_and_rho(levels):
    """Not above 1 where nine in ten values are equal: agreeing pairs less others, and rho as scipy corrects it."""
    values = pair(jax.random.key(3), 1000, 0.7, with_z=False)
    cuts = stats.norm.ppf(levels) / 4.0
    heap = np.clip(np.asarray(values.x), cuts[0], None), np.searchsorted(cuts, np.asarray(values.y))
    data = Data(jnp.asarray(heap[0]), jnp.asarray(heap[1] / 5.0), domain=Domain((Column(),), (Column(),)))
    pairs = [np.sign(column[:, None] - column) for column in heap]
    none = jaxdp.mechanisms.Exact()
    tau = float((pairs[0] * pairs[1]).sum() / (1000 * 999))
    assert exact(jaxdp.ConditionalKendall(mechanism=none), data) == pytest.approx(tau, rel=0.01)
    rho = stats.spearmanr(*heap).statistic
    assert exact(jaxdp.ConditionalSpearman(mechanism=none), data) == pytest.approx(rho, rel=0.02)


@pytest.mark.full
def test_nothing_is_known_where_the_noise_is_large():
    result = jaxdp.run(jaxdp.PartitionGCM(epsilon=1e-3), jax.random.key(0), pair(jax.random.key(1), 100, 0.5))
    assert np.isnan([float(result.effect), *map(float, result.interval)]).all()


@pytest.mark.parametrize("r", [0.0, 0.6])
def test_what_would_have_been_found_is_on_the_scale_of_the_interval(r):
    """Half the interval about no effect, times (1.96 + 0.84)/1.96, whatever the data."""
    partition = jaxdp.PartitionGCM(epsilon=2.0, scale_x=0.25, scale_y=0.25)
    for test, with_z in ((jaxdp.BandGCM(epsilon=2.0), True), (partition, False)):
        data = pair(jax.random.key(7), 2000, r, with_z)
        result = jaxdp.run(test, jax.random.key(1), data)
        shapes = core.public_shapes(data)
        found = float(core.specialize(test, data).detectable_effect(shapes, result.release, 0.05))
        if r == 0.0:
            half = 0.5 * float(result.interval[1] - result.interval[0])
            assert found == pytest.approx(half * (1.96 + 0.84) / 1.96, rel=0.1)
        assert 0.0 < found < 0.3


@pytest.mark.parametrize("method", [None, "partition-gcm"])  # one release, and stages
def test_an_answer_that_finds_nothing_says_what_it_would_have_found(method):
    rng = np.random.default_rng(1)
    columns = dict(zip("abc", rng.normal(size=(3, 3000)), strict=True))
    asked = {"x": "a", "y": "b", "given": "c", "epsilon": 4.0, "bounds": dict.fromkeys("abc", (-4, 4))}
    answer = jaxdp.test(columns, key=jax.random.key(0), method=method, **asked)
    missed = answer.missed()
    half = 0.5 * (answer.interval[1] - answer.interval[0])
    assert missed["detectable_effect"] == pytest.approx(half * (1.96 + 0.84) / 1.96, rel=0.2)
    assert "an effect size of" in missed["power"]


@pytest.mark.full
def test_several_columns_have_an_effect_each():
    one = pair(jax.random.key(2), 400, 0.5)
    data = Data(jnp.stack([one.x, -one.x], axis=1), one.y, one.z, Domain((Column(),) * 2, (Column(),), (Column(),)))
    result = jaxdp.run(jaxdp.BandGCM(epsilon=20.0), jax.random.key(0), data)
    assert result.effect.shape == (2, 1)
    assert float(result.effect[0, 0]) > 0.3
    assert float(result.interval[1][1, 0]) < -0.15


def test_a_release_carries_its_effect_in_float64():
    result = jaxdp.run(jaxdp.BandGCM(epsilon=1.0), jaxdp.fresh_key(), pair(jax.random.key(1), 300, 0.5))
    assert result.effect.dtype == np.float64
    assert -1.0 <= result.interval[0] < result.interval[1] <= 1.0


def test_an_effect_without_z_speaks_of_no_z_and_one_of_levels_of_no_normal_columns():
    rows = np.repeat([["no", "no"], ["yes", "yes"]], 400, axis=0)
    levels = {name: ["no", "yes"] for name in "ab"}
    answer = jaxdp.test(
        {"a": rows[:, 0], "b": rows[:, 1]}, x="a", y="b", epsilon=4.0, levels=levels, key=jax.random.key(1)
    )
    assert answer.content["interval"][0] > 0.5
    assert "which is the phi coefficient of" in answer.content["effect_is"]


@pytest.mark.full
def test_tests_without_an_effect_size_say_nothing(tmp_path, capsys):
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    rows = np.clip(np.stack([x, 0.6 * x + 0.8 * rng.normal(size=400), rng.uniform(-1, 1, 400)], axis=1), -4, 4)
    (tmp_path / "t.csv").write_text("a,b,c\n" + "".join(",".join(f"{v:.4f}" for v in row) + "\n" for row in rows))
    schema = "\n".join(f'[columns.{name}]\nkind = "continuous"\nbounds = [-4, 4]\n' for name in "abc")
    (tmp_path / "s.toml").write_text(schema)
    place = ["test", str(tmp_path / "t.csv"), "--schema", str(tmp_path / "s.toml"), "--out", str(tmp_path / "out")]
    query = [*place, "--x", "a", "--y", "b", "--given", "c", "--epsilon", "4", "--seed", "1"]
    assert main(query) == 0
    told, found = capsys.readouterr().out, json.loads((tmp_path / "out" / "result.json").read_text())
    assert "effect" in told
    assert "95 % interval" in told
    assert found["interval"][0] < found["effect"] < found["interval"][1]
    assert 0.2 < found["effect"] < 0.6
    assert (
        "agreement of X and Y among records with nearly the same Z, from -1 (X is higher where Y is lower)"
        in found["effect_is"]
    )
    assert "correlation is at least 0." in found["effect_is"]
    assert main([*query, "--method", "test-of-tests", "--overwrite"]) == 0
    assert "95 % interval" not in capsys.readouterr().out
    assert json.loads((tmp_path / "out" / "result.json").read_text())["effect"] is None


def sums_of_tables(share: float, odds: float, records: int):
    """(U, V) of the test of Cochran, Mantel and Haenszel in 4000 tables of two columns with this margin."""
    wide = np.roots([odds - 1.0, -(2.0 * share * (odds - 1.0) + 1.0), odds * share**2])
    both = float(min(wide))  # the share of the records in the rarer level of both
    cells = [both, share - both, share - both, 1.0 - 2.0 * share + both]
    drawn = np.random.default_rng(3).multinomial(records, cells, size=4000).astype(float)
    rows, columns = drawn[:, 0] + drawn[:, 1], drawn[:, 0] + drawn[:, 2]
    u = drawn[:, 0] - rows * columns / records
    return u, rows * (records - rows) * columns * (records - columns) / (records**2 * (records - 1.0))


@pytest.mark.parametrize(("share", "odds", "records"), [(0.1, 9.0, 20_000), (0.03, 6.0, 50_000), (0.5, 4.0, 4000)])
@pytest.mark.parametrize("order", [0.0, 0.5, 1.0])
def test_the_variance_of_rare_levels_is_that_of_tables_drawn(share, odds, records, order):
    """At least it, and at most a third above it, where both columns have the same margin (#ties)."""
    u, v = sums_of_tables(share, odds, records)
    mean = v.mean() * (v / v.mean()) ** order
    g = u.mean() / v.mean()
    found = (u - g * mean).var() / v.mean()
    s = float(np.sqrt(v.mean() / records))
    told = float(effect_sizes.count_growth(g, jnp.asarray(s), order))
    assert found * 0.95 < told < found * 1.33
    assert float(effect_sizes.count_growth(0.0, jnp.asarray(s), order)) == 1.0


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 0.9])
def test_the_heap_of_two_columns_is_seen_in_their_variance(share):
    heap = float(effect_sizes.heaped(jnp.asarray((1.0 - share**3) ** 2)))
    rest = min(1.0 - share, 0.5)
    assert heap == pytest.approx(rest * (1.0 - rest), rel=1e-3)


def covered(test, draw, truth_of, runs: int) -> float:
    """Share of the intervals of a test that hold the mean of its estimate without noise."""
    exact_test = dataclasses.replace(test, epsilon=None, mechanism=jaxdp.mechanisms.Exact())

    def ran(query, key):
        key_data, key_run = jax.random.split(key)
        return jaxdp.run(query, key_run, draw(key_data))

    @jax.jit
    def estimates(keys):
        return jax.lax.map(lambda key: ran(exact_test, key).effect, keys, batch_size=20)

    @jax.jit
    def intervals(keys):
        return jax.lax.map(lambda key: ran(test, key).interval, keys, batch_size=20)

    truth = float(np.mean(estimates(jax.random.split(jax.random.key(1), truth_of))))
    low, high = map(np.asarray, intervals(jax.random.split(jax.random.key(2), runs)))
    assert np.isfinite(low).mean() > 0.95
    return float(np.mean((low <= truth) & (truth <= high)))


@pytest.mark.full
def test_the_log_odds_of_rare_levels_are_covered():
    """0.91 where the variance at an effect is that of none."""
    side = (Column(BINARY, 2),)

    def draw(key):
        pair = jax.random.normal(key, (2, 20_000))
        y = 0.5 * pair[0] + np.sqrt(0.75) * pair[1]
        cut = stats.norm.ppf(0.1)
        return Data((pair[0] < cut).astype(int), (y < cut).astype(int), domain=Domain(side, side))

    assert 0.935 < covered(jaxdp.ConditionalKendall(epsilon=4.0), draw, 200, 800) < 0.985


@pytest.mark.full
@pytest.mark.parametrize("test", [jaxdp.ConditionalSpearman(epsilon=4.0), jaxdp.ConditionalKendall(epsilon=4.0)])
@pytest.mark.parametrize("zeros", [0.7, 0.9])
def test_rank_correlations_of_columns_with_many_zeros_are_covered(test, zeros):
    """0.83 to 0.89 of intervals of rho where the variance at an effect is 1 - effect^2 of the null's."""

    def draw(key):
        pair = jax.random.normal(key, (2, 2000))
        both = jnp.stack([pair[0], 0.5 * pair[0] + np.sqrt(0.75) * pair[1]])
        x, y = jnp.where(both > stats.norm.ppf(zeros), both / 5.0, 0.0)
        return Data(x, y, domain=Domain((Column(),), (Column(),)))

    assert 0.93 < covered(test, draw, 200, 800) < 0.985


def crowded_pair(draws, share: float, r: float):
    """Two columns of correlated normal ones: 0 in this share of the records, exponential in the others."""
    first, second = draws
    both = np.stack([first, r * first + np.sqrt(1.0 - r * r) * second])
    above = np.maximum(stats.norm.sf(both), 1e-12) / (1.0 - share)
    return np.where(above < 1.0, -np.log(above), 0.0)


@pytest.mark.parametrize(("share", "most"), [(0.0, 1.6), (0.5, 1.8), (0.7, 1.6), (0.8, 1.6)])
@pytest.mark.parametrize("tau", [1.2, 2.0])
def test_the_variance_of_columns_that_crowd_at_a_bound_is_seen_in_their_mean_and_spread(share, most, tau):
    """At least nine tenths of it, and at most `most` times it, on laws of which the variance of none is too small."""
    pair = crowded_pair(np.random.default_rng(4).normal(size=(2, 200_000)), share, 0.5)
    distance, reach = pair.mean(), tau * pair.std()
    clipped = np.clip(pair - distance, -reach, reach)
    ratio = clipped.std() / distance
    x, y = (clipped - clipped.mean()) / clipped.std()
    h = (x * y).mean()
    found = ((x * y - 0.5 * h * (x**2 + y**2)) ** 2).mean()
    told = float(effect_sizes.shrunk(1.0, h) * effect_sizes.crowded_growth(h, ratio))
    assert 0.9 * found < told < most * max(found, 1.0 - h**4)
    assert float(effect_sizes.crowded_growth(h, -ratio)) == float(effect_sizes.crowded_growth(0.0, ratio)) == 1.0
    assert float(effect_sizes.crowded_growth(h, 0.25)) == 1.0  # normal columns within bounds of four sds


@pytest.mark.full
def test_correlations_of_columns_that_crowd_at_a_bound_are_covered():
    """0.91 where the variance is that of columns that do not."""
    domain = Domain((Column(),), (Column(),), (Column(CATEGORICAL, 2),))

    def draw(key):
        key_z, key_pair = jax.random.split(key)
        pair = jax.random.normal(key_pair, (2, 4000))
        both = jnp.stack([pair[0], 0.5 * pair[0] + np.sqrt(0.75) * pair[1]])
        above = jnp.maximum(jax.scipy.stats.norm.sf(both), 1e-6) / 0.2  # as in `crowded_pair`
        x, y = jnp.minimum(jnp.where(above < 1.0, -jnp.log(above), 0.0) / 3.0 - 1.0, 1.0)
        return Data(x, y, jax.random.randint(key_z, (4000, 1), 0, 2), domain)

    centers = Centers(x=jnp.full((2, 1), -0.933), y=jnp.full((2, 1), -0.933))
    test = jaxdp.PartitionGCM(epsilon=8.0, scale_x=0.2, scale_y=0.2, winsorize=2.0, centers=centers)
    assert 0.93 < covered(test, draw, 200, 800) < 0.985


@pytest.mark.parametrize(
    ("method", "assumed"),
    [("conditional-kendall", 1), ("conditional-spearman", 1), ("partition-gcm", 1), ("kruskal-wallis", 0)],
)
def test_an_answer_says_what_its_interval_assumes(method, assumed):
    rng = np.random.default_rng(0)
    x = rng.normal(size=600)
    table = {"a": np.clip(x, -4, 4), "b": np.clip(x + rng.normal(size=600), -4, 4), "arm": (x > 0) * 1}
    known = {"bounds": {"a": (-4.0, 4.0), "b": (-4.0, 4.0)}, "levels": {"arm": [0, 1]}, "key": jax.random.key(0)}
    told = (
        "at 0.5 its interval assumes equal spreads",
        "its interval assumes that the spread of neither column follows",
    )
    query = {"x": "a" if assumed else "arm", "y": "b", "epsilon": 4.0, "method": method}
    sentences = jaxdp.test(table, **query, **known).sentences()
    assert any(told[assumed] in line for line in sentences)


def test_intervals_of_log_odds_and_answers_without_an_interval_assume_no_spreads():
    pair = {"x": "arm", "y": "cured", "epsilon": 4.0, "key": jax.random.key(0)}
    x = np.arange(600) % 2
    known = {"levels": {"arm": [0, 1], "cured": [0, 1]}, "method": "conditional-kendall"}
    answer = jaxdp.test({"arm": x, "cured": x * (np.arange(600) % 3 > 0)}, **pair, **known)
    assert answer.interval is not None
    assert "assumes" not in answer.content["effect_is"]


@pytest.mark.parametrize(
    ("interval", "told"),
    [
        ((-0.7, 0.0), " (odds ratio 0.497 to 1)"),
        ((0.0003, 0.378436), " (odds ratio 1.0003 to 1.46)"),  # the p-value beside it is below the level
        ((9.3e-300, 1.08e-299), " (odds ratio 1 + 9.3e-300 to 1 + 1.08e-299)"),  # per unit of a column in huge units
        ((-2e-6, 0.0), " (odds ratio 1 - 2e-06 to 1)"),
        (None, ""),
    ],
)
def test_an_interval_of_a_logarithm_is_told_as_that_of_the_ratio(interval, told):
    assert effect_sizes.describe_ratio("odds ratio", interval) == told


def test_an_end_at_which_the_search_stopped_excludes_nothing_beyond():
    assert effect_sizes.describe_ratio("hazard ratio", (-2.9, 1.0), 3.0) == " (hazard ratio 0.055 to 2.72)"
    told = effect_sizes.describe_ratio("hazard ratio", (np.float32(-3.0), 1.0), 3.0)
    assert told.endswith("2.72; the lower end is where the search stops: smaller ratios are not excluded)")
    told = effect_sizes.describe_ratio("hazard ratio", (-0.1, 2.99999), 3.0)
    assert told.endswith("the upper end is where the search stops: larger ratios are not excluded)")


@pytest.mark.full
def test_petos_odds_ratio_is_called_so_and_its_interval_is_of_its_limit():
    """Unequal arms, an odds ratio of 5: Peto's is 13.1 there (docs/theory/effect_sizes.md#peto)."""
    share, rate, ratio = 0.1, 0.05, 5.0
    odds = rate / (1.0 - rate) * ratio
    both = share * odds / (1.0 + odds)
    mean = both + (1.0 - share) * rate
    limit = (both - share * mean) / (share * (1.0 - share) * mean * (1.0 - mean))
    assert math.exp(limit) == pytest.approx(13.13, abs=0.01)
    levels = {"arm": ["old", "new"], "event": ["no", "yes"]}
    schema = {"columns": {name: {"kind": "binary", "levels": names} for name, names in levels.items()}}
    covered = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        arm = rng.random(8000) < share
        event = rng.random(8000) < np.where(arm, odds / (1.0 + odds), rate)
        columns = {name: np.array(levels[name])[1 * codes] for name, codes in (("arm", arm), ("event", event))}
        how = {"schema": schema, "epsilon": 4.0, "key": jax.random.key(seed), "method": "conditional-kendall"}
        found = jaxdp.test(columns, x="arm", y="event", **how)
        covered += found.interval[0] <= limit <= found.interval[1]
    told = " ".join(found.sentences())
    assert "Peto's odds ratio" in told
    assert "logistic-regression estimates the odds ratio itself" in told
    assert covered >= 9


def test_an_interval_leaves_out_none_where_a_rank_is_the_level():
    """The verdict finds there: p <= level."""
    for rank, found in ((49 / 1000, True), (50 / 1000, True), (np.float32(0.05), True), (51 / 1000, False)):
        assert bool(np.isfinite(effect_sizes.agreeing((0.1, 0.3), rank)[0])) is found
        assert bool(np.isfinite(effect_sizes.agreeing((-0.1, 0.3), rank)[0])) is not found


@pytest.mark.parametrize(("rank", "found"), [(0.049, True), (0.05, True), (0.051, False)])
def test_a_size_that_is_found_lies_above_none_beside_one_half(rank, found):
    """`kruskal-wallis` adds 1/2 to it; 50 of 1000 ranks hold the condition of the lower end from 0 on."""
    low, high = effect_sizes.size_interval(
        rank, lambda size: jnp.where(size > 0.02, 0.2, rank), lambda size: 0.9 - 2.0 * size, 0.5, 0.1
    )
    assert (0.5 + np.float32(low) > np.float32(0.5)) == found
    assert low < high


@pytest.mark.parametrize("ends", [(-1000.0, 1000.0), (800.0, 1e6), (-np.inf, 3.0)])
def test_a_ratio_beyond_what_a_float_holds_is_told(ends):
    """Per unit of a column in small units; it once raised after the charge."""
    told = effect_sizes.describe_ratio("odds ratio", ends)
    assert "inf)" not in told
    assert " 0 to" not in told
    assert "e^" in told
