"""The share of replicates of the real test that find an effect, beside which a formula is held."""

import jax

from jaxdp.plan.solve import PlannedTest

REPLICATES = 1000


def simulated(method, n, epsilon, effect, setting=None, replicates=REPLICATES):
    return PlannedTest.of(method, setting, engine="simulation", replicates=replicates, key=jax.random.key(3)).simulated(
        n, epsilon, effect
    )
