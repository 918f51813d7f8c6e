"""Worst neighbours of rank tests, made by hand from the proofs (docs/theory/conditional_kendall.md, spearman.md).

Pairs (data, neighbour) that differ in one record. z at -FAR and FAR is the first and the last stratum.
"""

import dataclasses

import numpy as np

from jaxdp.data.dataset import Data
from jaxdp.simulate.examples import FAR, described


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
    domain = described((2, 3, 2))
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
    half, domain = (n - 1) // 2, described((2, 2, 2))
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
