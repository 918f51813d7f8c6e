"""What the distance to the truth consists of, on networks of the literature: edges, arrows, or both.

python -m experiments.evidence.discovery.causes --bif FOLDER   # writes causes.json; alarm.bif, child.bif, ...
python -m experiments.evidence.discovery.causes --table        # the table of the page

`max_min_pc` at its defaults, the same search with so large an epsilon that its noise is nothing ("no noise"), and PC
without privacy (chi-squared at level 0.01), on the same three samples of 1e5 records of each network.
"""

from __future__ import annotations

import argparse
import itertools
import json
import pathlib

import jax
import numpy as np

from experiments import record
from jaxdp import discovery
from jaxdp.data.networks import read_bif
from jaxdp.discovery import cpdag_of
from jaxdp.simulate.designs.networks import sample_network

FILE = pathlib.Path(__file__).with_name("causes.json")
NETWORKS = ("child", "alarm")
N, SEEDS = 100_000, range(500, 503)
SEARCHES = {"(1, 1e-6)": (1.0, 1e-6), "3": (3.0, 0.0), "1": (1.0, 0.0), "no noise": (1e6, 1e-6), "PC": None}
CAUSES = ("missing", "extra", "arrow for open", "open for arrow", "reversed")


def parts(found: np.ndarray, true: np.ndarray) -> dict[str, int]:
    """The pairs in which two CPDAGs (d, d) differ, by what is wrong; they add up to the distance."""
    edge, true_edge = found | found.T, true | true.T
    both = edge & true_edge
    open_edge, open_true = found & found.T, true & true.T
    wrong = {
        "missing": true_edge & ~edge,
        "extra": edge & ~true_edge,
        "arrow for open": both & open_true & ~open_edge,
        "open for arrow": both & open_edge & ~open_true,
        "reversed": both & ~open_edge & ~open_true & (found != true),
    }
    return {name: int(np.triu(pairs).sum()) for name, pairs in wrong.items()}


def measured(name: str, net, seed: int) -> list[dict]:
    """One sample of a network: a row for every search."""
    records, true = sample_network(jax.random.key(seed), net, N), cpdag_of(net.dag)
    rows = []
    for search, budget in SEARCHES.items():
        key = jax.random.key(seed)
        if budget is None:
            graph = discovery.pc(key, records, test="chi2", max_order=2)
        else:
            graph = discovery.max_min_pc(key, records, epsilon=budget[0], delta=budget[1])
        facts = {"network": name, "seed": seed, "search": search, "empty": int(np.triu(true | true.T).sum())}
        rows.append(facts | {"shd": discovery.shd(graph, net)} | parts(graph.cpdag, true))
    return rows


def table(rows: list[dict]) -> str:
    """Markdown: mean distance of each network and search, and its parts."""
    names = ("shd", *CAUSES)
    lines = ["| network | epsilon | distance | " + " | ".join(CAUSES) + " |", "|---" * (len(names) + 2) + "|"]
    for name, search in itertools.product(dict.fromkeys(row["network"] for row in rows), SEARCHES):
        some = [row for row in rows if (row["network"], row["search"]) == (name, search)]
        means = " | ".join(f"{np.mean([row[key] for row in some]):.1f}" for key in names)
        lines.append(f"| {name} ({some[0]['empty']}) | {search} | {means} |")
    return "\n".join(lines)


def main() -> None:
    """Measures everything, or prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bif", type=pathlib.Path, help="folder of the .bif files of the networks")
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    if not arguments.table:
        rows = []
        for name, seed in itertools.product(NETWORKS, SEEDS):
            rows += measured(name, read_bif(arguments.bif / f"{name}.bif"), seed)
            print(name, seed, [row["shd"] for row in rows[-len(SEARCHES) :]], flush=True)
        facts = {"command": "python -m experiments.evidence.discovery.causes --bif FOLDER", **record.provenance()}
        lines = ",\n".join(map(json.dumps, rows))
        FILE.write_text('{"facts": ' + json.dumps(facts) + ', "rows": [\n' + lines + "\n]}\n")
    print(table(json.loads(FILE.read_text())["rows"]))


if __name__ == "__main__":
    main()
