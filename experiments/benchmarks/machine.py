"""Facts about the machine and its measured ceilings."""

import importlib.metadata
import os
import pathlib
import platform
import statistics
import subprocess
import time
from typing import Any

import jax
import jax.numpy as jnp

PACKAGES = ("jax", "jaxlib", "numpy", "scipy", "scikit-learn", "threadpoolctl", "causal-learn", "minepy", "opendp")
ENVIRONMENT = ("OPENBLAS_NUM_THREADS", "OPENBLAS_CORETYPE", "NPROC", "GLIBC_TUNABLES", "XLA_FLAGS", "JAX_PLATFORMS")


def facts() -> dict[str, Any]:
    """Processor, memory, load, versions, environment, commit."""
    load = os.getloadavg()[0]
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gigabytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9,
        "python": platform.python_version(),
        "devices": [str(device) for device in jax.devices()],
        "versions": {name: _version(name) for name in PACKAGES if _version(name)},
        "environment": {name: os.environ.get(name) for name in ENVIRONMENT},
        "commit": commit(),
        "load_at_start": load,
        "shared": load > 0.6,
    }


def ceilings(size: int = 2048) -> dict[str, float]:
    """Measured limits of this run: matrix products of that size, copying 16 times as many numbers, exponentials."""
    found = {}
    for name, dtype in (("gemm_float32_gigaflops", jnp.float32), ("gemm_float64_gigaflops", jnp.float64)):
        with jax.enable_x64(True):
            a = jnp.ones((size, size), dtype)
            product = jax.jit(lambda a: jnp.matmul(a, a, precision=jax.lax.Precision.HIGHEST))
            found[name] = 2e-9 * size**3 / _median_seconds(product, a)
    block = jnp.ones(16 * size**2, jnp.float32)
    found["copy_gigabytes_per_second"] = 2e-9 * block.nbytes / _median_seconds(jax.jit(jnp.negative), block)
    found["exp_billions_per_second"] = 1e-9 * size**2 / _median_seconds(jax.jit(jnp.exp), block[: size**2])
    return found


def _median_seconds(function, argument) -> float:
    jax.block_until_ready(function(argument))
    times = []
    for _ in range(5):
        start = time.perf_counter()
        jax.block_until_ready(function(argument))
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def _processor() -> str:
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines() if os.path.exists("/proc/cpuinfo") else []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def commit() -> str:
    here = pathlib.Path(__file__).parent
    found = subprocess.run(["git", "rev-parse", "HEAD"], cwd=here, capture_output=True, text=True, check=False)
    return found.stdout.strip()
