"""Dependence in a table of counts with noise of known variance: chi-squared and linear-by-linear.

Symbols: N = noisy table (r, c) shifted to the total n; p, q = its margins, clipped at zero (and nowhere else: a floor
breaks the level where a bin is nearly empty, docs/theory/quantile_table.md#null); E = n p q'; s, t = midrank scores
under p and q; v = noise variance of a cell.
"""

import jax.numpy as jnp

TINY = 1e-12


def fitted_margins(table, total):
    """(table shifted to this total, shares of rows (r,), shares of columns (c,)); table of shape (..., r, c)."""
    shift = (total - jnp.sum(table, axis=(-2, -1), keepdims=True)) / (table.shape[-2] * table.shape[-1])
    table = table + shift
    return table, _shares(jnp.sum(table, axis=-1)), _shares(jnp.sum(table, axis=-2))


def _shares(sums):
    kept = jnp.maximum(sums, 0.0)
    return kept / jnp.maximum(jnp.sum(kept, axis=-1, keepdims=True), TINY)


def chi_squared_and_linear(table, total, noise_variance):
    """(Q, L) of noisy tables (..., r, c).

    Q = sum (N - E)^2/(E + v); L = |s'(N - E) t|/sqrt(n var_s var_t + v |s|^2 |t|^2).
    """
    table, rows, columns = fitted_margins(table, total)
    expected = total * rows[..., :, None] * columns[..., None, :]
    excess = table - expected
    chi_squared = jnp.sum(excess**2 / (expected + noise_variance), axis=(-2, -1))
    s, t = midranks(rows), midranks(columns)
    weighted = jnp.sum(s[..., :, None] * excess * t[..., None, :], axis=(-2, -1))
    spread = total * jnp.sum(rows * s**2, -1) * jnp.sum(columns * t**2, -1)
    noise = noise_variance * jnp.sum(s**2, -1) * jnp.sum(t**2, -1)
    return chi_squared, jnp.abs(weighted) / jnp.sqrt(jnp.maximum(spread + noise, TINY))


def midranks(shares):
    """Scores (..., r) of ordered levels with these shares: their midranks, centred."""
    return jnp.cumsum(shares, axis=-1) - 0.5 * shares - 0.5
