"""Logistic regression: the slope of one column in the log odds of a yes, others held fixed, with its interval.

Theory: docs/theory/logistic_regression.md.
"""

from __future__ import annotations

from typing import Any, ClassVar

from jaxdp._base.pytree import frozen_pytree
from jaxdp.data.dataset import Domain
from jaxdp.independence import effect_sizes
from jaxdp.independence.continuous import moment_test, regression_test
from jaxdp.independence.continuous.regression_test import LITTLE, UNEVEN, RegressionTest
from jaxdp.spec import Planning, TestSpec
from jaxdp.statistics.regression_families import Logistic

STEEP = "nearly determined"
SENTENCES = {
    LITTLE: f"{effect_sizes.NOTHING}by its noisy sums the information about X, apart from the columns held fixed, is "
    "not far above the noise, so there is no interval and the p-value is 1. More records of the rarer outcome, a "
    "larger epsilon or fewer columns of Z would help.",
    STEEP: "There is no interval: as far as this epsilon shows it, the slope may be steeper than any that is looked "
    f"for, {Logistic.limit:g} in the log odds per standard deviation of X. So it is where X, or all columns together, "
    "nearly determine Y, and where few say yes in the far tail of a column held fixed. The p-value needs no such "
    "number.",
    UNEVEN: regression_test.NO_WIDTH,
}


def refusal(domain: Domain) -> str:
    """Why this is no logistic regression, with the way out; "" where it is one."""
    if len(domain.y) != 1 or domain.y[0].levels != 2:
        column = domain.y[0]
        told = f"{column.name or 'y'} has {column.levels}" if column.levels else f"{column.name or 'y'} is continuous"
        told = told if len(domain.y) == 1 else "there are more columns"
        return (
            f"logistic-regression takes a Y of two levels, and {told}: name two, the second of which is the yes, or "
            "use linear-regression"
        )
    return regression_test.refusal("logistic-regression", domain)


def describe_effect(test, x, y, interval) -> str:
    """Of what, per what, and the interval as one of the odds ratio."""
    (x,), (y,) = x, y
    told = f" of {y.name} = {y.levels[1]}{regression_test.told_of_x(x)}"
    return told + effect_sizes.describe_ratio("odds ratio", interval)


@frozen_pytree
class LogisticRegression(RegressionTest):
    """Private logistic regression of y on x and z: the slope of x in the log odds, with its interval.

    x: one column, numbers or two levels. y: two levels, the second is the yes; of a y that no domain describes, every
    number above 0 is (values are private, so that other codes cannot be refused). z: up to ten columns, numbers or
    codes.
    6 and 4 % of the budget release centres and scales of continuous columns, where public numbers say that these are
    more than noise (else nothing: the public bounds serve, and the scores get it); 35 % second moments of the columns
    clipped there, which whiten them and give a start g0; the rest, in one to three rounds by public numbers, the sums
    of the scores w (y - mu(z'g0)) z, with 75 % of a round, and of a row of the information, with 25 %. Weights w depend
    on x and z alone, so that neither they nor the clip bend a slope of the model.
    Sensitivity, replace-one: centres and scales 1 in Linf a column; moments p (p + 1.5)^2/(2 (p + 1)) in L1 for p
    columns, sqrt(2) (p + 1/4) in L2, less with unordered levels in z; scores and information 1 each, in units of how
    far a record moves them, which is computed from what was released (docs/theory/logistic_regression.md#sensitivity).
    Privacy: epsilon-DP, or rho-zCDP with mechanism=Gaussian(rho); adaptive composition.
    P-value: of slope 0, by the score of x with the others fitted; all noise counted; below 0.05 exactly where
    the interval leaves out 0. It assumes the logistic model, in columns clipped at their public bounds. 1 where
    noise hides the information about x.
    effect: slope of x in the log odds of a yes, with an interval of 95 %: the slopes whose p-value, by the same law, is
    at least 0.05; NaN where noise hides the information, where there is no end to it, or where X is spread otherwise
    than its width supposes. In units of the data as given to the test; `jaxdp.test` gives the schema's units.
    Errors: ValueError for other columns, too many records, or too few.

    bound: public half range of continuous columns. enforce_rule: False runs the test even where the noise surely hides
    the columns. centres, scales, start, stage, rounds, levelled: set by the stages (in half ranges).
    """

    family: ClassVar[Any] = Logistic()
    sentences: ClassVar[dict[str, str]] = SENTENCES
    spec: ClassVar[TestSpec] = TestSpec(
        name="logistic-regression",
        summary="logistic regression: the slope of X in the log odds of Y given Z, with its odds ratio and interval",
        known_as=("logistic", "logit", "odds-ratio"),
        from_domain=moment_test.from_domain,
        assumption="The log odds of Y are linear in X and Z as clipped at their bounds, ordered levels counted as "
        "equally spaced numbers: what Z explains otherwise may count as a slope of X. Where they bend in X, the "
        "interval allows for 4 % of the slope; where they bend in far tails of X, it misses the slope of maximum "
        'likelihood more often than one time in twenty (scale = "log" shortens a tail).',
        alternatives="log odds of Y that are linear in X given Z",
        effect="log odds ratio",
        own_units=regression_test.own_units,
        describe_effect=describe_effect,
        accepts=lambda domain: not refusal(domain),
        why_not=refusal,
        one_effect=lambda domain: not refusal(domain),
        planning=Planning(
            "odds:logistic_power",
            gaussian_formula="always",
            min_records=50,
            linear=True,
            setting="odds:LogisticSetting",
            reference="odds:plain_power_of",
        ),
        theory="docs/theory/logistic_regression.md",
    )

    def response(self, values):
        """0 or 1."""
        return (values > 0.0).astype(float)
