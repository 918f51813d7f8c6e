"""Coverage of the Kaplan-Meier bands and of the differences of restricted means of `log-rank`.

    python -m experiments.evidence.survival.curves [--replicates 1000] [--only NAME ...]
    python -m experiments.evidence.survival.curves --table       # the table of docs/theory/log_rank.md, from the record

One JSON line per design, n and epsilon. A data set is its table of group x bin x event; the counts are released by
simulation. `held`: share of bands, by group, that hold the whole true curve, between the ends of blocks too, where the
truth is known at eight points of every bin. `width`: median width at the middle of the grid. `answered`: data sets with
a difference of restricted means; `covered`: of these, intervals that hold the true one up to the same end; `missed`: of
all data sets, those with an interval that does not; `difference_width`: median width of the interval, in lengths of the
grid. Of more than two groups the intervals of a data set are counted together: all hold their differences. Constants
were chosen on other designs: uniform times of rate .8, Weibull times of shapes .5, .7 and 2, a hazard that goes up and
down, with other censoring.
"""

import dataclasses
import functools
import itertools
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import jaxdp
from experiments.evidence.survival.__main__ import DOMAIN, FINE, PAGE, by_design
from experiments.record import append, command_line, fill
from jaxdp.data.dataset import BINARY, CATEGORICAL, Column, Data
from jaxdp.independence.survival import kaplan_meier
from jaxdp.statistics import log_rank
from jaxdp.statistics.log_rank import BINS

RECORD = Path(__file__).parent / "curves.jsonl"
EPSILONS, RECORDS = (0.5, 1.0, 4.0), (500, 2000, 10_000)
SEED = 331
GRID = log_rank.ends(BINS * FINE)


def weibull(shape: float, hazard: float) -> Callable:
    """Survival with this total hazard over the grid."""
    return lambda t: np.exp(-hazard * t**shape)


def uniform(t):
    """Times evenly spread, nine of ten of them within the grid."""
    return 1.0 - 0.9 * t


def late(t):
    """A hazard of .3 up to four tenths of the grid, then 2.2."""
    return np.exp(-0.3 * t - 1.9 * np.maximum(t - 0.4, 0.0))


def entered(t):
    """Not yet censored, where records enter evenly over six tenths of the grid."""
    return np.clip(1.0 - (t - 0.4) / 0.8, 0.0, 1.0)


def lost(rate: float) -> Callable:
    """Not yet censored, at this rate."""
    return lambda t: np.exp(-rate * t)


@dataclasses.dataclass(frozen=True)
class Design:
    """alive, seen: share without the event and not censored, of each group. shares: of the groups after the first."""

    alive: tuple[Callable, ...]
    seen: tuple[Callable, ...]
    shares: tuple[float, ...] = (0.5,)

    def cells(self) -> np.ndarray:
        """Probabilities (groups, BINS + 1, 2)."""
        found = np.zeros((len(self.alive), BINS + 1, 2))
        for group, part in enumerate((1.0 - sum(self.shares), *self.shares)):
            alive, seen = self.alive[group](GRID), self.seen[group](GRID)
            events = (alive[:-1] - alive[1:]) * np.sqrt(seen[:-1] * seen[1:])
            gone = (seen[:-1] - seen[1:]) * np.sqrt(alive[:-1] * alive[1:])
            for event, moved in enumerate((gone, events)):
                found[group, :BINS, event] = part * moved.reshape(BINS, FINE).sum(1)
            found[group, BINS, 0] = part - found[group].sum()
        return found


DESIGNS = {
    "uniform, one law": Design((uniform, uniform), (lost(0.5), lost(0.5))),
    "Weibull 1.5 and .8, crossing, unequal censoring": Design(
        (weibull(1.5, 1.2), weibull(0.8, 0.9)), (lost(0.2), lost(1.0))
    ),
    "late effect, crossing, staggered entry": Design((weibull(1.0, 0.9), late), (entered, entered), (0.4,)),
    "Weibull 1.2 and .9, 10 % in one group": Design(
        (weibull(1.2, 0.8), weibull(0.9, 1.3)), (lost(1.0), lost(0.3)), (0.1,)
    ),
    "uniform and Weibull 1.5, 25 %, unequal censoring": Design(
        (uniform, weibull(1.5, 0.5)), (lost(0.1), lost(1.5)), (0.25,)
    ),
    "6 and 4 % with events": Design((weibull(1.0, 0.06), weibull(1.0, 0.04)), (lost(0.1), lost(0.6))),
    "3 groups, crossing, unequal censoring": Design(
        (weibull(1.5, 1.2), weibull(0.8, 0.9), uniform), (lost(0.2), lost(1.0), lost(0.5)), (0.3, 0.3)
    ),
    "3 groups, one law, 20 % in one": Design((uniform,) * 3, (lost(0.5), lost(0.1), lost(1.0)), (0.4, 0.2)),
    "5 equal groups, late effects": Design(
        (weibull(1.0, 0.9), late, uniform, weibull(1.2, 0.8), late), (entered,) * 5, (0.2,) * 4
    ),
}


@functools.partial(jax.jit, static_argnames="num_records")
def _released(test, keys, tables, num_records: int):
    query = dataclasses.replace(test.first, of=None)
    bound = test.first.sensitivity(num_records)

    def one(both):
        key, table = both
        counts = log_rank.blocked(table[None], test.second.blocks)[0]
        counts = counts + query.mechanism.noise(key, bound, counts.shape)
        return kaplan_meier.estimated(
            query, bound, counts, num_records, log_rank.ends(test.second.blocks), np.zeros(test.second.blocks)
        )

    return jax.lax.map(one, (keys, tables))


def measure(name: str, records: int, epsilon: float, replicates: int) -> dict:
    """One line of the record."""
    design, started = DESIGNS[name], time.perf_counter()
    seed = zlib.crc32(f"{name} {records} {epsilon}".encode()) + SEED
    drawn = np.random.default_rng(seed).multinomial(records, design.cells().ravel(), size=replicates)
    groups = Column(CATEGORICAL if len(design.alive) > 2 else BINARY, len(design.alive))
    domain = dataclasses.replace(DOMAIN, x=(groups,))
    shapes = Data(*(jax.ShapeDtypeStruct(shape, jnp.float64) for shape in ((records,), (records, 2))), None, domain)
    test = jaxdp.LogRank(epsilon=epsilon).specialize(shapes)
    tables = jnp.asarray(drawn.reshape(-1, len(design.alive), BINS + 1, 2), float)
    found = jax.tree.map(
        np.asarray, _released(test, jax.random.split(jax.random.key(seed), replicates), tables, records)
    )
    blocks = test.second.blocks
    step, place = len(GRID) // blocks, np.arange(len(GRID))
    truth = np.stack([alive(GRID) for alive in design.alive])
    low, high = found.low[:, :, -(-place // step)], found.high[:, :, place // step]
    held = np.all((low <= truth + 1e-9) & (truth <= high + 1e-9), axis=2)
    area = np.cumsum(0.5 * (truth[:, 1:] + truth[:, :-1]) * np.diff(GRID), axis=1)
    area = np.concatenate([np.zeros((len(area), 1)), area], axis=1)[:, ::step]
    ends = log_rank.ends(blocks)
    true = (area[1:] - area[0])[:, np.searchsorted(ends, found.until - 1e-9)].T
    known = ~np.isnan(found.difference).any(axis=1)
    covered = np.all((found.low_difference <= true) & (true <= found.high_difference), axis=1)
    middle = np.argmin(np.abs(ends - 0.5))
    return {
        "design": name,
        "records": records,
        "epsilon": epsilon,
        "blocks": blocks,
        "replicates": replicates,
        "held": held.mean(0).tolist(),
        "width": np.median((found.high - found.low)[:, :, middle], axis=0).tolist(),
        "answered": float(known.mean()),
        "covered": float(covered[known].mean()) if known.any() else None,
        "missed": float(np.mean(known & ~covered)),
        "difference_width": float(np.median((found.high_difference - found.low_difference)[known]))
        if known.any()
        else None,
        "seconds": round(time.perf_counter() - started, 1),
    }


def _number(value, digits: int = 3) -> str:
    return "-" if value is None else f"{value:.{digits}f}".removeprefix("0")


def _table(cell: Callable[[dict], str]) -> str:
    """Rows of designs, columns of n and epsilon."""
    return by_design(RECORD, DESIGNS, list(itertools.product(RECORDS, EPSILONS)), cell)


def band(row: dict) -> str:
    """Coverage and width of both bands."""
    return f"{', '.join(map(_number, row['held']))}; {', '.join(_number(one, 2) for one in row['width'])}"


def difference(row: dict) -> str:
    """Share answered; coverage, width."""
    return f"{_number(row['answered'], 2)}; {_number(row['covered'])}, {_number(row['difference_width'])}"


def main() -> None:
    """Measures, or writes the tables."""
    parser = command_line(__doc__, 1000)
    parser.add_argument("--only", nargs="*", default=list(DESIGNS), choices=list(DESIGNS))
    asked = parser.parse_args()
    if asked.table:
        fill(PAGE, "bands", _table(band))
        fill(PAGE, "restricted means", _table(difference))
        return
    jax.config.update("jax_enable_x64", True)
    cells = itertools.product(RECORDS, EPSILONS, asked.only)
    append(RECORD, (measure(name, n, epsilon, asked.replicates) for n, epsilon, name in cells))


if __name__ == "__main__":
    main()
