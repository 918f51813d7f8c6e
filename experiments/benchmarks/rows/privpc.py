"""Priv-PC end to end on the Asia network, epsilon = 1 per round, five seeds, against the published code style.

`published` runs the same algorithm as the peer: Definition 6, the printed noise, the printed subset. `corrected` is the
private one with the same budget, on all rows. Agreement: with noise made negligible, ours on Definition 6 and the
peer remove the same edges (p-value 0.01 one-sided, |tau| at most 2.326).
"""

import jax
import numpy as np
from scipy.stats import norm

from experiments.benchmarks import priv_pc_style
from experiments.benchmarks.harness import Case, Peer
from jaxdp.data import networks
from jaxdp.data.records import Records
from jaxdp.discovery.spec import searches
from jaxdp.simulate.designs.networks import sample_network

CASES = {
    "published_1e5": {"n": 10**5, "search": "priv_pc_paper", "goal": 80},
    "corrected_1e5": {"n": 10**5, "search": "priv_pc", "goal": 80},
}
QUICK: tuple[str, ...] = ()
SEEDS, LEVEL, EPSILON, ROUNDS, NO_NOISE = 5, 0.01, 1.0, 28, 1e4


def build(n: int, search: str, goal: float | None) -> Case:
    """n records, five searches."""
    drawn = sample_network(jax.random.key(0), networks.load("asia"), n)
    records = Records(np.asarray(drawn.values), drawn.columns)
    matrix = np.asarray(drawn.values).astype(np.int64)
    z = float(norm.isf(LEVEL))

    def searched(name: str, seed: int, epsilon: float):
        key = jax.random.key(seed)
        return searches()[name](key, records, epsilon=ROUNDS * epsilon, z=z, max_order=6)

    def agree() -> dict[str, float]:
        exact = searched("priv_pc_paper", 0, NO_NOISE)
        return {"error": float(np.sum(exact.skeleton != theirs(matrix, 1, NO_NOISE))), "tolerance": 0.0}

    return Case(
        ours=lambda: [searched(search, seed, EPSILON).num_tests for seed in range(SEEDS)],
        units=SEEDS,
        unit="search",
        agree=agree,
        peers={"same_style": Peer(theirs, (matrix, 1, EPSILON), 1, goal=goal, both_cores=False, threads=1)},
        extra=lambda: {"tests": float(np.mean([searched(search, seed, EPSILON).num_tests for seed in range(SEEDS)]))},
        compiled=False,
    )


def theirs(matrix, seeds: int, epsilon: float):
    """The peer's last skeleton."""
    for seed in range(seeds):
        adjacency, _ = priv_pc_style.sieve_and_examine(
            matrix, np.random.default_rng(seed), epsilon=epsilon, level=LEVEL, max_order=6
        )
    return adjacency
