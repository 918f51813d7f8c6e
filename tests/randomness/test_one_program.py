"""Budgets that are equal numbers are one program, however they are written."""

import jax
import numpy as np
import pytest
from compiled_programs import compiled

import jaxdp


@pytest.mark.parametrize("key", [jaxdp.fresh_key, lambda: jax.random.key(1)], ids=["release", "simulation"])
def test_a_budget_is_one_program_whatever_kind_of_number_it_is(key):
    data = jaxdp.simulate.sine_confounder(jax.random.key(0), 60, effect=0.4)
    jaxdp.run(jaxdp.PartitionGCM(epsilon=1.0), key(), data)
    with compiled() as found:
        for epsilon in (1, np.float64(1.0), np.float32(1.0), np.int64(1)):
            test = jaxdp.PartitionGCM(epsilon=epsilon)
            assert type(test.epsilon) is float
            jaxdp.run(test, key(), data)
    assert found == []
