"""What noisy tables of unshielded triples say about colliders. Post-processing of released numbers only.

Theory: docs/theory/max_min_pc.md#tables.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from jaxdp.discovery.engine.directions import Contrasts, Triple
from jaxdp.discovery.engine.table_scores import residual_axes

EFFECT = 0.1  # size, as a correlation, of a dependence where there is one
BLUR = 0.01  # the same of one that is there where none should be: by columns not looked at
BOTH = 2.0  # evidence from which on a dependence is there: if it is with the middle and without, the table is silent
CAP = 4.0  # largest log odds of a table: its two edges may be false


@dataclasses.dataclass(frozen=True)
class TripleTables:
    """Contrasts of unshielded triples (i, k, j), and the released table of each, which knows no other column.

    tables: each (L_i, L_j, L_k) with fresh noise in every cell. variance: of that noise.
    """

    contrasts: Contrasts
    tables: Sequence[np.ndarray]
    variance: float

    @property
    def triples(self) -> Sequence[Triple]:
        """Those of the contrasts."""
        return self.contrasts.triples

    def weights(self) -> np.ndarray:
        """Log odds of a collider against none, (T,): those of the contrasts, and those of the tables.

        In a table a dependence of i and j given k speaks for the collider, one without k against it. If both are there,
        i and j are joined by another way too, and only a contrast, which looks at further columns, can tell.
        """
        found = [(evidence(table, self.variance), self._alone(table)) for table in self.tables]
        given, alone = np.array(found).T
        silent = np.minimum(given, alone) > BOTH
        return self.contrasts.weights() + np.where(silent, 0.0, np.clip(given - alone, -CAP, CAP))

    def _alone(self, table: np.ndarray) -> float:
        return evidence(table.sum(axis=2, keepdims=True), self.variance * table.shape[2])


def evidence(table: np.ndarray, variance: float) -> float:
    """Log Bayes factor of a dependence of the first two axes within the levels of the third, of a noisy table.

    variance: of the noise of a cell. Where levels are so rare that noise hides them, it is about 0.
    """
    records = max(float(table.sum()), 1.0)
    return sum(_of_stratum(table[:, :, level], variance, records) for level in range(table.shape[2]))


def _of_stratum(counts: np.ndarray, variance: float, records: float) -> float:
    rows, columns = (np.maximum(counts.sum(axis=axis), 0.0) for axis in (1, 0))
    total = float(counts.sum())
    if min(total, rows.sum(), columns.sum()) <= 0.0:
        return 0.0
    p, q = rows / rows.sum(), columns / columns.sum()
    spread, left = residual_axes(p)
    other, right = residual_axes(q)
    residual = left.T @ (counts - total * np.outer(p, q))[:-1, :-1] @ right
    sampled = total * np.outer(spread, other)
    none = variance + sampled * (1.0 + BLUR**2 * records)
    effect = sampled * EFFECT**2 * records
    return float((residual**2 * effect / (none * (none + effect)) - np.log1p(effect / none)).sum() / 2.0)
