"""Level and power of equivalence tests of the difference of two means (docs/evidence/coverage.md).

    python -m experiments.evidence.coverage.margins [--replicates 4000]
    python -m experiments.evidence.coverage.margins --table      # the table of the page, from the record

One JSON line per law, share of the smaller group, n and epsilon. `level_above`, `level_below`: of data sets in which
the mean of the smaller group, clipped at the bounds (by quadrature), lies above or below that of the other by the
margin, the share in which the test says that the difference is smaller in size. `power`: of those without a difference,
at a margin of 0.3 sd of the response. `plain_*`: two one-sided tests by Welch's statistic and the normal law, without
privacy, on the same data sets.
"""

import dataclasses
import functools
import itertools
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

from experiments.evidence.coverage.groups import DOMAIN, LOGNORMAL, NORMAL, SKEWED, ZEROS, Design, draw, plain, truth
from experiments.record import append, command_line, fill, keys_of, markdown, rows, settings
from jaxdp import catalogue, core
from jaxdp.spec import Options

RECORD = Path(__file__).parent / "margins.jsonl"
PAGE = Path(__file__).parents[3] / "docs" / "evidence" / "coverage.md"
RECORDS, EPSILONS, SHARES = (1000, 10_000), (0.5, 1.0, 4.0), (0.5, 0.1)
LAWS = {"normal": Design(NORMAL), "lognormal": Design(LOGNORMAL, **SKEWED), "zeros in 9 of 10": Design(ZEROS, **SKEWED)}
SHIFT = 0.3  # sds of the response, which is the margin but for the clip at the bounds
SEED, LEVEL = 31, 0.05


@functools.cache
def program(n: int, batch: int):
    """(keys, epsilon, numbers, margin) -> p-value of equivalence, with privacy and without."""
    entry = catalogue.find("mean-difference")

    @jax.jit
    def found(keys, epsilon, numbers, margin):
        def one(key):
            key_data, key_run = jax.random.split(key)
            data = draw(key_data, n, numbers)
            test = entry.build(epsilon, DOMAIN, Options(num_records=n))
            release = core.run(test, key_run, data).release
            shapes = core.public_shapes(data)
            above, below = test.one_sided(shapes, release, -margin)[0], test.one_sided(shapes, release, margin)[1]
            middle, se = plain(data)
            return jnp.maximum(above, below), norm.sf((margin - jnp.abs(middle)) / se)

        return jax.lax.map(one, keys, batch_size=batch)

    return found


def measure(name: str, share: float, n: int, epsilon: float, replicates: int) -> dict:
    """One row."""
    start, row = time.process_time(), {}
    law = LAWS[name]
    half = 0.5 * (law.high - law.low)
    shifts = (("level_above", share, SHIFT), ("level_below", 1.0 - share, SHIFT), ("power", share, 0.0))
    for told, second, shift in shifts:
        design = dataclasses.replace(law, share=second, shift=shift)
        margin = truth(design) if shift else SHIFT / half
        keys = keys_of(SEED, f"{name} {told} {share:g} {n} {epsilon:g}", replicates)
        made = program(n, 50 if n < 10_000 else 10)(keys, epsilon, jnp.asarray(design.numbers, float), margin)
        mine, without = (float((np.asarray(values) <= LEVEL).mean()) for values in made)
        row |= {told: round(mine, 4), f"plain_{told}": round(without, 4)}
    facts = {"law": name, "share": share, "n": n, "epsilon": epsilon, "margin_sd": SHIFT, **row}
    return {**facts, "replicates": replicates, "seconds": round(time.process_time() - start, 1)}


def table() -> str:
    """The table of the page."""
    found = {(row["law"], row["share"], row["n"], row["epsilon"]): row for row in rows(RECORD)}
    columns = list(itertools.product(RECORDS, EPSILONS))
    lines = []
    for name, share in itertools.product(LAWS, SHARES):
        shown = [
            f"{row['level_above']:.3f} {row['level_below']:.3f}; {row['power']:.2f} ({row['plain_power']:.2f})"
            for row in (found[name, share, *column] for column in columns)
        ]
        lines.append([f"{name}, {share:g}", *shown])
    return markdown(["law, share of the smaller group", *settings(columns)], lines) + "\n"


def main() -> None:
    parser = command_line(__doc__, 10_000)
    parser.add_argument("--records", nargs="*", type=int, default=RECORDS)
    args = parser.parse_args()
    if args.table:
        return fill(PAGE, "margins", table())
    cells = itertools.product(args.records, LAWS, SHARES, EPSILONS)
    with jax.enable_x64(True):
        append(
            RECORD, (measure(name, share, n, e, args.replicates // (1 + (n >= 10_000))) for n, name, share, e in cells)
        )


if __name__ == "__main__":
    main()
