"""Data and worst neighbours for tests on a moment matrix, for `MeanDifference`, and on sums of scores of residuals."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.data.dataset import CONTINUOUS, Column, Data, Domain
from jaxdp.examples import AuditSettings, BestKnown, Example, PairSearch, in_stages, in_zcdp
from jaxdp.statistics import residual_scores
from jaxdp.statistics.group_scores import Groups
from jaxdp.statistics.residual_scores import Noisy

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


UNKNOWN_SIZES = BestKnown(0.5, "the pair that moves it most sits on released sizes, which no pair can know")
# the second stage alone, about groups of three tenths and a mean of -0.4
ABOUT_KNOWN_GROUPS = {"stage": "scores", "groups": Groups(share=0.3, centre=-0.4, count_noise=1.0, sum_noise=4.0)}


def worst_pairs_of_sizes():
    """A record that changes its group and goes from one end of the response to the other."""
    return [(of_groups(1.0, 1.0), of_groups(-1.0, -1.0))]


def worst_pairs_of_mean_scores():
    """The scores move by their range where a record changes its group at the far end; squares from 0 to the largest."""
    return [
        (of_groups(1.0, 1.0), of_groups(-1.0, 1.0)),
        (of_groups(1.0, 1.0), of_groups(-0.4, 1.0)),
        (of_groups(1.0, 1.0), of_groups(1.0, -1.0)),
    ]


WHOLE = Example(
    two_groups,
    null=functools.partial(two_groups, effect=0.0),
    attack_tightness={
        "GroupSizes": 0.98,
        "MeanDifference.scores": UNKNOWN_SIZES,
        "MeanDifference.squares": UNKNOWN_SIZES,
    },
    worst_pairs=worst_pairs_of_sizes,
    search=PairSearch(records=9),
)
ALONE = dict.fromkeys(("scores", "squares"), 0.98)
MEANS = (*in_stages(WHOLE, ABOUT_KNOWN_GROUPS, ALONE, worst_pairs_of_mean_scores), in_zcdp(WHOLE))


BOUND = 4.0  # of the normal columns of `linear`
UNKNOWN_MOMENTS = BestKnown(0.5, "the pair that moves it most sits on released moments, which no pair can know")
MOMENTS = np.array(  # of (1, z, x, y) per record
    [[1.0, 0.1, -0.2, 0.0], [0.1, 0.2, 0.06, 0.08], [-0.2, 0.06, 0.3, 0.1], [0.0, 0.08, 0.1, 0.25]]
)


def moments_with_noise(scale: float) -> Noisy:
    """Public moments whose noise has this scale."""
    scales = jnp.full((4, 4), scale).at[0, 0].set(0.0)
    return Noisy(matrix=jnp.asarray(MOMENTS), scales=scales, variance_per_scale=jnp.asarray(2.0))


def about(correlation: bool):
    """Public scores of one query, given one column."""
    return residual_scores.scores(moments_with_noise(1e-4), 1, 2, np.array([True, False, False]), correlation)


def of_stage(cls, epsilon, known_moments: bool = False, **fields):
    """`Example.make` of both stages, or, about known moments, of the second alone."""
    if not known_moments:
        return cls(epsilon=epsilon, **fields)
    known = jax.tree.map(lambda value: jnp.asarray(value)[None], about(cls.correlation))
    return cls(epsilon=epsilon, stage="scores", sizes=(1, 1, 1), levelled=(False,) * 3, about=known, **fields)


def _extreme_records(correlation: bool):
    """Records of the box with the largest and the smallest score, and those with the smallest and the largest square.

    Of a score and its spread in their units, of the two sums and differences that with the larger range: as far as both
    can move together.
    """
    scores = about(correlation)
    ends = np.linspace(-1.0, 1.0, 65)
    grid = np.stack(np.meshgrid(ends, ends, ends, indexing="ij"), axis=-1).reshape(-1, 3)
    score, rest = (np.asarray(of) for of in scores.of(jnp.asarray(grid)))
    together = [score / scores.range + side * rest / scores.widest for side in (1.0, -1.0)]
    values = max(together, key=np.ptp)
    return grid[values.argmax()], grid[values.argmin()], grid[np.abs(score).argmin()], grid[np.abs(score).argmax()]


def _made(record):
    z, x, y = record
    return Data(np.array([x, 0.5, -0.5, 0.25]), np.array([y, 1.0, -1.0, 1.0]), np.array([z, 0.5, -0.5, 0.0]))


def worst_pairs_of_moments():
    """All columns at their upper ends, and at their middle."""
    return [(_made(BOUND * np.ones(3)), _made(np.zeros(3)))]


def worst_pairs_of_residuals_in_length():
    """Records of full length that are nearly orthogonal: the Frobenius norm moves most."""
    return [(_made(BOUND * np.array([1.0, 1.0, 1.0])), _made(BOUND * np.array([-1.0, 1.0, -1.0])))]


def worst_pairs_of_residual_scores(correlation: bool):
    """The score of a slope or a correlation moves by its range, its square from 0 to the largest."""
    high, low, none, far = map(_made, _extreme_records(correlation))
    return [(high, low), (far, none), (low, none)]


FEW = {"bound": BOUND, "enforce_rule": False}  # contracts take few records
KNOWN = {"known_moments": True}


def of_residuals(name: str, correlation: bool) -> tuple[Example, ...]:
    """Of a class of this name."""
    reached = {"MomentMatrix": 0.98, f"{name}.scores": UNKNOWN_MOMENTS, f"{name}.squares": UNKNOWN_MOMENTS}
    whole = Example(
        linear,
        null=linear_null,
        fields=FEW,
        make=of_stage,
        attack_tightness=reached,
        worst_pairs=worst_pairs_of_moments,
        search=PairSearch(records=9),
    )
    pairs = functools.partial(worst_pairs_of_residual_scores, correlation)
    return (
        *in_stages(whole, KNOWN, dict.fromkeys(("scores", "squares"), 0.98), pairs),
        in_zcdp(
            whole, attack_tightness={**reached, "MomentMatrix": 0.97}, worst_pairs=worst_pairs_of_residuals_in_length
        ),
    )


REGRESSION = of_residuals("LinearRegression", False)
CORRELATIONS = of_residuals("PartialCorrelation", True)
