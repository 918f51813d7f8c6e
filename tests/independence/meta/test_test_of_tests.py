"""The private vote: sensitivity, released law, exact null, and what it wraps."""

import dataclasses
import inspect
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.stats import norm
from scipy.stats import binom

import jaxdp
from jaxdp.core import Norm, Sensitivity
from jaxdp.independence.meta.test_of_tests import TestOfTests
from jaxdp.mechanisms import Exact, Gaussian, Geometric, Laplace


def correlation_p_value(block):
    """Normal-theory p-value of the correlation, x and y with known mean 0 and sd 1."""
    z = jnp.sum(block.x * block.y) / jnp.sqrt(jnp.sum(block.x**2))
    return 2.0 * norm.sf(jnp.abs(z))


def first_record_p_value(block):
    """A test whose decision one record can flip: 0 if the block's largest x exceeds 1, else 1."""
    return jnp.where(jnp.max(block.x) > 1.0, 0.0, 1.0)


def normal_data(key, n, effect=0.0):
    key_x, key_y = jax.random.split(key)
    x = jax.random.normal(key_x, (n,))
    return jaxdp.Data(x, effect * x + jax.random.normal(key_y, (n,)))


def p_values(test, n, effect, replicates, seed):
    def one(key):
        key_data, key_run = jax.random.split(key)
        return jaxdp.run(test, key_run, normal_data(key_data, n, effect)).p_value

    keys = jax.random.split(jax.random.key(seed), replicates)
    return np.asarray(jax.jit(lambda k: jax.lax.map(one, k, batch_size=250))(keys))


def test_vote_equals_a_loop_over_blocks_in_file_order():
    data = normal_data(jax.random.key(0), 63, 0.5)
    test = TestOfTests(epsilon=1.0, test=correlation_p_value, num_blocks=6, block_level=0.3, shuffle=False)
    x, y = np.asarray(data.x)[:60].reshape(6, 10), np.asarray(data.y)[:60].reshape(6, 10)
    z = np.sum(x * y, 1) / np.sqrt(np.sum(x**2, 1))
    expected = np.sum(2 * (1 - np.asarray(norm.cdf(np.abs(z)))) <= 0.3)
    assert 0 < expected < 6
    assert float(test.statistic(jax.random.key(1), data)) == expected


def test_one_record_moves_the_vote_by_exactly_one_and_never_more():
    test = TestOfTests(epsilon=1.0, test=first_record_p_value, num_blocks=4)
    key = jax.random.key(2)
    changes = []
    for base, row, value in itertools.product((0.0, 2.0), range(13), (0.0, 2.0)):
        x = jnp.full(13, base).at[(row * 5) % 13].set(2.0 - base)
        with jax.debug_key_reuse(False):  # the same dealing of records for both neighbours
            before = test.statistic(key, jaxdp.Data(x, x))
            after = test.statistic(key, jaxdp.Data(x.at[row].set(value), x))
        changes.append(abs(float(before - after)))
    bound = test.sensitivity(13).bound
    assert max(changes) <= bound
    assert max(changes) > 0.9 * bound  # a bound cut by a tenth is passed


def test_released_law_reaches_epsilon_and_never_passes_it():
    """log P(c + G = v) - log P(c + 1 + G = v) by the survival function the p-value uses."""
    from jaxdp.noise import survival

    epsilon = 0.7
    with jax.enable_x64(True):
        value = jnp.arange(-20.0, 21.0)
        scale = Geometric(epsilon).scale(TestOfTests(epsilon=epsilon, test=correlation_p_value).sensitivity(100))

        def pmf(v):
            return survival.two_sided_geometric(v, scale) - survival.two_sided_geometric(v + 1.0, scale)

        loss = np.abs(np.log(pmf(value)) - np.log(pmf(value - 1.0)))
        assert float(jnp.sum(pmf(value))) == pytest.approx(1.0, abs=1e-5)
    assert loss.max() <= epsilon * (1 + 1e-6)
    assert loss.max() >= epsilon * (1 - 1e-6)


@pytest.mark.parametrize("randomized", [True, False])
def test_p_value_equals_an_explicit_convolution(randomized):
    k, rate, epsilon = 5, 0.3, 0.8
    test = TestOfTests(epsilon=epsilon, test=correlation_p_value, num_blocks=k, block_level=rate, randomized=randomized)
    reach = np.arange(-200, 201)
    noise = np.exp(-epsilon * np.abs(reach))
    law = np.convolve(binom.pmf(np.arange(k + 1), k, rate), noise / noise.sum())
    support = np.arange(-200, 201 + k)
    for value in (-3, 0, 2, 5, 9):
        release = release_of(test, float(value))
        p = float(test.p_value(jax.random.key(value + 9), release))
        at_least, more = law[support >= value].sum(), law[support > value].sum()
        if randomized:
            u = float(jax.random.uniform(jax.random.key(value + 9)))
            assert p == pytest.approx(more + u * (at_least - more), abs=2e-6)
        else:
            assert p == pytest.approx(at_least, abs=2e-6)


def release_of(test, value):
    from jaxdp.core import Release

    sensitivity = test.sensitivity(100)
    return Release(value, sensitivity, test.mechanism_in_force().cost(sensitivity.relation), 100)


@pytest.mark.full
@pytest.mark.parametrize(
    ("mechanism", "law"),
    [
        (Laplace(0.5), lambda k, s: jax.random.laplace(k, s) / 0.5),
        (Gaussian(0.5), lambda k, s: jax.random.normal(k, s)),
        (Exact(), lambda k, s: jnp.zeros(s)),
    ],
)
def test_other_mechanisms_have_the_exact_tail(mechanism, law):
    test = TestOfTests(mechanism=mechanism, test=correlation_p_value, num_blocks=8, block_level=0.2, randomized=False)
    key_votes, key_noise = jax.random.split(jax.random.key(3))
    draws = 400_000
    null = jax.random.binomial(key_votes, 8, 0.2, (draws,)) + law(key_noise, (draws,))
    for value in (0.0, 2.0, 4.0):
        p = float(test.p_value(jax.random.key(0), release_of(test, value)))
        tolerance = 5.0 * np.sqrt(0.25 / draws)  # two-sided 6e-7
        assert abs(p - float(jnp.mean(null >= value))) < tolerance


def test_null_p_values_are_uniform_with_an_exact_block_test():
    test = TestOfTests(epsilon=1.0, test=correlation_p_value)
    p = p_values(test, 75, 0.0, 10_000, seed=4)
    bound = np.sqrt(np.log(2e6) / (2 * p.size))  # Dvoretzky-Kiefer-Wolfowitz at 1e-6
    grid = np.sort(p)
    assert np.max(np.abs(grid - (np.arange(p.size) + 0.5) / p.size)) < bound + 0.5 / p.size


@pytest.mark.full
def test_deterministic_p_value_is_conservative_and_less_powerful():
    tulap = TestOfTests(epsilon=1.0, test=correlation_p_value)
    plain = TestOfTests(epsilon=1.0, test=correlation_p_value, randomized=False)
    level = binom.ppf(1 - 1e-6, 3_000, 0.05)
    assert np.sum(p_values(plain, 75, 0.0, 3_000, seed=5) <= 0.05) <= level
    # The count's null law has an atom of a few per cent around the critical value.
    power = [np.mean(p_values(test, 300, 0.3, 1_000, seed=6) <= 0.05) for test in (tulap, plain)]
    assert power[0] > power[1] > 0.3


def test_block_test_may_be_one_of_the_package():
    """PartitionGCM without noise inside each block: full power at a strong effect, one vote per block."""
    inner = jaxdp.PartitionGCM(mechanism=Exact(), num_cells=1, winsorize=5.0)
    test = TestOfTests(epsilon=1.0, test=inner)
    result = jaxdp.run(test, jax.random.key(7), normal_data(jax.random.key(8), 1500, 0.8))
    assert float(result.p_value) < 1e-3
    assert float(result.cost.epsilon) == pytest.approx(1.0)


def test_a_copy_with_another_budget_holds_the_same_block_test(monkeypatch):
    """Wrapped once: else each copy is another static value, and every answer compiles a program of its own."""
    test = TestOfTests(epsilon=1.0, test=correlation_p_value)
    monkeypatch.setattr(inspect, "isroutine", lambda value: callable(value))  # Python 3.14 says so of a Partial
    copy = dataclasses.replace(test, epsilon=0.5)
    assert copy.test is test.test
    assert jax.tree.structure(copy) == jax.tree.structure(test)


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="test must say what runs"):
        TestOfTests(epsilon=1.0)
    with pytest.raises(TypeError, match="got 'gcm'"):
        TestOfTests(epsilon=1.0, test="gcm")
    with pytest.raises(ValueError, match="num_blocks"):
        TestOfTests(epsilon=1.0, test=correlation_p_value, num_blocks=1)
    with pytest.raises(ValueError, match="block_level"):
        TestOfTests(epsilon=1.0, test=correlation_p_value, block_level=1.0)
    with pytest.raises(ValueError, match="2 records per block"):
        jaxdp.run(
            TestOfTests(epsilon=1.0, test=correlation_p_value), jax.random.key(0), normal_data(jax.random.key(1), 20)
        )
    vector = TestOfTests(epsilon=1.0, test=lambda block: block.x)
    with pytest.raises(ValueError, match="one p-value per block"):
        jaxdp.run(vector, jax.random.key(0), normal_data(jax.random.key(1), 60))


def test_missing_values_never_raise_and_change_one_vote_at_most():
    data = normal_data(jax.random.key(12), 60)
    spoiled = jaxdp.Data(data.x.at[7].set(jnp.nan), data.y)
    test = TestOfTests(epsilon=1.0, test=correlation_p_value)
    with jax.debug_key_reuse(False):
        key = jax.random.key(13)
        before, after = test.statistic(key, data), test.statistic(key, spoiled)
    assert abs(float(before - after)) <= 1.0
    assert test.sensitivity(60) == Sensitivity(1.0, Norm.L1, test.sensitivity(60).relation, 0.0, -21.0, 36.0)


@pytest.mark.full
def test_a_conditional_test_inside_votes_block_by_block():
    """GCM in every block: the vote equals a loop, the null is not rejected too often, dependence given z is found."""
    gcm = jaxdp.GCM(ridge=0.1)
    test = TestOfTests(epsilon=2.0, test=gcm, num_blocks=6, block_level=0.3, batch_size=6)

    def draw(key, effect):
        return jaxdp.simulate.sine_confounder(key, 240, effect=effect, dim=1)

    data = draw(jax.random.key(0), 0.3)
    in_order = dataclasses.replace(test, shuffle=False)
    blocks = [jax.tree.map(lambda leaf, i=i: leaf[40 * i : 40 * (i + 1)], data) for i in range(6)]
    run = jax.jit(lambda block: jaxdp.run(gcm, jax.random.key(1), block).p_value)
    expected = sum(float(run(block)) <= 0.3 for block in blocks)
    assert 0 < expected < 6
    assert int(in_order.statistic(jax.random.key(2), data)) == expected

    def one(key, effect):
        key_data, key_run = jax.random.split(key)
        return jaxdp.run(test, key_run, draw(key_data, effect)).p_value

    many = jax.jit(lambda keys, effect: jax.lax.map(lambda key: one(key, effect), keys))
    null, dependent = (np.asarray(many(jax.random.split(jax.random.key(s), 60), e)) for s, e in ((3, 0.0), (4, 1.5)))
    assert np.sum(null <= 0.05) <= binom.ppf(1 - 1e-6, 60, 0.05)
    assert np.mean(dependent <= 0.05) > 0.6
    assert np.mean(dependent) < np.mean(null) - 0.2
