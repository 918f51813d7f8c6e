"""Is X independent of Y (given Z)? A query about columns of a schema, and the one way in which it is answered."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jaxdp import catalogue
from jaxdp.data import conditioning, kept_sums, streamed
from jaxdp.data.chunks import Chunks
from jaxdp.data.dataset import Domain
from jaxdp.data.schema import Schema
from jaxdp.one_call import reading
from jaxdp.one_call.answer import Answer, answer_of
from jaxdp.one_call.budget import budget, listing
from jaxdp.spec import Options

MIN_ROWS = 10


def silent(stage: str) -> None:
    """Tells nobody which stage begins."""


@dataclasses.dataclass(frozen=True)
class Query:
    """X, Y, Z, the test that answers, its budget and its public settings; `Query.of` checks and completes them."""

    schema: Schema
    x: tuple[str, ...]
    y: tuple[str, ...]
    given: tuple[str, ...]
    epsilon: float
    entry: catalogue.Entry
    settings: Options

    @classmethod
    def of(
        cls,
        schema: Schema,
        *,
        x: str | Sequence[str],
        y: str | Sequence[str],
        given: str | Sequence[str] = (),
        epsilon: float,
        method: str | None = None,
        sees: str | None = None,
        simulated: bool = False,
        level: float = 0.05,
        fields: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> Query:
        """The query, with the test that fits its columns unless `method` names one.

        sees: "linear", "monotone" or "any", the kind of dependence that the chosen test must be built to see.
        settings: of `jaxdp.spec.Options`. fields: further fields of the test's class.
        Errors: ValueError for columns and tests that do not exist or do not fit, all before a table is opened.
        """
        x, y, given = (tuple(schema.named(role, value)) for role, value in (("x", x), ("y", y), ("given", given)))
        domain = _coded(schema, x, y, given)
        if method and sees:
            raise ValueError("give method or sees, not both: the method settles what is seen.")
        entry = catalogue.find(method) if method else catalogue.default(domain, sees=sees)
        entry.require_fits(domain)
        if not simulated and not entry.spec.private:
            raise ValueError(
                f"{entry.name} is not private and releases nothing: give --seed (in Python "
                "key=jax.random.key(8)) to simulate."
            )
        options = _options(level=level, fields=fields or {}, **settings)
        return cls(schema, x, y, given, budget(epsilon), entry, options)

    @property
    def domain(self) -> Domain:
        """Its columns as codes, which decide whether a test fits."""
        return _coded(self.schema, self.x, self.y, self.given)

    @property
    def columns(self) -> tuple[str, ...]:
        """All of its columns."""
        return (*self.x, *self.y, *self.given)

    @property
    def public_columns(self) -> list[str]:
        """Columns whose values are public to the test, as a group label is."""
        return [name for role in self.entry.cls.public_columns for name in getattr(self, role)]

    @property
    def short(self) -> str:
        """The query in one line, for ledgers: "dose ~ response | age"."""
        given = f" | {', '.join(self.given)}" if self.given else ""
        return f"{', '.join(self.x)} ~ {', '.join(self.y)}{given}"

    @property
    def sentence(self) -> str:
        """The query in words."""
        verb = "Is" if len(self.x) == 1 else "Are"
        given = f" given {listing(self.given)}" if self.given else ""
        return f"{verb} {listing(self.x)} independent of {listing(self.y)}{given}?"

    def ask(
        self,
        table: Any,
        key: Any,
        account: Any = None,
        *,
        strict: bool = False,
        records: int | None = None,
        force: bool = False,
        memory: int | None = None,
        keep_sums: str | os.PathLike | None = None,
        begin: Callable[[str], None] = silent,
    ) -> Answer:
        """The answer about a table, charged to the account once. begin: told the name of each stage.

        memory: bytes that a table may take; one that takes more is read in chunks, once for every stage of the test.
        keep_sums: folder for the sums of files that were read (`jaxdp.data.kept_sums`), deleted in the end.
        """
        if strict:
            conditioning.require_said(self.schema.rule(name) for name in self.given)
        source = reading.Source(table, self.columns, self.schema, strict, records, force, self.given)
        source = dataclasses.replace(source, clipped_z=self.entry.cls.leaves_out_clipped_z)
        coded = self.entry.spec.columns.coded
        rows, asked = source.rows_beyond(memory, self.entry.memory), self
        kept = None
        if keep_sums is not None:
            source.require_sums_to_keep()
            rows = streamed.rows_of(table) if rows is None else rows
        load: Callable[..., Any]
        if rows is None:
            load = functools.partial(
                self.schema.read, x=self.x, y=self.y, given=self.given, codes=coded, shuffled=reading.is_release(key)
            )
        else:
            columns = streamed.Columns(self.schema, self.x, self.y, self.given, coded)
            asked = self._settled(source)
            asked._require_sums(source, columns, rows, memory)
            kept = None if keep_sums is None else kept_sums.KeptSums(keep_sums)
            load = functools.partial(
                streamed.load, columns=columns, memory=reading.limit(memory), force=force, kept=kept
            )
        begin("reading the data")
        answer = reading.ask(
            lambda data, account: asked._answer(data, key, account, begin),
            load,
            source,
            account,
            public=self.public_columns,
        )
        if kept is not None:
            kept.delete()
        return answer

    def _settled(self, source: reading.Source) -> Query:
        """The query with what its public columns settle, by one pass over these alone, where its test can say so."""
        settle = self.entry.cls.settled_by
        if settle is None or not self.public_columns:
            return self
        (name,) = self.public_columns
        labels = streamed.codes_of(source.table, self.schema, name, strict=source.strict, records=source.records)
        fields = {**self.settings.fields, **settle(labels)}
        return dataclasses.replace(self, settings=dataclasses.replace(self.settings, fields=fields))

    def _require_sums(self, source: reading.Source, columns: streamed.Columns, rows: int, memory: int | None) -> None:
        """Raises ValueError, before anything is read, if the test needs all records of a table that is too large."""
        from jaxdp.core import needs_all

        shapes = columns.shapes(rows)
        told = needs_all(self._test(shapes, rows), shapes)
        if told:
            raise ValueError(
                f"{self.entry.name} must have all records in memory: {told}. Of these columns about "
                f"{source.records_that_fit(memory, self.entry.memory)} records fit into "
                f"{reading.limit(memory) / 1e9:.3g} GB (--memory), and the table has about {rows}: use a test with "
                "sums (partition-gcm, partial-correlation, or conditional-kendall on columns of levels), or more "
                "memory."
            )

    def _test(self, data: Any, rows: int) -> Any:
        settings = dataclasses.replace(self.settings, num_records=rows)
        return self.entry.within(self.epsilon, data, settings, coded=self.domain)

    def _answer(self, data: Any, key: Any, account: Any, begin: Callable[[str], None]) -> Answer:
        import jax

        from jaxdp.core import num_records, public_shapes, run

        rows = num_records(data)
        require_size(self.entry, rows)
        with jax.enable_x64(True):  # a release computes in float64 anyway; one simulation may as well
            test = self._test(data, rows)
            begin(f"testing {rows} rows")
            shown = public_shapes(data) if isinstance(data, Chunks) else data
            return answer_of(run(test, key, data, ledger=account), self, test, shown, recorded=account is not None)


def _coded(schema: Schema, x: Sequence[str], y: Sequence[str], given: Sequence[str]) -> Domain:
    first, second = (tuple(c for name in part for c in schema.rule(name).code_column()) for part in (x, y))
    return Domain(first, second, tuple(c for name in given for c in conditioning.columns(schema.rule(name))))


ARGUMENTS = ("given", "epsilon", "schema", "bounds", "levels", "method", "sees", "level", "fields", "ledger", "key")
SETTINGS = ("residual_scale", "num_cells", "ridge", "lengthscale", "law")


def _options(**settings: Any) -> Options:
    """The settings, checked by name. Errors: TypeError with the name that was probably meant."""
    for name in settings:
        if name not in (*SETTINGS, "level", "fields"):
            close = difflib.get_close_matches(name, (*SETTINGS, *ARGUMENTS), 1)
            hint = f"did you mean {close[0]!r}?" if close else f"the settings are {', '.join(SETTINGS)}."
            if name in ("seed", "random_state", "rng"):
                hint = "a simulation, which is not private, takes key=jax.random.key(1); a release takes no key."
            raise TypeError(f"there is no setting {name!r}; {hint}")
    scale = settings.get("residual_scale")
    if isinstance(scale, int | float):
        settings["residual_scale"] = (scale, scale)
    return Options(**settings)


def require_size(entry: catalogue.Entry, rows: int) -> None:
    """Raises ValueError for too few records, and for more than this machine has memory for."""
    if rows < MIN_ROWS:
        raise ValueError(f"the data have {rows} rows; a private test needs at least {MIN_ROWS}.")
    needed, installed = entry.memory(rows), os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > installed:
        raise ValueError(
            f"{entry.name} needs {needed / 1e9:.0f} GB for {rows} rows and this machine has "
            f"{installed / 1e9:.0f} GB: use partition-gcm, whose memory grows with the rows only."
        )
