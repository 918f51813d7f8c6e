"""Discovery on continuous and mixed columns from one noisy moment matrix; everything after it is post-processing.

Theory: docs/theory/partial_correlation.md#searches.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import os
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import ndtr, ndtri

from jaxdp._base import check
from jaxdp.core import Account, Norm, Relation, Sensitivity, Sequential, public_shapes, release_opened
from jaxdp.data.chunks import Chunks
from jaxdp.data.dataset import Data, Domain
from jaxdp.data.records import Records, RecordsInChunks, as_records
from jaxdp.discovery.engine.checkpoint import described
from jaxdp.discovery.engine.directions import Rule, Trust, graph_by_one_release
from jaxdp.discovery.engine.hardly_nearer import hardly_nearer
from jaxdp.discovery.engine.knowledge import Knowledge, known
from jaxdp.discovery.engine.max_min_budget import Budget
from jaxdp.discovery.engine.near_copies import near_copies
from jaxdp.discovery.engine.session import searched
from jaxdp.discovery.engine.skeleton import CIQuery
from jaxdp.discovery.graph import Graph
from jaxdp.discovery.methods.table_pc import z_threshold
from jaxdp.discovery.spec import SearchAudit, SearchSpec, Setting, coded, search
from jaxdp.independence.continuous import moment_columns, validity
from jaxdp.independence.continuous.moment_test import CENTRE_SHARE, SCALE_SHARE
from jaxdp.independence.continuous.winsorised_rho import WinsorisedPartialCorrelation
from jaxdp.randomness import keys
from jaxdp.randomness.keys import Key
from jaxdp.statistics import moments, partial_correlations

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


LEVEL = 0.01
MAX_ORDER = 3
ARROWS = Rule(reversal=4.0, trust=Trust(2.11, 0.68, 1.03))  # measured: docs/discovery.md#arrow-shares
MODEL = (
    "Model: linear with normal errors, or any columns that monotone changes of scale make so nearly (normal copula); "
    "dependence that no correlation shows is not found (neighbour_pc looks for bends), and effects that bend strongly "
    "may leave extra edges."
)
HARDLY_NEARER = 0.1  # weakest line from which on graphs are as far as no edges: 1.0 of it at 0.118, 0.5 at 0.061
FEW = "With so few records at this budget the centres and scales are mostly noise: there may be false edges."


COPY = 0.97  # released correlation of two continuous columns from which on they are nearly copies
NARROW = (
    "No edge of {} could be found, nor is anything explained by it: by the noisy variance hardly any record differs "
    "from its centre, or its bounds are too wide."
)


def weakest_line(setting: Setting) -> float:
    """The correlation that a query just finds, as the share of records to move for independence: asin(r)/pi of them
    lie in the wrong quadrant. Coded columns alone have searches of their own."""
    if coded(setting.levels):
        return math.inf
    found = math.sqrt(2.0) * z_threshold(LEVEL) * correlation_sd(setting)
    return math.asin(min(1.0, found)) / math.pi


def correlation_sd(setting: Setting) -> float:
    """Predicted sd of one correlation, noise and sampling, from public numbers."""
    p, whole = setting.num_columns, Budget.of(setting.epsilon, setting.delta, Relation.REPLACE_ONE).whole
    mechanism = whole.share(1.0 - CENTRE_SHARE - SCALE_SHARE)
    euclidean = mechanism.norm is Norm.L2
    bound = moments.frobenius_bound(p) / math.sqrt(2.0) if euclidean else moments.l1_bound(p)
    noise = math.sqrt(float(mechanism.variance(Sensitivity(bound, mechanism.norm, Relation.REPLACE_ONE))))
    return moments.correlation_sd(setting.num_records, noise)


@search(
    SearchSpec(
        "moment_pc",
        "PC on one noisy moment matrix; recommended for continuous and mixed columns at small budgets, linear",
        accepts=lambda levels: len(levels) > 1,
        error=weakest_line,
        because=lambda setting: (
            "with so much noise for each column, or so large a table, it finds more lines than neighbour_pc, and no "
            "bends"
        ),
        takes=("delta", "max_order", "knowledge", "keep"),
        sums=True,
        audits=(SearchAudit(walked=False, neighbours="jaxdp.audit.searches:corners", one_release=True),),
    )
)
def moment_pc(
    key: Key,
    data: Any,
    *,
    epsilon: float,
    delta: float = 0.0,
    level: float = LEVEL,
    max_order: int | None = None,
    knowledge: Knowledge | None = None,
    levels: Sequence[int] | None = None,
    ledger: Account | None = None,
    keep: str | os.PathLike | None = None,
) -> Graph:
    """PC on partial correlations from one noisy moment matrix: one release, any number of queries.

    data: `Records`, the pair of `Schema.read_table`, or an array (n, d) with `levels=`; continuous columns on [-1, 1]
    (their bounds may be wide: centres and scales are private), coded ones, or both. Columns of more than two unordered
    levels count as indicators of all levels but the first.
    delta: 0 is pure epsilon; above, zCDP within (epsilon, delta), better from about six columns on.
    level: two-sided level of each query. max_order: largest conditioning set, default 3. keep: file for the
    answers, with which an interrupted search goes on (docs/discovery.md#interrupted).
    Edges go until at most 5 % of those that stay are expected to be there by chance. Directions follow from how much
    nearer to independence each common neighbour brings a pair, all triples together, from the same release. The
    graph's decisions hold the weakest partial correlation found for each pair, as the normal |z| of its p-value, and
    its q-value.
    Privacy: epsilon-DP, or (epsilon, delta)-DP, under replace-one (`WinsorisedPartialCorrelation`).
    Errors: ValueError before data are read.
    """
    keys.admit(key, data)
    records = as_records(data, levels)
    if len(records.columns) < 2:
        raise ValueError(f"a graph needs at least two columns, got {len(records.columns)}.")
    order = MAX_ORDER if max_order is None else max_order
    check.at_least(0, max_order=order)
    threshold, facts = z_threshold(level), known(knowledge, records.names)
    budget = Budget.of(epsilon, delta, Relation.REPLACE_ONE)
    test = WinsorisedPartialCorrelation(mechanism=budget.whole, features=True, enforce_rule=False)
    asked = described(records, Relation.REPLACE_ONE, level=level, max_order=order, knowledge=knowledge)

    def found(session, records):
        features = _features(records)
        released = release_opened(test, session.source, features)
        bare = dataclasses.replace(released, certificates=(), earlier=())
        found, narrow = _correlations(_last_stage(test, features), bare)
        scores = MomentScores(found, records.columns, budget.whole)
        graph, directions = graph_by_one_release(
            session, records, lambda asked: scores.scores(asked)[:, 1], threshold, order, facts, ARROWS
        )
        few = test.validity(public_shapes(features)).verdict == validity.REFUSE
        hidden = _names(records, narrow)
        caution = hardly_nearer(
            Setting(tuple(records.levels), records.num_records, epsilon, delta), weakest_line, HARDLY_NEARER
        )
        copies = near_copies(records.names, _copies(records, scores))
        said = [caution, copies, NARROW.format(hidden) * bool(hidden), MODEL, FEW * few, directions]
        return dataclasses.replace(graph, note=" ".join(filter(None, said)))

    return searched(
        key, "moment_pc", budget.cost(), records, found, ledger=ledger, keep=keep, asked=asked, knowledge=knowledge
    )


@jax.jit
def _correlations(test, release):
    """What the release says, and which columns of the matrix vary too little to say anything: public."""
    narrow = test.narrow_columns(release)
    return test.correlations(release, narrow), narrow


def _copies(records, scores: MomentScores) -> list[tuple[int, int]]:
    """Pairs of continuous columns whose released correlation is nearly 1."""
    numbers = [place for place, levels in enumerate(records.levels) if not levels]
    pairs = list(itertools.combinations(numbers, 2))
    found = scores.scores([(i, j, ()) for i, j in pairs])[:, 0] if pairs else np.zeros(0)
    return [pair for pair, value in zip(pairs, found, strict=True) if abs(value) >= COPY]


def _names(records, narrow) -> str:
    """The columns of which one of the matrix is narrow."""
    ends = np.cumsum([0, *map(moment_columns.width, records.columns)])
    hidden = [bool(np.any(np.asarray(narrow)[start:end])) for start, end in itertools.pairwise(ends)]
    return ", ".join(name for name, is_hidden in zip(records.names, hidden, strict=True) if is_hidden)


def _features(records: Records | RecordsInChunks) -> Data | Chunks:
    """All columns as features of one release."""
    if isinstance(records, RecordsInChunks):
        return records.chunks
    return Data(records.values, records.values, domain=Domain(records.columns, records.columns))


def _last_stage(test, features: Data | Chunks):
    """The stage that releases the matrix: its budget and layout, which are public."""
    shapes = public_shapes(features)
    test = test.specialize(shapes)
    while isinstance(test, Sequential):
        test = test.second.specialize(shapes)
    return test
