"""Conditional Kendall: is x independent of y within every stratum of z?

Theory: docs/theory/conditional_kendall.md. Symbols: U, V, T6 (Definition 6 of the paper).
"""

from typing import ClassVar

import jax.numpy as jnp

from jaxdp._base.pytree import frozen_pytree
from jaxdp.independence import builders, effect_sizes
from jaxdp.independence.ranks.rank_test import StratifiedRankTest
from jaxdp.spec import BY_STRATUM, LINEAR, MONOTONE, Columns, Planning, TestSpec, given_levels, on_a_line
from jaxdp.statistics import concordance

# docs/theory/conditional_kendall.md#sensitivity. Rows: general, one variable binary, both binary. Columns:
# add-or-remove-one, replace-one given z, replace-one without z. A record's arrival in a stratum moves S/(n - 1) by at
# most 1 + 1/2 (1 if one variable is binary), a replacement is a removal and an arrival or stays in its stratum.
KENDALL_BOUNDS = ((1.5, 3.0, 2.0), (1.0, 2.0, 2.0), (1.0, 2.0, 1.0))
# docs/theory/conditional_kendall.md#variance: an arrival moves V by at most +1/3 and at least -0.023 (both binary: +1/4
# and -1/8).
VARIANCE_BOUNDS = ((1 / 3, 0.357, 0.357), (1 / 3, 0.357, 0.357), (0.25, 0.375, 0.375))
MAX_LOG_ODDS = 8.0
ONE_STEP = (  # docs/theory/effect_sizes.md#peto
    ", a one-step estimate, which is near the odds ratio up to about 1.5, and further where both levels of X and of Y "
    "have alike many records; logistic-regression estimates the odds ratio itself"
)


def _describe_effect(test, x, y, interval) -> str:
    """Which number it is, and what goes with what."""
    if effect_sizes.is_binary(x[0]) and effect_sizes.is_binary(y[0]):
        told = ": the logarithm of Peto's odds ratio"
        told += effect_sizes.describe_ratio("Peto's odds ratio", interval) + ONE_STEP
    else:
        told = (
            f": Kendall's tau-a, the share of pairs of records that agree less that of pairs that disagree{BY_STRATUM}"
        )
        told += effect_sizes.describe_assumption(x[0], y[0], interval)
    return told + effect_sizes.describe_direction(x[0], y[0], interval)


@frozen_pytree
class ConditionalKendall(StratifiedRankTest):
    """Private Kendall test of X independent of Y given Z, for coded, ordered or continuous columns.

    Statistic: U = sum over strata of S_i/(n_i + 5/2), S_i = concordant minus discordant pairs, and its
    tie-corrected null variance V. Two binary variables: divisor n_i and the exact hypergeometric variance,
    the Cochran-Mantel-Haenszel numerator. x, y: one column each; ties are allowed.
    Strata: joint levels of the coded columns of z, public bins of the continuous ones.
    Refused unless accept_coarse_cells: a continuous column of z, since ranks remove no trend within a cell, however
    small the residuals. `BandGCM` takes it (kernel="sign" is its Kendall form).
    Sensitivity (docs/theory/conditional_kendall.md#sensitivity, #variance), replace-one: U 3 (2 if x or y is binary or
    z is absent, 1 if both hold for x and y), V 0.357 (3/8 if both are binary); add-or-remove-one: U 3/2 (1 if x or y is
    binary), V 1/3 (1/4). The number of strata and their sizes stay private.
    Privacy: epsilon-DP (85 % for U, 15 % for V), or rho-zCDP with mechanism=Gaussian(rho).
    P-value: exact for the noise of U; asymptotic normal null within strata (large in number or in size).

    As published: `jaxdp.published.PaperKendall`, Definition 6 of the paper, not private at the epsilon asked for.
    """

    spec: ClassVar[TestSpec] = TestSpec(
        name="conditional-kendall",
        summary="Kendall's tau within strata; for ordered discrete columns",
        known_as=("kendall", "kendalltau", "mantel-haenszel", "cochran-mantel-haenszel", "cmh"),
        columns=Columns.CODES,
        assumption=builders.WITHIN_CELLS,
        alternatives="monotone dependence of X and Y given Z",
        effect="association of X and Y given Z",
        describe_effect=_describe_effect,
        accepts=on_a_line,
        rank=lambda domain: 2 * (given_levels(domain) and on_a_line(domain)),
        suitability=lambda domain: {LINEAR: 2, MONOTONE: 2} if not domain.z or given_levels(domain) else {},
        shown=("u", "released rank statistic U"),
        planning=Planning("tables:kendall_power", narrow=True, gaussian_formula="narrow", coded_z=True),
        theory="docs/theory/conditional_kendall.md",
    )
    bounds = KENDALL_BOUNDS, VARIANCE_BOUNDS
    maximal_variance: ClassVar[float] = 0.125  # n/9 in general, n/8 for binary strata of two

    def of_strata(self, summaries):
        if self._both_binary():
            return {"u": concordance.kendall_u(summaries, offset=0.0), "v": concordance.cmh_variance(summaries)}
        return {"u": concordance.kendall_u(summaries), "v": concordance.kendall_variance(summaries)}

    def sum_per_effect(self, v, num_records):
        if self._both_binary():
            return v
        untied = 4.5 * v  # a stratum without ties: n(n - 1)/2 pairs over n + 5/2, against V = n(n - 1)/(9 (n + 5/2))
        if num_records is None:
            return untied
        size = num_records / max(self.num_strata, 1)  # uneven strata hold more pairs
        even = 0.5 * num_records * max(size - 1.0, 0.0) / (size + 2.5)
        return jnp.clip(untied, even, 0.5 * num_records)

    def variance_at(self, effect, variance, num_records):
        records = self.max_records if num_records is None else num_records
        if self._both_binary():
            s = jnp.sqrt(jnp.clip(variance / records, 1e-6, 1.0 / 16.0))
            return variance * effect_sizes.count_growth(effect, s, order=1.0)
        if num_records is None:
            return effect_sizes.shrunk(variance, effect)
        g = effect * self.sum_per_effect(variance, num_records) / jnp.maximum(variance, 1e-12)
        growth = effect_sizes.count_growth(g, effect_sizes.heaped(9.0 * variance / records), order=0.0)
        return effect_sizes.shrunk(variance, effect) * growth

    def largest_effect(self) -> float:
        return MAX_LOG_ODDS if self._both_binary() else 1.0

    def _both_binary(self) -> bool:
        return all(0 < count <= 2 for count in self.levels)
