"""From which noise on `max_min_pc` should draw a forest, and `table_pc` be taken: distances of all ways, pure budgets.

python -m experiments.evidence.discovery.border --part fit|near|small|known [--bif FOLDER]   # appends to border.jsonl
python -m experiments.evidence.discovery.border --table      # of docs/theory/max_min_pc.md#border

Random networks of recipes and seeds that no other record has: "fit" at round budgets, "near" at budgets of which a
further draw has a stated noise, "small" where a joint table fits, "known" (near too) networks of the literature. Each
row is a mean over two draws of the noise on one sample.
"""

from __future__ import annotations

import collections
import itertools
import math
import pathlib
from collections.abc import Iterator
from unittest import mock

import jax
import numpy as np

from experiments import record
from experiments.evidence.discovery.causes import parts
from experiments.evidence.discovery.joint_noise import Kept
from experiments.evidence.discovery.networks import Recipe, made
from jaxdp import discovery
from jaxdp.core import Relation
from jaxdp.data.networks import read_bif
from jaxdp.discovery import cpdag_of
from jaxdp.discovery.engine.max_min_budget import Budget
from jaxdp.discovery.methods import max_min_pc as search
from jaxdp.discovery.methods.table_pc import EQUAL_SDS
from jaxdp.simulate.designs.networks import sample_network

FILE, PAGE = pathlib.Path(__file__).with_suffix(".jsonl"), pathlib.Path("docs/theory/max_min_pc.md")
LARGE = {
    f"{columns} of {kind}": Recipe(columns, degree, levels, concentration, parents=parents)
    for columns in (10, 20, 40, 60)
    for kind, degree, levels, concentration, parents in (
        ("2-3", 2.8, (2, 3), 0.7, 3),
        ("2-5", 2.2, (2, 3, 4, 5), 0.35, 3),
        ("2, skewed", 2.4, (2,), 0.3, 4),
    )
}
SMALL = {
    f"{columns} of {'-'.join(map(str, levels))}, few": Recipe(columns, 2.3, levels, 0.6)
    for columns, levels in ((6, (2, 3)), (8, (2,)), (8, (2, 3)), (9, (3,)), (11, (2,)), (13, (2,)), (16, (2,)))
}
KNOWN = ("alarm", "child", "hailfinder", "hepar2", "insurance", "win95pts")
SIZES, EPSILONS, RUNS = (10_000, 100_000, 1000), (0.5, 1.0, 2.0, 3.0), 2
NOISES = (0.02, 0.027, 0.033, 0.04, 0.053)  # of a further draw, of as many as columns, as shares of the records
SEEDS = {"fit": 61_000, "near": 62_000, "small": 63_000, "known": 64_000}
BINS = (0.0, 0.01, 0.018, 0.022, 0.028, 0.035, 0.045, 0.06, 0.1, 0.3, math.inf)
BEFORE = 0.02 / 1.5  # from which on forests were drawn before: the noise of two thirds of the share
TABLE, FOREST, WHOLE = "table_pc", search.FOREST, search.GUARDED


def noise(columns: int, n: int, epsilon: float) -> float:
    """Of a further draw, were there as many as columns, as a share of the records."""
    budget = Budget.of(epsilon, 0.0, Relation.REPLACE_ONE)
    share = search.CUBE_SHARES[WHOLE].forward / columns
    return budget.draw_scale(share, search.EXCESS.sensitivity(Relation.REPLACE_ONE)) / n


def measured(part: str, name: str, n: int, seed: int, bif: pathlib.Path) -> Iterator[dict]:
    """One sample of a network: a row for every budget and way to search, means over runs."""
    net = read_bif(bif / f"{name}.bif") if name in KNOWN else made((LARGE | SMALL)[name], seed)
    records, true, kept = sample_network(jax.random.key(seed), net, n), cpdag_of(net.dag), Kept()
    ways = (FOREST, WHOLE, TABLE) if part == "small" else (FOREST, WHOLE)
    near = [round(noise(len(net.dag), n, 1.0) / share, 3) for share in NOISES]
    for epsilon, way in itertools.product(near if part in ("near", "known") else EPSILONS, ways):
        found = []
        for run in range(RUNS):
            key = jax.random.key(1000 * seed + run)
            with mock.patch.object(search, "TableScores", lambda *given: kept(*given).of):
                if way == TABLE:
                    graph = discovery.table_pc(key, records, epsilon=epsilon)
                else:
                    graph = discovery.max_min_pc(key, records, epsilon=epsilon, prune=way)
            found.append(parts(graph.cpdag, true))
        means = {cause: float(np.mean([one[cause] for one in found])) for cause in found[0]}
        facts = {
            "part": part,
            "network": name,
            "levels": list(records.levels),
            "n": n,
            "seed": seed,
            "epsilon": epsilon,
            "way": way,
        }
        yield facts | {"empty": int(np.triu(true | true.T).sum()), "shd": sum(means.values())} | means


def settings(rows: list[dict], part: str) -> Iterator[tuple[float, dict[str, dict]]]:
    """(Noise of a further draw, rows by way) of every sample and budget of a part."""
    found = collections.defaultdict(dict)
    for row in rows:
        found[row["network"], row["n"], row["seed"], row["epsilon"]][row["way"]] = row
    for (_, n, _, epsilon), ways in found.items():
        if ways.get(WHOLE, {}).get("part") == part and FOREST in ways:
            yield noise(len(ways[WHOLE]["levels"]), n, epsilon), ways


def table(rows: list[dict]) -> str:
    """Markdown: mean distances of forests and of the whole search, by the noise of a further draw."""
    lines = [
        "| networks | noise of a further draw | graphs | empty graph | forest | whole search | whole less forest |"
    ]
    lines.append("|---" * 7 + "|")
    for told, parts_of in (("random", ("fit", "near")), ("of the literature", ("known",))):
        every = [(loud, ways) for part in parts_of for loud, ways in settings(rows, part)]
        for low, high in itertools.pairwise(BINS):
            some = [ways for loud, ways in every if low <= loud < high]
            if len(some) > 1:
                means = [mean_of(some, *at) for at in ((WHOLE, "empty"), (FOREST, "shd"), (WHOLE, "shd"))]
                change = told_change([ways[WHOLE]["shd"] - ways[FOREST]["shd"] for ways in some])
                where = f"{100 * low:g} to {100 * high:g} %" if high < BINS[-1] else f"from {100 * low:g} % on"
                cells = (told, where, str(len(some)), *(f"{value:.1f}" for value in means), change)
                lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def changes(rows: list[dict]) -> str:
    """What another border, or another choice between searches, changes: mean distances of what is chosen."""
    lines = []
    for part in ("near", "known"):
        moved = [ways for loud, ways in settings(rows, part) if BEFORE < loud <= search.TREE_FROM[True]]
        before, after = (mean_of(moved, way, "shd") for way in (FOREST, WHOLE))
        change = told_change([ways[WHOLE]["shd"] - ways[FOREST]["shd"] for ways in moved])
        lines.append(f"{part}: {len(moved)} graphs are no forests any more, {before:.2f} to {after:.2f}, {change}")
    found = collections.defaultdict(list)
    for loud, ways in (one for part in SEEDS for one in settings(rows, part)):
        if TABLE in ways:
            row = ways[WHOLE]
            cells, chance = math.prod(row["levels"]), 0.5 / math.sqrt(row["n"])
            sd = math.sqrt(8.0 * cells) / (2.0 * row["epsilon"] * row["n"])
            for name, share, border in (("before", 1.5, BEFORE), ("after", 1.0, search.TREE_FROM[True])):
                draws = WHOLE if loud <= border else FOREST
                way = TABLE if EQUAL_SDS * sd + chance < share * loud + chance else draws
                found[name].append(ways[way]["shd"])
    change = told_change((np.array(found["after"]) - found["before"]).tolist())
    lines.append(f"with a joint table: {len(found['after'])} graphs, chosen: {np.mean(found['before']):.2f}, {change}")
    return "\n".join(lines)


def mean_of(some: list[dict[str, dict]], way: str, key: str) -> float:
    """The mean of one measure of one way."""
    return float(np.mean([ways[way][key] for ways in some]))


def told_change(changes: list[float]) -> str:
    """The mean and its standard error."""
    return f"{np.mean(changes):+.2f} ({np.std(changes, ddof=1) / len(changes) ** 0.5:.2f})"


def main() -> None:
    parser = record.command_line(__doc__)
    parser.add_argument("--part", choices=SEEDS, default="fit")
    parser.add_argument("--bif", type=pathlib.Path, default=pathlib.Path())
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    asked = parser.parse_args()
    if asked.table:
        record.fill(PAGE, "border", table(record.rows(FILE)))
        print(changes(record.rows(FILE)))
        return
    done = {(row["network"], row["n"], row["seed"]) for row in record.rows(FILE)}
    first, names = SEEDS[asked.part], {"small": SMALL, "known": KNOWN}.get(asked.part, LARGE)
    todo = itertools.product(range(first, first + asked.seeds), asked.sizes, names)
    new = [(name, n, seed) for seed, n, name in todo if (name, n, seed) not in done]
    record.append(FILE, (row for case in new for row in measured(asked.part, *case, asked.bif)))


if __name__ == "__main__":
    main()
