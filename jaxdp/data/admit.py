"""What may enter a test or a search: arrays of real numbers of fitting shapes. The one place where data are refused.

Every entry point admits its data before anything is paid or computed. A refusal looks at types, dtypes and shapes
alone, and its sentence speaks of nothing else: no value of a record, nor the length of a text.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import numpy as np

from jaxdp._base.display import kind_of
from jaxdp.data.dataset import Data

TO_ARRAY = "write np.asarray(values, float), or read the table through a jaxdp.Schema"


def admitted(data: Any, *, many_columns: bool = False) -> Any:
    """The data with every field an array (lists and tuples of numbers become arrays), or one sentence why not.

    data: `Data`, an array, or another pytree of arrays; tracers and `jax.ShapeDtypeStruct` are arrays here.
    many_columns: x and y may both have more columns than records.
    Errors: TypeError by type or dtype, ValueError by shape.
    """
    if not isinstance(data, Data):
        return jax.tree.map(lambda leaf: real_array("data", leaf), _not_a_frame(data))
    names = [name for name in ("x", "y", "z") if name != "z" or data.z is not None]
    arrays = {name: real_array(name, getattr(data, name)) for name in names}
    for name, array in arrays.items():
        _require_shape(name, array.shape)
    _require_rows({name: array.shape for name, array in arrays.items()})
    _require_columns(arrays, data.domain, many_columns)
    return dataclasses.replace(data, **arrays)


def table(values: Any, num_columns: int) -> Any:
    """Values (n, num_columns) of several columns, as an array. Errors: as `admitted`."""
    array = real_array("values", values)
    if len(array.shape) != 2 or array.shape[1] != num_columns:
        raise ValueError(
            f"values must be (n, {num_columns}), one column per description, got {_shape(array.shape)}; "
            "write one row per record."
        )
    if not array.shape[0]:
        raise ValueError("values have no records: give at least one row.")
    return array


def _not_a_frame(data: Any) -> Any:
    """What is no pytree of arrays at its top: lists, texts and data frames need words of their own."""
    if isinstance(data, list | tuple | dict | str | bytes) and not hasattr(data, "_fields"):
        leaves = jax.tree.leaves(data)
        if not leaves or not all(_is_array(leaf) for leaf in leaves):
            raise TypeError(f"data must be jaxdp.Data(x, y, z) or an array, got {_kind(data)}; {TO_ARRAY}.")
    return data


def real_array(name: str, value: Any) -> Any:
    """The value as an array of real numbers that JAX takes. Errors: TypeError, by type and dtype alone."""
    if isinstance(value, list | tuple):
        value = _from_sequence(name, value)
    if isinstance(value, np.ma.MaskedArray) or not _is_array(value):
        raise TypeError(f"{name} must be an array of numbers, got {_kind(value)}; {TO_ARRAY}.")
    kind = kind_of(value.dtype)
    if kind not in ("float", "int"):
        raise TypeError(f"{name} must hold real numbers, got an array of {kind}; {_way_out(name, kind)}.")
    if isinstance(value, np.ndarray):
        value = np.asarray(value)  # a memory map or a matrix as what it holds
        if not value.dtype.isnative:
            return value.astype(value.dtype.newbyteorder("="))
    return value


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray | np.generic | jax.Array | jax.ShapeDtypeStruct)


def _from_sequence(name: str, value: list | tuple) -> np.ndarray:
    """Numbers in lists as an array. A foreign error may quote them, so it ends before ours is raised."""
    array = None
    try:
        array = np.asarray(value)
    except Exception:
        array = None
    if array is None:
        raise TypeError(f"{name} is a {type(value).__name__} of unequal rows or of objects; {TO_ARRAY}.")
    return array


def _kind(value: Any) -> str:
    if isinstance(value, np.ma.MaskedArray):
        return "a masked array"
    if value is None:
        return "nothing"
    module, name = type(value).__module__.partition(".")[0], type(value).__name__
    return f"a {name}" if module == "builtins" else f"a {module}.{name}"


def _way_out(name: str, kind: str) -> str:
    if kind == "bool":
        return f"write {name}.astype(int), codes 0 and 1"
    if kind == "complex":
        return f"test {name}.real and {name}.imag as columns"
    if kind == "long floats":
        return f"write {name}.astype(float)"
    return "write numbers or codes 0, 1, ..., or read the table through a jaxdp.Schema"


def _require_shape(name: str, shape: tuple[int, ...]) -> None:
    if not 1 <= len(shape) <= 2:
        raise ValueError(
            f"{name} must have shape (n,) or (n, columns), got {_shape(shape)}; many data sets go through jax.vmap."
        )
    if not shape[0]:
        raise ValueError(f"{name} has no records, its shape is {_shape(shape)}: give at least one row.")
    if len(shape) == 2 and not shape[1]:
        raise ValueError(f"{name} has no columns, its shape is {_shape(shape)}: give at least one, or leave out z.")


def _require_rows(shapes: dict[str, tuple[int, ...]]) -> None:
    if len({shape[0] for shape in shapes.values()}) > 1:
        told = ", ".join(f"{name} {_shape(shape)}" for name, shape in shapes.items())
        raise ValueError(f"x, y and z must have the same number of rows, got {told}; write one row per record in each.")


def _require_columns(arrays: dict[str, Any], domain: Any, many_columns: bool) -> None:
    """The columns that the domain describes; and data sets that were meant for `vmap` are no columns."""
    for name, array in arrays.items():
        described = len(getattr(domain, name, ()))
        columns = array.shape[1] if len(array.shape) == 2 else 1
        if described and described != columns:
            raise ValueError(
                f"{name} has shape {_shape(array.shape)}, that is {columns} columns against {described} in its domain: "
                "give one array column per description; many data sets go through jax.vmap."
            )
    x, y = arrays["x"].shape, arrays["y"].shape
    if not many_columns and all(len(shape) == 2 and shape[1] > max(shape[0], 1) for shape in (x, y)):
        raise ValueError(
            f"x has shape {_shape(x)}, that is {x[1]} columns against 1 in a test of two columns, and only {x[0]} "
            "records: write one row per record; many data sets go through jax.vmap."
        )


def _shape(shape: tuple[int, ...]) -> str:
    return str(tuple(shape))
