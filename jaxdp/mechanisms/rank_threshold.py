"""Private decision: is the reference statistic among the largest of its resampled copies?"""

import math

import jax
from jax.typing import ArrayLike

from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Cost, Norm, Relation
from jaxdp.mechanisms.shares import share_of
from jaxdp.noise.floats import reach
from jaxdp.noise.source import Source, require_source


@frozen_pytree
class RankThreshold:
    """Releases one bit: 1 + #{j >= 1: T_j + Z_j >= T_0 + Z_0} <= level (m + 1).

    Value: pair (T_0, T) of a scalar and a vector of m copies; sensitivity: pair of Linf bounds
    (D_0, D). All Z are Laplace of scale (D_0 + D)/epsilon.
    Privacy: epsilon-DP for the decision at this one level only; releasing the rank or a p-value with the
    same noise is NOT epsilon-DP (1.12 epsilon or more; docs/theory/crt.md#whole-rank).
    Level: exact if (T_0, ..., T_m) are exchangeable under the null.
    """

    epsilon: ArrayLike
    level: float = jax.tree.static(default=0.05)

    def __post_init__(self):
        check.positive(epsilon=self.epsilon)
        check.in_range(0.0, 1.0, level=self.level)

    def perturb(self, source: Source, value, sensitivity):
        """Boolean array: reject or not."""
        require_source(source)
        reference, copies = value
        _require_linf(sensitivity)
        count = math.floor(self.level * (copies.shape[-1] + 1) + 1e-9) - 1
        moves = [reach(part) for part in sensitivity]
        return source.rank_at_most(reference, copies, sum(moves), check.budget(self.epsilon), count)

    def share(self, fraction: float):
        """The mechanism that a fraction of this budget buys."""
        return share_of(self, fraction)

    def cost(self, relation: Relation) -> Cost:
        """epsilon-DP for the decision."""
        epsilon = check.budget(self.epsilon)
        return Cost(epsilon=epsilon, delta=0.0, rho=epsilon**2 / 2, relation=relation)


def _require_linf(sensitivity) -> None:
    if any(part.norm is not Norm.LINF for part in sensitivity):
        raise ValueError("RankThreshold needs Linf bounds for the reference and for the copies.")
