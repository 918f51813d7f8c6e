"""KruskalWallis of two groups: the sign of the rank sum, the law of its p-value, P(X > Y) with its interval."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxdp
from jaxdp import core
from jaxdp.data.dataset import BINARY, CATEGORICAL, Column, Data, Domain
from jaxdp.independence.ranks import kruskal_wallis
from jaxdp.statistics import rank_sums

PAIR = Domain((Column(BINARY, 2),), (Column(),))
BINARY_BOUND = 1e-4


def drawn(key, n=400, shift=0.0, share=0.5, ties=False):
    keys = jax.random.split(key)
    group = jax.random.uniform(keys[0], (n,)) < share
    values = jax.random.normal(keys[1], (n,)) + shift * group
    values = jnp.round(values) if ties else values
    return Data(1 * group, jnp.clip(values / 6.0, -1.0, 1.0), None, PAIR)


def theta_of(data) -> float:
    """P(second > first) + P(equal)/2, by SciPy."""
    group, values = np.asarray(data.x) > 0, np.asarray(data.y)
    return stats.mannwhitneyu(values[group], values[~group]).statistic / (group.sum() * (~group).sum())


def signed_sum(values, groups) -> float:
    """R_1 - R_0 by SciPy's ranks."""
    centred = stats.rankdata(values) - (len(values) + 1) / 2
    return float(centred[groups == 1].sum() - centred[groups == 0].sum())


@pytest.mark.parametrize("ties", [False, True])
def test_the_statistic_is_mann_whitneys(ties):
    for seed, share in enumerate((0.5, 0.2)):
        data = drawn(jax.random.key(seed), 60, 0.5, share, ties)
        group, n = np.asarray(data.x), 60
        found = float(rank_sums.signed(data.y, data.x))
        assert found == pytest.approx(rank_sums.unit(n) * signed_sum(np.asarray(data.y), group), rel=1e-6)
        assert abs(found) == pytest.approx(float(rank_sums.kw_abs(data.y, data.x, 2)), rel=1e-6)
        sizes = group.sum() * (n - group.sum())
        assert 0.5 + found / (2.0 * rank_sums.unit(n) * sizes) == pytest.approx(theta_of(data), rel=1e-6)


@pytest.mark.parametrize("n", [4, 5])
def test_with_its_sign_the_sum_moves_no_further(n):
    """Over all data sets of n values, with and without ties, two groups and all replacements of one record."""
    largest = 0.0
    for groups in itertools.product(range(2), repeat=n):
        groups = np.array(groups)
        for values in (np.arange(n), np.arange(n) // 2):
            before = signed_sum(values, groups)
            for place, other, new in itertools.product(range(n), range(2), (-1.0, *(np.arange(n) - 0.5), *range(n), n)):
                after, moved = values.astype(float), groups.copy()
                after[place], moved[place] = new, other
                largest = max(largest, abs(signed_sum(after, moved) - before))
    assert 2 * (n - 2) <= largest <= kruskal_wallis.RANK_SUMS_MOVE * (n - 1)


def test_without_noise_the_p_value_is_scipys():
    with jax.enable_x64(True):
        for seed in range(3):
            data = drawn(jax.random.key(seed), shift=0.2)
            group, values = np.asarray(data.x) > 0, np.asarray(data.y)
            plain = stats.mannwhitneyu(values[group], values[~group], method="asymptotic", use_continuity=False)
            found = jaxdp.run(jaxdp.KruskalWallis(epsilon=1e5), jax.random.key(1), data)
            assert float(found.p_value) == pytest.approx(plain.pvalue, rel=0.02)
            assert float(found.effect) == pytest.approx(theta_of(data), abs=1e-3)


def test_the_variance_is_that_of_equal_laws_at_a_half_and_the_largest_there_is_elsewhere():
    n, small = 60, 20
    alike = small * (n - small) * (n + 1) / 12.0
    assert float(rank_sums.variance_of_second(0.0, small, 1.0, n)) == pytest.approx(alike)
    rng = np.random.default_rng(0)
    groups = np.repeat([1, 0], [small, n - small])
    for share in (0.6, 0.8, 0.95):  # the small group lies on both sides of the other one, or far above it
        sides = np.where(rng.random((4000, n)) < share, 9.0, -9.0)
        ranks = np.argsort(np.argsort(np.where(groups == 1, sides, 0.0) + rng.random((4000, n)), axis=1), axis=1)
        reached = ranks[:, groups == 1].sum(axis=1).var(ddof=1)
        assert float(rank_sums.variance_of_second(share - 0.5, small, 1.0, n)) == pytest.approx(reached, rel=0.1)
        shift = stats.norm.ppf(share) * np.sqrt(2.0)
        normal = rng.normal(size=(4000, n)) + shift * groups
        less = np.argsort(np.argsort(normal, axis=1), axis=1)[:, groups == 1].sum(axis=1).var(ddof=1)
        assert less < reached


@pytest.mark.parametrize("share", [0.1, 0.9])
def test_the_chance_is_covered_where_one_group_is_spread_three_times_as_far(share):
    """0.85 with the variance of groups whose spreads are alike, where the wide group is a tenth."""
    n, runs, test = 1000, 300, jaxdp.KruskalWallis(epsilon=4.0)
    truth = stats.norm.cdf(0.5 / np.sqrt(10.0))

    def run(key):
        key_data, key_run = jax.random.split(key)
        keys = jax.random.split(key_data)
        group = jax.random.uniform(keys[0], (n,)) < share
        values = jax.random.normal(keys[1], (n,)) * jnp.where(group, 3.0, 1.0) + 0.5 * group
        return core.run(test, key_run, Data(1 * group, jnp.clip(values / 15.0, -1.0, 1.0), None, PAIR)).interval

    low, high = jax.lax.map(run, jax.random.split(jax.random.key(7), runs), batch_size=50)
    assert int(((low <= truth) & (truth <= high)).sum()) >= stats.binom.ppf(BINARY_BOUND, runs, 0.95)
    assert float(jnp.median(high - low)) < 0.25


@pytest.mark.parametrize(
    "make",
    [
        pytest.param({"epsilon": 1.0}, id="laplace"),
        pytest.param({"mechanism": jaxdp.Gaussian(rho=0.1)}, id="gaussian", marks=pytest.mark.full),
    ],
)
def test_the_interval_leaves_out_a_half_exactly_where_p_is_below_five_percent(make):
    def run(key, shift):
        key_data, key_run = jax.random.split(key)
        result = core.run(jaxdp.KruskalWallis(**make), key_run, drawn(key_data, shift=shift))
        return result.p_value, *result.interval

    keys, shifts = jax.random.split(jax.random.key(3), 60), jnp.linspace(-0.6, 0.6, 60)
    p, low, high = (np.asarray(part) for part in jax.jit(jax.vmap(run))(keys, shifts))
    assert np.isfinite(low).all()
    out = (low > 0.5) | (high < 0.5)
    assert 5 < out.sum() < 55
    assert (out == (p < 0.05)).all()
    assert (low <= high).all()
    assert (low >= 0.0).all()
    assert (high <= 1.0).all()


@pytest.mark.full
@pytest.mark.optimised
@pytest.mark.parametrize(
    ("shift", "share", "ties"), [(0.0, 0.5, False), (0.5, 0.1, False), (1.5, 0.5, False), (0.5, 0.5, True)]
)
def test_coverage(shift, share, ties):
    n, runs, test = 1000, 600, jaxdp.KruskalWallis(epsilon=2.0)
    spread = np.sqrt(2.0)
    truth = stats.norm.cdf(shift / spread)
    if ties:  # of rounded values, by their probabilities
        grid = np.arange(-9, 10)
        first, second = (stats.norm.cdf(grid + 0.5 - s) - stats.norm.cdf(grid - 0.5 - s) for s in (0.0, shift))
        truth = float(second @ (np.cumsum(first) - 0.5 * first))

    def run(key):
        key_data, key_run = jax.random.split(key)
        return core.run(test, key_run, drawn(key_data, n, shift, share, ties)).interval

    low, high = jax.lax.map(run, jax.random.split(jax.random.key(7), runs), batch_size=50)
    covered = int(((low <= truth) & (truth <= high)).sum())
    assert covered >= stats.binom.ppf(BINARY_BOUND, runs, 0.94)
    assert float(jnp.median(high - low)) < 0.25  # intervals that hold everything would pass the line above


def test_a_group_that_the_noise_hides_has_no_interval():
    few = Data(jnp.zeros(200, int).at[:3].set(1), jnp.linspace(-1, 1, 200), None, PAIR)
    found = jaxdp.run(jaxdp.KruskalWallis(epsilon=0.5), jax.random.key(0), few)
    assert np.isnan([float(found.effect), *map(float, found.interval)]).all()
    assert np.isfinite(float(found.p_value))


@pytest.mark.full
def test_public_sizes_and_three_groups():
    data = Data(jnp.arange(200) % 2, jnp.linspace(-1, 1, 200), None, PAIR)
    found = jaxdp.run(jaxdp.KruskalWallis(epsilon=2.0, group_counts=(100, 100)), jax.random.key(0), data)
    assert set(found.release.value) == {"ranks"}
    assert float(found.interval[0]) < 0.5 < float(found.interval[1])
    three = Domain((Column(CATEGORICAL, 3),), (Column(),))
    other = Data(jnp.arange(200) % 3, jnp.linspace(-1, 1, 200), None, three)
    assert jaxdp.run(jaxdp.KruskalWallis(epsilon=2.0, num_null=19), jax.random.key(0), other).effect >= 0.5


@functools.cache
def answered(method):
    rng = np.random.default_rng(2)
    arm = rng.integers(0, 2, 600)
    table = {"arm": np.array(["control", "drug"])[arm], "dose": np.clip(rng.normal(size=600) + 0.8 * arm, -4, 5)}
    known = {"levels": {"arm": ["control", "drug"]}, "bounds": {"dose": (-4.0, 5.0)}}
    return jaxdp.test(table, x="arm", y="dose", epsilon=2.0, method=method, key=jax.random.key(0), **known)


def test_an_answer_without_an_interval_says_why():
    values = np.random.default_rng(2).normal(size=600)
    table = {"arm": (np.arange(600) < 6) * 1, "dose": np.clip(values, -4, 4)}
    known = {"levels": {"arm": [0, 1]}, "bounds": {"dose": (-4.0, 4.0)}}
    answer = jaxdp.test(table, x="arm", y="dose", epsilon=1.0, method="mann-whitney", key=jax.random.key(0), **known)
    told = "the smaller group has too few records for this epsilon, so there is no interval of the chance"
    assert answer.interval is None
    assert any(told in sentence for sentence in answer.sentences())
    assert not any(told in sentence for sentence in answered("mann-whitney").sentences())
    shapes = jaxdp.core.public_shapes(jaxdp.Data(table["arm"], table["dose"] / 4.0, None, PAIR))
    assert [float(side) for side in answer.test.one_sided(shapes, answer.release, 0.5)] == [1.0, 1.0]


def test_a_t_test_of_ordered_levels_names_the_test_of_ranks():
    rng = np.random.default_rng(2)
    table = {"arm": rng.integers(0, 2, 400), "grade": rng.integers(0, 4, 400)}
    rules = {"arm": {"kind": "binary", "levels": [0, 1]}, "grade": {"kind": "ordinal", "levels": [0, 1, 2, 3]}}
    schema = jaxdp.Schema.from_dict({"columns": rules})
    answer = jaxdp.test(table, x="arm", y="grade", epsilon=1.0, method="t-test", key=jax.random.key(0), schema=schema)
    assert "; kruskal-wallis compares ordered levels by rank alone" in answer.content["effect_is"]


def test_a_picture_marks_a_half_as_no_effect(monkeypatch, tmp_path):
    from jaxdp.report import figures

    drawn_effects = []
    monkeypatch.setattr(figures, "p_value_scale", lambda path, *, effect, **how: drawn_effects.append(effect))
    monkeypatch.setattr(figures, "null_law", lambda path, *values, effect, **how: drawn_effects.append(effect))
    answered("mann-whitney").draw(tmp_path / "p.png")
    assert [effect.none for effect in drawn_effects] == [0.5]
    assert jaxdp.MeanDifference.no_effect == 0.0


def test_the_answer_names_the_groups():
    answer = answered("mann-whitney")
    low, high = answer.interval
    assert 0.55 < low < answer.effect < high < 0.85
    told = "dose where arm is drug, above dose where it is control, dose clipped to [-4, 5]"
    assert told in answer.content["effect_is"]
    assert any(told in sentence for sentence in answer.sentences())


@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_an_answer_that_leaves_out_a_half_says_that_this_rests_on_equal_spreads(shift):
    data = drawn(jax.random.key(1), 600, shift)
    kinds = {"arm": {"kind": "binary", "levels": ["0", "1"]}, "score": {"kind": "continuous", "bounds": [-1, 1]}}
    answer = jaxdp.test(
        {"arm": np.asarray(data.x).astype(str), "score": np.asarray(data.y)},
        schema={"columns": kinds},
        x="arm",
        y="score",
        epsilon=8.0,
        method="mann-whitney",
        key=jax.random.key(2),
    )
    assert answer.dependence_found == (shift > 0.0)
    told = "at 0.5 its interval assumes equal spreads"
    more = ", so that it leaves out a true 0.5 too often where a smaller group spreads more widely"
    assert told in answer.content["effect_is"]
    assert (more in answer.content["effect_is"]) == answer.dependence_found
    rule = answer.content["level_rule"]
    assert rule["verdict"] == "run"
    assert "mean-difference compares the means of two groups without assuming equal spreads" in rule["sentence"]
