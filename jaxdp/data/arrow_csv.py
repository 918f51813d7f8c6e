"""Plain CSV files through Arrow's reader: the same rows as Python's reader gives, many times faster.

A file goes this way only if no byte of it could be read in two ways: it is UTF-8, holds no quote beyond its header, no
empty line and no endless line. Whatever Arrow does not take is left to Python's reader, which has the error sentences.
"""

from __future__ import annotations

import codecs
import csv
import importlib.util
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jaxdp.data.texts import TextColumn

MIN_BYTES = 1 << 20  # below this, loading the library costs more than it saves
BLOCK_BYTES = 1 << 22
# Every stretch of so many bytes ends a line, so that no field reaches the limit of Python's reader, 2^17 letters.
LINE_BYTES = 1 << 16


def serves(path: str | os.PathLike, delimiter: str, min_bytes: int = MIN_BYTES) -> bool:
    """Whether the file is a plain one that is worth it, and the library is there."""
    name = os.fspath(path)
    if not os.path.isfile(name) or os.path.getsize(name) < min_bytes or not delimiter.isascii():
        return False
    return (
        not name.lower().endswith(".gz")
        and importlib.util.find_spec("pyarrow") is not None
        and _is_plain(name, delimiter)
    )


def pieces(path: str | os.PathLike, fields: Sequence[str], positions: Sequence[int], delimiter: str) -> Iterator[Any]:
    """Yields one dict position -> `TextColumn` after the other. Errors: pyarrow.ArrowInvalid; rows before it are right.

    fields: the header. positions: of the wanted columns, without repetition.
    """
    import pyarrow as pa
    from pyarrow import csv as arrow

    names = [str(place) for place in range(len(fields))]
    wanted = [names[place] for place in positions]
    reader = arrow.open_csv(
        os.fspath(path),
        read_options=arrow.ReadOptions(column_names=names, skip_rows=1, block_size=BLOCK_BYTES),
        parse_options=arrow.ParseOptions(delimiter=delimiter, quote_char=False, ignore_empty_lines=False),
        convert_options=arrow.ConvertOptions(
            include_columns=wanted,
            column_types=dict.fromkeys(wanted, pa.string()),
            null_values=[],
            strings_can_be_null=False,
        ),
    )
    for batch in reader:
        yield {place: TextColumn(batch.column(k)) for k, place in enumerate(positions)}


def _is_plain(name: str, delimiter: str) -> bool:
    """Whether both readers see the same lines and fields. The header, which Python reads, may have quotes."""
    decoder, before = codecs.getincrementaldecoder("utf-8")(), b"\n"
    with open(name, "rb") as file:
        if _is_one_line(first := file.readline(LINE_BYTES), delimiter):
            before = first[-2:]
        else:
            file.seek(0)
        while block := file.read(LINE_BYTES):
            last = len(block) < LINE_BYTES
            if b'"' in block or b"\0" in block or (b"\n" not in block and not last):
                return False
            joined = before + block
            if b"\n\n" in joined or (b"\r" in joined and not _ends_lines(joined)):
                return False
            if not block.isascii() or decoder.getstate()[0]:
                try:
                    decoder.decode(block)
                except UnicodeDecodeError:
                    return False
            before = block[-2:]
    return not decoder.getstate()[0] and not before.endswith(b"\r")


def _is_one_line(header: bytes, delimiter: str) -> bool:
    """Whether Python's reader ends a header with quotes where its line ends; False for one without, too."""
    if b'"' not in header or not header.endswith(b"\n") or header.count(b"\r") != header.endswith(b"\r\n"):
        return False
    try:
        return b"\0" not in header and len(list(csv.reader([header.decode()], delimiter=delimiter, strict=True))) == 1
    except (csv.Error, UnicodeDecodeError):
        return False


def _ends_lines(block: bytes) -> bool:
    """Whether every carriage return (but one at the end, which the next block shows) stands before a line break."""
    inner = block.removesuffix(b"\r")
    return inner.count(b"\r") == inner.count(b"\r\n") and b"\n\r\n" not in inner


def rows_of(piece: Mapping[int, TextColumn]) -> int:
    """How many rows a piece has."""
    return len(next(iter(piece.values())))
