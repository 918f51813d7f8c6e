"""Max-min selection: a private spanning tree, further edges that no conditioning set explains, noisy pruning.

Theory: docs/theory/max_min_pc.md. For coded columns beyond one joint table: the private draws are as many as the edges
of the answer, however many conditional independence tests the search looks at.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import os
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxdp._base import check
from jaxdp.core import Account, Norm, Relation, Sensitivity
from jaxdp.data.records import Records, as_records
from jaxdp.discovery.engine import false_edges
from jaxdp.discovery.engine.checkpoint import described
from jaxdp.discovery.engine.counts import JOINT_CELLS, Counts
from jaxdp.discovery.engine.directions import Contrasts, Orientation, Rule, Triple, Trust, oriented
from jaxdp.discovery.engine.hardly_nearer import GROWTH, rounded_up
from jaxdp.discovery.engine.knowledge import Knowledge, Known, known
from jaxdp.discovery.engine.max_min_budget import MAX_RECORDS, ROUND_UP, Budget, Shares
from jaxdp.discovery.engine.max_min_scores import MaxMinScores, TableScores, rounding
from jaxdp.discovery.engine.number_noise import CubeNoise, NumberNoise
from jaxdp.discovery.engine.orientation import unshielded
from jaxdp.discovery.engine.session import Session, searched
from jaxdp.discovery.engine.skeleton import Skeleton, counted
from jaxdp.discovery.engine.sparse_loop import perturbed
from jaxdp.discovery.engine.table_scores import residual_axes
from jaxdp.discovery.graph import Decision, Graph
from jaxdp.discovery.spec import AUDITED_DELTA, SearchAudit, SearchSpec, Setting, search
from jaxdp.noise import lattice
from jaxdp.noise.source import Source
from jaxdp.randomness import keys
from jaxdp.randomness.keys import Key
from jaxdp.statistics.tables.excess import Excess

EFFECT = 0.1  # size, as a correlation, of a dependence where there is one
BLUR = 0.01  # the same of one that is there where none should be: by columns not looked at
BOTH = 2.0  # evidence from which on a dependence is there: if it is with the middle and without, the table is silent
CAP = 4.0  # largest log odds of a table: its two edges may be false


@dataclasses.dataclass(frozen=True)
class TripleTables:
    """Contrasts of unshielded triples (i, k, j), and the released table of each, which knows no other column.

    tables: each (L_i, L_j, L_k) with fresh noise in every cell. variance: of that noise.
    """

    contrasts: Contrasts
    tables: Sequence[np.ndarray]
    variance: float

    @property
    def triples(self) -> Sequence[Triple]:
        """Those of the contrasts."""
        return self.contrasts.triples

    def weights(self) -> np.ndarray:
        """Log odds of a collider against none, (T,): those of the contrasts, and those of the tables.

        In a table a dependence of i and j given k speaks for the collider, one without k against it. If both are there,
        i and j are joined by another way too, and only a contrast, which looks at further columns, can tell.
        """
        found = [(evidence(table, self.variance), self._alone(table)) for table in self.tables]
        given, alone = np.array(found).T
        silent = np.minimum(given, alone) > BOTH
        return self.contrasts.weights() + np.where(silent, 0.0, np.clip(given - alone, -CAP, CAP))

    def _alone(self, table: np.ndarray) -> float:
        return evidence(table.sum(axis=2, keepdims=True), self.variance * table.shape[2])


def evidence(table: np.ndarray, variance: float) -> float:
    """Log Bayes factor of a dependence of the first two axes within the levels of the third, of a noisy table.

    variance: of the noise of a cell. Where levels are so rare that noise hides them, it is about 0.
    """
    records = max(float(table.sum()), 1.0)
    return sum(_of_stratum(table[:, :, level], variance, records) for level in range(table.shape[2]))


def _of_stratum(counts: np.ndarray, variance: float, records: float) -> float:
    rows, columns = (np.maximum(counts.sum(axis=axis), 0.0) for axis in (1, 0))
    total = float(counts.sum())
    if min(total, rows.sum(), columns.sum()) <= 0.0:
        return 0.0
    p, q = rows / rows.sum(), columns / columns.sum()
    spread, left = residual_axes(p)
    other, right = residual_axes(q)
    residual = left.T @ (counts - total * np.outer(p, q))[:-1, :-1] @ right
    sampled = total * np.outer(spread, other)
    none = variance + sampled * (1.0 + BLUR**2 * records)
    effect = sampled * EFFECT**2 * records
    return float((residual**2 * effect / (none * (none + effect)) - np.log1p(effect / none)).sum() / 2.0)


Edge = tuple[int, int]
MAX_ORDER = 2
# noise of a further edge, in shares of the records, from which on a forest was nearer to the truth: pure epsilon, zCDP
TREE_FROM = {True: 0.035, False: 0.02}
DIRECTIONS = 0.2  # of the budget: the share of least SHD on networks of 12 to 56 columns (docs/theory)
DOUBT = 0.02  # of contrasts on true edges of random networks have the wrong sign without noise
STOP = 0.3  # score of stopping, in units of the largest noise of all pairs
DRAWS = {True: 0.5, False: 0.8}  # of further edges that are planned, per column; for pure epsilon, and for zCDP
AGAIN = 2  # after a stop, the draws that are left become so many times fewer, with as much more budget each
EXCESS = Excess()
ARROWS = Rule(few_parents=True, trust=Trust(1.75))  # with a delta; measured: docs/discovery.md#arrow-shares
CUBE_ARROWS = Rule(few_parents=True, trust=Trust(3.31))  # of pure epsilon; docs/theory/max_min_pc.md#parents
CUBE_CELLS = 1 << 18  # up to here all tables follow from one joint table faster than from bitmaps
GUARDED, KEEP, ALL, FOREST, TREE = "guarded", "keep", "all", "forest", "tree"
SHARES = {
    GUARDED: Shares(Fraction(4, 20), Fraction(6, 20), Fraction(10, 20)),
    KEEP: Shares(Fraction(8, 20), Fraction(8, 20), Fraction(4, 20)),
    ALL: Shares(Fraction(4, 20), Fraction(6, 20), Fraction(10, 20)),
    FOREST: Shares(Fraction(1, 2), Fraction(0), Fraction(1, 2)),
    TREE: Shares(Fraction(1)),
}
# of pure epsilon: noise of the cube weighs edges so well that draws take part of that share
CUBE_SHARES = SHARES | {
    GUARDED: Shares(Fraction(5, 20), Fraction(9, 20), Fraction(6, 20)),
    ALL: Shares(Fraction(5, 20), Fraction(9, 20), Fraction(6, 20)),
}
CELLS_MOVED = {Relation.REPLACE_ONE: ROUND_UP * math.sqrt(2.0), Relation.ADD_OR_REMOVE_ONE: 1.0}  # L2, of one table
LOUDEST = 0.035  # noise of a draw of a forest, in shares of the records: fewer are drawn rather than louder ones
ONLY = {
    TREE: "The graph is a spanning tree: the strongest edges that join all columns, however weak; no other edge was "
    "looked for.",
    FOREST: "No edges were looked for but those of a spanning tree, the strongest first and as many as the budget can "
    "tell apart; those have gone that chance explains, or one or two of the columns drawn beside them.",
}
NO_NEARER = (
    "Expect this graph to be about as far from the truth as a graph without edges: on known networks such graphs were "
    "hardly nearer to the truth than a graph without edges (docs/discovery.md#distance)."
)
UNDIRECTED = "Edges have no direction here (nothing was spent on them: directions=0)."


def _weakest(setting: Setting) -> float:
    """Noise of further draws, were there as many as columns, and half a root of n for chance: a share of records."""
    noise = _noise(Budget.of(setting.epsilon, setting.delta, Relation.REPLACE_ONE), setting.num_columns)
    return (noise + 0.5 * math.sqrt(setting.num_records)) / max(setting.num_records, 1)


def _noise(budget: Budget, num_columns: int) -> float:
    """Scale of the noise of draws of as many further edges as there are columns, in records."""
    share = (CUBE_SHARES if budget.pure else SHARES)[GUARDED].forward
    return budget.draw_scale(share / num_columns, EXCESS.sensitivity(budget.relation))


def _too_loud(records: Records, budget: Budget) -> bool:
    """Whether further edges would be chance: then the tree takes the whole budget. A public choice."""
    public = budget.relation is Relation.REPLACE_ONE
    return public and _noise(budget, len(records.columns)) > TREE_FROM[budget.pure] * records.num_records


def _quiet_enough(records: Records, budget: Budget) -> str:
    """Which epsilon, or how many records, the whole search would need where this budget is too loud; else nothing."""
    if not _too_loud(records, budget):
        return ""
    columns, limit = len(records.columns), TREE_FROM[budget.pure]
    enough = math.ceil(_noise(budget, columns) / limit)
    larger = (budget.epsilon * GROWTH**step for step in itertools.count(1))
    budgets = (Budget.of(epsilon, budget.delta, budget.relation) for epsilon in larger)
    needed = next(other.epsilon for other in budgets if _noise(other, columns) <= limit * records.num_records)
    return (
        f"Further edges are looked for from about epsilon {rounded_up(needed):g}, or from about "
        f"{rounded_up(enough):.0f} records, on."
    )


@search(
    SearchSpec(
        "max_min_pc",
        "max-min selection of edges; recommended for many coded columns",
        error=_weakest,
        takes=("delta", "directions", "max_order", "knowledge", "keep"),
        audits=(
            SearchAudit(pilot="adaptive_pc"),
            SearchAudit("weighed", {"prune": GUARDED}, neighbours="jaxdp.audit.searches:rising"),
            SearchAudit("turned", {"prune": GUARDED}, neighbours="jaxdp.audit.searches:turning"),
            SearchAudit(
                "delta",
                {"delta": AUDITED_DELTA, "prune": GUARDED, "directions": 0.0},
                delta=AUDITED_DELTA,
                neighbours="jaxdp.audit.searches:rising",
            ),
            SearchAudit(
                "tables",
                {"delta": AUDITED_DELTA, "prune": GUARDED},
                delta=AUDITED_DELTA,
                neighbours="jaxdp.audit.searches:turning",
            ),
        ),
    )
)
def max_min_pc(
    key: Key,
    data: Any,
    *,
    epsilon: float,
    delta: float = 0.0,
    prune: str | None = None,
    directions: float | None = None,
    max_order: int = MAX_ORDER,
    relation: Relation = Relation.REPLACE_ONE,
    stop: float = STOP,
    excess: Excess = EXCESS,
    shares: Shares | None = None,
    knowledge: Knowledge | None = None,
    levels: Sequence[int] | None = None,
    ledger: Account | None = None,
    keep: str | os.PathLike | None = None,
) -> Graph:
    """Graph of 10 to 60 coded columns by private draws of edges: first a tree, then those that no set explains away.

    (1) d - 1 draws of a spanning tree by the score q of two columns alone (`statistics.tables.excess`). (2) At most
    further edges (0.8 d; d/2 of pure epsilon), each the largest over pairs of the smallest q over conditioning sets,
    or a stop; after a stop the rest of that budget buys half as many draws of twice the size. (3) One noisy number per
    edge: edges go until at most 5 % of those that stay are expected there by chance, noise and sampling counted.
    delta: 0 is pure epsilon (permute-and-flip; noise of the cube, `MaxNorm`); above, zCDP within (epsilon, delta)
    (exponential mechanism, normal noise), which finds more edges and arrows of many columns.
    prune: "guarded" weighs tree edges too, but not by sets that all but fix one of the two columns, "all" by every set;
    "keep" spares the tree; "forest" draws edges of the tree alone, as many as keep the noise of each draw within 3.5 %
    of the records, and weighs them likewise; "tree" spends everything on the tree and weighs nothing. Default:
    "forest" where the noise of a further edge is above 3.5 % of the records (2 % with a delta), else "guarded"; the
    former only where n is public (replace-one).
    directions: share of the budget for one number per unshielded triple (with a delta its table too), which speaks for
    a collider or against one; the arrows are those of the equivalence class that is nearest to what all numbers leave
    probable together (docs/theory/max_min_pc.md#directions). 0 leaves all edges undirected but for what `knowledge`
    says. Default: a fifth; 0 with prune="tree". max_order: largest conditioning set.
    knowledge: required edges are drawn first and for nothing, forbidden ones never.
    keep: file for the answers, with which an interrupted search goes on (docs/discovery.md#interrupted).
    The graph's decisions hold the released number of each weighed edge and its q-value, the share of edges that
    chance would explain, were this the weakest. Sets of more than two columns, sets whose table has over 2000
    cells, and columns that depend jointly but not in pairs (exclusive or) are beyond it; the smallest effect found is
    about 12 d/(epsilon n) of the records, and 5 sqrt(d/rho)/n with a delta.
    Privacy: epsilon-DP, or (epsilon, delta)-DP by zCDP, for the relation; every score moves by at most 4.32
    (docs/theory/max_min_pc.md#sensitivity). A release key draws lattice noise.
    Errors: ValueError before data are read (budget, continuous columns, unknown names in `knowledge`).
    """
    mode = keys.admit(key, data)
    records = as_records(data, levels)
    check.one_of((None, *SHARES), prune=prune)
    check.at_least(0, max_order=max_order)
    check.non_negative(stop=stop)
    budget = Budget.of(epsilon, delta, relation, cube=True)
    _require_fit(records, mode, budget)
    if prune is None:
        prune = FOREST if _too_loud(records, budget) else GUARDED
    if directions is None:
        directions = 0.0 if prune == TREE else DIRECTIONS
    check.in_range(-1.0, 1.0, directions=directions)
    check.non_negative(directions=directions)
    shares = (CUBE_SHARES if budget.pure else SHARES)[prune] if shares is None else shares
    shares = shares.with_directions(directions)
    facts = known(knowledge, records.names)
    settings = {"prune": prune, "max_order": max_order, "stop": stop, "excess": excess, "shares": shares}
    asked = described(records, relation, knowledge=knowledge, **settings)

    def found(session, records):
        size = records.num_records if relation is Relation.REPLACE_ONE else MAX_RECORDS
        bounds = Bounds(
            excess.sensitivity(relation),
            excess.marginal_sensitivity(relation, max(records.levels) <= 2),
            rounding(excess, records.levels, size),
            size,
            excess.null_law(size, records.levels) if relation is Relation.REPLACE_ONE else (0.0, 0.0),
            loudest=LOUDEST * size if prune == FOREST and relation is Relation.REPLACE_ONE else math.inf,
            moved=True,
            arrows=CUBE_ARROWS if budget.pure else ARROWS,
        )
        cells = math.prod(count + 1 for count in records.levels)
        counts = Counts(records, joint_cells=JOINT_CELLS if cells <= CUBE_CELLS else 0)
        scores = MaxMinScores(records.levels, TableScores(counts, excess), max_order, facts)
        return Selection(session, records, budget, shares, facts, scores, bounds, table=counts.table).graph(prune, stop)

    return searched(
        key, "max_min_pc", budget.cost(), records, found, ledger=ledger, keep=keep, asked=asked, knowledge=knowledge
    )


@dataclasses.dataclass(frozen=True)
class Bounds:
    """How far one record moves a score, and one given no other column; their rounding error, and how large they get.

    null: sd and deducted of `Sampling`; 0, 0 where the number of records is private. looks: null scores per pair.
    loudest: noise of a draw of the tree, in records; fewer edges are drawn rather than pass it. moved: scores are
    records to move, so that the numbers of two edges say how large the contrast of their triple may be. arrows: how
    directions follow from contrasts.
    """

    score: float
    marginal: float
    error: float
    size: int
    null: tuple[float, float]
    looks: int = 1
    loudest: float = math.inf
    moved: bool = False
    arrows: Rule = ARROWS


class Selection:
    """One search: the graph so far, the scores that follow from it, and the draws made.

    drawn: how many answers the session has given before. table: exact ones of coded columns; None where some are not.
    """

    def __init__(
        self,
        session: Session,
        records: Records,
        budget: Budget,
        shares: Shares,
        known: Known,
        scores: MaxMinScores,
        bounds: Bounds,
        drawn: int = 0,
        table: Callable[[Sequence[int]], np.ndarray] | None = None,
    ):
        self._session, self._records, self._budget, self._shares = session, records, budget, shares
        self._known, self._scores, self._drawn, self._table = known, scores, drawn, table
        self._bound, self._marginal, self._error, self._size = bounds.score, bounds.marginal, bounds.error, bounds.size
        self._loudest, self._moved, self._arrows = bounds.loudest, bounds.moved, bounds.arrows
        self._pairs = list(itertools.combinations(range(len(records.columns)), 2))
        self._places = tuple(np.array(self._pairs).T)
        self._sampling = false_edges.Sampling(*bounds.null, bounds.looks * len(self._pairs))
        self._allowed = ~known.forbidden[self._places]

    def graph(self, prune: str, stop: float) -> Graph:
        """Runs the search."""
        required = [(int(i), int(j)) for i, j in np.argwhere(np.triu(self._known.required))]
        tree = self._tree(required)
        self._scores.add([*required, *tree])
        forward, left = self._forward(stop)
        weighed = {KEEP: forward, TREE: []}.get(prune, [*tree, *forward])
        decisions = self._weigh(weighed, self._exact(prune, tree, weighed), self._shares.prune + left)
        adjacency = self._scores.adjacency.copy()
        for decision in decisions:
            if decision.independent:
                adjacency[decision.i, decision.j] = adjacency[decision.j, decision.i] = False
        found = Skeleton(adjacency, {}, (), self._scores.num_scores, self._known)
        graph = self._session.graph(self._records, found, decisions)
        notes = [NO_NEARER, _quiet_enough(self._records, self._budget)] if prune == FOREST else []
        notes += [ONLY[prune]] if prune in ONLY else []
        notes += [UNDIRECTED] * (not self._shares.directions)
        directed = self._directed(adjacency, decisions)
        if directed is not None:
            graph = dataclasses.replace(graph, cpdag=directed.cpdag, arrow_shares=directed.arrow_shares)
            notes.append(directed.sentence)
        return dataclasses.replace(graph, note=" ".join(filter(None, notes)))

    def _tree(self, required: list[Edge]) -> list[Edge]:
        """Edges that join components of the required ones, strongest first, each drawn by the score of two columns
        alone: all that are needed, or as many as are not too loud."""
        component = np.arange(len(self._records.columns))
        for i, j in required:
            component[component == component[j]] = component[i]
        draws = self._quiet_draws(len(set(component.tolist())) - 1)
        scores = self._scores.minimum[self._places]
        edges: list[Edge] = []
        for _ in range(draws):
            eligible = self._allowed & (component[self._places[0]] != component[self._places[1]])
            if not eligible.any():
                break
            i, j = self._pairs[self._draw(scores, -math.inf, eligible, self._shares.tree / draws, self._marginal)]
            edges.append((i, j))
            component[component == component[j]] = component[i]
        return edges

    def _quiet_draws(self, most: int) -> int:
        """How many draws of the tree its share buys that are not too loud, at least 1: a public number.

        Few draws find the strongest pairs, which are neighbours more often than pairs drawn by loud noise are.
        """
        shares = ((draws, self._shares.tree / draws) for draws in range(most, 1, -1))
        quiet = (n for n, share in shares if self._budget.draw_scale(share, self._marginal) <= self._loudest)
        return next(quiet, min(most, 1))

    def _forward(self, stop: float) -> tuple[list[Edge], Fraction]:
        """Further edges, and the share of the budget that no draw has spent."""
        left, edges = self._shares.forward, []
        draws = math.ceil(DRAWS[self._budget.pure] * len(self._records.columns)) if left else 0
        answered = counted(lambda queries: queries)
        while draws:
            each = left / draws
            theta = stop * self._budget.draw_scale(each, self._bound) * math.log(max(len(self._pairs), 2))
            stopped = False
            while draws and not stopped:
                eligible = self._allowed & ~self._scores.adjacency[self._places]
                place = self._draw(self._scores.minimum[self._places], theta, eligible, each, self._bound)
                left, draws, stopped = left - each, draws - 1, place == len(self._pairs)
                if not stopped:
                    edges.append(self._pairs[place])
                    self._scores.add([self._pairs[place]])
                    answered([place])
            draws //= AGAIN
        return edges, left

    def _draw(self, scores: np.ndarray, stop: float, eligible: np.ndarray, share: Fraction, bound: float) -> int:
        """Place of a selected eligible pair; of one more, if stopping wins. All draws have the same public length."""
        open_places = np.append(eligible, stop > -math.inf)
        values = np.where(open_places, np.append(scores, stop), -math.inf)
        sensitivity = Sensitivity(bound, Norm.LINF, self._budget.relation, self._error)
        selection = self._budget.draw(share)
        place = int(perturbed(selection, self._next(), jnp.asarray(values, float), sensitivity))
        # lattice noise may escape to any place, with a chance below 2^-29: then the first open one
        return place if open_places[place] else int(np.argmax(open_places))

    def _exact(self, prune: str, tree: list[Edge], weighed: list[Edge]) -> list[float]:
        """The score by which each edge is weighed."""
        guarded = set(tree) if prune in (GUARDED, FOREST) else set()
        scores = (self._scores.guarded if edge in guarded else self._scores.minimum for edge in weighed)
        return [float(found[edge]) for found, edge in zip(scores, weighed, strict=True)]

    def _weigh(self, edges: list[Edge], exact: list[float], share: Fraction) -> tuple[Decision, ...]:
        """One noisy number per edge; independent: were it kept, more edges than `level` would be expected by chance."""
        if not edges:
            return ()
        values, noise = self._numbers(exact, share, self._bound)
        found = false_edges.adjusted(false_edges.p_values(np.array(values), noise, self._sampling))
        return tuple(
            Decision(i, j, (), bool(chance > false_edges.SHARE), value, None, float(chance))
            for (i, j), value, chance in zip(edges, values, found, strict=True)
        )

    def _directed(self, adjacency: np.ndarray, weighed: tuple[Decision, ...]) -> Orientation | None:
        """Directions from noisy contrasts of unshielded triples, with a delta from their noisy tables too; None where
        there is nothing to ask about.

        weighed: released numbers of edges, by which the sizes of contrasts are expected.
        """
        if not self._shares.directions:
            return None
        table = None if self._budget.pure else self._table
        share = self._shares.directions / (1 if table is None else 2)
        contrasts = self._contrasts(unshielded(adjacency), weighed, share)
        if contrasts is None:
            return None
        evidence = contrasts if table is None else self._with_tables(contrasts, share, table)
        return oriented(adjacency, evidence, self._known.against_time(), self._arrows)

    def _contrasts(self, triples: list[Triple], weighed: tuple[Decision, ...], share: Fraction) -> Contrasts | None:
        """One number for each triple that a set with its middle may be about."""
        exact = self._scores.contrast(triples) if triples else np.zeros(0)
        asked = np.flatnonzero(np.isfinite(exact))
        if not asked.size:
            return None
        values, noise = self._numbers(exact[asked], share, 2.0 * self._bound)
        size = self._size if self._budget.relation is Relation.REPLACE_ONE else 0
        asked_triples = [triples[place] for place in asked]
        strengths = _of_edges(asked_triples, weighed) if self._moved else None
        doubt = DOUBT if isinstance(noise, CubeNoise) else 0.0
        return Contrasts(asked_triples, np.array(values), noise, size, strengths, doubt=doubt)

    def _with_tables(self, contrasts: Contrasts, share: Fraction, table) -> TripleTables:
        """The table of each triple too, all released together: a record moves one count of each to another cell, and
        noise of zCDP grows with the root of the number of tables, whatever their cells. None has more than `MAX_CELLS`
        of the scores: larger ones have no contrast either."""
        tables = [table((i, j, k)) for i, k, j in contrasts.triples]
        moved = CELLS_MOVED[self._budget.relation]
        mechanism, sensitivity, noise = self._budget.numbers(share, len(tables), moved, 0.0, self._size)
        counts = np.concatenate([exact.ravel() for exact in tables])
        noisy = np.asarray(perturbed(mechanism, self._next(), jnp.asarray(counts, float), sensitivity), float)
        parts = np.split(noisy, np.cumsum([exact.size for exact in tables])[:-1])
        released = [part.reshape(exact.shape) for part, exact in zip(parts, tables, strict=True)]
        return TripleTables(contrasts, released, noise.spread**2)

    def _numbers(self, exact, share: Fraction, bound: float) -> tuple[list[float], NumberNoise]:
        """Released numbers, each of which moves by at most `bound`, and the law of their noise."""
        mechanism, sensitivity, noise = self._budget.numbers(share, len(exact), bound, 2.0 * self._error, self._size)
        noisy = perturbed(mechanism, self._next(), jnp.asarray(np.array(exact), float), sensitivity)
        return np.asarray(noisy, float).tolist(), noise

    def _next(self) -> Source:
        self._drawn += 1
        return self._session.source.fold_in(self._drawn)


def _of_edges(triples: list[tuple[int, int, int]], weighed: tuple[Decision, ...]) -> np.ndarray:
    """The released numbers of the two edges of each triple (T, 2), NaN where an edge has none."""
    numbers = {frozenset((one.i, one.j)): one.value for one in weighed if one.value is not None}
    return np.array([[numbers.get(frozenset(edge), math.nan) for edge in ((i, k), (k, j))] for i, k, j in triples])


def _require_fit(records: Records, mode: str, budget: Budget) -> None:
    if len(records.columns) < 2:
        raise ValueError(f"a graph needs at least two columns, got {len(records.columns)}.")
    if 0 in records.levels:
        name = records.names[records.levels.index(0)]
        raise ValueError(f"column {name!r} is continuous: max_min_pc takes coded columns; use moment_pc.")
    pairs = math.comb(len(records.columns), 2)
    if mode == keys.RELEASE and not budget.pure and pairs >= lattice.SELECTION_LIMIT:
        raise ValueError(
            f"{len(records.columns)} columns have {pairs} pairs, more than an exact exponential mechanism takes; "
            "leave out delta."
        )
