"""The PC algorithm with any test: ours, a callable, another library's, or an oracle."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jaxdp._base import check
from jaxdp.accounting.ledger import BudgetExhausted
from jaxdp.accounting.optimal import optimal_epsilon
from jaxdp.catalogue import wants_scores
from jaxdp.core import Account, Cost, PrivateTest, Relation, cost_of, method_of, run_opened
from jaxdp.data.records import Records, as_records
from jaxdp.discovery.engine.answerable import require_answerable
from jaxdp.discovery.engine.counts import Counts
from jaxdp.discovery.engine.knowledge import Knowledge, known
from jaxdp.discovery.engine.session import Session, searched
from jaxdp.discovery.engine.skeleton import CIQuery, find_skeleton, last_order
from jaxdp.discovery.engine.table_scores import INFORMATIVE, Statistic, scores
from jaxdp.discovery.graph import Decision, Graph
from jaxdp.discovery.methods.table_pc import LEVEL, z_threshold
from jaxdp.discovery.metrics import _arcs
from jaxdp.discovery.spec import require_outside
from jaxdp.privacy import Claim
from jaxdp.randomness import keys
from jaxdp.randomness.keys import Key

NOT_PRIVATE = Cost(epsilon=float("inf"), delta=0.0, rho=float("inf"), relation=Relation.REPLACE_ONE)


@dataclasses.dataclass(frozen=True)
class DSeparation:
    """Oracle for PC: d-separation in a known DAG (a bool (d, d) array, a Network or a networkx graph)."""

    graph: Any

    def answers(self, queries: Sequence[CIQuery]) -> list[bool]:
        """True where the pair is d-separated by the set."""
        dag = _arcs(self.graph)
        return [d_separated(dag, i, j, given) for i, j, given in queries]


@dataclasses.dataclass(frozen=True)
class StratifiedTest:
    """Non-private test of coded columns on exact tables: "kendall" (conditional Kendall), "chi2" or "g".

    min_variance: see `table_scores.scores`; 0 is the classical rule.
    """

    statistic: Statistic = "kendall"
    level: float = LEVEL
    min_variance: float = INFORMATIVE


def pc(
    key: Key,
    data: Any,
    *,
    test: Any = "kendall",
    level: float = LEVEL,
    max_order: int | None = None,
    stable: bool = True,
    max_tests: int | None = None,
    delta: float = 0.0,
    knowledge: Knowledge | None = None,
    levels: Sequence[int] | None = None,
    ledger: Account | None = None,
    progress: bool = False,
) -> Graph:
    """PC with a plug-in test; returns its CPDAG.

    test: "kendall", "chi2" or "g" (exact tables), `StratifiedTest`, `DSeparation`, any private test of the package
    (`PartitionGCM(epsilon=0.1)`, for continuous and mixed columns too), or a callable (i, j, given) -> p-value,
    (statistic, p-value) or bool, such as an instance of causal-learn's CIT classes.
    level: p-values above it mean independence. stable: order-independent candidate sets (PC-stable).
    max_tests: required with a private test; that many times its cost is reserved before data are read, and
    the search stops with complete=False when they are used up. Repeated queries are answered from memory.
    delta: > 0 composes the max_tests equal runs by the exact optimum (Kairouz, Oh and Viswanath; early stops are
    allowed), instead of the plain sum. Budgets of other kinds: test=jaxdp.interop.PrivateQueries(..., budget=filter),
    which asks, pays and remembers by itself; the graph then has its guarantee and its mode,
    and says how many answers are its policy's (complete=False).
    knowledge: required and forbidden edges and an order in time; what it settles is never asked.
    progress: shows a bar on standard error.
    Errors: before anything is spent, `CoarseCells` if the test would refuse a query of the orders up to max_order.
    Privacy: that of max_tests runs of the test by sequential composition; epsilon is infinite otherwise
    (non-private tests need a simulation key).
    """
    require_outside("pc", key, data, levels)
    keys.admit(key, data)
    records = as_records(data, levels) if data is not None else _columns_of(test)
    facts = known(knowledge, records.names)
    last = last_order(len(records.columns), max_order)
    if hasattr(test, "p_value"):
        require_answerable(getattr(test, "test", None) if _pays_itself(test) else test, records, last)
    ask_of, cost, batched = _asker(test, level, max_tests, delta, records, last)
    releases = np.isfinite(float(cost.epsilon)) or np.isfinite(float(cost.rho))
    if keys.admit(key) == keys.RELEASE and not releases:
        raise ValueError("this test is not private, so nothing may be released with it; use jax.random.key(seed).")
    settings = {"max_order": max_order, "stable": stable, "batched": batched, "progress": progress, "known": facts}

    def found(session, records):
        decisions: dict[CIQuery, Decision] = {}
        ask = _remembering(ask_of(session), decisions)
        search = find_skeleton(len(records.columns), ask, **settings)
        graph = session.graph(records, search, tuple(decisions.values()))
        return _as_paid(graph, test) if _pays_itself(test) else graph

    def rehearse(session, blank):
        if not _pays_itself(test):
            _rehearse(test, session, blank, last)

    name = test if isinstance(test, str) else method_of(test)
    return searched(key, f"pc[{name}]", cost, records, found, ledger=ledger, rehearse=rehearse, knowledge=knowledge)


def _rehearse(test, session: Session, blank: Records, last: int) -> None:
    """A query of each kind of pair, given nothing, one column and as many as will be: the largest asks for most."""
    others = range(len(blank.columns))
    for place, (i, j) in enumerate(_kinds_of_pairs(blank)):
        for order in sorted({0, min(1, last), last} if place == 0 else {0}):
            given = [k for k in others if k not in (i, j)][: max(order, 0)]
            run_opened(test, session.source.fold_in(place), blank.query(i, j, given, wants_scores(test)))


def _kinds_of_pairs(records: Records) -> list[tuple[int, int]]:
    """One pair of each kind of columns: what fails for one fails for all of them."""
    found: dict[tuple, tuple[int, int]] = {}
    for i, j in itertools.combinations(range(len(records.columns)), 2):
        alike = tuple(dataclasses.replace(records.columns[k], name="") for k in (i, j))
        found.setdefault(alike, (i, j))
    return list(found.values())


def _asker(test, level: float, max_tests: int | None, delta: float, records: Records, last: int):
    """How to answer queries, what that costs in all, and whether queries may be asked together."""
    if isinstance(test, str):
        check.one_of(("kendall", "chi2", "g"), test=test)
        test = StratifiedTest(statistic=test, level=level)  # type: ignore[arg-type]
    if isinstance(test, StratifiedTest):
        return lambda session: _table_answers(test, Counts(records)), NOT_PRIVATE, True
    if isinstance(test, DSeparation):
        return lambda session: lambda queries: [(a, None, None) for a in test.answers(queries)], NOT_PRIVATE, True
    if _pays_itself(test):
        return lambda session: _paid_answers(test, level), test.guarantee, False
    if isinstance(test, PrivateTest):
        if max_tests is None:
            raise ValueError("a private test needs max_tests, the number of tests whose budget is reserved; give 100.")
        check.at_least(1, max_tests=max_tests)
        return (
            lambda session: _private_answers(test, session, records, level, max_tests),
            _times(_cost_of_queries(test, records, last), max_tests, delta),
            False,
        )
    if callable(test):
        return lambda session: _callable_answers(test, level), NOT_PRIVATE, False
    raise TypeError(f"test must be a test of jaxdp, a callable, 'kendall', 'chi2' or 'g', got {type(test).__name__}.")


def _cost_of_queries(test, records: Records, last: int) -> Cost:
    """Cost of one query. Variants whose cost depends on the query are charged at the dearest order tried."""
    sets = [tuple(range(2, 2 + order)) for order in range(max(0, last) + 1)]
    costs = [cost_of(test, records.query(0, 1, given, wants_scores(test))) for given in sets]
    return max(costs, key=lambda cost: (float(cost.epsilon), float(cost.rho)))


def _times(cost: Cost, count: int, delta: float) -> Cost:
    summed = Cost(cost.epsilon * count, cost.delta * count, cost.rho * count, cost.relation)
    if delta == 0.0:
        return summed
    if float(cost.delta) > 0 or np.isinf(float(cost.epsilon)):
        raise ValueError(
            "delta composes tests of pure epsilon; this test has a delta or rho of its own, so leave it out."
        )
    best = optimal_epsilon(float(cost.epsilon), count, delta)
    return Claim(epsilon=best, delta=delta, rho=summed.rho, relation=summed.relation)


def _pays_itself(test) -> bool:
    """A test with a budget of its own, such as `interop.PrivateQueries`."""
    return hasattr(test, "guarantee") and hasattr(test, "p_value")


def _as_paid(graph: Graph, test: Any) -> Graph:
    """The graph as a test that pays by itself answered it."""
    queries = {item: (item.i, item.j, item.given) for item in graph.decisions}
    unasked = getattr(test, "unasked", {})
    policy = any(query in unasked for query in queries.values())
    return dataclasses.replace(
        graph,
        mode=test.mode,
        complete=graph.complete and not policy,
        note=test.told_unasked(queries.values()) if policy else graph.note,
        decisions=tuple(
            dataclasses.replace(item, value=None) if query in unasked else item for item, query in queries.items()
        ),
    )


def _paid_answers(test, level: float):
    def answer(queries):
        answers: list[tuple[bool | None, float | None, float | None]] = []
        for i, j, given in queries:
            try:
                p_value = float(test.p_value(i, j, given))
            except BudgetExhausted:
                answers.append((None, None, None))
            else:
                answers.append((p_value > level, p_value, None))
        return answers

    return answer


def _table_answers(test: StratifiedTest, counts: Counts):
    threshold = z_threshold(test.level)

    def answer(queries):
        found = scores(counts, queries, test.statistic, test.min_variance)
        return [(bool(value < threshold), float(value), None) for value in found]

    return answer


def _private_answers(test, session: Session, records: Records, level: float, max_tests: int):
    """One run per query with a key of its own, until the reserved tests are used up."""
    asked, scores = 0, wants_scores(test)

    def answer(queries):
        nonlocal asked
        answers: list[tuple[bool | None, float | None, float | None]] = []
        for query in queries:
            if asked >= max_tests:
                answers.append((None, None, None))
                continue
            i, j, given = query
            data = records.query(i, j, given, scores)
            result = run_opened(test, session.source.fold_in(asked), data)
            asked += 1
            p_value = float(result.p_value)
            answers.append((p_value > level, p_value, float(result.cost.epsilon)))
        return answers

    return answer


def _callable_answers(test: Callable, level: float):
    def answer(queries):
        return [_read_answer(test(i, j, given), level) for i, j, given in queries]

    return answer


def _read_answer(found, level: float):
    if isinstance(found, bool | np.bool_):
        return bool(found), None, None
    p_value = float(found[1] if isinstance(found, tuple | list) else found)
    return p_value > level, p_value, None


def _remembering(answer, decisions: dict[CIQuery, Decision]):
    """Asks each query once; a pair and its mirror are the same query."""

    def ask(queries):
        new = [query for query in dict.fromkeys(queries) if query not in decisions]
        stopped = set()
        for (i, j, given), (independent, value, epsilon) in zip(new, answer(new), strict=True):
            if independent is None:
                stopped.add((i, j, given))
            else:
                decisions[i, j, given] = Decision(i, j, given, independent, value, epsilon)
        return [None if query in stopped else decisions[query].independent for query in queries]

    return ask


def d_separated(dag: np.ndarray, i: int, j: int, given: Sequence[int]) -> bool:
    """Whether i and j are d-separated by `given`: no path in the moral graph of their ancestors avoids it."""
    ancestors = np.zeros(len(dag), bool)
    ancestors[[i, j, *given]] = True
    while True:
        grown = ancestors | np.any(dag[:, ancestors], axis=1)
        if np.array_equal(grown, ancestors):
            break
        ancestors = grown
    part = dag & ancestors[:, None] & ancestors[None, :]
    moral = part | part.T | (part.astype(int) @ part.T.astype(int) > 0)
    open_nodes = ancestors.copy()
    open_nodes[list(given)] = False
    reached = np.zeros(len(dag), bool)
    reached[i] = True
    while True:
        grown = reached | (np.any(moral[reached], axis=0) & open_nodes)
        if np.array_equal(grown, reached):
            return not reached[j]
        reached = grown


def _columns_of(test) -> Records:
    """Columns for an oracle without data, or those of a test that holds its own."""
    if _pays_itself(test):
        return test.records
    if not isinstance(test, DSeparation):
        raise ValueError("data may be None only with DSeparation.")
    from jaxdp.data.dataset import Column
    from jaxdp.discovery.metrics import _names

    size = len(_arcs(test.graph))
    names = _names(test.graph) or [""] * size
    return Records(np.zeros((1, size), np.int32), tuple(Column("binary", 2, name) for name in names))
