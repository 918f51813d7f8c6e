"""Tables of any few columns of coded records: exact, counted once, gathered for many questions at a time."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence

import jax
import numpy as np

from jaxdp.data.records import Records
from jaxdp.noise import keys
from jaxdp.noise.subset import uniform_subset
from jaxdp.statistics import bitmaps, contingency

JOINT_CELLS = 1 << 20
CUBE_CELLS = 1 << 22
BATCH_CELLS = 1 << 22  # of one batch of tables


class Counts:
    """Exact int64 tables of a data set. Private: tables are not releases.

    Few columns: one pass over the records makes the joint table, from which everything else follows. Many
    columns: the records as bits, and popcounts (`statistics.bitmaps`).
    """

    def __init__(self, records: Records):
        if 0 in records.levels:
            raise ValueError(
                "tables need coded columns, but the data have continuous ones; give test=PartitionGCM(...)."
            )
        self.levels = records.levels
        self.num_records = records.num_records
        self._joint: JointTables | None = None
        if math.prod(self.levels) <= JOINT_CELLS:
            self._joint = JointTables(contingency.joint_table(records.values, self.levels))
            return
        # bitmaps take increasing columns; in order of levels, sets of one multiset of levels have one shape
        self._order = np.argsort(np.array(self.levels), kind="stable")
        self._rank = np.argsort(self._order)
        self._bitmaps = bitmaps.Bitmaps(
            np.asarray(records.values)[:, self._order], np.array(self.levels)[self._order].tolist()
        )

    def tables(self, sets: np.ndarray) -> np.ndarray:
        """Tables of sets (m, k) of columns, axes in their order: (m, *levels); rows must share their levels."""
        if self._joint is not None:
            return self._joint.tables(sets)
        ranks = self._rank[np.asarray(sets, int)]
        increasing = np.sort(ranks, axis=1)
        found = self._bitmaps.tables(increasing)
        shape = found.shape[1:]
        steps = np.cumprod((1, *shape[:0:-1]))[::-1]
        position = np.argsort(np.argsort(ranks, axis=1), axis=1)
        index = np.arange(len(found)).reshape(-1, *[1] * len(shape)) * math.prod(shape)
        for axis in range(len(shape)):
            count = shape[position[0, axis]]
            along = [-1 if other == axis else 1 for other in range(len(shape))]
            step = steps[position[:, axis]].reshape(-1, *[1] * len(shape))
            index = index + step * np.arange(count).reshape(along)
        return found.ravel()[index]

    def prepare(self, groups: Sequence[np.ndarray]) -> None:
        """Counts together what `tables` of these groups will need."""
        if self._joint is None:
            self._bitmaps.prepare([np.sort(self._rank[np.asarray(sets, int)], axis=1) for sets in groups])

    def table(self, columns: Sequence[int]) -> np.ndarray:
        """The joint table of these columns, axes in their order."""
        return self.tables(np.array([columns], int))[0]

    def pair_given(self, i: int, j: int, given: Sequence[int]) -> np.ndarray:
        """Table of i against j within the joint levels of `given`, int64 (strata, L_i, L_j)."""
        return _stratified(self.table((*given, i, j)))

    def simulated_subset(self, key, size: int) -> Counts | None:
        """Counts of `size` records drawn without replacement, from the cells alone; None without a joint table.

        Simulations only: a hypergeometric draw in float arithmetic on the host, seeded by the key.
        """
        if self._joint is None:
            return None
        seed = np.asarray(jax.random.key_data(key)).tolist()
        cells = self._joint.joint.ravel()
        drawn = np.random.default_rng(seed).multivariate_hypergeometric(cells, size, method="marginals")
        subset = copy.copy(self)
        subset._joint, subset.num_records = JointTables(drawn.reshape(self.levels)), size
        return subset

    def subset(self, key, size: int, records: Records) -> Counts:
        """Counts of a uniform subset of the records; cells suffice in simulations with a joint table."""
        drawn = self.simulated_subset(key, size) if keys.mode_of(key) == keys.SIMULATION else None
        if drawn is not None:
            return drawn
        rows = uniform_subset(key, self.num_records, size)
        return Counts(Records(np.asarray(records.values)[rows], records.columns))


class JointTables:
    """Tables of any columns from the joint table of all: a gather from its margins where those fit in memory."""

    def __init__(self, joint: np.ndarray):
        self.joint = joint
        fits = math.prod(count + 1 for count in joint.shape) <= CUBE_CELLS
        self._cube = contingency.margin_cube(joint) if fits else None
        self._cache: dict[tuple[int, ...], np.ndarray] = {}
        self._cached_cells = 0

    def tables(self, sets: np.ndarray) -> np.ndarray:
        """Tables of sets (m, k) of columns, axes in their order: (m, *levels); rows must share their levels."""
        sets = np.asarray(sets, int)
        if self._cube is not None:
            return contingency.from_cube(self._cube, sets)
        return np.stack([self._summed(tuple(columns)) for columns in sets.tolist()])

    def _summed(self, columns: tuple[int, ...]) -> np.ndarray:
        key = tuple(sorted(columns))
        if key not in self._cache:
            if self._cached_cells > CUBE_CELLS:
                self._cache.clear()
                self._cached_cells = 0
            self._cache[key] = contingency.marginal(self.joint, key)
            self._cached_cells += self._cache[key].size
        return self._cache[key].transpose([key.index(column) for column in columns])


class NoisyCounts:
    """Tables of released noisy counts: post-processing. variance: of the noise of one released cell."""

    def __init__(self, joint: np.ndarray, variance: float):
        self.joint, self.cell_variance = joint, variance
        self.levels = joint.shape
        self._tables = JointTables(joint)

    def tables(self, sets: np.ndarray) -> np.ndarray:
        """Noisy tables of sets (m, k) of columns, as `Counts.tables`."""
        return self._tables.tables(sets)

    def pair_given(self, i: int, j: int, given: Sequence[int]) -> np.ndarray:
        """Noisy table of i against j within the joint levels of `given`, float64 (strata, L_i, L_j)."""
        return _stratified(self.tables(np.array([(*given, i, j)], int))[0])

    def noise_variance(self, i: int, j: int, given: Sequence[int]) -> float:
        """Variance of the noise of one cell of `pair_given`: each sums this many released cells."""
        kept = math.prod(self.levels[k] for k in (i, j, *given))
        return self.cell_variance * (self.joint.size // kept)


def batches(tables, questions: Sequence) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Positions of questions and their tables, (B, strata, L_i, L_j), one batch per combination of levels.

    i and j may be swapped and `given` reordered: every statistic here is the same for both.
    """
    if not hasattr(tables, "tables"):
        yield from _one_by_one(tables, questions)
        return
    levels = tables.levels
    groups: dict[tuple, tuple[list[int], list[tuple[int, ...]]]] = {}
    for position, (i, j, given) in enumerate(questions):
        if levels[i] > levels[j]:
            i, j = j, i
        if len(given) > 1:
            given = sorted(given, key=levels.__getitem__)
        columns = (*given, i, j)
        found = groups.setdefault(tuple([levels[k] for k in columns]), ([], []))
        found[0].append(position)
        found[1].append(columns)
    if hasattr(tables, "prepare"):
        tables.prepare([sets for _, sets in groups.values()])
    for shape, (positions, sets) in groups.items():
        room = max(1, BATCH_CELLS // math.prod(shape))
        for start in range(0, len(sets), room):
            part = tables.tables(np.array(sets[start : start + room], int))
            yield np.array(positions[start : start + room]), part.reshape(len(part), -1, *shape[-2:])


def _one_by_one(tables, questions):
    found = [tables.pair_given(*question) for question in questions]
    shapes: dict[tuple, list[int]] = {}
    for position, table in enumerate(found):
        shapes.setdefault((len(questions[position][2]), *table.shape), []).append(position)
    for positions in shapes.values():
        yield np.array(positions), np.stack([found[position] for position in positions])


def _stratified(table: np.ndarray) -> np.ndarray:
    return table.reshape(-1, *table.shape[-2:])
