"""Query-by-query discovery by one sparse vector.

Theory: docs/theory/sparse_vector.md, docs/theory/priv_pc.md#number-of-rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxdp.core import Account, Relation
from jaxdp.data.records import as_records
from jaxdp.discovery.engine.counts import Counts
from jaxdp.discovery.engine.decision_query import Z, default_query, rounding
from jaxdp.discovery.engine.session import searched
from jaxdp.discovery.engine.skeleton import find_skeleton
from jaxdp.discovery.engine.sparse_loop import Values, require_certificate, until_above
from jaxdp.discovery.graph import Decision, Graph
from jaxdp.discovery.spec import AUDITED_Z, SearchAudit, SearchSpec, search
from jaxdp.mechanisms.sparse_vector import SparseVector
from jaxdp.randomness import keys
from jaxdp.randomness.keys import Key


@search(
    SearchSpec(
        "svt_pc",
        "PC by one sparse vector, for coded columns; without a level: edges of independent columns are not rare",
        audits=(SearchAudit(options={"z": AUDITED_Z}),),
    )
)
def svt_pc(
    key: Key,
    data: Any,
    *,
    epsilon: float,
    z: float = Z,
    max_order: int | None = None,
    raise_by: float = 0.0,
    levels: Sequence[int] | None = None,
    ledger: Account | None = None,
) -> Graph:
    """PC by one sparse vector over all queries, with exponential noise and one noisy threshold for all.

    A CI query is answered by the studentised number of `decision_query` in units of its own sensitivity; one that
    fires removes its edge, so at most d(d-1)/2 can fire and the budget never runs out.
    z: threshold in null standard deviations. raise_by: lifts the threshold, in units of the sensitivity
    (`SparseVector.caution(num_queries)` avoids about all false removals and costs power).
    Privacy: epsilon-DP under replace-one; a release key draws lattice noise (docs/theory/sparse_vector.md).
    Errors: ValueError before data are read.
    """
    mode = keys.admit(key, data)
    records = as_records(data, levels)
    error = rounding(records, z)
    sparse = SparseVector(epsilon=epsilon, max_above=max(1, records.num_pairs), error=error)
    require_certificate(mode, sparse)

    def found(session, records):
        counts, decision = Counts(records), default_query(z, records.num_records)
        state = sparse.init_opened(session.source, raise_by)
        decisions: list[Decision] = []

        values = Values(counts, decision.values)

        def ask(queries):
            nonlocal state
            state, answers = until_above(sparse, state, values.of(queries))
            decisions.extend(map(Decision.of, queries, answers))
            return answers

        search = find_skeleton(len(records.columns), ask, max_order=max_order, batched=False, ahead=True)
        return session.graph(records, search, tuple(decisions))

    return searched(key, "svt_pc", sparse.cost(Relation.REPLACE_ONE), records, found, ledger=ledger)
