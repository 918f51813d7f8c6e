"""Partial correlation of columns winsorised at a private scale, given any number, from one noisy moment matrix.

Theory: docs/theory/partial_correlation.md.
"""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp

from jaxdp._base.pytree import frozen_pytree
from jaxdp.independence.continuous import moment_test, validity
from jaxdp.independence.continuous.moment_test import MomentTest
from jaxdp.spec import Planning, TestSpec
from jaxdp.statistics import partial_correlations, two_groups

LINEAR = (
    "All columns, those of Z too, are normal together (or a normal copula with nearly normal margins): columns are "
    "clipped, and what depends on a Z far from normal is no line any more; what is not linear in Z is not removed, and "
    "only linear dependence is seen."
)


@frozen_pytree
class WinsorisedPartialCorrelation(MomentTest):
    """Private partial correlation of winsorised columns: finds more than `PartialCorrelation` where bounds are wide.

    Fisher's z of columns winsorised at private centres and scales and unclipped as normal ones: where they are not
    normal the estimand differs, its level given Z is not kept, and it has no interval unless `normal` says so.
    Statistic: continuous columns clipped at T sds about private centres, w in [-1, 1]; M = sum w w' over records and
    t0 sum w, for all columns of z, x and y together. Everything else is post-processing: Pearson's correlations of the
    unclipped columns, partial correlations, intervals.
    Sensitivity: p (p + 1 + t0)^2/(2 (p + 1)) in L1 for p columns, t0 = 1/2; sqrt(2) (p + t0^2) in L2 with off-diagonal
    numbers counted sqrt(2) times (docs/theory/partial_correlation.md#sensitivity).
    Privacy: epsilon-DP, or rho-zCDP with mechanism=Gaussian(rho); a quarter of the budget for centres and scales.
    P-value: two-sided; the law of the released numbers' noise, weighted by the estimate's derivatives, plus a normal
    part of the sampling. Level rests on the linear model, and on the first order in the noise.
    effect: the partial correlation, with an interval of 95 % that counts the noise. x of p and y of q columns: all p q
    partial correlations given z, p-value Bonferroni's. Missing values count as the centre of the bounds.
    """

    spec: ClassVar[TestSpec] = TestSpec(
        name="winsorised-partial-correlation",
        summary="partial correlation of winsorised, nearly normal columns; finds more where bounds are wide",
        from_domain=moment_test.from_domain,
        assumption=LINEAR,
        alternatives="linear dependence of X and Y given Z",
        effect="partial correlation of X and Y given Z",
        describe_effect=moment_test.winsorised,
        planning=Planning(
            formula="moments:partial_correlation_power",
            gaussian_formula="always",
            min_records=50,
            without_z=True,
            linear=True,
        ),
        theory="docs/theory/partial_correlation.md",
    )

    def validity(self, data):
        """Run: no cells and no neighbours; the sentence names the linear model. Too few records are refused."""
        found = super().validity(data)
        if found.verdict == validity.REFUSE:
            return found
        flags = self.margins(data)
        return validity.Validity(
            validity.FLAG if flags else validity.RUN,
            "Any number of columns of Z: no cells and no neighbours, the level rests on the linear model of normal "
            "columns.",
            flags,
        )

    def null_and_estimate(self, found, x, y, given):
        """The partial correlation if the true one is 0, and at its value."""
        null, own = partial_correlations.partial_correlation(found, x, y, given)
        return null, own if self.group is None else two_groups.estimate(found, self.group, two_groups.correlation)

    def interval(self, estimate):
        """Fisher's z with the noise counted."""
        half = self.half_width(estimate) / (1.0 - estimate.value**2)
        middle = jnp.arctanh(estimate.value)
        return jnp.tanh(middle - half), jnp.tanh(middle + half)
