"""Statistics get finite numbers, and audits try neighbours without values: NaN, infinities, -0.0."""

import functools
import math

import chunked
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp import core
from jaxdp._base.pytree import frozen_pytree
from jaxdp.audit import falsify
from jaxdp.core import Norm, PrivateTest, Relation, Sensitivity
from jaxdp.examples import Example
from jaxdp.simulate import examples
from jaxdp.spec import TestSpec

EXACT = 1e9  # epsilon whose noise is nothing beside a record
WITHOUT_VALUE = [math.nan, math.inf, -math.inf, -0.0]
ROWS = 145
GENERATOR = np.random.default_rng(0)
X, Y = GENERATOR.uniform(0.5, 1, (2, ROWS))


@frozen_pytree
class CutProducts(PrivateTest):
    """Sum of x y, each cut to [-1, 1]: moves by at most 2 between numbers, and is NaN where one is."""

    spec = TestSpec(
        name="cut-products",
        summary="made up",
        examples=(Example(examples.pair, attack_tightness=0.9, null=examples.normal),),
    )

    def mechanism_in_force(self):
        return jaxdp.Laplace(self.epsilon)

    def statistic(self, key, data):
        return jnp.sum(jnp.clip(data.x * data.y, -1.0, 1.0))

    def partial(self, chunk, num_records=None):
        return np.sum(np.round(2**20 * np.clip(chunk.x * chunk.y, -1.0, 1.0))).astype(np.int64)

    def finish(self, sums):
        return sums / 2.0**20

    lattice = 2.0**-20

    def sensitivity(self, num_records):
        return Sensitivity(2.0, Norm.L1, Relation.REPLACE_ONE, 1e-9, -1.0 * num_records, 1.0 * num_records)

    def p_value(self, key, release):
        return self.mechanism_in_force().null_p_value(
            release.value, math.sqrt(release.num_records), release.sensitivity
        )


@frozen_pytree
class SaysThatItReads(CutProducts):
    """The same, which says that NaN has a meaning to it."""

    reads_missing = True


@frozen_pytree
class MeanOfThePresent(CutProducts):
    """The sum over records with values, extended to all: where few have one, a record moves it by far more than 2."""

    reads_missing = True

    def statistic(self, key, data):
        products = jnp.clip(data.x * data.y, -1.0, 1.0)
        return jnp.nansum(products) * len(data.x) / jnp.maximum(jnp.sum(~jnp.isnan(products)), 1)


@frozen_pytree
class SumOfThePresent(CutProducts):
    """The sum over the records with values, which keeps its bound."""

    reads_missing = True

    def statistic(self, key, data):
        return jnp.nansum(jnp.clip(data.x * data.y, -1.0, 1.0))


def spoiled(value):
    x = X.copy()
    x[3] = value
    return jaxdp.Data(x, Y)


def moved(run, value):
    """By how much a release moves where one record has no value."""
    return abs(float(run(jaxdp.Data(X, Y))) - float(run(spoiled(value))))


def released(test, key):
    return lambda data: jaxdp.run(test, key(), data).statistic


@pytest.mark.parametrize("value", WITHOUT_VALUE)
def test_a_record_without_a_value_moves_a_release_by_no_more_than_its_bound(value):
    test = CutProducts(epsilon=EXACT)
    assert moved(released(test, jaxdp.fresh_key), value) <= 2.0 + 1e-6
    assert moved(released(test, lambda: jax.random.key(0)), value) <= 2.0 + 1e-3
    compiled = jax.jit(lambda data: core.run(test, jax.random.key(0), data).statistic)
    assert moved(compiled, value) <= 2.0 + 1e-3

    def batched(data):
        batch = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), data)
        return jax.vmap(lambda one: core.run(test, jax.random.key(0), one).statistic)(batch)[1]

    assert moved(batched, value) <= 2.0 + 1e-3

    def in_chunks(data):
        return jaxdp.run(test, jaxdp.fresh_key(), chunked.of_arrays(data, 20)).statistic

    assert moved(in_chunks, value) <= 2.0 + 1e-6


def test_codes_and_finite_numbers_are_handed_on_as_they_are():
    data = jaxdp.Data(np.arange(5), np.linspace(-1, 1, 5))
    read = core.finite(CutProducts(epsilon=1.0), data)
    assert read.x is data.x
    assert read.y is data.y
    spoilt = jaxdp.Data(data.x, np.array([math.nan, math.inf, -math.inf, -0.0, 0.5]))
    read = core.finite(CutProducts(epsilon=1.0), spoilt)
    largest = np.finfo(float).max
    np.testing.assert_array_equal(read.y, [0.0, largest, -largest, 0.0, 0.5])
    assert core.finite(SaysThatItReads(epsilon=1.0), spoilt) is spoilt


def test_an_attack_tries_records_without_values():
    draw = functools.partial(examples.pair, n=12)
    honest = falsify(CutProducts(epsilon=1.0), jax.random.key(0), draw, starts=64, moves=10, climbs=0)
    assert 0.9 < honest.ratio <= 1.0
    wrong = falsify(SaysThatItReads(epsilon=1.0), jax.random.key(0), draw, starts=64, moves=10, climbs=0)
    assert wrong.ratio == math.inf


@pytest.mark.full
def test_the_contract_tries_records_without_values(some_checks):
    (bound,) = some_checks(CutProducts, "bounds").findings
    assert not bound.wrong
    (bound,) = some_checks(SaysThatItReads, "bounds").findings
    assert "neighbours move the statistic by inf of what is declared" in bound.wrong


@pytest.mark.full
def test_the_contract_tries_tables_most_of_whose_records_have_no_value(some_checks):
    (bound,) = some_checks(SumOfThePresent, "bounds").findings
    assert not bound.wrong
    (bound,) = some_checks(MeanOfThePresent, "bounds").findings
    assert "neighbours move the statistic by" in bound.wrong
