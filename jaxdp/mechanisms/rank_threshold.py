"""Private decision: is the reference statistic among the largest of its resampled copies?"""

import math
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Norm
from jaxdp.mechanisms.law import PureLaw
from jaxdp.noise import floats, lattice
from jaxdp.noise.floats import reach


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
