"""Level, power and coverage of `log-rank` given strata (docs/theory/log_rank.md).

    python -m experiments.evidence.survival.strata [--replicates 2000] [--only NAME ...]
    python -m experiments.evidence.survival.strata --table       # the tables of the page, from the record

One JSON line per design, n and epsilon, as in `experiments.evidence.survival`; `plain` is the stratified log-rank test
without privacy on the same tables, `unstratified` the same without strata. The share of the budget for the counts was
chosen on other designs: 2, 4 and 8 `even` strata at ratios 1 and 1.5.
"""

import dataclasses
import time
import zlib
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

import jaxdp
from experiments.evidence.survival.__main__ import CONSTANT, FALLING, FINE, HUMP, PAGE, RISING, by_design, told
from experiments.record import append, command_line, fill
from jaxdp.data.dataset import BINARY, CATEGORICAL, Column, Data, Domain
from jaxdp.plan.survival import released
from jaxdp.statistics import log_rank
from jaxdp.statistics.log_rank import BINS

RECORD = Path(__file__).parent / "strata.jsonl"
CELLS = ((300, 0.5), (300, 1.0), (300, 4.0), (1000, 0.5), (1000, 1.0), (1000, 4.0), (10_000, 1.0))  # n, epsilon
SEED = 3301


@dataclasses.dataclass(frozen=True)
class Stratum:
    """size: share of the records. hazard: total over the grid, of the first group; power: it grows with the time to
    this power, HUMP: up and down. shares: of the groups. censored: rates of the groups."""

    size: float
    hazard: float = 1.0
    power: float = CONSTANT
    shares: tuple[float, ...] = (0.5, 0.5)
    censored: tuple[float, ...] = (0.2, 0.5)

    def cells(self, ratios) -> np.ndarray:
        """Probabilities (K, BINS + 1, 2)."""
        ends = log_rank.ends(BINS * FINE)
        total = self.hazard * (
            ends - np.sin(4 * np.pi * ends) / (4 * np.pi) if self.power == HUMP else ends**self.power
        )
        found = np.zeros((len(ratios), BINS + 1, 2))
        for group, (share, ratio, rate) in enumerate(zip(self.shares, ratios, self.censored, strict=True)):
            alive, seen = np.exp(-ratio * total), np.exp(-rate * ends)
            events = (alive[:-1] - alive[1:]) * np.sqrt(seen[:-1] * seen[1:])
            gone = (seen[:-1] - seen[1:]) * np.sqrt(alive[:-1] * alive[1:])
            for event, part in enumerate((gone, events)):
                found[group, :BINS, event] = share * part.reshape(BINS, FINE).sum(1)
            found[group, BINS, 0] = share - found[group].sum()
        return self.size * found


@dataclasses.dataclass(frozen=True)
class Design:
    """ratios: of all groups against the first. steps: of the time, at whose ends it is recorded; 0 for none."""

    strata: tuple[Stratum, ...]
    ratios: tuple[float, ...] = (1.0, 1.0)
    steps: int = 0

    def cells(self) -> np.ndarray:
        """Probabilities (S, K, BINS + 1, 2)."""
        found = np.stack([stratum.cells(self.ratios) for stratum in self.strata])
        if self.steps:  # all of a step in its middle bin
            ends = log_rank.ends(BINS)
            bins = (0.5 * (ends[1:] + ends[:-1]) * self.steps).astype(int)
            middle = np.searchsorted(ends, (np.arange(self.steps) + 0.5) / self.steps) - 1
            moved = np.zeros_like(found)
            moved[:, :, BINS] = found[:, :, BINS]
            for step, place in enumerate(middle):
                moved[:, :, place] = found[:, :, :BINS][:, :, bins == step].sum(2)
            return moved
        return found

    @property
    def null(self) -> bool:
        """Whether no group differs."""
        return set(self.ratios) == {1.0}

    @property
    def domain(self) -> Domain:
        """Of its columns."""
        groups, strata = len(self.ratios), len(self.strata)
        x = Column(BINARY, 2) if groups == 2 else Column(CATEGORICAL, groups)
        return Domain((x,), (Column(), Column(BINARY, 2)), (Column(CATEGORICAL, strata),) if strata > 1 else ())


def even(strata: int, **fields) -> tuple[Stratum, ...]:
    """Strata of one size whose hazards grow by equal factors from .4 to 2, or are all `hazard`."""
    hazards = np.geomspace(0.4, 2.0, strata) if "hazard" not in fields else [fields.pop("hazard")] * strata
    return tuple(Stratum(1.0 / strata, float(hazard), **fields) for hazard in hazards)


CONFOUNDED = (
    Stratum(0.5, 0.4, CONSTANT, (0.7, 0.3), (0.2, 1.0)),
    Stratum(0.3, 1.2, RISING, (0.4, 0.6), (0.5, 0.1)),
    Stratum(0.2, 2.5, 0.8, (0.2, 0.8), (0.2, 0.8)),
)
SPARSE = (
    Stratum(0.4, 0.6),
    Stratum(0.4, 1.5, shares=(0.4, 0.6), censored=(1.0, 0.1)),
    Stratum(0.1, 0.3, shares=(0.2, 0.8)),
    Stratum(0.06, 2.5, shares=(0.8, 0.2)),
    Stratum(0.04, 1.0, HUMP, shares=(0.3, 0.7)),
)
FIVE_PERCENT = (
    Stratum(0.6, 1.5, shares=(0.95, 0.05), censored=(0.8, 0.2)),
    Stratum(0.4, 0.5, HUMP, shares=(0.93, 0.07), censored=(0.1, 0.9)),
)
STEPS = (Stratum(0.55, 0.8, 0.8, (0.6, 0.4), (0.2, 1.2)), Stratum(0.45, 2.2, 1.5, (0.4, 0.6), (1.0, 0.1)))
OPPOSITE = (Stratum(0.5, 0.5, FALLING, (0.6, 0.4), (0.1, 0.8)), Stratum(0.5, 2.0, RISING, (0.35, 0.65), (0.8, 0.1)))
DESIGNS = {
    "3, confounded": Design(CONFOUNDED),
    "5, three of them sparse": Design(SPARSE),
    "2, 5 and 7 % in one group": Design(FIVE_PERCENT),
    "2, falling and rising hazards": Design(OPPOSITE),
    "2, 20 steps of the time": Design(STEPS, steps=20),
    "2, 7 % events": Design(even(2, hazard=0.07, shares=(0.4, 0.6), censored=(0.1, 0.6))),
    "16 even": Design(even(16)),
    "3, confounded, ratio 1.5": Design(CONFOUNDED, (1.0, 1.5)),
    "5, three of them sparse, ratio 0.6": Design(SPARSE, (1.0, 0.6)),
    "2, falling and rising hazards, ratio 1.5": Design(OPPOSITE, (1.0, 1.5)),
    "16 even, ratio 1.5": Design(even(16), (1.0, 1.5)),
}


def plain(table):
    """Whether the stratified log-rank test without privacy rejects; table (S, K, BINS + 1, 2)."""
    leaves = jnp.sum(table, axis=3)
    at_risk = (jnp.cumsum(leaves[..., ::-1], axis=2)[..., ::-1] - 0.5 * table[..., 0])[..., :BINS]
    both, events = jnp.sum(at_risk, axis=1), jnp.sum(table[..., :BINS, 1], axis=1)
    share = at_risk[:, 1:] / jnp.maximum(both, 0.5)[:, None]
    ties = events * jnp.maximum(jnp.where(both > 1.0, (both - events) / jnp.maximum(both - 1.0, 1e-9), 0.0), 0.0)
    off = jnp.sum(table[:, 1:, :BINS, 1] - share * events[:, None], axis=(0, 2))
    own = jnp.einsum("skb,sb->k", share, ties)
    variance = jnp.diag(own) - jnp.einsum("skb,slb,sb->kl", share, share, ties)
    size = len(off)
    return off @ jnp.linalg.solve(variance + 1e-9 * jnp.eye(size), off) > stats.chi2.isf(0.05, size)


@jax.jit
def _runs(test, keys, tables, records):
    def one(both):
        second, last = released(test, *both, records)
        found = second.interpret(None, last)
        without = plain(jnp.sum(both[1], axis=0, keepdims=True))
        return found.p_value, found.effect, *found.interval, plain(both[1]), without

    return jax.lax.map(one, (keys, tables), batch_size=100)


def prepared(design: Design, name: str, records: int, epsilon: float, replicates: int, seed: int):
    """(test, keys, tables) of a line of a record; None where so few records of a stratum are refused."""
    seed += zlib.crc32(f"{name} {records} {epsilon}".encode())
    shapes = [jax.ShapeDtypeStruct(shape, jnp.float64) for shape in ((records,), (records, 2), (records, 1))]
    try:
        data = Data(*shapes[:2], shapes[2] if len(design.strata) > 1 else None, design.domain)
        test = jaxdp.LogRank(epsilon=epsilon).specialize(data)
    except ValueError:
        return None
    cells = design.cells()
    drawn = np.random.default_rng(seed).multinomial(records, cells.ravel(), size=replicates)
    tables = jnp.asarray(drawn.reshape(-1, *cells.shape), float)
    return test, jax.random.split(jax.random.key(seed), replicates), tables


def measure(name: str, records: int, epsilon: float, replicates: int) -> dict:
    """One line of the record; `refused` where so few records of a stratum are."""
    design, started = DESIGNS[name], time.perf_counter()
    row = {"design": name, "records": records, "epsilon": epsilon}
    made = prepared(design, *row.values(), replicates, SEED)
    if made is None:
        return {**row, "refused": True}
    test, *drawn = made
    p, _, low, high, rejected, without = map(np.asarray, _runs(test, *drawn, float(records)))
    truth, known = np.log(design.ratios[1]), ~np.isnan(low)
    return row | {
        "blocks": test.second.blocks,
        "replicates": replicates,
        "rejected": float(np.mean(p < 0.05)),
        "plain": float(np.mean(rejected)),
        "unstratified": float(np.mean(without)),
        "answered": float(np.mean(known)),
        "covered": float(np.mean((low <= truth) & (truth <= high), where=known)) if known.any() else None,
        "width": float(np.median((high - low)[known])) if known.any() else None,
        "contradicting": int((known & (((low > 0) | (high < 0)) != (p < 0.05))).sum()),
        "seconds": round(time.perf_counter() - started, 1),
    }


def _table(null: bool) -> str:
    """Rows of designs, columns of n and epsilon."""
    names = [name for name, design in DESIGNS.items() if design.null == null]
    return by_design(RECORD, names, CELLS, lambda row: _cell(row, null))


def _cell(row, null: bool) -> str:
    """As without strata; of nulls with the test that leaves the strata out besides."""
    if row is not None and "refused" in row:
        return "refused"
    found = told(row, null)
    return found.replace(")", f"; {row['unstratified']:.3f})".replace("; 0.", "; .")) if null and found else found


def main() -> None:
    """Measures, or writes the tables."""
    parser = command_line(__doc__, 2000)
    parser.add_argument("--only", nargs="*", default=list(DESIGNS), choices=list(DESIGNS))
    asked = parser.parse_args()
    if asked.table:
        for null, place in ((True, "strata level"), (False, "strata ratios")):
            fill(PAGE, place, _table(null))
        return
    jax.config.update("jax_enable_x64", True)
    cells = [(name, n, e) for n, e in CELLS for name in asked.only]
    cells.sort(key=lambda cell: len(DESIGNS[cell[0]].strata))  # programs are compiled by strata and blocks
    append(RECORD, (measure(*cell, asked.replicates) for cell in cells))


if __name__ == "__main__":
    main()
