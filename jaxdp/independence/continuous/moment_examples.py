"""Data and worst neighbours for the tests on a moment matrix."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.data.dataset import CONTINUOUS, Column, Data, Domain
from jaxdp.examples import AuditSettings, BestKnown, Example, PairSearch, in_zcdp

TWO_GROUPS = Domain((Column(),), (Column(CONTINUOUS, 2),))


def linear(key, n: int, dim: int = 1, effect: float = 0.4) -> Data:
    """Normal z (dim columns; 0: none), x linear in z, and y linear in z and x."""
    key_z, key_x, key_y = jax.random.split(key, 3)
    z = jax.random.normal(key_z, (n, dim))
    shared = 0.7 * jnp.sum(z, axis=1) / max(dim, 1) ** 0.5
    x = shared + jax.random.normal(key_x, (n,))
    return Data(x, shared + effect * x + jax.random.normal(key_y, (n,)), z if dim else None)


def linear_null(key, n: int, dim: int = 1) -> Data:
    """`linear` without the effect."""
    return linear(key, n, dim, 0.0)


def two_groups(key, n: int, effect: float = 0.8) -> Data:
    """A response x on [-1, 1] whose mean differs between two groups y, coded -1 and 1."""
    key_group, key_x = jax.random.split(key)
    group = 2.0 * jax.random.bernoulli(key_group, 0.5, (n,)) - 1.0
    response = 0.2 * (jax.random.normal(key_x, (n,)) + 0.5 * effect * group)
    return Data(jnp.clip(response, -1.0, 1.0), group, None, TWO_GROUPS)


def worst_pairs(depth: int = 1):
    """All columns at their upper ends, and at their centres: every product and every mean moves by one."""
    rest = [0.5, -0.5, 0.25]

    def made(first):
        x = np.array([first, *rest])
        return Data(x, x, x if depth == 1 else np.tile(x[:, None], (1, depth)))

    return [(made(1.0), made(0.0))]


def worst_pairs_in_length():
    """Records of full length that are nearly orthogonal: the Frobenius norm moves most."""

    def made(x, y, z):
        return Data(np.array([x, 0.5, -0.5]), np.array([y, 0.5, -0.5]), np.array([z, 0.5, -0.5]))

    return [(made(1.0, 1.0, 1.0), made(1.0, -1.0, -1.0))]


def of_groups(x, y) -> Data:
    """Four records, the first with this response in this group, -1 or 1."""
    return Data(np.array([x, 0.5, -0.5, 0.25]), np.array([y, 1.0, -1.0, 1.0]), None, TWO_GROUPS)


def worst_pairs_of_groups():
    """A response at its upper end in the second group, and at its centre between the groups."""
    return [(of_groups(1.0, 1.0), of_groups(0.0, 0.0))]


PUBLIC = {"bound": 8.0, "centres": 0.0, "scales": 1.0, "clip": 1.0}
STAGED = BestKnown(0.5, "the pair that moves every product by one sits on released centres, which no pair can know")
RANKS = {f"{stage}.{j:03d}": 1.0 for stage in ("PrivateCentres", "PrivateScales") for j in range(3)}
SEARCH = PairSearch(records=9)
ITS_LEVEL = "its level is that of the first example"

SLOPES = (
    Example(
        linear,
        null=linear_null,
        fields=PUBLIC,
        attack_tightness=0.98,
        worst_pairs=worst_pairs,
        search=SEARCH,
        audit=AuditSettings(neighbours=worst_pairs),
    ),
)

PARTIAL = (
    Example(
        linear,
        null=linear_null,
        fields={"bound": 8.0, "enforce_rule": False},  # few records, too few for private centres
        attack_tightness={**RANKS, "WinsorisedPartialCorrelation": STAGED},
        search=SEARCH,
        audit=AuditSettings(fields=PUBLIC, neighbours=worst_pairs),
    ),
    dataclasses.replace(
        SLOPES[0], null=None, without_null=ITS_LEVEL, label="public-scale", audit=None, bounds_only=True
    ),
    in_zcdp(SLOPES[0], attack_tightness=0.97, worst_pairs=worst_pairs_in_length),
    Example(
        functools.partial(linear, dim=3),
        without_null=ITS_LEVEL,
        fields=PUBLIC,
        label="three-z",
        attack_tightness=0.98,
        worst_pairs=functools.partial(worst_pairs, 3),
        search=PairSearch(records=9, rounds=4),
        bounds_only=True,
    ),
)

GROUPS = (
    Example(
        two_groups,
        null=functools.partial(two_groups, effect=0.0),
        fields={"centres": 0.0, "scales": 0.2, "clip": 1.0},
        attack_tightness=0.97,
        worst_pairs=worst_pairs_of_groups,
        search=SEARCH,
        audit=AuditSettings(neighbours=worst_pairs_of_groups),
    ),
)
