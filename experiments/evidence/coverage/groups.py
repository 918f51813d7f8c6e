"""Coverage, level and width of the differences of two means (docs/evidence/coverage.md).

    python -m experiments.evidence.coverage.groups [--replicates 400] [--only NAME ...] [--records 500 3000 50000]
    python -m experiments.evidence.coverage.groups --power       # against winsorised-mean-difference
    python -m experiments.evidence.coverage.groups --table       # the tables of the page, from the record

One JSON line per design, n and epsilon. Tests are made by the builder of `jaxdp.test` from columns of a schema; the
true difference is that of the response clipped at the schema's bounds, by quadrature. A data set without an interval is
counted apart (`answered`); `covered` is the share of the intervals that hold the truth, `rejected` that of p < 0.05
among all data sets. `plain_*`: Welch's interval without privacy on the same data sets, its normal quantile at 1.96.
"""

import dataclasses
import functools
import itertools
import math
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special, stats

from experiments.record import append, command_line, fill, keys_of, markdown, rows, settings
from jaxdp import catalogue, core
from jaxdp.data.dataset import BINARY, Column, Data, Domain
from jaxdp.spec import Options

RECORD = Path(__file__).parent / "groups.jsonl"
POWER_RECORD = Path(__file__).parent / "groups_power.jsonl"
PAGE = Path(__file__).parents[3] / "docs" / "evidence" / "coverage.md"
RECORDS, EPSILONS = (500, 3000, 50_000), (0.5, 1.0, 4.0)
DOMAIN = Domain((Column(),), (Column(BINARY, 2),))
NORMAL, LOGNORMAL, ZEROS, STUDENT = range(4)
SDS = (1.0, math.sqrt(math.e * (math.e - 1.0)), math.sqrt(0.19), math.sqrt(3.0))
SEED = 29


@dataclasses.dataclass(frozen=True)
class Design:
    """law: of the response, in units of its own sd. share: of the second group, whose response is the law times `ratio`
    plus `shift` in those units. low, high: bounds of the schema in those units."""

    law: int
    share: float = 0.5
    ratio: float = 1.0
    shift: float = 0.0
    low: float = -4.0
    high: float = 4.0

    @property
    def numbers(self) -> tuple[float, ...]:
        return (self.law, self.share, self.ratio, self.shift, self.low, self.high)


SKEWED = {"low": 0.0, "high": 12.0}
TAILS = {"low": -10.0, "high": 10.0}
DESIGNS = {
    "normal": Design(NORMAL, shift=0.5),
    "normal, null": Design(NORMAL),
    "normal, sds 1:4": Design(NORMAL, ratio=4.0, shift=0.5, low=-12.0, high=12.0),
    "normal, sds 1:4, null": Design(NORMAL, ratio=4.0, low=-12.0, high=12.0),
    "normal, 5/95": Design(NORMAL, share=0.05, shift=0.5),
    "normal, 5/95, null": Design(NORMAL, share=0.05),
    "normal, 5/95, small group's sd x 4": Design(NORMAL, share=0.05, ratio=4.0, shift=0.5, low=-12.0, high=12.0),
    "normal, 5/95, small group's sd x 4, null": Design(NORMAL, share=0.05, ratio=4.0, low=-12.0, high=12.0),
    "normal, 5/95, large group's sd x 4, null": Design(NORMAL, share=0.95, ratio=4.0, low=-12.0, high=12.0),
    "normal, bounds at 1 sd": Design(NORMAL, shift=0.5, low=-1.0, high=1.0),
    "normal, bounds at 1 sd, sds 1:4, null": Design(NORMAL, ratio=4.0, low=-1.0, high=1.0),
    "normal, bounds at 10 sd": Design(NORMAL, shift=0.5, **TAILS),
    "lognormal": Design(LOGNORMAL, shift=0.3, **SKEWED),
    "lognormal, null": Design(LOGNORMAL, **SKEWED),
    "lognormal, scaled by 1.5": Design(LOGNORMAL, ratio=1.5, **SKEWED),
    "lognormal, 5/95": Design(LOGNORMAL, share=0.05, shift=0.3, **SKEWED),
    "lognormal, 5/95, null": Design(LOGNORMAL, share=0.05, **SKEWED),
    "lognormal, 5/95, small group's x 4": Design(LOGNORMAL, share=0.05, ratio=4.0, **SKEWED),
    "lognormal, bounds at 1 sd": Design(LOGNORMAL, ratio=1.5, low=0.0, high=1.76),
    "zeros in 9 of 10, null": Design(ZEROS, **SKEWED),
    "zeros in 9 of 10, scaled by 2": Design(ZEROS, ratio=2.0, **SKEWED),
    "zeros in 9 of 10, 10/90, scaled by 2": Design(ZEROS, share=0.1, ratio=2.0, **SKEWED),
    "zeros in 9 of 10, 5/95, null": Design(ZEROS, share=0.05, **SKEWED),
    "t3": Design(STUDENT, shift=0.5, **TAILS),
    "t3, null": Design(STUDENT, **TAILS),
    "t3, sds 1:4, null": Design(STUDENT, ratio=4.0, **TAILS),
    "t3, 5/95": Design(STUDENT, share=0.05, shift=0.5, **TAILS),
    "t3, 5/95, small group's sd x 4, null": Design(STUDENT, share=0.05, ratio=4.0, **TAILS),
}
POWER_DESIGNS = {f"normal, bounds at {k} sd": Design(NORMAL, low=-k, high=k) for k in (4, 10)}
POWER_SHIFTS = (0.1, 0.2, 0.3, 0.5)
POWER_RECORDS = (500, 3000)


def draw(key, n: int, numbers):
    """Data as the schema scales them."""
    law, share, ratio, shift, low, high = numbers
    keys = jax.random.split(key, 3)
    group = jax.random.uniform(keys[0], (n,)) < share
    laws = (
        lambda: jax.random.normal(keys[1], (n,)),
        lambda: jnp.exp(jax.random.normal(keys[1], (n,))),
        lambda: jnp.where(jax.random.uniform(keys[2], (n,)) < 0.1, jax.random.exponential(keys[1], (n,)), 0.0),
        lambda: jax.random.t(keys[1], 3.0, (n,)),
    )
    values = jax.lax.switch(law.astype(int), laws) / jnp.asarray(SDS)[law.astype(int)]
    values = jnp.where(group, values * ratio + shift, values)
    response = (jnp.clip(values, low, high) - 0.5 * (low + high)) / (0.5 * (high - low))
    return Data(response, group.astype(float), None, DOMAIN)


def truth(design: Design) -> float:
    """The difference of the clipped means, in half ranges."""
    place = (np.arange(1_000_000) + 0.5) / 1_000_000
    quantiles = (
        special.ndtri,
        lambda p: np.exp(special.ndtri(p)),
        lambda p: np.where(p > 0.9, -np.log(np.maximum((1.0 - p) / 0.1, 1e-300)), 0.0),
        lambda p: stats.t.ppf(p, 3),
    )
    values = quantiles[design.law](place) / SDS[design.law]
    means = [
        np.clip(values * r + s, design.low, design.high).mean() for r, s in ((design.ratio, design.shift), (1.0, 0.0))
    ]
    return float((means[0] - means[1]) / (0.5 * (design.high - design.low)))


def plain(data):
    """(difference, se) of Welch's interval, without privacy."""
    group, response = data.y > 0.5, data.x
    sums = [(jnp.sum(part), jnp.sum(part * response), jnp.sum(part * response**2)) for part in (~group, group)]
    means = [total / count for count, total, _ in sums]
    variances = [(q - c * m**2) / (c - 1.0) / c for (c, _, q), m in zip(sums, means, strict=True)]
    return means[1] - means[0], jnp.sqrt(variances[0] + variances[1])


@functools.cache
def program(method: str, n: int, batch: int):
    """(keys, epsilon, numbers) -> p-value, estimate, low, high, the flags, and the plain estimate with its se."""
    entry = catalogue.find(method)

    @jax.jit
    def found(keys, epsilon, numbers):
        def one(key):
            key_data, key_run = jax.random.split(key)
            data = draw(key_data, n, numbers)
            test = entry.build(epsilon, DOMAIN, Options(num_records=n))
            result = core.run(test, key_run, data)
            shapes = core.public_shapes(data)
            settled = test.settled(shapes, result.release)
            flags = {}
            if hasattr(settled, "groups"):
                flags = {"small group": settled.groups.unknown} | settled._found(result.release).notes()
            return result.p_value, result.effect, *result.interval, flags, *plain(data)

        return jax.lax.map(one, keys, batch_size=batch)

    return found


def measure(
    name: str, design: Design, n: int, epsilon: float, replicates: int, method: str = "mean-difference"
) -> dict:
    """One row."""
    start = time.process_time()
    keys = keys_of(SEED, f"{name} {design.shift:g} {n} {epsilon:g}", replicates)
    made = program(method, n, 50 if n < 10_000 else 10)(keys, epsilon, jnp.asarray(design.numbers, float))
    p, effect, low, high, flags, middle, se = jax.tree.map(np.asarray, made)
    true, answered = truth(design), np.isfinite(low)
    inside = (low <= true) & (true <= high)
    agree = (p < 0.05) == ((low > 0.0) | (high < 0.0))
    covered = float(inside[answered].mean()) if answered.any() else None
    width, plain_width = (high - low)[answered], 2.0 * 1.96 * se
    return {
        "method": method,
        "design": name,
        **{field: value for field, value in dataclasses.asdict(design).items() if field != "law"},
        "n": n,
        "epsilon": epsilon,
        "truth": round(true, 5),
        "answered": round(float(answered.mean()), 4),
        "covered": None if covered is None else round(covered, 4),
        "rejected": round(float((p < 0.05).mean()), 4),
        "p_and_interval_agree": round(float(agree.mean()), 4),
        "median_effect": round(float(np.median(effect[answered])), 5) if answered.any() else None,
        "width": round(float(np.median(width)), 5) if answered.any() else None,
        "plain_width": round(float(np.median(plain_width)), 5),
        "plain_covered": round(float((np.abs(middle - true) <= 0.5 * plain_width).mean()), 4),
        "flags": {flag: round(float(raised.mean()), 4) for flag, raised in flags.items()},
        "replicates": replicates,
        "seconds": round(time.process_time() - start, 1),
    }


def cell(row: dict) -> str:
    """Covered, and the share that was answered where that is not all."""
    if row["covered"] is None or row["answered"] < 0.1:
        return "none" if row["answered"] == 0 else f"({row['answered']:.2f})"
    return f"{row['covered']:.3f}" + ("" if row["answered"] >= 0.995 else f" ({row['answered']:.2f})")


def tables() -> str:
    """The tables of the page."""
    found = {(row["design"], row["n"], row["epsilon"]): row for row in rows(RECORD)}
    columns = list(itertools.product(RECORDS, EPSILONS))

    def table(of):
        lines = []
        for name in DESIGNS:
            cells = [found.get((name, *column)) for column in columns]
            if any(cells):
                shown = [of(row) if row else "" for row in cells]
                lines.append([name, f"{next(filter(None, cells))['truth']:.3f}", *shown])
        return markdown(["design", "truth", *settings(columns)], lines) + "\n"

    def width(row):
        return f"{row['width'] / row['plain_width']:.2f}" if row["width"] and row["answered"] >= 0.1 else "none"

    def without(row):
        return f"{row['plain_covered']:.3f}"

    parts = [("Coverage", cell), ("Width, in widths of Welch's interval without privacy", width)]
    parts += [("Coverage of Welch's interval without privacy, on the same data sets", without)]
    made = [f"### {title}\n\n{table(of)}" for title, of in parts]
    return "\n".join([*made, f"### Power\n\n{power_table()}"])


def power_table() -> str:
    """Power against the winsorised form."""
    found = {(r["method"], r["design"], r["n"], r["epsilon"], r["shift"]): r for r in rows(POWER_RECORD)}
    shifts = sorted({key[-1] for key in found})
    lines = []
    for design, n, epsilon in itertools.product(POWER_DESIGNS, POWER_RECORDS, EPSILONS):
        at = [[found.get((m, design, n, epsilon, s)) for m in METHODS] for s in shifts]
        shown = [" / ".join(f"{row['rejected']:.2f}" for row in pair if row) for pair in at]
        lines.append([design, n, f"{epsilon:g}", *shown])
    return markdown(["bounds", "n", "epsilon", *(f"{shift:g} sd" for shift in shifts)], lines) + "\n"


METHODS = ("mean-difference", "winsorised-mean-difference")


def main() -> None:
    parser = command_line(__doc__, 400)
    parser.add_argument("--only", nargs="*", default=tuple(DESIGNS), choices=tuple(DESIGNS))
    parser.add_argument("--records", nargs="*", type=int, default=RECORDS)
    parser.add_argument("--power", action="store_true")
    args = parser.parse_args()
    if args.table:
        return fill(PAGE, "groups", tables())
    with jax.enable_x64(True):
        append(POWER_RECORD if args.power else RECORD, measured(args))


def measured(args):
    """The rows, one by one."""
    if args.power:
        every = itertools.product(METHODS, POWER_DESIGNS, POWER_RECORDS, EPSILONS, POWER_SHIFTS)
        for method, name, n, epsilon, shift in every:
            moved = dataclasses.replace(POWER_DESIGNS[name], shift=shift)
            yield measure(name, moved, n, epsilon, args.replicates, method)
        return
    for n, name, epsilon in itertools.product(args.records, args.only, EPSILONS):
        yield measure(name, DESIGNS[name], n, epsilon, args.replicates)


if __name__ == "__main__":
    main()
