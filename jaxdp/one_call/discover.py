"""`jaxdp.discover`: one private causal graph of the columns of a table, in one call."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jaxdp.data import streamed
from jaxdp.data.known import schema_of
from jaxdp.data.records import RecordsInChunks, as_records, levels_of
from jaxdp.data.schema import Schema
from jaxdp.discovery.choose import AUTO, named, setting_of
from jaxdp.discovery.choose import discover as search
from jaxdp.discovery.engine.kept import keeping
from jaxdp.discovery.engine.knowledge import known as require_known
from jaxdp.discovery.engine.skeleton import terminal_progress
from jaxdp.discovery.graph import Graph
from jaxdp.discovery.spec import ABILITIES, Search, best, searches
from jaxdp.one_call import reading
from jaxdp.one_call.budget import budget
from jaxdp.one_call.cautions import cautions
from jaxdp.one_call.test import account_of, own_key, size
from jaxdp.randomness.keys import RELEASE

MIN_ROWS = 2


def discover(
    table: Any,
    *,
    epsilon: float,
    delta: float = 0.0,
    schema: Schema | str | os.PathLike | Mapping | None = None,
    bounds: Mapping[str, Sequence[float]] | None = None,
    levels: Mapping[str, Sequence[Any]] | None = None,
    columns: Sequence[str] | None = None,
    method: str | Search = AUTO,
    ledger: Any = None,
    key: Any = None,
    strict: bool = False,
    records: int | None = None,
    force: bool = False,
    missing: str | None = None,
    memory: int | str | None = None,
    **settings: Any,
) -> Graph:
    """Which columns are directly related, and in which direction? A partially directed graph, at a total budget.

        jaxdp.discover(frame, epsilon=1.0, levels={"smoker": ["no", "yes"], "cough": ["no", "yes"]})

    table, schema, bounds, levels, ledger, key, strict, records, force, missing, memory: as in `jaxdp.test`. Of a table
    that takes more than `memory`, columns of levels are kept as codes of a byte, and others go into sums where the
    search has them.
    columns: which to use, default all that are described. method: a search, or a test for PC; default what fits.
    settings: of `jaxdp.discovery.discover`, such as max_order, knowledge (`jaxdp.discovery.Knowledge`), keep (a file
    for the answers, with which an interrupted search goes on), directions (share of the budget for the arrows; 0 draws
    none) and accept_coarse_cells.
    delta: for searches that are (epsilon, delta)-DP; 0 asks for pure epsilon-DP.

    Returns a `jaxdp.discovery.Graph`: `edges`, `plot()`, `to_dict()`, `to_networkx()`. It holds no record.
    Privacy: (epsilon, delta)-DP under replace-one for the whole search.
    Errors: ValueError or TypeError in one sentence, before anything is charged; `BudgetExhausted` from the ledger.
    """
    known = schema_of(schema, bounds, levels, missing)
    names = columns_of(known, columns)
    chosen = settings_of(method=method, delta=delta, **settings)
    account = account_of(ledger, table, ", ".join(names))
    source = reading.Source(table, tuple(names), known, strict, records, force, all_given=True)
    found = find_graph(source, own_key(key), account, epsilon=epsilon, memory=size(memory), **chosen)[0]
    return dataclasses.replace(found, note=" ".join(text for text in (found.note, known.protects) if text))


def columns_of(schema: Schema, columns: str | Sequence[str] | None) -> list[str]:
    """The columns of a graph. Errors: ValueError for fewer than two, and for those the schema does not describe."""
    names = list(schema.names) if columns is None else schema.named("columns", columns)
    if len(names) < 2:
        raise ValueError(f"a graph needs at least two columns, got {len(names)}.")
    return names


def settings_of(*, method: str | Search = AUTO, delta: float = 0.0, **settings: Any) -> dict[str, Any]:
    """The settings of a search, checked without data. Errors: ValueError or TypeError that names the wrong one."""
    if method != AUTO:
        named(method)
    if delta:
        settings["delta"] = delta
    for name in settings:
        if name not in ABILITIES:
            offered = "max_order, knowledge, directions, keep and accept_coarse_cells"
            raise TypeError(f"searches have no setting {name!r}; they have {offered}.")
    return {"method": method, **settings}


def find_graph(
    source: reading.Source,
    key: Any,
    account: Any,
    *,
    epsilon: float,
    keep: Any = None,
    memory: int | None = None,
    **settings: Any,
) -> tuple[Graph, int]:
    """The graph of the columns of a source, charged to the account once, and the number of records.

    keep: path of the file of answers, opened before anything is read, for a source may be asked twice.
    memory: bytes that the table may take.
    """
    epsilon = budget(epsilon)
    require_known(settings.get("knowledge"), source.names)

    def ask(records, account):
        if records.num_records < MIN_ROWS:
            raise ValueError(f"the data have {records.num_records} rows; a search needs at least {MIN_ROWS}.")
        with terminal_progress():
            found = search(key, records, ledger=account, epsilon=epsilon, keep=keep, **settings)
        against = cautions(
            records.num_records, float(found.cost.epsilon), released=found.mode == RELEASE, recorded=account is not None
        )
        return dataclasses.replace(found, cautions=tuple(against)), records.num_records

    def load(table, **how):
        return as_records(source.schema.read_table(table, list(source.names), shuffled=reading.is_release(key), **how))

    rows = source.rows_beyond(memory)
    if rows is not None:
        load = _beyond_memory(source, rows, reading.limit(memory), epsilon, settings)
    with contextlib.ExitStack() as stack:
        if keep is not None:
            keep = stack.enter_context(keeping(keep, account))
            account = None if account is None else keep
        return reading.ask(ask, load, source, account)


def _beyond_memory(source: reading.Source, rows: int, most: int, epsilon: float, settings) -> Callable[..., Any]:
    """How a table of so many rows is read within so many bytes. Errors: ValueError, before it is read, if none serves.

    Columns of levels as codes, one byte each; where that is too much, or columns are continuous, in chunks.
    """
    schema, names = source.schema, source.names
    columns = schema.columns_of(names)
    as_codes = streamed.BYTES_PER_CODE * rows * len(columns)
    if 0 not in levels_of(columns) and as_codes <= most:
        return functools.partial(streamed.codes, schema=schema, names=list(names))
    method = settings.get("method", AUTO)
    if method == AUTO:
        delta, in_chunks = settings.get("delta", 0.0), 0 in levels_of(columns)
        method = best(setting_of(columns, rows, epsilon, delta, in_chunks))
    spec = named(method).spec
    if not spec.sums:
        with_sums = [name for name, found in searches().items() if found.spec.sums]
        raise ValueError(
            f"{spec.name} must have all records in memory: about {rows} rows of these columns are more than fits into "
            f"{most / 1e9:.3g} GB (--memory). Use {' or '.join(with_sums)}, whose sums are taken in chunks, or more "
            "memory."
        )

    def load(table, **how):
        chunks = streamed.load(
            table, columns=streamed.AllColumns(schema, tuple(names)), memory=most, force=source.force, **how
        )
        return RecordsInChunks(chunks, columns)

    return load
