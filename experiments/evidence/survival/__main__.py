"""Level, power and coverage of `log-rank` (docs/theory/log_rank.md).

    python -m experiments.evidence.survival [--replicates 4000] [--only NAME ...]
    python -m experiments.evidence.survival --table       # the tables of the page, from the record

One JSON line per design, n and epsilon. A data set is its table of group x bin x event, which is all that the test
reads, drawn from the law of the cells; releases are simulated. `rejected`: share of p < 0.05; `plain`: that of the
log-rank test without privacy on the same tables; `answered`: data sets with an interval, `covered`: of these, intervals
that hold the true log hazard ratio, `width`: their median width. Blocks, shares of the budget and smoothing were chosen
on the designs whose names begin with "chosen".
"""

import dataclasses
import functools
import time
import zlib
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import jaxdp
from experiments.record import append, command_line, fill, markdown, rows, settings
from jaxdp.data.dataset import BINARY, Column, Data, Domain
from jaxdp.independence.survival import log_rank as private
from jaxdp.plan.survival import released
from jaxdp.statistics import log_rank
from jaxdp.statistics.log_rank import BINS

RECORD = Path(__file__).parent / "log_rank.jsonl"
PAGE = Path(__file__).parents[3] / "docs" / "theory" / "log_rank.md"
EPSILONS = (0.5, 1.0, 4.0)
FINE = 8  # parts of a bin, of the integrals
CONSTANT, RISING, FALLING, HUMP = 1.0, 3.0, 0.5, 0.0
SEED = 33
DOMAIN = Domain((Column(BINARY, 2),), (Column(), Column(BINARY, 2)))


@dataclasses.dataclass(frozen=True)
class Design:
    """hazard: total over the grid, of the first group. power: it grows with the time to this power; HUMP: up and down.
    ratio: hazard ratio of the second group. share: of the second group. censored: rates of both groups."""

    hazard: float = 1.2
    power: float = CONSTANT
    ratio: float = 1.0
    share: float = 0.5
    censored: tuple[float, float] = (0.3, 0.3)
    records: tuple[int, ...] = (500, 2000, 10_000)

    def cells(self) -> np.ndarray:
        """Probabilities (2, BINS + 1, 2)."""
        ends = log_rank.ends(BINS * FINE)
        total = self.hazard * (
            ends - np.sin(4 * np.pi * ends) / (4 * np.pi) if self.power == HUMP else ends**self.power
        )
        found = np.zeros((2, BINS + 1, 2))
        for group, (share, ratio, rate) in enumerate(
            zip((1 - self.share, self.share), (1.0, self.ratio), self.censored, strict=True)
        ):
            alive, seen = np.exp(-ratio * total), np.exp(-rate * ends)
            events = (alive[:-1] - alive[1:]) * np.sqrt(seen[:-1] * seen[1:])
            gone = (seen[:-1] - seen[1:]) * np.sqrt(alive[:-1] * alive[1:])
            for event, part in enumerate((gone, events)):
                found[group, :BINS, event] = share * part.reshape(BINS, FINE).sum(1)
            found[group, BINS, 0] = share - found[group].sum()
        return found


UNEQUAL = (0.1, 1.5)
DESIGNS = {
    "chosen: equal": Design(),
    "chosen: unequal censoring": Design(censored=UNEQUAL),
    "chosen: 10 % in one group": Design(censored=UNEQUAL, share=0.1),
    "chosen: falling hazard": Design(hazard=2.0, power=FALLING, censored=(1.5, 0.1), share=0.3),
    "chosen: rising hazard": Design(hazard=3.0, power=RISING, censored=(0.05, 3.0)),
    "unequal censoring, 40 %": Design(hazard=0.8, censored=(0.2, 2.5), share=0.4),
    "5 % in one group": Design(hazard=1.5, censored=(0.8, 0.2), share=0.05, records=(500, 2000, 10_000, 100_000)),
    "hump": Design(hazard=1.5, power=HUMP, censored=(1.2, 0.1), share=0.35, records=(500, 2000, 10_000, 100_000)),
    "mildly falling": Design(hazard=1.0, power=0.8, censored=(0.1, 1.2), records=(500, 2000, 10_000, 100_000)),
    "squared time": Design(hazard=1.5, power=2.0, censored=(1.5, 0.2), share=0.6),
    "8 % events": Design(hazard=0.1, censored=(0.1, 0.8)),
    "ratio 1.25": Design(ratio=1.25, hazard=1.0, censored=(0.2, 0.5)),
    "ratio 1.5": Design(ratio=1.5, hazard=1.0, censored=(0.2, 0.5)),
    "ratio 1.5, 20 %": Design(ratio=1.5, share=0.2, hazard=1.0, censored=(0.2, 0.5)),
    "ratio 1.5, squared time": Design(ratio=1.5, hazard=1.2, power=2.0, censored=(0.8, 0.2)),
    "ratio 0.5": Design(ratio=0.5, hazard=1.5, censored=(0.2, 1.0)),
    "ratio 3, 30 %": Design(ratio=3.0, share=0.3, hazard=0.8, censored=(0.2, 0.5)),
    "ratio 4, 20 %, falling, dropout": Design(3.09, 0.7, 4.0, 0.2, (5 / 3, 5 / 0.9)),
    "ratio 4, 20 %, falling, dropout of the other": Design(3.09, 0.7, 4.0, 0.2, (5 / 0.9, 5 / 3)),
    "ratio 3, 10 %, falling": Design(2.0, FALLING, 3.0, 0.1, (0.3, 0.3)),
    "ratio 8, 30 %": Design(1.0, ratio=8.0, share=0.3),
}


def plain(table):
    """Whether the log-rank test without privacy rejects."""
    leaves = jnp.sum(table, axis=2)
    at_risk = (jnp.cumsum(leaves[:, ::-1], axis=1)[:, ::-1] - 0.5 * table[:, :, 0])[:, :BINS]
    both, events = jnp.sum(at_risk, axis=0), jnp.sum(table[:, :BINS, 1], axis=0)
    share = at_risk[1] / jnp.maximum(both, 0.5)
    ties = jnp.where(both > 1.0, (both - events) / jnp.maximum(both - 1.0, 1e-9), 0.0)
    variance = jnp.sum(events * share * (1.0 - share) * jnp.maximum(ties, 0.0))
    return jnp.abs(jnp.sum(table[1, :BINS, 1] - share * events)) > 1.959964 * jnp.sqrt(variance)


def answered(test, key, table, records: int):
    """p-value, estimate and interval of `released`."""
    second, last = released(test, key, table, records)
    found = second.interpret(None, last)
    return found.p_value, found.effect, *found.interval


@functools.partial(jax.jit, static_argnames="records")
def _runs(test, keys, tables, records: int):
    def one(both):
        return (*answered(test, *both, records), plain(both[1][0]))

    return jax.lax.map(one, (keys, tables), batch_size=250)


def measure(name: str, records: int, epsilon: float, replicates: int) -> dict:
    """One line of the record."""
    design, started = DESIGNS[name], time.perf_counter()
    seed = zlib.crc32(f"{name} {records} {epsilon}".encode()) + SEED
    drawn = np.random.default_rng(seed).multinomial(records, design.cells().ravel(), size=replicates)
    shapes = Data(*(jax.ShapeDtypeStruct(shape, jnp.float64) for shape in ((records,), (records, 2))), None, DOMAIN)
    test = jaxdp.LogRank(epsilon=epsilon).specialize(shapes)
    tables = jnp.asarray(drawn.reshape(-1, 1, private.PAIR, *private.OF_TIME), float)
    p, estimate, low, high, rejected = map(
        np.asarray, _runs(test, jax.random.split(jax.random.key(seed), replicates), tables, records)
    )
    truth, known = np.log(design.ratio), ~np.isnan(low)
    contradicting = known & (((low > 0) | (high < 0)) != (p < 0.05))
    return {
        "design": name,
        "records": records,
        "epsilon": epsilon,
        "blocks": test.second.blocks,
        "replicates": replicates,
        "rejected": float(np.mean(p < 0.05)),
        "plain": float(np.mean(rejected)),
        "answered": float(np.mean(known)),
        "covered": float(np.mean((low <= truth) & (truth <= high), where=known)) if known.any() else None,
        "bias": float(np.median(estimate[known]) - truth) if known.any() else None,
        "width": float(np.median((high - low)[known])) if known.any() else None,
        "contradicting": int(contradicting.sum()),
        "seconds": round(time.perf_counter() - started, 1),
    }


def _table(kind) -> str:
    """Rows of designs, columns of n and epsilon."""
    null = kind == "level"
    names = [name for name, design in DESIGNS.items() if (design.ratio == 1.0) == null]
    columns = [(n, e) for n in (500, 2000, 10_000, 100_000) for e in EPSILONS if n < 100_000 or (null and e == 1.0)]
    return by_design(RECORD, names, columns, lambda row: told(row, null))


def by_design(record: Path, names, columns, told) -> str:
    """A table of a record: rows of designs, columns of n and epsilon, each cell as its row (or None) is told."""
    found = {(row["design"], row["records"], row["epsilon"]): row for row in rows(record)}
    lines = ([name, *(told(found.get((name, *column))) for column in columns)] for name in names)
    return markdown(["design", *settings(columns)], lines)


def told(row, null: bool) -> str:
    """A cell of a table: rejected (not private); of ratios also coverage and median width."""
    if row is None:
        return ""
    share = lambda value: "-" if value is None else f"{value:.3f}".removeprefix("0")  # noqa: E731
    if null:
        return f"{share(row['rejected'])} ({share(row['plain'])})"
    width = "-" if row["width"] is None else f"{row['width']:.2f}"
    return f"{share(row['rejected'])} ({share(row['plain'])}); {share(row['covered'])}, {width}"


def main() -> None:
    """Measures, or writes the tables."""
    parser = command_line(__doc__, 2500)
    parser.add_argument("--only", nargs="*", default=list(DESIGNS), choices=list(DESIGNS))
    asked = parser.parse_args()
    if asked.table:
        for kind in ("level", "ratios"):
            fill(PAGE, kind, _table(kind))
        return
    jax.config.update("jax_enable_x64", True)
    cells = [(name, n, e) for name in asked.only for n in DESIGNS[name].records for e in EPSILONS]
    cells.sort(key=lambda cell: cell[1:])  # one compiled program at a time
    append(RECORD, (measure(*cell, asked.replicates) for cell in cells))


if __name__ == "__main__":
    main()
