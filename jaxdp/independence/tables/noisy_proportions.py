"""NoisyProportions: difference of two noisy proportions. Baseline for case/control tables that also gives an effect.

Theory: docs/theory/table_tests.md#noisy-proportions.
"""

import dataclasses
from typing import ClassVar

import jax.numpy as jnp

from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Relation, Sensitivity
from jaxdp.independence import noise_law
from jaxdp.independence.tables.case_control import CaseControlTest, of_groups
from jaxdp.mechanisms import Laplace
from jaxdp.spec import Planning, TestSpec
from jaxdp.statistics.tables import binomial


@frozen_pytree
class NoisyProportions(CaseControlTest):
    """Private test of a 2x2 case/control table with public groups: |p1~ - p0~| of two noisy proportions.

    Statistic: the counts (c11, c10); released with Laplace noise of scale 1/epsilon each.
    Sensitivity: 1 in L1 (one person's x changes one count). Relation REPLACE_ATTRIBUTE.
    Privacy: epsilon-DP for both counts together.
    P-value: exact for counts and noise at the pooled noisy rate (the limit of the parametric bootstrap); the
    rate is estimated, so the level is approximate (measured size 0.045 to 0.059). `Result.statistic` is the
    noisy difference of proportions, an effect size.
    """

    spec: ClassVar[TestSpec] = of_groups(
        name="noisy-proportions",
        summary="difference of noisy proportions, y a public group label",
        planning=Planning("tables:noisy_proportions_power", table=True, reference="tables:chi_squared_power"),
        theory="docs/theory/table_tests.md",
    )

    def __post_init__(self):
        super().__post_init__()
        if self.mechanism is not None and not isinstance(self.mechanism, Laplace):
            raise TypeError(f"mechanism of NoisyProportions must be Laplace, got {type(self.mechanism).__name__}.")

    def of_counts(self, exposed_cases, exposed_controls):
        """The two counts, (2,)."""
        return jnp.stack([exposed_cases, exposed_controls])

    def sensitivity(self, num_records):
        if num_records != self.groups.total:
            raise ValueError(f"num_cases + num_controls must be the {num_records} rows, got {tuple(self.groups)}.")
        bare = Sensitivity(1.0, self.mechanism_in_force().norm, Relation.REPLACE_ATTRIBUTE)
        room = noise_law.margin(self.mechanism_in_force(), bare)
        return dataclasses.replace(bare, lower=-room, upper=max(self.groups) + room)

    def p_value(self, key, release):
        scale = self.mechanism_in_force().scale(release.sensitivity)
        rate = jnp.clip(
            jnp.sum(release.value) / self.groups.total, 0.5 / self.groups.total, 1 - 0.5 / self.groups.total
        )

        def survival(x):
            return two_laplace_tail(x, scale / self.groups.cases, scale / self.groups.controls)

        value = jnp.abs(self.estimate(release))
        sides = [
            binomial.tail(lambda a, b, s=sign: s * self._difference(a, b), survival, value, self.groups, rate[None])[0]
            for sign in (1.0, -1.0)
        ]
        return jnp.clip(sides[0] + sides[1], 0.0, 1.0)

    def _difference(self, cases, controls):
        return cases / self.groups.cases - controls / self.groups.controls

    def estimate(self, release):
        """Noisy difference of the proportions of exposed cases and controls."""
        return self._difference(release.value[0], release.value[1])


def two_laplace_tail(x, first, second):
    """P(Laplace(first) + Laplace(second) >= x), scales as numbers or scalars."""
    near = jnp.abs(first - second) < 1e-3 * (first + second)
    mean = 0.5 * (first + second)
    size = jnp.abs(x)
    equal = 0.25 * (2.0 + size / mean) * jnp.exp(-size / mean)
    apart = jnp.where(near, 1.0, first**2 - second**2)
    unequal = 0.5 * (first**2 * jnp.exp(-size / first) - second**2 * jnp.exp(-size / second)) / apart
    beyond = jnp.where(near, equal, unequal)
    return jnp.where(x >= 0, beyond, 1.0 - beyond)
