"""All pairs by one joint release: false findings on independent columns, pairs found on tables.

    python -m experiments.evidence.pairs.run level [rare_levels ...]
    python -m experiments.evidence.pairs.run found TABLE.csv SCHEMA.toml --shuffled

Appends one line a cell to `record.jsonl` beside this file. Tables are not part of the project: a line has counts only.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import time

import jax
import numpy as np

import jaxdp
from jaxdp import null_laws
from jaxdp.data.dataset import CATEGORICAL, ORDINAL, Column, Data, Domain
from jaxdp.data.schema import Schema
from jaxdp.independence.tables.pair_contrasts import PairContrasts
from jaxdp.mechanisms import Gaussian

RECORD = pathlib.Path(__file__).with_name("record.jsonl")
LEVEL, RECORDS, NUM_NULL = 0.05, 2000, 2799
BUDGETS = (1.0, 8.0)


def normal_columns(random):
    """Eight continuous columns, three of them skewed."""
    values = random.normal(size=(RECORDS, 8))
    return np.clip(np.where(np.arange(8) < 3, np.exp(values) / 6.0 - 1.0, values / 4.0), -1, 1), (Column(),) * 8


def tied_columns(random):
    """Continuous columns with half of the records, or nine tenths, at one value; ordinal ones with a heavy level."""
    values = random.uniform(-1, 1, (RECORDS, 8))
    heavy = np.where(np.arange(8) % 2, 0.9, 0.5)
    values = np.where(random.random(values.shape) < heavy, -0.3, values)
    values[:, 6:] = np.minimum(random.geometric(0.7, (RECORDS, 2)) - 1, 5)
    return values, (Column(),) * 6 + (Column(ORDINAL, 6),) * 2


def rare_levels(random):
    """Two to six unordered levels, the last of which have 1 to 3 % of the records."""
    levels = (2, 2, 3, 3, 4, 4, 5, 6)
    columns = tuple(Column(CATEGORICAL, count) for count in levels)
    shares = [np.array([*[(1 - 0.02 * (c // 2)) / (c - c // 2)] * (c - c // 2), *[0.02] * (c // 2)]) for c in levels]
    return np.stack([random.choice(len(p), RECORDS, p=p / p.sum()) for p in shares], 1).astype(float), columns


NULLS = {made.__name__: made for made in (normal_columns, tied_columns, rare_levels)}


def made(budget):
    """The test of a budget: epsilon, or (epsilon, delta) with Gaussian noise."""
    if isinstance(budget, tuple):
        return PairContrasts(mechanism=Gaussian(jaxdp.accounting.zcdp_rho(*budget)), num_null=NUM_NULL)
    return PairContrasts(epsilon=budget, num_null=NUM_NULL)


def row(name, budget, sets, replicates, first=0):
    """Counts of one cell: pairs with p <= 0.05, sets of data with a finding, pairs found after Holm's adjustment."""
    start, below, any_found, found, pairs = time.time(), 0, 0, [], 0
    covered = 0
    for number in range(first, first + replicates):
        values, columns = sets(np.random.default_rng(number))
        data = Data(values, values, None, Domain(columns, columns))
        result = jaxdp.run(made(budget), jax.random.key(number), data)
        p = np.asarray(result.p_value)
        kept = np.asarray(null_laws.holm(p)) <= LEVEL
        below, pairs = below + int((p <= LEVEL).sum()), pairs + p.size
        any_found, found = any_found + bool(kept.any()), [*found, int(kept.sum())]
        covered += int((np.asarray(result.interval[0]) <= 0.0).sum())
    return {
        "cell": name,
        "budget": budget,
        "n": len(values),
        "replicates": replicates,
        "first": first,
        "p_at_most_level": below / pairs,
        "any_found": any_found / replicates,
        "found": float(np.mean(found)),
        "intervals_with_0": covered / pairs,
        "pairs": int(p.size),
        "seconds": round(time.time() - start, 1),
    }


def table_of(path, schema):
    """Coded rows of a table, and its columns."""
    known = Schema.load(schema)
    names = list(known.names)
    values = np.asarray(known.read_table(path, names)[0])
    return values, tuple(column for name in names for column in known.rule(name).code_column())


def shuffled(values, random):
    """Every column in an order of its own."""
    return np.stack([random.permutation(column) for column in values.T], axis=1)


def main():
    """Runs the cells that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("level", "found"))
    parser.add_argument("files", nargs="*")
    parser.add_argument("--shuffled", action="store_true")
    parser.add_argument("--replicates", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="number of the first replicate")
    parser.add_argument("--budgets", default="1,8", help="epsilons, or epsilon:delta")
    args = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    budgets = [tuple(map(float, text.split(":"))) if ":" in text else float(text) for text in args.budgets.split(",")]
    if args.what == "level":
        cells = [(name, sets) for name, sets in NULLS.items() if name in (args.files or NULLS)]
    else:
        values, columns = table_of(*args.files)
        name = pathlib.Path(args.files[0]).stem
        if args.shuffled:
            cells = [(f"{name}, shuffled", lambda random: (shuffled(values, random), columns))]
        else:
            cells = [(name, lambda random: (values, columns))]
    with RECORD.open("a") as file:
        for name, sets in cells:
            for budget in budgets:
                found = row(name, budget, sets, args.replicates, args.first)
                file.write(json.dumps(found) + "\n")
                file.flush()
                print(found, flush=True)


if __name__ == "__main__":
    main()
