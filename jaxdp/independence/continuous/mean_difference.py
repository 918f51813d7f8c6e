"""Difference of the means of two private groups, with an interval that holds whatever the laws of the response.

Theory: docs/theory/mean_difference.md. Symbols: `statistics/group_scores.py`; W = `SUM_WEIGHT`.
"""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Interpretation, Norm, PrivateQuery, PrivateTest, Relation, Sensitivity, Sequential
from jaxdp.data.dataset import Domain
from jaxdp.independence import effect_sizes
from jaxdp.independence.continuous import moment_columns, score_law
from jaxdp.independence.continuous.moment_test import from_domain
from jaxdp.independence.continuous.score_law import Found
from jaxdp.mechanisms import Laplace, divide
from jaxdp.spec import Planning, TestSpec
from jaxdp.statistics import group_scores, moments, partition, sums
from jaxdp.statistics.group_scores import Groups

SIZES_SHARE = Fraction(1, 5)  # of the budget, for the size of the second group and the mean response
SHARES = {"scores": Fraction(3, 4), "squares": Fraction(1, 4)}  # of the rest
SUM_WEIGHT = 0.25  # W: the sum of responses is released times this
SIZES, SCORES = "sizes", "scores"  # what is released next
WINSORISED = "winsorised-mean-difference"
SMALL_GROUP = "small group"
BY_RANK = "kruskal-wallis compares ordered levels by rank alone"
_WAYS_OUT = (
    f"more records, a larger epsilon, closer bounds in the schema, or {WINSORISED}, which estimates another number"
)
SENTENCES = {
    SMALL_GROUP: f"{effect_sizes.NOTHING}by its noisy count one group has too few records for this epsilon, "
    "so there is no interval and the p-value is 1. More records of that group or a larger epsilon would help.",
    score_law.DROWNED: "The noise hides how far the response spreads within its bounds, so the interval is as wide as "
    f"the largest spread that fits the release makes it. What would help: {_WAYS_OUT}.",
    score_law.WIDE: "The noise, which is set by the bounds, makes the interval more than twice as wide as it would be "
    f"without. What would help: {_WAYS_OUT}.",
}


def comparable(domain) -> bool:
    """One column of x and one of y, each a number, one of them with two levels."""
    columns = [part[0] for part in (domain.x, domain.y) if len(part) == 1]
    numbers = all(moment_columns.width(column) == 1 for column in columns)
    return len(columns) == 2 and numbers and any(column.levels == 2 for column in columns)


def group_is_y(x, y) -> bool:
    """Whether y is the group: where it alone has two levels. Of two such columns x is, as `y ~ x` is read."""
    return x.levels != 2 and y.levels == 2


def groups_and_response(x, y):
    """The schema's rules of the group and of the response, in the same order."""
    return (y, x) if len(x.levels) != 2 else (x, y)


def own_units(x, y) -> float:
    return groups_and_response(x[0], y[0])[1].half_range


def furthest(x, y) -> float:
    """The range of the response."""
    return 2.0 * own_units(x, y)


def describe_effect(test, x, y, interval) -> str:
    """Which groups, and between which bounds the response was clipped."""
    group, response = groups_and_response(x[0], y[0])
    if len(response.levels) == 2:
        name, ends = f"{response.name} = {response.levels[1]}", ", a difference of shares:"
        return f" of {name}{ends} where {group.name} is {group.levels[1]}, less where it is {group.levels[0]}"
    ends = f" {response.clipped}" if response.is_continuous else response.in_steps
    by_rank = "" if response.is_continuous else f"; {BY_RANK}"
    return f" of {response.name}{ends}, {group.levels[1]} - {group.levels[0]}{by_rank}"


def size_bound(euclidean: bool) -> float:
    """How far replacing one record moves (size, W sum): by (1, 2 W) at most."""
    return math.hypot(1.0, 2.0 * SUM_WEIGHT) if euclidean else 1.0 + 2.0 * SUM_WEIGHT


@frozen_pytree
class GroupSizes(PrivateQuery):
    """Size of the second group, and W times the sum of all responses.

    Sensitivity: a replaced record moves the size by at most 1 and the sum by at most 2: L1 1 + 2 W, L2 sqrt(1 + 4 W^2),
    both attained. Theory: docs/theory/mean_difference.md#sensitivity.
    """

    of: Any = None  # the test, which knows the columns

    method: ClassVar[str] = "GroupSizes"
    reads_missing: ClassVar[bool] = True

    def statistic(self, key, data):
        """(2,)."""
        return self._released(group_scores.five_sums(*self.of.columns(data)))

    def partial(self, chunk, num_records=None):
        return self.of.partial(chunk, num_records)

    def finish(self, totals):
        return self._released(self.of.five_sums_of(totals))

    @staticmethod
    def _released(found):
        return jnp.stack([found["count"][1], SUM_WEIGHT * (found["sum"][0] + found["sum"][1])])

    def sensitivity(self, num_records):
        norm, limit = self.mechanism.norm, SUM_WEIGHT * num_records
        bound = size_bound(norm is Norm.L2)
        lower, upper = np.array([0.0, -limit]), np.array([1.0 * num_records, limit])
        return Sensitivity(bound, norm, Relation.REPLACE_ONE, lower=lower, upper=upper)

    def groups(self, release) -> Groups:
        """What the release says."""
        scale = self.mechanism.scale(release.sensitivity)
        count, total = release.value[0], release.value[1] / SUM_WEIGHT
        per_scale = self.mechanism.variance(release.sensitivity) / jnp.maximum(scale, 1e-30) ** 2
        return Groups.of(count, total, release.num_records, scale, scale / SUM_WEIGHT, per_scale)


def _with_groups(test, query, released):
    return dataclasses.replace(test, groups=query.groups(released))


@frozen_pytree
class MeanDifference(PrivateTest):
    """Private Welch test: does the mean of a response differ between two groups? With the difference and its interval.

    One of x and y is the group (two levels, private), the other the response; where both have two levels x is the
    group. No z: `LinearRegression` adjusts, and so does `WinsorisedMeanDifference`.
    The estimand is the difference of the means of the response clipped at its public bounds, and of nothing else: no
    private clip. First a fifth of the budget releases the size of the second group and W times the sum of responses;
    then the sum of the scores phi, which has the difference as its mean, and the sum of their squares.
    Sensitivity, replace-one: sizes 1 + 2 W in L1, sqrt(1 + 4 W^2) in L2; scores and squares 1 each, in units of
    their public range. Privacy: epsilon-DP, or rho-zCDP with mechanism=Gaussian(rho); adaptive composition.
    Theory: docs/theory/mean_difference.md#sensitivity.
    P-value: of a difference of 0, with unequal spreads and all noise counted; assumes a sum of scores that is normal
    (docs/evidence/coverage.md). Where the smaller group has fewer than five sds of the noise in its size, it is 1 and
    there is no interval (NaN); answers flag that, and noise that hides the spread or doubles the width.
    effect: mean in the second group minus mean in the first, with an interval of 95 %: the differences whose p-value,
    by the same law, is at least 0.05. In units of the data as given to the test, `jaxdp.test` gives the schema's units.
    Errors: ValueError where neither has two levels, for z, and for too many records.

    bound: public half range of the response; values outside are clipped.
    groups, stage, group_is_y, levelled: set by the stages (levelled: the response has levels, so it lies on [-1, 1]).
    """

    bound: ArrayLike = 1.0
    groups: Any = None
    stage: str = jax.tree.static(default=SIZES)
    group_is_y: bool = jax.tree.static(default=True)
    levelled: bool = jax.tree.static(default=False)

    reads_missing: ClassVar[bool] = True
    averages_rows: ClassVar[bool] = True
    spec: ClassVar[TestSpec] = TestSpec(
        name="mean-difference",
        summary="private Welch test of two groups with the difference of means and its interval",
        known_as=("t-test", "ttest_ind", "welch", "welch-t-test", "z-test", "proportions_ztest"),
        from_domain=from_domain,
        alternatives="a difference of the means of two groups",
        effect="difference of the means",
        own_units=own_units,
        furthest=furthest,
        describe_effect=describe_effect,
        planning=Planning(
            formula="moments:mean_difference_power", gaussian_formula="always", min_records=50, table=True
        ),
        accepts=lambda domain: comparable(domain) and not domain.z,
        theory="docs/theory/mean_difference.md",
    )

    def __post_init__(self):
        super().__post_init__()
        check.positive(bound=self.bound)

    def mechanism_in_force(self):
        whole = Laplace(self.epsilon) if self.mechanism is None else self.mechanism
        return divide(whole, SHARES) if self.stage == SCORES else whole

    def specialize(self, shapes):
        """The sizes, then the scores."""
        if self.stage == SCORES:
            return self
        x, y = (moment_columns.described(shapes, role) for role in ("x", "y"))
        if not comparable(Domain(x, y)):
            raise ValueError(
                "mean-difference compares two groups: x or y must be one column of two levels; use linear-regression."
            )
        if shapes.z is not None:
            raise ValueError(
                f"mean-difference does not adjust for Z: use linear-regression or {WINSORISED}, or leave Z out."
            )
        if shapes.x.shape[0] > moments.MAX_RECORDS:
            raise ValueError(f"{shapes.x.shape[0]} records are too many for exact sums, at most {moments.MAX_RECORDS}.")
        whole = self.mechanism_in_force()
        scores = dataclasses.replace(
            self,
            epsilon=None,
            mechanism=whole.share(1 - SIZES_SHARE),
            stage=SCORES,
            group_is_y=group_is_y(x[0], y[0]),
            levelled=moment_columns.bounded((x if group_is_y(x[0], y[0]) else y)[0]),
        )
        sizes = GroupSizes(mechanism=whole.share(SIZES_SHARE), of=scores)
        return Sequential(first=sizes, second=scores, then=_with_groups)

    # Private

    def columns(self, data):
        """Whether a record is in the second group, bool (n,), and its response on the grid, (n,)."""
        roles = ("y", "x") if self.group_is_y else ("x", "y")
        made = []
        for role in roles:
            (column,) = moment_columns.described(data, role)
            values = moment_columns.numbers(partition.as_matrix(getattr(data, role)), (column,))[:, 0]
            made.append(values if moment_columns.bounded(column) else values / self.bound)
        return jnp.nan_to_num(made[0], nan=-1.0) > 0.0, moments.on_grid(made[1])

    def statistic(self, key, data):
        """Dict of both sums."""
        return self.groups.scores(group_scores.five_sums(*self.columns(data)))

    def partial(self, chunk, num_records=None):
        """Counts, sums and sums of squares of both groups, in whole numbers."""
        return sums.added(self, "on_grid", chunk, num_records, _sums_of_block)

    def on_grid(self, data, num_records):
        """Codes of the groups (n,), and responses (n,) as whole numbers."""
        group, response = self.columns(data)
        return group.astype(float), response * moments.GRID

    def finish(self, totals):
        return self.groups.scores(self.five_sums_of(totals))

    @staticmethod
    def five_sums_of(totals) -> dict[str, Any]:
        """`group_scores.five_sums` from `partial`."""
        return {name: totals[name] / moments.GRID**power for power, name in enumerate(("count", "sum", "square"))}

    def sensitivity(self, num_records):
        error = 64.0 * num_records * 2.0**-53  # a dozen roundings of numbers of at most 4 n
        return score_law.sensitivity(self.mechanism_in_force(), num_records, error)

    # What the release says

    def _found(self, release) -> Found:
        value = release.value
        about = (value["scores"], value["squares"], release.sensitivity, release.num_records)
        return Found(self.mechanism_in_force(), self.groups, *about)

    def no_gradient(self, name):
        return moments.ROUNDED if name == "bound" else ""

    def interpret(self, key, release):
        """The estimated difference, in half ranges, and as an effect with an interval of 95 %; NaN where none is."""
        found, unknown = self._found(release), self.groups.unknown
        interval = found.interval()
        effect = jnp.where(jnp.isnan(interval[0]), jnp.nan, found.estimate), interval
        p_value = jnp.where(unknown, 1.0, found.p_value(0.0))
        return Interpretation(p_value, found.estimate, *jax.tree.map(lambda value: value * self._unit, effect))

    @effect_sizes.settled_program
    def one_sided(self, release, effect):
        """By the pivot of the interval; both 1 where there is none."""
        return self._found(release).one_sided(effect / self._unit)

    @property
    def _unit(self):
        """What a response of 1 means in units of the data."""
        return 1.0 if self.levelled else self.bound

    @effect_sizes.settled_program
    def detectable_effect(self, release, level):
        """Smallest difference that would have been found with power 0.8, at the spread and the noise of this release.

        In units of the data; infinite where there is no interval, and the p-value is 1.
        """
        found = self._found(release).detectable(level)
        return jnp.where(self.groups.unknown, jnp.inf, found) * self._unit

    def effect_notes(self, shapes, release) -> dict[str, str]:
        """Why there is no interval, or a wide one; post-processing."""
        raised = self._raised(shapes, release)
        return {name: SENTENCES[name] for name, is_raised in raised.items() if bool(is_raised)}

    @effect_sizes.settled_program
    def _raised(self, release):
        return {SMALL_GROUP: self.groups.unknown} | self._found(release).notes()


def _sums_of_block(group, response) -> dict[str, Any]:
    """Of codes (n,) and whole numbers (n,)."""
    code = group.astype(np.int64)
    return {
        "count": sums.counts(code, 2),
        "sum": sums.cell_sums(code, response, 2, moments.GRID),
        "square": sums.cell_sums(code, response**2, 2, moments.GRID**2),
    }
