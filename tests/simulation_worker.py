"""A simulation that starts fast, for tests that kill it: python simulation_worker.py FOLDER REPLICATES CHUNK."""

import functools
import sys

import jax
import jax.numpy as jnp

from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Norm, PrivateTest, Relation, Sensitivity
from jaxdp.data.dataset import Data
from jaxdp.mechanisms import Laplace
from jaxdp.simulate.engine import grid
from jaxdp.simulate.engine.settings import Setting


@frozen_pytree
class NoisyMean(PrivateTest):
    """P-value of a noisy mean of x; small and quick to compile. NaN in x makes it NaN."""

    reads_missing = True

    def mechanism_in_force(self):
        return Laplace(self.epsilon)

    def statistic(self, key, data):
        return jnp.sum(data.x)

    def sensitivity(self, num_records):
        return Sensitivity(1.0, Norm.L1, Relation.REPLACE_ONE)

    def p_value(self, key, release):
        return jnp.exp(-jnp.abs(release.value) / 3.0)


def uniforms(key, n, effect=0.0):
    x = jax.random.uniform(key, (n,)) - 0.5 + effect
    return Data(x, x)


def settings(effects=(0.0, 0.5), n=12):
    return [
        Setting(
            {"method": "noisy-mean", "design": "uniforms", "n": n, "epsilon": 1.0, "effect": effect},
            NoisyMean(epsilon=1.0),
            functools.partial(uniforms, n=n, effect=effect),
        )
        for effect in effects
    ]


def main(folder, replicates, chunk):
    grid.SECONDS_BETWEEN_WRITES = 0.0
    plan = grid.Plan(int(replicates), chunk=int(chunk), keep_p_values=True)
    said = []

    def advance(setting, count):
        if not said:
            said.append(setting)
            print("begun", flush=True)

    grid.run(settings(), folder, plan, resume=True, advance=advance)


if __name__ == "__main__":
    main(*sys.argv[1:])
