"""AIM (McKenna, Mullins, Sheldon and Miklau 2022), re-enacted from the paper, for the few columns of one question.

The workload is all pairs of columns (with the table of three columns as well, no more of 20 effects were found). The
graphical model is held as one table of all of them: mirror descent from the even table moves along the measured sets
alone, as it does within the model. Neighbours as published: one record more or fewer, half the noise of replacing one,
in its favour; the number of records is taken as known. Simulation noise; for comparison only.
"""

import itertools
import math

import numpy as np

from jaxdp import accounting
from jaxdp.data.records import Records

STEPS = 300  # of mirror descent after each round
ROUNDS_PER_COLUMN, FOR_NOISE = 16, 0.9  # as published: rounds at most, and the share of rho that measures


def adaptive(records: Records, epsilon: float, delta: float, seed: int) -> Records:
    """As many synthetic records."""
    values, levels = np.asarray(records.values), tuple(records.levels)
    exact = np.zeros(levels)
    np.add.at(exact, tuple(values.T), 1.0)
    generator = np.random.default_rng(seed)
    table = _fitted(exact, accounting.zcdp_rho(epsilon, delta), generator)
    counts = _rounded(len(values) * table, generator)
    made = np.repeat(np.indices(levels).reshape(len(levels), -1).T, counts.ravel(), axis=0)
    return Records(generator.permutation(made).astype(np.int32), records.columns)


def _fitted(exact: np.ndarray, rho: float, generator) -> np.ndarray:
    """The table of shares after all rounds."""
    count, total = exact.ndim, exact.sum()
    workload = [*itertools.combinations(range(count), 2)]
    subsets = [(column,) for column in range(count)] + workload
    weights = [sum(len(set(s) & set(of)) for of in workload) for s in subsets]
    scale, choice = _round_of(rho / (ROUNDS_PER_COLUMN * count))
    left, model = rho, _Model(exact.shape, total)
    for column in range(count):
        model.measure((column,), marginal(exact, (column,)), scale, generator)
        left -= _measured(scale)
    model.fit()
    while left > 1e-9 * rho:
        if left <= 2.0 * (_measured(scale) + choice**2 / 8.0):
            scale, choice = _round_of(left)
        scores = [
            weight * (model.distance(s, marginal(exact, s)) - _chance(scale, marginal(exact, s).size))
            for s, weight in zip(subsets, weights, strict=True)
        ]
        noise = generator.gumbel(size=len(scores))
        chosen = subsets[int(np.argmax(choice / (2.0 * max(weights)) * np.array(scores) + noise))]
        left -= _measured(scale) + choice**2 / 8.0
        before = total * marginal(model.table, chosen)
        model.measure(chosen, marginal(exact, chosen), scale, generator)
        model.fit()
        if model.distance(chosen, before) <= _chance(scale, before.size):
            scale, choice = scale / 2.0, 2.0 * choice
    return model.table


def _round_of(rho: float) -> tuple[float, float]:
    """Standard deviation of the noise of a table, and epsilon of the choice, of a round that costs rho."""
    return 1.0 / math.sqrt(2.0 * FOR_NOISE * rho), math.sqrt(8.0 * (1.0 - FOR_NOISE) * rho)


def _measured(scale: float) -> float:
    """The zCDP cost of one table."""
    return 1.0 / (2.0 * scale**2)


def _chance(scale: float, cells: int) -> float:
    """The expected sum of absolute noise."""
    return math.sqrt(2.0 / math.pi) * scale * cells


def marginal(table: np.ndarray, columns: tuple[int, ...]) -> np.ndarray:
    """The table of some of its columns, ascending."""
    return table.sum(axis=tuple(axis for axis in range(table.ndim) if axis not in columns))


class _Model:
    """Noisy tables, and the shares that fit them."""

    def __init__(self, shape: tuple[int, ...], total: float):
        self.table, self._total = np.full(shape, 1.0 / math.prod(shape)), total
        self._measured: dict[tuple[int, ...], tuple[np.ndarray, float]] = {}

    def measure(self, columns, exact, scale: float, generator) -> None:
        """Adds a noisy table, weighed with an earlier one of the same columns."""
        noisy, weight = exact + generator.normal(scale=scale, size=exact.shape), scale**-2
        old, before = self._measured.get(columns, (0.0, 0.0))
        self._measured[columns] = (before * old + weight * noisy) / (before + weight), before + weight

    def distance(self, columns, counts: np.ndarray) -> float:
        """Between the model's counts and others, in absolute terms."""
        return float(np.abs(self._total * marginal(self.table, columns) - counts).sum())

    def fit(self) -> None:
        """Mirror descent from the table before; steps grow while the loss falls."""
        step, (loss, slope) = 1.0 / (self._total * sum(w for _, w in self._measured.values())), self._loss(self.table)
        for _ in range(STEPS):
            moved = self.table * np.exp(-step * (slope - slope.min()))
            moved /= moved.sum()
            new, new_slope = self._loss(moved)
            if new < loss:
                small = loss - new < 1e-6 * new
                self.table, loss, slope, step = moved, new, new_slope, 1.5 * step
                if small:
                    return
            else:
                step /= 3.0

    def _loss(self, table: np.ndarray) -> tuple[float, np.ndarray]:
        """Half the weighted squares, and their slope in each cell over the number of records."""
        loss, slope = 0.0, np.zeros_like(table)
        for columns, (noisy, weight) in self._measured.items():
            off = self._total * marginal(table, columns) - noisy
            loss += 0.5 * weight * float(np.sum(off**2))
            others = tuple(axis for axis in range(table.ndim) if axis not in columns)
            slope += weight * np.expand_dims(off, others)
        return loss, slope


def _rounded(counts: np.ndarray, generator) -> np.ndarray:
    """Whole numbers of the same sum: what is left after rounding down goes to cells by their fractions."""
    whole = np.floor(counts).astype(int)
    parts = (counts - whole).ravel()
    more = round(float(parts.sum()))
    if more:
        cells = generator.choice(parts.size, more, replace=False, p=parts / parts.sum())
        np.add.at(whole.ravel(), cells, 1)
    return whole
