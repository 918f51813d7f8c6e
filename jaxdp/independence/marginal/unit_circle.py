"""UnitCircle: chi-squared of a case/control table, mapped to a norm of bounded sensitivity.

Source: Kakizaki, Fukuchi and Sakuma 2017; docs/theory/unit_circle.md. Symbols: u = norm,
tau = chi-squared quantile at `level`, Delta = `move`, p = null rate.
"""

import dataclasses
import functools
import itertools
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdp import _check, calibrate
from jaxdp._pytree import frozen_pytree
from jaxdp.independence import noise_law
from jaxdp.independence.marginal.case_control import CaseControlTest
from jaxdp.independence.marginal.margin_adaptive import largest_step
from jaxdp.mechanisms import Laplace, divide
from jaxdp.noise import tail
from jaxdp.simulate import examples
from jaxdp.spec import AuditSettings, Columns, Example, Planning, TestSpec, at_level, two_by_two
from jaxdp.statistics import binomial, unit_circle
from jaxdp.statistics.unit_circle import Groups

TIGHT, PAPER = "tight", "paper"
SUPREMUM, ESTIMATED, PUBLIC = "supremum", "estimated", "public"
MARGIN_SHARE = 0.15  # of the budget, for M1 under null="estimated"
MISS_SHARE = 0.04  # of every level: probability that the released margin misleads about the null rate
LEVELS = (0.05, 1e-3, 1e-5, 1e-8, 1e-12)  # a p-value of null="estimated" rests on the interval of one of them
ESTIMATED_RATES = 33  # null rates looked at between the two ends of the first interval for p
FURTHER_RATES = 6  # and on either side between one interval and the next


@frozen_pytree
class UnitCircle(CaseControlTest):
    """Private chi-squared test of a 2x2 case/control table with public groups, by the unit circle mechanism.

    Statistic: u = |v|, v = (1 - 2 M1/N, 2 (c11 N0 - c10 N1)/sqrt(tau N N1 N0)); u > 1 exactly where
    chi-squared exceeds its quantile tau at `level`.
    Sensitivity: max(Delta_1, Delta_0), Delta_g = the length of the step of v when a person of group g changes
    (docs/theory/unit_circle.md#sensitivity; attained to 1 % on the lattice). Relation REPLACE_ATTRIBUTE.
    Privacy: epsilon-DP by Laplace noise, or rho-zCDP with mechanism=Gaussian(rho).
    P-value: exact for the counts and for the noise, at every level (the statistic is tuned for one):

    null: "supremum", the largest tail over all null rates p; "public", at `rate`, a publicly known p;
        "estimated", 15 % of the budget releases M1. For each of a few levels t an interval misses p with
        probability 0.04 t at most, and the p-value is the smallest max(t, largest tail over the interval/0.96):
        valid (Berger and Boos 1994, with nested intervals), down to 1e-12, sharper than "supremum" for large N epsilon.
    variant: "tight"; or "paper", the published mechanism: noise for sqrt(Delta_1^2 + Delta_0^2) and a
        threshold at the private margin M1 (its Monte Carlo limit). M1 is not public there, so the result
        carries the epsilon that is true for it: the largest change of u - threshold(M1), enumerated, over the
        noise scale. It decides at `level` only (p-value `level` or 1) and its size may exceed it.
    """

    null: str = jax.tree.static(default=SUPREMUM)
    rate: ArrayLike | None = None
    variant: str = jax.tree.static(default=TIGHT)
    thresholds: ArrayLike | None = None

    spec: ClassVar[TestSpec] = TestSpec(
        name="unit-circle",
        summary="chi-squared of two binary columns, y a public group label",
        columns=Columns.GROUPS,
        from_domain=at_level,
        options=("level",),
        sees="any dependence of two binary columns",
        fits=two_by_two,
        planning=Planning("tables:unit_circle_power", table=True, reference="tables:chi_squared_power"),
        theory="docs/theory/unit_circle.md",
        examples=(
            Example(
                examples.groups, null=examples.equal_groups, reaches=0.99, audit=AuditSettings(examples.attacked_groups)
            ),
            Example(
                examples.groups,
                null=examples.equal_groups,
                fields={"null": "estimated"},
                label="estimated",
                reaches={"norm": 0.99, "margin": 1.0},
            ),
        ),
    )

    def __post_init__(self):
        super().__post_init__()
        _check.one_of((SUPREMUM, ESTIMATED, PUBLIC), null=self.null)
        _check.one_of((TIGHT, PAPER), variant=self.variant)
        if (self.null == PUBLIC) != (self.rate is not None):
            raise ValueError(
                f"rate is the public null rate of null='public', got null={self.null!r}, rate={self.rate}."
            )
        if self.rate is not None:
            _check.in_range(0.0, 1.0, rate=self.rate)
        if self.variant == PAPER and (self.null != SUPREMUM or self.mechanism is not None):
            raise ValueError("variant='paper' takes epsilon= alone: its threshold and its noise are part of it.")

    @property
    def threshold(self) -> float:
        """tau, the chi-squared quantile with one degree of freedom at `level`."""
        return _chi_squared_quantile(self.level)

    def resolve(self, shapes):
        return super().resolve(shapes).prepared()

    def prepared(self):
        """This test with the thresholds of the paper's variant; the others need none."""
        if self.variant != PAPER or self.thresholds is not None:
            return self
        _check_concrete(self.epsilon)
        table = _paper_thresholds(self.groups, float(np.asarray(self.epsilon)), self.level)
        return dataclasses.replace(self, thresholds=table)

    def budget(self):
        if self.variant == PAPER:
            # Written as the budget that is true: the noise scale stays what the paper adds.
            return Laplace(self.move() / self._paper_scale())
        mechanism = super().budget()
        if self.null != ESTIMATED:
            return mechanism
        return divide(mechanism, {"norm": 1.0 - MARGIN_SHARE, "margin": MARGIN_SHARE})

    def _paper_scale(self):
        return unit_circle.paper_sensitivity(self.groups, self.threshold) / _check.budget(self.epsilon)

    def score(self, exposed_cases, exposed_controls):
        norm = unit_circle.norm(exposed_cases, exposed_controls, self.groups, self.threshold)
        if self.variant != PAPER:
            return norm
        exposed = jnp.asarray(exposed_cases + exposed_controls, jnp.int32)
        return norm - jnp.asarray(self.thresholds, float)[exposed]

    def move(self):
        if self.variant != PAPER:
            return unit_circle.norm_sensitivity(self.groups, self.threshold)
        return _paper_move(self.groups, float(np.asarray(self.epsilon)), self.level)

    def score_range(self):
        lower, upper = unit_circle.norm_range(self.groups, self.threshold)
        if self.variant != PAPER:
            return lower, upper
        return lower - jnp.max(jnp.asarray(self.thresholds)), upper

    def statistic(self, key, data):
        """u, a scalar; with null="estimated" a dict of `norm` (u) and `margin` (M1)."""
        del key
        counts = self.counts(data)
        if self.null != ESTIMATED:
            return self.score(*counts)
        return {"norm": self.score(*counts), "margin": counts[0] + counts[1]}

    def sensitivity(self, num_records):
        if self.null != ESTIMATED:
            return super().sensitivity(num_records)
        budget = self.budget()
        total = float(self.groups.total)
        return {
            "norm": self.sensitivity_of(budget["norm"], self.move(), self.score_range()),
            "margin": self.sensitivity_of(budget["margin"], 1.0, (0.0, total)),
        }

    def p_value(self, key, release):
        if self.variant == PAPER:
            return calibrate.decision(release.value > 0.0, self.level)
        if self.null == PUBLIC:
            rate = jnp.reshape(jnp.asarray(self.rate, float), (1,))
            return self.null_tail(release.value, release.sensitivity, rate)
        if self.null == SUPREMUM:
            return super().p_value(key, release)
        return jnp.minimum(1.0, self._estimated_p_value(release))

    def _estimated_p_value(self, release):
        """min over levels t of max(t, sup of the tail over I_t/(1 - share)), P(p outside I_t) <= share t, I_t nested.

        Valid: {p-value <= t} needs a tail of at most (1 - share) t at the true rate, or the smallest interval of a
        level <= t to miss it.
        """
        budget, sensitivity, value = self.budget(), release.sensitivity, release.value["norm"]
        ends = [
            rate_interval(release.value["margin"], self.groups.total, budget["margin"], sensitivity["margin"], miss)
            for miss in (MISS_SHARE * level for level in LEVELS)
        ]

        def between(a, b, count):
            return a + (b - a) * jnp.linspace(0.0, 1.0, count)

        rings = [
            jnp.concatenate([between(a, b, FURTHER_RATES) for a, b in zip(inner, outer, strict=True)])
            for inner, outer in itertools.pairwise(ends)
        ]

        def tail(rates):
            return self.null_tail(value, sensitivity["norm"], rates, budget["norm"])

        tails = jnp.concatenate(
            [tail(between(ends[0][0], ends[0][1], ESTIMATED_RATES))[None], jax.lax.map(tail, jnp.stack(rings))]
        )
        largest = jax.lax.cummax(tails) / (1.0 - MISS_SHARE)
        return jnp.min(jnp.maximum(jnp.asarray(LEVELS, largest.dtype), largest))

    def headline(self, release):
        """The noisy norm u (with variant="paper", minus the threshold)."""
        return release.value["norm"] if self.null == ESTIMATED else release.value


def rate_interval(noisy_margin, total: int, mechanism, sensitivity, miss: float):
    """Interval for p from M1 + noise, M1 ~ Binomial(N, p), that misses with probability at most `miss`.

    Half of `miss` bounds the noise, half the binomial deviation by Chernoff's N KL(M1/N || p) <= ln(4/miss).
    """
    survival = noise_law.survival(mechanism, sensitivity, "UnitCircle")
    reach = _quantile(survival, miss / 4.0, mechanism.scale(sensitivity))
    low, high = (jnp.clip((noisy_margin + sign * reach) / total, 0.0, 1.0) for sign in (-1.0, 1.0))
    limit = jnp.log(4.0 / miss) / total
    return _chernoff(low, 0.0, limit), _chernoff(high, 1.0, limit)


def _chernoff(observed, end: float, limit):
    """The rate between `observed` and `end` with KL(observed || rate) = limit, by bisection."""

    def halve(_, ends):
        inside, outside = ends
        middle = 0.5 * (inside + outside)
        near = _divergence(observed, middle) <= limit
        return jnp.where(near, middle, inside), jnp.where(near, outside, middle)

    return jax.lax.fori_loop(0, 50, halve, (observed, jnp.full_like(observed, end)))[1]


def _divergence(a, b):
    def term(x, y):
        return jnp.where(x > 0, x * jnp.log(jnp.maximum(x, 1e-30) / jnp.maximum(y, 1e-30)), 0.0)

    return term(a, b) + term(1.0 - a, 1.0 - b)


def _quantile(survival, probability: float, scale):
    """x with P(noise >= x) = probability, by bisection."""

    def halve(_, ends):
        return (
            jnp.where(survival(0.5 * (ends[0] + ends[1])) > probability, 0.5 * (ends[0] + ends[1]), ends[0]),
            jnp.where(survival(0.5 * (ends[0] + ends[1])) > probability, ends[1], 0.5 * (ends[0] + ends[1])),
        )

    return jax.lax.fori_loop(0, 50, halve, (jnp.zeros_like(scale), 50.0 * scale))[1]


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


@functools.lru_cache(maxsize=32)
def _paper_thresholds(groups: Groups, epsilon: float, level: float):
    threshold = _chi_squared_quantile(level)
    scale = unit_circle.paper_sensitivity(groups, threshold) / epsilon
    with jax.ensure_compile_time_eval(), jax.enable_x64(True):
        return np.asarray(jax.jit(lambda s: margin_thresholds(groups, s, level, threshold))(scale))


@functools.lru_cache(maxsize=32)
def _paper_move(groups: Groups, epsilon: float, level: float) -> float:
    """Largest change of u - threshold(M1) over lattice edges, enumerated."""
    table = _paper_thresholds(groups, epsilon, level)
    with jax.ensure_compile_time_eval(), jax.enable_x64(True):
        cases, controls = np.arange(groups.cases + 1.0), np.arange(groups.controls + 1.0)
        u = unit_circle.norm(cases[:, None], controls[None, :], groups, _chi_squared_quantile(level))
        return float(largest_step(u - table[(cases[:, None] + controls[None, :]).astype(int)]))


@functools.lru_cache(maxsize=32)
def _chi_squared_quantile(level: float) -> float:
    from scipy.stats import chi2

    return float(chi2.isf(level, 1))


def _check_concrete(epsilon) -> None:
    if not _check.is_concrete(epsilon) or np.ndim(epsilon) != 0:
        raise ValueError("variant='paper' needs epsilon as a plain number: its true epsilon is enumerated on the host.")
