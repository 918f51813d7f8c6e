"""Coverage and width of Cramer's V of two columns of levels (docs/evidence/coverage.md).

    python -m experiments.evidence.coverage.levels [--replicates 200]
    python -m experiments.evidence.coverage.levels --table      # the table of the page, from the record

One JSON line per shape, margins, law, V, n and epsilon. 2 x 2 tables by `noisy-table` (phi), larger ones by
`quantile-table`, the default, both with 199 null tables; a table is drawn and released as the test does it.
`answered`: share of data sets with an interval; `covered`: of these, those whose interval holds V; `agree`: where it
leaves out 0 exactly if p <= 0.05. `plain_*`: the interval of the noncentral chi-squared law without privacy, on the
same tables.
"""

import functools
import itertools
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from experiments.evidence.coverage.mann_whitney import shared
from experiments.record import append, command_line, fill, keys_of, markdown, rows, settings
from jaxdp import NoisyTableChi2, QuantileTable, core
from jaxdp.independence.tables.noisy_table import multinomial_by_binomials

RECORD = Path(__file__).parent / "levels.jsonl"
PAGE = Path(__file__).parents[3] / "docs" / "evidence" / "coverage.md"
RECORDS, EPSILONS = (300, 1000, 10_000), (0.5, 1.0, 4.0)
SHAPES = ((2, 2), (3, 4), (5, 4))
EVEN, TENTH = "even", "10/90"
LAWS = {  # margins: (law, V)
    EVEN: (("none", 0.0), ("signs", 0.1), ("coupled", 0.3), ("coupled", 0.6)),
    TENTH: (("none", 0.0), ("signs", 0.05), ("rare", 0.1), ("rare", 0.3), ("rare", 0.5)),
}
APART = ((4, 4), EVEN, "apart", 3.0**-0.5)  # levels that never meet, at a V below 1
SEED = 41


def margin(levels: int, margins: str):
    """Even shares, or the last level with a tenth of the records."""
    return np.full(levels, 1.0 / levels) if margins == EVEN else np.r_[np.full(levels - 1, 0.9 / (levels - 1)), 0.1]


def chances(shape, margins: str, law: str, size: float):
    """A table with these margins and this V.

    signs: departures in all cells, of signs without a pattern. coupled: a part of the records has levels of the same
    rank. rare: the last levels go together. apart: the first half of the levels of one column never meets the second
    half of the other's.
    """
    p, q = (margin(levels, margins) for levels in shape)
    product = p[:, None] * q[None, :]
    if law == "coupled":
        (first, second) = (np.r_[0.0, np.cumsum(part)] for part in (p, q))
        upper = np.minimum(first[1:, None], second[None, 1:])
        lower = np.maximum(first[:-1, None], second[None, :-1])
        away = np.maximum(upper - lower, 0.0) - product
    elif law == "apart":
        halves = [np.arange(levels) < levels // 2 for levels in shape]
        away = product * np.where(halves[0][:, None] == halves[1], 1.0, -1.0)
    else:
        signs = np.random.default_rng(0).choice([-1.0, 1.0], shape)
        last = [np.r_[np.zeros(levels - 1), 1.0] for levels in shape]
        away = product * (signs if law == "signs" else np.outer(*last))
        away -= away.sum(1, keepdims=True) * q
        away -= p[:, None] * away.sum(0, keepdims=True)
    whole = np.sqrt((away**2 / product).sum() / (min(shape) - 1.0))
    found = product + (size / max(whole, 1e-12) if size else 0.0) * away
    assert found.min() >= -1e-12
    return found


@functools.cache
def program(shape, n: int):
    """(keys, epsilon, chances) -> p-value, low, high, and the table without noise."""
    form = NoisyTableChi2 if shape == (2, 2) else functools.partial(QuantileTable, ordered=False, cuts=(None, None))

    @jax.jit
    def found(keys, epsilon, chances):
        def one(key):
            keys = jax.random.split(key, 3)
            test = form(epsilon=epsilon, levels=shape, num_null=199)
            counts = multinomial_by_binomials(keys[0], 1.0 * n, jnp.ravel(chances), 1).reshape(shape)
            sensitivity = test.sensitivity(n)
            noise = test.mechanism_in_force().noise(keys[1], sensitivity, shape)
            cost = core.Cost.none(core.Relation.REPLACE_ONE)
            told = test.interpret(keys[2], core.Release(counts + noise, sensitivity, cost, num_records=n))
            return told.p_value, *told.interval, counts

        return jax.lax.map(one, keys, batch_size=20)

    return found


def plain(tables):
    """Ends of V by the noncentral chi-squared law of each table (m, r, c), without privacy."""
    n = tables.sum((1, 2), keepdims=True)
    expected = tables.sum(2, keepdims=True) * tables.sum(1, keepdims=True) / n
    squared = np.where(expected > 0, (tables - expected) ** 2 / np.maximum(expected, 1e-12), 0.0).sum((1, 2))
    r, c = tables.shape[1:]
    degrees = (r - 1) * (c - 1)
    ends = []
    for share in (0.975, 0.025):
        inside = special.chdtr(degrees, squared) > share
        away = np.where(inside, special.chndtrinc(squared, degrees, share), 0.0)
        ends.append(np.sqrt(away / n[:, 0, 0] / (min(r, c) - 1.0)))
    return ends


def verdicts(p, low, high, true) -> dict:
    """Shares of data sets with an interval and with a small p-value; of the intervals, those that hold the truth."""
    answered = np.isfinite(low)
    inside = (low <= true + 1e-6) & (true <= high + 1e-6)
    agree = (p <= 0.05 + 1e-6) == ((low > 0.0) | (high < 0.0))
    some = bool(answered.any())
    return {
        "answered": round(float(answered.mean()), 4),
        "covered": round(float(inside[answered].mean()), 4) if some else None,
        "agree": round(float(agree[answered].mean()), 4) if some else None,
        "rejected": round(float((p <= 0.05 + 1e-6).mean()), 4),
        "width": round(float(np.median((high - low)[answered])), 4) if some else None,
    }


def measure(n: int, epsilon: float, replicates: int, shape, margins: str, law: str, size: float) -> dict:
    """One row."""
    start = time.process_time()
    table = chances(shape, margins, law, size)
    keys = keys_of(SEED, f"{shape} {margins} {law} {size:g} {n} {epsilon:g}", replicates)
    found = program(shape, n)(keys, epsilon, jnp.asarray(table, float))
    p, low, high, tables = (np.asarray(part, float) for part in found)
    true = size * np.sign(table[0, 0] - table[0].sum() * table[:, 0].sum()) if shape == (2, 2) else size
    ends = plain(tables)
    return {
        "shape": "x".join(map(str, shape)),
        "margins": margins,
        "law": law,
        "v": size,
        "n": n,
        "epsilon": epsilon,
        **verdicts(p, low, high, true),
        "plain_covered": round(float(((ends[0] <= size + 1e-9) & (size <= ends[1])).mean()), 4),
        "plain_width": round(float(np.median(ends[1] - ends[0])), 4),
        "replicates": replicates,
        "seconds": round(time.process_time() - start, 1),
    }


def designs():
    """(shape, margins, law, V) of the table."""
    along = [(shape, margins, *kind) for shape in SHAPES for margins, kinds in LAWS.items() for kind in kinds]
    return [*along, APART]


def told(row: dict) -> str:
    """Coverage and width, with the width without privacy."""
    return "none" if row["answered"] < 0.1 else f"{shared(row)}, {row['width']:.2f} ({row['plain_width']:.2f})"


def run(doc: str, record: Path, facts: tuple[str, str], records, designs: list, measure, told) -> None:
    """The command of a record of tables. designs: (shape, fact, law, V). facts: name of the fact, format of V."""
    parser = command_line(doc, 200)
    parser.add_argument("--records", nargs="*", type=int, default=records)
    args = parser.parse_args()
    if args.table:
        fact, form = facts
        found = {(*(row[name] for name in ("shape", fact, "law", "v", "n", "epsilon")),): row for row in rows(record)}
        columns, lines = list(itertools.product(records, EPSILONS)), []
        for shape, *key, size in designs:
            cells = [found.get(("x".join(map(str, shape)), *key, size, *column)) for column in columns]
            shown = ("" if row is None else told(row) for row in cells)
            lines.append(["x".join(map(str, shape)), *key, format(size, form), *shown])
        return fill(PAGE, record.stem, markdown(["table", fact, "law", "V", *settings(columns)], lines) + "\n")
    cells = itertools.product(args.records, designs, EPSILONS)
    append(record, (measure(n, epsilon, args.replicates, *design) for n, design, epsilon in cells))


if __name__ == "__main__":
    run(__doc__, RECORD, ("margins", ".3g"), RECORDS, designs(), measure, told)
