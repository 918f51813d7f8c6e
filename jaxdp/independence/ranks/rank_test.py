"""What the rank tests share: a stratified sum U and its null variance V, each released with noise.

The p-value is that of N(0, V) plus the known noise of U. V itself is noisy, so V plus twice its noise
scale stands in for it (never more than the public maximum): the level holds when V is small, and the
loss of power vanishes as n grows.
"""

import dataclasses
import functools
import math
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Interpretation, Relation, Sensitivity
from jaxdp.independence import effect_sizes
from jaxdp.independence.continuous import strata
from jaxdp.independence.continuous.coarse_cells import WithinCells
from jaxdp.mechanisms import Laplace, divide
from jaxdp.statistics import concordance, partition, sums

UNIT_ROUNDOFF = 2.0**-53
STATISTIC_SHARE = 0.85
VARIANCE_GUARD = 2.0  # in units of the noise scale of V; guards the level where V is as small as its noise
MAX_RECORDS = 10**7


@frozen_pytree
class StratifiedRankTest(WithinCells):
    """Base of the rank tests; `levels` and `num_strata` are filled in from the public shapes of the data.

    reference: public law whose quantiles cut continuous columns of z (default as in `PartitionGCM`).
    num_cells: public number of cells for continuous z, default max(4, n/8), a million at most, under replace-one;
        required under add-or-remove-one, where n is private.
    relation: REPLACE_ONE (public n) or ADD_OR_REMOVE_ONE. max_records: public cap on n for the latter.
    """

    reference: object = None
    num_cells: int | None = jax.tree.static(default=None)
    relation: Relation = jax.tree.static(default=Relation.REPLACE_ONE)
    max_records: int = jax.tree.static(default=MAX_RECORDS)
    levels: tuple[int, int] = jax.tree.static(default=(0, 0))
    num_strata: int = jax.tree.static(default=0)

    averages_rows: ClassVar[bool] = True
    bounds: ClassVar[tuple] = ()  # tables of bounds of U and of V, as `choose` reads them
    maximal_variance: ClassVar[float] = 1.0  # of V, per record
    max_continuous: ClassVar[int] = 0  # ranks remove no trend within a cell, however small

    def __post_init__(self):
        super().__post_init__()
        if self.num_cells is not None:
            check.at_least(1, num_cells=self.num_cells)
        check.at_least(1, max_records=self.max_records)
        check.one_of(tuple(Relation), relation=self.relation)

    def mechanism_in_force(self):
        mechanism = Laplace(check.budget(self.epsilon)) if self.mechanism is None else self.mechanism
        return divide(mechanism, {"u": STATISTIC_SHARE, "v": 1.0 - STATISTIC_SHARE})

    def specialize(self, shapes):
        """Adds what is public about the columns; ValueError on shapes the test cannot take.

        Errors: `CoarseCells` before anything is spent.
        """
        if strata.is_cut(shapes):
            self.refuse_coarse_cells(partition.columns_of_z(shapes))
        if self.relation is Relation.ADD_OR_REMOVE_ONE:
            if self.num_cells is None and strata.is_cut(shapes):
                raise ValueError(
                    "num_cells is needed under add_or_remove_one, since n is private; give num_cells=64, say."
                )
            if shapes.x.shape[0] > self.max_records:
                raise ValueError(f"more records than the public cap max_records={self.max_records}; give a larger cap.")
        return dataclasses.replace(
            self, levels=strata.levels_of(shapes), num_strata=strata.num_strata(shapes, self._target(shapes.x.shape[0]))
        )

    def summaries(self, data):
        """Private: the strata of the data."""
        return strata.summaries(data, strata.levels_of(data), self._target(data.x.shape[0]), self.reference)

    def statistic(self, key, data):
        """Dict of `u` and `v`, floats."""
        with jax.enable_x64(True):
            value = self.of_strata(self.summaries(data))
        return as_default_float(value)

    def of_strata(self, summaries):
        """U and V from the summaries of all strata."""
        raise NotImplementedError

    def partial(self, chunk, num_records=None):
        """The table of x against y within strata, of columns of levels."""
        count = len(chunk.x) if num_records is None else num_records
        shape = (strata.num_strata(chunk, self._target(count)), *self.levels)
        cells = math.prod(shape)
        add = functools.partial(sums.counts, num_cells=cells)
        return sums.added(self, "table_code", chunk, count, add, cells).reshape(shape)

    def table_code(self, data, num_records):
        """The cell of each record in the table of strata, x and y."""
        return strata.table_code(data, self.levels, self._target(num_records), self.reference)

    def finish(self, totals):
        with jax.enable_x64(True):
            return jax.tree.map(np.asarray, self.of_strata(concordance.strata_of_table(totals)))

    def needs_all(self, shapes, of_persons=False):
        told = super().needs_all(shapes, of_persons)
        if told:
            return told
        levels, blocks = strata.levels_of(shapes), strata.num_strata(shapes, self._target(shapes.x.shape[0]))
        if not all((*levels, blocks)):
            return "it sorts continuous columns (columns of levels need no sort)"
        return sums.too_large(math.prod((blocks, *levels)))

    def axis_bins(self, data, release=None):
        """Public description of the cells of z, for people; () where distinct rows of z are the strata."""
        target = self._target(data.x.shape[0])
        return partition.axis_bins(data, target, self.reference) if strata.num_strata(data, target) else ()

    def _cut_columns(self, data):
        return partition.columns_of_z(data) if strata.is_cut(data) else ()

    def _target(self, num_records: int) -> int:
        return partition.target_cells(num_records, self.num_cells)

    def sensitivity(self, num_records):
        """Of both: a sum of at most m strata, each rounded a few times, in float64."""
        bound_u, bound_v = (choose(table, self.levels, self.relation, self.num_strata != 1) for table in self.bounds)
        size = num_records if self.relation is Relation.REPLACE_ONE else self.max_records
        sums = min(self.num_strata or size, size) + 8.0
        norms = {name: self.mechanism_in_force()[name].norm for name in ("u", "v")}
        parts = {"u": (bound_u, sums * size, -1.0 * size), "v": (bound_v, (sums + 2.0 * size) * size, 0.0)}
        return {
            name: Sensitivity(
                bound=bound,
                norm=norms[name],
                relation=self.relation,
                error=roundings * UNIT_ROUNDOFF,
                lower=lower,
                upper=1.0 * size,
            )
            for name, (bound, roundings, lower) in parts.items()
        }

    def _tail(self, release):
        """(what U is from its mean, effect) -> two-sided p-value."""
        mechanism, sensitivity = self.mechanism_in_force()["u"], release.sensitivity["u"]
        variance = self._guarded_variance(release)

        def tail(left, effect):
            there = self.variance_at(effect, variance, release.num_records)
            return mechanism.null_p_value(left, jnp.sqrt(there), sensitivity)

        return tail

    def interpret(self, key, release):
        """The effect on the scale that the spec names, with its interval, and the released z-score.

        P-value: P(|N(0, V) + noise of U| >= |U released|), with V guarded as the module says.
        """
        largest, records, tail, u = self.largest_effect(), release.num_records, self._tail(release), release.value["u"]
        p_value = tail(u, 0.0)
        effect = effect_sizes.ratio(
            (u, release.value["v"]),
            p_value,
            effect_sizes.noise_quantiles(self.mechanism_in_force()["v"], release.sensitivity["v"]),
            lambda effect, second: effect * self.sum_per_effect(second, records),
            tail,
            limits=(-largest, largest),
        )
        variance = self._guarded_variance(release) + self.mechanism_in_force()["u"].variance(release.sensitivity["u"])
        return Interpretation(p_value, u / jnp.sqrt(jnp.maximum(variance, 1e-12)), *effect)

    @effect_sizes.settled_program
    def detectable_effect(self, release, level):
        """The effect that would have been found with power 0.8; NaN where the noise hides V."""
        tail, v, budget = self._tail(release), release.value["v"], self.mechanism_in_force()
        noise = jnp.sqrt(budget["v"].variance(release.sensitivity["v"]))
        spread = jnp.sqrt(self._guarded_variance(release) + budget["u"].variance(release.sensitivity["u"]))
        found = effect_sizes.detectable(lambda value: tail(value, 0.0), spread, level)
        clear = effect_sizes.CLEAR * noise
        found = found / self.sum_per_effect(jnp.maximum(v, clear), release.num_records)
        return jnp.where(v >= clear, found, jnp.nan)

    def sum_per_effect(self, v, num_records):
        """The mean of U at an effect of 1. v: V. num_records: None where it is private."""
        return v

    def variance_at(self, effect, variance, num_records):
        """The variance of U about its mean at an effect; variance: at effect 0."""
        return effect_sizes.shrunk(variance, effect)

    def largest_effect(self) -> float:
        """Limit of the effect."""
        return 1.0

    def _guarded_variance(self, release):
        noise = self.mechanism_in_force()["v"].variance(release.sensitivity["v"])
        guarded = jnp.maximum(release.value["v"], 0.0) + VARIANCE_GUARD * jnp.sqrt(0.5 * noise)
        if release.num_records is None:
            return guarded
        return jnp.minimum(guarded, self.maximal_variance * release.num_records)


def choose(table, levels: tuple[int, int], relation: Relation, conditional: bool) -> float:
    """The constant of a table of bounds: rows general, one binary, both binary."""
    row = table[sum(0 < count <= 2 for count in levels)]
    if relation is Relation.ADD_OR_REMOVE_ONE:
        return row[0]
    return row[1] if conditional else row[2]


def as_default_float(values):
    """Statistics are computed in float64; outside releases they join the ambient precision."""
    return jax.tree.map(lambda value: value.astype(jnp.result_type(float)), values)
