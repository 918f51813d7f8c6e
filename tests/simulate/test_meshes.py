"""A mesh with Explicit axes, the default of `jax.make_mesh`, works as well as one with Auto axes, everywhere."""

import os
import subprocess
import sys

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp._base.layout import automatic_layout

SCRIPT = """
import functools, jax, numpy as np, jaxdp, tempfile
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from jaxdp.simulate import sine_confounder

jax.config.update("jax_numpy_rank_promotion", "raise")
shared = NamedSharding(jax.make_mesh((4,), ("records",)), PartitionSpec("records"))
automatic = NamedSharding(jax.make_mesh((4,), ("records",), axis_types=(AxisType.Auto,)), PartitionSpec("records"))
assert shared.mesh.axis_types == (AxisType.Explicit,)
design = functools.partial(sine_confounder, n=48, effect=0.3)
test = jaxdp.PartitionGCM(epsilon=1.0, accept_coarse_cells=True)
close = functools.partial(np.testing.assert_allclose, rtol=2e-5, atol=1e-6)
key, data = jax.random.key(2), design(jax.random.key(1))
place = lambda sharding: jaxdp.Data(*(jax.device_put(part, sharding) for part in (data.x, data.y, data.z)))

kendall = jaxdp.ConditionalKendall(epsilon=1.0, num_strata=4, accept_coarse_cells=True)
for one in (test, kendall):
    run = lambda key, data: jaxdp.run(one, key, data).p_value
    expected = run(key, data)
    close(run(key, place(automatic)), expected)
    close(run(key, place(shared)), expected)
    with jax.set_mesh(shared.mesh):
        close(run(key, place(shared)), expected)
close(jax.jit(run)(key, place(shared)), expected)
released = jaxdp.run(test, jaxdp.fresh_key(), place(shared))
assert isinstance(released.p_value, np.float64) and isinstance(released.cost.epsilon, float)

x, y, z = (getattr(place(shared), name) for name in "xyz")
S = jaxdp.statistics
close(S.kendall_tau(x, y), S.kendall_tau(data.x, data.y))
close(S.krr_residuals(jaxdp.kernels.RBF(), 0.1, z, x), S.krr_residuals(jaxdp.kernels.RBF(), 0.1, data.z, data.x))

keys = jax.random.split(key, 8)
batch = jax.jit(jax.vmap(lambda key: jaxdp.run(test, key, design(jax.random.fold_in(key, 1))).p_value))
close(batch(jax.device_put(keys, shared)), batch(keys))

plain = functools.partial(jaxdp.power.p_values, test, replicates=12)
expected = plain(design, key=key)
close(plain(design, key=key, devices=shared.mesh), expected)
whole = NamedSharding(shared.mesh, PartitionSpec())
number = functools.partial(sine_confounder, n=48, effect=jax.device_put(np.float32(0.3), whole))
close(plain(number, key=jax.device_put(key, whole), devices=shared.mesh), expected)
rate = functools.partial(jaxdp.power.rejection_rate, test, design, replicates=12)
with jax.set_mesh(shared.mesh):
    close(plain(design, key=jax.random.key(2)), expected)
    assert float((plain(design, key=jax.random.key(2), devices=jax.devices()) <= 2.0).sum()) == 12
    found = rate(key=jax.random.key(2), memory=10**9, devices=shared.mesh)
assert found.rejections == rate(key=key).rejections == int((expected <= 0.05).sum())
print("same")
"""


@pytest.mark.nightly
def test_explicit_axes_give_what_automatic_ones_give():
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=4", "NPROC": "16"}
    environment["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"  # compiling is what this costs
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=environment, timeout=600, check=False
    )
    assert done.stdout.strip() == "same", done.stderr[-3000:]


def test_a_mesh_of_one_device_with_explicit_axes():
    """The same refusals of JAX, and none of ours, without other devices."""
    mesh = jax.make_mesh((1,), ("records",))
    place = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("records"))
    x, y = np.random.default_rng(0).uniform(-1, 1, (2, 20)).astype(np.float32)
    shared = [jax.device_put(part, place) for part in (x, y)]

    def outer(a, b):
        return {"products": a[:, None] * b[None, :], "shape": (len(a), len(b)), "name": "outer"}

    with pytest.raises(Exception, match="illegally sharded"):
        outer(*shared)
    found = automatic_layout(outer)(*shared)
    np.testing.assert_array_equal(found["products"], np.outer(x, y))
    assert found["shape"] == (20, 20)
    assert found["name"] == "outer"
    traced = jax.jit(lambda a, b: automatic_layout(outer)(a, b)["products"])
    np.testing.assert_allclose(traced(*shared), np.outer(x, y), rtol=1e-6)
    tau = jaxdp.statistics.kendall_tau
    np.testing.assert_allclose(tau(*shared), tau(x, y), rtol=1e-6)
