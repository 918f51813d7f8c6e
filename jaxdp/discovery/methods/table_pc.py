"""Discovery from one noisy histogram: released once, everything after it is post-processing. The default.

Theory: docs/theory/table_pc.md#histogram.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Sequence
from typing import Any, ClassVar

import jax
import numpy as np

from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Account, Norm, PrivateQuery, Relation, Sensitivity, release_opened
from jaxdp.data.dataset import ORDINAL
from jaxdp.data.records import Records, RecordsInChunks, as_records
from jaxdp.discovery.engine.checkpoint import described
from jaxdp.discovery.engine.counts import JOINT_CELLS, NoisyCounts
from jaxdp.discovery.engine.directions import Rule, Trust, graph_by_one_release
from jaxdp.discovery.engine.knowledge import Knowledge, known
from jaxdp.discovery.engine.session import searched
from jaxdp.discovery.engine.table_scores import INFORMATIVE, Statistic, by_kind, scores
from jaxdp.discovery.graph import Graph
from jaxdp.discovery.spec import SearchAudit, SearchSpec, Setting, search
from jaxdp.mechanisms import Geometric
from jaxdp.randomness import keys
from jaxdp.randomness.keys import Key
from jaxdp.statistics import sums
from jaxdp.statistics.tables import contingency

LEVEL = 1e-4
# A replacement takes one record from one cell and puts it into another; an arrival fills one cell.
HISTOGRAM_BOUNDS = {Relation.REPLACE_ONE: 2, Relation.ADD_OR_REMOVE_ONE: 1}
EQUAL_SDS = 3.2  # of the noise, from which draws of `max_min_pc` find as much (docs/theory/max_min_pc.md#choice)
ARROWS = Rule(trust=Trust(1.93, per_leftover=1.12))  # measured: docs/discovery.md#arrow-shares
RANGE_SCALES = 64  # the public range leaves this many noise scales on both sides, so that clipping does not bias


@frozen_pytree
class NoisyHistogram(PrivateQuery):
    """Releases the joint table of all columns with two-sided geometric noise in every cell.

    Sensitivity: 2 in L1 under replace-one, 1 under add-or-remove-one. Privacy: epsilon-DP.
    levels: public number of levels of each column.
    """

    levels: tuple[int, ...] = jax.tree.static(default=())
    relation: Relation = jax.tree.static(default=Relation.REPLACE_ONE)
    max_records: int = jax.tree.static(default=10**9)

    method: ClassVar[str] = "NoisyHistogram"
    default_mechanism = Geometric

    def statistic(self, key, data):
        """Exact integer table of shape `levels`."""
        del key
        if isinstance(data.values, jax.core.Tracer):
            return contingency.table([data.values[:, j] for j in range(len(self.levels))], self.levels)
        return contingency.joint_table(data.values, self.levels)

    def partial(self, chunk, num_records=None):
        """The joint table of a chunk, `Records` or the columns of x."""
        del num_records
        values = np.asarray(chunk.values if isinstance(chunk, Records) else chunk.x)
        return sums.table([values[:, j] for j in range(len(self.levels))], self.levels)

    def finish(self, totals):
        return totals

    def sensitivity(self, num_records):
        size = num_records if self.relation is Relation.REPLACE_ONE else self.max_records
        bound = HISTOGRAM_BOUNDS[self.relation]
        slack = RANGE_SCALES * math.ceil(bound / float(check.budget(self.mechanism_in_force().epsilon)))
        return Sensitivity(bound, Norm.L1, self.relation, lower=-slack, upper=size + slack)


def geometric_variance(scale: float) -> float:
    """Variance of two-sided geometric noise with P(k) proportional to exp(-|k|/scale)."""
    ratio = math.exp(-1.0 / scale)
    return 2.0 * ratio / (1.0 - ratio) ** 2


def _weakest(setting: Setting) -> float:
    """Noise of a covariance of two columns in rows, and half a root of n for chance, as a share of the records.

    Two binary columns: the rows that must move are 2 |N11 N22 - N12 N21|/n, which noise of variance 8/epsilon^2 in each
    of the J joint cells enters with gradients of about 1/4. `EQUAL_SDS` of them were as good as the draws of
    `max_min_pc` in its formula, on random networks.
    """
    cells = math.prod(setting.levels)
    if cells > JOINT_CELLS:
        return math.inf
    noise = EQUAL_SDS * math.sqrt(8.0 * cells) / (2.0 * setting.epsilon)
    return (noise + 0.5 * math.sqrt(setting.num_records)) / max(setting.num_records, 1)


@search(
    SearchSpec(
        "table_pc",
        "PC on one noisy joint table; recommended where the table fits",
        error=_weakest,
        takes=("max_order", "knowledge", "keep"),
        sums=True,
        audits=(
            SearchAudit(options={"level": 0.05}, walked=False, pilot="adaptive_pc"),
            SearchAudit("numbers", walked=False, neighbours="jaxdp.audit.searches:rising", one_release=True),
        ),
    )
)
def table_pc(
    key: Key,
    data: Any,
    *,
    epsilon: float,
    relation: Relation = Relation.REPLACE_ONE,
    max_order: int | None = None,
    level: float = LEVEL,
    statistic: Statistic | None = None,
    min_variance: float = INFORMATIVE,
    knowledge: Knowledge | None = None,
    levels: Sequence[int] | None = None,
    ledger: Account | None = None,
    keep: str | os.PathLike | None = None,
) -> Graph:
    """PC on a noisy joint histogram: one release, any number of tests.

    data: `Records`, the pair of `Schema.read_table`, or codes (n, d) with `levels=`; coded columns only, with
    at most 2^20 joint cells. Every test is studentised with its null variance plus the known noise variance.
    level: two-sided level of each test. statistic: "kendall", for binary and ordered columns, or "chi2" or "g", which
    use no order; default: Kendall's for two columns that are binary or ordered, else chi-squared. min_variance: see
    `table_scores.scores`. knowledge: required and forbidden edges and an order in time. keep: file for the noisy table,
    with which an interrupted search goes on (docs/discovery.md#interrupted).
    Directions follow from how much nearer to independence each common neighbour brings a pair, all triples together,
    from the same release.
    Each decision has the q-value of the test that decided: its p-value, noise included, adjusted for the number of
    pairs (Benjamini-Hochberg); edges go until at most 5 % of those that stay are expected to be there by chance.
    Privacy: epsilon-DP for the relation (discrete Laplace noise of scale 2/epsilon per cell, 1/epsilon under
    add-or-remove-one); sensitivity 2 (1) in L1.
    Errors: ValueError before data are read (budget, too many cells, continuous columns).
    """
    keys.admit(key, data)
    records = as_records(data, levels)
    query = NoisyHistogram(epsilon=epsilon, levels=_coded_levels(records), relation=relation)
    threshold, facts = z_threshold(level), known(knowledge, records.names)
    settings = {"level": level, "statistic": statistic, "min_variance": min_variance, "max_order": max_order}
    asked = described(records, relation, knowledge=knowledge, **settings)

    def found(session, records):
        held = records.chunks if isinstance(records, RecordsInChunks) else records
        released = release_opened(query, session.source, held)
        joint = np.asarray(released.value, np.float64)
        noisy = NoisyCounts(joint, geometric_variance(HISTOGRAM_BOUNDS[relation] / float(epsilon)))
        ordered = [column.levels <= 2 or column.kind == ORDINAL for column in records.columns]

        def sizes(queries):
            if statistic is None:
                return by_kind(noisy, queries, ordered, min_variance)
            return scores(noisy, queries, statistic, min_variance)

        graph, directions = graph_by_one_release(session, records, sizes, threshold, max_order, facts, ARROWS)
        return dataclasses.replace(graph, note=directions)

    return searched(
        key,
        "table_pc",
        query.mechanism_in_force().cost(relation),
        records,
        found,
        ledger=ledger,
        keep=keep,
        asked=asked,
        knowledge=knowledge,
    )


def z_threshold(level: float) -> float:
    """Two-sided normal quantile of a level."""
    from scipy.special import ndtri  # all of scipy.stats takes as long to import as JAX

    check.in_range(0.0, 1.0, level=level)
    return float(-ndtri(0.5 * level))


def _coded_levels(records) -> tuple[int, ...]:
    if 0 in records.levels:
        name = records.names[records.levels.index(0)]
        raise ValueError(f"column {name!r} is continuous: table_pc takes coded columns; use pc with PartitionGCM.")
    cells = math.prod(records.levels)
    if cells > JOINT_CELLS:
        raise ValueError(
            f"the joint table has {cells} cells, more than {JOINT_CELLS}: noise would drown it; use svt_pc, "
            "or fewer columns."
        )
    return records.levels
