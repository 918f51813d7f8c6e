"""Gradients of a test's p-values in every number that `jaxdp.tune` may move and in its budget, against differences.

A gradient that is silently 0, or that misses a way by which a number moves the p-value, makes tuning stop where it
began. What has none says so (`PrivateTest.no_gradient`); all else is compared here, in float64.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import core
from jaxdp.tune import tunable

BUDGET = "epsilon"
STEP = 1e-5  # of an unconstrained number, mostly a logarithm
CLOSE, ROUGH = 1e-3, 0.25  # relative, over replicates; the second where values are rounded to a grid
NOTHING = 1e-7  # slopes below it are none


@dataclasses.dataclass(frozen=True)
class Slopes:
    """Of the p-values of some replicates (replicates,) in one number: by differentiation and by differences."""

    gradient: np.ndarray
    difference: np.ndarray
    close: float

    @property
    def moves(self) -> bool:
        """Whether the p-values depend on the number at all."""
        return bool(np.max(np.abs(self.difference)) > NOTHING)

    @property
    def apart(self) -> float:
        """Root mean square of their difference, in units of the larger one."""
        scale = max(np.linalg.norm(self.gradient), np.linalg.norm(self.difference), NOTHING)
        return float(np.linalg.norm(self.gradient - self.difference) / scale)

    @property
    def agree(self) -> bool:
        """Whether they are close; NaN is not."""
        return self.apart <= self.close


def names_of(test: Any, num_records: int) -> tuple[str, ...]:
    """The numbers whose gradients are checked."""
    has_budget = bool(jax.tree.leaves((test.epsilon, test.mechanism))) and not test.no_gradient(BUDGET)
    return (*tunable.offered(test, num_records), *((BUDGET,) if has_budget else ()))


def slopes_of(
    test: Any, data: Any, key: jax.Array, num_records: int, names: tuple[str, ...] | None = None
) -> dict[str, Slopes]:
    """Slopes in each of these numbers, by default those of `names_of`; arrays along one direction.

    data: stacked, one data set a replicate. One program gives values and gradients, so that a difference is of the
    function that was differentiated.
    """
    with jax.enable_x64(True):
        names = names_of(test, num_records) if names is None else names
        if isinstance(core.specialize(test, jax.tree.map(lambda leaf: leaf[0], data)), core.Sequential):
            names = tuple(name for name in names if name != "split")  # of a whole budget that earlier stages share
        if not names:
            return {}
        data = jax.tree.map(lambda a: jnp.asarray(a, float) if jnp.issubdtype(a.dtype, jnp.floating) else a, data)
        leaves = tuple(name for name in names if name != BUDGET)
        start = tunable.start_of(test, leaves, num_records) if leaves else {}
        step = max(STEP, test.smooth_above)

        def p_value(moves, lane):
            number, one = lane
            moved = dict(zip(names, moves, strict=True))
            point = {name: value + moved[name] * _direction(value) for name, value in start.items()}
            found = tunable.at(_with_budget(test, jnp.exp(moved[BUDGET])) if BUDGET in moved else test, point)
            return jnp.mean(core.run(found, jax.random.fold_in(jax.random.clone(key), number), one).p_value)

        lanes = jnp.arange(len(jax.tree.leaves(data)[0])), data
        both = jax.jit(lambda moves: jax.lax.map(lambda lane: jax.value_and_grad(p_value)(moves, lane), lanes))
        gradient = np.asarray(both(jnp.zeros(len(names)))[1])
        found = {}
        for place, name in enumerate(names):
            ends = [np.asarray(both(sign * step * jnp.eye(len(names))[place])[0]) for sign in (1.0, -1.0)]
            difference = (ends[0] - ends[1]) / (2.0 * step)
            found[name] = Slopes(gradient[:, place], difference, ROUGH if test.smooth_above else CLOSE)
    return found


def _direction(value):
    """A fixed direction of an array's shape, in which no two entries move alike."""
    return jnp.reshape(1.0 + 0.3 * jnp.arange(value.size), jnp.shape(value))


def _with_budget(test, factor):
    """The test with all of its budget times a factor."""
    epsilon, mechanism = jax.tree.map(lambda leaf: leaf * factor, (test.epsilon, test.mechanism))
    return dataclasses.replace(test, epsilon=epsilon, mechanism=mechanism)
