"""python -m experiments.papers.priv_pc.scale [--out FILE]: a million rows of 40 columns, and 1e8 rows streamed.

Each case runs in a process of its own, so that its peak memory is its own. The stream repeats a few drawn chunks
and checks the table against theirs.
"""

import argparse
import json
import multiprocessing
import os
import pathlib
import resource
import time

import jax
import numpy as np

from experiments.record import provenance

COLUMNS, ROWS, ORDER, MEMORY_LIMIT = 40, 10**6, 3, 4.0
STREAM_ROWS, CHUNK, DISTINCT = 10**8, 10**6, 5


def wide(rows: int = ROWS) -> dict:
    """PC on a random network of 40 columns with 2 to 4 levels, chi-squared at level 0.01, progress bar on."""
    from experiments.benchmarks.rows import pc
    from jaxdp import discovery
    from jaxdp.data.records import Records
    from jaxdp.simulate.designs.networks import sample_network

    pc.SIZES["wide"] = ((14, 18, 8, 0), 50, 3)
    network = pc.random_network("wide")
    drawn = sample_network(jax.random.key(2), network, rows)
    records = Records(np.asarray(drawn.values), drawn.columns)
    start = time.perf_counter()
    graph = discovery.pc(jax.random.key(0), records, test="chi2", level=0.01, max_order=ORDER, progress=True)
    return {
        "case": "wide",
        "rows": rows,
        "columns": len(network.names),
        "max_order": ORDER,
        "tests": graph.num_tests,
        "edges": len(graph.edges),
        "skeleton_f1": discovery.skeleton_f1(graph, network),
        "search_seconds": time.perf_counter() - start,
    }


def stream(rows: int = STREAM_ROWS) -> dict:
    """The joint table of eight columns from an iterator of chunks."""
    from jaxdp.data import networks
    from jaxdp.simulate.designs.networks import sample_network
    from jaxdp.statistics.tables import contingency

    network = networks.load("asia")
    chunks = [np.asarray(sample_network(jax.random.key(k), network, CHUNK).values) for k in range(DISTINCT)]
    parts = [contingency.joint_table(chunk, (2,) * 8) for chunk in chunks]
    turns = [k % DISTINCT for k in range(rows // CHUNK)]
    start = time.perf_counter()
    table = contingency.joint_table((chunks[k] for k in turns), (2,) * 8)
    seconds = time.perf_counter() - start
    exact = np.array_equal(table, sum(parts[k] for k in turns))
    return {"case": "stream", "rows": int(table.sum()), "columns": 8, "count_seconds": seconds, "exact": bool(exact)}


def run(case) -> dict:
    """One case, with its peak memory and the load it met."""
    load = os.getloadavg()[0]
    found = case()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {
        **found,
        "peak_gigabytes": peak,
        "within_memory": peak <= MEMORY_LIMIT,
        "load_at_start": load,
        **provenance(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.papers.priv_pc.scale", description=__doc__)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/priv_pc/scale.json"))
    arguments = parser.parse_args()
    rows = []
    for case in (wide, stream):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            rows.append(pool.apply(run, (case,)))
        print(rows[-1])
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
