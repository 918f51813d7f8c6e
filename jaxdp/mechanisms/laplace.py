"""Laplace noise for statistics with an L1 bound."""

import dataclasses
from typing import ClassVar

from jax.typing import ArrayLike

from jaxdp import _check, calibrate
from jaxdp._pytree import as_pytree
from jaxdp.core import Cost, Norm, Relation
from jaxdp.mechanisms.noisy_max import ReportNoisyMax
from jaxdp.noise import add, draw


@as_pytree
@dataclasses.dataclass(frozen=True)
class Laplace:
    """Adds independent Laplace noise of scale (bound + 2 error)/epsilon.

    Privacy: epsilon-DP for the relation of the sensitivity, L1 norm (Dwork et al. 2006, Prop. 1).
    Numerics: simulation keys draw floats (idealised); release keys draw exact lattice noise.
    """

    epsilon: ArrayLike

    norm: ClassVar[Norm] = Norm.L1

    def __post_init__(self):
        _check.positive(epsilon=self.epsilon)

    def scale(self, sensitivity):
        """Noise scale b (sd sqrt(2) b)."""
        self._require(sensitivity)
        return add.reach(sensitivity) / _check.positive_or_nan(self.epsilon)

    def variance(self, sensitivity):
        """Variance of the noise, 2 b^2."""
        return 2.0 * self.scale(sensitivity) ** 2

    def share(self, fraction: float):
        """The mechanism that a fraction of this budget buys."""
        return Laplace(_check.share(self.epsilon, fraction))

    def selector(self):
        """The selection mechanism that this budget buys."""
        return ReportNoisyMax(epsilon=_check.budget(self.epsilon))

    def noise(self, key, sensitivity, shape=()):
        """Float draws of the noise alone, for null distributions (public post-processing)."""
        return self.scale(sensitivity) * draw.laplace(key, shape)

    def null_p_value(self, value, sd, sensitivity):
        """P(|N(0, sd^2) + noise| >= |value|), exact for the noise."""
        return calibrate.normal_plus_laplace(value, sd, self.scale(sensitivity))

    def widened(self, value, sd, sensitivity, variance_noise):
        """`sd` enlarged for the noise of this variance in sd^2, so that `null_p_value` keeps its level."""
        return calibrate.widened_for_laplace(value, sd, self.scale(sensitivity), variance_noise)

    def perturb(self, key, value, sensitivity):
        """value + noise."""
        self._require(sensitivity)
        return add.laplace(key, value, sensitivity, _check.budget(self.epsilon))

    def cost(self, relation: Relation) -> Cost:
        """epsilon-DP, which is epsilon^2/2-zCDP."""
        epsilon = _check.budget(self.epsilon)
        return Cost(epsilon=epsilon, delta=0.0, rho=epsilon**2 / 2, relation=relation)

    @staticmethod
    def _require(sensitivity) -> None:
        if sensitivity.norm is not Norm.L1:
            raise ValueError(f"Laplace needs an L1 bound, got {sensitivity.norm.value}; use Gaussian for L2.")
