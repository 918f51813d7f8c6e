"""The mechanism of non-private tests: no noise, infinite cost."""

import dataclasses
from typing import ClassVar

import jax.numpy as jnp

from jaxdp import null_laws
from jaxdp._base.pytree import as_pytree
from jaxdp.core import Cost, Norm, Relation
from jaxdp.noise.source import Source


@as_pytree
@dataclasses.dataclass(frozen=True)
class Exact:
    """Releases the statistic as it is. NOT PRIVATE: epsilon is infinite; refused in release mode."""

    private: ClassVar[bool] = False
    norm: ClassVar[Norm] = Norm.L1

    def perturb(self, source: Source, value, sensitivity):
        """The value itself."""
        return value

    def scale(self, sensitivity):
        """No noise."""
        return 0.0

    def null_p_value(self, value, sd, sensitivity):
        """P(|N(0, sd^2)| >= |value|)."""
        return null_laws.normal(value, sd)

    def combined_p_value(self, value, sd, scales):
        """P(|N(0, sd^2)| >= |value|)."""
        return null_laws.normal(value, sd)

    def widened(self, value, sd, sensitivity, variance_noise):
        """`sd` itself: nothing is noisy."""
        return sd

    def variance(self, sensitivity):
        """No noise."""
        return 0.0

    def share(self, fraction: float):
        """Nothing divides into nothing."""
        return self

    def selector(self):
        """Exact selection."""
        return ExactMax()

    def noise(self, key, sensitivity, shape=()):
        """Zeros."""
        return jnp.zeros(shape)

    def cost(self, relation: Relation) -> Cost:
        """Not private."""
        return Cost(epsilon=jnp.inf, delta=0.0, rho=jnp.inf, relation=relation)


class ExactMax(Exact):
    """Releases the index of the largest score as it is. NOT PRIVATE."""

    def perturb(self, source: Source, value, sensitivity):
        """Index of the largest score along the last axis."""
        return jnp.argmax(value, axis=-1)


as_pytree(ExactMax)
