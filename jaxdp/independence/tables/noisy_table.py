"""What tests on one noisy r x c table share: the table, its sensitivity, projection, and simulated null tables.

Of persons with several rows, how much less than tables of single rows theirs vary is released beside them. Symbols:
p, q = margins of a stratum of the released table, e_a = unit vector of a row's level, u_i = mean over draws of
(e_a - p)(e_b - q)' of person i, G = sum |u_i|^2 or the same of the rows or columns of u_i for one level, whichever is
largest over what it is for single rows, D = G over that (docs/theory/persons.md#tables); s, t = midranks of ordered
levels, centred.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import core, null_laws
from jaxdp._base import check
from jaxdp._base.bounded import bounded_jit
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Interpretation, Norm, PrivateTest, Relation, Sensitivity, method_of
from jaxdp.data.person_rows import DRAWS, PersonRows
from jaxdp.independence import effect_sizes, noise_law
from jaxdp.independence.tables import cramers_v
from jaxdp.mechanisms import Laplace
from jaxdp.results import Release, bare
from jaxdp.spec import Columns, TestSpec, two_columns_of_levels
from jaxdp.statistics import sums
from jaxdp.statistics.tables import contingency
from jaxdp.statistics.tables.noisy_table_statistics import TINY, midranks, nearest_shares, shares

SPREAD = 4.0  # |u|^2 <= |e_a - p|^2 |e_b - q|^2 <= 2 * 2: what one person adds to G, with any rows
SHARE = 0.15  # of the budget of a table, for G
HEAVIEST = 3.0 * SPREAD  # what one person adds to the sum of a level, at most; all if 3 % of the records have it
SEEN = 3.0  # sds of its noise that the records of a level must be, for its sum to say something
MAX_NOISE = 0.07  # of G for single rows of evenly spread levels: with more of it one row of each person counts
RAISED = 256  # by which the rounding of a square may be raised with it: of a level that the table's noise does not hide
UNIT_ROUNDOFF = 2.0**-53
BLOCK_PERSONS = 1 << 14  # of whom G is added up at a time, of tables in chunks


def shows_spread(mechanism: Any, shape: tuple[int, int], num_records: int) -> bool:
    """Whether noise leaves G to be seen, by public numbers; a traced budget counts as epsilon 1."""
    part = mechanism.share(SHARE)
    scale = part.scale(Sensitivity(SPREAD, part.norm, Relation.REPLACE_ONE))
    if not check.is_concrete(scale):
        scale = SPREAD / SHARE
    even = num_records * (1.0 - 1.0 / shape[0]) * (1.0 - 1.0 / shape[1])
    return bool(np.asarray(scale) <= MAX_NOISE * even)


def on_table(stage: SpreadOfPersons, query: Any, released: Release) -> SpreadOfPersons:
    """The second stage, with the table that the first released."""
    return dataclasses.replace(stage, table=query, released=bare(released))


@frozen_pytree
class SpreadOfPersons(PrivateTest):
    """Second stage of a test of one noisy table: G of persons, by which the table is judged.

    Statistic: G = sum over persons of |mean over draws of (e_a - p)(e_b - q)'|^2, given the released margins, or the
    same of one level of x or y, as a share of what it is for single rows, or of two ordered columns that of their
    midranks, by which the rank correlation varies: the largest, in units that the released table decides.
    Sensitivity: 4, one person replaced with all rows (docs/theory/persons.md#tables). Privacy: that of the mechanism.
    P-value, effect: those of the table of m/D records: the table over D, with the noise of a cell over D.

    table: the test of the table. released: its release.
    """

    table: Any = None
    released: Any = None

    method: ClassVar[str] = "SpreadOfPersons"
    averages_rows: ClassVar[bool] = True
    uses_z: ClassVar[bool] = True  # where its table does, whose own word was asked before
    gradient_free = null_laws.RANK

    def statistic(self, key, data):
        """G of persons with one row each."""
        return self.statistic_of_persons(key, PersonRows(jax.tree.map(lambda leaf: leaf[:, None], data)))

    def statistic_of_persons(self, key, rows):
        """G, of the levels of each draw."""
        return self._largest(self._sums(*jax.vmap(self.table.codes_of, in_axes=1)(rows.draws)))

    def partial_of_persons(self, rows, num_persons):
        """The cell of each draw of each person, int (m, draws): 0 for the rows that other chunks hold."""
        levels = self.table.all_levels
        found = np.zeros((num_persons, rows.drawn.shape[1]), np.min_scalar_type(math.prod(levels) - 1))
        row, draw = np.nonzero(rows.drawn)
        found[rows.persons[row], draw] = sums.joint_code(self.table.columns(rows.rows), levels)[row]
        return found

    def finish_of_persons(self, totals):
        *counts, r, c = self.table.all_levels
        shape = (math.prod(counts), r, c)
        parts = [
            _sums_of_cells(self, *np.unravel_index(totals[start : start + BLOCK_PERSONS].T, shape))
            for start in range(0, len(totals), BLOCK_PERSONS)
        ]
        return self._largest(jax.tree.map(lambda *some: sum(some), *parts))

    def _sums(self, stratum, a, b):
        """The sums over persons of which G is the largest, of levels (draws, m): all, of each level, of ranks.

        Without a table for each person: |u|^2 is a mean over pairs of draws of products of two inner products.
        """
        p, q = self._margins()
        count = len(a)

        def add(number, found):
            one, other = number // count, number % count
            here, there = stratum[one], stratum[other]
            of_p, of_q = _products(p[here], p[there], a[one], a[other]), _products(q[here], q[there], b[one], b[other])
            by_row, by_column = found
            rows_of, columns_of = of_p * jnp.sum(of_q, axis=1)[:, None], of_q * jnp.sum(of_p, axis=1)[:, None]
            return by_row + rows_of, by_column + columns_of

        zero = jnp.zeros((a.shape[1], p.shape[1]), float), jnp.zeros((a.shape[1], q.shape[1]), float)
        by_row, by_column = jax.lax.fori_loop(0, count * count, add, zero)
        found = [jnp.sum(jnp.clip(jnp.sum(by_row, axis=1) / count**2, 0.0, SPREAD))]
        for squares, (raised, most) in zip((by_row, by_column), self._levels(), strict=True):
            found.append(jnp.sum(jnp.clip(squares / count**2 * raised[None], 0.0, most[None]), axis=0))
        if self.table.counts_ranks():
            s, t = midranks(p), midranks(q)
            ranks = jnp.mean(s[stratum, a] * t[stratum, b], axis=0) ** 2
            own = self._of_single(jnp.sum(p * s**2, axis=1) * jnp.sum(q * t**2, axis=1))
            raised = ranks * self._usual() / jnp.maximum(own, TINY)
            found.append(jnp.sum(jnp.clip(raised, 0.0, SPREAD)))
        return found

    def _largest(self, of_persons):
        return functools.reduce(jnp.maximum, map(jnp.max, of_persons)) / self._unit()

    def _usual(self):
        """The mean of |u|^2 over single rows."""
        p, q = self._margins()
        return self._of_single((1.0 - jnp.sum(p**2, axis=1)) * (1.0 - jnp.sum(q**2, axis=1)))

    def _levels(self):
        """Of the levels of x and of y: by what their squares are raised, so that their mean over single rows is the
        usual one, and the most that one person adds then, cut at `HEAVIEST`; 0 for levels that the table's noise hides.
        """
        p, q = self._margins()
        cells, usual = self._counts(), self._usual()
        noise = self.table.mechanism_in_force().variance(self.released.sensitivity)
        found = []
        for own, other in ((p, q), (q, p)):
            squared = jnp.sum(other**2, axis=1, keepdims=True)
            raised = usual / jnp.maximum(self._of_single(own * (1.0 - own) * (1.0 - squared)), TINY)
            longest = jnp.max(1.0 - 2.0 * other + squared, axis=1, keepdims=True)  # |e_b - q|^2
            most = raised * jnp.max(jnp.maximum(1.0 - own, own) ** 2 * longest, axis=0)
            records = jnp.sum(cells) * self._of_single(own)
            seen = records > SEEN * jnp.sqrt(noise * cells.shape[0] * other.shape[1])
            found.append((raised, jnp.where(seen, jnp.minimum(most, HEAVIEST), 0.0)))
        return found

    def _unit(self):
        """By what G is divided, so that one person moves it by no more than `SPREAD`."""
        return jnp.maximum(1.0, jnp.max(jnp.concatenate([most for _, most in self._levels()])) / SPREAD)

    def _of_single(self, in_strata):
        """The mean over the records of what this is in each stratum, the first axis."""
        return jnp.tensordot(shares(jnp.sum(self._counts(), axis=(1, 2))), in_strata, 1)

    def _margins(self):
        """p (strata, r) and q (strata, c)."""
        cells = self._counts()
        return nearest_shares(jnp.sum(cells, axis=2)), nearest_shares(jnp.sum(cells, axis=1))

    def _counts(self):
        cells = jnp.asarray(self.released.value, float)
        return cells.reshape(-1, *cells.shape[-2:])

    def sensitivity(self, num_records):
        return Sensitivity(
            bound=SPREAD,
            norm=self.mechanism_in_force().norm,
            relation=Relation.REPLACE_ONE,
            error=HEAVIEST * num_records * (num_records + RAISED) * UNIT_ROUNDOFF,
            lower=0.0,
            upper=SPREAD * num_records,
        )

    def of_records(self, release):
        """The test of the table, and its release as of the m/D records that it varies as."""
        guard = self.mechanism_in_force().scale(release.sensitivity)
        part = self._unit() * (release.value + guard) / (release.num_records * jnp.maximum(self._usual(), TINY))
        part = jnp.clip(part, 1.0 / DRAWS, 1.0)
        larger = dataclasses.replace(
            self.released,
            value=self.released.value / part,
            sensitivity=jax.tree.map(lambda number: number / part, self.released.sensitivity),
            num_records=release.num_records / part,
        )
        return self.table, larger

    def interpret(self, key, release):
        """As the test of the table has it, but for a table, which is told as it was released."""
        table, larger = self.of_records(release)
        found = table.interpret(key, larger)
        return found._replace(estimate=self.released.value) if found.estimate is larger.value else found


@bounded_jit
def _sums_of_cells(stage, stratum, a, b):
    return stage._sums(stratum, a, b)


def _products(here, there, one, other):
    """Entries of e_one - p times those of e_other - p', (n, levels), p and p' in the rows of `here` and `there`."""
    own, others = (jax.nn.one_hot(codes, here.shape[1], dtype=here.dtype) for codes in (one, other))
    return (own - here) * (others - there)


# A replaced record leaves one cell and enters another: +-1 in two cells.
MANY_RECORDS = 1 << 17  # from here on null tables are drawn cell by cell
of_noisy_tables = functools.partial(  # a spec of a test of two coded columns
    TestSpec,
    columns=Columns.CODES,
    alternatives="any dependence of two discrete columns",
    effect="phi coefficient of a 2 x 2 table",
    describe_effect=lambda test, x, y, interval: cramers_v.describe(x[0], y[0], interval),
    size=cramers_v.size,
    accepts=two_columns_of_levels,
    theory="docs/theory/table_tests.md",
)
SIZE_STREAM = 2  # of the draws of tables of a dependence
TOO_FEW = "few expected records"
TOO_FEW_TOLD = (
    effect_sizes.NOTHING + "by the released table independence expects at most {most:g} records in some cell, where "
    "this test does not reject, so that the p-value is 1. What would help: merge or leave out the rarest level, more "
    "records, or quantile-table, which has no such rule."
)
MOVE = {Norm.L1: 2.0, Norm.L2: math.sqrt(2.0), Norm.LINF: 1.0}


@frozen_pytree
class NoisyCounts(PrivateTest):
    """Base: releases an r x c table of counts with noise per cell; all else is post-processing.

    levels: public numbers of rows and columns (r, c). num_null: Monte Carlo null tables.
    by_person: of persons with several rows, releases the mean table of all rows and, by 15 % of the budget, how much
        less it varies than a table of single rows (docs/theory/persons.md#tables). False: one row of each person
        counts, drawn at random. Default: where noise leaves that to be seen, by numbers that are public.
    """

    levels: tuple[int, int] | None = jax.tree.static(default=None)
    num_null: int = jax.tree.static(default=199)
    by_person: bool | None = jax.tree.static(default=None)
    averaged: bool = jax.tree.static(default=False)  # filled in for the stage that releases the mean table

    default_mechanism = Laplace

    def __post_init__(self):
        super().__post_init__()
        check.at_least(19, num_null=self.num_null)
        if self.levels is not None:
            check.all_at_least(2, levels=self.levels)

    @property
    def shape(self) -> tuple[int, int]:
        """(r, c)."""
        if self.levels is None:
            raise ValueError(f"{method_of(self)} needs the public numbers of levels: give levels=(r, c).")
        return self.levels

    def sensitivity(self, num_records):
        norm = self.mechanism_in_force().norm
        bare = Sensitivity(MOVE[norm], norm, Relation.REPLACE_ONE)
        room = noise_law.margin(self.mechanism_in_force(), bare)
        return dataclasses.replace(bare, lower=-room, upper=num_records + room)

    def columns(self, data) -> list:
        """The columns of levels that make the table, in its order: strata, x, y."""
        return [data.x, data.y]

    @property
    def all_levels(self) -> tuple[int, ...]:
        """Levels of `columns`."""
        return self.shape

    def codes_of(self, data):
        """Stratum (n,), level of x and level of y of each record."""
        *strata, x, y = self.columns(data)
        *counts, r, c = self.all_levels
        stratum = contingency.joint_code(strata, counts) if strata else jnp.zeros(len(x), jnp.int32)
        return stratum, contingency.as_codes(x, r), contingency.as_codes(y, c)

    def statistic(self, key, data):
        """Counts (r, c) as floats; (K, r, c) of K strata."""
        return self.finish(contingency.table(self.columns(data), self.all_levels))

    def statistic_of_persons(self, key, rows):
        """The mean table, or that of one row of each person."""
        if self.averaged:
            return super().statistic_of_persons(key, rows)
        return self.statistic(key, jax.tree.map(lambda leaf: leaf[:, 0], rows.draws))

    def finish(self, totals):
        return totals.astype(float)

    def of_persons(self, shapes):
        if self.by_person is not None or self.averaged:
            return self
        table: Any = core.specialize(self, shapes)
        table = table.second if isinstance(table, core.Sequential) else table
        shown = shows_spread(table.mechanism_in_force(), table.shape, shapes.x.shape[0])
        return dataclasses.replace(self, by_person=shown)

    def counts_ranks(self) -> bool:
        """Whether the rank correlation of the levels is a part of the p-value."""
        return False

    def every_row(self, shapes):
        return bool(self.of_persons(shapes).by_person)

    def partial(self, chunk, num_records=None):
        return sums.table(self.columns(chunk), self.all_levels)

    def in_stages(self):
        """This table, or the mean table of persons and then what it is judged by."""
        if not self.by_person:
            return self
        whole = self.mechanism_in_force()
        table = dataclasses.replace(
            self, epsilon=None, mechanism=whole.share(1.0 - SHARE), by_person=None, averaged=True
        )
        return core.Sequential(first=table, second=SpreadOfPersons(mechanism=whole.share(SHARE)), then=on_table)

    def judged(self, shapes, release):
        """The test of the table that was released, and its release, of persons as of as many independent records."""
        stage = self.settled(shapes, release)
        return stage.of_records(bare(release)) if isinstance(stage, SpreadOfPersons) else (stage, bare(release))

    def sized(self, key, release, p_value):
        """Cramer's V of the released table and its interval; of two levels each the phi coefficient."""
        return cramers_v.sized(jax.random.fold_in(key, SIZE_STREAM), p_value, *self._released(release))

    def _detectable(self, release, level):
        """The size that would have been found; infinite where the level is below every rank, whatever the table."""
        found = cramers_v.detectable(level, *self._released(release))
        return jnp.where(null_laws.never_so_small(self, level), math.inf, found)

    def _released(self, release):
        """What `cramers_v` takes: noisy table, number of records, mechanism, sensitivity."""
        table = jnp.asarray(release.value, float)
        return table, 1.0 * release.num_records, self.mechanism_in_force(), release.sensitivity


@frozen_pytree
class NoisyTableTest(NoisyCounts):
    """Base: the noisy r x c table of coded x and y.

    levels: taken from the data's domain if left out. min_expected: no rejection where a cell expects no more than this.
    """

    min_expected: float = jax.tree.static(default=5.0)

    averages_rows: ClassVar[bool] = True

    def __post_init__(self):
        super().__post_init__()
        check.non_negative(min_expected=self.min_expected)

    def specialize(self, shapes):
        """Reads the public numbers of levels from the domain where they are not given."""
        if shapes.z is not None:
            raise ValueError(f"{method_of(self)} has no conditional form: z must be None.")
        require_one_column(method_of(self), shapes, "x", "y")
        return self._with_levels(shapes.domain).in_stages()

    def _with_levels(self, domain):
        if self.levels is not None:
            return self
        counts = [column.levels for column in (*domain.x, *domain.y)] if domain is not None else []
        if len(counts) != 2 or min(counts) < 2:
            raise ValueError(f"{method_of(self)} needs the public numbers of levels: give levels=(r, c).")
        return dataclasses.replace(self, levels=tuple(counts))

    def interpret(self, key, release):
        """The noisy table; Cramer's V with its interval, of a 2 x 2 table the phi coefficient."""
        p_value = self.table_p_value(key, release, jnp.asarray(release.value, float))
        if self.levels is None:  # one column alone
            return Interpretation(p_value, release.value)
        return Interpretation(p_value, release.value, *self.sized(key, release, p_value))

    def effect_notes(self, shapes, release):
        """Whether a cell expects too few records for any finding, and whether noise hides rare levels."""
        test, release = self.judged(shapes, release)
        if test.levels is None:
            return {}
        lost = not bool(test.least_expected(release) > test.min_expected)
        told = {TOO_FEW: TOO_FEW_TOLD.format(most=float(test.min_expected))} if lost else {}
        return told | cramers_v.notes(shapes.domain, *test._released(release))

    def detectable_effect(self, shapes, release, level):
        """Cramer's V, or phi, that would have been found; infinite where too few records are expected in a cell."""
        test, release = self.judged(shapes, release)
        if test.levels is None:
            return None
        found = test._detectable(release, level)
        return jnp.where(test.least_expected(release) > test.min_expected, found, math.inf)

    @bounded_jit  # run by itself, its small programs would be compiled anew for every answer
    def least_expected(self, release):
        """The smallest count that independence expects in a cell, by the released table."""
        return jnp.min(self.fitted(release)) * release.num_records

    def fitted(self, release):
        """Probabilities (r, c) of the null that the released table is compared with."""
        clean = project_to_simplex(jnp.ravel(jnp.asarray(release.value, float)), 1.0 * release.num_records)
        return product(*margins(clean.reshape(self.shape)))

    def table_p_value(self, key, release, table):
        """The p-value of the released table, as floats."""
        raise NotImplementedError

    def null_tables(self, key, release, probabilities):
        """`num_null` noisy tables (m, *shape): multinomial with these probabilities, plus fresh noise."""
        key_counts, key_noise = jax.random.split(key)
        flat = jnp.maximum(jnp.ravel(probabilities), 0.0)

        def draw(i):
            return multinomial(jax.random.fold_in(key_counts, i), release.num_records, flat)

        whole = isinstance(release.num_records, int)  # of persons it is as many as the table varies as
        if not whole or release.num_records > MANY_RECORDS:  # one uniform a record would take longer than reading them
            counts = multinomial_by_binomials(key_counts, release.num_records, flat, self.num_null)
        else:
            counts = jax.lax.map(draw, jnp.arange(self.num_null))
        noise = self.mechanism_in_force().noise(key_noise, release.sensitivity, counts.shape)
        return (counts + noise).reshape(self.num_null, *jnp.shape(probabilities))


def require_one_column(method: str, shapes, *names: str) -> None:
    """Raises unless these arrays have shape (n,)."""
    for name in names:
        shape = getattr(shapes, name).shape
        if len(shape) != 1:
            raise ValueError(f"{method} takes one column {name} of shape (n,), got shape {tuple(shape)}.")


def multinomial(key, total: int, probabilities):
    """Counts (d,) of `total` categorical draws: uniforms against the cumulative law (d,)."""
    ends = jnp.cumsum(probabilities)
    draws = jax.random.uniform(key, (total, 1), probabilities.dtype) * ends[-1]
    below = jnp.sum(draws < ends[None, :-1], axis=0, dtype=jnp.int32)
    edges = jnp.concatenate([jnp.zeros(1, jnp.int32), below, jnp.full(1, total, jnp.int32)])
    return jnp.diff(edges).astype(probabilities.dtype)


def multinomial_by_binomials(key, total, probabilities, draws: int):
    """Counts (draws, d) of `total` categorical draws, one binomial number for each cell: fast for any total."""
    left = jnp.maximum(jnp.cumsum(probabilities[::-1])[::-1], jnp.finfo(probabilities.dtype).tiny)
    shares = jnp.clip(probabilities / left, 0.0, 1.0)

    def one_cell(rest, cell):
        words, share = cell
        # words, not keys, go through the loop: JAX's check for reused keys takes a loop over keys under vmap for reuse
        count = jax.random.binomial(jax.random.wrap_key_data(words, impl="threefry2x32"), rest, share)
        return rest - count, count

    # the loop runs over cells: one compiled binomial
    words = jax.random.bits(key, (shares.shape[0] - 1, 2), jnp.uint32)
    rest, counts = jax.lax.scan(one_cell, jnp.full(draws, total, probabilities.dtype), (words, shares[:-1]))
    return jnp.concatenate([counts, rest[None]]).T


def project_to_simplex(values, total):
    """Euclidean projection of values (d,) on {x >= 0, sum x = total}."""
    ordered = jnp.sort(values)[::-1]
    surplus = (jnp.cumsum(ordered) - total) / jnp.arange(1.0, values.shape[0] + 1.0)
    active = jnp.sum(ordered > surplus)
    return jnp.maximum(values - surplus[active - 1], 0.0)


def margins(table):
    """Row and column shares of a non-negative table (r, c)."""
    total = jnp.sum(table)
    return jnp.sum(table, axis=1) / total, jnp.sum(table, axis=0) / total


def product(rows, columns):
    """pi1 pi2^T."""
    return rows[:, None] * columns[None, :]
