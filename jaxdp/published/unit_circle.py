"""The unit circle mechanism and Algorithm 3 of its paper, as published.

Source: Kakizaki, Fukuchi and Sakuma 2017. What is wrong: the test's threshold is set at the private margin M1 as if it
were public; Algorithm 3 takes its realised threshold noise back, so that accepted tables are not paid for.
Recommended: `jaxdp.UnitCircle`, `jaxdp.FirstTables`, `jaxdp.BestTables`.
"""

import dataclasses
import functools
from typing import Any, ClassVar, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import null_laws
from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Cost
from jaxdp.independence.tables.gwas import FirstTables, ThresholdNoise
from jaxdp.independence.tables.margin_adaptive import largest_step
from jaxdp.independence.tables.unit_circle import SUPREMUM, UnitCircle, chi_squared_quantile
from jaxdp.mechanisms import Laplace
from jaxdp.noise import survival as tail
from jaxdp.spec import TestSpec
from jaxdp.statistics.tables import binomial, unit_circle
from jaxdp.statistics.tables.unit_circle import Groups


@final
@frozen_pytree
class PaperUnitCircle(UnitCircle):
    """The published unit-circle test: noise for sqrt(Delta_1^2 + Delta_0^2), threshold at the private margin M1.

    Statistic: u minus the threshold that belongs to M1 (its exact Monte Carlo limit); positive values reject.
    What is wrong: M1 is not public, so the noise does not cover the move of the threshold
    (docs/theory/unit_circle.md#private-margin).
    Privacy: the result carries the epsilon that is true: the largest change of u - threshold(M1), enumerated, over the
    noise scale. Takes epsilon= alone.
    P-value: `level` or 1, a decision; its size may exceed `level`.
    """

    thresholds: Any = None

    spec: ClassVar[TestSpec] = UnitCircle.spec.as_published(
        "unit-circle-paper",
        "unit circle as published, threshold at the private margin; its proof is false",
        true_epsilon="enumerated: the largest change of the statistic with its threshold over the noise scale",
    )

    def __post_init__(self):
        super().__post_init__()
        if self.null != SUPREMUM or self.mechanism is not None:
            raise ValueError("PaperUnitCircle takes epsilon= alone: its threshold and its noise are part of it.")

    def specialize(self, shapes):
        return super().specialize(shapes).prepared()

    def prepared(self):
        """This test with its thresholds, one for each margin."""
        if self.thresholds is not None:
            return self
        return dataclasses.replace(self, thresholds=_thresholds(self.groups, self.epsilon, self.level))

    def mechanism_in_force(self):
        # Written as the budget that is true: the noise scale stays what the paper adds.
        scale = unit_circle.paper_sensitivity(self.groups, self.threshold) / check.budget(self.epsilon)
        return Laplace(self.move() / scale)

    def score(self, exposed_cases, exposed_controls):
        exposed = jnp.asarray(exposed_cases + exposed_controls, jnp.int32)
        return super().score(exposed_cases, exposed_controls) - jnp.asarray(self.thresholds, float)[exposed]

    def move(self):
        """Largest change of u - threshold(M1) over lattice edges, enumerated."""
        if _is_number(self.epsilon):
            return _enumerated_move(self.groups, float(np.asarray(self.epsilon)), self.level)
        return largest_step(self.score(*_lattice(self.groups)))

    def score_range(self):
        lower, upper = super().score_range()
        return lower - jnp.max(jnp.asarray(self.thresholds)), upper

    def no_gradient(self, name):
        return null_laws.DECISION

    def p_value(self, key, release):
        return null_laws.decision(release.value > 0.0, self.level)

    def estimate(self, release):
        """The noisy norm minus the threshold."""
        return release.value


@final
@frozen_pytree
class PaperThresholdNoise(ThresholdNoise):
    """Algorithm 3's noise: Laplace noise on every query; the threshold noise cancels.

    Privacy: epsilon/(4 s1) for each of the s2 outputs (docs/theory/gwas.md#algorithm-3-as-printed).
    """

    def scales(self, bound):
        return 0.0, 4.0 * self.count * bound / self.epsilon

    def survival(self, bound):
        """x -> P(query noise >= x)."""
        second = self.scales(bound)[1]
        return lambda x: tail.laplace(x, second)

    def fired(self, source, asked, sensitivity):
        noise = Laplace(self.epsilon * self._price())
        all_at_once = dataclasses.replace(
            sensitivity, bound=self.outputs * sensitivity.bound, error=self.outputs * sensitivity.error, norm=noise.norm
        )
        fired = noise.perturb(source, asked, all_at_once) >= self.threshold
        return fired & (jnp.cumsum(fired) <= self.count)

    def _price(self) -> float:
        return self.outputs / (4.0 * self.count)

    def cost(self, relation) -> Cost:
        """epsilon/(4 s1) for each of the s2 outputs."""
        epsilon = self.epsilon * self._price()
        return Cost(epsilon=epsilon, delta=0.0, rho=epsilon**2 / 2, relation=relation)


@final
@frozen_pytree
class PaperFirstTables(FirstTables):
    """Algorithm 3 of the unit-circle paper as printed: its quantile subtracts the threshold noise, so that it cancels.

    What is wrong: each of the s2 = `max_outputs` outputs then costs epsilon/(4 s1), s1 = `count`, and nothing pays for
    accepted tables (docs/theory/gwas.md#algorithm-3-as-printed).
    Privacy: the result carries the true epsilon, s2 epsilon/(4 s1).
    """

    noise_law: ClassVar[type[ThresholdNoise]] = PaperThresholdNoise

    spec: ClassVar[TestSpec] = FirstTables.spec.as_published(
        "first-tables-paper",
        "the first tables that depend, as printed; its claim is false",
        true_epsilon="tables answered/(4 count) times the one asked for",
    )

    def sensitivity(self, num_records):
        lower, upper = self.single().score_range()
        return dataclasses.replace(super().sensitivity(num_records), lower=lower, upper=upper)


def margin_thresholds(groups: Groups, scale, level: float, threshold):
    """(1 - level)-quantiles of u + Laplace(scale) at the null rates m/N, m = 0, ..., N; array (N + 1,).

    The exact limit of the paper's Monte Carlo threshold for the margin M1 = m and these public groups.
    """
    half = np.arange(groups.total // 2 + 1) / groups.total

    def statistic(cases, controls):
        return unit_circle.norm(cases, controls, groups, threshold)

    def survival(x):
        return tail.laplace(x, scale)

    low = binomial.quantiles(statistic, survival, level, groups, half, 40.0 * scale)
    # u is the same for (c11, c10) and (N1 - c11, N0 - c10), so the margins m and N - m agree.
    return jnp.concatenate([low, low[: groups.total - half.size + 1][::-1]])


def _thresholds(groups: Groups, epsilon, level: float):
    """The thresholds of the paper's noise at this epsilon, (N + 1,); kept where epsilon is a number."""
    if _is_number(epsilon):
        return _tabulated(groups, float(np.asarray(epsilon)), level)
    threshold = chi_squared_quantile(level)
    return margin_thresholds(groups, unit_circle.paper_sensitivity(groups, threshold) / epsilon, level, threshold)


@functools.lru_cache(maxsize=32)
def _tabulated(groups: Groups, epsilon: float, level: float):
    threshold = chi_squared_quantile(level)
    scale = unit_circle.paper_sensitivity(groups, threshold) / epsilon
    with jax.ensure_compile_time_eval(), jax.enable_x64(True):
        return np.asarray(jax.jit(lambda s: margin_thresholds(groups, s, level, threshold))(scale))


@functools.lru_cache(maxsize=32)
def _enumerated_move(groups: Groups, epsilon: float, level: float) -> float:
    with jax.ensure_compile_time_eval(), jax.enable_x64(True):
        cases, controls = _lattice(groups)
        u = unit_circle.norm(cases, controls, groups, chi_squared_quantile(level))
        return float(largest_step(u - _tabulated(groups, epsilon, level)[(cases + controls).astype(int)]))


def _lattice(groups: Groups):
    """All pairs of counts, (N1 + 1, 1) and (1, N0 + 1)."""
    return np.arange(groups.cases + 1.0)[:, None], np.arange(groups.controls + 1.0)[None, :]


def _is_number(epsilon) -> bool:
    return check.is_concrete(epsilon) and np.ndim(epsilon) == 0
