"""Contingency tables of coded columns: counted once, exactly, then marginalised.

A table of variables with levels (L_1, ..., L_d) is an integer array of that shape. Codes outside
0, ..., L - 1 fall into the nearest level, so every record is counted exactly once.
"""

import functools
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base.kept_programs import kept_jit

CHUNK_RECORDS = 1 << 22
BLOCK_RECORDS = 1 << 13  # of the host's loops: stays in the cache
MAX_CELLS = 1 << 26


def as_codes(values, levels):
    """Codes 0, ..., levels - 1 as int32, whatever came in: NaN becomes 0, the rest is clipped.

    levels: a number, or an array that broadcasts against values.
    """
    values = jnp.asarray(values)
    if jnp.issubdtype(values.dtype, jnp.floating):
        values = jnp.nan_to_num(values, nan=0.0, posinf=levels - 1.0, neginf=0.0)
        return jnp.clip(jnp.floor(values), 0, levels - 1).astype(jnp.int32)
    if values.dtype == jnp.bool_:
        values = values.astype(jnp.int32)
    return jnp.clip(values, 0, levels - 1).astype(jnp.int32)


def joint_code(columns: Sequence, levels: Sequence[int]):
    """Mixed-radix code of each record, int32 (n,), from one code array per column; the last varies fastest."""
    check_cells(levels)
    code = jnp.zeros(columns[0].shape[0] if columns else 0, jnp.int32)
    for column, count in zip(columns, levels, strict=True):
        code = code * count + as_codes(column, count)
    return code


def check_cells(levels: Sequence[int]) -> int:
    """The number of cells of a table; ValueError where it would not fit."""
    cells = math.prod(levels)
    if cells > MAX_CELLS:
        raise ValueError(
            f"a joint table of {len(levels)} columns has {cells} cells, more than {MAX_CELLS}; "
            "use fewer columns or levels at a time."
        )
    return cells


def table(columns: Sequence, levels: Sequence[int]):
    """Joint table of the columns, int32 array of shape `levels` (n below 2^31); jit and vmap work."""
    cells = check_cells(levels)
    code = joint_code(columns, levels)
    return jax.ops.segment_sum(jnp.ones(code.shape, jnp.int32), code, cells).reshape(tuple(levels))


def stratified_table(a, b, block, shape: tuple[int, int, int]):
    """Table of a against b within each block, int32 (num_blocks, levels of a, levels of b)."""
    blocks, levels_a, levels_b = shape
    return table([block, a, b], (blocks, levels_a, levels_b))


def joint_table(codes, levels: Sequence[int], *, chunk_records: int = CHUNK_RECORDS) -> np.ndarray:
    """Joint table of all columns of `codes`, exact int64 on the host, of shape `levels`.

    codes: array (n, d), or an iterable of such arrays (chunks of a file too large for memory).
    Counted on the device chunk by chunk; memory does not grow with n beyond one chunk.
    Errors: ValueError if the table would have more than 2^26 cells or columns and levels disagree.
    """
    levels = tuple(int(count) for count in levels)
    total = np.zeros(check_cells(levels), np.int64)
    for chunk in _chunks(codes, chunk_records):
        if chunk.ndim != 2 or chunk.shape[1] != len(levels):
            raise ValueError(
                f"codes must have {len(levels)} columns, one per entry of levels, got shape {chunk.shape}."
            )
        if chunk.shape[0]:
            total += np.asarray(_count(chunk, levels)).ravel()
    return total.reshape(levels)


def _chunks(codes, chunk_records: int):
    if not hasattr(codes, "shape"):
        for part in codes:
            yield from _chunks(part, chunk_records)
        return
    for start in range(0, max(codes.shape[0], 1), chunk_records):
        yield codes[start : start + chunk_records]


@functools.partial(kept_jit, static_argnums=1)
def _count(chunk, levels: tuple[int, ...]):
    # one sum along each row reads the records once, in their own order; a strided read per column costs tenfold
    strides = np.cumprod((1, *levels[:0:-1]))[::-1].astype(np.int32)
    code = jnp.sum(as_codes(chunk, np.array(levels, np.int32)[None, :]) * strides[None, :], axis=1, dtype=jnp.int32)
    return jax.ops.segment_sum(jnp.ones(code.shape, jnp.int32), code, math.prod(levels)).reshape(levels)


def codes_by_column(codes, levels: Sequence[int]) -> np.ndarray:
    """Codes of every column, (d, n) on the host in the smallest unsigned integers, clipped like `as_codes`."""
    values = np.asarray(codes)
    if values.ndim != 2 or values.shape[1] != len(levels):
        raise ValueError(f"codes must have {len(levels)} columns, one per entry of levels, got shape {values.shape}.")
    kind = np.min_scalar_type(max(max(levels, default=1) - 1, 0))
    columns = np.empty(values.shape[::-1], kind)
    for start in range(0, len(values), BLOCK_RECORDS):
        block = _as_integers(values[start : start + BLOCK_RECORDS], kind, levels)
        columns[:, start : start + BLOCK_RECORDS] = block.astype(kind).T
    for column, count in zip(columns, levels, strict=True):
        np.minimum(column, kind.type(count - 1), out=column)
    return columns


def _as_integers(values: np.ndarray, kind: np.dtype, levels: Sequence[int]) -> np.ndarray:
    """Integers that `kind` can hold, none below 0; those above the last level may be left."""
    if values.dtype == np.bool_ or not np.issubdtype(values.dtype, np.integer):
        values = np.floor(np.nan_to_num(values.astype(float), nan=0.0, posinf=np.inf, neginf=-np.inf))
    if not np.issubdtype(values.dtype, np.integer) or (
        values.size and (values.min() < 0 or values.max() > np.iinfo(kind).max)
    ):
        values = np.clip(values, 0, np.array(levels)[None, :] - 1)
    return values


def margin_cube(joint: np.ndarray) -> np.ndarray:
    """The table with one more level per axis, "any": the sum over that axis. Every margin is a slice of it."""
    for axis in range(joint.ndim):
        joint = np.concatenate([joint, joint.sum(axis=axis, keepdims=True)], axis=axis)
    return joint


def from_cube(cube: np.ndarray, sets: np.ndarray) -> np.ndarray:
    """Tables of many sets of columns, (m, *levels), gathered from a `margin_cube`.

    sets: (m, k) different columns in each row, in the order wanted; all rows must have the same levels.
    """
    strides = np.cumprod((1, *cube.shape[:0:-1]))[::-1]
    index = np.full((len(sets), *[1] * sets.shape[1]), int(np.sum(strides * (np.array(cube.shape) - 1))))
    for axis, columns in enumerate(sets.T):
        any_level = cube.shape[columns[0]] - 1
        along = [-1 if position == axis else 1 for position in range(sets.shape[1])]
        index = index + strides[columns].reshape(-1, *[1] * sets.shape[1]) * (np.arange(any_level) - any_level).reshape(
            along
        )
    return cube.ravel()[index]


def marginal(joint, axes: Sequence[int]):
    """The table of the variables `axes`, in that order, from a table of more variables."""
    keep = sorted(axes)
    others = tuple(j for j in range(joint.ndim) if j not in keep)
    summed = joint.sum(axis=others)
    return summed.transpose([keep.index(j) for j in axes])


def pair_given(joint, i: int, j: int, given: Sequence[int] = ()):
    """Table of variable i against j within each joint level of `given`: (strata, L_i, L_j)."""
    part = marginal(joint, (*given, i, j))
    return part.reshape(-1, *part.shape[-2:])
