"""StratifiedTable: its counts and bound, its statistics, its level and its power given columns of levels."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binom

import jaxdp
from jaxdp import catalogue
from jaxdp.core import public_shapes
from jaxdp.data.dataset import CATEGORICAL, ORDINAL, Column, Data, Domain
from jaxdp.independence.tables.noisy_table import multinomial_by_binomials
from jaxdp.statistics.tables.association_in_strata import association, differences_in_strata

NOMINAL, STRATA = (Column(CATEGORICAL, 3), Column(CATEGORICAL, 4)), 4


def described(x=NOMINAL[0], y=NOMINAL[1], z=(STRATA,)):
    return Domain((x,), (y,), tuple(Column(CATEGORICAL, levels) for levels in z))


def data(key, n: int, strength: float, shares=(0.25, 0.25, 0.25, 0.25)):
    """Levels whose laws turn with z; x moves y by one level with this chance."""
    key_z, key_x, key_y, key_s = jax.random.split(key, 4)
    z = jax.random.categorical(key_z, jnp.log(jnp.asarray(shares)), shape=(n,))
    lean = jnp.linspace(-1.0, 1.0, STRATA)[z][:, None]
    x = jax.random.categorical(key_x, lean * jnp.arange(3.0)[None, :])
    own = jax.random.categorical(key_y, -lean * jnp.arange(4.0)[None, :])
    y = jnp.where(jax.random.bernoulli(key_s, strength, (n,)), x, own)
    return Data(x, y, z[:, None], described())


def p_values(test, n, strength, replicates, seed, **more):
    run = jax.jit(lambda one: jaxdp.run(test, jax.random.fold_in(one, 1), data(one, n, strength, **more)).p_value)
    return np.asarray(jax.lax.map(run, jax.random.split(jax.random.key(seed), replicates), batch_size=20))


def test_one_record_moves_the_table_by_two_and_never_more():
    test = jaxdp.StratifiedTable(epsilon=1.0, levels=(2, 2), strata=(2, 3))
    base = Data(jnp.array([0, 1, 1]), jnp.array([1, 0, 1]), jnp.array([[0, 2], [1, 1], [0, 0]]))
    here, moves = test.statistic(None, base), []
    assert here.shape == (6, 2, 2)
    for x, y, first, second in itertools.product((0, 1, 9), (0, 1), (0, 1), (0, 2, -4)):
        other = Data(base.x.at[0].set(x), base.y.at[0].set(y), base.z.at[0].set(jnp.array([first, second])))
        moves.append(float(jnp.sum(jnp.abs(test.statistic(None, other) - here))))
    assert max(moves) == test.sensitivity(3).bound == 2.0


def test_without_noise_and_in_one_stratum_the_statistic_is_the_sum_of_adjusted_residuals_squared():
    table = np.array([[300.0, 120.0, 90.0], [180.0, 400.0, 95.0]])
    total, rows, columns = table.sum(), table.sum(1)[:, None], table.sum(0)[None, :]
    expected = rows * columns / total
    given_margins = expected * (1 - rows / total) * (1 - columns / total) * total / (total - 1)
    adjusted = (table - expected) ** 2 / given_margins
    found = association(jax.random.key(0), jnp.asarray(table)[None, None], 0.0)
    np.testing.assert_allclose(found, np.sum(adjusted), rtol=1e-5)


def test_without_noise_the_variance_is_that_of_tables_of_these_margins_however_few_their_records():
    """Shares of two records spread half as much as the law they come from: without n/(n - 1) .085 of nulls for .05."""
    margins = [((1, 1), (1, 1)), ((2, 1), (1, 2)), ((3, 2), (4, 1))]
    tables = np.array([[[1, 0], [0, 1]], [[1, 1], [0, 1]], [[3, 0], [1, 1]]], float)
    size = tables.sum(axis=(1, 2))
    of_one = np.array([math.prod((*r, *c)) / (sum(r) ** 2 * (sum(r) - 1)) for r, c in margins])  # hypergeometric
    weights = 1.0 / (size / 4.0 + 1.0)
    _, variance = differences_in_strata(jnp.zeros((1, 3)), jnp.asarray(tables)[None], 0.0)
    np.testing.assert_allclose(variance[0], np.full((2, 2), np.sum((weights * size) ** 2 * of_one)), rtol=1e-5)


RARE = np.outer([0.98, 0.01, 0.01], [0.97, 0.01, 0.01, 0.01])
TURNED = np.outer([0.03, 0.94, 0.03], [0.25, 0.25, 0.25, 0.25])


@pytest.mark.parametrize("records", [20.0, 100.0, 600.0])
def test_the_differences_are_centred_whatever_the_margins_and_the_weights(records):
    """Strata that are mostly noise, of about that size, and of many records: no cell has a mean, and V is the variance.

    With the same totals in weights and differences, or with ratios, cells of frequent levels would have one.
    """
    draws, noise_variance = 20_000, 8.0
    chances = jnp.asarray(np.stack([RARE, TURNED, RARE]).ravel() / 3)
    key_counts, key_noise, key_split = jax.random.split(jax.random.key(3), 3)
    counts = multinomial_by_binomials(key_counts, 3 * records, chances, draws)
    tables = (counts + 2.0 * jax.random.laplace(key_noise, counts.shape)).reshape(draws, 3, 3, 4)
    found, spread = differences_in_strata(jax.random.normal(key_split, tables.shape[:-2]), tables, noise_variance)
    z = np.asarray(found) / np.sqrt(np.mean(np.asarray(found) ** 2, axis=0))
    assert np.max(np.abs(z.mean(axis=0))) < 4.5 / np.sqrt(draws)
    clear = records >= 5 * np.sqrt(noise_variance * 12)
    if clear:
        ratio = np.mean(np.asarray(found) ** 2, axis=0) / np.mean(np.asarray(spread), axis=0)
        assert np.all((ratio > 0.85) & (ratio < 1.15))


@pytest.mark.parametrize(
    ("n", "epsilon", "shares"),
    [
        (200, 1.0, (0.25, 0.25, 0.25, 0.25)),  # about as many records as it takes
        pytest.param(1200, 0.5, (0.25, 0.25, 0.25, 0.25), marks=pytest.mark.full),
        pytest.param(4000, 4.0, (0.05, 0.05, 0.45, 0.45), marks=pytest.mark.full),
    ],
)
@pytest.mark.optimised
def test_true_nulls_are_rejected_at_the_level(n, epsilon, shares):
    """Z moves both columns, against each other: without strata all of these nulls would be rejected."""
    replicates = 400
    test = jaxdp.StratifiedTable(epsilon=epsilon, num_null=199)
    rejected = int(np.sum(p_values(test, n, 0.0, replicates, seed=7, shares=shares) <= 0.05))
    assert rejected <= binom.ppf(1 - 1e-4, replicates, 0.06)


def test_it_finds_a_dependence_in_a_tenth_of_the_records_of_partition_gcm():
    test = jaxdp.StratifiedTable(epsilon=1.0, num_null=199)
    assert np.mean(p_values(test, 1000, 0.2, 100, seed=3) <= 0.05) > 0.9


def test_it_is_the_default_of_nominal_columns_given_few_levels_and_says_what_else_it_takes():
    assert catalogue.default(described()).name == "stratified-table"
    assert catalogue.default(described(), sees="any").name == "stratified-table"
    assert catalogue.default(described(x=Column(CATEGORICAL, 2))).name == "stratified-table"
    ordered = described(Column(ORDINAL, 3), Column(ORDINAL, 4))
    assert catalogue.default(ordered).name != "stratified-table"
    assert catalogue.default(ordered, sees="any").name == "stratified-table"
    many = described(z=(30, 30))
    assert catalogue.default(many).name == "partition-gcm"
    with pytest.raises(ValueError, match="takes at most 4096 cells, and the levels of x, y and z make 10800"):
        catalogue.find("stratified-table").require_fits(many)
    with pytest.raises(ValueError, match="conditions on z"):
        jaxdp.run(jaxdp.StratifiedTable(epsilon=1.0), jax.random.key(0), Data(jnp.zeros(9, int), jnp.zeros(9, int)))


@pytest.mark.optimised
def test_too_few_records_for_the_strata_keep_the_level_and_are_flagged():
    """60 records of 3 x 4 levels in four strata at epsilon 1: unscaled, 0.07 to 0.10 would be rejected."""
    test = jaxdp.StratifiedTable(epsilon=1.0, num_null=199)
    few = data(jax.random.key(1), 60, 0.0)
    found = test.validity(public_shapes(few))
    assert found.flags == ("low power",)
    assert "60 records are few" in found.sentence
    assert "196 are needed" in found.sentence
    assert test.validity(public_shapes(data(jax.random.key(1), 196, 0.0))).flags == ()
    assert np.mean(p_values(test, 60, 0.0, 400, seed=5, shares=(0.1, 0.1, 0.1, 0.7)) <= 0.05) <= 0.05


def test_a_dependence_that_turns_with_the_stratum_is_not_found():
    """Stated by the test's alternatives: its signs cancel over the strata."""
    z = jnp.arange(4000) % 2
    x = jnp.arange(4000) // 2 % 2
    y = jnp.where(z == 1, x, 1 - x)
    domain = described(Column(CATEGORICAL, 2), Column(CATEGORICAL, 2), (2,))
    turned, same = Data(x, y, z[:, None], domain), Data(x, x, z[:, None], domain)
    test = jaxdp.StratifiedTable(epsilon=1.0)
    assert jaxdp.run(test, jax.random.key(9), same).p_value == 0.001
    assert jaxdp.run(test, jax.random.key(10), turned).p_value > 0.01


def test_chunks_of_records_give_the_table_of_all():
    records = data(jax.random.key(2), 300, 0.3)
    test = jaxdp.core.specialize(jaxdp.StratifiedTable(epsilon=1.0), records)
    parts = [Data(records.x[part], records.y[part], records.z[part]) for part in (slice(0, 90), slice(90, 300))]
    host = [jax.tree.map(np.asarray, part) for part in parts]
    whole = test.finish(test.merge(test.partial(host[0], 300), test.partial(host[1], 300)))
    np.testing.assert_array_equal(whole, np.asarray(test.statistic(None, records)))
