"""Data and worst neighbours for `LogRank`."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.data.dataset import BINARY, Column, Data, Domain
from jaxdp.examples import about_released
from jaxdp.statistics.log_rank import BINS, Curves

PLACE = "jaxdp.independence.survival.survival_examples"
TIMES = Domain((Column(BINARY, 2),), (Column(), Column(BINARY, 2)))
UNKNOWN = "the pair that moves it most sits on released counts, which no pair can know"
BLOCKS = 6
# the second stage alone, about a constant hazard and three tenths of those at risk
KNOWN = Curves(
    hazard=np.full(BLOCKS, 0.01),
    share=np.full(BLOCKS, 0.3),
    counted=np.ones(BLOCKS),
    events=np.full(BLOCKS, 4.0),
    covariance=np.full((BLOCKS, BLOCKS), 1e-4),
    mean=np.array(0.0),
    variance=np.array(1.0),
    count_variance=np.array(1.0),
)
ABOUT_KNOWN_CURVES = {"stage": "scores", "curves": KNOWN, "blocks": BLOCKS}


def times(key, n: int, ratio: float = 3.0) -> Data:
    """Exponential times of two groups on [0, 1], the hazard of the second is `ratio` times as large, with censoring."""
    key_group, key_time, key_end = jax.random.split(key, 3)
    group = jax.random.bernoulli(key_group, 0.5, (n,)).astype(float)
    time = jax.random.exponential(key_time, (n,)) / (0.8 * ratio**group)
    censored = jax.random.exponential(key_end, (n,)) / (0.2 + 0.6 * group)
    seen = jnp.minimum(jnp.minimum(time, censored), 1.0)
    return Data(group, jnp.stack([2.0 * seen - 1.0, time <= censored], axis=1), None, TIMES)


def equal_times(key, n: int) -> Data:
    """`times` with one hazard; censoring differs between the groups."""
    return times(key, n, 1.0)


def _made(*record):
    rest = [(0.0, -0.5, 1.0), (1.0, 0.5, 1.0), (1.0, 1.0, 0.0)]
    group, time, event = (np.array(part) for part in zip(record, *rest, strict=True))
    return Data(group, np.stack([time, event], axis=1), None, TIMES)


def worst_pairs():
    """A record that changes its group."""
    return [(_made(0.0, -0.9, 1.0), _made(1.0, 0.8, 0.0))]


def worst_pairs_of_scores():
    """Between the records of the largest and the smallest score, and of squared score."""
    scores = np.asarray(KNOWN.scores())

    def record(place):
        group, of_bin, event = np.unravel_index(place, scores.shape)
        return _made(float(group), 2.0 * (of_bin + 0.5) / BINS - 1.0, float(event))

    return [(record(np.argmax(values)), record(np.argmin(values))) for values in (scores, scores**2)]


EXAMPLES = about_released(times, equal_times, PLACE, "LogRank", {"EventCounts": 1.0}, ABOUT_KNOWN_CURVES, UNKNOWN, 0.99)
