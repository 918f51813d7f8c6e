"""Poisson regression: the slope of one column in the log mean of a count, others held fixed, with its interval.

Theory: docs/theory/poisson_regression.md.
"""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.data.dataset import BINARY, CATEGORICAL, Column, Domain
from jaxdp.independence import effect_sizes
from jaxdp.independence.continuous import moment_test, regression_test
from jaxdp.independence.continuous.regression_test import LITTLE, SQUARES, UNEVEN, RegressionTest
from jaxdp.spec import Planning, TestSpec
from jaxdp.statistics.regression_families import CAP_LEAST, POISSON, Poisson

STEEP = "steep"
SENTENCES = {
    LITTLE: f"{effect_sizes.NOTHING}by its noisy sums the information about X, apart from the columns held fixed, is "
    "not far above the noise, so there is no interval and the p-value is 1. More records, a larger epsilon, closer "
    "bounds of Y or fewer columns of Z would help.",
    STEEP: "There is no interval: as far as this epsilon shows it, the slope may be steeper than any that is looked "
    f"for, {Poisson.limit:g} in the log mean per standard deviation of X. The p-value needs no such number.",
    UNEVEN: regression_test.NO_WIDTH,
}


def _not_a_count(column: Column) -> str:
    """What keeps a column from being a Y whose mean is modelled by its logarithm; "" where nothing does."""
    name = column.name or "y"
    if column.kind in (BINARY, CATEGORICAL) or column.levels in (1, 2):
        return f"{name} has levels"
    if column.logarithmic:
        return f"{name} is read by its logarithm"
    return "" if column.from_zero else f"the range of {name} begins elsewhere"


def refusal(domain: Domain) -> str:
    """Why this is no Poisson regression, with the way out; "" where it is one."""
    told = _not_a_count(domain.y[0]) if len(domain.y) == 1 else "there are more columns"
    if told:
        return (
            "poisson-regression takes a Y of counts or amounts, continuous with bounds = [0, HIGH] or ordinal with the "
            f"levels 0, 1, 2, ..., and {told}: change the schema where that is true of Y, or use linear-regression or "
            "logistic-regression"
        )
    return regression_test.refusal("poisson-regression", domain)


def describe_effect(test, x, y, interval) -> str:
    """Of what, per what, and the interval as one of the rate ratio."""
    (x,), (y,) = x, y
    ends = f" {y.clipped}" if y.is_continuous else ""
    told = f" of {y.name}{ends}{regression_test.told_of_x(x)}"
    return told + effect_sizes.describe_ratio("rate ratio", interval)


@frozen_pytree
class PoissonRegression(RegressionTest):
    """Private Poisson regression of y on x and z: the slope of x in the log mean of y, with its interval.

    x: one column, numbers or two levels. y: counts or amounts from 0 to a public bound, where they are clipped.
    z: up to ten columns, numbers or codes.
    Stages and shares: those of `RegressionTest`; scores w (y - mu(z'g0)) z have 70 % of a round, a row of the
    information w mu(z'g0) z_X z has 22 %, and 8 % release the sum of squares of X's scores, which says how far the
    variance of y exceeds what moments of y show. Weights w depend on x and z alone.
    Sensitivity, replace-one: centres and scales 1 in Linf a column; moments p (p + 1.5)^2/(2 (p + 1)) in L1 for p
    columns, sqrt(2) (p + 1/4) in L2, less with unordered levels in z; scores, information and squares 1 each, in
    units of how far a record moves them, which is computed from what was released
    (docs/theory/poisson_regression.md#sensitivity).
    Privacy: epsilon-DP, or rho-zCDP with mechanism=Gaussian(rho); adaptive composition.
    P-value: of slope 0, by the score of x with the others fitted; all noise counted; below 0.05
    exactly where the interval leaves out 0. It assumes that the log mean is
    linear, in columns clipped at their public bounds, and nothing of the variance. 1 where noise hides the information
    about x.
    effect: slope of x in the log mean, with an interval of 95 %: the slopes whose p-value, by the same law, is at least
    0.05; NaN where noise hides the information, where there is no end to it, or where X is spread otherwise than its
    width supposes. In units of the data as given to the test; `jaxdp.test` gives the schema's units.
    Errors: ValueError for other columns, too many records, or too few.

    most: public upper end of y where no domain describes the columns. bound: public half range of continuous columns of
    x and z. enforce_rule: False runs the test even where the noise surely hides the columns. centres, scales, start,
    stage, rounds, levelled, scaled: set by the stages (in half ranges).
    """

    most: ArrayLike = 1.0
    scaled: bool = jax.tree.static(default=False)

    family: ClassVar[Any] = POISSON
    sentences: ClassVar[dict[str, str]] = SENTENCES
    shares: ClassVar[dict[str, Fraction]] = {
        "scores": Fraction(70, 100),
        "information": Fraction(22, 100),
        SQUARES: Fraction(8, 100),
    }
    most_information: ClassVar[float] = 1.0 / CAP_LEAST
    spec: ClassVar[TestSpec] = TestSpec(
        name="poisson-regression",
        summary="Poisson regression: the slope of X in the log mean of a count Y given Z, with its rate ratio and "
        "interval",
        known_as=("poisson", "rate-ratio", "count-regression", "log-linear", "quasi-poisson"),
        from_domain=moment_test.from_domain,
        assumption="The log mean of Y, clipped at its bounds, is linear in X and Z as clipped at theirs, ordered "
        "levels counted as equally spaced numbers: what Z explains otherwise may count as a slope of X. Where it bends "
        "in X, the interval misses the slope of maximum likelihood more often than one time in twenty. Nothing is "
        "assumed of the variance of Y.",
        alternatives="a log mean of Y that is linear in X given Z",
        effect="log rate ratio",
        own_units=regression_test.own_units,
        describe_effect=describe_effect,
        accepts=lambda domain: not refusal(domain),
        why_not=refusal,
        one_effect=lambda domain: not refusal(domain),
        planning=Planning(
            "rates:poisson_power",
            gaussian_formula="always",
            min_records=50,
            linear=True,
            setting="rates:PoissonSetting",
            reference="odds:plain_power_of",
        ),
        theory="docs/theory/poisson_regression.md",
    )

    def __post_init__(self):
        super().__post_init__()
        check.positive(most=self.most)

    def _with_layout(self, shapes):
        return dataclasses.replace(super()._with_layout(shapes), scaled=shapes.domain is not None)

    def response(self, values):
        """Y over its public upper end."""
        return jnp.clip(0.5 * (1.0 + values) if self.scaled else values / self.most, 0.0, 1.0)
