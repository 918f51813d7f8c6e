"""CSV files, data frames and mappings as pieces of raw columns.

Errors speak of files, positions and names that the caller already knows: never of a value, nor of a header
text that was not asked for (a file without a header line has a record there). Those that the records decide
(`FormError`) are for the owner of the file and must not be published; strict reading has none.
"""

from __future__ import annotations

import contextlib
import csv
import itertools
import numbers
import operator
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from jaxdp._base.owner import OWNER
from jaxdp._base.untraced import is_traced
from jaxdp.data import arrow_csv, batches, files, header, lines
from jaxdp.data.notation import PercentCell
from jaxdp.data.texts import TextColumn, WholeColumn

PIECE_ROWS = 65_536
RENAMED = "names are texts: write df.columns = df.columns.astype(str) first."
NOT_ONE = "column {!r} has cells that are lists or bytes: give one number or text a cell."


class FormError(ValueError):
    """A table whose form is wrong where the records stand. Whether it is raised depends on them, so it is private."""

    def __init__(self, sentence: str):
        super().__init__(f"{sentence} ({OWNER}).")


def pieces(
    source: Any,
    names: Sequence[str],
    delimiter: str = ",",
    *,
    strict: bool = False,
    records: int | None = None,
    faults: Counter[str] | None = None,
    in_batches: bool = False,
    also: Sequence[str] = (),
) -> Iterator[Mapping[str, Any]]:
    """Yields dicts name -> values of consecutive rows; at least one row in all, unless strict.

    source: path of a CSV (.csv.gz too), Parquet, Arrow or Excel file, a folder or glob of such files, a pandas, polars
    (lazy too) or pyarrow table, a mapping of name -> (n,) values, or what `jaxdp.data.batches` reads.
    strict: nothing that a record holds is an error (`jaxdp.data.lines`). records: public number of rows; strict
    drops and fills rows up to it, otherwise another number is an error.
    faults: counts what was passed over (empty lines; strict: malformed ones), for the owner of the file.
    in_batches: a single Parquet or Arrow file in batches of rows too, not as one table.
    also: further columns, left out of a piece where they are missing or their cells are of a kind that is not read.
    Errors: OSError if a file cannot be opened; ValueError or TypeError with one sentence otherwise; `FormError`
    where the records decide it, never if strict.
    """
    also = _others(source, names, delimiter, also)
    if is_lazy(source):  # only asked columns are made
        known = source.collect_schema().names()
        source = source.select([name for name in (*names, *also) if name in known]).collect()
    whole = isinstance(source, str | os.PathLike) and os.path.isfile(source)
    table = None if whole and not in_batches else batches.of(source)
    if table is not None:
        yield from _batch_pieces(table, names, also, strict, records)
        return
    several = batches.paths(source) if isinstance(source, str | os.PathLike) else None
    if several is not None:
        how: dict[str, Any] = {"strict": strict, "faults": faults, "also": also}
        each = (pieces(path, names, delimiter, **how) for path in several)  # with its own header
        yield from _as_many(itertools.chain.from_iterable(each), records, strict)
        return
    if isinstance(source, str | os.PathLike) and files.is_typed(source):
        source = files.typed(source, [*names, *also], strict, faults)
    if not isinstance(source, str | os.PathLike):
        columns = _frame_columns(source, names, strict) if names else {}
        yield _of_length(columns | _readable(source, also, columns, _values), strict, records)
    elif strict:
        yield from lines.pieces(source, [*names, *also], delimiter, records, faults)
    else:
        passed_over = Counter() if faults is None else faults
        yield from _as_many(_csv_pieces(os.fspath(source), [*names, *also], delimiter, passed_over), records)


def counted(
    source: Any, names: Sequence[str], delimiter: str, rules: Mapping[str, Any], report: Any, **how: Any
) -> Iterator[Mapping[str, Any]]:
    """`pieces`, whose cells the report counts, if there is one (`jaxdp.data.parse_report.ParseReport`).

    rules: name -> `ColumnRule` of the columns that are counted. how: as of `pieces`.
    """
    if report is None:
        yield from pieces(source, names, delimiter, **how)
        return
    also = () if report.watch is None else report.watch.names
    for piece in pieces(source, names, delimiter, faults=report.faults, also=also, **how):
        report.add_piece(rules, piece)
        yield piece


def head(source: str | os.PathLike, names: Sequence[str], delimiter: str = ",") -> Mapping[str, Any]:
    """The first rows of files, no more than one piece, with those of the named columns whose cells can be read.

    Errors: as `pieces`.
    """
    path = (batches.paths(source) or [os.fspath(source)])[0]
    names = _others(path, (), delimiter, names)
    if files.is_typed(path):
        return next(pieces(path, [], in_batches=True, also=names))
    return next(_python_pieces(path, names, delimiter, Counter()))


def _others(source: Any, names: Sequence[str], delimiter: str, also: Sequence[str]) -> list[str]:
    """Those of `also` that the source has and that are not asked for anyway."""
    known = names_of(source, delimiter) if also else []
    return [name for name in also if name not in names and name in known]


def _rows(piece: Mapping[str, Any]) -> int:
    """How many rows a piece has."""
    return len(next(iter(piece.values()), ()))


def _readable(table: Any, names: Sequence[str], columns: Mapping[str, Any], cells: Callable) -> dict[str, Any]:
    """Those of the named columns of a table in memory that `cells` can read and that are as long as the others."""
    found: dict[str, Any] = {}
    for name in names:
        with contextlib.suppress(TypeError, ValueError):
            values = cells(name, table[name], False)
            if len(values) == (_rows(columns) or _rows(found) or len(values)):
                found[name] = values
    return found


def is_lazy(source: Any) -> bool:
    """Whether this is a lazy table of polars, which is computed when it is read."""
    return hasattr(source, "collect") and hasattr(source, "collect_schema")


def names_of(source: Any, delimiter: str = ",") -> list[Any]:
    """The names of the columns of a source, which are public. Errors: as `pieces`; no record is read."""
    if is_lazy(source):
        return list(source.collect_schema().names())
    table = batches.of(source)
    if table is not None:
        return table.names
    if not isinstance(source, str | os.PathLike):
        return _available(source)
    path = (batches.paths(source) or [os.fspath(source)])[0]
    return files.names_of(path) if files.is_typed(path) else _header(path, delimiter)


def with_times(source: Any) -> set[str]:
    """The columns of a source whose type is a date with a time of day. Types are public; no record is read."""
    kinds: Mapping[Any, Any] = {}
    if isinstance(source, str | os.PathLike):
        if batches.is_typed(source) and not batches.is_query(source):
            kinds = files.kinds_of((batches.paths(source) or [os.fspath(source)])[0])
    elif hasattr(source, "collect_schema"):
        kinds = dict(source.collect_schema())
    elif hasattr(source, "schema") and hasattr(source.schema, "types"):
        kinds = dict(zip(source.schema.names, source.schema.types, strict=True))
    elif hasattr(source, "dtypes"):
        kinds = dict(source.dtypes)
    elif isinstance(source, Mapping):
        kinds = {name: getattr(cells, "dtype", "") for name, cells in source.items()}
    told = {name: str(kind).lower() for name, kind in kinds.items()}
    return {name for name, kind in told.items() if kind.startswith(("timestamp", "datetime")) and "[d]" not in kind}


def _header(path: str, delimiter: str) -> list[str]:
    with files.text(path) as file:
        return [name.strip() for name in next(csv.reader(file, delimiter=delimiter), [])]


def _as_many(found: Iterable[Mapping[str, Any]], records: int | None, strict: bool = False) -> Iterator:
    """Pieces, which must have as many rows in all as are public. strict: they are those of several files."""
    count = 0
    for piece in found:
        count += _rows(piece)
        yield piece
    if strict and records not in (None, count):
        raise ValueError("records= goes with one file of texts: leave it out for several.")
    _require_records(count, records)


def _batch_pieces(
    table: batches.Batches, names: Sequence[str], also: Sequence[str], strict: bool, records: int | None
) -> Iterator[Mapping[str, Any]]:
    """Batches as pieces; strict drops and fills rows up to the public number, as for a table in memory."""
    found = 0
    for batch in table.read([*names, *also]):
        if not len(batch):
            continue
        piece = {name: _cells(name, batch[name], strict) for name in names}
        piece |= _readable(batch, also, piece, _cells)
        if strict and records is not None:
            piece = {name: values[: max(records - found, 0)] for name, values in piece.items()}
        found += _rows(piece)
        if _rows(piece):
            yield piece
        elif strict:
            return
    if strict:
        while records is not None and found < records:
            rows = min(PIECE_ROWS, records - found)
            yield {name: np.full(rows, None, object) for name in names}
            found += rows
        return
    if not found:
        raise ValueError("the table has no rows.")
    _require_records(found, records)


def _cells(name: str, column: Any, strict: bool) -> Any:
    """As `_values`; texts of Arrow stay there, and floats with nulls become NaN without a detour by objects."""
    if not hasattr(column, "null_count"):
        return _values(name, column, strict)
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = pc.cast(column, kind.value_type), kind.value_type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        whole = pc.fill_null(pc.cast(column, pa.string()), "")
        return TextColumn(whole.combine_chunks() if isinstance(whole, pa.ChunkedArray) else whole)
    if pa.types.is_floating(kind) and column.null_count:
        return np.array(pc.cast(column, pa.float64()).to_numpy(zero_copy_only=False), float)
    if column.null_count and (pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        return WholeColumn(column)
    return _values(name, column, strict)


def _require_records(found: int, records: int | None) -> None:
    if records is not None and found != records:
        raise FormError(f"the table has {found} rows and not the {records} that were stated")


def _of_length(columns: dict[str, np.ndarray], strict: bool, records: int | None) -> dict[str, np.ndarray]:
    """The columns with the public number of rows."""
    found = len(next(iter(columns.values())))
    if not strict:
        _require_records(found, records)
        return columns
    columns = {name: values[:records] for name, values in columns.items()}
    if records is None or records <= found:
        return columns
    empty = np.full(records - found, None, object)
    return {name: np.concatenate([_as_cells(values), empty]) for name, values in columns.items()}


def _as_cells(values: np.ndarray) -> np.ndarray:
    """Values that stay what they are among objects: nanoseconds would become whole numbers."""
    return values.astype("datetime64[us]") if values.dtype.kind == "M" else values


def _csv_pieces(path: str, names: Sequence[str], delimiter: str, faults: Counter[str]) -> Iterator[Mapping[str, Any]]:
    """By Arrow where the file is plain; by Python otherwise, and from the row on where Arrow gives up."""
    count = 0
    if arrow_csv.serves(path, delimiter):
        import pyarrow

        fields = _header(path, delimiter)
        positions = header.positions(path, fields, names, delimiter)
        try:
            for piece in arrow_csv.pieces(path, fields, list(dict.fromkeys(positions)), delimiter):
                if rows := arrow_csv.rows_of(piece):
                    yield {name: piece[place] for name, place in zip(names, positions, strict=True)}
                    count += rows
            if count:
                return
        except pyarrow.ArrowInvalid:
            pass
    yield from _python_pieces(path, names, delimiter, faults, count)


def _python_pieces(
    path: str, names: Sequence[str], delimiter: str, faults: Counter[str], skip: int = 0
) -> Iterator[Mapping[str, Any]]:
    """skip: rows at the start that the caller has."""
    try:
        with files.text(path) as file:
            rows = csv.reader(file, delimiter=delimiter, strict=True)
            fields = [name.strip() for name in next(rows, [])]
            positions = header.positions(path, fields, names, delimiter)
            take = [operator.itemgetter(position) for position in positions]
            count = 0
            while piece := list(itertools.islice(rows, PIECE_ROWS)):
                rows_read = len(piece)
                piece = [row for row in piece if row]
                faults[lines.EMPTY] += rows_read - len(piece)
                _require_width(path, piece, len(fields), count)
                fresh = piece[max(skip - count, 0) :]
                if fresh:
                    yield {name: list(map(get, fresh)) for name, get in zip(names, take, strict=True)}
                count += len(piece)
    except UnicodeDecodeError:
        raise FormError(f"data file {path} is not UTF-8 text: save it as CSV in UTF-8") from None
    except csv.Error:
        raise FormError(
            f"data file {path} is not well-formed CSV: look for an open quote or an endless field"
        ) from None
    if count == 0:
        raise FormError(f"data file {path} has a header but no rows")


def _require_width(path: str, rows: list[list[str]], width: int, before: int) -> None:
    for number, row in enumerate(rows, start=before + 1):
        if len(row) != width:
            raise FormError(
                f"data file {path}: row {number} does not have the {width} fields of the header; "
                "quote fields that contain the delimiter"
            )


def _frame_columns(source: Any, names: Sequence[str], strict: bool) -> dict[str, np.ndarray]:
    """The named columns of a data frame or a mapping, by duck typing."""
    available = _available(source)
    columns: dict[str, np.ndarray] = {}
    for name in names:
        matches = [label for label in available if label == name]
        if not matches:
            numbered = any(isinstance(label, numbers.Number) for label in available)
            hint = f"its columns are numbered, {RENAMED}" if numbered else "check the spelling."
            raise ValueError(f"column {name!r} is not in the table ({len(available)} columns): {hint}")
        if len(matches) > 1:
            raise ValueError(f"the table has {len(matches)} columns named {name!r}: rename them.")
        columns[name] = _values(name, source[name], strict)
    _require_one_length(columns, strict)
    return columns


def _available(source: Any) -> list[Any]:
    """The names of a table in memory, by duck typing."""
    if isinstance(source, Mapping):
        return list(source)
    if hasattr(source, "column_names"):  # pyarrow, where .columns holds the arrays themselves
        return list(source.column_names)
    if hasattr(source, "columns") and hasattr(source, "__getitem__"):
        return list(source.columns)
    raise TypeError(
        "source must be the path of a data file, a pandas, polars or pyarrow table or a mapping of arrays, "
        f"got {type(source).__name__}."
    )


def _values(name: str, column: Any, strict: bool) -> np.ndarray:
    """One column as an array (n,) of numbers, booleans or objects.

    A list is taken cell by cell where its cells differ in type, since one of them would decide that of all.
    """
    if is_traced(column):
        raise TypeError(
            f"column {name!r} is traced by JAX, and tables are read outside jax.jit, jax.vmap and jax.grad: read it in "
            "plain Python, and give the arrays to what JAX transforms."
        )
    if isinstance(column, list | tuple) and (strict or not _are_numbers(column)):
        if not strict and any(isinstance(cell, list | tuple | dict | set | bytes) for cell in column):
            raise ValueError(NOT_ONE.format(name))
        return np.fromiter(column, object, len(column))
    if isinstance(column, np.ma.MaskedArray):
        column = np.ma.filled(column.astype(object), None)
    if hasattr(column, "to_pylist") and column.null_count:
        # pyarrow decodes a null in a dictionary-encoded column as one of its values
        column = np.fromiter(column.to_pylist(), object, len(column))
    try:
        values = np.asarray(column.to_numpy() if hasattr(column, "to_numpy") else column)
    except ValueError:  # lists of several lengths, or bytes that are no text
        raise ValueError(NOT_ONE.format(name)) from None
    if values.ndim != 1:
        raise ValueError(f"column {name!r} must have one dimension, got shape {values.shape}.")
    if values.dtype.kind not in "biufOUTM":
        raise TypeError(f"column {name!r} has type {values.dtype}: convert it to numbers or texts first.")
    return values if values.dtype.kind in "biufM" else values.astype(object)


def _are_numbers(cells: Sequence) -> bool:
    """Whether all cells are numbers whose array says the same of each as it does by itself."""
    kinds = set(map(type, cells))
    if PercentCell in kinds:
        return False
    return kinds == {bool} or all(issubclass(kind, int | float | np.integer) and kind is not bool for kind in kinds)


def _require_one_length(columns: dict[str, np.ndarray], strict: bool) -> None:
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"the columns differ in length: {', '.join(f'{k!r} has {v}' for k, v in lengths.items())}.")
    if 0 in lengths.values() and not strict:
        raise ValueError("the table has no rows.")
