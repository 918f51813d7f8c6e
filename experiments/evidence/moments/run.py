"""Skeleton F1 of `moment_pc` on random structural equation models, recorded row by row.

python -m experiments.evidence.moments.run --seeds 6

Models: d columns, each pair an edge with chance 2/(d - 1) in a random order, weights +-(0.4 to 0.9), normal errors of
sd 1, bounds [-8, 8]. linear; tanh (a child follows tanh of 1.5 times its parents, times 1.2); "cut": linear, half of
the columns then cut into two or three equally likely levels; "coded": the same, and children follow the codes.
Epsilon 1e6 shows it without noise.
"""

import argparse
import json
import time
from pathlib import Path

import jax
import numpy as np

from experiments.record import provenance
from jaxdp import discovery
from jaxdp.data.dataset import BINARY, CONTINUOUS, ORDINAL, Column
from jaxdp.data.records import Records

RECORDS, BOUND = 10_000, 8.0
BUDGETS = ((2.0, 0.0), (2.0, 1e-6), (1e6, 0.0))
MODELS = (("linear", 10), ("linear", 20), ("tanh", 10), ("cut", 10), ("coded", 10))
HERE = Path(__file__).parent


def model(kind: str, columns: int, seed: int) -> tuple[Records, np.ndarray]:
    """Records of one random model and its edges, bool (d, d)."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(columns)
    weights = np.zeros((columns, columns))
    for place, parent in enumerate(order):
        for child in order[place + 1 :]:
            if rng.random() < 2.0 / (columns - 1):
                weights[parent, child] = rng.choice([-1.0, 1.0]) * rng.uniform(0.4, 0.9)
    halved = set(rng.permutation(columns)[: columns // 2].tolist()) if kind in ("cut", "coded") else set()
    values, described = np.zeros((RECORDS, columns)), [Column(CONTINUOUS, 0, f"v{v}") for v in range(columns)]
    source = values.copy()
    for v in order:
        parents = 1.2 * np.tanh(1.5 * source) if kind == "tanh" else source
        source[:, v] = parents @ weights[:, v] + rng.normal(size=RECORDS)
        values[:, v] = np.clip(source[:, v] / BOUND, -1.0, 1.0)
        if int(v) in halved:
            levels = int(rng.integers(2, 4))
            codes = np.searchsorted(np.quantile(source[:, v], np.arange(1, levels) / levels), source[:, v])
            values[:, v], described[v] = codes, Column(BINARY if levels == 2 else ORDINAL, levels, f"v{v}")
            source[:, v] = (codes - codes.mean()) / codes.std() if kind == "coded" else source[:, v]
    return Records(values, tuple(described)), weights != 0


def rows(seeds: int):
    """One row for each model, seed and budget."""
    for kind, columns in MODELS:
        for seed in range(seeds):
            records, edges = model(kind, columns, seed)
            for epsilon, delta in BUDGETS:
                started = time.perf_counter()
                key = jax.random.key(1000 + seed)
                graph = discovery.moment_pc(key, records, epsilon=epsilon, delta=delta)
                truth = np.triu(edges | edges.T)
                found = np.triu(graph.skeleton)
                yield {
                    "model": kind,
                    "columns": columns,
                    "n": RECORDS,
                    "seed": seed,
                    "epsilon": epsilon,
                    "delta": delta,
                    "method": graph.method,
                    "f1": 2.0 * int((found & truth).sum()) / max(1, int(found.sum() + truth.sum())),
                    "extra": int((found & ~truth).sum()),
                    "missed": int((truth & ~found).sum()),
                    "seconds": round(time.perf_counter() - started, 2),
                }


def table(path: Path) -> str:
    """Mean F1 by model and budget."""
    made = [json.loads(line) for line in path.read_text().splitlines()]
    lines = ["| model | columns | epsilon | delta | F1 | extra | missed | seeds |", "|" + "---|" * 8]
    for where in dict.fromkeys((r["model"], r["columns"], r["epsilon"], r["delta"]) for r in made):
        mine = [r for r in made if (r["model"], r["columns"], r["epsilon"], r["delta"]) == where]
        f1, extra, missed = (np.mean([r[name] for r in mine]) for name in ("f1", "extra", "missed"))
        lines.append(f"| {' | '.join(f'{v}' for v in where)} | {f1:.3f} | {extra:.2f} | {missed:.2f} | {len(mine)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--out", type=Path, default=HERE)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / "rows.jsonl"
    with path.open("w") as file:
        for row in rows(args.seeds):
            file.write(json.dumps({**row, **provenance()}) + "\n")
            file.flush()
    print(table(path))


if __name__ == "__main__":
    main()
