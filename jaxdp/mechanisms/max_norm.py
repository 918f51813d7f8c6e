"""Noise for vectors whose coordinates each have a bound: one radius, and a uniform point of its cube."""

import dataclasses
from typing import ClassVar

import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdp._base import check
from jaxdp._base.pytree import as_pytree
from jaxdp.core import Norm
from jaxdp.mechanisms.law import PureLaw
from jaxdp.mechanisms.noisy_max import ReportNoisyMax
from jaxdp.noise import floats, lattice
from jaxdp.noise.floats import reach


@as_pytree
@dataclasses.dataclass(frozen=True)
class MaxNorm(PureLaw):
    """Adds noise x of density proportional to exp(-epsilon max_k |x_k|/(bound + 2 error)) to a vector.

    Privacy: epsilon-DP for the relation of the sensitivity, Linf norm: the K-norm mechanism of the cube (Hardt and
    Talwar 2010; Steinke and Ullman 2016, section 3). Of d coordinates each has sd sqrt((d + 1)(d + 2)/3) bound/epsilon,
    where Laplace noise for an L1 bound of d times as much has sqrt(2) d: it suits statistics that move in most of them.
    Numerics: simulation keys draw floats (idealised); release keys draw exact lattice noise.
    """

    epsilon: ArrayLike

    name: ClassVar[str] = "max_norm"
    norm: ClassVar[Norm] = Norm.LINF
    instead: ClassVar[str] = "; use Laplace for L1"
    outputs_released: ClassVar[bool] = True

    def float_draw(self, key, value, sensitivity):
        value = jnp.asarray(value, float)
        noise = floats.max_norm(key, (value.size,), value.size, value.dtype)
        return value + reach(sensitivity) / check.budget(self.epsilon) * noise.reshape(value.shape)

    def lattice_draw(self, key, value, sensitivity):
        return lattice.max_norm(key, value, sensitivity, check.budget(self.epsilon))

    def scale(self, sensitivity):
        """Mean growth of the radius with a coordinate."""
        self.require(sensitivity)
        return reach(sensitivity) / check.positive_or_nan(self.epsilon)

    def variance(self, sensitivity, among: int = 1):
        """Variance of one of `among` coordinates."""
        return self.scale(sensitivity) ** 2 * (among + 1.0) * (among + 2.0) / 3.0

    def selector(self):
        """The selection mechanism that this budget buys."""
        return ReportNoisyMax(epsilon=check.budget(self.epsilon))

    def noise(self, key, sensitivity, shape=(1,), among: int | None = None):
        """Float draws (..., k) of the noise alone, of k of `among` coordinates (default: of all), for null laws."""
        shape = shape or (1,)
        return self.scale(sensitivity) * floats.max_norm(key, shape, shape[-1] if among is None else among)
