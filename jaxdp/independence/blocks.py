"""Public blocks of records: dealt at random by index, so a replaced record stays in its block."""

import inspect

import jax
import jax.numpy as jnp

from jaxdp import core


def ordinary_key(key):
    """A built-in key. What is computed per block is private for every fixed dealing and every resampling.

    So the blocks need no cryptographic randomness, and a test inside may run without noise.
    """
    return jax.random.wrap_key_data(jax.random.bits(key, (2,), jnp.uint32), impl="threefry2x32")


def deal(key, data, num_blocks: int, shuffle: bool = True):
    """The data with leading axes (k, n // k), dealt at random or, without shuffle, in file order."""
    num_records = core.num_records(data)
    size = num_records // num_blocks
    order = jax.random.permutation(key, num_records) if shuffle else jnp.arange(num_records)
    order = order[: size * num_blocks].reshape(num_blocks, size)
    return jax.tree.map(lambda leaf: jnp.asarray(leaf)[order], data)


def require_rows(num_records: int, num_blocks: int) -> None:
    """ValueError unless every block gets at least 2 records."""
    if num_records < 2 * num_blocks:
        raise ValueError(
            f"num_blocks must leave at least 2 records per block, got {num_blocks} blocks for {num_records} rows."
        )


def as_node(function):
    """A bare function as a pytree node without leaves (as a `Partial`); a pytree as it is."""
    bare = inspect.isroutine(function) or isinstance(function, type(jax.jit(len)))
    return jax.tree_util.Partial(function) if bare else function
