"""Records needed for power 0.8 by every private test that fits, on the public grid of shapes.

    python -m experiments.evidence.defaults [--replicates 200] [--kinds NAME ...] [--fast | --tests NAME ...] [--level]

Writes one JSON line per (shape, epsilon, test) into defaults.jsonl and goes on where the file ends; --level measures
the rejections of true nulls of the same shapes by the default alone, into level.jsonl. Tests are built as `jaxdp test`
builds them. Power is measured at n = 250, 500, 1000, ... until it passes 0.8, and n is read between the two neighbours
on the scale of log n and the normal quantile of the power. Tests share the data sets. Forms as their papers state them
run at the budget at which their true cost is epsilon. Left out: public group labels (another relation), maximal
information coefficients (seconds for one answer), and linear-regression, whose p-value for one pair is that of
partial-correlation. A test is followed to twice the records of the default (one with a kernel matrix of all records to
1000), and where it lacks the power there at epsilon 2, not at smaller budgets.
"""

import argparse
import dataclasses
import json
import math
from pathlib import Path

import jax
import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

import jaxdp
from experiments.evidence.defaults.shapes import (
    CODED,
    EVEN,
    HALVING,
    LEVEL,
    MIXED,
    NUMBER,
    TENTH,
    TWO,
    WANTED,
    Shape,
    noncentrality,
)
from experiments.record import provenance
from jaxdp import catalogue, core
from jaxdp.spec import P_VALUE, Columns, Options

FIRST, STEPS, START = 250, 8, 2  # n = 250, ..., 32 000; the search starts at 1000
EPSILONS = (0.5, 1.0, 2.0)
HERE = Path(__file__).parent
RECORD = HERE / "defaults.jsonl"
LEFT_OUT = ("jaxdp.independence.mic.", "jaxdp.published.mic", "jaxdp.independence.continuous.linear_regression")
VOTES = "jaxdp.independence.meta."
SLOW_STEPS, SLOW_REPLICATES = 2, 4  # the last step of slow tests, and by what their replicates are divided
MANY_LEVELS = 8  # tables whose projected chi-squared takes seconds: a third of the replicates
LEVEL_N = (300, 3000)


def grid() -> list[Shape]:
    """Every shape that is measured."""
    found = []
    for levels in ((3, 4), (2, 2), (2, 3), (5, 4), (8, 8)):
        found += [Shape("nominal", "nominal", levels, balance, "diffuse", 300.0) for balance in (EVEN, TENTH)]
    found += [Shape("nominal", "nominal", (8, 8), HALVING, "diffuse", 300.0)]
    found += [Shape("nominal", "nominal", levels, EVEN, "diffuse", 2000.0) for levels in ((2, 2), (3, 4))]
    for balance in (EVEN, TENTH):
        found += [
            Shape("ordered", "ordered", (3, 4), balance, law, strength)
            for law, strength in (("trend", 1000.0), ("diffuse", 300.0))
        ]
    found += [Shape("nominal", "ordered", (3, 4), EVEN, "diffuse", 300.0)]
    for balance in (EVEN, TENTH):
        found += [
            Shape("nominal", "ordered", (2, 4), balance, law, strength)
            for law, strength in (("trend", 1000.0), ("diffuse", 300.0))
        ]
    for levels, x in (((2, 0), "nominal"), ((4, 0), "nominal"), ((4, 0), "ordered"), ((0, 0), "number")):
        for balance in (EVEN, TENTH) if levels[0] else (EVEN,):
            found += [Shape(x, "number", levels, balance, "line", 0.15)]
        laws = ("spread",) if levels[0] == 2 else ("bend", "spread") if levels[0] else ("bend",)
        found += [Shape(x, "number", levels, EVEN, law, 0.4) for law in laws]
    for z in (CODED, NUMBER):
        found += [
            Shape("number", "number", (0, 0), EVEN, law, size, z) for law, size in (("line", 0.15), ("bend", 0.4))
        ]
        found += [Shape("nominal", "number", (2, 0), EVEN, "line", 0.15, z)]
        found += [Shape("nominal", "nominal", levels, EVEN, "line", 0.3, z) for levels in ((3, 4), (2, 2), (2, 3))]
        found += [Shape("ordered", "ordered", (3, 4), EVEN, "line", 0.3, z)]
        found += [Shape("nominal", "number", (levels, 0), EVEN, "line", 0.3, z) for levels in (3, 4)]
        found += [Shape("ordered", "number", (4, 0), EVEN, "line", 0.15, z)]
    for z in (MIXED, TWO):
        found += [Shape("number", "number", (0, 0), EVEN, "line", 0.15, z)]
        found += [Shape("nominal", "number", (2, 0), EVEN, "line", 0.15, z)]
        found += [Shape("nominal", "number", (3, 0), EVEN, "line", 0.3, z)]
        found += [Shape("ordered", "number", (4, 0), EVEN, "line", 0.15, z)]
        found += [Shape("nominal", "nominal", levels, EVEN, "line", 0.3, z) for levels in ((2, 2), (2, 3), (3, 4))]
        found += [Shape("ordered", "ordered", (3, 4), EVEN, "line", 0.3, z)]
    for z in (CODED, NUMBER, MIXED, TWO):
        found += [Shape("nominal", "ordered", levels, EVEN, "line", 0.3, z) for levels in ((2, 4), (3, 4))]
    found += [Shape("nominal", "number", (3, 0), EVEN, "line", 0.15, CODED)]  # where noise counts for less
    return [*found, Shape("nominal", "nominal", (3, 4), EVEN, "diffuse", 300.0, CODED)]


def fitting(shape: Shape) -> list[catalogue.Entry]:
    """Every private test that such a query may name and that publishes a p-value of it; the default first."""
    default = catalogue.default(shape.domain(True)).name
    found = [
        entry
        for entry in catalogue.offered().values()
        if entry.spec.private
        and entry.spec.publishes == P_VALUE
        and entry.spec.columns is not Columns.GROUPS
        and not entry.cls.__module__.startswith(LEFT_OUT)
        and entry.spec.accepts(shape.domain(True))
    ]
    return sorted(found, key=lambda entry: entry.name != default)


def rate(entry, shape: Shape, n: int, epsilon: float, replicates: int, effect: float = 1.0, seed: int = 41) -> float:
    """Rejections of the test as a query builds it, on data sets that tests and budgets share."""
    coded = entry.spec.columns.coded
    design = shape.design(n, coded, effect)
    test = built(entry, shape, n, epsilon, design)
    return float(jaxdp.power.rejection_rate(test, design, jax.random.key(seed), replicates, level=LEVEL).rate)


def built(entry, shape: Shape, n: int, epsilon: float, design):
    """The test as a query builds it; a form whose cost is not the epsilon asked for, such that it costs epsilon."""

    def at(asked: float):
        return entry.build(asked, shape.domain(entry.spec.columns.coded), Options(num_records=n))

    if not entry.spec.true_epsilon:
        return at(epsilon)
    shapes = jax.eval_shape(design, jax.random.key(0))
    return at(brentq(lambda asked: float(core.cost_of(at(asked), shapes).epsilon) - epsilon, 1e-3, epsilon))


def needed(power_at, start: int, last: int) -> tuple[float, dict[int, float]]:
    """Records for the wanted power, infinite beyond step `last`, and the powers that were measured."""
    measured: dict[int, float] = {}

    def at(step: int) -> float:
        n = FIRST * 2**step
        if n not in measured:
            measured[n] = power_at(n)
        return measured[n]

    step = start
    while step < last and at(step) < WANTED:
        step += 1
    while step > 0 and at(step - 1) >= WANTED:
        step -= 1
    if at(step) < WANTED:
        return math.inf, measured
    if step == 0:
        return float(FIRST), measured
    low, high = (norm.ppf(np.clip(at(s), 0.001, 0.999)) for s in (step - 1, step))
    share = (norm.ppf(WANTED) - low) / max(high - low, 1e-9)
    return float(FIRST * 2 ** (step - 1 + np.clip(share, 0.0, 1.0))), measured


def not_private(shape: Shape) -> float:
    """Records of the chi-squared test of a table, of the test of a line where that is the law; NaN elsewhere."""
    if all(shape.levels):
        if shape.z:
            return math.nan
        p = shape.cells().reshape(shape.levels)
        product = p.sum(1)[:, None] * p.sum(0)[None, :]
        return noncentrality(shape.levels) / float(((p - product) ** 2 / product).sum())
    if shape.law != "line":
        return math.nan
    freedom = max(shape.levels[0] - 1, 1) if shape.x == "nominal" else 1
    return noncentrality((2, freedom + 1)) * (1.0 + shape.strength**2) / shape.strength**2


def likely(entry: catalogue.Entry) -> bool:
    """Whether the test may beat a default at all: no published form, no vote, and no kernel matrix of all records."""
    return not (entry.spec.memory or entry.spec.true_epsilon or entry.cls.__module__.startswith(VOTES))


def measure(shape: Shape, replicates: int, done: dict, wanted=lambda entry: True):
    """Rows of one shape that are not done. done: head of a row -> its records. wanted: which tests."""
    reached: dict[float, int] = {}  # epsilon -> the step at which the default has the power
    for entry in fitting(shape):
        if not wanted(entry):
            continue
        for epsilon in sorted(EPSILONS, reverse=True):
            head = {"shape": dataclasses.asdict(shape), "epsilon": epsilon, "test": entry.name}
            last = min(reached.get(epsilon, STEPS - 2) + 1, STEPS - 1)
            slow = entry.spec.planning is not None and entry.spec.planning.slow
            last = min(last, SLOW_STEPS) if slow else last
            if json.dumps(head) in done:
                count = done[json.dumps(head)]
                if count is None:
                    break
                reached.setdefault(epsilon, step_of(count))
                continue
            few = replicates // 3 if min(shape.levels) >= MANY_LEVELS else replicates
            few = few // SLOW_REPLICATES if slow else few
            try:
                count, powers = needed(
                    lambda n, entry=entry, epsilon=epsilon, few=few: rate(entry, shape, n, epsilon, few),
                    min(reached.get(epsilon, START), last),
                    last,
                )
            except ValueError as error:
                yield head | {"kind": shape.kind, "refused": str(error)}
                break
            if not math.isinf(count):
                reached.setdefault(epsilon, step_of(count))
            plain = not_private(shape)
            yield head | {
                "kind": shape.kind,
                "records": None if math.isinf(count) else round(count),
                "not_private": None if math.isnan(plain) else round(plain),
                "powers": {str(n): round(powers[n], 4) for n in sorted(powers)},
                "replicates": few,
                **provenance(),
            }
            if math.isinf(count):  # smaller budgets would need more
                break


def step_of(count: float) -> int:
    """The first step with so many records."""
    return math.ceil(math.log2(count / FIRST))


def levels(shape: Shape, replicates: int):
    """Rejections of the null of the same margins by the default test."""
    entry = catalogue.default(shape.domain(True))
    for n in LEVEL_N:
        for epsilon in EPSILONS:
            found = rate(entry, shape, n, epsilon, replicates, effect=0.0, seed=43)
            head = {"shape": dataclasses.asdict(shape), "kind": shape.kind, "n": n, "epsilon": epsilon}
            yield head | {"test": entry.name, "rate": round(found, 4), "replicates": replicates, **provenance()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--kinds", nargs="+", help="these kinds of columns alone, e.g. 'nominal 3 x nominal 4'")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--fast", action="store_true", help="only tests that may beat a default")
    which.add_argument("--tests", nargs="+", help="only these tests; the default is among them")
    parser.add_argument("--level", action="store_true", help="true nulls instead of power")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    out = args.out or (HERE / "level.jsonl" if args.level else RECORD)
    keys = ("shape", "epsilon", "test", *(("n",) if args.level else ()))
    lines = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    done = {json.dumps({key: line[key] for key in keys}): line.get("records") for line in lines}
    wanted = likely if args.fast else lambda entry: not args.tests or entry.name in args.tests
    nulls = list({(shape.kind, shape.balance): shape for shape in grid()}.values())
    for shape in nulls if args.level else grid():
        if args.kinds and shape.kind not in args.kinds:
            continue
        found = levels(shape, args.replicates) if args.level else measure(shape, args.replicates, done, wanted)
        for row in found:
            with out.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(row["kind"], *row["shape"].values(), row["epsilon"], row["test"], row.get("records"), row.get("rate"))


if __name__ == "__main__":
    main()
