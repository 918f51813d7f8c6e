"""UnitCircle: chi-squared of a case/control table, mapped to a norm of bounded sensitivity.

Source: Kakizaki, Fukuchi and Sakuma 2017; docs/theory/unit_circle.md. Symbols: u = norm,
tau = chi-squared quantile at `level`, Delta = `move`, p = null rate.
"""

import functools
import itertools
from typing import ClassVar

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdp._base import check
from jaxdp._base.bisection import bisected
from jaxdp._base.printed import printed
from jaxdp._base.pytree import frozen_pytree
from jaxdp.independence import noise_law
from jaxdp.independence.tables.case_control import CaseControlTest, of_groups
from jaxdp.mechanisms import divide
from jaxdp.spec import Planning, TestSpec
from jaxdp.statistics.tables import unit_circle

SUPREMUM, ESTIMATED, PUBLIC = "supremum", "estimated", "public"
MARGIN_SHARE = 0.15  # of the budget, for M1 under null="estimated"
MISS_SHARE = 0.04  # of every level: probability that the released margin misleads about the null rate
HALVINGS = 50
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
    As published: `jaxdp.published.PaperUnitCircle`, which costs more than it claims.
    """

    null: str = jax.tree.static(default=SUPREMUM)
    rate: ArrayLike | None = None

    spec: ClassVar[TestSpec] = of_groups(
        name="unit-circle",
        summary="chi-squared of two binary columns, y a public group label",
        planning=Planning("tables:unit_circle_power", table=True, reference="tables:chi_squared_power"),
        theory="docs/theory/unit_circle.md",
    )

    def __post_init__(self):
        super().__post_init__()
        check.one_of((SUPREMUM, ESTIMATED, PUBLIC), null=self.null)
        if (self.null == PUBLIC) != (self.rate is not None):
            raise ValueError(
                "rate is the public null rate of null='public', got "
                f"null={printed(self.null)}, rate={printed(self.rate)}."
            )
        if self.rate is not None:
            check.in_range(0.0, 1.0, rate=self.rate)

    @property
    def threshold(self) -> float:
        """tau, the chi-squared quantile with one degree of freedom at `level`."""
        return chi_squared_quantile(self.level)

    def mechanism_in_force(self):
        mechanism = super().mechanism_in_force()
        if self.null != ESTIMATED:
            return mechanism
        return divide(mechanism, {"norm": 1.0 - MARGIN_SHARE, "margin": MARGIN_SHARE})

    def score(self, exposed_cases, exposed_controls):
        return unit_circle.norm(exposed_cases, exposed_controls, self.groups, self.threshold)

    def move(self):
        return unit_circle.norm_sensitivity(self.groups, self.threshold)

    def score_range(self):
        return unit_circle.norm_range(self.groups, self.threshold)

    def of_counts(self, exposed_cases, exposed_controls):
        """u, a scalar; with null="estimated" a dict of `norm` (u) and `margin` (M1)."""
        counts = exposed_cases, exposed_controls
        if self.null != ESTIMATED:
            return self.score(*counts)
        return {"norm": self.score(*counts), "margin": counts[0] + counts[1]}

    def sensitivity(self, num_records):
        if self.null != ESTIMATED:
            return super().sensitivity(num_records)
        budget = self.mechanism_in_force()
        total = float(self.groups.total)
        return {
            "norm": self.sensitivity_of(budget["norm"], self.move(), self.score_range()),
            "margin": self.sensitivity_of(budget["margin"], 1.0, (0.0, total)),
        }

    def no_gradient(self, name):
        return "its null rates are found by bisection" if self.null == ESTIMATED else ""

    def p_value(self, key, release):
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
        budget, sensitivity, value = self.mechanism_in_force(), release.sensitivity, release.value["norm"]
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

    def estimate(self, release):
        """The noisy norm u."""
        return release.value["norm"] if self.null == ESTIMATED else release.value


def rate_interval(noisy_margin, total: int, mechanism, sensitivity, miss: float):
    """Interval for p from M1 + noise, M1 ~ Binomial(N, p), that misses with probability at most `miss`.

    Half of `miss` bounds the noise, half the binomial deviation by Chernoff's N KL(M1/N || p) <= ln(4/miss).
    """
    survival = noise_law.survival(mechanism, sensitivity, "UnitCircle")
    scale = mechanism.scale(sensitivity)
    _, reach = bisected(lambda x: survival(x) > miss / 4.0, jnp.zeros_like(scale), 50.0 * scale, HALVINGS)
    low, high = (jnp.clip((noisy_margin + sign * reach) / total, 0.0, 1.0) for sign in (-1.0, 1.0))
    limit = jnp.log(4.0 / miss) / total
    return _chernoff(low, 0.0, limit), _chernoff(high, 1.0, limit)


def _chernoff(observed, end: float, limit):
    """The rate between `observed` and `end` with KL(observed || rate) = limit, by bisection."""
    farthest = jnp.full_like(observed, end)
    return bisected(lambda rate: _divergence(observed, rate) <= limit, observed, farthest, HALVINGS)[1]


def _divergence(a, b):
    def term(x, y):
        return jnp.where(x > 0, x * jnp.log(jnp.maximum(x, 1e-30) / jnp.maximum(y, 1e-30)), 0.0)

    return term(a, b) + term(1.0 - a, 1.0 - b)


@functools.lru_cache(maxsize=32)
def chi_squared_quantile(level: float) -> float:
    """tau: exceeded with probability `level` by chi-squared with one degree of freedom."""
    from scipy.stats import chi2

    return float(chi2.isf(level, 1))
