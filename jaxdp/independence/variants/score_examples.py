"""Data and worst neighbours for score tests of variants."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.data.dataset import BINARY, Column, Data, Domain
from jaxdp.examples import BestKnown
from jaxdp.independence.variants.covariates import Straight
from jaxdp.independence.variants.score_stages import Lines

VARIANTS = 4


def zero_mean(z):
    """A public null model: the phenotype has mean 0 whatever z is."""
    return jnp.zeros(z.shape[0])


BINARY_PHENOTYPE = Domain((Column(),) * VARIANTS, (Column(BINARY, 2),), (Column(),))
# Fields of the last stage alone, lines and null model at zero: what an audit of its mechanism looks at.
ABOUT_KNOWN_LINES = {
    "null_model": zero_mean,
    "residual_limit": 1.0,
    "ahead": (),
    "lines": Lines(np.zeros((VARIANTS, 1)), *(np.zeros(VARIANTS) for _ in range(3))),
    "num_variants": VARIANTS,
}
# The same of scores within bins of the covariate.
ABOUT_BINS = {**ABOUT_KNOWN_LINES, "basis": Straight((Column(),)), "bins": (0, 50)}
WITHIN_BINS = {"scores": 0.98, "squares": 0.98, "spread": 0.98}
UNKNOWN = "the pair that moves it most sits on released lines, which no pair can know"


def cohort(key, n: int, effect: float = 1.0) -> Data:
    """Four variants whose frequencies differ along z (a covariate on [-1, 1]), and a quantity y that moves with z.

    The first variant moves y by `effect` residual sds.
    """
    key_z, key_x, key_y = jax.random.split(key, 3)
    z = jax.random.uniform(key_z, (n,), minval=-1.0)
    rate = 0.3 + 0.2 * z[:, None] * jnp.array([[1.0, -1.0, 0.5, 0.0]])
    x = jnp.sum(jax.random.uniform(key_x, (2, n, VARIANTS)) < rate[None], axis=0) - 1.0
    y = 0.3 * z + 0.2 * (jax.random.normal(key_y, (n,)) + effect * x[:, 0])
    return Data(x, jnp.clip(y, -1.0, 1.0), z)


def null_cohort(key, n: int) -> Data:
    """`cohort` without an effect: variants and phenotype both move with z."""
    return cohort(key, n, 0.0)


def binary_cohort(key, n: int, effect: float = 0.0, confounding: float = 0.6) -> Data:
    """Cases and controls (codes 1 and 0) whose log odds move with z, and with the first variant by `effect`."""
    key_x, key_y = jax.random.split(key)
    data = cohort(key_x, n, 0.0)
    odds = 2.0 * confounding * data.z + effect * data.x[:, 0]
    y = (jax.random.uniform(key_y, (n,)) < jax.nn.sigmoid(odds)).astype(float)
    return Data(data.x, y, data.z, BINARY_PHENOTYPE)


def reaches(last: str, *, chosen: bool = False):
    """Shares of the bounds that attacks reach, by stage."""
    found: dict[str, Any] = {"NullModel": 0.98, "ResidualMean": 0.95}
    if chosen:
        found["VariantChoice"] = 0.95
    part = {name: BestKnown(0.5, UNKNOWN) for name in ("scores", "squares", "spread")}
    return {**found, "VariantLines": 0.98, **{f"{last}.{name}": share for name, share in part.items()}}


def worst_pairs():
    """One person's columns all turn over: every score, every line and every moment moves as far as it can.

    Among few persons, where a search goes on, and among many whose phenotype hardly varies: there the null model says
    so whatever its noise, and residuals fill their range.
    """
    return [*_pairs(8, -0.5), *_pairs(4000, -0.05)]


def _pairs(others: int, phenotype: float):
    """phenotype: of the other persons, up to their sign."""

    def made(x, y, z):
        rest = np.tile([[1.0], [-1.0]], (others // 2, 1))
        return Data(
            np.concatenate([np.full((1, VARIANTS), x), np.tile(rest, (1, VARIANTS))]),
            np.concatenate([[y], phenotype * rest[:, 0]]),
            np.concatenate([[z], 0.5 * rest[:, 0]]),
        )

    return [
        (made(1.0, 1.0, 1.0), made(-1.0, 1.0, 1.0)),
        (made(1.0, 1.0, 1.0), made(1.0, -1.0, 1.0)),
        (made(1.0, 1.0, 1.0), made(1.0, 0.0, 0.0)),
        (made(1.0, 1.0, 1.0), made(-1.0, 0.5, 0.0)),
        (made(1.0, 1.0, 1.0), made(0.0, 0.0, 0.0)),
        (made(1.0, 1.0, -1.0), made(1.0, -1.0, -1.0)),
    ]


def first_worst_pair():
    """For an audit: the scores move by their whole bound."""
    return worst_pairs()[1]


def worst_pairs_in_bins(others: int = 200):
    """A record that is unlike its bin moves to another bin that it is unlike as well, or from one that it is like."""
    ones = np.ones(others)

    def made(x, y, z):
        rows = np.concatenate([[x], -ones, -ones])
        of_y, of_z = np.concatenate([[y], -ones, ones]), np.concatenate([[z], -ones, ones])
        return Data(np.tile(rows[:, None], (1, VARIANTS)), of_y, of_z)

    turned = made(1.0, -1.0, 1.0), made(1.0, 1.0, -1.0)  # deviations (2, -2), then (2, 2)
    spread = made(-1.0, 0.0, 1.0), made(1.0, 1.0, -1.0)
    return [turned, spread]
