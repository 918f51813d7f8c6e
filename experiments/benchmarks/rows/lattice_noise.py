"""Release noise: exact two-sided geometric draws on the lattice with ChaCha20 bits, against floats of jax.random."""

import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats

from experiments.benchmarks.harness import Case, Peer
from jaxdp.core import Norm, Relation, Sensitivity
from jaxdp.noise import lattice
from jaxdp.randomness import chacha, keys

CASES = {
    "scalars": {"size": 1_000_000, "together": False},
    "one_vector": {"size": 1_000_000, "together": True},
    "scalars_small": {"size": 100_000, "together": False},
}
QUICK = ("scalars_small",)
GOAL_PER_SECOND = 2e6
KEY = chacha.wrap(bytes(range(32)))


def build(size: int, together: bool) -> Case:
    """`size` draws of scale 2: as many independent scalar releases, or one release of a vector with one L1 bound."""
    count, bound = (size, 2.0 * size) if together else (1, 2.0)
    public = Sensitivity(bound, Norm.L1, Relation.REPLACE_ONE, lower=-100.0, upper=100.0)
    plan = lattice.plan_laplace(count, public, float(size) if together else 1.0)

    def draws(key):
        with keys.precision(keys.RELEASE):
            return lattice.add(key, jnp.zeros(size, np.float64), plan)

    def agree() -> dict[str, float]:
        scale = float(plan.facts.step / plan.facts.rate)
        gap = scipy.stats.kstest(np.asarray(draws(KEY)) / scale, "laplace").statistic
        return {"error": float(gap), "tolerance": 2.7 / size**0.5 + float(plan.facts.rate)}

    def extra() -> dict[str, float]:
        return {"digits": len(plan.table.digits), "epsilon": float(plan.facts.epsilon)}

    return Case(
        ours=draws,
        arguments=(KEY,),
        units=size,
        unit="draw",
        agree=agree,
        extra=extra,
        compiled=False,
        goal_per_second=GOAL_PER_SECOND,
        peers={"jax_random_float": Peer(_floats, (jax.random.key(0), size), size)},
    )


def _floats(key, size: int):
    return jax.block_until_ready(jax.random.laplace(key, (size,)))
