"""Private selection of the best score."""

from typing import ClassVar

import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Cost, Norm, Relation
from jaxdp.mechanisms.law import PureLaw
from jaxdp.noise import floats, lattice
from jaxdp.noise.floats import reach


@frozen_pytree
class ReportNoisyMax(PureLaw):
    """Releases the index of the largest score (last axis) after adding exponential noise of mean 2 bound/epsilon.

    Privacy: epsilon-DP for scores that each move by at most `bound` (Linf); the exponential-noise form
    of report-noisy-max (Dwork and Roth 2014, section 3.3), same law as permute-and-flip (Ding et al. 2021).
    """

    epsilon: ArrayLike

    name: ClassVar[str] = "argmax_exponential"
    norm: ClassVar[Norm] = Norm.LINF
    outputs_released: ClassVar[bool] = True

    def float_draw(self, key, value, sensitivity):
        noise = floats.exponential(key, jnp.shape(value), jnp.asarray(value).dtype)
        return jnp.argmax(value + 2.0 * reach(sensitivity) / check.budget(self.epsilon) * noise, axis=-1)

    def lattice_draw(self, key, value, sensitivity):
        return lattice.argmax_exponential(key, value, sensitivity, check.budget(self.epsilon))


@frozen_pytree
class PermuteAndFlip(ReportNoisyMax):
    """Permute-and-flip (McKenna and Sheldon 2020): the same law as `ReportNoisyMax`, drawn the same way.

    Privacy: epsilon-DP, Linf bound; never worse in expected score than the exponential mechanism.
    """


@frozen_pytree
class ExponentialMechanism(PureLaw):
    """Releases index k with probability proportional to exp(epsilon score_k / (2 bound)).

    Privacy: epsilon-DP and epsilon^2/8-zCDP, Linf bound (McSherry and Talwar 2007; Cesar and Rogers 2021).
    Drawn by Gumbel noise of scale 2 bound/epsilon, over the last axis.
    """

    epsilon: ArrayLike

    name: ClassVar[str] = "argmax_gumbel"
    norm: ClassVar[Norm] = Norm.LINF
    outputs_released: ClassVar[bool] = True

    def float_draw(self, key, value, sensitivity):
        noise = floats.gumbel(key, jnp.shape(value), jnp.asarray(value).dtype)
        return jnp.argmax(value + 2.0 * reach(sensitivity) / check.budget(self.epsilon) * noise, axis=-1)

    def lattice_draw(self, key, value, sensitivity):
        return lattice.argmax_gumbel(key, value, sensitivity, check.budget(self.epsilon))

    def cost(self, relation: Relation) -> Cost:
        """epsilon-DP; epsilon^2/8-zCDP (bounded range)."""
        epsilon = check.budget(self.epsilon)
        return Cost(epsilon=epsilon, delta=0.0, rho=epsilon**2 / 8, relation=relation)
