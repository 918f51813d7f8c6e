"""python -m experiments.evidence.discovery [--networks A;B] [--n N,M] [--seeds K] [--methods A,B] [--table].

Appends one row per run to rows.jsonl (--out) and skips what is in it already, so that it may be stopped at any time.
"""

import argparse
import collections
import json
import pathlib
import time

import jax
import numpy as np

from experiments.evidence.discovery import synthetic
from experiments.evidence.discovery.networks import RECIPES, SMALL, network
from experiments.record import provenance
from experiments.record import rows as read
from jaxdp import accounting, discovery
from jaxdp.simulate.designs.networks import sample_network

HERE = pathlib.Path(__file__).parent
DELTA = 1e-6
BUDGETS = [(1.0, 0.0), (1.0, DELTA), (0.3, 0.0), (0.3, DELTA), (3.0, 0.0), (3.0, DELTA)]


def _chosen(key, records, epsilon, delta):
    return discovery.discover(key, records, epsilon=epsilon, delta=delta)


def _marginal(key, records, epsilon, delta):
    return discovery.marginal_pc(key, records, rho=accounting.zcdp_rho(epsilon, delta), statistic="chi2")


def _directed(key, records, epsilon, delta):
    return discovery.max_min_pc(key, records, epsilon=epsilon, delta=delta, directions=0.1)


def _max_min(**settings):
    return lambda key, records, epsilon, delta: discovery.max_min_pc(
        key, records, epsilon=epsilon, delta=delta, **settings
    )


def _on_synthetic(key, records, epsilon, delta):
    seed = int(jax.random.randint(key, (), 0, 2**31 - 1))
    return discovery.pc(key, synthetic.tree(records, epsilon, delta, seed), test="chi2", max_order=2)


# name -> (search, takes pure epsilon, takes a delta)
METHODS = {
    "auto": (_chosen, True, True),
    "svt_pc": (lambda key, records, epsilon, delta: discovery.svt_pc(key, records, epsilon=epsilon), True, False),
    "marginal_pc": (_marginal, False, True),
    "table_pc": (lambda key, records, epsilon, delta: discovery.table_pc(key, records, epsilon=epsilon), True, False),
    "max_min_pc": (_max_min(), True, True),
    "em_pc": (lambda key, records, epsilon, delta: discovery.em_pc(key, records, epsilon=epsilon), True, False),
    "priv_pc": (lambda key, records, epsilon, delta: discovery.priv_pc(key, records, epsilon=epsilon), True, False),
    "pc on mst": (_on_synthetic, True, True),  # needs the package mbi
    "max_min_pc-tree": (_max_min(prune="tree"), True, True),
    "max_min_pc-keep": (_max_min(prune="keep"), True, True),
    "max_min_pc-directed": (_directed, True, True),
}
REFERENCE = "pc, no privacy"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.evidence.discovery", description=__doc__)
    parser.add_argument("--networks", default=";".join(RECIPES), help="names separated by semicolons")
    parser.add_argument("--n", default="100000,10000")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--methods", default="auto,svt_pc", help="names separated by commas")
    parser.add_argument("--budgets", type=int, default=len(BUDGETS), help="how many of the list")
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "rows.jsonl")
    parser.add_argument("--table", action="store_true", help="print the table of what is recorded")
    arguments = parser.parse_args()
    if arguments.table:
        print("\n".join(table(read(arguments.out))))
        return
    done = {identity(row) for row in read(arguments.out)}
    methods = arguments.methods.split(",")
    if unknown := sorted(set(methods) - set(METHODS)):
        parser.error(f"unknown methods {', '.join(unknown)}; there are {', '.join(METHODS)}")
    facts = provenance()
    for seed in range(arguments.seeds):
        for n in map(int, arguments.n.split(",")):
            for name in arguments.networks.split(";"):
                runs = [(REFERENCE, (0.0, 0.0))]
                runs += [(method, budget) for budget in BUDGETS[: arguments.budgets] for method in methods]
                measure(name, n, seed, runs, done, arguments.out, facts)


def measure(name: str, n: int, seed: int, runs, done: set, out: pathlib.Path, facts: dict) -> None:
    """All runs on one data set that are not recorded yet."""
    runs = [run for run in runs if takes(*run) and (name, n, seed, run[0], *run[1]) not in done]
    if not runs:
        return
    net = network(name, seed)
    records = sample_network(jax.random.key(1000 + seed), net, n)
    for method, (epsilon, delta) in runs:
        start = time.perf_counter()
        row = {"network": name, "n": n, "seed": seed, "method": method, "epsilon": epsilon, "delta": delta}
        try:
            graph = search(method)(jax.random.key(seed), records, epsilon, delta)
        except ValueError as error:  # a search that does not take these columns
            row["refused"] = str(error)
        else:
            row |= judged(graph, net)
        row |= {"seconds": round(time.perf_counter() - start, 2), **facts}
        with out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        print(*(row.get(key) for key in ("network", "n", "method", "epsilon", "delta", "f1", "seconds")), flush=True)


def takes(method: str, budget) -> bool:
    """Whether a method has such a budget."""
    if method == REFERENCE:
        return True
    return METHODS[method][2] if budget[1] else METHODS[method][1]


def search(method: str):
    """The search of a name; PC without privacy has conditioning sets of at most two columns, as the others do."""
    if method == REFERENCE:
        return lambda key, records, epsilon, delta: discovery.pc(key, records, test="chi2", max_order=2)
    return METHODS[method][0]


def judged(graph, net) -> dict:
    """How close a graph is to the truth."""
    found, true = np.triu(graph.skeleton), np.triu(net.dag | net.dag.T)
    hits = int((found & true).sum())
    return {
        "ran": graph.method,
        "f1": round(discovery.skeleton_f1(graph, net), 4),
        "precision": round(hits / max(1, int(found.sum())), 4),
        "recall": round(hits / max(1, int(true.sum())), 4),
        "cpdag_f1": round(discovery.cpdag_f1(graph, net), 4),
        "edges": int(found.sum()),
        "true_edges": int(true.sum()),
    }


def identity(row: dict) -> tuple:
    """What makes a row that row."""
    return tuple(row[key] for key in ("network", "n", "seed", "method", "epsilon", "delta"))


def table(rows: list[dict]) -> list[str]:
    """Markdown: skeleton F1 by network and size against method and budget, means over seeds."""
    cells = collections.defaultdict(list)
    for row in rows:
        if "f1" in row:
            budget = "" if row["method"] == REFERENCE else f" {row['epsilon']:g}{' d' if row['delta'] else ''}"
            cells[(row["network"], row["n"]), row["method"] + budget].append(row["f1"])
    across = list(dict.fromkeys(column for _, column in cells))
    places = [(name, n) for n in (100_000, 10_000) for name in (*SMALL, *RECIPES)]
    lines = ["| network | n | " + " | ".join(across) + " |", "|---|---|" + "---|" * len(across)]
    for place in places:
        found = [cells.get((place, column)) for column in across]
        if any(found):
            shown = ["" if values is None else f"{np.mean(values):.2f}" for values in found]
            lines.append(f"| {place[0]} | {place[1]} | " + " | ".join(shown) + " |")
    return lines


if __name__ == "__main__":
    main()
