"""Laplace noise for statistics with an L1 bound."""

import dataclasses
from typing import ClassVar

import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdp import null_laws
from jaxdp._base import check
from jaxdp._base.pytree import as_pytree
from jaxdp.core import Norm
from jaxdp.mechanisms.law import PureLaw
from jaxdp.mechanisms.noisy_max import ReportNoisyMax
from jaxdp.noise import floats, lattice
from jaxdp.noise.floats import reach


@as_pytree
@dataclasses.dataclass(frozen=True)
class Laplace(PureLaw):
    """Adds independent Laplace noise of scale (bound + 2 error)/epsilon.

    Privacy: epsilon-DP for the relation of the sensitivity, L1 norm (Dwork et al. 2006, Prop. 1).
    Numerics: simulation keys draw floats (idealised); release keys draw exact lattice noise.
    """

    epsilon: ArrayLike

    name: ClassVar[str] = "laplace"
    norm: ClassVar[Norm] = Norm.L1
    instead: ClassVar[str] = "; use Gaussian for L2"
    outputs_released: ClassVar[bool] = True

    def float_draw(self, key, value, sensitivity):
        value = jnp.asarray(value, float)
        return value + reach(sensitivity) / check.budget(self.epsilon) * floats.laplace(key, value.shape, value.dtype)

    def lattice_draw(self, key, value, sensitivity):
        return lattice.laplace(key, value, sensitivity, check.budget(self.epsilon))

    def scale(self, sensitivity):
        """Noise scale b (sd sqrt(2) b)."""
        self.require(sensitivity)
        return reach(sensitivity) / check.positive_or_nan(self.epsilon)

    def variance(self, sensitivity):
        """Variance of the noise, 2 b^2."""
        return 2.0 * self.scale(sensitivity) ** 2

    def selector(self):
        """The selection mechanism that this budget buys."""
        return ReportNoisyMax(epsilon=check.budget(self.epsilon))

    def noise(self, key, sensitivity, shape=()):
        """Float draws of the noise alone, for null distributions (public post-processing)."""
        return self.scale(sensitivity) * floats.laplace(key, shape)

    def null_p_value(self, value, sd, sensitivity):
        """P(|N(0, sd^2) + noise| >= |value|), exact for the noise."""
        return null_laws.normal_plus_laplace(value, sd, self.scale(sensitivity))

    def combined_p_value(self, value, sd, scales):
        """P(|N(0, sd^2) + sum of noise of these scales (..., D)| >= |value|), exact for the noise."""
        return null_laws.normal_plus_laplaces(value, sd, scales)

    def widened(self, value, sd, sensitivity, variance_noise):
        """`sd` enlarged for the noise of this variance in sd^2, so that `null_p_value` keeps its level."""
        return null_laws.widened_for_laplace(value, sd, self.scale(sensitivity), variance_noise)
