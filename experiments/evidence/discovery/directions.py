"""Graphs with arrows on networks of coded columns, at every budget: distance to the true equivalence class.

python -m experiments.evidence.discovery.directions [--first S] [--runs R]  # writes directions.json
python -m experiments.evidence.discovery.directions --again                 # only the searches with directions anew
python -m experiments.evidence.discovery.directions --again delta           # of these, only those with a delta
python -m experiments.evidence.discovery.directions --table                 # the tables of the pages

Twenty networks of each recipe and size, of seeds that nothing was tuned on (tuning used 700 to 708 and 800 to 807),
`max_min_pc` at its defaults beside the same search with directions=0. PC without privacy: chi-squared at level 0.01, on
the same data.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import json
import pathlib

import jax
import numpy as np

from experiments import record
from experiments.evidence.discovery.networks import Recipe, made
from jaxdp import discovery
from jaxdp.discovery import cpdag_f1, cpdag_of, shd, skeleton_f1
from jaxdp.simulate.designs.networks import sample_network

FILE = pathlib.Path(__file__).with_name("directions.json")
FIRST_SEED, RUNS = 9000, 20
RECIPES = {
    "10 of 2-4": Recipe(10, 3.0, (2, 3, 4)),
    "20 of 2-4": Recipe(20, 3.0, (2, 3, 4)),
    "40 of 2-4": Recipe(40, 2.6, (2, 3, 4)),
    "60 of 2-4": Recipe(60, 2.4, (2, 3, 4)),
}
BUDGETS = ((1.0, 0.0), (3.0, 0.0), (1.0, 1e-6))
EDGES_OF_PROBABILITY = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99, 1.01)


def measured(name: str, n: int, seed: int, anew: bool = False, budgets=BUDGETS) -> list[dict]:
    """One network: rows of the budgets, and of PC without privacy; anew: only those with directions."""
    net = made(RECIPES[name], seed)
    records = sample_network(jax.random.key(seed), net, n)
    true = cpdag_of(net.dag)
    facts = {"network": name, "n": n, "seed": seed, "empty": int(np.triu(true | true.T).sum())}
    rows = []
    for epsilon, delta in budgets:
        for directions in (None,) if anew else (None, 0.0):
            graph = discovery.max_min_pc(
                jax.random.key(seed), records, epsilon=epsilon, delta=delta, directions=directions
            )
            rows.append({**facts, "epsilon": epsilon, "delta": delta, "directions": directions, **close(graph, net)})
            if graph.arrow_shares is not None:
                rows[-1]["arrows"] = arrows(graph, true)
    if anew:
        return rows
    reference = discovery.pc(jax.random.key(seed), records, test="chi2", max_order=2)
    return [*rows, {**facts, "epsilon": None, **close(reference, net)}]


def close(graph, net) -> dict:
    """How close a graph is, in three measures."""
    found = {"skeleton_f1": skeleton_f1(graph, net), "cpdag_f1": cpdag_f1(graph, net)}
    return {name: round(value, 4) for name, value in found.items()} | {"shd": shd(graph, net)}


def arrows(graph, true) -> list[list]:
    """Of each arrow drawn: its probability, whether it is right, whether its edge is."""
    drawn = np.argwhere(graph.cpdag & ~graph.cpdag.T)
    return [
        [round(float(graph.arrow_shares[i, j]), 4), bool(true[i, j] and not true[j, i]), bool(true[i, j] or true[j, i])]
        for i, j in drawn
    ]


def table(rows: list[dict]) -> str:
    """Markdown: mean SHD and skeleton F1 by network, n and budget."""
    cells = collections.defaultdict(list)
    for row in rows:
        cells[row["network"], row["n"], row["epsilon"], row.get("delta"), row.get("directions")].append(row)
    lines = [
        "| columns | n | empty graph | PC, not private | epsilon 1 | epsilon 3 | (1, 1e-6) |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, n in dict.fromkeys((row["network"], row["n"]) for row in rows):

        def describe(*budget, name=name, n=n):
            found = cells[name, n, *budget]
            return f"{mean(found, 'shd'):.1f} ({mean(found, 'skeleton_f1'):.2f})"

        private = [f"{describe(*budget, None)}, {describe(*budget, 0.0)}" for budget in BUDGETS]
        empty = mean(cells[name, n, None, None, None], "empty")
        lines.append(f"| {name} | {n} | {empty:.1f} | {describe(None, None, None)} | {' | '.join(private)} |")
    return "\n".join(lines)


def mean(rows: list[dict], name: str) -> float:
    """The mean of one measure."""
    return float(np.mean([row[name] for row in rows]))


def calibration(rows: list[dict]) -> str:
    """Markdown: arrows by their probability, and how many are right."""
    every = np.array([arrow for row in rows for arrow in row.get("arrows", ())], float)
    lines = [
        "| probability | arrows | mean probability | right, of true edges | right, of all |",
        "|---|---|---|---|---|",
    ]
    for low, high in itertools.pairwise(EDGES_OF_PROBABILITY):
        some = every[(every[:, 0] >= low) & (every[:, 0] < high)]
        true = some[some[:, 2] == 1]
        lines.append(
            f"| {low:g} to {min(high, 1):g} | {len(some)} | {some[:, 0].mean():.3f} | {true[:, 1].mean():.3f} | "
            f"{some[:, 1].mean():.3f} |"
        )
    return "\n".join(lines)


def write(rows: list[dict], **others: str) -> None:
    """Writes the record, in the order of the recipes. others: what the facts say of rows of an earlier run."""
    order = sorted(rows, key=lambda row: (list(RECIPES).index(row["network"]), row["n"], row["seed"]))
    facts = json.dumps(
        {"command": "python -m experiments.evidence.discovery.directions", **record.provenance(), **others}
    )
    FILE.write_text('{"facts": ' + facts + ', "rows": [\n' + ",\n".join(map(json.dumps, order)) + "\n]}\n")


def main() -> None:
    """Measures what is missing from the record, or prints its tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=FIRST_SEED)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument(
        "--again", nargs="?", const="all", choices=("all", "delta"), help="replace rows with directions"
    )
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    rows = json.loads(FILE.read_text())["rows"] if FILE.exists() else []
    if arguments.again:
        budgets = BUDGETS if arguments.again == "all" else [budget for budget in BUDGETS if budget[1]]
        replaced = [{"epsilon": epsilon, "delta": delta, "directions": None} for epsilon, delta in budgets]
        kept = [row for row in rows if not any(one.items() <= row.items() for one in replaced)]
        for place in dict.fromkeys((row["network"], row["n"], row["seed"]) for row in rows):
            kept += measured(*place, anew=True, budgets=budgets)
            print(*place, flush=True)
        facts = json.loads(FILE.read_text())["facts"]
        others = {"rows_without_directions": facts.get("rows_without_directions", facts["commit"])}
        write(kept, **others, **({} if arguments.again == "all" else {"rows_of_pure_epsilon": facts["commit"]}))
        rows = json.loads(FILE.read_text())["rows"]
    elif not arguments.table:
        done = {(row["network"], row["n"], row["seed"]) for row in rows}
        for name in RECIPES:
            for n in (10_000, 100_000):
                for seed in range(arguments.first, arguments.first + arguments.runs):
                    if (name, n, seed) not in done:
                        rows += measured(name, n, seed)
                write(rows)
                print(name, n, flush=True)
    print(table(rows))
    print(calibration(rows))


if __name__ == "__main__":
    main()
