"""The one way in which a query about a table is asked, of the command line, Python and `Session` alike.

A query is a small frozen dataclass: its columns, its words, how it reads them, and what it makes of them. It knows
nothing of files, keys of callers, ledgers and terminals.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np

from jaxdp import charge
from jaxdp._base import check
from jaxdp._base.amounts import spent
from jaxdp._base.arguments import MAX_EPSILON, MIN_EPSILON, USUAL_DELTA
from jaxdp.accounting import privacy_unit
from jaxdp.ask import reading
from jaxdp.ask.calls import READING, SHARED, CallOptions
from jaxdp.ask.cautions import cautions, filled, totalled
from jaxdp.ask.reading import Reading, Selection, Table
from jaxdp.ask.table_answer import TableAnswer, versions
from jaxdp.data import batches, conditioning, private_drafts
from jaxdp.data.kept_sums import KeptSums
from jaxdp.data.schema import Schema
from jaxdp.privacy import Claim

MIN_ROWS = 10  # of a `ColumnsQuery`


def silent(stage: str) -> None:
    """A progress callback that does nothing."""


class TableQuery[Answer](abc.ABC):
    """What is asked of the columns of a table, at what budget; everything in it is public.

    form: the class of its answer, where a command writes it into a folder. keywords: of its call. ways: those of them
    that are ways of reading, fields of `Reading`; what it says of the others is `lacks`. unfinished: files with which
    an interrupted run of a command goes on. parts: of a long run.
    """

    form: ClassVar[type[TableAnswer]]
    keywords: ClassVar[Any] = CallOptions
    ways: ClassVar[tuple[str, ...]]
    lacks: ClassVar[str] = ""
    unfinished: ClassVar[tuple[str, ...]] = ()
    parts: int = 1

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.ways = tuple(way for way in READING if way in cls.keywords.__annotations__)

    def in_folder(self, folder: Path) -> TableQuery[Answer]:
        """The query whose unfinished files lie in this folder."""
        return self

    schema: Schema
    epsilon: float

    @property
    def public_columns(self) -> Sequence[str]:
        """Columns whose values are public to what answers, as a group label is."""
        return ()

    @property
    @abc.abstractmethod
    def short(self) -> str:
        """The query in one line, for ledgers."""

    @abc.abstractmethod
    def selection(self, table: Table) -> Selection:
        """The columns of the table that it reads."""

    @abc.abstractmethod
    def loader(self, selection: Selection, key: Any) -> tuple[TableQuery[Answer], Callable[..., Any]]:
        """The query with what public columns settle, and load(source, strict=, records=, report=).

        Errors: ValueError, before a record is read, for a table that is too large for it.
        """

    @abc.abstractmethod
    def answer(self, data: Any, key: Any, account: Any, on_stage: Callable[[str], None], **more: Any) -> Answer:
        """The answer from what was loaded, charged to the account before a value is used."""

    def require_key(self, key: Any) -> None:
        """Raises ValueError for a key with which it must not be asked."""
        del key

    def ask(
        self, table: Table, key: Any, account: Any = None, *, on_stage: Callable[[str], None] = silent, **more: Any
    ) -> Answer:
        """The answer about a table, charged to the account once. begin: called with the name of each stage.

        more: further callbacks, of `answer`.
        Errors: ValueError in one sentence, before anything is charged; `BudgetExhausted` from the account.
        """
        self.require_key(key)
        how = table.reading
        how.require_only(*self.ways, why=self.lacks)
        selection = self.selection(table)
        if reading.is_release(key):
            self.schema.require_released(selection.names)
        if how.strict:
            conditioning.require_said(self.schema.rule(name) for name in selection.given)
        query, load = self.loader(selection, key)
        on_stage("reading the data")

        def answered(data: Any, account: Any) -> Answer:
            with totalled(paying), filled(how.strict or how.force, how.records if how.strict else None):
                return query.answer(data, key, account, on_stage, **more)

        paying = account
        with charge.explaining(account) as account:
            found = reading.read(answered, load, selection, account, self.public_columns)
        if how.keep_sums is not None:
            KeptSums(how.keep_sums).delete()
        drafts = private_drafts.described(self.schema.rules, selection.names)
        named = bool(drafts) and isinstance(found, TableAnswer)  # what was paid for is handed over whatever it is
        return cast(Any, found).with_drafts(drafts, self.schema.unit) if named else found


class ColumnsQuery[Answer: TableAnswer](TableQuery[Answer]):
    """A query of columns that lie in memory together, answered by one release. name: of the command.

    delta: Gaussian noise under (epsilon, delta)-DP; 0 for pure epsilon-DP.
    """

    name: ClassVar[str]

    names: tuple[str, ...]
    delta: float

    def selection(self, table: Table) -> Selection:
        """The columns, read by the schema of the query."""
        return Selection(dataclasses.replace(table, schema=self.schema), self.names)

    def loader(self, selection: Selection, key: Any) -> tuple[TableQuery[Answer], Callable[..., Any]]:
        """All records."""
        rows = selection.rows_beyond()
        if rows is not None:
            raise ValueError(
                f"{self.name} must have all records in memory: {selection.in_memory(rows)}: name fewer columns, or "
                "give more memory."
            )
        read = selection.table.schema.read_table
        return self, functools.partial(read, names=self.names, shuffled=reading.is_release(key))

    def require_rows(self, rows: int) -> None:
        """Raises ValueError for too few records."""
        if rows < MIN_ROWS:
            raise ValueError(f"the data have {rows} row{'s' * (rows != 1)}; `{self.name}` needs at least {MIN_ROWS}.")

    def noise(self, delta: float | None = None) -> dict[str, Any]:
        """The budget as a field of what is released. delta: default the query's own."""
        from jaxdp.accounting.renyi import zcdp_rho
        from jaxdp.mechanisms import Gaussian

        delta = self.delta if delta is None else delta
        return {"mechanism": Gaussian(zcdp_rho(self.epsilon, delta))} if delta else {"epsilon": self.epsilon}

    def less_noise_with_delta(self, sd: float, of: Callable[..., float]) -> float | None:
        """The noise with a usual delta, where it is less than the `sd` of this query without one; public.

        of: `noise` as keywords -> sd.
        """
        with_delta = math.inf if self.delta else of(**self.noise(USUAL_DELTA))
        return with_delta if with_delta < sd else None

    def released(self, query: Any, values: Any, key: Any, account: Any) -> Any:
        """The release, at the cost of the claim, charged to the account before a value is used."""
        from jaxdp import core
        from jaxdp.randomness import keys

        cost = core.cost_of(query, values)
        if self.delta:
            rho = math.inf if float(cost.delta) else cost.rho  # of what has a delta of its own it would need it
            cost = Claim(epsilon=self.epsilon, delta=self.delta, rho=rho, relation=cost.relation)
        mode, method = keys.admit(key, query, values), core.method_of(query)
        with charge.paid(account, method, cost, key, mode=mode, rehearse=lambda: core.rehearse(query, values)):
            return dataclasses.replace(core.release(query, key, values), cost=cost)

    def common(self, rows: int, released: Any, account: Any) -> dict[str, Any]:
        """What the content of every answer holds. released: with its cost and mode."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "relation": released.cost.relation.value,
            "mode": released.mode,
            "n": rows,
            "cautions": cautions(
                rows, released.cost, released.mode, account is not None, map(self.schema.rule, self.names)
            ),
            "versions": versions(),
        }


def asked[Answer](query: type[TableQuery[Answer]], table: Any, how: Mapping[str, Any]) -> Answer:
    """The answer to a query, as a public call asks it. how: the keywords of the call."""
    described = "schema" in query.keywords.__annotations__  # else the query itself says what is known of its columns
    shared = SHARED if described else (*READING, "ledger", "key")
    reading = {name: value for name, value in how.items() if name in shared and name not in ("ledger", "key")}
    of = functools.partial(cast(Any, query).of, **{name: value for name, value in how.items() if name not in shared})
    if described:
        table = Table.of(table, **reading)
        asking = of(table.schema)
    else:
        asking = of()
        table = Table(table, asking.schema, Reading(**reading))
    return asking.ask(table, own_key(how.get("key")), account_of(how.get("ledger"), table, asking.short))


def own_key(key: Any) -> Any:
    """The key, or a fresh release key."""
    from jaxdp.randomness.keys import fresh_key

    return fresh_key() if key is None else key


def account_of(ledger: Any, table: Table, asked: str, folder: Path | None = None) -> Any:
    """The ledger as an account that writes down what was asked, and for which privacy unit, where it is a `Ledger`;
    any other account as it is.

    folder: where the result is written.
    """
    if not hasattr(ledger, "asked"):
        return ledger
    told = {} if folder is None else {"result": short(str(folder.resolve()))}
    columns = privacy_unit.noted(short(asked), table.schema.unit)
    return ledger.asked(columns=columns, source=short(batches.called(table.source)), **told)


def short(text: str) -> str:
    """A text that fits into a ledger."""
    text = text.encode(errors="replace").decode()
    return text if len(text) <= 200 else f"{text[:98]} ... {text[-97:]}"


def budget(epsilon: Any) -> float:
    """The epsilon as a float. Errors: ValueError unless a release for it exists and means something."""
    if not check.is_concrete(epsilon) or np.ndim(epsilon):
        raise TypeError(f"epsilon must be one number > 0, got {type(epsilon).__name__}.")
    if not (isinstance(epsilon, float) and 0.0 < epsilon < MIN_EPSILON):  # floats too small are told below
        check.positive(epsilon=epsilon)
    value = float(epsilon)
    if not MIN_EPSILON <= value <= MAX_EPSILON:
        raise ValueError(
            f"epsilon must lie between {MIN_EPSILON:g} and {MAX_EPSILON:g}, got {spent(value)}: "
            "below, noise drowns everything; above, nothing is protected."
        )
    return value
