"""Coverage, level and width of `logistic-regression` (docs/evidence/coverage.md).

    python -m experiments.evidence.coverage.logistic [--replicates 400] [--only NAME ...]
    python -m experiments.evidence.coverage.logistic --records   # that a power of .8 needs, by the planner
    python -m experiments.evidence.coverage.logistic --table     # the tables of the page, from the records

One JSON line per design, n, epsilon and delta (0: pure noise). Tests are made by the builder of `jaxdp.test` from
columns of a schema. Y follows the logistic model in the columns as clipped at the bounds, so that the truth is the
design's own slope; where a design bends the log odds, the slope of maximum likelihood of a million records, by their
chances. A data set without an interval is counted apart (`answered`); `covered` is the share of the
intervals that hold the truth, `misled` that of intervals that do not among all data sets, `rejected` that of p < 0.05
among all. `plain_width`, `plain_covered`, `plain_rejected`: of Wald's interval by maximum likelihood on the same data,
without privacy. A row of fewer data sets than are asked for is measured again.
"""

import dataclasses
import functools
import json
import math
import time
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from experiments.record import append, command_line, fill, keys_of, markdown, provenance, rows, settings
from jaxdp import catalogue, core, plan
from jaxdp.accounting.renyi import zcdp_rho
from jaxdp.data.dataset import BINARY, Column, Data, Domain
from jaxdp.mechanisms import Gaussian
from jaxdp.plan import solve
from jaxdp.spec import Options

RECORD, NEEDED = (Path(__file__).parent / f"logistic{name}.jsonl" for name in ("", "_needed"))
PAGE = Path(__file__).parents[3] / "docs" / "evidence" / "coverage.md"
EPSILONS = (0.5, 1.0, 4.0)
LARGE = 100_000
CELLS = [(n, epsilon) for n in (1000, 10_000, LARGE) for epsilon in EPSILONS]
SHARE = {1000: 2.5, 10_000: 1.0, LARGE: 0.5}  # of the replicates
DELTA = 1e-6
RATIO = 1.35  # odds ratio per sd of X, whose records are counted
KINDS = [(0, 0.4), (3, 0.4), (3, 0.05), (1, 0.4), (5, 0.4), (1, 0.05)]  # columns of Z, rate
SEED, CHUNK = 3307, 100
FOUR, SKEWED, TEN = (-4.0, 4.0), (0.0, 20.0), (-12.0, 12.0)


def correlated(key, n: int, count: int, correlation: float):
    """Normal columns (n, count) with one correlation."""
    own, common = (
        jax.random.normal(key, (n, count + 1))[:, :count],
        jax.random.normal(jax.random.fold_in(key, 1), (n, 1)),
    )
    return (1.0 - correlation) ** 0.5 * own + correlation**0.5 * common


def normal(key, n: int, count: int):
    return correlated(key, n, count, 0.5)


def close(key, n: int, count: int):
    return correlated(key, n, count, 0.9)


def lognormal(key, n: int, count: int):
    """The first column of Z, which X goes with, lognormal."""
    found = correlated(key, n, count, 0.5)
    return found.at[:, 0].set(jnp.exp(found[:, 0]))


def heavy(key, n: int, count: int):
    """X has heavy tails."""
    found = correlated(key, n, count, 0.3)
    return found.at[:, -1].add(0.7 * jax.random.t(jax.random.fold_in(key, 2), 3.0, (n,)))


def skewed_x(key, n: int, count: int):
    """X lognormal."""
    found = correlated(key, n, count, 0.5)
    return found.at[:, -1].set(jnp.exp(0.6 * found[:, -1]) - 1.2)


def two_groups(key, n: int, count: int):
    """X is one of two groups of 30 and 70 %, 0 and 1; the first column of Z is one of two of 20 and 80 %, -1 and 1."""
    found = correlated(key, n, count, 0.4)
    found = found.at[:, 0].set(jnp.where(found[:, 0] > 0.84, 1.0, -1.0))
    return found.at[:, -1].set(1.0 * (found[:, -1] > 0.52))


@dataclasses.dataclass(frozen=True)
class Design:
    """Columns of Z, then X; slopes in this order, per unit; rate: P(Y = 1); bounds of each, None for two levels.

    bend: of columns (n, d), added to what the slopes say.
    """

    columns: Callable
    slopes: tuple[float, ...]
    bounds: tuple
    rate: float = 0.4
    bend: Callable | None = None

    @property
    def domain(self) -> Domain:
        """As the schema describes the columns."""
        made = [Column() if bounds else Column(BINARY, 2) for bounds in self.bounds]
        return Domain((made[-1],), (Column(BINARY, 2),), tuple(made[:-1]))

    def clipped(self, key, n: int):
        """The columns (n, d) within their bounds, in their own units."""
        values = self.columns(key, n, len(self.slopes))
        ends = np.array([bounds or (-9.0, 9.0) for bounds in self.bounds])
        return jnp.clip(values, *ends.T)

    def along(self, values):
        """The log odds but for the constant, (n,)."""
        straight = values @ jnp.array(self.slopes)
        return straight if self.bend is None else straight + self.bend(values)

    def data(self, values, y) -> Data:
        """Columns as the schema scales them, and y."""
        scaled = [
            1.0 * (values[:, j] > 0.0) if ends is None else (2.0 * values[:, j] - sum(ends)) / (ends[1] - ends[0])
            for j, ends in enumerate(self.bounds)
        ]
        return Data(scaled[-1], y, jnp.stack(scaled[:-1], axis=1) if scaled[1:] else None, self.domain)


THREE, FIVE, FOUR_OF_THEM = (0.3, -0.2, 0.1), (0.4, -0.3, 0.2, -0.4, 0.3), (FOUR,) * 4
DESIGNS = {
    "no z": Design(normal, (0.6,), (FOUR,)),
    "no z, null": Design(normal, (0.0,), (FOUR,)),
    "no z, 5 %": Design(normal, (0.6,), (FOUR,), 0.05),
    "one z": Design(normal, (-0.4, 0.6), (FOUR, FOUR)),
    "one z, null": Design(normal, (-0.8, 0.0), (FOUR, FOUR)),
    "one z, 5 %": Design(normal, (-0.4, 0.6), (FOUR, FOUR), 0.05),
    "one z, correlated .9": Design(close, (-0.4, 0.6), (FOUR, FOUR)),
    "one lognormal z": Design(lognormal, (0.3, 0.6), (SKEWED, FOUR)),
    "one lognormal z, null": Design(lognormal, (0.3, 0.0), (SKEWED, FOUR)),
    "one lognormal z, 5 %": Design(lognormal, (0.3, 0.6), (SKEWED, FOUR), 0.05),
    "one lognormal z, 5 %, null": Design(lognormal, (0.3, 0.0), (SKEWED, FOUR), 0.05),
    "x with tails of t3, one z": Design(heavy, (0.5, 0.4), (FOUR, TEN)),
    "three z": Design(normal, (*THREE, 0.6), FOUR_OF_THEM),
    "three z, null": Design(normal, (0.7, -0.5, 0.2, 0.0), FOUR_OF_THEM),
    "three z, 5 %, null": Design(normal, (0.7, -0.5, 0.2, 0.0), FOUR_OF_THEM, 0.05),
    "three z, 5 %": Design(normal, (*THREE, 0.6), FOUR_OF_THEM, 0.05),
    "two groups, three z of which one binary": Design(two_groups, (0.4, -0.5, 0.3, 0.7), (None, FOUR, FOUR, None)),
    "two groups, three z of which one binary, null": Design(
        two_groups, (0.4, -0.5, 0.3, 0.0), (None, FOUR, FOUR, None)
    ),
    "two groups, three z of which one binary, 5 %": Design(
        two_groups, (0.4, -0.5, 0.3, 0.7), (None, FOUR, FOUR, None), 0.05
    ),
    "steep, three z": Design(normal, (1.0, -0.8, 0.4, 1.2), FOUR_OF_THEM),
    "five z": Design(normal, (*FIVE, 0.6), (FOUR,) * 6),
    "five z, null": Design(normal, (*FIVE, 0.0), (FOUR,) * 6),
    "five z, 5 %": Design(normal, (*FIVE, 0.6), (FOUR,) * 6, 0.05),
    "five z, first lognormal": Design(lognormal, (*FIVE, 0.6), (SKEWED, *(FOUR,) * 5)),
    # log odds that bend: by the first of them the allowance was chosen
    "saturates: 1.2 tanh 2x": Design(normal, (-0.4, 0.0), (FOUR, FOUR), bend=lambda v: 1.2 * jnp.tanh(2.0 * v[:, -1])),
    "a step of 1.5": Design(normal, (-0.4, 0.0), (FOUR, FOUR), bend=lambda v: 1.5 * (v[:, -1] > 0.5)),
    "a cube": Design(normal, (-0.4, 0.2), (FOUR, FOUR), bend=lambda v: 0.12 * v[:, -1] ** 3),
    "a parabola of z": Design(normal, (-0.4, 0.6), (FOUR, FOUR), bend=lambda v: 0.4 * v[:, 0] ** 2),
    "x with tails of t3, saturates": Design(heavy, (-0.4, 0.0), (FOUR, TEN), bend=lambda v: jnp.tanh(v[:, -1])),
    "lognormal x, levels off": Design(skewed_x, (-0.4, 0.8), (FOUR, FOUR), bend=lambda v: -0.12 * v[:, -1] ** 2),
}
# those asked about at every n with Gaussian noise, or at the largest n: one of each kind
LARGE_ONES = ("one z, 5 %", "one lognormal z", "one lognormal z, 5 %, null", "three z", "five z")
LARGE_ONES += ("two groups, three z of which one binary",)
WITH_DELTA = ("one z", "one lognormal z, null", "one lognormal z, 5 %", "three z, 5 %", "five z, null", LARGE_ONES[-1])


@functools.cache
def constant(name: str) -> float:
    """That gives the design's rate."""
    design = DESIGNS[name]
    along = design.along(design.clipped(jax.random.key(1), 1_000_000))
    low, high = -20.0, 20.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if float(jnp.mean(jax.nn.sigmoid(middle + along))) < design.rate else (low, middle)
    return low


@functools.cache
def truth(name: str) -> float:
    """The slope that an interval should hold."""
    design = DESIGNS[name]
    if design.bend is None:
        return design.slopes[-1]
    values = design.clipped(jax.random.key(2), 1_000_000)
    return float(jax.jit(plain)(values, jax.nn.sigmoid(constant(name) + design.along(values)))[0])


def draw(key, n: int, name: str):
    """(Data as the schema scales them, the columns in their own units)."""
    design = DESIGNS[name]
    values = design.clipped(key, n)
    chance = jax.nn.sigmoid(constant(name) + design.along(values))
    y = 1.0 * (jax.random.uniform(jax.random.fold_in(key, 3), (n,)) < chance)
    return design.data(values, y), values


def plain(values, y):
    """(slope of the last column, half width of Wald's interval) by maximum likelihood."""
    design = jnp.concatenate([jnp.ones((len(values), 1)), values], axis=1)

    def information(slopes):
        chance = jax.nn.sigmoid(design @ slopes)
        return design.T @ (y - chance), (design * (chance * (1.0 - chance))[:, None]).T @ design

    def step(_, slopes):
        score, found = information(slopes)
        return slopes + jnp.linalg.solve(found, score)

    slopes = jax.lax.fori_loop(0, 12, step, jnp.zeros(design.shape[1]))
    return slopes[-1], 1.959964 * jnp.sqrt(jnp.linalg.inv(information(slopes)[1])[-1, -1])


@jax.jit
def wald(values, y):
    """`plain` of many data sets."""
    return jax.lax.map(lambda both: plain(*both), (values, y))


@functools.cache
def drawn(name: str, n: int):
    """keys -> many data sets, and their columns in their own units."""
    return jax.jit(lambda keys: jax.lax.map(lambda key: draw(key, n, name), keys))


def built(domain: Domain, n: int, epsilon: float, delta: float, method: str = "logistic-regression"):
    """The test of the command line."""
    test = catalogue.find(method).build(epsilon, domain, Options(num_records=n))
    return dataclasses.replace(test, epsilon=None, mechanism=Gaussian(zcdp_rho(epsilon, delta))) if delta else test


@functools.cache
def answers(domain: Domain, n: int, epsilon: float, delta: float, method: str = "logistic-regression"):
    """(keys, data sets) -> p-values, effects and ends; one program for all designs of such columns."""
    return answering(built(domain, n, epsilon, delta, method))


def answering(test):
    """(keys, data sets) -> p-values, effects and ends."""

    def one(both):
        result = core.run(test, *both)
        return result.p_value, result.effect, *result.interval

    return jax.jit(lambda keys, data: jax.lax.map(one, (keys, data)))


def half_range(bounds) -> float:
    """What 1 on [-1, 1] is in the column's own units."""
    return 0.5 if bounds is None else 0.5 * (bounds[1] - bounds[0])


def measure(name: str, n: int, epsilon: float, delta: float, replicates: int) -> dict:
    """One row."""
    start, design, _ = time.process_time(), DESIGNS[name], constant(name)  # known before anything is traced
    row = {"design": name, "n": n, "epsilon": epsilon, "delta": delta}
    test = built(design.domain, n, epsilon, delta)
    shapes = jax.eval_shape(lambda key: draw(key, n, name)[0], jax.random.key(0))
    if test.validity(shapes).verdict == "refuse":
        return row | {"refused": True, "replicates": 0}

    keys = keys_of(SEED, f"{name} {n} {epsilon:g}{' with delta' if delta else ''}", replicates)
    split = jax.vmap(jax.random.split)(keys)
    told = []
    for first in range(0, replicates, CHUNK):
        key_data, key_run = (split[first : first + CHUNK, side] for side in (0, 1))
        data, values = drawn(name, n)(key_data)
        told.append([*answers(design.domain, n, epsilon, delta)(key_run, data), *wald(values, data.y)])
    return row | summary(told, truth(name), design.bounds[-1]) | {"seconds": round(time.process_time() - start, 1)}


def summary(told: list, true: float, bounds) -> dict:
    """Of (p, effect, low, high of the test; slope, half width without privacy), each a list of parts; bounds: of X."""
    p, effect, low, high, without, half = (np.concatenate(part) for part in zip(*told, strict=True))
    unit, replicates = half_range(bounds), len(p)
    effect, low, high = (part / unit for part in (effect, low, high))
    answered = np.isfinite(low)
    some = bool(answered.any())
    inside = ((low <= true) & (true <= high))[answered]
    agree = ((p < 0.05) == ((low > 0.0) | (high < 0.0)))[answered]
    return {
        "refused": False,
        "truth": true,
        "answered": round(float(answered.mean()), 4),
        "covered": round(float(inside.mean()), 4) if some else None,
        "misled": round(float((~inside).sum() / replicates), 4),
        "rejected": round(float((p < 0.05).mean()), 4),
        "p_and_interval_agree": round(float(agree.mean()), 4) if some else None,
        "median_effect": round(float(np.median(effect[answered])), 4) if some else None,
        "width": round(float(np.median((high - low)[answered])), 5) if some else None,
        "plain_width": round(float(np.median(2.0 * half)), 5),
        "plain_covered": round(float(np.mean(np.abs(without - true) <= half)), 4),
        "plain_rejected": round(float(np.mean(np.abs(without) > half)), 4),
        "replicates": replicates,
    }


def told_of(row: dict | None) -> str:
    """Coverage (share answered; share misled); width over that without privacy; share of p < 0.05."""
    if row is None:
        return ""
    if row["refused"]:
        return "refused"
    share, figures = row["answered"], f"{row['rejected']:.2f}"
    if not share:
        return f"none; {figures}"
    some = f"({share:.2f}; {row['misled']:.3f})"
    if share < 0.1:
        return f"{some}; {figures}"
    some = f" {some}" if share < 0.995 else ""
    return f"{row['covered']:.3f}{some}; {row['width'] / row['plain_width']:.1f}; {figures}"


def table(delta: float = 0.0) -> str:
    """A table of the page: rows of this delta."""
    found = {row_key(row)[:3]: row for row in rows(RECORD) if row["delta"] == delta}
    cells = [cell for cell in CELLS if any(key[1:] == cell for key in found)]
    lines, run = [], {name for name, _, _ in found}
    for name in (name for name in DESIGNS if name in run):
        told = [told_of(found.get((name, *cell))) for cell in cells]
        true = next((f"{row['truth']:.3g}" for key, row in found.items() if key[0] == name and not row["refused"]), "")
        lines.append([name, true, *told])
    return markdown(["design", "slope", *settings(cells)], lines) + "\n"


def needed(covariates: int, rate: float, epsilon: float) -> dict:
    """Records for power .8 at an odds ratio of `RATIO` per sd of X, with privacy and without."""
    setting, effect = plan.LogisticSetting.of_fields(covariates, rate=rate), math.log(RATIO)
    planned = solve.PlannedTest.of("logistic-regression", setting)
    row = {"covariates": covariates, "rate": rate, "epsilon": epsilon, "odds_ratio": RATIO}
    private = planned.required_n(epsilon=epsilon, effect=effect, power=0.8)
    return row | {"n": private, "plain_n": planned.public_n(effect, 0.8)}


def table_of_needed() -> str:
    """Records with privacy, and without."""
    found = {(row["covariates"], row["rate"], row["epsilon"]): row for row in rows(NEEDED)}
    lines = []
    for covariates, rate in dict.fromkeys(key[:2] for key in found):
        cells = [found.get((covariates, rate, epsilon)) for epsilon in EPSILONS]
        told = [f"{row['n']:,}".replace(",", " ") if row else "" for row in cells]
        plain_n = next(row["plain_n"] for row in cells if row)
        lines.append([covariates, f"{rate:g}", plain_n, *told])
    heads = ["columns held fixed", "share of yes", "without privacy", *(f"{e:g}" for e in EPSILONS)]
    return markdown(heads, lines) + "\n"


def run_cells(doc: str, record: Path, section: tuple[Path, str], designs: dict, cells: list, measure: Callable) -> None:
    """The command of a record of designs at cells (n, epsilon), one row each. section: page and place of its table."""
    parser = command_line(doc, 200)
    parser.add_argument("--only", nargs="+", choices=sorted(designs), default=list(designs))
    parser.add_argument("--cells", nargs="+", type=int, default=range(len(cells)), help="by number")
    asked = parser.parse_args()
    found = {(row["design"], row["n"], row["epsilon"]): row for row in rows(record)}
    if asked.table:
        told = {name: [told_of(found.get((name, *cell))) for cell in cells] for name in designs}
        lines = ([name, f"{designs[name].slopes[-1]:g}", *texts] for name, texts in told.items() if any(texts))
        return fill(*section, markdown(["design", "slope", *settings(cells)], lines) + "\n")
    done = {key for key, row in found.items() if row["refused"] or row["replicates"] >= asked.replicates}
    todo = [(name, *cells[cell]) for cell in asked.cells for name in asked.only]
    with jax.enable_x64(True):
        append(record, (measure(*key, asked.replicates) for key in todo if key not in done))


def row_key(row: dict) -> tuple[str, int, float, float]:
    """What a row is of."""
    return row["design"], row["n"], row["epsilon"], row["delta"]


def asked_for(names) -> list[tuple[str, int, float, float]]:
    """(design, n, epsilon, delta) of every row; first those that say most."""
    cells = [(10_000, 4.0), (10_000, 0.5), (1000, 4.0), (1000, 1.0), (1000, 0.5), (10_000, 1.0)]
    small = [(name, *cell, 0.0) for cell in cells for name in names]
    large = [(name, LARGE, epsilon, 0.0) for epsilon in (4.0, 0.5, 1.0) for name in names if name in LARGE_ONES]
    fields = [(name, *cell, DELTA) for cell in cells[::-1] for name in names if name in WITH_DELTA]
    first, one = 5 * len(names), len(fields) // len(cells)
    return [*small[:first], *fields[:one], *large[: 2 * len(large) // 3], *small[first:], *large, *fields]


def main() -> None:
    parser = command_line(__doc__, 400, "of 10 000 records; of others by SHARE")
    parser.add_argument("--only", nargs="+", choices=sorted(DESIGNS), default=list(DESIGNS))
    parser.add_argument("--records", action="store_true", help="that a power of .8 needs, by the planner")
    asked = parser.parse_args()
    if asked.records:
        done = {(row["covariates"], row["rate"], row["epsilon"]) for row in rows(NEEDED)}
        cells = [(*kind, epsilon) for kind in KINDS for epsilon in EPSILONS]
        return append(NEEDED, (needed(*cell) for cell in cells if cell not in done))
    if asked.table:
        fill(PAGE, "logistic records", table_of_needed())
        fill(PAGE, "logistic", table())
        return fill(PAGE, "logistic with delta", table(DELTA))
    for key in sorted(
        dict.fromkeys(asked_for(asked.only)), key=lambda key: any(row_key(row) == key for row in rows(RECORD))
    ):
        replicates = round(SHARE[key[1]] * asked.replicates)
        if any(row["refused"] or row["replicates"] >= replicates for row in rows(RECORD) if row_key(row) == key):
            continue
        with jax.enable_x64(True):
            row = measure(*key, replicates) | provenance()
        kept = [row for row in rows(RECORD) if row_key(row) != key]
        RECORD.write_text("".join(json.dumps(one) + "\n" for one in [*kept, row]))
        print(row, flush=True)


if __name__ == "__main__":
    main()
