"""Speed of simulations: python -m experiments.evidence.simulation ROW [--replicates R] [--json FILE]

Rows: partition_gcm (PartitionGCM, n = 1000), private_gcm (PrivateGCM with kernel ridge regression of a fixed ridge,
n = 300), memory (peak memory against the flag), scaling (weak scaling over 1, 2, 4, 8 forced host devices). Wall times
are those of the engine, writing included, compile time apart; the machine's load stands beside every figure.
"""

import argparse
import json
import os
import pathlib
import platform
import resource
import subprocess
import sys
import tempfile
import time

ROWS = ("partition_gcm", "private_gcm", "memory", "scaling")
GOALS = {"partition_gcm": 40.0, "private_gcm": 100.0}  # seconds on two cores
REPLICATES = {"partition_gcm": 1_000_000, "private_gcm": 100_000, "memory": 4000, "scaling": 50_000}
CHUNK = {"partition_gcm": 10_000, "private_gcm": 1000}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.evidence.simulation", description=__doc__)
    parser.add_argument("row", choices=ROWS)
    parser.add_argument("--replicates", type=lambda text: int(float(text)))
    parser.add_argument("--devices", type=int, help="host devices (default: as `jaxdp simulate`)")
    parser.add_argument("--memory", type=int, help="bytes, for one measurement")
    parser.add_argument("--json", type=pathlib.Path, help="file to write")
    arguments = parser.parse_args()
    replicates = arguments.replicates or REPLICATES[arguments.row]
    if arguments.row in GOALS:
        found = measure(arguments.row, replicates, arguments.devices, arguments.memory)
    else:
        found = {"memory": memory, "scaling": scaling}[arguments.row](replicates)
    text = json.dumps(found, indent=1)
    print(text)
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(text + "\n")


def measure(row: str, replicates: int, devices: int | None, limit: int | None) -> dict:
    """Wall and processor seconds of one setting."""
    os.environ.setdefault("NPROC", "16")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    import jax

    from jaxdp.simulate.engine import grid
    from jaxdp.simulate.engine.chunks import Chunks, host_devices

    jax.config.update("jax_num_cpu_devices", devices or host_devices())

    setting, chunk = setting_of(row), min(CHUNK[row], replicates)
    used = jax.devices()
    began = time.perf_counter()
    program = Chunks(chunk, memory=limit, devices=used).program(setting)
    compiled = time.perf_counter() - began
    with tempfile.TemporaryDirectory() as folder:
        grid.run([setting], f"{folder}/warm", grid.Plan(chunk, chunk=chunk), memory=limit, devices=used)
        before, load = peak_memory(), os.getloadavg()[0]
        wall, processor = time.perf_counter(), time.process_time()
        result = grid.run([setting], f"{folder}/run", grid.Plan(replicates, chunk=chunk), memory=limit, devices=used)[0]
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
    return {
        "row": row,
        "replicates": replicates,
        "seconds": round(wall, 3),
        "processor_seconds": round(processor, 3),
        "replicates_per_second": round(replicates / wall, 1),
        "goal_seconds": GOALS[row] * replicates / REPLICATES[row],
        "compile_seconds": round(compiled, 2),
        "rejections": result.rejections,
        "batch_size": program.batch_size,
        "megabytes_per_device": round(program.bytes_per_device / 1e6, 3),
        "peak_megabytes": round(peak_memory() / 1e6, 1),
        "peak_megabytes_grown": round((peak_memory() - before) / 1e6, 1),
        "memory_flag_megabytes": None if limit is None else limit / 1e6,
        "load_at_start": load,
        **facts(used),
    }


def peak_memory() -> int:
    """Bytes of resident memory that this process has used at most."""
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else used * 1024


def setting_of(row: str):
    """The setting of a row."""
    import math

    import jaxdp
    from jaxdp.simulate.designs import by_name
    from jaxdp.simulate.engine.settings import Setting

    n = {"partition_gcm": 1000, "private_gcm": 300}[row]
    largest = 1.0 + math.sqrt(2.0 * math.log(n))
    test = {
        "partition_gcm": lambda: jaxdp.PartitionGCM(epsilon=1.0),
        "private_gcm": lambda: jaxdp.PrivateGCM(epsilon=7.0, ridge=10.0, scale_x=largest, scale_y=largest),
    }[row]()
    return Setting({"row": row, "n": n}, test, by_name.design("sine").build(n, 0.0))


def memory(replicates: int) -> dict:
    """Peak memory of the kernel test against the flag, and how it does not grow with the replicates."""
    runs = [
        one("private_gcm", replicates=count, memory=limit)
        for limit, count in ((16_000_000, replicates), (64_000_000, replicates), (64_000_000, 4 * replicates))
    ]
    return {"row": "memory", "runs": runs}


def scaling(replicates: int) -> dict:
    """`replicates` per device on 1, 2, 4, 8 forced host devices; rate over that of one device."""
    runs = [one("partition_gcm", replicates=replicates * devices, devices=devices) for devices in (1, 2, 4, 8)]
    for run in runs:
        run["rate_over_one_device"] = round(run["replicates_per_second"] / runs[0]["replicates_per_second"], 3)
    return {"row": "scaling", "cores": os.cpu_count(), "runs": runs}


def one(row: str, **options) -> dict:
    """One measurement in a process of its own."""
    command = [sys.executable, "-m", "experiments.evidence.simulation", row]
    for name, value in options.items():
        command += [f"--{name}", str(value)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def facts(devices) -> dict:
    """Machine, versions, commit."""
    from experiments.record import provenance

    return {"devices": len(devices), "cores": os.cpu_count(), "machine": platform.machine(), **provenance()}


if __name__ == "__main__":
    main()
