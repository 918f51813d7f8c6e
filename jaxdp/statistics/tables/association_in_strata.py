"""Association of rows and columns added up over the strata of noisy tables, centred whatever the margins are.

Symbols: N = noisy counts (..., K, r, c) of K strata, N_i, N_j, n = their noisy margins and total in a stratum; v =
noise variance of a cell; U = N_ij n - N_i N_j, w = weight of a stratum; S = sum over strata of w U, V = its variance if
x and y are independent within each stratum (docs/theory/stratified_table.md).
"""

import jax
import jax.numpy as jnp

from jaxdp.statistics.tables.noisy_table_statistics import TINY, shares

FLOOR = 3.0  # sds of its noise: a smaller total of a stratum does not divide its margins


def expected_counts(tables):
    """Counts (..., K, r, c) under independence within each stratum, by the noisy margins, clipped at zero."""
    rows, columns = shares(jnp.sum(tables, axis=-1)), shares(jnp.sum(tables, axis=-2))
    totals = jnp.maximum(jnp.sum(tables, axis=(-2, -1)), 0.0)
    return totals[..., None, None] * rows[..., :, None] * columns[..., None, :]


def association(key, tables, noise_variance):
    """T = sum over cells (i, j) of S^2/V: (m,) of noisy tables (m, K, r, c)."""
    return split_association(jax.random.normal(key, tables.shape[:-2]), tables, noise_variance)


def split_association(normals, tables, noise_variance):
    """T by the normal numbers (m, K) that split the noise of the totals."""
    found, spread = differences_in_strata(normals, tables, noise_variance)
    return jnp.sum(found**2 / jnp.maximum(spread, TINY), axis=(-2, -1))


def differences_in_strata(normals, tables, noise_variance):
    """S and V (m, r, c) of noisy tables (m, K, r, c).

    The noise of a total is split in two parts that are uncorrelated, by normal numbers (m, K): one part stands in the
    weights, the other in U. So the mean of S is zero under independence for all margins, however few records a stratum
    has (docs/theory/stratified_table.md#centre).
    """
    added = jnp.sqrt(noise_variance * _cells(tables)) * normals
    totals = jnp.sum(tables, axis=(-2, -1))
    weights = 1.0 / (jnp.maximum(totals + added, 0.0) / _cells(tables) + jnp.maximum(noise_variance, 1.0))
    tables, totals = tables - (added / _cells(tables))[..., None, None], totals - added
    rows, columns = jnp.sum(tables, axis=-1), jnp.sum(tables, axis=-2)
    away = tables * totals[..., None, None] - rows[..., :, None] * columns[..., None, :]
    variance = _variance(totals, rows, columns, noise_variance)
    weights = weights[..., None, None]
    return jnp.sum(weights * away, axis=-3), jnp.sum(weights**2 * variance, axis=-3)


def departures_in_strata(tables, noise_variance):
    """Departures in records, what independence expects, and the noise variance of a cell, added up over the strata.

    tables: (m, K, r, c). Each stratum counts in full, however much noise hides it: where small strata depart less than
    large ones, T, in which they count in part, is that of a larger dependence. A total below FLOOR sds of its noise
    does not divide.
    """
    least = FLOOR * jnp.sqrt(noise_variance * _cells(tables))
    totals = jnp.maximum(jnp.sum(tables, axis=(-2, -1)), jnp.maximum(least, TINY))[..., None, None]
    rows, columns = jnp.sum(tables, axis=-1), jnp.sum(tables, axis=-2)
    found = tables - rows[..., :, None] * columns[..., None, :] / totals
    added = jnp.sum(found, axis=-3), jnp.sum(expected_counts(tables), axis=-3)
    return *added, jnp.full_like(added[0], noise_variance * tables.shape[-3])


def _cells(tables) -> int:
    return tables.shape[-2] * tables.shape[-1]


def _variance(totals, rows, columns, v):
    """Variance (..., K, r, c) of U: of the records, of the noise beside them, and of products of noise."""
    r, c = rows.shape[-1], columns.shape[-1]
    safe = jnp.maximum(totals, jnp.maximum(FLOOR * jnp.sqrt(v * r * c), TINY))[..., None]
    lack = safe - totals[..., None]
    p, q = (sums + lack * _over_strata(sums) for sums in (rows, columns))
    (p, own_p), (q, own_q) = ((p / safe, v * c * (1 - 1 / r) / safe**2), (q / safe, v * r * (1 - 1 / c) / safe**2))
    spread_p, spread_q = (jnp.clip(s * (1 - s) + own, 0.0, 0.25) for s, own in ((p, own_p), (q, own_q)))
    lean_p = jnp.maximum(1 - 2 * p + r * p**2 - r * own_p, 1 - 1 / r)
    lean_q = jnp.maximum(1 - 2 * q + c * q**2 - c * own_q, 1 - 1 / c)
    added = _outer((1 - r * p) ** 2, (1 - c * q) ** 2) / (r * c)
    n = jnp.maximum(totals, 0.0)[..., None, None]
    records = n**3 * _outer(spread_p, spread_q) * n / jnp.maximum(n - 1.0, 0.5)  # given the margins
    return records + n**2 * v * (_outer(lean_p, lean_q) + added) + 2 * (r - 1) * (c - 1) * v**2


def _over_strata(sums):
    """Shares of margins (..., K, r) added up over the strata."""
    whole = jnp.sum(sums, axis=-2, keepdims=True)
    return jnp.clip(whole / jnp.maximum(jnp.abs(jnp.sum(whole, axis=-1, keepdims=True)), 1.0), 0.0, 1.0)


def _outer(a, b):
    return a[..., :, None] * b[..., None, :]
