"""How the columns of Z become strata, and X and Y become ordered values, from public knowledge alone."""

import math

import jax.numpy as jnp

from jaxdp.data.dataset import CONTINUOUS
from jaxdp.statistics import concordance, partition
from jaxdp.statistics.tables import contingency

MAX_TABLE_CELLS = 1 << 22


def levels_of(data) -> tuple[int, int]:
    """Public numbers of levels of x and of y; 0 where a column is continuous or nothing is known."""
    return _levels(data, "x"), _levels(data, "y")


def _levels(data, name: str) -> int:
    width = partition.num_columns(getattr(data, name))
    if width != 1:
        raise ValueError(f"a rank test takes one column of {name}, got {width}; test the columns one by one.")
    declared = getattr(data.domain, name) if data.domain is not None else ()
    return declared[0].levels if declared and declared[0].kind != CONTINUOUS else 0


def num_strata(data, num_cells: int) -> int:
    """Public number of strata; 0 if unknown (coded columns of z whose levels were not declared)."""
    if data.z is None:
        return 1
    if _exact(data):
        return 0
    return math.prod(partition.bins_per_column(partition.columns_of_z(data), num_cells))


def is_cut(data) -> bool:
    """Whether some column of z is continuous, so that public bins have to cut it."""
    if data.z is None or _exact(data):
        return False
    return any(column.kind == CONTINUOUS for column in partition.columns_of_z(data))


def _exact(data) -> bool:
    """Integer columns of z without a declared domain: every distinct row is its own stratum."""
    declared = data.domain is not None and bool(data.domain.z)
    whole = jnp.issubdtype(data.z.dtype, jnp.integer) or data.z.dtype == jnp.bool_
    return whole and not declared


def summaries(data, levels: tuple[int, int], num_cells: int, reference) -> concordance.Strata:
    """Strata of the data: from one table where it is small, from sorted records elsewhere.

    Strata are the joint levels of coded columns of z (every combination its own stratum) and about
    num_cells public bins in all for continuous ones.
    """
    labels = _labels(data, num_cells, reference)
    shape = (num_strata(data, num_cells), *levels)
    if 0 < math.prod(shape) <= MAX_TABLE_CELLS:
        counts = partition.bins_per_column(partition.columns_of_z(data), num_cells) if labels else ()
        block = contingency.joint_code(labels, counts) if labels else jnp.zeros(data.x.shape[0], jnp.int32)
        return concordance.strata_of_table(contingency.stratified_table(_column(data.x), _column(data.y), block, shape))
    block = concordance.block_labels(labels) if labels else None
    return concordance.strata_of_records(_values(data.x, levels[0]), _values(data.y, levels[1]), block)


def table_code(data, levels: tuple[int, int], num_cells: int, reference):
    """Cell of each record, int32 (n,), in the table (strata, levels of x, levels of y) of columns of levels."""
    labels = _labels(data, num_cells, reference)
    counts = partition.bins_per_column(partition.columns_of_z(data), num_cells) if labels else ()
    return contingency.joint_code([*labels, _column(data.x), _column(data.y)], (*counts, *levels))


def _labels(data, num_cells: int, reference) -> list:
    """One bin number per record, for each column of z."""
    if data.z is None:
        return []
    if _exact(data):
        return list(jnp.asarray(data.z).reshape(data.z.shape[0], -1).T)
    z, columns = partition.as_matrix(data.z), partition.columns_of_z(data)
    if len(columns) != z.shape[1]:
        raise ValueError(f"the domain describes {len(columns)} columns of z, the data have {z.shape[1]}.")
    reference = partition.default_reference(data) if reference is None else reference
    counts = partition.bins_per_column(columns, num_cells)
    described = zip(columns, counts, strict=True)
    return [partition.column_bin(z[:, j], column, reference, count) for j, (column, count) in enumerate(described)]


def _values(array, levels: int):
    return contingency.as_codes(_column(array), levels) if levels else _column(array)


def _column(array):
    return jnp.asarray(array).reshape(-1)
