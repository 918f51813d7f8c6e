"""Asking a sparse vector the next queries in one compiled loop, up to the first that fires."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.discovery.engine.skeleton import CIQuery
from jaxdp.mechanisms.sparse_vector import SparseVector, SparseVectorState
from jaxdp.noise.source import Source
from jaxdp.randomness import keys


class Values:
    """Values of CI queries on one set of tables, computed for a list at a time, each once. Private."""

    def __init__(self, tables, values):
        self._tables, self._values = tables, values
        self._known: dict[CIQuery, float] = {}

    def of(self, queries: Sequence[CIQuery]) -> np.ndarray:
        """The value of each query, float64. values(tables, queries) computes them."""
        new = [query for query in queries if query not in self._known]
        if new:
            self._known.update(zip(new, self._values(self._tables, new).tolist(), strict=True))
        return np.array([self._known[query] for query in queries])


def until_above(
    sparse: SparseVector, state: SparseVectorState, values: np.ndarray
) -> tuple[SparseVectorState, list[bool]]:
    """Answers to queries of these values, up to and including the first True. Draws exactly what `step` draws."""
    if not state.source.compiles:
        return _one_by_one(sparse, state, values)
    padded = np.zeros(max(8, 1 << (len(values) - 1).bit_length()))
    padded[: len(values)] = values
    state, asked, fired = _loop(sparse, state, jnp.asarray(padded, float), len(values))
    answers = [False] * int(asked)
    answers[-1] = bool(fired)
    return state, answers


def _one_by_one(sparse, state, values):
    answers: list[bool] = []
    for value in values:
        state, fired = sparse.step_opened(state, jnp.asarray(value, float))
        answers.append(bool(fired))
        if answers[-1]:
            break
    return state, answers


@jax.jit
def _loop(sparse, state, values, count):
    def one(carried):
        state, asked, _ = carried
        state, fired = sparse.step_opened(state, values[asked])
        return state, asked + 1, fired

    def more(carried):
        return (carried[1] < count) & ~carried[2]

    return jax.lax.while_loop(more, one, (state, jnp.int32(0), jnp.asarray(False)))


def perturbed(mechanism, source: Source, value, sensitivity):
    """`mechanism.perturb`, compiled where that changes nothing."""
    perturb = _PERTURB if source.compiles else _perturb
    return perturb(mechanism, source, value, sensitivity)


def _perturb(mechanism, source: Source, value, sensitivity):
    return mechanism.perturb(source, value, sensitivity)


_PERTURB = jax.jit(_perturb)


def require_certificate(mode: str, sparse: SparseVector) -> None:
    """What would fail in a release fails before it is paid for."""
    if mode == keys.RELEASE:
        sparse.certificate()
