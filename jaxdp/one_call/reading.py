"""Reading a table for a release: the owner's channel unless strict, charge first and never refuse if strict.

If not strict the person who holds the file is told (exit code 2, nothing charged) what is wrong with its form and
which column does not parse. That depends on records: it must not be published. If strict a caller who is not
trusted learns only what was released: the charge is on disk before a record is looked at, and what one record holds
changes neither the number of records, nor the exit code, nor the form of what is printed.
"""

from __future__ import annotations

import dataclasses
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jaxdp import charge
from jaxdp._base.owner import warn_owner
from jaxdp._base.printed import printed
from jaxdp.data import batches, identifiers, kept_sums, streamed
from jaxdp.data.schema import Schema

_TOLD: set[str] = set()  # remarks on columns that the owner has read in this process
MIN_MEMORY = 10**8  # bytes: a chunk and its sums take that much


@dataclasses.dataclass(frozen=True, repr=False)
class Source:
    """A table and how to read it. names: the columns used. records: the public number of records, if any.

    table: path of a file, a folder or a glob, a pandas, polars or pyarrow table, a mapping of name -> (n,) values, or
    what `jaxdp.data.batches` reads.
    strict: for callers who may see errors but not records. force: go on although a column does not parse.
    given: those of the columns that are conditioned on; all_given: each of them may be, as in a search.
    clipped_z: whether the query leaves out values of Z at a bound by itself.
    Errors: ValueError for strict with force, which contradict each other.
    """

    table: Any
    names: tuple[str, ...]
    schema: Schema
    strict: bool = False
    records: int | None = None
    force: bool = False
    given: tuple[str, ...] = ()
    all_given: bool = False
    clipped_z: bool = False

    def __post_init__(self):
        if self.strict and self.force:
            raise ValueError("--force goes without --strict, which never refuses a column.")

    @property
    def is_text(self) -> bool:
        """Whether the table is the path of a text, whose lines may be malformed."""
        return not isinstance(self.table, Mapping) and not batches.is_typed(self.table)

    def rows_beyond(self, memory: int | None, needed: Callable[[int], int] = lambda rows: 0) -> int | None:
        """The number of rows, about, of a table that does not fit into so many bytes; None for one that does.

        memory: default half of what is installed. needed: rows -> bytes that a test needs beyond the table. A table
        that is given in memory fits.
        """
        try:
            rows = streamed.rows_of(self.table)
        except (OSError, ValueError):
            if isinstance(self.table, str | os.PathLike) and os.path.isfile(self.table):
                return None  # whoever reads the file says what is wrong with it
            raise
        if rows is None:
            return None
        too_large = streamed.bytes_in_memory(rows, len(self.names)) + needed(rows) > limit(memory)
        if too_large and self.strict and self.is_text:
            raise ValueError(
                "strict reading of a file of texts needs it in memory: save it as Parquet, whose cells have types."
            )
        return rows if too_large else None

    def require_sums_to_keep(self) -> None:
        """Raises ValueError where the sums of files cannot be kept."""
        kept_sums.files_of(self.table)
        if self.strict and self.is_text:
            raise ValueError("--keep-sums goes without --strict on a file of texts: save it as Parquet.")

    def records_that_fit(self, memory: int | None, needed: Callable[[int], int] = lambda rows: 0) -> int:
        """How many records of these columns, about, a test that needs them all can be given."""
        most = limit(memory)
        low, high = 0, most // streamed.bytes_in_memory(1, len(self.names)) + 1
        while high - low > 1:
            middle = (low + high) // 2
            fits = streamed.bytes_in_memory(middle, len(self.names)) + needed(middle) <= most
            low, high = (middle, high) if fits else (low, middle)
        return low


def bytes_of(memory: int | str) -> int:
    """Bytes of a text such as "2GB" or "500 MB", or of a number. Errors: ValueError for anything else."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kMGT]?)i?B?\s*", str(memory), re.IGNORECASE)
    units = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
    size = int(float(found[1]) * units[found[2].lower()]) if found else 0
    if isinstance(memory, bool) or size < MIN_MEMORY:
        raise ValueError(f'memory must be a size such as "2GB", 100 MB at least, got {printed(memory)}.')
    return size


def limit(memory: int | None) -> int:
    """The bytes that a table may take: as given, or half of what is installed."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2 if memory is None else memory


def is_release(key: Any) -> bool:
    """Whether the key makes a release, for which records of several rows are put into a random order."""
    from jaxdp.randomness import keys

    return isinstance(key, keys.ReleaseKey)


def ask[Data, Answer](
    query: Callable[[Data, Any], Answer],
    load: Callable[..., Data],
    source: Source,
    account: Any,
    *,
    public: Sequence[str] = (),
) -> Answer:
    """query(data, account) on the data of the table, charged to the account once.

    load(table, strict=, records=, tally=) reads a path or a mapping of columns. public: columns that are not
    protected. The query must charge the account before it uses a value, and draw from one key.
    """
    with charge.explaining(account) as account:
        return _asked(query, load, source, account, public)


def _asked[Data, Answer](
    query: Callable[[Data, Any], Answer], load: Callable[..., Data], source: Source, account: Any, public: Sequence[str]
) -> Answer:
    if not source.strict:
        return query(_checked(load, source), account)
    if not source.is_text:  # nothing about a typed table is an error that its records decide
        return query(load(source.table, strict=True, records=source.records), account)
    from jaxdp.data import lines

    counted = lines.count(source.table, source.names, source.schema.delimiter)  # refuses a bad header, a public mistake
    records = counted if source.records is None else source.records
    if account is None:
        return query(load(source.table, strict=True, records=records), None)
    blank = _without_records(source, public, records)
    paid = charge.UpToTheCharge(account)
    try:
        query(load(blank, strict=True), paid)
    except charge.Charged:
        return query(load(source.table, strict=True, records=records), charge.Paid(paid))
    raise RuntimeError("a query was answered without a charge.")


def _checked(load: Callable[..., Any], source: Source) -> Any:
    """The data, unless a column does not parse: told to the owner of the table, before anything is charged."""
    from jaxdp.data import lines
    from jaxdp.data.readers import OWNER
    from jaxdp.data.tally import Tally, ties_told

    tally = Tally()
    data = load(source.table, records=source.records, tally=tally)
    failing = tally.failing()
    if failing and not source.force:
        more = f" (and {len(failing) - 1} more: jaxdp check)" if len(failing) > 1 else ""
        raise ValueError(
            f"{failing[0].sentence}{more}; nothing was charged: correct the file or the schema, or go on with --force "
            f"(in Python: force=True) ({OWNER})."
        )
    harm = tally.harm(
        source.names if source.all_given else source.given, clipped_z=source.clipped_z or source.all_given
    )
    if harm and not source.force:
        ways = (
            "widen the bounds if public knowledge allows"
            if "bounds" in harm
            else 'leave such records out with --missing drop (in Python missing="drop"), which makes the number of '
            "complete records public, or write in the schema what such a cell means (missing = ..., other = ...)"
        )
        raise ValueError(
            f"{harm}; nothing was charged: {ways}, or go on with --force (in Python: force=True) ({OWNER})."
        )
    unsaid = tally.unsaid(source.given)
    if unsaid and not source.force:
        raise ValueError(f"{unsaid}; nothing was charged; or go on with --force (in Python: force=True) ({OWNER}).")
    if tally.dropped:
        print(f"jaxdp: {tally.dropped} records lack a value and were left out ({OWNER}).", file=sys.stderr)
    passed_over = tally.faults[lines.EMPTY]
    if passed_over:
        print(f"jaxdp: {passed_over} empty lines were passed over ({OWNER}).", file=sys.stderr)
    for told in ties_told(tally.tied(source.given)):
        if told not in _TOLD:  # once, however many queries a loop asks
            _TOLD.add(told)
            print(f"jaxdp: {told} ({OWNER}).", file=sys.stderr)
    if told := identifiers.repeated(source.table, source.schema.delimiter, source.schema.unit):
        warn_owner(f"{told} ({OWNER}).")
    return data


def _without_records(source: Source, public: Sequence[str], records: int) -> Mapping[str, Sequence[str]]:
    """The table with an empty cell for every cell that is protected."""
    from jaxdp.data import lines

    table: dict[str, Any] = {name: [""] * records for name in source.names}
    if public:
        pieces = list(lines.pieces(source.table, public, source.schema.delimiter, records))
        table |= {name: [cell for piece in pieces for cell in piece[name]] for name in public}
    return table
