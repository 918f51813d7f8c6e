"""Locks on open files, by POSIX's flock; a system without it (Windows) can do all that shares no file."""

import os
from pathlib import Path

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

MISSING = (
    "this system has no POSIX file locks (Windows), without which two runs could write one file: run this on Linux or "
    "macOS, or in the Windows Subsystem for Linux."
)


def available() -> bool:
    """Whether this system has such locks."""
    return fcntl is not None


def take(descriptor: int, *, wait: bool) -> None:
    """Holds the open file for this process alone, until it is closed.

    Errors: BlockingIOError where another process holds it, unless `wait`; OSError where the file system has no locks;
    ValueError where this system has none.
    """
    if fcntl is None:
        raise ValueError(MISSING)
    fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


def flush_folder(folder: Path) -> None:
    """Puts the names of new files on disk too, so that no power cut can take one away from under what it records."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
