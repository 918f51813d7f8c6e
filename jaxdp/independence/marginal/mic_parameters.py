"""Public defaults of B and c as functions of n and epsilon, from simulations on the 21 functions.

Made by `python -m experiments.mic.tuning`; paper 004, appendix E.2, describes the objective.
"""

import math

import numpy as np

MASTER_FACTOR = 5.0  # c: larger values change MICr-Lap little (paper, section 5.1)
_SIZES = (25, 250, 500, 1000, 5000, 10000)
_CELLS = {1.0: (8, 40, 60, 80, 150, 150), 0.1: (6, 40, 80, 100, 125, 150)}


def cells_allowed(num_records: int, epsilon: float) -> float:
    """B: linear in log n between the table's sizes, and in log epsilon between its budgets; constant outside."""
    position = math.log(max(num_records, 4))
    at = {eps: float(np.interp(position, np.log(_SIZES), row)) for eps, row in _CELLS.items()}
    budgets = sorted(at)
    cells = float(
        np.interp(math.log(epsilon) if math.isfinite(epsilon) else 0.0, np.log(budgets), [at[b] for b in budgets])
    )
    return max(4.0, min(round(cells), num_records))


GEOMETRIC_MASTER_FACTOR = 1.0


def geometric_cells(num_records: int, epsilon: float) -> float:
    """B for noisy tables."""
    return cells_allowed(num_records, epsilon)


def lattice_side(num_records: int, epsilon: float) -> int:
    """F: lattice cells per axis."""
    return int(np.clip(round(0.5 * math.sqrt(num_records * epsilon)), 2, 64))
