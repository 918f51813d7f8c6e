"""Dependence in a table of counts with noise of known variance: chi-squared, and the rank correlation of its groups.

Symbols: N = noisy table (r, c) shifted to the total n; p, q = the shares nearest to its margins (a floor breaks the
level where a bin is nearly empty, cutting off at zero where many levels are rare, docs/theory/quantile_table.md#null);
E = n p q'; s, t = midrank scores under p and q; v = noise variance of a cell; R = Spearman's rank correlation with the
rows and columns as ties.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

TINY = 1e-12
NEAR_ONE = 0.999  # a noisy rank correlation is cut here before Fisher's transformation


class RankCorrelation(NamedTuple):
    """Fisher's z of a noisy rank correlation R, and its standard error with the noise in it; arrays of one shape."""

    z: jax.Array
    error: jax.Array

    @property
    def size(self):
        """|z| in standard errors: the statistic of a two-sided test of R = 0."""
        return jnp.abs(self.z) / self.error

    def interval(self, errors):
        """The R that are no further than so many errors from the estimate."""
        return jnp.tanh(self.z - errors * self.error), jnp.tanh(self.z + errors * self.error)


def fitted_margins(table, total):
    """(table shifted to this total, shares of rows (r,), shares of columns (c,)); table of shape (..., r, c)."""
    shift = (total - jnp.sum(table, axis=(-2, -1), keepdims=True)) / (table.shape[-2] * table.shape[-1])
    table = table + shift
    return table, nearest_shares(jnp.sum(table, axis=-1)), nearest_shares(jnp.sum(table, axis=-2))


def nearest_shares(sums):
    """The shares (..., k) nearest to noisy sums over their total; none where it is not above zero.

    One number is taken off all sums, those below it are 0. Cut off at zero instead, the noise of many rare levels would
    add to the total, and divided by it the frequent ones would be too rare.
    """
    total = jnp.maximum(jnp.sum(sums, axis=-1, keepdims=True), 0.0)
    ordered = -jnp.sort(-jax.lax.stop_gradient(sums), axis=-1)
    number = 1.0 + jax.lax.broadcasted_iota(ordered.dtype, ordered.shape, ordered.ndim - 1)
    excess = (jnp.cumsum(ordered, axis=-1) - total) / number
    count = jnp.sum(ordered > excess, axis=-1, keepdims=True)
    kept = sums > jnp.take_along_axis(excess, jnp.maximum(count - 1, 0), axis=-1)
    taken = (jnp.sum(jnp.where(kept, sums, 0.0), axis=-1, keepdims=True) - total) / jnp.maximum(count, 1)
    return jnp.where(kept, sums - taken, 0.0) / jnp.maximum(total, TINY)


def shares(sums):
    """Shares of noisy sums (..., k), clipped at zero, of their total."""
    kept = jnp.maximum(sums, 0.0)
    return kept / jnp.maximum(jnp.sum(kept, axis=-1, keepdims=True), TINY)


def chi_squared(table, total, noise_variance):
    """Q = sum (N - M)^2/(E + v) of noisy tables (..., r, c), E of the nearest shares and M of the margins as they are.

    A margin below 0 counts in M: cut off there, a level that nobody holds would leave all of its noise in N - M in half
    of the releases, and less in the null tables, whose margins are drawn from above 0.
    """
    away, expected = departures(table, total)
    return jnp.sum(away**2 / (expected + noise_variance), axis=(-2, -1))


def departures(table, total):
    """N - M and E (..., r, c) of noisy tables, which Q is made of."""
    table, rows, columns = fitted_margins(table, total)
    products = jnp.sum(table, axis=-1)[..., :, None] * jnp.sum(table, axis=-2)[..., None, :] / total
    return table - products, total * rows[..., :, None] * columns[..., None, :]


def rank_correlation(tables, total, noise_variance) -> RankCorrelation:
    """R of noisy tables (m, r, c), whatever the law of the cells (docs/theory/quantile_table.md#direction).

    Its error by the delta method: gradient g of R by the cells, variance sum N g^2 - (sum N g)^2/n + v sum g^2 with
    negative cells at 0.
    """
    return jax.vmap(functools.partial(_rank_correlation, total=total, noise_variance=noise_variance))(tables)


def _rank_correlation(table, *, total, noise_variance) -> RankCorrelation:
    found, slopes = jax.value_and_grad(_correlation_of_midranks)(table, total)
    cells = jnp.maximum(fitted_margins(table, total)[0], 0.0)
    cells = cells / jnp.maximum(jnp.sum(cells), TINY)
    sampling = total * (jnp.sum(cells * slopes**2) - jnp.sum(cells * slopes) ** 2)
    error = jnp.sqrt(jnp.maximum(sampling + noise_variance * jnp.sum(slopes**2), TINY))
    found = jnp.clip(found, -NEAR_ONE, NEAR_ONE)
    return RankCorrelation(jnp.arctanh(found), error / (1.0 - found**2))


def _correlation_of_midranks(table, total):
    """s'(N - E) t/(n sd_s sd_t) of one noisy table (r, c)."""
    table, rows, columns = fitted_margins(table, total)
    s, t = midranks(rows), midranks(columns)
    excess = jnp.sum(s[:, None] * (table - total * rows[:, None] * columns[None, :]) * t[None, :])
    spreads = [jnp.sum(shares * scores**2) for shares, scores in ((rows, s), (columns, t))]
    return excess / (total * jnp.sqrt(jnp.maximum(spreads[0] * spreads[1], TINY)))


def midranks(shares):
    """Scores (..., r) of ordered levels with these shares: their midranks, centred."""
    return jnp.cumsum(shares, axis=-1) - 0.5 * shares - 0.5
