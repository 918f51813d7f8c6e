"""Tables of any few columns of coded records: exact, counted once, gathered for many queries at a time."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence

import jax
import numpy as np

from jaxdp.data.records import Records
from jaxdp.noise.source import Source
from jaxdp.randomness import keys
from jaxdp.randomness.subset import uniform_subset
from jaxdp.statistics.tables import bitmaps, contingency

JOINT_CELLS = 1 << 20
CUBE_CELLS = 1 << 22
BATCH_CELLS = 1 << 22  # of one batch of tables
CELLS_OF_A_BATCH = 1 << 14  # that take as long as the fixed work for a batch


class Counts:
    """Exact int64 tables of a data set. Private: tables are not releases.

    Few columns: one pass over the records makes the joint table, from which everything else follows. Many
    columns: the records as bits, and popcounts (`statistics.bitmaps`). joint_cells: of the largest joint table made.
    """

    def __init__(self, records: Records, joint_cells: int | None = None):
        if 0 in records.levels:
            raise ValueError(
                "tables need coded columns, but the data have continuous ones; give test=PartitionGCM(...)."
            )
        self.levels = records.levels
        self.num_records = records.num_records
        self._joint: JointTables | None = None
        if math.prod(self.levels) <= (JOINT_CELLS if joint_cells is None else joint_cells):
            self._joint = JointTables(contingency.joint_table(records.values, self.levels))
            return
        # bitmaps take increasing columns; in order of levels, sets of one multiset of levels have one shape
        self._order = np.argsort(np.array(self.levels), kind="stable")
        self._rank = np.argsort(self._order)
        self._bitmaps = bitmaps.Bitmaps(np.asarray(records.values), self.levels, self._order)

    def tables(self, sets: np.ndarray, shape: tuple[int, ...] | None = None) -> np.ndarray:
        """Tables of sets (m, k) of columns, axes in their order: (m, *shape).

        shape: the levels along each axis, which all rows share by default. More than a column has (no joint table
        only): its last level is then in the last place, and the places before it that it lacks are 0.
        """
        sets = np.asarray(sets, int)
        if self._joint is not None:
            return self._joint.tables(sets)
        shape = tuple(np.array(self.levels)[sets[0]].tolist()) if shape is None else shape
        order = np.argsort(self._rank[sets], axis=1)
        # columns of higher rank have as many levels or more, so the axes by rank are the axes by length
        found = self._bitmaps.tables(np.sort(self._rank[sets], axis=1), tuple(sorted(shape)))
        count, first, pattern = _distinct(order)
        if count == 1:
            return found.transpose(0, *(np.argsort(order[0]) + 1))
        result = np.empty((len(sets), *shape), np.int64)
        for number, row in enumerate(first):
            rows = pattern == number
            result[rows] = found[rows].transpose(0, *(np.argsort(order[row]) + 1))
        return result

    def padded_batches(self, queries: Sequence, pad_from: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """`batches` in few shapes: columns of at least pad_from levels may get empty ones before their last."""
        by_order: dict[int, list[int]] = {}
        for position, query in enumerate(queries):
            by_order.setdefault(len(query[2]), []).append(position)
        for order, positions in by_order.items():
            sets = np.array([(*queries[k][2], *queries[k][:2]) for k in positions], int)
            # by rank, so that the axes of one batch agree wherever they can
            ranks = self._rank[sets]
            sets = self._order[np.concatenate([np.sort(ranks[:, :order]), np.sort(ranks[:, order:])], axis=1)]
            self._bitmaps.prepare([np.sort(ranks)])
            shapes = _padded(np.array(self.levels)[sets], pad_from)
            _, first, group = _distinct(shapes)
            for number, row in enumerate(first):
                rows = np.flatnonzero(group == number)
                yield from _in_parts(self, np.array(positions)[rows], sets[rows], tuple(shapes[row].tolist()))

    def prepare(self, groups: Sequence[np.ndarray]) -> None:
        """Counts together what `tables` of these groups will need."""
        if self._joint is None:
            self._bitmaps.prepare([np.sort(self._rank[np.asarray(sets, int)], axis=1) for sets in groups])

    @property
    def can_pad(self) -> bool:
        """Whether `padded_batches` is there: without a joint table."""
        return self._joint is None

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

    def subset(self, source: Source, size: int, records: Records) -> Counts:
        """Counts of a uniform subset of the records; cells suffice in simulations with a joint table."""
        drawn = self.simulated_subset(source.key, size) if source.mode == keys.SIMULATION else None
        if drawn is not None:
            return drawn
        rows = uniform_subset(source.key, self.num_records, size)
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


def batches(tables, queries: Sequence, pad_from: int | None = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Positions of queries and their tables, (B, strata, L_i, L_j), one batch per combination of levels.

    i and j may be swapped and `given` reordered: every statistic here is the same for both.
    pad_from: tables may have empty levels added to columns of at least so many, which merges batches; for exact
    counts and statistics that empty rows, columns and strata leave as they are.
    """
    if not hasattr(tables, "tables"):
        yield from _one_by_one(tables, queries)
        return
    if pad_from is not None and getattr(tables, "can_pad", False):
        yield from tables.padded_batches(queries, pad_from)
        return
    levels = tables.levels
    groups: dict[tuple, tuple[list[int], list[tuple[int, ...]]]] = {}
    for position, (i, j, given) in enumerate(queries):
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
        yield from _in_parts(tables, np.array(positions), np.array(sets, int), shape)


def _in_parts(tables, positions: np.ndarray, sets: np.ndarray, shape: tuple[int, ...]):
    room = max(1, BATCH_CELLS // math.prod(shape))
    for start in range(0, len(sets), room):
        part = sets[start : start + room]
        found = tables.tables(part, shape) if getattr(tables, "can_pad", False) else tables.tables(part)
        yield positions[start : start + room], found.reshape(len(part), -1, *shape[-2:])


def _padded(levels: np.ndarray, pad_from: int) -> np.ndarray:
    """Levels (m, k) of columns, of sets to be counted together, with the larger ones raised to the largest.

    From which one on is chosen by cost: a batch takes as long as so many cells, whatever it holds.
    """
    present = np.unique(levels)
    best, least = levels, math.inf
    for first in present[present >= pad_from]:
        shapes = np.where(levels >= first, present[-1], levels)
        cells = np.prod(shapes, axis=1, dtype=float)
        cost = float(cells.sum()) + CELLS_OF_A_BATCH * _distinct(shapes)[0]
        if cost < least and cells.max() <= contingency.MAX_CELLS:
            best, least = shapes, cost
    return best


def _distinct(rows: np.ndarray) -> tuple[int, np.ndarray, np.ndarray]:
    """How many different rows of small numbers there are, where each is first, and which one each row is."""
    base, length = int(rows.max()) + 1, rows.shape[1]
    if base**length < 2**62:
        codes, first, inverse = np.unique(rows @ base ** np.arange(length), return_index=True, return_inverse=True)
    else:
        codes, first, inverse = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return len(codes), first, inverse.ravel()


def _one_by_one(tables, queries):
    found = [tables.pair_given(*query) for query in queries]
    shapes: dict[tuple, list[int]] = {}
    for position, table in enumerate(found):
        shapes.setdefault((len(queries[position][2]), *table.shape), []).append(position)
    for positions in shapes.values():
        yield np.array(positions), np.stack([found[position] for position in positions])


def _stratified(table: np.ndarray) -> np.ndarray:
    return table.reshape(-1, *table.shape[-2:])
