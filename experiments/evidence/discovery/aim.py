"""PC on synthetic records of AIM (McKenna and others 2022), as the package dpmm 0.1.9 has it: three commands.

python -m experiments.evidence.discovery.aim --write FOLDER "12 of 2-3"  # the records of seed 0, as a CSV file
python experiments/evidence/discovery/aim.py --fit FOLDER                # where dpmm is (Python 3.10 or 3.11)
python -m experiments.evidence.discovery.aim --judge FOLDER "12 of 2-3"  # appends to rows.jsonl

Epsilon 1, delta 1e-6, workload of all pairs, its other defaults; neighbours differ by one record more or less. The
package draws its noise from a seed: for comparison only.
"""

import argparse
import csv
import json
import time
from pathlib import Path

EPSILON, DELTA, SEED = 1.0, 1e-6, 0
N = 100_000


def write(folder: Path, name: str) -> None:
    """The records of a network, and the levels of its columns."""
    import jax
    import numpy as np

    from experiments.evidence.discovery.networks import network
    from jaxdp.simulate.designs.networks import sample_network

    records = sample_network(jax.random.key(1000 + SEED), network(name, SEED), N)
    folder.mkdir(parents=True, exist_ok=True)
    np.savetxt(folder / "records.csv", np.asarray(records.values), fmt="%d", delimiter=",")
    (folder / "levels.json").write_text(json.dumps(list(map(int, records.levels))), encoding="utf-8")


def fit(folder: Path) -> None:
    """As many synthetic records; needs dpmm alone."""
    import numpy as np
    import pandas as pd
    from dpmm.models.aim import AIMGM

    levels = json.loads((folder / "levels.json").read_text(encoding="utf-8"))
    values = np.loadtxt(folder / "records.csv", dtype=int, delimiter=",")
    table = pd.DataFrame(values, columns=[f"c{column}" for column in range(len(levels))])
    domain = dict(zip(table.columns, levels, strict=True))
    start = time.time()
    model = AIMGM(
        epsilon=EPSILON, delta=DELTA, degree=2, n_jobs=1, random_state=np.random.RandomState(SEED), domain=domain
    )
    model.set_domain(domain)
    model.fit(table)
    made = model.generate(n_records=len(table))[table.columns].to_numpy(int)
    np.savetxt(folder / "synthetic.csv", made, fmt="%d", delimiter=",")
    (folder / "seconds.json").write_text(json.dumps(round(time.time() - start, 1)), encoding="utf-8")


def judge(folder: Path, name: str) -> None:
    """Appends the row of PC on the synthetic records."""
    import jax
    import numpy as np

    from experiments.evidence.discovery.__main__ import HERE, judged
    from experiments.evidence.discovery.networks import network
    from experiments.record import provenance
    from jaxdp import discovery
    from jaxdp.data.records import as_records

    with (folder / "synthetic.csv").open(encoding="utf-8", newline="") as file:
        values = np.array(list(csv.reader(file)), np.int32)
    levels = json.loads((folder / "levels.json").read_text(encoding="utf-8"))
    graph = discovery.pc(jax.random.key(SEED), as_records(values, levels), test="chi2", max_order=2)
    row = {"network": name, "n": N, "seed": SEED, "method": "pc on aim", "epsilon": EPSILON, "delta": DELTA}
    row |= judged(graph, network(name, SEED))
    row |= {"seconds": json.loads((folder / "seconds.json").read_text(encoding="utf-8")), **provenance()}
    with (HERE / "rows.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    print(row)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", nargs=2, metavar=("FOLDER", "NETWORK"))
    parser.add_argument("--fit", metavar="FOLDER")
    parser.add_argument("--judge", nargs=2, metavar=("FOLDER", "NETWORK"))
    arguments = parser.parse_args()
    if arguments.write:
        write(Path(arguments.write[0]), arguments.write[1])
    if arguments.fit:
        fit(Path(arguments.fit))
    if arguments.judge:
        judge(Path(arguments.judge[0]), arguments.judge[1])


if __name__ == "__main__":
    main()
