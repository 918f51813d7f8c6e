"""What JAX traces, told without importing JAX: where it is not imported nothing is traced."""

from __future__ import annotations

import sys
from typing import Any


def is_traced(value: Any) -> bool:
    """Whether the value stands for one that a compiled program will have."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(value, jax.core.Tracer)
