"""What distinguishes one regression from another: its mean, and what normal columns would give; public functions.

mu is the mean of Y as a function of t = z'g, z = (1, columns), whitened. Theory: docs/theory/logistic_regression.md,
docs/theory/poisson_regression.md.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base.bisection import bisected

NODES = 24  # of the quadrature of a normal law
HALVINGS = 30
RAREST, RAREST_COUNT = 1e-3, 1e-5  # share of a yes, and mean of a count on [0, 1], that a start has at least
MIN_UNEXPLAINED = 0.05  # of the variance of a count: what a start leaves at least
CAP_SDS, CAP_LEAST = 1.3, 2.5  # of a Poisson mean: where records begin to weigh less, in sds of its logarithm
MAX_LOG = 60.0  # logarithm of a mean, beyond which nothing overflows
_POINTS, _WEIGHTS = np.polynomial.hermite_e.hermegauss(NODES)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
NORMAL = _POINTS, _WEIGHTS


class Family:
    """What most regressions have in common; docs/theory/logistic_regression.md."""

    overshot: ClassVar[float] = math.inf  # factor by which a step was too long from which on the next is shortened
    unlike: ClassVar[float] = math.inf  # of X's information: row of the others beyond which weights reach no farther
    moments: Callable[..., Any]  # (slopes, shift): means of scores of normal columns, and their derivatives

    def prepared(self, start):
        """The start with what many of the methods below need of it."""
        return start

    def model(self, start):
        """(of the scores, z z' mu'(z'g0)): means of normal columns at the start, (p,) and (p, p)."""
        return self.moments(start.slopes, start.shift)

    def away(self, start, model, slopes):
        """Expected scores of one normal record at the start if these are the slopes, (p,), and their derivatives."""
        value, products = self.moments(slopes, start.shift)
        return value - model[0], products

    def shift_of_rare(self, rate):
        """Sds from its mean, this rate, that Y is where a rare level of Z has its records, as far as is counted."""
        return 1.0

    def growth(self, slope):
        """Of the variance of X's score beyond the dispersion times its information, at this slope of X per sd."""
        return jnp.ones_like(slope)

    def settled(self, others, start, slope):
        """Where Newton's steps for the others begin, at a slope of X."""
        return others

    def limited(self, start, weighed, norm, own):
        """The weighed residuals (n,) of records whose weighed columns are this long: within what the units suppose."""
        return weighed


@dataclasses.dataclass(frozen=True)
class Logistic(Family):
    """P(Y = 1) = mu(t) = 1/(1 + e^-t)."""

    steepest: ClassVar[float] = 3.0  # sd of the log odds: largest of a start from moments
    limit: ClassVar[float] = 3.2  # largest slope per sd that an interval can hold
    precise: ClassVar[tuple[float, ...]] = (60.0, 150.0)  # sds of its noise that the information can be: a round more
    uneven: ClassVar[float] = 2.0  # of the records, more than which do not count where the columns are as modelled
    rare: ClassVar[float] = 5.0  # sds from the mean of X to its farther end level that make it rare: 4 % of the records
    sure: ClassVar[float] = 0.0  # sds of its noise, beyond which a start has a slope of X (#start-of-x)
    excess: ClassVar[float] = 0.0  # of the information beyond normal columns', how wrong away from the start (#pivot)
    few: ClassVar[float] = 0.25  # of the information of normal columns, below which few records vary X; about as rare
    widest: ClassVar[float] = 1.6  # times as far the weights may reach, where noise is seen to be little
    noise: ClassVar[float] = 0.1  # its variance over that of the sampling, that then remains
    skewness: ClassVar[float] = 0.7  # of columns that is allowed for, weighed by mu': it bends the expected scores
    bent: ClassVar[float] = 0.04  # of a slope: how far weights may move it where log odds bend (#pivot)
    squares: ClassVar[bool] = False  # whether the squares of X's score are released: its variance is not known

    def shift_of_rare(self, rate):
        """Sds from its mean, this rate, of the rarer of the two values of Y."""
        less = jnp.clip(jnp.minimum(rate, 1.0 - rate), 1e-6, 0.5)
        return jnp.sqrt((1.0 - less) / less)

    def moments(self, slopes, shift):
        """Means of z mu(z'g) (p,), and of z z' mu'(z'g) (p, p), for whitened columns that are normal."""
        return normal_model(slopes)

    def start(self, mean, variance, with_y, noise):
        """(g, shift, dispersion) for normal columns with this mean of y and these covariances with it, (d,)."""
        rate = jnp.clip(mean, RAREST, 1.0 - RAREST)
        return normal_start(rate, with_y), jnp.zeros_like(with_y), jnp.ones_like(mean)

    def clear(self, mean, noise):
        """How clearly there is a Y to explain, in sds of its noise; infinite if it surely is."""
        return jnp.full_like(mean, jnp.inf)

    def largest(self, start):
        """Of w mu'."""
        return 0.25

    def score_unit(self, start):
        """How far one record moves the weighed scores, at most (#sensitivity)."""
        return 2.0 * start.radius * jax.nn.sigmoid(jnp.abs(start.slopes[0]) + along(start) * start.radius)

    def residuals(self, start, t, response):
        """(w (y - mu), w mu') by this family's own weights."""
        chance = jax.nn.sigmoid(t)
        return response - chance, chance * (1.0 - chance)


LOGISTIC = Logistic()


@dataclasses.dataclass(frozen=True)
class Poisson(Family):
    """E Y = mu(t) = e^t, of a Y within [0, 1] whatever its law. Own weights: min(1, cap/mu), of X and Z alone."""

    steepest: ClassVar[float] = 1.5  # sd of the log mean
    limit: ClassVar[float] = 2.0
    precise: ClassVar[tuple[float, ...]] = (120.0, 300.0)
    rare: ClassVar[float] = 3.5  # 7.5 % of the records; below them a start's slope of X bends its score (#rare)
    few: ClassVar[float] = 0.0
    uneven: ClassVar[float] = 2.0
    widest: ClassVar[float] = 2.0
    noise: ClassVar[float] = 0.5  # weights that reach farther need less of `bent`
    skewness: ClassVar[float] = 0.7
    bent: ClassVar[float] = 0.06  # as on real tables (#pivot)
    squares: ClassVar[bool] = True
    overshot: ClassVar[float] = 1.25  # beside skewed columns; normal ones stay below (#rounds)
    unlike: ClassVar[float] = 0.15
    sure: ClassVar[float] = 3.0
    excess: ClassVar[float] = 0.3

    def moments(self, slopes, shift):
        """Means of z e^(z'g) (p,), and of z z' e^(z'g) (p, p), for normal columns of mean -shift."""
        along = slopes[1:] - shift
        mean = jnp.exp(slopes[0] - slopes[1:] @ shift + 0.5 * jnp.sum(slopes[1:] ** 2))
        z = jnp.append(jnp.ones_like(mean), along)
        inner = jnp.eye(len(slopes), dtype=slopes.dtype).at[0, 0].set(0.0)
        return mean * z, mean * (jnp.outer(z, z) + inner)

    def start(self, mean, variance, with_y, noise):
        """(g, shift, dispersion): weighed by their means, normal columns lie about their slopes, which is the shift."""
        rate = jnp.maximum(mean, jnp.maximum(noise, RAREST_COUNT))
        slopes = with_y / rate
        size = jnp.sqrt(jnp.sum(slopes**2) + 1e-12)
        slopes = slopes * jnp.minimum(1.0, self.steepest / size)
        square = jnp.sum(slopes**2)
        unexplained = variance + noise - rate**2 * jnp.expm1(square)
        dispersion = jnp.maximum(unexplained, MIN_UNEXPLAINED * (variance + noise)) / rate
        return jnp.append(jnp.log(rate) + 0.5 * square, slopes), slopes, jnp.maximum(dispersion, RAREST_COUNT)

    def clear(self, mean, noise):
        """The mean of Y, in sds of its noise: below some there is nothing to explain."""
        return mean / (2.0 * noise)

    def growth(self, slope):
        """Of the variance where it grows as the square of the mean, as in overdispersed counts (#variance)."""
        return 1.0 + slope**2

    def largest(self, start):
        """The cap: of w mu. Beyond it are few records even as their means weigh them."""
        square = jnp.sum(start.slopes[1:] ** 2)
        mean = jnp.exp(start.slopes[0] - start.slopes[1:] @ start.shift + 0.5 * square)
        over = jnp.maximum(jnp.exp(0.5 * square + CAP_SDS * jnp.sqrt(square)), CAP_LEAST)
        return jnp.clip(start.reach**2 * mean * over, RAREST_COUNT, 1.0)

    def score_unit(self, start):
        """How far one record moves the weighed scores, at most: less in L1, as two share a constant (#sensitivity)."""
        limit, far = start.radius, self.farthest(start)
        if start.euclidean:
            return 2.0 * limit * far
        same = (limit - 2.0 * start.weights[0]) * self.farthest(start, 2.0)
        return limit * far + jnp.maximum(jnp.maximum(same, 0.5 * limit), limit * self.largest(start))

    def farthest(self, start, times=1.0):
        """Of w |y - mu|, for records as far as this many R: all that can be where few are expected, or the cap."""
        few = jnp.exp(jnp.minimum(start.slopes[0], 0.0) - along(start) * times * start.radius)
        return jnp.maximum(self.largest(start), 1.0 - few)

    def square_unit(self, start):
        """Largest square of X's weighed score: of records within twice R, and beyond (#sensitivity)."""
        most, limit, constant = start.farthest, start.radius, start.weights[0]
        own = jnp.sqrt(limit**2 - constant**2) if start.euclidean else limit - constant  # the constant has its part
        near = jnp.minimum(most, own) * self.farthest(start, 2.0)
        return jnp.maximum(near, jnp.minimum(most, 0.5 * limit)) ** 2

    def residuals(self, start, t, response):
        """(w (y - mu), w mu) by this family's own weights."""
        mean, cap = jnp.exp(jnp.minimum(t, MAX_LOG)), self.largest(start)
        kept = jnp.minimum(1.0, cap / mean)
        return kept * response - kept * mean, kept * mean

    def settled(self, others, start, slope):
        """The constant at which the mean of Y stays as it is."""
        known = start.slopes[-1]
        return others.at[0].add((slope - known) * start.shift[-1] - 0.5 * (slope**2 - known**2))


POISSON = Poisson()


def along(start):
    """How fast z'g grows with the norm of the weighed z, at most."""
    steep = jnp.abs(start.slopes[1:]) / start.weights[1:]
    return jnp.sqrt(jnp.sum(steep**2)) if start.euclidean else jnp.max(steep)


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

    def constant(sd):
        far = jnp.full_like(sd, 30.0)
        return bisected(lambda a: weights @ jax.nn.sigmoid(a + sd * points) < rate, -far, far, HALVINGS)[0]

    def covers(sd):
        chance = jax.nn.sigmoid(constant(sd) + sd * points)
        return sd * (weights @ (chance * (1.0 - chance))) < size

    sd, _ = bisected(covers, jnp.zeros_like(size), jnp.full_like(size, Logistic.steepest), HALVINGS)
    return jnp.concatenate([constant(sd)[None], sd * with_y / size])
