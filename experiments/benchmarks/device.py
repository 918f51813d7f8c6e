"""The kernels that a GPU is for, on one device: time, and the share of what the device can do.

    scripts/gpu               # on a GPU, with the tests for it; scripts/gpu --rehearse: small sizes on the CPU

Share: the least time that the arithmetic (XLA's cost analysis of the compiled program, over the measured peak of a
float32 product) or the memory traffic (over the measured bandwidth) would need, over the time taken.
"""

import argparse
import datetime
import functools
import itertools
import json
import pathlib
import statistics
import sys
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments.benchmarks import machine
from jaxdp import catalogue
from jaxdp.simulate import sine_confounder
from jaxdp.simulate.engine import replicates
from jaxdp.statistics import krr_residuals
from jaxdp.statistics.kernel_ridge.kernels import RBF

BATCHES = 2**12, 2**14, 2**16  # replicates in flight
HERE = pathlib.Path(__file__).parent / "results" / "device"


def replicated(method: str, n: int, count: int, batch: int):
    """Replicates of a power cell: draw data, statistic, noise, p-value."""
    test = catalogue.find(method).cls(epsilon=1.0)
    design = replicates.Design.of(functools.partial(sine_confounder, n=n, effect=0.25))
    given = test, design, jax.random.key(0), np.uint32(0), np.uint32(count)
    program = jax.jit(replicates.spread, static_argnums=(5, 6, 7))
    return lambda where: (program.lower(*given, count, batch, (where,)), given)


def residuals(n: int, count: int, batch: int = 8):
    """Kernel ridge residuals of X and Y, many data sets."""
    z, sides = jax.random.normal(jax.random.key(1), (count, n)), jax.random.normal(jax.random.key(2), (count, n, 2))

    def all_of(z, sides):
        return jax.lax.map(lambda pair: krr_residuals(RBF(), 1e-2, *pair), (z, sides), batch_size=batch)

    def lowered(where):
        given = jax.device_put((z, sides), where)
        return jax.jit(all_of).lower(*given), given

    return lowered


def counts(rows: int, cells: int):
    """One table of counts."""
    codes = jnp.asarray(np.random.default_rng(0).integers(0, cells, rows), np.int32)

    def lowered(where):
        given = jax.device_put((codes,), where)
        return jax.jit(lambda codes: jnp.zeros(cells, np.int32).at[codes].add(1)).lower(*given), given

    return lowered


def kernels(small: bool) -> dict[str, tuple[Any, float]]:
    """name -> (lowering for a device, units of work)."""
    if small:
        return {
            "partition_gcm_n100": (replicated("partition-gcm", 100, 256, 64), 256),
            "krr_residuals_n50": (residuals(50, 16), 16),
            "counts_1e4": (counts(10_000, 256), 1),
        }
    found: dict[str, tuple[Any, float]] = {"counts_1e7": (counts(10**7, 256), 1)}
    for batch in BATCHES:
        for name, n in itertools.product(("partition-gcm", "band-gcm"), (300, 1000)):
            found[f"{name}_n{n}_batch{batch}"] = replicated(name, n, 2**17, batch), 2**17
    for batch in (8, 64, 512):
        found[f"krr_residuals_n1000_batch{batch}"] = residuals(1000, 512, batch), 512
    return found


def measured(lower, units: float, where, ceilings: dict[str, float]) -> dict[str, Any]:
    """The figures of one kernel."""
    began = time.perf_counter()
    lowered, arguments = lower(where)
    compiled = lowered.compile()
    compile_seconds = time.perf_counter() - began
    jax.block_until_ready(compiled(*arguments))
    walls = []
    for _ in range(5):
        start = time.perf_counter()
        jax.block_until_ready(compiled(*arguments))
        walls.append(time.perf_counter() - start)
    seconds, cost = statistics.median(walls), compiled.cost_analysis() or {}
    flops, moved = cost.get("flops", 0.0), cost.get("bytes accessed", 0.0)
    peaks = [1e9 * ceilings[name] for name in ("gemm_float32_gigaflops", "copy_gigabytes_per_second")]
    least = max(flops / peaks[0], moved / peaks[1])
    memory = compiled.memory_analysis()
    return {
        "seconds": seconds,
        "units": units,
        "units_per_second": units / seconds,
        "compile_seconds": compile_seconds,
        "flops": flops,
        "bytes": moved,
        "roofline_share": least / seconds,
        "temporary_megabytes": None if memory is None else memory.temp_size_in_bytes / 1e6,
    }


def main(arguments: list[str] | None = None) -> int:
    """Measures every kernel and writes the JSON, which names the device."""
    parser = argparse.ArgumentParser(prog="python -m experiments.benchmarks.device", description=__doc__)
    parser.add_argument("--rehearse", action="store_true", help="small sizes on the CPU")
    parser.add_argument("--out", type=pathlib.Path, help="file (default: results/device/NAME.json)")
    chosen = parser.parse_args(arguments)
    where = jax.devices("cpu" if chosen.rehearse else "gpu")[0]
    with jax.default_device(where):
        ceilings = machine.ceilings(256 if chosen.rehearse else 2048)
        chosen_kernels = kernels(chosen.rehearse)
        found = {name: measured(lower, units, where, ceilings) for name, (lower, units) in chosen_kernels.items()}
    report = {
        "device": where.device_kind,
        "platform": where.platform,
        "date": datetime.date.today().isoformat(),
        "rehearsal": chosen.rehearse,
        "machine": machine.facts(),
        "ceilings": ceilings,
        "kernels": found,
    }
    path = chosen.out or HERE / f"{where.device_kind.replace(' ', '_').lower()}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=1, default=float) + "\n")
    for name, figures in found.items():
        share = 100 * figures["roofline_share"]
        print(f"{name}: {figures['units_per_second']:.4g} units/s, {share:.3g} % of the roofline")
    print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
