"""Private selection of the best score."""

from jax.typing import ArrayLike

from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Cost, Norm, Relation
from jaxdp.mechanisms.shares import share_of
from jaxdp.noise.source import Source, require_source


@frozen_pytree
class ReportNoisyMax:
    """Releases the index of the largest score after adding exponential noise of mean 2 bound/epsilon.

    Privacy: epsilon-DP for scores that each move by at most `bound` (Linf); the exponential-noise form
    of report-noisy-max (Dwork and Roth 2014, section 3.3), same law as permute-and-flip (Ding et al. 2021).
    """

    epsilon: ArrayLike

    def __post_init__(self):
        check.positive(epsilon=self.epsilon)

    def perturb(self, source: Source, value, sensitivity):
        """Index of the selected score along the last axis, int array."""
        require_source(source)
        _require_linf(self, sensitivity)
        return source.argmax_exponential(value, sensitivity, check.budget(self.epsilon))

    def share(self, fraction: float):
        """The mechanism that a fraction of this budget buys."""
        return share_of(self, fraction)

    def cost(self, relation: Relation) -> Cost:
        """epsilon-DP; epsilon^2/2-zCDP."""
        epsilon = check.budget(self.epsilon)
        return Cost(epsilon=epsilon, delta=0.0, rho=epsilon**2 / 2, relation=relation)


@frozen_pytree
class PermuteAndFlip(ReportNoisyMax):
    """Permute-and-flip (McKenna and Sheldon 2020): the same law as `ReportNoisyMax`, drawn the same way.

    Privacy: epsilon-DP, Linf bound; never worse in expected score than the exponential mechanism.
    """


@frozen_pytree
class ExponentialMechanism:
    """Releases index k with probability proportional to exp(epsilon score_k / (2 bound)).

    Privacy: epsilon-DP and epsilon^2/8-zCDP, Linf bound (McSherry and Talwar 2007; Cesar and Rogers 2021).
    Drawn by Gumbel noise of scale 2 bound/epsilon.
    """

    epsilon: ArrayLike

    def __post_init__(self):
        check.positive(epsilon=self.epsilon)

    def perturb(self, source: Source, value, sensitivity):
        """Index of the selected score along the last axis, int array."""
        require_source(source)
        _require_linf(self, sensitivity)
        return source.argmax_gumbel(value, sensitivity, check.budget(self.epsilon))

    def share(self, fraction: float):
        """The mechanism that a fraction of this budget buys."""
        return share_of(self, fraction)

    def cost(self, relation: Relation) -> Cost:
        """epsilon-DP; epsilon^2/8-zCDP (bounded range)."""
        epsilon = check.budget(self.epsilon)
        return Cost(epsilon=epsilon, delta=0.0, rho=epsilon**2 / 8, relation=relation)


def _require_linf(mechanism, sensitivity) -> None:
    if sensitivity.norm is not Norm.LINF:
        raise ValueError(f"{type(mechanism).__name__} needs an Linf bound, got {sensitivity.norm.value}.")
