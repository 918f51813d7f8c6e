"""Baselines on a case/control table: noise on chi-squared itself, and on the distance to its threshold.

Theory: docs/theory/table_tests.md#chi-squared-plus-noise, #distance-score; Johnson and Shmatikov 2013.
"""

from typing import ClassVar

import jax.numpy as jnp

from jaxdp._base.pytree import frozen_pytree
from jaxdp.independence.tables.case_control import CaseControlTest, of_groups
from jaxdp.independence.tables.margin_adaptive import distance_table
from jaxdp.mechanisms import Geometric
from jaxdp.spec import Planning, TestSpec
from jaxdp.statistics.tables import unit_circle


@frozen_pytree
class ChiSquaredLaplace(CaseControlTest):
    """Private chi-squared test of a 2x2 case/control table with public groups: chi-squared plus noise.

    Sensitivity: (N^2/(N1 N0)) (1 - 1/(max(N1, N0) + 1)), exact; about 4 for equal groups
    (docs/theory/unit_circle.md#sensitivity), so the noise drowns the statistic below epsilon 1. Relation
    REPLACE_ATTRIBUTE.
    Privacy: epsilon-DP by Laplace noise, or rho-zCDP with mechanism=Gaussian(rho).
    P-value: the largest exact tail over null rates (not the chi-squared limit law).
    """

    spec: ClassVar[TestSpec] = of_groups(
        name="chi2-laplace",
        summary="noise on chi-squared itself, y a public group label; weak",
        planning=Planning("tables:chi2_laplace_power", table=True, reference="tables:chi_squared_power"),
        theory="docs/theory/table_tests.md",
    )

    def score(self, exposed_cases, exposed_controls):
        return unit_circle.chi_squared(exposed_cases, exposed_controls, self.groups)

    def move(self):
        return unit_circle.chi_squared_sensitivity(self.groups)

    def score_range(self):
        return 0.0, float(self.groups.total)


@frozen_pytree
class DistanceScore(CaseControlTest):
    """Private test of a 2x2 case/control table: the noisy number of people who must change to flip the decision.

    Statistic: d if chi-squared rejects at `level`, where d people must change x until it accepts; 1 - d' if it
    accepts, d' people away from rejecting (Johnson and Shmatikov 2013, with the offset of
    docs/theory/table_tests.md#distance-score).
    Sensitivity: exactly 1. Relation REPLACE_ATTRIBUTE. Privacy: epsilon-DP by two-sided geometric noise.
    P-value: the largest exact tail over null rates. Needs a table of all counts (N1 N0 up to 1.6e7).
    """

    spec: ClassVar[TestSpec] = of_groups(
        name="distance-score",
        summary="distance of a table from a decision, y a public group label",
        planning=Planning(table=True, reference="tables:chi_squared_power"),
        theory="docs/theory/table_tests.md",
    )
    default_mechanism = Geometric

    def score(self, exposed_cases, exposed_controls):
        table = jnp.asarray(distance_table(self.groups, self.level), float)
        return table[exposed_cases.astype(jnp.int32), exposed_controls.astype(jnp.int32)]

    def of_counts(self, exposed_cases, exposed_controls):
        """The score of the table, a whole number."""
        return self.score(exposed_cases, exposed_controls).astype(int)

    def move(self):
        return 1.0

    def rounding(self, ends):
        return 0.0  # whole numbers

    def score_range(self):
        return -float(self.groups.total), float(self.groups.total)
