"""What a small group loses: level, power and intervals of the tests of two groups, by the share of the smaller one.

    python -m experiments.evidence.small_groups [--replicates 200] [--only METHOD ...]
    python -m experiments.evidence.small_groups --table     # the tables of its page, from the record

One JSON line per (method, n, share, effect), epsilon 1; a run goes on where the file ends. Groups are drawn, so that
their sizes vary. `plain`: rejections of the test without privacy on the same data sets. `answered` and `covered`:
intervals, and those that hold the truth (of `mean-difference` and `log-rank`, whose effect is the design's).
"""

import dataclasses
import functools
import json
import zlib
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from experiments.evidence.compared import estimators, peers
from experiments.evidence.compared.answers import TIMES, answered_by, plain_log_rank, stacked, times
from experiments.record import append, command_line, fill, rows
from jaxdp import catalogue
from jaxdp.data.dataset import BINARY, Column, Data, Domain
from jaxdp.spec import Options

RECORD = Path(__file__).parent / "rows.jsonl"
PAGE = Path(__file__).parents[3] / "docs" / "evidence" / "small_groups.md"
EPSILON, LEVEL, BOUND = 1.0, 0.05, 5.0
SIZES, SHARES = (1000, 10_000), (0.5, 0.1, 0.05, 0.02)
RESPONSE = Domain((Column(BINARY, 2),), (Column(),))
TABLE = Domain((Column(BINARY, 2),), (Column(BINARY, 2),))


def response(rng, n: int, share: float, effect: float):
    """A normal response, `effect` sds higher in the small group."""
    group = (rng.uniform(size=n) < share).astype(float)
    return group, rng.normal(size=n) + effect * group


def yes(rng, n: int, share: float, effect: float):
    """Yes or no: log odds -0.4, `effect` higher in the small group."""
    group = (rng.uniform(size=n) < share).astype(float)
    return group, (rng.uniform(size=n) < 1 / (1 + np.exp(0.4 - effect * group))).astype(float)


def to_event(rng, n: int, share: float, effect: float):
    """Times to an event, log hazard ratio `effect`."""
    group, time, event = times(rng, n, effect, share)
    return group.astype(float), np.stack([2 * time - 1, event], axis=1)


def welch(group, values):
    return peers.welch(peers.Groups(values[group == 0], values[group == 1]))


def mann_whitney(group, values):
    return stats.mannwhitneyu(values[group == 0], values[group == 1])[1]


def chi2(group, values):
    table = np.zeros((2, 2))
    np.add.at(table, (group.astype(int), values.astype(int)), 1)
    return peers.chi2(table)


@dataclasses.dataclass(frozen=True)
class Design:
    """draw: (rng, n, share, effect) -> columns; plain: columns -> p-value without privacy.

    unit: of the answer's effect in that of the design; None where they differ.
    """

    draw: Callable
    effect: float
    domain: Domain
    plain: Callable
    unit: float | None = None

    def scaled(self, columns):
        """As the schema scales them."""
        x, y = columns
        return (x, np.clip(y / BOUND, -1, 1)) if self.domain is RESPONSE else (x, y)


def plain_times(group, y):
    return plain_log_rank(group, 0.5 * (y[:, 0] + 1), y[:, 1])[0]


DESIGNS = {
    "mean-difference": Design(response, 0.5, RESPONSE, welch, BOUND),
    "winsorised-mean-difference": Design(response, 0.5, RESPONSE, welch),
    "kruskal-wallis": Design(response, 0.5, RESPONSE, mann_whitney),
    "noisy-table": Design(yes, 0.7, TABLE, chi2),
    "logistic-regression": Design(yes, 0.7, TABLE, lambda x, y: estimators.logistic(x, y)[0]),
    "log-rank": Design(to_event, float(np.log(1.5)), TIMES, plain_times, 1.0),
}


@functools.cache
def program(method: str, n: int):
    """(keys, data sets) -> (p, low, high); one program for all shares, None where the test refuses so few records."""
    domain = DESIGNS[method].domain
    test = catalogue.find(method).build(EPSILON, domain, Options(num_records=n))
    sides = ((n,), (n, 2) if domain is TIMES else (n,))
    rule = test.validity(Data(*(jax.ShapeDtypeStruct(side, jnp.float64) for side in sides), None, domain))
    return None if rule is not None and rule.verdict == "refuse" else jax.jit(answered_by(test))


def measure(method: str, n: int, share: float, effect: float, replicates: int) -> dict:
    """One row."""
    design, head = DESIGNS[method], {"method": method, "n": n, "share": share, "effect": round(effect, 4)}
    seed = zlib.crc32(json.dumps(head).encode())
    rng = np.random.default_rng(seed)
    sets = [design.draw(rng, n, share, effect) for _ in range(replicates)]
    data = stacked([design.scaled(columns) for columns in sets], design.domain)
    run = program(method, n)
    if run is None:
        return head | {"epsilon": EPSILON, "refused": True}
    p, low, high = np.asarray(run(jax.random.split(jax.random.key(seed), replicates), data)).T
    answered = np.isfinite(low) & (design.unit is not None)
    held = (low * (design.unit or 1) <= effect) & (effect <= high * (design.unit or 1)) & answered
    return head | {
        "epsilon": EPSILON,
        "refused": False,
        "replicates": replicates,
        "rejected": int(np.sum(p <= LEVEL)),
        "plain": int(sum(design.plain(*columns) <= LEVEL for columns in sets)),
        "answered": int(answered.sum()),
        "covered": int(held.sum()),
    }


def measured(methods, replicates: int, done):
    """Rows that are not done."""
    for method in methods:
        for n in SIZES:
            for effect in (0.0, DESIGNS[method].effect):
                for share in SHARES:
                    if (method, n, share, round(effect, 4)) not in done:
                        yield measure(method, n, share, effect, replicates)


def table() -> str:
    """Rejections of jaxdp (without privacy): power, and below it the level, by share."""
    found = {(row["method"], row["n"], row["share"], row["effect"] > 0): row for row in rows(RECORD)}
    parts, measured_ones = [], [method for method in DESIGNS if any(key[0] == method for key in found)]
    for power in (True, False):
        head = f"| {'effect' if power else 'no effect'} | n | " + " | ".join(f"{share:.0%}" for share in SHARES) + " |"
        parts += [head, "|---" * (2 + len(SHARES)) + "|"]
        for method in measured_ones:
            for n in SIZES:
                cells = [cell(found.get((method, n, share, power))) for share in SHARES]
                parts.append(
                    f"| `{method}` | {n:_} | ".replace("_", " " if n >= 10_000 else "") + " | ".join(cells) + " |"
                )
        parts.append("")
    return "\n".join(parts[:-1])


def cell(row) -> str:
    """Of a table."""
    if row is None:
        return ""
    if row["refused"]:
        return "refused"
    share = lambda count: f"{count / row['replicates']:.2f}"  # noqa: E731
    return f"{share(row['rejected'])} ({share(row['plain'])})"


def intervals() -> str:
    """Of the methods whose effect is the design's: data sets with an interval, and how many of those hold the truth."""
    found = {(row["method"], row["n"], row["share"]): row for row in rows(RECORD) if row["effect"] > 0}
    lines = [
        "| interval | n | " + " | ".join(f"{share:.0%}" for share in SHARES) + " |",
        "|---" * (2 + len(SHARES)) + "|",
    ]
    for method in (name for name, design in DESIGNS.items() if design.unit is not None):
        for n in SIZES:
            cells = []
            for share in SHARES:
                row = found.get((method, n, share), {"refused": True})
                if row["refused"] or not row["answered"]:
                    cells.append("none")
                else:
                    cells.append(f"{row['answered'] / row['replicates']:.2f} ({row['covered'] / row['answered']:.2f})")
            lines.append(f"| `{method}` | {n:_} | ".replace("_", " " if n >= 10_000 else "") + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = command_line(__doc__, 200)
    parser.add_argument("--only", nargs="+", choices=DESIGNS, default=list(DESIGNS))
    args = parser.parse_args()
    if not args.table:
        jax.config.update("jax_enable_x64", True)
        done = {(row["method"], row["n"], row["share"], row["effect"]) for row in rows(RECORD)}
        append(RECORD, measured(args.only, args.replicates, done))
    fill(PAGE, "power", table())
    fill(PAGE, "intervals", intervals())


if __name__ == "__main__":
    main()
