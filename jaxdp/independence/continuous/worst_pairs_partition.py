"""Worst neighbours of partition tests, made by hand from the proofs (docs/theory/partition_gcm.md).

Pairs (data, neighbour) that differ in one record. FAR lies beyond every clipping limit; z at -FAR and FAR is the first
and the last cell, z at MIDDLE a cell between them.
"""

import jax.numpy as jnp
import numpy as np

from jaxdp.data.dataset import Data
from jaxdp.simulate.examples import FAR, two_data_sets

MIDDLE = 0.3


def cells(n=81, shape=None):
    """`PartitionGCM` and its stages (docs/theory/partition_gcm.md).

    S: a record that adds 4m/(m + 1) to its cell moves to a cell from which it takes as much.
    V: a cell loses a record at its centre (+2) and a cell of one gains the opposite (+4); of several regions: the
    record that makes one cell spread moves and does the same to another (4 + 4). Axis scores and cell scores: the one
    record that differs from its cell leaves it for an empty one.
    """
    m, far = (n - 1) // 2, FAR
    crowd = [(-far, -far, -far)] * m + [(-far, far, far)] * m
    covariance = two_data_sets([*crowd, (far, far, -far)], [*crowd, (far, -far, far)], shape)
    quiet = [(0.0, 0.0, MIDDLE)] * (n - 4)
    spread = [(far, far, -far), (-far, -far, -far)]
    lonely = (-far, -far, far)
    variance = two_data_sets(
        [*quiet, *spread, lonely, (0.0, 0.0, -far)], [*quiet, *spread, lonely, (far, far, far)], shape
    )
    quiet = [*quiet, (0.0, 0.0, MIDDLE)]
    regional = two_data_sets([*quiet, *spread, lonely], [*quiet, (far, far, far), spread[1], lonely], shape)
    alike = [(-far, -far, -far)] * (n - 1)
    odd = two_data_sets([*alike, (far, far, -far)], [*alike, (far, far, far)], shape)
    return [covariance, variance, regional, odd]


def several_columns(x, y, z):
    """x twice, y three times: every product moves alike."""
    return Data(np.stack([x] * 2, 1), np.stack([y] * 3, 1), z)


def five_axes(x, y, z):
    """z five times."""
    return Data(x, y, np.stack([z] * 5, 1))


def no_z(x, y, z):
    """Without z: one cell."""
    return Data(x, y)


def one_cell(n=81):
    """One cell: against records at (-1, -1), (1, 1) becomes (1, -1), which moves S by nearly 4."""
    alike = [(-FAR, -FAR, 0.0)] * (n - 1)
    return [two_data_sets([*alike, (FAR, FAR, 0.0)], [*alike, (FAR, -FAR, 0.0)], no_z)]


def three_columns(x, y, z):
    """x three times, y three times."""
    return Data(np.stack([x] * 3, 1), np.stack([y] * 3, 1), z)


def cells_with_columns():
    return cells(shape=several_columns)


def cells_with_axes():
    return cells(shape=five_axes)


def cells_of_features():
    """`cells` in three columns of x and of y; where y is x, two thirds of S are reached (signs of products)."""
    return cells(shape=three_columns)


def moved():
    """A record that adds to the covariance of its cell moves to a cell from which it takes as much."""
    half, far = 12, FAR
    z = jnp.concatenate([jnp.full(half, -far), jnp.full(half, far), jnp.array([-far])])
    x = jnp.full(2 * half + 1, -far).at[-1].set(far)
    y = jnp.where(z < 0, -far, far).at[-1].set(far)
    sides = (jnp.stack([x, y], axis=1), z), (jnp.stack([x, y.at[-1].set(-far)], axis=1), z.at[-1].set(far))
    return tuple(Data(pair, pair, where) for pair, where in sides)
