"""Public defaults of B and c as functions of n and epsilon, from simulations on the 21 functions.

Made by `python -m experiments.papers.mic.tuning` at noise levels and seeds that its evaluation does not use; the
MIC paper, appendix E.2, describes the objective.
"""

import math

import numpy as np

MASTER_FACTOR = 10.0  # c: 5 (the paper's) has a tenth more error at n = 1000, 15 a twentieth less for twice the time
PAIRS_MASTER_FACTOR = 5.0  # for many pairs, where noise dominates and time counts
# B with a weighted error within 5 % of the least among those tried (experiments/papers/mic/results/tuning.csv), for the
# coefficient corrected for chance and for MICr as it is. Larger n keep the last value.
_SIZES = (25, 250, 500, 1000, 5000, 10_000)
_CELLS = {
    0.1: (5, 40, 80, 150, 250, 350),
    0.3: (8, 60, 80, 150, 250, 350),
    1.0: (8, 80, 150, 150, 250, 350),
    3.0: (8, 100, 150, 150, 250, 350),
}
_RAW_CELLS = {0.1: (8, 40, 80, 100, 200, 250), 1.0: (8, 40, 60, 100, 150, 250)}


def cells_allowed(num_records: int, epsilon: float, corrected: bool = True) -> float:
    """B: linear in log n between the table's sizes, and in log epsilon between its budgets; constant outside."""
    position = math.log(max(num_records, 4))
    at = {
        eps: float(np.interp(position, np.log(_SIZES), row))
        for eps, row in (_CELLS if corrected else _RAW_CELLS).items()
    }
    budgets = sorted(at)
    cells = float(
        np.interp(math.log(epsilon) if math.isfinite(epsilon) else 0.0, np.log(budgets), [at[b] for b in budgets])
    )
    return max(4.0, min(round(cells), num_records))


GEOMETRIC_MASTER_FACTOR = 1.0
_GEOMETRIC_SIZES, _GEOMETRIC_CELLS = (25, 250, 1000, 5000), (12, 40, 60, 150)


def geometric_cells(num_records: int) -> float:
    """B for noisy tables: that of MICr-Geom at epsilon 1 in table 2 of the paper, linear in log n."""
    position = math.log(max(num_records, 4))
    cells = float(np.interp(position, np.log(_GEOMETRIC_SIZES), _GEOMETRIC_CELLS))
    return max(4.0, min(round(cells), num_records))


def lattice_side(num_records: int, epsilon: float) -> int:
    """F: lattice bins per axis."""
    return int(np.clip(round(0.5 * math.sqrt(num_records * epsilon)), 2, 64))
