"""Cramer's V of noisy tables: estimates without noise, one pivot, coverage, what noise hides."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import contingency

import jaxdp
from jaxdp import core
from jaxdp.data.dataset import Column, Domain
from jaxdp.independence import effect_sizes
from jaxdp.independence.tables import cramers_v
from jaxdp.mechanisms import Exact, Laplace

NUM, RUNS, MISS = 1000, 60, 0.05


def released(mechanism):
    sensitivity = core.Sensitivity(2.0, core.Norm.L1, core.Relation.REPLACE_ONE)
    return 1.0 * NUM, mechanism, sensitivity


def coupled(shape, size):
    """Chances with even margins, a part of the records at levels of the same rank, and this V."""
    first, second = (np.linspace(0.0, 1.0, levels + 1) for levels in shape)
    upper = np.minimum(first[1:, None], second[None, 1:])
    lower = np.maximum(first[:-1, None], second[None, :-1])
    product = 1.0 / np.prod(shape)
    away = np.maximum(upper - lower, 0.0) - product
    return product + size / np.sqrt((away**2 / product).sum() / (min(shape) - 1.0)) * away


def ends(shape, size, epsilon=2.0, p_value=None):
    """p-values and intervals of noisy tables, (RUNS,) each; p_value: given to all."""
    test = jaxdp.NoisyTableChi2(epsilon=epsilon, levels=shape, num_null=99)

    @jax.jit
    def found(keys):
        def one(key):
            keys = jax.random.split(key, 3)
            cells = jax.random.choice(keys[0], np.prod(shape), (NUM,), p=jnp.ravel(coupled(shape, size)))
            table = jnp.bincount(cells, length=np.prod(shape)).reshape(shape).astype(float)
            sensitivity = test.sensitivity(NUM)
            table = table + Laplace(epsilon).noise(keys[1], sensitivity, shape)
            release = core.Release(table, sensitivity, core.Cost.none(core.Relation.REPLACE_ONE), num_records=NUM)
            if p_value is None:
                told = test.interpret(keys[2], release)
                return told.p_value, *told.interval
            return p_value, *test.sized(keys[2], release, p_value)[1]

        return jax.lax.map(one, keys, batch_size=20)

    return map(np.asarray, found(jax.random.split(jax.random.key(3), RUNS)))


@pytest.mark.parametrize("shape", [(2, 2), (3, 4)])
def test_without_noise_the_estimate_is_the_classical_one(shape):
    table = np.round(NUM * coupled(shape, 0.4))
    found, (low, high) = cramers_v.sized(jax.random.key(0), jnp.asarray(0.001), jnp.asarray(table), *released(Exact()))
    assert float(found) == pytest.approx(contingency.association(table.astype(int), method="cramer"), abs=0.02)
    assert 0.3 < low < found < high < 0.5


def test_of_two_levels_each_the_sign_is_that_of_the_departure():
    table = jnp.asarray(np.round(NUM * coupled((2, 2), 0.4))[:, ::-1].copy())
    found, (low, high) = cramers_v.sized(jax.random.key(0), jnp.asarray(0.001), table, *released(Laplace(2.0)))
    assert low < found < high < -0.3


@pytest.mark.parametrize("shape", [(2, 2), (3, 4)])
def test_the_interval_leaves_out_zero_exactly_where_the_p_value_is_small(shape):
    verdicts = set()
    for size in (0.0, 0.1):
        p, low, high = ends(shape, size)
        assert np.isfinite(low).all()
        assert (((low > 0.0) | (high < 0.0)) == (p <= MISS * (1.0 + effect_sizes.OPEN))).all()
        verdicts |= set(p <= MISS)
    assert verdicts == {False, True}


@pytest.mark.full
@pytest.mark.parametrize(
    "p_value", [pytest.param(0.9, marks=pytest.mark.nightly), 0.051, pytest.param(0.01, marks=pytest.mark.nightly)]
)
def test_even_a_p_value_of_another_statistic_is_agreed_with(p_value):
    """The p-value of `projected-chi2` is not of the statistic that the interval inverts."""
    _, low, high = ends((3, 4), 0.05, p_value=jnp.asarray(p_value))
    assert ((low > 0.0) == (p_value <= MISS)).all()
    assert (low <= high).all()


@pytest.mark.full
@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ((2, 2), 0.3),
        ((3, 4), 0.0),
        pytest.param((3, 4), 0.05, marks=pytest.mark.nightly),
        ((3, 4), 0.3),
        pytest.param((5, 4), 0.6, marks=pytest.mark.nightly),
    ],
)
def test_coverage(shape, size):
    """Records: experiments/evidence/coverage/levels.jsonl."""
    _, low, high = ends(shape, size)
    assert ((low <= size + 1e-6) & (size <= high)).sum() >= 50  # of 60: a share of 0.95 gives less once in 1700 times


@pytest.mark.parametrize("law", ["blocks", "ring"])
def test_levels_that_never_meet_have_the_size_of_their_table(law):
    """Their V is below 1, and so must an interval be that sampling takes past the last law with those empty cells."""
    table = np.kron(np.eye(2), np.ones((2, 2))) if law == "blocks" else np.eye(4) + np.roll(np.eye(4), 1, 0)
    size = contingency.association(table.astype(int), method="cramer", correction=False)
    cells = np.random.default_rng(5).multinomial(4 * NUM, (table / table.sum()).ravel(), size=20)
    mechanism, sensitivity = Laplace(2.0), released(None)[2]
    keys = jax.random.split(jax.random.key(7), 20)

    @jax.jit
    def found(key, counts):
        key, key_noise = jax.random.split(key)
        noisy = counts.reshape(4, 4) + mechanism.noise(key_noise, sensitivity, (4, 4))
        return cramers_v.sized(key, jnp.asarray(0.001), noisy, 4.0 * NUM, mechanism, sensitivity)

    estimates, (low, high) = (np.asarray(part) for part in jax.lax.map(lambda of: found(*of), (keys, 1.0 * cells)))
    assert ((low <= size) & (size <= high)).sum() >= 17
    assert (high < size + 0.1).all()
    assert (abs(estimates - size) < 0.1).all()


@pytest.mark.full
def test_what_would_have_been_found_is_found_with_that_power():
    table = jnp.full((3, 4), NUM / 12.0)
    size = float(cramers_v.detectable(MISS, table + jnp.arange(12.0).reshape(3, 4), *released(Laplace(2.0))))
    p, *_ = ends((3, 4), size)
    assert 0.62 < (p <= MISS).mean() < 0.95


def test_rare_cells_are_hidden_by_noise_and_seen_without_it():
    table = jnp.asarray([[890.0, 60.0, 5.0], [25.0, 15.0, 5.0]])  # a level of 45 records, which can be merged with none
    for mechanism, hidden in ((Laplace(0.1), True), (Laplace(200.0), False)):
        found, _ = cramers_v.sized(jax.random.key(0), jnp.asarray(0.5), table, *released(mechanism))
        assert bool(jnp.isnan(found)) == hidden
        assert (cramers_v.notes(None, table, *released(mechanism)).keys() == {cramers_v.RARE}) == hidden
        assert bool(jnp.isnan(cramers_v.detectable(MISS, table, *released(mechanism)))) == hidden


@pytest.mark.parametrize("empty", [(False, True), (True, False), (True, True)])
def test_a_level_that_nobody_has_takes_nothing_from_the_effect(empty):
    """As that of `(other)` of a complete drafted column: V of the other levels, and a sentence that names the level."""
    law = np.array([[0.25, 0.15, 0.1], [0.1, 0.15, 0.25]])
    table = NUM * np.pad(law, [(0, int(more)) for more in empty])
    noise = np.random.default_rng(0).normal(size=table.shape)
    told = released(Laplace(1.0))
    found, (low, high) = cramers_v.sized(jax.random.key(0), jnp.asarray(0.001), jnp.asarray(table + noise), *told)
    expected = np.outer(law.sum(1), law.sum(0))
    true = np.sqrt(((law - expected) ** 2 / expected).sum())
    assert abs(float(found) - true) < 0.05
    assert 0.0 < float(low) < true < float(high)
    assert not jnp.isnan(cramers_v.detectable(MISS, jnp.asarray(table + noise), *told))
    domain = Domain((Column("categorical", len(table), "region"),), (Column("categorical", len(table[0]), "ill"),))
    notes = cramers_v.notes(domain, jnp.asarray(table + noise), *told)
    levels = [
        f"level {count} of {name}" for count, name, more in ((3, "region", empty[0]), (4, "ill", empty[1])) if more
    ]
    assert f"counts {' and '.join(levels)} as one with the commonest level" in notes[cramers_v.MERGED]


def test_without_hidden_levels_none_is_merged():
    table = jnp.full((3, 4), NUM / 12.0)
    merged = cramers_v.merged_classes(table, 1.0 * NUM, 8.0)
    assert all((part == jnp.eye(len(part))).all() for part in merged)
    assert not cramers_v.notes(None, table, *released(Laplace(1.0)))


def in_strata(*laws):
    """A table (K, r, c) of NUM records a stratum."""
    return jnp.asarray(np.round([NUM * law for law in laws]))


def of_strata(tables, mechanism, p_value=0.001):
    sensitivity = core.Sensitivity(2.0, core.Norm.L1, core.Relation.REPLACE_ONE)
    total = jnp.sum(tables)
    return cramers_v.sized(jax.random.key(0), jnp.asarray(p_value), tables, total, mechanism, sensitivity)


@pytest.mark.parametrize("shape", [(2, 2), (3, 4)])
def test_of_strata_that_depart_alike_it_is_the_classical_one(shape):
    found, (low, high) = of_strata(in_strata(coupled(shape, 0.4), coupled(shape, 0.4)), Laplace(2.0))
    assert float(found) == pytest.approx(0.4, abs=0.04)
    assert 0.3 < low < found < high < 0.5


def test_what_cancels_over_the_strata_has_no_size():
    law = coupled((3, 4), 0.2)
    found, (low, high) = of_strata(in_strata(law, 2.0 / law.size - law), Laplace(2.0), p_value=0.6)
    whole, _ = of_strata(in_strata(law, law), Laplace(2.0))
    assert low == 0.0
    assert found <= high < 0.1 < whole


def test_strata_that_move_both_margins_make_no_dependence():
    """The table without strata depends strongly."""
    laws = [
        np.outer(p, q) for p, q in (([0.8, 0.1, 0.1], [0.7, 0.1, 0.1, 0.1]), ([0.1, 0.1, 0.8], [0.1, 0.1, 0.1, 0.7]))
    ]
    tables = in_strata(*laws)
    assert contingency.association(np.asarray(tables.sum(0)).astype(int), method="cramer") > 0.3
    found, (low, high) = of_strata(tables, Laplace(2.0), p_value=0.6)
    assert (low, high < 0.1) == (0.0, True)
    assert found < 0.05


@pytest.mark.parametrize("rows", [2, 3])
def test_the_interval_of_strata_leaves_out_zero_exactly_where_the_p_value_is_small(rows):
    test = jaxdp.StratifiedTable(epsilon=1.0, levels=(rows, rows), strata=(2,), num_null=99)
    interpret = jax.jit(test.interpret)
    verdicts = set()
    for size in (0.0, 0.06):
        law = coupled(test.levels, size)
        for seed in range(15):
            keys = jax.random.split(jax.random.key(seed), 3)
            cells = jax.random.choice(keys[0], 2 * law.size, (2 * NUM,), p=jnp.tile(jnp.ravel(law), 2) / 2.0)
            table = jnp.bincount(cells, length=2 * law.size).reshape(2, *test.levels).astype(float)
            sensitivity = test.sensitivity(2 * NUM)
            table = table + Laplace(1.0).noise(keys[1], sensitivity, table.shape)
            release = core.Release(table, sensitivity, core.Cost.none(core.Relation.REPLACE_ONE), num_records=2 * NUM)
            told = interpret(keys[2], release)
            low, high = told.interval
            assert np.isfinite(low)
            assert ((low > 0.0) | (high < 0.0)) == (told.p_value <= MISS * (1.0 + effect_sizes.OPEN))
            verdicts.add(bool(told.p_value <= MISS))
    assert verdicts == {False, True}


def test_strata_too_small_for_the_noise_have_no_size_and_the_answer_says_so():
    rng = np.random.default_rng(0)
    table = {name: rng.integers(0, levels, 300) for name, levels in (("x", 3), ("y", 4), ("z", 6))}
    levels = {name: list(range(int(column.max()) + 1)) for name, column in table.items()}
    kinds = {name: {"kind": "categorical", "levels": found} for name, found in levels.items()}
    found = jaxdp.test(
        table,
        x="x",
        y="y",
        given="z",
        schema={"columns": kinds},
        epsilon=0.2,
        key=jax.random.key(1),
        method="stratified-table",
    )
    assert found.effect is None
    assert "the strata have too few records" in str(found)


def test_levels_that_are_given_are_obeyed_or_refused():
    """One table released four bins in place of five levels, the other those of the domain in place of those given."""
    x, y, z = (np.random.default_rng(k).integers(0, 2, 500) for k in range(3))
    domain = Domain((Column("categorical", 3),), (Column("categorical", 2),), (Column("categorical", 2),))
    found = jaxdp.run(jaxdp.StratifiedTable(epsilon=1.0, levels=(2, 2)), jax.random.key(0), jaxdp.Data(x, y, z, domain))
    assert found.release.value.shape == (2, 2, 2)
    with pytest.raises(ValueError, match="QuantileTable makes its bins itself"):
        jaxdp.run(jaxdp.QuantileTable(epsilon=1.0, levels=(5, 5)), jax.random.key(0), jaxdp.Data(1.0 * x, 1.0 * y))
