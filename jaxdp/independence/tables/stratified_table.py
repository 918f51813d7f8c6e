"""StratifiedTable: dependence of two columns of levels given columns of levels, by a noisy table in each stratum.

Symbols: K strata of r x c cells, n records, v = noise variance of a cell (docs/theory/stratified_table.md).
"""

import dataclasses
import math
from typing import ClassVar

import jax
import jax.numpy as jnp

from jaxdp import null_laws
from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Interpretation, method_of
from jaxdp.independence.continuous.validity import FLAG, LOW_POWER, RUN, Validity
from jaxdp.independence.tables import cramers_v
from jaxdp.independence.tables.noisy_table import NoisyCounts, multinomial_by_binomials, require_one_column
from jaxdp.spec import ANY, Columns, Planning, TestSpec, discrete, given_levels, on_a_line
from jaxdp.statistics.tables.association_in_strata import TINY, association, expected_counts

MAX_CELLS = 4096  # of a table: its null tables are drawn cell by cell
MIN_CLEARANCE = 5.0  # records of an average stratum, in sds of the noise of its total
TOO_FEW = {
    "few records in a stratum": f"{cramers_v.NAME} is not given: the strata have too few records for the noise of this "
    "release. Fewer levels, more records or a larger epsilon would help."
}


def cells(domain) -> int:
    """Cells of the table of x, y and z."""
    return math.prod(column.levels for column in (*domain.x, *domain.y, *domain.z))


def _accepts(domain) -> bool:
    return discrete(domain) and given_levels(domain) and cells(domain) <= MAX_CELLS


def _why_not(domain) -> str:
    if not (discrete(domain) and given_levels(domain)) or cells(domain) <= MAX_CELLS:
        return ""
    return (
        f"stratified-table takes at most {MAX_CELLS} cells, and the levels of x, y and z make {cells(domain)}: "
        "condition on fewer columns, or use partition-gcm"
    )


@frozen_pytree
class StratifiedTable(NoisyCounts):
    """Private test of dependence of x and y (one column of levels each) given columns z of levels.

    Statistic: the table of counts of (z, x, y), a stratum for each combination of levels of z; released with noise per
    cell, everything else is post-processing.
    Sensitivity: 2 in L1, sqrt(2) in L2 (a replaced record leaves one cell and enters another). Relation REPLACE_ONE.
    Privacy: epsilon-DP by Laplace noise of scale 2/epsilon, or rho-zCDP with mechanism=Gaussian(rho).
    P-value: differences from independence are added up over the strata, as in the generalized Cochran-Mantel-Haenszel
    test, in a form whose mean under independence is zero for all margins and all noise; the sum of their squares over
    their variances is ranked among `num_null` tables drawn from the noisy margins of the strata with fresh noise. Exact
    up to the error of these margins (measured level: docs/theory/stratified_table.md#level). The smallest p-value is
    1/(num_null + 1). Differences that cancel over the strata are not found.
    Where an average stratum has fewer records than five standard deviations of the noise of its total, 5 sqrt(v r c),
    the statistic of the release is multiplied by the ratio of the two numbers, so that the level is kept; such answers
    are flagged "low power" and have no effect.
    Effect: Cramer's V within the strata with its interval, of two levels each the phi coefficient; it leaves out 0
    exactly where p <= 0.05 (docs/theory/effect_sizes.md#strata).

    levels, strata: public numbers of levels of (x, y) and of the columns of z; default from the data's domain.
    """

    num_null: int = jax.tree.static(default=999)
    strata: tuple[int, ...] | None = jax.tree.static(default=None)

    uses_z: ClassVar[bool] = True
    flags: ClassVar[tuple[str, ...]] = (LOW_POWER,)
    spec: ClassVar[TestSpec] = TestSpec(
        name="stratified-table",
        summary="noisy tables in the strata of coded Z; dependence of two discrete columns given Z",
        effect="phi coefficient within the strata",
        size=cramers_v.size,
        describe_effect=lambda test, x, y, interval: cramers_v.describe(x[0], y[0], interval, in_strata=True),
        known_as=("generalized-cochran-mantel-haenszel",),
        columns=Columns.CODES,
        alternatives="any dependence of two discrete columns given Z that does not cancel over the strata",
        accepts=_accepts,
        why_not=_why_not,
        rank=lambda domain: 2 * (_accepts(domain) and not on_a_line(domain)),
        suitability=lambda domain: {ANY: 4} if _accepts(domain) else {},
        planning=Planning(
            "strata:stratified_power", unordered=True, gaussian_formula="always", reference="tables:chi_squared_power"
        ),
        theory="docs/theory/stratified_table.md",
    )
    averages_rows: ClassVar[bool] = True
    gradient_free = null_laws.RANK

    def __post_init__(self):
        super().__post_init__()
        if self.strata is not None:
            check.all_at_least(1, strata=self.strata)

    def specialize(self, shapes):
        """Reads the public numbers of levels from the domain where they are not given."""
        require_one_column(method_of(self), shapes, "x", "y")
        if shapes.z is None:
            raise ValueError("StratifiedTable conditions on z: give it, or use QuantileTable.")
        return self._with_levels(shapes.domain).in_stages()

    def _with_levels(self, domain):
        if self.levels is not None and self.strata is not None:
            return self
        if domain is None or not _accepts(domain):
            raise ValueError(
                (_why_not(domain) if domain is not None else "")
                or "StratifiedTable needs the public numbers of levels: give levels=(r, c) and strata=(k, ...)."
            )
        levels = self.levels or tuple(column.levels for column in (*domain.x, *domain.y))
        return dataclasses.replace(self, levels=levels, strata=self.strata or tuple(one.levels for one in domain.z))

    def validity(self, shapes) -> Validity:
        """Flags records that are too few for the strata at this budget, by public numbers."""
        test, n = self._with_levels(shapes.domain), shapes.x.shape[0]
        clearance = test._clearance(n, test.sensitivity(n))
        if not check.is_concrete(clearance) or clearance >= MIN_CLEARANCE:
            return Validity(RUN, "")
        told = (
            f"{n} records are few for noisy tables of {test.shape[0]} x {test.shape[1]} levels in {test._num_strata} "
            f"strata: at this budget {math.ceil(n * MIN_CLEARANCE / float(clearance))} are needed for the full power"
        )
        return Validity(FLAG, told + "; a larger epsilon or fewer levels help.", (LOW_POWER,))

    def effect_notes(self, shapes, release):
        """Why it has no effect, where that is so."""
        test, release = self.judged(shapes, release)
        few = float(test._clearance(release.num_records, release.sensitivity)) < MIN_CLEARANCE
        return TOO_FEW if few else cramers_v.notes(shapes.domain, *test._released(release))

    def detectable_effect(self, shapes, release, level):
        """V within the strata that would have been found."""
        test, release = self.judged(shapes, release)
        few = test._clearance(release.num_records, release.sensitivity) < MIN_CLEARANCE
        return jnp.where(few, jnp.nan, test._detectable(release, level))

    def _clearance(self, num_records, sensitivity):
        """Records of an average stratum, in standard deviations of the noise of its total."""
        noise = self.mechanism_in_force().variance(sensitivity) * math.prod(self.shape)
        return num_records / (self._num_strata * noise**0.5 + TINY)

    @property
    def _num_strata(self) -> int:
        return math.prod(self.all_levels[:-2])

    @property
    def all_levels(self) -> tuple[int, ...]:
        assert self.strata is not None
        return (*self.strata, *self.shape)

    def columns(self, data) -> list:
        z = data.z if data.z.ndim == 2 else data.z[:, None]
        return [*(z[:, j] for j in range(z.shape[1])), data.x, data.y]

    def finish(self, totals):
        return totals.reshape(-1, *self.shape).astype(float)

    def interpret(self, key, release):
        """The sum of squared differences of the release, and its rank."""
        key_counts, key_noise, key_split = jax.random.split(key, 3)
        table = jnp.asarray(release.value, float)
        mechanism, sensitivity = self.mechanism_in_force(), release.sensitivity
        counts = multinomial_by_binomials(
            key_counts, 1.0 * release.num_records, jnp.ravel(expected_counts(table)), self.num_null
        )
        null = (counts + mechanism.noise(key_noise, sensitivity, counts.shape)).reshape(self.num_null, *table.shape)
        found = association(key_split, jnp.concatenate([table[None], null]), mechanism.variance(sensitivity))
        share = jnp.minimum(self._clearance(release.num_records, sensitivity) / MIN_CLEARANCE, 1.0)
        p_value = null_laws.monte_carlo(share * found[0], found[1:])
        value, ends = self.sized(key, release, p_value)
        value, low, high = (jnp.where(share < 1.0, jnp.nan, number) for number in (value, *ends))
        return Interpretation(p_value, found[0], value, (low, high))
