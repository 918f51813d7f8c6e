"""A lower bound on epsilon from outputs of any number of parts, by the estimators of `jaxdp.audit`."""

import dataclasses

import numpy as np

from jaxdp.audit import Bound, lower_bound, outcomes_bound

ALPHA = 1e-6
PILOT = 0.1  # share of the runs that choose the cells, and are not counted
CELLS = 60
WITHOUT_VALUE = 1e300


def bound(first: np.ndarray, second: np.ndarray, *, alpha: float = ALPHA, delta: float = 0.0) -> Bound:
    """Lower bound from two samples (runs, parts); single numbers are audited by thresholds and low bits too."""
    first, second = (np.nan_to_num(side, nan=WITHOUT_VALUE, posinf=WITHOUT_VALUE) for side in (first, second))
    start = int(PILOT * min(len(first), len(second)))
    cuts = [_cuts(column, first.shape[1]) for column in np.concatenate([first[:start], second[:start]]).T]
    (first, second), cells = (first[start:], second[start:]), [_cells(side[start:], cuts) for side in (first, second)]
    found = [outcomes_bound(*cells, alpha=alpha / 2, delta=delta)]
    if first.shape[1] == 1:
        found.append(lower_bound(first[:, 0].copy(), second[:, 0].copy(), alpha=alpha / 2, delta=delta))
    best = max(found, key=lambda one: one.epsilon)
    return dataclasses.replace(best, alpha=alpha)


def _cuts(column: np.ndarray, parts: int) -> np.ndarray:
    """Values that divide one part of the output, as many as give about CELLS cells in all."""
    return np.unique(np.quantile(column, np.linspace(0, 1, max(2, round(CELLS ** (1 / parts)))), method="lower"))


def _cells(side: np.ndarray, cuts: list[np.ndarray]) -> np.ndarray:
    """The cell of each output; a value that equals a cut has a cell of its own."""
    cell = np.zeros(len(side), np.int64)
    for column, edges in zip(side.T, cuts, strict=True):
        place = np.searchsorted(edges, column, "left") + np.searchsorted(edges, column, "right")
        cell = cell * (2 * len(edges) + 1) + place
    return cell
