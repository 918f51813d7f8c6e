"""What a GPU must share with the CPU: keys, counts and lattice noise to the bit, decisions within rounding, memory.

`scripts/gpu` runs it on a GPU; here the CPU rehearses it, so that the first loan of a GPU finds no mistake of ours.
"""

import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from experiments.benchmarks import device as measuring
from experiments.benchmarks import lowering
from jaxdp import catalogue, core, discovery
from jaxdp.audit import cases
from jaxdp.data.records import as_records
from jaxdp.randomness import chacha, keys
from jaxdp.simulate import power, sine_confounder
from jaxdp.simulate.engine import replicates

CLOSE = 2e-3  # absolute, of p-values of float32 programs that add up in another order
METHODS = {"partition-gcm": 1, "band-gcm": 1, "contrast-gcm": 2, "private-gcm": 1}  # method -> columns of Z

on_both = pytest.mark.parametrize("place", ["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])


def device(place):
    return jax.devices(place)[0]


def built(method, n):
    design = functools.partial(sine_confounder, n=n, effect=0.25, dim=METHODS[method])
    return catalogue.find(method).cls(epsilon=2.0), design


@on_both
@pytest.mark.parametrize(
    "method",
    ["partition-gcm", *(pytest.param(name, marks=pytest.mark.gpu) for name in METHODS if name != "partition-gcm")],
)
def test_decisions_are_those_of_the_cpu(place, method):
    test, design = built(method, 200)
    there, here = (
        np.asarray(power.p_values(test, design, jax.random.key(3), 96, devices=[where]))
        for where in (device(place), device("cpu"))
    )
    # a record next to an edge of a cell may fall on its other side, and the p-value jumps: few of these, and small ones
    assert np.mean(np.abs(there - here) > CLOSE) <= 0.03
    near = np.abs(here - 0.05) <= CLOSE
    assert np.mean((there <= 0.05) != (here <= 0.05)) <= 0.03 + near.mean()
    assert np.unique(here).size > 90


REHEARSED = "partition-gcm", "kruskal-wallis"
EACH = [
    pytest.param(place, name, id=f"{place}-{name}", marks=[pytest.mark.gpu] if place == "gpu" else [])
    for place in ("cpu", "gpu")
    for name in lowering.names()
    if place == "gpu" or name in REHEARSED
]


@pytest.mark.full
@pytest.mark.parametrize(("place", "name"), EACH)
def test_every_test_gives_the_p_values_of_the_cpu(place, name):
    found = cases.find(name)
    test = found.build(1.0, cases.RECORDS)

    def replicate(key, data):
        return core.run(test, key, data).p_value

    with jax.default_device(device("cpu")):
        data = found.example.data(jax.random.key(4), cases.RECORDS)
        drawn = jax.random.split(jax.random.key(5), 16)
        program = jax.jit(jax.vmap(replicate, in_axes=(0, None)))
        here = np.asarray(program(drawn, data))
    where = device(place)
    there = np.asarray(program(*jax.device_put((drawn, data), where)))
    assert np.array_equal(np.isnan(there), np.isnan(here))
    # a record next to an edge, or a draw next to a cut, may fall on the other side
    assert np.mean(np.abs(there - here) > CLOSE) <= 0.13


@on_both
def test_keys_and_counts_are_the_same_bits(place):
    def drawn():
        secret = chacha.wrap(bytes(range(32)))
        words = [jax.random.key_data(jax.random.split(key, 3)) for key in (jax.random.key(5), secret)]
        bits = [
            jax.random.bits(key, (300,), np.uint32) for key in (jax.random.key(6), chacha.wrap(bytes(range(1, 33))))
        ]
        codes = jnp.asarray(np.random.default_rng(0).integers(0, 40, 5000))
        return [np.asarray(part) for part in (*words, *bits, jnp.zeros(40, np.int32).at[codes].add(1))]

    with jax.default_device(device(place)):
        there = drawn()
    with jax.default_device(device("cpu")):
        here = drawn()
    for one, other in zip(there, here, strict=True):
        np.testing.assert_array_equal(one, other)


@on_both
def test_a_release_draws_the_same_integers(place):
    """Whole-number statistics, so that nothing but the noise could differ."""
    values = as_records(np.random.default_rng(1).integers(0, 2, (400, 2)), (2, 2))
    table = discovery.NoisyHistogram(epsilon=1.0, levels=(2, 2))
    found = []
    for where in (device(place), device("cpu")):
        with jax.default_device(where):
            found.append(np.asarray(jaxdp.release(table, keys.ReleaseKey(bytes(range(32))), values).value))
    np.testing.assert_array_equal(*found)
    assert found[0].size == 4


@pytest.mark.full
@on_both
def test_memory_does_not_grow_with_the_replicates(place):
    test, design = built("partition-gcm", 200)
    where = (device(place),)
    taken = []
    for capacity in (128, 1024):
        given = test, replicates.Design.of(design), jax.random.key(0), np.uint32(0), np.uint32(capacity)
        program = jax.jit(replicates.spread, static_argnums=(5, 6, 7)).lower(*given, capacity, 64, where)
        taken.append(program.compile().memory_analysis().temp_size_in_bytes)
    assert taken[1] <= taken[0] + 64 * 1024


@pytest.mark.full
def test_the_kernels_are_measured_and_the_device_is_named(tmp_path):
    assert measuring.main(["--rehearse", "--out", str(tmp_path / "found.json")]) == 0
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["rehearsal"]
    assert found["platform"] == "cpu"
    assert found["device"]
    assert set(found["kernels"]) == set(measuring.kernels(small=True))
    for figures in found["kernels"].values():
        assert figures["seconds"] > 0
        assert figures["bytes"] > 0
        assert figures["roofline_share"] > 0
