"""Edges by chance: how many are reported among independent columns, and how many sure ones are wrong.

python -m experiments.evidence.discovery.chance        # writes chance.json

Networks and models of seeds that are used nowhere else.
"""

import json
from pathlib import Path

import jax
import numpy as np

from experiments.evidence.discovery.networks import RECIPES, made
from experiments.evidence.moments.run import model
from experiments.record import provenance
from jaxdp import discovery
from jaxdp.simulate.designs.networks import sample_network

HERE = Path(__file__).parent
RUNS, FIRST_SEED = 20, 300
BUDGETS = ((1.0, 0.0), (1.0, 1e-6), (4.0, 1e-6))
# levels of the columns (0: continuous), number of columns, number of records
EMPTY = (
    ((2, 3), 10, 10_000),
    ((2, 3, 4), 20, 10_000),
    ((2, 3, 4), 20, 100_000),
    ((2,), 40, 100_000),
    ((0,), 8, 2000),
    ((0,), 15, 10_000),
    ((0, 2, 3), 10, 10_000),
)


def independent(levels, columns: int, n: int, seed: int) -> tuple[np.ndarray, list[int]]:
    """Independent columns with skewed levels, or normal within [-1, 1], and their levels."""
    generator = np.random.default_rng([seed, columns, n])
    chosen = generator.choice(levels, size=columns).tolist()
    chosen[:1] = [0] if 0 in levels else chosen[:1]
    values = [
        generator.choice(count, size=n, p=0.98 * generator.dirichlet(np.ones(count)) + 0.02 / count)
        if count
        else np.clip(generator.normal(size=n) / 4.0, -1.0, 1.0)
        for count in chosen
    ]
    return np.stack(values, axis=1), chosen


def empty_graphs():
    """For each kind of table and budget: how many graphs have an edge, and edges per graph."""
    for levels, columns, n in EMPTY:
        for epsilon, delta in BUDGETS:
            counts, methods = [], set()
            for seed in range(FIRST_SEED, FIRST_SEED + RUNS):
                values, chosen = independent(levels, columns, n, seed)
                graph = discovery.discover(jax.random.key(seed), values, epsilon=epsilon, delta=delta, levels=chosen)
                counts.append(len(graph.edges))
                methods.add(graph.method)
            row = {"levels": levels, "columns": columns, "n": n, "epsilon": epsilon, "delta": delta, "runs": RUNS}
            row |= {"methods": sorted(methods), "with_edges": int(np.sum(np.array(counts) > 0))}
            print(row, flush=True)
            yield row | {"edges_per_graph": float(np.mean(counts))}


def _judged(graph, truth) -> list[tuple[float, bool]]:
    pairs = np.argwhere(np.triu(graph.skeleton))
    return [(float(graph.q_values[i, j]), bool(truth[i, j] | truth[j, i])) for i, j in pairs]


def calibration():
    """For each kind of table: edges by q-value, and the share of them that is no edge of the truth."""
    for n in (10_000, 100_000):
        found = []
        for name in ("12 of 2-3", "20 of 2-4", "40 of 2"):
            for seed in range(FIRST_SEED, FIRST_SEED + 4):
                net = made(RECIPES[name], seed)
                records = sample_network(jax.random.key(seed), net, n)
                for epsilon, delta in BUDGETS:
                    graph = discovery.discover(jax.random.key(seed), records, epsilon=epsilon, delta=delta)
                    found += _judged(graph, net.dag)
        yield _binned("coded", n, found)
    found = []
    for kind in ("linear", "tanh", "coded"):
        for seed in range(FIRST_SEED, FIRST_SEED + 4):
            records, edges = model(kind, 10, seed)
            for epsilon, delta in BUDGETS:
                graph = discovery.discover(jax.random.key(seed), records, epsilon=epsilon, delta=delta)
                found += _judged(graph, edges)
    yield _binned("continuous and mixed", records.num_records, found)


def _binned(kind: str, n: int, found: list[tuple[float, bool]]) -> dict:
    q_values, right = (np.array(part) for part in zip(*found, strict=True))
    row: dict = {"kind": kind, "n": n}
    for low, high in ((0.01, 0.05), (0.001, 0.01), (-1.0, 0.001)):
        inside = (q_values > low) & (q_values <= high)
        row[f"to {high:g}"] = {"edges": int(inside.sum()), "wrong": int((inside & ~right).sum())}
    print(row, flush=True)
    return row


def main() -> None:
    content = {"empty": list(empty_graphs()), "calibration": list(calibration()), **provenance()}
    (HERE / "chance.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
