"""True nulls drawn by recipe: a law of Z, a common mean of X and Y and a law of noise, each at random from a seed.

Nothing was tuned on them. Means are sums of one to three parts, each a wave, jumps at random places, jumps at regular
ones, a bend or a plane, of one axis or of a random direction; rates are the largest slopes or numbers of jumps.
"""

import math

import numpy as np

from experiments.evidence.level import nulls

ZS = {
    "normal": (nulls.normal_z, (-nulls.BOUND, nulls.BOUND)),
    "uniform": (nulls.uniform_z, (-nulls.BOUND, nulls.BOUND)),
    "correlated": (nulls.correlated_z, (-nulls.BOUND, nulls.BOUND)),
    "lognormal": (nulls.lognormal_z, (0.0, nulls.LONGEST)),
    "two clusters": (nulls.two_clusters_z, (-nulls.BOUND, nulls.BOUND)),
    "t2": (nulls.t2_z, (-nulls.BOUND, nulls.BOUND)),
    "exponential": (nulls.exponential_z, (-nulls.BOUND, nulls.BOUND)),
}
NOISES = {
    "normal": nulls.gauss(),
    "small": nulls.gauss(0.3),
    "skewed": nulls.exponential,
    "heavy": lambda generator, z: generator.standard_t(3, z.shape[0]),
    "growing": nulls.growing,
}


def wave(rng, rate):
    frequency, phase = rng.uniform(0.5, rate), rng.uniform(0, 2 * math.pi)
    return lambda t: np.sin(frequency * t + phase)


def places(rng, rate):
    """Jumps at random places."""
    at, size = rng.uniform(-3, 3, rng.integers(1, max(2, int(rate)))), rng.choice([-1.0, 1.0])
    return lambda t: size * (2.0 * (np.sum(t[:, None] > at, axis=1) % 2) - 1.0)


def regular(rng, rate):
    """Jumps at equal distances."""
    period, phase = 2 * math.pi / rng.uniform(0.5, rate), rng.uniform(0, 2 * math.pi)
    return lambda t: np.sign(np.sin(2 * math.pi * t / period + phase))


def bend(rng, rate):
    at = rng.uniform(-2, 2)
    return lambda t: np.clip(rate / 3 * (np.abs(t - at) - 1.0), -2.0, 2.0)


def plane(rng, rate):
    return lambda t: t


PARTS = {"wave": wave, "jumps": places, "regular jumps": regular, "bend": bend, "plane": plane}


def recipe(seed: int) -> tuple[nulls.Null, dict]:
    """A null and what it is made of."""
    rng = np.random.default_rng([seed, 2])
    rate = rng.uniform(1.0, 8.0)
    law, noise = rng.choice(list(ZS)), rng.choice(list(NOISES))
    z, bounds = ZS[law]
    names = list(rng.choice(list(PARTS), rng.integers(1, 4)))
    made = [(PARTS[name](rng, rate), rng.integers(0, 3), rng.normal(size=2), rng.uniform(0.5, 1.5)) for name in names]

    def mean(values):
        total = 0.0
        for part, axis, direction, size in made:
            along = values[:, axis] if axis < 2 else values[:, :2] @ direction / np.linalg.norm(direction)
            total = total + size * part(along)
        return total

    null = nulls.Null(z, mean, NOISES[noise], bounds=bounds, by_column=False, of="recipe")
    return null, {"z": str(law), "noise": str(noise), "parts": list(map(str, names)), "rate": round(rate, 1)}
