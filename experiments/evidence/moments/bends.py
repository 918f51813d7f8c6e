"""Skeleton F1 of `moment_pc` and `neighbour_pc` on random models whose relations bend, recorded row by row.

python -m experiments.evidence.moments.bends --seeds 3 [--table]

Models: 1.2 edges per column in a random order, weights +-(0.5 to 1.5), a child follows f of its standardised parents
plus normal errors of sd 1; f is the line, tanh(2 x), x^2 - 1 or sin(2 x). Bounds are one unit beyond the data.
"""

import collections
import time
from pathlib import Path

import jax
import numpy as np

from experiments.record import append, command_line, markdown, rows
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
    found = collections.defaultdict(list)
    for row in rows(ROWS):
        found[row["model"], row["columns"], row["method"]].append(row["f1"])
    lines = []
    for place in dict.fromkeys(key[:2] for key in found):
        values = [found[*place, name] for name in METHODS]
        lines.append([*place, *(f"{np.mean(of):.2f} ({min(of):.2f} to {max(of):.2f})" for of in values)])
    return markdown(["model", "columns", *(f"`{name}`" for name in METHODS)], lines)


def main() -> None:
    """Appends what is missing."""
    parser = command_line(__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    if args.table:
        return print(table())
    done = {(row["model"], row["columns"], row["seed"], row["method"]) for row in rows(ROWS)}
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
                    append(ROWS, [row | {"processor_seconds": round(time.process_time() - started, 2)}])


if __name__ == "__main__":
    main()
