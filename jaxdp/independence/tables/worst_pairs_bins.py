"""Worst neighbours of a noisy table on privately chosen bins (docs/theory/quantile_table.md): a change of corners."""

import jax.numpy as jnp

from jaxdp.data.dataset import Data

HALF = 200  # records at each of two values, so far apart that every cut falls between them


def opposite_corners():
    """Half of the records in one corner of a 2 x 2 table, half in the opposite one; one record goes over."""
    return tuple(Data(values, values) for values in (_two_values(HALF), _two_values(HALF - 1)))


def _two_values(low: int):
    return jnp.where(jnp.arange(2 * HALF) < low, -0.9, 0.9)


def loss(result):
    """The privacy loss of the Laplace noise of the two cells that move, in units of one cell's move."""
    table = result.release.value
    first, last = table[0, 0], table[1, 1]
    return jnp.abs(first - HALF + 1.0) - jnp.abs(first - HALF) + jnp.abs(last - HALF - 1.0) - jnp.abs(last - HALF)
