"""Replicates: the same counts for any batch size and number of devices; intervals; one compilation."""

import functools
import os
import subprocess
import sys

import jax
import numpy as np
import pytest
from compiled_programs import compiled
from scipy import stats

import jaxdp
from jaxdp.simulate import power
from jaxdp.simulate.designs.confounder import sine_confounder
from jaxdp.simulate.engine import replicates

pytestmark = pytest.mark.optimised

DEVICES_SCRIPT = """
import functools, jax, numpy as np, jaxdp
from jaxdp.simulate.designs.confounder import SineLaw, sine_confounder
assert len(jax.devices()) == 8
design = functools.partial(sine_confounder, n=50, effect=0.3)
for test in (
    jaxdp.PartitionGCM(epsilon=1.0),
    jaxdp.PrivateGCM(epsilon=1.0, scale_x=4.0, scale_y=4.0),
):
    runs = [
        np.asarray(jaxdp.power.p_values(test, design, jax.random.key(0), 37, batch_size=b, devices=jax.devices()[:d]))
        for b, d in ((1, 1), (5, 8))
    ]
    for other in runs[1:]:
        np.testing.assert_array_equal(runs[0] <= 0.05, other <= 0.05)
        np.testing.assert_allclose(runs[0], other, rtol=2e-5, atol=1e-7)
print("same")
"""


@pytest.mark.full
def test_one_or_eight_devices_and_any_batch_give_the_same():
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=8", "NPROC": "16"}
    done = subprocess.run(
        [sys.executable, "-c", DEVICES_SCRIPT],
        capture_output=True,
        text=True,
        env=environment,
        timeout=1500,
        check=False,
    )
    assert done.stdout.strip() == "same", done.stderr[-2000:]


@pytest.mark.full
def test_replicates_do_not_depend_on_the_batch_or_on_where_a_run_starts():
    test = jaxdp.PartitionGCM(epsilon=1.0)
    design = functools.partial(sine_confounder, n=60)
    p = functools.partial(power.p_values, test, design, jax.random.key(1))
    whole = np.asarray(p(24, batch_size=24))
    np.testing.assert_allclose(np.asarray(p(24, batch_size=5)), whole, rtol=2e-5, atol=1e-7)
    np.testing.assert_allclose(np.asarray(p(10, start=14)), whole[14:], rtol=2e-5, atol=1e-7)


@pytest.mark.full
def test_a_sweep_over_epsilon_and_effect_compiles_once():
    with compiled() as found:
        for epsilon in (0.5, 1.0, 2.0):
            for effect in (0.0, 0.5):
                design = functools.partial(sine_confounder, n=31, effect=effect)
                power.p_values(jaxdp.PartitionGCM(epsilon=epsilon), design, jax.random.key(2), 8)
    assert sum(replicates._p_values.__name__ in name for name in found) == 1


def test_wilson_interval_against_scipy():
    for rejections, count in ((0, 20), (7, 200), (200, 200)):
        ours = power.RejectionRate(rejections, count, 0.05).interval()
        scipy = stats.binomtest(rejections, count).proportion_ci(method="wilson")
        np.testing.assert_allclose(ours, (scipy.low, scipy.high), atol=1e-7)


def test_release_keys_and_empty_runs_are_refused():
    design = functools.partial(sine_confounder, n=20)
    with pytest.raises(TypeError, match="simulations take"):
        power.p_values(jaxdp.PartitionGCM(epsilon=1.0), design, jaxdp.fresh_key(), 4)
    with pytest.raises(ValueError, match="replicates must be"):
        power.p_values(jaxdp.PartitionGCM(epsilon=1.0), design, jax.random.key(0), 0)
    with pytest.raises(ValueError, match="level must be"):
        power.rejection_rate(jaxdp.PartitionGCM(epsilon=1.0), design, jax.random.key(0), 4, level=1.5)
