"""Max-min scores of pairs of columns: the smallest score over the conditioning sets that a growing graph offers.

Theory: docs/theory/max_min_pc.md#minimum. Private, like the data.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from jaxdp.discovery.engine import counts
from jaxdp.discovery.engine.knowledge import Known
from jaxdp.discovery.engine.skeleton import CIQuery
from jaxdp.statistics.tables.excess import Excess, variation

MAX_CELLS = 2000  # of the table of a pair and its conditioning set; larger sets are not looked at
GUARD, MIN_VARIATION = 2.0, 0.2
Scores = Callable[[Sequence[CIQuery]], tuple[np.ndarray, np.ndarray]]


class MaxMinScores:
    """min over S of q(i, j | S), for all pairs of columns, kept up to date while edges are added.

    S runs over the empty set and all sets of at most `max_order` neighbours of i, or of j, in the graph so far, whose
    tables have at most MAX_CELLS cells. Which sets there are follows from public numbers and released edges alone.
    levels: of each column, 0 for a continuous one. scores: queries -> q and v of each, float64 (`TableScores`).
    minimum (d, d): the smallest q. guarded (d, d): the smallest max(q, 2 (0.2 v(empty) - v(S))), v the variation of the
    pair that S leaves: sets that all but fix one of the two columns cannot show independence.
    """

    def __init__(self, levels: Sequence[int], scores: Scores, max_order: int, known: Known):
        self._scores, self._max_order, self._known = scores, max_order, known
        self._levels = np.maximum(np.array(levels), 1)
        d = len(self._levels)
        self.adjacency = np.zeros((d, d), bool)
        self.minimum = np.full((d, d), math.inf)
        self.guarded = np.full((d, d), math.inf)
        self._variation = np.zeros((d, d))
        self.num_scores = 0
        self._lower([(i, j, ()) for i, j in itertools.combinations(range(d), 2)])

    def add(self, edges: Sequence[tuple[int, int]]) -> None:
        """Adds edges to the graph, and to every minimum the sets that are new."""
        before = self.adjacency.copy()
        for i, j in edges:
            self.adjacency[i, j] = self.adjacency[j, i] = True
        nodes = np.flatnonzero((self.adjacency & ~before).any(axis=1)).tolist()
        asked = (query for i in nodes for query in self._queries(i, set(np.flatnonzero(~before[i]).tolist())))
        self._lower(list(dict.fromkeys(asked)))

    def contrast(self, triples: Sequence[tuple[int, int, int]]) -> np.ndarray:
        """For each (i, k, j): the smallest q of i and j over sets without k, less that over sets with k.

        Over the sets of the graph as it is; infinite where no set with k is admitted.
        """
        pairs = {(i, j): [(i, j, ()), *self._both_sides(i, j)] for i, _, j in triples}
        asked = list(dict.fromkeys(itertools.chain(*pairs.values())))
        values = dict(zip(asked, self._scores(asked)[0].tolist(), strict=True))
        found = np.full(len(triples), math.inf)
        for place, (i, k, j) in enumerate(triples):
            within = [values[query] for query in pairs[i, j] if k in query[2]]
            if within:
                found[place] = min(values[query] for query in pairs[i, j] if k not in query[2]) - min(within)
        return found

    def _both_sides(self, i: int, j: int) -> list[CIQuery]:
        every = set(range(len(self._levels)))
        return [query for node, other in ((i, j), (j, i)) for query in self._queries(node, every, [other])]

    def _queries(self, i: int, new: set[int], others: Sequence[int] | None = None) -> Iterator[CIQuery]:
        """Queries about i and each other column given neighbours of i, at least one of which is in `new`."""
        neighbours = np.flatnonzero(self.adjacency[i]).tolist()
        sizes = range(1, self._max_order + 1)
        sets = [given for size in sizes for given in itertools.combinations(neighbours, size)]
        sets = [given for given in sets if not new.isdisjoint(given)]
        cells = [math.prod(self._levels[list(given)].tolist()) for given in sets]
        for j in range(len(self._levels)) if others is None else others:
            room = MAX_CELLS // int(self._levels[i] * self._levels[j])
            for given, size in zip(sets, cells, strict=True):
                if i != j and j not in given and size <= room and self._known.may_condition(i, j, given):
                    yield (i, j, given) if i < j else (j, i, given)

    def _lower(self, queries: list[CIQuery]) -> None:
        self.num_scores += len(queries)
        values, left = self._scores(queries)
        rows, columns = (np.array([query[side] for query in queries], int) for side in (0, 1))
        if queries and not queries[0][2]:
            self._variation[rows, columns] = left
        guards = GUARD * (MIN_VARIATION * self._variation[rows, columns] - left)
        for matrix, found in ((self.minimum, values), (self.guarded, np.maximum(values, guards))):
            np.minimum.at(matrix, (rows, columns), found)
            np.minimum.at(matrix, (columns, rows), found)


class TableScores:
    """The excess of the tables of queries about coded columns, and their variation."""

    def __init__(self, tables, excess: Excess):
        self._tables, self._excess, self._levels = tables, excess, np.array(tables.levels)

    def __call__(self, queries: Sequence[CIQuery]) -> tuple[np.ndarray, np.ndarray]:
        values, left = np.zeros(len(queries)), np.zeros(len(queries))
        for positions, batch in counts.batches(self._tables, queries, pad_from=1):
            pairs = self._levels[[queries[position][:2] for position in positions]]
            values[positions] = self._excess.of_tables(batch, pairs.prod(axis=1))
            left[positions] = variation(batch)
        return values, left


def rounding(excess: Excess, levels: Sequence[int], num_records: int) -> float:
    """Bound on the rounding error of every score, from public numbers."""
    return excess.rounding(num_records, max(MAX_CELLS, math.prod(sorted(levels)[-2:])))
