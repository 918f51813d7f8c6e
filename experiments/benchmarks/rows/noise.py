"""Simulation noise: 2e7 Laplace and two-sided geometric draws, summed, against NumPy's Laplace generator."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats

from experiments.benchmarks.harness import Case, Peer
from jaxdp.noise import floats

CHUNK = 2**17
CASES = {
    "laplace": {"law": "laplace", "chunks": 152, "goal": 2},
    "geometric": {"law": "geometric", "chunks": 152, "goal": 1},
    "laplace_small": {"law": "laplace", "chunks": 4, "goal": None},
}
QUICK = ("laplace_small",)


def build(law: str, chunks: int, goal) -> Case:
    """One unit is a draw; chunks of 2^17 draws stay in the cache."""
    sample = floats.laplace if law == "laplace" else functools.partial(_geometric, scale=3.0)

    def total(key):
        def one(number):
            return jnp.sum(sample(jax.random.fold_in(key, number), shape=(CHUNK,)))

        return jnp.sum(jax.lax.map(one, jnp.arange(chunks)))

    def agree() -> dict[str, float]:
        values = np.asarray(sample(jax.random.key(5), shape=(1_000_000,)), float)
        if law == "laplace":
            gap = scipy.stats.kstest(values, "laplace").statistic
        else:
            support = np.arange(-40, 41)
            ratio = np.exp(-1.0 / 3.0)
            exact = np.cumsum((1.0 - ratio) / (1.0 + ratio) * ratio ** np.abs(support))
            gap = np.abs(np.searchsorted(np.sort(values), support, side="right") / len(values) - exact).max()
        return {"error": float(gap), "tolerance": 2.7e-3}  # Kolmogorov: sqrt(ln(2/1e-6)/(2e6))

    return Case(
        ours=jax.jit(total),
        arguments=(jax.random.key(0),),
        units=chunks * CHUNK,
        unit="draw",
        agree=agree,
        peers={"numpy_laplace": Peer(numpy_total, (chunks,), chunks * CHUNK, goal=goal)},
    )


def _geometric(key, scale, shape):
    return floats.two_sided_geometric(key, scale, shape)


def numpy_total(chunks):
    """Sum of as many Laplace draws."""
    rng = np.random.default_rng(0)
    return sum(rng.laplace(size=CHUNK).sum() for _ in range(chunks))
