"""Worst neighbours of sums of contrasts (docs/theory/pair_contrasts.md): one record changes its classes."""

import jax.numpy as jnp
import numpy as np

from jaxdp.data.dataset import BINARY, CATEGORICAL, ORDINAL, Column, Data, Domain

RECORDS = 12
HALF = 200  # records in each of two corners


def opposite_records():
    """Pairs of data sets of the columns of `four_columns` in which one record changes half of all contrasts."""
    columns = (Column(), Column(BINARY, 2), Column(ORDINAL, 3), Column(CATEGORICAL, 5))
    records = np.array([[-0.9, 0, 0, 0], [-0.2, 1, 1, 1], [0.2, 0, 2, 2], [0.9, 1, 0, 3]] * (RECORDS // 4), float)
    found = []
    for row in ([0.2, 0, 0, 0], [-0.9, 1, 2, 4], [-0.9, 0, 2, 1], [0.9, 0, 2, 0], [0.2, 1, 0, 0], [-0.2, 0, 2, 1]):
        other = records.copy()
        other[0] = row
        found.append(tuple(Data(v, v, None, Domain(columns, columns)) for v in map(jnp.asarray, (records, other))))
    return found


def one_of_two_corners():
    """Half of the records low in both columns, half high in both; one record of the low goes over in one column."""
    low = np.arange(2 * HALF) < HALF
    first = np.where(low[:, None], -0.9, 0.9) * np.ones((1, 2))
    second = first.copy()
    second[0, 1] = 0.9
    columns = (Column(), Column())
    return tuple(Data(v, v, None, Domain(columns, columns)) for v in map(jnp.asarray, (first, second)))


def loss(result):
    """The privacy loss of the max-norm noise of the three sums, in units of the move of one."""
    noisy = result.release.value
    first, second = (jnp.array([0.0, move, 2.0 * HALF - move]) for move in (0.0, 2.0))
    return 0.5 * (jnp.max(jnp.abs(noisy - first)) - jnp.max(jnp.abs(noisy - second)))
