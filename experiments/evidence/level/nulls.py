"""True nulls that are hard on a test of X independent of Y given Z, as data that a schema's bounds have scaled.

In natural units: Z is N(0, 1) on bounds -4, 4 and X = f(Z) + noise, Y = g(Z) + noise on the same bounds, noise of sd 1,
f and g of size 1.5, unless the null says otherwise. For several columns of Z a function of one is summed over all and
divided by sqrt(d), unless it looks at one axis. Without Z only the laws of X and Y are left.
"""

import dataclasses
import math
from collections.abc import Callable

import numpy as np

from jaxdp.data.dataset import BINARY, Column, Domain

BOUND = 4.0
SIZE = 1.5
LONGEST = 50.0  # upper bound of a lognormal Z


@dataclasses.dataclass(frozen=True)
class Null:
    """One law of (X, Y, Z) with X independent of Y given Z.

    z: (generator, n, d) -> (n, d). bounds: of Z. mean: z (n, d) -> (n,), of X and of Y. noise: (generator, z) -> (n,)
    for X and for Y. binary: X and Y are coins whose log odds is the mean. by_column: the mean is summed over columns.
    values: of Z, where its declared step leaves so many.
    of: "tuned" for nulls that constants were chosen on, "held out" otherwise.
    """

    z: Callable
    mean: Callable
    noise: Callable
    noise_y: Callable | None = None
    bounds: tuple[float, float] = (-BOUND, BOUND)
    binary: bool = False
    by_column: bool = True
    shared: Callable | None = None  # (generator, z) -> mean of X and of Y, drawn anew for each data set
    values: int = 0
    of: str = "tuned"

    def draw(self, generator: np.random.Generator, n: int, depth: int):
        """x (n,), y (n,), z (n, d) or None, in natural units; coins as 0 and 1."""
        z = self.z(generator, n, max(depth, 1))
        mean = self._mean(generator, z) if depth else np.zeros(n)
        if self.binary:
            x, y = (generator.uniform(size=n) < 1 / (1 + np.exp(-mean)) for _ in range(2))
            return x.astype(float), y.astype(float), z if depth else None
        x = mean + self.noise(generator, z)
        y = mean + (self.noise_y or self.noise)(generator, z)
        return x, y, z if depth else None

    def _mean(self, generator, z):
        if self.shared is not None:
            return self.shared(generator, z)
        if not self.by_column:
            return self.mean(z)
        return sum(self.mean(column) for column in z.T) / math.sqrt(z.shape[1])


def normal_z(generator, n, depth):
    return generator.standard_normal((n, depth))


def uniform_z(generator, n, depth):
    return generator.uniform(-BOUND, BOUND, (n, depth))


def lognormal_z(generator, n, depth):
    return np.exp(generator.standard_normal((n, depth)))


def t2_z(generator, n, depth):
    return generator.standard_t(2, (n, depth))


def spikes_z(generator, n, depth):
    narrow = 1e-3 * generator.standard_normal((n, depth))
    return np.where(generator.uniform(size=(n, depth)) < 0.5, narrow, uniform_z(generator, n, depth))


def exponential_z(generator, n, depth):
    return generator.exponential(1.0, (n, depth)) - BOUND


def correlated_z(generator, n, depth):
    common = generator.standard_normal((n, 1))
    return math.sqrt(0.9) * common + math.sqrt(0.1) * normal_z(generator, n, depth)


def sites(count: int):
    """The number of a site, as a quantity on the bounds."""
    return lambda generator, n, depth: generator.integers(0, count, (n, depth)).astype(float)


def site_effects(generator, z):
    """An effect of each site on X and on Y alike, independent between sites."""
    effect = np.zeros(z.shape[0])
    for column in z.T:
        _, site = np.unique(column, return_inverse=True)
        effect += generator.standard_normal(site.max() + 1)[site]
    return effect / math.sqrt(z.shape[1])


def sine(frequency: float, size: float = SIZE):
    return lambda z: size * np.sin(frequency * z)


def of_first(function):
    return lambda z: function(z[:, 0])


def gauss(sd: float = 1.0):
    return lambda generator, z: sd * generator.standard_normal(z.shape[0])


def exponential(generator, z):
    return generator.exponential(1.0, z.shape[0]) - 1.0


def growing(generator, z):
    return (0.2 + np.mean(np.abs(z), axis=1)) * generator.standard_normal(z.shape[0])


def t2(generator, z):
    return generator.standard_t(2, z.shape[0])


def two_peaks(generator, z):
    return generator.choice([-1.0, 1.0], z.shape[0]) + 0.1 * generator.standard_normal(z.shape[0])


def outliers(generator, z):
    return np.where(generator.uniform(size=z.shape[0]) < 0.02, 100.0, generator.standard_normal(z.shape[0]))


def mostly_zero(generator, z):
    return np.where(generator.uniform(size=z.shape[0]) < 0.8, 0.0, 2 * generator.standard_normal(z.shape[0]))


def whole(generator, z):
    return np.round(generator.standard_normal(z.shape[0]))


def wide(generator, z):
    """A quarter of the values lies beyond the bounds and is clipped."""
    return 3.5 * generator.standard_normal(z.shape[0])


def steps(z):
    return SIZE * np.sign(np.sin(2 * math.pi * z))


NULLS = {
    # the eighteen of the derivation
    "sine 3": Null(normal_z, sine(3), gauss()),
    "sine 6": Null(normal_z, sine(6), gauss()),
    "linear": Null(normal_z, lambda z: SIZE * z, gauss()),
    "lognormal Z": Null(lognormal_z, lambda z: SIZE * np.sin(3 * np.log(z)), gauss(), bounds=(0.0, LONGEST)),
    "noise grows": Null(normal_z, sine(3), growing),
    "t2": Null(t2_z, sine(3), t2),
    "rounded Z": Null(lambda generator, n, depth: np.round(2 * normal_z(generator, n, depth)) / 2, sine(3), gauss()),
    "X exact": Null(normal_z, sine(3), gauss(0.0), gauss()),
    "X, Y exact": Null(normal_z, sine(3), gauss(0.0)),
    "X exact, Y noise 0.1": Null(normal_z, sine(3), gauss(0.0), gauss(0.1)),
    "noise 0.1": Null(normal_z, sine(3), gauss(0.1)),
    "steep": Null(normal_z, lambda z: 3 * np.tanh(20 * z), gauss()),
    "spikes": Null(spikes_z, sine(3), gauss()),
    "skewed noise": Null(normal_z, sine(3), exponential),
    "binary X, Y": Null(normal_z, sine(3), gauss(), binary=True),
    "exponential Z": Null(exponential_z, sine(3), gauss()),
    "beta Z": Null(lambda generator, n, depth: 2 * BOUND * generator.beta(2, 4, (n, depth)) - BOUND, sine(3), gauss()),
    "twins": Null(lambda g, n, d: np.repeat(normal_z(g, n - n // 2, d), 2, axis=0)[:n], sine(3), gauss()),
    # held out
    "uniform, sine 3": Null(uniform_z, sine(3), gauss(), of="held out"),
    "uniform, noise 0.1": Null(uniform_z, sine(3), gauss(0.1), of="held out"),
    "kink": Null(uniform_z, lambda z: 3 * np.abs(z) - 2 * BOUND, gauss(), of="held out"),
    "steps": Null(uniform_z, steps, gauss(), of="held out"),
    "one axis, sine 5": Null(normal_z, of_first(sine(5)), gauss(), by_column=False, of="held out"),
    "correlated Z": Null(correlated_z, lambda z: SIZE * z, gauss(), of="held out"),
    "product": Null(normal_z, lambda z: SIZE * np.prod(z, axis=1), gauss(), by_column=False, of="held out"),
    "sine 12": Null(normal_z, sine(12), gauss(), of="held out"),
    "20 sites": Null(sites(20), None, gauss(), bounds=(0, 19), shared=site_effects, of="held out"),
    "200 sites": Null(sites(200), None, gauss(), bounds=(0, 199), shared=site_effects, of="held out"),
    "20 sites, step": Null(sites(20), None, gauss(), bounds=(0, 19), shared=site_effects, values=20, of="held out"),
    "200 sites, step": Null(sites(200), None, gauss(), bounds=(0, 199), shared=site_effects, values=200, of="held out"),
    "whole X, Y": Null(normal_z, sine(3), whole, of="held out"),
    "clipped X, Y": Null(normal_z, sine(3), wide, of="held out"),
    "two peaks": Null(normal_z, sine(3), two_peaks, of="held out"),
    "outliers": Null(normal_z, sine(3), outliers, of="held out"),
    "mostly zero": Null(normal_z, sine(3), mostly_zero, of="held out"),
    "skewed noise that grows": Null(
        normal_z, sine(3), lambda g, z: (0.2 + np.abs(z[:, 0])) * exponential(g, z), of="held out"
    ),
}


def copied_by(mean):
    """Noise of Y where X is the first column of Z itself: Y follows `mean` of it."""
    return lambda generator, z: generator.standard_normal(z.shape[0]) + mean(z[:, 0]) - z[:, 0]


def two_clusters_z(generator, n, depth):
    return generator.choice([-2.0, 2.0], (n, depth)) + 0.3 * normal_z(generator, n, depth)


def far_outliers_z(generator, n, depth):
    return np.where(generator.uniform(size=(n, depth)) < 0.02, 100.0, normal_z(generator, n, depth))


def heavy_growing(generator, z):
    return (0.3 + np.abs(z[:, 0])) * generator.standard_t(3, z.shape[0])


# Thought of after every constant and rule was fixed.
UNSEEN = {
    "interaction": Null(normal_z, lambda z: SIZE * z[:, 0] * z[:, -1], gauss(), by_column=False, of="unseen"),
    "threshold": Null(normal_z, lambda z: 3.0 * (z > 0.5), gauss(), of="unseen"),
    "threshold of a product": Null(
        normal_z, lambda z: 3.0 * (np.prod(z, axis=1) > 0), gauss(), by_column=False, of="unseen"
    ),
    "heavy noise that grows": Null(normal_z, lambda z: SIZE * z, heavy_growing, of="unseen"),
    "coarse grid": Null(lambda g, n, d: np.round(normal_z(g, n, d)), sine(2), gauss(), of="unseen"),
    "outliers in Z": Null(far_outliers_z, sine(2), gauss(), of="unseen"),
    "constant Z": Null(lambda g, n, d: np.zeros((n, d)), sine(2), gauss(), of="unseen"),
    "Z copies X": Null(
        normal_z,
        of_first(lambda z: z),
        gauss(0.0),
        copied_by(lambda z: 2 * np.sin(2 * z)),
        by_column=False,
        of="unseen",
    ),
    "periodic": Null(uniform_z, sine(4), gauss(), of="unseen"),
    "two clusters": Null(two_clusters_z, sine(3, 2.0), gauss(), of="unseen"),
    "parabola": Null(uniform_z, lambda z: 0.4 * z**2 - 2.0, gauss(0.5), of="unseen"),
    "exponential growth": Null(normal_z, lambda z: np.exp(z) - 1.0, exponential, of="unseen"),
    "counts": Null(
        lambda g, n, d: g.poisson(3.0, (n, d)).astype(float), np.sqrt, gauss(), bounds=(0.0, 20.0), of="unseen"
    ),
    "bounds far too wide": Null(lambda g, n, d: 0.01 * normal_z(g, n, d), sine(300), gauss(), of="unseen"),
    "rounded Y": Null(
        normal_z, sine(2), gauss(), lambda g, z: np.round(1.5 * normal_z(g, len(z), 1)[:, 0]), of="unseen"
    ),
    "slopes": Null(normal_z, lambda z: SIZE * z * math.sqrt(2.0), gauss(), of="unseen"),
}


def find(name: str) -> Null:
    """A null of the suite or an unseen one."""
    return NULLS[name] if name in NULLS else UNSEEN[name]


def domain_of(null: Null, depth: int) -> Domain:
    """The public description of its columns."""
    side = (Column(BINARY, 2),) if null.binary else (Column(),)
    return Domain(side, side, (Column(values=null.values),) * depth)


def scaled(values, bounds: tuple[float, float]):
    """Values clipped to public bounds and mapped to [-1, 1], as a schema does."""
    lower, upper = bounds
    return 2 * (np.clip(values, lower, upper) - lower) / (upper - lower) - 1


def samples(null: Null, n: int, depth: int, replicates: int | range, seed: int, codes: bool):
    """x, y (replicates, n) and z (replicates, n, d) or None, scaled; coins as codes, or as scores -1 and 1.

    replicates: how many, or the numbers of those to draw.
    """
    numbers = range(replicates) if isinstance(replicates, int) else replicates
    drawn = [null.draw(np.random.default_rng((seed, r)), n, depth) for r in numbers]
    x, y = (np.stack([one[side] for one in drawn]) for side in range(2))
    z = scaled(np.stack([one[2] for one in drawn]), null.bounds) if depth else None
    if null.binary:
        return *((side.astype(np.int32) if codes else 2 * side - 1) for side in (x, y)), z
    return scaled(x, (-BOUND, BOUND)), scaled(y, (-BOUND, BOUND)), z
