"""Level of the defaults on true nulls made of real tables: X and Y are redrawn from fits on the real Z.

    python -m experiments.evidence.level real --data FOLDER [--replicates 300] [--out FILE]

FOLDER holds concrete.csv, baseball.csv and spellman.csv, as for `experiments.reproduce`. Z is as in the table, with its
ties, gaps and bunches. X and Y are a fit on Z (kernel ridge regression, the ridge chosen by records left out) plus
residuals of that fit in random order, drawn for X and for Y apart: so X and Y are independent given Z, their means bend
as the table's do and their noise has its tails. One JSON line per table, query and epsilon; the test is built as the
command line builds it, and bounds are those of the columns, a hundredth wider.
"""

import argparse
import json
from pathlib import Path

import jax
import numpy as np

from experiments.evidence.level import nulls, suite
from experiments.record import provenance
from jaxdp import catalogue, core
from jaxdp.data import Column, Data, Domain
from jaxdp.simulate.engine.replicates import decided_for
from jaxdp.spec import KINDS_OF_ALTERNATIVES, Options

RECORD = Path(__file__).parent / "real.jsonl"
EPSILONS = (1.0, 8.0)
CENTRES, RIDGES = 300, 10.0 ** np.arange(-4, 3)
QUERIES = {  # table: (x, y, columns of Z)
    "concrete": (
        ("superplastic", "strength", ("cement",)),
        ("water", "strength", ("age",)),
        ("superplastic", "strength", ("cement", "water")),
        ("fineagg", "strength", ("cement", "age")),
        ("superplastic", "strength", ("cement", "water", "fineagg")),
    ),
    "baseball": (("HR", "SALARY", ("PA",)), ("BB", "RBI", ("H",)), ("HR", "SALARY", ("PA", "H"))),
    "spellman": (
        ("60", "70", ("40",)),
        ("150", "90", ("50",)),
        ("60", "70", ("40", "50")),
        ("150", "250", ("50", "100")),
        ("60", "70", ("40", "50", "100")),
    ),
}


def columns_of(path: Path, names) -> list[np.ndarray]:
    """Numeric columns of a table, records with a missing value left out."""
    table = np.genfromtxt(path, delimiter=",", names=None, dtype=str, comments=None)
    head = [name.strip('"') for name in table[0]]
    values = np.array([[_number(row[head.index(name)]) for name in names] for row in table[1:]])
    return list(values[~np.isnan(values).any(axis=1)].T)


def _number(text: str) -> float:
    try:
        return float(text.strip('"'))
    except ValueError:
        return np.nan


def fitted(z, target, rng):
    """Kernel ridge regression of `target` on z (n, d), both standardised: the fit, on a random half of the records for
    the choice of the ridge, then on all."""
    spread = z.std(axis=0)
    z = (z - z.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    centres = z[rng.permutation(len(z))[:CENTRES]]
    basis = np.exp(-0.5 * np.sum((z[:, None] - centres[None]) ** 2, axis=2) / 0.5**2)
    basis = np.concatenate([np.ones((len(z), 1)), z, basis], axis=1)
    mean, sd = target.mean(), target.std()
    wanted = (target - mean) / sd
    half = rng.permutation(len(z)) < len(z) // 2

    def solve(rows, ridge):
        left = basis[rows]
        return np.linalg.solve(left.T @ left + ridge * np.eye(basis.shape[1]), left.T @ wanted[rows])

    losses = [np.mean((wanted[~half] - basis[~half] @ solve(half, ridge)) ** 2) for ridge in RIDGES]
    return mean + sd * basis @ solve(np.full(len(z), True), RIDGES[int(np.argmin(losses))])


def nulls_of(z, x, y, replicates: int, seed: int):
    """x and y (replicates, n), independent given z, and the shares of their variance that the fits explain."""
    rng = np.random.default_rng(seed)
    drawn, shares = [], []
    for target in (x, y):
        fit = fitted(z, target, rng)
        residual = target - fit
        drawn.append(fit + np.stack([rng.permutation(residual) for _ in range(replicates)]))
        shares.append(round(float(1.0 - residual.var() / target.var()), 3))
    return *drawn, shares


def within_bounds(values, column):
    """Values scaled to [-1, 1] by bounds a hundredth of the range wider than the table's column."""
    low, high = column.min(), column.max()
    margin = 0.01 * (high - low)
    return nulls.scaled(values, (low - margin, high + margin))


def chosen(query) -> list[str]:
    """Names of the tests that the command line takes for such columns, with and without --sees."""
    domain = Domain((Column(),), (Column(),), (Column(),) * len(query[2]))
    return list(dict.fromkeys(catalogue.default(domain, sees=kind).name for kind in (None, *KINDS_OF_ALTERNATIVES)))


def measure(table: str, place: Path, query, name: str, replicates: int) -> list[dict]:
    """One row for each epsilon."""
    x_name, y_name, z_names = query
    x, y, *columns = columns_of(place, (x_name, y_name, *z_names))
    z = np.stack(columns, axis=1)
    new_x, new_y, shares = nulls_of(z, x, y, replicates, seed=len(z))
    data = within_bounds(new_x, x), within_bounds(new_y, y)
    z = np.stack([within_bounds(column, column) for column in columns], axis=1)
    domain = Domain((Column(),), (Column(),), (Column(),) * z.shape[1])
    first = Data(data[0][0], data[1][0], z, domain)
    entry = catalogue.find(name)
    rows = []
    for epsilon in EPSILONS:
        row = {"table": table, "x": x_name, "y": y_name, "given": list(z_names), "n": len(z), "epsilon": epsilon}
        row |= {"test": name, "explained": shares}
        try:
            test = entry.build(epsilon, domain, Options(level=suite.LEVEL, num_records=len(z)))
            core.cost_of(test, first)
            test = decided_for(test, core.public_shapes(first))
        except ValueError as error:
            rows.append({**row, "verdict": suite.REFUSED, "because": str(error)})
            continue
        every = np.broadcast_to(z, (replicates, *z.shape))
        (built,) = suite.budgets([test])
        found, _ = suite.p_values(*built, jax.random.key(17), np.arange(replicates), *data, every, domain)
        count = int(np.sum(np.asarray(found) <= suite.LEVEL))
        flags = list(test.validity(core.public_shapes(first)).flags)
        flags += ["owner is warned of ties"] * suite.owner_is_warned(z, nulls.NULLS["sine 3"])
        low, high = suite.exact_interval(count, replicates)
        verdict = suite.verdict(count, replicates, flags)
        interval = [round(low, 4), round(high, 4)]
        rows.append({**row, "verdict": verdict, "flags": flags, "rejections": count, "replicates": replicates})
        rows[-1]["interval"] = interval
    return rows


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the tables")
    parser.add_argument("--replicates", type=int, default=300)
    parser.add_argument("--tests", nargs="+", help="these tests alone")
    parser.add_argument("--out", type=Path, default=RECORD)
    args = parser.parse_args(arguments)
    commit = provenance()["commit"]
    done = {(row["table"], row["x"], row["y"], *row["given"], row["test"]) for row in suite.read(args.out)}
    with args.out.open("a") as file, jax.enable_x64(True):
        for table, queries in QUERIES.items():
            for query in queries:
                for name in chosen(query) if args.tests is None else set(chosen(query)) & set(args.tests):
                    if (table, query[0], query[1], *query[2], name) in done:
                        continue
                    for row in measure(table, args.data / f"{table}.csv", query, name, args.replicates):
                        file.write(json.dumps({**row, "commit": commit}) + "\n")
                        file.flush()
                        told = row["rejections"] / row["replicates"] if "rejections" in row else row["because"]
                        print(table, query, name, row["epsilon"], row["verdict"], told, flush=True)
