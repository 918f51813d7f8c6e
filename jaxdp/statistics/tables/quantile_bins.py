"""Bins of a continuous column whose cuts lie on a public grid, and how well each place of the grid is a quantile.

Places: values of the public reference law's distribution function, in [0, 1]; the grid has `GRID` steps. A cut is a
number of steps; a value lies above the cut k if its place is larger than k/GRID.
"""

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.statistics import partition

GRID = 1024


def steps(values, reference):
    """Number of grid steps up to each value, int32 (n,) in 0, ..., GRID: its place lies in (steps - 1, steps]/GRID.

    A missing value lies at the lower end.
    """
    place = jnp.clip(jnp.nan_to_num(partition.share_below(reference, values), nan=0.0), 0.0, 1.0)
    return jnp.ceil(place * GRID).astype(jnp.int32)


def quantile_scores(steps_of_values, parts: int):
    """Scores (parts - 1, GRID - 1) of the cuts 1, ..., GRID - 1 as the quantiles 1/parts, ..., (parts - 1)/parts.

    Minus the distance of the number of values at or below the cut from the wanted number, a whole number; replacing
    one value moves a score by at most 1.
    """
    at = jax.ops.segment_sum(jnp.ones_like(steps_of_values), steps_of_values, GRID + 1)
    return -jnp.abs(_too_many(jnp.cumsum(at), steps_of_values.shape[0], parts)).astype(float)


def scores_of_counts(at: np.ndarray, parts: int) -> np.ndarray:
    """`quantile_scores` of values of which `at` (GRID + 1,), int64, lie at each step: float64."""
    return -np.abs(_too_many(np.cumsum(at), int(at.sum()), parts)).astype(float)


def _too_many(up_to, count: int, parts: int):
    """How many more values than wanted lie at or below each cut."""
    wanted = np.array([round(j * count / parts) for j in range(1, parts)], np.int64).astype(up_to.dtype)
    return up_to[None, 1:GRID] - wanted[:, None]


def bins(steps_of_values, cuts):
    """Bin of each value, int32 (n,) in 0, ..., c: how many of the c cuts (in steps) it lies above."""
    return jnp.sum(steps_of_values[:, None] > cuts[None, :], axis=1, dtype=jnp.int32)
