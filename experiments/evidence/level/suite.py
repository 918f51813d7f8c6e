"""The stress suite: every test that a person could ask for, on every null, through the command line's builder.

    python -m experiments.evidence.level suite [--small] [--claim] [--minutes 10] [--tests NAME ...] [--out FILE]

One JSON line per cell (null, d, n, epsilon, test); a run goes on where the file ends, and measures a cell anew that has
fewer replicates than are asked for. Budgets share data sets, statistics and uniform numbers (the noise does not depend
on the data), tests share data sets. Verdicts: `refused` (before anything is spent), `inside` (its window), `flagged`
(above it, and the answer carries a flag of the public rule), and `OUTSIDE` (above it without a word). The window: a
rate of at most 0.06, what a bias of 0.3 sd makes of a level of 0.05;
a cell is above it where so many rejections have a probability below 1e-4 at that rate. A flag is also that the owner
of the file is warned of ties in Z before the charge (the command line without --strict). Flags that releases raise are
counted in releases that reject: without them the rejections must fit the window (`unflagged`).
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
import jax.numpy as jnp
import numpy as np
from scipy.stats import beta, binom

from experiments.evidence.level import nulls
from experiments.record import provenance
from experiments.record import rows as read
from jaxdp import catalogue, core
from jaxdp.data import Data
from jaxdp.data.coding import ColumnRule
from jaxdp.data.dataset import CONTINUOUS
from jaxdp.data.parse_report import ParseReport
from jaxdp.report.sections import DOUBTS
from jaxdp.simulate.engine.replicates import decided_for
from jaxdp.spec import DECISION, P_VALUE, Options

LEVEL, WINDOW, SURPRISE = 0.05, 0.06, 1e-4
REPLICATES = {200: 2000, 1000: 2000, 10_000: 500, 100_000: 100, 1_000_000: 20}
EPSILONS = (0.5, 1.0, 8.0)
SIX = ("sine 3", "lognormal Z", "t2", "X, Y exact", "binary X, Y", "steps")  # where every null is too much
# without Z only the laws of X and Y are left, and most nulls share theirs
WITHOUT_Z = (
    "sine 3",
    "t2",
    "X, Y exact",
    "binary X, Y",
    "skewed noise",
    "whole X, Y",
    "two peaks",
    "outliers",
    "mostly zero",
)
FLAGGED_RELEASES = 40  # of a cell, that are asked for their flags
LOW_POWER = "low power"  # a flag that says nothing about the level
INSIDE, FLAGGED, REFUSED, OUTSIDE = "inside", "flagged", "refused", "OUTSIDE"
RECORD = Path(__file__).parent / "suite.jsonl"
MAX_VALUES = 2_000_000  # of all the data sets that are drawn at a time
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
    domain = nulls.domain_of(nulls.find(null), depth)
    default = catalogue.default(domain).name
    fitting = [
        entry.name
        for entry in catalogue.offered().values()
        if entry.spec.private
        and entry.spec.publishes in (P_VALUE, DECISION)
        and entry.spec.accepts(domain)
        and (
            not depth or entry.spec.assumption or entry.spec.rank(domain) or entry.spec.suitability(domain)
        )  # it looks at Z
        and entry.memory(n) <= MAX_BYTES
    ]
    return sorted(fitting, key=lambda name: (name != default, name))


def grid(depths, sizes, epsilons, names=tuple(nulls.NULLS), only_default=False) -> list[Cell]:
    """All cells, the smallest first, of all tests that could be asked or of the default alone."""
    return [
        Cell(null, depth, n, epsilon, test)
        for n, depth, null in itertools.product(sizes, depths, names)
        for test in tests(null, depth, n)[: 1 if only_default else None]
        for epsilon in epsilons
        if depth or null in WITHOUT_Z
    ]


def claim() -> list[Cell]:
    """The cells that the claim of the suite rests on, in the order of their weight.

    The defaults on every null given one and two columns and on some nulls given any number, then every other test on
    six nulls given any number, small samples first.
    """
    some = tuple(dict.fromkeys(SIX + WITHOUT_Z))
    parts = [
        grid((1, 2), (200, 1000), EPSILONS, only_default=True),
        grid(range(7), (200, 1000), EPSILONS, some, only_default=True),
        grid((1,), (10_000,), EPSILONS, only_default=True),
        grid(range(7), (200, 1000), EPSILONS, SIX),
        grid(range(7), (10_000, 100_000), EPSILONS, SIX, only_default=True),
        grid(range(7), (10_000,), EPSILONS, SIX),
        grid((1,), (1_000_000,), EPSILONS, SIX, only_default=True),
        grid((2,), (10_000,), EPSILONS, only_default=True),
        grid(range(7), (1_000_000,), EPSILONS, SIX, only_default=True),
        grid((1, 2), (100_000, 1_000_000), EPSILONS, only_default=True),
        grid(range(7), (100_000,), EPSILONS, SIX),
    ]
    return list(dict.fromkeys(cell for part in parts for cell in part))


def measure(cell: Cell, replicates: int) -> dict:
    """One row. A refusal is what the command line would answer with exit 2."""
    return measure_together([cell], replicates)[0]


def measure_together(cells: list[Cell], replicates: int) -> list[dict]:
    """One row for each of some cells with the same null, d and n."""
    null, depth, n = nulls.find(cells[0].null), cells[0].depth, cells[0].n
    domain = nulls.domain_of(null, depth)
    asked: dict[str, dict[Cell, object]] = {}  # by the name of the test
    refused, flags, coded = {}, {}, {}
    for cell in cells:
        entry = catalogue.find(cell.test)
        coded[cell.test] = entry.spec.columns.coded
        x, y, z = nulls.samples(null, n, depth, 1, cell.seed, coded[cell.test])
        first = Data(x[0], y[0], None if z is None else z[0], domain)
        try:
            test = entry.build(cell.epsilon, domain, Options(level=LEVEL, num_records=n))
            core.cost_of(test, first)
        except (ValueError, TypeError) as error:
            refused[cell] = str(error)
            continue
        asked.setdefault(cell.test, {})[cell] = test
        rule = test.validity(core.public_shapes(first))
        flags[cell] = [] if rule is None else list(rule.flags)
        flags[cell] += ["owner is warned of ties"] * owner_is_warned(first.z, null)
    counts: dict[Cell, int] = dict.fromkeys(flags, 0)
    raised: dict[Cell, list[frozenset[str]]] = {cell: [] for cell in flags}  # by releases that reject
    size = max(1, min(replicates, MAX_VALUES // (n * (depth + 2))))
    for start in range(0, replicates if asked else 0, size):
        numbers = range(start, start + size)  # beyond the last replicate are drawn, so that one program serves all
        drawn = {
            codes: nulls.samples(null, n, depth, numbers, cells[0].seed, codes)
            for codes in {coded[name] for name in asked}
        }
        used = min(size, replicates - start)
        for name, built in asked.items():
            together = budgets([decided_for(test, core.public_shapes(first)) for test in built.values()])
            for several in together:
                found = p_values(
                    *several, jax.random.key(cells[0].seed), np.asarray(numbers), *drawn[coded[name]], domain
                )
                chosen = built if len(together) == 1 else [list(built)[together.index(several)]]
                found, releases = found
                for place, (cell, p_value) in enumerate(zip(chosen, np.asarray(found).T, strict=True)):
                    rejected = np.flatnonzero(p_value[:used] <= LEVEL)
                    counts[cell] += len(rejected)
                    for one in rejected[: FLAGGED_RELEASES - len(raised[cell])]:
                        release = jax.tree.map(lambda leaf, at=(one, place): leaf[at], releases)
                        raised[cell].append(frozenset(built[cell].released_flags(core.public_shapes(first), release)))
    rows = []
    for cell in cells:
        default = catalogue.default(domain).name == cell.test
        row = {**dataclasses.asdict(cell), "of": null.of, "default": default}
        if cell in refused:
            rows.append({**row, "verdict": REFUSED, "because": refused[cell]})
            continue
        low, high = exact_interval(counts[cell], replicates)
        told = {
            "verdict": verdict(counts[cell], replicates, flags[cell]),
            "flags": flags[cell],
            "rejections": counts[cell],
            "replicates": replicates,
            "interval": [round(low, 4), round(high, 4)],
        }
        released = sorted(frozenset().union(*raised[cell]))
        if released:
            plain = sum(not set(those) & set(DOUBTS) for those in raised[cell]) / len(raised[cell])
            told["flags"] = [*flags[cell], *released]
            told["unflagged"] = round(plain * counts[cell])
            if told["verdict"] == OUTSIDE and verdict(told["unflagged"], replicates, []) == INSIDE:
                told["verdict"] = FLAGGED
        rows.append({**row, **told})
    return rows


def budgets(built: list) -> list[tuple]:
    """(structure, leaves, axes of the leaves) of tests that differ in numbers alone, the differing ones stacked.

    One for each test where their structures differ.
    """
    flat = [jax.tree.flatten(test) for test in built]
    if any(structure != flat[0][1] for _, structure in flat):
        return [one for test in built for one in budgets([test])]
    several = list(zip(*(leaves for leaves, _ in flat), strict=True))
    same = [all(np.array_equal(leaf, each[0], equal_nan=True) for leaf in each) for each in several]
    leaves = [each[0] if shared else np.stack(each) for each, shared in zip(several, same, strict=True)]
    return [(flat[0][1], leaves, tuple(None if shared else 0 for shared in same))]


def owner_is_warned(z, null: nulls.Null) -> bool:
    """Whether the command line, without --strict, tells the owner of the file that a column of Z looks like codes."""
    if z is None:
        return False
    lower, upper = null.bounds
    step = (upper - lower) / (null.values - 1) if null.values else 0.0
    report, names = ParseReport(), [f"z{j}" for j in range(z.shape[1])]
    for name, column in zip(names, np.asarray(z).T, strict=True):
        values = np.round(lower + 0.5 * (upper - lower) * (column + 1.0), 9)  # as in the file
        report.add(ColumnRule(name, CONTINUOUS, lower, upper, step=step), values)
    return bool(report.tied(names))


@functools.partial(jax.jit, static_argnums=(0, 2, 8))
def p_values(structure, leaves, axes, key, numbers, x, y, z, domain):
    """P-values of each sample and budget, (replicates, budgets), and releases; arguments of tests as from `budgets`."""

    def one(sample):
        r, x, y, z = sample

        def of(leaves):
            result = core.run(structure.unflatten(leaves), jax.random.fold_in(key, r), Data(x, y, z, domain))
            return result.p_value, result.release

        stacked = any(axis == 0 for axis in axes)
        if stacked:
            return jax.vmap(of, in_axes=(list(axes),))(leaves)
        return jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], of(leaves))

    size = max(1, min(64, 60_000 // x.shape[1]))
    return jax.lax.map(one, (numbers, x, y, z), batch_size=size)


def verdict(count: int, replicates: int, flags: list[str]) -> str:
    """Whether that many rejections fit the window, and if not, whether the answer warned of its level."""
    if binom.sf(count - 1, replicates, WINDOW) >= SURPRISE:
        return INSIDE
    return FLAGGED if set(flags) - {LOW_POWER} else OUTSIDE


def exact_interval(count: int, replicates: int) -> tuple[float, float]:
    """Clopper and Pearson's 95 % interval."""
    low = beta.ppf(0.025, count, replicates - count + 1) if count else 0.0
    high = beta.ppf(0.975, count + 1, replicates - count) if count < replicates else 1.0
    return float(low), float(high)


def latest(rows: list[dict]) -> list[dict]:
    """The last row of each cell."""
    return list({of_row(row): row for row in rows}.values())


def of_row(row: dict) -> Cell:
    """The cell that a row answers."""
    return Cell(**{field.name: row[field.name] for field in dataclasses.fields(Cell)})


def run(cells: list[Cell], path: Path, minutes: float, replicates: dict[int, int] = REPLICATES) -> list[dict]:
    """Measures the cells that the record lacks until the time is over; returns all rows of the record."""
    done = {of_row(row) for row in read(path) if row.get("replicates", replicates[row["n"]]) >= replicates[row["n"]]}
    path.parent.mkdir(parents=True, exist_ok=True)
    ends, facts = time.monotonic() + 60 * minutes, provenance()
    missing = (cell for cell in cells if cell not in done)
    with path.open("a") as file, jax.enable_x64(True):
        for (_, _, n), group in itertools.groupby(missing, key=lambda cell: (cell.null, cell.depth, cell.n)):
            if time.monotonic() > ends:
                break
            for row in measure_together(list(group), replicates[n]):
                file.write(json.dumps({**row, "commit": facts["commit"]}) + "\n")
            file.flush()
    return latest(read(path))


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
    parser.add_argument("--claim", action="store_true", help="the cells of `claim`, in its order")
    parser.add_argument("--minutes", type=float, default=10.0, help="stop after these")
    parser.add_argument("--n", type=int, nargs="+", default=[200, 1000])
    parser.add_argument("--depths", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--epsilons", type=float, nargs="+", default=EPSILONS)
    parser.add_argument("--tests", nargs="+", help="these tests alone")
    parser.add_argument("--out", type=Path, default=RECORD)
    parser.add_argument("--picture", type=Path, help="draw the record there")
    args = parser.parse_args(arguments)
    cells = claim() if args.claim else grid(args.depths, args.n, args.epsilons)
    cells = grid(**SMALL) if args.small else [cell for cell in cells if args.tests is None or cell.test in args.tests]
    rows = run(cells, args.out, args.minutes, {200: 40} if args.small else REPLICATES)
    args.out.write_text("".join(json.dumps(row) + "\n" for row in rows))  # without rows that later ones replaced
    print(summary(rows, cells))
    if args.picture:
        from experiments.evidence.level.picture import draw

        draw(rows, args.picture)
