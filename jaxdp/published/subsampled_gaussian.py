"""Sub-sampled Gaussian PC, the baseline of the Priv-PC paper for tight composition ("SG" in its section 4.2).

Every query is asked on a fresh subset with normal noise; a moments accountant adds the rounds up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp

from jaxdp._base import check
from jaxdp.accounting.convert import subsampled_gaussian_multiplier
from jaxdp.core import Account, Cost, Norm, Relation, Sensitivity
from jaxdp.data.records import as_records
from jaxdp.discovery.engine.counts import Counts
from jaxdp.discovery.engine.decision_query import Z, default_query, rounding
from jaxdp.discovery.engine.session import searched
from jaxdp.discovery.engine.skeleton import find_skeleton
from jaxdp.discovery.engine.sparse_loop import perturbed
from jaxdp.discovery.graph import Decision, Graph
from jaxdp.discovery.spec import AUDITED_DELTA, AUDITED_Z, SearchAudit, SearchSpec, search
from jaxdp.mechanisms import Gaussian
from jaxdp.randomness import keys
from jaxdp.randomness.keys import Key

TESTS_PER_PAIR = 5


@search(
    SearchSpec(
        "gaussian_pc",
        "PC by sub-sampled Gaussian noise",
        needs=("delta",),
        true_epsilon="as asked for, with delta",
        audits=(SearchAudit(options={"z": AUDITED_Z, "delta": AUDITED_DELTA, "max_tests": 4}, delta=AUDITED_DELTA),),
    )
)
def gaussian_pc(
    key: Key,
    data: Any,
    *,
    epsilon: float,
    delta: float,
    subset: int | None = None,
    max_tests: int | None = None,
    z: float = Z,
    max_order: int | None = None,
    levels: Sequence[int] | None = None,
    ledger: Account | None = None,
) -> Graph:
    """PC with normal noise on every query, each computed on a fresh uniform subset of the rows.

    subset: its size, default all rows. max_tests: queries reserved before the data are read (default five per pair);
    when they are used up the search stops with complete=False. The query is that of `decision_query`, which moves
    by at most 1 on any subset.
    Privacy: (epsilon, delta)-DP under replace-one by the Renyi divergences of the sub-sampled normal mechanism (Wang,
    Balle and Kasiviswanathan 2019); adaptive queries are allowed. A comparator: simulation keys only.
    Errors: ValueError before data are read.
    """
    mode = keys.admit(key, data)
    records = as_records(data, levels)
    check.positive(epsilon=epsilon)
    check.in_range(0.0, 1.0, delta=delta)
    if mode == keys.RELEASE:
        raise ValueError("gaussian_pc is a comparator for simulations; for a release use table_pc or svt_pc.")
    n, d = records.num_records, len(records.columns)
    subset = n if subset is None else subset
    check.at_least(1, subset=subset)
    if subset > n:
        raise ValueError(f"subset must be at most the {n} records, got {subset}.")
    rounds = max(1, TESTS_PER_PAIR * records.num_pairs) if max_tests is None else max_tests
    check.at_least(1, max_tests=rounds)
    multiplier = subsampled_gaussian_multiplier(epsilon, delta, num_records=n, subset=subset, rounds=rounds)
    cost = Cost(epsilon=float(epsilon), delta=float(delta), relation=Relation.REPLACE_ONE)
    one = Sensitivity(1.0, Norm.L2, Relation.REPLACE_ONE, rounding(records, z))

    def found(session, records):
        counts, decision = Counts(records), default_query(z, n, subset / n)
        noise = Gaussian(rho=0.5 / multiplier**2)
        decisions: list[Decision] = []

        def ask(queries):
            answers: list[bool | None] = []
            for query in queries:
                if len(decisions) == rounds:
                    return [*answers, None]
                for_subset, for_noise = session.source.fold_in(len(decisions)).split()
                tables = counts if subset == n else counts.subset(for_subset, subset, records)
                value = jnp.asarray(decision.value(tables, query), float)
                released = float(perturbed(noise, for_noise, value, one))
                answers.append(released >= 0.0)
                i, j, given = query
                decisions.append(Decision(i, j, given, released >= 0.0, released))
                if released >= 0.0:
                    break
            return answers

        search = find_skeleton(d, ask, max_order=max_order, batched=False, ahead=True)
        return session.graph(records, search, tuple(decisions))

    return searched(key, "gaussian_pc", cost, records, found, ledger=ledger)
