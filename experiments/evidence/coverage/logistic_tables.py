"""Coverage of `logistic-regression` on real tables (docs/evidence/coverage.md): a table is the population.

    python -m experiments.evidence.coverage.logistic_tables --folder CSVS [--replicates 200]
    python -m experiments.evidence.coverage.logistic_tables --table     # the table of the page, from the record

CSVS holds fair.csv, anes96.csv and randhie.csv of statsmodels and breast_cancer.csv of scikit-learn, none of which is
kept here. Data sets of n records are drawn with replacement. *Truth*: the slope of X by maximum likelihood without
privacy on the whole table, columns clipped at the bounds below; no model needs to hold. `plain_covered`: the same of
Wald's interval, so that the share which the model itself loses is beside it.
"""

import csv
import dataclasses
import zlib
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from experiments.evidence.coverage import logistic
from experiments.record import append, command_line, fill, markdown, rows, settings
from jaxdp.data.dataset import BINARY, Column, Data, Domain

RECORD = Path(__file__).parent / "logistic_tables.jsonl"
CELLS = [(n, epsilon) for n in (2000, 5000) for epsilon in (1.0, 4.0)]
SEED = 3308


@dataclasses.dataclass(frozen=True)
class Case:
    """A table, its yes, and columns of Z, then X, each with public bounds.

    None: two levels, 0 and 1. Three numbers: bounds and how many ordered levels lie evenly between them.
    """

    file: str
    yes: Callable
    columns: dict

    @property
    def domain(self) -> Domain:
        """As a schema describes the columns."""
        made = [Column(levels=sum(bounds[2:])) if bounds else Column(BINARY, 2) for bounds in self.columns.values()]
        return Domain((made[-1],), (Column(BINARY, 2),), tuple(made[:-1]))

    def read(self, folder: Path) -> tuple[np.ndarray, np.ndarray]:
        """(columns within their bounds, 0 or 1)."""
        with (folder / self.file).open(encoding="utf-8", newline="") as file:
            first = file.readline()
            file.seek(0)
            how = {"delimiter": "\t", "quotechar": "'"} if "\t" in first else {}
            table = [{name: float(cell or "nan") for name, cell in row.items()} for row in csv.DictReader(file, **how)]
        values = np.array([[row[name] for name in self.columns] for row in table])
        ends = np.array([(bounds or (0.0, 1.0))[:2] for bounds in self.columns.values()])
        return np.clip(values, *ends.T), np.array([1.0 * self.yes(row) for row in table])

    def data(self, values, y) -> Data:
        """As the schema scales them."""
        scaled = [
            values[:, j] if ends is None else (2.0 * values[:, j] - sum(ends[:2])) / (ends[1] - ends[0])
            for j, ends in enumerate(self.columns.values())
        ]
        return Data(scaled[-1], y, jnp.stack(scaled[:-1], axis=1) if scaled[1:] else None, self.domain)


FAIR = {"age": (15, 65), "rate_marriage": (1, 5), "religious": (1, 4)}
TABLES = {
    "fair: affairs by years married": Case(
        "fair.csv", lambda row: row["affairs"] > 0, {**FAIR, "yrs_married": (0, 40)}
    ),
    "fair: affairs by rating of the marriage": Case(
        "fair.csv", lambda row: row["affairs"] > 0, {"yrs_married": (0, 40), "rate_marriage": (1, 5)}
    ),
    "anes96: vote by party": Case(
        "anes96.csv", lambda row: row["vote"] > 0, {"age": (18, 100), "educ": (1, 7), "income": (1, 24), "PID": (0, 6)}
    ),
    "randhie: any visit by diseases": Case(
        "randhie.csv", lambda row: row["mdvis"] > 0, {"lncoins": (0, 5), "idp": None, "physlm": None, "disea": (0, 60)}
    ),
    "randhie: fair health by diseases": Case(
        "randhie.csv", lambda row: row["hlthf"] > 0, {"lpi": (0, 8), "disea": (0, 60)}
    ),
    "breast cancer: malignant by texture": Case(
        "breast_cancer.csv", lambda row: row["malignant"] > 0, {"mean smoothness": (0, 0.3), "mean texture": (0, 50)}
    ),
    "breast cancer: malignant by radius": Case(
        "breast_cancer.csv", lambda row: row["malignant"] > 0, {"mean texture": (0, 50), "mean radius": (0, 40)}
    ),
}


@dataclasses.dataclass(frozen=True)
class Regression:
    """A method on its tables; without privacy: (columns, y) -> (slope, half width), and the same of many data sets."""

    method: str
    record: Path
    tables: dict[str, Case]
    plain: Callable
    many: Callable


LOGISTIC = Regression("logistic-regression", RECORD, TABLES, logistic.plain, logistic.wald)


def measure(of: Regression, name: str, n: int, epsilon: float, replicates: int, folder: Path) -> dict:
    """One row."""
    case = of.tables[name]
    values, y = case.read(folder)
    bounds = list(case.columns.values())[-1]
    # in units of the whole table's sds, where Newton's steps are safe
    sds = values.std(axis=0)
    true, half = (float(part) / sds[-1] for part in of.plain(jnp.asarray(values / sds), jnp.asarray(y)))
    row = {"case": name, "n": n, "epsilon": epsilon, "table": len(y), "rate": round(float(y.mean()), 4)}
    row |= {"truth": round(true, 5), "truth_per_sd": round(true * sds[-1], 3)}
    row |= {"half_width_of_the_table": round(half, 5)}
    shapes = jax.eval_shape(lambda: case.data(jnp.zeros((n, values.shape[1])), jnp.zeros(n)))
    if logistic.built(case.domain, n, epsilon, 0.0, of.method).validity(shapes).verdict == "refuse":
        return row | {"refused": True, "replicates": 0}
    rng = np.random.default_rng([SEED, zlib.crc32(f"{name} {n} {epsilon:g}".encode())])
    run, told = logistic.answers(case.domain, n, epsilon, 0.0, of.method), []
    for _ in range(replicates // logistic.CHUNK):
        chosen = rng.integers(0, len(y), (logistic.CHUNK, n))
        drawn, said = jnp.asarray(values[chosen]), jnp.asarray(y[chosen])
        keys = jax.random.split(jax.random.key(int(rng.integers(2**31))), logistic.CHUNK)
        found = run(keys, jax.vmap(case.data)(drawn, said))
        told.append([*found, *of.many(drawn / sds, said)])
    p, effect, low, high, without, own = (np.concatenate(part) for part in zip(*told, strict=True))
    unit = logistic.half_range(bounds)
    effect, low, high = (part / unit for part in (effect, low, high))
    without, own = without / sds[-1], own / sds[-1]
    answered = np.isfinite(low)
    inside = ((low <= true) & (true <= high))[answered]
    some = bool(answered.any())
    return row | {
        "refused": False,
        "answered": round(float(answered.mean()), 4),
        "covered": round(float(inside.mean()), 4) if some else None,
        "misled": round(float((~inside).sum() / len(p)), 4),
        "rejected": round(float((p < 0.05).mean()), 4),
        "median_effect": round(float(np.median(effect[answered])), 5) if some else None,
        "width": round(float(np.median((high - low)[answered])), 5) if some else None,
        "plain_width": round(float(np.nanmedian(2.0 * own)), 5),
        "plain_covered": round(float(np.mean(np.abs(without - true) <= own)), 4),
        "replicates": len(p),
    }


def table(of: Regression, rate: str = "rate") -> str:
    """The table of the page."""
    found = {(row["case"], row["n"], row["epsilon"]): row for row in rows(of.record)}
    lines = []
    for name in of.tables:
        row = next((row for row in found.values() if row["case"] == name), None)
        if row is None:
            continue
        cells = [found.get((name, *cell)) for cell in CELLS]
        told = [
            logistic.told_of(cell) + (f"; {cell['plain_covered']:.2f}" if cell and not cell["refused"] else "")
            for cell in cells
        ]
        lines.append([name, f"{row['rate']:.2g}", f"{row['truth_per_sd']:.2g}", *told])
    return markdown(["table", rate, "slope per sd", *settings(CELLS)], lines) + "\n"


def run(of: Regression, words: str, section: str, rate: str = "rate") -> None:
    """The command line of a regression's tables; section: where its table stands on the page."""
    parser = command_line(words, 200)
    parser.add_argument("--folder", type=Path, help="where the CSV files lie")
    asked = parser.parse_args()
    if asked.table:
        return fill(logistic.PAGE, section, table(of, rate))
    if asked.folder is None:
        parser.error("--folder is missing.")
    done = {(row["case"], row["n"], row["epsilon"]) for row in rows(of.record)}
    todo = [(name, *cell) for name in of.tables for cell in CELLS if (name, *cell) not in done]
    with jax.enable_x64(True):
        append(of.record, (measure(of, *cell, asked.replicates, asked.folder) for cell in todo))


if __name__ == "__main__":
    run(LOGISTIC, __doc__, "logistic tables")
