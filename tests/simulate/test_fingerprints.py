"""What the counts of a folder are of: functions count by what they compute, whatever they are called."""

import functools
import json
import os
import pathlib
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp import catalogue
from jaxdp.audit import cases
from jaxdp.simulate.designs.confounder import sine_confounder
from jaxdp.simulate.engine import results
from jaxdp.simulate.engine.fingerprints import fingerprint, program
from jaxdp.simulate.engine.replicates import Design

SLOPE = 0.5


class Line:
    """A callable with a state of its own."""

    def __init__(self, slope):
        self.slope = slope

    def __call__(self, key):
        return self.slope * key


def of_closure(slope):
    def design(key):
        return slope * key

    return design


def of_default(slope):
    def design(key, slope=slope):
        return slope * key

    return design


def of_keyword(slope):
    def design(key, *, slope=slope):
        return slope * key

    return design


def of_inner(slope):
    def outer(key):
        return (lambda k: slope * k)(key)

    return outer


def of_method(slope):
    return Line(slope).__call__


def of_partial_of_closure(slope):
    return functools.partial(of_closure(slope), scale=1.0)


def of_position(slope):
    return functools.partial(lambda slope, key: slope * key, slope)


def of_array(slope):
    return of_closure(slope * np.linspace(-1, 1, 5000))


def of_list(slope):
    return of_closure([{"slope": slope}])


def of_jit(slope):
    return jax.jit(of_closure(slope))


def of_vmap(slope):
    return jax.vmap(of_closure(slope))


def of_global(slope):
    names = {"SLOPE": slope, "__name__": "given"}
    exec("def design(key):\n    return SLOPE * key", names)
    return names["design"]


def of_helper(slope):
    names = {"SLOPE": slope, "__name__": "given"}
    exec("def helper(key):\n    return SLOPE * key\ndef design(key):\n    return helper(key)", names)
    return names["design"]


WAYS = (
    *(of_closure, of_default, of_keyword, of_inner, Line, of_method, of_partial_of_closure, of_position, of_array),
    *(of_list, of_jit, of_vmap, of_global, of_helper),
)


@pytest.mark.parametrize("make", WAYS)
def test_functions_with_other_values_are_other_designs(make):
    one, same, other = (fingerprint(Design.of(make(slope))) for slope in (0.0, 0.0, SLOPE))
    assert one == same
    assert one != other
    assert program(Design.of(make(0.0))) != program(Design.of(make(SLOPE)))


def test_code_constants_and_names_count():
    found = [
        lambda key: 1.0 * key,
        lambda key: 2.0 * key,
        lambda key: 2.0 + key,
        lambda key: jnp.sin(key),
        lambda key: jnp.cos(key),
        jnp.sin,
        jnp.cos,
        jax.vmap(jnp.sin),
    ]
    assert len({fingerprint(Design.of(function)) for function in found}) == len(found)


def test_a_function_that_calls_itself_has_a_fingerprint():
    def countdown(key, left=3):
        return key if not left else countdown(key, left - 1)

    assert fingerprint(Design.of(countdown)) == fingerprint(Design.of(countdown))


def test_what_cannot_be_told_apart_is_refused_and_needs_no_fingerprint_without_a_folder(tmp_path):
    with (tmp_path / "file").open("w") as file:

        def design(key):
            x = jax.random.normal(key, (2, 50)) / 4 + 0 * len(file.name)
            return jaxdp.Data(*jnp.clip(x, -1, 1))

        asked = jaxdp.PartitionGCM(epsilon=1.0), design, jax.random.key(0), 20
        with pytest.raises(ValueError, match=r"a TextIOWrapper that they use has no fingerprint"):
            jaxdp.power.rejection_rate(*asked, folder=tmp_path / "out")
        assert not (tmp_path / "out").exists()
        assert jaxdp.power.rejection_rate(*asked, memory=10**9) == jaxdp.power.rejection_rate(*asked)


HASH = """
import sys
sys.path.insert(0, sys.argv[1])
import test_fingerprints as made
from jaxdp.simulate.engine.fingerprints import fingerprint
from jaxdp.simulate.engine.replicates import Design
print([fingerprint(Design.of(make(0.5))) for make in made.WAYS])
"""


@pytest.mark.full
def test_fingerprints_are_the_same_in_another_process():
    ours = str([fingerprint(Design.of(make(0.5))) for make in WAYS])
    folder = str(pathlib.Path(__file__).parent)
    for seed in "12":  # of the hashes of texts, which order sets
        how = {"capture_output": True, "text": True, "check": True, "env": os.environ | {"PYTHONHASHSEED": seed}}
        assert subprocess.run([sys.executable, "-c", HASH, folder], **how).stdout.strip() == ours


def test_tests_of_the_package_have_numbers_and_names_alone():
    """Their fingerprints, which replicates of a grid follow from, are those of before functions counted."""
    found = [cases.find(name) for name, entry in catalogue.entries().items() if cases.of(entry)]
    assert len(found) > 30
    assert {program(case.build(1.0, 300)) for case in found} == {""}


def test_fingerprints_of_numbers_are_what_they_were():
    assert fingerprint(jaxdp.PartitionGCM(epsilon=1.0)) == "a435b23d5f65a8ba"
    assert fingerprint(Design.of(functools.partial(sine_confounder, n=100, effect=0.5))) == "17ee0fe8b85a09a4"


def noise(slope):
    def design(key, n, effect):
        x, y = jax.random.normal(key, (2, n)) / 4
        return jaxdp.Data(jnp.clip(x, -1, 1), jnp.clip(y + (effect + slope) * x, -1, 1))

    return design


def test_a_folder_counts_one_design_of_a_name(tmp_path):
    """The counts of the first design were returned for the second: .0215 where .100 is true."""
    how = {"n": 100, "replicates": 40}
    test, folder = jaxdp.PartitionGCM(epsilon=1.0), tmp_path / "one"
    rows = jaxdp.simulate.grid(test, noise(0.0), folder=folder, **how)
    again = jaxdp.simulate.grid(test, noise(0.0), folder=folder, **how | {"replicates": 60})
    assert [row.replicates for row in (*rows, *again)] == [40, 60]
    with pytest.raises(ValueError, match=r"counts of another function that is called .*design.*another folder"):
        jaxdp.simulate.grid(test, noise(1.0), folder=folder, **how)
    jaxdp.simulate.grid(test, noise(1.0), folder=tmp_path / "two", **how)
    with pytest.raises(ValueError, match="counts of another function"):
        results.merge([folder, tmp_path / "two"], tmp_path / "both")
    config = results.read_config(folder)  # as it was written before functions counted
    (folder / "config.json").write_text(json.dumps({k: v for k, v in config.items() if k != results.PROGRAMS}))
    with pytest.raises(ValueError, match="does not say of which"):
        jaxdp.simulate.grid(test, noise(0.0), folder=folder, **how)


def test_rejection_rates_of_two_closures_share_a_folder_and_no_count(tmp_path):
    test, key = jaxdp.PartitionGCM(epsilon=1.0), jax.random.key(0)
    for slope in (0.0, 1.0):
        design = functools.partial(noise(slope), n=100, effect=0.0)
        found = jaxdp.power.rejection_rate(test, design, key, 200, folder=tmp_path)
        assert found == jaxdp.power.rejection_rate(test, design, key, 200)
