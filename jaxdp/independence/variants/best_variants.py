"""The few variants that go with a phenotype most, chosen in private, each with its score test.

Theory: docs/theory/score_test.md#family.
"""

from __future__ import annotations

from typing import ClassVar

import jax
import jax.numpy as jnp

from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.independence.variants.score_order import CHOICE, LINES, MEAN, MODEL
from jaxdp.independence.variants.score_test import ScoreTest
from jaxdp.mechanisms.selection import TopK
from jaxdp.spec import SELECTION, TestSpec
from jaxdp.statistics import partition


@frozen_pytree
class BestVariants(ScoreTest):
    """Selects the `count` variants most associated with y and runs `ScoreTest` on each, adjusted for covariates.

    As `ScoreTest`, with a stage before the lines: `count` selections (`TopK`) choose among
    the scores |sum x r| of all K variants, each of sensitivity 2 in Linf; the rest is about the chosen ones alone.
    Privacy: epsilon-DP; relation REPLACE_ONE.
    P-value: (count,), times K: family-wise error at most the level under any selection, because the scores' noise is
    independent of it and the bound is over all K (docs/theory/score_test.md#family). The indices are
    `BestVariants.chosen(result)`. Intervals hold for all K variants together.
    """

    count: int = jax.tree.static(default=10)

    spec: ClassVar[TestSpec] = TestSpec(
        name="best-variants",
        summary="the variants that go with a phenotype most, each with its score test adjusted for covariates",
        publishes=SELECTION,
        from_domain=ScoreTest.spec.from_domain,
        needs=("variants",),
        assumption=ScoreTest.spec.assumption,
        alternatives=ScoreTest.spec.alternatives,
        effect=ScoreTest.spec.effect,
        own_units=ScoreTest.spec.own_units,
        needs_all=ScoreTest.spec.needs_all,
        theory=ScoreTest.spec.theory,
    )

    def __post_init__(self):
        super().__post_init__()
        check.at_least(1, count=self.count)
        if self.epsilon is None and self.parts is None:
            raise ValueError("best-variants takes epsilon=: exponential mechanisms choose the variants.")

    @property
    def num_tested(self) -> int:
        return self.count

    def stages(self):
        before = () if self.null_model is not None else (MODEL, MEAN)
        return (*before, CHOICE, LINES)

    def mechanism_of(self, name, share):
        return TopK(epsilon=share.epsilon, count=self.count) if name == CHOICE else share

    def started(self, shapes):
        num = partition.num_columns(shapes.x)
        if num < self.count:
            raise ValueError(f"count must be at most the number of variants, got {self.count} of {num}.")
        return super().started(shapes)

    def tested(self, data):
        return jnp.take(self.variants(data), self.indices, axis=1)

    def _of_family(self, found):
        """Of each chosen variant, times K."""
        return (jnp.minimum(1.0, self.num_variants * found),) * 2

    @staticmethod
    def chosen(result):
        """Places of the chosen variants (count,), best first: the release before the lines."""
        return result.release.earlier[-2].value
