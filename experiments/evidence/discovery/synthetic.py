"""PC on synthetic records: the graph that a user of private synthetic data would get.

MST (McKenna, Miklau, Sheldon 2021) on the graphical models of its authors' package `mbi` (PyPI: mbi 2.0.0, which does
not hold the mechanism), re-enacted from the paper: a spanning tree of pairs by the exponential mechanism, measured
once. Neighbours as published: one record more or fewer, half the noise of replacing one, in its favour. Simulation
noise; for comparison only.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from jaxdp import accounting
from jaxdp.data.records import Records

STEPS = 150  # of mirror descent; the package's default 1000


def tree(records: Records, epsilon: float, delta: float, seed: int) -> Records:
    """As many synthetic records of a spanning tree; a third of the budget each for columns, choice and pairs."""
    budget, tables, found = _started(records, epsilon, delta, seed, 1.0 / 3.0)
    _with_tree(budget, tables, found, budget.whole / 3.0, budget.left / 2.0)
    found.fit()
    return found.sampled()


def _started(records: Records, epsilon: float, delta: float, seed: int, share: float):
    """The budget, exact tables, and a model of noisy columns, for a share of the budget."""
    budget = _Budget.of(epsilon, delta, np.random.default_rng(seed))
    tables, count, found = _tables(records), len(records.levels), _Fitted(records)
    for column in range(count):
        found.measure((column,), *budget.noisy(tables[column,], share * budget.whole / count))
    found.fit()
    return budget, tables, found


def _with_tree(budget, tables, found, choice: float, measures: float) -> None:
    """Chooses a spanning tree of pairs, one draw for each edge, and measures them."""
    expected = found.pairs()
    count = 1 + max(j for _, j in expected)
    component, chosen = list(range(count)), []
    for _ in range(count - 1):
        between = [pair for pair in expected if component[pair[0]] != component[pair[1]]]
        errors = [np.abs(tables[pair] - expected[pair]).sum() for pair in between]
        pair = between[budget.drawn(np.array(errors), choice / (count - 1))]
        chosen.append(pair)
        joined = component[pair[0]], component[pair[1]]
        component = [joined[0] if part == joined[1] else part for part in component]
    for pair in chosen:
        found.measure(pair, *budget.noisy(tables[pair], measures / len(chosen)))


class _Budget:
    """What is left of rho, or of a pure epsilon, and the noise that parts of it buy; counts move by 1."""

    def __init__(self, whole: float, pure: bool, generator):
        self.whole = self.left = whole
        self._pure, self._generator = pure, generator

    @classmethod
    def of(cls, epsilon: float, delta: float, generator) -> _Budget:
        return cls(accounting.zcdp_rho(epsilon, delta) if delta else epsilon, not delta, generator)

    def scale(self, part: float) -> float:
        """Standard deviation of the noise of a table."""
        return math.sqrt(2.0) / part if self._pure else 1.0 / math.sqrt(2.0 * part)

    def noisy(self, table: np.ndarray, part: float) -> tuple[np.ndarray, float]:
        """A table with noise and the standard deviation of it."""
        self.left -= part
        scale = self.scale(part)
        noise = self._generator.laplace(scale=scale / math.sqrt(2.0), size=table.shape)
        return table + (noise if self._pure else self._generator.normal(scale=scale, size=table.shape)), scale

    def drawn(self, scores: np.ndarray, part: float) -> int:
        """Place of the exponential mechanism's choice; each score moves by at most 1."""
        self.left -= part
        epsilon = part if self._pure else math.sqrt(8.0 * part)
        return int(np.argmax(0.5 * epsilon * scores + self._generator.gumbel(size=len(scores))))


class _Fitted:
    """Noisy tables and the graphical model that fits them."""

    def __init__(self, records: Records):
        import mbi

        self._mbi, self._records = mbi, records
        self._names = [f"c{column}" for column in range(len(records.levels))]
        self._domain = mbi.Domain(self._names, records.levels)
        self._measured: list = []
        self._model = None

    def measure(self, columns, table: np.ndarray, scale: float) -> None:
        """Adds a noisy table of columns."""
        clique = tuple(self._names[column] for column in columns)
        self._measured.append(self._mbi.LinearMeasurement(table.ravel(), clique, stddev=scale))

    def fit(self) -> None:
        """Mirror descent from the model before."""
        cliques = list({measured.clique for measured in self._measured})
        start = None if self._model is None else self._model.potentials.expand(cliques)
        total = float(self._records.num_records)
        estimator = self._mbi.estimation.MirrorDescent()
        self._model = estimator.estimate(self._domain, self._measured, known_total=total, iters=STEPS, warm_start=start)

    def pairs(self) -> dict[tuple[int, int], np.ndarray]:
        """Tables of all pairs, of as many records of the model, rounded rather than drawn."""
        tables = _tables(self.sampled())
        return {columns: table for columns, table in tables.items() if len(columns) == 2}

    def sampled(self) -> Records:
        """Records of the model."""
        made = self._model.synthetic_data(rows=self._records.num_records).to_dict()
        values = np.stack([made[name] for name in self._names], axis=1).astype(np.int32)
        return Records(values, self._records.columns)


def _tables(records: Records) -> dict[tuple[int, ...], np.ndarray]:
    """Tables of all columns and all pairs of them."""
    values, levels = np.asarray(records.values, np.int64), records.levels
    found = {(i,): np.bincount(values[:, i], minlength=levels[i]).astype(float) for i in range(len(levels))}
    for i, j in itertools.combinations(range(len(levels)), 2):
        cells = np.bincount(values[:, i] * levels[j] + values[:, j], minlength=levels[i] * levels[j])
        found[i, j] = cells.reshape(levels[i], levels[j]).astype(float)
    return found
