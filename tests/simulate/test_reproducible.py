"""Releases on several devices and an older instruction set: integers agree bit for bit, floats within their bound."""

import os
import subprocess
import sys

import numpy as np
import pytest

SCRIPT = """
import functools, hashlib, sys
import jax, jax.numpy as jnp, numpy as np
import jaxdp
from jaxdp.core import Norm, Relation, Sensitivity
from jaxdp.noise.source import LatticeNoise
from jaxdp.randomness import chacha, keys
from jaxdp.statistics import contingency, concordance

def digest(*arrays):
    return hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)).hexdigest()

root = chacha.wrap(bytes(range(32)))  # a fixed key: only a test may do this
scalar = lambda norm: Sensitivity(1.0, norm, Relation.REPLACE_ONE, lower=-50.0, upper=50.0)
with keys.precision("release"):
    rng = np.random.default_rng(0)
    value = rng.normal(size=40)
    noise = [
        np.asarray(law.perturb(LatticeNoise(jax.random.fold_in(root, i)),
            np.rint(value).astype(np.int64) if law.name == "geometric" else value, scalar(law.norm)))
        for i, law in enumerate((jaxdp.Laplace(0.5), jaxdp.Geometric(0.5), jaxdp.Gaussian(0.5),
                                 jaxdp.ReportNoisyMax(epsilon=0.5), jaxdp.ExponentialMechanism(epsilon=0.5)))
    ]
    codes = rng.integers(0, 3, size=(2, 5000))
    table = np.asarray(contingency.table(list(jnp.asarray(codes)), (3, 3)))
    kendall = np.asarray(concordance.kendall_s(jnp.asarray(codes[0]), jnp.asarray(codes[1])))
    x, y, z = rng.normal(size=(3, 200))
    test = jaxdp.PrivateGCM(epsilon=1.0, ridge=1.0)
    data = jaxdp.Data(np.clip(x / 4, -1, 1), np.clip(y / 4, -1, 1), z)
    device = jax.devices()[-1]
    floats = np.asarray(jax.jit(test.statistic)(jax.random.key(0), jax.device_put(data, device)))
    error = float(np.max(np.asarray(test.sensitivity(200).error)))
print(len(jax.devices()), digest(*noise), digest(table, kendall), error, *np.ravel(floats)[:50].tolist())
"""


def report(flags: str):
    """(number of devices, digest of the noise, digest of the counts, error bound, float statistics)."""
    environment = {**os.environ, "XLA_FLAGS": flags, "NPROC": "16", "JAX_PLATFORMS": "cpu"}
    run = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=environment, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
    devices, noise, counts, error, *floats = run.stdout.split()
    return int(devices), noise, counts, float(error), np.array(floats, float)


@pytest.mark.full
def test_the_same_key_gives_the_same_bits():
    """Devices, instruction set and optimisations must not matter."""
    flags = (
        "--xla_force_host_platform_device_count=8",
        "--xla_cpu_max_isa=SSE4_2",
        "--xla_backend_optimization_level=0",
    )
    devices, noise, counts, error, floats = report(" ".join(flags))
    _, plain_noise, plain_counts, plain_error, plain_floats = report("")
    assert devices == 8
    assert noise == plain_noise
    assert counts == plain_counts
    assert np.max(np.abs(floats - plain_floats)) <= 2.0 * error
    assert error == plain_error < 1e-6
