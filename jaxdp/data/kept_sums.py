"""Sums of a long pass over many files, kept so that an interrupted pass goes on. They have no noise: **private**.

They lie in a folder that its owner alone can read, belong to one query about one state of the files, and are deleted
once the answer is there. A notice beside them says what they are. Nothing else is kept: no record, no key, no noise.
"""

from __future__ import annotations

import functools
import hashlib
import io
import os
import pickle
import re
import shlex
import stat
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxdp.data import batches
from jaxdp.data.chunks import in_turn
from jaxdp.data.dataset import Data

SECONDS = 10.0  # between two writings
_ENDS = ".sums"
NOTICE = "NOTICE.txt"  # for whoever finds the folder of an interrupted run
NOTICE_TEXT = """\
Private: do not copy, share or publish this folder.

The files *.sums hold sums over the records of an unfinished run of jaxdp (--keep-sums). They have NO NOISE and no
privacy guarantee: whoever reads them learns about the records what no release may tell.
jaxdp deletes this folder once the run is finished. To give the run up, delete the folder.
"""


class KeptSums:
    """The sums of the files that were read, in a folder of mode 0700, in files of mode 0600.

    folder: made if missing. Errors: ValueError for a folder that others may enter, that is not the caller's, or that
    holds anything else.
    """

    def __init__(self, folder: str | os.PathLike, seconds: float | None = None) -> None:
        self.folder, self._stage = Path(folder), 0
        self._seconds = SECONDS if seconds is None else seconds
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = self.folder.stat()
        if stat.S_IMODE(found.st_mode) & 0o077 or found.st_uid != os.getuid() or self.folder.is_symlink():
            raise ValueError(
                f"{folder} may be entered by others: the sums in it have no noise, so give a folder of your own "
                f"(chmod 700 {shlex.quote(str(folder))})."
            )
        if not all(map(_is_ours, self.folder.iterdir())):
            raise ValueError(f"{folder} holds other files: give an empty folder, or none yet.")
        with open(os.open(self.folder / NOTICE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(NOTICE_TEXT.encode())

    def add_up(
        self,
        public: str,
        paths: Sequence[str],
        read_one: Callable[[str], Iterator[Data]],
        most: int,
        blank: Callable[[], Data],
        function: Callable[[Data], Any],
        merge: Callable[[Any, Any], Any],
        read: Callable[[], Iterator[Data]],
    ) -> Any:
        """`in_turn`, file after file; those whose sums are kept are not read again.

        public: the columns and how they are coded, in words. blank: one row of zeros, whose sums have the form of all.
        Errors: ValueError where the kept sums are of another query, or of files that have changed.
        """
        path = self.folder / f"{self._stage}{_ENDS}"
        state = _digest(repr((public, [_state_of(one) for one in paths])).encode())
        stage = _digest(pickle.dumps((function, merge)))
        done, found = self._kept(path, state, stage, function, blank)
        self._stage += 1
        written = time.monotonic()
        for number, one in enumerate(paths[done:], done + 1):
            rows, part = in_turn(function, merge, functools.partial(read_one, one), most)
            if part is not None:
                found = (rows, part) if found is None else merge(found, (rows, part))
            if found is not None and (number == len(paths) or time.monotonic() - written >= self._seconds):
                self._write(path, state, stage, number, found)
                written = time.monotonic()
        return (0, None) if found is None else found

    def _kept(self, path: Path, state: str, stage: str, function, blank) -> tuple[int, Any]:
        """(files whose sums are kept, the sums); (0, None) where there are none of this stage."""
        if not path.exists():
            return 0, None
        with np.load(path, allow_pickle=False) as file:
            known = {name: file[name] for name in file.files}
        same_stage = str(known["stage"]) == stage
        if str(known["state"]) != state or not (same_stage or self._stage):
            raise ValueError(
                f"the sums in {self.folder} are of another query, or of files that have changed since: give another "
                "folder, or delete this one to start over."
            )
        if not same_stage:  # it follows what an earlier stage released, which is drawn anew
            return 0, None
        leaves, form = jax.tree.flatten(function(blank()))
        return int(known["done"]), jax.tree.unflatten(form, [known[f"sum{k}"] for k in range(len(leaves))])

    def _write(self, path: Path, state: str, stage: str, done: int, found: Any) -> None:
        content = io.BytesIO()
        leaves = {f"sum{k}": np.asarray(leaf) for k, leaf in enumerate(jax.tree.leaves(found))}
        np.savez(content, state=np.array(state), stage=np.array(stage), done=np.array(done), **leaves)  # type: ignore[arg-type]
        beside = path.with_name(f"{path.name}.{os.getpid()}{_ENDS}")
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(content.getvalue())
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)

    def delete(self) -> None:
        """Deletes the sums, the notice and the folder."""
        for path in (*self.folder.glob(f"*{_ENDS}"), self.folder / NOTICE):
            path.unlink()
        self.folder.rmdir()


def files_of(source: Any) -> list[str]:
    """The files of a source whose sums can be kept. Errors: ValueError for a source that is none."""
    if not isinstance(source, str | os.PathLike) or batches.is_query(source):
        raise ValueError("sums are kept of files alone: give a folder, a glob or a file, or leave --keep-sums out.")
    found = batches.paths(source)
    return [os.fspath(source)] if found is None else found


def _is_ours(path: Path) -> bool:
    """Whether this is the notice, or sums that were kept, or begun to be written: all others are deleted by nobody."""
    if path.name == NOTICE:
        return not path.is_symlink() and path.is_file() and NOTICE_TEXT.encode().startswith(path.read_bytes())
    if re.fullmatch(rf"\d+{_ENDS}\.\d+{_ENDS}", path.name):
        return True
    try:
        with zipfile.ZipFile(path) as content:
            return path.suffix == _ENDS and {"state.npy", "stage.npy", "done.npy"} <= set(content.namelist())
    except (OSError, zipfile.BadZipFile):
        return False


def _state_of(path: str) -> tuple[str, int, int]:
    found = os.stat(path)
    return os.path.abspath(path), found.st_size, found.st_mtime_ns


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
