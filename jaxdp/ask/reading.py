"""Tables, and reading them for a release: the owner's channel unless strict, charge first and never refuse if strict.

If not strict the person who holds the file is told (exit code 2, nothing charged) what is wrong with its form and
which column does not parse. That depends on records: it must not be published. If strict a caller who is not
trusted learns only what was released: the charge is on disk before a record is looked at, and what one record holds
changes neither the number of records, nor the exit code, nor the form of what is printed.
"""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Unpack

from jaxdp import charge
from jaxdp._base.arguments import bytes_of
from jaxdp._base.owner import OWNER, warn_owner
from jaxdp._base.printed import printed
from jaxdp.ask.calls import ReadingOptions
from jaxdp.data import batches, identifiers, kept_sums, streamed
from jaxdp.data.known import HasSchema, schema_of
from jaxdp.data.schema import Schema
from jaxdp.spec import DEPENDENCE

_TOLD: set[str] = set()  # remarks on columns that the owner has read in this process


@dataclasses.dataclass(frozen=True)
class Reading:
    """How a table is read: who may see what its form says, and how much of it lies in memory at once.

    strict: for callers who may see errors but not records. records: the public number of records, if any. force: go on
    although a column does not parse. missing, rows: as in `schema_of`. memory: bytes that the table may take, or "2GB";
    default half of what is installed; a table that takes more is read in chunks, once for every stage.
    keep_sums: folder for the sums of files that were read (`jaxdp.data.kept_sums`), deleted once the answer is there.
    Errors: ValueError for strict with force, which contradict each other, and for what is no size.
    """

    strict: bool = False
    records: int | None = None
    force: bool = False
    missing: str | None = None
    rows: str | None = None
    memory: int | str | None = None
    keep_sums: str | os.PathLike | None = None

    def __post_init__(self):
        for name in ("strict", "force"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} must be True or False, got {printed(getattr(self, name))}.")
        if self.strict and self.force:
            raise ValueError("--force goes without --strict, which never refuses a column.")
        if self.memory is not None:
            object.__setattr__(self, "memory", bytes_of(self.memory))

    @property
    def limit(self) -> int:
        """The bytes that a table may take: as given, or half of what is installed."""
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2 if self.memory is None else self.memory  # type: ignore[return-value]

    def require_only(self, *ways: str, why: str) -> None:
        """Raises ValueError for a way of reading other than these, which a query does not have."""
        for field in dataclasses.fields(self):
            if field.name not in ways and getattr(self, field.name) is not field.default:
                raise ValueError(f"{why}: leave out {field.name}.")


@dataclasses.dataclass(frozen=True, repr=False)
class Table:
    """A table, what is publicly known about its columns, and how it is read.

    source: path of a file, a folder or a glob, a pandas, polars or pyarrow table, a mapping of name -> (n,) values, or
    what `jaxdp.data.batches` reads.
    """

    source: Any
    schema: Schema
    reading: Reading = Reading()

    def __post_init__(self):
        if self.reading.strict and batches.queries_texts(self.source):
            raise ValueError(
                "strict reading takes no query on texts (CSV, JSON, Excel), in which one cell decides what the query "
                "gives: save them as Parquet, whose cells have types."
            )

    @classmethod
    def of(
        cls,
        source: Any,
        schema: Schema | HasSchema | str | os.PathLike | Mapping | None = None,
        bounds: Mapping[str, Sequence[float]] | None = None,
        levels: Mapping[str, Sequence[Any]] | None = None,
        **reading: Unpack[ReadingOptions],
    ) -> Table:
        """The table as callers name it. Errors: as `schema_of` and `Reading`."""
        known = schema_of(schema, bounds, levels, reading.get("missing"), reading.get("rows"))
        return cls(source, known, Reading(**reading))

    @property
    def is_text(self) -> bool:
        """Whether it is the path of a text, whose lines may be malformed."""
        return not isinstance(self.source, Mapping) and not batches.is_typed(self.source)


@dataclasses.dataclass(frozen=True, repr=False)
class Selection:
    """The columns of a table that a query reads.

    given: those of them that are conditioned on; all_given: each of them may be, as in a search.
    clipped_z: whether the query leaves out values of Z at a bound by itself. times: those that hold times to an event,
    with that of the event. finds: what the query would take cells without a value for. of_moments: as of its test.
    apart: each column is asked about by itself, and what cells without a value are is told.
    """

    table: Table
    names: tuple[str, ...]
    given: tuple[str, ...] = ()
    all_given: bool = False
    clipped_z: bool = False
    times: tuple[str, ...] = ()
    finds: str = DEPENDENCE
    of_moments: bool = False
    apart: bool = False

    def rows_beyond(self, needed: Callable[[int], int] = lambda rows: 0) -> int | None:
        """The number of rows, about, of a table that does not fit into its memory; None for one that does.

        needed: rows -> bytes that a test needs beyond the table. A table that is given in memory fits.
        """
        source = self.table.source
        try:
            rows = self._rows(lambda most: self.fits(most, needed))
        except (OSError, ValueError):
            if isinstance(source, str | os.PathLike) and os.path.isfile(source):
                return None  # whoever reads the file says what is wrong with it
            raise
        if rows is None:
            return None
        too_large = not self.fits(rows, needed)
        if too_large and self.table.reading.strict and self.table.is_text:
            raise ValueError(
                "strict reading of a file of texts needs it in memory: save it as Parquet, whose cells have types."
            )
        return rows if too_large else None

    def _rows(self, fits: Callable[[int], bool] = lambda rows: False) -> int | None:
        """As `streamed.rows_of`; or the public number of records, whatever a file holds."""
        table, reading = self.table, self.table.reading
        stated = None if table.schema.unit else reading.records
        if table.is_text and stated:
            return stated
        rows = streamed.rows_of(table.source, table.schema.delimiter, reading.strict, fits)
        return stated if reading.strict and stated and rows is not None else rows

    def rows_in_chunks(self, needed: Callable[[int], int] = lambda rows: 0) -> int | None:
        """As `rows_beyond`, and of every table whose sums are kept. Errors: ValueError where they cannot be."""
        rows, source = self.rows_beyond(needed), self.table.source
        if self.table.reading.keep_sums is None:
            return rows
        kept_sums.files_of(source)
        if self.table.reading.strict and self.table.is_text:
            raise ValueError("--keep-sums cannot be combined with --strict on a file of texts: save it as Parquet.")
        return self._rows() if rows is None else rows

    def kept(self) -> kept_sums.KeptSums | None:
        """Where sums are kept, made if missing; None where they are not."""
        folder = self.table.reading.keep_sums
        return None if folder is None else kept_sums.KeptSums(folder)

    def fits(self, rows: int, needed: Callable[[int], int]) -> bool:
        """Whether so many rows may be in memory at once, with what the test needs of them."""
        return streamed.bytes_in_memory(rows, len(self.names)) + needed(rows) <= self.table.reading.limit

    def in_memory(self, rows: int, needed: Callable[[int], int] = lambda rows: 0) -> str:
        """What is said of a table of so many rows to a test that needs them all: about how many it can be given."""
        most = self.table.reading.limit
        low, high = 0, most // streamed.bytes_in_memory(1, len(self.names)) + 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.fits(middle, needed) else (low, middle)
        fitting = f"Of these columns about {low} records fit into {most / 1e9:.3g} GB (--memory), and the table has"
        if self.table.schema.unit:  # how many rows persons have together is private
            return f"{fitting} more ({OWNER})"
        return f"{fitting} about {rows}"


def is_release(key: Any) -> bool:
    """Whether the key makes a release, for which records of several rows are put into a random order."""
    from jaxdp.randomness import keys

    return isinstance(key, keys.ReleaseKey)


def read[Data, Answer](
    query: Callable[[Data, Any], Answer],
    load: Callable[..., Data],
    selection: Selection,
    account: Any,
    public: Sequence[str],
) -> Answer:
    """query(data, account) on the data of the table, charged to the account once.

    load(table, strict=, records=, report=) reads a path or a mapping of columns. public: columns that are not
    protected. The query must charge the account before it uses a value, and draw from one key.
    """
    if not selection.table.reading.strict:
        return query(_checked(load, selection), account)
    if not selection.table.is_text:  # nothing about a typed table is an error that its records decide
        return query(load(selection.table.source, strict=True, records=selection.table.reading.records), account)
    from jaxdp.data import lines

    # refuses a bad header, a public mistake
    counted = lines.count(selection.table.source, selection.names, selection.table.schema.delimiter)
    records = counted if selection.table.reading.records is None else selection.table.reading.records
    if account is None:
        return query(load(selection.table.source, strict=True, records=records), None)
    blank = _without_records(selection, public, records)
    paid = charge.UpToTheCharge(account)
    try:
        query(load(blank, strict=True), paid)
    except charge.Charged:
        return query(load(selection.table.source, strict=True, records=records), charge.Paid(paid))
    raise RuntimeError("a query was answered without a charge.")


def _checked(load: Callable[..., Any], selection: Selection) -> Any:
    """The data, unless a column does not parse: told to the owner of the table, before anything is charged."""
    from jaxdp.data import lines
    from jaxdp.data.parse_report import CODED, EMPTY_THEM, ParseReport, describe_ties

    schema = selection.table.schema
    watch = identifiers.Watch.of(selection.table.source, schema.delimiter, schema.unit)
    report = ParseReport(watch)
    data = load(selection.table.source, records=selection.table.reading.records, report=report)
    failing = report.failing()
    if failing and not selection.table.reading.force:
        more = f" (and {len(failing) - 1} more: jaxdp check)" if len(failing) > 1 else ""
        said = "call" if failing[0].rule.drafted else "schema"
        raise ValueError(
            f"{failing[0].sentence}{more}; nothing was charged: correct the file or the {said}, or go on with --force "
            f"(in Python: force=True) ({OWNER})."
        )
    given = selection.names if selection.all_given else selection.given
    how: dict[str, Any] = {"finds": selection.finds, "of_moments": selection.of_moments}
    harm = "" if selection.apart else report.harm(given, clipped_z=selection.clipped_z or selection.all_given, **how)
    if harm and not selection.table.reading.force:
        ways = (
            EMPTY_THEM
            if CODED in harm
            else 'widen the bounds if public knowledge allows (of a skewed column with scale = "log")'
            if "bounds" in harm
            else 'leave such records out with --missing drop (in Python missing="drop"), which makes the number of '
            "complete records public, or write in the schema what such a cell means (missing = ..., other = ...)"
        )
        of_rows = f" (cells are those of one row for each {schema.unit})" if schema.unit else ""
        raise ValueError(
            f"{harm}{of_rows}; nothing was charged: {ways}, or go on with --force (in Python: force=True) ({OWNER})."
        )
    unsaid = report.unsaid(selection.given, selection.times)
    if unsaid and not selection.table.reading.force:
        raise ValueError(f"{unsaid}; nothing was charged; or go on with --force (in Python: force=True) ({OWNER}).")
    if report.dropped:
        counted = "rows" if schema.unit else "records"  # a person whose other rows have values stays
        print(
            f"jaxdp: {report.dropped} {counted} lack a value, or have one that the schema does not name, and were left "
            f"out ({OWNER}).",
            file=sys.stderr,
        )
    if report.without_id > 1:
        print(
            f"jaxdp: {report.without_id} rows have no {schema.unit}, and count together as one record; a person who "
            f"has other rows as well counts twice ({OWNER}).",
            file=sys.stderr,
        )
    passed_over = report.faults[lines.EMPTY]
    if passed_over:
        print(f"jaxdp: {passed_over} empty lines were passed over ({OWNER}).", file=sys.stderr)
    for told in describe_ties(report.tied(selection.given)):
        if told not in _TOLD:  # once, however many queries a loop asks
            _TOLD.add(told)
            print(f"jaxdp: {told} ({OWNER}).", file=sys.stderr)
    if told := watch.describe():
        warn_owner(f"{told} ({OWNER}).")
    return data


def _without_records(selection: Selection, public: Sequence[str], records: int) -> Mapping[str, Sequence[str]]:
    """The table with an empty cell for every cell that is protected."""
    from jaxdp.data import lines

    table: dict[str, Any] = {name: [""] * records for name in selection.names}
    if public:
        pieces = list(lines.pieces(selection.table.source, public, selection.table.schema.delimiter, records))
        table |= {name: [cell for piece in pieces for cell in piece[name]] for name in public}
    return table
