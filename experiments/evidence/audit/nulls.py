"""Type-I error of every test of the package: rejections of a true null, against a binomial window.

python -m experiments.evidence.audit.nulls                     # 1e5 nulls a row, resumable: finished rows are kept
python -m experiments.evidence.audit.nulls --names conditional-kendall mice-laplace --replicates 1e4 --out /some/folder

One row for every example of the catalogue that has a null (`Example.null`), and some without `correct_level`; only the
size of the study and its settings are kept here. A row states the null, the promise and its side:
`exact` (two-sided window), `at most` and `limit` (upper window: valid but conservative, or valid as n grows).
"""

import argparse
import dataclasses
import functools
import json
import time
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

import jaxdp
from experiments.record import provenance
from jaxdp import null_laws
from jaxdp._base.pytree import frozen_pytree
from jaxdp.audit import cases
from jaxdp.core import PrivateTest, Sequential
from jaxdp.independence.mic.mic_pairs import MICrPairs
from jaxdp.independence.pairs import AllPairs
from jaxdp.simulate import power
from jaxdp.simulate.examples import LAW
from jaxdp.spec import DECISION
from jaxdp.statistics.kernel_ridge.kernels import RBF

LEVELS = (0.05, 0.01)
ALPHA = 1e-6
EXACT, AT_MOST, LIMIT = "exact", "at most", "limit"
CHUNK = 10_000
HERE = Path(__file__).parent


@dataclasses.dataclass(frozen=True)
class Null:
    """An example's test on data in which independence holds (`Example.null`), at the size of a study.

    promise: one of the three above. epsilon: the budget (rho of Gaussian noise). fields: of the test's class, in place
    of those of the example; a function of the level for decisions, which are made for one level.
    example: name of the example, where the row has another. wrap: test -> one test of the global null.
    most: replicates that are affordable. replayed: whether whole runs on neighbours are compared; not where rows are
    pairs of columns or tables.
    """

    n: int
    promise: str
    says: str
    epsilon: float = 1.0
    fields: Mapping[str, Any] | Callable[[float], Mapping[str, Any]] | None = None
    example: str = ""
    wrap: Callable[[Any], Any] | None = None
    most: int = 10**9
    replayed: bool = True

    @property
    def decision(self) -> bool:
        """Whether there is a test for each level."""
        return callable(self.fields)


def configured(name: str) -> cases.Configured:
    """The example of a row."""
    return cases.find(rows()[name].example or name)


def make(name: str, level: float):
    """The test of a row, for one level."""
    null = rows()[name]
    fields = null.fields(level) if callable(null.fields) else null.fields
    test = configured(name).build(null.epsilon, null.n, fields)
    return null.wrap(test) if null.wrap else test


def draw(name: str):
    """key -> Data of a row."""
    return functools.partial(configured(name).example.null, n=rows()[name].n)


@frozen_pytree
class FamilyWise(PrivateTest):
    """A test of many hypotheses as one test of the global null: its smallest adjusted p-value."""

    test: Any = None

    def __post_init__(self):
        """The budget is that of `test`."""

    def specialize(self, shapes):
        inner = self.test.specialize(shapes)
        if not isinstance(inner, Sequential):
            return FamilyWise(test=inner)
        return dataclasses.replace(inner, second=FamilyWise(test=inner.second), then=then_inside(inner.then))

    def mechanism_in_force(self):
        return self.test.mechanism_in_force()

    def statistic(self, key, data):
        return self.test.statistic(key, data)

    def sensitivity(self, num_records):
        return self.test.sensitivity(num_records)

    def p_value(self, key, release):
        return jnp.min(self.test.p_value(key, release))


@frozen_pytree
class FamilyOfPairs(MICrPairs):
    """All coefficients as one test of the global null: the smallest p-value against the largest of all null values."""

    num_null: int = jax.tree.static(default=39)

    one_program: ClassVar[bool] = True

    def p_value(self, key, release):
        return jnp.min(self.p_values(key, release, self.num_null).family)

    def estimate(self, release):
        return release.value


@functools.lru_cache(maxsize=8)
def then_inside(then):
    """What a stage's release does to the test inside; cached, so that one program serves all runs."""

    def configure(second, query, released):
        return FamilyWise(test=then(second.test, query, released))

    return configure


@frozen_pytree
class Family(AllPairs):
    """All pairs as one test of the global null: Bonferroni over the pairs."""

    def specialize(self, shapes):
        return Family(test=super().specialize(shapes).test)

    def p_value(self, key, release):
        return null_laws.bonferroni(super().p_value(key, release))


def of_all_pairs(test) -> Family:
    """The global null of all pairs."""
    return Family(test=test.test)


def of_coefficients(test) -> FamilyOfPairs:
    """The global null of all coefficients."""
    return FamilyOfPairs(epsilon=test.epsilon, max_cells=test.max_cells)


def of_tables(test) -> FamilyWise:
    """The global null of all tables."""
    return FamilyWise(test=test)


def at_level(level: float) -> dict[str, Any]:
    """A decision at this level."""
    return {"level": level}


def groups_of_100(level: float) -> dict[str, Any]:
    """Fields of a test of tables of 100 cases and 100 controls."""
    return {"num_cases": 100, "num_controls": 100, "kind": jaxdp.UnitCircle, "level": level}


def two_of_groups(level: float) -> dict[str, Any]:
    """The same, for two tables."""
    return {**groups_of_100(level), "count": 2}


def permutations(level: float) -> dict[str, Any]:
    """79 permutations, 399 at level 0.01."""
    return {"num_permutations": 2 * copies(level) + 1, "level": level}


def resamples(level: float) -> dict[str, Any]:
    """39 resamples, 199 at level 0.01."""
    return {"law": LAW, "num_resamples": copies(level), "level": level}


def resamples_of_residuals(level: float) -> dict[str, Any]:
    """The same, of kernel ridge residuals."""
    return {**resamples(level), "kernel": RBF(lengthscale=1.0), "ridge": 1.0}


def copies(level: float) -> int:
    """Fewest copies with a rank at the level."""
    return 39 if level == 0.05 else 199


TUNED = "largest tail over all null rates"  # for level 0.05, valid at every level
GRADUAL = "laws of x and y change slowly with z"
CELLS = "cells narrow against the wave, n V large against the noise"
AXES = "five columns of z, n epsilon = 7000: enough to choose the axes"
UNCORRECTED = "; noise of V not counted"
RESIDUALS = "normal columns, bounds 3.3 sds off; the sum of scores nearly normal"
LOGISTIC = "the logistic model, normal columns, bounds 4 sds off; first order in the noise"
POISSON = "a log-linear mean, Poisson counts up to 10, normal columns, bounds 4 sds off; first order in the noise"
AMOUNTS = "a log-linear mean, exponential amounts up to 10, normal columns, bounds 4 sds off; first order in the noise"
LINEAR = "a linear model with normal errors; first order in the noise"
WINDOW_OF_BIAS = "the noise hides the bias of the fit"
TRUE_LAW = "the law of x given z is true"
MIC_TABLE = "tabulated null of 499 draws"
SLOW_FITS = "default ridge, bias 0.08 sd; 11 ms a fit: 2e4 nulls. Not private"
NEAR = {"enforce_rule": False}
WIDE = {"scale_x": 4.0, "scale_y": 4.0}
AXIS_FIELDS = {"accept_coarse_cells": True}
_cells = functools.partial(Null, 1000, LIMIT)
_tables = functools.partial(Null, 6, AT_MOST, wrap=of_tables, most=10_000, replayed=False)
_first_tables = _tables("no table has an effect; family-wise: any report among 6", epsilon=4.0, fields=two_of_groups)
NULLS = {
    "partition-gcm": _cells(CELLS),
    "partition-gcm-columns": _cells(CELLS + "; Bonferroni over 6", epsilon=4.0),
    "partition-gcm-zcdp": _cells(CELLS + "; rho = 0.5", epsilon=0.5),
    "partition-gcm-regions": _cells(CELLS + "; in each region", fields={"num_regions": 3, "num_null": 199}),
    "partition-gcm-weights": _cells(
        CELLS + "; weights of both signs", fields={"num_cells": 125, "weights": np.cos(np.arange(125.0))}
    ),
    "partition-gcm-persons": _cells(CELLS + "; by the second moment of persons with one row"),
    "partition-gcm-marginal": _cells("no z: one cell, no bias"),
    "partition-gcm-axes": _cells(AXES, epsilon=7.0, fields=AXIS_FIELDS),
    "partition-gcm-standardized": _cells(CELLS, fields={"scale_x": 0.3, "scale_y": 0.3, "standardize": True}),
    "winsorised-partial-correlation": Null(2000, LIMIT, LINEAR),
    "winsorised-partial-correlation-zcdp": _cells(LINEAR + "; rho = 0.1", epsilon=0.1),
    "linear-regression": Null(10_000, LIMIT, RESIDUALS),
    "linear-regression-zcdp": Null(10_000, LIMIT, RESIDUALS + "; rho = 0.5", epsilon=0.5),
    "partial-correlation": Null(10_000, LIMIT, RESIDUALS),
    "partial-correlation-zcdp": Null(10_000, LIMIT, RESIDUALS + "; rho = 0.5", epsilon=0.5),
    "mean-difference": _cells("one normal response, two groups; scores nearly normal"),
    "mean-difference-zcdp": _cells("one normal response, two groups; scores nearly normal; rho = 0.1", epsilon=0.1),
    "winsorised-mean-difference": _cells("one normal response, two groups"),
    "chosen-cells": _cells(CELLS + " for each candidate", fields={"candidates": (40, 125)}),
    "private-gcm": Null(200, LIMIT, WINDOW_OF_BIAS, fields=WIDE),
    "private-gcm-paper": Null(200, LIMIT, WINDOW_OF_BIAS, fields=WIDE),
    "local-permutation": Null(
        40, AT_MOST, "x and y independent given the cell (codes of z); each side at half the level", fields=permutations
    ),
    "private-crt": Null(50, EXACT, "the law of x given z is the true one", fields=resamples),
    "private-crt-normal": _cells(TRUE_LAW),
    "private-crt-paper": Null(100, AT_MOST, TRUE_LAW + "; no level theorem", fields={"law": LAW, "num_resamples": 19}),
    "private-crt-kernel": Null(50, EXACT, "the law of x given z is the true one", fields=resamples_of_residuals),
    "all-pairs": _cells(CELLS + "; Bonferroni over 3 pairs", epsilon=4.0, wrap=of_all_pairs, replayed=False),
    "conditional-kendall": _cells(CELLS + "; V is guarded"),
    "conditional-kendall-codes": Null(300, LIMIT, "independent given the codes of z; V is guarded"),
    "conditional-kendall-marginal-zcdp": Null(300, LIMIT, "no z; V is guarded", epsilon=0.5),
    "conditional-kendall-paper": Null(300, LIMIT, "independent given the codes of z; ties make it conservative"),
    "conditional-spearman": _cells(CELLS + "; V is guarded"),
    "unit-circle": Null(600, AT_MOST, TUNED),
    "unit-circle-estimated": Null(600, AT_MOST, "interval for the null rate, paid for"),
    "unit-circle-paper": Null(600, AT_MOST, "decision at the margin's own null rate, no theorem", fields=at_level),
    "margin-adaptive": Null(600, AT_MOST, TUNED),
    "chi2-laplace": Null(600, AT_MOST, TUNED),
    "distance-score": Null(600, AT_MOST, TUNED),
    "noisy-proportions": Null(600, LIMIT, "the null rate is estimated"),
    "noisy-table": Null(600, LIMIT, "margins are estimated", fields={"num_null": 199}),
    "projected-chi2": Null(600, LIMIT, "margins are estimated", fields={"num_null": 99}),
    "goodness-of-fit": Null(
        600, EXACT, "the law is the true one: Monte Carlo", fields={"probabilities": [0.25, 0.5, 0.25], "num_null": 199}
    ),
    "test-of-tests": Null(
        600,
        LIMIT,
        "the block test (Fisher's z) has its level in blocks of 40",
        fields={"test": jaxdp.CorrelationTest(), "num_blocks": 15},
    ),
    "subsample-aggregate": Null(
        600,
        LIMIT,
        "blocks of 40 follow the half-normal limit",
        fields={
            "statistic_of": jaxdp.CorrelationTest().value,
            "null": "half-normal",
            "num_blocks": 15,
            "num_null": 199,
        },
    ),
    "mice-laplace": Null(100, EXACT, f"continuous margins; {MIC_TABLE}", fields={}),
    "micr-laplace": Null(100, EXACT, f"uniform margins; {MIC_TABLE}", fields={}),
    "mice-laplace-paper": Null(100, AT_MOST, f"continuous margins; noise is clipped: ties; {MIC_TABLE}", fields={}),
    "micr-laplace-paper": Null(100, EXACT, f"uniform margins; {MIC_TABLE}", fields={}),
    "micr-laplace-ranges": Null(
        100, LIMIT, f"uniform margins, transformed at a cost; {MIC_TABLE}", fields={"range_share": 0.3}
    ),
    "micr-geometric": Null(60, AT_MOST, "uniform margins", fields={"max_cells": 6, "num_null": 99}),
    "micr-geometric-split": Null(60, EXACT, "uniform margins", fields={"max_cells": 6, "num_null": 99}),
    "micr-geometric-paper": Null(60, EXACT, "uniform margins", fields={"max_cells": 6, "num_null": 99}),
    "band-gcm": _cells(GRADUAL, fields=NEAR, most=20_000),
    "band-gcm-columns": _cells(GRADUAL + "; Bonferroni over 6", epsilon=4.0, fields=NEAR, most=20_000),
    "band-gcm-released-zcdp": _cells(GRADUAL + "; rho = 0.5", epsilon=0.5, most=20_000),
    "contrast-gcm": Null(300, LIMIT, GRADUAL + " in two columns", fields=NEAR, most=10_000),
    "every-table": _tables("no table has an effect; family-wise, Bonferroni over 6", fields=groups_of_100),
    "first-tables": _first_tables,
    "first-tables-paper": _first_tables,
    "best-tables": _tables(
        "no table has an effect; family-wise over 6, two chosen and tested", epsilon=4.0, fields=two_of_groups
    ),
    "score-test": Null(2000, LIMIT, "x and y linear in z; family-wise over 4 variants", epsilon=2.0),
    "score-test-bins": Null(2000, LIMIT, "the same within 50 bins of z, lines and null model 0", epsilon=2.0),
    "best-variants": Null(
        2000,
        AT_MOST,
        "x and y linear in z; family-wise over 4 variants, two chosen and tested",
        epsilon=4.0,
        fields={"count": 2},
        wrap=of_tables,
        most=10_000,
    ),
    "micr-pairs": Null(
        60,
        AT_MOST,
        "three independent uniform columns; family-wise against the largest of 39 null values (none below 0.025)",
        epsilon=3.0,
        wrap=of_coefficients,
        most=10_000,
    ),
    "gcm": _cells(SLOW_FITS, fields={}, most=20_000),
    "gcm-columns": _cells(SLOW_FITS, fields={"num_null": 199}, most=20_000),
    "crt": Null(100, EXACT, TRUE_LAW, fields={"law": LAW, "num_resamples": 99}),
    "partition-gcm-uncorrected": _cells(CELLS + UNCORRECTED, example="partition-gcm", fields={"correct_level": False}),
    "partition-gcm-regions-uncorrected": _cells(
        CELLS + "; in each region" + UNCORRECTED,
        example="partition-gcm-regions",
        fields={"num_regions": 3, "num_null": 199, "correct_level": False},
    ),
    "partition-gcm-axes-uncorrected": _cells(
        AXES + UNCORRECTED, example="partition-gcm-axes", epsilon=7.0, fields={"correct_level": False, **AXIS_FIELDS}
    ),
    "quantile-table": Null(500, LIMIT, "margins are estimated; 3 bins", fields={"num_bins": 3, "num_null": 199}),
    "quantile-table-zcdp": Null(
        500, LIMIT, "margins are estimated; 3 bins, rho = 0.5", epsilon=0.5, fields={"num_bins": 3, "num_null": 199}
    ),
    "feature-gcm": _cells(GRADUAL, fields=NEAR),
    "feature-gcm-zcdp": _cells(GRADUAL + "; rho = 0.5", epsilon=0.5, fields=NEAR),
    "feature-gcm-centred": _cells(GRADUAL + "; private centres", fields=NEAR),
    "contrast-features": Null(300, LIMIT, GRADUAL + " in two columns", fields=NEAR),
    "kruskal-wallis": Null(500, LIMIT, "normal limit of rank sums; sizes released", fields={"num_null": 199}),
    "kruskal-wallis-pair": Null(500, LIMIT, "normal limit of a rank sum; sizes released"),
    "kruskal-wallis-zcdp": Null(
        500, LIMIT, "normal limit of rank sums; sizes released; rho = 0.5", epsilon=0.5, fields={"num_null": 199}
    ),
    "logistic-regression": Null(4000, LIMIT, LOGISTIC),
    "logistic-regression-zcdp": Null(4000, LIMIT, LOGISTIC + "; rho = 0.1", epsilon=0.1),
    "poisson-regression": Null(4000, LIMIT, POISSON, epsilon=4.0),
    "poisson-regression-zcdp": Null(4000, LIMIT, POISSON + "; rho = 0.5", epsilon=0.5),
    "m-estimator": Null(4000, LIMIT, AMOUNTS, epsilon=4.0),
    "m-estimator-zcdp": Null(4000, LIMIT, AMOUNTS + "; rho = 0.5", epsilon=0.5),
}


def window(replicates: int, level: float, alpha: float = ALPHA) -> tuple[int, int]:
    """Fewest and most rejections that a rate of `level` gives with probability 1 - alpha."""
    from scipy.stats import binom

    low, high = binom.ppf([alpha / 2, 1 - alpha / 2], replicates, level)
    return int(low), int(high)


def rows() -> dict[str, Null]:
    """Every row by name: those above, and for each other example that has a null, that null at 1000 records."""
    return NULLS | {name: _of_example(one) for name, one in cases.all_examples().items() if _unlisted(name, one)}


def _unlisted(name: str, one: cases.Configured) -> bool:
    return name not in NULLS and one.example.null is not None and not one.example.bounds_only


def _of_example(one: cases.Configured) -> Null:
    decides = one.entry.spec.publishes == DECISION
    return Null(1000, LIMIT, "the null of the example", fields=(lambda level: {"level": level}) if decides else None)


def _number(name: str) -> int:
    """What a row's key is folded by."""
    return list(NULLS).index(name) if name in NULLS else zlib.crc32(name.encode())


def measure(name: str, replicates: int, key, progress=lambda done: None) -> dict:
    """One row: rejections at both levels, their windows, and whether the promise holds."""
    null, started = rows()[name], time.perf_counter()
    made = {level: make(name, level) for level in LEVELS}
    tests = made if null.decision else {None: made[LEVELS[0]]}
    p_values = {}
    for number, (level, test) in enumerate(tests.items()):
        run = functools.partial(power.p_values, test, draw(name), jax.random.fold_in(key, number))
        parts = []
        for start in range(0, replicates, CHUNK):
            parts.append(np.asarray(run(min(CHUNK, replicates - start), start=start)))
            progress((number + (start + parts[-1].size) / replicates) / len(tests))
        p_values[level] = np.concatenate(parts)
    row: dict[str, Any] = {"name": name, "n": null.n, "replicates": replicates, "promise": null.promise}
    row |= {"says": null.says, "levels": []}
    for level in LEVELS:
        found = p_values.get(level, p_values.get(None))
        # float32 p-values of rank tests may sit a rounding above the level they equal
        hits = int(np.sum(found <= level * (1 + 1e-6)))
        low, high = window(replicates, level)
        holds = hits <= high and (hits >= low or null.promise != EXACT) and not np.isnan(found).any()
        row["levels"].append(
            {"level": level, "rejections": hits, "rate": hits / replicates, "window": [low, high], "holds": bool(holds)}
        )
    return row | {"holds": all(part["holds"] for part in row["levels"]), "seconds": time.perf_counter() - started}


def finished(path: Path) -> dict[str, dict]:
    """Rows of earlier runs by name; a torn last line is left out."""
    rows = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        rows[row["name"]] = row
    return rows


def table(measured: dict[str, dict]) -> str:
    """Rows as markdown."""
    lines = ["| configuration | n | nulls | promise | at 0.05 | at 0.01 |", "|---|---|---|---|---|---|"]
    for name in [name for name in rows() if name in measured]:
        row = measured[name]
        rates = [f"{part['rate']:.4f}{'' if part['holds'] else ' OUTSIDE'}" for part in row["levels"]]
        lines.append(f"| {name} | {row['n']} | {row['replicates']} | {row['promise']} | {rates[0]} | {rates[1]} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=lambda text: int(float(text)), default=100_000)
    parser.add_argument("--names", nargs="+", choices=sorted(rows()), default=list(rows()))
    parser.add_argument("--seed", type=int, default=20261121)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no row after so long")
    parser.add_argument("--out", type=Path, default=HERE)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    path, began = args.out / "nulls.jsonl", time.monotonic()
    measured = finished(path)
    if path.exists() and not path.read_text().endswith("\n"):  # torn by an interruption
        path.write_text("".join(json.dumps(row) + "\n" for row in measured.values()))
    wanted = {name: min(args.replicates, rows()[name].most) for name in args.names}
    left = [name for name in args.names if measured.get(name, {}).get("replicates", 0) < wanted[name]]
    for done, name in enumerate(left):
        if time.monotonic() - began > args.seconds:
            break

        def show(share, done=done, name=name):
            return print(
                f"\r[{'#' * int(20 * (done + share) / len(left)):20}] {name} {share:.0%}   ", end="", flush=True
            )

        key = jax.random.fold_in(jax.random.key(args.seed), _number(name))
        measured[name] = {**measure(name, wanted[name], key, show), "seed": args.seed, **provenance()}
        with path.open("a") as file:
            file.write(json.dumps(measured[name]) + "\n")
    print("\n" + table(measured))


if __name__ == "__main__":
    main()
