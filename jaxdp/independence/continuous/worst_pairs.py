"""Worst neighbours of tests of X and Y given Z, made by hand from the proofs or found by hill climbing.

Pairs (data, neighbour) that differ in one record. FAR lies beyond every clipping limit; z at -FAR and FAR is the first
and the last cell of a partition, z at MIDDLE a cell between them. Theory: partition_gcm.md, ordered_neighbours.md,
feature_gcm.md#sensitivity, contrast_features.md#sensitivity, local_permutation.md, kernel_ridge.md, crt.md.
"""

import jax.numpy as jnp
import numpy as np

from jaxdp.data.dataset import Column, Data, Domain
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


def between(n=13, shape=None):
    """`BandGCM`, one neighbour (docs/theory/ordered_neighbours.md): three pairs of signs change by 1/2 each, twice.

    A record that is concordant with both its neighbours in z, themselves discordant, moves between two concordant ones
    and is discordant with both.
    """
    far, quiet = FAR, [(FAR, FAR, 2.0 + k) for k in range(n - 5)]
    kept = [*quiet, (0.0, 0.0, 0.0), (far, -far, 0.2), (0.0, 0.0, 1.0), (far, far, 1.2)]
    return [two_data_sets([*kept, (2 * far, 2 * far, 0.1)], [*kept, (2 * far, -far, 1.1)], shape)]


def between_columns():
    """The same in several columns of x and y."""
    return between(shape=several_columns)


def between_features(n=13, shape=None):
    """Sums: (1, 1) leaves its place between two (-1, -1), and (1, -1) arrives between two (-1, 1); 4 each, one way.

    Squares: a record whose four squares are 1 becomes one whose squares are nearly 0.
    """
    far, quiet = FAR, [(FAR, FAR, 2.0 + k) for k in range(n - 5)]
    sums = [*quiet, (-far, -far, 0.0), (-far, -far, 0.2), (-far, far, 1.0), (-far, far, 1.2)]
    squares = [*quiet, (far, far, 0.0), (far, far, 0.2), (far, far, 1.0), (far, far, 1.2)]
    return [
        two_data_sets([*sums, (far, far, 0.1)], [*sums, (far, -far, 1.1)], shape),
        two_data_sets([*squares, (far, far, 0.1)], [*squares, (0.55, 0.55, 0.1)], shape),
    ]


def between_features_in_a_schema():
    """The same within the bounds of a schema, near in z, about centres in the middle of the bounds."""

    def shape(x, y, z):
        columns = (Column(),), (Column(),), (Column(),)
        return Data(np.clip(x, -1, 1), np.clip(y, -1, 1), z / 100, Domain(*columns))

    return between_features(shape=shape)


# Rows x, y, z1, z2: the first is replaced by the last.
OF_ALL_ENTRIES = (
    (-0.825, 0.97, 0.22, 0.02),
    (0.48, -0.895, -0.07, 0.35),
    (0.515, 0.825, 0.74, -0.845),
    (0.565, 0.64, 0.955, 0.225),
    (0.14, -0.89, -0.665, -0.79),
    (0.57, -0.725, -0.825, 0.76),
    (0.57, 0.56, 0.82, 0.11),
    (0.605, 0.835, 0.74, -0.195),
    (0.76, 0.795, 0.89, -0.495),
    (0.175, -0.605, -0.1, 0.04),
    (-0.28, -0.695, 0.815, 0.96),
    (0.895, -0.515, 0.425, -0.645),
    (-0.32, -0.445, 0.495, 0.17),
    (0.165, 0.185, 0.76, -0.1),
    (-0.315, -0.62, 0.15, -1),
    (-0.335, 0.235, 0.655, 0.14),
    (-0.84, 0.3, 0.87, -0.54),
)
OF_THE_LINEAR_ENTRY = (
    (0.995, -0.89, -1, -0.1),
    (-0.12, -0.835, -0.1, 0.775),
    (0.735, 0.82, -0.685, 0.57),
    (-0.695, -0.87, 0.08, -0.93),
    (-0.45, 0.785, -0.83, -0.855),
    (-0.635, 0.795, 0.13, 0.065),
    (0.8, 0.565, -0.085, -0.64),
    (0.36, -0.665, 0.71, -1),
    (-0.665, 0.62, 0.575, 0.91),
    (-0.375, -0.85, 0.5, 0.35),
    (-0.525, -0.865, 0.045, -0.39),
    (0.965, 0.255, 0.875, -0.61),
    (-0.78, 0.38, -0.535, -0.035),
    (0.86, -0.155, 0.645, 0.635),
    (0.785, -0.275, 0.34, 0.075),
    (-0.52, 0.48, 0.285, -0.235),
    (0.895, 0.995, -0.095, 0.91),
)


def found():
    """Two pairs: one moves all entries together (x and y far beyond the scales), one the linear entry alone (near)."""
    return [_pair(OF_ALL_ENTRIES, 100.0), _pair(OF_THE_LINEAR_ENTRY, 0.2)]


def _pair(rows, size: float):
    table = np.array(rows) * np.array([size, size, 1.0, 1.0])
    ends = table[:-1], np.concatenate([table[-1:], table[1:-1]])
    return tuple(Data(part[:, 0], part[:, 1], part[:, 2:]) for part in ends)


def permutations(n=21):
    """`LocalPermutation`: delete and insert, 3 each, for about every permutation (docs/theory/local_permutation.md).

    Copies of neighbours are coupled, not equal-keyed: sorted copies are a coupling, and the attack compares those.
    """
    m = (n - 1) // 2
    crowd = [(FAR, FAR, -FAR)] * m + [(FAR, -FAR, FAR)] * m
    moved = two_data_sets([*crowd, (-FAR, -FAR, -FAR)], [*crowd, (-FAR, FAR, FAR)])
    return [moved, two_data_sets([*crowd, (FAR, FAR, -FAR)], [*crowd, (FAR, -FAR, -FAR)])]


def sorted_copies(values):
    """A rank does not depend on the order of the copies: sorted ones move no further under any coupling."""
    return {side: (reference, np.sort(copies, axis=-1)) for side, (reference, copies) in values.items()}


def clusters(n=241):
    """Kernel ridge residuals, ridge 1 (docs/theory/kernel_ridge.md): two far clusters, x = 1, y = 1 on one, else -1.

    The fits are orthogonal and as long as they can be; a record with residuals (-3/2, 3/2) in one cluster becomes one
    with (-3/2, -3/2) in the other. One cluster is larger, so that the sum keeps its sign.
    """
    m = (n - 1) // 2
    found = []
    for shift in (12, -12):
        sides = [(FAR, FAR, -FAR)] * (m + shift) + [(FAR, -FAR, FAR)] * (n - 1 - m - shift)
        found.append(two_data_sets([*sides, (-FAR, FAR, FAR)], [*sides, (-FAR, -FAR, -FAR)]))
    return found


def rows_turned(n=13):
    """Randomisation tests without regression: y of one record turns from 1 to -1; every record in turn."""
    x, z = np.full(n, FAR), np.zeros(n)
    found = []
    for row in range(n):
        y = np.full(n, FAR)
        y[row] = -FAR
        found.append((Data(x, np.full(n, FAR), z), Data(x, y, z)))
    return found
