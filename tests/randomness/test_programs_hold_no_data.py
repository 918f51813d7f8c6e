"""Compiled programs that a release keeps on disk hold no value of the data, of its noise or of its key.

A second run on other data with another key finds each of its programs on the disk, although nothing is left in memory:
a program with a value of the data or of the key in it would be another one. For tests and searches nightly; for
every test in every run of the contract (`test_a_release_is_a_release`), without the disk.
"""

import contextlib
import sys
import zlib

import jax
import numpy as np
import pytest
from cases import CASES

import jaxdp
from jaxdp._base import programs
from jaxdp.data.records import as_records
from jaxdp.discovery.spec import searches
from jaxdp.randomness import chacha, keys

FIRST = {type(case.test(1.0)): case for case in reversed(CASES) if case.private}
EVENTS = "/jax/compilation_cache/cache_hits", "/jax/compilation_cache/cache_misses"


class Disk:
    """The folder of a test, and what was asked of it."""

    def __init__(self, folder, materials):
        self.folder, self.materials, self.asked = folder, materials, []

    def of(self, run) -> tuple[int, int]:
        """Programs found and programs written by a run that has nothing in memory."""
        jax.clear_caches()
        self.asked.clear()
        run()
        return tuple(self.asked.count(event) for event in EVENTS)

    def contents(self) -> list[bytes]:
        return [unpacked(path.read_bytes()) for path in sorted(self.folder.glob("*-cache"))]


def unpacked(entry: bytes) -> bytes:
    """What was compressed, by whichever library JAX has found."""
    if entry.startswith(b"\x28\xb5\x2f\xfd"):
        zstd = pytest.importorskip("compression.zstd") if sys.version_info >= (3, 14) else None
        return (zstd or pytest.importorskip("zstandard")).decompress(entry)
    return zlib.decompress(entry)


@pytest.fixture
def disk(tmp_path, monkeypatch):
    """An empty folder for the programs of releases, and every release key that is opened."""
    monkeypatch.setenv(programs.VARIABLE, str(tmp_path / "programs"))
    before, materials, wrap = programs.folder(), [], chacha.wrap
    monkeypatch.setattr(chacha, "wrap", lambda material: materials.append(material) or wrap(material))
    found = Disk(programs.keep(), materials)
    jax.monitoring.register_event_listener(listener := lambda name, **_: found.asked.append(name))
    try:
        yield found
    finally:
        jax.monitoring.unregister_event_listener(listener)
        programs.forget() if before is None else programs.keep(before.parent)


def pieces(data):
    """What would show values of the data: eight in a row, as they may be stored; columns of fewer values are left."""
    for leaf in jax.tree.leaves(data):
        flat = np.asarray(leaf).ravel()
        for start in range(0, flat.size - 7, 8):
            part = flat[start : start + 8]
            if np.unique(part).size < 3:
                continue
            for dtype in (np.float64, np.float32) if flat.dtype.kind == "f" else (np.int64, np.int32, np.float64):
                yield part.astype(dtype).tobytes()


def check(disk, run, data, others):
    """`run(data)` twice on different data, then the same programs."""
    hits, misses = disk.of(lambda: run(data))
    assert hits + misses > 0
    contents, opened = disk.contents(), list(disk.materials)
    assert opened
    for secret in (*opened, *pieces(data)):
        assert not any(secret in content for content in contents)
    found, written = disk.of(lambda: run(others))
    assert written == 0, "a program depends on the data or on the key"
    assert 0 < found <= hits + misses  # public tables may be kept in memory
    assert len(set(disk.materials)) == 2 * len(opened)


@pytest.mark.nightly
@pytest.mark.parametrize("case", FIRST.values(), ids=lambda case: case.name)
def test_of_every_test(case, disk):
    data, others = (jax.tree.map(np.asarray, case.data(jax.random.key(seed), 64)) for seed in (0, 1))
    test = case.test(1.0, 64)
    check(disk, lambda data: jaxdp.run(test, jaxdp.fresh_key(), data), data, others)


@pytest.mark.parametrize("leak", ["data", "key", "none"])
def test_a_program_that_holds_a_value_would_be_seen(leak, disk):
    def run(data):
        key = jaxdp.fresh_key()
        with keys.precision(keys.RELEASE):
            words = jax.random.key_data(keys.open_key(key))
            built_in = {"data": data, "key": np.asarray(words), "none": np.arange(8.0)}[leak]
            given = {"data": words, "key": data, "none": data}[leak]
            jax.jit(lambda other: (other.astype(float) * built_in).sum())(given[:8]).block_until_ready()

    data, others = np.random.default_rng(0).normal(size=(2, 8))
    if leak == "none":
        check(disk, run, data, others)
    else:
        with pytest.raises(AssertionError):
            check(disk, run, data, others)


def chain(seed, count=600):
    """a -> b -> c strongly, d apart: a search with a generous budget asks the same whichever the records are."""
    rng = np.random.default_rng(seed)
    a, d = rng.integers(0, 2, (2, count))
    b = np.where(rng.random(count) < 0.1, 1 - a, a)
    c = np.where(rng.random(count) < 0.1, 1 - b, b)
    return as_records(np.stack([a, b, c, d], axis=1), (2, 2, 2, 2), ("a", "b", "c", "d"))


@pytest.mark.nightly
@pytest.mark.parametrize("name", [name for name, search in searches().items() if search.spec.accepts((2, 2, 2, 2))])
def test_of_every_search(name, disk):
    search = searches()[name]
    budget = {"delta": 1e-6} if "delta" in search.spec.needs else {}
    budget |= {"rho": 400.0} if "rho" in search.spec.needs else {"epsilon": 150.0}
    if search.spec.true_epsilon:
        with contextlib.suppress(ValueError):  # most comparators are for simulations alone, and open no release key
            search(jaxdp.fresh_key(), chain(0), **budget)
        if not disk.materials:
            return
        disk.materials.clear()
    check(disk, lambda data: search(jaxdp.fresh_key(), data, **budget), chain(0), chain(1))
