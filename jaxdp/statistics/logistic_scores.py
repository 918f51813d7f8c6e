"""Scores of a logistic model about a start that noisy moments give, and what their sums say about one slope.

Columns v (n, d), the one asked about, X, the last. m and L^-1, lower triangular, whiten them by noisy moments: z =
(1, L^-1 (v - m)) has p = d + 1 coordinates, and X is in the last alone. The model is P(Y = 1) = mu(z'g), mu the
logistic function, and g0 the start. A record has the scores w (y - mu(z'g0)) z and the information w mu'(z'g0) z_X z,
the row of X; w = min(1, (R/N)^2), N a norm of (z_X, kappa z_others). Theory: docs/theory/logistic_regression.md.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base.pytree import frozen_pytree

CLEAR = 10.0  # sds of its noise that the information about X must be
OTHERS = 0.3  # kappa: weight of the other coordinates in the scores that are released
PER_OTHER = 2.0  # q: theirs in the row of information is q kappa, where the bound is one in L1
FARTHEST = 2.5  # C: records with a whitened column beyond it weigh less than one
NODES = 24  # of the quadrature of a normal law
STEEPEST = 3.0  # largest slope per sd of the start
LONGEST = 0.5  # step of the start, in slopes per sd, that a round can make
MODELLED = 0.6  # how wrong the rows of the information that are modelled may be, as a share (#pivot)
LIMIT = 5.0  # largest slope per sd that an interval can hold
FLOOR = 1e-3  # of the variance of a column on its scale
MIN_COUNT = 0.05  # of the records, that count at least
UNEVEN = 1.2  # of the records, more than which do not count where the columns are as modelled
MIN_LEFT = 0.02  # of the information about X, which the other columns leave at least
HALVINGS, STEPS = 30, 6
_POINTS, _WEIGHTS = np.polynomial.hermite_e.hermegauss(NODES)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


def radius(num_columns: int, euclidean: bool) -> float:
    """R: few records weigh less than one where columns are normal."""
    if euclidean:
        return 1.8 * math.sqrt(1.0 + OTHERS**2 * num_columns)
    return 2.0 + OTHERS * num_columns


def information_unit(num_columns: int, euclidean: bool) -> float:
    """How far one record moves the weighed row of information, at most (#sensitivity)."""
    limit = radius(num_columns, euclidean)
    if euclidean:
        return 0.25 * limit**2
    rest, most = OTHERS * (1.0 + FARTHEST * (num_columns - 1)), min(FARTHEST, limit)

    def cross(own: float) -> float:
        return PER_OTHER * own * min(limit - own, rest)

    bend = max(limit - rest, 0.0)  # below it the others can be as far as they ever are
    inner = min(0.5 * PER_OTHER * rest, bend)
    outer = max(0.5 * PER_OTHER * limit / (1.0 + PER_OTHER), bend)
    return 0.25 * (most**2 + cross(most) + max(cross(own) - own**2 for own in (inner, min(outer, most))))


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

    sd = bisected(covers, jnp.zeros_like(size), jnp.full_like(size, STEEPEST))
    return jnp.concatenate([constant(sd)[None], sd * with_y / size])


def _left_by(noise_variance, values):
    """What is kept of a noisy vector (James-Stein): none of it where it is no longer than its noise."""
    return jnp.maximum(1.0 - noise_variance / jnp.maximum(jnp.sum(values**2), 1e-30), 0.0)


@frozen_pytree
class Start:
    """What is known before the scores; all public.

    mean: m, (d,). root: L^-1, (d, d). slopes: g0, (p,), the constant first. clear: least variance of a direction of the
    columns, in sds of the noise in it. euclidean: whether N is a norm of L2, else of L1.
    """

    mean: Any
    root: Any
    slopes: Any
    clear: Any
    euclidean: bool = jax.tree.static(default=False)

    @classmethod
    def about(cls, matrix, noise_sd, euclidean: bool) -> Start:
        """From noisy means of products of (1, v, y), (d + 2, d + 2), y = -1 or 1. noise_sd: of an entry."""
        mean, rate = matrix[0, 1:-1], 0.5 * (1.0 + jnp.clip(matrix[0, -1], -0.998, 0.998))
        covariance = matrix[1:-1, 1:-1] - jnp.outer(mean, mean)
        values, vectors = jnp.linalg.eigh(0.5 * (covariance + covariance.T))
        raised = (vectors * jnp.maximum(values, jnp.maximum(noise_sd, FLOOR))[None]) @ vectors.T
        root = jnp.linalg.inv(jnp.linalg.cholesky(raised))
        with_y = root @ (0.5 * (matrix[1:-1, -1] - mean * matrix[0, -1]))
        with_y = with_y * _left_by(jnp.sum((0.5 * noise_sd * root) ** 2), with_y)
        return cls(
            mean=mean,
            root=root,
            slopes=normal_start(rate, with_y),
            clear=values[0] / noise_sd,
            euclidean=euclidean,
        )

    @property
    def radius(self) -> float:
        """R."""
        return radius(self.mean.shape[-1], self.euclidean)

    @property
    def units(self):
        """How far one record moves the weighed scores, and the weighed row of information, at most (#sensitivity)."""
        steep = jnp.abs(self.slopes) / self._weights
        along = jnp.sqrt(jnp.sum(steep[1:] ** 2)) if self.euclidean else jnp.max(steep[1:])
        reach = jnp.abs(self.slopes[0]) + along * self.radius
        return 2.0 * self.radius * jax.nn.sigmoid(reach), information_unit(self.mean.shape[-1], self.euclidean)

    @property
    def _weights(self):
        """(p,): kappa, and 1 of X."""
        return jnp.full(self.slopes.shape[-1], OTHERS).at[-1].set(1.0)

    @property
    def _row_weights(self):
        """(p,): q kappa, and 1 of X; q is 1 where the bound is one in L2."""
        return self._weights if self.euclidean else (PER_OTHER * self._weights).at[-1].set(1.0)

    def of(self, values, response):
        """Scores and rows of information (n, 2 p) of columns v (n, d) and y = 0 or 1 (n,), weighed and in units."""
        whitened = (values - self.mean[None]) @ self.root.T
        z = jnp.concatenate([jnp.ones((len(values), 1), whitened.dtype), whitened], axis=1)
        weighed = z * self._weights[None]
        square = jnp.sum(weighed**2, axis=1) if self.euclidean else jnp.sum(jnp.abs(weighed), axis=1) ** 2
        farthest = jnp.maximum(jnp.max(whitened**2, axis=1), self.radius**-2.0)
        kept = jnp.minimum(jnp.minimum(1.0, self.radius**2 / square), FARTHEST**2 / farthest)
        chance = jax.nn.sigmoid(z @ self.slopes)
        of_scores, of_information = self.units
        scores = (kept * (response - chance) / of_scores)[:, None] * weighed
        information = (
            (kept * chance * (1.0 - chance) * z[:, -1] / of_information)[:, None] * z * self._row_weights[None]
        )
        return jnp.concatenate([scores, information], axis=1)


@frozen_pytree
class Sums:
    """Released sums about a start, with the scale of the noise in each number; all public.

    scores: S, (p,). information: the row of X, (p,). score_noise, information_noise: scales, (p,).
    variance_per_scale: variance of a noise of scale 1.
    """

    start: Start
    scores: Any
    information: Any
    score_noise: Any
    information_noise: Any
    variance_per_scale: Any
    num_records: Any

    @classmethod
    def of(cls, start: Start, scores, information, scales, variance_per_scale, num_records) -> Sums:
        """From the released numbers, in units and weighed; scales: of the noise in them, (scores, information)."""
        of_scores, of_information = start.units
        of_scores, of_information = of_scores / start._weights, of_information / start._row_weights
        return cls(
            start=start,
            scores=scores * of_scores,
            information=information * of_information,
            score_noise=scales[0] * of_scores,
            information_noise=scales[1] * of_information,
            variance_per_scale=variance_per_scale,
            num_records=num_records,
        )

    @property
    def clear(self):
        """The information about X in sds of the noise in it."""
        return self.information[-1] / (self.information_noise[-1] * jnp.sqrt(self.variance_per_scale))

    @property
    def uneven(self):
        """Whether more records count than there are by `UNEVEN`, beyond two sds of noise: none of normal columns do."""
        row = normal_model(self.start.slopes)[1][-1, -1]
        sd = self.information_noise[-1] * jnp.sqrt(self.variance_per_scale)
        return self.information[-1] - 2.0 * sd > UNEVEN * self.num_records * row

    @property
    def _fit(self):
        """(records that count, extra): information of this many normal records and, in the row of X, this much more.

        The row's own entry says how many count; the others are shrunk (James-Stein), the last is 0.
        """
        row = normal_model(self.start.slopes)[1][-1]
        count = jnp.maximum(self.information[-1] / row[-1], MIN_COUNT * self.num_records)
        off = (self.information - count * row)[:-1]
        noise = self.variance_per_scale * jnp.sum(self.information_noise[:-1] ** 2)
        return count, jnp.append(_left_by(noise, off) * off, 0.0)

    def _expected(self, slopes):
        """Of the scores, (p,), at these slopes, and its derivatives."""
        count, extra = self._fit
        value, products = normal_model(slopes)
        products = count * products + jnp.zeros_like(products).at[-1].set(extra).at[:, -1].add(extra)
        moved = slopes - self.start.slopes
        off = count * (value - normal_model(self.start.slopes)[0])
        return off + (extra * moved[-1]).at[-1].set(extra @ moved), products

    def fitted(self, slope):
        """g (p,) with this slope of X, the others by their scores."""

        def step(_, others):
            value, products = self._expected(jnp.append(others, slope))
            moved = jnp.linalg.solve(products[:-1, :-1], self.scores[:-1] - value[:-1])
            size = jnp.sqrt(jnp.sum(moved**2))
            return jnp.clip(others + moved * jnp.minimum(1.0, 1.0 / (size + 1e-12)), -12.0, 12.0)

        return jnp.append(jax.lax.fori_loop(0, STEPS, step, self.start.slopes[:-1]), slope)

    def pivot(self, slope):
        """(T, sd of the sampling, scales of the noise (2 p,), information): X's score about this slope per sd.

        The others are fitted, and what their errors do to X's is taken off. The sd counts, as an error of its own size,
        how wrong the modelled rows of the information may be where the others moved (#pivot).
        """
        slopes = self.fitted(slope)
        value, products = self._expected(slopes)
        regression = jnp.linalg.solve(products[:-1, :-1], products[:-1, -1])
        own = products[-1, -1]
        information = jnp.maximum(own - regression @ products[:-1, -1], MIN_LEFT * own)
        sides = jnp.append(-regression, 1.0)
        moved = (slopes - self.start.slopes)[:-1] - regression * (slope - self.start.slopes[-1])
        of_row = jnp.append(moved, sides @ value / self.information[-1])
        noise = jnp.concatenate([self.score_noise * sides, self.information_noise * of_row])
        off = products[-1, :-1] * (slopes - self.start.slopes)[:-1]
        sampling = jnp.sqrt(information + MODELLED**2 * jnp.sum(off**2))
        return sides @ (self.scores - value), sampling, noise, information

    @property
    def slope(self):
        """Of X per sd: where the pivot is 0, within +-`LIMIT`."""

        def halve(_, ends):
            low, high = ends
            middle = 0.5 * (low + high)
            above = self.pivot(middle)[0] > 0.0
            return jnp.where(above, middle, low), jnp.where(above, high, middle)

        limit = jnp.full_like(self.scores[-1], LIMIT)
        return jax.lax.fori_loop(0, HALVINGS, halve, (-limit, limit))[0]

    def improved(self) -> Start:
        """A start one Newton step nearer to what these sums say, as far as that is more than noise (James-Stein).

        One step, and no longer than `LONGEST`: far from the start the sums' expectations are a model, and noise in the
        row of information sent a fit of that model to slopes of 3 and more. The same start where noise hides the
        information: about slopes that noise chose any record may look informative.
        """
        back = jnp.linalg.inv(self._expected(self.start.slopes)[1])
        moved = back @ self.scores
        noise = self.variance_per_scale * jnp.sum((back * self.score_noise[None]) ** 2)
        moved = moved * _left_by(noise, moved)
        moved = moved * jnp.minimum(1.0, LONGEST / (jnp.sqrt(jnp.sum(moved**2)) + 1e-12))
        return dataclasses.replace(self.start, slopes=self.start.slopes + jnp.where(self.clear >= CLEAR, moved, 0.0))
