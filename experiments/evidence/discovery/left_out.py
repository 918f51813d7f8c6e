"""What graphs would be if edges were left out by their expected distance to the truth: measured, and not done.

python -m experiments.evidence.discovery.left_out --bif FOLDER   # writes left_out.json; alarm.bif, insurance.bif, ...
python -m experiments.evidence.discovery.left_out --table        # the table of the page

To draw an edge lowers the expected structural Hamming distance where P(edge) P(its mark, if there is an edge) is above
P(no edge). The second is fitted to random networks, by the share of the mark among sampled orientations; the first is
0.85, and 0.65 in a forest, below what random networks have and set after a look at the published ones, where fewer
edges are true: so these are no held-out figures.
"""

from __future__ import annotations

import collections
import itertools
import json
import pathlib

import jax
import numpy as np

from experiments import record
from experiments.evidence.discovery.networks import RECIPES, Recipe, made
from jaxdp import discovery
from jaxdp.data.networks import read_bif
from jaxdp.discovery import cpdag_of
from jaxdp.simulate.designs.networks import sample_network

FILE = pathlib.Path(__file__).with_name("left_out.json")
PUBLISHED = ("alarm", "insurance", "child", "hailfinder")
FURTHER = {
    "30 of 2-4, strong": Recipe(30, 2.6, (2, 3, 4), concentration=0.1),
    "45 of 2-5, functions": Recipe(45, 2.6, (2, 3, 4, 5), concentration=0.2, functions=0.15),
    "25 of 2-3, sparse": Recipe(25, 1.5, (2, 3), concentration=1.0),
    "25 of 2-4, dense": Recipe(25, 4.5, (2, 3, 4), parents=4),
}
PURE, LARGE, BOTH = (1.0, 0.0), (3.0, 0.0), (1.0, 1e-6)
BUDGETS = {
    True: {10_000: (PURE,), 100_000: (PURE, LARGE, BOTH)},
    False: {10_000: (PURE, LARGE, BOTH), 100_000: (PURE, BOTH)},
}
SEEDS = {True: range(21_000, 21_002), False: range(31_000, 31_003)}
IS_EDGE = {"forest": 0.65, "whole": 0.85}


def measured(name: str, net, n: int, seed: int, budgets) -> list[dict]:
    """One sample of one network: a row for every budget."""
    records, true = sample_network(jax.random.key(seed), net, n), cpdag_of(net.dag)
    rows = []
    for epsilon, delta in budgets:
        graph = discovery.max_min_pc(jax.random.key(seed), records, epsilon=epsilon, delta=delta)
        search = "forest" if "spanning tree" in graph.note else "whole"
        facts = {"network": name, "published": name in PUBLISHED, "n": n, "seed": seed, "search": search}
        empty = int(np.triu(true | true.T).sum())
        rows.append({**facts, "epsilon": epsilon, "delta": delta, "empty": empty, "edges": edges(graph, true)})
    return rows


def edges(graph, true) -> list[list]:
    """Of each edge: share of its mark, whether it has an arrow, is an edge of the true graph, is marked as there."""
    shares = np.zeros(true.shape) if graph.arrow_shares is None else graph.arrow_shares
    found = []
    for i, j in np.argwhere(np.triu(graph.skeleton)):
        arrow = bool(graph.cpdag[i, j] != graph.cpdag[j, i])
        of = (shares[i, j] if graph.cpdag[i, j] else shares[j, i]) if arrow else 1.0 - shares[i, j] - shares[j, i]
        right = graph.cpdag[i, j] == true[i, j] and graph.cpdag[j, i] == true[j, i]
        found.append([round(float(of), 4), arrow, bool(true[i, j] or true[j, i]), bool(right)])
    return found


def fitted(rows: list[dict]) -> dict:
    """(search, arrow) -> polynomial in the share: how often the mark is right on true edges of random networks."""
    every = collections.defaultdict(list)
    for row in rows:
        for share, arrow, is_edge, right in row["edges"]:
            if is_edge and not row["published"]:
                every[row["search"], arrow].append((share, right))
    return {kind: np.polyfit(*np.array(found, float).T, 1 if kind[1] else 2) for kind, found in every.items()}


def drawn(row: dict, fits: dict) -> np.ndarray:
    """Which edges lower the expected distance, bool (edges,)."""
    is_edge = IS_EDGE[row["search"]]
    right = [np.polyval(fits[row["search"], arrow], share) for share, arrow, _, _ in row["edges"]]
    return is_edge * np.clip(np.array(right), 0.0, 1.0) > 1.0 - is_edge


def judged(row: dict, kept: np.ndarray) -> tuple[float, float, int]:
    """Distance, skeleton F1 and number of the edges that are kept."""
    found = np.array(row["edges"], float).reshape(-1, 4)[kept]
    distance = row["empty"] + np.sum(1.0 - found[:, 2]) - np.sum(found[:, 3])
    return float(distance), 2.0 * float(found[:, 2].sum()) / max(1, len(found) + row["empty"]), len(found)


def table(rows: list[dict]) -> str:
    """Markdown: mean distance, skeleton F1 and edges, as they are and with edges left out."""
    fits, cells = fitted(rows), collections.defaultdict(list)
    for row in rows:
        everything, kept = judged(row, np.ones(len(row["edges"]), bool)), judged(row, drawn(row, fits))
        which = "of the literature" if row["published"] else "random"
        budget = f"({row['epsilon']:g}, {row['delta']:g})" if row["delta"] else f"{row['epsilon']:g}"
        cells[which, row["n"], budget, row["search"]].append((row["empty"], *everything, *kept))
    lines = [
        "| networks | n | epsilon | search | graphs | empty graph | distance, F1, edges | with edges left out |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (which, n, budget, search), found in sorted(cells.items()):
        empty, shd, f1, count, other_shd, other_f1, other_count = np.mean(found, axis=0)
        lines.append(
            f"| {which} | {n} | {budget} | {search} | {len(found)} | {empty:.1f} | {shd:.1f}, {f1:.2f}, {count:.1f} | "
            f"{other_shd:.1f}, {other_f1:.2f}, {other_count:.1f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measures what is missing from the record, or prints its table."""
    parser = record.command_line(__doc__)
    parser.add_argument("--bif", type=pathlib.Path, help="folder of the .bif files of the published networks")
    arguments = parser.parse_args()
    rows = json.loads(FILE.read_text())["rows"] if FILE.exists() else []
    if not arguments.table:
        done = {(row["network"], row["n"], row["seed"]) for row in rows}
        for published, names in ((True, PUBLISHED), (False, (RECIPES | FURTHER))):
            for seed, name in itertools.product(SEEDS[published], names):
                net = read_bif(arguments.bif / f"{name}.bif") if published else made((RECIPES | FURTHER)[name], seed)
                for n, budgets in BUDGETS[published].items():
                    rows += [] if (name, n, seed) in done else measured(name, net, n, seed, budgets)
        command = "python -m experiments.evidence.discovery.left_out --bif FOLDER"
        facts = json.dumps({"command": command, **record.provenance()})
        FILE.write_text('{"facts": ' + facts + ', "rows": [\n' + ",\n".join(map(json.dumps, rows)) + "\n]}\n")
    print(table(json.loads(FILE.read_text())["rows"]))


if __name__ == "__main__":
    main()
