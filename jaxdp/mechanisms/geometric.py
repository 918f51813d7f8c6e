"""Two-sided geometric (discrete Laplace) noise for integer statistics with an L1 bound."""

import dataclasses
from typing import ClassVar

import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdp._base import check
from jaxdp._base.pytree import as_pytree
from jaxdp.core import Norm
from jaxdp.mechanisms.law import PureLaw
from jaxdp.noise import floats, lattice


@as_pytree
@dataclasses.dataclass(frozen=True)
class Geometric(PureLaw):
    """Adds integer noise with P(k) proportional to exp(-epsilon |k| / bound) to integer values.

    Privacy: epsilon-DP for the relation of the sensitivity, L1 norm (Ghosh et al. 2012, Thm 3.1's mechanism).
    Numerics: simulation keys draw floats (idealised); release keys draw exact lattice noise and take integer dtypes
    only, since whole numbers can't be told from others in floats.
    """

    epsilon: ArrayLike

    name: ClassVar[str] = "geometric"
    norm: ClassVar[Norm] = Norm.L1
    outputs_released: ClassVar[bool] = True

    def float_draw(self, key, value, sensitivity):
        value = jnp.asarray(value, float)
        scale = sensitivity.bound / check.budget(self.epsilon)
        return value + floats.two_sided_geometric(key, scale, value.shape, value.dtype)

    def lattice_draw(self, key, value, sensitivity):
        return lattice.geometric(key, value, sensitivity, check.budget(self.epsilon))

    def scale(self, sensitivity):
        """Scale of the two-sided geometric law, bound/epsilon."""
        self.require(sensitivity)
        return sensitivity.bound / check.positive_or_nan(self.epsilon)

    def noise(self, key, sensitivity, shape=()):
        """Float-typed integer draws of the noise alone, for null distributions."""
        return floats.two_sided_geometric(key, self.scale(sensitivity), shape)
