"""What tables of triples add to contrasts: distance of `max_min_pc` with a delta, with both and with contrasts alone.

python -m experiments.evidence.discovery.tables [--bif FOLDER]   # appends to tables.jsonl what is missing there
python -m experiments.evidence.discovery.tables --table          # the tables of the pages

Ten random networks of each recipe, of seeds that nothing was tuned on (tuning used 900 to 903), and three samples of
each of six networks of the literature. Both searches have one key, so one skeleton: they differ in arrows alone.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import pathlib
from unittest import mock

import jax
import numpy as np

from experiments import record
from experiments.evidence.discovery.causes import CAUSES, parts
from experiments.evidence.discovery.directions import close
from experiments.evidence.discovery.networks import Recipe, made
from jaxdp import discovery
from jaxdp.data.networks import read_bif
from jaxdp.discovery import cpdag_of
from jaxdp.discovery.engine.directions import oriented
from jaxdp.discovery.engine.orientation import unshielded
from jaxdp.discovery.methods.max_min_pc import Selection
from jaxdp.simulate.designs.networks import sample_network

FILE = pathlib.Path(__file__).with_name("tables.jsonl")
RECIPES = {
    "20 of 2-4": Recipe(20, 3.0, (2, 3, 4)),
    "40 of 2-4": Recipe(40, 2.6, (2, 3, 4)),
    "60 of 2-4": Recipe(60, 2.4, (2, 3, 4)),
    "40 of 2": Recipe(40, 2.6, (2,)),
    "56 of 2, skewed": Recipe(56, 2.6, (2,), concentration=0.15, parents=4),
    "76 of 2, skewed": Recipe(76, 2.6, (2,), concentration=0.15, parents=4),
}
PUBLISHED = ("alarm", "insurance", "hailfinder", "win95pts", "hepar2", "child")
SEEDS, SAMPLES, SIZES = range(9100, 9110), range(9100, 9103), (100_000, 10_000)
CONTRASTS, TABLES, PURE = "contrasts", "tables", "epsilon 3"


def contrasts_alone(selection, adjacency, weighed):
    """Directions as they were before tables: the whole share for contrasts."""
    contrasts = selection._contrasts(unshielded(adjacency), weighed, selection._shares.directions)
    return None if contrasts is None else oriented(adjacency, contrasts, selection._known.against_time())


def measured(name: str, net, n: int, seed: int, searches) -> list[dict]:
    """One sample of a network: a row for every search."""
    records, true = sample_network(jax.random.key(seed), net, n), cpdag_of(net.dag)
    rows = []
    for search in searches:
        before = mock.patch.object(Selection, "_directed", contrasts_alone)
        with before if search == CONTRASTS else contextlib.nullcontext():
            epsilon, delta = (3.0, 0.0) if search == PURE else (1.0, 1e-6)
            graph = discovery.discover(jax.random.key(seed), records, epsilon=epsilon, delta=delta)
        facts = {"network": name, "n": n, "seed": seed, "search": search, "empty": int(np.triu(true | true.T).sum())}
        drawn = int((graph.cpdag & ~graph.cpdag.T).sum())
        rows.append(facts | close(graph, net) | {"arrows": drawn, "method": graph.method} | parts(graph.cpdag, true))
    return rows


def table(rows: list[dict]) -> str:
    """Markdown: mean distance and its parts, by network, n and search."""
    names = ("shd", *CAUSES, "arrows")
    heads = " | ".join(("network", "n", "empty graph", "skeleton F1", "search", "distance", *CAUSES, "arrows"))
    lines = [f"| {heads} |", "|---" * (len(names) + 5) + "|"]
    for place in dict.fromkeys((row["network"], row["n"], row["search"]) for row in rows):
        some = [row for row in rows if (row["network"], row["n"], row["search"]) == place]
        name, n, search = place
        means = " | ".join(f"{np.mean([row[key] for row in some]):.1f}" for key in names)
        first = f"{some[0]['empty']} | {np.mean([row['skeleton_f1'] for row in some]):.2f}"
        lines.append(f"| {name} | {n} | {first} | {search} | {means} |")
    return "\n".join(lines)


def differences(rows: list[dict]) -> str:
    """Mean change of the distance by tables, and its standard error, of random networks of each n."""
    lines = []
    for n in SIZES:
        found = {(row["network"], row["seed"], row["search"]): row["shd"] for row in rows if row["n"] == n}
        pairs = [(name, seed) for name, seed, search in found if search == TABLES and name in RECIPES]
        change = np.array([found[*pair, TABLES] - found[*pair, CONTRASTS] for pair in pairs], float)
        if len(change) > 1:
            error = change.std(ddof=1) / len(change) ** 0.5
            nearer, further = (change < 0).sum(), (change > 0).sum()
            lines.append(f"n = {n}: {change.mean():.2f} +- {error:.2f} ({nearer} nearer, {further} further)")
    return "\n".join(lines)


def command(description: str, file: pathlib.Path, seeds, measured, ways: dict[str, tuple], *printed) -> None:
    """Measures what is missing from a record of `RECIPES`, or with --bif of `PUBLISHED`, and prints its tables.

    measured: (name, network, n, seed, ways) -> rows. ways: those of "random" networks, and of "known" ones.
    printed: rows -> text.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bif", type=pathlib.Path, help="folder of the .bif files of the published networks")
    parser.add_argument("--only", choices=SIZES, type=int, help="records")
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    kind, todo = "random", [*itertools.product(seeds, SIZES, RECIPES)]
    if arguments.bif:
        kind, todo = "known", [*itertools.product(SAMPLES, SIZES[:1], PUBLISHED)]
    done = {(row["network"], row["n"], row["seed"]) for row in record.rows(file)}
    for seed, n, name in () if arguments.table else todo:
        if (name, n, seed) not in done and arguments.only in (None, n):
            net = made(RECIPES[name], seed) if kind == "random" else read_bif(arguments.bif / f"{name}.bif")
            record.append(file, measured(name, net, n, seed, ways[kind]))
    for text in printed:
        print(text(record.rows(file)))


def main() -> None:
    """Measures what is missing from the record, or prints its tables."""
    ways = {"random": (CONTRASTS, TABLES), "known": (CONTRASTS, TABLES, PURE)}
    command(str(__doc__), FILE, SEEDS, measured, ways, table, differences)


if __name__ == "__main__":
    main()
