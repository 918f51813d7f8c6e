"""Private selection: the best score, several of them, and whether a statistic is among the largest of its copies."""

import math
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Cost, Norm, Relation
from jaxdp.mechanisms.law import PureLaw
from jaxdp.noise import floats, lattice
from jaxdp.noise.floats import reach
from jaxdp.noise.lattice import SELECTION_LIMIT
from jaxdp.noise.source import LatticeNoise, Source


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


@frozen_pytree
class RankThreshold(PureLaw):
    """Releases one bit: 1 + #{j >= 1: T_j + Z_j >= T_0 + Z_0} <= level (m + 1).

    Value: pair (T_0, T) of a scalar and a vector of m copies; sensitivity: pair of Linf bounds
    (D_0, D). All Z are Laplace of scale (D_0 + D)/epsilon.
    Privacy: epsilon-DP for the decision at this one level only; releasing the rank or a p-value with the
    same noise is NOT epsilon-DP (1.12 epsilon or more; docs/theory/crt.md#whole-rank).
    Level: exact if (T_0, ..., T_m) are exchangeable under the null.
    """

    epsilon: ArrayLike
    level: float = jax.tree.static(default=0.05)

    name: ClassVar[str] = "rank_at_most"
    norm: ClassVar[Norm] = Norm.LINF
    outputs_released: ClassVar[bool] = True

    def __post_init__(self):
        super().__post_init__()
        check.in_range(0.0, 1.0, level=self.level)

    def float_draw(self, key, value, sensitivity):
        values = jnp.concatenate([jnp.atleast_1d(value[0]), value[1]])
        moves, epsilon = self.parameters(sensitivity)
        noisy = values + moves / epsilon * floats.laplace(key, values.shape, values.dtype)
        return jnp.sum(noisy[1:] >= noisy[0]) <= self._most(value)

    def lattice_draw(self, key, value, sensitivity):
        moves, epsilon = self.parameters(sensitivity)
        return lattice.rank_at_most(key, value[0], value[1], moves, epsilon, self._most(value))

    def parameters(self, sensitivity) -> tuple:
        return sum(reach(part) for part in sensitivity), check.budget(self.epsilon)

    @classmethod
    def distance(cls, first, second) -> float:
        return float(sum(np.max(np.abs(np.asarray(a) - np.asarray(b))) for a, b in zip(first, second, strict=True)))

    def require(self, sensitivity) -> None:
        if any(part.norm is not Norm.LINF for part in sensitivity):
            raise ValueError("RankThreshold needs Linf bounds for the reference and for the copies.")

    def _most(self, value) -> int:
        """How many copies may reach the reference."""
        return math.floor(self.level * (value[1].shape[-1] + 1) + 1e-9) - 1
