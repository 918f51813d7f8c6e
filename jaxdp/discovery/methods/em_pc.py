"""EM-PC: at every vertex and order, an exponential mechanism draws which edges to remove.

Theory: docs/theory/em_pc.md (the tractable form that is private).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from jaxdp._base import check
from jaxdp.core import Account, Cost, Norm, Relation, Sensitivity
from jaxdp.data.records import as_records
from jaxdp.discovery.engine.counts import Counts
from jaxdp.discovery.engine.decision_query import Z, default_query
from jaxdp.discovery.engine.knowledge import Known
from jaxdp.discovery.engine.session import searched
from jaxdp.discovery.engine.skeleton import Skeleton, counted
from jaxdp.discovery.graph import Decision, Graph
from jaxdp.discovery.spec import AUDITED_Z, SearchAudit, SearchSpec, search
from jaxdp.mechanisms import ExponentialMechanism
from jaxdp.noise.source import Source
from jaxdp.randomness import keys
from jaxdp.randomness.keys import Key

MAX_ORDER = 2
COUNT_SHARE = 0.5  # of a call's budget, for how many edges to remove; the rest picks them


@search(
    SearchSpec(
        "em_pc",
        "EM-PC: conditioning sets by the exponential mechanism, corrected",
        audits=(SearchAudit(options={"z": AUDITED_Z, "max_order": 1}, pilot="svt_pc"),),
    )
)
def em_pc(
    key: Key,
    data: Any,
    *,
    epsilon: float,
    z: float = Z,
    max_order: int = MAX_ORDER,
    levels: Sequence[int] | None = None,
    ledger: Account | None = None,
) -> Graph:
    """PC in which exponential mechanisms draw the edges to remove, one draw per vertex and order.

    Score of a neighbour j: s_j = max over conditioning sets of the studentised query, in units of its
    sensitivity, so that every order statistic of the scores moves by at most 1. A call draws the number beta
    of removals with score -max(0, -s_(beta), s_(beta + 1)), then beta neighbours by peeling on s_j.
    The d(max_order + 1) calls are reserved before the data are read, each at an equal share of epsilon.
    A draw picks a neighbour together with the set that separates it, so that colliders are oriented at no further cost.
    The greedy score of the paper has no form here: no epsilon is true for it (docs/theory/em_pc.md#what-was-wrong).
    Privacy: epsilon-DP under replace-one, Linf bound 1 of every score; works with release keys.
    """
    keys.admit(key, data)
    check.positive(epsilon=epsilon)
    check.at_least(0, max_order=max_order)
    records = as_records(data, levels)
    d = len(records.columns)
    call = check.share(epsilon, Fraction(1, d * (max_order + 1)))
    cost = Cost(epsilon=float(epsilon), delta=0.0, rho=float(epsilon) ** 2 / 2, relation=Relation.REPLACE_ONE)

    def found(session, records):
        counts, decision = Counts(records), default_query(z, records.num_records)
        scored = counted(lambda queries: decision.values(counts, queries))
        search = Skeleton(~np.eye(d, dtype=bool), {}, (), 0, Known.nothing(d))
        decisions: list[Decision] = []
        calls = iter(session.source.split(d * (max_order + 1)))
        for order, i in itertools.product(range(max_order + 1), range(d)):
            call_source = next(calls)
            neighbours = [int(j) for j in np.flatnonzero(search.adjacency[i])]
            if len(neighbours) <= order:
                continue
            queries = [
                (i, j, given)
                for j in neighbours
                for given in itertools.combinations([k for k in neighbours if k != j], order)
            ]
            search.num_tests += len(queries)
            owners = np.array([j for _, j, _ in queries])
            error = _rounding(records.num_records, records.levels, order)
            for position in removals(call_source, np.asarray(scored(queries), float), call, error, owners):
                _, j, given = queries[position]
                search.adjacency[i, j] = search.adjacency[j, i] = False
                pair = (min(i, j), max(i, j))
                search.separators[pair] = given
                decisions.append(Decision(*pair, given, True, None, call))
        return session.graph(records, search, tuple(decisions))

    return searched(key, "em_pc", cost, records, found, ledger=ledger)


def count_scores(scores: np.ndarray) -> np.ndarray:
    """Score of removing beta = 0, ..., len(scores) edges: -max(0, -s_(beta), s_(beta + 1)), 1-Lipschitz."""
    ranked = np.concatenate([[np.inf], np.sort(scores)[::-1], [-np.inf]])
    return -np.maximum(0.0, np.maximum(-ranked[:-1], ranked[1:]))


def removals(
    source: Source, scores: np.ndarray, epsilon: float, error: float = 0.0, owners: np.ndarray | None = None
) -> list[int]:
    """Positions of the scores that one call picks, at most one per owner (default: every score its own).

    The number of picks follows the largest score of each owner, every pick all scores of the owners that are left.
    epsilon-DP for scores that move by at most 1 (Linf): half for the number, the rest divided over the picks.
    """
    one = Sensitivity(1.0, Norm.LINF, Relation.REPLACE_ONE, error=error)
    owners = np.arange(len(scores)) if owners is None else owners
    best = np.array([scores[owners == owner].max() for owner in dict.fromkeys(owners.tolist())])
    for_count, for_picks = source.split()
    draw_count = ExponentialMechanism(epsilon=COUNT_SHARE * epsilon)
    beta = int(draw_count.perturb(for_count, count_scores(best), one))
    left, picked = np.arange(len(scores)), []
    for for_pick in for_picks.split(len(best))[:beta]:
        draw_pair = ExponentialMechanism(epsilon=check.share((1.0 - COUNT_SHARE) * epsilon, Fraction(1, beta)))
        picked.append(int(left[int(draw_pair.perturb(for_pick, scores[left], one))]))
        left = left[owners[left] != owners[picked[-1]]]
    return picked


def _rounding(num_records: int, levels: tuple[int, ...], order: int) -> float:
    """Bound on the float64 rounding of a query: a sum over at most this many strata."""
    strata = math.prod(sorted(levels, reverse=True)[:order]) + 8.0
    return strata * num_records * 2.0**-53
