"""Coverage of Cramer's V of two columns of levels where some level holds nobody, or a hundredth of the records.

    python -m experiments.evidence.coverage.merged_levels [--replicates 200]
    python -m experiments.evidence.coverage.merged_levels --table      # the table of the page, from the record

One JSON line per shape, rare levels, law, n and epsilon: `quantile-table`, 199 null tables. The V that the interval is
of is that of the true law with the levels merged as the release merges them. `unmerged`: share of data sets in which
no level is merged. The rest as in `levels`.
"""

import functools
import itertools
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from experiments.evidence.coverage.levels import PAGE, verdicts
from experiments.record import append, command_line, fill, keys_of, markdown, rows, settings
from jaxdp import QuantileTable, core
from jaxdp.independence.tables import cramers_v
from jaxdp.independence.tables.noisy_table import multinomial_by_binomials

RECORD = Path(__file__).parent / "merged_levels.jsonl"
RECORDS, EPSILONS = (500, 2000, 20_000), (0.5, 1.0, 4.0)
SEED, RARE = 43, 0.01
DESIGNS = (  # shape, share of the last level of X and of Y (None: even), law
    *itertools.product(((2, 3),), ((None, 0.0), (None, RARE)), ("none", "signs")),
    *itertools.product(((3, 4),), ((0.0, None), (None, 0.0), (0.0, 0.0), (None, RARE)), ("none", "signs")),
    ((2, 3), (None, RARE), "rare"),
    ((3, 4), (None, RARE), "rare"),
)
SIZE = 0.2  # V of `signs`; of `rare` the rare level is with the first level of X twice as often as it would be


def chances(shape, shares, law: str):
    """A table whose last levels have these shares; departures in all cells, or in the rare level alone."""
    p, q = (
        np.full(count, 1.0 / count) if share is None else np.r_[np.full(count - 1, (1.0 - share) / (count - 1)), share]
        for count, share in zip(shape, shares, strict=True)
    )
    product = p[:, None] * q[None, :]
    if law == "rare":
        away = product * np.where(np.arange(shape[1]) == shape[1] - 1, 1.0, 0.0) * np.eye(shape[0])[0][:, None]
    else:
        away = product * (-1.0) ** np.add.outer(*map(np.arange, shape))
    away -= away.sum(1, keepdims=True) * q
    away -= p[:, None] * away.sum(0, keepdims=True)
    if law == "none":
        return product
    return (
        product + away / away[0, -1] * product[0, -1]
        if law == "rare"
        else product + SIZE / sized(product + away) * away
    )


def sized(law):
    """V of a law (r, c), of the levels that occur."""
    rows, columns = law.sum(1), law.sum(0)
    product = rows[:, None] * columns[None, :]
    squared = np.where(product > 0.0, (law - product) ** 2 / np.maximum(product, 1e-300), 0.0).sum()
    return np.sqrt(squared / (min((rows > 0.0).sum(), (columns > 0.0).sum()) - 1.0))


@functools.cache
def program(shape):
    """(keys, n, epsilon, chances) -> p-value, low, high, and the merged rows and columns."""

    @jax.jit
    def found(keys, n, epsilon, chances):
        def one(key):
            keys = jax.random.split(key, 3)
            test = QuantileTable(epsilon=epsilon, levels=shape, num_null=199, ordered=False, cuts=(None, None))
            counts = multinomial_by_binomials(keys[0], n, jnp.ravel(chances), 1).reshape(shape)
            sensitivity = test.sensitivity(n)
            mechanism = test.mechanism_in_force()
            table = counts + mechanism.noise(keys[1], sensitivity, shape)
            cost = core.Cost.none(core.Relation.REPLACE_ONE)
            told = test.interpret(keys[2], core.Release(table, sensitivity, cost, num_records=n))
            merged = cramers_v.merged_classes(table, n, mechanism.variance(sensitivity))
            return told.p_value, *told.interval, *merged

        return jax.lax.map(one, keys, batch_size=20)

    return found


def measure(n: int, epsilon: float, replicates: int, shape, shares, law: str) -> dict:
    """One row."""
    start = time.process_time()
    table = chances(shape, shares, law)
    keys = keys_of(SEED, f"{shape} {shares} {law} {n} {epsilon:g}", replicates)
    found = program(shape)(keys, jnp.asarray(1.0 * n), epsilon, jnp.asarray(table, float))
    p, low, high, first, second = (np.asarray(part, float) for part in found)
    true = np.array([sized(a @ table @ b.T) for a, b in zip(first, second, strict=True)])
    kept = (first.sum(2) > 0).all(1) & (second.sum(2) > 0).all(1)
    return {
        "shape": "x".join(map(str, shape)),
        "last": [share if share is None else float(share) for share in shares],
        "law": law,
        "v": round(float(sized(table)), 4),
        "v_merged": round(float(np.median(true)), 4),
        "n": n,
        "epsilon": epsilon,
        **verdicts(p, low, high, np.where(true < 1e-9, 0.0, true)),
        "unmerged": round(float((kept & np.isfinite(low)).mean()), 4),
        "replicates": replicates,
        "seconds": round(time.process_time() - start, 1),
    }


def told(row: dict) -> str:
    """Of all, how many have an interval, and without merging; how many of these hold V."""
    return (
        f"{row['covered']:.2f} of {row['answered']:.2f} ({row['unmerged']:.2f})"
        if row["covered"] is not None
        else "none"
    )


def main() -> None:
    """The command."""
    args = command_line(__doc__, 200).parse_args()
    if not args.table:
        cells = itertools.product(RECORDS, EPSILONS, DESIGNS)
        return append(RECORD, (measure(n, epsilon, args.replicates, *design) for n, epsilon, design in cells))
    found = {(row["shape"], tuple(row["last"]), row["law"], row["n"], row["epsilon"]): row for row in rows(RECORD)}
    columns, lines = list(itertools.product(RECORDS, EPSILONS)), []
    for shape, shares, law in DESIGNS:
        key = ("x".join(map(str, shape)), shares, law)
        cells = [found.get((*key, *column)) for column in columns]
        last = ["even" if share is None else f"{share:g}" for share in shares]
        lines.append([key[0], *last, law, f"{cells[0]['v']:.2f}", *("" if row is None else told(row) for row in cells)])
    header = ["table", "last level of X", "of Y", "law", "V", *settings(columns)]
    return fill(PAGE, RECORD.stem, markdown(header, lines) + "\n")


if __name__ == "__main__":
    main()
