"""MICr of pairs without ties at n = 1000 and 4381, B = n**0.6, c = 15: half unrelated, half a noisy sine.

Peer: minepy's C library, as in the row `mic`.
"""

import functools
import os

import jax
import jax.numpy as jnp
import numpy as np

from experiments.benchmarks.harness import Case, Peer
from experiments.benchmarks.rows.mic import TOLERANCE, minepy_loop
from jaxdp.statistics.mic import coefficients, mic_bins, mic_grids, mic_pairs

MASTER_FACTOR, CHECKED_PAIRS = 15.0, 4
BOUNDS = (-0.0137, 1.0091)

CASES = {
    "n1000": {"records": 1000, "pairs": 256, "peer_pairs": 12, "goal": 25.0, "goal_both": 12.0},
    "n4381": {"records": 4381, "pairs": 128, "peer_pairs": 4, "goal": 40.0, "goal_both": 20.0},
    "n1000_few": {"records": 1000, "pairs": 32, "peer_pairs": 4, "goal": 25.0, "goal_both": 12.0},
}
QUICK = ("n1000_few",)


def build(records: int, pairs: int, peer_pairs: int, goal: float, goal_both: float) -> Case:
    """Coefficients in float32; the agreement check is float64 pair by pair."""
    table = draw(records, pairs)
    number = np.arange(pairs, dtype=np.int32)
    columns = np.stack([number, number + pairs], 1)
    sizes = mic_grids.grids(records**0.6, MASTER_FACTOR)
    groups = mic_grids.buckets(sizes, pairs)
    arguments = (jnp.asarray(table, jnp.float32),)

    def ours(table):
        return mic_pairs.halves(mic_bins.unit_position(table, *BOUNDS), groups, mic_bins.RANGE)

    def agree() -> dict[str, float]:
        found, single = np.asarray(ours(*arguments)), np.asarray(arguments[0])
        worst = 0.0
        with jax.enable_x64(True):
            exact = functools.partial(coefficients.mic_r, bounds=(BOUNDS, BOUNDS), budget=records**0.6, c=MASTER_FACTOR)
            for k in np.random.default_rng(1).integers(0, pairs, CHECKED_PAIRS):
                x, y = (single[:, column].astype(float) for column in columns[k])
                worst = max(worst, abs(float(found[k]) - float(exact(x, y))))
        return {"error": worst, "tolerance": TOLERANCE}

    peers = {}
    if os.environ.get("JAXDP_LIBMINE"):
        chosen = columns[:: pairs // peer_pairs]
        peers["minepy"] = Peer(
            minepy_loop, (table, chosen, MASTER_FACTOR), units=len(chosen), goal=goal, goal_both=goal_both, threads=1
        )
    return Case(
        ours=ours,
        arguments=arguments,
        units=pairs,
        unit="pair",
        agree=agree,
        peers=peers,
        extra=lambda: {"programs": len(groups)},
        compiled=False,
    )


def draw(records: int, pairs: int) -> np.ndarray:
    """Columns in [0, 1], (records, 2 pairs): pair i is columns i and pairs + i, every second one unrelated."""
    rng = np.random.default_rng(0)
    x, y = rng.uniform(size=(2, records, pairs))
    sine = 0.5 + 0.4 * np.sin(rng.uniform(4, 20, pairs) * x) + 0.03 * rng.normal(size=x.shape)
    y[:, ::2] = np.clip(sine[:, ::2], 0.0, 1.0)
    return np.concatenate([x, y], 1)
