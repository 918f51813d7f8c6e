"""Data and worst neighbours for `LogRank`."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.data.dataset import BINARY, Column, Data, Domain
from jaxdp.examples import BestKnown, Example, PairSearch, in_stages, in_zcdp
from jaxdp.statistics import log_rank
from jaxdp.statistics.log_rank import BINS, Curves

TIMES = Domain((Column(BINARY, 2),), (Column(), Column(BINARY, 2)))
PUBLISHED = BestKnown(0.5, "the pair that moves it most sits on released counts, which no pair can know")
REACHED = {"EventCounts": 1.0, "LogRank.scores": PUBLISHED, "LogRank.squares": PUBLISHED}
ALONE = dict.fromkeys(("scores", "squares"), 0.99)
BLOCKS = 6


def known(strata: int = 1) -> Curves:
    """The second stage alone: about constant hazards and shares at risk; further strata of more hazard count less."""
    place = np.arange(strata)
    each = lambda value: np.repeat(value[:, None], BLOCKS, axis=1)  # noqa: E731
    return Curves(
        hazard=each((1.0 + place) / BINS),
        share=each(0.3 + 0.2 * place)[:, None],
        counted=np.ones((strata, BLOCKS)),
        events=np.full((strata, BLOCKS), 4.0),
        covariance=np.full((strata, 1, BLOCKS, 1, BLOCKS), 1e-4),
        weight=1.0 / (1.0 + 0.25 * place),
        mean=np.zeros(1),
        variance=np.ones((1, 1)),
        crowded=np.zeros(strata, bool),
        ends=np.repeat(each(0.3 + 0.2 * place)[:, None, None], 2, axis=1),
        sudden=np.zeros((strata, BLOCKS)),
        count_variance=np.array(1.0),
        coarse=np.zeros(1),
    )


KNOWN = known()
ABOUT_KNOWN_CURVES = {"stage": "scores", "curves": KNOWN, "blocks": BLOCKS}
# given blocks, few records of a stratum are not refused
IN_STRATA = {"stage": "scores", "curves": known(2), "blocks": BLOCKS, "strata": (2,)}
WHOLE_STEPS = dataclasses.replace(TIMES, y=(Column(values=25), TIMES.y[1]))
TWO_STRATA = dataclasses.replace(TIMES, z=(Column(BINARY, 2),))


def times(key, n: int, ratio: float = 3.0, in_strata: bool = False) -> Data:
    """Exponential times of two groups on [0, 1], the hazard of the second is `ratio` times as large, with censoring."""
    key_group, key_time, key_end = jax.random.split(key, 3)
    group = jax.random.bernoulli(key_group, 0.5, (n,)).astype(float)
    z = jax.random.bernoulli(jax.random.fold_in(key, 4), 0.3 + 0.4 * group, (n,)) if in_strata else jnp.zeros(n)
    time = jax.random.exponential(key_time, (n,)) / (0.8 * ratio**group * 3.0**z)
    censored = jax.random.exponential(key_end, (n,)) / (0.2 + 0.6 * group)
    seen = jnp.minimum(jnp.minimum(time, censored), 1.0)
    y = jnp.stack([2.0 * seen - 1.0, time <= censored], axis=1)
    return Data(group, y, 1.0 * z, TWO_STRATA) if in_strata else Data(group, y, None, TIMES)


def times_in_steps(key, n: int, ratio: float = 3.0) -> Data:
    """`times` that are recorded in 24 whole steps, at whose ends events come before censoring."""
    data = times(key, n, ratio)
    step = jnp.ceil(12.0 * (data.y[:, 0] + 1.0))
    return dataclasses.replace(data, y=data.y.at[:, 0].set(step / 12.0 - 1.0), domain=WHOLE_STEPS)


def times_in_strata(key, n: int, ratio: float = 3.0) -> Data:
    """`times` in two strata, of which the second has most of the second group and three times the hazard."""
    return times(key, n, ratio, in_strata=True)


def equal_times_in_strata(key, n: int) -> Data:
    """`times_in_strata` with one hazard in each stratum."""
    return times_in_strata(key, n, 1.0)


def _made(*record, stratum=None):
    rest = [(0.0, -0.5, 1.0), (1.0, 0.5, 1.0), (1.0, 1.0, 0.0)]
    group, time, event = (np.array(part) for part in zip(record, *rest, strict=True))
    y = np.stack([time, event], axis=1)
    if stratum is None:
        return Data(group, y, None, TIMES)
    return Data(group, y, np.array([stratum, 0.0, 1.0, 1.0]), TWO_STRATA)


def worst_pairs():
    """A record that changes its group."""
    return [(_made(0.0, -0.9, 1.0), _made(1.0, 0.8, 0.0))]


def worst_pairs_in_steps():
    """A record that changes its group."""
    return [tuple(dataclasses.replace(data, domain=WHOLE_STEPS) for data in pair) for pair in worst_pairs()]


def worst_pairs_in_strata():
    """A record that changes its stratum."""
    return [(_made(0.0, -0.9, 1.0, stratum=0.0), _made(0.0, -0.9, 1.0, stratum=1.0))]


def worst_pairs_of_scores(strata: int = 1):
    """Between the records of the largest and the smallest score, and of squared score."""
    scores = np.asarray(known(strata).scores())[..., 0]

    def record(place):
        stratum, group, of_bin, event = np.unravel_index(place, scores.shape)
        time = np.sum(log_rank.ends(BINS)[of_bin : of_bin + 2]) - 1.0  # the middle of the bin
        return _made(float(group), time, float(event), stratum=None if strata == 1 else float(stratum))

    return [(record(np.argmax(values)), record(np.argmin(values))) for values in (scores, scores**2)]


WHOLE = Example(
    times,
    null=functools.partial(times, ratio=1.0),
    attack_tightness=REACHED,
    worst_pairs=worst_pairs,
    search=PairSearch(records=9),
)
GIVEN_STRATA = dataclasses.replace(
    WHOLE,
    data=times_in_strata,
    null=equal_times_in_strata,
    fields={"blocks": BLOCKS},
    label="strata",
    worst_pairs=worst_pairs_in_strata,
)
EXAMPLES = (
    *in_stages(WHOLE, ABOUT_KNOWN_CURVES, ALONE, worst_pairs_of_scores),
    in_zcdp(WHOLE),
    *in_stages(GIVEN_STRATA, IN_STRATA, ALONE, functools.partial(worst_pairs_of_scores, 2), "strata-scores"),
    dataclasses.replace(
        WHOLE,
        data=times_in_steps,
        null=functools.partial(times_in_steps, ratio=1.0),
        fields={"blocks": BLOCKS},
        label="steps",
        worst_pairs=worst_pairs_in_steps,
    ),
)
