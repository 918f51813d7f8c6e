"""`jaxdp.test`: is X independent of Y (given Z)? One private answer about columns of a table, in one call."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Unpack

import numpy as np

from jaxdp import catalogue
from jaxdp._base import check
from jaxdp._base.display import listing
from jaxdp._base.keywords import complete
from jaxdp._base.owner import OWNER
from jaxdp._base.printed import printed
from jaxdp.ask.answer import Answer, answer_of
from jaxdp.ask.calls import TestOptions, TestsOptions
from jaxdp.ask.effects import steps_of
from jaxdp.ask.reading import Selection, Table, is_release
from jaxdp.ask.table_call import table_call
from jaxdp.ask.table_query import TableQuery, asked, budget
from jaxdp.data import conditioning, streamed
from jaxdp.data.chunks import Chunks
from jaxdp.data.dataset import Domain
from jaxdp.data.person_rows import DRAWS, PersonRows, draws_of
from jaxdp.data.schema import Schema
from jaxdp.independence.equivalence import takes_margins
from jaxdp.spec import Options

BUILT = ": give the test's name, and its settings as fields={...}; a test that is built already goes to jaxdp.run"

MIN_ROWS = 10


@dataclasses.dataclass(frozen=True)
class Query(TableQuery[Answer]):
    """X, Y, Z, the test that answers, its budget and its public settings; `Query.of` checks and completes them."""

    form: ClassVar = Answer
    keywords: ClassVar = TestOptions

    schema: Schema
    x: tuple[str, ...]
    y: tuple[str, ...]
    given: tuple[str, ...]
    epsilon: float
    entry: catalogue.Entry
    settings: Options
    chosen: bool = False  # by the columns alone, not named
    sees: str | None = None  # the kind of dependence by which it was chosen
    margin: float | None = None  # in units of the effect; None asks for no equivalence
    taken: str = ""  # which test answers for a classical one that was named, as a sentence

    @classmethod
    def of(cls, schema: Schema, /, **how: Unpack[TestOptions]) -> Query:
        """The query, with the test that fits its columns unless `method` names one.

        Errors: ValueError for columns and tests that do not exist or do not fit, all before a table is opened.
        """
        for name in ("method", "sees"):
            if not isinstance(how.get(name), str | None):
                raise ValueError(
                    f"{name} must be a name, got {type(how[name]).__name__}{BUILT if name == 'method' else ''}."
                )
        own = complete(TestOptions, how)
        method, sees = own["method"], own["sees"]
        x, y, given = (tuple(schema.named(role, own[role])) for role in ("x", "y", "given"))
        schema = schema.conditioned_on(given)
        domain = _coded(schema, x, y or x, given)
        if method and sees:
            raise ValueError("give method or sees, not both: the method settles what is seen.")
        named = None if method is None else catalogue.find(method)
        _require_y(y, named)
        entry = catalogue.default(domain, sees=sees) if named is None else named
        hourly = _coded(schema.hour_by_hour(given), x, y or x, given)
        domain = domain if entry.spec.accepts(domain) or not entry.spec.accepts(hourly) else hourly
        entry.require_fits(domain)
        options = _options(entry, own)
        entry.require_settings(options)
        if options.law is not None:
            from jaxdp.independence.continuous.resampling import in_own_units  # with JAX

            scaled = in_own_units(options.law, *([schema.rule(name) for name in part] for part in (x, given)))
            options = dataclasses.replace(options, law=scaled)
        known = entry.spec.of_columns(*(tuple(map(schema.rule, part)) for part in (x, y)))
        options = dataclasses.replace(options, fields={**known, **options.fields})
        found: dict[str, Any] = {"chosen": not (method or sees), "sees": sees, "taken": entry.instead_of(method)}
        found |= {"margin": _admitted_margin(own["margin"], entry, domain, [list(map(schema.rule, p)) for p in (x, y)])}
        return cls(schema, x, y, given, budget(own["epsilon"]), entry, options, **found)

    def of_records(self, rows: int) -> Query:
        """The query as so many records leave room for: dates with times may be conditioned on hour by hour.

        By default from `conditioning.hourly_from` on; with any number where the named test takes them so alone.
        """
        least = conditioning.hourly_from(map(self.schema.rule, self.given))
        by_default = self.chosen or self.sees is not None
        if self.entry.spec.accepts(self.domain) and (not by_default or least is None or rows < least):
            return self
        schema = self.schema.hour_by_hour(self.given, rows)
        if not by_default:
            return dataclasses.replace(self, schema=schema)
        entry = catalogue.default(_coded(schema, self.x, self.y, self.given), sees=self.sees)
        return dataclasses.replace(self, schema=schema, entry=entry)

    def require_key(self, key: Any) -> None:
        """Raises ValueError for a release by a test that is not private."""
        if is_release(key) and not self.entry.spec.private:
            raise ValueError(
                f"{self.entry.name} is not private and releases nothing: give --seed (in Python "
                "key=jax.random.key(8)) to simulate."
            )

    @property
    def domain(self) -> Domain:
        """Its columns as codes, which decide whether a test fits."""
        return _coded(self.schema, self.x, self.y or self.x, self.given)

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.x, *self.y, *self.given)

    @property
    def every_row(self) -> bool:
        """Whether its test averages over the rows of each person."""
        return self.schema.averages(self.entry.cls.averages_rows)

    @property
    def public_columns(self) -> list[str]:
        """Columns whose values are public to the test, as a group label is."""
        return [name for role in self.entry.cls.public_columns for name in getattr(self, role)]

    @property
    def short(self) -> str:
        """The query in one line, for ledgers: "dose ~ response | age"."""
        given = f" | {', '.join(self.given)}" if self.given else ""
        return f"{' ~ '.join(', '.join(part) for part in (self.x, self.y) if part)}{given}"

    @property
    def sentence(self) -> str:
        """The query in words."""
        if self.entry.spec.one_column is not None:
            return self.entry.spec.one_column.asks.format(x=listing(self.x))
        verb = "Is" if len(self.x) == 1 else "Are"
        given = f" given {listing(self.given)}" if self.given else ""
        return f"{verb} {listing(self.x)} independent of {self._outcome or listing(self.y)}{given}?"

    @property
    def _outcome(self) -> str:
        """Y where it is a time and its event, which are no two columns to be tested jointly; as the schema names it."""
        declared = {columns: name for name, columns in self.schema.outcomes.items()}
        if self.y in declared:
            return f"{declared[self.y]} (time {self.y[0]}, event {self.y[1]})"
        if not self.entry.spec.of_times:
            return ""
        time, event = sorted(self.y, key=lambda name: not self.schema.rule(name).is_continuous)
        return f"the time {time} to the event {event}"

    def selection(self, table: Table) -> Selection:
        """X, Y and Z."""
        clipped, times = self.entry.cls.leaves_out_clipped_z, self.y if self.entry.spec.of_times else ()
        finds = f"a {self.entry.spec.finds}" if self.entry.spec.one_column else self.entry.spec.finds
        more: dict[str, Any] = {"times": times, "finds": finds, "of_moments": self.entry.spec.of_moments}
        return Selection(table, self.columns, self.given, clipped_z=clipped, **more)

    def loader(self, selection: Selection, key: Any) -> tuple[Query, Callable[..., Any]]:
        """Records in memory, or chunks of them, which are read once for every stage of the test."""
        how, rows = selection.table.reading, selection.rows_in_chunks(self.entry.memory)
        if rows is None:
            named: dict[str, Any] = {"x": self.x, "y": self.y or None, "given": self.given}
            named["draws"] = DRAWS if self.every_row else 1
            read = functools.partial(self.schema.read, **named, codes=self.entry.spec.columns.coded)
            return self, functools.partial(read, shuffled=is_release(key))
        settled = self._settled(selection)._with_sums(rows)
        settled = settled if settled.chosen or settled.sees else settled.of_records(rows)
        settled._require_sums(selection, rows)
        chunks: dict[str, Any] = {"memory": how.limit, "force": how.force, "kept": selection.kept()}
        chunks |= {"hidden": is_release(key), "draws": DRAWS if settled._averages(rows) else 1}
        return settled, functools.partial(streamed.load, columns=settled._streamed, **chunks)

    @property
    def _streamed(self) -> streamed.Columns:
        return streamed.Columns(self.schema, self.x, self.y, self.given, self.entry.spec.columns.coded)

    def _with_sums(self, rows: int) -> Query:
        """The query by the best default that has sums, where nobody named the test and the best of all has none."""
        if not self.chosen or self.schema.unit or not self._needs_all(rows):
            return self  # how many rows persons have must not decide on the method of an answer
        return next(self._defaults_with_sums(rows), self)

    def _defaults_with_sums(self, rows: int) -> Iterator[Query]:
        """The query by each test that may be the default for its columns and has sums, the best first."""
        for entry in catalogue.defaults(self.domain):
            query = dataclasses.replace(self, entry=entry)
            with contextlib.suppress(ValueError):  # it refuses such columns, as coarse cells refuse several numbers
                if not query._needs_all(rows):
                    yield query

    def _settled(self, selection: Selection) -> Query:
        """The query with what its public columns settle, by one pass over these alone, where its test can say so."""
        settle = self.entry.cls.settled_by
        if settle is None or not self.public_columns:
            return self
        (name,) = self.public_columns
        how = selection.table.reading
        if not self.schema.every_row:
            raise ValueError(
                f"the levels of {name!r} are counted row by row in a table that does not fit into memory: make a table "
                "of one complete row for each record first."
            )
        labels = streamed.codes_of(selection.table.source, self.schema, name, strict=how.strict, records=how.records)
        fields = {**self.settings.fields, **settle(labels)}
        return dataclasses.replace(self, settings=dataclasses.replace(self.settings, fields=fields))

    def _averages(self, rows: int) -> bool:
        """Whether it averages over the rows of at most so many persons."""
        shapes = self._streamed.shapes(rows)
        return self.every_row and self._test(shapes, rows).every_row(shapes)

    def _needs_all(self, rows: int, of_persons: bool = False) -> str:
        """Why its test must have so many records at once; "" where it has sums."""
        from jaxdp.core import needs_all

        shapes = self._streamed.shapes(rows)
        return needs_all(self._test(shapes, rows), shapes, of_persons)

    def _require_sums(self, selection: Selection, rows: int) -> None:
        """Raises ValueError, before anything is read, if the test needs all records of a table that is too large."""
        told = self._needs_all(rows)
        if told and selection.table.reading.keep_sums is not None and selection.fits(rows, self.entry.memory):
            raise ValueError(
                f"{self.entry.name} has no sums to keep, and this table fits into memory: leave keep_sums out."
            )
        if told:
            others = [query.entry.name for query in self._defaults_with_sums(rows)]
            use = f"use a test with sums ({' or '.join(others)}), or more memory" if others else "use more memory"
            raise ValueError(
                f"{self.entry.name} must have all records in memory: {told}. "
                f"{selection.in_memory(rows, self.entry.memory)}: {use}."
            )
        if self._averages(rows) and (told := self._needs_all(rows, of_persons=True)):
            raise ValueError(
                f"{self.entry.name} must have all rows of each {self.schema.unit} in memory: {told}. "
                f"{selection.in_memory(rows, self.entry.memory)}: use more memory (--memory), or write --rows "
                f'random (in Python rows="random"): then one row of each counts, drawn at random ({OWNER}).'
            )

    def _test(self, data: Any, rows: int) -> Any:
        settings = dataclasses.replace(self.settings, num_records=rows)
        test = self.entry.within(self.epsilon, data, settings, coded=self.domain)
        return test.of_persons(data.shapes) if draws_of(data) else test

    def answer(self, data: Any, key: Any, account: Any, on_stage: Callable[[str], None], **more: Any) -> Answer:
        """By its test."""
        import jax

        from jaxdp.core import num_records, public_shapes, run

        rows = num_records(data)
        if not isinstance(data, Chunks):
            query = self.of_records(rows)
            if query is not self:
                return query.answer(self._hour_by_hour(data, rows), key, account, on_stage)
        require_size(self.entry, rows)
        with jax.enable_x64(True):  # a release computes in float64 anyway; one simulation may as well
            test = self._test(data, rows)
            on_stage(f"testing {rows} rows")
            shown = public_shapes(data) if isinstance(data, Chunks | PersonRows) else data
            return answer_of(run(test, key, data, ledger=account), self, test, shown, recorded=account is not None)

    def _hour_by_hour(self, data: Any, rows: int) -> Any:
        """Records that were read by this query, as `of_records` conditions on them."""
        if isinstance(data, PersonRows):
            return PersonRows(self._hour_by_hour(data.draws, rows))
        rules = [self.schema.rule(name) for name in self.given]
        z = conditioning.values_hour_by_hour(rules, np.asarray(data.z), conditioning.parts_of(rules, rows))
        columns = _coded(self.schema.hour_by_hour(self.given, rows), (), (), self.given).z
        return dataclasses.replace(data, z=z, domain=dataclasses.replace(data.domain, z=columns))


def _require_y(y: Sequence[str], named: catalogue.Entry | None) -> None:
    """Raises unless Y is there, or the test that was named asks about X alone, and then has none."""
    alone = named is not None and named.spec.one_column is not None
    if alone and y:
        raise ValueError(f"{named.name} asks about x alone: leave y out.")  # type: ignore[union-attr]
    if not alone and not y:
        others = listing([entry.name for entry in catalogue.entries().values() if entry.spec.one_column is not None])
        raise TypeError(f"y is missing: give --y B (in Python y=); only {others} (by method) asks about x alone.")


def _admitted_margin(margin: Any, entry: catalogue.Entry, domain: Domain, rules: Sequence[Any]) -> float | None:
    """The margin as a float. Errors: ValueError unless the test has a p-value for it, and columns one effect.

    rules: of x and of y.
    """
    if margin is None:
        return None
    if np.ndim(margin):
        raise TypeError(f"margin must be a finite number > 0, got {type(margin).__name__}.")
    check.positive(margin=margin)
    if not takes_margins(entry.cls):
        others = [] if entry.spec.one_column else catalogue.offered().values()
        fitting = [one.name for one in others if takes_margins(one.cls) and one.spec.accepts(domain)]
        raise ValueError(
            f"{entry.name} has no p-value for a margin, which needs an interval of its own: "
            + (f"name {' or '.join(fitting)} by method." if fitting else "no test of these columns has one.")
        )
    if not entry.spec.one_effect(domain):
        y = "" if entry.spec.of_times else " and one column Y, numbers, ordered or"
        raise ValueError(
            f"a margin is about one effect, and {entry.name} has none or several for these columns: give one column X"
            f"{y} of two levels; of a column of more levels, declare the two that you compare and leave the other "
            'records out (missing = "drop").'
        )
    furthest = entry.spec.furthest(*rules)
    if margin >= furthest:
        steps = "" if entry.spec.own_units is None else steps_of([*rules[0], *rules[1]], ", where ")
        raise ValueError(
            f"margin must be below {furthest:g}, got {margin:g}: no effect of {entry.name} for these columns, in its "
            f"own units{steps}, is further from that of no dependence."
        )
    return float(margin)


def _coded(schema: Schema, x: Sequence[str], y: Sequence[str], given: Sequence[str]) -> Domain:
    first, second = (tuple(c for name in part for c in schema.rule(name).code_column()) for part in (x, y))
    return Domain(first, second, tuple(c for name in given for c in conditioning.columns(schema.rule(name))))


SETTINGS = tuple(one.name for one in dataclasses.fields(Options) if one.name not in ("level", "num_records", "fields"))


def _options(entry: catalogue.Entry, asked: TestsOptions) -> Options:
    """The settings, checked; `fields` may name those that the test takes.

    Errors: ValueError for a number that no test can use.
    """
    if not isinstance(asked["fields"] or {}, Mapping):
        raise TypeError(f"fields must be a mapping, such as {{'num_bins': 4}}, got {printed(asked['fields'])}.")
    fields = dict(asked["fields"] or {})
    settings: dict[str, Any] = {name: value for name, value in asked.items() if name in SETTINGS}
    settings |= {name: fields.pop(name) for name in SETTINGS if name in fields and entry.takes(name)}
    scale = settings.get("residual_scale")
    if isinstance(scale, int | float):
        settings["residual_scale"] = scale = (scale, scale)
    if scale is not None:
        if not isinstance(scale, tuple | list) or len(scale) != 2:
            raise ValueError(f"residual_scale takes one number or two, got {printed(scale)}.")
        check.positive(residual_scale=scale[0])
        check.positive(residual_scale=scale[1])
        settings["residual_scale"] = tuple(scale)
    if settings.get("num_cells") is not None:
        check.at_least(1, num_cells=settings["num_cells"])
    check.positive(**{name: settings[name] for name in ("ridge", "lengthscale") if settings.get(name) is not None})
    return Options(level=asked["level"], fields=fields, **settings)


def require_size(entry: catalogue.Entry, rows: int) -> None:
    """Raises ValueError for too few records, and for more than this machine has memory for."""
    if rows < MIN_ROWS:
        raise ValueError(f"the data have {rows} row{'s' * (rows != 1)}; a private test needs at least {MIN_ROWS}.")
    needed, installed = entry.memory(rows), os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > installed:
        raise ValueError(
            f"{entry.name} needs {needed / 1e9:.0f} GB for {rows} rows and this machine has "
            f"{installed / 1e9:.0f} GB: use partition-gcm, whose memory grows with the rows only."
        )


@table_call(TestOptions)
def test(table: Any, **how: Unpack[TestOptions]) -> Answer:
    """Is X independent of Y (given Z)? One private test, built and checked as by the command `jaxdp test`.

        jaxdp.test(frame, x="dose", y="response", given="age", epsilon=1.0,
                   bounds={"dose": (0, 10), "response": (-5, 5), "age": (18, 90)})

    table: a pandas, polars or pyarrow table, a mapping of name -> (n,) values, or the path of a data file, a folder or
    a glob ("trial/*.parquet"); "duckdb:select ..."; a pyarrow data set, a DuckDB relation, a Dask data frame, an
    object of the Arrow stream protocol, a function that returns Arrow batches.
    x, y, given: column names, one or several; y is left out for a test of x alone. epsilon: budget of this answer.
    schema: public knowledge about the columns (`Schema`, its path, or its mapping); or bounds (low, high) of continuous
    columns and levels of the others, by name. Never computed from the table.
    method: name of a test (`jaxdp methods`), or of a classical one ("t-test"), in whose place its private counterpart
    runs, as the answer says; default: the test that fits the columns. sees: "linear", "monotone" or "any", the kind of
    dependence that the default test must be able to detect; the answer says which kinds its test detects.
    level: significance level. margin: the answer also says whether the effect is smaller than this, in the effect's
    units, by two one-sided tests of the same release (docs/theory/equivalence.md); not every test offers it.
    fields: fields of the test's class, as --set. residual_scale, num_cells, ridge, lengthscale, law: fields that only
    some tests have; a law speaks in the columns' own units (`ConditionalLaw`).
    ledger: a `jaxdp.Ledger` (or any account), charged before a value is used.
    key: None draws a fresh release key; jax.random.key(seed) makes a simulation, NOT PRIVATE.
    strict, records, force, missing, rows: as --strict, --records, --force, --missing and --rows of the command line;
    docs/schema.md, "Who sees what".
    memory: "2GB" or bytes; a table that would take more is read in chunks if the test needs only sums over records
        (docs/large_data.md).
    keep_sums: a folder of the caller's own for the sums of the files read so far, so that an interrupted pass can
        continue. The sums have no noise, so protect them like the table; they are deleted once the answer is complete.

    Returns an `Answer`: p_value, statistic, cost; prints as sentences, `plot()`, `to_dict()`. It holds no record.
    Privacy: the test's guarantee, epsilon-DP under the relation that the answer states.
    Errors: ValueError or TypeError in one sentence, before anything is charged; `BudgetExhausted` from the ledger.
    """
    return asked(Query, table, how)


test.__test__ = False  # type: ignore[attr-defined]  # `from jaxdp import test` in a test file is no test
