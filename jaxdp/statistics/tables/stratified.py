"""Tests of independence within strata, for many tables at once: chi-squared, G, Cochran-Mantel-Haenszel.

Tables are counts (..., strata, levels of a, levels of b); leading axes are a batch. NumPy tables are summed by NumPy,
others by JAX; in float64, but inside a caller's jit or vmap in the ambient precision. Non-private: these statistics
have no bounded sensitivity.
"""

import contextlib
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaincc

from jaxdp._base.types import Array


class TableTests(NamedTuple):
    """One entry per table: the statistic, its degrees of freedom (0: nothing to test), and P(chi-squared >= it)."""

    statistic: Any
    degrees: Any
    p_value: Any


def chi_squared(tables: Array) -> TableTests:
    """Pearson's chi-squared summed over strata.

    Degrees of freedom: (rows seen - 1)(columns seen - 1) summed over strata. No continuity correction.
    """
    return _summed(tables, lambda xp, counts, safe, expected: (counts - expected) ** 2 / safe)


def g_test(tables: Array) -> TableTests:
    """Likelihood-ratio statistic 2 sum O log(O/E) over strata; degrees of freedom as in `chi_squared`."""
    return _summed(
        tables, lambda xp, counts, safe, expected: 2.0 * counts * xp.log(xp.where(counts > 0, counts, safe) / safe)
    )


def cochran_mantel_haenszel(tables: Array) -> TableTests:
    """(sum of n11 - E n11)^2 / sum of hypergeometric variances, for 2 x 2 strata; one degree of freedom.

    No continuity correction. Strata of one record, or with an empty row or column, add nothing; where no stratum
    adds anything the degrees of freedom and the statistic are 0 and the p-value is 1.
    """
    if np.shape(tables)[-2:] != (2, 2):
        raise ValueError(f"strata must be 2 x 2 tables, got {np.shape(tables)[-2:]}; use chi_squared or g_test.")
    with _precision(tables):
        xp, counts = _floats(tables)
        rows, columns, size = counts.sum(-1), counts.sum(-2), counts.sum((-2, -1))
        safe = xp.maximum(size, 1.0)
        excess = xp.sum(counts[..., 0, 0] - rows[..., 0] * columns[..., 0] / safe, axis=-1)
        spread = rows[..., 0] / safe * (rows[..., 1] / safe) * columns[..., 0] * columns[..., 1]
        variance = xp.sum(spread / xp.maximum(size - 1.0, 1.0) * (size > 1), axis=-1)
        informative = variance > 0
        value = xp.where(informative, excess**2 / xp.where(informative, variance, 1.0), 0.0)
        degrees = informative.astype(int)
        return TableTests(value, degrees, _tail(xp, value, degrees))


def expected_counts(tables):
    """Counts that independence within each stratum predicts from its margins, the shape of the tables."""
    with _precision(tables):
        xp, counts = _floats(tables)
        return _expected(xp, *_margins(xp, counts))


def _summed(tables, cells) -> TableTests:
    with _precision(tables):
        xp, counts = _floats(tables)
        rows, columns, size = _margins(xp, counts)
        expected = _expected(xp, rows, columns, size)
        # a cell that expects nothing holds nothing, so any divisor serves there
        safe = expected + (expected <= 0)
        value = cells(xp, counts, safe, expected)
        value = xp.maximum(xp.sum(value.reshape(*value.shape[:-3], math.prod(value.shape[-3:])), axis=-1), 0.0)
        rows_seen, columns_seen = (_last_sum(xp, (margin > 0).astype(margin.dtype)) for margin in (rows, columns))
        degrees = xp.sum(xp.maximum(rows_seen - 1, 0) * xp.maximum(columns_seen - 1, 0), axis=-1).astype(int)
        return TableTests(value, degrees, _tail(xp, value, degrees))


def _margins(xp, counts):
    """Sums over the columns, over the rows, and over both, of each stratum."""
    if xp is jnp:
        return counts.sum(-1), counts.sum(-2), counts.sum((-2, -1))
    # products with zeros and ones: NumPy is slow at sums along short axes
    *lead, num_rows, num_columns = counts.shape
    rows = _last_sum(xp, counts)
    columns = counts.reshape(-1, num_rows * num_columns) @ np.tile(np.eye(num_columns), (num_rows, 1))
    return rows, columns.reshape(*lead, num_columns), _last_sum(xp, rows)


def _last_sum(xp, values):
    if xp is jnp:
        return values.sum(-1)
    return (values.reshape(-1, values.shape[-1]) @ np.ones(values.shape[-1])).reshape(values.shape[:-1])


def _expected(xp, rows, columns, size):
    return rows[..., :, None] * columns[..., None, :] / xp.maximum(size, 1.0)[..., None, None]


def _precision(tables):
    """float64 on arrays; a caller's jit keeps its own precision."""
    return contextlib.nullcontext() if isinstance(tables, jax.core.Tracer) else jax.enable_x64(True)


def _floats(tables):
    if isinstance(tables, np.ndarray):
        return np, tables.astype(np.float64)
    return jnp, jnp.asarray(tables).astype(jnp.result_type(float))


def _tail(xp, value, degrees):
    if xp is np:
        from scipy.special import chdtrc

        return np.where(degrees > 0, chdtrc(np.maximum(degrees, 1), value), 1.0)
    return jnp.where(degrees > 0, gammaincc(jnp.maximum(degrees, 1) / 2.0, value / 2.0), 1.0)
