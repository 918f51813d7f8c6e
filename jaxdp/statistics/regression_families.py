"""What distinguishes one regression from another: its mean, and what normal columns would give; public functions.

mu is the mean of Y as a function of t = z'g, z = (1, columns), whitened. Theory: docs/theory/logistic_regression.md.
"""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

NODES = 24  # of the quadrature of a normal law
HALVINGS = 30
_POINTS, _WEIGHTS = np.polynomial.hermite_e.hermegauss(NODES)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


@dataclasses.dataclass(frozen=True)
class Logistic:
    """P(Y = 1) = mu(t) = 1/(1 + e^-t)."""

    steepest: ClassVar[float] = 3.0  # sd of the log odds: largest of a start from moments
    limit: ClassVar[float] = 3.2  # largest slope per sd that an interval can hold
    precise: ClassVar[tuple[float, ...]] = (60.0, 150.0)  # sds of its noise that the information can be: a round more
    uneven: ClassVar[float] = 2.0  # of the records, more than which do not count where the columns are as modelled
    widest: ClassVar[float] = 1.6  # times as far the weights may reach, where noise is seen to be little
    skewness: ClassVar[float] = 0.7  # of columns that is allowed for, weighed by mu': it bends the expected scores

    def moments(self, slopes, shift):
        """Means of z mu(z'g) (p,), and of z z' mu'(z'g) (p, p), for whitened columns that are normal."""
        del shift
        return normal_model(slopes)

    def start(self, mean, variance, with_y, noise):
        """(g, shift, dispersion) for normal columns with this mean of y and these covariances with it, (d,)."""
        del variance, noise
        return normal_start(mean, with_y), jnp.zeros_like(with_y), jnp.ones_like(mean)

    def clear(self, mean, noise):
        """How clearly there is a Y to explain, in sds of its noise; infinite if it surely is."""
        del noise
        return jnp.full_like(mean, jnp.inf)

    def growth(self, slope):
        """Of the variance of X's score beyond the dispersion times its information, at this slope of X per sd."""
        return jnp.ones_like(slope)

    def largest(self, start):
        """Of w mu'."""
        del start
        return 0.25

    def score_unit(self, start):
        """How far one record moves the weighed scores, at most (#sensitivity)."""
        steep = jnp.abs(start.slopes) / start.weights
        along = jnp.sqrt(jnp.sum(steep[1:] ** 2)) if start.euclidean else jnp.max(steep[1:])
        return 2.0 * start.radius * jax.nn.sigmoid(jnp.abs(start.slopes[0]) + along * start.radius)

    def residuals(self, start, t, response):
        """(w (y - mu), w mu') by this family's own weights."""
        del start
        chance = jax.nn.sigmoid(t)
        return response - chance, chance * (1.0 - chance)

    def settled(self, others, start, slope):
        """Where Newton's steps for the others begin, at a slope of X."""
        del start, slope
        return others


LOGISTIC = Logistic()


def normal_model(slopes):
    """Means of z mu(z'g) (p,), and of z z' mu'(z'g) (p, p), for whitened columns that are normal."""
    sd = jnp.sqrt(jnp.sum(slopes[1:] ** 2) + 1e-12)
    chance = jax.nn.sigmoid(slopes[0] + sd * jnp.asarray(_POINTS, slopes.dtype))
    steep = chance * (1.0 - chance)
    weights = jnp.asarray(_WEIGHTS, slopes.dtype)
    mean, first, second, third = (
        weights @ part for part in (chance, steep, steep * (1.0 - 2.0 * chance), steep * (1.0 - 6.0 * steep))
    )
    unit = jnp.eye(len(slopes), dtype=slopes.dtype)
    along = slopes.at[0].set(0.0)
    cross = jnp.outer(unit[0], along)
    products = first * unit + second * (cross + cross.T) + third * jnp.outer(along, along)
    return mean * unit[0] + first * along, products


def normal_start(rate, with_y):
    """g (p,) of whitened normal columns with this rate of y and these covariances with it, (d,)."""
    size = jnp.sqrt(jnp.sum(with_y**2) + 1e-12)
    points, weights = jnp.asarray(_POINTS, with_y.dtype), jnp.asarray(_WEIGHTS, with_y.dtype)

    def bisected(below, low, high):
        def halve(_, ends):
            low, high = ends
            middle = 0.5 * (low + high)
            under = below(middle)
            return jnp.where(under, middle, low), jnp.where(under, high, middle)

        return jax.lax.fori_loop(0, HALVINGS, halve, (low, high))[0]

    def constant(sd):
        far = jnp.full_like(sd, 30.0)
        return bisected(lambda a: weights @ jax.nn.sigmoid(a + sd * points) < rate, -far, far)

    def covers(sd):
        chance = jax.nn.sigmoid(constant(sd) + sd * points)
        return sd * (weights @ (chance * (1.0 - chance))) < size

    sd = bisected(covers, jnp.zeros_like(size), jnp.full_like(size, Logistic.steepest))
    return jnp.concatenate([constant(sd)[None], sd * with_y / size])
