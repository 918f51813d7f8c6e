"""Programs for a GPU, lowered on the CPU: nothing calls the host, float32 stays float32, nothing grows unseen."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.benchmarks import lowering

HELD = json.loads(lowering.RECORD.read_text())
NAMES = lowering.names()
SAMPLE = NAMES[:: len(NAMES) // 4]  # of the everyday tier: some from all over the catalogue


def require_no_rise(name, now):
    assert now["host_calls"] == 0
    before = HELD["programs"][name]
    if HELD["jax"] == jax.__version__:  # another version lowers otherwise
        assert lowering.rises(before, now) == [], f"{name}: python -m experiments.benchmarks.lowering if it is meant"
    elif before["float64"] == 0:
        assert now["float64"] == 0


def test_the_record_holds_every_test_of_the_catalogue():
    new = set(NAMES) - HELD["programs"].keys()
    assert not new, (
        f"{sorted(new)} have no record: run python -m experiments.benchmarks.lowering --extend and commit it"
    )
    assert HELD["records"] == lowering.cases.RECORDS
    assert any("discovery." in name for name in HELD["programs"])


@pytest.mark.parametrize("name", SAMPLE)
def test_some_programs_for_a_gpu_are_as_recorded(name):
    require_no_rise(name, lowering.of_example(name))


@pytest.mark.nightly
def test_every_program_for_a_gpu_is_as_recorded():
    now = {name: lowering.of_example(name) for name in NAMES} | lowering.kernels(NAMES)
    assert now.keys() == HELD["programs"].keys()
    for name, found in now.items():
        require_no_rise(name, found)


def test_what_is_looked_for_is_found():
    x = jax.ShapeDtypeStruct((7,), jnp.float32)
    found = lowering.figures(jax.jit(lambda x: jnp.zeros(5).at[x.astype(int)].add(jnp.sort(x))).trace(x))
    assert (found["float64"], found["host_calls"], found["scatters"], found["sorts"]) == (0, 0, 1, 1)
    assert found["bytes"] >= 7 * 4
    with jax.enable_x64(True):
        wide = lowering.figures(jax.jit(lambda x: jnp.sum(x.astype(float) ** 2)).trace(x))
    assert wide["float64"] > 0


def test_a_program_that_calls_the_host_is_not_lowered():
    def program(x):
        return jax.pure_callback(np.asarray, jax.typeof(x), x)

    with pytest.raises(ValueError, match="cuda"):
        lowering.figures(jax.jit(program).trace(jax.ShapeDtypeStruct((7,), jnp.float32)))


def test_a_rise_is_told_and_a_fall_is_not():
    before = {"float64": 0, "host_calls": 0, "scatters": 3, "sorts": 1, "flops": 100.0, "bytes": 1000.0}
    assert lowering.rises(before, before | {"flops": 109.0, "scatters": 2}) == []
    assert lowering.rises(before, before | {"scatters": 4}) == ["scatters 3 -> 4"]
    assert lowering.rises(before, before | {"float64": 1, "bytes": 1200.0}) == ["float64 0 -> 1", "bytes 1000 -> 1200"]


def test_kernels_are_recorded_as_they_are_called_first_and_put_back():
    from jaxdp.statistics.tables import contingency

    original = contingency._count
    with lowering.recorded() as calls:
        assert contingency._count is not original
        contingency._count(jnp.zeros((6, 2), jnp.int32), (2, 3))
        contingency._count(jnp.zeros((9, 2), jnp.int32), (2, 3))
    assert contingency._count is original
    ((name, (function, arguments, _, wide)),) = calls.items()
    assert (name, function, wide) == ("statistics.tables.contingency._count", original, False)
    assert arguments[0].shape == (6, 2)


def test_an_extension_leaves_the_rows_that_are_there(monkeypatch):
    monkeypatch.setattr(lowering, "of_example", lambda name: f"of {name}")
    monkeypatch.setattr(lowering, "kernels", lambda examples, known: {"room.new": sorted(examples)})
    found = lowering.extended({"gone": "held", "room.old": "held", **dict.fromkeys(NAMES[1:], "held")})
    assert found == {
        **dict.fromkeys(NAMES[1:], "held"),
        NAMES[0]: f"of {NAMES[0]}",
        "room.new": NAMES[:1],
        "room.old": "held",
    }
