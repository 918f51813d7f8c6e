"""Difference of the means of two groups as one sum of bounded scores, about a released share and a released mean.

Symbols: A = 1 in the second group, r = response on [-1, 1], p = share of the second group, m = mean of r, both released
before; phi = A (r - m)/p - (1 - A) (r - m)/(1 - p). Theory: docs/theory/mean_difference.md.
"""

from __future__ import annotations

from typing import Any, ClassVar

import jax.numpy as jnp

from jaxdp._base.pytree import frozen_pytree

MIN_SHARE = 1e-3  # of a group, as far as scores are concerned
CLEAR = 5.0  # sds of the noise in its size that the smaller group must have
FAR = 2.0  # no difference of responses on [-1, 1] is larger


@frozen_pytree
class Groups:
    """What is released before the scores: p and m, and the scales of the noise in the group's count and in the sum.

    small: whether the smaller group has too few records for the noise in its size.
    """

    share: Any
    centre: Any
    count_noise: Any
    sum_noise: Any
    small: Any = False

    offset: ClassVar[float] = 0.0
    heaviness: ClassVar[float] = 1.0
    limits: ClassVar[tuple[float, float]] = (-FAR, FAR)

    @classmethod
    def of(cls, count, total, num_records: float, count_noise, sum_noise, variance_per_scale) -> Groups:
        """From a noisy count of the second group and a noisy sum of the responses, and the scales of their noise."""
        share = jnp.clip(count / num_records, MIN_SHARE, 1.0 - MIN_SHARE)
        centre = jnp.clip(total / num_records, -1.0, 1.0)
        small = jnp.minimum(share, 1.0 - share) * num_records < CLEAR * jnp.sqrt(variance_per_scale) * count_noise
        return cls(share=share, centre=centre, count_noise=count_noise, sum_noise=sum_noise, small=small)

    @property
    def unknown(self):
        """Whether there is no interval."""
        return jnp.asarray(self.small)

    def explained(self, difference):
        """Variance of a score that comes from the difference."""
        p = self.share
        return difference**2 * ((1.0 - p) ** 2 / p + p**2 / (1.0 - p))

    def steep(self, num_records: int):
        """Scale of the noise in the mean score per unit of the difference."""
        p = self.share
        return self.count_noise * jnp.abs(1.0 - 2.0 * p) / (num_records * p * (1.0 - p))

    def products(self, num_records: float, variance_per_scale) -> tuple[Any, Any]:
        """Mean and variance of the product of both noises in the mean score."""
        p = self.share
        product = self.count_noise * self.sum_noise / (num_records**2 * p * (1.0 - p))
        return 0.0, (variance_per_scale * product) ** 2

    @property
    def smaller(self):
        """Share of the smaller group."""
        return jnp.minimum(self.share, 1.0 - self.share)

    @property
    def range(self):
        """Largest phi less the smallest: what replacing one record can add to their sum (#scores)."""
        p, m = self.share, self.centre
        return jnp.maximum((1.0 - m) / p, (1.0 + m) / (1.0 - p)) + jnp.maximum((1.0 + m) / p, (1.0 - m) / (1.0 - p))

    @property
    def largest(self):
        """Largest |phi|."""
        return (1.0 + jnp.abs(self.centre)) / self.smaller

    def scores(self, of: dict[str, Any]) -> dict[str, Any]:
        """Sum of phi in units of `range`, and of phi^2 in units of `largest`^2, from the sums of `five_sums`."""
        p, m = self.share, self.centre
        second = of["sum"][1] - m * of["count"][1], of["square"][1] - m * (2.0 * of["sum"][1] - m * of["count"][1])
        first = of["sum"][0] - m * of["count"][0], of["square"][0] - m * (2.0 * of["sum"][0] - m * of["count"][0])
        scores = second[0] / p / self.range - first[0] / (1.0 - p) / self.range
        squares = second[1] / (p * self.largest) ** 2 + first[1] / ((1.0 - p) * self.largest) ** 2
        return {"scores": scores, "squares": squares}


def five_sums(group, response) -> dict[str, Any]:
    """Count, sum and sum of squares of the responses (n,) of both groups, the first one first; group: bool (n,)."""
    response = jnp.asarray(response, float)  # squares on the grid have more digits than float32
    parts = [jnp.where(group, 0.0, 1.0), jnp.where(group, 1.0, 0.0)]
    return {
        "count": [jnp.sum(part) for part in parts],
        "sum": [jnp.sum(part * response) for part in parts],
        "square": [jnp.sum(part * response**2) for part in parts],
    }
