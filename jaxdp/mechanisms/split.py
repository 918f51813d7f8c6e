"""Several released values, each with a mechanism of its own."""

import functools
import operator
from fractions import Fraction
from typing import Any

import jax

from jaxdp._exact import as_fraction
from jaxdp._pytree import frozen_pytree
from jaxdp.core import Cost, Relation


@frozen_pytree
class Split:
    """Perturbs each named part of a statistic with its own mechanism and an independent key.

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

    def perturb(self, key, value, sensitivity):
        """Dict of noisy values."""
        keys = jax.random.split(key, len(self.parts))
        return {
            name: part.perturb(part_key, value[name], sensitivity[name])
            for part_key, (name, part) in zip(keys, sorted(self.parts.items()), strict=True)
        }

    def cost(self, relation: Relation) -> Cost:
        """The sum of the parts' costs."""
        return functools.reduce(operator.add, (part.cost(relation) for part in self.parts.values()))


def divide(mechanism, shares: dict[str, float]):
    """One budget divided over named parts; a `Split` with these names passes through."""
    if isinstance(mechanism, Split):
        if set(mechanism.parts) != set(shares):
            raise ValueError(f"mechanism must have parts {sorted(shares)}, got {sorted(mechanism.parts)}.")
        return mechanism
    # 0.85 and 1 - 0.85 add up to a little more than one
    total = max(sum(map(as_fraction, shares.values())), Fraction(1))
    return Split(parts={name: mechanism.share(as_fraction(part) / total) for name, part in shares.items()})
