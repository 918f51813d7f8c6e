"""Smooth power of a test: replicates with fixed random numbers, a soft decision, and a price on false alarms.

Theory: docs/theory/partition_gcm.md#tuning. Noise is scale times a fixed standard draw, so a p-value is a smooth
function of the leaves; 1{p <= level} becomes sigmoid((level - p)/softness). Without the price on false alarms the
objective is maximised by a test that stops conditioning on Z: L-BFGS then runs the bandwidth of a kernel to infinity.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from jaxdp import core
from jaxdp._base.pytree import frozen_pytree
from jaxdp.simulate.engine.replicates import Design


@frozen_pytree
class Sample:
    """Simulated data sets and the keys their tests run with: leading axes (designs, replicates), the alternative first.

    Replicate r of every design shares its keys (a paired null). The data do not depend on what is tuned, so they are
    drawn once.
    """

    data: Any
    keys: Any

    @classmethod
    def draw(cls, designs, key, replicates: int) -> "Sample":
        """From designs key -> Data of equal shapes."""
        pairs = jax.vmap(jax.random.split)(jax.random.split(key, replicates))
        keys_data, keys_test = pairs[:, 0], pairs[:, 1]
        sets = [_bare(jax.vmap(design)(jax.random.clone(keys_data))) for design in designs]
        bits = jnp.stack([jax.random.key_data(keys_test)] * len(sets))
        return cls(data=jax.tree.map(lambda *leaves: jnp.stack(leaves), *sets), keys=bits)


def _bare(data):
    """A domain is static and must not differ between stacked data sets."""
    return dataclasses.replace(data, x=jnp.asarray(data.x), y=jnp.asarray(data.y))


@frozen_pytree
class SoftPower:
    """What is maximised: soft power at a design minus `price` times the soft false alarms above a baseline.

    level, softness: of the soft decision; softness is in units of a p-value. price 0 gives the unconstrained soft
    power. baseline: false alarms of the default test on the sample's nulls (designs - 1,); where it is lower, or not
    given, those of a valid test.
    """

    level: Any = 0.05
    softness: Any = 0.05
    price: Any = 20.0
    baseline: Any = 0.0
    batch_size: int = jax.tree.static(default=32)

    def __call__(self, test, sample: Sample):
        """The objective on a sample whose first design is the alternative."""
        rates = self.rates(test, sample)
        return rates[0] - self.price * jnp.sum(jax.nn.relu(rates[1:] - jnp.maximum(self.baseline, self.allowed())))

    def rates(self, test, sample: Sample):
        """Mean soft decision for each design, (designs,)."""

        @jax.checkpoint
        def one(case):
            data, bits = case
            return self.decision(core.run(test, jax.random.wrap_key_data(bits), data).p_value)

        shape = sample.keys.shape[:2]
        flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), (sample.data, sample.keys))
        each = jax.lax.map(one, flat, batch_size=min(self.batch_size, shape[0] * shape[1]))
        return jnp.mean(each.reshape(shape), axis=1)

    def decision(self, p_value):
        """sigmoid((level - p)/softness)."""
        return jax.nn.sigmoid((self.level - p_value) / self.softness)

    def allowed(self):
        """Mean soft decision of a test whose p-value is uniform: softness times the integral of the sigmoid."""
        top, bottom = self.level / self.softness, (self.level - 1.0) / self.softness
        return self.softness * (jax.nn.softplus(top) - jax.nn.softplus(bottom))


def without_effect(design: Design) -> Design:
    """The paired null of a design that has an effect. Errors: ValueError if it has none."""
    if "effect" not in design.numbers:
        raise ValueError("design must have a number called effect: functools.partial(design, n=..., effect=0.3).")
    return dataclasses.replace(design, numbers={**design.numbers, "effect": 0.0 * design.numbers["effect"]})
