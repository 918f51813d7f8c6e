"""M-estimation: the slope of one column in a regression that a loss of one's own defines, with its interval.

Theory: docs/theory/m_estimator.md.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base.pytree import frozen_pytree
from jaxdp.data.columns import ORDINAL, Column
from jaxdp.data.dataset import Domain
from jaxdp.independence.continuous import moment_test, poisson_regression, regression_test
from jaxdp.independence.continuous.poisson_regression import STEEP, PoissonRegression
from jaxdp.independence.continuous.regression_test import RegressionTest
from jaxdp.spec import TestSpec
from jaxdp.statistics.loss_family import NEAR, Loss

SENTENCES = poisson_regression.SENTENCES | {
    STEEP: "There is no interval: as far as this epsilon shows it, the slope may be steeper than any that is looked "
    "for. Per standard deviation of X that is two fifths of the way between the linear predictors at which the mean "
    f"of Y is {100 * NEAR:g} and {100 - 100 * NEAR:g} % up its public range. The p-value needs no such number.",
}


def _not_a_number(column: Column) -> str:
    """What keeps a column from being a Y that a loss can read; "" where nothing does."""
    name = column.name or "y"
    if column.logarithmic:
        return f"{name} is read by its logarithm"
    if column.unordered:
        return f"{name} has levels without an order"
    return f"{name} has one level" if column.levels == 1 else ""


def refusal(domain: Domain) -> str:
    """Why no loss can be asked about these columns, with the way out; "" where one can."""
    told = _not_a_number(domain.y[0]) if len(domain.y) == 1 else "there are more columns"
    if told:
        return f"m-estimator takes one column Y of numbers, ordered levels or two levels, and {told}"
    return regression_test.refusal("m-estimator", domain)


def read_by_loss(x, y) -> dict[str, Any]:
    """The ends of the range in which a loss reads Y, by its rule: its own numbers, or 0 and 1 of two levels."""
    if len(y) != 1:
        return {}
    (rule,) = y
    if rule.is_continuous:
        return {"low": float(rule.lower), "high": float(rule.upper)}
    if rule.kind == ORDINAL and all(isinstance(level, int | float) for level in rule.levels):
        steps = np.diff(rule.levels)
        if steps.size and steps[0] > 0 and np.all(steps == steps[0]):
            return {"low": float(rule.levels[0]), "high": float(rule.levels[-1])}
    return {"low": 0.0, "high": max(len(rule.levels) - 1.0, 1.0)}


def describe_effect(test, x, y, interval) -> str:
    """Of what, and per what."""
    (x,), (y,) = x, y
    numbered = ", its levels numbered from 0," if y.counts_in_steps else ""
    read = f"{y.name}{numbered} between {test.low:g} and {test.high:g}"
    return f" of the loss {name_of(test.loss)} of {read}{regression_test.told_of_x(x)}"


def name_of(loss) -> str:
    """By which a loss is called in answers."""
    return getattr(loss, "__name__", type(loss).__name__)


@frozen_pytree
class MEstimator(RegressionTest):
    """Private M-estimation: the slope of x in the regression of y on x and z that minimises a loss, with its interval.

        def exponential(t, y):  # mean exp(t), e.g. of amounts
            return t + y * jnp.exp(-t)

        jaxdp.MEstimator(loss=exponential, low=0.0, high=100.0, epsilon=1.0)
        jaxdp.test(table, x=, y=, given=, method="m-estimator", fields={"loss": exponential}, ...)

    loss(t, y): one number, of the linear predictor t = a + b x + c'z and of y, written with jax.numpy: minus a log
    likelihood, such as `jax.nn.softplus(t) - y * t` of logistic regression. It must be convex in t with -d loss/dt
    linear in y, as of every generalised linear model whose loss is convex; of a y of two levels any convex loss will
    do. `jax.grad` gives the scores. The model is that the mean of -d loss/dt is 0 given x and z, which is a model of
    the mean of y; nothing is assumed of its variance.
    x: one column, numbers or two levels. y: one column of numbers, ordered or two levels, clipped at its public ends.
    z: up to ten columns, numbers or codes.
    low, high: public ends of y, in the units in which the loss reads it. `jaxdp.test` takes them from the schema: the
    bounds of numbers, the numbers of ordered levels (0, 1, 2, ... where those have none), 0 and 1 of two levels.
    Stages and shares: those of `PoissonRegression`, with squares of x's scores for the variance.
    Sensitivity, replace-one: centres and scales 1 in Linf a column; moments p (p + 1.5)^2/(2 (p + 1)) in L1 for p
    columns, sqrt(2) (p + 1/4) in L2, less with unordered levels in z; scores, information and squares 1 each, in
    units of how far a record moves them, which is computed from what was released and from the loss, and at which
    scores are cut whatever function the loss is (docs/theory/m_estimator.md#sensitivity).
    Privacy: epsilon-DP, or rho-zCDP with mechanism=Gaussian(rho); adaptive composition.
    P-value: of slope 0, by the score of x with the others fitted; all noise counted; below 0.05 exactly where
    the interval leaves out 0. 1 where noise hides the information about x.
    effect: slope of x in t, with an interval of 95 %: the slopes whose p-value, by the same law, is at least 0.05; NaN
    where noise hides the information, where there is no end to it, or where X is spread otherwise than its width
    supposes. In units of t per unit of x as given to the test; `jaxdp.test` gives the schema's units.
    Errors: ValueError for a function that is no such loss, other columns, too many records, or too few.

    bound: public half range of continuous columns of x and z. enforce_rule: False runs the test even where the noise
    surely hides the columns. centres, scales, start, stage, rounds, levelled, scaled: set by the stages (in half
    ranges).
    """

    loss: Callable[[Any, Any], Any] | None = jax.tree.static(default=None)
    low: float = jax.tree.static(default=0.0)
    high: float = jax.tree.static(default=1.0)
    scaled: bool = jax.tree.static(default=False)

    sentences: ClassVar[dict[str, str]] = SENTENCES
    shares: ClassVar[dict[str, Fraction]] = PoissonRegression.shares
    spec: ClassVar[TestSpec] = TestSpec(
        name="m-estimator",
        summary="M-estimation: the slope of X in a regression of Y given Z by a loss of one's own, with interval",
        known_as=("m-estimation", "quasi-likelihood", "glm", "generalized-linear-model", "custom-likelihood"),
        from_domain=moment_test.from_domain,
        needs=("loss",),
        of_columns=read_by_loss,
        assumption="The scores of the loss have mean 0 given X and Z, as clipped at their bounds, for one linear "
        "predictor, ordered levels counted as equally spaced numbers; where they have not, a slope of 0 may be "
        "rejected, and the interval misses the slope that minimises the mean loss more often than one time in "
        "twenty. Nothing is assumed of the variance of Y.",
        alternatives="a mean of Y that moves with X given Z as the loss models it",
        effect="slope in the linear predictor",
        own_units=regression_test.own_units,
        describe_effect=describe_effect,
        accepts=lambda domain: not refusal(domain),
        why_not=refusal,
        one_effect=lambda domain: not refusal(domain),
        theory="docs/theory/m_estimator.md",
    )

    def __post_init__(self):
        super().__post_init__()
        _ = self.family

    @property
    def family(self) -> Loss:
        """What the loss models, checked."""
        return Loss.of(self.loss, self.low, self.high)

    def specialize(self, shapes):
        """As of all regressions, where scores are linear in Y."""
        levels = 0 if shapes.domain is None else shapes.domain.y[0].levels
        if levels != 2 and not self.family.linear:
            raise ValueError(
                f"-d loss/dt of the loss {name_of(self.loss)} is not linear in y between {self.low:g} and "
                f"{self.high:g}: what such a loss estimates of a y of more than two values depends on its law, so "
                "there is no honest interval. Losses of generalised linear models are linear, those of quantile and "
                "robust regression are not."
            )
        return super().specialize(shapes)

    def _with_layout(self, shapes):
        return dataclasses.replace(super()._with_layout(shapes), scaled=shapes.domain is not None)

    def response(self, values):
        """Place of y between its public ends, counted from the one at which the loss models small t."""
        share = 0.5 * (1.0 + values) if self.scaled else (values - self.low) / (self.high - self.low)
        share = jnp.clip(share, 0.0, 1.0)
        return 1.0 - share if self.family.falls else share

    @property
    def unit(self):
        """Slope in t per unit of the data of a slope, in units of t, per sd of X apart from the others."""
        return super().unit * self.family.scale
