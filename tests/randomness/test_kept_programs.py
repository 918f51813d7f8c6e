"""A command finds its programs without tracing them: the same answers, and only of the package's own code."""

import dataclasses
import json
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiled_programs import compiled

from jaxdp import catalogue
from jaxdp._base import kept_programs, programs
from jaxdp._base.bounded import bounded_jit
from jaxdp._base.kept_programs import _Kept
from jaxdp._base.pytree import frozen_pytree
from jaxdp.data.dataset import Column, Domain
from jaxdp.noise import lattice

COMMAND = "test t.csv --schema s.toml --x a --y b --given c --epsilon 5 --method partial-correlation --seed 3"
SCHEMA = "".join(f'[columns.{name}]\nkind = "continuous"\nbounds = [0, 1]\n' for name in "abc")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder for the programs of this process, which has begun to keep them."""
    monkeypatch.setenv(programs.VARIABLE, str(tmp_path / "programs"))
    monkeypatch.setattr(kept_programs, "_begun", ["the digest of this code"])
    names = ("jax_enable_compilation_cache", *programs._in(tmp_path))
    before, kept = {name: getattr(jax.config, name) for name in names}, programs.folder()
    try:
        found = programs.keep()
        programs._configure(programs._in(found), reopen=True)
        yield found
    finally:
        programs._configure(before, reopen=True)
        programs._kept[:] = [kept] if kept else []


def scaled():
    """The program of a function of the package, as a process that has just begun has it."""
    return _Kept(lattice._scaled.__wrapped__, {})


STEPS = np.arange(5)


def traced(folder):
    return sorted(folder.glob("*-traced"))


def test_the_next_process_neither_traces_nor_compiles(folder):
    first = scaled().of((STEPS, -2), {})
    assert len(traced(folder)) == 1
    with compiled() as asked:
        second = scaled().of((STEPS, -2), {})
    assert asked == []
    np.testing.assert_array_equal(first, STEPS / 4)
    np.testing.assert_array_equal(second, first)


def test_other_code_shapes_and_precision_are_other_programs(folder, monkeypatch):
    one = scaled()
    one.of((STEPS, -2), {})
    one.of((STEPS, -3), {})  # a number is an argument
    assert len(traced(folder)) == 1
    one.of((STEPS[:3], -2), {})
    with jax.enable_x64(not jax.config.jax_enable_x64):
        one.of((STEPS, -2), {})
    monkeypatch.setattr(kept_programs, "_begun", ["of other code"])
    scaled().of((STEPS, -2), {})
    assert len(traced(folder)) == 4


@pytest.mark.parametrize("place", [None, 40, -1], ids=["cut short", "first byte", "last byte"])
def test_a_damaged_file_is_compiled_anew(folder, place):
    scaled().of((STEPS, -2), {})
    (path,) = traced(folder)
    whole = bytearray(path.read_bytes())
    if place is not None:
        whole[place] ^= 1
    path.write_bytes(whole if place is not None else whole[:100])
    assert kept_programs._loaded(path, 2) is None
    np.testing.assert_array_equal(scaled().of((STEPS, -2), {}), STEPS / 4)
    assert len(path.read_bytes()) > 100


@frozen_pytree
class Elsewhere:
    """A class that is not the package's own."""

    value: float = 1.0

    def value_of(self):
        return self.value


@pytest.mark.parametrize(("count", "skipped"), [(5, True), (kept_programs.MAX_SMALL, False)])
def test_what_an_answer_runs_once_is_compiled_without_most_optimisations(folder, monkeypatch, count, skipped):
    """Of few numbers: through many, a slow program would cost more than its compilation."""
    compile_, asked = jax.stages.Lowered.compile, []
    monkeypatch.setattr(
        jax.stages.Lowered, "compile", lambda self, how=None: (asked.append(how), compile_(self, how))[1]
    )
    steps = np.arange(count)
    for quickly in (True, False):
        for path in traced(folder):
            path.unlink()
        found = _Kept(lattice._scaled.__wrapped__, {}, quickly).of((steps, -2), {})
        np.testing.assert_array_equal(found, lattice._scaled.__wrapped__(steps, -2))
    assert asked == [kept_programs.QUICKLY if skipped else None, None]


def _value(node):
    return node.value_of() if isinstance(node, Elsewhere) else node


def test_what_is_not_the_packages_own_is_not_kept(folder):
    kept = _Kept(lattice._scaled.__wrapped__, {})
    assert kept.of((Elsewhere(), -2), {}) is None
    assert _Kept(_value, {}).of((1.0,), {}) is None
    assert bounded_jit(_value)(Elsewhere(value=2.0)) == 2.0
    assert traced(folder) == []


def test_what_is_traced_is_not_kept(folder):
    kept = scaled()
    seen = []
    jax.jit(lambda steps: seen.append(kept.of((steps, -2), {})) or steps)(STEPS)
    assert seen == [None]
    with jax.disable_jit():
        assert kept.of((STEPS, -2), {}) is None
    assert traced(folder) == []


def test_a_program_that_calls_python_is_not_kept(folder, monkeypatch):
    def called(steps, exponent):
        return jax.pure_callback(np.negative, jax.ShapeDtypeStruct(jnp.shape(steps), jnp.result_type(steps)), steps)

    called.__module__ = lattice.__name__
    assert _Kept(called, {}).of((STEPS.astype(np.float32), -2), {}) is None
    assert traced(folder) == []


def test_a_caller_that_has_not_begun_keeps_nothing(folder, monkeypatch):
    monkeypatch.setattr(kept_programs, "_begun", [])
    np.testing.assert_array_equal(lattice._scaled(STEPS, -2), STEPS / 4)
    assert traced(folder) == []


def test_the_next_process_chooses_the_same_test_without_the_others(folder, monkeypatch):
    domain = Domain((Column(),), (Column(),), (Column(),))
    first = [catalogue.default(domain), catalogue.default(domain, sees="linear"), catalogue.find("Pearson")]

    def all_tests():
        raise AssertionError("every test was imported")

    monkeypatch.setattr(catalogue, "entries", all_tests)
    assert [catalogue.default(domain), catalogue.default(domain, sees="linear"), catalogue.find("Pearson")] == first
    assert catalogue.own_name("Pearson") == first[2].name
    with pytest.raises(AssertionError, match="every test"):
        catalogue.default(dataclasses.replace(domain, z=()))  # another question
    monkeypatch.setattr(catalogue, "_points", lambda: ["a test of another package"])
    with pytest.raises(AssertionError, match="every test"):
        catalogue.default(domain)


def test_a_text_that_was_damaged_is_found_anew(folder):
    asked = ("asked", 1)
    assert kept_programs.kept_text(asked, lambda: "one") == "one"
    assert kept_programs.kept_text(asked, lambda: "two") == "one"
    assert kept_programs.kept_text(("asked", 2), lambda: "two") == "two"
    for path in folder.glob("*-text"):
        path.write_text(path.read_text().replace("one", "own"))
    assert kept_programs.kept_text(asked, lambda: "three") == "three"


def test_the_command_gives_the_same_answer_by_kept_programs(tmp_path):
    """Its programs call LAPACK, which a process that lowers nothing has to register: else it crashes."""
    draws = np.random.default_rng(0).uniform(size=(300, 3)).round(4)
    lines = ["a,b,c", *(",".join(map(str, row)) for row in draws)]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "s.toml").write_text(SCHEMA)
    answers = []
    for kept, out in (("programs", "1"), ("programs", "2"), ("off", "3")):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX")}  # no cache
        environment |= {programs.VARIABLE: str(tmp_path / kept) if kept != "off" else kept}
        command = [sys.executable, "-m", "jaxdp", *COMMAND.split(), "--out", out]
        subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)
        answers.append(json.loads((tmp_path / out / "result.json").read_text()))
    first, second, without = ({name: value[name] for name in ("p_value", "statistic")} for value in answers)
    assert len(list((tmp_path / "programs").rglob("*-traced"))) > 3
    assert first == second
    np.testing.assert_allclose([*first.values()], [*without.values()], rtol=1e-5)  # as float32 rounds
