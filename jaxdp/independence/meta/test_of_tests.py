"""Test of tests: a private vote over public blocks turns any test into a private one.

Source: Kazan, Shi, Groce and Bray 2023 (PrivToT of the GCM paper's comparison);
docs/theory/votes.md. Symbols: k = `num_blocks`,
a0 = `block_level`, C = the number of blocks that reject.
"""

import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from jaxdp import core
from jaxdp._base import check
from jaxdp._base.printed import printed
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Norm, PrivateTest, Relation, Sensitivity
from jaxdp.independence import builders, noise_law
from jaxdp.independence.continuous.gcm import GCM
from jaxdp.independence.continuous.validity import FIT_FLAGS, Validity, fit_rule
from jaxdp.independence.meta.blocks import as_node, deal, of_blocks, ordinary_key, require_rows, uses_z
from jaxdp.mechanisms import Gaussian, Geometric, Laplace
from jaxdp.noise.source import FloatNoise
from jaxdp.spec import Planning, TestSpec, on_a_line

VOTE_SENSITIVITY = 1.0  # a replaced record lies in one block, whose vote is 0 or 1


DEFAULT_BLOCKS = 15
MIN_BLOCK = 30  # minimum records of a block for its asymptotic approximation
SMALL_BLOCK = 20


def _from_domain(cls, epsilon, domain, options):
    """A vote of GCM; fewer blocks where the default ones would hold less than 20 records."""
    few = (options.num_records or 10**9) // SMALL_BLOCK
    blocks = {"num_blocks": max(2, few)} if few < DEFAULT_BLOCKS else {}
    return cls(epsilon=epsilon, test=GCM(**builders.kernel_fields(options)), **blocks)


@frozen_pytree
class TestOfTests(PrivateTest):
    """Private version of any test: the noisy number of public blocks in which it rejects.

    Statistic: records are dealt at random into k equal blocks (at most k - 1 records are left out);
    C = number of blocks whose p-value is at most a0, an integer in 0, ..., k.
    Sensitivity: 1 for replace-one neighbours, whatever the test is (a record lies in one block).
    Privacy: epsilon-DP by two-sided geometric noise, or what mechanism=Laplace(...)/Gaussian(...) gives.
    P-value: exact for C ~ Binomial(k, a0) plus the noise. With `randomized` (geometric noise only) it is
    the p-value of the Tulap mechanism, which adds a public uniform variable to the noisy count: exactly
    uniform under the null and uniformly most powerful for the count (Awan and Slavkovic 2018, Thm 5.2);
    without it, never smaller than the deterministic one and conservative by the atoms of the count.
    The level is the block test's: blocks that reject more often than a0 under the null void it.

    test: `GCM()` and the like (anything `jaxdp.run` takes, used without noise inside), or a function from
        the data of one block to a p-value. No default: the block test decides what is tested.
    num_blocks, block_level: k and a0. The defaults are near the best over normal-theory tests at epsilon
        1; smaller epsilon needs more blocks (about 40 at 0.3), larger fewer.
    batch_size: blocks computed together.
    """

    __test__: ClassVar[bool] = False  # the class is no pytest collection

    test: Any = None
    num_blocks: int = jax.tree.static(default=DEFAULT_BLOCKS)
    block_level: float = jax.tree.static(default=0.15)
    randomized: bool = jax.tree.static(default=True)
    shuffle: bool = jax.tree.static(default=True)
    batch_size: int = jax.tree.static(default=8)

    flags: ClassVar[tuple[str, ...]] = FIT_FLAGS
    spec: ClassVar[TestSpec] = TestSpec(
        name="test-of-tests",
        summary="private vote of GCM over blocks",
        from_domain=_from_domain,
        options=builders.KERNEL_OPTIONS,
        assumption=builders.ACCURATE_FIT,
        alternatives="what the block test sees: covariance given Z",
        accepts=on_a_line,
        planning=Planning("continuous:test_of_tests_power", min_records=DEFAULT_BLOCKS * MIN_BLOCK),
        needs_all="it deals records into blocks at random and runs a test on each",
        theory="docs/theory/votes.md",
    )
    default_mechanism = Geometric

    def __post_init__(self):
        super().__post_init__()
        check.at_least(2, num_blocks=self.num_blocks)
        check.at_least(1, batch_size=self.batch_size)
        check.in_range(0.0, 1.0, block_level=self.block_level)
        if self.test is None:
            raise ValueError("test must say what runs in each block: test=jaxdp.GCM(...) or a function to a p-value.")
        if isinstance(self.test, str | int | float):
            raise TypeError(f"test must be a test or a function of one block's data, got {printed(self.test)}.")
        if isinstance(self.mechanism, Laplace | Gaussian) and self.randomized:
            # Continuous noise has no atoms to break.
            object.__setattr__(self, "randomized", False)
        object.__setattr__(self, "test", as_node(self.test))

    @property
    def uses_z(self) -> bool:  # type: ignore[override]
        """Whether the block test conditions on z."""
        return uses_z(self.test)

    def validity(self, data) -> Validity:
        """What the level of the vote rests on, for data (or shapes) of this size; public."""
        block = data.x.shape[0] // self.num_blocks
        return fit_rule(block, MIN_BLOCK, given=data.z is not None)

    def statistic(self, key, data):
        """The number of blocks that reject, a float scalar holding an integer."""
        key_deal, key_blocks = jax.random.split(ordinary_key(key))
        blocks = deal(key_deal, data, self.num_blocks, self.shuffle)
        wanted = "test must give one p-value"
        p_values = of_blocks(self._block_p_value, key_blocks, blocks, self.num_blocks, self.batch_size, wanted)
        return jnp.sum(p_values <= self.block_level, dtype=int)

    def _block_p_value(self, key, block):
        is_test = isinstance(self.test, PrivateTest)
        return core.run_opened(self.test, FloatNoise(key), block).p_value if is_test else self.test(block)

    def sensitivity(self, num_records):
        require_rows(num_records, self.num_blocks)
        mechanism = self.mechanism_in_force()
        one = Sensitivity(VOTE_SENSITIVITY, getattr(mechanism, "norm", Norm.L1), Relation.REPLACE_ONE)
        margin = noise_law.margin(mechanism, one)
        return Sensitivity(one.bound, one.norm, one.relation, 0.0, -margin, self.num_blocks + margin)

    def p_value(self, key, release):
        value, sensitivity, mechanism = release.value, release.sensitivity, self.mechanism_in_force()
        at_least = self._tail(mechanism, value, sensitivity)
        if self.randomized:
            more = self._tail(mechanism, value + 1.0, sensitivity)
            at_least = more + (at_least - more) * jax.random.uniform(key, jnp.shape(value))
        # Release noise saturates at the window's edges: the lower edge holds everything below it.
        at_least = jnp.where(value <= sensitivity.lower, 1.0, at_least)
        return jnp.clip(at_least, 0.0, 1.0)

    def _tail(self, mechanism, value, sensitivity):
        """P(Binomial(k, a0) + noise >= value)."""
        count = jnp.arange(self.num_blocks + 1.0)
        beyond = noise_law.survival(mechanism, sensitivity, self.method)(jnp.expand_dims(value, -1) - count)
        return jnp.sum(jnp.asarray(_binomial(self.num_blocks, self.block_level)) * beyond, axis=-1)


def _binomial(trials: int, rate: float) -> list[float]:
    """Binomial probabilities in double precision, on the host."""

    def log_pmf(j):
        return (
            math.lgamma(trials + 1)
            - math.lgamma(j + 1)
            - math.lgamma(trials - j + 1)
            + j * math.log(rate)
            + (trials - j) * math.log1p(-rate)
        )

    return [math.exp(log_pmf(j)) for j in range(trials + 1)]
