"""Data and worst neighbours for `MEstimator`, of amounts whose mean is exponential."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.data.dataset import Data
from jaxdp.examples import BestKnown
from jaxdp.independence.continuous import logistic_examples, poisson_examples
from jaxdp.independence.continuous.logistic_examples import ABOUT, FEW, HALF, UNKNOWN
from jaxdp.independence.continuous.poisson_examples import ONE_GIVEN, PARTS, made
from jaxdp.statistics.loss_family import NEAR, UNITS, Loss

MOST, MEAN = 10.0, 1.0  # largest amount, and the mean of one where X and Z are 0


def exponential(t, y):
    """Minus the log likelihood of an amount with the mean exp(t), but for what does not move with t."""
    return t + y * jnp.exp(-t)


LOSS: dict[str, Any] = {"loss": exponential, "low": 0.0, "high": MOST}


def _family() -> Loss:
    """What the check of this loss finds, by hand, since nothing is compiled where examples are named."""
    centre, scale = math.log(MOST) + 0.5 * math.log(NEAR * (1.0 - NEAR)), math.log((1.0 - NEAR) / NEAR) / UNITS
    size = MOST * math.exp(-centre)
    return Loss(**LOSS, centre=centre, scale=scale, size=size, largest_information=scale / size)


def known(euclidean: bool = False):
    """A public start about which a mean of `MEAN` is expected of everybody."""
    family = _family()
    slopes = (float(np.log(MEAN) - family.centre) / family.scale, 0.0, 0.0)
    fields = {"shift": np.zeros(2), "dispersion": np.array(0.1), "reach": np.array(1.0)}
    return logistic_examples.known(euclidean, slopes, family=family, **fields)


def answers(key, n: int, slope: float = 0.4) -> Data:
    """X and Z correlated; the log mean of an exponential amount rises with both, by `slope` per sd of X."""
    key_columns, key_y = jax.random.split(key)
    found = logistic_examples.answers(key_columns, n)
    mean = MEAN * jnp.exp((slope * found.x + 0.2 * found.z[:, 0]) / HALF)
    amounts = jnp.minimum(-jnp.log1p(-jax.random.uniform(key_y, (n,))) * mean, MOST)
    return dataclasses.replace(found, y=2.0 * amounts / MOST - 1.0, domain=ONE_GIVEN)


EXAMPLES = logistic_examples.examples_of(
    answers,
    functools.partial(answers, slope=0.0),
    poisson_examples.worst_pairs,
    reached={"MomentMatrix": 0.93, **{f"MEstimator.{part}": BestKnown(0.001, UNKNOWN) for part in PARTS}},
    alone={**dict.fromkeys(PARTS, 0.95), "squares": 0.93},  # of the grid of records
    whole={**FEW, **LOSS},
    about={**ABOUT, **LOSS, "scaled": True},
    starts=(known(), known(euclidean=True)),
    made=made,
)
