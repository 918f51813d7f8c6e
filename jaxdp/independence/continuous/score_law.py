"""What a released sum of scores says about a difference, a slope or a correlation: one pivot for all that is told.

The scores of a record are about a public offset and add up to what the true number, the target, is off it. `about` has
what was released before: `statistics/group_scores.py`, `statistics/residual_scores.py`. Theory:
docs/theory/mean_difference.md#pivot, docs/theory/residual_scores.md#pivot. V = sum of squared scores.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from jaxdp import null_laws
from jaxdp.core import Relation, Sensitivity

MISS = 0.05  # one minus the coverage
MISSED = 0.2  # one minus the power of a detectable target
STEPS = 40
ROUNDS = 6  # of the noise that grows with a detectable target: 1 % where it makes that twice as large
SURELY = 3.0  # sds of the noise in a variance, which is larger once in 140 times at most
MIN_SPREAD = 0.02  # of V: what a hypothetical target leaves of it at least
WIDE_NOISE = 3.0  # times the sampling variance: the interval is twice as wide as without noise
DROWNED, WIDE = "spread hidden by noise", "wide bounds"


def widened(value, variance, noise_sd, of_variance, *, xp: Any = jnp):
    """The sd for a variance with noise in it: to second order, but no further than `SURELY` sds of the noise."""
    sd = null_laws.widened_for_normal(value, xp.sqrt(variance), noise_sd, of_variance, xp=xp)
    return xp.sqrt(xp.minimum(sd**2, variance + SURELY * xp.sqrt(of_variance)))


def sensitivity(budget, num_records, error):
    """Of summed scores and squares, each record's in units of its largest move; replace-one."""
    limit = 1.0 * num_records

    def of(name: str, lower: float):
        return Sensitivity(1.0, budget[name].norm, Relation.REPLACE_ONE, error=error, lower=lower, upper=limit)

    return {"scores": of("scores", -limit), "squares": of("squares", 0.0)}


@dataclasses.dataclass(frozen=True)
class Found:
    """Released scores and squares of one target, with the laws of their noise; public.

    budget: the `Split` of both. scores, squares: the released numbers, in units of `about.range` and of
    `about.largest` squared. sensitivity: of both.
    about: has `offset`, `range`, `largest`, `limits` (of the target), `unknown`, `heaviness` (E phi^4 in units of
    largest^2 E phi^2, which it does not exceed) and, for n records, `explained(off)`, the variance of a score that
    comes from a target so far off `offset`; `steep(n)`, the scale of the noise in the estimate per unit off it;
    `products(n, variance_per_scale)`, mean and variance of products of noises in the estimate.
    """

    budget: Any
    about: Any
    scores: Any
    squares: Any
    sensitivity: Any
    num_records: Any

    @property
    def estimate(self):
        """Of the target."""
        return self.about.offset + self._mean / self._per_unit

    @property
    def _mean(self):
        return self.scores * self.about.range / self.num_records

    @property
    def _per_unit(self):
        """What the mean score moves by per unit of the target."""
        return 1.0

    def _scales(self, off):
        """Of the noises in the value for a target so far off the offset."""
        return jnp.stack([self._noise, self.about.steep(self.num_records) * jnp.abs(off)])

    def _value(self, target):
        """The mean score less what it is for this target."""
        mean, _ = self.about.products(self.num_records, self._variance_per_scale)
        return self._mean - (target - self.about.offset) * self._per_unit - mean

    @property
    def _noise(self):
        """Scale of the noise in the estimate."""
        scale = self.budget["scores"].scale(self.sensitivity["scores"])
        return scale * self.about.range / self.num_records

    @property
    def _noise_variance(self):
        return self._variance_per_scale * self._noise**2

    @property
    def _variance_per_scale(self):
        """Variance of the noise in units of its squared scale: 2 for Laplace noise, 1 for Gaussian."""
        one, sensitivity = self.budget["scores"], self.sensitivity["scores"]
        return one.variance(sensitivity) / jnp.maximum(one.scale(sensitivity), 1e-30) ** 2

    @property
    def _unit_of_variance(self):
        return (self.about.largest / self.num_records) ** 2

    @property
    def _sampling_variance(self):
        """V/n^2, noise in it: of the estimate where the means are equal."""
        return jnp.maximum(self.squares, 0.0) * self._unit_of_variance

    @property
    def _variance_of_variance(self):
        """Of the noise in V/n^2, and of its sampling: at most largest^2 V, of which `about` counts a share."""
        noise = self.budget["squares"].variance(self.sensitivity["squares"]) * self._unit_of_variance**2
        return noise, self.about.heaviness * self._unit_of_variance * self._sampling_variance

    def p_value(self, target):
        """Two-sided, of this target: noise exactly, V's errors to second order."""
        n, about, off = self.num_records, self.about, target - self.about.offset
        explained = about.explained(off * self._per_unit) / n
        variance = jnp.maximum(self._sampling_variance - explained, MIN_SPREAD * self._sampling_variance)
        _, products = about.products(n, self._variance_per_scale)
        variance = variance + products + 1e-12
        scales = self._scales(off)
        noise_sd = jnp.sqrt(self._variance_per_scale * jnp.sum(scales**2))
        value = self._value(target)
        return self.budget["scores"].combined_p_value(value, self._widened(value, variance, noise_sd), scales)

    def one_sided(self, target):
        """P-values of the hypotheses that the target is at most this, and at least this; 1 where nothing is known."""
        further = 0.5 * self.p_value(target)
        below = self._value(target) < 0.0
        at_most, at_least = jnp.where(below, 1.0 - further, further), jnp.where(below, further, 1.0 - further)
        return tuple(jnp.where(self.about.unknown, 1.0, side) for side in (at_most, at_least))

    def _widened(self, value, variance, noise_sd):
        return widened(value, variance, noise_sd, sum(self._variance_of_variance))

    def interval(self, miss: float = MISS):
        """Targets whose p-value is at least `miss`, within what is possible; NaN where that is all, or not known."""
        mean, _ = self.about.products(self.num_records, self._variance_per_scale)
        low, high, value = jnp.broadcast_arrays(
            *self.about.limits, self.about.offset + (self._mean - mean) / self._per_unit
        )
        limits = jnp.stack([low, high])

        def halve(step, ends):
            """The limits first, then halvings: of both ends by one program, in which the law stands once."""
            inside, outside, open_ended = ends
            halved, at = step > 0, jnp.where(step > 0, 0.5 * (inside + outside), limits)
            kept = jax.vmap(self.p_value)(at) >= miss
            inside, outside = jnp.where(halved & kept, at, inside), jnp.where(halved & ~kept, at, outside)
            return inside, outside, jnp.where(halved, open_ended, kept)

        inside = jnp.broadcast_to(jnp.clip(value, low, high), limits.shape)
        begun = inside, limits, jnp.zeros(limits.shape, bool)
        found, _, open_ended = jax.lax.fori_loop(0, STEPS + 1, halve, begun)
        nothing = self.about.unknown | jnp.all(open_ended)
        return tuple(jnp.where(nothing, jnp.nan, end) for end in jnp.where(open_ended, limits, found))

    def detectable(self, level):
        """The target that a test at this level would find with power 0.8, by the errors that `p_value` counts.

        NaN where there is no interval; infinite where no target that is possible would do.
        """
        _, products = self.about.products(self.num_records, self._variance_per_scale)
        variance = self._sampling_variance + products + 1e-12
        far = jnp.max(jnp.abs(jnp.stack(self.about.limits)))
        away = -jnp.sign(self.about.offset)  # from an offset as far off as the target; 0 where scores are about 0

        def found(_, target):
            scales = self._scales(away * jnp.minimum(target, far))
            noise_sd = jnp.sqrt(self._variance_per_scale * jnp.sum(scales**2))

            def tail(value):
                return self.budget["scores"].combined_p_value(value, self._widened(value, variance, noise_sd), scales)

            widest = jnp.sqrt(self._widened(far, variance, noise_sd) ** 2 + noise_sd**2)
            ends = [null_laws.two_sided_quantile(tail, widest, share) for share in (level, 2.0 * MISSED)]
            return sum(ends) / self._per_unit

        target = jax.lax.fori_loop(0, ROUNDS, found, jnp.zeros_like(variance))  # the noise grows with the target
        return jnp.where(self.about.unknown, jnp.nan, jnp.where(target > far, jnp.inf, target))

    def notes(self) -> dict[str, Any]:
        """Why an interval is wide; bool."""
        known = ~self.about.unknown
        drowned = jnp.sqrt(self._variance_of_variance[0]) > self._sampling_variance + self._noise_variance
        wide = self._noise_variance > WIDE_NOISE * self._sampling_variance
        return {DROWNED: drowned & known, WIDE: wide & ~drowned & known}
