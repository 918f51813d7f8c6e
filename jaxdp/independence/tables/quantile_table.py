"""QuantileTable: any dependence of two columns, one or both continuous, by a noisy table on privately chosen bins.

Symbols: r, c = bins of x and y, Q = chi-squared, R = rank correlation of the bins (docs/theory/quantile_table.md).
"""

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import null_laws
from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Interpretation, Norm, PrivateQuery, Relation, Sensitivity, Sequential
from jaxdp.data.dataset import BINARY, CATEGORICAL, ORDINAL, Column, Domain
from jaxdp.independence import effect_sizes
from jaxdp.independence.tables import cramers_v
from jaxdp.independence.tables.noisy_table import NoisyCounts, multinomial_by_binomials, require_one_column
from jaxdp.mechanisms import Laplace, Split, divide
from jaxdp.spec import ANY, Columns, Planning, TestSpec, on_a_line, one_of_each
from jaxdp.statistics import partition, sums
from jaxdp.statistics.tables import quantile_bins
from jaxdp.statistics.tables.noisy_table_statistics import (
    RankCorrelation,
    chi_squared,
    fitted_margins,
    rank_correlation,
)

CUTS_SHARE = 0.15  # of the budget, for the cuts of each continuous column (docs/theory/quantile_table.md#shares)
FEW_BINS, MORE_BINS = 3, 4
MAX_BINS = 50  # of a user: null tables of more took gigabytes
DISCRETE = (ORDINAL, CATEGORICAL, BINARY)
MORE_FROM = 1000.0  # n epsilon from which the larger table is sharper
MISS = 0.05  # one minus the coverage
NULL_STREAM = 1  # of the draws of null tables
SCORE_MOVE = 1.0  # of the number of values at or below a place, when one value is replaced


def default_bins(num_records: int, epsilon: float) -> int:
    """Bins of a continuous column."""
    return FEW_BINS if num_records * epsilon < MORE_FROM else MORE_BINS


@frozen_pytree
class QuantileCuts(PrivateQuery):
    """Privately chosen cuts of the continuous columns into about equally full bins.

    Statistic: for each cut, minus the distance of the number of values at or below each place of a public grid from
    the wanted number. Sensitivity: 1 in Linf for each cut, replace-one.
    Privacy: the budget is divided evenly over the cuts; each is an exact selection of one place.
    """

    bins: tuple[int, int] = jax.tree.static(default=(FEW_BINS, FEW_BINS))  # 0 for a coded column
    reference: Any = None

    method: ClassVar[str] = "QuantileCuts"

    def mechanism_in_force(self):
        names = [f"{name}{j}" for name, count in zip("xy", self.bins, strict=True) for j in range(1, count)]
        mechanism = Laplace(self.epsilon) if self.mechanism is None else self.mechanism
        shares = divide(mechanism, dict.fromkeys(names, 1.0)).parts
        return Split(parts={name: part.selector() for name, part in shares.items()})

    def statistic(self, key, data):
        """Scores (GRID - 1,) of each cut, by its name."""
        reference = partition.default_reference(data) if self.reference is None else self.reference
        scores = {}
        for name, values, count in zip("xy", (data.x, data.y), self.bins, strict=True):
            if count:
                steps = quantile_bins.steps(values.astype(float), reference)
                for j, row in enumerate(quantile_bins.quantile_scores(steps, count), start=1):
                    scores[f"{name}{j}"] = row
        return scores

    def partial(self, chunk, num_records=None):
        """How many values of each continuous column lie at each place of the grid."""
        count = len(chunk.x) if num_records is None else num_records
        add = lambda *steps: tuple(sums.counts(one, quantile_bins.GRID + 1) for one in steps)  # noqa: E731
        return sums.added(self, "places", chunk, count, add)

    def places(self, data, num_records):
        """Steps of the grid (n,) up to each value, of the continuous columns."""
        reference = partition.default_reference(data) if self.reference is None else self.reference
        cut = [values for values, count in zip((data.x, data.y), self.bins, strict=True) if count]
        return tuple(quantile_bins.steps(values.astype(float), reference) for values in cut)

    def finish(self, totals):
        cut = [(name, count) for name, count in zip("xy", self.bins, strict=True) if count]
        return {
            f"{name}{j}": row
            for (name, count), at in zip(cut, totals, strict=True)
            for j, row in enumerate(quantile_bins.scores_of_counts(at, count), start=1)
        }

    def sensitivity(self, num_records):
        one = Sensitivity(SCORE_MOVE, Norm.LINF, Relation.REPLACE_ONE, lower=-1.0 * num_records, upper=0.0)
        return dict.fromkeys(self.mechanism_in_force().parts, one)


def on_cuts(test, query, released):
    """The test on the released cuts, in steps of the grid and in order."""

    def sorted_cuts(name: str, count: int):
        found = [released.value[f"{name}{j}"] + 1 for j in range(1, count)]
        return jnp.sort(jnp.stack(found).astype(jnp.int32)) if found else None

    cuts = tuple(sorted_cuts(name, count) for name, count in zip("xy", query.bins, strict=True))
    return dataclasses.replace(test, cuts=cuts)


def _from_domain(cls, epsilon, domain, options):
    """The number of bins grows with n epsilon, which a simulation's traced budget could not tell."""
    bins = None if options.num_records is None else default_bins(options.num_records, epsilon)
    return cls(epsilon=epsilon, num_bins=bins)


def _describe_effect(test, x, y, interval) -> str:
    """Which groups, and what the interval says of the direction."""
    if not on_a_line(Domain(x[0].code_column(), y[0].code_column())):
        return cramers_v.describe(x[0], y[0], interval, test.num_bins)
    if effect_sizes.is_binary(x[0]) and effect_sizes.is_binary(y[0]):
        told = f", which is the phi coefficient of {x[0].name} and {y[0].name}"
    else:
        names = [f"{_groups(test, rule)} of {rule.name}" for rule in (x[0], y[0])]
        told = f", {' and '.join(names)}; records of one group count as ties"
    if interval is None:
        return f"{told}. There is no interval: with levels so rare it would disagree with the p-value about 0"
    low, high = (float(end) for end in interval)
    if low <= 0.0 <= high:
        return f"{told}. The interval holds 0: no rise or fall is shown; the p-value is of dependence of any kind"
    return told + effect_sizes.describe_direction(x[0], y[0], interval)


def _groups(test, rule) -> str:
    if rule.is_continuous:
        return "quantile groups" if test.num_bins is None else f"{test.num_bins} quantile groups"
    return f"{len(rule.levels)} levels"


@frozen_pytree
class QuantileTable(NoisyCounts):
    """Private test of any dependence of x and y (one column each, no z): noisy table on private quantile bins.

    First 15 % of the budget for each continuous column chooses the cuts of its bins (`QuantileCuts`); then the r x c
    table of the bins (levels of a coded column are its bins) is released with noise per cell.
    Sensitivity: cuts 1 in Linf for each; table 2 in L1, sqrt(2) in L2 (a replaced record leaves a cell and enters one).
    Privacy: epsilon-DP, or rho-zCDP with mechanism=Gaussian(rho); adaptive composition. Relation REPLACE_ONE.
    P-value: Q = sum (N - E)^2/(E + noise variance) and, where both columns are ordered, the rank correlation R of the
    bins over its standard error, each ranked among `num_null` tables drawn from the noisy margins with fresh noise; the
    smaller of the two ranks is itself ranked among theirs, so that looking twice costs no level. Given the cuts it is
    exact up to the error of the noisy margins (measured level: docs/theory/quantile_table.md#level). The smallest
    p-value is 1/(num_null + 1).
    effect: R, Spearman's correlation with the records of a bin as ties (of a 2 x 2 table the phi coefficient), with an
    interval that leaves out 0 only where p <= 0.05 (docs/theory/quantile_table.md#direction). It leaves 0 in where the
    dependence that was found need not go up or down. Where a column has more than two unordered levels, Cramer's V of
    bins and levels, with an interval that leaves out 0 exactly where p <= 0.05 (docs/theory/effect_sizes.md#cramers-v).
    Sees any dependence that leaves a trace between quantile bins, linear or not; ties are cut by a fixed rule.

    num_bins: of a continuous column, at most 50; default 3, from n epsilon = 1000 on 4 (a traced epsilon counts as 1).
    reference: public law whose quantiles are the grid of possible cuts; default: even on [-1, 1] where a schema scaled
        the data, a standard Cauchy law otherwise.
    """

    num_null: int = jax.tree.static(default=999)
    num_bins: int | None = jax.tree.static(default=None)
    reference: Any = None
    cuts: Any = None
    ordered: bool = jax.tree.static(default=True)

    spec: ClassVar[TestSpec] = TestSpec(
        name="quantile-table",
        summary="noisy table on private quantile bins; any dependence of two columns without Z",
        columns=Columns.CODES,
        from_domain=_from_domain,
        alternatives="any dependence of two columns",
        effect="Spearman's rank correlation of groups",
        describe_effect=_describe_effect,
        size=lambda domain: "" if on_a_line(domain) else cramers_v.NAME,
        accepts=lambda domain: one_of_each(domain) and not domain.z,
        rank=lambda domain: 2 * (one_of_each(domain) and not domain.z),
        suitability=lambda domain: {ANY: 3},
        planning=Planning(without_z=True),
        theory="docs/theory/quantile_table.md",
    )
    averages_rows: ClassVar[bool] = True
    gradient_free = null_laws.RANK

    def __post_init__(self):
        super().__post_init__()
        if self.num_bins is not None:
            check.at_least(2, num_bins=self.num_bins)
            if self.num_bins > MAX_BINS:
                raise ValueError(
                    f"num_bins must be at most {MAX_BINS}, got {self.num_bins}: with more quantile groups nearly every "
                    "cell of the table is noise."
                )

    def specialize(self, shapes):
        """The choice of the cuts, then the table on them."""
        if self.cuts is not None:
            return self.in_stages()
        if shapes.z is not None:
            raise ValueError("QuantileTable has no conditional form: z must be None.")
        if self.levels is not None:
            raise ValueError(
                "QuantileTable makes its bins itself: leave levels out and give num_bins=K for K quantile groups of a "
                "continuous column; the levels of a coded one are those of the domain."
            )
        require_one_column("QuantileTable", shapes, "x", "y")
        columns = (Column(), Column()) if shapes.domain is None else (*shapes.domain.x, *shapes.domain.y)
        levels = tuple(0 if column.kind not in DISCRETE else column.levels for column in columns)
        made = self._num_bins(shapes.x.shape[0])
        bins = (0 if levels[0] else made, 0 if levels[1] else made)
        ordered = not any(column.unordered for column in columns)
        cut = sum(map(bool, bins))
        whole = self.mechanism_in_force()
        table = dataclasses.replace(
            self,
            epsilon=None,
            mechanism=whole.share(1.0 - CUTS_SHARE * cut) if cut else whole,
            levels=(max(bins[0], levels[0]), max(bins[1], levels[1])),
            num_bins=made,
            ordered=ordered,
            reference=partition.default_reference(shapes) if self.reference is None else self.reference,
            cuts=(None, None),
        )
        if not cut:
            return table.in_stages()
        cuts = QuantileCuts(mechanism=whole.share(CUTS_SHARE * cut), bins=bins, reference=table.reference)
        return Sequential(first=cuts, second=table, then=on_cuts)

    def _num_bins(self, num_records: int) -> int:
        if self.num_bins is not None:
            return self.num_bins
        epsilon = 1.0 if self.epsilon is None else self.epsilon
        known = check.is_concrete(epsilon) and np.ndim(epsilon) == 0
        return default_bins(num_records, float(np.asarray(epsilon)) if known else 1.0)

    def columns(self, data):
        """The bins (n,) of x and of y."""
        return [self._bins(values, cuts) for values, cuts in zip((data.x, data.y), self.cuts, strict=True)]

    def partial(self, chunk, num_records=None):
        """The table of a chunk."""
        count = len(chunk.x) if num_records is None else num_records
        add = lambda x, y: sums.table([x, y], self.shape)  # noqa: E731
        return sums.added(self, "codes", chunk, count, add)

    def codes(self, data, num_records):
        """The bins (n,) of x and of y."""
        return tuple(self.columns(data))

    def _bins(self, values, cuts):
        return values if cuts is None else quantile_bins.bins(quantile_bins.steps(values, self.reference), cuts)

    def interpret(self, key, release):
        """Q; and R with its interval, by the null tables of the p-value, where both columns are ordered."""
        statistics, found = self._with_null(jax.random.fold_in(key, NULL_STREAM), release)
        p_value, q = null_laws.smallest_rank(statistics), statistics[-1, 0]
        if found is None:
            return Interpretation(p_value, q, *self.sized(key, release, p_value))
        ends = found.interval(null_laws.critical_of_smallest_rank(statistics[:, 1:], MISS))
        if self.shape == (2, 2):  # such a dependence has a direction, so the interval must say what the p-value says
            ends = effect_sizes.agreeing(ends, p_value)
        effect = jnp.tanh(found.z)
        everything = ends[1] - ends[0] >= 2.0 * effect_sizes.EVERYTHING
        return Interpretation(
            p_value, q, *(jax.tree.map(lambda number: jnp.where(everything, jnp.nan, number), (effect, tuple(ends))))
        )

    def effect_notes(self, shapes, release):
        """Whether noise hides rare levels without an order, and which were merged."""
        test, release = self.judged(shapes, release)
        return {} if test.ordered else cramers_v.notes(shapes.domain, *test._released(release))

    def detectable_effect(self, shapes, release, level):
        """Cramer's V that would have been found, of levels without an order; the planner tells of the others."""
        test, release = self.judged(shapes, release)
        return None if test.ordered else test._detectable(release, level)

    def counts_ranks(self):
        return self.ordered

    def _with_null(self, key, release) -> tuple[jax.Array, RankCorrelation | None]:
        """The statistics (k, 1 + num_null) of the release, first, and of the null tables; its rank correlation.

        Q is the last statistic; where both columns are ordered the first is that of the rank correlation.
        """
        key_counts, key_noise = jax.random.split(key)
        table = jnp.asarray(release.value, float)
        total, variance = 1.0 * release.num_records, self.mechanism_in_force().variance(release.sensitivity)
        _, rows, columns = fitted_margins(table, total)
        chances = jnp.ravel(rows[:, None] * columns[None, :])
        counts = multinomial_by_binomials(key_counts, total, chances, self.num_null)
        noise = self.mechanism_in_force().noise(key_noise, release.sensitivity, counts.shape)
        null = (counts + noise).reshape(self.num_null, *self.shape)
        tables = jnp.concatenate([table[None], null])
        q = chi_squared(tables, total, variance)[None]
        if not self.ordered:
            return q, None
        found = rank_correlation(tables, total, variance)
        return jnp.concatenate([found.size[None], q]), RankCorrelation(found.z[0], found.error[0])
