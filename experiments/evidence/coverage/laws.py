"""Coverage of the intervals of tests of the catalogue on laws of columns that people have (docs/evidence/coverage.md).

    python -m experiments.evidence.coverage.laws [--replicates 400] [--only METHOD ...] [--records 500 3000]
    python -m experiments.evidence.coverage.laws --table       # the tables of the page, from the record

One JSON line per method, law, correlation r of the normal columns that the law bends, n and epsilon. Tests are made by
the builder of `jaxdp.test`; the truth is the mean of the same estimate without noise over many data sets of n records,
since the estimands (concordance of neighbours, phi) are the tests' own. `partition-gcm` names the correlation of
columns clipped at the scales that it has released, so that each of its runs has its own truth, by further data sets
clipped alike. `agree`: share of the intervals that leave out 0 exactly where p < 0.05.
"""

import dataclasses
import functools
import itertools
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from experiments.evidence.coverage.groups import rows
from experiments.record import append, command_line, fill, keys_of, markdown, settings
from jaxdp import catalogue, core
from jaxdp.data.dataset import BINARY, CATEGORICAL, Column, Data, Domain
from jaxdp.mechanisms import Exact
from jaxdp.spec import Options

RECORD = Path(__file__).parent / "laws.jsonl"
PAGE = Path(__file__).parents[3] / "docs" / "evidence" / "coverage.md"
LAWS = {"normal": (-4.0, 4.0), "lognormal": (0.0, 12.0), "zeros in 7 of 10": (0.0, 6.0), "t3": (-10.0, 10.0)}
ZEROS = {"zeros in 7 of 10": 0.7, "zeros in 9 of 10": 0.9}
UNEQUAL, NARROW, WIDE = "normal, y's sd 1:4 by x", "normal, bounds at 1 sd", "normal, bounds at 20 sd"
BOUNDS = LAWS | {UNEQUAL: (-4.0, 4.0), NARROW: (-1.0, 1.0), WIDE: (-20.0, 20.0), "zeros in 9 of 10": (0.0, 6.0)}
MARGINS = {"even": (0.5, 0.5), "10/90": (0.1, 0.1), "5/95 x even": (0.05, 0.5)}
STRATA = 4


@dataclasses.dataclass(frozen=True)
class Case:
    """One test: its name, the kind of Z, and the laws of X and Y."""

    method: str
    given: int = 0  # continuous columns of Z
    coded: bool = False  # Z has STRATA levels
    tables: bool = False  # X and Y are binary

    @property
    def designs(self) -> tuple[str, ...]:
        return tuple(MARGINS if self.tables else BOUNDS)

    @property
    def domain(self) -> Domain:
        side = (Column(BINARY, 2),) if self.tables else (Column(),)
        return Domain(side, side, (Column(CATEGORICAL, STRATA),) if self.coded else (Column(),) * self.given)

    @property
    def name(self) -> str:
        return f"{self.method}, two levels" if self.tables else self.method


CASES = (
    Case("band-gcm", given=1),
    Case("contrast-gcm", given=2),
    Case("partition-gcm", coded=True),
    Case("conditional-kendall", coded=True),
    Case("conditional-spearman", coded=True),
    Case("quantile-table", tables=True),
    Case("conditional-kendall", coded=True, tables=True),
)
BY_NAME = {case.name: case for case in CASES}
EPSILONS, RECORDS, STRENGTHS = (0.5, 1.0, 4.0), (500, 3000, 50_000), (0.0, 0.5)
EXACT_SETS, CLIPPED_SETS, SEED, BATCH = 200, 20, 2912, 25


def _by_law(law: str, values):
    """A normal column with this law."""
    share = jax.scipy.stats.norm.cdf(values)
    if law == "lognormal":
        return jnp.exp(values)
    if law in ZEROS:
        zero = ZEROS[law]
        return jnp.where(share > zero, -jnp.log(jnp.maximum((1.0 - share) / (1.0 - zero), 1e-6)), 0.0)
    if law == "t3":  # the inverse of its distribution function, on a fine grid
        grid = jnp.linspace(-40.0, 40.0, 20_001)
        below = 0.5 + (jnp.arctan(grid / 3.0**0.5) + grid / 3.0**0.5 / (1.0 + grid**2 / 3.0)) / jnp.pi
        return jnp.interp(share, below, grid)
    return values


def _bounded(pair, design: str):
    """Both columns with the law and the bounds of the design, on [-1, 1]."""
    low, high = BOUNDS[design]
    return jnp.clip((_by_law(design, pair) - 0.5 * (low + high)) / (0.5 * (high - low)), -1.0, 1.0)


def draw(case: Case, key, n: int, design, strength) -> Data:
    """Data as the schema scales them; Z moves both means. design: the number of one; it and strength may be traced."""
    key_x, key_y, key_z = jax.random.split(key, 3)
    x, own = jax.random.normal(key_x, (n,)), jax.random.normal(key_y, (n,))
    spread = 1.0 if case.tables else jnp.where((design == case.designs.index(UNEQUAL)) & (x < 0.0), 0.25, 1.0)
    pair = jnp.stack([x, strength * x + jnp.sqrt(1.0 - strength**2) * spread * own])
    z = None
    if case.coded:
        z = jax.random.randint(key_z, (n, 1), 0, STRATA)
        pair = pair + 0.3 * (z[:, 0] - 0.5 * (STRATA - 1))
    elif case.given:
        z = jax.random.uniform(key_z, (n, case.given), minval=-1.0)
        pair = pair + 0.5 * jnp.asarray([[1.0], [-1.0]]) * jnp.sin(3.0 * z[:, 0])
    if case.tables:
        cuts = jax.scipy.stats.norm.ppf(jnp.asarray(list(MARGINS.values()))[design])
        x, y = (pair > cuts[:, None]).astype(int)
    else:
        x, y = jax.lax.switch(design, [functools.partial(_bounded, design=one) for one in case.designs], pair)
    return Data(x, y, z, case.domain)


def made(case: Case, n: int, epsilon: float):
    """As `jaxdp.test` makes it."""
    return catalogue.find(case.method).build(epsilon, case.domain, Options(num_records=n))


@functools.cache
def _limit(case: Case, n: int):
    exact = dataclasses.replace(made(case, n, 1.0), epsilon=None, mechanism=Exact())

    @jax.jit
    def estimates(keys, design, strength):
        def one(key):
            return core.run(exact, key, draw(case, key, n, design, strength)).effect

        return jax.lax.map(one, keys, batch_size=BATCH)

    return estimates


@functools.cache
def truth(case: Case, design: int, strength: float, n: int) -> float:
    """Mean of the estimate without noise."""
    keys = jax.random.split(jax.random.key(SEED + 1), EXACT_SETS)
    return float(jnp.nanmean(_limit(case, n)(keys, design, strength)))


def _run(test, key, data: Data, more):
    """The result of one run and the truth of its effect: NaN where it is that of every run. more: key -> Data."""
    query = core.specialize(test, data)
    if not isinstance(query, core.Sequential):
        return core.run(test, key, data), jnp.nan
    key_first, key_second, key_more = jax.random.split(key, 3)
    released = core.release(query.first, key_first, data)
    second = query.then(query.second, query.first, released)
    found = jax.lax.map(lambda one: second.statistic(None, more(one)), jax.random.split(key_more, CLIPPED_SETS))
    totals = jax.tree.map(jnp.mean, found)
    inner = second.degrees_within(len(data.x))
    return core.run(second, key_second, data), totals["covariance"] / jnp.sqrt(inner * totals["variance"])


@functools.cache
def _program(case: Case, n: int, epsilon: float):
    """(keys, design, strength) -> p-value, effect, low, high, truth of the run."""
    test = made(case, n, epsilon)

    @jax.jit
    def found(keys, design, strength):
        def one(key):
            key_data, key_run = jax.random.split(key)
            new = functools.partial(draw, case, n=n, design=design, strength=strength)
            result, true = _run(test, key_run, new(key_data), new)
            return result.p_value, result.effect, *result.interval, true

        return jax.lax.map(one, keys, batch_size=BATCH)

    return found


def measure(case: Case, design: str, strength: float, n: int, epsilon: float, replicates: int) -> dict:
    """One row."""
    start, number = time.process_time(), case.designs.index(design)
    head = {"method": case.name, "design": design, "strength": strength, "n": n, "epsilon": epsilon}
    keys = keys_of(SEED, f"{case.name} {design} {strength:g} {n} {epsilon:g}", replicates)
    p, effect, low, high, own = map(np.asarray, _program(case, n, epsilon)(keys, number, strength))
    shared = np.isnan(own).all()
    true = np.full(replicates, truth(case, number, strength, n)) if shared else own
    answered = np.isfinite(low)
    inside = ((low <= true) & (true <= high))[answered]
    found = p <= 0.05 * (1.0 + 1e-6)  # a rank may be 0.05
    agree = (found == ((low > 0.0) | (high < 0.0)))[answered]
    some = bool(answered.any())
    return head | {
        "truth": round(float(np.median(true)), 5),
        "answered": round(float(answered.mean()), 4),
        "covered": round(float(inside.mean()), 4) if some else None,
        "rejected": round(float(found.mean()), 4),
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
    """Coverage of each method, with the share of p < 0.05 at r = 0."""
    found = {(r["method"], r["design"], r["strength"], r["n"], r["epsilon"]): r for r in rows(RECORD)}
    heads = [(n, epsilon) for n in RECORDS for epsilon in EPSILONS]
    written = []
    for case in CASES:
        lines = []
        for design in case.designs:
            for strength in STRENGTHS:
                cells = [found.get((case.name, design, strength, n, e)) for n, e in heads]
                true = next((f"{r['truth']:.3f}" for r in reversed(cells) if r), "")
                lines.append([design, f"{strength:g}", true, *map(_cell, cells)])
        independent = [design for design in case.designs if design != UNEQUAL]  # there the spread of Y follows X
        rejected = [
            [r["rejected"] for d in independent if (r := found.get((case.name, d, 0.0, n, e)))] for n, e in heads
        ]
        most = [f"{max(part):.3f}" if part else "" for part in rejected]
        lines.append(["largest share of p <= 0.05", "0", "", *most])
        written.append(f"\n### {case.name}\n\n{markdown(['law', 'r', 'truth', *settings(heads)], lines)}")
    return "\n".join(written)


def main() -> None:
    parser = command_line(__doc__, 400)
    parser.add_argument("--only", nargs="+", choices=sorted(BY_NAME), default=list(BY_NAME))
    parser.add_argument("--records", type=int, nargs="+", default=list(RECORDS))
    args = parser.parse_args()
    if args.table:
        return fill(PAGE, "laws", tables())
    done = {(r["method"], r["design"], r["strength"], r["n"], r["epsilon"]) for r in rows(RECORD)}
    for n, name in itertools.product(args.records, args.only):
        cells = itertools.product(EPSILONS, BY_NAME[name].designs, STRENGTHS)
        todo = [(design, r, n, epsilon) for epsilon, design, r in cells if (name, design, r, n, epsilon) not in done]
        append(RECORD, (measure(BY_NAME[name], *cell, args.replicates) for cell in todo))


if __name__ == "__main__":
    main()
