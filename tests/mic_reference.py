"""Independent slow statements of the maximal information coefficients, in plain Python and NumPy."""

import itertools
import math

import numpy as np


def information(table) -> float:
    """Mutual information in bits from the definition."""
    table = np.asarray(table, float)
    total = table.sum()
    bits = 0.0
    for i, j in itertools.product(*map(range, table.shape)):
        if table[i, j] > 0:
            bits += table[i, j] / total * math.log2(table[i, j] * total / (table[i].sum() * table[:, j].sum()))
    return bits


def best_over_segments(table, parts: int) -> float:
    """Largest information over every way to merge the rows (p, q) into exactly `parts` runs of rows."""
    table = np.asarray(table, float)
    best = 0.0
    for cuts in itertools.combinations(range(1, table.shape[0]), parts - 1):
        edges = [0, *cuts, table.shape[0]]
        merged = [table[a:b].sum(0) for a, b in itertools.pairwise(edges)]
        best = max(best, information(merged))
    return best


def range_cells(values, low, high, count):
    return np.clip(np.floor((np.asarray(values) - low) / (high - low) * count).astype(int), 0, count - 1)


def rank_cells(ranks, count):
    return np.asarray(ranks) * count // len(ranks)


def coefficient(cells_x, cells_y, budget: float, c: int, full: bool) -> float:
    """max over l, k and both axes of the best score, with cells_x(count), cells_y(count) the cells of each record."""
    best = 0.0
    for fixed in range(2, int(budget / 2) + 1):
        parts = min(fixed, int(budget / fixed))
        master = c * (fixed if full else parts)
        for rows, columns in ((cells_y, cells_x), (cells_x, cells_y)):
            table = np.zeros((master, fixed))
            np.add.at(table, (rows(master), columns(fixed)), 1)
            for k in range(2, parts + 1):
                best = max(best, best_over_segments(table, k) / math.log2(k))
    return best
