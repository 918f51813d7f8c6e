"""Networks of few coded columns: one noisy table or max-min selection, by the distance of the graph to the truth.

python -m experiments.evidence.discovery.small [--method table_pc]   # adds rows to small.jsonl
python -m experiments.evidence.discovery.small --independent         # edges by chance: small_independent.jsonl
python -m experiments.evidence.discovery.small --table               # the table of docs/discovery.md#small

Random networks by recipe, seeds 5000 to 5015; of each search the mean distance, and of its arrows how many are wrong
(reversed, or where the truth has an open edge or none) beside how many its note expects to be.
"""

from __future__ import annotations

import itertools
import pathlib

import jax
import numpy as np

from experiments import record
from experiments.evidence.discovery.networks import Recipe, made
from jaxdp import discovery
from jaxdp.discovery import cpdag_of, shd, skeleton_f1
from jaxdp.discovery.spec import Setting, forecasts
from jaxdp.simulate.designs.networks import sample_network

FILE, PAGE = pathlib.Path(__file__).with_name("small.jsonl"), pathlib.Path("docs/discovery.md")
INDEPENDENT = pathlib.Path(__file__).with_name("small_independent.jsonl")
RUNS, FIRST_SEED, TABLES = 16, 5000, 100
LEVELS, CONCENTRATIONS = ((3, 3, 3, 3), (4, 3, 2, 3, 2), (5, 5, 5), (8, 2, 4), (3,) * 6), (5.0, 0.5)
EMPTY = ((1000, 1.0), (5000, 0.5), (20_000, 2.0), (50_000, 8.0))
RECIPES = {
    "4 of 2": Recipe(4, 1.5, (2,), 0.8),
    "5 of 2-3": Recipe(5, 2.0, (2, 3), 0.8),
    "6 of 2": Recipe(6, 2.0, (2,), 0.8),
    "7 of 2-3": Recipe(7, 2.0, (2, 3), 0.8),
    "8 of 2": Recipe(8, 2.2, (2,), 0.5),
    "8 of 2-3": Recipe(8, 2.5, (2, 3), 0.5),
    "10 of 2": Recipe(10, 2.5, (2,), 0.5),
}
SETTINGS = ((2000, 1.0), (10_000, 0.5), (10_000, 1.0), (10_000, 4.0), (100_000, 0.3), (100_000, 1.0), (100_000, 4.0))
SEARCHES = ("table_pc", "max_min_pc")


def measured(kind: str, n: int, epsilon: float, method: str) -> dict:
    """One row: means over the networks of a recipe."""
    found, arrows, wrong, expected, chosen = [], 0, 0, 0.0, 0
    for run in range(RUNS):
        net = made(RECIPES[kind], FIRST_SEED + run)
        records, true = sample_network(jax.random.key(run), net, n), cpdag_of(net.dag)
        graph = getattr(discovery, method)(jax.random.key(run + 100), records, epsilon=epsilon)
        drawn = graph.cpdag & ~graph.cpdag.T
        arrows, wrong = arrows + int(drawn.sum()), wrong + int((drawn & ~(true & ~true.T)).sum())
        if "expected to be wrong" in graph.note:
            expected += float((1.0 - graph.arrow_shares[drawn]).sum())
        found.append((shd(graph, net), skeleton_f1(graph, net), int(np.triu(true | true.T).sum())))
        chosen += forecasts(Setting(tuple(records.levels), n, epsilon))[0].method == method
    distance, f1, edges = np.mean(found, axis=0).round(3).tolist()
    row = {"kind": kind, "n": n, "epsilon": epsilon, "method": method, "distance": distance, "f1": f1, "edges": edges}
    return row | {"arrows": arrows, "wrong": wrong, "expected": round(expected, 1), "chosen": chosen, "runs": RUNS}


def independent(levels: tuple[int, ...], concentration: float, n: int, epsilon: float) -> dict:
    """One row: in how many of 100 tables of independent columns `table_pc` draws an edge."""
    generator, graphs = np.random.default_rng([n, len(levels), round(10 * concentration)]), 0
    for run in range(TABLES):
        shares = [generator.dirichlet(np.full(count, concentration)) for count in levels]
        columns = [generator.choice(count, size=n, p=share) for count, share in zip(levels, shares, strict=True)]
        data = np.stack(columns, axis=1).astype(np.int32)
        graphs += bool(discovery.table_pc(jax.random.key(run), data, levels=levels, epsilon=epsilon).skeleton.any())
    row = {"levels": list(levels), "concentration": concentration, "n": n, "epsilon": epsilon}
    return row | {"with_edges": graphs, "tables": TABLES}


def table() -> str:
    """Markdown: distances of both searches, and of the one that is chosen."""
    rows: dict[tuple, list[dict]] = {}
    for row in record.rows(FILE):
        rows.setdefault((row["kind"], row["n"], row["epsilon"], row["method"]), []).append(row)
    lines = ["| columns | edges | " + " | ".join(f"{n}, {epsilon:g}" for n, epsilon in SETTINGS) + " |"]
    lines.append("|---" * (len(SETTINGS) + 2) + "|")
    for kind in RECIPES:
        cells = [[rows.get((kind, *setting, method), []) for method in SEARCHES] for setting in SETTINGS]
        if all(one and other for one, other in cells):
            edges = cells[0][0][-1]["edges"]
            lines.append(f"| {kind} | {edges:.1f} | " + " | ".join(_cell(*pair) for pair in cells) + " |")
    return "\n".join(lines) + "\n"


def _cell(of_table: list[dict], of_draws: list[dict]) -> str:
    before = f"{of_table[0]['distance']:.1f} → " if len(of_table) > 1 else ""
    told = [f"{before}{of_table[-1]['distance']:.1f}", f"{of_draws[-1]['distance']:.1f}"]
    first = 0 if 2 * of_table[-1]["chosen"] > of_table[-1]["runs"] else 1
    told[first] = f"**{told[first]}**"
    return " / ".join(told)


def main() -> None:
    parser = record.command_line(__doc__)
    parser.add_argument("--method", nargs="+", choices=SEARCHES, default=SEARCHES)
    parser.add_argument("--independent", action="store_true")
    asked = parser.parse_args()
    if asked.independent:
        cells = itertools.product(LEVELS, CONCENTRATIONS, EMPTY)
        return record.append(INDEPENDENT, (independent(levels, by, *setting) for levels, by, setting in cells))
    if asked.table:
        return record.fill(PAGE, "small", table())
    todo = ((kind, *setting, method) for kind in RECIPES for setting in SETTINGS for method in asked.method)
    return record.append(FILE, (measured(*cell) for cell in todo))


if __name__ == "__main__":
    main()
