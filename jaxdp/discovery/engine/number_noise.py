"""Laws of the noise of numbers that a search releases together: what chance explains, what a number says of a signal.

Theory: docs/theory/max_min_pc.md#numbers. Post-processing of released numbers.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Protocol

import numpy as np
from scipy.special import erfc, gammaincc, gammainccinv, log_ndtr

from jaxdp.noise import survival

RADII = (np.arange(64) + 0.5) / 64  # quantiles of the radius of the cube over which a density is averaged
LEAST = 1e-300  # of chances and densities whose logarithm is taken


class NumberNoise(Protocol):
    """The law of the noise of one number."""

    @property
    def spread(self) -> float:
        """Scale of Laplace noise, sd of other noise."""

    def chance_above(self, values: np.ndarray) -> np.ndarray:
        """The chance that the noise is above each value."""

    def log_density(self, x: np.ndarray, mean: np.ndarray) -> np.ndarray:
        """Log density of an exponential signal of each mean plus the noise, up to a constant of the noise."""


@dataclasses.dataclass(frozen=True)
class NormalNoise:
    """Normal noise."""

    spread: float

    def chance_above(self, values: np.ndarray) -> np.ndarray:
        return 0.5 * erfc(np.asarray(values, float) / self.spread / math.sqrt(2.0))

    def log_density(self, x: np.ndarray, mean: np.ndarray) -> np.ndarray:
        sd = self.spread
        return log_ndtr(x / sd - sd / mean) - x / mean + 0.5 * (sd / mean) ** 2 - np.log(mean)


@dataclasses.dataclass(frozen=True)
class LaplaceNoise:
    """Laplace noise."""

    spread: float

    def chance_above(self, values: np.ndarray) -> np.ndarray:
        return survival.laplace(np.asarray(values, float), self.spread, xp=np)

    def log_density(self, x: np.ndarray, mean: np.ndarray) -> np.ndarray:
        signal, noise = 1.0 / mean, 1.0 / self.spread
        above = np.maximum(x, 0.0)
        gap = np.maximum(np.abs(noise - signal), 1e-9 * noise)
        with np.errstate(divide="ignore"):  # at 0 nothing lies between 0 and x
            between = np.log(-np.expm1(-gap * above)) - np.minimum(signal, noise) * above - np.log(gap)
        beyond = -signal * above - np.log(signal + noise)
        return np.where(x <= 0, noise * x - np.log(signal + noise), np.logaddexp(between, beyond)) + np.log(signal)


@dataclasses.dataclass(frozen=True)
class CubeNoise:
    """One coordinate of the noise of the cube (`MaxNorm`): uniform on [-R, R], R of the gamma law of shape count + 1.

    growth: mean growth of the radius with a coordinate. count: numbers released together; of one it is Laplace noise.
    """

    growth: float
    count: int

    @property
    def spread(self) -> float:
        """Its sd."""
        return self.growth * math.sqrt((self.count + 1.0) * (self.count + 2.0) / 3.0)

    def chance_above(self, values: np.ndarray) -> np.ndarray:
        x = np.abs(np.asarray(values, float)) / self.growth
        half = 0.5 * (gammaincc(self.count + 1.0, x) - x / self.count * gammaincc(self.count, x))
        return np.where(np.asarray(values) > 0, half, 1.0 - half)

    def log_density(self, x: np.ndarray, mean: np.ndarray) -> np.ndarray:
        """The mean of what is exact for each radius, over quantiles of the radii that leave a signal above 0."""
        x, mean = np.asarray(x, float), np.asarray(mean, float)[..., None]
        left = np.maximum(gammaincc(self.count, -np.minimum(x, 0.0) / self.growth), LEAST)
        radius = self.growth * gammainccinv(self.count, left[..., None] * RADII)
        far, near = (np.maximum(x[..., None] + side * radius, 0.0) / mean for side in (1.0, -1.0))
        density = (np.exp(-near) * -np.expm1(near - far)).mean(axis=-1)
        return np.log(np.maximum(left * density, LEAST)) - math.log(2.0 * self.count * self.growth)
