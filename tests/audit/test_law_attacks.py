"""No function given as a law of X given Z can move a conditional randomisation test beyond its declared bound."""

import functools
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback

import jaxdp
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Sensitivity
from jaxdp.data.dataset import Column
from jaxdp.published import PaperCRT
from jaxdp.statistics import conditional_law, partition
from jaxdp.statistics.kernel_ridge.kernels import RBF
from jaxdp.statistics.per_record import per_record


def constant(value):
    return lambda z: jnp.full(z.shape, value)


FUNCTIONS = {
    "nan": constant(np.nan),
    "infinite": constant(np.inf),
    "minus infinite": constant(-np.inf),
    "huge": constant(1e308),
    "minus huge": constant(-1e308),
    "subnormal": constant(5e-324),
    "two": constant(2.0),
    "minus one": constant(-1.0),
    "nearly one": constant(0.9999),
    "nearly none": constant(1e-4),
    "identity": lambda z: z,
    "sign": jnp.sign,
    "nearly one or none": lambda z: jnp.where(z > 0, 0.9999, 1e-4),
    "jumps": lambda z: jnp.floor(1e6 * z) % 2.0,
    "pole": lambda z: 1.0 / z,
    "nan below zero": jnp.sqrt,
    "infinite at zero": jnp.log,
    "overflow": jnp.exp,
    "fast wave": lambda z: 1e9 * jnp.sin(1e9 * z),
    "missing alone": lambda z: jnp.isnan(z),
    "integers": lambda z: jnp.where(z > 0, 7, -7),
    "a scalar": lambda z: jnp.sum(z),
    "centred by other records": lambda z: z - jnp.mean(z),
    "sum of the records so far": jnp.cumsum,
    "another record": lambda z: z[::-1] * 1e6,
    "rank among records": lambda z: jnp.argsort(jnp.argsort(z)),
    "loop": lambda z: jax.lax.while_loop(lambda v: jnp.abs(v[0]) < 1e3, lambda v: 2.0 * jnp.abs(v) + 1.0, z),
}


def chosen(which):
    """The function of this number, which may be traced."""
    whole = [lambda z, f=f: jnp.broadcast_to(jnp.asarray(f(z), float), z.shape) for f in FUNCTIONS.values()]
    return lambda z: jax.lax.switch(which % len(whole), whole, z)


@frozen_pytree
class Adversary(jaxdp.ConditionalLaw):
    """A law whose every method is an adversarial function."""

    which: Any = 0
    turn: Any = 0

    def mean(self, z):
        return chosen(self.which)(z)

    def sample(self, key, z):
        return chosen(self.which + 2 * self.turn)(z) * jax.random.normal(key, z.shape)

    def clipped_moments(self, z, limit):
        return chosen(self.which + self.turn)(z), chosen(self.which + 3 * self.turn)(z)

    def variance_bound(self, limit):
        return chosen(self.which + 5 * self.turn)(jnp.full(1, limit))[0]

    def spread(self):
        return 0.5


LAWS = {
    "bernoulli": lambda which: jaxdp.BernoulliLaw(function=chosen(which)),
    "gaussian": lambda which: jaxdp.GaussianLaw(function=chosen(which), noise_sd=0.5),
    "own": lambda which: Adversary(which=which),
    "own, mixed": lambda which: Adversary(which=which, turn=1),
}

X = np.array([np.nan, np.inf, -np.inf, 0.0, 1.0, -1e300])
Y = np.array([np.nan, -np.inf, 0.3, 1.0])
Z = np.array([np.nan, np.inf, -np.inf, -1e308, -1.0, -1e-6, 0.0, 2.5e-6, 0.3, 1.0, 3.0])
RECORDS = np.stack([part.ravel() for part in np.meshgrid(X, Y, Z, indexing="ij")], axis=1)
OTHERS = np.array([[1.0, 1.0, 0.5], [0.0, -1.0, -0.5], [np.nan, 1.0, np.nan]])


def reached(make):
    """Largest change over all pairs of records, over the bound: (functions, parts), for laws of every function."""

    def is_bound(node):
        return isinstance(node, Sensitivity)

    def widest(part):
        return jnp.max(jnp.max(part, axis=0) - jnp.min(part, axis=0))

    def of_law(which):
        test = make(which)

        def value(record):
            rows = jnp.concatenate([record[None], jnp.asarray(OTHERS)])
            return test.statistic(jax.random.key(3), jaxdp.Data(*rows.T))

        values = jax.lax.map(value, jnp.asarray(RECORDS), batch_size=64)
        bounds, structure = jax.tree.flatten(test.sensitivity(1 + len(OTHERS)), is_leaf=is_bound)
        parts = zip(structure.flatten_up_to(values), bounds, strict=True)
        return jnp.stack([widest(part) / (one.bound + 2.0 * one.error) for part, one in parts])

    with jax.enable_x64(True), jax.debug_key_reuse(False):
        return np.asarray(jax.jit(lambda: jax.lax.map(of_law, jnp.arange(len(FUNCTIONS))))())


TESTS = {
    "threshold": functools.partial(jaxdp.PrivateCRT, num_resamples=19, alternative="greater"),
    "normal": jaxdp.CRTNormal,
    "paper": functools.partial(PaperCRT, kernel=None),
    "kernel": functools.partial(jaxdp.PrivateCRT, num_resamples=19, kernel=RBF()),
    "paper with kernel": PaperCRT,
}
TIGHT = {("normal", law): 0.95 for law in LAWS} | {("threshold", law): 0.95 for law in LAWS}


DAILY = [*(("normal", law) for law in LAWS), ("threshold", "own")]


@pytest.mark.parametrize(
    ("form", "law"),
    [
        pytest.param(*case, marks=() if case in DAILY else pytest.mark.nightly)
        for case in itertools.product(TESTS, LAWS)
    ],
)
def test_no_function_given_as_law_breaks_the_declared_bound(form, law):
    def make(which):
        return TESTS[form](epsilon=1.0, law=LAWS[law](which), winsorize=1e-3)

    ratios = reached(make)
    assert len(FUNCTIONS) >= 20
    assert np.all(np.isfinite(ratios))
    assert np.max(ratios) <= 1.0 + 1e-9, sorted(zip(ratios.max(axis=1), FUNCTIONS, strict=True))[-3:]
    assert np.max(ratios) >= TIGHT.get((form, law), 0.0)


def test_records_without_a_mean_or_an_x_are_left_out():
    law = jaxdp.BernoulliLaw(function=jnp.sqrt)
    test = jaxdp.CRTNormal(epsilon=1.0, law=law, winsorize=1.0)
    data = jaxdp.Data(np.array([1.0, 1.0, np.nan]), np.ones(3), np.array([0.25, -1.0, 0.25]))
    alone = jaxdp.Data(data.x[:1], data.y[:1], data.z[:1])
    whole, one = (test.statistic(None, part) for part in (data, alone))
    assert {name: float(value) for name, value in whole.items()} == pytest.approx(
        {name: float(value) for name, value in one.items()}
    )
    assert float(one["variance"]) > 0.1


def spy(function):
    """The function, computed outside JAX on whatever it is given at once."""

    def given(z):
        return jax.ShapeDtypeStruct(z.shape, z.dtype)

    def compute(z):
        return np.asarray(function(np.asarray(z)), np.asarray(z).dtype)

    return {
        "pure_callback": lambda z: jax.pure_callback(compute, given(z), z, vmap_method="broadcast_all"),
        "io_callback": lambda z: io_callback(compute, given(z), z),
        "custom_vmap_call": summed_over_the_batch,
    }


@jax.custom_batching.custom_vmap
def summed_over_the_batch(z):
    return z


@summed_over_the_batch.def_vmap
def _(axis_size, in_batched, z):
    return jnp.broadcast_to(jnp.sum(z), z.shape), True


@pytest.mark.parametrize("name", spy(None))
def test_a_law_that_could_see_other_records_is_refused(name):
    law = jaxdp.BernoulliLaw(function=jax.jit(spy(lambda z: z - z.mean())[name]))
    data = jaxdp.Data(*np.zeros((3, 20)))
    for make in (jaxdp.CRTNormal, functools.partial(jaxdp.PrivateCRT, num_resamples=19)):
        with pytest.raises(TypeError, match=f"the law of x given z must be plain jax.numpy, but it has {name}"):
            jaxdp.run(make(epsilon=1.0, law=law), jax.random.key(0), data)


def test_shapes_and_types_of_a_law_are_checked():
    z = jnp.zeros((4, 2))
    with pytest.raises(ValueError, match=r"one number per record, got shape \(1, 2\)"):
        per_record(lambda z: z, z)
    with pytest.raises(TypeError, match="real numbers"):
        per_record(lambda z: z[:, 0] + 1j, z)
    with pytest.raises(TypeError, match=r"law must be a jaxdp\.ConditionalLaw"):
        jaxdp.PrivateCRT(epsilon=1.0, law=lambda z: z)
    np.testing.assert_array_equal(per_record(lambda z: 3, z), np.full(4, 3.0))


def test_resamples_of_an_own_law_come_from_a_key_and_a_record_each():
    z = jnp.array([0.0, 0.0, 1.0])
    first, second, third = conditional_law.draws(Adversary(which=8), jax.random.key(0), z, z)
    assert float(first) != float(second)
    again = conditional_law.draws(Adversary(which=8), jax.random.key(0), z.at[2].set(9.0), z)
    assert (float(again[0]), float(again[1])) == (float(first), float(second))
    assert np.isfinite(float(third))


@frozen_pytree
class Reference:
    """A reference law whose cdf is an adversarial function."""

    which: Any = 0

    def cdf(self, z):
        return chosen(self.which)(z)


def test_no_reference_breaks_the_bound_of_partition_gcm():
    def values(which, record):
        rows = jnp.concatenate([record[None], jnp.asarray(OTHERS)])
        test = jaxdp.PartitionGCM(epsilon=1.0, reference=Reference(which=which), num_cells=4, winsorize=1.0)
        return test.statistic(None, jaxdp.Data(*rows.T))

    with jax.enable_x64(True):
        compute = jax.jit(jax.vmap(jax.vmap(values, (None, 0)), (0, None)))
        found = compute(jnp.arange(len(FUNCTIONS)), jnp.asarray(RECORDS))
        bounds = jaxdp.PartitionGCM(epsilon=1.0, num_cells=4).sensitivity(4)
    for name, value in found.items():
        change = np.ptp(np.asarray(value), axis=1)
        assert np.all(change <= bounds[name].bound + 2.0 * bounds[name].error)
        assert np.max(change) > 0.5


def test_a_reference_is_asked_about_one_record_at_a_time():
    """Cells by rank in the whole column would move every record when one is replaced."""
    ranked = Reference(which=list(FUNCTIONS).index("rank among records"))
    np.testing.assert_array_equal(partition.column_bin(jnp.arange(5.0), Column(), ranked, 4), np.zeros(5))


def test_weights_that_are_not_numbers_count_as_zero():
    """A NaN in one cell's weight would spoil the statistic only for records that visit the cell."""
    test = jaxdp.PartitionGCM(epsilon=1.0, num_cells=2, winsorize=1.0, weights=np.array([np.nan, 1.0]))
    z = np.array([-1.0, -2.0, 1.0, 2.0])
    found = test.statistic(None, jaxdp.Data(np.array([1.0, -1.0, 0.5, -0.5]), np.array([1.0, -1.0, 0.5, -0.5]), z))
    assert float(found["covariance"]) == pytest.approx(0.5)
    assert np.isfinite(float(found["variance"]))


BLOCKS = 5


@pytest.mark.parametrize(
    "function",
    [
        lambda block: jnp.nan * block.x[0],
        lambda block: block.x[0] * 1e300,
        lambda block: -jnp.inf * block.x[0],
        lambda block: summed_over_the_batch(block.x[0]),
        lambda block: jax.pure_callback(
            lambda x: np.broadcast_to(np.sum(x), np.shape(x)[:-1]).astype(np.float32),
            jax.ShapeDtypeStruct((), jnp.float32),
            block.x.astype(jnp.float32),
            vmap_method="broadcast_all",
        ),
    ],
    ids=["nan", "huge", "infinite", "custom_vmap", "callback"],
)
def test_one_record_moves_one_block_of_any_function(function):
    x = np.arange(20.0)
    vote = jaxdp.TestOfTests(epsilon=1.0, test=function, num_blocks=BLOCKS, shuffle=False)
    median = jaxdp.SubsampleAggregate(
        epsilon=1.0, statistic_of=function, num_blocks=BLOCKS, shuffle=False, lower=0.0, upper=20.0
    )
    for low in (-1e6, np.nan, 1e6):
        datasets = [jaxdp.Data(np.where(np.arange(20) == 0, value, x), x) for value in (0.0, low)]
        votes = [int(vote.statistic(jax.random.key(0), data)) for data in datasets]
        assert abs(votes[0] - votes[1]) <= 1
        medians = [median.statistic(jax.random.key(0), data) for data in datasets]
        assert abs(float(medians[0][0]) - float(medians[1][0])) <= float(medians[0][1]) <= 20.0


def test_a_function_of_a_block_gives_one_real_number():
    data = jaxdp.Data(*np.zeros((2, 20)))
    test = jaxdp.SubsampleAggregate(epsilon=1.0, statistic_of=lambda block: block.x, num_blocks=BLOCKS)
    with pytest.raises(ValueError, match="statistic_of must give one real number per block"):
        test.statistic(jax.random.key(0), data)
