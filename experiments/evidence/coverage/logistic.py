"""Coverage, level and width of `logistic-regression` (docs/evidence/coverage.md).

    python -m experiments.evidence.coverage.logistic [--replicates 200] [--only NAME ...]
    python -m experiments.evidence.coverage.logistic --table     # the table of the page, from the record

One JSON line per design, n and epsilon. Tests are made by the builder of `jaxdp.test` from columns of a schema. Y
follows the logistic model in the columns as clipped at the bounds, so that the truth is the design's own slope. A data
set without an interval is counted apart (`answered`); `covered` is the share of the intervals that hold the truth,
`rejected` that of p < 0.05 among all data sets. `plain_width`, `plain_covered`, `plain_rejected`: of Wald's interval by
maximum likelihood on the same data, without privacy.
"""

import argparse
import dataclasses
import functools
import itertools
import json
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from experiments.evidence.coverage.groups import rows
from experiments.record import fill, provenance
from jaxdp import catalogue, core
from jaxdp.data.dataset import BINARY, Column, Data, Domain
from jaxdp.spec import Options

RECORD = Path(__file__).parent / "logistic.jsonl"
PAGE = Path(__file__).parents[3] / "docs" / "evidence" / "coverage.md"
CELLS = [(n, epsilon) for n in (1000, 10_000) for epsilon in (0.5, 1.0, 4.0)]
LARGE = {"one lognormal z": 100_000, "three z": 100_000}  # at the least and the largest epsilon besides
SEED = 3307
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


def two_groups(key, n: int, count: int):
    """X is one of two groups of 30 and 70 %, 0 and 1; the first column of Z is one of two of 20 and 80 %, -1 and 1."""
    found = correlated(key, n, count, 0.4)
    found = found.at[:, 0].set(jnp.where(found[:, 0] > 0.84, 1.0, -1.0))
    return found.at[:, -1].set(1.0 * (found[:, -1] > 0.52))


@dataclasses.dataclass(frozen=True)
class Design:
    """Columns of Z, then X; slopes in this order, per unit; rate: P(Y = 1); bounds of each, None for two levels."""

    columns: Callable
    slopes: tuple[float, ...]
    bounds: tuple
    rate: float = 0.4

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


THREE, FOUR_OF_THEM = (0.3, -0.2, 0.1), (FOUR,) * 4
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
    "steep, three z": Design(normal, (1.0, -0.8, 0.4, 1.2), FOUR_OF_THEM),
}


@functools.cache
def constant(name: str) -> float:
    """That gives the design's rate."""
    design = DESIGNS[name]
    along = design.clipped(jax.random.key(1), 1_000_000) @ jnp.array(design.slopes)
    low, high = -20.0, 20.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if float(jnp.mean(jax.nn.sigmoid(middle + along))) < design.rate else (low, middle)
    return low


def draw(key, n: int, name: str):
    """(Data as the schema scales them, the columns in their own units)."""
    design = DESIGNS[name]
    values = design.clipped(key, n)
    chance = jax.nn.sigmoid(constant(name) + values @ jnp.array(design.slopes))
    y = 1.0 * (jax.random.uniform(jax.random.fold_in(key, 3), (n,)) < chance)
    scaled = [
        1.0 * (values[:, j] > 0.0) if ends is None else (2.0 * values[:, j] - sum(ends)) / (ends[1] - ends[0])
        for j, ends in enumerate(design.bounds)
    ]
    others = jnp.stack(scaled[:-1], axis=1) if scaled[1:] else None
    return Data(scaled[-1], y, others, design.domain), values


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


def half_range(bounds) -> float:
    """What 1 on [-1, 1] is in the column's own units."""
    return 0.5 if bounds is None else 0.5 * (bounds[1] - bounds[0])


def measure(name: str, n: int, epsilon: float, replicates: int) -> dict:
    """One row."""
    start, design, _ = time.process_time(), DESIGNS[name], constant(name)  # known before anything is traced
    row = {"design": name, "n": n, "epsilon": epsilon}
    test = catalogue.find("logistic-regression").build(epsilon, design.domain, Options(num_records=n))
    shapes = jax.eval_shape(lambda key: draw(key, n, name)[0], jax.random.key(0))
    if test.validity(shapes).verdict == "refuse":
        return row | {"refused": True, "replicates": 0}

    @jax.jit
    def found(keys):
        def one(key):
            key_data, key_run = jax.random.split(key)
            data, values = draw(key_data, n, name)
            result = core.run(test, key_run, data)
            return result.p_value, result.effect, *result.interval, *plain(values, data.y)

        return jax.lax.map(one, keys, batch_size=20)

    seed = zlib.crc32(f"{name} {n} {epsilon:g}".encode())
    keys = jax.random.split(jax.random.fold_in(jax.random.key(SEED), seed), replicates)
    p, effect, low, high, without, half = map(np.asarray, found(keys))
    unit = half_range(design.bounds[-1])
    effect, low, high = (part / unit for part in (effect, low, high))
    true, answered = design.slopes[-1], np.isfinite(low)
    some = bool(answered.any())
    inside = ((low <= true) & (true <= high))[answered]
    agree = ((p < 0.05) == ((low > 0.0) | (high < 0.0)))[answered]
    return row | {
        "refused": False,
        "truth": true,
        "answered": round(float(answered.mean()), 4),
        "covered": round(float(inside.mean()), 4) if some else None,
        "rejected": round(float((p < 0.05).mean()), 4),
        "p_and_interval_agree": round(float(agree.mean()), 4) if some else None,
        "median_effect": round(float(np.median(effect[answered])), 4) if some else None,
        "width": round(float(np.median((high - low)[answered])), 5) if some else None,
        "plain_width": round(float(np.median(2.0 * half)), 5),
        "plain_covered": round(float(np.mean(np.abs(without - true) <= half)), 4),
        "plain_rejected": round(float(np.mean(np.abs(without) > half)), 4),
        "replicates": replicates,
        "seconds": round(time.process_time() - start, 1),
    }


def _told(row: dict | None) -> str:
    """Coverage (share answered); width over that without privacy; share of p < 0.05."""
    if row is None:
        return ""
    if row["refused"]:
        return "refused"
    share = row["answered"]
    if share < 0.1:
        return f"({share:.2f})" if share else "none"
    some = f" ({share:.2f})" if share < 0.995 else ""
    return f"{row['covered']:.3f}{some}; {row['width'] / row['plain_width']:.1f}; {row['rejected']:.2f}"


def table() -> str:
    """The table of the page."""
    found = {(r["design"], r["n"], r["epsilon"]): r for r in rows(RECORD)}
    cells = [*CELLS, *((n, epsilon) for n in sorted(set(LARGE.values())) for epsilon in (0.5, 4.0))]
    lines = [
        "| design | slope | " + " | ".join(f"{n}, {e:g}" for n, e in cells) + " |",
        "|" + "---|" * (len(cells) + 2),
    ]
    run = {name for name, _, _ in found}
    for name, design in DESIGNS.items():
        if name not in run:
            continue
        told = [_told(found.get((name, *cell))) for cell in cells]
        lines.append(f"| {name} | {design.slopes[-1]:g} | " + " | ".join(told) + " |")
    return "\n".join(lines) + "\n"


def asked_for(names) -> list[tuple[str, int, float]]:
    """(design, n, epsilon) of every row; first those that say most."""
    cells = sorted(CELLS, key=lambda cell: (cell[0] * (cell[1] == 1.0), cell[0] * cell[1]), reverse=True)
    large = [(name, LARGE[name], epsilon) for epsilon in (4.0, 0.5) for name in names if name in LARGE]
    first = 1  # most designs ask about it
    told = [[(name, *cell) for name in names] for cell in cells]
    return [*itertools.chain(*told[:first]), *large, *itertools.chain(*told[first:])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=200, help="of a cell")
    parser.add_argument("--only", nargs="+", choices=sorted(DESIGNS), default=list(DESIGNS))
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    if asked.table:
        return fill(PAGE, "logistic", table())
    done = {(r["design"], r["n"], r["epsilon"]) for r in rows(RECORD)} if RECORD.exists() else set()
    for name, n, epsilon in asked_for(asked.only):
        if (name, n, epsilon) in done:
            continue
        with jax.enable_x64(True):
            row = measure(name, n, epsilon, asked.replicates) | provenance()
        with RECORD.open("a") as out:
            out.write(json.dumps(row) + "\n")
        print(row, flush=True)


if __name__ == "__main__":
    main()
