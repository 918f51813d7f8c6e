"""Slopes of a linear regression with intervals, from one noisy moment matrix.

Theory: docs/theory/partial_correlation.md#slopes.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from jaxdp._base.pytree import frozen_pytree
from jaxdp.independence.continuous import level_rule, moment_examples, moment_test
from jaxdp.independence.continuous.moment_test import MomentTest
from jaxdp.independence.continuous.partial_correlation import LINEAR
from jaxdp.spec import Planning, TestSpec
from jaxdp.statistics import partial_correlations, two_groups

SMALLEST = 1000.0  # n epsilon below which intervals of slopes cover too rarely: 0.86 measured at 500


def _own_units(x, y) -> float:
    """Of a slope on [-1, 1] in the columns' own units."""
    return y[0].half_range / x[0].half_range


@frozen_pytree
class LinearRegression(MomentTest):
    """Private linear regression of y on x and z: slopes of the columns of x, with intervals and a test of slope 0.

    Statistic, sensitivity, privacy: those of `PartialCorrelation` on the same columns; one release.
    P-value: of the largest slope among the columns of x, Bonferroni over them; noise counted.
    effect: slope of y on each column of x, the other columns of x and all of z held fixed; (p, q) for several columns,
    with intervals of 95 %. In units of the data as they are given to the test; `jaxdp.test` gives the schema's units.
    Intervals rest on the linear model with normal columns, and cover too rarely where n epsilon is below 1000.
    """

    spec: ClassVar[TestSpec] = TestSpec(
        name="linear-regression",
        summary="slopes with intervals from one noisy moment matrix",
        from_domain=moment_test.from_domain,
        assumption=LINEAR,
        sees="linear dependence of X and Y given Z",
        effect="slope of Y on X given Z, in the columns' own units",
        own_units=_own_units,
        effect_told=moment_test.winsorised,
        planning=Planning(
            formula="moments:partial_correlation_power",
            gaussian_formula="always",
            least=50,
            without_z=True,
            linear=True,
        ),
        theory="docs/theory/partial_correlation.md",
        examples=moment_examples.SLOPES,
    )

    def level_rule(self, data):
        """Run, flag slopes from few records, or refuse too few; the sentence names the linear model."""
        found = super().level_rule(data)
        if found.verdict == level_rule.REFUSE:
            return found
        few = moment_test.public_epsilon(self) * data.x.shape[0] < SMALLEST
        flags = (*self.margins(data), *(("few records for intervals",) if few else ()))
        return level_rule.LevelRule(level_rule.FLAG if flags else level_rule.RUN, LINEAR, flags)

    pairwise = None  # type: ignore[assignment]  # a slope given the other columns of x is no query about a pair

    def queries(self):
        pairs, given = super().queries()
        others = list(self.places()[1])
        given[:, others] = True
        given[np.arange(len(pairs)), pairs[:, 0]] = False
        return pairs, given

    def estimate(self, found, x, y, given):
        """The slope if it is 0 (the law of the partial correlation), and at its value."""
        null, _ = partial_correlations.partial_correlation(found, x, y, given)
        limits = self.limits()
        if self.group is not None and self.sizes[0] == 0 and self.group == 0:
            apart = two_groups.estimate(found, self.group, two_groups.difference)
            return null, partial_correlations.scaled(apart, 0.5 * limits[1])  # levels are two apart
        return null, partial_correlations.scaled(partial_correlations.slope(found, x, y, given), limits[y] / limits[x])
