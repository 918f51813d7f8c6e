"""Gaussian noise for statistics with an L2 bound."""

import dataclasses
from typing import ClassVar

import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdp import null_laws
from jaxdp._base import check
from jaxdp._base.pytree import as_pytree
from jaxdp.core import Cost, Norm, Relation
from jaxdp.mechanisms.law import Law
from jaxdp.mechanisms.noisy_max import ExponentialMechanism
from jaxdp.noise import floats, lattice
from jaxdp.noise.floats import reach


@as_pytree
@dataclasses.dataclass(frozen=True)
class Gaussian(Law):
    """Adds independent normal noise of sd (bound + 2 error)/sqrt(2 rho).

    Privacy: rho-zCDP for the relation of the sensitivity, L2 norm (Bun and Steinke 2016, Prop. 1.6);
    an L1 bound is accepted too, since the L2 norm is never larger.
    """

    rho: ArrayLike

    name: ClassVar[str] = "gaussian"
    norm: ClassVar[Norm] = Norm.L2
    outputs_released: ClassVar[bool] = True

    def __post_init__(self):
        check.positive(rho=self.rho)

    def float_draw(self, key, value, sensitivity):
        value = jnp.asarray(value, float)
        noise = floats.gaussian(key, value.shape, value.dtype)
        return value + reach(sensitivity) / jnp.sqrt(2.0 * check.budget(self.rho)) * noise

    def lattice_draw(self, key, value, sensitivity):
        return lattice.gaussian(key, value, sensitivity, check.budget(self.rho))

    def parameters(self, sensitivity) -> tuple:
        return reach(sensitivity), check.budget(self.rho)

    def require(self, sensitivity) -> None:
        if sensitivity.norm is Norm.LINF:
            raise ValueError("Gaussian needs an L2 (or L1) bound, got linf.")

    def scale(self, sensitivity):
        """Noise standard deviation."""
        self.require(sensitivity)
        return reach(sensitivity) / jnp.sqrt(2.0 * check.positive_or_nan(self.rho))

    def variance(self, sensitivity):
        """Variance of the noise."""
        return self.scale(sensitivity) ** 2

    def share(self, fraction: float):
        """The mechanism that a fraction of this budget buys."""
        return Gaussian(check.share(self.rho, fraction))

    def selector(self):
        """The selection mechanism that this budget buys."""
        return ExponentialMechanism(epsilon=jnp.sqrt(8.0 * check.positive_or_nan(self.rho)))

    def noise(self, key, sensitivity, shape=()):
        """Float draws of the noise alone, for null distributions."""
        return self.scale(sensitivity) * floats.gaussian(key, shape)

    def null_p_value(self, value, sd, sensitivity):
        """P(|N(0, sd^2) + noise| >= |value|), exact for the noise."""
        return null_laws.normal(value, jnp.hypot(sd, self.scale(sensitivity)))

    def combined_p_value(self, value, sd, scales):
        """P(|N(0, sd^2) + sum of noise of these scales (..., D)| >= |value|), exact for the noise."""
        return null_laws.normal_plus_normals(value, sd, scales)

    def widened(self, value, sd, sensitivity, variance_noise):
        """`sd` enlarged for the noise of this variance in sd^2, so that `null_p_value` keeps its level."""
        return null_laws.widened_for_normal(value, sd, self.scale(sensitivity), variance_noise)

    def cost(self, relation: Relation) -> Cost:
        """rho-zCDP; no finite pure epsilon."""
        rho = check.budget(self.rho)
        return Cost(epsilon=jnp.full(jnp.shape(rho), jnp.inf, float), delta=0.0, rho=rho, relation=relation)
