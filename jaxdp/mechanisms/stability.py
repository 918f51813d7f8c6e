"""Counts of whatever occurs, where nobody may list beforehand what can occur: small ones do not leave."""

import dataclasses
import math
from fractions import Fraction
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdp._base import check
from jaxdp._base.amounts import spent
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Norm
from jaxdp.mechanisms.law import ApproximateBudget, Law
from jaxdp.noise import certificate, floats, lattice
from jaxdp.noise.floats import reach

MIN_DELTA = 1e-12  # far above the chance of an escape in a release, 2^-50
MARGIN = 2.0**-20  # of delta and of the rate, for what the exact sampler does not resolve


@frozen_pytree
class StabilityThreshold(ApproximateBudget, Law):
    """Adds two-sided geometric noise to the counts above 0, and releases those that reach a threshold; else 0.

    Value: whole numbers, the counts of whatever occurs; places whose count is 0 stand for what does not occur, and are
    never released. Noise: P(k) proportional to exp(-epsilon |k|/2), since a replaced record moves two counts by 1.
    Threshold: the smallest with which a count of 1 is released with probability at most delta.
    Privacy: (epsilon, delta)-DP, L1 bound of 2, REPLACE_ONE (docs/theory/private_levels.md).
    """

    epsilon: ArrayLike
    delta: float = jax.tree.static(default=0.0)

    name: ClassVar[str] = "stability_threshold"
    norm: ClassVar[Norm] = Norm.L1
    outputs_released: ClassVar[bool] = True

    def __post_init__(self):
        check.positive(epsilon=self.epsilon)
        check.in_range(0.0, 1.0, delta=self.delta)
        if self.delta < MIN_DELTA:
            raise ValueError(f"delta must be at least {MIN_DELTA:g}, got {spent(self.delta)}.")
        if check.is_concrete(self.epsilon) and self.delta > -math.expm1(-0.5 * float(np.asarray(self.epsilon))):
            raise ValueError(
                f"delta must be at most 1 - exp(-epsilon/2), got {spent(self.delta)} at epsilon "
                f"{spent(float(np.asarray(self.epsilon)))}."
            )

    def require(self, sensitivity) -> None:
        """Raises ValueError for another bound than 2 in L1."""
        super().require(sensitivity)
        if check.is_concrete(sensitivity.bound) and float(sensitivity.bound) != 2.0:
            raise ValueError(f"StabilityThreshold is for counts of which a record moves two by 1, got {sensitivity}.")

    def threshold(self) -> int:
        """The least noisy count that is released, by public numbers."""
        rate = 0.5 * float(np.asarray(self.epsilon)) * (1.0 - MARGIN)
        wanted = self.delta * (1.0 - MARGIN) - 2.0**-certificate.ESCAPE_BITS
        return 1 + max(math.ceil((-math.log(wanted) - math.log1p(math.exp(-rate))) / rate), 1)

    def float_draw(self, key, value, sensitivity):
        counts = jnp.asarray(value, float)
        scale = sensitivity.bound / check.budget(self.epsilon)
        return self._above(value, counts + floats.two_sided_geometric(key, scale, counts.shape, counts.dtype))

    def lattice_draw(self, key, value, sensitivity):
        noisy, facts = lattice.geometric(key, value, sensitivity, check.budget(self.epsilon))
        if certificate.tail(facts, self.threshold() - 1) > self.delta:
            raise ValueError(f"no certificate holds at delta {spent(self.delta)}; give a larger one.")
        told = dataclasses.replace(facts, law=self.name, rho=None, delta=Fraction(self.delta))
        return self._above(value, noisy), told

    def _above(self, counts, noisy):
        return jnp.where((jnp.asarray(counts) > 0) & (noisy >= self.threshold()), noisy, 0.0)

    def parameters(self, sensitivity) -> tuple:
        return reach(sensitivity), check.budget(self.epsilon), self.delta
