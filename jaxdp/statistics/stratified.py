"""Tests of independence within strata, for many tables at once: chi-squared, G, Cochran-Mantel-Haenszel.

Tables are counts (..., strata, levels of a, levels of b); leading axes are a batch. NumPy tables are summed by NumPy,
others by JAX; in float64, but inside a caller's jit or vmap in the ambient precision. Non-private: these statistics
have no bounded sensitivity.
"""

import contextlib
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaincc


class TableTests(NamedTuple):
    """One entry per table: the statistic, its degrees of freedom (0: nothing to test), and P(chi-squared >= it)."""

    statistic: Any
    degrees: Any
    p_value: Any


def chi_squared(tables) -> TableTests:
    """Pearson's chi-squared summed over strata.

    Degrees of freedom: (rows seen - 1)(columns seen - 1) summed over strata. No continuity correction.
    """
    return _summed(tables, lambda xp, counts, safe, expected: (counts - expected) ** 2 / safe)


def g_test(tables) -> TableTests:
    """Likelihood-ratio statistic 2 sum O log(O/E) over strata; degrees of freedom as in `chi_squared`."""
    return _summed(
        tables, lambda xp, counts, safe, expected: 2.0 * counts * xp.log(xp.where(counts > 0, counts, safe) / safe)
    )


def cochran_mantel_haenszel(tables) -> TableTests:
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
        _, counts = _floats(tables)
        return _expected(counts)


def _summed(tables, cells) -> TableTests:
    with _precision(tables):
        xp, counts = _floats(tables)
        expected = _expected(counts)
        # a cell that expects nothing holds nothing, so any divisor serves there
        safe = xp.where(expected > 0, expected, 1.0)
        value = xp.maximum(xp.sum(cells(xp, counts, safe, expected), axis=(-3, -2, -1)), 0.0)
        rows_seen, columns_seen = (xp.sum(counts.sum(axis) > 0, axis=-1) for axis in (-1, -2))
        degrees = xp.sum(xp.maximum(rows_seen - 1, 0) * xp.maximum(columns_seen - 1, 0), axis=-1)
        return TableTests(value, degrees, _tail(xp, value, degrees))


def _expected(counts):
    size = counts.sum((-2, -1), keepdims=True)
    one = np.maximum(size, 1.0) if isinstance(size, np.ndarray) else jnp.maximum(size, 1.0)
    return counts.sum(-1, keepdims=True) * counts.sum(-2, keepdims=True) / one


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
