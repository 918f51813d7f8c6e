"""Which files of a results folder are ours: a record beside them holds the name and the SHA-256 of each.

`--out` may be a folder with data in it. So a command overwrites a file only if the record has its digest, and a page
shows a file only if the record has its digest: a file of somebody else is neither lost nor published, whatever its
name. The record names plain files of its own folder; links and other folders are never followed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from jaxdp._base import file_lock

RECORD = "jaxdp-files.json"
RUNNING = ".jaxdp-running"  # while a run writes to the folder
VERSION = 1
_NAME = re.compile(r"[a-z][a-z0-9_]*\.(json|csv|parquet|png|dot|html|toml|yaml)")
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclasses.dataclass
class Record:
    """files: name -> digests that are ours (two while a file is replaced). shown: names on the page, in order."""

    files: dict[str, list[str]]
    shown: list[str]


def claim(folder: Path, names: Iterable[str]) -> None:
    """Raises if a file of one of these names is there that no command wrote. Called before data are read or paid for.

    Errors: ValueError that names the file.
    """
    record = _read(Path(folder))
    for name in names:
        _digest_of_ours(Path(folder), name, record)


@contextlib.contextmanager
def reserved(folder: Path) -> Iterator[bool]:
    """Whether the folder is this run's alone while the context lasts; also true where a system has no locks."""
    if not file_lock.available():
        yield True
        return
    path = Path(folder) / RUNNING
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        held = True
        try:
            file_lock.take(descriptor, wait=False)
        except BlockingIOError:
            held = False
        except OSError:  # a file system without locks
            pass
        # a run that has ended takes its file away, and whoever waited for that one holds nothing
        held = held and path.exists() and os.path.samestat(os.fstat(descriptor), os.stat(path))
        try:
            yield held
        finally:
            if held:
                path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def put(folder: Path, name: str, write: Callable[..., Any], *args: Any, **options: Any) -> Path:
    """Calls write(path, *args, **options) and makes the file it wrote `folder/name`, whole or not at all.

    Errors: ValueError if a file of that name is there that no command wrote.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".jaxdp-") as scratch:
        fresh = Path(scratch) / name
        write(fresh, *args, **options)
        with _locked(folder):
            record = _read(folder)
            old = _digest_of_ours(folder, name, record)
            # the record first: a crash before the file is replaced leaves the old one, which is ours as well
            record.files[name] = [*([] if old is None else [old]), _digest(fresh.read_bytes())]
            _save(folder, record)
            os.replace(fresh, folder / name)
    return folder / name


def put_picture(folder: Path, name: str, draw: Callable[..., Any], *args: Any, **options: Any) -> None:
    """`put` of a picture where matplotlib is installed; elsewhere an old one of ours is dropped and none is drawn."""
    from jaxdp.report.figures import can_draw

    if can_draw():
        put(folder, name, draw, *args, **options)
    else:
        drop(folder, name)


def put_json(folder: Path, name: str, content: Any) -> Path:
    """`put` of JSON that every reader accepts."""
    from jaxdp._base import json_files

    return put(folder, name, json_files.write, content)


def put_text(folder: Path, name: str, text: str) -> Path:
    return put(folder, name, lambda path: path.write_text(text, encoding="utf-8", newline=""))


def drop(folder: Path, name: str) -> None:
    """Deletes a file of ours if it is there. Errors: ValueError for a file that no command wrote."""
    folder = Path(folder)
    with _locked(folder):
        if _digest_of_ours(folder, name, _read(folder)) is not None:
            (folder / name).unlink()


def show(folder: Path, names: Iterable[str]) -> None:
    """Notes which of our files the page of the folder shows, in this order."""
    folder = Path(folder)
    with _locked(folder):
        record = _read(folder)
        _save(folder, dataclasses.replace(record, shown=[name for name in names if name in record.files]))


def shown(folder: Path) -> tuple[dict[str, bytes], list[str]]:
    """Contents of the files that the page shows, and the names of those that were changed since we wrote them.

    Errors: ValueError for a record that no command wrote.
    """
    folder, contents, changed = Path(folder), {}, []
    record = _read(folder)
    for name in record.shown:
        content = _content(folder / name)
        if content is not None and _digest(content) in record.files.get(name, []):
            contents[name] = content
        elif os.path.lexists(folder / name):
            changed.append(name)
    return contents, changed


def has_record(folder: Path) -> bool:
    """Whether a command wrote into this folder; a link to one does not count."""
    return Path(folder).is_dir() and not Path(folder).is_symlink() and (Path(folder) / RECORD).is_file()


def _digest_of_ours(folder: Path, name: str, record: Record) -> str | None:
    """Digest of the file if it is ours, None if it is not there."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name of a result.")
    path = folder / name
    if not os.path.lexists(path):
        return None
    content = _content(path)
    digest = None if content is None else _digest(content)
    if digest is None or digest not in record.files.get(name, []):
        raise ValueError(
            f"{path} was not written by jaxdp, or was changed since: move it away, or give another folder with --out."
        )
    return digest


def _content(path: Path) -> bytes | None:
    """Bytes of a regular file; None for links, folders and what cannot be opened."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with open(descriptor, "rb") as file:
        return file.read() if stat.S_ISREG(os.fstat(descriptor).st_mode) else None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _read(folder: Path) -> Record:
    path = folder / RECORD
    if not os.path.lexists(path):
        return Record({}, [])
    record = _parsed(_content(path))
    if record is None:
        raise ValueError(f"{path} was not written by jaxdp: move it away, or give another folder with --out.")
    return record


def _parsed(content: bytes | None) -> Record | None:
    """The record of a file's content, None unless every part of it is as we write it."""
    try:
        found = json.loads(content or b"")
        files, shown = found["files"], found["shown"]
        sound = (
            found["version"] == VERSION
            and all(_NAME.fullmatch(name) for name in (*files, *shown))
            and all(_DIGEST.fullmatch(digest) for digests in files.values() for digest in digests)
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    return Record({name: list(digests) for name, digests in files.items()}, list(shown)) if sound else None


def _save(folder: Path, record: Record) -> None:
    content = {"version": VERSION, "files": record.files, "shown": record.shown}
    fresh = folder / f".{RECORD}.{os.getpid()}"
    with fresh.open("w", encoding="utf-8") as file:
        file.write(json.dumps(content, indent=1, sort_keys=True) + "\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(fresh, folder / RECORD)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One process at a time changes the record; tasks of a job array may share a folder."""
    if not file_lock.available():
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            file_lock.take(descriptor, wait=True)
        yield
    finally:
        os.close(descriptor)
