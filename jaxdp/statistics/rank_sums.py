"""Rank sums of groups, and the Kruskal-Wallis statistic in absolute values (Couch et al., 2019).

Symbols: r_i = rank of record i, ties at their mean; R_g = sum over group g of r_i - (n + 1)/2; KW_abs = (n - 1) sum_g
|R_g| / floor(n^2/4), the denominator being sum_i |r_i - (n + 1)/2| of values without ties. Of two groups R_0 = -R_1,
and theta = P(a value of group 1 is above one of group 0) + P(they are equal)/2 is 1/2 + R_1/(n_0 n_1). T = 12 sum_i
(r_i - (n + 1)/2)^2/(n^3 - n) is 1 without ties, 1 - sum (t^3 - t)/(n^3 - n) with t values equal, 0 if all are.
"""

import jax
import jax.numpy as jnp

from jaxdp.statistics import concordance

LOW_BITS = 20


def unit(num_records: int) -> float:
    """KW_abs over sum |R_g|; public."""
    return (num_records - 1.0) / max(num_records**2 // 4, 1)


def kw_abs(values, groups, num_groups: int):
    """KW_abs of values (n,) in groups 0, ..., num_groups - 1; sum |R_g| is a multiple of 1/2, exact in float64."""
    with jax.enable_x64(True):
        found = 0.5 * unit(jnp.shape(values)[0]) * jnp.sum(jnp.abs(_twice(values, groups, num_groups))).astype(float)
    return found.astype(jnp.result_type(float))


def signed(values, groups):
    """KW_abs of two groups 0 and 1, negative where the values of group 1 lie lower."""
    with jax.enable_x64(True):
        first, second = _twice(values, groups, 2)
        found = 0.5 * unit(jnp.shape(values)[0]) * (second - first).astype(float)
    return found.astype(jnp.result_type(float))


def tie_factor(values):
    """T of values (n,), in [0, 1]: what ties leave of the variance of every rank sum."""
    num_records = float(jnp.shape(values)[0])
    with jax.enable_x64(True):
        squares = _centred_twice(values) ** 2
        upper, lower = jnp.sum(squares >> LOW_BITS), jnp.sum(squares & (2**LOW_BITS - 1))  # no sum overflows
        total = upper.astype(float) * 2.0**LOW_BITS + lower.astype(float)
        found = 3.0 * total / max(num_records**3 - num_records, 1.0)
    return found.astype(jnp.result_type(float))


def _twice(values, groups, num_groups: int):
    """2 R_g of each group, (K,) int64."""
    return jax.ops.segment_sum(_centred_twice(values), jnp.asarray(groups), num_groups)


def _centred_twice(values):
    """2 (r_i - (n + 1)/2) = #{smaller} - #{larger}, int64."""
    start, equal = concordance.ranks(values)
    return 2 * start + equal - jnp.shape(values)[0]


def null_rank_sums(key, shares, ties, num_records: int, draws: int):
    """Draws (draws,) of sum_g |R_g| where the values say nothing about the groups, of these shares (K,) of n records.

    The normal limit of the rank sums, with their exact covariances T n^2 (n + 1)/12 (diag(p) - p p'); ties: T.
    """
    spread = jnp.sqrt(ties * num_records**2 * (num_records + 1.0) / 12.0)
    own = jnp.sqrt(shares)[None, :] * jax.random.normal(key, (draws, shares.shape[0]))
    return spread * jnp.sum(jnp.abs(own - shares[None, :] * jnp.sum(own, axis=1, keepdims=True)), axis=1)


def variance_of_second(centre, small, ties, num_records: int):
    """Variance of R_1 where theta = 1/2 + centre, small = size of the smaller group, for the p-value of that theta.

    docs/theory/kruskal_wallis.md#effect. At centre 0 that of equal laws, T n_0 n_1 (n + 1)/12, ties: T; from one sd of
    these laws on the largest that any two laws have, (n_0 n_1)^2 theta (1 - theta)/small; between, a mixture.
    """
    theta, product = 0.5 + centre, small * (num_records - small)
    alike = ties * product * (num_records + 1.0) / 12.0
    most = product * (num_records - small) * theta * (1.0 - theta)
    there = jnp.minimum(jnp.abs(centre) * product / jnp.sqrt(jnp.maximum(alike, 1e-12)), 1.0)
    return alike + there * (most - alike)


def largest_variance(total, num_records: int):
    """Largest variance of sum_g s_g R_g, signs s those of the means of the R_g, where sum_g |E R_g| is `total`, (k,).

    docs/theory/kruskal_wallis.md#several. The sum is 2 R of the groups of one sign taken together; over their share p
    of the records, (2 n_0 n_1)^2 theta (1 - theta)/small is largest.
    """
    share = jnp.linspace(0.02, 0.5, 25)[None]
    pairs = num_records**2 * share * (1.0 - share)
    centre = jnp.minimum(total[:, None] / (2.0 * pairs), 0.5)
    return jnp.max(4.0 * pairs**2 * (0.25 - centre**2) / (share * num_records), axis=1)
