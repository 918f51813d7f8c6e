"""One key, many machines: the same draws eager, compiled and batched, on 1 to 8 devices and three instruction sets.

python -m experiments.evidence.audit.reproducible                   # a minute on one core; writes reproducible.json

Noise and counts must agree bit for bit with the first configuration, float statistics within their stated bound.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import jaxdp
from experiments.record import provenance
from jaxdp.core import Relation, Sensitivity
from jaxdp.noise.source import LatticeNoise
from jaxdp.randomness import chacha, keys
from jaxdp.statistics import concordance
from jaxdp.statistics.tables import contingency

FLAGS = {
    "as it comes": "",
    **{f"{count} devices": f"--xla_force_host_platform_device_count={count}" for count in (2, 4, 8)},
    "SSE4.2": "--xla_cpu_max_isa=SSE4_2",
    "AVX": "--xla_cpu_max_isa=AVX",
    "no optimisation": "--xla_backend_optimization_level=0",
    "8 devices, SSE4.2, no optimisation": "--xla_force_host_platform_device_count=8 --xla_cpu_max_isa=SSE4_2 "
    "--xla_backend_optimization_level=0",
}
LAWS = (
    (jaxdp.Laplace(0.5), np.float64),
    (jaxdp.Geometric(0.5), np.int64),
    (jaxdp.Gaussian(0.5), np.float64),
    (jaxdp.ReportNoisyMax(epsilon=0.5), np.float64),
    (jaxdp.ExponentialMechanism(epsilon=0.5), np.float64),
)
LANES = 4


def forms(law, root, value) -> list[str]:
    """Digests of one draw: eager, compiled, and as one lane of a batch."""
    bound = Sensitivity(1.0, law.norm, Relation.REPLACE_ONE, lower=-50.0, upper=50.0)

    def draw(key, value):
        return law.perturb(LatticeNoise(key), value, bound)

    each = jax.random.split(root, LANES)
    eager = [draw(each[lane], value) for lane in range(LANES)]
    compiled = [jax.jit(draw)(each[lane], value) for lane in range(LANES)]
    batched = jax.vmap(draw, in_axes=(0, None))(each, value)
    return [digest(np.stack(found)) for found in (eager, compiled, np.asarray(batched))]


def digest(*arrays) -> str:
    return hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)).hexdigest()


def measure() -> dict:
    """What one process draws and computes, on the last of its devices."""
    root, rng = chacha.wrap(bytes(range(32))), np.random.default_rng(0)  # a fixed key: no release
    device = jax.devices()[-1]
    with keys.precision(keys.RELEASE), jax.debug_key_reuse(False), jax.default_device(device):
        value = rng.normal(size=40)
        noise = {
            law.name: forms(law, jax.random.fold_in(root, number), jnp.asarray(np.rint(value), dtype))
            for number, (law, dtype) in enumerate(LAWS)
        }
        codes = jnp.asarray(rng.integers(0, 3, size=(2, 5000)))
        counts = digest(contingency.table(list(codes), (3, 3)), concordance.kendall_s(codes[0], codes[1]))
        x, y, z = rng.normal(size=(3, 200))
        test = jaxdp.PrivateGCM(epsilon=1.0, ridge=1.0)
        data = jaxdp.Data(np.clip(x / 4, -1, 1), np.clip(y / 4, -1, 1), z)
        floats = np.ravel(np.asarray(jax.jit(test.statistic)(jax.random.key(0), jax.device_put(data, device))))
        error = float(np.max(np.asarray(test.sensitivity(200).error)))
    return {
        "devices": len(jax.devices()),
        "noise": noise,
        "counts": counts,
        "floats": [float(number).hex() for number in floats],
        "error": error,
    }


def compared(found: dict, first: dict) -> dict:
    """One row: equal digests of how many, and the largest float difference as a share of what is allowed."""
    wanted = {law: digests[0] for law, digests in first["noise"].items()}
    drawn = [digest == wanted[law] for law, digests in found["noise"].items() for digest in digests]
    values = [np.array([float.fromhex(number) for number in side["floats"]]) for side in (found, first)]
    return {
        "devices": found["devices"],
        "draws_compared": len(drawn),
        "draws_equal": int(sum(drawn)),
        "counts_equal": found["counts"] == first["counts"],
        "largest_float_difference": float(np.max(np.abs(values[0] - values[1]))),
        "allowed": 2.0 * first["error"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "reproducible.json")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        print(json.dumps(measure()))
        return
    rows, first = {}, None
    for name, flags in FLAGS.items():
        environment = {**os.environ, "XLA_FLAGS": flags, "NPROC": "16", "JAX_PLATFORMS": "cpu"}
        command = [sys.executable, "-m", "experiments.evidence.audit.reproducible", "--measure"]
        found = json.loads(subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout)
        first = found if first is None else first
        rows[name] = compared(found, first)
        print(name, rows[name], flush=True)
    args.out.write_text(json.dumps({"configurations": rows, **provenance()}, indent=2) + "\n")


if __name__ == "__main__":
    main()
