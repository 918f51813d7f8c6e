"""Uniform subsets of rows without replacement, exactly."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np


def uniform_subset(key, total: int, size: int) -> np.ndarray:
    """`size` of the indices 0, ..., total - 1 in increasing order, every subset with the same probability.

    The places of the smallest of `total` random 64-bit words; all are drawn anew if two of them are equal, so
    every order is equally likely. Runs on the host; its time depends on the key alone. Proof:
    docs/theory/sparse_vector.md#examination.
    """
    for attempt in itertools.count():
        high, low = np.asarray(_words(key, attempt, total)).astype(np.uint64)
        words = high << np.uint64(32) | low
        order = np.argsort(words)
        if np.all(np.diff(words[order]) > 0):
            return np.sort(order[:size])
    raise AssertionError("unreachable")


@functools.partial(jax.jit, static_argnums=2)
def _words(key, attempt, total: int):
    return jax.random.bits(jax.random.fold_in(key, attempt), (2, total), jnp.uint32)
