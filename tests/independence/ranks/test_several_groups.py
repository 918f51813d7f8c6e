"""KruskalWallis of more than two groups: the average chance with its interval."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxdp
from experiments.evidence.coverage import several_groups
from jaxdp import core
from jaxdp.data.dataset import CATEGORICAL, Column, Data, Domain
from jaxdp.independence.ranks import kruskal_wallis
from jaxdp.plan.setting import average_chance
from jaxdp.statistics import rank_sums

BINARY_BOUND = 1e-4


def drawn(key, n, shifts, ties=False):
    shifts = jnp.asarray(shifts)
    keys = jax.random.split(key)
    group = jax.random.randint(keys[0], (n,), 0, len(shifts))
    values = jax.random.normal(keys[1], (n,)) + shifts[group]
    values = jnp.round(values) if ties else values
    return Data(group, jnp.clip(values / 6.0, -1.0, 1.0), None, several_groups.domain(len(shifts)))


def average_of(data) -> float:
    """1/2 + the weighed mean distance of every group's U/(n_g (n - n_g)) from 1/2, by SciPy."""
    groups, values = np.asarray(data.x), np.asarray(data.y)
    off = pairs = 0.0
    for g in set(groups):
        own = groups == g
        count = own.sum() * (~own).sum()
        off += abs(stats.mannwhitneyu(values[own], values[~own]).statistic - count / 2)
        pairs += count
    return 0.5 + off / pairs


@pytest.mark.parametrize("ties", [False, True])
def test_without_noise_the_effect_is_that_of_mann_whitneys_statistics(ties):
    data = drawn(jax.random.key(1), 5000, (0.0, 0.6, -0.5, 1.5), ties)
    counts = tuple(int(count) for count in np.bincount(np.asarray(data.x)))
    result = core.run(jaxdp.KruskalWallis(epsilon=1e6, group_counts=counts), jax.random.key(2), data)
    assert float(result.effect) == pytest.approx(average_of(data), abs=0.002)
    assert result.interval[0] < result.effect < result.interval[1]


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
        data = drawn(key_data, 500, (0.0, 0.0, 1.0))
        data = Data(data.x, data.y + shift * (data.x == 2) / 6.0, None, data.domain)
        result = core.run(jaxdp.KruskalWallis(**make), key_run, data)
        return result.p_value, result.effect, *result.interval

    keys, shifts = jax.random.split(jax.random.key(3), 80), jnp.linspace(-1.5, -0.4, 80)
    with jax.enable_x64(True):
        p, effect, low, high = (np.asarray(part) for part in jax.jit(jax.vmap(run))(keys, shifts))
    assert np.isfinite(low).mean() > 0.9
    known = np.isfinite(low)
    out = (low > 0.5)[known]
    assert 10 < out.sum() < known.sum() - 10
    assert (out == (p < 0.05)[known]).all()
    assert (low <= effect)[known].all()
    assert (effect <= high)[known].all()
    assert ((low >= 0.5) & (high <= 1.0))[known].all()


@pytest.mark.full
@pytest.mark.optimised
@pytest.mark.parametrize(
    "name", ["3 normal, 0, 1, 2 sd", "3 normal, sds 1, 1, 3, 0.5 sd", "5 normal, one 0.5 sd", "3 lognormal, one 0.5"]
)
def test_coverage(name):
    with jax.enable_x64(True):
        row = several_groups.measure(name, several_groups.DESIGNS[name], 1000, 4.0, 300)
    assert row["covered"] * 300 >= stats.binom.ppf(BINARY_BOUND, 300, 0.95)
    assert row["agree"] == 1.0
    assert row["width"] < 0.12  # intervals that hold everything would pass the lines above


def test_no_signed_sum_varies_more_than_the_largest_variance():
    """Groups on both sides of all others, at every share of the records and chance, by simulated rank sums."""
    rng, n = np.random.default_rng(0), 400
    for share, chance in itertools.product((0.1, 0.33, 0.5), (0.5, 0.7, 0.9)):
        size = int(share * n)
        sums = []
        for _ in range(3000):
            up = rng.random(size) < chance  # a record above all of the rest, or below
            values = np.concatenate([np.where(up, 2.0, -2.0) + 0.1 * rng.random(size), rng.random(n - size)])
            sums.append(2.0 * (stats.rankdata(values) - (n + 1) / 2)[:size].sum())
        total = 2.0 * (chance - 0.5) * size * (n - size)
        most = float(rank_sums.largest_variance(jnp.array([total]), n)[0])
        assert np.var(sums) < 1.1 * most, (share, chance)
        if share == 0.33 and chance == 0.5:
            assert np.var(sums) > 0.9 * most


def test_noise_that_hides_the_sizes_leaves_no_interval():
    data = drawn(jax.random.key(4), 60, (0.0, 0.0, 1.0))
    test = jaxdp.KruskalWallis(epsilon=0.3)
    result = core.run(test, jax.random.key(5), data)
    assert np.isnan(result.interval[0])
    assert np.isnan(result.effect)
    assert list(test.effect_notes(core.public_shapes(data), result.release)) == [kruskal_wallis.SIZES]


def test_the_answer_names_groups_and_unit():
    rng = np.random.default_rng(1)
    site = rng.integers(0, 3, 900)
    table = {"site": np.array(["a", "b", "c"])[site], "score": np.clip(rng.normal(size=900) + 0.5 * site, -4, 4)}
    rules = {
        "site": {"kind": "categorical", "levels": ["a", "b", "c"]},
        "score": {"kind": "continuous", "bounds": [-4, 4]},
    }
    answer = jaxdp.test(
        table,
        x="site",
        y="score",
        epsilon=1.0,
        method="kruskal-wallis",
        key=jax.random.key(0),
        schema={"columns": rules},
    )
    assert answer.interval[0] < answer.effect < answer.interval[1]
    assert answer.content["effect_is"].startswith(kruskal_wallis.AVERAGE_CHANCE)
    assert "score of one of the 3 groups of site, score clipped to [-4, 4]" in answer.content["effect_is"]
    assert answer.content["effect_notes"] == {}
    assert any("average over the groups" in line for line in answer.sentences())


def test_the_unit_of_a_plan_is_that_of_the_test():
    """Groups cut from a normal variable, as `jaxdp plan` simulates them."""
    rng, effect = np.random.default_rng(2), 0.4
    hidden = rng.normal(size=40_000)
    values = effect * hidden + rng.normal(size=40_000)
    groups = np.floor(4 * stats.norm.cdf(hidden)).astype(int)
    data = Data(groups, values, None, Domain((Column(CATEGORICAL, 4),), (Column(),)))
    assert average_chance(effect, 4) == pytest.approx(average_of(data), abs=0.005)
    assert average_chance(0.0, 4) == pytest.approx(0.5)
