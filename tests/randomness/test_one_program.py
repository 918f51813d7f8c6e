"""What is one compiled program: equal budgets, any number of replicates; and how many a process keeps."""

import functools
from pathlib import Path

import jax
import numpy as np
import pytest
from compiled_programs import compiled
from simulation_worker import NoisyMean, uniforms

import jaxdp
from jaxdp._base import bounded
from jaxdp.core import Norm, Relation, Sensitivity
from jaxdp.simulate import sine_confounder


@jaxdp.private_test
class Mean(NoisyMean):
    """With the range that a release needs."""

    def sensitivity(self, num_records):
        half = num_records / 2
        return Sensitivity(1.0, Norm.L1, Relation.REPLACE_ONE, error=1e-9, lower=-half, upper=half)


MAPS = Path("/proc/self/maps")
both_modes = pytest.mark.parametrize("key", [jaxdp.fresh_key, lambda: jax.random.key(1)], ids=["release", "simulation"])


@both_modes
def test_a_budget_is_one_program_whatever_kind_of_number_it_is(key):
    data = jaxdp.simulate.sine_confounder(jax.random.key(0), 60, effect=0.4)
    jaxdp.run(jaxdp.PartitionGCM(epsilon=1.0), key(), data)
    with compiled() as found:
        for epsilon in (1, np.float64(1.0), np.float32(1.0), np.int64(1)):
            test = jaxdp.PartitionGCM(epsilon=epsilon)
            assert type(test.epsilon) is float
            jaxdp.run(test, key(), data)
    assert found == []


def test_any_number_of_replicates_from_a_batch_on_is_one_program():
    def p_values(replicates, epsilon=1.0, effect=0.25):
        design = functools.partial(uniforms, n=11, effect=effect)
        return np.asarray(jaxdp.power.p_values(NoisyMean(epsilon=epsilon), design, jax.random.key(0), replicates))

    first = p_values(2000)
    with compiled() as found:
        again = p_values(2100)
        p_values(1025, 1, np.float64(0.5))
        beyond_one_launch = p_values(2**16 + 3)
    assert found == []
    np.testing.assert_array_equal(again[:2000], first)
    np.testing.assert_array_equal(beyond_one_launch[:2100], again)
    assert np.unique(again).size == 2100
    assert beyond_one_launch.shape == (2**16 + 3,)


def test_any_number_of_replicates_may_be_traced_and_differentiated():
    design = functools.partial(uniforms, n=11, effect=0.25)

    def mean(epsilon):
        return jaxdp.power.p_values(NoisyMean(epsilon=epsilon), design, jax.random.key(0), 20).mean()

    plain = np.asarray(jaxdp.power.p_values(NoisyMean(epsilon=1.0), design, jax.random.key(0), 20))
    value, slope = jax.jit(jax.value_and_grad(mean))(1.0)
    assert value == pytest.approx(plain.mean(), rel=1e-5)
    ahead, behind = mean(1.01), mean(0.99)
    assert float(slope) == pytest.approx(float(ahead - behind) / 0.02, rel=0.05)


@both_modes
def test_a_warm_program_compiles_nothing_for_the_data(key):
    shape = jax.ShapeDtypeStruct((61,), np.float32)
    test = jaxdp.PartitionGCM(epsilon=1.0, num_cells=3)
    jaxdp.programs.compile(test, jaxdp.Data(shape, shape, shape), simulation=key is not jaxdp.fresh_key)
    data = jax.tree.map(np.asarray, sine_confounder(jax.random.key(0), 61, effect=0.4))
    used = key()
    with compiled() as found:
        jaxdp.run(test, used, data)
    assert found == []


def test_warming_up_refuses_what_a_run_refuses():
    shape = jax.ShapeDtypeStruct((61,), np.float32)
    with pytest.raises(ValueError, match="does not use z"):
        jaxdp.programs.compile(jaxdp.QuantileTable(epsilon=1.0), jaxdp.Data(shape, shape, shape))


@both_modes
@pytest.mark.parametrize(
    ("calls", "sizes"), [(200, 40), pytest.param(2000, 50, marks=pytest.mark.full)], ids=["200", "2000"]
)
def test_calls_with_varying_numbers_of_records_compile_each_once(key, calls, sizes):
    test, order = Mean(epsilon=1.0), np.random.default_rng(0).permutation(np.arange(calls) % sizes)
    run = functools.partial(_run, test, key)
    jax.clear_caches()  # those of other tests count towards the bound
    run(19)
    with compiled(drops=True) as found:
        for size in order:
            run(20 + int(size))
    assert len(found) <= 2 * sizes  # the statistic and the answer
    with compiled() as found:
        run(20)
    assert found == []


@pytest.mark.skipif(not MAPS.exists(), reason="memory is read from Linux's files")
def test_memory_stays_flat_over_ever_new_numbers_of_records(monkeypatch):
    most = 12
    monkeypatch.setattr(bounded, "MAX_PROGRAMS", most)
    test, taken = Mean(epsilon=1.0), []
    for number in range(6 * most):
        _run(test, jaxdp.fresh_key, 1000 + number)
        taken.append(len(MAPS.read_text().splitlines()))
    before, after = max(taken[2 * most : 4 * most]), max(taken[4 * most :])
    assert after - before <= most  # without the bound at least two for each of the 2 * most calls


def _run(test, key, count):
    values = np.linspace(-0.5, 0.5, count, dtype=np.float32)
    return jaxdp.run(test, key(), jaxdp.Data(values, values))
