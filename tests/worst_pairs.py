"""Worst pairs of neighbours, made by hand from the proofs: what a search of small data sets does not find.

Every function takes a number of records and returns pairs (data, neighbour) that differ in one record. FAR lies beyond
every clipping limit; z at -FAR and FAR is the first and the last cell, z at MIDDLE a cell between them.
"""

import dataclasses

import jax.numpy as jnp
import numpy as np

from jaxdp import Data
from jaxdp.audit.bounds import FAR
from jaxdp.data.dataset import ORDINAL, Column, Domain
from jaxdp.data.records import as_records

MIDDLE = 0.3


def pair(before, after, shape=None):
    """Two data sets from rows (x, y, z); `shape` turns the three columns into those of the test."""
    make = shape or (lambda x, y, z: Data(x, y, z))
    return tuple(make(*np.array(rows, float).T) for rows in (before, after))


def cells(n=81, shape=None):
    """`PartitionGCM` and its stages (docs/theory/partition_gcm.md).

    S: a record that adds 4m/(m + 1) to its cell moves to a cell from which it takes as much.
    V: a cell loses a record at its centre (+2) and a cell of one gains the opposite (+4); of several regions: the
    record that makes one cell spread moves and does the same to another (4 + 4). Axis scores and cell scores: the one
    record that differs from its cell leaves it for an empty one.
    """
    m, far = (n - 1) // 2, FAR
    crowd = [(-far, -far, -far)] * m + [(-far, far, far)] * m
    covariance = pair([*crowd, (far, far, -far)], [*crowd, (far, -far, far)], shape)
    quiet = [(0.0, 0.0, MIDDLE)] * (n - 4)
    spread = [(far, far, -far), (-far, -far, -far)]
    lonely = (-far, -far, far)
    variance = pair([*quiet, *spread, lonely, (0.0, 0.0, -far)], [*quiet, *spread, lonely, (far, far, far)], shape)
    quiet = [*quiet, (0.0, 0.0, MIDDLE)]
    regional = pair([*quiet, *spread, lonely], [*quiet, (far, far, far), spread[1], lonely], shape)
    alike = [(-far, -far, -far)] * (n - 1)
    odd = pair([*alike, (far, far, -far)], [*alike, (far, far, far)], shape)
    return [covariance, variance, regional, odd]


def several_columns(x, y, z):
    """x twice, y three times: every product moves alike."""
    return Data(np.stack([x] * 2, 1), np.stack([y] * 3, 1), z)


def five_axes(x, y, z):
    """z five times."""
    return Data(x, y, np.stack([z] * 5, 1))


def no_z(x, y, z):
    """Without z: one cell."""
    del z
    return Data(x, y)


def one_cell(n=81):
    """One cell: against records at (-1, -1), (1, 1) becomes (1, -1); half of what two cells allow."""
    alike = [(-FAR, -FAR, 0.0)] * (n - 1)
    return [pair([*alike, (FAR, FAR, 0.0)], [*alike, (FAR, -FAR, 0.0)], no_z)]


def three_columns(x, y, z):
    """x three times, y three times."""
    return Data(np.stack([x] * 3, 1), np.stack([y] * 3, 1), z)


def permutations(n=21):
    """`LocalPermutation`: delete and insert, 3 each, for about every permutation (docs/theory/local_permutation.md).

    Copies of neighbours are coupled, not equal-keyed: sorted copies are a coupling, and the attack compares those.
    """
    m = (n - 1) // 2
    crowd = [(FAR, FAR, -FAR)] * m + [(FAR, -FAR, FAR)] * m
    moved = pair([*crowd, (-FAR, -FAR, -FAR)], [*crowd, (-FAR, FAR, FAR)])
    return [moved, pair([*crowd, (FAR, FAR, -FAR)], [*crowd, (FAR, -FAR, -FAR)])]


def clusters(n=241):
    """Kernel ridge residuals, ridge 1 (docs/theory/kernel_ridge.md): two far clusters, x = 1, y = 1 on one, else -1.

    The fits are orthogonal and as long as they can be; a record with residuals (-3/2, 3/2) in one cluster becomes one
    with (-3/2, -3/2) in the other. One cluster is larger, so that the sum keeps its sign.
    """
    m = (n - 1) // 2
    found = []
    for shift in (12, -12):
        sides = [(FAR, FAR, -FAR)] * (m + shift) + [(FAR, -FAR, FAR)] * (n - 1 - m - shift)
        found.append(pair([*sides, (-FAR, FAR, FAR)], [*sides, (-FAR, -FAR, -FAR)]))
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


def ranks(n=301):
    """Rank tests given z: a record concordant with all of a discordant stratum becomes discordant with all of another.

    V: a record alone in its stratum brings a second value of x to a stratum that had one.
    """
    half = (n - 1) // 2
    rank = np.arange(half) / half
    x = np.concatenate([[-5.0], rank, rank])
    y = np.concatenate([[-5.0], rank[::-1], rank])
    z = np.concatenate([[-FAR], np.full(half, -FAR), np.full(half, FAR)])
    u = Data(x, y, z), Data(x, np.concatenate([[5.0], y[1:]]), np.concatenate([[FAR], z[1:]]))
    steps = np.arange(n - 1.0)
    z = np.concatenate([[-FAR], np.full(n - 1, FAR)])
    v = [Data(np.eye(n)[0], np.concatenate([[-1.0], steps]), np.concatenate([[end], z[1:]])) for end in (-FAR, FAR)]
    return [u, tuple(v)]


def joining_ranks(n=301):
    """The same under add-or-remove-one: one record leaves a discordant stratum; V as above."""
    rank = np.arange(n - 1.0)
    u = Data(np.append(rank, -1.0), np.append(rank[::-1], -1.0), np.zeros(n))
    v = Data(np.append(0.0 * rank, 1.0), np.append(rank, -1.0), np.zeros(n))
    return [(data, Data(data.x[:-1], data.y[:-1], data.z[:-1])) for data in (u, v)]


def one_stratum(n=101):
    """Rank tests without z: a record turns from concordant with all to discordant with all; V as in `ranks`."""
    rank = np.arange(n - 1.0)
    u = [Data(np.append(rank, -1.0), np.append(rank, end)) for end in (-1.0, FAR)]
    v = [Data(np.append(0.0 * rank, end), np.append(rank, -1.0)) for end in (0.0, 1.0)]
    return [tuple(u), tuple(v)]


def binary_ranks(n=101):
    """x binary: the one record of a level, concordant with its stratum, turns discordant with another stratum.

    V: a record alone in its stratum brings a second value of x to a stratum that had one.
    """
    half = (n - 1) // 2
    domain = Domain(*((Column(ORDINAL, levels),) for levels in (2, 3, 2)))
    x = np.concatenate([[1], np.zeros(2 * half, int)])
    y = np.concatenate([[2], np.zeros(half, int), np.full(half, 2)])
    z = np.concatenate([[0], np.zeros(half, int), np.ones(half, int)])
    other_y, other_z = y.copy(), z.copy()
    other_y[0], other_z[0] = 0, 1
    u = Data(x, y, z, domain), Data(x, other_y, other_z, domain)
    y = np.arange(n) % 3
    v = [Data(np.eye(n, dtype=int)[0], y, np.where(np.arange(n) == 0, end, 1), domain) for end in (0, 1)]
    return [u, tuple(v)]


def binary_pair(n=101):
    """x and y binary given z: as `binary_ranks`. V: a second record joins another of the opposite kind."""
    half, domain = (n - 1) // 2, Domain(*((Column(ORDINAL, 2),) for _ in range(3)))
    x = np.concatenate([[1], np.zeros(2 * half, int)])
    y = np.concatenate([[1], np.zeros(half, int), np.ones(half, int)])
    z = np.concatenate([[0], np.zeros(half, int), np.ones(half, int)])
    u = [Data(x, np.concatenate([[end], y[1:]]), np.concatenate([[1 - end], z[1:]]), domain) for end in (1, 0)]
    alone = np.array([1, 0] + [0] * (n - 2))
    v = [Data(alone, alone, np.concatenate([[1], [0], np.full(n - 2, end)]), domain) for end in (1,)]
    v.append(dataclasses.replace(v[0], z=np.concatenate([[0], v[0].z[1:]])))
    return [tuple(u), tuple(v)]


def three_and_one():
    """Definition 6 of the Priv-PC paper: a record of a stratum of three turns against both others."""
    z = np.array([-FAR, -FAR, -FAR, FAR])
    x, y = np.array([0.0, 1.0, 2.0, 0.0]), np.array([0.0, 1.0, 2.0, 0.0])
    return [(Data(x, y, z), Data(x, np.array([3.0, 1.0, 2.0, 0.0]), z))]


def corner(n=20, columns=None):
    """MICr (docs/theory/mic.md): all records in one corner, then one in the opposite. columns: of a table (n, d)."""
    low = np.full((n, columns or 2), -0.9)
    high = low.copy()
    high[0] = 0.9
    return [(low, high) if columns else tuple(Data(side[:, 0], side[:, 1]) for side in (low, high))]


def corner_of_three():
    """The same in a table of three columns: every pair moves."""
    return corner(columns=3)


def alternating_columns(columns=30, each=33):
    """MICe (docs/theory/mic.md): columns in turn all low and all high; the last record moves to the front of x.

    Every boundary then has one record on its wrong side: as many moves as columns, where the bound counts one more.
    """
    x = np.arange(columns * each, dtype=float)
    high = (x // each) % 2 == 1
    y, order = np.empty_like(x), np.random.default_rng(0)
    y[~high], y[high] = (order.permutation(x.size // 2) + shift for shift in (0, x.size // 2))
    return [(Data(x, y), Data(np.where(x == x[-1], -1.0, x), y))]


def between(n=13, shape=None):
    """`BandGCM`, one neighbour (docs/theory/ordered_neighbours.md): three pairs of signs change by 1/2 each, twice.

    A record that is concordant with both its neighbours in z, themselves discordant, moves between two concordant ones
    and is discordant with both.
    """
    far, quiet = FAR, [(FAR, FAR, 2.0 + k) for k in range(n - 5)]
    kept = [*quiet, (0.0, 0.0, 0.0), (far, -far, 0.2), (0.0, 0.0, 1.0), (far, far, 1.2)]
    return [pair([*kept, (2 * far, 2 * far, 0.1)], [*kept, (2 * far, -far, 1.1)], shape)]


def between_columns():
    """The same in several columns of x and y."""
    return between(shape=several_columns)


def sorted_copies(values):
    """A rank does not depend on the order of the copies: sorted ones move no further under any coupling."""
    return {side: (reference, np.sort(copies, axis=-1)) for side, (reference, copies) in values.items()}


def genotype(generator, tables):
    """The tables after one person's whole genotype is replaced: one group's count moves by 1 in some of them."""
    counts = [np.asarray(part).copy() for part in (tables.exposed_cases, tables.exposed_controls)]
    steps = generator.integers(-1, 2, size=counts[0].shape) if generator.uniform() < 0.5 else generator.choice([-1, 1])
    group = int(generator.integers(2))
    counts[group] = np.clip(counts[group] + steps, 0, None)
    return dataclasses.replace(tables, exposed_cases=jnp.asarray(counts[0]), exposed_controls=jnp.asarray(counts[1]))


def decisions(n=101):
    """`ranks` in codes, for the questions of a search; one stratum is larger, so that U keeps its sign."""
    few, many = 2 * n // 5, n - 1 - 2 * n // 5
    x = np.concatenate([[2], np.arange(few) % 2, np.arange(many) % 2])
    y = np.concatenate([[2], (np.arange(few) + 1) % 2, np.arange(many) % 2 + 1])
    z = np.concatenate([[0], np.zeros(few, int), np.ones(many, int)])
    before = np.stack([x, y, z], axis=1)
    after = before.copy()
    after[0] = (2, 0, 1)
    return [tuple(as_records(side, (3, 3, 2)) for side in (before, after))]
