"""Skeleton F1 of `moment_pc` and `neighbour_pc` on random models whose relations bend, recorded row by row.

python -m experiments.evidence.moments.bends --seeds 3 [--table]

Models: 1.2 edges per column in a random order, weights +-(0.5 to 1.5), a child follows f of its standardised parents
plus normal errors of sd 1; f is the line, tanh(2 x), x^2 - 1 or sin(2 x). Bounds are one unit beyond the data.
"""

import json
import time
from pathlib import Path

import jax
import numpy as np

from experiments.record import command_line, provenance
from jaxdp import discovery
from jaxdp.data.records import Records, as_records

RECORDS, EPSILON = 10_000, 2.0
SHAPES = {
    "linear": lambda x: x,
    "tanh": lambda x: np.tanh(2 * x),
    "quadratic": lambda x: x**2 - 1,
    "sine": lambda x: np.sin(2 * x),
}
METHODS = ("moment_pc", "neighbour_pc")
ROWS = Path(__file__).parent / "bends.jsonl"


def model(shape: str, columns: int, seed: int) -> tuple[Records, np.ndarray]:
    """Records of one random model and its edges, bool (d, d)."""
    rng = np.random.default_rng([seed, columns])
    pairs = [(i, j) for j in range(columns) for i in range(j)]
    edges = [pairs[k] for k in rng.choice(len(pairs), round(1.2 * columns), replace=False)]
    weights = {edge: rng.uniform(0.5, 1.5) * rng.choice([-1, 1]) for edge in edges}
    values = np.zeros((RECORDS, columns))
    for child in range(columns):
        values[:, child] = rng.normal(size=RECORDS)
        for (parent, other), weight in weights.items():
            if other == child:
                cause = values[:, parent]
                values[:, child] += weight * SHAPES[shape]((cause - cause.mean()) / cause.std())
    place = rng.permutation(columns)
    truth = np.zeros((columns, columns), bool)
    for parent, child in edges:
        truth[place[parent], place[child]] = True
    shuffled = np.empty_like(values)
    shuffled[:, place] = values
    low, high = shuffled.min(0) - 1, shuffled.max(0) + 1
    scaled = 2 * (shuffled - low) / (high - low) - 1
    return as_records(scaled, (0,) * columns, tuple(f"v{j}" for j in range(columns))), truth


def table() -> str:
    """Means over the seeds, a line for each model."""
    rows = [json.loads(line) for line in ROWS.read_text().splitlines()]
    lines = ["| model | columns | " + " | ".join(f"`{name}`" for name in METHODS) + " |", "|---|---|---|---|"]
    for shape, columns in dict.fromkeys((row["model"], row["columns"]) for row in rows):
        found = [
            [row["f1"] for row in rows if (row["model"], row["columns"], row["method"]) == (shape, columns, name)]
            for name in METHODS
        ]
        cells = " | ".join(f"{np.mean(values):.2f} ({min(values):.2f} to {max(values):.2f})" for values in found)
        lines.append(f"| {shape} | {columns} | {cells} |")
    return "\n".join(lines)


def main() -> None:
    """Appends what is missing."""
    parser = command_line(__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    if args.table:
        return print(table())
    known = [json.loads(line) for line in ROWS.read_text().splitlines()] if ROWS.exists() else []
    done = {(row["model"], row["columns"], row["seed"], row["method"]) for row in known}
    for columns in (10, 20):
        for shape in SHAPES:
            for seed in range(args.seeds):
                records, truth = model(shape, columns, seed)
                for method in METHODS:
                    if (shape, columns, seed, method) in done:
                        continue
                    started = time.process_time()
                    key = jax.random.key(seed)
                    graph = discovery.discover(key, records, epsilon=EPSILON, method=method)
                    row = {"model": shape, "columns": columns, "n": RECORDS, "seed": seed, "epsilon": EPSILON}
                    row |= {"method": method, "f1": round(float(discovery.skeleton_f1(graph, truth)), 3)}
                    row |= {"processor_seconds": round(time.process_time() - started, 2), **provenance()}
                    with ROWS.open("a") as file:
                        file.write(json.dumps(row) + "\n")
                    print(row["model"], columns, seed, method, row["f1"], flush=True)


if __name__ == "__main__":
    main()
