"""User seconds of fresh processes: the first answer of each command, with an empty folder of programs, and the second.

python -m experiments.benchmarks.first_answers --runs 5             # the table of docs/evidence/speed.md
python -m experiments.benchmarks.first_answers --only default mic
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import numpy as np

RECORDS = 3000
NUMBERS, LEVELS = ("age", "dose", "response"), ("arm", "clinic", "ward", "outcome")
TABLE = ["t.csv", "--schema", "s.toml"]
GIVEN_ONE = [*TABLE, "--x", "dose", "--y", "response", "--given", "age", "--epsilon", "1"]
GIVEN_NONE = [*TABLE, "--x", "dose", "--y", "response", "--epsilon", "1"]
COMMANDS = {
    "default": ["test", *GIVEN_ONE],
    "partial-correlation": ["test", *GIVEN_ONE, "--method", "partial-correlation"],
    "linear-regression": ["test", *GIVEN_ONE, "--method", "linear-regression"],
    "feature-gcm": ["test", *GIVEN_ONE, "--method", "feature-gcm"],
    "quantile-table": ["test", *GIVEN_NONE, "--method", "quantile-table"],
    "kruskal-wallis": ["test", *TABLE, "--x", "dose", "--y", "arm", "--epsilon", "1", "--method", "kruskal-wallis"],
    "mic": ["mic", *GIVEN_NONE],
    "discover": ["discover", *TABLE, "--epsilon", "1", "--columns", ",".join(LEVELS)],
    "describe": ["describe", *TABLE, "--epsilon", "1", "--columns", ",".join(NUMBERS)],
    "plan": ["plan", "--method", "partition-gcm", "--n", "1000", "--epsilon", "1", "--effect", "0.25"],
    "a refusal": ["test", *TABLE, "--x", "dose", "--y", "responce", "--epsilon", "1"],
}
REFUSED = 2  # exit code


def write_table(folder: Path) -> None:
    """Made-up records and their schema."""
    rng = np.random.default_rng(0)
    age = rng.uniform(size=RECORDS)
    dose = np.clip(0.5 * age + 0.2 * rng.normal(size=RECORDS), 0, 1)
    response = np.clip(0.4 * age + 0.3 * dose + 0.2 * rng.normal(size=RECORDS), 0, 1)
    levels = rng.choice(["a", "b", "c"], (RECORDS, len(LEVELS)))
    numbers = np.stack([age, dose, response], axis=1)
    rows = (",".join([*(f"{value:.4f}" for value in row), *codes]) for row, codes in zip(numbers, levels, strict=True))
    (folder / "t.csv").write_text("\n".join([",".join(NUMBERS + LEVELS), *rows]) + "\n")
    kinds = dict.fromkeys(NUMBERS, 'kind = "continuous"\nbounds = [0, 1]')
    kinds |= dict.fromkeys(LEVELS, 'kind = "categorical"\nlevels = ["a", "b", "c"]')
    (folder / "s.toml").write_text("".join(f"[columns.{name}]\n{said}\n" for name, said in kinds.items()))


def seconds(command: Sequence[str], folder: Path, programs: Path) -> float:
    """User seconds of one process. Errors: RuntimeError where it ends otherwise than by an answer or a refusal."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    environment["JAXDP_PROGRAMS"] = str(programs)
    with tempfile.TemporaryDirectory(dir=folder) as out:
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        run = [sys.executable, "-m", "jaxdp", *command, "--out", f"{out}/answer"]
        done = subprocess.run(run, cwd=folder, env=environment, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    if done.returncode not in (0, REFUSED):
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}.")
    return after - before


def measure(command: Sequence[str], folder: Path, runs: int) -> tuple[float, float]:
    """Medians of first and of second answers."""
    pairs = []
    for _ in range(runs):
        with tempfile.TemporaryDirectory(dir=folder) as programs:
            pairs.append([seconds(command, folder, Path(programs)) for _ in range(2)])
    first, second = zip(*pairs, strict=True)
    return median(first), median(second)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.benchmarks.first_answers", description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="processes of each kind, of which the median is shown")
    parser.add_argument("--only", nargs="+", choices=COMMANDS, default=list(COMMANDS))
    args = parser.parse_args()
    print("| | first | second | load |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        write_table(Path(folder))
        for name in args.only:
            first, second = measure(COMMANDS[name], Path(folder), args.runs)
            print(f"| {name} | {first:.1f} | {second:.1f} | {os.getloadavg()[0]:.1f} |", flush=True)


if __name__ == "__main__":
    main()
