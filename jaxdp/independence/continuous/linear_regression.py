"""Slopes of the ordinary least-squares regression, with intervals that hold whatever the laws of the columns.

Theory: docs/theory/residual_scores.md.
"""

from __future__ import annotations

import math
from typing import ClassVar

import jax.numpy as jnp

from jaxdp._base.pytree import frozen_pytree
from jaxdp.independence.continuous import moment_test
from jaxdp.independence.continuous.residual_test import ResidualTest
from jaxdp.spec import Columns, Planning, TestSpec

ANY_LAWS = "Nothing is assumed of the laws of the columns, and spreads may differ."
LINEAR = (
    "What Z explains of X or of Y is linear in Z, ordered levels counted as equally spaced numbers: what is not is not "
    "removed, and counts as dependence of X and Y. "
    f"{ANY_LAWS}"
)


def _own_units(x, y) -> float:
    """Of a slope on [-1, 1] in the columns' own units."""
    return y[0].half_range / x[0].half_range


def clipped_at_bounds(test, x, y, interval) -> str:
    """Between which bounds columns were clipped, and which of two levels counts as more."""
    told = [f"{rule.name} {rule.clipped}" for rule in (*y, *x) if rule.is_continuous]
    told += [f"{rule.name} = {rule.levels[1]} against {rule.levels[0]}" for rule in (*y, *x) if len(rule.levels) == 2]
    return f" ({', '.join(told)})" if told else ""


def _describe_effect(test, x, y, interval) -> str:
    """Between which bounds columns were clipped, which count in steps; and of two levels of Y, what its slope is."""
    share = f": of the share of {y[0].name} = {y[0].levels[1]}, no odds ratio" if len(y[0].levels) == 2 else ""
    of_y = f", Y{y[0].in_steps}" if y[0].counts_in_steps else ""
    of_x = f", per {x[0].unit}" if x[0].counts_in_steps else ""
    return share + clipped_at_bounds(test, x, () if share else y, interval) + of_y + of_x


@frozen_pytree
class LinearRegression(ResidualTest):
    """Private linear regression of y on x and z: least-squares slopes of the columns of x, with robust intervals.

    The estimand is the slope of the least-squares fit of y on x, z and a constant, all clipped at their public bounds,
    and of nothing else: no private clip, no model of the columns. Two fifths of the budget (0.3 where nothing is held
    fixed) release all second moments; then, for each x and y, the sum of scores u (v - t u)/s, u and v residuals and t
    the slope by those moments, with it the sum of spreads u^2/s, so that no interval rests on noise that selected it,
    and the sum of the squared scores, which is the sandwich variance.
    Sensitivity, replace-one: moments p (p + 1.5)^2/(2 (p + 1)) in L1 for p columns, sqrt(2) (p + 1/4) in L2; scores
    with spreads, and squares, m each in L1 for m slopes, sqrt(m) in L2, in units that are computed from the released
    moments. Privacy: epsilon-DP, or rho-zCDP with mechanism=Gaussian(rho); adaptive composition.
    Theory: docs/theory/residual_scores.md#sensitivity.
    P-value: of slope 0, Bonferroni over the slopes; sampling by the sandwich variance, all noise counted. 1 where the
    noise hides X or the columns held fixed.
    Columns of x and y that are nominal come as codes: each level but the first is a column, compared with the first.
    effect: slope of y on each column of x, the other columns of x and all of z held fixed; (p, q) for several columns,
    with intervals of 95 %: the slopes whose p-value, by the same law, is at least 0.05, of m slopes 0.05/m, so that
    they hold together; NaN where the noise hides them, or hides the first level with which others are compared. In
    units of the data as they are given to the test; `jaxdp.test` gives the schema's units.
    Errors: ValueError for too many records. bound: public half range of continuous columns.
    """

    without_z: ClassVar[str] = ANY_LAWS
    spec: ClassVar[TestSpec] = TestSpec(
        name="linear-regression",
        summary="least-squares slopes with robust intervals, at the schema's bounds",
        known_as=("regression", "ols", "linregress", "ancova"),
        columns=Columns.CODES,
        from_domain=moment_test.from_domain,
        assumption=LINEAR,
        alternatives="linear dependence of X and Y given Z",
        effect="slope of Y on X given Z, in the columns' own units",
        own_units=_own_units,
        furthest=lambda x, y: _own_units(x, y) if len(x[0].levels) == 2 else math.inf,  # on numbers it has no bound
        describe_effect=_describe_effect,
        planning=Planning(
            formula="residuals:slope_power", gaussian_formula="always", min_records=50, without_z=True, linear=True
        ),
        theory="docs/theory/residual_scores.md",
    )

    def units(self):
        """Of each slope in units of the data, (m,): half ranges of y over those of x; levels lie on [-1, 1]."""
        halves = jnp.where(jnp.asarray(self.levelled), 1.0, self.bound)
        pairs, _ = self.queries()
        return halves[pairs[:, 1]] / halves[pairs[:, 0]]
