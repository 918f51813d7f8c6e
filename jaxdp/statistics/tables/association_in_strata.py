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
    return _association(*differences_in_strata(key, tables, noise_variance))


def _association(found, spread):
    return jnp.sum(found**2 / jnp.maximum(spread, TINY), axis=(-2, -1))


def differences_in_strata(key, tables, noise_variance):
    """S and V (m, r, c) of noisy tables (m, K, r, c).

    The noise of a total is split in two parts that are uncorrelated, by normal numbers drawn with `key`: one part
    stands in the weights, the other in U. So the mean of S is zero under independence for all margins, however few
    records a stratum has (docs/theory/stratified_table.md#centre).
    """
    return _weighted(jax.random.normal(key, tables.shape[:-2]), tables, noise_variance)[:2]


def departures_in_strata(normals, tables, noise_variance):
    """T, S/(r c), what independence expects beside it, and the variance of its noise, of tables (m, K, r, c).

    In strata with many records the last three are sums over the strata: of the departures in records, of the expected
    counts, and of the noise variances of a cell. Of a smaller one a part counts, as in S. normals: (m, K), that split
    the noise of the totals.
    """
    found, spread, part, moved = _weighted(normals, tables, noise_variance)
    expected, noise = jnp.sum(part**2 * expected_counts(moved), axis=-3), jnp.sum(part**2, axis=-3)
    return _association(found, spread), found / _cells(tables), expected, noise_variance * noise


def _cells(tables) -> int:
    return tables.shape[-2] * tables.shape[-1]


def _weighted(normals, tables, noise_variance):
    """S, V, the part (m, K, 1, 1) to which a stratum counts, and the tables with one part of the noise of totals."""
    added = jnp.sqrt(noise_variance * _cells(tables)) * normals
    totals = jnp.sum(tables, axis=(-2, -1))
    weights = 1.0 / (jnp.maximum(totals + added, 0.0) / _cells(tables) + jnp.maximum(noise_variance, 1.0))
    tables, totals = tables - (added / _cells(tables))[..., None, None], totals - added
    rows, columns = jnp.sum(tables, axis=-1), jnp.sum(tables, axis=-2)
    away = tables * totals[..., None, None] - rows[..., :, None] * columns[..., None, :]
    variance = _variance(totals, rows, columns, noise_variance)
    weights = weights[..., None, None]
    part = weights * jnp.maximum(totals, 0.0)[..., None, None] / _cells(tables)
    return jnp.sum(weights * away, axis=-3), jnp.sum(weights**2 * variance, axis=-3), part, tables


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
    records = n**3 * _outer(spread_p, spread_q)
    return records + n**2 * v * (_outer(lean_p, lean_q) + added) + 2 * (r - 1) * (c - 1) * v**2


def _over_strata(sums):
    """Shares of margins (..., K, r) added up over the strata."""
    whole = jnp.sum(sums, axis=-2, keepdims=True)
    return jnp.clip(whole / jnp.maximum(jnp.abs(jnp.sum(whole, axis=-1, keepdims=True)), 1.0), 0.0, 1.0)


def _outer(a, b):
    return a[..., :, None] * b[..., None, :]
