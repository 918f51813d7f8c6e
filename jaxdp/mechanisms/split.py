"""Several released values, each with a mechanism of its own."""

import functools
import operator
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp

from jaxdp._base.pytree import frozen_pytree
from jaxdp._base.rounding import as_fraction
from jaxdp.core import Cost, Relation
from jaxdp.noise.source import Source, require_source


@frozen_pytree
class Split:
    """Perturbs each named part of a statistic with its own mechanism and an independent source.

    parts: dict of mechanisms. The statistic and the sensitivity are dicts with the same names.
    Privacy: sequential composition; the costs of the parts add up.
    """

    parts: dict[str, Any]

    @property
    def private(self) -> bool:
        """False if any part adds no noise."""
        return all(getattr(part, "private", True) for part in self.parts.values())

    def __getitem__(self, name: str):
        return self.parts[name]

    def perturb(self, source: Source, value, sensitivity):
        """Dict of noisy values."""
        require_source(source)
        return {
            name: part.perturb(own, value[name], sensitivity[name])
            for own, (name, part) in zip(source.split(len(self.parts)), sorted(self.parts.items()), strict=True)
        }

    def share(self, fraction: float):
        """The same parts, each with a fraction of its budget."""
        return Split(parts={name: part.share(fraction) for name, part in self.parts.items()})

    def cost(self, relation: Relation) -> Cost:
        """The sum of the parts' costs."""
        return functools.reduce(operator.add, (part.cost(relation) for part in self.parts.values()))


def divide(mechanism: Any, shares: dict[str, Any]) -> Split:
    """One budget divided over named parts; a `Split` with these names passes through.

    shares: numbers > 0, divided by their sum where that is more than 1. Traced ones can be differentiated.
    """
    if isinstance(mechanism, Split):
        if set(mechanism.parts) != set(shares):
            raise ValueError(f"mechanism must have parts {sorted(shares)}, got {sorted(mechanism.parts)}.")
        return mechanism
    if any(isinstance(part, jax.core.Tracer) for part in shares.values()):
        whole = sum(shares.values())
        # not the larger of the two: its gradient is halved where they are equal, as shares mostly are
        parts: dict[str, Any] = {name: jnp.where(whole > 1.0, part / whole, part) for name, part in shares.items()}
    else:
        # 0.85 and 1 - 0.85 add up to a little more than one
        total = max(sum(map(as_fraction, shares.values())), Fraction(1))
        parts = {name: as_fraction(part) / total for name, part in shares.items()}
    return Split(parts={name: mechanism.share(part) for name, part in parts.items()})
