"""Concordance within strata: Kendall's S, conditional Kendall U, Spearman, and their null variances.

Theory: docs/theory/conditional_kendall.md, docs/theory/spearman.md. Symbols: S_i = concordant minus discordant pairs
of stratum i, n_i its size, A_j = #{k: a_k < a_j} - #{k: a_k > a_j} within the stratum (so tied
values share a score); p, q the margin fractions. Counts are int64 and sums of third powers float64,
whatever the ambient precision.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdp._base.kept_programs import kept_jit
from jaxdp._base.layout import automatic_layout
from jaxdp._base.types import Array

KENDALL_OFFSET = 2.5  # divisor n_i + 5/2 keeps the optimal weights 9 n (n-1)/(2 (2n+5)) of Korn


class Strata(NamedTuple):
    """Summaries of each stratum (leading axes may batch); empty strata are all zero.

    size: n_i. s: S_i; both exact int64. cubes_a, cubes_b: sum over levels of (count)^3 of each margin, ties_a, ties_b
    of (count)^2.
    product: sum A_j B_j. squares_a, squares_b: sum A_j^2, sum B_j^2; all float64, exact below 2^53.
    """

    size: jax.Array
    s: jax.Array
    cubes_a: jax.Array
    cubes_b: jax.Array
    product: jax.Array
    squares_a: jax.Array
    squares_b: jax.Array
    ties_a: jax.Array
    ties_b: jax.Array


@automatic_layout
def kendall_s(a: Array, b: Array) -> jax.Array:
    """Kendall's S = concordant minus discordant pairs of a, b (n,), exact int64, in O(n log n).

    Ties count in neither. |S| <= n(n-1)/2. Sensitivity under replace-one
    (docs/theory/conditional_kendall.md#kendalls-s-and-tau): 2(n - 1), n - 1 if both variables are binary.
    """
    _same_length(a, b)
    with jax.enable_x64(True):
        return jnp.sum(strata_of_records(a, b).s)


@automatic_layout
def kendall_tau(a: Array, b: Array) -> jax.Array:
    """Kendall's tau-a = 2 S/(n(n - 1)), 0 for n < 2; sensitivity 4/n under replace-one."""
    n = jnp.shape(a)[0]
    return _as_default_float(kendall_s(a, b) * (2.0 / max(n * (n - 1), 1)))


@automatic_layout
def conditional_kendall(a: Array, b: Array, block: Array) -> jax.Array:
    """U = sum over blocks of S_i/(n_i + 5/2), as a float: the default conditional Kendall statistic.

    a, b, block: arrays (n,); records with equal `block` form a stratum.
    Sensitivity (docs/theory/conditional_kendall.md#sensitivity): 3 under replace-one, 3/2 under add-or-remove-one; see
    `u_bound`.
    """
    _same_length(a, b, block)
    with jax.enable_x64(True):
        u = kendall_u(strata_of_records(a, b, block))
    return _as_default_float(u)


@automatic_layout
def spearman(a: Array, b: Array) -> jax.Array:
    """Tie-safe Spearman rho = 3 sum A_i B_i/(n(n^2 - 1)), 0 for n < 2; sensitivity 6/(n + 1)."""
    _same_length(a, b)
    with jax.enable_x64(True):
        size = jnp.shape(a)[0]
        rho = 3.0 * jnp.sum(strata_of_records(a, b).product) / max(size * (size**2 - 1.0), 1.0)
    return _as_default_float(rho)


@automatic_layout
def conditional_spearman(a: Array, b: Array, block: Array) -> jax.Array:
    """U_rho = sum over blocks of (n_i - 1) rho_i, as a float (docs/theory/spearman.md#sensitivity)."""
    _same_length(a, b, block)
    with jax.enable_x64(True):
        u = spearman_u(strata_of_records(a, b, block))
    return _as_default_float(u)


def strata_of_table(table, kendall_only: bool = False) -> Strata:
    """Summaries of each stratum from tables (..., strata, levels of a, levels of b) of counts.

    NumPy tables are summed by NumPy (no compilation), others by JAX. Floating-point tables, such as
    noisy counts, keep their values. kendall_only: NumPy tables skip the sums that Spearman's statistics need
    (product, squares), which are then NaN.
    """
    if isinstance(table, np.ndarray):
        return _strata_of_table(_wide(table), np, kendall_only)
    with jax.enable_x64(True):
        return _strata_of_device_table(_wide(jnp.asarray(table)))


def _wide(table):
    return table.astype(np.float64 if np.issubdtype(table.dtype, np.floating) else np.int64)


@kept_jit
def _strata_of_device_table(counts) -> Strata:
    return _strata_of_table(counts, jnp)


def _strata_of_table(counts, xp, kendall_only: bool = False) -> Strata:
    rows, columns = xp.sum(counts, -1), xp.sum(counts, -2)
    kendall = (
        xp.sum(rows, -1),
        xp.sum(counts * _lower_left_minus_lower_right(counts, xp), (-2, -1)),
        xp.sum(rows.astype(float) ** 3, -1),
        xp.sum(columns.astype(float) ** 3, -1),
    )
    ties = {"ties_a": xp.sum(rows.astype(float) ** 2, -1), "ties_b": xp.sum(columns.astype(float) ** 2, -1)}
    if kendall_only:
        return Strata(*kendall, np.nan, np.nan, np.nan, **ties)  # type: ignore[arg-type]
    score_a, score_b = _scores(rows, xp).astype(float), _scores(columns, xp).astype(float)
    return Strata(
        *kendall,
        product=xp.sum(counts * score_a[..., :, None] * score_b[..., None, :], (-2, -1)),
        squares_a=xp.sum(rows * score_a**2, -1),
        squares_b=xp.sum(columns * score_b**2, -1),
        **ties,
    )


def _lower_left_minus_lower_right(counts, xp):
    """Per cell: records with smaller a and smaller b, minus those with smaller a and larger b."""
    below = xp.cumsum(counts, -2) - counts
    left = xp.cumsum(below, -1) - below
    return 2 * left + below - xp.sum(below, -1, keepdims=True)


def concordance_of_cells(counts: np.ndarray) -> np.ndarray:
    """Per cell of (..., levels, levels): concordant minus discordant records, the derivative of S by the count."""
    above = counts[..., ::-1, ::-1]
    return _lower_left_minus_lower_right(counts, np) + _lower_left_minus_lower_right(above, np)[..., ::-1, ::-1]


def _scores(margin, xp):
    """#{smaller} - #{larger} of each level of a margin (..., levels)."""
    smaller = xp.cumsum(margin, -1) - margin
    return 2 * smaller + margin - xp.sum(margin, -1, keepdims=True)


def _namespace(strata: Strata):
    return np if isinstance(strata.size, np.ndarray | np.generic) else jnp


def strata_of_records(a, b, block: ArrayLike | None = None) -> Strata:
    """Summaries of each stratum from records: values a, b (n,) of any kind and block labels (n,).

    Arrays of length n, one slot per stratum, the rest zero. O(n log n): sorts, then one stable
    partition per bit of the rank to count inversions. Memory O(n).
    """
    with jax.enable_x64(True):
        a, b = jnp.asarray(a), jnp.asarray(b)
        block = jnp.zeros(a.shape[0], jnp.int32) if block is None else jnp.asarray(block)
        return _strata_of_records(a, b, block)


@kept_jit
def _strata_of_records(a, b, block) -> Strata:
    n = a.shape[0]
    start, size = _runs_of_records(block)
    start_a, equal_a = _runs_of_records(block, a)
    start_b, equal_b = _runs_of_records(block, b)
    _, equal_ab = _runs_of_records(start_a, start_b)  # starts are ranks within (block, value)
    order = jnp.lexsort((start_b, start_a))
    discordant = jnp.zeros(n, jnp.int64).at[order].set(_larger_before(start_b[order]))
    score_a = (2 * (start_a - start) + equal_a - size).astype(float)
    score_b = (2 * (start_b - start) + equal_b - size).astype(float)

    def total(v):
        return jax.ops.segment_sum(v, start, n)

    return Strata(
        size=total(jnp.ones(n, jnp.int64)),
        s=total(size - equal_a - equal_b + equal_ab) // 2 - 2 * total(discordant),
        cubes_a=total((equal_a**2).astype(float)),
        cubes_b=total((equal_b**2).astype(float)),
        product=total(score_a * score_b),
        squares_a=total(score_a**2),
        squares_b=total(score_b**2),
        ties_a=total(equal_a.astype(float)),
        ties_b=total(equal_b.astype(float)),
    )


def block_labels(columns):
    """One label per record, equal exactly where all of the columns are equal: int64 (n,)."""
    with jax.enable_x64(True):
        return _runs_of_records(*(jnp.asarray(column) for column in columns))[0]


def ranks(values):
    """For each value (n,), how many are smaller and how many equal it, int64."""
    with jax.enable_x64(True):
        return _runs_of_records(jnp.asarray(values))


@kept_jit
def _runs_of_records(*columns):
    """For each record, how many are smaller in lexicographic order of the columns, and how many equal it."""
    order = jnp.lexsort(tuple(reversed(columns)))
    n = order.shape[0]
    position = jnp.arange(n, dtype=jnp.int64)
    changed = jnp.zeros(n, bool)
    for column in columns:
        ordered = column[order]
        changed |= jnp.concatenate([jnp.ones(1, bool), ordered[1:] != ordered[:-1]])[:n]
    start = jax.lax.cummax(jnp.where(changed, position, 0))
    length = jax.ops.segment_sum(jnp.ones(n, jnp.int64), start, n)[start]

    def restore(v):
        return jnp.zeros(n, jnp.int64).at[order].set(v)

    return restore(start), restore(length)


def _larger_before(rank):
    """For each position j, #{i < j: rank_i > rank_j}; ranks are integers in 0, ..., n - 1.

    From the highest bit down, records with equal higher bits lie together in their old order, so a
    pair is counted once, at the highest bit where its ranks differ.
    """
    n = rank.shape[0]
    num_bits = max(1, (max(n, 1) - 1).bit_length())
    position = jnp.arange(n, dtype=jnp.int64)

    def split_by_bit(step, carry):
        rank, origin, count = carry
        shift = num_bits - 1 - step
        bit = (rank >> shift) & 1
        prefix = rank >> (shift + 1)
        starts = jnp.concatenate([jnp.ones(1, bool), prefix[1:] != prefix[:-1]])[:n]
        group = jax.lax.cummax(jnp.where(starts, position, 0))
        ones_before = jnp.cumsum(bit) - bit
        count = count.at[origin].add(jnp.where(bit == 0, ones_before - ones_before[group], 0))
        zeros_before = position - ones_before
        target = jnp.where(bit == 0, zeros_before, n - jnp.sum(bit) + ones_before)
        return rank.at[target].set(rank), origin.at[target].set(origin), count

    start = (rank.astype(jnp.int64), position, jnp.zeros(n, jnp.int64))
    return jax.lax.fori_loop(0, num_bits, split_by_bit, start)[2]


def kendall_u(strata: Strata, offset: float = KENDALL_OFFSET):
    """sum S_i/(n_i + offset) over the last axis; a stratum of fewer than two records gives 0."""
    xp = _namespace(strata)
    divisor = xp.where(strata.size > 1, strata.size + offset, 1.0)
    return xp.sum(strata.s / divisor, axis=-1)


def kendall_variance(strata: Strata):
    """Exact permutation variance of `kendall_u` given the margins of each stratum, ties included:
    sum n(n-1)/(n + 5/2)^2 ((n-2) x_a x_b/9 + y_a y_b/2), where x is the share of triples of records that are not all
    tied and y the share of pairs that are not tied (Kendall's formula).

    An arrival moves it by at most +1/3 and at least -0.023 (docs/theory/conditional_kendall.md#variance).
    """
    xp = _namespace(strata)
    n = xp.maximum(strata.size, 1).astype(float)
    # at least 1: nothing changes for counts, and noisy ones stay away from zero
    one_less, two_less = xp.maximum(n - 1.0, 1.0), xp.maximum(n - 2.0, 1.0)
    untied = [n**2 - ties for ties in (strata.ties_a, strata.ties_b)]
    pairs = [value / (n * one_less) for value in untied]
    triples = [
        (n**3 - cubes - 3.0 * value) / (n * one_less * two_less)
        for cubes, value in zip((strata.cubes_a, strata.cubes_b), untied, strict=True)
    ]
    inner = two_less * triples[0] * triples[1] / 9.0 + 0.5 * pairs[0] * pairs[1]
    return xp.sum(xp.where(strata.size > 1, n * one_less / (n + KENDALL_OFFSET) ** 2 * inner, 0.0), axis=-1)


def cmh_variance(strata: Strata):
    """Null variance of sum S_i/n_i for two binary variables: sum r1 r0 c1 c0/(n^2 (n-1)), the exact
    hypergeometric variance of the Cochran-Mantel-Haenszel numerator (r1 r0 = n^2 (1 - sum p^3)/3)."""
    xp = _namespace(strata)
    n = xp.maximum(strata.size, 2).astype(float)
    untied_a, untied_b = 1.0 - strata.cubes_a / n**3, 1.0 - strata.cubes_b / n**3
    return xp.sum(xp.where(strata.size > 1, n**2 / (9.0 * (n - 1.0)) * untied_a * untied_b, 0.0), axis=-1)


def spearman_u(strata: Strata):
    """sum (n_i - 1) rho_i = sum 3 sum A B/(n(n+1)) over the last axis."""
    xp = _namespace(strata)
    n = xp.maximum(strata.size, 1).astype(float)
    return xp.sum(3.0 * strata.product / (n * (n + 1.0)), axis=-1)


def spearman_variance(strata: Strata):
    """Permutation variance of `spearman_u`: sum 9 sum A^2 sum B^2/(n^2 (n+1)^2 (n-1)).

    Derivation: docs/theory/spearman.md#variance.
    """
    xp = _namespace(strata)
    n = xp.maximum(strata.size, 2).astype(float)
    # One factor at a time: the product of the two sums of squares would overflow int64 from n = 1e3.
    part_a = 3.0 * strata.squares_a / (n * (n**2 - 1.0))
    part_b = 3.0 * strata.squares_b / (n * (n**2 - 1.0))
    return xp.sum((n - 1.0) * part_a * part_b, axis=-1)


def paper_statistic(strata: Strata):
    """Definition 6 of the Priv-PC paper with signed S_i: sum 9 S_i/(2 n_i + 5) / sqrt(sum w_i),
    w_i = 9 n_i(n_i - 1)/(2(2 n_i + 5)); 0 where no stratum has two records."""
    xp = _namespace(strata)
    n = xp.maximum(strata.size, 1).astype(float)
    weight = xp.sum(9.0 * n * (n - 1.0) / (2.0 * (2.0 * n + 5.0)), axis=-1)
    numerator = xp.sum(9.0 * strata.s / (2.0 * n + 5.0), axis=-1)
    return xp.where(weight > 0, numerator / xp.sqrt(xp.where(weight > 0, weight, 1.0)), 0.0)


def _as_default_float(value):
    return value.astype(jnp.result_type(float))


def _same_length(*arrays) -> None:
    shapes = [jnp.shape(array) for array in arrays]
    if any(len(shape) != 1 for shape in shapes) or len(set(shapes)) != 1:
        raise ValueError(f"values and blocks must be arrays of one common length, got shapes {shapes}.")
