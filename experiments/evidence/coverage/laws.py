"""Coverage of the intervals of default tests on skewed, heaped and heavy-tailed columns (docs/evidence/coverage.md).

    python -m experiments.evidence.coverage.laws [--replicates 200] [--only METHOD ...] [--records 500 3000]
    python -m experiments.evidence.coverage.laws --table       # the table of the page, from the record

One JSON line per method, law, dependence, n and epsilon. Tests are made by the builder of `jaxdp.test`; the truth is
the mean of the same estimate without noise over many data sets of n records, since the estimands (concordance of
neighbours, correlation within cells, rank correlation of groups) are the tests' own. `agree`: share of the intervals
that leave out 0 exactly where p < 0.05.
"""

import argparse
import dataclasses
import functools
import json
import time
import zlib
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from experiments.evidence.coverage.groups import rows
from experiments.record import provenance
from jaxdp import catalogue, core
from jaxdp.data.dataset import Column, Data, Domain
from jaxdp.mechanisms import Exact
from jaxdp.spec import Options

RECORD = Path(__file__).parent / "laws.jsonl"
PAGE = Path(__file__).parents[3] / "docs" / "evidence" / "coverage.md"
METHODS = {"band-gcm": 1, "contrast-gcm": 2, "partition-gcm": 0, "quantile-table": 0}  # columns of Z
LAWS = {"normal": (-4.0, 4.0), "lognormal": (0.0, 12.0), "zeros in 7 of 10": (0.0, 6.0), "t3": (-10.0, 10.0)}
UNEQUAL, ONE_SD = "normal, y's sd 1:4 by x", "normal, bounds at 1 sd"
DESIGNS = (*LAWS, UNEQUAL, ONE_SD)
EPSILONS, RECORDS, STRENGTHS = (0.5, 1.0, 4.0), (500, 3000), (0.0, 0.5)
EXACT_SETS, SEED = 200, 2912


def _by_law(law: str, values):
    """A normal column with this law."""
    share = jax.scipy.stats.norm.cdf(values)
    if law == "lognormal":
        return jnp.exp(values)
    if law == "zeros in 7 of 10":
        return jnp.where(share > 0.7, -jnp.log(jnp.maximum((1.0 - share) / 0.3, 1e-6)), 0.0)
    if law == "t3":  # by its closed quantile function's inverse on a fine grid
        grid = jnp.linspace(-40.0, 40.0, 20_001)
        angle = jnp.arctan(grid / 3.0**0.5)
        below = 0.5 + (angle + grid / 3.0**0.5 / (1.0 + grid**2 / 3.0)) / jnp.pi
        return jnp.interp(share, below, grid)
    return values


def draw(key, n: int, design: str, depth: int, strength: float) -> Data:
    """Data as the schema scales them; Z bends both means."""
    keys = jax.random.split(key, 3)
    x, own = jax.random.normal(keys[0], (n,)), jax.random.normal(keys[1], (n,))
    y = strength * x + (1.0 - strength**2) ** 0.5 * own
    law = design if design in LAWS else "normal"
    if design == UNEQUAL:
        y = strength * x + own * jnp.where(x > 0.0, 1.0, 0.25)
    low, high = (-1.0, 1.0) if design == ONE_SD else LAWS[law]
    x, y = _by_law(law, x), _by_law(law, y)
    z = jax.random.uniform(keys[2], (n, depth), minval=-1.0)
    if depth:
        bend = 0.5 * jnp.sin(3.0 * z[:, 0])
        x, y = x + bend, y - bend
    x, y = ((jnp.clip(part, low, high) - 0.5 * (low + high)) / (0.5 * (high - low)) for part in (x, y))
    return Data(x, y, z if depth else None, domain(depth))


def domain(depth: int) -> Domain:
    """Continuous columns."""
    return Domain((Column(),), (Column(),), (Column(),) * depth)


def made(method: str, n: int, epsilon):
    """As `jaxdp.test` makes it."""
    return catalogue.find(method).build(epsilon, domain(METHODS[method]), Options(num_records=n))


@functools.cache
def truth(method: str, design: str, strength: float, n: int) -> float:
    """Mean of the estimate without noise."""
    exact = dataclasses.replace(made(method, n, 1.0), epsilon=None, mechanism=Exact())

    @jax.jit
    def estimates(keys):
        def one(key):
            return core.run(exact, key, draw(key, n, design, METHODS[method], strength)).effect

        return jax.lax.map(one, keys, batch_size=25)

    return float(jnp.nanmean(estimates(jax.random.split(jax.random.key(SEED + 1), EXACT_SETS))))


@functools.cache
def program(method: str, design: str, strength: float, n: int):
    """(keys, epsilon) -> p-value, effect, low, high."""

    @jax.jit
    def found(keys, epsilon):
        def one(key):
            key_data, key_run = jax.random.split(key)
            result = core.run(made(method, n, epsilon), key_run, draw(key_data, n, design, METHODS[method], strength))
            return result.p_value, result.effect, *result.interval

        return jax.lax.map(one, keys, batch_size=25)

    return found


def measure(method: str, design: str, strength: float, n: int, epsilon: float, replicates: int) -> dict:
    """One row."""
    start = time.process_time()
    seed = zlib.crc32(f"{method} {design} {strength:g} {n} {epsilon:g}".encode())
    keys = jax.random.split(jax.random.fold_in(jax.random.key(SEED), seed), replicates)
    p, effect, low, high = map(np.asarray, program(method, design, strength, n)(keys, epsilon))
    true, answered = truth(method, design, strength, n), np.isfinite(low)
    inside = ((low <= true) & (true <= high))[answered]
    agree = ((p < 0.05) == ((low > 0.0) | (high < 0.0)))[answered]
    some = bool(answered.any())
    return {
        "method": method,
        "design": design,
        "strength": strength,
        "n": n,
        "epsilon": epsilon,
        "truth": round(true, 5),
        "answered": round(float(answered.mean()), 4),
        "covered": round(float(inside.mean()), 4) if some else None,
        "rejected": round(float((p < 0.05).mean()), 4),
        "agree": round(float(agree.mean()), 4) if some else None,
        "width": round(float(np.median((high - low)[answered])), 5) if some else None,
        "median_effect": round(float(np.median(effect[answered])), 5) if some else None,
        "replicates": replicates,
        "seconds": round(time.process_time() - start, 1),
    }


def _cell(row: dict | None) -> str:
    if row is None:
        return ""
    share = row["answered"]
    if share < 0.1:
        return f"({share:.2f})" if share else "none"
    return f"{row['covered']:.3f}" + (f" ({share:.2f})" if share < 0.995 else "")


def tables() -> str:
    """Coverage of each method."""
    found = {(r["method"], r["design"], r["strength"], r["n"], r["epsilon"]): r for r in rows(RECORD)}
    heads = [(n, epsilon) for n in RECORDS for epsilon in EPSILONS]
    written = []
    for method in METHODS:
        lines = [f"\n### {method}\n", "| law | r | truth | " + " | ".join(f"{n}, {e:g}" for n, e in heads)]
        lines[-1] += " |\n|" + "---|" * (len(heads) + 3)
        for design in DESIGNS:
            for strength in STRENGTHS:
                cells = [found.get((method, design, strength, n, e)) for n, e in heads]
                true = next((f"{r['truth']:.3f}" for r in reversed(cells) if r), "")
                lines.append(f"| {design} | {strength:g} | {true} | " + " | ".join(map(_cell, cells)) + " |")
        written.append("\n".join(lines))
    return "\n".join(written)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--only", nargs="+", choices=sorted(METHODS), default=list(METHODS))
    parser.add_argument("--records", type=int, nargs="+", default=list(RECORDS))
    parser.add_argument("--table", action="store_true", help="measure nothing: write the table of the page")
    args = parser.parse_args()
    if args.table:
        begin, end = "<!-- laws: begin -->", "<!-- laws: end -->"
        head, rest = PAGE.read_text().split(begin)
        PAGE.write_text(f"{head}{begin}\n{tables()}\n{end}{rest.split(end)[1]}")
        return
    done = {(r["method"], r["design"], r["strength"], r["n"], r["epsilon"]) for r in rows(RECORD)}
    for method in args.only:
        for n in args.records:
            for design in DESIGNS:
                for strength in STRENGTHS:
                    for epsilon in EPSILONS:
                        if (method, design, strength, n, epsilon) in done:
                            continue
                        with jax.enable_x64(True):
                            row = measure(method, design, strength, n, epsilon, args.replicates) | provenance()
                        with RECORD.open("a") as out:
                            out.write(json.dumps(row) + "\n")
                        print(*list(row.values())[:11], row["seconds"], flush=True)


if __name__ == "__main__":
    main()
