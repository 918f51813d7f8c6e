"""Fingerprints of tests and designs: what names the counts of a folder must tell apart whatever decides them.

Functions of the package and of the libraries below count by their names. Every other function counts by what it
computes: its code and constants, the defaults of its arguments, and the values of its closure and of the globals that
it uses, functions of the caller among them. A class counts by its name and the functions in it.
"""

from __future__ import annotations

import dataclasses
import dis
import enum
import functools
import hashlib
import re
import sys
import types
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np

LIBRARIES = {
    "jaxdp",
    "jax",
    "jaxlib",
    "numpy",
    "scipy",
    "builtins",
    "math",
    "functools",
    "operator",
    "itertools",
    "copyreg",
}
PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...), enum.Enum, np.dtype, np.generic)


def fingerprint(tree: Any) -> str:
    """A hash of a pytree: its classes, static fields, numbers and functions, 16 hexadecimal digits.

    Errors: ValueError for what has no fingerprint, such as an open file in the closure of a function.
    """
    leaves, structure = jax.tree.flatten(tree)
    digest = hashlib.sha256(re.sub(r" at 0x[0-9a-f]+", "", str(structure)).encode())
    for leaf in leaves:
        array = np.asarray(leaf)
        known = f"{array.dtype} {array.shape}".encode() + array.tobytes()
        digest.update(_told(leaf, {}).encode() if array.dtype == object else known)
    digest.update(program(tree).encode())
    return digest.hexdigest()[:16]


def program(tree: Any) -> str:
    """A hash of the static parts of a pytree that neither names nor numbers tell apart; "" where it has none."""
    told = list(_behind_names(jax.tree.structure(tree), {}))
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:16] if told else ""


def _behind_names(value: Any, seen: dict[int, tuple[int, Any]]) -> Iterator[str]:
    """What the text of a static value leaves out."""
    if isinstance(value, jax.tree_util.PyTreeDef):
        parts: Any = [value.node_data()[1] if value.node_data() else None, *value.children()]
    elif isinstance(value, Mapping):
        parts = [*value, *value.values()]
    elif isinstance(value, tuple | list | set | frozenset):
        parts = value
    elif isinstance(value, functools.partial | types.MethodType) and _has_name(_parts(value)[0]):
        parts = _parts(value)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type) and value.__dataclass_params__.repr:  # type: ignore[attr-defined]
        parts = [getattr(value, field.name) for field in dataclasses.fields(value)]
    elif isinstance(value, PLAIN) or _has_name(value) or (_has_name(type(value)) and _is_stateless(value)):
        return
    else:
        yield _told(value, seen)
        return
    for part in parts:
        yield from _behind_names(part, seen)


def _told(value: Any, seen: dict[int, tuple[int, Any]]) -> str:
    """A text that only values have which compute the same.

    seen: by their ids, functions and whatever may hold itself, numbered as they were met; they are kept alive.
    """
    if isinstance(value, PLAIN):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, types.ModuleType):
        return f"module {value.__name__}"
    if _has_name(value):
        return f"{value.__module__}.{getattr(value, '__qualname__', value.__name__)}"
    if isinstance(value, set | frozenset):  # in an order that does not change from process to process
        parts = sorted(_told(part, {}) for part in value)
    elif isinstance(value, np.ndarray | jax.Array) and value.dtype != object:
        is_key = jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key)
        array = np.asarray(jax.random.key_data(value) if is_key else value)
        parts = [f"{array.dtype} {array.shape} {hashlib.sha256(array.tobytes()).hexdigest()}"]
    else:
        if not isinstance(value, tuple | types.CodeType):
            if id(value) in seen:
                return f"#{seen[id(value)][0]}"
            seen[id(value)] = len(seen), value
        parts = [_told(part, seen) for part in _parts(value)]
    return f"{type(value).__qualname__}({', '.join(parts)})"


def _parts(value: Any) -> tuple[Any, ...]:
    """What decides what a value computes."""
    if isinstance(value, tuple | list):
        return tuple(value)
    if isinstance(value, Mapping):
        return tuple(value.items())
    if isinstance(value, types.CodeType):
        return value.co_code, value.co_names, value.co_freevars, value.co_consts
    if isinstance(value, types.FunctionType):
        defaults = value.__defaults__, tuple((value.__kwdefaults__ or {}).items())
        return value.__code__, *defaults, _closure(value), _globals(value)
    if isinstance(value, functools.partial):
        return value.func, value.args, tuple(value.keywords.items())
    if isinstance(value, types.MethodType):
        return value.__func__, value.__self__
    if isinstance(value, type):
        functions = {name: part for name, part in vars(value).items() if isinstance(part, types.FunctionType)}
        own = sorted(name for name in functions if not name.startswith("__") or name == "__call__")
        return value.__module__, value.__qualname__, *((name, functions[name]) for name in own)
    if hasattr(value, "__wrapped__"):  # of jax.jit, whose object shows the function
        return (value.__wrapped__,)
    return _state(value)


def _closure(function: types.FunctionType) -> tuple[Any, ...]:
    found = []
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # not set yet
            found.append("unset")
    return tuple(found)


def _globals(function: types.FunctionType) -> tuple[Any, ...]:
    """The globals that a function uses, and the functions written inside it, with their names."""
    names: set[str] = set()
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        names |= {step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
        codes += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return tuple((name, function.__globals__[name]) for name in sorted(names) if name in function.__globals__)


def _state(value: Any) -> tuple[Any, ...]:
    """Class and state of an object, as it would be copied."""
    try:
        copied = value.__reduce_ex__(4)
    except Exception:
        copied = None
    if isinstance(copied, str):  # the name of a global, such as a ufunc
        return value.__class__.__module__, copied
    if not isinstance(copied, tuple):
        raise ValueError(
            f"counts in a folder belong to one test and one design, and a {type(value).__qualname__} that they use "
            "has no fingerprint: give them numbers, texts and arrays, or leave folder= out."
        )
    return type(value), *copied[:3], *(tuple(rest) for rest in copied[3:5] if rest is not None)


def _is_stateless(value: Any) -> bool:
    """Whether an object is no more than its class."""
    _, _, arguments, *state = (*_state(value), None)
    return len(arguments) == 1 and not any(part is not None for part in state)


def _has_name(value: Any) -> bool:
    """Whether a library finds this very object by its name."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", getattr(value, "__name__", None))
    if not isinstance(module, str) or not isinstance(name, str) or module.partition(".")[0] not in LIBRARIES:
        return False
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is value
