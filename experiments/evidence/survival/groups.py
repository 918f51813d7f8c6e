"""`log-rank` of more than two groups (docs/theory/log_rank.md#groups).

    python -m experiments.evidence.survival.groups [--replicates 4000] [--only NAME ...] [--cells PLACE ...]
    python -m experiments.evidence.survival.groups --table       # the tables of the page, from the record

One JSON line per design, n and epsilon, as in `experiments.evidence.survival.strata`. `plain` is the (stratified)
log-rank test of all groups without privacy on the same tables. Of designs with ratios also, for each group after the
first, `answered`: data sets with an interval; `covered`: of these, intervals that hold the true log ratio; `width`.
No constant was chosen on these designs.
"""

import functools
import time
from pathlib import Path

import jax
import numpy as np

from experiments.evidence.survival.__main__ import FALLING, PAGE, RISING, by_design
from experiments.evidence.survival.strata import Design, Stratum, plain, prepared
from experiments.record import append, command_line, fill
from jaxdp.plan.survival import released

RECORD = Path(__file__).parent / "groups.jsonl"
CELLS = tuple((n, e) for n in (500, 1000, 10_000) for e in (0.5, 1.0, 4.0))
SEED, LEVEL = 4107, 0.05


def one(shares, censored, **fields) -> tuple[Stratum, ...]:
    """A single stratum."""
    return (Stratum(1.0, shares=shares, censored=censored, **fields),)


STRATA = (
    Stratum(0.5, 0.5, 1.0, (0.5, 0.3, 0.2), (0.2, 1.0, 0.4)),
    Stratum(0.5, 2.0, 0.8, (0.2, 0.3, 0.5), (0.8, 0.1, 0.5)),
)
DESIGNS = {
    "3 equal groups, equal censoring": Design(one((1 / 3,) * 3, (0.3,) * 3, hazard=1.2), (1.0,) * 3),
    "3, unequal censoring": Design(one((0.4, 0.3, 0.3), (0.1, 0.8, 1.5), hazard=1.2), (1.0,) * 3),
    "3, rising hazard": Design(one((0.3, 0.3, 0.4), (0.05, 1.0, 2.5), hazard=2.0, power=RISING), (1.0,) * 3),
    "4, 10 % in one, unequal censoring": Design(
        one((0.1, 0.2, 0.3, 0.4), (0.1, 1.5, 0.5, 0.2), hazard=1.2), (1.0,) * 4
    ),
    "4, falling hazard": Design(one((0.25,) * 4, (1.5, 0.1, 0.8, 0.4), hazard=1.5, power=FALLING), (1.0,) * 4),
    "6, two of 10 %": Design(one((0.1, 0.1, 0.2, 0.2, 0.2, 0.2), (0.1, 0.3, 0.5, 0.7, 0.9, 1.2)), (1.0,) * 6),
    "8 equal groups": Design(one((0.125,) * 8, (0.1, 0.3, 0.5, 0.7, 0.9, 1.1, 1.3, 1.5)), (1.0,) * 8),
    "3 groups in 2 strata, confounded": Design(STRATA, (1.0,) * 3),
    "3, ratios 1.25 and 1.5": Design(one((0.4, 0.3, 0.3), (0.2, 0.5, 0.3)), (1.0, 1.25, 1.5)),
    "3, ratios 0.5 and 2, 20 % in one": Design(one((0.5, 0.3, 0.2), (0.2, 0.5, 0.3)), (1.0, 0.5, 2.0)),
    "4, ratios 1.2, 1.44 and 1.73": Design(one((0.25,) * 4, (0.2, 0.5, 0.2, 0.5), hazard=0.8), (1.0, 1.2, 1.44, 1.73)),
    "3 groups in 2 strata, ratios 1.25 and 1.5": Design(STRATA, (1.0, 1.25, 1.5)),
}


@functools.partial(jax.jit, static_argnames="effects")
def _runs(test, keys, tables, records, effects: bool):
    def of(both):
        second, last = released(test, *both, records)
        found = second.interpret(None, last)
        told = (found.effect, *found.interval) if effects else ()
        return found.p_value, plain(both[1]), *told

    return jax.lax.map(of, (keys, tables), batch_size=20)


def measure(name: str, records: int, epsilon: float, replicates: int) -> dict:
    """One line of the record; `refused` where so few records of so many groups are."""
    design, started = DESIGNS[name], time.process_time()
    row = {"design": name, "records": records, "epsilon": epsilon}
    made = prepared(design, *row.values(), replicates, SEED)
    if made is None:
        return {**row, "refused": True}
    test, *drawn = made
    p, rejected, *told = map(np.asarray, _runs(test, *drawn, float(records), not design.null))
    row |= {
        "blocks": test.second.blocks,
        "replicates": replicates,
        "rejected": float(np.mean(p < LEVEL)),
        "plain": float(np.mean(rejected)),
    }
    if told:
        _, low, high = (part[..., 0] for part in told)
        truth, known = np.log(design.ratios[1:]), ~np.isnan(low)
        held = (low <= truth) & (truth <= high)
        row |= {
            "answered": known.mean(0).tolist(),
            "covered": [_of(np.mean, held[:, k][known[:, k]]) for k in range(len(truth))],
            "width": [_of(np.median, (high - low)[:, k][known[:, k]]) for k in range(len(truth))],
        }
    return row | {"seconds": round(time.process_time() - started, 1)}


def _of(summary, values) -> float | None:
    return float(summary(values)) if len(values) else None


def _table(null: bool) -> str:
    """Rows of designs, columns of n and epsilon."""
    return by_design(RECORD, [name for name, design in DESIGNS.items() if design.null == null], CELLS, _cell)


def _cell(row) -> str:
    """Rejected (not private); of ratios also coverage and median width of each group, with the share answered."""
    if row is None or "refused" in row:
        return "" if row is None else "refused"
    share = lambda value: "-" if value is None else f"{value:.3f}".removeprefix("0")  # noqa: E731
    told = f"{share(row['rejected'])} ({share(row['plain'])})"
    for answered, covered, width in zip(*(row.get(part, ()) for part in ("answered", "covered", "width")), strict=True):
        of = "" if answered > 0.995 else f" of {answered:.2f}"
        told += "; -" if covered is None else f"; {share(covered)}{of}, {width:.2f}"
    return told


def main() -> None:
    """Measures, or writes the tables."""
    parser = command_line(__doc__, 4000)
    parser.add_argument("--only", nargs="*", default=list(DESIGNS), choices=list(DESIGNS))
    parser.add_argument("--cells", nargs="*", type=int, default=range(len(CELLS)), help="places in CELLS")
    asked = parser.parse_args()
    if asked.table:
        for null, place in ((True, "groups level"), (False, "groups ratios")):
            fill(PAGE, place, _table(null))
        return
    jax.config.update("jax_enable_x64", True)
    cells = ((name, *CELLS[place]) for name in asked.only for place in asked.cells)
    append(RECORD, (measure(*cell, asked.replicates) for cell in cells))


if __name__ == "__main__":
    main()
