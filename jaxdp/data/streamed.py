"""A table of a schema as chunks of coded records: what a test reads where the table does not fit into memory."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from jaxdp.data import batches, kept_sums, lines, readers
from jaxdp.data.chosen_rows import ChosenRows
from jaxdp.data.chunks import Chunks, RowsOfDraws, joined, num_rows
from jaxdp.data.dataset import Data, Domain
from jaxdp.data.kept_sums import KeptSums
from jaxdp.data.parse_report import ParseReport
from jaxdp.data.records import Records
from jaxdp.data.schema import Schema

BYTES_PER_VALUE = 128  # of a table read into memory, with the copies that a test makes (measured)
BYTES_PER_CODE = 6  # of columns of levels, with the copies that a search makes
CHUNK_BYTES = 256  # per value of a chunk, with the copies that its sums make
MIN_ROWS, MAX_ROWS = 1 << 16, 1 << 20  # of a chunk, and of chunks that are summed as one
BRANCHES = 8  # of a node of a tree of sums
BLOCK = 1 << 20  # bytes of a text that are looked at together
UNPACKED = 1032  # times its size at most is what a gzip file holds


@dataclasses.dataclass(frozen=True)
class Columns:
    """The columns of one query and how they are coded: what a worker needs to know of a table.

    Picklable; holds public knowledge alone.
    """

    schema: Schema
    x: tuple[str, ...]
    y: tuple[str, ...]
    given: tuple[str, ...] = ()
    codes: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.x, *self.y, *self.given)

    def coded(self, piece: Mapping[str, Any]) -> Data:
        """The rows of a piece."""
        return self.schema.coded(piece, self.x, self.y, self.given, self.codes)

    def shapes(self, num_records: int) -> Data:
        """The whole data, with shapes for arrays."""
        empty = self.coded({name: np.zeros(0) for name in self.names})
        return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((num_records, *leaf.shape[1:]), np.float64), empty)


def bytes_in_memory(rows: int, columns: int) -> int:
    """What a table of so many rows takes in memory with the copies that a test makes."""
    return BYTES_PER_VALUE * rows * columns


def rows_of(
    source: Any, delimiter: str = ",", strict: bool = False, fits: Callable[[int], bool] = lambda rows: False
) -> int | None:
    """How many rows a table on disk or elsewhere has, before it is read; None where it lies in memory.

    Of files of texts their records are counted, since no record may decide by its length which method is run. strict:
    each line is one. fits: rows -> whether the exact number does not matter, since so many are few enough; then it is
    the largest number that the size of the files allows.
    """
    found = batches.of(source)
    if found is not None:
        return found.count()
    if not isinstance(source, str | os.PathLike) or readers.files.is_typed(source):
        return None
    several = batches.paths(source)
    names = [name for name in ([os.fspath(source)] if several is None else several) if os.path.isfile(name)]
    most = sum(os.path.getsize(name) * (UNPACKED if name.lower().endswith(readers.files.GZIP) else 1) for name in names)
    return most if fits(most) else sum(_counted_rows(name, delimiter, strict) for name in names)


def _counted_rows(path: str, delimiter: str, strict: bool) -> int:
    """Records of a file of texts, without its header: its lines, unless quoted cells may hold their ends."""
    if not strict and _has_quotes(path):
        with contextlib.suppress(csv.Error, UnicodeError), readers.files.text(path) as text:
            return max(sum(1 for _ in csv.reader(text, delimiter=delimiter)) - 1, 0)
    return lines.count(path, (), delimiter)


def _has_quotes(path: str) -> bool:
    with readers.files.unpacking(path), readers.files.opened(path) as file:
        return any(b'"' in block for block in iter(lambda: file.read(BLOCK), b""))


def stream(
    source: Any,
    columns: Columns | AllColumns,
    *,
    memory: int,
    strict: bool = False,
    records: int | None = None,
    report: ParseReport | None = None,
    rows: int | None = None,
    chosen: ChosenRows | None = None,
    hidden: bool = False,
    kept: KeptSums | None = None,
    draws: int = 1,
) -> Chunks:
    """The table as chunks. A pass is made now where the number of records is not known, or for the report.

    memory: bytes that reading and summing may take, about. report: of every cell, for the owner of the table.
    rows: of the table, where they are known. chosen: the rows that are records, as `choose` has found them; it is asked
    now where it was not, and not every row is a record. hidden, draws: as of `choose`. kept: where sums are kept, so
    that an interrupted pass goes on. Errors: as `readers.pieces` and `choose`.
    """
    if chosen is None:
        chosen = choose(source, columns.schema, columns.names, strict, records, report, hidden, draws)
        report = report if chosen is None else None
    if chosen is not None and kept is not None and columns.schema.unit:
        raise ValueError(
            f"sums cannot be kept with unit = {columns.schema.unit!r}, whose rows are chosen anew in every run: leave "
            "out keep_sums."
        )
    asked = list(columns.names) if chosen is None else chosen.read_with(columns.names)
    rules = {name: columns.schema.rule(name) for name in columns.names}

    def pieces(report: ParseReport | None = None, source: Any = source) -> Iterator[Mapping[str, Any]]:
        how: dict[str, Any] = {"strict": strict, "records": records, "in_batches": True}
        return readers.counted(source, asked, columns.schema.delimiter, rules, report, **how)

    if chosen is not None:
        count: int | None = chosen.num_records
    else:
        count = _count(source, strict, records, report) if rows is None else rows
    if count is None:
        count = sum(len(piece[columns.names[0]]) for piece in _with_progress(pieces(report), "checking"))
    most = min(max(memory // (CHUNK_BYTES * len(columns.names)), MIN_ROWS), MAX_ROWS)
    add_up = adder(source, columns) if chosen is None else None
    if kept is not None:
        public = repr((columns, list(rules.values()), count))
        paths = kept_sums.files_of(source)
        add_up = functools.partial(
            kept.add_up,
            public,
            paths,
            lambda path: _chunks(functools.partial(pieces, source=path), columns, None, chosen),
            most,
            lambda: jax.tree.map(lambda leaf: np.zeros((1, *leaf.shape[1:]), leaf.dtype), columns.shapes(1)),
        )
    read = functools.partial(_chunks, pieces, columns, count, chosen)
    return Chunks(columns.shapes(count), read, add_up, most, draws=1 if chosen is None else chosen.draws)


def choose(
    source: Any,
    schema: Schema,
    names: Sequence[str],
    strict: bool = False,
    records: int | None = None,
    report: ParseReport | None = None,
    hidden: bool = False,
    draws: int = 1,
) -> ChosenRows | None:
    """The rows of a table that are records, by one pass over these columns; None where every row is one.

    report: of the rows of a table without a unit; with one, of the rows that were chosen, by a second pass.

    hidden: the rows of a unit are drawn by a secret, for a release. draws: of one row of each unit.
    Errors: ValueError for strict or a number of records where not every row is one; as `readers.pieces`.
    """
    schema.require_every_row(strict, records)
    chosen = ChosenRows.of(schema, names, hidden, draws)
    if chosen is None:
        return None
    rules = {name: schema.rule(name) for name in names}
    asked = chosen.read_with(names)
    of_rows = {} if schema.unit else rules  # of persons it matters what the rows hold that stand for them
    pieces = readers.counted(source, asked, schema.delimiter, of_rows, report, in_batches=True)
    chosen.find(_with_progress(pieces, "checking"), report)
    if schema.unit and report is not None:
        pieces = readers.pieces(source, asked, schema.delimiter, in_batches=True)
        chosen.count(_with_progress(pieces, "checking"), report)
    return chosen


@dataclasses.dataclass(frozen=True)
class AllColumns:
    """The columns of a search, each as x and again as y: features of one release. As `Columns`."""

    schema: Schema
    names: tuple[str, ...]

    def coded(self, piece: Mapping[str, Any]) -> Data:
        """The rows of a piece."""
        values, columns = self.schema.coded_table(piece, self.names), self.schema.columns_of(self.names)
        return Data(values, values, domain=Domain(columns, columns))

    def shapes(self, num_records: int) -> Data:
        """The whole data, with shapes for arrays."""
        empty = self.coded({name: np.zeros(0) for name in self.names})
        return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((num_records, *leaf.shape[1:]), np.float64), empty)


def codes(
    source: Any,
    schema: Schema,
    names: Sequence[str],
    *,
    strict: bool = False,
    records: int | None = None,
    report: ParseReport | None = None,
    hidden: bool = False,
) -> Records:
    """All columns as codes in as few bytes as they need, read in pieces: columns of levels alone.

    Errors: as `stream`.
    """
    chosen = choose(source, schema, names, strict, records, report, hidden)
    report = report if chosen is None else None
    asked = list(names) if chosen is None else chosen.read_with(names)
    records_of = None if chosen is None else chosen.one_pass()
    columns, rules = schema.columns_of(names), {name: schema.rule(name) for name in names}
    kind = np.min_scalar_type(max(column.levels for column in columns) - 1)
    how: dict[str, Any] = {"strict": strict, "records": records, "in_batches": True}
    parts: list[np.ndarray] = []
    for piece in _with_progress(readers.counted(source, asked, schema.delimiter, rules, report, **how), "reading"):
        kept = slice(None) if records_of is None else records_of(piece)[0][:, 0]
        parts.append(schema.coded_table(piece, names).astype(kind)[kept])
    return Records(np.concatenate(parts) if parts else np.zeros((0, len(columns)), kind), columns)


def codes_of(
    source: Any, schema: Schema, name: str, *, strict: bool = False, records: int | None = None
) -> Iterator[np.ndarray]:
    """The codes of one column, piece by piece."""
    rule = schema.rule(name)
    for piece in readers.pieces(source, [name], schema.delimiter, strict=strict, records=records, in_batches=True):
        yield rule.codes(piece[name])


def load(source: Any, *, columns: Any, memory: int, force: bool = False, **how: Any) -> Chunks:
    """`stream`, as callers load a table. force: no cell is counted where that would take a pass of its own."""
    found = batches.of(source)
    if force and found is not None:
        how.pop("report", None)
    return stream(source, columns, memory=memory, **how)


def _count(source: Any, strict: bool, records: int | None, report: ParseReport | None) -> int | None:
    if report is not None:
        return None
    if strict and records is not None:
        return records
    found = batches.of(source)
    return None if found is None else found.count()


def _chunks(
    pieces: Callable, columns: Columns | AllColumns, count: int | None, chosen: ChosenRows | None
) -> Iterator[Any]:
    """Pieces of at least `MIN_ROWS` records, but for the last: `Data`, or `RowsOfDraws` of several draws."""
    waiting: list = []
    held = 0
    records_of = None if chosen is None else chosen.one_pass()
    for piece in _with_progress(pieces(), "reading", count):
        coded: Any = columns.coded(piece)
        if records_of is not None:
            drawn, persons = records_of(piece)
            kept = drawn.any(axis=1)
            coded = jax.tree.map(lambda leaf, kept=kept: leaf[kept], coded)
            coded = RowsOfDraws(coded, drawn[kept], persons[kept]) if drawn.shape[1] > 1 else coded
        waiting.append(coded)
        held += num_rows(coded)
        if held >= MIN_ROWS:
            yield joined(waiting)
            waiting, held = [], 0
    if waiting:
        yield joined(waiting)


def _with_progress(pieces: Iterator, what: str, count: int | None = None) -> Iterator[Mapping[str, Any]]:
    """The pieces, with a bar of rows per second on a terminal where they take longer than two seconds."""
    from tqdm import tqdm

    with tqdm(total=count, desc=what, unit=" rows", unit_scale=True, delay=2.0, leave=False, disable=None) as bar:
        for piece in pieces:
            yield piece
            bar.update(len(next(iter(piece.values()))))


def adder(source: Any, columns: Columns | AllColumns) -> Callable | None:
    """How sums of this source are added: of a Dask data frame by its scheduler, in a tree; else None."""
    if not (type(source).__module__.startswith("dask") and hasattr(source, "to_delayed")):
        return None
    return functools.partial(_over_partitions, source, columns)


def _over_partitions(
    frame: Any, columns: Columns | AllColumns, function: Callable, merge: Callable, read: Callable
) -> Any:
    """Sums of the partitions where they lie, merged in a tree by the scheduler in force.

    A partition whose worker dies is computed once more; its sums enter one node of the tree, and so count once.
    """
    import dask

    # impure: no name of a task is made of what it holds
    one, joined = dask.delayed(_of_partition, pure=False), dask.delayed(_reduced, pure=False)
    level = [one(columns, function, part) for part in frame[list(columns.names)].to_delayed()]
    while len(level) > 1:
        level = [joined(merge, level[start : start + BRANCHES]) for start in range(0, len(level), BRANCHES)]
    (found,) = dask.compute(level[0])
    return (0, None) if found is None else found


def _of_partition(columns: Columns | AllColumns, function: Callable, frame: Any) -> Any:
    """What the function gives of one partition; None of an empty one."""
    if not len(frame):
        return None
    return function(columns.coded(next(readers.pieces(frame, list(columns.names)))))


def _reduced(merge: Callable, parts: list[Any]) -> Any:
    kept = [part for part in parts if part is not None]
    return functools.reduce(merge, kept) if kept else None
