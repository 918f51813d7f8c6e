"""`jaxdp.discover`: one private causal graph of the columns of a table, in one call."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Unpack

from jaxdp._base.keywords import flat
from jaxdp.data import streamed
from jaxdp.data.records import RecordsInChunks, as_records, levels_of
from jaxdp.data.schema import Schema
from jaxdp.discovery.choose import AUTO, named, require_known, require_taken, setting_of
from jaxdp.discovery.choose import discover as search
from jaxdp.discovery.engine import knowledge
from jaxdp.discovery.engine.kept import keeping
from jaxdp.discovery.engine.skeleton import terminal_progress
from jaxdp.discovery.graph import Graph
from jaxdp.discovery.spec import Abilities, Search, asked_for, best, searches
from jaxdp.one_call.ask import Call, CallOptions, TableQuery, budget, silent
from jaxdp.one_call.cautions import cautions
from jaxdp.one_call.reading import Selection, Table, is_release
from jaxdp.randomness.keys import RELEASE

MIN_ROWS = 2


class SearchOptions(CallOptions, Abilities, total=False):
    """The keywords of `jaxdp.discover` beside its own: the call's, and those that not every search has."""


@flat(SearchOptions, strict=False, force=False, delta=0.0, accept_coarse_cells=False)
def discover(
    table: Any,
    *,
    epsilon: float,
    columns: Sequence[str] | None = None,
    method: str | Search = AUTO,
    **how: Unpack[SearchOptions],
) -> Graph:
    """Which columns are directly related, and in which direction? A partially directed graph, at a total budget.

        jaxdp.discover(frame, epsilon=1.0, levels={"smoker": ["no", "yes"], "cough": ["no", "yes"]})

    table, schema, bounds, levels, ledger, key, and how it is read (strict to keep_sums): as in `jaxdp.test`. Of a table
    that takes more than `memory`, columns of levels are kept as codes of a byte, and others go into sums where the
    search has them.
    columns: which to use, default all that are described. method: a search, or a test for PC; default what fits.
    max_order, knowledge (`jaxdp.discovery.Knowledge`), keep (a file for the answers, with which an interrupted search
    goes on), directions (share of the budget for the arrows; 0 draws none), accept_coarse_cells: as in
    `jaxdp.discovery.discover`.
    delta: for searches that are (epsilon, delta)-DP; 0 asks for pure epsilon-DP.

    Returns a `jaxdp.discovery.Graph`: `edges`, `plot()`, `to_dict()`, `to_networkx()`. It holds no record.
    Privacy: (epsilon, delta)-DP under replace-one for the whole search.
    Errors: ValueError or TypeError in one sentence, before anything is charged; `BudgetExhausted` from the ledger.
    """
    call = Call.of(table, how)
    own: dict[str, Any] = {"columns": columns, "epsilon": epsilon, "method": method}
    found = call.ask(GraphQuery.of(call.schema, **own, **call.settings))[0]
    return dataclasses.replace(found, note=" ".join(text for text in (found.note, call.schema.protects) if text))


@dataclasses.dataclass(frozen=True)
class GraphQuery(TableQuery[tuple[Graph, int]]):
    """The graph of columns of a schema, at a total budget; its answer has the number of records beside it.

    settings: of `jaxdp.discovery.discover`, with method and delta. keep: the file of answers, a path or opened.
    """

    schema: Schema
    names: tuple[str, ...]
    epsilon: float
    settings: Mapping[str, Any]
    keep: Any = None

    @classmethod
    def of(
        cls,
        schema: Schema,
        *,
        columns: str | Sequence[str] | None = None,
        epsilon: float,
        method: str | Search = AUTO,
        keep: Any = None,
        **settings: Any,
    ) -> GraphQuery:
        """The query. Errors: ValueError or TypeError that names the wrong column or setting, before data are read."""
        names = list(schema.names) if columns is None else schema.named("columns", columns)
        if len(names) < 2:
            raise ValueError(f"a graph needs at least two columns, got {len(names)}.")
        require_known(settings)
        if method != AUTO:
            require_taken(named(method), asked_for(settings), levels_of(schema.columns_of(names)))
        knowledge.known(settings.get("knowledge"), names)
        settings = {name: value for name, value in settings.items() if value is not None}
        return cls(schema, tuple(names), budget(epsilon), {"method": method, **settings}, keep)

    @property
    def short(self) -> str:
        """The columns, for ledgers."""
        return ", ".join(self.names)

    def selection(self, table: Table) -> Selection:
        """Any column may be conditioned on."""
        return Selection(table, self.names, all_given=True)

    def ask(
        self, table: Table, key: Any, account: Any = None, *, begin: Callable[[str], None] = silent, **more: Any
    ) -> tuple[Graph, int]:
        """As every query; the file of answers is opened before anything is read, for a source may be asked twice."""
        with contextlib.ExitStack() as stack:
            query = self
            if self.keep is not None:
                opened = stack.enter_context(keeping(self.keep, account))
                query, account = dataclasses.replace(self, keep=opened), None if account is None else opened
            return TableQuery.ask(query, table, key, account, begin=begin, **more)

    def loader(self, selection: Selection, key: Any) -> tuple[GraphQuery, Callable[..., Any]]:
        """Records in memory; columns of levels as codes, one byte each; or, where that is too much, sums of chunks."""
        rows = selection.rows_in_chunks()
        if rows is not None:
            return self, self._beyond_memory(selection, rows)

        def load(source: Any, **how: Any) -> Any:
            return as_records(self.schema.read_table(source, list(self.names), shuffled=is_release(key), **how))

        return self, load

    def _beyond_memory(self, selection: Selection, rows: int) -> Callable[..., Any]:
        """How a table of so many rows is read. Errors: ValueError, before it is read, for a search without sums."""
        how, columns = selection.table.reading, self.schema.columns_of(self.names)
        most, takes_sums = how.limit, 0 in levels_of(columns) or how.keep_sums is not None
        if not takes_sums and streamed.BYTES_PER_CODE * rows * len(columns) <= most:
            return functools.partial(streamed.codes, schema=self.schema, names=list(self.names))
        method = self.settings["method"]
        if method == AUTO:
            method = best(setting_of(columns, rows, self.epsilon, self.settings.get("delta", 0.0), takes_sums))
        spec = named(method).spec
        if not spec.sums:
            with_sums = [name for name, found in searches().items() if found.spec.sums]
            raise ValueError(
                f"{spec.name} must have all records in memory: about {rows} rows of these columns are more than fits "
                f"into {most / 1e9:.3g} GB (--memory). Use {' or '.join(with_sums)}, whose sums are taken in chunks, "
                "or more memory."
            )

        described = streamed.AllColumns(self.schema, self.names)
        chunks: dict[str, Any] = {"columns": described, "memory": most, "force": how.force, "kept": selection.kept()}

        def load(source: Any, **told: Any) -> RecordsInChunks:
            return RecordsInChunks(streamed.load(source, **chunks, **told), columns)

        return load

    def answer(self, data: Any, key: Any, account: Any, begin: Callable[[str], None], **more: Any) -> tuple[Graph, int]:
        """By the search that fits, or the one that was named."""
        size = data.num_records
        if size < MIN_ROWS:
            raise ValueError(f"the data have {size} rows; a search needs at least {MIN_ROWS}.")
        with terminal_progress():
            found = search(key, data, ledger=account, epsilon=self.epsilon, keep=self.keep, **self.settings)
        released, recorded = found.mode == RELEASE, account is not None
        against = cautions(size, float(found.cost.epsilon), released=released, recorded=recorded)
        return dataclasses.replace(found, cautions=tuple(against)), size
