"""ConditionalKendall and ConditionalSpearman: budgets, sensitivities under attack, level and power."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binom

import jaxdp
from jaxdp import published
from jaxdp.core import Relation
from jaxdp.data import Column, Data, Domain
from jaxdp.independence.ranks import conditional_kendall as kendall
from jaxdp.independence.ranks import conditional_spearman as spearman

pytestmark = pytest.mark.optimised

TESTS = [jaxdp.ConditionalKendall, jaxdp.ConditionalSpearman]


def domain(levels_x, levels_y, *levels_z):
    def column(levels):
        return Column("ordinal", levels) if levels else Column()

    return Domain(x=(column(levels_x),), y=(column(levels_y),), z=tuple(column(levels) for levels in levels_z))


def coded(key, n, effect, shape=(3, 3, 3)):
    """x and y share the stratum; with probability `effect` y copies x. Columns (n,) of codes."""
    key_z, key_x, key_y, key_copy, key_noise = jax.random.split(key, 5)
    z = jax.random.randint(key_z, (n,), 0, shape[2])
    x = (jax.random.binomial(key_x, 2, 0.5, (n,)).astype(int) + z) % shape[0]
    y = (jax.random.randint(key_y, (n,), 0, 2) + z) % shape[1]
    y = jnp.where(jax.random.uniform(key_copy, (n,)) < effect, x % shape[1], y)
    flip = jax.random.uniform(key_noise, (n,)) < 0.1
    return Data(x, jnp.where(flip, 0, y), z, domain=domain(*shape))


def p_values(test, draw, replicates, seed):
    def one(key):
        key_data, key_run = jax.random.split(key)
        return jaxdp.run(test, key_run, draw(key_data)).p_value

    keys = jax.random.split(jax.random.key(seed), replicates)
    return np.asarray(jax.jit(lambda keys: jax.lax.map(one, keys, batch_size=100))(keys))


@pytest.mark.full
@pytest.mark.parametrize("kind", TESTS)
@pytest.mark.parametrize("shape", [(3, 3, 3), (2, 2, 4)])
def test_level_and_power(kind, shape):
    test, replicates = kind(epsilon=1.0), 1000
    null = p_values(test, lambda key: coded(key, 600, 0.0, shape), replicates, 1)
    for level in (0.01, 0.05, 0.2):
        assert np.sum(null <= level) <= binom.ppf(1 - 1e-6, replicates, level)
    # Conservative only by the guard on V: most of the level is used.
    assert np.sum(null <= 0.2) >= binom.ppf(1e-6, replicates, 0.12)
    dependent = p_values(test, lambda key: coded(key, 600, 0.5, shape), 100, 2)
    assert np.mean(dependent < 0.05) > 0.9


@pytest.mark.full
def test_level_with_rare_levels_at_a_small_budget():
    """V is as small as its noise: the guard has to keep the level."""

    def rare(key):
        key_x, key_y = jax.random.split(key)
        x, y = (jax.random.bernoulli(k, 0.03, (500,)).astype(int) for k in (key_x, key_y))
        return Data(x, y, None, domain=domain(2, 2))

    null = p_values(jaxdp.ConditionalKendall(epsilon=1.0), rare, 2000, 3)
    assert np.sum(null <= 0.05) <= binom.ppf(1 - 1e-6, 2000, 0.05)


def test_level_on_continuous_columns_with_public_bins():
    def continuous(key):
        key_z, key_x, key_y = jax.random.split(key, 3)
        z = jax.random.uniform(key_z, (400, 1), minval=-1, maxval=1)
        x, y = (jax.random.normal(k, (400,)) for k in (key_x, key_y))
        return Data(x, y, z, domain=domain(0, 0, 0))

    null = p_values(jaxdp.ConditionalKendall(epsilon=2.0, accept_coarse_cells=True), continuous, 1000, 4)
    assert np.sum(null <= 0.05) <= binom.ppf(1 - 1e-6, 1000, 0.05)
    assert np.sum(null <= 0.2) >= binom.ppf(1e-6, 1000, 0.13)


@pytest.mark.full
def test_large_budget_is_the_test_without_noise():
    data = coded(jax.random.key(5), 500, 0.1)
    exact = jaxdp.ConditionalKendall(mechanism=jaxdp.mechanisms.Exact())
    private = jaxdp.ConditionalKendall(epsilon=1e6)
    p_exact, p_private = (float(jaxdp.run(test, jax.random.key(6), data).p_value) for test in (exact, private))
    assert p_private == pytest.approx(p_exact, abs=1e-3)


@pytest.mark.full
def test_one_table_equals_sorted_records():
    data = coded(jax.random.key(7), 300, 0.3)
    plain = Data(data.x, data.y, data.z)
    for kind in TESTS:
        test = kind(epsilon=1.0)
        tabled, sorted_ = test.statistic(jax.random.key(0), data), test.statistic(jax.random.key(0), plain)
        for name in ("u", "v"):
            assert float(tabled[name]) == pytest.approx(float(sorted_[name]), rel=1e-12)


def worst_pair(n):
    """A row concordant with everyone in a discordant stratum moves to where it is discordant with everyone."""
    rank = np.arange(n // 2)
    x = np.concatenate([[-5], rank, rank])
    y = np.concatenate([[-5], rank[::-1], rank])
    z = np.concatenate([[0], 0 * rank, 0 * rank + 1])
    moved = [array.copy() for array in (x, y, z)]
    moved[1][0], moved[2][0] = n, 1
    return Data(x, y, z), Data(*moved)


@pytest.mark.parametrize(("kind", "constant"), [(jaxdp.ConditionalKendall, 3.0), (jaxdp.ConditionalSpearman, 10.0)])
def test_replacement_constant_is_nearly_reached(kind, constant):
    test = kind(epsilon=1.0)
    values = [float(test.statistic(jax.random.key(0), data)["u"]) for data in worst_pair(400)]
    assert 0.9 * constant < abs(values[0] - values[1]) <= constant
    assert float(test.sensitivity(401)["u"].bound) == constant


@pytest.mark.parametrize("kind", TESTS)
@pytest.mark.parametrize("relation", list(Relation))
def test_random_neighbours_stay_within_the_declared_bounds(kind, relation):
    rng = np.random.default_rng(11)
    for shape in [(2, 2, 2), (2, 3, 2), (4, 3, 2)]:
        test = kind(epsilon=1.0, relation=relation)
        for _ in range(20):
            columns = [np.minimum(rng.integers(0, levels, 9), rng.integers(0, levels, 9)) for levels in shape]
            other = [column.copy() for column in columns]
            if relation is Relation.REPLACE_ONE:
                for column, levels in zip(other, shape, strict=True):
                    column[0] = rng.integers(levels)
            else:
                other = [column[1:] for column in other]
            pair = [Data(*arrays, domain=domain(*shape)) for arrays in (columns, other)]
            resolved = jaxdp.core.specialize(test, pair[0])
            declared = resolved.sensitivity(9)
            values = [resolved.statistic(jax.random.key(0), data) for data in pair]
            for name in ("u", "v"):
                assert abs(float(values[0][name] - values[1][name])) <= float(declared[name].bound) + 1e-9
                assert declared[name].relation is relation


def test_declared_constants_follow_the_public_levels():
    def bound(shape, relation=Relation.REPLACE_ONE, n=100):
        test = jaxdp.ConditionalKendall(epsilon=1.0, relation=relation)
        data = Data(*(jnp.zeros(n, int) for _ in shape), domain=domain(*shape))
        return float(jaxdp.core.specialize(test, data).sensitivity(n)["u"].bound)

    add = Relation.ADD_OR_REMOVE_ONE
    assert (bound((3, 3, 2)), bound((2, 3, 2)), bound((2, 2, 2))) == (3.0, 2.0, 2.0)
    assert (bound((3, 3, 1)), bound((2, 3, 1)), bound((2, 2, 1))) == (2.0, 2.0, 1.0)
    assert (bound((3, 3, 2), add), bound((2, 3, 2), add), bound((2, 2, 2), add)) == (1.5, 1.0, 1.0)


@pytest.mark.full
def test_the_published_form_carries_its_true_epsilon():
    n = 1000
    data = coded(jax.random.key(12), n, 0.0)
    result = jaxdp.run(published.PaperKendall(epsilon=1.0), jax.random.key(0), data)
    claimed, true = 4.5 / np.sqrt(n - 1), 36 / np.sqrt(297)
    assert float(result.cost.epsilon) == pytest.approx(true / claimed, rel=1e-9)
    assert float(result.cost.epsilon) > 14
    scale = float(result.release.sensitivity.bound / result.cost.epsilon)
    assert scale == pytest.approx(claimed, rel=1e-9)
    marginal = Data(data.x, data.y, None, domain=domain(3, 3))
    plain = jaxdp.run(published.PaperKendall(epsilon=1.0), jax.random.key(0), marginal)
    assert float(plain.cost.epsilon) == pytest.approx(6 / 4.5, rel=0.01)


@pytest.mark.full
@pytest.mark.parametrize("kind", TESTS)
def test_bad_input_has_defined_answers(kind):
    bad = np.array([np.nan, np.inf, -np.inf, 7.0, -3.0])
    for data in (
        Data(bad, bad, None, domain=domain(3, 3)),
        Data(bad, bad, bad, domain=domain(0, 0, 0)),
        Data(np.ones(1), np.ones(1), np.ones(1)),
        Data(np.zeros(5, int), np.arange(5), np.zeros(5, int), domain=domain(1, 5, 1)),
    ):
        result = jaxdp.run(kind(epsilon=1.0, accept_coarse_cells=True), jax.random.key(0), data)
        assert 0.0 <= float(result.p_value) <= 1.0


def test_public_mistakes_raise():
    data = coded(jax.random.key(14), 20, 0.0)
    with pytest.raises(ValueError, match="one column of x"):
        jaxdp.run(jaxdp.ConditionalKendall(epsilon=1.0), jax.random.key(0), Data(np.ones((20, 2)), data.y))
    with pytest.raises(ValueError, match="replace_one"):
        published.PaperKendall(epsilon=1.0, relation=Relation.ADD_OR_REMOVE_ONE)
    cut = Data(data.x, data.y, np.linspace(-1, 1, 20), domain=domain(3, 3, 0))
    add = jaxdp.ConditionalKendall(epsilon=1.0, relation=Relation.ADD_OR_REMOVE_ONE, accept_coarse_cells=True)
    with pytest.raises(ValueError, match="num_cells"):
        jaxdp.run(add, jax.random.key(0), cut)
    assert kendall.KENDALL_BOUNDS[0] == (1.5, 3.0, 2.0)
    assert spearman.SPEARMAN_BOUNDS[0] == (5.0, 10.0, 6.0)
