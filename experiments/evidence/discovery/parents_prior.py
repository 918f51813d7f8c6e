"""How many parents a column has beforehand: distance of `max_min_pc` by that prior, at a pure epsilon and with a delta.

python -m experiments.evidence.discovery.parents_prior [--bif FOLDER]   # appends to parents_prior.jsonl what is missing
python -m experiments.evidence.discovery.parents_prior --table          # of docs/theory/max_min_pc.md#parents

All priors on the released numbers of one search for each network and budget. "hubs" are networks in which some columns
have many effects. "half way" is the geometric mean of every orientation and every number, and the numbers of edges
count only where the noise of a contrast is below 0.04 n. Networks of other seeds, of the same recipes, chose the prior.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import pathlib
from unittest import mock

import jax
import numpy as np

from experiments import record
from experiments.evidence.discovery.border import KNOWN, told_change
from experiments.evidence.discovery.causes import parts
from experiments.evidence.discovery.networks import Recipe, _probabilities, made
from jaxdp import discovery
from jaxdp.data.networks import Network, Variable, read_bif
from jaxdp.discovery import cpdag_of
from jaxdp.discovery.engine import directions
from jaxdp.discovery.engine.directions import Shown, Trust
from jaxdp.discovery.methods import max_min_pc as search
from jaxdp.discovery.methods.max_min_pc import TripleTables
from jaxdp.simulate.designs.networks import sample_network

FILE, PAGE = pathlib.Path(__file__).with_suffix(".jsonl"), pathlib.Path("docs/theory/max_min_pc.md")
RECIPES = {
    f"{columns} of {'2-3' if len(levels) == 2 else '2-5'} b": Recipe(columns, degree, levels, concentration)
    for columns, degree in ((20, 3.0), (40, 2.6), (60, 2.4))
    for levels, concentration in (((2, 3), 0.6), ((2, 3, 4, 5), 0.4))
} | {
    "56 of 2-4, strong": Recipe(56, 2.3, (2, 3, 4), 0.3, parents=2),
    "50 of 2, skewed": Recipe(50, 2.6, (2,), 0.15, parents=4),
    "40 of 2-4, functions": Recipe(40, 2.5, (2, 3, 4), 0.3, functions=0.2),
}
HUBS = {"30 of 2-4, hubs": 30, "50 of 2-4, hubs": 50}
PUBLISHED = (*KNOWN, "sachs", "water")
BUDGETS = ((10_000, 4.0, 0.0), (100_000, 1.0, 0.0), (100_000, 3.0, 0.0), (100_000, 1.0, 1e-6))
SEEDS, PUBLISHED_SEEDS = (69_000, 69_001), (9400,)
QUIET = 0.04  # of n: noise of a contrast up to which the numbers of edges used to count
by_parents = directions._by_parents  # the module has another one while a prior is tried
EVERY_ORIENTATION, HALF_WAY, EVERY_NUMBER, POISSON = "every orientation", "half way", "every number", "Poisson"
PRIORS = {
    EVERY_ORIENTATION: lambda degree, few: [0.0] * (degree + 1),
    HALF_WAY: lambda degree, few: [log_prior / 2.0 for log_prior in by_parents(degree, False)],
    EVERY_NUMBER: lambda degree, few: by_parents(degree, False),
    POISSON: lambda degree, few: by_parents(degree, True),
}


def hubs(columns: int, seed: int) -> Network:
    """A network whose columns have one parent or, one in five, two, the more often the more effects it has."""
    generator = np.random.default_rng([seed, columns, 77])
    order, weight, parents = generator.permutation(columns), np.ones(columns), {}
    parents[int(order[0])] = []
    for place in range(1, columns):
        count, before = 1 + int(generator.random() < 0.2), order[:place]
        chances = weight[before] ** 1.3
        chosen = generator.choice(before, size=min(count, place), replace=False, p=chances / chances.sum())
        parents[int(order[place])] = chosen.tolist()
        weight[chosen] += 1.0
    levels = generator.choice((2, 3, 4), size=columns)
    variables = {}
    for column in range(columns):
        shape = [int(levels[parent]) for parent in parents[column]]
        table = _probabilities(generator, shape, int(levels[column]), 0.5, False)
        names = tuple(f"v{parent}" for parent in parents[column])
        variables[f"v{column}"] = Variable(tuple(map(str, range(levels[column]))), names, table)
    return Network(variables)


def measured(name: str, seed: int, bif: pathlib.Path) -> list[dict]:
    """One sample of a network: a row for every budget and prior."""
    if name in PUBLISHED:
        net = read_bif(bif / f"{name}.bif")
    else:
        net = hubs(HUBS[name], seed) if name in HUBS else made(RECIPES[name], seed)
    true, rows, oriented = cpdag_of(net.dag), [], search.oriented
    for n, epsilon, delta in BUDGETS:
        given: list = []
        with mock.patch.object(search, "oriented", lambda *args, given=given: given.append(args) or oriented(*args)):
            records, key = sample_network(jax.random.key(seed), net, n), jax.random.key(seed)
            discovery.max_min_pc(key, records, epsilon=epsilon, delta=delta)
        for prior, (skeleton, evidence, against, default) in itertools.product(PRIORS, given):
            rule = dataclasses.replace(default, trust=Trust(np.inf))
            with mock.patch.object(directions, "_by_parents", PRIORS[prior]):
                found = oriented(skeleton, as_before(evidence) if prior == HALF_WAY else evidence, against, rule)
            causes, pointed = parts(found.cpdag, true), true & ~true.T
            drawn = np.argwhere(found.cpdag & ~found.cpdag.T)
            arrows = [[round(float(found.arrow_shares[i, j]), 4), int(pointed[i, j])] for i, j in drawn]
            facts = {"network": name, "n": n, "epsilon": epsilon, "delta": delta, "seed": seed, "prior": prior}
            rows.append(facts | {"shd": sum(causes.values())} | causes | {"arrows": arrows})
    return rows


def as_before(evidence):
    """Contrasts about which the numbers of edges say nothing where the noise is not small."""
    if isinstance(evidence, TripleTables):
        return dataclasses.replace(evidence, contrasts=as_before(evidence.contrasts))
    loud = evidence.noise.spread > QUIET * evidence.num_records
    return dataclasses.replace(evidence, strengths=None) if loud else evidence


def kind(row: dict) -> str:
    """Of networks and budgets."""
    name = row["network"]
    of = "of the literature" if name in PUBLISHED else "hubs" if name in HUBS else "random, no hubs"
    return of + (", with a delta" if row["delta"] else "")


def table(rows: list[dict]) -> str:
    """Markdown: distance and arrows by prior and kind of networks, all priors on the same numbers."""
    wrong = ("arrow for open", "open for arrow", "reversed")
    heads = ("networks", "graphs", "prior", "distance", "change", *wrong, "arrows", "share", "right")
    lines = []
    for name, prior in itertools.product(sorted({kind(row) for row in rows}), PRIORS):
        some = [row for row in rows if kind(row) == name]
        usual = EVERY_ORIENTATION if some[0]["delta"] else HALF_WAY
        before, after = ([row for row in some if row["prior"] == at] for at in (usual, prior))
        change = told_change([one["shd"] - other["shd"] for one, other in zip(after, before, strict=True)])
        means = [np.mean([row[cause] for row in after]) for cause in wrong]
        trust = (search.ARROWS if after[0]["delta"] else search.CUBE_ARROWS).trust.of(Shown(0.0))
        share, right = np.array([arrow for row in after for arrow in row["arrows"]]).mean(axis=0)
        numbers = (*means, len([arrow for row in after for arrow in row["arrows"]]) / len(after))
        cells = [name, str(len(after)), prior, f"{np.mean([row['shd'] for row in after]):.2f}"]
        cells += ["before" if prior == usual else change, *(f"{number:.2f}" for number in numbers)]
        lines.append([*cells, f"{trust * share:.2f}", f"{right:.2f}"])
    return record.markdown(heads, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bif", type=pathlib.Path, help="folder of the .bif files of the published networks")
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    if not asked.table:
        done = {(row["network"], row["seed"]) for row in record.rows(FILE)}
        random, known = itertools.product(SEEDS, (*RECIPES, *HUBS)), itertools.product(PUBLISHED_SEEDS, PUBLISHED)
        for seed, name in known if asked.bif else random:
            if (name, seed) not in done:
                record.append(FILE, measured(name, seed, asked.bif))
    record.fill(PAGE, "parents", table(record.rows(FILE)))


if __name__ == "__main__":
    main()
