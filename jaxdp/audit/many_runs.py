"""Many runs of a whole search at once: its program is walked path by path, its noise drawn for all runs together.

A search is ordinary Python that branches on released answers. A walk scripts the answers of one path; the keys are a
batch, so that every mechanism draws for all runs; a run belongs to the one path whose script equals its own draws.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import AdditiveMechanism, Relation, Sensitivity
from jaxdp.noise.recorder import Tape
from jaxdp.randomness.keys import RecordedKey

SIGNS = (-1.0, 1.0)  # a released number is looked at by its sign alone
LEAST = 64  # runs of a batch; more by factors of 4, so that few programs are compiled


@dataclasses.dataclass(eq=False)
class _Path(Tape):
    """A tape that plays scripted answers and notes what each run drew in their place.

    script: which branch each call takes; the first one from where it ends. widths: how many branches each call has.
    given: answers of the first calls, the same in every run, which are no branches.
    """

    script: list[int] = dataclasses.field(default_factory=list)
    drawn: list[Any] = dataclasses.field(default_factory=list)
    widths: list[int] = dataclasses.field(default_factory=list)
    given: list[int] = dataclasses.field(default_factory=list)

    def ahead(self, law):
        return np.asarray(self.given.pop(0))[()] if self.given else None

    def play(self, law, value, parameters, key, output):
        if not law.outputs_released:
            return output  # nobody sees it: each run goes on with its own
        additive = isinstance(law, AdditiveMechanism)
        if output.dtype == bool and output.ndim == 0:
            answers: tuple = (False, True)
            branch = output
        elif additive and output.ndim == 0:
            answers, branch = SIGNS, output >= 0.0
        elif additive and output.ndim == 1:
            scale = float(law.scale(Sensitivity(float(parameters[0]), law.norm, Relation.REPLACE_ONE)))
            answers = tuple(scale * np.array(sides) for sides in itertools.product(SIGNS, repeat=len(value)))
            branch = jnp.sum((output >= 0.0) * jnp.asarray(2 ** np.arange(len(value))[::-1]))
        elif jnp.issubdtype(output.dtype, jnp.integer) and output.ndim == 0:
            answers, branch = tuple(range(len(value))), output
        else:
            raise NotImplementedError(f"a walk can't branch on {law.name} of shape {np.shape(value)}.")
        if len(self.drawn) == len(self.script):
            self.script.append(0)
        self.drawn.append(jnp.asarray(branch, jnp.int32))
        self.widths.append(len(answers))
        return np.asarray(answers[self.script[len(self.drawn) - 1]])[()]


def walk(search, data, keys, outcome, given: Sequence[int] = ()) -> np.ndarray:
    """The outcomes of independent runs search(key, data), one per key: objects (runs,).

    outcome: released result -> hashable. Simulation keys; what the search draws later, and the outcome, may depend on
    released numbers by their signs alone.
    given: answers of the first selections: the law of the rest, given them.
    """
    found = np.empty(len(keys), object)
    todo = [((), np.arange(len(keys)))]
    while todo:
        prefix, runs = todo.pop()
        padded = runs[np.arange(LEAST * 4 ** max(0, math.ceil(math.log(len(runs) / LEAST, 4)))) % len(runs)]
        path, released, drawn = _follow(search, data, keys[padded], prefix, given)
        left = np.ones(len(runs), bool)
        for place, taken in enumerate(path.script):
            for branch in range(path.widths[place]) if place >= len(prefix) else ():
                leaving = left & (drawn[: len(runs), place] == branch)
                if branch != taken and leaving.any():
                    todo.append(((*path.script[:place], branch), runs[leaving]))
            left &= drawn[: len(runs), place] == taken
        for run in runs[left]:
            found[run] = outcome(released)
    return found


def _follow(search, data, keys, prefix, given):
    """One path: its tape, the released result on it, and what each run drew, (runs, calls)."""
    kept = {}

    def one(key):
        path = _Path(script=list(prefix), given=list(given))
        kept["released"] = search(RecordedKey(key, path), data)
        kept["path"] = path
        return jnp.stack([*path.drawn, jnp.int32(0)])

    with jax.debug_key_reuse(False):
        drawn = np.asarray(jax.vmap(one)(keys))
    return kept["path"], kept["released"], drawn
