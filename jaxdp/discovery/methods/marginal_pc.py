"""Discovery from all noisy tables of w columns: for more columns than one joint table can hold.

Theory: docs/theory/table_pc.md#marginals (w-way marginals, Gaussian noise, zCDP).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Account, Norm, PrivateQuery, Relation, Sensitivity, release_opened
from jaxdp.data.records import as_records
from jaxdp.discovery.engine.session import searched
from jaxdp.discovery.engine.skeleton import find_skeleton
from jaxdp.discovery.engine.table_scores import INFORMATIVE, Statistic, scores
from jaxdp.discovery.graph import Graph
from jaxdp.discovery.methods.table_pc import LEVEL, z_threshold
from jaxdp.discovery.spec import AUDITED_DELTA, SearchAudit, SearchSpec, search
from jaxdp.mechanisms import Gaussian
from jaxdp.randomness import keys
from jaxdp.randomness.keys import Key
from jaxdp.statistics.tables import contingency

MAX_CELLS = 1 << 22
MAX_RECORDS = 10**9
RANGE_SDS = 64


@frozen_pytree
class NoisyMarginals(PrivateQuery):
    """Releases the tables of every `width` columns with normal noise, as one vector.

    Sensitivity: a replacement moves two cells of each of the K tables by 1, so sqrt(2 K) in L2; an arrival
    moves one, sqrt(K). Privacy: rho-zCDP with mechanism=Gaussian(rho); epsilon is infinite.
    """

    levels: tuple[int, ...] = jax.tree.static(default=())
    width: int = jax.tree.static(default=3)
    relation: Relation = jax.tree.static(default=Relation.REPLACE_ONE)

    method: ClassVar[str] = "NoisyMarginals"

    def statistic(self, key, data):
        """Exact counts, int32: one padded histogram per table, cut to its cells."""
        del key
        codes = jnp.stack([contingency.as_codes(data.values[:, k], n) for k, n in enumerate(self.levels)])
        chosen, strides, sizes = self._layout()

        def count(table):
            columns, stride = table
            code = jnp.sum(codes[columns] * stride[:, None], axis=0)
            return jax.ops.segment_sum(jnp.ones(code.shape, jnp.int32), code, max(sizes))

        padded = jax.lax.map(count, (jnp.asarray(chosen), jnp.asarray(strides)))
        inside = np.arange(max(sizes)) < np.array(sizes)[:, None]
        return padded.ravel()[np.flatnonzero(inside)]

    def _layout(self):
        """Columns (K, w), mixed-radix strides (K, w) and number of cells of each table."""
        chosen = np.array(self.tables(), np.int32).reshape(-1, self.width)
        levels = np.array(self.levels, np.int32)[chosen]
        strides = np.concatenate([np.cumprod(levels[:, :0:-1], axis=1)[:, ::-1], np.ones((len(levels), 1))], axis=1)
        return chosen, strides.astype(np.int32), [int(size) for size in np.prod(levels, axis=1)]

    def sensitivity(self, num_records):
        size = num_records if self.relation is Relation.REPLACE_ONE else MAX_RECORDS
        moved = 2 if self.relation is Relation.REPLACE_ONE else 1
        bound = math.sqrt(moved * len(self.tables()))
        plain = Sensitivity(bound, Norm.L2, self.relation)
        slack = math.ceil(RANGE_SDS * float(self.mechanism_in_force().scale(plain)))
        return Sensitivity(bound, Norm.L2, self.relation, lower=-slack, upper=size + slack)

    def tables(self) -> list[tuple[int, ...]]:
        """The sets of columns, in lexicographic order."""
        return list(itertools.combinations(range(len(self.levels)), self.width))


class NoisyTables:
    """Tables of few columns from released ones: averages over every released table that holds the columns."""

    def __init__(self, tables: dict[tuple[int, ...], np.ndarray], levels: tuple[int, ...], variance: float):
        self._tables, self.levels, self._variance = tables, levels, variance

    def pair_given(self, i: int, j: int, given) -> np.ndarray:
        """Noisy table of i against j within the levels of `given`, float64, inverse-variance weighted."""
        columns = (*given, i, j)
        parts = [(self._tables[key], key) for key in self._holding(columns)]
        weights = np.array([1.0 / table.size for table, _ in parts])
        summed = [contingency.marginal(table, [key.index(k) for k in columns]) for table, key in parts]
        mean = sum(weight * part for weight, part in zip(weights / weights.sum(), summed, strict=True))
        return mean.reshape(-1, *mean.shape[-2:])

    def noise_variance(self, i: int, j: int, given) -> float:
        """Variance of the noise of one cell of `pair_given`."""
        columns = (*given, i, j)
        kept = math.prod(self.levels[k] for k in columns)
        return self._variance / sum(kept / self._tables[key].size for key in self._holding(columns))

    def _holding(self, columns) -> list[tuple[int, ...]]:
        wanted = set(columns)
        return [key for key in self._tables if wanted <= set(key)]


@search(
    SearchSpec(
        "marginal_pc",
        "PC on noisy marginal tables",
        needs=("rho",),
        audits=(
            SearchAudit(
                build="jaxdp.audit.searches:noisy_marginals", walked=False, delta=AUDITED_DELTA, pilot="adaptive_pc"
            ),
        ),
    )
)
def marginal_pc(
    key: Key,
    data: Any,
    *,
    rho: float,
    width: int = 3,
    relation: Relation = Relation.REPLACE_ONE,
    max_order: int | None = None,
    level: float = LEVEL,
    statistic: Statistic = "kendall",
    min_variance: float = INFORMATIVE,
    levels: Sequence[int] | None = None,
    ledger: Account | None = None,
) -> Graph:
    """PC on the noisy tables of every `width` columns: one release, any number of tests given up to width - 2 columns.

    Otherwise as `table_pc`. Privacy: rho-zCDP (never a pure epsilon: the graph's cost says epsilon=inf and its rho),
    L2 sensitivity sqrt(2 C(d, width)) under replace-one, sqrt(C(d, width)) under add-or-remove-one.
    Errors: ValueError before data are read (budget, continuous columns, too many cells, width).
    """
    keys.admit(key, data)
    records = as_records(data, levels)
    check.at_least(2, width=width)
    d = len(records.columns)
    if width > d:
        raise ValueError(f"width must be at most the {d} columns, got {width}.")
    if 0 in records.levels:
        raise ValueError("marginal_pc takes coded columns and some are continuous: use pc with PartitionGCM.")
    if max_order is not None and max_order > width - 2:
        raise ValueError(f"tables of {width} columns answer orders up to {width - 2}, got max_order={max_order}.")
    query = NoisyMarginals(mechanism=Gaussian(rho=rho), levels=records.levels, width=width, relation=relation)
    sizes = [math.prod(records.levels[k] for k in columns) for columns in query.tables()]
    if sum(sizes) > MAX_CELLS:
        raise ValueError(f"{len(sizes)} tables have {sum(sizes)} cells, more than {MAX_CELLS}; give a smaller width.")
    threshold = z_threshold(level)

    def found(session, records):
        released = release_opened(query, session.source, records)
        pieces = np.split(np.asarray(released.value, np.float64), np.cumsum(sizes)[:-1])
        shapes = {columns: tuple(records.levels[k] for k in columns) for columns in query.tables()}
        tables = {columns: piece.reshape(shapes[columns]) for columns, piece in zip(shapes, pieces, strict=True)}
        variance = float(query.mechanism_in_force().variance(query.sensitivity(records.num_records)))
        noisy = NoisyTables(tables, records.levels, variance)

        def ask(queries):
            return list(scores(noisy, queries, statistic, min_variance) < threshold)

        search = find_skeleton(d, ask, max_order=width - 2 if max_order is None else max_order, batched=True)
        return session.graph(records, search)

    return searched(key, "marginal_pc", query.mechanism_in_force().cost(relation), records, found, ledger=ledger)
