"""Conditional Spearman: the rank-correlation companion of `ConditionalKendall`.

Theory: docs/theory/spearman.md. Symbols: U_rho, its permutation variance V.
"""

from typing import ClassVar

import jax.numpy as jnp

from jaxdp._base.pytree import frozen_pytree
from jaxdp.independence import builders, effect_sizes
from jaxdp.independence.ranks.rank_test import StratifiedRankTest
from jaxdp.spec import Columns, Planning, TestSpec, on_a_line
from jaxdp.statistics import concordance

# docs/theory/spearman.md#sensitivity: an arrival moves (n - 1) rho by (5n - 7)/(n + 1) < 5; within one
# stratum a replacement moves it by (n - 1) 6/(n + 1) < 6. Binary variables are not treated apart.
SPEARMAN_BOUNDS = ((5.0, 10.0, 6.0),) * 3
# V_i = (n - 1) a b with a, b in [0, 1] the untied fractions 1 - sum C(t+1, 3)/C(n+1, 3). An arrival raises
# V_i by at most 3 and lowers it by at most 1: docs/theory/spearman.md#variance.
VARIANCE_BOUNDS = ((3.0, 4.0, 4.0),) * 3


def _describe_effect(test, x, y, interval) -> str:
    """What its interval assumes, and what goes with what."""
    told = effect_sizes.describe_assumption(x[0], y[0], interval)
    return told + effect_sizes.describe_direction(x[0], y[0], interval)


@frozen_pytree
class ConditionalSpearman(StratifiedRankTest):
    """Private Spearman test of X independent of Y given Z, for coded, ordered or continuous columns.

    Statistic: U = sum over strata of (n_i - 1) rho_i with the tie-safe rho_i = 3 sum A B/(n_i (n_i^2 - 1)),
    A, B = numbers of smaller minus larger values, and its exact permutation variance V.
    Refused unless accept_coarse_cells: a continuous column of z, since ranks remove no trend within a cell, however
    small the residuals. `BandGCM` takes it (kernel="sign" is its Kendall form).
    Sensitivity (docs/theory/spearman.md#sensitivity): U 10 under replace-one (6 without z), 5 under
    add-or-remove-one; V 4 and 3 (docs/theory/spearman.md#variance).
    Privacy: epsilon-DP (85 % for U, 15 % for V), or rho-zCDP with mechanism=Gaussian(rho).
    P-value: exact for the noise of U; asymptotic normal null. Per unit of null sd the noise is 10/9 of
    Kendall's given z, and the same without z.
    """

    spec: ClassVar[TestSpec] = TestSpec(
        name="conditional-spearman",
        summary="Spearman's rank correlation within strata; for ordered columns, not winsorised",
        known_as=("spearman", "spearmanr", "spearman-rho"),
        columns=Columns.CODES,
        assumption=builders.WITHIN_CELLS,
        alternatives="monotone dependence of X and Y given Z",
        effect="Spearman's rho of X and Y given Z, corrected for ties",
        describe_effect=_describe_effect,
        accepts=on_a_line,
        shown=("u", "released rank statistic U"),
        planning=Planning("tables:spearman_power", narrow=True, gaussian_formula="narrow", coded_z=True),
        theory="docs/theory/spearman.md",
    )
    bounds = SPEARMAN_BOUNDS, VARIANCE_BOUNDS

    def of_strata(self, summaries):
        return {"u": concordance.spearman_u(summaries), "v": concordance.spearman_variance(summaries)}

    def sum_per_effect(self, v, num_records):
        if num_records is None:
            return v  # as without ties
        positive = jnp.maximum(v, 1e-9)  # the gradient of a root at 0 is infinite
        return jnp.sqrt(positive * jnp.maximum(num_records - self.num_strata, positive))

    def variance_at(self, effect, variance, num_records):
        if num_records is None:
            return effect_sizes.shrunk(variance, effect)
        s = effect_sizes.heaped(variance / num_records)
        return effect_sizes.shrunk(variance, effect) * effect_sizes.count_growth(effect / s, s, order=0.5)
