"""The PC skeleton search, once: every method plugs its own way of answering queries into it.

A CI query (i, j, given) asks whether column i is independent of column j given others. An `ask`
function answers a list of queries: True (independent), False, or None where it has stopped answering.
"""

import collections
import contextlib
import contextvars
import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from jaxdp.discovery.engine.knowledge import Known

CIQuery = tuple[int, int, tuple[int, ...]]
Ask = Callable[[list[CIQuery]], Sequence[bool | None]]
MAX_PER_EDGE = 64
GROWTH = 8
AHEAD = 32
_terminal_bar: contextvars.ContextVar[bool] = contextvars.ContextVar("terminal_bar", default=False)


@dataclasses.dataclass
class Skeleton:
    """Result of a search: adjacency bool (d, d), separators of the removed pairs, pairs left untested.

    known: the background knowledge that it kept to.
    """

    adjacency: np.ndarray
    separators: dict[tuple[int, int], tuple[int, ...]]
    untested: tuple[tuple[int, int], ...]
    num_tests: int
    known: Known


def find_skeleton(
    num_columns: int,
    ask: Ask,
    *,
    max_order: int | None,
    stable: bool = True,
    batched: bool,
    ahead: bool = False,
    progress: bool = False,
    known: Known | None = None,
) -> Skeleton:
    """Removes an edge at the first set that separates it, order by order.

    stable: candidate sets of an order come from the graph at the start of that order (PC-stable), so the
    result does not depend on the order of columns; otherwise from the current graph.
    batched: the queries of one order are asked together, up to 64 per edge at a time; otherwise one by
    one, so that a query is never asked about an edge that is gone.
    ahead: in turn as well, but `ask` is shown the next queries and answers them up to the first True.
    progress: shows a bar of queries on standard error for searches over two seconds.
    known: required edges stay and forbidden ones are gone without a query; no set holds a later column.
    """
    last = last_order(num_columns, max_order)
    known = Known.nothing(num_columns) if known is None else known
    adjacency = ~np.eye(num_columns, dtype=bool) & ~known.forbidden
    search = Skeleton(adjacency, {}, (), 0, known)
    if progress or _terminal_bar.get():
        ask = _counted(ask, always=progress)
    for order in range(last + 1):
        frozen = adjacency.copy() if stable else adjacency
        edges = _open_edges(search)
        neighbours = _neighbours(frozen)
        pending = {edge: _candidates(known, neighbours, *edge, order) for edge in edges}
        if order and not any(_has_candidates(frozen, *edge, order) for edge in edges):
            break
        if batched and stable:
            left = _ask_together(search, pending, ask)
        elif ahead and stable:
            left = _ask_ahead(search, pending, ask)
        else:
            left = _ask_in_turn(search, frozen, order, ask)
        if left is not None:
            rest = {edge for edge in left if adjacency[edge]}
            search.untested = tuple(sorted(rest))
            break
    return search


def last_order(num_columns: int, max_order: int | None) -> int:
    """Size of the largest conditioning set that a search may ask about."""
    return num_columns - 2 if max_order is None else min(max_order, num_columns - 2)


@contextlib.contextmanager
def terminal_progress() -> Iterator[None]:
    """Searches inside show a bar of their queries after two seconds, if standard error is a terminal."""
    token = _terminal_bar.set(True)
    try:
        yield
    finally:
        _terminal_bar.reset(token)


def counted(ask):
    """`ask` with the bar of `terminal_progress`, for searches with a loop of their own."""
    return _counted(ask, always=False) if _terminal_bar.get() else ask


def _counted(ask, always: bool):
    """The same answers, with a bar that counts them."""
    from tqdm import tqdm

    bar = tqdm(desc="queries", unit="", delay=2.0, leave=False, disable=False if always else None)

    def asked(queries):
        answers = ask(queries)
        bar.update(len(answers))
        return answers

    return asked


def _neighbours(adjacency: np.ndarray) -> list[list[int]]:
    return [np.flatnonzero(row).tolist() for row in adjacency]


def _open_edges(search: Skeleton) -> list[tuple[int, int]]:
    """The edges that answers may remove: all that are left but the required ones."""
    left = search.adjacency & ~search.known.required
    return [(int(i), int(j)) for i, j in np.argwhere(np.triu(left))]


def _candidates(known: Known, neighbours: Sequence[list[int]], i: int, j: int, order: int) -> Iterator[tuple[int, ...]]:
    """Conditioning sets of this size among the neighbours of i, then among those of j, each once."""
    seen = set()
    for node, other in ((i, j), (j, i)):
        for given in itertools.combinations([k for k in neighbours[node] if k != other], order):
            if given not in seen and known.may_condition(i, j, given):
                seen.add(given)
                yield given


def _has_candidates(adjacency: np.ndarray, i: int, j: int, order: int) -> bool:
    return max(adjacency[i].sum(), adjacency[j].sum()) - 1 >= order


def _remove(search: Skeleton, i: int, j: int, given: tuple[int, ...]) -> None:
    search.adjacency[i, j] = search.adjacency[j, i] = False
    search.separators[i, j] = given


def _ask_together(search: Skeleton, pending, ask: Ask):
    """Rounds of queries for every surviving edge. Returns the pairs left if answers end.

    Rounds grow from one query per edge to 8 and 64: most edges that go are removed by the first few sets.
    """
    per_edge = 1
    while pending:
        batch = {edge: list(itertools.islice(sets, per_edge)) for edge, sets in pending.items()}
        per_edge = min(GROWTH * per_edge, MAX_PER_EDGE)
        batch = {edge: sets for edge, sets in batch.items() if sets}
        queries = [(*edge, given) for edge, sets in batch.items() for given in sets]
        if not queries:
            return None
        answers = ask(queries)
        search.num_tests += len(queries)
        for (i, j, given), answer in zip(queries, answers, strict=True):
            if answer is None:
                return list(pending)
            if answer and search.adjacency[i, j]:
                _remove(search, i, j, given)
        pending = {edge: pending[edge] for edge in batch if search.adjacency[edge]}
    return None


def _ask_ahead(search: Skeleton, pending, ask: Ask):
    """One query at a time in the order of the edges, shown in advance. Returns the pairs left if answers end."""
    edges = list(pending)
    upcoming: collections.deque[CIQuery] = collections.deque()
    opened = 0
    while True:
        while len(upcoming) < AHEAD and opened < len(edges):
            given = next(pending[edges[opened]], None)
            if given is None:
                opened += 1
            else:
                upcoming.append((*edges[opened], given))
        if not upcoming:
            return None
        for answer in ask(list(upcoming)):
            i, j, given = upcoming.popleft()
            if answer is None:
                return edges[edges.index((i, j)) :]
            search.num_tests += 1
            if answer:
                _remove(search, i, j, given)
                while upcoming and upcoming[0][:2] == (i, j):
                    upcoming.popleft()
                if opened < len(edges) and edges[opened] == (i, j):
                    opened += 1
                break


def _ask_in_turn(search: Skeleton, frozen: np.ndarray, order: int, ask: Ask):
    """One query at a time. Returns the pairs left if answers end."""
    edges = _open_edges(search)
    for position, (i, j) in enumerate(edges):
        for given in _candidates(search.known, _neighbours(frozen), i, j, order):
            answer = ask([(i, j, given)])[0]
            if answer is None:
                return edges[position:]
            search.num_tests += 1
            if answer:
                _remove(search, i, j, given)
                break
    return None
