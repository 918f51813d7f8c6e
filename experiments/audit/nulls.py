"""Type-I error of every test of the package: rejections of a true null, against a binomial window.

python -m experiments.audit.nulls                              # 1e5 nulls a row, resumable: finished rows are kept
python -m experiments.audit.nulls --names kendall mic_e --replicates 1e4 --out /some/folder

One row per configuration of the contract table (tests/cases.py), and some without `correct_level`. A row states the
null, the promise and its side:
`exact` (two-sided window), `at most` and `limit` (upper window: valid but conservative, or valid as n grows).
"""

import argparse
import dataclasses
import functools
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

import jaxdp
from experiments.record import provenance
from jaxdp import calibrate
from jaxdp._pytree import frozen_pytree
from jaxdp.core import PrivateTest, Sequential
from jaxdp.data.dataset import BINARY, ORDINAL, Column, Data, Domain
from jaxdp.independence.marginal.mic_pairs import MICrPairs
from jaxdp.independence.pairs import AllPairs
from jaxdp.simulate import power, sine_confounder
from jaxdp.statistics.kernels import RBF

LEVELS = (0.05, 0.01)
ALPHA = 1e-6
EXACT, AT_MOST, LIMIT = "exact", "at most", "limit"
CHUNK = 10_000
HERE = Path(__file__).parent
LAW = jaxdp.simulate.SineLaw(noise_sd=1.0, complexity=2.0)


@dataclasses.dataclass(frozen=True)
class Null:
    """A test on a design in which independence holds.

    make: level -> test (decisions are made for one level). draw: key, n -> Data. promise: one of the three above.
    """

    make: Callable[[float], Any]
    draw: Callable[..., Data]
    n: int
    promise: str
    says: str
    decision: bool = False
    most: int = 10**9  # replicates that are affordable


@frozen_pytree
class FamilyWise(PrivateTest):
    """A test of many hypotheses as one test of the global null: its smallest adjusted p-value."""

    test: Any = None

    def __post_init__(self):
        """The budget is that of `test`."""

    def resolve(self, shapes):
        inner = self.test.resolve(shapes)
        if not isinstance(inner, Sequential):
            return FamilyWise(test=inner)
        return dataclasses.replace(inner, second=FamilyWise(test=inner.second), then=then_inside(inner.then))

    def budget(self):
        return self.test.budget()

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

    def headline(self, release):
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

    def resolve(self, shapes):
        return Family(test=super().resolve(shapes).test)

    def p_value(self, key, release):
        return calibrate.bonferroni(super().p_value(key, release))


def columns(key, n, p, q):
    """p columns x and q columns y that share the wave of z and nothing else."""
    key_z, key_x, key_y = jax.random.split(key, 3)
    z = 2.0 * jax.random.normal(key_z, (n,))
    shared = jaxdp.simulate.confounder.wave(z, 2.0)[:, None]
    return Data(shared + jax.random.normal(key_x, (n, p)), jax.random.normal(key_y, (n, q)) - shared, z)


def features(key, n, count):
    """`count` features that share the wave of z and nothing else."""
    data = columns(key, n, count, 1)
    return Data(data.x, data.x, data.z)


def scaled(key, n):
    """Strong means, small noise, everything in [-1, 1] by its schema."""
    key_z, key_x, key_y = jax.random.split(key, 3)
    z = jax.random.uniform(key_z, (n,), minval=-1.0)
    x = 0.6 * jnp.sin(3 * z) + 0.2 * jax.random.normal(key_x, (n,))
    return Data(x, 0.5 * z + 0.2 * jax.random.normal(key_y, (n,)), z, Domain(z=(Column(),)))


def independent(key, n):
    """Two uniform columns, no z."""
    return Data(*jax.random.uniform(key, (2, n), minval=-1.0))


def normal(key, n):
    """Two normal columns, no z."""
    return Data(*jax.random.normal(key, (2, n)))


def coded(key, n, levels):
    """Codes whose laws depend on z (last of levels; 0 for no z), independent given it."""
    domain = Domain(*((Column(ORDINAL, count),) if count else () for count in levels))
    key_z, key_x, key_y = jax.random.split(key, 3)
    z = jax.random.randint(key_z, (n,), 0, max(levels[2], 1))
    lean = 0.5 * z[:, None] - 0.25
    x, y = (
        jax.random.categorical(k, lean * jnp.arange(1.0 * count)[None, :])
        for k, count in ((key_x, levels[0]), (key_y, levels[1]))
    )
    return Data(x, y, z if levels[2] else None, domain)


def law_of_codes(key, n):
    """Codes of x with the public law 1/4, 1/2, 1/4."""
    x = jax.random.categorical(key, jnp.log(jnp.array([0.25, 0.5, 0.25])), shape=(n,))
    return Data(x, jnp.zeros_like(x), None, Domain((Column(ORDINAL, 3),), (Column(ORDINAL, 3),)))


def groups(key, n):
    """Equal groups, exposure 0.3 in both: y is public."""
    y = (jnp.arange(n) < n // 2).astype(jnp.int32)
    x = jax.random.bernoulli(key, 0.3, (n,)).astype(jnp.int32)
    return Data(x, y, None, Domain((Column(BINARY, 2),), (Column(BINARY, 2),)))


def tables(key, n, size=100):
    """n case/control tables of `size` people in each group, exposure 0.3 in all."""
    return jaxdp.Tables(*jnp.sum(jax.random.bernoulli(key, 0.3, (2, n, size)), axis=2))


def table_columns(key, n):
    """A table of three independent columns, uniform on their ranges."""
    return jax.random.uniform(key, (n, 3), minval=-1.0)


def gradual(key, n, dim=1, count=(1, 1)):
    """Laws that change slowly with z: linear means, noise of sd 1; x and y independent given z."""
    key_z, key_x, key_y = jax.random.split(key, 3)
    z = jax.random.uniform(key_z, (n, dim), minval=-1.0)
    trend = 0.5 * jnp.sum(z, axis=1, keepdims=True)
    x, y = (trend + jax.random.normal(k, (n, p)) for k, p in zip((key_x, key_y), count, strict=True))
    return Data(*(values[:, 0] if values.shape[1] == 1 else values for values in (x, y, z)))


def of_tables(kind, says, **options) -> Null:
    """Six tables of 100 cases and 100 controls, at one level: the family-wise error."""
    sizes = {"num_cases": 100, "num_controls": 100, "kind": jaxdp.UnitCircle}
    make = lambda level: FamilyWise(test=kind(level=level, **sizes, **options))  # noqa: E731
    return Null(make, tables, 6, AT_MOST, says, decision=True, most=10_000)


def case_control(kind, says, promise=AT_MOST, **options) -> Null:
    """A test of `groups`, 300 cases and 300 controls: tuned for level 0.05, valid at every level."""
    make = lambda level: kind(epsilon=1.0, num_cases=300, num_controls=300, **options)  # noqa: E731
    return Null(make, groups, 600, promise, says)


def randomisation(make, n, says, promise=EXACT, draw=sine_confounder) -> Null:
    """A decision at one level from 39 (199 at level 0.01) resamples or permutations."""
    return Null(lambda level: make(39 if level == 0.05 else 199, level), draw, n, promise, says, decision=True)


def plain(test, draw, n, promise, says, **more) -> Null:
    """A test whose p-value serves every level."""
    return Null(lambda _: test, draw, n, promise, says, **more)


PartitionGCM, PrivateGCM, PrivateCRT = jaxdp.PartitionGCM, jaxdp.PrivateGCM, jaxdp.PrivateCRT
GRADUAL = "laws of x and y change slowly with z"
CELLS = "cells narrow against the wave, n V large against the noise"
WINDOW_OF_BIAS = "the noise hides the bias of the fit"
NULLS = {
    "partition_gcm": plain(PartitionGCM(epsilon=1.0), sine_confounder, 1000, LIMIT, CELLS),
    "partition_gcm_columns": plain(
        PartitionGCM(epsilon=4.0), functools.partial(columns, p=2, q=3), 1000, LIMIT, CELLS + "; Bonferroni over 6"
    ),
    "partition_gcm_zcdp": plain(
        PartitionGCM(mechanism=jaxdp.Gaussian(0.5)), sine_confounder, 1000, LIMIT, CELLS + "; rho = 0.5"
    ),
    "partition_gcm_regions": plain(
        PartitionGCM(epsilon=1.0, num_regions=3, num_null=199), sine_confounder, 1000, LIMIT, CELLS + "; in each region"
    ),
    "partition_gcm_weights": plain(
        PartitionGCM(epsilon=1.0, num_cells=125, weights=np.cos(np.arange(125.0))),
        sine_confounder,
        1000,
        LIMIT,
        CELLS + "; weights of both signs",
    ),
    "partition_gcm_marginal": plain(PartitionGCM(epsilon=1.0), normal, 1000, LIMIT, "no z: one cell, no bias"),
    "partition_gcm_axes": plain(
        PartitionGCM(epsilon=7.0, accept_coarse_cells=True),
        functools.partial(sine_confounder, dim=5),
        1000,
        LIMIT,
        "five columns of z, n epsilon = 7000: enough to choose the axes",
    ),
    "partition_gcm_standardized": plain(
        PartitionGCM(epsilon=1.0, scale_x=0.3, scale_y=0.3, standardize=True), scaled, 1000, LIMIT, CELLS
    ),
    "chosen_cells": plain(
        jaxdp.ChosenCells(epsilon=1.0, candidates=(40, 125)),
        sine_confounder,
        1000,
        LIMIT,
        CELLS + " for each candidate",
    ),
    "private_gcm_tight": plain(
        PrivateGCM(epsilon=1.0, scale_x=4.0, scale_y=4.0), sine_confounder, 200, LIMIT, WINDOW_OF_BIAS
    ),
    "private_gcm_paper": plain(
        PrivateGCM(epsilon=1.0, variant="paper", scale_x=4.0, scale_y=4.0), sine_confounder, 200, LIMIT, WINDOW_OF_BIAS
    ),
    "local_permutation": randomisation(
        lambda copies, level: jaxdp.LocalPermutation(epsilon=1.0, num_permutations=2 * copies + 1, level=level),
        40,
        "x and y independent given the cell (codes of z); each side at half the level",
        AT_MOST,
        functools.partial(coded, levels=(5, 7, 4)),
    ),
    "crt_threshold": randomisation(
        lambda copies, level: PrivateCRT(epsilon=1.0, law=LAW, num_resamples=copies, level=level),
        50,
        "the law of x given z is the true one",
    ),
    "crt_normal": plain(
        PrivateCRT(epsilon=1.0, law=LAW, variant="normal"), sine_confounder, 1000, LIMIT, "the law of x given z is true"
    ),
    "crt_paper": plain(
        PrivateCRT(epsilon=1.0, law=LAW, variant="paper", num_resamples=19),
        sine_confounder,
        100,
        AT_MOST,
        "the law of x given z is true; no level theorem",
    ),
    "crt_kernel": randomisation(
        lambda copies, level: PrivateCRT(
            epsilon=1.0, law=LAW, kernel=RBF(lengthscale=1.0), ridge=1.0, num_resamples=copies, level=level
        ),
        50,
        "the law of x given z is the true one",
    ),
    "all_pairs": plain(
        Family(test=PartitionGCM(epsilon=4.0)),
        functools.partial(features, count=3),
        1000,
        LIMIT,
        CELLS + "; Bonferroni over 3 pairs",
    ),
    "kendall": plain(jaxdp.ConditionalKendall(epsilon=1.0), sine_confounder, 1000, LIMIT, CELLS + "; V is guarded"),
    "kendall_codes": plain(
        jaxdp.ConditionalKendall(epsilon=1.0),
        functools.partial(coded, levels=(2, 3, 2)),
        300,
        LIMIT,
        "independent given the codes of z; V is guarded",
    ),
    "kendall_marginal_zcdp": plain(
        jaxdp.ConditionalKendall(mechanism=jaxdp.Gaussian(0.5)), independent, 300, LIMIT, "no z; V is guarded"
    ),
    "kendall_paper": plain(
        jaxdp.ConditionalKendall(epsilon=1.0, variant="paper"),
        functools.partial(coded, levels=(3, 3, 2)),
        300,
        LIMIT,
        "independent given the codes of z; ties make it conservative",
    ),
    "spearman": plain(jaxdp.ConditionalSpearman(epsilon=1.0), sine_confounder, 1000, LIMIT, CELLS + "; V is guarded"),
    "unit_circle": case_control(jaxdp.UnitCircle, "largest tail over all null rates"),
    "unit_circle_estimated": case_control(jaxdp.UnitCircle, "interval for the null rate, paid for", null="estimated"),
    "margin_adaptive": case_control(jaxdp.MarginAdaptive, "largest tail over all null rates"),
    "chi2_laplace": case_control(jaxdp.ChiSquaredLaplace, "largest tail over all null rates"),
    "distance_score": case_control(jaxdp.DistanceScore, "largest tail over all null rates"),
    "noisy_proportions": case_control(jaxdp.NoisyProportions, "the null rate is estimated", LIMIT),
    "noisy_table": plain(
        jaxdp.NoisyTableChi2(epsilon=1.0, num_null=199),
        functools.partial(coded, levels=(3, 3, 0)),
        600,
        LIMIT,
        "margins are estimated",
    ),
    "projected_chi2": plain(
        jaxdp.ProjectedChi2(epsilon=1.0, num_null=99),
        functools.partial(coded, levels=(2, 3, 0)),
        600,
        LIMIT,
        "margins are estimated",
    ),
    "goodness_of_fit": plain(
        jaxdp.ProjectedGoodnessOfFit(epsilon=1.0, probabilities=[0.25, 0.5, 0.25], num_null=199),
        law_of_codes,
        600,
        EXACT,
        "the law is the true one: Monte Carlo",
    ),
    "vote": plain(
        jaxdp.TestOfTests(epsilon=1.0, test=jaxdp.CorrelationTest(), num_blocks=15),
        normal,
        600,
        LIMIT,
        "the block test (Fisher's z) has its level in blocks of 40",
    ),
    "median": plain(
        jaxdp.SubsampleAggregate(
            epsilon=1.0,
            statistic_of=jaxdp.CorrelationTest().value,
            null="half-normal",
            num_blocks=15,
            num_null=199,
        ),
        normal,
        600,
        LIMIT,
        "blocks of 40 follow the half-normal limit",
    ),
    "mic_e": plain(
        jaxdp.MICeLaplace(epsilon=1.0), independent, 100, EXACT, "continuous margins; tabulated null of 499 draws"
    ),
    "mic_r": plain(
        jaxdp.MICrLaplace(epsilon=1.0), independent, 100, EXACT, "uniform margins; tabulated null of 499 draws"
    ),
    "mic_r_ranges": plain(
        jaxdp.MICrLaplace(epsilon=1.0, range_share=0.3),
        independent,
        100,
        LIMIT,
        "uniform margins, transformed at a cost; tabulated null of 499 draws",
    ),
    "mic_geometric": plain(
        jaxdp.MICrGeometric(epsilon=1.0, max_cells=6, num_null=99),
        independent,
        60,
        EXACT,
        "uniform margins",
    ),
    "band_gcm": plain(jaxdp.BandGCM(epsilon=1.0, enforce_rule=False), gradual, 1000, LIMIT, GRADUAL, most=20_000),
    "band_gcm_columns": plain(
        jaxdp.BandGCM(epsilon=4.0, enforce_rule=False),
        functools.partial(gradual, count=(2, 3)),
        1000,
        LIMIT,
        GRADUAL + "; Bonferroni over 6",
        most=20_000,
    ),
    "band_gcm_released_zcdp": plain(
        jaxdp.BandGCM(mechanism=jaxdp.Gaussian(0.5), variance="released", enforce_rule=False),
        gradual,
        1000,
        LIMIT,
        GRADUAL + "; rho = 0.5",
        most=20_000,
    ),
    "contrast_gcm": plain(
        jaxdp.ContrastGCM(epsilon=1.0, enforce_rule=False),
        functools.partial(gradual, dim=2),
        300,
        LIMIT,
        GRADUAL + " in two columns",
        most=10_000,
    ),
    "every_table": of_tables(jaxdp.EveryTable, "no table has an effect; family-wise, Bonferroni over 6", epsilon=1.0),
    "first_tables": of_tables(
        jaxdp.FirstTables, "no table has an effect; family-wise: any report among 6", epsilon=4.0, count=2
    ),
    "best_tables": of_tables(
        jaxdp.BestTables, "no table has an effect; family-wise over 6, two chosen and tested", epsilon=4.0, count=2
    ),
    "mic_pairs": plain(
        FamilyOfPairs(epsilon=3.0, max_cells=6),
        table_columns,
        60,
        AT_MOST,
        "three independent uniform columns; family-wise against the largest of 39 null values (none below 0.025)",
        most=10_000,
    ),
    "gcm": plain(
        jaxdp.GCM(),
        sine_confounder,
        1000,
        LIMIT,
        "default ridge, bias 0.08 sd; 11 ms a fit: 2e4 nulls. Not private",
        most=20_000,
    ),
    "gcm_columns": plain(
        jaxdp.GCM(num_null=199),
        functools.partial(columns, p=2, q=3),
        1000,
        LIMIT,
        "default ridge, bias 0.08 sd; 11 ms a fit: 2e4 nulls. Not private",
        most=20_000,
    ),
    "crt": plain(jaxdp.CRT(law=LAW, num_resamples=99), sine_confounder, 100, EXACT, "the law of x given z is true"),
    "partition_gcm_uncorrected": plain(
        PartitionGCM(epsilon=1.0, correct_level=False), sine_confounder, 1000, LIMIT, CELLS + "; noise of V not counted"
    ),
    "partition_gcm_regions_uncorrected": plain(
        PartitionGCM(epsilon=1.0, num_regions=3, num_null=199, correct_level=False),
        sine_confounder,
        1000,
        LIMIT,
        CELLS + "; in each region; noise of V not counted",
    ),
    "partition_gcm_axes_uncorrected": plain(
        PartitionGCM(epsilon=7.0, correct_level=False, accept_coarse_cells=True),
        functools.partial(sine_confounder, dim=5),
        1000,
        LIMIT,
        "five columns of z, n epsilon = 7000: enough to choose the axes; noise of V not counted",
    ),
}


# Exported queries that reject nothing: what they are checked by instead.
WITHOUT_LEVEL = {
    "MICrTopPair": "it names a pair and tests nothing: its law of selection is audited (audit.json)",
}


def window(replicates: int, level: float, alpha: float = ALPHA) -> tuple[int, int]:
    """Fewest and most rejections that a rate of `level` gives with probability 1 - alpha."""
    from scipy.stats import binom

    low, high = binom.ppf([alpha / 2, 1 - alpha / 2], replicates, level)
    return int(low), int(high)


def measure(name: str, replicates: int, key, progress=lambda done: None) -> dict:
    """One row: rejections at both levels, their windows, and whether the promise holds."""
    null, started = NULLS[name], time.perf_counter()
    draw = functools.partial(null.draw, n=null.n)
    made = {level: null.make(level) for level in LEVELS}
    tests = made if null.decision else {None: made[LEVELS[0]]}
    p_values = {}
    for number, (level, test) in enumerate(tests.items()):
        run = functools.partial(power.p_values, test, draw, jax.random.fold_in(key, number))
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


def table(rows: dict[str, dict]) -> str:
    """Rows as markdown."""
    lines = ["| configuration | n | nulls | promise | at 0.05 | at 0.01 |", "|---|---|---|---|---|---|"]
    for name in [name for name in NULLS if name in rows]:
        row = rows[name]
        rates = [f"{part['rate']:.4f}{'' if part['holds'] else ' OUTSIDE'}" for part in row["levels"]]
        lines.append(f"| {name} | {row['n']} | {row['replicates']} | {row['promise']} | {rates[0]} | {rates[1]} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=lambda text: int(float(text)), default=100_000)
    parser.add_argument("--names", nargs="+", choices=sorted(NULLS), default=list(NULLS))
    parser.add_argument("--seed", type=int, default=20261121)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no row after so long")
    parser.add_argument("--out", type=Path, default=HERE)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    path, began = args.out / "nulls.jsonl", time.monotonic()
    rows = finished(path)
    if path.exists() and not path.read_text().endswith("\n"):  # torn by an interruption
        path.write_text("".join(json.dumps(row) + "\n" for row in rows.values()))
    wanted = {name: min(args.replicates, NULLS[name].most) for name in args.names}
    left = [name for name in args.names if rows.get(name, {}).get("replicates", 0) < wanted[name]]
    for done, name in enumerate(left):
        if time.monotonic() - began > args.seconds:
            break
        show = lambda share, done=done, name=name: print(  # noqa: E731
            f"\r[{'#' * int(20 * (done + share) / len(left)):20}] {name} {share:.0%}   ", end="", flush=True
        )
        key = jax.random.fold_in(jax.random.key(args.seed), list(NULLS).index(name))
        rows[name] = {**measure(name, wanted[name], key, show), "seed": args.seed, **provenance()}
        with path.open("a") as file:
            file.write(json.dumps(rows[name]) + "\n")
    print("\n" + table(rows))


if __name__ == "__main__":
    main()
