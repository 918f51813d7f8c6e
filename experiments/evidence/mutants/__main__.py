"""Changes every number that privacy rests on by a tenth, drops every key split, and lists what no test sees.

    scripts/mutate                      all mutants, going on with experiments/evidence/mutants/record.csv
    scripts/mutate --quick              a dozen, spread over the package
    scripts/mutate --only sparse_vector --list

Exit code 1 if a mutant survives without a reason in experiments/evidence/mutants/reasons.csv.
"""

import argparse
import csv
import functools
import re
import sys
from pathlib import Path

from experiments.evidence.mutants import run
from experiments.evidence.mutants.find import Mutant, find

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
QUICK = 12


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="REGEX", help="mutants whose file, owner, name or kind matches")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} of them, spread over the package")
    parser.add_argument("--most", type=int, metavar="N", help="stop after N mutants")
    parser.add_argument("--list", action="store_true", help="show the mutants and run nothing")
    parser.add_argument("--seconds", type=float, default=300.0, metavar="S", help="limit of one round of tests")
    parser.add_argument("--record", type=Path, default=HERE / "record.csv", metavar="FILE", help="rows, appended")
    args = parser.parse_args(argv)
    choose = functools.partial(chosen, args.only, args.quick, args.most)
    if args.list:
        print("\n".join(f"{mutant.kind:8s} {mutant.label}" for mutant in choose(find(ROOT))))
        return 0
    run.run(ROOT, choose, args.record, args.seconds)
    return report(args.record)


def chosen(only: str, quick: bool, most: int | None, mutants: list[Mutant]) -> list[Mutant]:
    """Those that match, in the order to run them."""
    mutants = [mutant for mutant in mutants if re.search(only, f"{mutant.kind} {mutant.label}")]
    return (spread(mutants, QUICK) if quick else by_weight(mutants))[:most]


def by_weight(mutants: list[Mutant]) -> list[Mutant]:
    """Bounds, keys and shares first; then numbers of functions by their name; then the rest. Files stay together."""

    def weight(mutant: Mutant) -> int:
        if mutant.kind == "key" or re.search("L1|L2|SENSITIV|BOUND|SHARE|COVARIANCE|VARIANCE", mutant.name):
            return 0
        return 1 if mutant.kind == "literal" and mutant.path.split("/")[1] in ("mechanisms", "independence") else 2

    return sorted(mutants, key=weight)


def spread(mutants: list[Mutant], count: int) -> list[Mutant]:
    """So many at equal distances."""
    return mutants[:: max(1, len(mutants) // count)][:count]


def report(record: Path) -> int:
    """Prints the counts and the survivors without a reason; 1 if there are any."""
    rows = run.read(record)
    told = reasons()
    open_rows = [row for row in rows if row["status"] != run.KILLED and not reason_of(row, told)]
    killed = sum(row["status"] == run.KILLED for row in rows)
    print(
        f"{len(rows)} mutants: {killed} killed, {len(rows) - killed - len(open_rows)} harmless, {len(open_rows)} open"
    )
    for row in open_rows:
        scope = f"{row['owner']}." if row["owner"] else ""
        print(f"{row['status']}: {row['path']}:{row['line']} {scope}{row['name']} {row['old']} -> {row['new']}")
    return int(bool(open_rows))


def reasons() -> list[dict]:
    """Rows of reasons.csv: why a change is harmless. path, name, old, new are regular expressions of whole fields."""
    with (HERE / "reasons.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def reason_of(row: dict, told: list[dict]) -> str:
    """The stated reason for a row, or ""."""
    for entry in told:
        if all(re.fullmatch(entry[name], row[name]) for name in ("path", "name", "old", "new")):
            return entry["reason"]
    return ""


if __name__ == "__main__":
    sys.exit(main())
