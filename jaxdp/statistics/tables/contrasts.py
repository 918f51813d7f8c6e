"""Contrasts of -1 and 1 between the classes of a column: sums of their products are tables in another basis.

Symbols (docs/theory/pair_contrasts.md): c = classes of a column, C = its c x (c - 1) matrix of contrasts.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

_MADE: dict[int, list] = {
    2: [[-1], [1]],
    3: [[-1, 1], [1, 1], [1, -1]],
    4: [[-1, 1, -1], [-1, -1, 1], [1, -1, -1], [1, 1, 1]],  # Walsh functions: halves, outer and inner, the third
}
_LINE = {2: [1.0], 3: [1.0, -1.0], 4: [2.0, 0.0, 1.0]}  # weights of the contrasts that make equally spaced scores


@functools.lru_cache(maxsize=64)
def matrix(classes: int) -> np.ndarray:
    """C, (c, c - 1) of -1 and 1, invertible with a column of ones. From five classes on: each against the rest."""
    if classes in _MADE:
        return np.array(_MADE[classes], np.int64)
    return 2 * np.eye(classes, classes - 1, dtype=np.int64) - 1


def line(classes: int) -> np.ndarray:
    """Weights (c - 1,) of the contrasts in equally spaced scores of ordered classes; zeros for five and more."""
    return np.array(_LINE.get(classes, [0.0] * (classes - 1)))


def probabilities(means, classes: int):
    """Shares of the classes (..., c) whose contrasts have these means (..., c - 1), clipped at 0 and nowhere else."""
    full = np.concatenate([np.ones((classes, 1)), matrix(classes)], axis=1)
    known = jnp.concatenate([jnp.ones_like(means[..., :1]), means], axis=-1)
    shares = jnp.maximum(known @ jnp.asarray(np.linalg.inv(full), known.dtype), 0.0)
    return shares / jnp.sum(shares, axis=-1, keepdims=True)


@functools.lru_cache(maxsize=64)
def moved(classes: tuple[int, ...]) -> int:
    """At most how many of all single contrasts, and of products of those of two columns, one replaced record moves.

    Each that moves goes from -1 to 1 or back. Of column j a_j of its k_j contrasts change sign; so do
    sum_j a_j + sum_{i<j} (a_i (k_j - a_j) + (k_i - a_i) a_j) = A (1 + K - A) - sum_j a_j (k_j - a_j) numbers, A the
    sum of the a_j and K that of the k_j. The largest over the possible a_j, exactly, by their sum.
    """
    total = sum(count - 1 for count in classes)
    within = {0: 0}  # A -> the smallest sum of a_j (k_j - a_j)
    for count in classes:
        step: dict[int, int] = {}
        for sum_so_far, lost in within.items():
            for a in _changes(count):
                value = lost + a * (count - 1 - a)
                key = sum_so_far + a
                step[key] = min(step.get(key, value), value)
        within = step
    return max(a * (1 + total - a) - lost for a, lost in within.items())


@functools.lru_cache(maxsize=64)
def _changes(classes: int) -> tuple[int, ...]:
    """How many contrasts can change sign when one class is replaced by another."""
    made = matrix(classes)
    return tuple(sorted({int(np.sum(one != other)) for one in made for other in made}))


@functools.lru_cache(maxsize=64)
def places(classes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Where single sums and products stand in the Gram matrix of (1, all contrasts): rows and columns (M,).

    First every contrast by itself, then for each pair of columns i < j the products, those of i in rows.
    """
    starts = np.cumsum([1, *(count - 1 for count in classes)])
    rows, columns = [np.zeros(starts[-1] - 1, np.int64)], [np.arange(1, starts[-1])]
    for i in range(len(classes)):
        for j in range(i + 1, len(classes)):
            first, second = (np.arange(starts[k], starts[k + 1]) for k in (i, j))
            rows.append(np.repeat(first, second.size))
            columns.append(np.tile(second, first.size))
    return np.concatenate(rows).astype(np.int32), np.concatenate(columns).astype(np.int32)


def released(classes: Sequence[int]) -> int:
    """M, how many sums that makes."""
    return places(tuple(classes))[0].size
