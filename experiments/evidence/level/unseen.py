"""Tests that `jaxdp test --sees KIND` chooses, on nulls that were thought of after every constant and rule was fixed.

    python -m experiments.evidence.level unseen [--minutes 10] [--n 500 3000 20000]

Rows as in the suite (see suite.py); a run goes on where the file ends.
"""

import argparse
from pathlib import Path

from experiments.evidence.level import nulls, suite
from jaxdp import catalogue
from jaxdp.spec import KINDS_OF_ALTERNATIVES

RECORD = Path(__file__).parent / "unseen.jsonl"
REPLICATES = {500: 400, 3000: 400, 20_000: 100}


def grid(sizes, depths=(1, 2, 3)) -> list[suite.Cell]:
    """All cells, the smallest samples first."""
    cells = []
    for n in sizes:
        for depth in depths:
            for name in nulls.UNSEEN:
                domain = nulls.domain_of(nulls.UNSEEN[name], depth)
                chosen = dict.fromkeys(catalogue.default(domain, sees=kind).name for kind in KINDS_OF_ALTERNATIVES)
                cells += [suite.Cell(name, depth, n, e, test) for test in chosen for e in suite.EPSILONS]
    return cells


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0, help="stop after these")
    parser.add_argument("--n", type=int, nargs="+", choices=REPLICATES, default=list(REPLICATES))
    parser.add_argument("--out", type=Path, default=RECORD)
    args = parser.parse_args(arguments)
    cells = grid(args.n)
    print(suite.summary(suite.run(cells, args.out, args.minutes, REPLICATES), cells))
