"""Answers of a search from one released moment matrix: how far partial correlations lie from zero, as normal |z|.

Theory: docs/theory/partial_correlation.md#searches.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import ndtr, ndtri

from jaxdp.discovery.engine.skeleton import CIQuery
from jaxdp.independence.continuous import moment_columns
from jaxdp.statistics import partial_correlations

BATCH = 256
LEAST = 1e-37  # p-value, near the smallest float32


@jax.jit
def _estimates(found, law, x, y, given):
    """Partial correlations and their p-values, noise counted: arrays (Q,).

    The noise of an estimate is a sum of many; one of the same variance has tails at least as heavy.
    """

    def one(x, y, given):
        null, _ = partial_correlations.partial_correlation(found, x, y, given)
        return null.value, null.sd, jnp.sqrt(jnp.sum(null.noise**2))

    value, sd, noise = jax.vmap(one)(x, y, given)
    return value, law.combined_p_value(value, sd, noise[:, None])


class MomentScores:
    """Scores of queries about nodes, each of which has one column of the matrix or several (indicators of levels).

    law: the mechanism that released the matrix, whose noise has that law.
    """

    def __init__(self, found: partial_correlations.Correlations, columns, law):
        self._found, self._law = found, law
        ends = np.cumsum([0, *map(moment_columns.width, columns)])
        self._columns = [range(start, end) for start, end in itertools.pairwise(ends)]
        self._size = int(ends[-1])

    def scores(self, queries: Sequence[CIQuery]) -> np.ndarray:
        """(Q, 2): partial correlation and |z| of each query; the strongest of several pairs, Bonferroni counted."""
        rows = [(k, x, y) for k, (i, j, _) in enumerate(queries) for x in self._columns[i] for y in self._columns[j]]
        given = np.zeros((len(queries), self._size), bool)
        for k, (_, _, nodes) in enumerate(queries):
            given[k, [column for node in nodes for column in self._columns[node]]] = True
        value, p_value = self._asked(np.array(rows), given)
        sizes = -ndtri(0.5 * np.clip(p_value, LEAST, 1.0))
        best = np.zeros((len(queries), 2))
        for (k, _, _), r, z in zip(rows, value, sizes, strict=True):
            if z >= best[k, 1]:
                best[k] = r, z
        counts = np.array([len(self._columns[i]) * len(self._columns[j]) for i, j, _ in queries])
        several = counts > 1
        best[several, 1] = -ndtri(np.minimum(0.5, counts[several] * ndtr(-best[several, 1])))
        return best

    def _asked(self, rows: np.ndarray, given: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Estimates of (query, x, y) rows, in batches of one compiled size."""
        found = []
        for start in range(0, len(rows), BATCH):
            part = rows[start : start + BATCH]
            full = np.concatenate([part, np.repeat(part[:1], BATCH - len(part), axis=0)])
            value, p_value = _estimates(
                self._found, self._law, *(jnp.asarray(v) for v in (full[:, 1], full[:, 2], given[full[:, 0]]))
            )
            found.append((np.asarray(value)[: len(part)], np.asarray(p_value, float)[: len(part)]))
        value, p_value = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return value, p_value
