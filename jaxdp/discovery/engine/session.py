"""What every search shares: one key and one ledger charge, made before a value is read, and one Graph at the end."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator

from jaxdp.core import Cost
from jaxdp.data.records import Records
from jaxdp.discovery.engine.orientation import orient
from jaxdp.discovery.engine.skeleton import Search
from jaxdp.discovery.graph import Decision, Graph
from jaxdp.noise import source
from jaxdp.randomness import keys


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

    def graph(self, records: Records, search: Search, decisions: tuple[Decision, ...] = ()) -> Graph:
        """The graph of a finished search, oriented; everything in it is post-processing."""
        return Graph(
            names=records.names,
            skeleton=search.adjacency,
            cpdag=orient(search.adjacency, search.separators, search.against_time()),
            complete=not search.untested,
            cost=self.cost,
            mode=self.mode,
            method=self.method,
            untested=search.untested,
            decisions=decisions,
            num_tests=search.num_tests,
        )


@contextlib.contextmanager
def opened(key, method: str, cost: Cost, ledger=None) -> Iterator[Session]:
    """Charges the ledger with the whole cost, then opens the key; releases compute in float64.

    Errors: TypeError for what is no key, `BudgetExhausted` from the ledger, as `keys.admit`; all before data are read.
    """
    mode = keys.admit(key)
    with keys.precision(mode):
        if ledger is not None:
            ledger.charge(method, cost, key)
        yield Session(source.opened(key), cost, method)
