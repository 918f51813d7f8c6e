"""Private selection of several best scores at once."""

import jax
from jax.typing import ArrayLike

from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Cost, Norm, Relation
from jaxdp.mechanisms.shares import share_of
from jaxdp.noise.lattice import SELECTION_LIMIT
from jaxdp.noise.source import Source, peeled, require_source

AUTO, GUMBEL, EXPONENTIAL = "auto", "gumbel", "exponential"


@frozen_pytree
class TopK:
    """Releases the indices of `count` large scores, best first.

    law: "gumbel", the `count` largest of score + Gumbel noise of scale 2 count bound/epsilon, in one shot. Same law
        as peeling: `count` exponential mechanisms of budget epsilon/count, each on what is left
        (docs/theory/gwas.md#selection). "exponential": peeling by report-noisy-max with exponential noise
        (permute-and-flip), never worse in expected score. "auto": "gumbel" for up to 4096 scores (`SELECTION_LIMIT`),
        "exponential" for more, in simulations and releases alike.
    Privacy: epsilon-DP for scores that each move by at most `bound` (Linf).
    Releases peel one exact selection at a time: any number of scores with "exponential", few with "gumbel".
    """

    epsilon: ArrayLike
    count: int = jax.tree.static(default=1)
    law: str = jax.tree.static(default=AUTO)

    def __post_init__(self):
        check.positive(epsilon=self.epsilon)
        check.at_least(1, count=self.count)
        check.one_of((AUTO, GUMBEL, EXPONENTIAL), law=self.law)

    def perturb(self, source: Source, value, sensitivity):
        """Indices of the selected scores, int array (count,); scores of shape (k,) with k >= count."""
        require_source(source)
        if sensitivity.norm is not Norm.LINF:
            raise ValueError(f"TopK needs an Linf bound, got {sensitivity.norm.value}.")
        if value.shape[-1] < self.count:
            raise ValueError(f"count must be at most the number of scores, got {self.count} of {value.shape[-1]}.")
        each = check.budget(self.epsilon) / self.count
        few = value.shape[-1] <= SELECTION_LIMIT
        if self.law == GUMBEL or (self.law == AUTO and few):
            return source.largest_gumbel(value, sensitivity, each, self.count)
        return peeled(source, "argmax_exponential", value, sensitivity, each, self.count)

    def share(self, fraction: float):
        """The mechanism that a fraction of this budget buys."""
        return share_of(self, fraction)

    def cost(self, relation: Relation) -> Cost:
        """epsilon-DP."""
        epsilon = check.budget(self.epsilon)
        return Cost(epsilon=epsilon, delta=0.0, rho=epsilon**2 / 2, relation=relation)
