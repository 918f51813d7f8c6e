"""Whether JAX is tracing: a release under a trace would draw its noise, use its key and pay once for every call."""

import sys

import jax
from jax._src import core as jax_core  # no public name tells an open trace of vmap or grad

# the files through which JAX calls Python from a compiled program
_CALLBACKS = ("jax._src.callback", "jax._src.debugging")


def is_open() -> bool:
    """Whether a JAX transformation (`jit`, `vmap`, `grad`, `scan`, `shard_map`, ...) is tracing in this thread."""
    return not jax_core.trace_state_clean()


def in_callback() -> bool:
    """Whether this code runs inside a JAX callback: JAX may call one again, or not at all, as it pleases."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_globals.get("__name__") in _CALLBACKS:
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def reads_arguments() -> bool:
    """Whether `jax.jit` is reading the arguments of a call: it wraps a TypeError in a text of its own, and no other."""
    frame = sys._getframe()
    while frame is not None:
        if (frame.f_globals.get("__name__"), frame.f_code.co_name) == ("jax._src.pjit", "_infer_input_type"):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def require_plain_python(what: str, *data) -> None:
    """Raises RuntimeError where a release can't run: a trace is open, a leaf of `data` is traced, inside a callback."""
    traced = any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(data))
    if traced or is_open() or in_callback():
        raise RuntimeError(
            f"{what} can't be used inside jax.jit, vmap or another JAX transformation or callback, since its noise and "
            "its charge would be made once for many calls; loop in Python, with one key of fresh_key().split(n) each."
        )
