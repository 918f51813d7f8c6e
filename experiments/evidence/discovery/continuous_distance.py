"""How far graphs of continuous columns are from the truth, beside a graph without edges: by columns, n and epsilon.

python -m experiments.evidence.discovery.continuous_distance [--first S] [--runs R]  # adds lines to the record
python -m experiments.evidence.discovery.continuous_distance --table                 # the table of docs/discovery.md

Random structural models, 1.25 edges a column, weights 0.5 to 1 of either sign on the parent or on its hyperbolic
tangent, normal noise of sd 1; columns by their sds, bounds at four of them. `discover`'s default, at its defaults.
A line: the mean distances over the runs, and the weakest line that the search finds (`error` of its spec).
"""

from __future__ import annotations

import itertools
from pathlib import Path

import jax
import numpy as np

from experiments.record import append, command_line, fill, markdown, rows
from jaxdp import discovery
from jaxdp.data.columns import Column
from jaxdp.discovery import cpdag_of, shd
from jaxdp.discovery.choose import setting_of

RECORD = Path(__file__).with_suffix(".jsonl")
PAGE = Path(__file__).parents[3] / "docs" / "discovery.md"
SIZES, RECORDS, EPSILONS = (8, 15, 25), (2000, 8000), (0.5, 1.0, 2.0, 4.0)
MODELS = {"lines": lambda values: values, "tanh": np.tanh}
FIRST_SEED, RUNS = 31_000, 4
BANDS = (0.0, 0.018, 0.03, 0.048, 0.08, 1.01)


def drawn(model: str, columns: int, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A random graph, as an adjacency matrix, and records of it on [-1, 1]."""
    rng = np.random.default_rng(seed)
    pairs = list(itertools.combinations(range(columns), 2))
    dag, values = np.zeros((columns, columns), bool), np.zeros((n, columns))
    for place in rng.choice(len(pairs), round(1.25 * columns), replace=False):
        dag[pairs[place]] = True
    for j in range(columns):
        values[:, j] = rng.normal(size=n)
        for i in np.flatnonzero(dag[:, j]):
            values[:, j] += rng.choice([-1.0, 1.0]) * rng.uniform(0.5, 1.0) * MODELS[model](values[:, i])
    return dag, np.clip((values - values.mean(0)) / (4.0 * values.std(0)), -1.0, 1.0)


def measured(model: str, columns: int, n: int, epsilon: float, first: int, runs: int) -> dict:
    """The line of the record."""
    distances, empties, edges, right = [], [], 0, 0
    for seed in range(first, first + runs):
        dag, values = drawn(model, columns, n, seed)
        graph = discovery.neighbour_pc(jax.random.key(seed), values, epsilon=epsilon, levels=(0,) * columns)
        true = cpdag_of(dag)
        found, lines = (np.triu(one | one.T) for one in (np.asarray(graph.cpdag), true))
        distances.append(shd(graph.cpdag, true))
        empties.append(int(lines.sum()))
        edges, right = edges + int(found.sum()), right + int((found & lines).sum())
    setting = setting_of([Column()] * columns, n, epsilon, 0.0, False)
    return {
        "model": model,
        "columns": columns,
        "n": n,
        "epsilon": epsilon,
        "runs": runs,
        "first": first,
        "shd": float(np.mean(distances)),
        "empty": float(np.mean(empties)),
        "edges": edges / runs,
        "false": (edges - right) / runs,
        "weakest": round(float(discovery.neighbour_pc.spec.error(setting)), 4),
    }


def table(lines: list[dict]) -> str:
    """By the weakest line that is found: distance beside that of no edges, edges drawn and false ones."""
    heads = ("weakest line found (share of records)", "settings", "distance / that of no edges", "edges", "false ones")
    found = []
    for low, high in itertools.pairwise(BANDS):
        some = [line for line in lines if low <= line["weakest"] < high]
        if some:
            ratio = sum(line["shd"] for line in some) / sum(line["empty"] for line in some)
            edges, false = (sum(line[name] for line in some) / len(some) for name in ("edges", "false"))
            cells = f"{ratio:.2f}", f"{edges:.1f}", f"{false:.2f}"
            found.append([f"{low:g} to {min(high, 1.0):g}", len(some), *cells])
    return markdown(heads, found)


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--first", type=int, default=FIRST_SEED)
    parser.add_argument("--runs", type=int, default=RUNS)
    args = parser.parse_args()
    if args.table:
        return fill(PAGE, "continuous-distance", table(rows(RECORD)))
    for columns, n, model, epsilon in itertools.product(SIZES, RECORDS, MODELS, EPSILONS):
        append(RECORD, [measured(model, columns, n, epsilon, args.first, args.runs)])


if __name__ == "__main__":
    main()
