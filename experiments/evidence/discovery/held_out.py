"""What q-values of edges and shares of arrows say about networks on which nothing was chosen.

python -m experiments.evidence.discovery.held_out --bif FOLDER   # writes held_out.json; alarm.bif, insurance.bif, ...
python -m experiments.evidence.discovery.held_out --table        # the tables of the page

Networks of the literature (the .bif files of the Bayesian network repository, as the package pgmpy 0.1.26 has them) and
random ones by recipes that no constant was tuned on, through `jaxdp.discovery.discover` with its own choice of search.
"""

from __future__ import annotations

import collections
import itertools
import json
import pathlib

import jax
import numpy as np

from experiments import record
from experiments.evidence.discovery.directions import arrows
from experiments.evidence.discovery.networks import Recipe, made
from jaxdp import discovery
from jaxdp.data.networks import read_bif
from jaxdp.discovery import cpdag_of, shd
from jaxdp.simulate.designs.networks import sample_network

FILE = pathlib.Path(__file__).with_name("held_out.json")
PUBLISHED = ("sachs", "child", "insurance", "water", "alarm", "hailfinder", "hepar2", "win95pts")
FIRST_SEED, RUNS = 12_000, 2
SIZES, BUDGETS = (10_000, 100_000), ((1.0, 0.0), (4.0, 0.0))
RECIPES = {
    "15 of 2-3, dense": Recipe(15, 4.0, (2, 3), parents=4),
    "25 of 2-4, functions": Recipe(25, 2.5, (2, 3, 4), functions=0.3),
    "35 of 2-5, skewed": Recipe(35, 2.6, (2, 3, 4, 5), concentration=0.2),
    "30 of 2, weak": Recipe(30, 2.6, (2,), concentration=2.0),
}
Q_VALUES = (-1.0, 1e-6, 1e-3, 0.01, 0.05)
SHARES = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99, 1.01)


def measured(name: str, net, n: int, seed: int) -> list[dict]:
    """One network and one sample of it: a row for every budget."""
    records, true = sample_network(jax.random.key(seed), net, n), cpdag_of(net.dag)
    facts = {"network": name, "n": n, "seed": seed, "empty": int(np.triu(true | true.T).sum())}
    rows = []
    for epsilon, delta in BUDGETS:
        graph = discovery.discover(jax.random.key(seed), records, epsilon=epsilon, delta=delta)
        row = {**facts, "epsilon": epsilon, "method": graph.method, "shd": shd(graph, net)}
        drawn = [] if graph.arrow_shares is None else arrows(graph, true)
        rows.append(row | {"edges": edges(graph, true), "arrows": drawn})
    return rows


def edges(graph, true) -> list[list]:
    """Of each edge: its q-value and whether it is one of the true graph."""
    pairs = [(i, j) for i, j in np.argwhere(np.triu(graph.skeleton)) if np.isfinite(graph.q_values[i, j])]
    return [[float(f"{graph.q_values[i, j]:.3g}"), bool(true[i, j] or true[j, i])] for i, j in pairs]


def of_edges(rows: list[dict]) -> str:
    """Markdown: edges by q-value, and how many are edges of the true graph, for each n and epsilon."""
    settings = list(itertools.product(SIZES, [epsilon for epsilon, _ in BUDGETS]))
    lines = [
        "| q-value | " + " | ".join(f"n = {n:g}, epsilon {epsilon:g}" for n, epsilon in settings) + " |",
        "|---" * (len(settings) + 1) + "|",
    ]
    for low, high in itertools.pairwise(Q_VALUES):
        cells = [describe(_between(rows, "edges", low, high, n=n, epsilon=epsilon)) for n, epsilon in settings]
        lines.append(f"| {max(low, 0.0):g} to {high:g} | {' | '.join(cells)} |")
    return "\n".join(lines)


def by_network(rows: list[dict]) -> str:
    """Markdown: of each network the share of true edges among those with a q-value of at most 0.01."""
    settings = list(itertools.product(SIZES, [epsilon for epsilon, _ in BUDGETS]))
    lines = [
        "| network | " + " | ".join(f"n = {n:g}, epsilon {epsilon:g}" for n, epsilon in settings) + " |",
        "|---" * (len(settings) + 1) + "|",
    ]
    for name in dict.fromkeys(row["network"] for row in rows):
        cells = [
            describe(_between(rows, "edges", -1.0, 0.01, n=n, epsilon=epsilon, network=name)) for n, epsilon in settings
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def of_arrows(rows: list[dict]) -> str:
    """Markdown: arrows by their share of sampled orientations, and how many are right."""
    lines = [
        "| share | arrows | mean share | right, of true edges | right, of all |",
        "|---|---|---|---|---|",
    ]
    every = np.array([arrow for row in rows for arrow in row["arrows"]], float)
    for low, high in itertools.pairwise(SHARES):
        some = every[(every[:, 0] >= low) & (every[:, 0] < high)]
        true = some[some[:, 2] == 1]
        lines.append(
            f"| {low:g} to {min(high, 1):g} | {len(some)} | {some[:, 0].mean():.3f} | {true[:, 1].mean():.3f} "
            f"({len(true)}) | {some[:, 1].mean():.3f} |"
        )
    return "\n".join(lines)


def distances(rows: list[dict]) -> str:
    """Markdown: mean structural Hamming distance of each network, beside that of the empty graph."""
    cells = collections.defaultdict(list)
    for row in rows:
        cells[row["network"], row["n"], row["epsilon"]].append(row["shd"])
    settings = list(itertools.product(SIZES, [epsilon for epsilon, _ in BUDGETS]))
    lines = [
        "| network | empty graph | " + " | ".join(f"n = {n:g}, epsilon {epsilon:g}" for n, epsilon in settings) + " |",
        "|---" * (len(settings) + 2) + "|",
    ]
    for name in dict.fromkeys(row["network"] for row in rows):
        empty = np.mean([row["empty"] for row in rows if row["network"] == name])
        found = [f"{np.mean(cells[name, n, epsilon]):.1f}" for n, epsilon in settings]
        lines.append(f"| {name} | {empty:.1f} | {' | '.join(found)} |")
    return "\n".join(lines)


def describe(found: list) -> str:
    """Share of true ones and their number."""
    return f"{np.mean([right for _, right in found]):.2f} ({len(found)})" if found else "–"


def _between(rows: list[dict], what: str, low: float, high: float, **facts) -> list:
    chosen = [row for row in rows if all(row[name] == value for name, value in facts.items())]
    return [one for row in chosen for one in row[what] if low < one[0] <= high]


def main() -> None:
    """Measures what is missing from the record, or prints its tables."""
    parser = record.command_line(__doc__)
    parser.add_argument("--bif", type=pathlib.Path, help="folder of the .bif files of the published networks")
    arguments = parser.parse_args()
    rows = json.loads(FILE.read_text())["rows"] if FILE.exists() else []
    if not arguments.table:
        done = {(row["network"], row["n"], row["seed"]) for row in rows}
        for seed, n in itertools.product(range(FIRST_SEED, FIRST_SEED + RUNS), SIZES):
            for name in (*PUBLISHED, *RECIPES):
                if (name, n, seed) in done:
                    continue
                net = made(RECIPES[name], seed) if name in RECIPES else read_bif(arguments.bif / f"{name}.bif")
                rows += measured(name, net, n, seed)
                print(name, n, seed, [len(row["edges"]) for row in rows[-len(BUDGETS) :]], flush=True)
                lines = ",\n".join(json.dumps(row) for row in rows)
                command = "python -m experiments.evidence.discovery.held_out --bif FOLDER"
                facts = json.dumps({"command": command, **record.provenance()})
                FILE.write_text('{"facts": ' + facts + ', "rows": [\n' + lines + "\n]}\n")
    for make in (of_edges, by_network, of_arrows, distances):
        print(make(rows) + "\n")


if __name__ == "__main__":
    main()
