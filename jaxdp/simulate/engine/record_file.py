"""An append-only file of checked records that survives `kill -9` at any byte.

Layout: frames one after the other, each `magic, length, crc32 of all else, payload`; a payload is one line of JSON
and, behind its newline, the p-values as little-endian float32. A batch of records is one write and one fsync. A frame
that the crash cut short fails its length or its checksum and is cut off when the file is opened again; what was synced
stays. One process may hold the file at a time.
"""

from __future__ import annotations

import dataclasses
import json
import os
import struct
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxdp._base import file_lock

MAGIC = b"JDPR"
_HEAD = struct.Struct("<4sII")
MAX_PAYLOAD = 1 << 28
RUN, CHUNK = "run", "chunk"
BINS = 100


@dataclasses.dataclass(frozen=True)
class Record:
    """Replicates start, ..., stop - 1 of one setting: primary key (cell, start).

    cell: hash of the setting's configuration (its name in files). rejections: p-values at or below the level.
    failures: p-values that are NaN.
    histogram: counts of p in ((i - 1)/100, i/100], i = 1, ..., 100. p_values: float32, where they are kept.
    seconds: time it took, no part of what is compared.
    """

    cell: str
    start: int
    stop: int
    rejections: int
    failures: int
    histogram: tuple[int, ...]
    p_values: bytes = b""
    seconds: float = dataclasses.field(default=0.0, compare=False)

    @property
    def key(self) -> tuple[str, int]:
        """What identifies the record."""
        return self.cell, self.start


@dataclasses.dataclass(frozen=True)
class Contents:
    """What a file holds: its records, the runs that wrote them, and how many bytes of it are sound."""

    records: tuple[Record, ...]
    runs: tuple[dict[str, Any], ...]
    sound: int
    length: int


def read(path: str | os.PathLike) -> Contents:
    """The sound records of a file, in the order they were written; a torn tail is left out.

    A record that is there twice counts once. Errors: ValueError if sound frames follow a damaged one (that is no torn
    tail), or if two records of one primary key differ.
    """
    return _parse(Path(path).read_bytes(), str(path))


class RecordFile:
    """A record file open for appending, by one process: `with RecordFile(path) as file: file.append(records)`.

    Opening cuts off a torn tail. Errors: ValueError if another process has the file open, or if it is damaged before
    its tail.
    """

    def __init__(self, path: str | os.PathLike):
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            self._open()
        except BaseException:
            os.close(self._descriptor)
            raise

    def _open(self) -> None:
        try:
            file_lock.take(self._descriptor, wait=False)
        except BlockingIOError:
            raise ValueError(
                f"{self.path} is being written by another process: wait for it, or give this one its own --task."
            ) from None
        contents = read(self.path)
        self.torn = contents.length - contents.sound
        if self.torn:
            os.ftruncate(self._descriptor, contents.sound)
        os.fsync(self._descriptor)
        file_lock.flush_folder(self.path.parent)
        self.records = list(contents.records)
        self._keys = {record.key for record in self.records}

    def begin(self, **facts) -> None:
        """Notes that a run with these facts (versions, device, ...) writes from here on."""
        self.begin_all([facts])

    def begin_all(self, runs: Iterable[dict[str, Any]]) -> None:
        """`begin` for several runs: one write, one fsync."""
        self._write([_frame({"kind": RUN, **facts}) for facts in runs])

    def append(self, records: Sequence[Record]) -> None:
        """Writes records durably: one write, one fsync. Errors: ValueError for a key that is there already."""
        if not records:
            return
        fresh: set[tuple[str, int]] = set()
        for record in records:
            if record.key in self._keys or record.key in fresh:
                raise ValueError(f"record {record.key} is in {self.path} already: nothing was written.")
            fresh.add(record.key)
        self._write([_encode(record) for record in records])
        self._keys |= fresh
        self.records.extend(records)

    def _write(self, frames: Iterable[bytes]) -> None:
        left = memoryview(b"".join(frames))
        while left:
            left = left[os.write(self._descriptor, left) :]
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Releases the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> RecordFile:
        return self

    def __exit__(self, *_) -> None:
        self.close()


def _encode(record: Record) -> bytes:
    # not `asdict`: it copies the histogram number by number, which was half of the time of a merge
    fields = {name: value for name, value in vars(record).items() if name != "p_values"}
    return _frame({"kind": CHUNK, **fields}, record.p_values)


def _frame(header: dict[str, Any], tail: bytes = b"") -> bytes:
    payload = json.dumps(header, separators=(",", ":"), sort_keys=True).encode() + b"\n" + tail
    return _HEAD.pack(MAGIC, len(payload), _checksum(payload)) + payload


def _checksum(payload: bytes) -> int:
    """Over magic and length too: a run of zeros behind a magic must not pass for an empty frame."""
    return zlib.crc32(payload, zlib.crc32(MAGIC + len(payload).to_bytes(4, "little")))


def _frame_at(data: bytes, place: int) -> bytes | None:
    """The payload of the sound frame at this place, None if there is none."""
    if len(data) < place + _HEAD.size:
        return None
    magic, length, checksum = _HEAD.unpack_from(data, place)
    payload = data[place + _HEAD.size : place + _HEAD.size + length]
    sound = magic == MAGIC and length <= MAX_PAYLOAD and len(payload) == length
    return payload if sound and _checksum(payload) == checksum else None


def _parse(data: bytes, name: str) -> Contents:
    place, records, runs = 0, [], []
    while (payload := _frame_at(data, place)) is not None:
        line, _, tail = payload.partition(b"\n")
        header = json.loads(line)
        if header.pop("kind") == RUN:
            runs.append(header)
        else:
            records.append(Record(**{**header, "histogram": tuple(header["histogram"])}, p_values=tail))
        place += _HEAD.size + len(payload)
    _require_torn_tail(data, place, name)
    first: dict[tuple[str, int], Record] = {}
    for record in records:
        if first.setdefault(record.key, record) != record:
            raise ValueError(
                f"{name} holds two different records of the same replicates: it was not written by one process at a "
                "time."
            )
    records = list(first.values())  # a record that is written twice, as an interrupt once did, counts once
    return Contents(tuple(records), tuple(runs), place, len(data))


def _require_torn_tail(data: bytes, place: int, name: str) -> None:
    """Raises if anything sound follows the first frame that is not."""
    later = data.find(MAGIC, place + 1)
    while later >= 0:
        if _frame_at(data, later) is not None:
            raise ValueError(
                f"{name} is damaged at byte {place} with sound records behind it: restore it from a copy, or delete it "
                "and run again with --resume."
            )
        later = data.find(MAGIC, later + 1)


def unpack(p_values: bytes) -> np.ndarray:
    """Checkpoint p-values as an array."""
    return np.frombuffer(p_values, "<f4")
