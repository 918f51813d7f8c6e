"""Tables that need not lie in memory: files of a folder or a glob, Arrow data sets, DuckDB relations, Dask data frames.

Each is read in batches of rows, only the columns that are asked for. Errors speak of files and names, never of a value.
"""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from jaxdp.data import files

ROWS = 1 << 17  # of a batch
READ_AHEAD = 4  # batches
TEXT = "csv"
TEXTS = (".csv", ".tsv", ".txt", ".csv.gz")


class Batches:
    """A table by its batches. names: of its columns. count: () -> rows, None where only reading tells.

    read: names -> iterator of pyarrow tables or pandas frames that have these columns.
    """

    def __init__(
        self, what: str, names: Sequence[str], count: Callable[[], int | None], read: Callable[..., Iterator[Any]]
    ):
        self.what, self.names, self.count, self._read = what, list(names), count, read

    def read(self, names: Sequence[str]) -> Iterator[Any]:
        """Yields tables with the named columns. Errors: ValueError for a column that is not there, or twice."""
        for name in names:
            matches = self.names.count(name)
            if not matches:
                raise ValueError(f"column {name!r} is not in {self.what} ({len(self.names)} columns): check its name.")
            if matches > 1:
                raise ValueError(f"{self.what} has {matches} columns named {name!r}: rename them.")
        yield from self._read(list(dict.fromkeys(names)))


def of(source: Any) -> Batches | None:
    """The batches of a source that has them; None for tables in memory and for files of texts.

    Errors: OSError or ValueError for files that cannot be read or do not belong together.
    """
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
    return None


def paths(source: str | os.PathLike) -> list[str] | None:
    """The files of a folder or a glob, in the order of their names; None for the path of one file.

    Files whose names begin with "." or "_" do not count, as engines write such beside their data.
    """
    name = os.fspath(source)
    if os.path.isdir(name):
        found = list(_below(name))
    elif glob.has_magic(name) and not os.path.exists(name):
        found = [path for path in glob.glob(name, recursive=True) if os.path.isfile(path) and _counts(path)]
    else:
        return None
    if not found:
        raise FileNotFoundError(f"{name} has no data files.")
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
    if not isinstance(source, str | os.PathLike):
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


def _of_dask(frame: Any) -> Batches:
    def read(names):
        columns = frame[names]
        for number in range(columns.npartitions):
            yield columns.get_partition(number).compute()

    def count():
        return int(frame[list(frame.columns[:1])].map_partitions(len).compute().sum())

    return Batches("the data frame", list(frame.columns), count, read)
