"""Users' functions, applied to each record alone: what one record gives can never depend on another record."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import jaxpr_as_fun

from jaxdp._base.traced import equations

# What runs outside XLA, or has a batching rule of its own, could see all members of a batch at once.
SEES_THE_BATCH = ("callback", "custom_vmap", "ffi_call", "debug_print")


def per_record(function, *columns, name: str = "function"):
    """function(*columns), computed one record at a time: float arrays (n,), in the structure that it returns.

    columns: arrays (n, ...) that share their rows. function: gets them with one row, (1, ...), and returns one real
    number for it, of shape (1,) or (), or several in a tuple. So a bound per record is a bound for the sum,
    whatever the function computes.
    Errors: ValueError if it returns another shape, TypeError if it calls back into Python or returns no real number.
    """
    columns = tuple(jnp.asarray(column) for column in columns)

    def one(*row):
        return jax.tree.map(lambda value: _number(value, name), function(*(part[None] for part in row)))

    return jax.vmap(separable(one, *(jax.ShapeDtypeStruct(c.shape[1:], c.dtype) for c in columns), name=name))(*columns)


def separable(function, *shapes, name: str):
    """The function, traced once for arguments of these shapes; TypeError if a batch of it could mix its members."""
    program, result = jax.make_jaxpr(function, return_shape=True)(*shapes)
    what = sees_the_batch(program)
    if what:
        raise TypeError(
            f"{name} must be plain jax.numpy, but it has {what}, which could see other records; write it without."
        )
    structure: Any = jax.tree.structure(result)
    flat = jaxpr_as_fun(program)
    return lambda *arguments: structure.unflatten(flat(*jax.tree.leaves(arguments)))


def sees_the_batch(program) -> str:
    """What in a traced program could see all members of a batch; empty if nothing could."""
    names = (equation.primitive.name for equation in equations(program.jaxpr))
    found = [primitive for primitive in names if any(p in primitive for p in SEES_THE_BATCH)]
    return found[0] if found else "a side effect" if program.effects else ""


def _number(value, name: str):
    value = jnp.asarray(value)
    if value.size != 1 or value.ndim > 1:
        raise ValueError(f"{name} must return one number per record, got shape {value.shape} for one record.")
    if jnp.issubdtype(value.dtype, jnp.complexfloating):
        raise TypeError(f"{name} must return real numbers, got {value.dtype}.")
    value = value if jnp.issubdtype(value.dtype, jnp.floating) else value.astype(float)
    return value.reshape(())
