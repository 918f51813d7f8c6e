"""Tables that need not lie in memory: files of a folder or a glob, Arrow data sets, DuckDB relations, Dask data frames.

Each is read in batches of rows, only the columns that are asked for. Errors speak of files and names, never of a value.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from jaxdp._base.owner import OWNER
from jaxdp.data import files

ROWS = 1 << 17  # of a batch
READ_AHEAD = 4  # batches
NO_STREAM_OF_ROWS = ("columns", "column_names", "dtype", "null_count")  # a table in memory, or a single column
TEXT = "csv"
TEXTS = (".csv", ".tsv", ".txt", ".csv.gz")


class Batches:
    """A table by its batches. names: of its columns. count: () -> rows, None where only reading tells.

    read: names -> iterator of pyarrow tables or pandas frames that have these columns. private: whether the records
    decide on the names, so that what is said of them is for the owner.
    """

    def __init__(
        self,
        what: str,
        names: Sequence[str],
        count: Callable[[], int | None],
        read: Callable[..., Iterator[Any]],
        private: bool = False,
    ):
        self.what, self.names, self.count, self._read = what, list(names), count, read
        self._mark = f" ({OWNER})" if private else ""

    def read(self, names: Sequence[str]) -> Iterator[Any]:
        """Yields tables with the named columns. Errors: ValueError for a column that is not there, or twice."""
        for name in names:
            matches = self.names.count(name)
            if not matches:
                told = f"column {name!r} is not in {self.what} ({len(self.names)} columns): check its name"
                raise ValueError(f"{told}{self._mark}.")
            if matches > 1:
                raise ValueError(f"{self.what} has {matches} columns named {name!r}: rename them{self._mark}.")
        yield from self._read(list(dict.fromkeys(names)))


QUERY = "duckdb:"
_OF_TEXTS = re.compile(r"(read|sniff|from)_(csv|json|ndjson|text|xlsx)|\.(csv|tsv|txt|json|jsonl|ndjson|xlsx)\b", re.I)
_TYPES = re.compile(r"\ball_varchar\s*=\s*(true|1)|\bcolumns\s*=", re.I)  # of all columns; `types` may leave some


def is_query(source: Any) -> bool:
    """Whether a text is a query, "duckdb:select ..."."""
    return isinstance(source, str) and source.startswith(QUERY)


def queries_texts(source: Any) -> bool:
    """Whether a query names a text, in which one cell decides what DuckDB takes its columns for."""
    return is_query(source) and bool(_OF_TEXTS.search(source))


def called(source: Any) -> str:
    """What a source is called in ledgers: the name of a file, or its kind."""
    if is_query(source):
        return "a query"
    return os.path.basename(os.fspath(source)) if isinstance(source, str | os.PathLike) else type(source).__name__


def of(source: Any) -> Batches | None:
    """The batches of a source that has them; None for tables in memory and for files of texts.

    Errors: OSError or ValueError for files that cannot be read or do not belong together.
    """
    if is_query(source):
        return _of_query(source)
    if isinstance(source, str | os.PathLike):
        found = paths(source)
        if found is None:
            return None if not _is_arrow(source) else _of_files(os.fspath(source), [os.fspath(source)])
        return _of_files(os.fspath(source), found)
    module, kind = type(source).__module__.partition(".")[0], type(source).__name__
    if module == "pyarrow" and hasattr(source, "to_batches") and hasattr(source, "count_rows"):
        return _of_dataset("the data set", source)
    if "duckdb" in module and kind == "DuckDBPyRelation":
        return _of_relation(source)
    if module.startswith("dask") and hasattr(source, "partitions") and hasattr(source, "columns"):
        return _of_dask(source)
    if hasattr(source, "read_next_batch"):
        raise ValueError(
            "a reader of batches gives its rows once, and they are read several times: give what it was made of (a "
            "data set, a relation, a query), or reader.read_all() where the table fits into memory."
        )
    if hasattr(source, "__arrow_c_stream__") and not any(hasattr(source, name) for name in NO_STREAM_OF_ROWS):
        return _of_batches("the stream", lambda: [source])
    if callable(source):
        return _of_batches("what the function gives", source)
    return None


def paths(source: str | os.PathLike) -> list[str] | None:
    """The files of a folder or a glob, in the order of their names; None for the path of one file.

    Files whose names begin with "." or "_" do not count, as engines write such beside their data.
    """
    name = os.fspath(source)
    if is_query(name):
        return None
    if os.path.isdir(name):
        found = list(_below(name))
    elif glob.has_magic(name) and not os.path.exists(name):
        found = [path for path in glob.glob(name, recursive=True) if os.path.isfile(path) and _counts(path)]
    else:
        return None
    if not found:
        raise FileNotFoundError(errno.ENOENT, "no data files", name)
    return sorted(found)


def _below(folder: str) -> Iterator[str]:
    """The tables of a folder and the folders in it; the first other file ends it, however many there may be."""
    for place, inner, names in os.walk(folder):
        inner[:] = sorted(filter(_counts, inner))
        for name in sorted(filter(_counts, names)):
            if _format(name) is None:
                raise ValueError(f"folder {folder} has files that are no tables, such as {name}: give a glob instead.")
            yield os.path.join(place, name)


def _counts(path: str) -> bool:
    return not os.path.basename(path).startswith(("_", "."))


def _is_arrow(path: str | os.PathLike) -> bool:
    return os.path.isfile(path) and os.fspath(path).lower().endswith((*files.PARQUET, *files.ARROW))


def is_typed(source: Any) -> bool:
    """Whether a path names typed tables, or the source is no path: then nothing of its form is up to a record."""
    if not isinstance(source, str | os.PathLike) or is_query(source):
        return True
    found = paths(source)
    return files.is_typed(source) if found is None else all(map(files.is_typed, found))


def _of_files(name: str, found: list[str]) -> Batches | None:
    kinds = {_format(path) for path in found}
    if len(kinds) > 1 or None in kinds:
        raise ValueError(f"{name} has files of different kinds: give those of one kind, such as {name}/*.parquet.")
    kind = kinds.pop()
    if kind == TEXT:
        return None
    dataset = files.library("pyarrow.dataset", name)
    with files.readable(name):
        return _of_dataset(f"data file {name}", dataset.dataset(found, format=kind), name)


def _format(path: str) -> str | None:
    name = path.lower()
    for kind, ends in (("parquet", files.PARQUET), ("ipc", files.ARROW), (TEXT, TEXTS)):
        if name.endswith(ends):
            return kind
    return None


def _of_dataset(what: str, dataset: Any, name: str = "the data set") -> Batches:
    def read(names):
        import pyarrow as pa

        scanner = dataset.scanner(columns=names, batch_size=ROWS, batch_readahead=READ_AHEAD, fragment_readahead=1)
        with files.readable(name):
            for batch in scanner.to_batches():
                yield pa.Table.from_batches([batch])

    return Batches(what, dataset.schema.names, dataset.count_rows, read)


def _of_relation(relation: Any) -> Batches:
    def read(names):
        import pyarrow as pa

        wanted = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
        chosen = relation.project(wanted)
        reader = chosen.to_arrow_reader(ROWS) if hasattr(chosen, "to_arrow_reader") else chosen.fetch_arrow_reader(ROWS)
        with contextlib.closing(reader):
            for batch in reader:
                yield pa.Table.from_batches([batch])

    return Batches("the relation", relation.columns, lambda: relation.aggregate("count(*)").fetchall()[0][0], read)


def _of_query(text: str) -> Batches:
    """The result of one SELECT, computed anew for every pass, by a connection that knows files alone."""
    duckdb = files.library("duckdb", "a query")
    query = text.removeprefix(QUERY).strip()
    if not query:
        raise ValueError(f"the query is empty: write \"{QUERY}select dose, response from 'visits/*.parquet'\".")
    connection = duckdb.connect()
    with _answered("cannot be read"):
        statements = connection.extract_statements(query)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise ValueError("a query must be one SELECT: it reads files, and changes none.")
    if queries_texts(text) and not _TYPES.search(query):
        raise ValueError(
            "a query of text files must say the types of their columns, since DuckDB chooses them by what the records "
            "hold, and one record would change how all are read: write read_csv('FILE', all_varchar = true) or "
            "columns = {...}, or give the path of the file in place of a query."
        )
    with _answered("cannot be planned"):
        found = _of_relation(connection.sql(query))

    def count():
        with _answered("failed"):
            return found.count()

    def read(names):
        with _answered("failed"):
            yield from found.read(names)

    return Batches("the query", found.names, count, read, queries_texts(text))


@contextlib.contextmanager
def _answered(what: str) -> Iterator[None]:
    """Says in one sentence that a query fails; DuckDB's own words may quote cells."""
    kind = ""
    try:
        yield
    except ValueError:
        raise
    except Exception as error:
        kind = type(error).__name__
    if kind:
        raise ValueError(f"the query {what} ({kind}): run it in DuckDB, which says why, and correct it ({OWNER}).")


def _of_batches(what: str, make: Callable[[], Any]) -> Batches:
    """Arrow batches, or tables, or streams of them (the Arrow PyCapsule protocol), made anew for every pass."""
    pa = files.library("pyarrow", what)

    def tables():
        made = make()
        for part in [made] if hasattr(made, "__arrow_c_stream__") else made:
            if isinstance(part, pa.RecordBatch):
                yield pa.Table.from_batches([part])
            elif isinstance(part, pa.Table):
                yield part
            elif hasattr(part, "__arrow_c_stream__"):
                for batch in pa.RecordBatchReader.from_stream(part):
                    yield pa.Table.from_batches([batch])
            else:
                raise TypeError(f"{what} must be Arrow batches, got {type(part).__name__}.")

    def read(names):
        for table in tables():
            yield from map(pa.Table.from_batches, ([batch] for batch in table.select(names).to_batches(ROWS)))

    names = list(next(iter(tables()), pa.table({})).column_names)
    return Batches(what, names, lambda: sum(map(len, tables())), read)


def _of_dask(frame: Any) -> Batches:
    def read(names):
        columns = frame[names]
        for number in range(columns.npartitions):
            yield columns.get_partition(number).compute()

    def count():
        return int(frame[list(frame.columns[:1])].map_partitions(len).compute().sum())

    return Batches("the data frame", list(frame.columns), count, read)
