"""Cramer's V of a noisy table with its 95 % interval, from the release of a test: post-processing, no further cost.

Theory: docs/theory/effect_sizes.md#cramers-v. Symbols: N = noisy table (r, c) of n records, v = noise variance of a
cell, p, q = its margins, E = n p q'; D = departure from independence along which V grows, t = how far; Q = sum
(N - E)^2/(E + v), Q_V the same with v/16: its mean grows with V alone, whichever cells depart.
"""

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base.bisection import bisected
from jaxdp._base.bounded import bounded_jit
from jaxdp._base.display import listing
from jaxdp.data.columns import Column
from jaxdp.independence import effect_sizes
from jaxdp.statistics.tables import association_in_strata as strata
from jaxdp.statistics.tables import noisy_table_statistics as noisy

DRAWS = 400  # tables at each t, of the same random numbers
FURTHEST = 4.0  # t, about V: cells that have no records by then stay empty
STEPS = 20  # halvings of t
LITTLE = 1.0 / 16.0  # of the noise variance, in Q_V
FAINT = 3.0  # sds of the noise in the count of a level, below which it may be empty
MIN_SEEN = 0.5  # E/(E + v) of the cell that noise hides most, in that of the cell it hides least

NAME = "Cramer's V"
RARE, MERGED = "rare levels", "merged levels"
SENTENCES = {
    RARE: f"{NAME} is not given: beside the noise of this release the rarest levels have too few records together. "
    "Levels that are merged, more records or a larger epsilon would help."
}
TOLD_MERGED = (
    f"{NAME} counts {{}} as one with the commonest level of that column: beside the noise of this release too few "
    "records have it, or none."
)


def size(domain) -> str:
    """The name of the effect of two columns of levels: V where one has more than two."""
    return "" if all(column.levels == 2 for column in (*domain.x, *domain.y)) else NAME


def describe(x, y, interval, num_bins=None, in_strata=False) -> str:
    """What V is of, and what an interval that begins at 0 says; of two levels each what goes with what.

    x, y: the schema's rules of both columns. num_bins: quantile groups of a continuous one. in_strata: of
    given columns.
    """
    if effect_sizes.is_binary(x) and effect_sizes.is_binary(y):
        direction = effect_sizes.describe_direction(x, y, interval)
        return f" ({x.name} by {y.name}){direction}"
    given = " within the strata of the given columns" if in_strata else ""
    groups = [f"{num_bins} quantile groups" if rule.is_continuous else f"{len(rule.levels)} levels" for rule in (x, y)]
    names = " and ".join(f"{rule.name} ({group})" for rule, group in zip((x, y), groups, strict=True))
    told = f" of {names}{given}, from 0 (neither tells anything about the other) to 1 (one decides the other)"
    if interval is None or interval[0] > 0.0:
        return told
    most = f"{float(interval[1]):.3g}"
    return f"{told}. The interval begins at 0: no dependence is shown, and one stronger than {most} is ruled out"


class Path(NamedTuple):
    """Laws product + t departure (..., r, c), and random numbers (DRAWS, ..., r, c) of tables drawn from them.

    variance: of the noise of a cell (r, c), added up over the strata, 0 in those of a class that was merged into
    another. sums: noisy tables (m, ..., r, c) -> their departures, what independence expects, and Q (m,), whose noise
    variance is a part of that of the cells. classes: of the shorter side, where some were merged; default all of it.
    """

    product: jax.Array
    departure: jax.Array
    total: jax.Array
    variance: jax.Array
    normals: jax.Array
    noise: jax.Array
    sums: Callable
    classes: jax.Array | None = None

    @property
    def degrees(self):
        """What V^2 is divided by."""
        return (min(self.product.shape[-2:]) if self.classes is None else self.classes) - 1.0

    def law(self, t):
        found = jnp.maximum(self.product + t * self.departure, 0.0)
        return found / jnp.sum(found)

    def tables(self, t):
        """Noisy tables of n records with this law: counts with its variance and the skewness of counts."""
        law = self.law(t)[None]
        counts = self.total * law + jnp.sqrt(self.total * law) * self.normals
        counts = counts + (self.normals**2 - 1.0) / 6.0 * (law > 0.0)
        cells = tuple(range(1, law.ndim))
        counts = counts + law * (self.total - jnp.sum(counts, axis=cells, keepdims=True))
        return counts + self.noise

    def statistics(self, tables):
        """Q and Q_V; of two levels each their roots, with the sign of the departure along D."""
        corner, *found = self.sums(tables)
        if not self.signed:
            return found
        along = jnp.sign(corner * _pooled(self.departure)[0, 0])
        return [along * jnp.sqrt(one) for one in found]

    @property
    def signed(self) -> bool:
        """Whether there is one way to depart and its opposite."""
        return self.product.shape[-2:] == (2, 2)

    def size(self, t):
        """V at t; of two levels each the phi coefficient, in the direction of D."""
        law = self.law(t)
        product = _independent(law)
        away, expected = _pooled(law - product), _pooled(product)
        away = jnp.where(expected > 0.0, away**2 / jnp.maximum(expected, noisy.TINY), 0.0)
        return jnp.sign(t) * jnp.minimum(jnp.sqrt(jnp.sum(away) / self.degrees), 1.0)

    def beyond(self, t):
        """Whether a search for t ended where the path does, so that no law on it departs far enough."""
        return jnp.abs(t) > FURTHEST * (1.0 - 4.0 * 0.5**STEPS)


def _pooled(cells):
    """Cells (..., r, c) added up over the strata."""
    return jnp.sum(cells.reshape(-1, *cells.shape[-2:]), axis=0)


def _independent(law):
    """The law (..., r, c) with the same margins in each stratum and no dependence there."""
    rows, columns = jnp.sum(law, axis=-1), jnp.sum(law, axis=-2)
    whole = jnp.maximum(jnp.sum(rows, axis=-1), noisy.TINY)
    return rows[..., :, None] * columns[..., None, :] / whole[..., None, None]


def path_of(key, table, total, mechanism, sensitivity) -> Path:
    """The laws along the departure of a noisy table, by cells that noise hides the less: V = t before clipping.

    table: (r, c), or (K, r, c) of K strata, in each of which the cells depart by the same shares of what is expected.
    """
    variance = mechanism.variance(sensitivity)
    merged, classes = None, min(table.shape[-2:])
    if table.ndim == 2:
        merged = merged_classes(table, total, variance)
        variance, classes = merged.of(jnp.full(table.shape, variance)), merged.classes
        table, rows, columns = merged.fitted(merged.of(table), total)
        product = rows[:, None] * columns[None, :]
        shares = (table / total - product) / (product + variance / total + noisy.TINY)
        sums = functools.partial(_sums, total=total, variance=variance, merged=merged)
    else:
        key, key_split = jax.random.split(key)
        normals = jax.random.normal(key_split, (DRAWS + 1, len(table)))
        product = strata.expected_counts(table)
        product = product / jnp.maximum(jnp.sum(product), noisy.TINY)
        found, expected, noise = strata.departures_in_strata(table[None], variance)
        shares = (found / (expected + noise + noisy.TINY))[0]
        sums = functools.partial(_sums_in_strata, split=normals, variance=variance)
    away = jnp.broadcast_to(shares, product.shape) * product
    whole = jnp.maximum(jnp.sum(product, axis=(-2, -1), keepdims=True), noisy.TINY)
    rows, columns = (jnp.sum(product, axis=axis, keepdims=True) / whole for axis in (-1, -2))
    away = away - jnp.sum(away, axis=-1, keepdims=True) * columns
    away = away - jnp.sum(away, axis=-2, keepdims=True) * rows
    squared = jnp.sum(_pooled(away) ** 2 / jnp.maximum(_pooled(product), noisy.TINY)) / (classes - 1.0)
    key_counts, key_noise = jax.random.split(key)
    shape = (DRAWS, *table.shape)
    normals, noise = jax.random.normal(key_counts, shape), mechanism.noise(key_noise, sensitivity, shape)
    departure = away / jnp.sqrt(jnp.maximum(squared, noisy.TINY))
    noise = noise if merged is None else merged.of(noise)
    variance = variance * (table.size / math.prod(table.shape[-2:]))
    return Path(product, departure, total, variance, normals, noise, sums, classes)


class Merged(NamedTuple):
    """Classes of rows (r, r) and of columns (c, c) that are counted together: 1 where a level belongs to a class."""

    rows: jax.Array
    columns: jax.Array

    def of(self, tables):
        """Tables (..., r, c) with merged classes added up; 0 in the rows and columns of classes that left."""
        return self.rows @ tables @ self.columns.T

    @property
    def counts(self):
        """How many levels each cell's class has, (r, c): 0 where the class left."""
        return jnp.sum(self.rows, axis=1)[:, None] * jnp.sum(self.columns, axis=1)[None, :]

    @property
    def classes(self):
        """Classes of the shorter side."""
        return jnp.minimum(*(jnp.sum(jnp.sum(part, axis=1) > 0.0) for part in self))

    def fitted(self, tables, total):
        """As `noisy.fitted_margins`, of merged tables (..., r, c): what is missing is spread over the levels."""
        shift = total - jnp.sum(tables, axis=(-2, -1), keepdims=True)
        tables = tables + shift * jnp.broadcast_to(self.counts / jnp.sum(self.counts), tables.shape)
        rows, columns = (noisy.nearest_shares(jnp.sum(tables, axis=axis)) for axis in (-1, -2))
        kept = (jnp.sum(part, axis=1) > 0.0 for part in self)  # what rounding leaves of the others would be a cell
        return tables, *(
            jnp.where(jnp.broadcast_to(here, shares.shape), shares, 0.0)
            for here, shares in zip(kept, (rows, columns), strict=True)
        )


def merged_classes(table, total, variance) -> Merged:
    """Levels that noise hides, each counted with the commonest of its column, by the released table (r, c) alone.

    The rarest first, of the column where it is rarer beside even ones, until no cell is hidden; and levels that may be
    empty. Two classes are left.
    """

    def joined(_, merged):
        _, rows, columns = merged.fitted(merged.of(table), total)
        noise = variance * merged.counts
        unseen = hidden_cells(total * rows[:, None] * columns[None, :], noise)
        found = [
            _rarest_joined(part, total * shares, jnp.sum(noise, axis=axis))
            for axis, part, shares in zip((1, 0), merged, (rows, columns), strict=True)
        ]
        first = found[0].rarity <= found[1].rarity
        pairs = zip(merged, found, (first, ~first), strict=True)
        return Merged(
            *(
                jnp.where(jnp.isfinite(one.rarity) & ((unseen & chosen) | one.faint), one.joined, part)
                for part, one, chosen in pairs
            )
        )

    alone = Merged(*(jnp.eye(count, dtype=table.dtype) for count in table.shape))
    return jax.lax.fori_loop(0, sum(table.shape) - 4, joined, alone)


class _Joined(NamedTuple):
    """Classes of which the rarest counts with the commonest, how rare it is beside even ones, whether it may be empty.

    rarity: infinite where two classes are left.
    """

    joined: jax.Array
    rarity: jax.Array
    faint: jax.Array


def _rarest_joined(classes, counts, noise) -> _Joined:
    """counts: of the classes, released. noise: the variance in each of them."""
    kept = jnp.sum(classes, axis=1) > 0.0
    rarest, commonest = jnp.argmin(jnp.where(kept, counts, jnp.inf)), jnp.argmax(jnp.where(kept, counts, -jnp.inf))
    joined = classes.at[commonest].add(classes[rarest]).at[rarest].set(0.0)
    number = jnp.sum(kept)
    rarity = jnp.where(number > 2, counts[rarest] * number, jnp.inf)
    return _Joined(joined, rarity, counts[rarest] < FAINT * jnp.sqrt(noise[rarest]))


def _sums(tables, *, total, variance, merged):
    """Departure of the first cell, Q and Q_V of noisy tables (m, r, c) of merged classes."""
    tables, rows, columns = merged.fitted(tables, total)
    away = tables - jnp.sum(tables, axis=-1)[..., :, None] * jnp.sum(tables, axis=-2)[..., None, :] / total
    expected, variance = total * rows[..., :, None] * columns[..., None, :], jnp.broadcast_to(variance, tables.shape)
    q = (
        jnp.sum(away**2 / jnp.maximum(expected + variance * part, noisy.TINY), axis=(-2, -1)) for part in (1.0, LITTLE)
    )
    return away[..., 0, 0], *q


def _sums_in_strata(tables, *, split, variance):
    """The same of noisy tables (m, K, r, c), added up over the strata; Q is the statistic of the test."""
    q = strata.split_association(split[: len(tables)], tables, variance)
    found, expected, noise = strata.departures_in_strata(tables, variance)
    seen = jnp.sum(found**2 / jnp.maximum(expected + LITTLE * noise, noisy.TINY), axis=(-2, -1))
    return found[..., 0, 0], q, seen


def crossings(path: Path, conditions, count: int):
    """The t (count,) from which on each of so many conditions on tables at t holds; the ends where none does."""
    ends = jnp.full(count, FURTHEST), jnp.full(count, -FURTHEST if path.signed else 0.0)
    high, low = bisected(lambda t: jnp.diagonal(jax.vmap(conditions)(t)), *ends, STEPS)
    return 0.5 * (low + high)


def sized(key, null_p_value, table, total, mechanism, sensitivity, miss=effect_sizes.MISS):
    """(V, its interval) of a noisy table, from a test's p-value of no dependence; of two levels each phi.

    Levels that noise hides are merged. NaN where it hides the rarest cells all the same. The interval begins at 0
    exactly where the p-value is above `miss`.
    """
    path = path_of(key, table, total, mechanism, sensitivity)
    if table.ndim == 2:
        table = merged_classes(table, total, mechanism.variance(sensitivity)).of(table)
    # in one call: each further one would be compiled by itself
    of_both = jax.vmap(lambda t: path.statistics(jnp.concatenate([table[None], path.tables(t)])))
    q, q_v = of_both(jnp.array([0.0, FURTHEST]))
    value, plain, least = q[0, 0], q_v[0, 0], _quantile(q[0, 1:], miss)
    furthest = jnp.quantile(q_v[1, 1:], 0.5 * miss)

    def conditions(t):
        drawn, flat = path.statistics(path.tables(t))
        # on one side at no dependence, on both where a dependence of this size is found
        found = 1.0 if path.signed else jnp.clip((jnp.mean(drawn >= least) - miss) / (1.0 - miss), 0.0, 1.0)
        below = 0.5 * miss * found
        above, beneath = rank(drawn >= value), rank(flat <= plain)
        # Q of a departure that noise spread over hidden cells, or of large strata alone, is that of a larger V
        reached = (above > miss - below) | (rank(flat >= plain) > 0.5 * miss)
        return jnp.stack([above >= 0.5, reached, beneath <= below])

    estimate, low, high = crossings(path, conditions, 3)
    kept, step = effect_sizes.keeps_none(null_p_value, miss), FURTHEST * 0.5**STEPS
    if path.signed:
        low = jnp.where(kept, jnp.minimum(low, 0.0), jnp.maximum(low, step))
        high = jnp.maximum(high, jnp.where(kept, 0.0, step))
        side = jnp.sign(_pooled(path.departure)[0, 0])
    else:
        low, side = jnp.where(kept, 0.0, jnp.maximum(low, step)), jnp.ones(())
        estimate = jnp.where(estimate < 2.0 * step, 0.0, estimate)
    estimate = jnp.maximum(estimate, low)
    ends = side * jax.vmap(lambda end: _end(path, end, plain, furthest))(jnp.stack([low, jnp.maximum(high, estimate)]))
    interval = jnp.min(ends), jnp.max(ends)
    everything = effect_sizes.EVERYTHING * (2.0 if path.signed else 1.0)
    unknown = hidden(path) | (interval[1] - interval[0] >= everything)
    known = [jnp.where(unknown, jnp.nan, number) for number in (side * path.size(estimate), *interval)]
    return known[0], tuple(known[1:])


def _end(path: Path, t, q_v, least):
    """V at an end of the interval; past the path's end as much more as Q_V is than the least likely there.

    Where levels never meet, the last law on the path has the V of the table, which sampling may pass, and not 1.
    """
    if path.signed:
        return jnp.where(path.beyond(t), jnp.sign(t), path.size(t))
    further = jnp.sqrt(jnp.maximum(q_v / jnp.maximum(least, noisy.TINY), 1.0))
    return jnp.minimum(path.size(t) * jnp.where(path.beyond(t), further, 1.0), 1.0)


def rank(reached):
    """The share of the released table and of those drawn that reach it."""
    return (1.0 + jnp.sum(reached)) / (1.0 + DRAWS)


def notes(domain, table, total, mechanism, sensitivity) -> dict[str, str]:
    """Why there is no V of a noisy table, or which levels it counts as one, where that is so."""
    rare, merged = _is_rare(table, total, mechanism, sensitivity)
    if rare:
        return dict(SENTENCES)
    columns = [Column(), Column()] if domain is None else [domain.x[0], domain.y[0]]
    named = [
        f"level {column.level_names[level] if column.level_names else level + 1} of {column.name or role}"
        for part, column, role in zip(merged, columns, ("X", "Y"), strict=True)
        for level in np.flatnonzero(np.sum(part, axis=1) == 0.0)
    ]
    return {MERGED: TOLD_MERGED.format(listing(named))} if named else {}


@bounded_jit
def _is_rare(table, total, mechanism, sensitivity):
    """Whether noise hides what is left once levels were merged, and how they were (`Merged`), outside of strata."""
    path = path_of(jax.random.key(0), table, total, mechanism, sensitivity)
    if table.ndim == 2:
        return hidden(path), tuple(merged_classes(table, total, mechanism.variance(sensitivity)))
    return hidden(path), tuple(jnp.eye(count) for count in table.shape[-2:])


def critical(path: Path, miss):
    """What the first statistic, without its sign, exceeds with probability `miss` where nothing depends."""
    return _quantile(path.statistics(path.tables(0.0))[0], miss)


def _quantile(statistics, miss):
    return jnp.quantile(jnp.abs(statistics), 1.0 - miss)


def hidden(path: Path):
    """Whether noise hides the rarest cells far more than others, so that V may lie where Q does not see it."""
    return hidden_cells(path.total * _pooled(path.product), path.variance)


def hidden_cells(expected, variance):
    """The same of expected counts (r, c) and the variance of the noise in each, 0 in what is no cell."""
    seen, variance = expected / (expected + variance + noisy.TINY), jnp.asarray(variance)
    cells = (variance > 0.0) | (jnp.max(variance) == 0.0)
    return jnp.min(jnp.where(cells, seen, jnp.inf)) < MIN_SEEN * jnp.max(seen)


@bounded_jit  # run by themselves, its two hundred small programs cost an answer more than its release
def detectable(level, table, total, mechanism, sensitivity):
    """V that would have been found with power 0.8, along the released departure; NaN where noise hides rare cells."""
    path = path_of(jax.random.key(0), table, total, mechanism, sensitivity)  # of public numbers: any key will do
    least = critical(path, level)

    def conditions(t):
        found = jnp.mean(jnp.abs(path.statistics(path.tables(t))[0]) >= least) >= 1.0 - effect_sizes.MISSED
        return (found & (t > 0.0))[None]

    at = crossings(path, conditions, 1)[0]
    return jnp.where(hidden(path), jnp.nan, jnp.where(path.beyond(at), math.inf, path.size(at)))
