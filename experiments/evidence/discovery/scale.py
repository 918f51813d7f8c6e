"""How much memory and processor time a search over a million records of 60 columns takes.

python -m experiments.evidence.discovery.scale --folder /tmp/scale

Samples the records in tenths into a file, then searches in a process of its own, whose peak memory is what it needs.
"""

import argparse
import json
import pathlib
import resource
import subprocess
import sys
import time

import jax
import numpy as np

import jaxdp
from experiments.evidence.discovery.networks import Recipe, made
from experiments.record import provenance
from jaxdp.simulate.designs.networks import sample_network

HERE = pathlib.Path(__file__).parent
RECIPE = Recipe(60, 2.5, (2, 3, 4))
PARTS = 10


def sample(path: pathlib.Path, n: int) -> None:
    """Codes (n, 60), int8, in a file."""
    net = made(RECIPE, 0)
    parts = [sample_network(jax.random.key(part), net, n // PARTS).values for part in range(PARTS)]
    np.save(path, np.concatenate([np.asarray(part, np.int8) for part in parts]))


def search(path: pathlib.Path) -> dict:
    """One search through `jaxdp.discover`: peak memory of this process before and after, in GiB."""
    net, values = made(RECIPE, 0), np.load(path)
    frame = {name: values[:, place] for place, name in enumerate(net.names)}
    levels = {name: list(range(len(net.variables[name].states))) for name in net.names}
    before, started = peak(), time.process_time()
    graph = jaxdp.discover(frame, epsilon=1.0, levels=levels, key=jax.random.key(0))
    return {
        "rows": len(values),
        "columns": len(net.names),
        "method": graph.method,
        "f1": round(jaxdp.discovery.skeleton_f1(graph, net), 4),
        "processor_seconds": round(time.process_time() - started, 1),
        "peak_gib_before": round(before, 2),
        "peak_gib": round(peak(), 2),
    }


def peak() -> float:
    """Largest resident memory of this process so far, GiB (Linux counts in KiB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=1_000_000)
    parser.add_argument("--folder", type=pathlib.Path, required=True, help="for 60 MB of records")
    parser.add_argument("--searching", action="store_true", help="the second half, which the first one starts")
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "scale.json")
    args = parser.parse_args()
    path = args.folder / "codes.npy"
    if args.searching:
        args.out.write_text(json.dumps(search(path) | provenance(), indent=2) + "\n", encoding="utf-8")
        print(args.out.read_text(encoding="utf-8"))
        return
    args.folder.mkdir(parents=True, exist_ok=True)
    sample(path, args.n)
    subprocess.run([sys.executable, "-m", __spec__.name, *sys.argv[1:], "--searching"], check=True)


if __name__ == "__main__":
    main()
