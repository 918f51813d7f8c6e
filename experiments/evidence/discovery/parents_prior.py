"""How many parents a column has beforehand: distance of `max_min_pc` at a pure epsilon by the power of that prior.

python -m experiments.evidence.discovery.parents_prior [--bif FOLDER]   # appends to parents_prior.jsonl what is missing
python -m experiments.evidence.discovery.parents_prior --table          # of docs/theory/max_min_pc.md#parents

All priors on the released numbers of one search for each network and budget. Random networks of recipes and seeds that
no other record has chose the power and the factor of the shares of arrows (`--fit`); "hubs" are networks in which some
columns have many effects. Networks of the literature were looked at once the random ones were.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import pathlib
from unittest import mock

import jax
import numpy as np
from scipy.optimize import minimize_scalar

from experiments import record
from experiments.evidence.discovery.border import KNOWN, told_change
from experiments.evidence.discovery.causes import parts
from experiments.evidence.discovery.networks import Recipe, _probabilities, made
from jaxdp import discovery
from jaxdp.data.networks import Network, Variable, read_bif
from jaxdp.discovery import cpdag_of
from jaxdp.discovery.engine.arrow_trust import Trust
from jaxdp.discovery.methods import max_min_pc as search
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
BUDGETS = ((10_000, 4.0), (100_000, 1.0), (100_000, 3.0))
POWERS, SEEDS, KNOWN_SEEDS = (0.0, 0.25, 0.5, 1.0), (66_000, 66_001), (9100, 9101)


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
    if name in KNOWN:
        net = read_bif(bif / f"{name}.bif")
    else:
        net = hubs(HUBS[name], seed) if name in HUBS else made(RECIPES[name], seed)
    true, rows, oriented = cpdag_of(net.dag), [], search.oriented
    for n, epsilon in BUDGETS[2:] if name in KNOWN else BUDGETS:
        given: list = []
        with mock.patch.object(search, "oriented", lambda *args, given=given: given.append(args) or oriented(*args)):
            records, key = sample_network(jax.random.key(seed), net, n), jax.random.key(seed)
            discovery.max_min_pc(key, records, epsilon=epsilon)
        for power, (skeleton, contrasts, against, default) in itertools.product(POWERS, given):
            rule = dataclasses.replace(default, parents=power, trust=Trust(np.inf))
            found = oriented(skeleton, contrasts, against, rule)
            causes, pointed = parts(found.cpdag, true), true & ~true.T
            drawn = np.argwhere(found.cpdag & ~found.cpdag.T)
            arrows = [[round(float(found.arrow_shares[i, j]), 4), int(pointed[i, j])] for i, j in drawn]
            facts = {"network": name, "n": n, "epsilon": epsilon, "seed": seed, "power": power}
            rows.append(facts | {"shd": sum(causes.values())} | causes | {"arrows": arrows})
    return rows


def kind(row: dict) -> str:
    """Of networks."""
    return row["network"] if row["network"] in KNOWN else "hubs" if row["network"] in HUBS else "random, no hubs"


def table(rows: list[dict]) -> str:
    """Markdown: distance and arrows by power and kind of networks, all powers on the same numbers."""
    wrong = ("arrow for open", "open for arrow", "reversed")
    heads = ("networks", "graphs", "power", "distance", "change", *wrong, "arrows")
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name, power in itertools.product(sorted({kind(row) for row in rows}, reverse=True), POWERS):
        before, after = ([row for row in rows if kind(row) == name and row["power"] == at] for at in (0.0, power))
        change = told_change([one["shd"] - other["shd"] for one, other in zip(after, before, strict=True)])
        means = [np.mean([row[cause] for row in after]) for cause in wrong]
        shares = np.array([arrow for row in after for arrow in row["arrows"]])
        cells = (name, str(len(after)), f"{power:g}", f"{np.mean([row['shd'] for row in after]):.2f}")
        cells += (change if power else "", *(f"{mean:.2f}" for mean in means), f"{len(shares) / len(after):.1f}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def trusted(rows: list[dict], constant: float | None = None) -> str:
    """The constant of `Trust` of greatest likelihood, and what a constant expects of arrows and how many are right."""
    share, right = np.array([arrow for row in rows for arrow in row["arrows"]]).T

    def loss(value):
        chance = np.clip(share / (1.0 + np.exp(-value)), 1e-6, 1.0 - 1e-6)
        return -np.mean(np.where(right > 0, np.log(chance), np.log1p(-chance)))

    best = float(minimize_scalar(loss, bounds=(0.0, 6.0), method="bounded").x)
    part = 1.0 / (1.0 + np.exp(-(best if constant is None else constant)))
    return f"fit {best:.2f}; {len(share)} arrows, mean share {part * share.mean():.3f}, right {right.mean():.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bif", type=pathlib.Path, help="folder of the .bif files of the published networks")
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    if not asked.table:
        done = {(row["network"], row["seed"]) for row in record.rows(FILE)}
        random, known = itertools.product(SEEDS, (*RECIPES, *HUBS)), itertools.product(KNOWN_SEEDS, KNOWN)
        for seed, name in known if asked.bif else random:
            if (name, seed) not in done:
                record.append(FILE, measured(name, seed, asked.bif))
    rows = record.rows(FILE)
    record.fill(PAGE, "parents", table(rows))
    own = [row for row in rows if row["power"] == search.CUBE_ARROWS.parents]
    random, known = ([row for row in own if (row["network"] in KNOWN) is of] for of in (False, True))
    before, after = search.ARROWS.trust.constant, search.CUBE_ARROWS.trust.constant
    print("random:", trusted(random), "before:", trusted(random, before))
    for name in ("of the literature", *KNOWN):
        some = [row for row in known if name in (row["network"], "of the literature")]
        print(f"{name}:", trusted(some, after), "before:", trusted(some, before))


if __name__ == "__main__":
    main()
