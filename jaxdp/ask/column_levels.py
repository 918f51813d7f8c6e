"""ColumnLevels: which levels of columns many records hold, by noisy counts of the levels that occur."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Norm, PrivateQuery, Relation, Sensitivity
from jaxdp.mechanisms import divide
from jaxdp.mechanisms.stability import StabilityThreshold


@frozen_pytree
class ColumnLevels(PrivateQuery):
    """The noisy counts of the levels that occur in each of d columns, where they reach a threshold; else 0.

    Statistic: of each column the number of records with each code 0, ..., n - 1. data: (n, skipped + d), of which the
    first `skipped` columns are not looked at; codes are those of a numbering of the texts that occur, -1 counts not.
    Sensitivity: a replaced record leaves a level of each column and enters another: 2 in L1 for each column.
    Privacy: (epsilon, delta)-DP, the sum over the columns, which have equal shares (`StabilityThreshold`).
    Relation REPLACE_ONE. Source: docs/theory/private_levels.md.
    """

    delta: float = jax.tree.static(default=0.0)
    num_columns: int = jax.tree.static(default=1)
    skipped: int = jax.tree.static(default=0)

    method: ClassVar[str] = "private-levels"
    reads_missing: ClassVar[bool] = True

    def __post_init__(self):
        super().__post_init__()
        check.at_least(1, num_columns=self.num_columns)

    @property
    def parts(self) -> list[str]:
        """Names of the columns."""
        return [f"{column:05d}" for column in range(self.num_columns)]

    def mechanism_in_force(self):
        whole = self.mechanism
        if whole is None:
            whole = StabilityThreshold(epsilon=check.budget(self.epsilon), delta=self.delta)
        return divide(whole, dict.fromkeys(self.parts, Fraction(1, self.num_columns)))

    def statistic(self, key, data):
        """Counts (n,) for each column: as many places as there are records, however many levels occur."""
        codes = jnp.asarray(data)[:, self.skipped :]
        count = codes.shape[0]
        places = jnp.where(codes < 0.0, count, codes).astype(int)
        return {
            name: jnp.zeros(count + 1, int).at[places[:, column]].add(1)[:count]
            for column, name in enumerate(self.parts)
        }

    def sensitivity(self, num_records):
        two = Sensitivity(2.0, Norm.L1, Relation.REPLACE_ONE, lower=0.0, upper=1.0 * num_records)
        return dict.fromkeys(self.parts, two)

    def threshold(self) -> int:
        """The least noisy count that is released; public."""
        return self.mechanism_in_force()[self.parts[0]].threshold()

    def found(self, release) -> list[np.ndarray]:
        """The released counts of each column, (n,): 0 where a level is not named."""
        return [np.asarray(release.value[name]) for name in self.parts]
