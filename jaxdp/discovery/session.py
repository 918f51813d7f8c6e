"""What every search shares: one key and one ledger charge, made before a value is read, and one Graph at the end."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any

from jaxdp.core import Cost
from jaxdp.data.records import Records
from jaxdp.discovery.graph import Decision, Graph
from jaxdp.discovery.orientation import orient
from jaxdp.discovery.skeleton import Search
from jaxdp.noise import keys


@dataclasses.dataclass(frozen=True)
class Session:
    """An opened search: the JAX key to draw from, its mode, and the reserved cost."""

    key: Any
    mode: str
    cost: Cost
    method: str

    def graph(self, records: Records, search: Search, decisions: tuple[Decision, ...] = ()) -> Graph:
        """The graph of a finished search, oriented; everything in it is post-processing."""
        return Graph(
            names=records.names,
            skeleton=search.adjacency,
            cpdag=orient(search.adjacency, search.separators),
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
        yield Session(keys.open_key(key), mode, cost, method)
