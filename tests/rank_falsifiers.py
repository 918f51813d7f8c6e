"""Exhaustive neighbours for statistics of small tables: every table of n - 1 records, every added cell."""

import itertools
import math

import numpy as np


def tables(records: int, shape: tuple[int, ...]) -> np.ndarray:
    """Every table of this many records, int64 (count, *shape)."""
    cells = math.prod(shape)
    picks = np.array(list(itertools.combinations_with_replacement(range(cells), records)), dtype=np.int64)
    flat = np.zeros((len(picks), cells), np.int64)
    for column in picks.reshape(len(picks), records).T:
        flat[np.arange(len(picks)), column] += 1
    return flat.reshape(-1, *shape)


def moves(statistic, records: int, shape: tuple[int, ...]) -> dict[str, float]:
    """Largest change of `statistic` (batch of tables -> batch of numbers) between neighbours.

    replace: data sets of `records` records that differ in one. up, down: one record joins records - 1 others.
    """
    base = tables(records - 1, shape)
    added = np.eye(math.prod(shape), dtype=np.int64).reshape(-1, *shape)
    values = np.asarray(statistic((base[:, None] + added[None]).reshape(-1, *shape))).reshape(len(base), -1)
    before = np.asarray(statistic(base)).reshape(-1, 1)
    change = values - before
    return {
        "replace": float(np.max(values.max(1) - values.min(1))),
        "up": float(change.max()),
        "down": float(-change.min()),
    }
