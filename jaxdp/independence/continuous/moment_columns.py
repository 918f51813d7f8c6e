"""The columns of a moment matrix: continuous ones, to be clipped about private centres, and coded ones as numbers.

Coded columns lie on [-1, 1] by public knowledge and need no private centre: two or ordered levels as equally spaced
scores, more than two unordered levels as an indicator for each level but the first.
"""

from __future__ import annotations

import jax.numpy as jnp

from jaxdp.data.dataset import CATEGORICAL, CONTINUOUS, Column, equally_spaced
from jaxdp.statistics import partition

ROLES = ("z", "x", "y")


def width(column: Column) -> int:
    """How many columns of the matrix a column takes."""
    return column.levels - 1 if column.unordered else 1


def bounded(column: Column) -> bool:
    """Whether its levels are public numbers, so that no clip touches it."""
    return column.kind != CONTINUOUS or column.levels > 0


def described(data, role: str) -> tuple[Column, ...]:
    """Public descriptions of the columns of x, y or z: from the domain, or all continuous."""
    values = getattr(data, role)
    count = 0 if values is None else partition.num_columns(values)
    declared = getattr(data.domain, role) if data.domain is not None else ()
    columns = declared or (Column(),) * count
    if len(columns) != count:
        raise ValueError(f"the domain describes {len(columns)} columns of {role}, the data have {count}.")
    return columns


def every(data, roles: tuple[str, ...] = ROLES) -> tuple[Column, ...]:
    """Public descriptions of the columns of all these roles, as they stand in the matrix."""
    return tuple(column for role in roles for column in described(data, role))


def sizes(data, roles: tuple[str, ...] = ROLES) -> tuple[int, int, int]:
    """Columns of the matrix that z, x and y take; 0 for one that is not among these roles."""
    z, x, y = (widths(described(data, role)) if role in roles else 0 for role in ROLES)
    return z, x, y


def widths(columns: tuple[Column, ...]) -> int:
    """Columns of the matrix that these take together."""
    return sum(map(width, columns))


def flags(columns: tuple[Column, ...]) -> tuple[bool, ...]:
    """`bounded` of each column of the matrix."""
    return tuple(bounded(column) for column in columns for _ in range(width(column)))


def of_one_level(columns: tuple[Column, ...]) -> tuple[int, ...]:
    """Of each column of the matrix that says of one level who has it, the number of its column, from 1; else 0.

    Such a column hardly varies where few records have the level.
    """
    return tuple(
        place if column.levels == 2 or width(column) > 1 else 0
        for place, column in enumerate(columns, start=1)
        for _ in range(width(column))
    )


def owners(shapes, places) -> list[Column]:
    """The columns of z, x and y that have any of these places (p,) bool in the matrix, each once."""
    columns = every(shapes)
    numbered = [number for number, column in enumerate(columns) for _ in range(width(column))]
    found = {number for number, is_one in zip(numbered, places, strict=False) if is_one}
    return [columns[number] for number in sorted(found)]


def names(columns) -> str:
    """Of columns, in a sentence."""
    return ", ".join(dict.fromkeys(column.name or "a column" for column in columns))


def numbers(values, columns: tuple[Column, ...]):
    """Values (n, d) as columns of the matrix (n, p): continuous ones as they are, levels on [-1, 1]."""
    made = [_numbers(values[:, k], column) for k, column in enumerate(columns)]
    return jnp.concatenate(made, axis=1) if made else jnp.zeros((len(values), 0), values.dtype)


def _numbers(values, column: Column):
    if column.kind == CONTINUOUS:
        return values[:, None]
    codes = jnp.clip(jnp.nan_to_num(values, nan=0.0), 0, max(column.levels - 1, 1))
    if width(column) > 1 or (column.levels > 2 and column.kind == CATEGORICAL):
        return jnp.where(jnp.round(codes)[:, None] == jnp.arange(1, column.levels)[None, :], 1.0, -1.0)
    return equally_spaced(codes, column.levels)[:, None]
