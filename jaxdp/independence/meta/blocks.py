"""Public blocks of records: dealt at random by index, so a replaced record stays in its block."""

import inspect

import jax
import jax.numpy as jnp

from jaxdp import core
from jaxdp.statistics.per_record import sees_the_batch


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


def of_blocks(function, key, blocks, num_blocks: int, batch_size: int, wanted: str):
    """function(key, block) of every block, each computed from its own block alone: real numbers (num_blocks,).

    batch_size: blocks computed together; a function that calls back into Python gets them one by one.
    """

    def one(pair):
        value = jnp.asarray(function(*pair))
        if value.ndim != 0 or jnp.issubdtype(value.dtype, jnp.complexfloating):
            raise ValueError(f"{wanted} per block, got {value.dtype} of shape {value.shape}.")
        return value

    pairs = jax.random.split(key, num_blocks), blocks
    shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), pairs)
    alone = bool(sees_the_batch(jax.make_jaxpr(one)(shapes)))
    return jax.lax.map(one, pairs, batch_size=None if alone else batch_size)


def require_rows(num_records: int, num_blocks: int) -> None:
    """ValueError unless every block gets at least 2 records."""
    if num_records < 2 * num_blocks:
        raise ValueError(
            f"num_blocks must leave at least 2 records per block, got {num_blocks} blocks for {num_records} rows."
        )


def uses_z(inside) -> bool:
    """Whether what runs in each block conditions on z: a test says so in its class, a function by an attribute."""
    return getattr(getattr(inside, "func", inside), "uses_z", False)


def as_node(function):
    """A bare function as a pytree node without leaves (as a `Partial`); a pytree as it is, a `Partial` too.

    From Python 3.14 on `inspect.isroutine` takes a `Partial` for a routine; wrapped a second time it would be another
    static value, and a copy of a test with another epsilon would compile anew.
    """
    is_node = not jax.tree_util.all_leaves([function])
    bare = inspect.isroutine(function) or isinstance(function, type(jax.jit(len)))
    return jax.tree_util.Partial(function) if bare and not is_node else function
