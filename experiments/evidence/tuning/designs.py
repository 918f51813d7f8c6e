"""Designs of this experiment beside those of `jaxdp.simulate`: key -> Data with a float `effect`, 0 for the null."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

import jaxdp
from jaxdp.simulate.designs import functions21
from jaxdp.simulate.designs.confounder import wave

PARABOLA, LINE, BENT_LINE = 13, 12, 1  # functions of the MIC paper


def student(key, freedom: int, shape):
    """Student's t with a whole number of degrees of freedom, from normal draws (no rejection)."""
    draws = jax.random.normal(key, (freedom + 1, *shape))
    return draws[0] / jnp.sqrt(jnp.mean(draws[1:] ** 2, axis=0))


def heavy_tailed_sine(key, n: int, *, effect: ArrayLike = 0.0, complexity: ArrayLike = 1.0, freedom: int = 3):
    """`sine_confounder` with Student noise."""
    key_z, key_noise = jax.random.split(key)
    z, noise = 2.0 * jax.random.normal(key_z, (n,)), student(key_noise, freedom, (2, n))
    shared = wave(z, complexity)
    return jaxdp.Data(shared + noise[0], -shared + noise[1] + effect * noise[0], z)


def line(key, n: int, *, effect: ArrayLike = 0.0, freedom: int = 0):
    """y is noise plus effect times x, without Z; normal, or Student where freedom > 0."""
    x, noise = student(key, freedom, (2, n)) if freedom else jax.random.normal(key, (2, n))
    return jaxdp.Data(x, noise + effect * x)


def skewed_line(key, n: int, *, effect: ArrayLike = 0.0):
    """`line` of exponential variables."""
    x, noise = jax.random.exponential(key, (2, n)) - 1.0
    return jaxdp.Data(x, noise + effect * x)


def curve(n: int, function: int, share: float, effect: float):
    """Function 1, ..., 21 of the MIC paper at R^2 = share (effect 1), or independent columns of its margins (0)."""
    law = functions21.law(function, share)
    return functools.partial(
        related, n=n, centres_x=np.float32(law.x), centres_y=np.float32(law.y), deviation=float(law.sd), effect=effect
    )


def related(key, n: int, *, centres_x, centres_y, deviation: ArrayLike, effect: ArrayLike):
    """`functional_relation` under the name that tuning knows."""
    return functions21.functional_relation(
        key, n, centres_x=centres_x, centres_y=centres_y, deviation=deviation, dependent=effect
    )


def rise(effect: float) -> float:
    """Difference of two rates, 0.2 and more, that an effect of `jaxdp.plan` stands for between equal groups."""
    return 0.8 * 2.0 * math.asin(effect / math.hypot(1.0, effect)) / math.pi
