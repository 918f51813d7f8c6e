"""Data and worst neighbours for the tests on sums of scores of residuals."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.data.dataset import Data
from jaxdp.examples import BestKnown, Example, PairSearch, in_stages, in_zcdp
from jaxdp.independence.continuous.moment_examples import linear, linear_null
from jaxdp.statistics import residual_scores
from jaxdp.statistics.residual_scores import Noisy

BOUND = 4.0  # of the normal columns of `linear`
PUBLISHED = BestKnown(0.5, "the pair that moves it most sits on released moments, which no pair can know")
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


def worst_pairs_in_length():
    """Records of full length that are nearly orthogonal: the Frobenius norm moves most."""
    return [(_made(BOUND * np.array([1.0, 1.0, 1.0])), _made(BOUND * np.array([-1.0, 1.0, -1.0])))]


def worst_pairs_of_scores(correlation: bool):
    """The score of a slope or a correlation moves by its range, its square from 0 to the largest."""
    high, low, none, far = map(_made, _extreme_records(correlation))
    return [(high, low), (far, none), (low, none)]


FEW = {"bound": BOUND, "enforce_rule": False}  # contracts take few records
KNOWN = {"known_moments": True}


def examples(name: str, correlation: bool) -> tuple[Example, ...]:
    """Of a class of this name."""
    reached = {"MomentMatrix": 0.98, f"{name}.scores": PUBLISHED, f"{name}.squares": PUBLISHED}
    whole = Example(
        linear,
        null=linear_null,
        fields=FEW,
        make=of_stage,
        attack_tightness=reached,
        worst_pairs=worst_pairs_of_moments,
        search=PairSearch(records=9),
    )
    pairs = functools.partial(worst_pairs_of_scores, correlation)
    return (
        *in_stages(whole, KNOWN, dict.fromkeys(("scores", "squares"), 0.98), pairs),
        in_zcdp(whole, attack_tightness={**reached, "MomentMatrix": 0.97}, worst_pairs=worst_pairs_in_length),
    )


SLOPES = examples("LinearRegression", False)
CORRELATIONS = examples("PartialCorrelation", True)
