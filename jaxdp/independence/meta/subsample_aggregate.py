"""Subsample and aggregate: the noisy median of any statistic over public blocks.

Source: appendix F of the Priv-PC paper (Algorithm 6); docs/theory/medians.md. Symbols: m = `num_blocks`, S_beta =
smooth sensitivity of the median. `TestOfTests` (a vote) is usually better: docs/theory/votes.md#against-the-median.
"""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdp import core, null_laws
from jaxdp._base import check
from jaxdp._base.printed import printed
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Norm, PrivateTest, Relation, Sensitivity
from jaxdp.independence.continuous.validity import FIT_FLAGS, Validity, fit_rule
from jaxdp.independence.meta.blocks import as_node, deal, of_blocks, ordinary_key, require_rows, uses_z
from jaxdp.mechanisms import smooth_sensitivity
from jaxdp.mechanisms.smooth_sensitivity import SmoothCauchy
from jaxdp.noise.source import FloatNoise
from jaxdp.spec import Planning, TestSpec, on_a_line_without_z
from jaxdp.statistics.tables.association import squared_correlation

CHI_SQUARED_ONE, HALF_NORMAL = "chi-squared-1", "half-normal"
_NULLS = {
    CHI_SQUARED_ONE: lambda key, shape: jax.random.normal(key, shape) ** 2,
    HALF_NORMAL: lambda key, shape: jnp.abs(jax.random.normal(key, shape)),
}


DEFAULT_BLOCKS = 101
MIN_BLOCK, MIN_BLOCKS = 30, 3  # minimum records of a block for its asymptotic approximation


def blocks_for(num_records: int) -> int:
    """101 blocks, or as many as have 30 records each."""
    return min(DEFAULT_BLOCKS, max(MIN_BLOCKS, num_records // MIN_BLOCK))


@frozen_pytree
class SubsampleAggregate(PrivateTest):
    """Private version of a statistic without bounded sensitivity: noisy median over public blocks.

    Statistic: records are dealt at random into m equal blocks, the statistic of each block is clipped to
    [lower, upper], and the (lower) median meets noise scaled to its smooth sensitivity.
    Sensitivity: the median moves by at most the smooth sensitivity S_beta, one record lies in one block.
    Privacy: epsilon-DP by exactly calibrated Cauchy noise; mechanism=SmoothStudent(...) is pure too,
    SmoothLaplace(...), SmoothGaussian(...) are (epsilon, delta)-DP. Relation REPLACE_ONE. Releases draw all four from
    exact tables (docs/theory/smooth_sensitivity.md).
    P-value: Monte Carlo over blocks drawn from `null`, each with its own smooth sensitivity and noise; large
    values are evidence. Its level is that of the limit law within blocks.

    num_blocks: m; default 101, or as many as have 30 records each. Smaller blocks are flagged (`validity`): with ten
        records in each, 0.10 to 0.16 of the nulls were rejected.
    statistic_of: function from a block's data to a number, or any test that `jaxdp.run` takes (its
        |statistic| is used), e.g. `GCM()`, `ContingencyTest(...).value`.
    null: law of a block's statistic if x and y are independent: "chi-squared-1", "half-normal" (an absolute
        z-score), or a function (key, shape) -> draws.
    """

    statistic_of: Any = None
    num_blocks: int | None = jax.tree.static(default=None)
    lower: ArrayLike = 0.0
    upper: ArrayLike = 10.0
    null: Any = jax.tree.static(default=CHI_SQUARED_ONE)
    num_null: int = jax.tree.static(default=999)
    shuffle: bool = jax.tree.static(default=True)
    batch_size: int = jax.tree.static(default=8)

    flags: ClassVar[tuple[str, ...]] = FIT_FLAGS
    spec: ClassVar[TestSpec] = TestSpec(
        name="subsample-aggregate",
        summary="noisy median of a statistic over blocks; weak",
        from_domain=lambda cls, epsilon, domain, options: cls(epsilon=epsilon, statistic_of=squared_correlation),
        alternatives="what the block statistic sees: correlation",
        accepts=on_a_line_without_z,
        planning=Planning(
            "continuous:subsample_power", min_records=MIN_BLOCKS * MIN_BLOCK, gaussian=False, without_z=True
        ),
        needs_all="it deals records into blocks at random and computes a statistic on each",
        theory="docs/theory/medians.md",
    )
    default_mechanism = SmoothCauchy
    gradient_free = null_laws.RANK

    def __post_init__(self):
        super().__post_init__()
        if self.num_blocks is not None:
            check.at_least(MIN_BLOCKS, num_blocks=self.num_blocks)
        check.at_least(1, num_null=self.num_null)
        check.at_least(1, batch_size=self.batch_size)
        if self.statistic_of is None or isinstance(self.statistic_of, str | int | float):
            raise ValueError(
                f"statistic_of must be a function of one block's data or a test, got {printed(self.statistic_of)}."
            )
        if not callable(self.null):
            check.one_of(tuple(_NULLS), null=self.null)
        ends = (self.lower, self.upper)
        if all(map(check.is_concrete, ends)) and not float(np.max(self.lower)) < float(np.min(self.upper)):
            raise ValueError(f"lower must be < upper, got {self.lower} and {self.upper}.")
        object.__setattr__(self, "statistic_of", as_node(self.statistic_of))

    @property
    def uses_z(self) -> bool:  # type: ignore[override]
        """Whether the block statistic conditions on z."""
        return uses_z(self.statistic_of)

    def blocks(self, num_records: int) -> int:
        """m for this public number of records."""
        return blocks_for(num_records) if self.num_blocks is None else self.num_blocks

    def validity(self, data) -> Validity:
        """What the level rests on, for data (or shapes) of this size; public."""
        count = data.x.shape[0]
        return fit_rule(count // self.blocks(count), MIN_BLOCK, given=data.z is not None)

    def statistic(self, key, data):
        """Pair (median over blocks, its smooth sensitivity); both private."""
        key_deal, key_blocks = jax.random.split(ordinary_key(key))
        count = self.blocks(core.num_records(data))
        blocks = deal(key_deal, data, count, self.shuffle)
        wanted = "statistic_of must give one real number"
        values = of_blocks(self._block_value, key_blocks, blocks, count, self.batch_size, wanted)
        return self._summary(values)

    def _summary(self, values):
        # A block without a value counts as the lower end, before anything is aggregated.
        values = jnp.clip(jnp.nan_to_num(values, nan=self.lower, posinf=self.upper), self.lower, self.upper)
        decay = self.mechanism_in_force().decay()
        return smooth_sensitivity.median(values), smooth_sensitivity.smooth_sensitivity(
            values, decay, self.lower, self.upper
        )

    def _block_value(self, key, block):
        if isinstance(self.statistic_of, core.PrivateTest):
            return jnp.abs(core.run_opened(self.statistic_of, FloatNoise(key), block).statistic)
        return self.statistic_of(block)

    def sensitivity(self, num_records):
        require_rows(num_records, self.blocks(num_records))
        width = jnp.asarray(self.upper) - jnp.asarray(self.lower)
        return Sensitivity(width, Norm.L1, Relation.REPLACE_ONE, 0.0, self.lower, self.upper)

    def p_value(self, key, release):
        draw = self.null if callable(self.null) else _NULLS[self.null]
        count = self.blocks(release.num_records)

        def one(key):
            key_values, key_noise = jax.random.split(key)
            summary = self._summary(draw(key_values, (count,)))
            return self.mechanism_in_force().null(key_noise, summary, self.lower, self.upper)

        null = jax.vmap(one)(jax.random.split(key, self.num_null))
        return null_laws.monte_carlo(release.value, null)
