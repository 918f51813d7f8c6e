"""How many of the arrows with a share are right: the fit of `Trust`, and graphs held apart from it.

python -m experiments.evidence.discovery.arrow_shares [--only SEARCH] [--part fit|held] [--bif FOLDER]
python -m experiments.evidence.discovery.arrow_shares --fit     # the constants, from the rows of the part "fit"
python -m experiments.evidence.discovery.arrow_shares --table   # the tables of docs/discovery.md

Structural models are those of `structural_models.py` with edges per column as stated, coded networks those of
`networks.py`. The part "held" has other seeds, and models, sizes and budgets that the fit has not: hubs, sinks, eight
and twenty columns, networks of the literature (the .bif files of the Bayesian network repository). A row is a graph: of
each arrow its share among sampled classes before any `Trust`, whether it is right, and whether it is reversed. Rows of
`neighbour_pc` with n epsilon of 10 000 and less were recorded later (seeds 41000 and 51000).
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import pathlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

import jax
import numpy as np
from scipy.optimize import minimize

import jaxdp
from experiments import record
from experiments.evidence.discovery import structural_models
from experiments.evidence.discovery.networks import Recipe, made
from jaxdp import discovery
from jaxdp.data.networks import read_bif
from jaxdp.discovery import cpdag_of
from jaxdp.discovery.engine.directions import OFFSET, Shown, Trust
from jaxdp.discovery.methods import max_min_pc, moment_pc, neighbour_pc, table_pc
from jaxdp.discovery.spec import Setting
from jaxdp.simulate.designs.networks import sample_network

FILE, PAGE = pathlib.Path(__file__).with_suffix(".jsonl"), pathlib.Path("docs/discovery.md")
TRUSTS = {
    module.__name__.rpartition(".")[2]: module.ARROWS.trust
    for module in (max_min_pc, moment_pc, neighbour_pc, table_pc)
}
FIT, HELD = "fit", "held"
FIRST_SEEDS = {FIT: 40_000, HELD: 50_000}
PUBLISHED = {FIT: ("sachs", "child", "insurance"), HELD: ("alarm", "water", "hailfinder", "hepar2")}
SMALL = {
    f"{columns} of {'-'.join(map(str, levels))}, {degree:g}": Recipe(columns, degree, levels, concentration)
    for columns, levels, concentration in ((5, (2, 3), 0.8), (6, (2,), 0.8), (6, (2, 3), 0.5), (5, (3, 4, 5), 0.8))
    for degree in (1.0, 2.0, 3.0)
}
OTHER_SMALL = {
    "7 of 2, 2.5": Recipe(7, 2.5, (2,), 0.8),
    "8 of 2, 1.5": Recipe(8, 1.5, (2,), 0.6),
    "5 of 2-4, 2.5": Recipe(5, 2.5, (2, 3, 4), 1.2),
    "6 of 2, strong": Recipe(6, 2.6, (2,), 0.3),
}
LARGE = {
    "12 of 2-3": Recipe(12, 3.0, (2, 3)),
    "20 of 2-4": Recipe(20, 3.0, (2, 3, 4)),
    "20 of 2-4, few edges": Recipe(20, 1.8, (2, 3, 4)),
    "15 of 2-3, dense": Recipe(15, 4.0, (2, 3), parents=4),
    "12 of 2, weak": Recipe(12, 2.6, (2,), concentration=2.0),
    "30 of 2-4, functions": Recipe(30, 2.5, (2, 3, 4), functions=0.2),
    "36 of 2-4, skewed": Recipe(36, 2.8, (2, 3, 4), concentration=0.2),
}
OTHER_LARGE = {
    "25 of 2-5": Recipe(25, 3.2, (2, 3, 4, 5), concentration=0.7),
    "16 of 2, dense": Recipe(16, 3.6, (2,), concentration=0.6, parents=4),
}
# of `Trust`, by its fields: terms with next to no slope, or the wrong sign, were left out
TERMS: dict[str, tuple[int, ...]] = {"max_min_pc": (), "moment_pc": (1, 2), "neighbour_pc": (1, 3, 4), "table_pc": (2,)}
BY_CYCLES = Trust(3.77, 6.4)  # of `neighbour_pc` before it knew the number of columns and the noise
CYCLES = {"neighbour_pc": (0.0, 0.15, 0.3, 0.4, 1.0)}
LEFT = {"table_pc": (0.0, 0.5, 1.0, 2.0, 99.0), "moment_pc": (0.0, 0.5, 1.0, 2.0, 99.0)}


@dataclasses.dataclass(frozen=True)
class Case:
    """One setting; edges: per column, of structural models."""

    search: str
    kind: str
    columns: int
    n: int
    epsilon: float
    delta: float = 0.0
    edges: float = 0.0


def cases(part: str, bif: bool) -> Iterator[Case]:
    """All settings of a part."""
    if part == FIT:
        models, sizes, edges = ("lines", "tanh", "parabolas", "mixed"), (6, 12), (0.8, 1.2, 1.6, 2.0, 2.5)
        budgets = (
            ("moment_pc", 3000, 3.0, 0.0),
            ("neighbour_pc", 10_000, 3.0, 0.0),
            ("neighbour_pc", 20_000, 1.0, 0.0),
            ("neighbour_pc", 2000, 3.0, 0.0),
            ("neighbour_pc", 5000, 1.0, 0.0),
            ("neighbour_pc", 5000, 2.0, 0.0),
        )
    else:
        models, sizes, edges = ("lines", "heavy tails", "hub", "sink", "mixed"), (8, 20), (1.0, 1.4, 2.2)
        budgets = (
            ("moment_pc", 5000, 1.0, 1e-6),
            ("neighbour_pc", 20_000, 1.0, 1e-6),
            ("neighbour_pc", 15_000, 2.0, 0.0),
            ("neighbour_pc", 3000, 2.0, 0.0),
            ("neighbour_pc", 2500, 4.0, 0.0),
            ("neighbour_pc", 6000, 1.0, 1e-6),
        )
    for kind, columns, per_column in itertools.product(models, sizes, edges):
        if per_column < (columns - 1) / 2.0:
            for search, *budget in budgets:
                yield Case(search, kind, columns, *budget, per_column)
    small, large = (SMALL, LARGE) if part == FIT else (OTHER_SMALL, OTHER_LARGE)
    for kind, (n, epsilon) in itertools.product(small, ((3000, 3.0), (10_000, 1.0), (50_000, 3.0))):
        yield Case("table_pc", kind, 0, n, epsilon)
    published = PUBLISHED[part] if bif else ()
    for kind, n, budget in itertools.product((*large, *published), (10_000, 100_000), structural_models.BUDGETS):
        if budget in ((1.0, 0.0), (3.0, 0.0), (1.0, 1e-6)):
            yield Case("max_min_pc", kind, 0, n, *budget)


def measured(case: Case, seed: int, bif: pathlib.Path | None) -> dict[str, Any] | None:
    """The row of one graph; None where no arrow has a share."""
    told: list[Shown] = []

    def recorded(trust, shown):
        told.append(shown)
        return 1.0

    with mock.patch.object(Trust, "of", recorded):
        dag, graph = found(case, seed, bif)
    if graph.arrow_shares is None:
        return None
    true = cpdag_of(dag)
    pointed = true & ~true.T
    drawn = np.argwhere(graph.cpdag & ~graph.cpdag.T)
    arrows = [[round(float(graph.arrow_shares[i, j]), 4), int(pointed[i, j]), int(dag[j, i])] for i, j in drawn]
    return dataclasses.asdict(case) | {"seed": seed} | dataclasses.asdict(told[-1]) | {"arrows": arrows}


def found(case: Case, seed: int, bif: pathlib.Path | None):
    """(The true graph, the one that was found)."""
    key = jax.random.key(seed)
    if case.columns:
        with mock.patch.dict(structural_models.EDGES, {case.kind: case.edges}):
            dag, table, schema = structural_models.drawn(case.kind, case.columns, case.n, seed)
        budget = {"epsilon": case.epsilon, "delta": case.delta}
        return dag, jaxdp.discover(table, schema=schema, key=key, method=case.search, **budget)
    recipes = SMALL | LARGE | OTHER_SMALL | OTHER_LARGE
    net = made(recipes[case.kind], seed) if case.kind in recipes else read_bif(bif / f"{case.kind}.bif")
    records = sample_network(key, net, case.n)
    budget = {"epsilon": case.epsilon} | ({"delta": case.delta} if case.delta else {})
    return net.dag, getattr(discovery, case.search)(jax.random.fold_in(key, 1), records, **budget)


def shown(row: dict[str, Any]) -> Shown:
    """What the graph of a row shows."""
    return Shown(**{field.name: row[field.name] for field in dataclasses.fields(Shown)})


def trust_of(row: dict[str, Any]) -> float:
    """What of a share of 1 is right in the graph of a row."""
    trust = neighbour_pc.trust(setting(row)) if row["search"] == "neighbour_pc" else TRUSTS[row["search"]]
    return trust.of(shown(row))


def setting(row: dict[str, Any]) -> Setting:
    """What is public of a row of structural models."""
    return Setting((0,) * row["columns"], row["n"], row["epsilon"], row["delta"])


def factors(row: dict[str, Any]) -> tuple[float, ...]:
    """What each constant of `Trust` is multiplied by."""
    left = -np.log(OFFSET + row["leftover"]) if row["leftover"] is not None else 0.0
    few = (-1.0 / row["columns"], -neighbour_pc.noise_per_column(setting(row))) if row["columns"] else (0.0, 0.0)
    return (1.0, -row["cycles"], left, *few)


def fitted(rows: list[dict[str, Any]], search: str) -> tuple[Trust, float]:
    """Trust by maximum likelihood, and the mean log likelihood; networks of the literature count as much as random
    ones together."""
    own = [row for row in rows if row["search"] == search]
    facts = [factors(row) for row in own for _ in row["arrows"]]
    published = np.array([row["kind"] in PUBLISHED[FIT] for row in own for _ in row["arrows"]])
    weights = np.where(published, 1.0 / max(published.sum(), 1), 1.0 / (~published).sum())
    share, right, _ = np.array([arrow for row in own for arrow in row["arrows"]], float).T
    used = [0, *TERMS[search]]
    matrix = np.array(facts)[:, used]

    def loss(constants):
        chance = np.clip(share / (1.0 + np.exp(-matrix @ constants)), 1e-6, 1.0 - 1e-6)
        return -np.average(np.where(right > 0, np.log(chance), np.log1p(-chance)), weights=weights)

    best = minimize(loss, [2.0] + [0.2] * (len(used) - 1), method="Nelder-Mead", options={"maxiter": 8000})
    constants = np.zeros(5)
    constants[used] = best.x
    return Trust(*constants.round(2).tolist()), float(best.fun)


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown: arrows of graphs held apart by their reported share, and graphs by what the notes expect."""
    lines = ["| search | graphs | arrows | mean share | right | reversed |", "|---|---|---|---|---|---|"]
    for search in TRUSTS:
        own = [row for row in rows if row["search"] == search and row["arrows"]]
        for name, group in _groups(search, own):
            arrows = np.array(
                [
                    (share * trust_of(row), right, reversed_)
                    for row in group
                    for share, right, reversed_ in row["arrows"]
                ]
            ).reshape(-1, 3)
            if len(arrows):
                told = " | ".join(f"{value:.2f}" for value in arrows.mean(axis=0))
                lines.append(f"| `{search}`{name} | {len(group)} | {len(arrows)} | {told} |")
    return "\n".join(lines)


def few_records(rows: list[dict[str, Any]]) -> str:
    """Markdown: graphs of `neighbour_pc` with n epsilon of 10 000 and less, by number of columns, n and epsilon."""
    some = [row for row in rows if row["search"] == "neighbour_pc" and row["n"] * row["epsilon"] <= 10_000.0]
    groups: dict[tuple, list[dict[str, Any]]] = {}
    for row in some:
        groups.setdefault((row["columns"], row["n"], row["epsilon"]), []).append(row)
    lines = ["| columns | n | epsilon | graphs | arrows | right | expected before | now |", "|" + "---|" * 8]
    for (columns, n, epsilon), group in sorted(groups.items()):
        arrows = np.array(
            [
                (right, share * BY_CYCLES.of(shown(row)), share * trust_of(row))
                for row in group
                for share, right, _ in row["arrows"]
            ]
        ).reshape(-1, 3)
        told = " | ".join(f"{value:.2f}" for value in arrows.mean(axis=0))
        lines.append(f"| {columns} | {n} | {epsilon:g} | {len(group)} | {len(arrows)} | {told} |")
    return "\n".join(lines)


def _groups(search: str, rows: list[dict[str, Any]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    yield "", rows
    if search == "neighbour_pc":
        for name, few in ((", eight columns", True), (", twenty", False)):
            for less, quiet in (("few records", False), ("more", True)):
                some = [row for row in rows if (row["columns"] < 20) is few and (row["n"] > 6000) is quiet]
                yield f"{name}, {less}", some
    for what, bands in (("cycles", CYCLES), ("leftover", LEFT)):
        for low, high in itertools.pairwise(bands.get(search, ())):
            some = [row for row in rows if row[what] is not None and low <= row[what] < high]
            yield f", {what} {low:g} to {high:g}", some
    if search == "max_min_pc":
        yield ", networks of the literature", [row for row in rows if row["kind"] in PUBLISHED[HELD]]


def main() -> None:
    parser = record.command_line(__doc__)
    parser.add_argument("--only", choices=TRUSTS)
    parser.add_argument("--part", choices=FIRST_SEEDS)
    parser.add_argument("--bif", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--fit", action="store_true")
    asked = parser.parse_args()
    rows = [json.loads(line) for line in FILE.read_text().splitlines()] if FILE.exists() else []
    parts = {part: [row for row in rows if row.get("part") == part] for part in FIRST_SEEDS}
    if asked.fit:
        for search in TRUSTS:
            print(search, *fitted(parts[FIT], search), "now", TRUSTS[search])
        return
    if asked.table:
        record.fill(PAGE, "arrow-shares", table(parts[HELD]))
        record.fill(PAGE, "few-records", few_records(parts[FIT]))
        return

    def made_rows():
        for part, first in FIRST_SEEDS.items():
            for seed, case in itertools.product(range(first, first + asked.runs), cases(part, asked.bif is not None)):
                if asked.part in (None, part) and asked.only in (None, case.search):
                    row = measured(case, seed, asked.bif)
                    if row is not None:
                        yield {"part": part} | row

    record.append(FILE, made_rows())


if __name__ == "__main__":
    main()
