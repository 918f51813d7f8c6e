"""Level of PartitionGCM given two continuous columns, its centres in groups of whole cells.

    python -m experiments.evidence.level suite     (the stress suite: see suite.py)
    python -m experiments.evidence.level frontier  (power of one Z against rough nulls: see frontier.py)
    python -m experiments.evidence.level command   (nulls through `jaxdp test` itself: see command_line.py)
    python -m experiments.evidence.level unseen    (nulls that came after every constant: see unseen.py)
    python -m experiments.evidence.level curves    (one curve or four in ContrastGCM: see curves.py)
    python -m experiments.evidence.level constants (C and v of ContrastGCM: see constants.py)
    python -m experiments.evidence.level margins   (p-value of MICr on many margins: see margins.py)
    python -m experiments.evidence.level real      (true nulls made of real tables: see real.py)
    python -m experiments.evidence.level [--quick] [--json experiments/evidence/level/nested_cells.json]

x and y are independent given z = (z1, z2), uniform on the square; both have the mean 0.3 (sin 3 z1 + sin 3 z2) and a
residual sd of 0.2. The row `cut` repeats n = 1e5 with groups that cut through cells, as before they were nested.
"""

import argparse
import functools
import json
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp

import jaxdp
from experiments.evidence.level import command_line, constants, curves, frontier, margins, real, suite, unseen
from experiments.record import provenance
from jaxdp.data import Column, Domain
from jaxdp.independence.continuous import partition_gcm, partition_stages
from jaxdp.statistics import partition

REPLICATES = {1000: 1000, 10_000: 500, 100_000: 200, 1_000_000: 20}
DOMAIN = Domain(z=(Column(), Column()))
LEVEL = 0.05


def additive(key, n: int):
    """A true null whose means add over two columns of z."""
    key_z, key_x, key_y = jax.random.split(key, 3)
    z = jax.random.uniform(key_z, (n, 2), minval=-1.0)
    bend = 0.3 * jnp.sum(jnp.sin(3.0 * z), axis=1)
    x, y = (jnp.clip(bend + 0.2 * jax.random.normal(k, (n,)), -1, 1) for k in (key_x, key_y))
    return jaxdp.Data(x, y, z, DOMAIN)


def groups_that_cut(data, num_cells, reference, axes):
    """Groups that are not unions of cells: each column cut anew into as many bins."""
    return partition.cells_of(data, partition_stages.num_centres(data.x.shape[0]), reference, axes)


def measure(n: int, epsilon: float, replicates: int, groups: str = "nested") -> dict:
    """One row: rejections of the null at level 0.05 by the test as the command line builds it."""
    test = jaxdp.PartitionGCM(epsilon=epsilon, standardize=True, scale_x=0.2, scale_y=0.2, accept_coarse_cells=True)
    started = time.perf_counter()
    found = jaxdp.power.rejection_rate(
        test, functools.partial(additive, n=n), jax.random.key(n), replicates, level=LEVEL
    )
    low, high = found.interval()
    return {
        "n": n,
        "epsilon": epsilon,
        "groups": groups,
        "rejections": int(found.rejections),
        "replicates": replicates,
        "rate": found.rate,
        "wilson_95": [float(low), float(high)],
        "bins_per_column": partition.bins_per_column(DOMAIN.z, partition.target_cells(n))[0],
        "seconds": round(time.perf_counter() - started, 1),
    }


def main() -> None:
    if sys.argv[1:2] == ["suite"]:
        return suite.main(sys.argv[2:])
    if sys.argv[1:2] == ["frontier"]:
        return frontier.main(sys.argv[2:])
    if sys.argv[1:2] == ["command"]:
        return command_line.main(sys.argv[2:])
    if sys.argv[1:2] == ["unseen"]:
        return unseen.main(sys.argv[2:])
    if sys.argv[1:2] == ["curves"]:
        return curves.main(sys.argv[2:])
    if sys.argv[1:2] == ["constants"]:
        return constants.main(sys.argv[2:])
    if sys.argv[1:2] == ["margins"]:
        return margins.main(sys.argv[2:])
    if sys.argv[1:2] == ["real"]:
        return real.main(sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the replicates, n up to 1e5")
    parser.add_argument("--json", default="out/nested_cells.json")
    args = parser.parse_args()
    sizes = {n: max(10, count // 10) for n, count in REPLICATES.items() if n <= 100_000} if args.quick else REPLICATES
    rows = []
    for n, epsilon in ((n, epsilon) for n in sizes for epsilon in (1.0, 4.0)):
        rows.append(measure(n, epsilon, sizes[n]))
        print(rows[-1], flush=True)
    partition_stages.centring_groups = partition_gcm.centring_groups = groups_that_cut
    jax.clear_caches()
    rows.append(measure(100_000, 4.0, 20, "cut"))
    print(rows[-1], flush=True)
    Path(args.json).parent.mkdir(parents=True, exist_ok=True)
    Path(args.json).write_text(json.dumps({**provenance(), "level": LEVEL, "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
