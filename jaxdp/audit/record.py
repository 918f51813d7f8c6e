"""Record and replay: the same program on two neighbours, with the first one's outputs played back.

Given equal outputs, everything but the un-noised values must be equal: which laws are called in which order,
shapes, noise parameters, keys. The un-noised values may differ by the declared reach only.
"""

import dataclasses
import functools
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import core
from jaxdp.noise.recorder import Tape
from jaxdp.randomness import keys


@dataclasses.dataclass(frozen=True)
class Difference:
    """One finding: what differs, in which call (-1: the program itself), by how much of what is allowed."""

    what: str
    call: int
    excess: float = 1.0


def replay(test: Any, key: jax.Array, pairs: Iterable[Any], *, tolerance: float = 1e-4) -> list[Difference]:
    """Replays a test on pairs of neighbours; returns the differences found, empty for a sound test.

    test: any private test. key: simulation key. pairs: iterable of (data, neighbour) of equal shapes.
    tolerance: share of the reach allowed for rounding of float32 statistics.
    """
    found: set[Difference] = set()
    programs: dict = {}
    for number, (data, neighbour) in enumerate(pairs):
        run_key = jax.random.fold_in(key, number)
        shapes = str(core.public_shapes(data))
        if shapes not in programs:
            programs[shapes] = _Program(test, frozen=False), _Program(test, frozen=True)
        record, play = programs[shapes]
        try:
            with jax.debug_key_reuse(False):
                first = record(run_key, data)
                outputs = [call["output"] for call in first]
                second = play(run_key, neighbour, outputs)
        except (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError):
            return [Difference("control flow depends on data: the test can't be compiled", -1)]
        found |= set(_compare(record.laws, play.laws, first, second, tolerance))
        found |= set(_reused(first))
    return sorted(found, key=lambda d: (d.call, d.what))


class _Program:
    """A compiled run that returns its tape; the laws are noted while tracing."""

    def __init__(self, test, frozen: bool):
        self.laws: list[tuple] = []

        def run(test, key, data, outputs):
            found = Tape(outputs=outputs if frozen else None)
            core.run(test, keys.RecordedKey(key, found), data)
            self.laws = [(type(call.law), jax.tree.map(jnp.shape, call.value)) for call in found.calls]
            return [
                {
                    "value": call.value,
                    "parameters": [jnp.asarray(number, float) for number in call.parameters],
                    "key": jax.random.key_data(call.key),
                    "output": call.output,
                }
                for call in found.calls
            ]

        self._run = functools.partial(jax.jit(run), test)

    def __call__(self, key, data, outputs=()):
        return self._run(key, data, list(outputs))


def _compare(laws, other_laws, first, second, tolerance: float):
    if [law for law, _ in laws] != [law for law, _ in other_laws]:
        yield Difference("order of calls", -1)
        return
    for i, (a, b) in enumerate(zip(first, second, strict=True)):
        if laws[i][1] != other_laws[i][1]:
            yield Difference("shape of the value", i)
            continue
        if not np.array_equal(a["key"], b["key"]):
            yield Difference("key", i)
        if not all(np.array_equal(x, y, equal_nan=True) for x, y in zip(a["parameters"], b["parameters"], strict=True)):
            yield Difference("noise parameters", i)
        reach = float(np.max(a["parameters"][0]))
        moved = laws[i][0].distance(a["value"], b["value"])
        if not moved <= reach * (1 + tolerance):
            yield Difference("value moved further than declared", i, round(moved / reach, 3))


def _reused(calls):
    """Keys that occur twice on one tape."""
    seen = set()
    for i, call in enumerate(calls):
        name = np.asarray(call["key"]).tobytes()
        if name in seen:
            yield Difference("key used twice", i)
        seen.add(name)
