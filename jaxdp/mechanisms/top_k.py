"""Private selection of several best scores at once."""

from typing import ClassVar

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Norm
from jaxdp.mechanisms.law import PureLaw
from jaxdp.mechanisms.noisy_max import ExponentialMechanism, ReportNoisyMax
from jaxdp.noise import floats
from jaxdp.noise.floats import reach
from jaxdp.noise.lattice import SELECTION_LIMIT
from jaxdp.noise.source import LatticeNoise, Source

AUTO, GUMBEL, EXPONENTIAL = "auto", "gumbel", "exponential"


@frozen_pytree
class TopK(PureLaw):
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

    name: ClassVar[str] = "largest_gumbel"
    norm: ClassVar[Norm] = Norm.LINF
    outputs_released: ClassVar[bool] = True

    def __post_init__(self):
        super().__post_init__()
        check.at_least(1, count=self.count)
        check.one_of((AUTO, GUMBEL, EXPONENTIAL), law=self.law)

    def each(self):
        """Budget of one selection."""
        return check.budget(self.epsilon) / self.count

    def perturb(self, source: Source, value, sensitivity):
        """Indices of the selected scores, int array (count,); scores of shape (k,) with k >= count."""
        self.require(sensitivity)
        if value.shape[-1] < self.count:
            raise ValueError(f"count must be at most the number of scores, got {self.count} of {value.shape[-1]}.")
        if self.law == GUMBEL or (self.law == AUTO and value.shape[-1] <= SELECTION_LIMIT):
            return super().perturb(source, value, sensitivity)
        return peeled(source, ReportNoisyMax(epsilon=self.each()), value, sensitivity, self.count)

    def float_draw(self, key, value, sensitivity):
        noise = floats.gumbel(key, value.shape, value.dtype)
        return jax.lax.top_k(value + 2.0 * reach(sensitivity) / self.each() * noise, self.count)[1]

    def lattice_draw(self, key, value, sensitivity):
        source = LatticeNoise(key)
        chosen = peeled(source, ExponentialMechanism(epsilon=self.each()), value, sensitivity, self.count)
        return chosen, *source.certificates

    def parameters(self, sensitivity) -> tuple:
        return reach(sensitivity), self.each()


def peeled(source: Source, selection: PureLaw, scores, sensitivity, count: int):
    """Indices of `count` selections, best first, each from what is left of the scores (k,).

    What is taken is left out by shifting the places, without a shape that depends on the data.
    """
    remaining = jnp.arange(scores.shape[-1])
    chosen = []
    for part in source.split(count):
        index = selection.perturb(part, scores[remaining], sensitivity)
        chosen.append(remaining[index])
        place = jnp.arange(remaining.shape[0] - 1)
        remaining = remaining[place + (place >= index)]
    return jnp.stack(chosen)
