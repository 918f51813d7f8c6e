"""All pairs by one joint release: bounds that records reach, level, pairs found, intervals, what is told of power."""

import dataclasses
import itertools
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxdp
from jaxdp import null_laws
from jaxdp.accounting import zcdp_rho
from jaxdp.core import Norm, Relation, Sensitivity
from jaxdp.data.dataset import BINARY, CATEGORICAL, ORDINAL, Column, Data, Domain
from jaxdp.independence.tables import pair_contrasts
from jaxdp.independence.tables.class_choice import ClassChoice, classing
from jaxdp.independence.tables.pair_contrasts import PairContrasts, sums_move
from jaxdp.independence.tables.pair_contrasts_power import detectable_effect, sharper
from jaxdp.mechanisms import Gaussian, Laplace, MaxNorm
from jaxdp.simulate import examples
from jaxdp.statistics import partition
from jaxdp.statistics.tables import contrasts

pytestmark = pytest.mark.optimised

LINE = (Column(),) * 8


def data_of(values, columns=LINE):
    return Data(values, values, None, Domain(columns, columns))


def sums_of(record, counts):
    """All contrasts of one record and their products of two columns: what it adds to the released sums."""
    parts = [contrasts.matrix(count)[value] for value, count in zip(record, counts, strict=True)]
    products = [np.outer(a, b).ravel() for a, b in itertools.combinations(parts, 2)]
    return np.concatenate([*parts, *products])


def test_p_values_of_staged_draws_are_no_smaller_than_chance_makes_them():
    """Stages of 99, 999 and 1500 draws: shares of true nulls with a p-value of at most a, at each stage's own a."""
    law = pair_contrasts._Noise(Laplace(1.0), Sensitivity(6.0, Norm.L1, Relation.REPLACE_ONE), 3, 1500)
    means = jnp.array([0.2]), jnp.array([-0.1])

    def one(key):
        key_table, key_p = jax.random.split(key)
        bare = pair_contrasts._Pair((2, 2, True), 400.0, None, *means, dataclasses.replace(law, draws=1))
        pair = pair_contrasts._Pair((2, 2, True), 400.0, bare.null_excess(key_table)[0] + 400.0 * -0.02, *means, law)
        return pair_contrasts._staged(pair, key_p, 99)[0]

    with mock.patch.object(pair_contrasts, "CLEAR", 50.0):
        p_values = np.asarray(jax.jit(lambda keys: jax.lax.map(one, keys))(jax.random.split(jax.random.key(3), 1500)))
    shares = [np.mean(p_values <= level) for level in (0.02, 0.05, 0.2, 0.5, 0.8)]
    for level, share in zip((0.02, 0.05, 0.2, 0.5, 0.8), shares, strict=True):
        assert share <= level + 3.5 * np.sqrt(level * (1 - level) / 1500)
    assert shares[1] > 0.03
    assert np.mean(np.isin(np.round(p_values * 100, 3), np.arange(51, 101))) > 0.4  # of the first stage


@pytest.mark.parametrize("counts", [(2, 2, 2, 2, 2), (4, 4, 2), (4, 3, 2, 2), (5, 3, 2), (6, 4)])
def test_records_reach_the_bounds_in_every_norm(counts):
    """Every pair of records: the largest change is the bound itself, in L1, L2 and Linf."""
    records = [sums_of(record, counts) for record in itertools.product(*map(range, counts))]
    changes = np.array([one - other for one, other in itertools.combinations(records, 2)])
    classings = tuple(classing(Column(CATEGORICAL, count), 4) for count in counts)
    largest = {
        Norm.LINF: np.abs(changes).max(),
        Norm.L1: np.abs(changes).sum(axis=1).max(),
        Norm.L2: np.sqrt((changes**2).sum(axis=1).max()),
    }
    for mechanism in (MaxNorm(1.0), Laplace(1.0), Gaussian(1.0)):
        bound = float(sums_move(mechanism, classings, 100).bound)
        assert largest[mechanism.norm] == pytest.approx(bound, rel=1e-12)
    assert records[0].size == contrasts.released(counts)


def test_contrasts_are_tables_in_another_basis():
    for count in range(2, 9):
        full = np.concatenate([np.ones((count, 1)), contrasts.matrix(count)], axis=1)
        assert abs(np.linalg.det(full)) > 0.5
        shares = np.random.default_rng(count).dirichlet(np.ones(count))
        found = contrasts.probabilities(shares @ contrasts.matrix(count), count)
        assert np.allclose(found, shares, atol=1e-5)


def test_one_value_moves_the_score_of_a_class_by_one_and_never_more():
    columns = (Column(), Column(ORDINAL, 9), Column(CATEGORICAL, 6), Column(CATEGORICAL, 14))
    random, worst = np.random.default_rng(0), 0.0
    for classes in (2, 4):
        query = ClassChoice(epsilon=1.0, classings=tuple(classing(column, classes) for column in columns))
        query = ClassChoice(epsilon=1.0, classings=query.classings, reference=partition.Uniform())
        for _ in range(20):
            values = np.stack([random.uniform(-1, 1, 31), *(random.integers(0, k, 31) for k in (9, 6, 14))], axis=1)
            other = values.copy()
            other[0] = [random.choice([-1.0, 1.0]), *(random.integers(0, k) for k in (9, 6, 14))]
            first, second = (query.statistic(None, data_of(one, columns)) for one in (values, other))
            worst = max([worst, *(np.abs(first[name] - second[name]).max() for name in first)])
            assert {name: len(row) for name, row in first.items()} == {name: len(row) for name, row in second.items()}
    assert worst == 1.0


def mixed(random, n=2400):
    """Eight columns of four kinds: four pairs of strong dependence in all."""
    z = random.normal(size=(n, 8))
    z[:, 1] += z[:, 0]
    z[:, 4] += z[:, 2]
    z[:, 6] += z[:, 3]
    z[:, 7] += z[:, 5]
    values = np.clip(z / 4, -1, 1)
    cut = lambda k, ends: np.searchsorted(ends, z[:, k]).astype(float)  # noqa: E731
    values[:, 4], values[:, 5] = cut(4, [-1, 0.5, 1]), cut(5, [0])
    values[:, 6], values[:, 7] = cut(6, [-1.2, -0.4, 0.4, 1.2]), cut(7, [-0.5, 0.5])
    columns = (*LINE[:4], Column(ORDINAL, 4), Column(BINARY, 2), Column(CATEGORICAL, 5), Column(ORDINAL, 3))
    return values, columns


DEPENDENT = {(0, 1), (2, 4), (3, 6), (5, 7)}


def found_of(values, columns, epsilon, seed, **how):
    test = PairContrasts(**(how or {"epsilon": epsilon}), num_null=2799)
    p_values = np.asarray(null_laws.holm(jaxdp.run(test, jax.random.key(seed), data_of(values, columns)).p_value))
    pairs = zip(*np.triu_indices(len(columns), k=1), strict=True)
    return {(int(i), int(j)) for (i, j), p in zip(pairs, p_values, strict=True) if p <= 0.05}


def test_pairs_are_found_where_a_divided_budget_finds_none():
    """28 pairs of mixed columns at epsilon 1: each strong one. A test a pair, with a 28th of the budget, found none."""
    values, columns = mixed(np.random.default_rng(1))
    found = found_of(values, columns, 1.0, 0)
    assert len(found & DEPENDENT) >= 3
    assert found <= DEPENDENT


def test_an_interval_of_halves_leaves_out_zero_exactly_where_p_is_small():
    values, columns = mixed(np.random.default_rng(2), 600)
    seen = set()
    for seed in range(3):
        result = jaxdp.run(PairContrasts(epsilon=2.0, classes=2), jax.random.key(seed), data_of(values, columns))
        low, high = map(np.asarray, result.interval)
        assert np.array_equal((low > 0) | (high < 0), np.asarray(result.p_value) <= 0.05)
        assert np.all((low <= result.effect) & (result.effect <= high))
        seen |= set((np.asarray(result.p_value) <= 0.05).tolist())
    assert seen == {True, False}


@pytest.mark.parametrize("mechanism", [MaxNorm(1.0), Gaussian(0.2)], ids=["pure", "zcdp"])
def test_sums_of_chunks_are_those_of_all_records(mechanism):
    data = examples.four_columns(jax.random.key(0), 300)
    data = jax.tree.map(np.asarray, data)
    with jax.enable_x64(True):
        both = PairContrasts(mechanism=mechanism, classes=4).specialize(jax.eval_shape(lambda: data))
        released = jaxdp.release(both.first, jax.random.key(1), data)
        second = both.then(both.second, both.first, released)
        for query in (both.first, second):
            pieces = [jax.tree.map(lambda leaf, at=at: leaf[at : at + 100], data) for at in (0, 100, 200)]
            sums = query.partial(pieces[0], 300)
            for piece in pieces[1:]:
                sums = query.merge(sums, query.partial(piece, 300))
            whole = query.statistic(None, data)
            assert jax.tree.all(jax.tree.map(np.array_equal, query.finish(sums), whole))


@pytest.mark.full
@pytest.mark.parametrize(
    ("epsilon", "classes", "count"), [(1.0, 2, 120), pytest.param(8.0, 4, 40, marks=pytest.mark.nightly)]
)
def test_level_of_pairs_with_ties_and_rare_levels(epsilon, classes, count):
    """Independent columns, one with nine tenths of the records at one value, one with a level of 2 %."""
    columns = (Column(), Column(), Column(CATEGORICAL, 4), Column(BINARY, 2), Column(ORDINAL, 7))
    n = 1500
    test = PairContrasts(epsilon=epsilon, classes=classes, num_null=199)

    def one(key):
        keys = jax.random.split(key, 6)
        value, other = jax.random.uniform(keys[0], (2, n), minval=-1.0)
        other = jax.numpy.where(jax.random.uniform(keys[1], (n,)) < 0.9, 0.2, other)
        chance = jax.random.uniform(keys[2], (3, n))
        levels = jax.numpy.searchsorted(jax.numpy.array([0.5, 0.9, 0.98]), chance[0])
        rare = chance[1] < 0.05
        ranked = jax.numpy.minimum(jax.numpy.floor(-jax.numpy.log(chance[2])), 6.0)
        values = jax.numpy.stack([value, other, levels * 1.0, rare * 1.0, ranked], axis=1)
        return jaxdp.run(test, keys[3], data_of(values, columns)).p_value

    p_values = np.asarray(jax.lax.map(one, jax.random.split(jax.random.key(4), count)))
    rejections = (p_values <= 0.05).sum()
    # pairs of one release share their columns: as many independent ones as data sets times columns, at least
    assert rejections / p_values.size * (count * 5) <= stats.binom.ppf(1 - 1e-4, count * 5, 0.05)
    assert rejections / p_values.size > 0.02


@pytest.mark.full
def test_intervals_of_halves_cover_dependent_and_unbalanced_columns():
    """Two binary columns with 15 % each and phi 0.5: the variance is three times that of independence."""
    columns, n, share, phi = (Column(BINARY, 2),) * 3, 1500, 0.15, 0.5
    both = share**2 + phi * share * (1 - share)
    test = PairContrasts(epsilon=2.0, num_null=399)

    def one(key):
        key_data, key_test, key_last = jax.random.split(key, 3)
        cell = jax.random.choice(
            key_data, 4, (n,), p=np.array([both, share - both, share - both, 1 - 2 * share + both])
        )
        last = jax.random.bernoulli(key_last, 0.5, (n,)) * 1.0
        values = jax.numpy.stack([(cell < 2) * 1.0, (cell % 2 == 0) * 1.0, last], axis=1)
        low, high = jaxdp.run(test, key_test, data_of(values, columns)).interval
        return (low[0] <= phi) & (phi <= high[0])

    covered = np.asarray(jax.lax.map(one, jax.random.split(jax.random.key(5), 200))).mean()
    assert covered >= stats.binom.ppf(1e-4, 200, 0.95) / 200


@pytest.mark.full
def test_the_lower_end_of_cramers_v_covers_where_rare_levels_go_together():
    """Two columns of three levels: counts of the rare joint cell vary 25 times more than without dependence."""
    n, rare, both = 10_000, 0.02, 0.01
    law = np.full((3, 3), (1.0 - 2.0 * rare + both) / 4.0)
    law[2, :2] = law[:2, 2] = (rare - both) / 2.0
    law[2, 2] = both
    product = np.outer(law.sum(1), law.sum(0))
    v = np.sqrt(np.sum((law - product) ** 2 / product) / 2.0)
    columns, test = (Column(CATEGORICAL, 3),) * 3, PairContrasts(epsilon=8.0, num_null=399)

    def one(key):
        key_data, key_test = jax.random.split(key)
        key_counts, key_last = jax.random.split(key_data)
        cell = jax.random.choice(key_counts, 9, (n,), p=jnp.array(law.ravel()))
        values = jnp.stack([cell // 3, cell % 3, jax.random.choice(key_last, 3, (n,))], axis=1) * 1.0
        result = jaxdp.run(test, key_test, data_of(values, columns))
        return result.interval[0][0], result.p_value[0]

    low, p_value = map(np.asarray, jax.lax.map(one, jax.random.split(jax.random.key(7), 120)))
    assert np.mean(low <= v) >= stats.binom.ppf(1e-3, 120, 0.95) / 120
    assert np.mean(low) > 0.85 * v
    assert np.all(p_value <= 0.05)


def test_no_cramers_v_where_noise_hides_rare_levels_and_one_where_it_does_not():
    """The inverse without noise made V of a level of .7 % 0 or 1 at random, of equal and of independent columns."""
    columns, test, n = (Column(CATEGORICAL, 3),) * 3, PairContrasts(epsilon=8.0, num_null=39), 2000

    def one(key, rare):
        key_data, key_test = jax.random.split(key)
        shares = jnp.array([0.6, 1.0]) * (1.0 - rare)
        values = jnp.searchsorted(shares, jax.random.uniform(key_data, (n, 3))) * 1.0
        values = values.at[:, 1].set(values[:, 0])
        result = jaxdp.run(test, key_test, data_of(values, columns))
        return result.effect, *result.interval

    for rare, hidden in ((0.007, True), (0.1, False)):
        keys = jax.random.split(jax.random.key(9), 6)
        found = np.asarray(jax.lax.map(lambda key, rare=rare: jnp.stack(one(key, rare)), keys))
        assert np.all(np.isnan(found) == hidden)
    assert np.all(found[:, 0, 0] > 0.9)
    assert np.all(found[:, 0, 1:] < 0.2)


@pytest.mark.full
def test_a_lower_end_leaves_out_zero_exactly_where_p_is_small_and_covers_weak_effects():
    """Quarters of normal columns, whose two statistics have ends of their own."""
    n, rho, test = 2000, 0.1, PairContrasts(epsilon=100.0, num_null=399)
    grid = stats.norm.ppf([1e-12, 0.25, 0.5, 0.75, 1.0 - 1e-12])
    both = stats.multivariate_normal([0.0, 0.0], [[1.0, rho], [rho, 1.0]])
    below = np.array([[both.cdf([a, b]) for b in grid] for a in grid])
    shares = np.diff(np.diff(below, axis=0), axis=1)
    v = np.sqrt(np.sum((shares - 1.0 / 16.0) ** 2 * 16.0) / 3.0)

    def one(key):
        key_data, key_test = jax.random.split(key)
        z = jax.random.normal(key_data, (n, 3))
        z = z.at[:, 1].set(rho * z[:, 0] + np.sqrt(1.0 - rho**2) * z[:, 1])
        result = jaxdp.run(test, key_test, data_of(jnp.clip(z / 4.0, -1.0, 1.0), LINE[:3]))
        return result.interval[0], result.p_value

    low, p_value = map(np.asarray, jax.lax.map(one, jax.random.split(jax.random.key(8), 120)))
    assert np.mean(low[:, 0] <= v) >= stats.binom.ppf(1e-3, 120, 0.95) / 120
    known = np.isfinite(low)
    assert known.mean() > 0.99
    assert np.array_equal((low > 0.0)[known], (p_value <= 0.05)[known])


@pytest.mark.full
def test_the_effect_that_is_told_has_its_power():
    columns, n, count, level = LINE[:5], 2000, 80, 0.05 / 10
    test = PairContrasts(epsilon=1.0, num_null=999, classes=2)
    phi = detectable_effect(MaxNorm(1.0), test.classed(columns, n), n, level)
    slope = np.sin(np.pi / 2 * phi)

    def one(key):
        key_data, key_test = jax.random.split(key)
        z = jax.random.normal(key_data, (n, 5))
        z = z.at[:, 1].set(slope * z[:, 0] + np.sqrt(1 - slope**2) * z[:, 1])
        values = 2.0 * jax.scipy.stats.norm.cdf(z) - 1.0
        return jaxdp.run(test, key_test, data_of(values, columns)).p_value[0] <= level

    power = np.asarray(jax.lax.map(one, jax.random.split(jax.random.key(6), count))).mean()
    assert stats.binom.ppf(1e-4, count, 0.78) / count <= power <= stats.binom.ppf(1 - 1e-4, count, 0.86) / count


def test_a_delta_is_used_where_it_helps():
    normal = Gaussian(zcdp_rho(1.0, 1e-6))
    assert sharper(MaxNorm(1.0), normal, LINE[:4], 2000, 0.05 / 6) == MaxNorm(1.0)
    assert sharper(MaxNorm(1.0), normal, LINE * 3, 2000, 0.05 / 276) is normal
