"""A regression made from a loss: `jax.grad` gives its scores, and a check of it on public numbers what it models.

loss(t, y) is convex in t, the linear predictor, and its score r = -d loss/dt is linear in y: r = r0 + s (r1 - r0), s in
[0, 1] the place of y between the ends of its public range and r0, r1 the scores there. So E r = 0 where the mean of s
is m(t) = r0/(r0 - r1), whatever the law of Y, and the information is c(t) = -dr/dt at that mean. t is counted in units
of a seventh of the way between the predictors of 1 and 99 % of Y's range, from the middle of it.
Theory: docs/theory/m_estimator.md.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base.bisection import bisected
from jaxdp._base.pytree import frozen_pytree
from jaxdp.statistics.regression_families import (
    CAP_LEAST,
    CAP_SDS,
    HALVINGS,
    LOGISTIC,
    MIN_UNEXPLAINED,
    NORMAL,
    POISSON,
    Family,
    along,
)

NEAR = 0.01  # of the range of Y: the predictors of this and of 1 less this are `UNITS` units apart
UNITS = 7.0  # so that slopes and steps are about as long as those of log odds and of log means
EDGE = 1.5 * UNITS  # largest |t|: beyond it a record counts for nothing
RAREST = 1e-4  # of the range of Y: how far its mean is from either end at least
SPACING, NORMS = 1.02, 64  # of the lengths, beyond R, between which the largest score is bounded
ROUNDING, TINY = 1e-9, 1e-30
LINEAR = 1e-6  # of the largest score: how far scores may be from a line in Y
_PLACES, _PARTS = np.polynomial.legendre.leggauss(6)  # along the way from the start to other slopes
_PLACES, _PARTS = 0.5 * (1.0 + _PLACES), 0.5 * _PARTS


def _as_nearer(name: str) -> Any:
    """That of the logistic loss where the mean is limited on both sides, else of Poisson's."""
    return property(lambda loss: getattr(LOGISTIC if loss.bounded else POISSON, name))


@dataclasses.dataclass(frozen=True)
class Loss(Family):
    """E r(t, Y) = 0 for the scores r of a loss; made and checked by `of`. Own weights: of t alone.

    low, high: public ends of Y, in the units in which the loss reads it. centre, scale: of the units of t.
    falls: whether the mean of Y falls in t, so that s counts from its upper end. size: r1 - r0 at the centre, the unit
    of scores. largest_information: of c. linear: whether scores are linear in Y between its ends too. bounded: whether
    all means stay within the range of Y, as probabilities do.
    """

    loss: Callable[[Any, Any], Any]
    low: float
    high: float
    centre: float = 0.0
    scale: float = 1.0
    falls: bool = False
    size: float = 1.0
    largest_information: float = 1.0
    linear: bool = True
    bounded: bool = False

    steepest: ClassVar[float] = UNITS / 3.0
    limit: ClassVar[float] = 0.4 * UNITS
    uneven: ClassVar[float] = 2.0
    skewness: ClassVar[float] = 0.7
    squares: ClassVar[bool] = True

    @classmethod
    def of(cls, loss, low: float, high: float) -> Loss:
        """The family. Errors: ValueError, in one sentence, for a loss that is none."""
        return _checked(loss, low, high)

    # As of the nearer of both families that were measured on real tables.
    rare, sure, excess, few = map(_as_nearer, ("rare", "sure", "excess", "few"))
    widest, noise, bent = map(_as_nearer, ("widest", "noise", "bent"))

    @property
    def precise(self) -> tuple[float, ...]:
        """As of probabilities, or of means whose records are far fewer than could be as informative."""
        return LOGISTIC.precise if self.bounded else tuple(CAP_LEAST * least for least in POISSON.precise)

    # The loss

    def scores(self, t):
        """(r0, r1, c) at t, each of its shape: NaN where the loss is."""
        return _scores(self, t)

    def mean(self, t):
        """(m, dm/dt, c, dm/dt over the scores' slope in s) at t within the edges."""
        first, second, information = self.scores(jnp.clip(t, -EDGE, EDGE))
        slope = second - first
        return -first / slope, information / slope, information, information / slope**2

    # The model of normal columns

    def prepared(self, start):
        """With the caps, and with what bounds the scores of records."""
        return start if start.known is not None else dataclasses.replace(start, known=_known_of(start))

    def _weighed(self, start, t):
        """(w r0, w r1, w c) by own weights, of t alone; 0 beyond the edges and where the loss is not finite."""
        first, second, information = self.scores(jnp.clip(t, -EDGE, EDGE))
        of_scores, of_information = self.prepared(start).known.caps
        farthest = jnp.maximum(jnp.maximum(jnp.abs(first), jnp.abs(second)), TINY)
        kept = jnp.minimum(1.0, jnp.minimum(of_scores / farthest, of_information / jnp.maximum(information, TINY)))
        finite = jnp.isfinite(first) & jnp.isfinite(second) & jnp.isfinite(information) & (jnp.abs(t) <= EDGE)
        return tuple(
            jnp.where(finite, jnp.where(finite, kept, 0.0) * jnp.where(finite, part, 0.0), 0.0)
            for part in (first, second, jnp.maximum(information, 0.0))
        )

    def _products(self, start, slopes):
        """Means of z z' w c(z'g) (p, p), for normal columns of mean -shift."""
        moved = jnp.eye(len(slopes), dtype=slopes.dtype).at[1:, 0].set(-start.shift)
        centred = slopes.at[0].add(-slopes[1:] @ start.shift)
        sd = jnp.sqrt(jnp.sum(centred[1:] ** 2) + 1e-12)
        way = centred.at[0].set(0.0) / sd
        points, weights = _nodes(sd)
        weights = weights * self._weighed(start, centred[0] + sd * points)[2]
        zeroth, first, second = jnp.sum(weights), weights @ points, weights @ points**2
        unit = jnp.eye(len(slopes), dtype=slopes.dtype)
        cross = jnp.outer(unit[0], way)
        centred_products = zeroth * unit + first * (cross + cross.T) + (second - zeroth) * jnp.outer(way, way)
        return moved @ centred_products @ moved.T

    def model(self, start):
        """(nothing, means of z z' w c(z'g0) for normal columns, (p, p))."""
        return None, self._products(start, start.slopes)

    def away(self, start, model, slopes):
        """Expected scores of one normal record at the start if these are the slopes, (p,), and their derivatives.

        The information along the way between both, since a loss has no integral of it.
        """
        way = slopes - start.slopes
        places = jnp.asarray(np.append(_PLACES, 1.0), slopes.dtype)
        *between, there = jax.vmap(lambda place: self._products(start, start.slopes + place * way))(places)
        return jnp.tensordot(jnp.asarray(_PARTS, slopes.dtype), jnp.stack(between), 1) @ way, there

    def start(self, mean, variance, with_y, noise):
        """(g, shift, dispersion) for normal columns with this mean of s and these covariances with it, (d,).

        The shift makes columns unrelated to the constant as the information weighs them; the dispersion is that of a
        variance of Y as the loss supposes it, m'(t) over the scores' slope, times a constant.
        """
        rate = jnp.clip(mean, RAREST, 1.0 - RAREST)
        size = jnp.sqrt(jnp.sum(with_y**2) + 1e-12)
        points, weights = _nodes(size)

        def constant(sd):
            edge = jnp.full_like(sd, EDGE)
            return bisected(lambda a: weights @ self.mean(a + sd * points)[0] < rate, -edge, edge, HALVINGS)[0]

        def covers(sd):
            return sd * (weights @ self.mean(constant(sd) + sd * points)[1]) < size

        sd, _ = bisected(covers, jnp.zeros_like(size), jnp.full_like(size, self.steepest), HALVINGS)
        middle, way = constant(sd), with_y / size
        means, _, information, variances = self.mean(middle + sd * points)
        shift = way * (weights @ (information * points)) / (weights @ information)
        explained = weights @ means**2 - (weights @ means) ** 2
        left = jnp.maximum(variance + noise - explained, MIN_UNEXPLAINED * (variance + noise))
        slopes = jnp.append(middle + sd * (way @ shift), sd * way)
        return slopes, shift, left / (weights @ variances)

    def clear(self, mean, noise):
        """How far the mean of s is from the least and the largest that are modelled, in sds of its noise."""
        least, most = self.mean(jnp.array([-EDGE, EDGE], mean.dtype))[0]
        return jnp.minimum(mean - least, most - mean) / (2.0 * noise)

    # What one record can do

    def largest(self, start):
        """Of w c."""
        return self.prepared(start).known.caps[1]

    def residuals(self, start, t, response):
        """(w r, w c) by own weights."""
        first, second, information = self._weighed(start, t)
        return first + response * (second - first), jnp.minimum(information, self.largest(start))

    def score_unit(self, start):
        """How far one record moves the weighed scores, at most: less in L1, as two share a constant (#sensitivity)."""
        most, less = self.prepared(start).known.bounds
        if start.euclidean:
            return 2.0 * jnp.max(most)
        return jnp.maximum(jnp.sum(most), jnp.max(most + less))

    def square_unit(self, start):
        """Largest square of X's weighed score (#sensitivity)."""
        return self.prepared(start).known.own ** 2

    def limited(self, start, weighed, norm, own):
        """Within the bounds above, whatever function the loss is; of a convex one nothing is cut."""
        known = self.prepared(start).known
        most = known.bounds[0][:, None] / norm[None]
        if not start.euclidean:
            less = known.bounds[1][:, None] / jnp.maximum(norm - 2.0 * start.weights[0], TINY)[None]
            most = jnp.minimum(most, less)
        most = jnp.minimum(most, (known.own / jnp.maximum(jnp.abs(own), TINY))[None])
        return jnp.clip(weighed, -most[1], most[0])


# each a program of its own, so that a loss is traced once where it is needed many times


@functools.partial(jax.jit, static_argnames="family")
def _scores(family: Loss, t):
    shape, t = jnp.shape(t), jnp.ravel(t)

    def at(y):
        def score(t):
            return -jax.grad(family.loss)(family.centre + family.scale * t, jnp.asarray(y, t.dtype)) / family.size

        return jax.vmap(jax.value_and_grad(score))(t)

    (first, fall), (second, other) = map(at, _ends(family))
    mean = first / (first - second)
    information = -(fall + mean * (other - fall))
    return tuple(part.reshape(shape) for part in (first, second, information))


def _caps(start):
    """(of scores, of information) beyond which records weigh less: few of normal columns do."""
    family = start.family
    sd = jnp.sqrt(jnp.sum(start.slopes[1:] ** 2) + TINY)
    middle = start.slopes[0] - start.slopes[1:] @ start.shift
    first, second, information = family.scores(
        jnp.clip(middle + sd * CAP_SDS * jnp.array([-1.0, 0.0, 1.0]), -EDGE, EDGE)
    )
    of_scores = jnp.max(jnp.maximum(jnp.abs(first), jnp.abs(second)))
    points, weights = _nodes(sd)
    average = weights @ family.mean(middle + sd * points)[2]
    of_information = jnp.maximum(CAP_LEAST * average, jnp.max(information))
    wide, most = start.reach**2, family.largest_information
    return wide * of_scores, jnp.clip(wide * of_information, RAREST * most, most)


@frozen_pytree
class Known:
    """Of a start: caps, (of scores, of information); bounds, two of shape (2,), with N and with N less the constant's
    part; own: most that the weighed score of X can be."""

    caps: Any
    bounds: Any
    own: Any


@jax.jit
def _known_of(start) -> Known:
    caps = _caps(start)
    lengths, scores = _lengths(start, caps[0])
    limit, constant = start.radius, start.weights[0]

    def most(profile):
        """In each step of lengths, and beyond them."""
        return jnp.maximum(jnp.max(profile[:-1][None] * scores, axis=1), profile[-1] * caps[0])

    def within(cut):
        """Of w N |r|, of either sign, with N less `cut`.

        Before R the weight is at most 1, and lengths and scores grow together; behind it w = (R/N)^2 at most.
        """
        return most(limit**2 * (lengths - cut) / lengths**2)

    # X has what the constant leaves of the length
    left = jnp.sqrt(lengths**2 - constant**2) if start.euclidean else lengths - constant
    own = jnp.max(most(jnp.minimum(start.farthest, (limit / lengths) ** 2 * left)))
    return Known(caps=caps, bounds=(within(0.0), within(2.0 * constant)), own=own)


def _lengths(start, cap):
    """(lengths N, (k + 1,); largest w r and -w r, (2, k), of records that are no longer than the next of them).

    Convex losses have scores that fall in t, so the ends of its range decide.
    """
    lengths = start.radius * SPACING ** jnp.arange(NORMS + 1.0)
    constant = start.weights[0]
    rest = jnp.sqrt(lengths[1:] ** 2 - constant**2) if start.euclidean else lengths[1:] - constant
    reach, middle = along(start) * rest, start.slopes[0]
    edge = functools.partial(jnp.clip, min=-EDGE, max=EDGE)
    most = jnp.nan_to_num(start.family.scores(edge(middle - reach))[1], nan=jnp.inf)
    least = jnp.nan_to_num(start.family.scores(edge(middle + reach))[0], nan=-jnp.inf)
    return lengths, jnp.clip(jnp.stack([most, -least]), 0.0, cap)


def _nodes(like):
    """Points and weights of the quadrature of a normal law."""
    return tuple(jnp.asarray(part, like.dtype) for part in NORMAL)


def _checked(loss, low: float, high: float) -> Loss:
    if not callable(loss):
        raise ValueError(
            f"loss must be a function loss(t, y), got {type(loss).__name__}; in Python "
            'fields={"loss": loss} of jaxdp.test hands one on.'
        )
    if not all(isinstance(end, int | float | np.number) for end in (low, high)):
        raise ValueError("low and high, the public ends of y, must be numbers.")
    if not low < high or not np.isfinite(high - low):
        raise ValueError("low must be below high, both finite: they are the public ends of y.")
    try:
        return _known(loss, float(low), float(high))
    except TypeError:
        if getattr(type(loss), "__hash__", None) is None:
            raise ValueError("loss must be a function, or an object that can be hashed.") from None
        raise


@functools.lru_cache(maxsize=64)
def _known(loss, low: float, high: float) -> Loss:
    with jax.enable_x64(True), jax.ensure_compile_time_eval():
        _require_function(loss)
        gradient = jax.jit(jax.vmap(jax.grad(loss), in_axes=(0, None)))

        def score(points, y: float):
            return -np.asarray(gradient(jnp.asarray(points), jnp.asarray(y)))

        return _require_model(_in_units(Loss(loss, low, high), score), score)


def _require_function(loss) -> None:
    """Raises ValueError unless the loss takes two numbers and returns one, as JAX traces it."""
    number = jax.ShapeDtypeStruct((), jnp.float64)
    try:
        told = jax.tree.leaves(jax.eval_shape(loss, number, number))
    except Exception as error:
        raise ValueError(
            "loss must be a function loss(t, y) of two numbers, written with jax.numpy, and calling it raised "
            f"{type(error).__name__}."
        ) from None
    if len(told) != 1 or told[0].shape != () or not jnp.issubdtype(told[0].dtype, jnp.floating):
        shapes = " and ".join(f"{one.dtype} of shape {one.shape}" for one in told) or "nothing"
        raise ValueError(f"loss must return one real number for one t and one y, and it returns {shapes}.")


def _ends(family: Loss) -> tuple[float, float]:
    """Of Y, where s is 0 and 1."""
    return (family.high, family.low) if family.falls else (family.low, family.high)


def _in_units(family: Loss, score) -> Loss:
    """With the units of t, where the loss has a least value for Y near either end of its range."""
    far = 2.0 ** np.arange(-20.0, 61.0)
    points = np.concatenate([-far[::-1], [0.0], far])
    first, second = (score(points, y) for y in _ends(family))
    finite = np.isfinite(first) & np.isfinite(second)
    if not finite.any():
        raise ValueError("loss has no finite gradient in t: write it so that jax.grad of it is finite.")
    nearest = np.flatnonzero(finite)[np.abs(points[finite]).argmin()]
    family = dataclasses.replace(family, falls=bool(second[nearest] < first[nearest]))
    low, high = (_root(family, score, points[finite], place) for place in (NEAR, 1.0 - NEAR))
    if not low < high:
        raise ValueError("loss is not convex in t: the mean of y that it models does not move one way with t.")
    return dataclasses.replace(family, centre=0.5 * (low + high), scale=(high - low) / UNITS)


def _root(family: Loss, score, points, place: float) -> float:
    """The predictor t whose mean of Y is at this place of its range."""
    for _ in range(6):
        first, second = (score(points, y) for y in _ends(family))
        at_place = first + place * (second - first)
        below = np.flatnonzero((at_place[:-1] >= 0.0) & (at_place[1:] < 0.0))
        if not below.size:
            raise ValueError(
                "loss has no least value in t for a y near an end of its public range: every mean of y within the "
                f"range, here from {family.low:g} to {family.high:g}, needs a t of its own."
            )
        points = np.linspace(points[below[0]], points[below[0] + 1], 65)
    return float(points[32])


def _require_model(family: Loss, score) -> Loss:
    """The family with its public numbers, if the loss is convex with finite scores over the whole range of t."""
    points = np.linspace(-EDGE, EDGE, 421)
    first, second, information = (np.asarray(part) for part in jax.jit(family.scores)(points))
    if not all(np.isfinite(part).all() for part in (first, second, information)):
        raise ValueError(
            "the gradient of loss, or its second derivative, is not finite for t between "
            f"{family.centre - EDGE * family.scale:.4g} and {family.centre + EDGE * family.scale:.4g}: write it so "
            "that it is finite there, with jax.nn.softplus or jax.scipy.stats.norm.logcdf for instance."
        )
    if any(np.any(np.diff(part) > ROUNDING * np.abs(part).max()) for part in (first, second)):
        raise ValueError("loss is not convex in t: its second derivative must be 0 or more for every y.")
    slope = second - first
    if slope.min() <= 0.0 or information.max() <= 0.0:
        raise ValueError("the score of loss, -d loss/dt, must move one way with y, and loss must bend, at every t.")
    size = float(slope[len(points) // 2])
    return dataclasses.replace(
        family,
        size=size,
        largest_information=float(information.max()) / size,
        linear=_is_linear(family, score, points, first, second),
        bounded=bool(first.max() <= 0.0 <= second.min()),
    )


def _is_linear(family: Loss, score, points, first, second) -> bool:
    """Whether scores between the ends of Y lie on the line between those at its ends."""
    low, high = _ends(family)
    allowed = LINEAR * np.maximum(np.abs(first), np.abs(second)).max()
    for share in np.linspace(0.0, 1.0, 9)[1:-1]:
        between = score(family.centre + family.scale * points, low + share * (high - low))
        if not np.all(np.abs(between - (first + share * (second - first))) <= allowed):
            return False
    return True
