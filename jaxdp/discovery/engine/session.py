"""What every search shares: one key and one charge, made before a value is read, and one Graph at the end."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from jaxdp import charge
from jaxdp.charge import Account
from jaxdp.core import Cost
from jaxdp.data.records import Records, RecordsInChunks
from jaxdp.discovery.engine.checkpoint import Checkpoint, keeping
from jaxdp.discovery.engine.knowledge import Knowledge
from jaxdp.discovery.engine.orientation import extension, orient
from jaxdp.discovery.engine.skeleton import Skeleton
from jaxdp.discovery.graph import Decision, Graph
from jaxdp.noise import source
from jaxdp.randomness import keys

ASSUMED = (
    "{} shows a cause only if every common cause of two columns is a column too and records were not selected by "
    "their values: otherwise x -> y may stand for a common cause of both (docs/discovery.md#common-causes)."
)
CONTRADICTION = (
    "No directed acyclic graph has exactly these edges, arrows and colliders: some decisions of the search contradict "
    "each other, so that at least one edge or arrow is wrong."
)


@dataclasses.dataclass(frozen=True)
class Session:
    """An opened search: the source to draw from, and the reserved cost."""

    source: source.Source
    cost: Cost
    method: str

    @property
    def mode(self) -> str:
        """ "simulation" or "release"."""
        return self.source.mode

    def graph(
        self, records: Records | RecordsInChunks, search: Skeleton, decisions: tuple[Decision, ...] = ()
    ) -> Graph:
        """The graph of a finished search, oriented; everything in it is post-processing."""
        return Graph(
            names=records.names,
            skeleton=search.adjacency,
            cpdag=orient(search.adjacency, search.separators, search.known.against_time()),
            complete=not search.untested,
            cost=self.cost,
            mode=self.mode,
            method=self.method,
            untested=search.untested,
            decisions=decisions,
            num_tests=search.num_tests,
        )


def searched(
    key: Any,
    method: str,
    cost: Cost,
    records: Any,
    search: Callable[[Session, Any], Graph],
    *,
    ledger: Account | None = None,
    keep: Any = None,
    asked: Mapping[str, Any] = {},
    knowledge: Knowledge | None = None,
    rehearse: Callable[[Session, Any], Any] | None = None,
) -> Graph:
    """The graph of search(session, records), whose whole cost is charged before a value is used.

    rehearse: what a release runs on blank records before it is charged, and throws away; default the search itself.
    keep: where answers are kept, a path or an open `engine.checkpoint`; asked: public facts that decide the search;
    knowledge: what it kept to.
    Errors: TypeError for what is no key, `BudgetExhausted` from the ledger, as `keys.admit`; ValueError for a file of
    another search; all before data are read.
    """
    mode = keys.admit(key)
    with keys.precision(mode), contextlib.ExitStack() as stack:
        if keep is not None and not isinstance(keep, Checkpoint):
            keep = stack.enter_context(keeping(keep, ledger))
            ledger = None if ledger is None else keep
        if keep is not None:
            amounts = {name: float(getattr(cost, name)) for name in ("epsilon", "delta", "rho")}
            keep.begin({"method": method, "mode": mode, **amounts, **asked})
            keep.warn_of_other_data()

        def rehearsal():
            (rehearse or search)(Session(source.source_from_key(keys.fresh_key()), cost, method), records.blank())

        with charge.paid(ledger, method, cost, key, mode=mode, rehearse=rehearsal):
            draws = source.source_from_key(key)
            draws = draws if keep is None else source.RecordedNoise(draws, keep)
            found = search(Session(draws, cost, method), records)
        return _with_notes(dataclasses.replace(found, knowledge=knowledge))


def _with_notes(graph: Graph) -> Graph:
    """The graph with notes of a contradiction, and of what arrows take for granted that no tiers settle."""
    drawn, settled = graph.cpdag & ~graph.cpdag.T, graph.settled
    which = "An arrow that the tiers do not settle" if settled.any() else "An arrow"
    notes = [
        graph.note,
        CONTRADICTION if drawn.any() and extension(graph.cpdag) is None else "",
        ASSUMED.format(which) if (drawn & ~settled).any() else "",
    ]
    return dataclasses.replace(graph, note=" ".join(filter(None, notes)))
