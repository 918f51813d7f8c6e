"""Asking a sparse vector the next questions in one compiled loop, up to the first that fires."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.discovery.engine.skeleton import Question
from jaxdp.mechanisms.sparse_vector import SparseVector, SparseVectorState
from jaxdp.noise.source import Source
from jaxdp.randomness import keys


class Values:
    """Queries of questions on one set of tables, computed for a list at a time, each once. Private."""

    def __init__(self, tables, values):
        self._tables, self._values = tables, values
        self._known: dict[Question, float] = {}

    def of(self, questions: Sequence[Question]) -> np.ndarray:
        """The query of each question, float64. values(tables, questions) computes them."""
        new = [question for question in questions if question not in self._known]
        if new:
            self._known.update(zip(new, self._values(self._tables, new).tolist(), strict=True))
        return np.array([self._known[question] for question in questions])


def until_above(
    sparse: SparseVector, state: SparseVectorState, queries: np.ndarray
) -> tuple[SparseVectorState, list[bool]]:
    """The answers to the queries in turn, up to and including the first True. Draws exactly what `step` draws."""
    if not state.source.compiles:
        return _one_by_one(sparse, state, queries)
    padded = np.zeros(max(8, 1 << (len(queries) - 1).bit_length()))
    padded[: len(queries)] = queries
    state, asked, fired = _loop(sparse, state, jnp.asarray(padded, float), len(queries))
    answers = [False] * int(asked)
    answers[-1] = bool(fired)
    return state, answers


def _one_by_one(sparse, state, queries):
    answers: list[bool] = []
    for query in queries:
        state, fired = sparse.step_opened(state, jnp.asarray(query, float))
        answers.append(bool(fired))
        if answers[-1]:
            break
    return state, answers


@jax.jit
def _loop(sparse, state, queries, count):
    def one(carried):
        state, asked, _ = carried
        state, fired = sparse.step_opened(state, queries[asked])
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
