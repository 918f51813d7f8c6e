"""`log-rank` of times that are recorded in coarse steps (docs/theory/log_rank.md#steps).

    python -m experiments.evidence.survival.steps [--replicates 500]
    python -m experiments.evidence.survival.steps --table     # the table of the page, from the record

One JSON line per cell, as in `crowded.py`. Times are exponential and recorded on [0, 60] in steps of 1, events and
censoring each by itself (an event that is recorded with its censoring comes first) or the first of both. `known`:
whether the schema has the step.
"""

import itertools
from pathlib import Path

import jax
import jax.numpy as jnp

from experiments.evidence.survival.crowded import simulated
from experiments.record import append, command_line, fill, markdown, rows, settings
from jaxdp.data.dataset import BINARY, Column, Data, Domain

RECORD = Path(__file__).parent / "steps.jsonl"
PAGE = Path(__file__).parents[3] / "docs" / "theory" / "log_rank.md"
MOST = 60
SETTINGS = [(2000, 1.0), (2000, 4.0), (20_000, 4.0)]
RECORDED = {"rounded": jnp.round, "rounded up": jnp.ceil, "rounded down": jnp.floor}
MEANS = {"3 against 20": (20.0, 3.0), "10 for both": (10.0, 10.0)}  # of censoring, in the first group and the second
CELLS = [
    *itertools.product(RECORDED, (False, True), MEANS, (5.0,), (1.0, 1.5)),
    ("rounded up", False, "3 against 20", 20.0, 1.0),
]
HEAD = ("recorded", "first", "censoring", "mean", "ratio", "known", "n", "epsilon")


def draw(key, n: int, recorded: str, first: bool, censoring: str, mean: float, ratio: float, known: bool) -> Data:
    """Groups of a half."""
    keys, of = jax.random.split(key, 3), RECORDED[recorded]
    group = jax.random.bernoulli(keys[0], 0.5, (n,)).astype(int)
    came = mean * jax.random.exponential(keys[1], (n,)) / jnp.where(group == 1, ratio, 1.0)
    gone = jax.random.exponential(keys[2], (n,)) * jnp.asarray(MEANS[censoring])[group]
    if not first:
        came, gone = of(came), of(gone)
    time = jnp.clip(2.0 * of(jnp.minimum(came, gone)) / MOST - 1.0, -1.0, 1.0)
    return Data(group, jnp.stack([time, 1.0 * (came <= gone)], axis=1), None, domain(known))


def domain(known: bool) -> Domain:
    """As a schema with or without `step = 1` describes the columns."""
    return Domain((Column(BINARY, 2),), (Column(values=MOST + 1 if known else 0), Column(BINARY, 2)))


def measure(*cell, known: bool, n: int, epsilon: float, replicates: int) -> dict:
    """One row."""
    return simulated(epsilon, domain(known), n, lambda key: draw(key, n, *cell, known), cell[-1], replicates)


def table() -> str:
    """That of the page."""
    found = {tuple(row[name] for name in HEAD): row for row in rows(RECORD)}

    def told(row) -> str:
        if row is None:
            return ""
        if row["ratio"] == 1.0:
            return f"{row['rejected']:.3f}"
        share = "" if row["answered"] > 0.995 else f" of {row['answered']:.2f}"
        return f"{row['rejected']:.2f}; {row['covered']:.3f}{share}; {row['width']:.2f}"

    lines = []
    for cell in CELLS:
        recorded, first, censoring, mean, ratio = cell
        name = f"{recorded}, {'first of both' if first else 'each'}; {censoring}; {ratio:g}"
        name += "" if mean == 5.0 else f"; events of mean {mean:g}"
        both = [tuple(told(found.get((*cell, known, *setting))) for known in (True, False)) for setting in SETTINGS]
        lines.append([name, *(new + (f" ({old})" if old else "") for new, old in both)])
    return markdown(["recorded, censoring, ratio", *settings(SETTINGS)], lines) + "\n"


def main() -> None:
    asked = command_line(__doc__, 500).parse_args()
    if asked.table:
        return fill(PAGE, "steps", table())
    with jax.enable_x64(True):
        append(RECORD, measured(asked.replicates))


def measured(replicates: int):
    """Rows that are not recorded yet."""
    done = {tuple(row[name] for name in HEAD) for row in rows(RECORD)}
    for known, (n, epsilon), cell in itertools.product((True, False), SETTINGS, CELLS):
        key, before = (*cell, known, n, epsilon), not known and (n > 2000 or cell[2] == "10 for both")
        if not before and key not in done:
            found = measure(*cell, known=known, n=n, epsilon=epsilon, replicates=replicates)
            yield dict(zip(HEAD, key, strict=True)) | found


if __name__ == "__main__":
    main()
