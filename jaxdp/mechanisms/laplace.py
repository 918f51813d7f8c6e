"""Laplace noise for statistics with an L1 bound."""

import dataclasses
from typing import ClassVar

from jax.typing import ArrayLike

from jaxdp import null_laws
from jaxdp._base import check
from jaxdp._base.pytree import as_pytree
from jaxdp.core import Cost, Norm, Relation
from jaxdp.mechanisms.noisy_max import ReportNoisyMax
from jaxdp.noise import floats
from jaxdp.noise.floats import reach
from jaxdp.noise.source import Source, require_source


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
        check.positive(epsilon=self.epsilon)

    def scale(self, sensitivity):
        """Noise scale b (sd sqrt(2) b)."""
        self._require(sensitivity)
        return reach(sensitivity) / check.positive_or_nan(self.epsilon)

    def variance(self, sensitivity):
        """Variance of the noise, 2 b^2."""
        return 2.0 * self.scale(sensitivity) ** 2

    def share(self, fraction: float):
        """The mechanism that a fraction of this budget buys."""
        return Laplace(check.share(self.epsilon, fraction))

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

    def perturb(self, source: Source, value, sensitivity):
        """value + noise."""
        require_source(source)
        self._require(sensitivity)
        return source.laplace(value, sensitivity, check.budget(self.epsilon))

    def cost(self, relation: Relation) -> Cost:
        """epsilon-DP, which is epsilon^2/2-zCDP."""
        epsilon = check.budget(self.epsilon)
        return Cost(epsilon=epsilon, delta=0.0, rho=epsilon**2 / 2, relation=relation)

    @staticmethod
    def _require(sensitivity) -> None:
        if sensitivity.norm is not Norm.L1:
            raise ValueError(f"Laplace needs an L1 bound, got {sensitivity.norm.value}; use Gaussian for L2.")
