"""Private conditional randomisation tests: a decision with exact level, and a p-value without resamples.

Source: GCM paper, section 4 and Algorithm 2. Theory: docs/theory/crt.md.
"""

from typing import ClassVar

import jax
import jax.numpy as jnp

from jaxdp import null_laws
from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Interpretation, Norm, Relation, Sensitivity
from jaxdp.independence import effect_sizes
from jaxdp.independence.continuous.local_permutation import enough_copies
from jaxdp.independence.continuous.resampling import RandomizationTest, column, from_law
from jaxdp.mechanisms import Laplace, RankThreshold, divide
from jaxdp.spec import DECISION, Planning, TestSpec
from jaxdp.statistics import conditional_law, partition
from jaxdp.statistics.kernel_ridge import ridge_bounds, ridge_error
from jaxdp.statistics.winsorize import best_level

PLAIN_BOUND = 2.0  # sum r_i y_i with |r|, |y| <= 1 (docs/theory/crt.md#statistic); attained
SHARES = {"statistic": 0.85, "variance": 0.15}


@frozen_pytree
class PrivateCRT(RandomizationTest):
    """Noisy-CRT decision: is T_0 among the largest T_j if each has Laplace noise of scale 2 Delta/epsilon?

    Sensitivity: Delta = 2 for y without regression, 2 (1 + N(ridge)/sqrt2)^2 for kernel ridge residuals
    (docs/theory/crt.md#statistic, tight), Linf over (T_0, ..., T_m), replace-one neighbours of (x, resamples, y, z)
    rows.
    Privacy: epsilon-DP for the decision at `level` (docs/theory/crt.md#decision); the whole rank would cost 1.12
    epsilon or more.
    P-value: `level` if rejected, else 1. Level exact at any n. More resamples never hurt.

    A p-value without resamples: `CRTNormal`. As published: `jaxdp.published.PaperCRT`.
    """

    level: float = jax.tree.static(default=0.05)

    spec: ClassVar[TestSpec] = TestSpec(
        name="private-crt",
        needs_all="it resamples the whole column X many times",
        summary="decision for a known law of X given Z, exact level at any n",
        publishes=DECISION,
        options=("level",),
        from_domain=from_law,
        needs=("law",),
        alternatives="covariance of X and Y given Z",
        planning=Planning("continuous:crt_threshold_power", gaussian=False),
        theory="docs/theory/crt.md",
    )
    gradient_free = null_laws.DECISION

    def __post_init__(self):
        super().__post_init__()
        check.in_range(0.0, 1.0, level=self.level)
        enough_copies(self.num_resamples, self.level, "num_resamples")

    def mechanism_in_force(self):
        return RankThreshold(epsilon=self.epsilon, level=self.level) if self.mechanism is None else self.mechanism

    def default_winsorize(self, num_records):
        epsilon = check.positive_or_nan(1.0 if self.epsilon is None else self.epsilon)
        return best_level(num_records, 4.0 * (2.0 * PLAIN_BOUND / epsilon) ** 2)

    def sensitivity(self, num_records):
        bound = PLAIN_BOUND if self.kernel is None else ridge_bounds.delta_one(self.ridge)
        one = rank_sensitivity(self, num_records, bound)
        return (one, one)

    def p_value(self, key, release):
        return null_laws.decision(release.value, self.level)

    def estimate(self, release):
        """True where independence is rejected."""
        return release.value


@frozen_pytree
class CRTNormal(RandomizationTest):
    """Laplace release of T_0 and of its null variance; the p-value is post-processing, without resamples.

    Statistic: T_0 = sum r_i y_i and V = sum Var(r | z_i) y_i^2; a record whose x or mean is missing is left out.
    Sensitivity: 2 for T_0 (4 if the law is not symmetric, because the public mean of the clipped residual is
    subtracted) and the public bound of Var(r | z) for V, replace-one, whatever function the law is.
    Privacy: epsilon-DP, 85 % for T_0 (docs/theory/crt.md#normal-null), or zCDP with mechanism=Gaussian(rho).
    P-value: two-sided, exact for the noise, asymptotic in n. `num_resamples`, `alternative` are not used.
    """

    spec: ClassVar[TestSpec] = TestSpec(
        name="private-crt-normal",
        summary="p-value for a known law of X given Z, without resamples",
        effect="correlation of X's residual given Z with Y about 0, both clipped as the test clips them",
        from_domain=from_law,
        needs=("law",),
        alternatives="covariance of X and Y given Z",
        planning=Planning("continuous:crt_normal_power", gaussian_formula="always"),
        needs_all="it resamples the whole column X many times",
        theory="docs/theory/crt.md",
    )

    def __post_init__(self):
        super().__post_init__()
        if self.kernel is not None:
            raise ValueError("CRTNormal takes no kernel: its variance needs y without regression.")

    def mechanism_in_force(self):
        mechanism = Laplace(self.epsilon) if self.mechanism is None else self.mechanism
        return divide(mechanism, SHARES)

    def default_winsorize(self, num_records):
        mechanism = self.mechanism_in_force()["statistic"]
        return best_level(num_records, mechanism.variance(_sum_sensitivity(self._bound(), mechanism, num_records)))

    def statistic(self, key, data):
        limit = self.limits(data.x.shape[0])[0]
        y, (shift, variance) = self.residual_of_y(data), conditional_law.bounded_moments(self.law, data.z, limit)
        centred = column(partition.as_matrix(data.x), "x") - conditional_law.means(self.law, data.z)
        residual = partition.clip_to(centred, limit)
        residual = residual if self.law.symmetric else residual - shift
        residual, variance = (jnp.where(jnp.isnan(centred), 0.0, part) for part in (residual, variance))
        return {
            "statistic": jnp.dot(residual, y, precision="highest"),
            "variance": jnp.dot(variance, y * y, precision="highest"),
        }

    def sensitivity(self, num_records):
        budget = self.mechanism_in_force()
        bounds = {
            "statistic": self._bound(),
            "variance": conditional_law.moment_bound(self.law, self.limits(num_records)[0]),
        }
        return {name: _sum_sensitivity(bound, budget[name], num_records) for name, bound in bounds.items()}

    def _tail(self, release):
        """(what T_0 is from its mean, correlation) -> two-sided p-value; noise counted."""
        budget = self.mechanism_in_force()
        noise = budget["variance"].variance(release.sensitivity["variance"])
        sd = null_laws.noisy_sd(release.value["variance"], noise, release.num_records)

        def tail(left, found):
            smaller = sd * jnp.sqrt(1.0 - 0.5 * found**2)
            return budget["statistic"].null_p_value(left, smaller, release.sensitivity["statistic"])

        return tail

    def interpret(self, key, release):
        """T_0, and the correlation of X's clipped residual with Y's: T_0 over the root of n V, with its interval."""
        count, tail, statistic = release.num_records, self._tail(release), release.value["statistic"]
        p_value = tail(statistic, 0.0)
        effect = effect_sizes.ratio(
            (statistic, release.value["variance"]),
            p_value,
            effect_sizes.noise_quantiles(self.mechanism_in_force()["variance"], release.sensitivity["variance"]),
            lambda found, second: found * jnp.sqrt(count * second),
            tail,
            limits=(-1.0, 1.0),
        )
        return Interpretation(p_value, statistic, *effect)

    def _noise_share(self, num_records):
        noise = self.mechanism_in_force()["statistic"].variance(self.sensitivity(num_records)["statistic"])
        most = num_records * conditional_law.moment_bound(self.law, self.limits(num_records)[0])  # |y| <= 1
        share = noise / most
        return float(share) if check.is_concrete(share) and jnp.ndim(share) == 0 else 0.0

    def _bound(self) -> float:
        return PLAIN_BOUND if self.law.symmetric else 2.0 * PLAIN_BOUND


def _sum_sensitivity(bound, mechanism, num_records: int) -> Sensitivity:
    error = 4.0 * num_records**2 * 2.0**-53
    limit = 2.0 * num_records
    return Sensitivity(bound, mechanism.norm, Relation.REPLACE_ONE, error, -limit, limit)


def rank_sensitivity(test, num_records: int, bound, lower: float = -2.0) -> Sensitivity:
    """Sensitivity of statistics or scores that move by `bound` and are at least `lower` per record."""
    error = 2.0 * num_records**2 * 2.0**-53
    if test.kernel is not None:
        error = ridge_error.one_sided_error(test.ridge, num_records, test.kernel.entry_error(test.num_columns[2]))
        lower = lower * (1.0 + ridge_bounds.norm_bound(test.ridge))
    return Sensitivity(bound, Norm.LINF, Relation.REPLACE_ONE, error, lower * num_records, -lower * num_records)
