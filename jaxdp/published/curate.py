"""Adaptive budgets per order, a comparator in the style of CURATE: early orders decide more, so they get more.

Published idea (Bhattacharjee and Tandon, Entropy 26(11):946, 2024): at each order, divide what is left of the total
budget over this and the later orders so that the summed probability of wrong answers is least. Own formulas:
an answer is wrong with probability exp(-margin e)/2 at budget e; an error of an early order stays for all later
ones, so it weighs as many times as orders are left. Own accounting: a privacy filter, since the budgets depend on
earlier answers; the published implementation composes as if they were fixed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxdp._base import check
from jaxdp.accounting.filters import PureFilter
from jaxdp.accounting.ledger import BudgetExhausted
from jaxdp.core import Account, Cost, Norm, Relation, Sensitivity
from jaxdp.data.records import as_records
from jaxdp.discovery.engine.counts import Counts
from jaxdp.discovery.engine.decision_query import Z, default_query, rounding
from jaxdp.discovery.engine.session import searched
from jaxdp.discovery.engine.skeleton import CIQuery, find_skeleton
from jaxdp.discovery.engine.sparse_loop import Values, perturbed
from jaxdp.discovery.graph import Decision, Graph
from jaxdp.discovery.spec import AUDITED_Z, SearchAudit, SearchSpec, search
from jaxdp.mechanisms import Laplace
from jaxdp.randomness import keys
from jaxdp.randomness.keys import Key

MAX_ORDER = 2
EXPECTED_DEGREE = 3.0
ROUNDING = 1.0 - 2.0**-40  # shares are rounded down, so that their sum stays within the total


@search(
    SearchSpec(
        "adaptive_pc",
        "PC with budgets that adapt to the order of the query",
        true_epsilon="as asked for, by a filter",
        audits=(SearchAudit(options={"z": AUDITED_Z}),),
    )
)
def adaptive_pc(
    key: Key,
    data: Any,
    *,
    epsilon: float,
    z: float = Z,
    max_order: int = MAX_ORDER,
    expected_degree: float = EXPECTED_DEGREE,
    margin: float | None = None,
    levels: Sequence[int] | None = None,
    ledger: Account | None = None,
) -> Graph:
    """PC with one noisy answer per query; the budget of each order adapts to the graph found so far (CURATE).

    The query is the studentised one of `decision_query`, in units of its sensitivity, with Laplace noise.
    expected_degree: public guess of neighbours per column, for the number of queries of later orders.
    margin: public guess of how far a query lies from its threshold, in units of its sensitivity; default sqrt(n)/10.
    Privacy: epsilon-DP under replace-one, by a filter (`PureFilter`: sums hold for adaptively chosen budgets). Each
    query is reserved before it is answered; when the next does not fit the search stops with complete=False.
    Errors: ValueError before data are read.
    """
    keys.admit(key, data)
    records = as_records(data, levels)
    check.positive(epsilon=epsilon, expected_degree=expected_degree)
    check.at_least(0, max_order=max_order)
    n, d = records.num_records, len(records.columns)
    margin = math.sqrt(max(n, 1)) / 10.0 if margin is None else margin
    check.positive(margin=margin)
    error = rounding(records, z)

    def found(session, records):
        budget = PureFilter(epsilon=epsilon)
        values = Values(Counts(records), default_query(z, n).values)
        plan = _Plan(budget, float(epsilon) * ROUNDING, d, max_order, expected_degree, margin)
        end = 16.0 * (n + 16.0)
        one = Sensitivity(1.0, Norm.L1, Relation.REPLACE_ONE, error, -end, end)
        decisions: list[Decision] = []

        def ask(queries):
            answers: list[bool | None] = []
            for query, value in zip(queries, values.of(queries), strict=True):
                each = plan.reserve(query)
                if each is None:
                    return [*answers, None]
                own = session.source.fold_in(len(decisions))
                released = float(perturbed(Laplace(each), own, jnp.asarray(value, float), one))
                independent = released >= 0.0
                answers.append(independent)
                plan.heard(query, independent)
                i, j, given = query
                decisions.append(Decision(i, j, given, independent, released, each))
                if independent:
                    break
            return answers

        search = find_skeleton(d, ask, max_order=max_order, batched=False, ahead=True)
        return session.graph(records, search, tuple(decisions))

    return searched(key, "adaptive_pc", PureFilter(epsilon=epsilon).guarantee, records, found, ledger=ledger)


class _Plan:
    """The budget of a query of the current order; public, since it follows from released answers."""

    def __init__(self, budget, total: float, num_columns: int, last: int, expected_degree: float, margin: float):
        self._budget, self._total, self._last, self._margin = budget, total, min(last, num_columns - 2), margin
        self._degree = expected_degree
        self._adjacency = ~np.eye(num_columns, dtype=bool)
        self._order, self._each = -1, 0.0

    def reserve(self, query: CIQuery) -> float | None:
        """What this query may spend, reserved; None where it does not fit."""
        order = len(query[2])
        if order != self._order:
            self._order, self._each = order, self._share(order)
        try:
            self._budget.spend(Cost(self._each, 0.0, self._each**2 / 2, Relation.REPLACE_ONE))
        except BudgetExhausted:
            return None
        return self._each

    def heard(self, query: CIQuery, independent: bool) -> None:
        """Keeps the graph up to date."""
        if independent:
            i, j, _ = query
            self._adjacency[i, j] = self._adjacency[j, i] = False

    def _share(self, order: int) -> float:
        orders = range(order, self._last + 1)
        expected = [max(1.0, self._queries(later, later > order)) for later in orders]
        weights = [float(self._last + 1 - later) for later in orders]
        left = self._total - float(self._budget.spent.epsilon)
        return order_budgets(max(left, 1e-9), expected, weights, self._margin)[0] * ROUNDING

    def _queries(self, order: int, later: bool) -> float:
        """Conditioning sets of this size over the edges of the graph: a bound now, a guess for later orders."""
        total = 0.0
        for i, j in np.argwhere(np.triu(self._adjacency)):
            for node in (i, j):
                neighbours = float(self._adjacency[node].sum()) - 1.0
                if later:
                    neighbours = min(neighbours, self._degree)
                total += _choose(neighbours, order)
        if order == 0:
            return total / 2.0
        edges = np.triu(self._adjacency).sum()
        expected_edges = len(self._adjacency) * self._degree / 2.0
        return total * min(1.0, expected_edges / max(edges, 1.0)) if later else total


def order_budgets(total: float, queries: Sequence[float], weights: Sequence[float], margin: float) -> list[float]:
    """Budget e of one query of each order: least sum of weight queries exp(-margin e)/2, sum queries e = total.

    Stationary: margin weight exp(-margin e) is equal for all orders with e > 0, so e = base + log(weight)/margin;
    orders that would get less than nothing get nothing.
    """
    counts, offsets = np.array(queries, float), np.log(np.array(weights, float)) / margin
    active = np.ones(len(counts), bool)
    while True:
        base = (total - np.sum(counts[active] * offsets[active])) / np.sum(counts[active])
        budgets = np.where(active, base + offsets, 0.0)
        if np.all(budgets[active] > 0):
            return budgets.tolist()
        active &= budgets > 0


def _choose(available: float, size: int) -> float:
    """Binomial coefficient, also for fractions."""
    if available < size:
        return 0.0
    return math.exp(math.lgamma(available + 1) - math.lgamma(size + 1) - math.lgamma(available - size + 1))
