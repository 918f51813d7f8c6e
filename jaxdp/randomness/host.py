"""Calls that decide on the host: they run in plain Python, never under a transformation of JAX."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from jaxdp._base.untraced import is_traced

ON_HOST = "call it in plain Python, on arrays and numbers"


def require_host(call: str, *arguments: Any, way_out: str) -> None:
    """Raises TypeError under a trace of JAX, and for a traced argument, alone or in a mapping of columns.

    call: its name. way_out: what can be done instead. JAX is not imported for it.
    """
    if "jax" not in sys.modules:
        return
    from jaxdp.randomness import traces

    leaves = [part for one in arguments for part in (one.values() if isinstance(one, Mapping) else (one,))]
    if traces.is_open() or any(map(is_traced, leaves)):
        raise TypeError(
            f"{call} decides on the host which query comes next, so it runs outside jax.jit, jax.vmap and jax.grad: "
            f"{way_out}."
        )
