"""`jaxdp.discover`: one private causal graph of the columns of a table, in one call."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Unpack

import numpy as np

from jaxdp._base import amounts, csv_files, json_files
from jaxdp._base.keywords import complete
from jaxdp._base.owner import OWNER
from jaxdp.ask.calls import SearchOptions
from jaxdp.ask.cautions import cautions
from jaxdp.ask.reading import Selection, Table, is_release
from jaxdp.ask.table_answer import TableAnswer, versions
from jaxdp.ask.table_call import table_call
from jaxdp.ask.table_query import TableQuery, asked, budget, silent
from jaxdp.data import private_drafts, streamed
from jaxdp.data.records import RecordsInChunks, as_records, levels_of
from jaxdp.data.schema import Schema
from jaxdp.discovery import metrics
from jaxdp.discovery.abilities import ABILITIES
from jaxdp.discovery.choose import AUTO, keeps, named, require_taken, setting_of
from jaxdp.discovery.choose import discover as search
from jaxdp.discovery.engine import checkpoint, knowledge
from jaxdp.discovery.engine.skeleton import terminal_progress
from jaxdp.discovery.graph import Graph
from jaxdp.discovery.spec import asked_for, best, searches
from jaxdp.report import sections

MIN_ROWS = 2


@table_call(SearchOptions)
def discover(table: Any, **how: Unpack[SearchOptions]) -> Graph:
    """Which columns are directly related, and in which direction? Returns a partially directed graph.

        jaxdp.discover(frame, epsilon=1.0, levels={"smoker": ["no", "yes"], "cough": ["no", "yes"]})

    table, schema, bounds, levels, ledger, key, and how it is read (strict to keep_sums): as in `jaxdp.test`. A
    table that takes more than `memory` is read in chunks: columns with levels are kept as codes of one byte, and other
    columns enter sums if the search can use sums.
    columns: which to use, default: all in the schema. method: name of a search, or of a test for PC; default: a choice
    from public numbers.
    max_order, knowledge (`jaxdp.discovery.Knowledge`), keep (a file for the answers, so that an interrupted search can
    continue), directions (share of the budget for the arrows; 0 draws none), accept_coarse_cells: as in
    `jaxdp.discovery.discover`.
    delta: 0 (default) asks for pure epsilon-DP; above 0, for (epsilon, delta)-DP, of searches that offer it.

    Returns a `jaxdp.discovery.Graph`: `edges`, `plot()`, `to_dict()`, `to_networkx()`. It holds no record.
    Privacy: (epsilon, delta)-DP under replace-one for the whole search.
    Errors: ValueError or TypeError in one sentence, before anything is charged; `BudgetExhausted` from the ledger.
    """
    found = asked(GraphQuery, table, how)
    if how.get("keep") is not None:  # its graph is there: the next call is a new search
        Path(how["keep"]).unlink(missing_ok=True)
    note = " ".join(
        text for text in (found.graph.note, found.protects, *sections.describe_drafts(found.content)) if text
    )
    return dataclasses.replace(found.graph, note=note)


@dataclasses.dataclass(frozen=True, repr=False)
class GraphAnswer(TableAnswer):
    """A graph with the number of records, and what commands write of it. truth: a graph that it is compared with.

    protects: what the schema says of a record. drafted: what `with_drafts` adds to the content.
    """

    files: ClassVar = ("graph.png", "graph.json", "result.json", "edges.csv", "graph.dot", "report.html")
    page: ClassVar = "Private causal discovery"

    graph: Graph
    num_records: int
    protects: str
    truth: Graph | None = None
    drafted: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def with_drafts(self, drafts: list[dict[str, Any]], unit: str) -> GraphAnswer:
        """As of every answer."""
        return dataclasses.replace(self, drafted=private_drafts.counted_in(self.content, drafts, unit))

    @functools.cached_property
    def content(self) -> dict[str, Any]:  # type: ignore[override]
        """What result.json holds."""
        graph, truth = self.graph, self.truth
        edges = graph.in_words()
        content = {
            "title": f"Causal graph of {len(graph.names)} columns",
            "answer": ", ".join(edges) if edges else "no edge found",
            "method": graph.method,
            "epsilon": float(graph.cost.epsilon),
            "delta": float(graph.cost.delta),
            "relation": graph.cost.relation.value,
            "mode": graph.mode,
            "n": self.num_records,
            "complete": graph.complete,
            "untested": [[graph.names[i], graph.names[j]] for i, j in graph.untested],
            "num_tests": graph.num_tests,
            "cautions": list(graph.cautions),
            "unit": self.protects,
            "versions": versions(),
        } | ({"note": graph.note} if graph.note else {})
        content |= self.drafted
        if truth is not None:
            content["skeleton_f1"] = metrics.skeleton_f1(graph, truth)
            content["cpdag_f1"] = metrics.cpdag_f1(graph, truth)
            content["shd"] = metrics.shd(graph, truth)
            content["shd_of_no_edges"] = metrics.shd(np.zeros(graph.cpdag.shape, bool), truth)
            content |= _of_interventions(graph, truth)
        return content

    def written(self) -> dict[str, Any]:
        """The graph as JSON and DOT, and its edges."""
        return {
            "graph.json": (json_files.write, self.graph.to_dict()),
            "graph.dot": (lambda path, text: path.write_text(text, encoding="utf-8", newline=""), self.graph.to_dot()),
            "edges.csv": (csv_files.write, *_edges(self.graph)),
        }

    def draw(self, path: Path) -> None:
        """The graph; where it is compared, with what the truth has more and less."""
        from jaxdp.report.graphs import draw_graph

        graph, truth, arcs = self.graph, self.truth, None
        if truth is not None:
            order = [truth.names.index(name) for name in graph.names]
            arcs = truth.cpdag[np.ix_(order, order)]
            arcs &= ~(graph.known.against_time() & arcs.T)  # its open edges between tiers point forward
        draw_graph(path, graph.names, graph.cpdag, truth=arcs, **graph.drawn_with())


def _require_open(known: knowledge.Known) -> None:
    """Raises ValueError where public knowledge leaves nothing of the graph to be found."""
    ordered = known.against_time() | known.against_time().T
    known_pairs = known.forbidden | (known.required & ordered) | np.eye(len(known.tier), dtype=bool)
    if known_pairs.all():
        raise ValueError(
            "the knowledge says of every pair of columns whether they are joined and which way: nothing is left to be "
            "found, and nothing was charged."
        )


def _of_interventions(graph: Graph, truth: Graph) -> dict[str, Any]:
    """The structural intervention distance to a DAG, beside that of a graph without edges; or why there is none."""
    if truth.undirected:
        return {}
    no_edges = dataclasses.replace(graph, cpdag=graph.cpdag & False, skeleton=graph.skeleton & False)
    try:
        return {"sid": metrics.sid(graph, truth), "sid_of_no_edges": metrics.sid(no_edges, truth)}
    except (ImportError, ValueError) as error:
        return {"no_sid": str(error)}


def _edges(graph: Graph) -> tuple[list[str], list[list[Any]]]:
    """One row per answered query: the pair, what was conditioned on, the answer, the released value, its cost.

    q_value: where the search has one, the share of edges expected to join independent columns, were this the weakest.
    share_a_to_b, share_b_to_a: of edges, how often the two arrows were sampled (`Graph.arrow_shares`); an edge without
    a direction has the rest. A search on one noisy table answers by post-processing: its queries cost nothing
    on top of the table. public_knowledge: what of the edge was known beforehand. A required or a
    forbidden edge has a row without an answer.
    """
    rows = []
    for item in graph.decisions:
        epsilon = None if item.epsilon is None else float(amounts.spent(item.epsilon))
        asked = [" ".join(graph.names[k] for k in item.given), bool(graph.skeleton[item.i, item.j]), item.independent]
        rows.append(_row(graph, item.i, item.j, [*asked, _short(item.value), epsilon, _short(item.q_value)]))
    for pairs, edge in ((graph.known.required, True), (graph.known.forbidden, False)):
        for i, j in np.argwhere(np.triu(pairs)).tolist():
            rows.append(_row(graph, i, j, ["", edge, None, None, None, None]))
    arrows = ["share_a_to_b", "share_b_to_a"]
    header = ["a", "b", "given", "edge", "independent", "released_value", "epsilon", "q_value", *arrows]
    return [*header, "public_knowledge"], rows


def _row(graph: Graph, i: int, j: int, answer: list[Any]) -> list[Any]:
    """The names of a pair, the answer about it, the shares of its arrows, and what was known of it."""
    arrows: list[float | None] = [None, None]
    if graph.arrow_shares is not None and graph.skeleton[i, j]:
        arrows = [_short(graph.arrow_shares[i, j]), _short(graph.arrow_shares[j, i])]
    settled = graph.settled[i, j] or graph.settled[j, i]
    known = ["required"] * bool(graph.known.required[i, j]) + ["forbidden"] * bool(graph.known.forbidden[i, j])
    known += ["direction"] * bool(settled)
    return [graph.names[i], graph.names[j], *answer, *arrows, ", ".join(known)]


def _short(number: float | None) -> float | None:
    return None if number is None else float(f"{number:.6g}")


@dataclasses.dataclass(frozen=True)
class GraphQuery(TableQuery[GraphAnswer]):
    """The graph of columns of a schema, at a total budget.

    settings: of `jaxdp.discovery.discover`, with method and delta. keep: the file of answers, a path or opened.
    truth: a graph that the answer is compared with.
    """

    form: ClassVar = GraphAnswer
    keywords: ClassVar = SearchOptions
    unfinished: ClassVar = (checkpoint.FILE,)

    schema: Schema
    names: tuple[str, ...]
    epsilon: float
    settings: Mapping[str, Any]
    keep: Any = None
    truth: Graph | None = None

    def in_folder(self, folder: Path) -> GraphQuery:
        """With its file of answers in this folder, where the search has one."""
        return dataclasses.replace(self, keep=folder / checkpoint.FILE) if keeps(self.settings["method"]) else self

    @classmethod
    def of(cls, schema: Schema, /, **given: Unpack[SearchOptions]) -> GraphQuery:
        """The query. Errors: ValueError or TypeError that names the wrong column or setting, before data are read."""
        own = complete(SearchOptions, given)
        columns, method = own["columns"], own["method"]
        names = list(schema.names) if columns is None else schema.named("columns", columns)
        if len(names) < 2:
            raise ValueError(f"a graph needs at least two columns, got {len(names)}.")
        schema.require_unhashed(names)  # any column may be conditioned on
        settings: dict[str, Any] = {name: value for name, value in given.items() if name in set(ABILITIES) - {"keep"}}
        if method != AUTO:
            require_taken(named(method), asked_for(settings), levels_of(schema.columns_of(names)))
        _require_open(knowledge.known(settings.get("knowledge"), names))
        settings = {name: value for name, value in settings.items() if value is not None}
        return cls(schema, tuple(names), budget(own["epsilon"]), {"method": method, **settings}, own["keep"])

    @property
    def short(self) -> str:
        """The columns, for ledgers."""
        return ", ".join(self.names)

    def selection(self, table: Table) -> Selection:
        """Any column may be conditioned on."""
        return Selection(table, self.names, all_given=True)

    def ask(
        self, table: Table, key: Any, account: Any = None, *, on_stage: Callable[[str], None] = silent, **more: Any
    ) -> GraphAnswer:
        """As every query; the file of answers is opened before anything is read, for a source may be asked twice."""
        with contextlib.ExitStack() as stack:
            query = self
            if self.keep is not None:
                rules = [self.schema.rule(name) for name in self.names]
                opened = stack.enter_context(checkpoint.keeping(self.keep, account, rules))
                query, account = dataclasses.replace(self, keep=opened), None if account is None else opened
            return TableQuery.ask(query, table, key, account, on_stage=on_stage, **more)

    def loader(self, selection: Selection, key: Any) -> tuple[GraphQuery, Callable[..., Any]]:
        """Records in memory; columns of levels as codes, one byte each; or, where that is too much, sums of chunks."""
        rows = selection.rows_in_chunks()
        if rows is not None:
            return self, self._beyond_memory(selection, rows, is_release(key))

        def load(source: Any, **how: Any) -> Any:
            return as_records(self.schema.read_table(source, list(self.names), shuffled=is_release(key), **how))

        return self, load

    def _beyond_memory(self, selection: Selection, rows: int, hidden: bool) -> Callable[..., Any]:
        """How a table of so many rows is read. Errors: ValueError, before it is read, for a search without sums."""
        how, columns = selection.table.reading, self.schema.columns_of(self.names)
        most, takes_sums = how.limit, 0 in levels_of(columns) or how.keep_sums is not None
        if not takes_sums and streamed.BYTES_PER_CODE * rows * len(columns) <= most:
            return functools.partial(streamed.codes, schema=self.schema, names=list(self.names), hidden=hidden)
        method = self.settings["method"]
        with_sums = [name for name, found in searches().items() if found.spec.sums]
        if method == AUTO and self.schema.unit:  # how many rows persons have must not decide on the method
            raise ValueError(
                f"name a search by --method (in Python method=) with unit = {self.schema.unit!r} and a table that does "
                f"not fit into memory: {' or '.join(with_sums)} ({OWNER})."
            )
        if method == AUTO:
            method = best(setting_of(columns, rows, self.epsilon, self.settings.get("delta", 0.0), takes_sums))
        spec = named(method).spec
        if not spec.sums:
            raise ValueError(
                f"{spec.name} must have all records in memory: {selection.in_memory(rows)}. Use "
                f"{' or '.join(with_sums)}, whose sums are taken in chunks, or more memory."
            )

        described = streamed.AllColumns(self.schema, self.names)
        chunks: dict[str, Any] = {"columns": described, "memory": most, "force": how.force, "kept": selection.kept()}
        chunks["hidden"] = hidden

        def load(source: Any, **told: Any) -> RecordsInChunks:
            return RecordsInChunks(streamed.load(source, **chunks, **told), columns)

        return load

    def answer(self, data: Any, key: Any, account: Any, on_stage: Callable[[str], None], **more: Any) -> GraphAnswer:
        """By the search that fits, or the one that was named."""
        size = data.num_records
        if size < MIN_ROWS:
            raise ValueError(f"the data have {size} row{'s' * (size != 1)}; a search needs at least {MIN_ROWS}.")
        with terminal_progress():
            found = search(key, data, ledger=account, epsilon=self.epsilon, keep=self.keep, **self.settings)
        against = cautions(size, found.cost, found.mode, account is not None)
        found = dataclasses.replace(found, cautions=tuple(against))
        return GraphAnswer(found, size, self.schema.protects, self.truth)
