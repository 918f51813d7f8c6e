"""Graph: what a search publishes. Everything in it is released or public."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxdp._base import amounts
from jaxdp._base.display import NOT_PRIVATE, Compact, Readable, listed, printable, titled
from jaxdp._base.printed import printed
from jaxdp.core import Cost, Relation
from jaxdp.discovery.engine.knowledge import Knowledge, Known, known


@dataclasses.dataclass(frozen=True, repr=False)
class Decision(Compact):
    """One answered query of a search: is column i independent of column j given others? value: the released number.

    q_value: where released numbers decide about an edge, its Benjamini-Hochberg adjusted p-value against independence
    (noise and sampling counted): of this edge and all stronger ones, the share expected to join independent columns.
    Post-processing. It says nothing about how probable it is that the two columns are neighbours in the true graph.
    """

    i: int
    j: int
    given: tuple[int, ...]
    independent: bool
    value: float | None = None
    epsilon: float | None = None

    @classmethod
    def of(cls, query: tuple[int, int, tuple[int, ...]], independent: bool) -> Decision:
        """The answer to a query, without a number."""
        i, j, given = query
        return cls(i, j, given, independent)

    q_value: float | None = None


@dataclasses.dataclass(frozen=True, repr=False)
class Graph(Readable):
    """A discovered graph: its edges, the decisions behind them and the cost.

    names: one per node. skeleton: bool (d, d), symmetric. cpdag: bool (d, d), entry (i, j) without (j, i)
    is i -> j, both are i - j. complete: False if the budget ended before every query was answered, or a policy answered
    some in place of the data (`note` counts them); `untested` lists the pairs that still had queries, whose edges were
    kept.
    cost: of the whole search, fixed before the data were read. decisions: the answered queries
    (for methods that answer by post-processing, the answer that removed or kept each edge).
    note: what the reader must know about how far the search went. cautions: what records and budget say against it.
    arrow_shares: float (d, d), or None for searches without one: entry (i, j) is the share of i -> j among orientations
    sampled from a model of the released numbers, times what was right of such shares on random models
    (docs/discovery.md#arrow-shares).
    knowledge: what was known beforehand, to which the search kept.
    """

    names: tuple[str, ...]
    skeleton: np.ndarray
    cpdag: np.ndarray
    complete: bool = True
    cost: Cost = dataclasses.field(default_factory=lambda: Cost(epsilon=float("inf"), rho=float("inf")))
    mode: str = "simulation"
    method: str = ""
    untested: tuple[tuple[int, int], ...] = ()
    decisions: tuple[Decision, ...] = ()
    num_tests: int = 0
    note: str = ""
    arrow_shares: np.ndarray | None = None
    cautions: tuple[str, ...] = ()
    knowledge: Knowledge | None = None

    @functools.cached_property
    def known(self) -> Known:
        """The knowledge by column number."""
        return known(self.knowledge, self.names)

    @functools.cached_property
    def settled(self) -> np.ndarray:
        """Bool (d, d): the arrows between two tiers, which point as the public knowledge says."""
        return self.cpdag & ~self.cpdag.T & self.known.against_time().T

    @property
    def edges(self) -> list[tuple[str, str]]:
        """Pairs of names joined by an edge, in column order."""
        return [(self.names[i], self.names[j]) for i, j in np.argwhere(np.triu(self.skeleton))]

    @property
    def directed(self) -> list[tuple[str, str]]:
        """Arcs (from, to)."""
        return [(self.names[i], self.names[j]) for i, j in np.argwhere(self.cpdag & ~self.cpdag.T)]

    @property
    def undirected(self) -> list[tuple[str, str]]:
        """Edges without a direction, each once."""
        return [(self.names[i], self.names[j]) for i, j in np.argwhere(np.triu(self.cpdag & self.cpdag.T))]

    @property
    def q_values(self) -> np.ndarray:
        """`Decision.q_value` of each edge, (d, d), symmetric; NaN where there is no edge or no number decided."""
        found = np.full(self.skeleton.shape, np.nan)
        for item in self.decisions:
            if item.q_value is not None and self.skeleton[item.i, item.j]:
                found[item.i, item.j] = found[item.j, item.i] = item.q_value
        return found

    def in_words(self, spelled: Callable[[str], str] = str) -> list[str]:
        """Arrows, then undirected edges; those that were required say so. spelled: how a name is written."""
        required = {frozenset(pair) for pair in self.knowledge.required} if self.knowledge else set()
        marks = [(self.directed, "->"), (self.undirected, "--")]
        return [
            f"{spelled(a)} {mark} {spelled(b)}{' (required)' * (frozenset((a, b)) in required)}"
            for pairs, mark in marks
            for a, b in pairs
        ]

    def _display(self) -> tuple[str, dict[str, Any]]:
        edges = self.in_words(printable)
        values = {
            "nodes": f"{len(self.names)}: {listed(map(printable, self.names))}",
            "edges": f"{len(edges)}: {listed(edges)}" if edges else "none",
            "privacy": str(self.cost),
            "answered": f"{self.num_tests} queries" if self.num_tests else None,
            "complete": None if self.complete else f"no{self._kept()}",
            "note": self.note,
            "caution": " ".join(self.cautions),
        }
        return titled(self.method or "graph", self.mode), {name: values[name] for name in values if values[name]}

    def _kept(self) -> str:
        count = len(self.untested)
        return f": {count} {'pair' if count == 1 else 'pairs'} kept untested" if count else ""

    def plot(self):
        """The graph as a picture that notebooks show and `save(path)` writes. Needs the `plot` extra."""
        from jaxdp.report.graphs import draw_graph
        from jaxdp.report.picture import Picture

        return Picture.drawn(draw_graph, self.names, self.cpdag, **self.drawn_with())

    def drawn_with(self) -> dict[str, Any]:
        """What pictures show beside names and edges."""
        return {
            "title": f"Causal graph of {len(self.names)} columns",
            "simulation": self.mode == "simulation",
            "q_values": self.q_values,
            "required": self.known.required,
            "settled": self.settled,
        }

    def to_networkx(self):
        """networkx.DiGraph; an undirected edge becomes two arcs. Needs the `plot` extra."""
        import networkx

        graph = networkx.DiGraph()
        graph.add_nodes_from(self.names)
        graph.add_edges_from((self.names[i], self.names[j]) for i, j in np.argwhere(self.cpdag))
        return graph

    def to_causal_learn(self) -> np.ndarray:
        """causal-learn's matrix: i -> j is G[j, i] = 1, G[i, j] = -1; i - j is -1 twice."""
        into, undirected = self.cpdag & ~self.cpdag.T, self.cpdag & self.cpdag.T
        return into.T.astype(int) - into.astype(int) - undirected.astype(int)

    def to_pcalg(self) -> np.ndarray:
        """pcalg's amat.cpdag: i -> j is a[j, i] = 1 (transposed); i - j is 1 twice."""
        return self.cpdag.T.astype(int)

    def to_tigramite(self) -> np.ndarray:
        """tigramite's string marks, (d, d): '-->' at [i, j] and '<--' at [j, i]; 'o-o' twice; '' elsewhere."""
        marks = np.full(self.cpdag.shape, "", dtype="<U3")
        into = self.cpdag & ~self.cpdag.T
        marks[into], marks[into.T], marks[self.cpdag & self.cpdag.T] = "-->", "<--", "o-o"
        return marks

    def to_dict(self) -> dict[str, Any]:
        """The content of graph.json."""
        return {
            "names": list(self.names),
            "directed": [list(arc) for arc in self.directed],
            "undirected": [list(edge) for edge in self.undirected],
            "complete": self.complete,
            "epsilon": float(amounts.spent(self.cost.epsilon, 12)),
            "mode": self.mode,
        } | {name: told for name, told in self._remarks().items() if told}

    def _remarks(self) -> dict[str, Any]:
        """What graph.json holds where there is any."""
        given = dataclasses.asdict(self.knowledge) if self.knowledge else {}
        return {"note": self.note, "cautions": list(self.cautions), "knowledge": {k: v for k, v in given.items() if v}}

    def to_dot(self) -> str:
        """DOT text."""

        def quote(name):
            return json.dumps(name)

        lines = [f"  {quote(name)};" for name in self.names]
        lines += [f"  {quote(a)} -> {quote(b)};" for a, b in self.directed]
        lines += [f"  {quote(a)} -> {quote(b)} [dir=none];" for a, b in self.undirected]
        mark = [f"// {NOT_PRIVATE}"] if self.mode == "simulation" else []
        return "\n".join([*mark, "digraph {", *lines, "}", ""])


def graph_from_arcs(names: Sequence[str], arcs: np.ndarray, **public) -> Graph:
    """A graph from its CPDAG array."""
    arcs = np.asarray(arcs, bool)
    return Graph(names=tuple(names), skeleton=arcs | arcs.T, cpdag=arcs, **public)


def graph_from_dict(content: Mapping[str, Any]) -> Graph:
    """The inverse of `Graph.to_dict`. Errors: ValueError with the offending key or name."""
    if not isinstance(content, Mapping) or not isinstance(content.get("names"), list):
        raise ValueError(
            'a graph needs "names", a list of column names, beside "directed" and "undirected", lists of pairs of '
            "them: graph.json of an earlier run is such a file."
        )
    names = [str(name) for name in content["names"]]
    position = {name: i for i, name in enumerate(names)}
    if len(position) != len(names):
        raise ValueError("a graph needs different names, got a repeated one.")
    arcs = np.zeros((len(names), len(names)), bool)
    for key in ("directed", "undirected"):
        for pair in _list(content, key):
            if not isinstance(pair, list | tuple) or [type(name) for name in pair] != [str, str]:
                raise ValueError(f'"{key}" must hold pairs of names, got {printed(pair)}.')
            unknown = [name for name in pair if name not in position]
            if unknown or pair[0] == pair[1]:
                raise ValueError(f'"{key}" holds {pair!r}, but both must be different entries of "names".')
            i, j = position[pair[0]], position[pair[1]]
            there = (key == "undirected", True)  # j -> i and i -> j: an edge may stand twice, but not in two ways
            if arcs[i, j] | arcs[j, i] and (arcs[j, i], arcs[i, j]) != there:
                raise ValueError(f"a graph needs one mark on each edge, and that of {pair!r} is given in two ways.")
            arcs[j, i], arcs[i, j] = there
    try:
        epsilon = float(content.get("epsilon", "inf"))
    except (TypeError, ValueError):
        raise ValueError(f'"epsilon" must be a number, got {printed(content["epsilon"])}.') from None
    cost = Cost(epsilon=epsilon, rho=float("inf"), relation=Relation.REPLACE_ONE)
    return graph_from_arcs(
        names,
        arcs,
        complete=bool(content.get("complete", True)),
        cost=cost,
        mode=str(content.get("mode", "")),
        note=str(content.get("note", "")),
        cautions=tuple(map(str, _list(content, "cautions"))),
        knowledge=_knowledge(content, names),
    )


def _knowledge(content: Mapping[str, Any], names: Sequence[str]) -> Knowledge | None:
    """What was known about columns of these names."""
    if "knowledge" not in content:
        return None
    try:
        found = Knowledge(**content["knowledge"])
    except TypeError:
        raise ValueError('"knowledge" may hold "required", "forbidden" and "tiers", lists of column names.') from None
    found.over(names)
    return found


def _list(content: Mapping[str, Any], key: str) -> Sequence[Any]:
    """What stands under the key, no entries where nothing does."""
    values = content.get(key, [])
    if not isinstance(values, list | tuple):
        raise ValueError(f'"{key}" must be a list, got {printed(values)}.')
    return values


def read_graph(path: str | os.PathLike) -> Graph:
    """Reads a graph from a file graph.json. Errors: OSError, or ValueError with one sentence."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise ValueError(f"graph {os.fspath(path)} is not UTF-8 text: save it as UTF-8.") from None
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"graph {os.fspath(path)} is not JSON: {error}.") from None
    return graph_from_dict(content)
