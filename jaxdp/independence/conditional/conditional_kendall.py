"""Conditional Kendall: is x independent of y within every stratum of z?

Theory: docs/theory/conditional_kendall.md. Symbols: U, V, T6 (Definition 6 of the paper).
"""

import dataclasses
import math
from typing import ClassVar

import jax

from jaxdp import _check
from jaxdp._pytree import frozen_pytree
from jaxdp.core import Norm, Relation, Sensitivity
from jaxdp.independence import builders
from jaxdp.independence.conditional.kendall_examples import EXAMPLES
from jaxdp.independence.conditional.rank_test import UNIT_ROUNDOFF, StratifiedRankTest, as_default_float, choose
from jaxdp.mechanisms import Laplace
from jaxdp.spec import Columns, Planning, TestSpec, all_discrete, on_a_line
from jaxdp.statistics import concordance

# docs/theory/conditional_kendall.md#sensitivity. Rows: general, one variable binary, both binary. Columns:
# add-or-remove-one, replace-one given z, replace-one without z. A record's arrival in a stratum moves S/(n - 1) by at
# most 1 + 1/2 (1 if one variable is binary), a replacement is a removal and an arrival or stays in its stratum.
KENDALL_BOUNDS = ((1.5, 3.0, 2.0), (1.0, 2.0, 2.0), (1.0, 2.0, 1.0))
# docs/theory/conditional_kendall.md#variance: an arrival moves V by at most +1/3 and at least -0.105 (both binary: +1/4
# and -1/8).
VARIANCE_BOUNDS = ((1 / 3, 0.44, 0.44), (1 / 3, 0.44, 0.44), (0.25, 0.375, 0.375))
# Definition 6 under replace-one, sup over all strata: a row of a stratum of three turns from concordant
# to discordant with all others while every other stratum is a single record
# (docs/theory/conditional_kendall.md#definition-6).
PAPER_SENSITIVITY = 36.0 / math.sqrt(297.0)


def paper_claim(num_records: int) -> float:
    """The sensitivity of Definition 6 that the paper claims (Theorem 7), 4.5/sqrt(n - 1). It is too small."""
    return 4.5 / math.sqrt(max(num_records - 1, 1))


def paper_sensitivity(num_records: int, levels: tuple[int, int], conditional: bool) -> float:
    """An upper bound on the true sensitivity of Definition 6, attained for general data from n = 3."""
    if conditional or num_records < 2:
        return PAPER_SENSITIVITY
    n = float(num_records)
    one_stratum = 18.0 * (n - 1.0) / ((2.0 * n + 5.0) * math.sqrt(9.0 * n * (n - 1.0) / (2.0 * (2.0 * n + 5.0))))
    return one_stratum / 2.0 if all(0 < count <= 2 for count in levels) else one_stratum


@frozen_pytree
class ConditionalKendall(StratifiedRankTest):
    """Private Kendall test of X independent of Y given Z, for coded, ordered or continuous columns.

    Statistic: U = sum over strata of S_i/(n_i + 5/2), S_i = concordant minus discordant pairs, and its
    tie-corrected null variance V. Two binary variables: divisor n_i and the exact hypergeometric variance,
    the Cochran-Mantel-Haenszel numerator. x, y: one column each; ties are allowed, NaN counts as 0.
    Strata: joint levels of the coded columns of z, public bins of the continuous ones.
    Refused unless accept_coarse_cells: two or more continuous columns of z. One is flagged (`level_rule`), and ranks
    forgive no trend within a cell, however small the residuals: `BandGCM` (kernel="sign" is its Kendall form).
    Sensitivity (docs/theory/conditional_kendall.md#sensitivity, #variance), replace-one: U 3 (2 if x or y is binary or
    z is absent, 1 if both hold for x and y), V 0.44 (3/8 if both are binary); add-or-remove-one: U 3/2 (1 if x or y is
    binary), V 1/3 (1/4). The number of strata and their sizes stay private.
    Privacy: epsilon-DP (85 % for U, 15 % for V), or rho-zCDP with mechanism=Gaussian(rho).
    P-value: exact for the noise of U; asymptotic normal null within strata (large in number or in size).

    variant="paper": Definition 6 of the paper (signed S_i) with Laplace noise for the claimed sensitivity
    4.5/sqrt(n - 1). The claim is false (docs/theory/conditional_kendall.md#definition-6): the result carries the true
    epsilon, which is 2.09 sqrt(n - 1)/4.5 times the one asked for, given z. Replace-one only.
    """

    variant: str = jax.tree.static(default="studentised")

    spec: ClassVar[TestSpec] = TestSpec(
        name="conditional-kendall",
        summary="Kendall's tau within strata; for ordered discrete columns",
        columns=Columns.CODES,
        assumption=builders.WITHIN_CELLS,
        sees="monotone dependence of X and Y given Z",
        fits=on_a_line,
        rank=lambda domain: 2 * (bool(domain.z) and on_a_line(domain) and all_discrete(domain)),
        shown=("u", "released rank statistic U"),
        planning=Planning("tables:kendall_power", narrow=True, gaussian_formula="narrow"),
        theory="docs/theory/conditional_kendall.md",
        examples=EXAMPLES,
    )
    maximal_variance: ClassVar[float] = 0.125  # n/9 in general, n/8 for binary strata of two

    def __post_init__(self):
        super().__post_init__()
        _check.one_of(("studentised", "paper"), variant=self.variant)
        if self.variant == "paper" and self.relation is not Relation.REPLACE_ONE:
            raise ValueError("variant='paper' exists under replace_one only.")

    def resolve(self, shapes):
        test = super().resolve(shapes)
        if self.variant != "paper" or self.epsilon is None:
            return test
        # Noise scale claim/epsilon on a statistic of sensitivity D is D epsilon/claim-DP, no better.
        num_records = shapes.x.shape[0]
        factor = paper_sensitivity(num_records, test.levels, test.num_strata != 1) / paper_claim(num_records)
        return dataclasses.replace(test, epsilon=None, mechanism=Laplace(_check.budget(self.epsilon) * factor))

    def budget(self):
        if self.variant != "paper":
            return super().budget()
        if self.mechanism is None:
            raise ValueError("the budget of variant='paper' depends on n: ask the resolved test, test.resolve(shapes).")
        return self.mechanism

    def statistic(self, key, data):
        """Dict of `u` and `v`, floats; for variant="paper" the scalar of Definition 6."""
        del key
        with jax.enable_x64(True):
            strata = self.summaries(data)
            if self.variant == "paper":
                value = concordance.paper_statistic(strata)
            elif self._both_binary():
                value = {"u": concordance.kendall_u(strata, offset=0.0), "v": concordance.cmh_variance(strata)}
            else:
                value = {"u": concordance.kendall_u(strata), "v": concordance.kendall_variance(strata)}
        return as_default_float(value)

    def sensitivity(self, num_records):
        conditional = self.num_strata != 1
        if self.variant == "paper":
            return Sensitivity(
                bound=paper_sensitivity(num_records, self.levels, conditional),
                norm=Norm.L1,
                relation=Relation.REPLACE_ONE,
                error=8.0 * num_records**1.5 * UNIT_ROUNDOFF,
                lower=-1.5 * math.sqrt(num_records),
                upper=1.5 * math.sqrt(num_records),
            )
        bound_u = choose(KENDALL_BOUNDS, self.levels, self.relation, conditional)
        bound_v = choose(VARIANCE_BOUNDS, self.levels, self.relation, conditional)
        return self._bounds(bound_u, bound_v, num_records)

    def p_value(self, key, release):
        if self.variant == "paper":
            return self.budget().null_p_value(release.value, 1.0, release.sensitivity)
        return super().p_value(key, release)

    def headline(self, release):
        return release.value if self.variant == "paper" else super().headline(release)

    def _both_binary(self) -> bool:
        return all(0 < count <= 2 for count in self.levels)
