"""Difference of the winsorised means of two private groups, with interval, from one noisy moment matrix.

Theory: docs/theory/partial_correlation.md#two-groups.
"""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax

from jaxdp._base.pytree import frozen_pytree
from jaxdp.data.dataset import Domain
from jaxdp.independence.continuous import moment_test, validity
from jaxdp.independence.continuous.mean_difference import comparable, group_is_y, groups_and_response, own_units
from jaxdp.independence.continuous.moment_columns import described
from jaxdp.independence.continuous.moment_test import MomentTest
from jaxdp.spec import Planning, TestSpec
from jaxdp.statistics import partial_correlations, two_groups

TWO_GROUPS = (
    "The response is nearly normal about the mean of its group, with one sd in both groups; the t-test's assumption. "
    "Where the means are equal but spreads differ, p-values below 0.05, and intervals that leave out 0, come more "
    "often than one time in twenty (9.5 % of data sets where a tenth of the records has three times the sd of the "
    "others). mean-difference compares the means of two groups without assuming equal spreads."
)


def _describe_effect(test, x, y, interval) -> str:
    """Which groups, and what the number is not."""
    group, response = groups_and_response(x[0], y[0])
    return (
        f" of {response.name}{response.in_steps}, {group.levels[1]} - {group.levels[0]}, values "
        "winsorised at a private scale; it is the difference of plain means only where the response is normal in both "
        "groups, with one sd"
    )


@frozen_pytree
class WinsorisedMeanDifference(MomentTest):
    """Private t-test of winsorised means: narrower than `MeanDifference` for wide bounds, but a different estimand.

    The response is winsorised at a private centre and scale, and both groups are taken for normals with one sd: where
    they are skewed, or spread differently, the difference of their plain means may lie outside of every interval.

    One of x and y is the group (two levels, private), the other the response; where both have two levels x is the
    group. z, if given, adjusts linearly. Statistic, sensitivity, privacy: as `WinsorisedPartialCorrelation`.
    P-value: that of slope 0 of the response on the group; noise counted. The difference is that of two normals with one
    sd, seen through one clip; given z it is twice the slope.
    effect: mean in the second group minus mean in the first, with an interval of 95 %; in units of the data as they are
    given to the test, `jaxdp.test` gives the schema's units. Errors: ValueError where neither has two levels.
    """

    group_is_y: bool = jax.tree.static(default=True)

    spec: ClassVar[TestSpec] = TestSpec(
        name="winsorised-mean-difference",
        summary="private t-test of two groups, of winsorised means; narrower where bounds are wide",
        from_domain=moment_test.from_domain,
        assumption=TWO_GROUPS,
        alternatives="a difference of the winsorised means of two groups",
        effect="difference of the winsorised means",
        own_units=own_units,
        describe_effect=_describe_effect,
        planning=Planning(
            formula="moments:partial_correlation_power", gaussian_formula="always", min_records=50, table=True
        ),
        accepts=comparable,
        theory="docs/theory/partial_correlation.md",
    )

    @property
    def has_interval(self) -> bool:
        """The sentence names what is estimated, and that it is the difference of plain means of normal groups only."""
        return True

    pairwise = None  # type: ignore[assignment]  # one column holds the groups

    def specialize(self, shapes):
        x, y = (described(shapes, role) for role in ("x", "y"))
        if not comparable(Domain(x, y)):
            raise ValueError(
                "winsorised-mean-difference compares two groups: x or y must be one column of two levels; use "
                "linear-regression."
            )
        return dataclasses.replace(self, group_is_y=group_is_y(x[0], y[0]))._with_stages(shapes)

    def validity(self, data):
        """Run, flag columns of Z that may be far from normal, or refuse too few records."""
        found, flags = super().validity(data), self.margins(data)
        if found.verdict == validity.REFUSE or not flags:
            return found
        return validity.Validity(validity.FLAG, self.spec.assumption, flags)

    def null_and_estimate(self, found, x, y, given):
        """The slope of the response on the group if it is 0, and twice its value: groups are two apart."""
        null, _ = partial_correlations.partial_correlation(found, x, y, given)
        limits = self.limits()
        if self.group is not None:
            found_apart = two_groups.estimate(found, self.group, two_groups.difference)
            return null, partial_correlations.scaled(found_apart, limits[1 - self.group])
        group, response = (y, x) if self.group_is_y else (x, y)
        slope = partial_correlations.slope(found, group, response, given)
        return null, partial_correlations.scaled(slope, 2.0 * limits[response] / limits[group])
