"""What every search shares: one key and one ledger charge, made before a value is read, and one Graph at the end."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from jaxdp.core import Cost
from jaxdp.data.records import Records
from jaxdp.discovery.engine.kept import Kept, keeping
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
def opened(key, method: str, cost: Cost, ledger=None, *, keep=None, asked: Mapping[str, Any] = {}) -> Iterator[Session]:
    """Charges the ledger with the whole cost, then opens the key; releases compute in float64.

    keep: where answers are kept, a path or the opened file (`engine.kept`); asked: what decides the search, public.
    Errors: TypeError for what is no key, `BudgetExhausted` from the ledger, as `keys.admit`; ValueError for a file of
    another search; all before data are read.
    """
    mode = keys.admit(key)
    with keys.precision(mode), contextlib.ExitStack() as stack:
        if keep is not None and not isinstance(keep, Kept):
            keep = stack.enter_context(keeping(keep, ledger))
            ledger = None if ledger is None else keep
        if keep is not None:
            amounts = {name: float(getattr(cost, name)) for name in ("epsilon", "delta", "rho")}
            keep.begin({"method": method, "mode": mode, **amounts, **asked})
        if ledger is not None:
            ledger.charge(method, cost, key)
        draws = source.opened(key)
        yield Session(draws if keep is None else source.RecordedNoise(draws, keep), cost, method)
