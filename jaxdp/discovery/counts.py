"""Tables of any few columns of coded records: exact, counted once where the whole joint table fits."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from jaxdp.data.records import Records
from jaxdp.statistics import contingency

JOINT_CELLS = 1 << 20
CACHED_CELLS = 1 << 26


class Counts:
    """Exact int64 tables of a data set. Private: tables are not releases."""

    def __init__(self, records: Records):
        if 0 in records.levels:
            raise ValueError(
                "tables need coded columns, but the data have continuous ones; give test=PartitionGCM(...)."
            )
        self.levels = records.levels
        self.num_records = records.num_records
        self._codes: list[np.ndarray] = []
        self._cache: dict[tuple[int, ...], np.ndarray] = {}
        self._cached_cells = 0
        if math.prod(self.levels) <= JOINT_CELLS:
            self._joint: np.ndarray | None = contingency.joint_table(records.values, self.levels)
        else:
            self._joint = None
            values = np.asarray(records.values)
            self._codes = [
                np.asarray(contingency.as_codes(column, n)) for column, n in zip(values.T, self.levels, strict=True)
            ]

    def pair_given(self, i: int, j: int, given: Sequence[int]) -> np.ndarray:
        """Table of i against j within the joint levels of `given`, int64 (strata, L_i, L_j)."""
        if self._joint is not None:
            return contingency.pair_given(self._joint, i, j, given)
        columns = tuple(sorted({i, j, *given}))
        table = self.table(columns)
        positions = [columns.index(k) for k in (*given, i, j)]
        return contingency.pair_given(table, positions[-2], positions[-1], positions[:-2])

    def table(self, columns: tuple[int, ...]) -> np.ndarray:
        """The joint table of these columns (in increasing order); tests that share a set of columns share it."""
        if self._joint is not None:
            return contingency.marginal(self._joint, columns)
        if columns not in self._cache:
            shape = tuple(self.levels[k] for k in columns)
            contingency.check_cells(shape)
            code = np.zeros(self.num_records, np.int64)
            for k in columns:
                code = code * self.levels[k] + self._codes[k]
            if self._cached_cells > CACHED_CELLS:
                self._cache.clear()
                self._cached_cells = 0
            self._cached_cells += math.prod(shape)
            self._cache[columns] = np.bincount(code, minlength=math.prod(shape)).reshape(shape)
        return self._cache[columns]


class NoisyCounts:
    """Tables of released noisy counts: post-processing. variance: of the noise of one released cell."""

    def __init__(self, joint: np.ndarray, variance: float):
        self.joint, self.cell_variance = joint, variance
        self.levels = joint.shape

    def pair_given(self, i: int, j: int, given: Sequence[int]) -> np.ndarray:
        """Noisy table of i against j within the joint levels of `given`, float64 (strata, L_i, L_j)."""
        return contingency.pair_given(self.joint, i, j, given)

    def noise_variance(self, i: int, j: int, given: Sequence[int]) -> float:
        """Variance of the noise of one cell of `pair_given`: each sums this many released cells."""
        kept = math.prod(self.levels[k] for k in (i, j, *given))
        return self.cell_variance * (self.joint.size // kept)
