"""Reading traced programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
from jax.interpreters.partial_eval import dce_jaxpr


def equations(jaxpr) -> Iterator[Any]:
    """All equations of a program (`jax.make_jaxpr(...)(...).jaxpr`), those of inner programs included."""
    for equation in jaxpr.eqns:
        yield equation
        for inner in jax.tree.leaves(list(equation.params.values()), is_leaf=_is_program):
            if _is_program(inner):
                yield from equations(getattr(inner, "jaxpr", inner))


def largest(jaxpr) -> int:
    """Elements of the largest array that a program needs for its results."""
    jaxpr, _ = dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars))
    return max((variable.aval.size for found in equations(jaxpr) for variable in found.outvars), default=0)


def uses_its_inputs(jaxpr) -> bool:
    """Whether the results of a program depend on any of its inputs."""
    return any(dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars))[1])


def _is_program(node) -> bool:
    return hasattr(node, "eqns") or hasattr(node, "jaxpr")
