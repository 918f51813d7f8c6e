"""How far `discover`'s graphs of continuous and mixed columns are from the truth, by the kind of structural model.

python -m experiments.evidence.discovery.structural_models [--columns 10 20] [--runs R]
python -m experiments.evidence.discovery.structural_models --table  # of docs/discovery.md, from the record

Random graphs with 1.2 edges a column (`dense`: 2.5; `hub`: the first column is a parent of most others), weights 0.5 to
1 of either sign, noise of sd 1. What acts on a child is the parent; its hyperbolic tangent (`tanh`); or the square of
the standardised parent over root 2, which is uncorrelated with a symmetric parent (`parabolas`). `heavy tails`: noise
of Student's t with 3 degrees of freedom. `mixed`: two of five columns are cut at a quantile between 0.3 and 0.7 and
have two levels. Bounds at four sds; `jaxdp.discover` of a table with a schema, at its defaults. Seeds that nothing was
tuned on. Epsilon 1000 stands for the same search without noise.
"""

import argparse
import itertools
import json
from pathlib import Path

import jax
import numpy as np
import pandas as pd

import jaxdp
from experiments.record import fill, provenance
from jaxdp.discovery import cpdag_of, shd

RECORD = Path(__file__).with_suffix(".jsonl")
PAGE = Path(__file__).parents[3] / "docs" / "discovery.md"
LINKS = {"tanh": np.tanh, "parabolas": lambda a: ((a - a.mean()) / a.std()) ** 2 / np.sqrt(2.0)}
EDGES = {"dense": 2.5}
MODELS = ("lines", "tanh", "parabolas", "hub", "dense", "heavy tails", "mixed")
RECORDS, EPSILONS, FIRST_SEED, RUNS = (2000, 10_000), (1.0, 4.0, 1000.0), 7000, 5


def graph(model: str, columns: int, rng) -> np.ndarray:
    """The adjacency matrix of a random graph."""
    dag = np.zeros((columns, columns), bool)
    if model == "hub":
        for j in range(1, columns):
            dag[0 if rng.random() < 0.6 else rng.integers(0, j), j] = True
        return dag
    pairs = list(itertools.combinations(range(columns), 2))
    for place in rng.choice(len(pairs), round(EDGES.get(model, 1.2) * columns), replace=False):
        dag[pairs[place]] = True
    return dag


def drawn(model: str, columns: int, n: int, seed: int):
    """A random graph, records of it as a table, and its schema."""
    rng = np.random.default_rng(seed)
    dag, values = graph(model, columns, rng), np.zeros((n, columns))
    table, described = pd.DataFrame(), {}
    for j in range(columns):
        values[:, j] = rng.standard_t(3, size=n) / np.sqrt(3.0) if model == "heavy tails" else rng.normal(size=n)
        for i in np.flatnonzero(dag[:, j]):
            link = LINKS.get(model, lambda a: a)
            values[:, j] += rng.choice([-1.0, 1.0]) * rng.uniform(0.5, 1.0) * link(values[:, i])
        name = f"c{j}"
        if model == "mixed" and rng.random() < 0.4:
            values[:, j] = 2.0 * (values[:, j] > np.quantile(values[:, j], rng.uniform(0.3, 0.7))) - 1.0
            table[name] = np.where(values[:, j] > 0, "yes", "no")
            described[name] = {"kind": "binary", "levels": ["no", "yes"]}
        else:
            limit = float(np.ceil(4.0 * values[:, j].std()))
            table[name] = values[:, j]
            described[name] = {"kind": "continuous", "bounds": [-limit, limit]}
    return dag, table, {"columns": described}


def measured(model: str, columns: int, n: int, epsilon: float, runs: int) -> dict:
    """The line of the record: means over the runs; arrows are those of edges that exist."""
    rows, methods = [], set()
    for seed in range(FIRST_SEED, FIRST_SEED + runs):
        dag, table, schema = drawn(model, columns, n, seed)
        found_graph = jaxdp.discover(table, schema=schema, epsilon=epsilon, key=jax.random.key(seed))
        methods.add(found_graph.method)
        found, true = np.asarray(found_graph.cpdag), cpdag_of(dag)
        edges, truth = (np.triu(one | one.T) for one in (found, true))
        right = int((edges & truth).sum())
        arrows = found & ~found.T & (true | true.T)
        reversed_ = arrows & dag.T
        rows.append(
            {
                "shd": shd(found, true),
                "empty": int(truth.sum()),
                "edges": int(edges.sum()),
                "false": int(edges.sum()) - right,
                "f1": 2.0 * right / (edges.sum() + truth.sum()),
                "arrows": int(arrows.sum()),
                "reversed": int(reversed_.sum()),
            }
        )
    head = {"model": model, "columns": columns, "n": n, "epsilon": epsilon, "runs": runs, "methods": sorted(methods)}
    return head | {name: round(float(np.mean([row[name] for row in rows])), 3) for name in rows[0]}


def table(lines: list[dict]) -> str:
    """One row per model, columns and records: at each budget distance, F1, false edges, arrows and reversed ones."""
    budgets = [f"epsilon {epsilon:g}" if epsilon < 100.0 else "without noise" for epsilon in EPSILONS]
    found = [f"| model | columns | n | no edges | {' | '.join(budgets)} |", "|---|---|---|---|" + "---|" * len(budgets)]
    for columns, n, model in itertools.product(sorted({line["columns"] for line in lines}), RECORDS, MODELS):
        cells = {
            line["epsilon"]: line
            for line in lines
            if (line["columns"], line["n"], line["model"]) == (columns, n, model)
        }
        if set(cells) == set(EPSILONS):
            told = [
                f"{one['shd']:.1f}; {one['f1']:.2f}; {one['false']:.1f}; {one['arrows']:.1f} ({one['reversed']:.1f})"
                for one in (cells[epsilon] for epsilon in EPSILONS)
            ]
            found.append(f"| {model} | {columns} | {n} | {cells[1.0]['empty']:.1f} | {' | '.join(told)} |")
    return "\n".join(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--columns", type=int, nargs="+", default=[10, 20])
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--table", action="store_true")
    args = parser.parse_args()
    lines = [json.loads(line) for line in RECORD.read_text().splitlines()] if RECORD.exists() else []
    if args.table:
        fill(PAGE, "structural-models", table(lines))
        return
    done = {(line["model"], line["columns"], line["n"], line["epsilon"]) for line in lines}
    for cell in itertools.product(MODELS, args.columns, RECORDS, EPSILONS):
        if cell in done:
            continue
        line = measured(*cell, args.runs) | provenance()
        with RECORD.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        print(line)


if __name__ == "__main__":
    main()
