"""What tests on one noisy r x c table share: the table, its sensitivity, projection, and simulated null tables."""

import dataclasses
import functools
import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from jaxdp import core, null_laws
from jaxdp._base import check
from jaxdp._base.bounded import bounded_jit
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Interpretation, Norm, PrivateTest, Relation, Sensitivity, method_of
from jaxdp.independence import effect_sizes, noise_law
from jaxdp.independence.tables import cramers_v
from jaxdp.independence.tables.of_persons import SHARE, SpreadOfPersons, on_table, shows_spread
from jaxdp.mechanisms import Laplace
from jaxdp.results import bare
from jaxdp.spec import Columns, TestSpec, two_columns_of_levels
from jaxdp.statistics import sums
from jaxdp.statistics.tables import contingency

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
