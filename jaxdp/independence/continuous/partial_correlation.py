"""Partial correlation given any number of columns, with an interval that holds whatever the laws of the columns.

Theory: docs/theory/residual_scores.md.
"""

from __future__ import annotations

from typing import ClassVar

from jaxdp._base.pytree import frozen_pytree
from jaxdp.independence.continuous import moment_test
from jaxdp.independence.continuous.linear_regression import ANY_LAWS, LINEAR, clipped_at_bounds
from jaxdp.independence.continuous.residual_test import ResidualTest
from jaxdp.spec import Columns, Planning, TestSpec


@frozen_pytree
class PartialCorrelation(ResidualTest):
    """Private partial correlation of x and y given z, any number of columns of z, with a robust interval.

    Pearson's correlation of residuals: the estimand is that of what the least-squares fits on z and a constant leave
    of x and y, all clipped at their public bounds, and of nothing else: no private clip, no model of the columns. The
    releases are those of `LinearRegression`, with scores u v/(s_u s_v) - r (u^2/s_u^2 + v^2/s_v^2)/2, u and v
    residuals, s their sds and r their correlation by the released moments.
    Sensitivity, replace-one: moments p (p + 1.5)^2/(2 (p + 1)) in L1 for p columns, sqrt(2) (p + 1/4) in L2; scores
    with spreads, and squares, m each in L1 for m pairs, sqrt(m) in L2, in units that are computed from the released
    moments. Privacy: epsilon-DP, or rho-zCDP with mechanism=Gaussian(rho); adaptive composition.
    Theory: docs/theory/residual_scores.md#sensitivity.
    P-value: of correlation 0, Bonferroni over pairs; sampling by the sandwich variance, all noise counted. 1 where the
    noise hides a column of z.
    effect: partial correlation of each column of x and each of y, the other columns of x and all of z held fixed,
    (p, q), with intervals of 95 %: the correlations whose p-value, by the same law, is at least 0.05, of m pairs
    0.05/m, so that they hold together; NaN where the noise hides how far a residual varies.
    Errors: ValueError for too many records.
    bound: public half range of continuous columns.
    """

    correlation: ClassVar[bool] = True
    without_z: ClassVar[str] = ANY_LAWS
    spec: ClassVar[TestSpec] = TestSpec(
        name="partial-correlation",
        summary="partial correlation given any number of Z with a robust interval, at the schema's bounds",
        known_as=("pearson", "pearsonr", "correlation", "partial_corr", "fisherz"),
        columns=Columns.CODES,
        from_domain=moment_test.from_domain,
        assumption=LINEAR,
        alternatives="linear dependence of X and Y given Z",
        effect="partial correlation of X and Y given Z",
        describe_effect=clipped_at_bounds,
        furthest=lambda x, y: 1.0,
        planning=Planning(
            formula="residuals:correlation_power",
            gaussian_formula="always",
            min_records=50,
            without_z=True,
            linear=True,
        ),
        theory="docs/theory/residual_scores.md",
    )
