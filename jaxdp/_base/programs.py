"""Where compiled programs are kept between processes: a folder of its owner alone, or nowhere.

    jaxdp.programs.keep()           # from here on, in ~/.cache/jaxdp/programs; the command line does this
    jaxdp.programs.keep("folder")   # elsewhere
    jaxdp.programs.forget()         # from here on, nowhere

Environment: JAXDP_PROGRAMS=off keeps nothing, whatever is called; JAXDP_PROGRAMS=FOLDER names the folder.

What is kept is what the compiler was given: shapes (the number of records among them), public settings, and no value
of the data, of the noise or of a key, which are arguments of every program. Who can write into the folder can make
this user run code, and who can read it learns which queries were asked of how many records: so it must be a folder,
no link, of this user, which nobody else can open, in folders that nobody else can write into.
"""

import contextlib
import hashlib
import importlib.util
import itertools
import math
import os
import platform
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import jax
import numpy as np
from jax.experimental.compilation_cache import compilation_cache

VARIABLE = "JAXDP_PROGRAMS"
OFF = ("off", "0", "no", "false", "none")
MAX_BYTES = 2**29
# compiled, compiled and found without tracing, numbers, texts
KEPT = ("*-cache", "*-traced", "*-numbers.npy", "*-text")
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH

_kept: list[Path] = []  # at most one: the folder in force


def keep(folder: str | os.PathLike | None = None) -> Path | None:
    """Keeps compiled programs from here on, those of releases too; returns the folder, or None if this is switched off.

    folder: made if it is missing; default that of the environment, then ~/.cache/jaxdp/programs.
    Errors: ValueError where the folder is not its owner's alone, in one sentence with the way out.
    """
    if is_off():
        forget()
        return None
    chosen = Path(folder or os.environ.get(VARIABLE) or _default()).expanduser().absolute()
    chosen = _own(_own(chosen) / _machine())  # programs hold instructions that another processor may lack
    _prune(chosen)
    _kept[:] = [chosen]
    return chosen


def forget() -> None:
    """Stops keeping programs of releases; files in the folder stay."""
    _kept.clear()


def folder() -> Path | None:
    """The folder in use, checked again on each call; None if programs are not kept, or if others can now open it."""
    if not _kept or is_off():
        return None
    return _kept[0] if fault(_kept[0]) is None else None


def is_off() -> bool:
    """Whether the environment forbids to keep programs."""
    return os.environ.get(VARIABLE, "").strip().lower() in OFF


@contextlib.contextmanager
def of_a_release() -> Iterator[None]:
    """Programs compiled inside go to the folder in force, to no other; where there is none, to no disk at all."""
    found = folder()
    settings = _in(found) if found else _NOWHERE
    before = {name: getattr(jax.config, name) for name in settings}
    if before == settings:
        yield
        return
    try:
        _configure(settings, found is not None)
        yield
    finally:
        _configure(before, found is not None)


@contextlib.contextmanager
def without_cache() -> Iterator[None]:
    """Programs compiled inside come from the compiler itself, and JAX keeps none of them."""
    before = bool(jax.config.jax_enable_compilation_cache)
    try:
        _configure({"jax_enable_compilation_cache": False}, reopen=True)
        yield
    finally:
        _configure({"jax_enable_compilation_cache": before}, reopen=True)


def of_this_process() -> None:
    """All programs of this process, simulations included, go to the folder in force."""
    found = folder()
    if found and not jax.config.jax_compilation_cache_dir:
        _configure(_in(found), reopen=True)


def numbers_of(name: str, shape: tuple[int, ...], make: Callable[[], np.ndarray]) -> np.ndarray:
    """make(), float32 of this shape, kept in the folder in force: for what public numbers alone decide.

    name: of those numbers and of the code that makes the array.
    """
    found = folder()
    if found is None:
        return make()
    path = found / f"{hashlib.sha256(name.encode()).hexdigest()}-numbers.npy"
    with contextlib.suppress(OSError, ValueError, EOFError):
        kept = np.load(path, allow_pickle=False)
        if kept.shape == shape and kept.dtype == np.float32 and np.all(np.isfinite(kept)):
            return kept
    made = make()
    put(path, lambda file: np.save(file, made, allow_pickle=False))
    return made


def put(path: Path, write: Callable[[IO[bytes]], Any]) -> None:
    """Writes a file of the folder in force, whole or not at all; not where the disk refuses."""
    with contextlib.suppress(OSError):
        handle, beside = tempfile.mkstemp(dir=path.parent)  # for its owner alone
        with os.fdopen(handle, "wb") as file:
            write(file)
        os.replace(beside, path)


def in_use() -> Path | None:
    """The folder that programs compiled now are put into, if that is the one in force."""
    found = _kept[0] if _kept else None
    used = jax.config.jax_enable_compilation_cache and jax.config.jax_compilation_cache_dir == str(found)
    return found if found and used else None


def fault(path: Path) -> str | None:
    """Why programs may not be kept in this folder; None where they may."""
    if not hasattr(os, "getuid"):
        return "this system does not tell whose folder it is"
    owner = os.getuid()
    try:
        found = os.lstat(path)
        parents = [(parent, os.stat(parent)) for parent in Path(os.path.realpath(path)).parents]
    except OSError as error:
        return (error.strerror or "it can't be used").lower()
    if stat.S_ISLNK(found.st_mode):
        return "it is a link"
    if not stat.S_ISDIR(found.st_mode):
        return "it is no folder"
    if found.st_uid != owner:
        return "it belongs to somebody else"
    if found.st_mode & _OTHERS:
        return f"others can open it (chmod 700 {path})"
    for parent, status in parents:
        if status.st_uid not in (0, owner):
            return f"{parent} belongs to somebody else"
        if status.st_mode & _OTHERS_WRITE and not status.st_mode & stat.S_ISVTX:
            return f"others can write into {parent}"
    return None


def _own(path: Path) -> Path:
    """The folder, made for its owner alone if it is missing. Errors: ValueError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700)
        wrong = fault(path)
    except OSError as error:
        wrong = (error.strerror or "it can't be made").lower()
    if wrong:
        raise ValueError(
            f"compiled programs are not kept in {path}: {wrong}; name a folder of your own, or set {VARIABLE}=off."
        )
    return path


def _default() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "jaxdp" / "programs"


def _machine() -> str:
    """A name for the processor's kind and what it can do, and for how JAX packs programs here."""
    try:
        lines = Path("/proc/cpuinfo").read_text().partition("\n\n")[0].splitlines()
        can = "".join(line for line in lines if line.startswith(("flags", "Features", "model name")))
    except OSError:
        can = platform.processor()
    # Zstandard from Python 3.14 on or where its package is, else zlib: a program that is packed otherwise is no error
    # to JAX but a warning about every one of them, on each run
    packed = [name for name in ("compression.zstd", "zstandard") if _has(name)]
    return f"{platform.machine()}-{hashlib.sha256(''.join([can, *packed]).encode()).hexdigest()[:12]}"


def _has(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # of the package around it
        return False


def _prune(path: Path) -> None:
    """Deletes the programs not read for longest until the rest fit, whatever other processes delete meanwhile."""
    found = []
    for entry in itertools.chain(*map(path.glob, KEPT)):
        with contextlib.suppress(OSError):
            status = entry.lstat()
            found.append((max(status.st_atime, status.st_mtime), status.st_size, entry))
    size = sum(size for _, size, _ in found)
    for _, freed, entry in sorted(found):
        if size <= MAX_BYTES:
            return
        with contextlib.suppress(OSError):
            entry.unlink(missing_ok=True)
        size -= freed


def _in(path: Path) -> dict[str, Any]:
    return {
        "jax_enable_compilation_cache": True,
        "jax_compilation_cache_dir": str(path),
        "jax_persistent_cache_min_compile_time_secs": 0.0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
        "jax_compilation_cache_max_size": -1,
        "jax_persistent_cache_enable_xla_caches": "none",
    }


# JAX reads the switch of its cache once per process; only the least compile time holds once a cache is open.
_NOWHERE = {"jax_enable_compilation_cache": False, "jax_persistent_cache_min_compile_time_secs": math.inf}


def _configure(settings: dict[str, Any], reopen: bool) -> None:
    for name, value in settings.items():
        jax.config.update(name, value)
    if reopen:  # JAX opens a folder once and stays there
        compilation_cache.reset_cache()
