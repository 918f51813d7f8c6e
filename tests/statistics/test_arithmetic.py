"""Releases and fast-math flags: what loses NaNs breaks a sensitivity, so nothing is released under it."""

import os
import subprocess
import sys

import jax
import pytest

import jaxdp
from jaxdp.randomness import arithmetic, keys

# A release that says so if it pays or reads; its flags are looked up, then found out by what they do.
PROGRAM = """
import jax, numpy as np, jaxdp
from jaxdp.randomness import arithmetic, keys

class Spy:
    def require(self, cost):
        print("asked the ledger")
    charge = require

class Unread(np.ndarray):
    def __array_ufunc__(self, *_, **__):
        print("read the data")

data = jaxdp.Data(*np.full((3, 30), np.nan).view(Unread))
for way in ("flags", "probe"):
    try:
        jaxdp.run(jaxdp.PrivateGCM(epsilon=1.0), jaxdp.fresh_key(), data, ledger=Spy())
    except RuntimeError as error:
        print(error)
    arithmetic.fast_flags = lambda flags: []
print(keys.admit(jax.random.key(0)))
"""
FAST = "--xla_cpu_enable_fast_math=true"
LOOSE = f"{FAST} --xla_cpu_fast_math_honor_nans=false --xla_cpu_fast_math_honor_infs=false"


@pytest.mark.parametrize("flags", [FAST, pytest.param(LOOSE, marks=pytest.mark.nightly)])
def test_a_release_refuses_under_fast_math(flags):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "XLA_FLAGS": flags},
        capture_output=True,
        text=True,
        check=True,
    )
    looked_up, found_out, mode = done.stdout.splitlines()
    for refusal in (looked_up, found_out):
        assert refusal.startswith("a release needs IEEE arithmetic")
        assert "start Python without fast-math flags" in refusal
    assert "xla_cpu_enable_fast_math" in looked_up
    assert "JAX is set to imprecise arithmetic" in found_out
    assert mode == keys.SIMULATION


@pytest.mark.parametrize(
    ("flags", "fast"),
    [
        ("", []),
        ("--xla_force_host_platform_device_count=8 --xla_cpu_enable_fast_math=false", []),
        ("--xla_cpu_enable_fast_math", ["xla_cpu_enable_fast_math"]),
        ("--xla_cpu_enable_fast_math=1 --xla_cpu_enable_fast_math=False", []),
        ("--xla_gpu_enable_fast_min_max=true", ["xla_gpu_enable_fast_min_max"]),
        ("--xla_cpu_fast_math_honor_nans=false", ["xla_cpu_fast_math_honor_nans"]),
        ("--xla_cpu_fast_math_honor_nans=true", []),
    ],
)
def test_flags_are_read_as_xla_reads_them(flags, fast):
    assert arithmetic.fast_flags(flags) == fast


def test_a_release_refuses_imprecise_products_and_ignores_debugging(monkeypatch):
    """Error bounds hold in float64: JAX can be set to multiply matrices in bfloat16."""
    arithmetic.require_exact()
    with jax.debug_nans(True):
        arithmetic._keeps_ieee.cache_clear()
        arithmetic.require_exact()
    with jax.default_matmul_precision("BF16_BF16_F32"), pytest.raises(RuntimeError, match="default matmul precision"):
        jaxdp.run(jaxdp.PartitionGCM(epsilon=1.0), jaxdp.fresh_key(), None)
    monkeypatch.setenv("XLA_FLAGS", FAST)
    with pytest.raises(RuntimeError, match="xla_cpu_enable_fast_math"):
        jaxdp.release(jaxdp.PartitionGCM(epsilon=1.0), jaxdp.fresh_key(), None)
