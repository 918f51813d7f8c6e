"""What a release of group scores says about a difference of means: one pivot for p-value, interval and planning.

Theory: docs/theory/mean_difference.md#pivot. Symbols: n, p, m, phi of `statistics/group_scores.py`; V = sum of phi^2.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from jaxdp import null_laws
from jaxdp.statistics.group_scores import Groups

MISS = 0.05  # one minus the coverage
MISSED = 0.2  # one minus the power of a detectable difference
CLEAR = 5.0  # sds of the noise in its size that the smaller group must have
FAR = 2.0  # no difference of responses on [-1, 1] is larger
STEPS = 40
SURELY = 3.0  # sds of the noise in a variance, which is larger once in 140 times at most
MIN_SPREAD = 0.02  # of V: what a hypothetical difference leaves of it at least
WIDE_NOISE = 3.0  # times the sampling variance: the interval is twice as wide as without noise
SMALL_GROUP, DROWNED, WIDE = "small group", "spread hidden by noise", "wide bounds"


@dataclasses.dataclass(frozen=True)
class Found:
    """The released scores and squares, with the laws of their noise; public. Differences are in half ranges.

    budget: the `Split` of both. groups: what was released before.
    """

    budget: Any
    groups: Groups
    release: Any

    @property
    def estimate(self):
        """The difference."""
        return self.release.value["scores"] * self.groups.range / self.release.num_records

    @property
    def _noise(self):
        """Scale of the noise in the estimate."""
        scale = self.budget["scores"].scale(self.release.sensitivity["scores"])
        return scale * self.groups.range / self.release.num_records

    @property
    def _noise_variance(self):
        return self._variance_per_scale * self._noise**2

    @property
    def _variance_per_scale(self):
        """Variance of the noise in units of its squared scale: 2 for Laplace noise, 1 for Gaussian."""
        one, sensitivity = self.budget["scores"], self.release.sensitivity["scores"]
        return one.variance(sensitivity) / jnp.maximum(one.scale(sensitivity), 1e-30) ** 2

    @property
    def _unit_of_variance(self):
        return (self.groups.largest / self.release.num_records) ** 2

    @property
    def _sampling_variance(self):
        """V/n^2, noise in it: of the estimate where the means are equal."""
        return jnp.maximum(self.release.value["squares"], 0.0) * self._unit_of_variance

    @property
    def _variance_of_variance(self):
        """Of the noise in V/n^2, and what the public bounds allow its sampling: at most largest^2 V."""
        noise = self.budget["squares"].variance(self.release.sensitivity["squares"]) * self._unit_of_variance**2
        return noise, self._unit_of_variance * self._sampling_variance

    def p_value(self, difference):
        """Two-sided, of this difference: noise exactly, V's errors to second order."""
        groups, n = self.groups, self.release.num_records
        p = groups.share
        between = difference**2 * ((1.0 - p) ** 2 / p + p**2 / (1.0 - p)) / n
        variance = jnp.maximum(self._sampling_variance - between, MIN_SPREAD * self._sampling_variance)
        product = groups.count_noise * groups.sum_noise / (n**2 * p * (1.0 - p))
        variance = variance + (self._variance_per_scale * product) ** 2 + 1e-12
        slope = groups.count_noise * jnp.abs(1.0 - 2.0 * p) / (n * p * (1.0 - p))
        scales = jnp.stack([self._noise, slope * jnp.abs(difference)])
        noise_sd = jnp.sqrt(self._variance_per_scale * jnp.sum(scales**2))
        value = self.estimate - difference
        return self.budget["scores"].combined_p_value(value, self._widened(value, variance, noise_sd), scales)

    def _widened(self, value, variance, noise_sd):
        """The sd for a variance with noise in it: to second order, but no further than `SURELY` sds of the noise."""
        noise, sampling = self._variance_of_variance
        sd = null_laws.widened_for_normal(value, jnp.sqrt(variance), noise_sd, noise + sampling)
        return jnp.sqrt(jnp.minimum(sd**2, variance + SURELY * jnp.sqrt(noise + sampling)))

    def interval(self):
        """The differences whose p-value is at least 0.05, within what is possible."""
        centre = jnp.clip(self.estimate, -FAR, FAR)
        return self._end(centre, -FAR), self._end(centre, FAR)

    def _end(self, inside, outside):
        def halve(_, ends):
            inside, outside = ends
            middle = 0.5 * (inside + outside)
            kept = self.p_value(middle) >= MISS
            return jnp.where(kept, middle, inside), jnp.where(kept, outside, middle)

        found = jax.lax.fori_loop(0, STEPS, halve, (inside, jnp.full_like(inside, outside)))
        return jnp.where(self.p_value(outside) >= MISS, outside, found[0])

    def detectable(self):
        """The difference that a test at level 0.05 would find with power 0.8."""
        noise, variance = jnp.stack([self._noise]), self._sampling_variance + 1e-12
        noise_sd = jnp.sqrt(self._noise_variance)

        def tail(value):
            return self.budget["scores"].combined_p_value(value, self._widened(value, variance, noise_sd), noise)

        widest = jnp.sqrt(self._widened(FAR, variance, noise_sd) ** 2 + noise_sd**2)
        return sum(null_laws.two_sided_quantile(tail, widest, miss) for miss in (MISS, 2.0 * MISSED))

    def flags(self) -> dict[str, Any]:
        """Why there is no interval (a small group), or why it is wide; bool."""
        n, groups = self.release.num_records, self.groups
        noise_in_size = jnp.sqrt(self._variance_per_scale) * groups.count_noise
        small = groups.smaller * n < CLEAR * noise_in_size
        seen = self._sampling_variance + self._noise_variance
        drowned = jnp.sqrt(self._variance_of_variance[0]) > seen
        wide = self._noise_variance > WIDE_NOISE * self._sampling_variance
        return {SMALL_GROUP: small, DROWNED: drowned & ~small, WIDE: wide & ~drowned & ~small}

    @property
    def unknown(self):
        """Whether there is no interval."""
        return self.flags()[SMALL_GROUP]
