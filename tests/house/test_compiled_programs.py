"""The suite's cache of compiled programs: read back, bounded, off when asked, one entry per way of compiling."""

import os
import types

import compiled_programs
import jax
import jax.numpy as jnp
import numpy as np
import pytest


def program(x):
    return jnp.sin(x) @ jnp.cos(x) + 11


def compiled(x):
    """The result of a program that this process has not compiled before."""
    jax.clear_caches()
    return np.asarray(jax.jit(program)(x))


def entries(folder):
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("jit_program-*-cache")}


def test_quick_and_optimised_programs_are_kept_apart_and_read_back(tmp_path, own_programs):
    x = jnp.arange(401.0)
    answers, seen = {}, []
    for _ in range(2):
        for quick in (True, False):
            jax.config.update("jax_disable_most_optimizations", quick)
            answers.setdefault(quick, compiled(x))
            np.testing.assert_array_equal(compiled(x), answers[quick])  # the same bits from the disk
            seen.append(entries(tmp_path))
    assert [len(found) for found in seen] == [1, 2, 2, 2]
    assert seen[1] == seen[2] == seen[3]


def test_other_flags_are_other_programs(tmp_path, own_programs):
    x = jnp.arange(402.0)
    compiled(x)
    with jax.enable_x64(True):
        compiled(x.astype(float))
    with jax.default_matmul_precision("highest"):
        compiled(x)
    assert len(entries(tmp_path)) == 3


def test_a_damaged_entry_is_compiled_again(tmp_path, own_programs):
    """As one left by a killed process, or being written by another."""
    x = jnp.arange(403.0)
    answer = compiled(x)
    (path,) = tmp_path.glob("jit_program-*-cache")
    path.write_bytes(path.read_bytes()[:100])
    with pytest.warns(UserWarning, match="Error reading persistent compilation cache"):
        np.testing.assert_array_equal(compiled(x), answer)


def test_the_folder_is_bounded(tmp_path):
    for age in range(6):
        path = tmp_path / f"jit_{age}-cache"
        path.write_bytes(bytes(100))
        os.utime(path, (1e9 - age, 1e9 - age))
    compiled_programs.prune(tmp_path, 600)
    assert len(list(tmp_path.iterdir())) == 6
    compiled_programs.prune(tmp_path, 250)
    assert {path.name for path in tmp_path.iterdir()} == {"jit_0-cache", "jit_1-cache"}
    compiled_programs.prune(tmp_path / "missing", 0)


@pytest.mark.parametrize("off", [False, True])
def test_the_switch(off, tmp_path, own_programs, monkeypatch):
    """Here and for subprocesses; a folder that the environment names is used."""
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 7.0)
    monkeypatch.setattr(os, "environ", {"JAX_COMPILATION_CACHE_DIR": str(tmp_path / "other")})
    config = types.SimpleNamespace(getoption=lambda name: {"--no-program-cache": off}[name], workerinput={})
    compiled_programs.pytest_configure(config)
    assert jax.config.jax_enable_compilation_cache is not off
    assert os.environ.get("JAX_ENABLE_COMPILATION_CACHE") == ("false" if off else None)
    if not off:
        assert jax.config.jax_compilation_cache_dir == str(tmp_path / "other")
        assert jax.config.jax_persistent_cache_min_compile_time_secs == 0.0
        assert os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] == "0.0"
