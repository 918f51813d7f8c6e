"""Known laws of X given Z (model-X): what conditional randomisation tests resample from.

A law offers `mean(z)`, `sample(key, z)` and `clipped_moments(z, limit)`: mean and variance of
clip((X - mean(z))/limit, -1, 1) given z, all of shape (n,). Laws are public.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.stats import norm
from jax.typing import ArrayLike

from jaxdp import _check
from jaxdp._pytree import frozen_pytree


@frozen_pytree
class ConditionalLaw:
    """Base of the laws of X given Z."""

    def mean(self, z):
        """E[X | z], shape (n,)."""
        raise NotImplementedError

    def sample(self, key, z):
        """One fresh X for each record, shape (n,)."""
        raise NotImplementedError

    def clipped_moments(self, z, limit):
        """Mean and variance of clip((X - mean(z))/limit, -1, 1) given z."""
        raise NotImplementedError

    def variance_bound(self, limit):
        """Public upper bound of the variance in `clipped_moments`."""
        del limit
        return 1.0

    @property
    def symmetric(self) -> bool:
        """Whether clipping leaves the residual's mean at 0."""
        return False

    def spread(self):
        """A public guess of the residual's standard deviation, for the default clipping limit."""
        raise NotImplementedError


@frozen_pytree
class GaussianLaw(ConditionalLaw):
    """X | z ~ N(function(z), noise_sd^2). function: public, static, maps z to shape (n,)."""

    function: Any = jax.tree.static(default=None)
    noise_sd: ArrayLike = 1.0

    def __post_init__(self):
        _check.positive(noise_sd=self.noise_sd)

    def mean(self, z):
        return self.function(z)

    def sample(self, key, z):
        mean = self.mean(z)
        return mean + self.noise_sd * jax.random.normal(key, mean.shape, mean.dtype)

    def clipped_moments(self, z, limit):
        tau = limit / self.noise_sd
        inside = 1.0 - 2.0 * norm.sf(tau)
        second = inside - 2.0 * tau * norm.pdf(tau) + 2.0 * tau**2 * norm.sf(tau)
        zero = jnp.zeros(z.shape[0])
        return zero, zero + second / tau**2

    def variance_bound(self, limit):
        return self.clipped_moments(jnp.zeros(1), limit)[1][0]

    @property
    def symmetric(self) -> bool:
        return True

    def spread(self):
        return self.noise_sd


@frozen_pytree
class BernoulliLaw(ConditionalLaw):
    """X | z is 1 with probability function(z), else 0: a randomised treatment with a known propensity."""

    function: Any = jax.tree.static(default=None)

    def mean(self, z):
        return self.function(z)

    def sample(self, key, z):
        mean = self.mean(z)
        return (jax.random.uniform(key, mean.shape) < mean).astype(mean.dtype)

    def clipped_moments(self, z, limit):
        chance = self.mean(z)
        high = jnp.minimum((1.0 - chance) / limit, 1.0)
        low = jnp.maximum(-chance / limit, -1.0)
        mean = chance * high + (1.0 - chance) * low
        return mean, chance * high**2 + (1.0 - chance) * low**2 - mean**2

    def spread(self):
        return 0.5
