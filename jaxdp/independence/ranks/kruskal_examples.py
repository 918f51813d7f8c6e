"""Data and worst neighbours for `KruskalWallis`."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.data.dataset import BINARY, CATEGORICAL, Column, Data, Domain
from jaxdp.examples import AuditSettings, Example, PairSearch, in_zcdp

LEVELS = 3
GROUPED = Domain((Column(CATEGORICAL, LEVELS),), (Column(),))
PAIR = Domain((Column(BINARY, 2),), (Column(),))
SHIFT = 1.0  # sds between neighbouring groups of `shifted`
REACHED = {"ranks": 0.98, "counts": 1.0}  # of the proven 2 (n - 1) the worst known pair moves 2 (n - 2)


def shifted(key, n: int, shift: float = SHIFT) -> Data:
    """Three groups of the same spread whose values lie one sd apart, cut to [-1, 1]."""
    key_groups, key_values = jax.random.split(key)
    groups = jax.random.randint(key_groups, (n,), 0, LEVELS)
    values = jax.random.normal(key_values, (n,)) + shift * (groups - 1.0)
    return Data(groups, jnp.clip(values / 4.0, -1.0, 1.0), None, GROUPED)


def alike(key, n: int) -> Data:
    """Three groups with one law of the values."""
    return shifted(key, n, 0.0)


def two_groups(key, n: int) -> Data:
    """The lower two groups as one, and the highest."""
    three = shifted(key, n)
    return Data(1 * (three.x == LEVELS - 1), three.y, None, PAIR)


def two_alike(key, n: int) -> Data:
    """Two groups with one law of the values, a third of the records in the second."""
    three = alike(key, n)
    return Data(1 * (three.x == LEVELS - 1), three.y, None, PAIR)


def worst_pairs(n: int = 101, num_groups: int = LEVELS, domain: Domain = GROUPED):
    """The lowest value of a group that holds it and the highest one alone becomes the highest of all."""
    values = np.linspace(-0.9, 0.9, n)
    groups = np.concatenate([[1], np.zeros(n - 2, int), [1]])
    moved = np.concatenate([[1.0], values[1:]])
    elsewhere = np.concatenate([[2 % num_groups], groups[1:]])
    data = Data(groups, values, None, domain)
    return [(data, Data(groups, moved, None, domain)), (data, Data(elsewhere, values, None, domain))]


PAIRS_OF_TWO = functools.partial(worst_pairs, num_groups=2, domain=PAIR)
SHIFTED = Example(
    shifted,
    null=alike,
    fields={"num_null": 39},
    attack_tightness=REACHED,
    worst_pairs=worst_pairs,
    audit=AuditSettings(fields={"num_null": 19}, neighbours=worst_pairs),
)

EXAMPLES = (
    SHIFTED,
    in_zcdp(SHIFTED, search=PairSearch(rounds=None)),
    Example(
        two_groups,
        null=two_alike,
        label="pair",
        attack_tightness=REACHED,
        worst_pairs=PAIRS_OF_TWO,
        audit=AuditSettings(neighbours=PAIRS_OF_TWO),
    ),
)
