"""The stress suite: every test that a person could ask for, on every null, through the command line's builder.

    python -m experiments.evidence.level suite [--small] [--minutes 10] [--tests NAME ...] [--out FILE]

One JSON line per cell (null, d, n, epsilon, test); a run goes on where the file ends. Verdicts: `refused` (before
anything is spent), `inside` (its window), `flagged` (above it, and the answer carries a flag of the public rule), and
`OUTSIDE` (above it without a word). The window: a rate of at most 0.06, what a bias of 0.3 sd makes of a level of 0.05;
a cell is above it where so many rejections have a probability below 1e-4 at that rate. A flag is also that the owner
of the file is warned of ties in Z before the charge (the command line without --strict).
"""

import argparse
import dataclasses
import functools
import itertools
import json
import time
import zlib
from pathlib import Path

import jax
import numpy as np
from scipy.stats import beta, binom

from experiments.evidence.level import nulls
from experiments.record import provenance
from jaxdp import catalogue, core
from jaxdp.data import Data
from jaxdp.data.coding import ColumnRule
from jaxdp.data.dataset import CONTINUOUS
from jaxdp.data.tally import Tally
from jaxdp.spec import DECISION, P_VALUE, Options

LEVEL, WINDOW, SURPRISE = 0.05, 0.06, 1e-4
REPLICATES = {200: 300, 1000: 300, 10_000: 100, 100_000: 50, 1_000_000: 20}
INSIDE, FLAGGED, REFUSED, OUTSIDE = "inside", "flagged", "refused", "OUTSIDE"
RECORD = Path(__file__).parent / "suite.jsonl"
MAX_BYTES = 10_000_000  # of a replicate's working set: tests that need more (n x n systems) are left to small n


@dataclasses.dataclass(frozen=True)
class Cell:
    """One query: this test on this null."""

    null: str
    depth: int
    n: int
    epsilon: float
    test: str

    @property
    def seed(self) -> int:
        """Of the data: the same for every test and epsilon."""
        return zlib.crc32(f"{self.null}/{self.depth}/{self.n}".encode())


def tests(null: str, depth: int, n: int) -> list[str]:
    """Names of the private tests that publish an answer about such columns; the default first."""
    domain = nulls.domain_of(nulls.NULLS[null], depth)
    default = catalogue.default(domain).name
    fitting = [
        entry.name
        for entry in catalogue.offered().values()
        if entry.spec.private
        and entry.spec.publishes in (P_VALUE, DECISION)
        and entry.spec.fits(domain)
        and (
            not depth or entry.spec.assumption or entry.spec.rank(domain) or entry.spec.serves(domain)
        )  # it looks at Z
        and entry.memory(n) <= MAX_BYTES
    ]
    return sorted(fitting, key=lambda name: (name != default, name))


def grid(depths, sizes, epsilons, names=tuple(nulls.NULLS)) -> list[Cell]:
    """All cells, the defaults and the smallest first."""
    cells = [
        (Cell(null, depth, n, epsilon, test), place)
        for n, depth, null, epsilon in itertools.product(sizes, depths, names, epsilons)
        for place, test in enumerate(tests(null, depth, n))
    ]
    return [cell for cell, place in sorted(cells, key=lambda pair: (pair[1] > 0, pair[0].n))]


def measure(cell: Cell, replicates: int) -> dict:
    """One row. A refusal is what the command line would answer with exit 2."""
    null, entry = nulls.NULLS[cell.null], catalogue.find(cell.test)
    domain = nulls.domain_of(null, cell.depth)
    draw = functools.partial(nulls.samples, null, cell.n, cell.depth, seed=cell.seed, codes=entry.spec.columns.coded)
    x, y, z = draw(replicates=1)
    first = Data(x[0], y[0], None if z is None else z[0], domain)
    row = {**dataclasses.asdict(cell), "of": null.of, "default": catalogue.default(domain).name == cell.test}
    try:
        test = entry.build(cell.epsilon, domain, Options(level=LEVEL, num_records=cell.n))
        core.cost_of(test, first)
    except (ValueError, TypeError) as error:
        return {**row, "verdict": REFUSED, "because": str(error)}
    found = np.asarray(p_values(test, jax.random.key(cell.seed), *draw(replicates=replicates), domain))
    count = int(np.sum(found <= LEVEL))
    flags = list(test.level_rule(core.public_shapes(first)).flags) if hasattr(test, "level_rule") else []
    flags += ["owner is warned of ties"] * owner_is_warned(first.z, null)
    low, high = exact_interval(count, replicates)
    return {
        **row,
        "verdict": verdict(count, replicates, flags),
        "flags": flags,
        "rejections": count,
        "replicates": replicates,
        "interval": [round(low, 4), round(high, 4)],
    }


def owner_is_warned(z, null: nulls.Null) -> bool:
    """Whether the command line, without --strict, tells the owner of the file that a column of Z looks like codes."""
    if z is None:
        return False
    lower, upper = null.bounds
    step = (upper - lower) / (null.values - 1) if null.values else 0.0
    tally, names = Tally(), [f"z{j}" for j in range(z.shape[1])]
    for name, column in zip(names, np.asarray(z).T, strict=True):
        values = np.round(lower + 0.5 * (upper - lower) * (column + 1.0), 9)  # as in the file
        tally.add(ColumnRule(name, CONTINUOUS, lower, upper, step=step), values)
    return bool(tally.tied(names))


@functools.partial(jax.jit, static_argnums=5)
def p_values(test, key, x, y, z, domain):
    """One p-value for each sample, (replicates,)."""

    def one(sample):
        r, x, y, z = sample
        return core.run(test, jax.random.fold_in(key, r), Data(x, y, z, domain)).p_value

    size = max(1, min(64, 60_000 // x.shape[1]))
    return jax.lax.map(one, (np.arange(x.shape[0]), x, y, z), batch_size=size)


def verdict(count: int, replicates: int, flags: list[str]) -> str:
    """Whether that many rejections fit the window, and if not, whether the answer warned."""
    if binom.sf(count - 1, replicates, WINDOW) >= SURPRISE:
        return INSIDE
    return FLAGGED if flags else OUTSIDE


def exact_interval(count: int, replicates: int) -> tuple[float, float]:
    """Clopper and Pearson's 95 % interval."""
    low = beta.ppf(0.025, count, replicates - count + 1) if count else 0.0
    high = beta.ppf(0.975, count + 1, replicates - count) if count < replicates else 1.0
    return float(low), float(high)


def read(path: Path) -> list[dict]:
    """Rows of a record; none where there is no file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def run(cells: list[Cell], path: Path, minutes: float, replicates: dict[int, int] = REPLICATES) -> list[dict]:
    """Measures the cells that the record lacks until the time is over; returns all rows of the record."""
    done = {tuple(row[field.name] for field in dataclasses.fields(Cell)) for row in read(path)}
    path.parent.mkdir(parents=True, exist_ok=True)
    ends, facts = time.monotonic() + 60 * minutes, provenance()
    with path.open("a") as file, jax.enable_x64(True):
        for cell in cells:
            if dataclasses.astuple(cell) in done:
                continue
            if time.monotonic() > ends:
                break
            row = {**measure(cell, replicates[cell.n]), "commit": facts["commit"]}
            file.write(json.dumps(row) + "\n")
            file.flush()
    return read(path)


def summary(rows: list[dict], asked: list[Cell]) -> str:
    """Counts of verdicts, and every cell that is outside its window without a word."""
    counts = {word: sum(row["verdict"] == word for row in rows) for word in (INSIDE, FLAGGED, REFUSED, OUTSIDE)}
    lines = [f"{len(rows)} of {len(asked)} cells: " + ", ".join(f"{number} {word}" for word, number in counts.items())]
    for row in rows:
        if row["verdict"] == OUTSIDE:
            place = f"{row['test']}, {row['null']}, d = {row['depth']}, n = {row['n']}, epsilon {row['epsilon']:g}"
            lines.append(f"OUTSIDE: {place}: {row['rejections']} of {row['replicates']} {row['interval']}")
    return "\n".join(lines)


SMALL = {"depths": (1, 2), "sizes": (200,), "epsilons": (1.0,), "names": ("sine 3", "X, Y exact")}


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="two nulls at n = 200 with 40 replicates")
    parser.add_argument("--minutes", type=float, default=10.0, help="stop after these")
    parser.add_argument("--n", type=int, nargs="+", default=[200, 1000])
    parser.add_argument("--depths", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 8.0])
    parser.add_argument("--tests", nargs="+", help="these tests alone")
    parser.add_argument("--out", type=Path, default=RECORD)
    parser.add_argument("--picture", type=Path, help="draw the record there")
    args = parser.parse_args(arguments)
    cells = grid(**SMALL) if args.small else grid(args.depths, args.n, args.epsilons)
    cells = [cell for cell in cells if args.tests is None or cell.test in args.tests]
    rows = run(cells, args.out, args.minutes, {200: 40} if args.small else REPLICATES)
    print(summary(rows, cells))
    if args.picture:
        from experiments.evidence.level.picture import draw

        draw(rows, args.picture)
