"""Two-sided geometric (discrete Laplace) noise for integer statistics with an L1 bound."""

import dataclasses
from typing import ClassVar

from jax.typing import ArrayLike

from jaxdp._base import check
from jaxdp._base.pytree import as_pytree
from jaxdp.core import Cost, Norm, Relation
from jaxdp.mechanisms.shares import share_of
from jaxdp.noise import floats
from jaxdp.noise.source import Source, require_source


@as_pytree
@dataclasses.dataclass(frozen=True)
class Geometric:
    """Adds integer noise with P(k) proportional to exp(-epsilon |k| / bound) to integer values.

    Privacy: epsilon-DP for the relation of the sensitivity, L1 norm (Ghosh et al. 2012, Thm 3.1's mechanism).
    Numerics: simulation keys draw floats (idealised); release keys draw exact lattice noise and take integer dtypes
    only, since whole numbers can't be told from others in floats.
    """

    epsilon: ArrayLike

    norm: ClassVar[Norm] = Norm.L1

    def __post_init__(self):
        check.positive(epsilon=self.epsilon)

    def scale(self, sensitivity):
        """Scale of the two-sided geometric law, bound/epsilon."""
        self._require(sensitivity)
        return sensitivity.bound / check.positive_or_nan(self.epsilon)

    def share(self, fraction: float):
        """The mechanism that a fraction of this budget buys."""
        return share_of(self, fraction)

    def noise(self, key, sensitivity, shape=()):
        """Float-typed integer draws of the noise alone, for null distributions."""
        return floats.two_sided_geometric(key, self.scale(sensitivity), shape)

    def perturb(self, source: Source, value, sensitivity):
        """value + noise."""
        require_source(source)
        self._require(sensitivity)
        return source.geometric(value, sensitivity, check.budget(self.epsilon))

    def cost(self, relation: Relation) -> Cost:
        """epsilon-DP, which is epsilon^2/2-zCDP."""
        epsilon = check.budget(self.epsilon)
        return Cost(epsilon=epsilon, delta=0.0, rho=epsilon**2 / 2, relation=relation)

    @staticmethod
    def _require(sensitivity) -> None:
        if sensitivity.norm is not Norm.L1:
            raise ValueError(f"Geometric needs an L1 bound, got {sensitivity.norm.value}.")
