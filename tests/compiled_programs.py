"""The suite's cache of compiled programs: a folder that later runs, workers and subprocesses read, `.jax_cache` of the
checkout unless JAX_COMPILATION_CACHE_DIR names another (`.ci/run` names one that outlives its clone).

Cache keys hold the program, XLA's version, flags and options (quickly compiled and optimised ones apart). Releases
keep theirs in a folder below it, as users' do (`jaxdp.programs`). `--no-program-cache` turns both off; deleting the
folder is always safe.
"""

import contextlib
import gc
import os
from pathlib import Path

import jax
import pytest
from jax.experimental.compilation_cache import compilation_cache

from jaxdp._base import bounded, programs
from jaxdp.randomness import arithmetic

FOLDER = Path(os.environ.get("JAX_COMPILATION_CACHE_DIR") or Path(__file__).resolve().parent.parent / ".jax_cache")
MAX_BYTES = 2**30
MAPS, MAX_MAPS, CHECKED_EVERY = Path("/proc/self/maps"), 30_000, 10  # Linux allows a process 65 530 of them
NEVER = 1 << 30  # programs, from which on they are dropped
finished: list[str] = []
SETTINGS = {
    "jax_compilation_cache_dir": str(FOLDER),
    "jax_persistent_cache_min_compile_time_secs": 0.0,
    "jax_persistent_cache_min_entry_size_bytes": -1,
}


def pytest_addoption(parser):
    parser.addoption("--no-program-cache", action="store_true", help="compile everything anew, keep nothing on disk")


def pytest_configure(config):
    """Sets the cache here and, by the environment, in the processes that tests start; a folder named there is kept."""
    if config.getoption("--no-program-cache"):
        os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "false"
        os.environ[programs.VARIABLE] = "off"
        configure({"jax_enable_compilation_cache": False})
        return
    for name, value in SETTINGS.items():
        configure({name: type(value)(os.environ.setdefault(name.upper(), str(value)))})
    os.environ.setdefault(programs.VARIABLE, str(FOLDER / "releases"))
    try:
        programs.keep()
    except ValueError:  # a checkout that others can write into: releases keep nothing
        os.environ[programs.VARIABLE] = "off"
    if not hasattr(config, "workerinput"):
        prune(FOLDER, MAX_BYTES)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item):
    """Drops compiled programs before the process has as many memory maps as Linux allows: one more is a crash."""
    finished.append(item.nodeid)
    if len(finished) % CHECKED_EVERY == 0 and MAPS.exists() and sum(1 for _ in MAPS.open()) > MAX_MAPS:
        jax.clear_caches()
        gc.collect()


def configure(settings) -> None:
    for name, value in settings.items():
        jax.config.update(name, value)


def prune(folder: Path, most_bytes: int) -> None:
    """Deletes the programs not read for longest until the rest fit, whatever other runs delete at the same time."""
    found = []
    for path in folder.glob("*-cache"):
        try:
            status = path.stat()
        except FileNotFoundError:
            continue
        found.append((max(status.st_atime, status.st_mtime), status.st_size, path))
    size = sum(size for _, size, _ in found)
    for _, freed, path in sorted(found):
        if size <= most_bytes:
            return
        path.unlink(missing_ok=True)
        size -= freed


@contextlib.contextmanager
def compiled(drops: bool = False):
    """Names of the programs that were asked of the compiler, or of the disk, since this began.

    drops: whether a function with many programs drops them meanwhile, as users' do. How many those of other tests are
    is chance, so a test that wants none compiled again goes without.
    """
    found: list[str] = []
    most = bounded.MAX_PROGRAMS
    bounded.MAX_PROGRAMS = most if drops else NEVER

    def note(name, seconds, **facts):
        if name == "/jax/core/compile/backend_compile_duration":
            found.append(facts.get("fun_name", "a program"))

    jax.monitoring.register_event_duration_secs_listener(note)
    try:
        yield found
    finally:
        bounded.MAX_PROGRAMS = most
        jax.monitoring.unregister_event_duration_listener(note)


@pytest.fixture
def own_programs(tmp_path):
    """A cache of compiled programs in the test's folder; the settings in force, for comparison."""
    settings = SETTINGS | {"jax_enable_compilation_cache": True, "jax_compilation_cache_dir": str(tmp_path)}
    arithmetic.require_exact()  # a program without data that a process compiles once, kept from here on
    before, kept = {name: getattr(jax.config, name) for name in settings}, programs.folder()
    programs.forget()
    try:
        configure(settings)
        compilation_cache.reset_cache()
        yield settings
    finally:
        configure(before)
        compilation_cache.reset_cache()
        programs._kept[:] = [kept] if kept else []  # not `keep`, which a test may have made refuse or delete programs
