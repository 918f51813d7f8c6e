"""Planning of Poisson regression: normal columns, a log mean linear in them; power with privacy and without."""

import dataclasses
from typing import ClassVar

import jax.numpy as jnp
import numpy as np

from jaxdp._base import check
from jaxdp.data.dataset import Column
from jaxdp.independence.continuous.poisson_regression import PoissonRegression
from jaxdp.plan.odds import RegressionSetting, power_of
from jaxdp.plan.setting import Setting


@dataclasses.dataclass(frozen=True)
class PoissonSetting(RegressionSetting):
    """A count whose log mean is linear in X and Z; the effect is the log rate ratio per sd of X.

    rate: mean of Y over its upper bound. most: this bound, in counts. dispersion: variance of Y over its mean, given X
    and Z, 1 of Poisson counts. Other fields: those of `RegressionSetting`.
    """

    y: Column = Column(from_zero=True)
    rate: float = 0.1
    most: float = 10.0
    dispersion: float = 1.0

    max_effect: ClassVar[float] = 1.0  # a mean that is steeper comes to the bound of Y
    method: ClassVar[str] = "poisson-regression"
    units: ClassVar[tuple[str, str, str]] = ("log rate ratio", "a rate ratio", "a log mean")
    half_the_rate: ClassVar[str] = "the mean of Y is half as large"

    def __post_init__(self):
        super().__post_init__()
        check.positive(most=self.most, dispersion=self.dispersion)

    @classmethod
    def of_schema(cls, schema, x: str, y: str, given=(), **fields) -> Setting:
        """The setting of columns of a `jaxdp.Schema`, which says the upper bound of Y."""
        rule = schema.rule(*schema.named("y", [y]))
        most = rule.upper if rule.is_continuous else len(rule.levels) - 1.0
        return super().of_schema(schema, x, y, given, **{"most": float(most), **fields})

    def mean(self, along, numpy=np):
        """At most 1."""
        return numpy.minimum(numpy.exp(along), 1.0)

    def curvature(self, mean):
        """The variance is so many times the mean."""
        return mean, self.dispersion / self.most * mean

    def two_values(self, mean):
        """0, and what then has the mean and the variance."""
        high = np.minimum(mean + self.dispersion / self.most, 1.0)
        return mean / high, -np.ones(len(mean)), 2.0 * high - 1.0

    def drawn(self, uniform, mean):
        """By a law of two values in place of counts: sums of scores depend on mean and variance alone."""
        high = jnp.minimum(mean + self.dispersion / self.most, 1.0)
        return 2.0 * jnp.where(uniform < mean / high, high, 0.0) - 1.0

    def planned_for(self) -> str:
        """Mean and spread of Y."""
        told = f"a Y with a mean of {self.rate * self.most:.3g}, of up to {self.most:g}"
        return told + (f", {self.dispersion:g} times as spread as Poisson's" if self.dispersion != 1.0 else "")


def poisson_power(setting: Setting, n: int, epsilon, effect: float, level: float) -> float:
    return power_of(PoissonRegression, setting, n, epsilon, effect, level)
