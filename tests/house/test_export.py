"""`jax.export` with a symbolic number of records: one program serves data of every size."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import jaxdp
from jaxdp.statistics import krr_residuals
from jaxdp.statistics.kernel_ridge.kernels import RBF

SIZES = (610, 1000)


def residuals(x, y, z):
    """A statistic without noise."""
    return krr_residuals(RBF(), 1e-2, z, jnp.stack([x, y], axis=1))


def of(test):
    """The p-value of a simulated run."""

    def p_value(x, y, z):
        return jaxdp.run(test, jax.random.key(3), jaxdp.Data(x, y, z)).p_value

    return p_value


FUNCTIONS = {
    "krr_residuals": residuals,
    "PrivateGCM": of(jaxdp.PrivateGCM(epsilon=1.0, ridge=1.0)),
    "PartitionGCM": of(jaxdp.PartitionGCM(epsilon=1.0, num_cells=20)),
}


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_an_exported_program_serves_every_number_of_records(name):
    (n,) = export.symbolic_shape("n", constraints=["n >= 600"])
    function = FUNCTIONS[name]
    exported = export.export(jax.jit(function))(*[jax.ShapeDtypeStruct((n,), jnp.float32)] * 3)
    for size in SIZES:
        data = 0.3 * jax.random.normal(jax.random.key(size), (3, size))
        found, direct = exported.call(*data), jax.jit(function)(*data)
        assert found.shape == direct.shape
        assert np.allclose(found, direct, rtol=1e-3, atol=1e-5)
