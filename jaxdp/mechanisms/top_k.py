"""Private selection of several best scores at once."""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdp import _check
from jaxdp._pytree import frozen_pytree
from jaxdp.core import Cost, Norm, Relation
from jaxdp.mechanisms.shares import share_of
from jaxdp.noise import add, draw, keys

GUMBEL, EXPONENTIAL = "gumbel", "exponential"


@frozen_pytree
class TopK:
    """Releases the indices of `count` large scores, best first.

    law: "gumbel", the `count` largest of score + Gumbel noise of scale 2 count bound/epsilon, in one shot. Same law
        as peeling: `count` exponential mechanisms of budget epsilon/count, each on what is left
        (docs/theory/gwas.md#selection). "exponential": peeling by report-noisy-max with exponential noise
        (permute-and-flip), never worse in expected score.
    Privacy: epsilon-DP for scores that each move by at most `bound` (Linf).
    Releases peel one exact selection at a time: any number of scores with "exponential", few with "gumbel".
    """

    epsilon: ArrayLike
    count: int = jax.tree.static(default=1)
    law: str = jax.tree.static(default=GUMBEL)

    def __post_init__(self):
        _check.positive(epsilon=self.epsilon)
        _check.at_least(1, count=self.count)
        _check.one_of((GUMBEL, EXPONENTIAL), law=self.law)

    def perturb(self, key, value, sensitivity):
        """Indices of the selected scores, int array (count,); scores of shape (k,) with k >= count."""
        if sensitivity.norm is not Norm.LINF:
            raise ValueError(f"TopK needs an Linf bound, got {sensitivity.norm.value}.")
        if value.shape[-1] < self.count:
            raise ValueError(f"count must be at most the number of scores, got {self.count} of {value.shape[-1]}.")
        if self.law == GUMBEL and keys.mode_of(key) != keys.RELEASE:
            return self._one_shot(key, value, sensitivity)
        return self._peel(key, value, sensitivity)

    def _one_shot(self, key, value, sensitivity):
        scale = 2.0 * self.count * add.reach(sensitivity) / _check.budget(self.epsilon)
        noisy = value + scale * draw.gumbel(key, value.shape, value.dtype)
        return jax.lax.top_k(noisy, self.count)[1]

    def _peel(self, key, value, sensitivity):
        """One selection after another; what is taken stays among the scores, far below all others."""
        select = add.argmax_gumbel if self.law == GUMBEL else add.argmax_exponential
        each = _check.budget(self.epsilon) / self.count
        remaining = jnp.arange(value.shape[-1])
        chosen = []
        for part in jax.random.split(key, self.count):
            index = select(part, value[remaining], sensitivity, each)
            chosen.append(remaining[index])
            # Drops one place without a data-dependent shape.
            place = jnp.arange(remaining.shape[0] - 1)
            remaining = remaining[place + (place >= index)]
        return jnp.stack(chosen)

    def share(self, fraction: float):
        """The mechanism that a fraction of this budget buys."""
        return share_of(self, fraction)

    def cost(self, relation: Relation) -> Cost:
        """epsilon-DP."""
        epsilon = _check.budget(self.epsilon)
        return Cost(epsilon=epsilon, delta=0.0, rho=epsilon**2 / 2, relation=relation)
