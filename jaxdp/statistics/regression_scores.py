"""Scores of a regression about a start that noisy moments give, and what their sums say about one slope.

Columns v (n, d), the one asked about, X, the last. m and L^-1, lower triangular, whiten them by noisy moments: z =
(1, L^-1 (v - m)) has p = d + 1 coordinates, and X is in the last alone. The model is E Y = mu(z'g), mu the mean of a
family, and g0 the start. A record has the scores w (y - mu(z'g0)) z and the information w mu'(z'g0) z_X z,
the row of X; w = min(1, (R/N)^2), N a norm of (z_X, kappa z_others).
Theory: docs/theory/logistic_regression.md.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base.bisection import bisected
from jaxdp._base.pytree import frozen_pytree
from jaxdp.statistics.regression_families import LOGISTIC

CLEAR = 10.0  # sds of its noise that the information about X must be
OTHERS = 0.3  # kappa: weight of the other coordinates in the scores that are released
PER_OTHER = 2.0  # q: theirs in the row of information is q kappa, where the bound is one in L1
FARTHEST = 2.5  # C: records with a whitened column beyond it weigh less than one
SURE = 40.0  # sds of information that remain where weights reach farther
SURELY, MAX_OVERSHOT = 2.0, 4.0  # sds of noise; largest factor by which a step is cut
LONGEST = 0.5  # step of the start, in slopes per sd, that a round can make
MODELLED = 0.6  # how wrong the rows of the information that are modelled may be, as a share (#pivot)
FLOOR = 1e-3  # of the variance of a column on its scale
MIN_COUNT = 0.05  # of the records, that count at least
MIN_LEFT = 0.02  # of the information about X, which the other columns leave at least
MAX_DISPERSION = 1.5  # times the modelled variance of X's score that is believed although noise hides it
HALVINGS, STEPS = 30, 6
ROUNDING = 1e-6
# Of an X of numbers whose bounds lie far out, clipped at 2.2 sds, in halves of that (#piled): mean off the centre, mean
# off it away from the farther bound, and mean square below .18 of normal columns, from which on values are piled up
OFF_CENTRE, OFF_BACKWARDS, MIN_SQUARE = 0.35, 0.15, 0.15


def radius(num_columns: int, euclidean: bool) -> float:
    """R: few records weigh less than one where columns are normal."""
    if euclidean:
        return 1.8 * math.sqrt(1.0 + OTHERS**2 * num_columns)
    return 2.0 + OTHERS * num_columns


def information_unit(num_columns: int, euclidean: bool, reach=1.0):
    """How far one record moves the weighed row of information, at most (#sensitivity); R and C times reach."""
    with_numpy = np if isinstance(reach, float) else jnp
    least, largest = with_numpy.minimum, with_numpy.maximum
    limit, farthest = reach * radius(num_columns, euclidean), reach * FARTHEST
    if euclidean:
        return limit**2
    rest, most = OTHERS * (1.0 + farthest * (num_columns - 1)), least(farthest, limit)

    def cross(own):
        return PER_OTHER * own * least(limit - own, rest)

    bend = largest(limit - rest, 0.0)  # below it the others can be as far as they ever are
    inner = least(0.5 * PER_OTHER * rest, bend)
    outer = least(largest(0.5 * PER_OTHER * limit / (1.0 + PER_OTHER), bend), most)
    return most**2 + cross(most) + largest(cross(inner) - inner**2, cross(outer) - outer**2)


def _without_last(slopes, held):
    """With 0 in place of the last where it is held."""
    return jnp.where(held & (jnp.arange(slopes.shape[-1]) == slopes.shape[-1] - 1), 0.0, slopes)


def _beyond(limit, value):
    """What of a number exceeds a limit in size."""
    return jnp.sign(value) * jnp.maximum(jnp.abs(value) - limit, 0.0)


def _left_by(noise_variance, values):
    """What is kept of a noisy vector (James-Stein): none of it where it is no longer than its noise."""
    return jnp.maximum(1.0 - noise_variance / jnp.maximum(jnp.sum(values**2), 1e-30), 0.0)


@frozen_pytree
class Start:
    """What is known before the scores; all public.

    family: of the regression. shift: whitened columns have the mean -shift. dispersion: variance of Y over mu'.

    mean: m, (d,). root: L^-1, (d, d). slopes: g0, (p,), the constant first. clear: least variance of a direction of the
    columns, in sds of the noise in it. euclidean: whether N is a norm of L2, else of L1. reach: what R and C are
    multiplied by. step, scored: what the last round moved the slopes by, (p,), and the scores that told it so; 0 before
    there was one. rare: whether so few records vary X that the start has no slope of it: about another their
    scores say nothing of slope 0 (docs/theory/logistic_regression.md#rare). known: what the family has prepared of the
    other fields, where they are used many times. few: (d,), columns of a level that hardly any
    record has, as far as the noise shows, or that stands in for such a first level, `in_place`: their coordinates are
    0. missed: what the records that may have them count for (`residual_scores.missed_variance`). far: whether X has
    numbers whose bounds lie far out. piled: whether nearly all of them lie on one spot besides, so that X is clipped as
    for its moments (docs/theory/poisson_regression.md#piled).
    """

    mean: Any
    root: Any
    slopes: Any
    clear: Any
    euclidean: bool = jax.tree.static(default=False)
    shift: Any = 0.0
    dispersion: Any = 1.0
    reach: Any = 1.0
    family: Any = jax.tree.static(default=LOGISTIC)
    step: Any = 0.0
    scored: Any = 0.0
    rare: Any = False
    known: Any = None
    few: Any = False
    missed: Any = 0.0
    in_place: Any = False
    far: Any = False
    piled: Any = False

    @classmethod
    def about(cls, matrix, noise_sd, euclidean: bool, family=LOGISTIC, few=None, in_place=False, axes=None) -> Start:
        """From noisy means of products of (1, v, y), (d + 2, d + 2), y = -1 or 1. noise_sd: of an entry.

        few, in_place: as the fields; default, no such level. axes: (d, d), orthonormal directions of v that are held
        fixed, zeros for each of the `few`, and X the last by itself; default, the columns v.
        """
        mean, rate = matrix[0, 1:-1], 0.5 * (1.0 + matrix[0, -1])
        variance = 0.25 * (matrix[-1, -1] - matrix[0, -1] ** 2)
        covariance = matrix[1:-1, 1:-1] - jnp.outer(mean, mean)
        few = jnp.zeros(len(mean), bool) if few is None else few
        axes = jnp.diag(jnp.where(few, 0.0, 1.0)) if axes is None else axes
        covariance = axes @ covariance @ axes.T + jnp.diag(jnp.where(few, 1.0, 0.0))
        values, vectors = jnp.linalg.eigh(0.5 * (covariance + covariance.T))
        raised = (vectors * jnp.maximum(values, jnp.maximum(noise_sd, FLOOR))[None]) @ vectors.T
        lower = jnp.linalg.cholesky(raised)
        root = jnp.linalg.inv(lower) @ axes
        with_y = root @ (0.5 * (matrix[1:-1, -1] - mean * matrix[0, -1]))
        surely = _beyond(family.sure * 0.5 * noise_sd * jnp.sqrt(jnp.sum(root[-1] ** 2)), with_y[-1])
        with_y = with_y * _left_by(jnp.sum((0.5 * noise_sd * root) ** 2), with_y)
        with_y = with_y.at[-1].set(jnp.clip(with_y[-1], -jnp.abs(surely), jnp.abs(surely)))
        slopes, shift, dispersion = family.start(rate, variance, with_y, 0.5 * noise_sd)
        return cls(
            mean=mean + axes.T @ (lower @ shift),
            root=root,
            slopes=slopes,
            clear=jnp.minimum(values[0] / noise_sd, family.clear(rate, 0.5 * noise_sd)),
            euclidean=euclidean,
            shift=shift,
            dispersion=dispersion,
            family=family,
            step=jnp.zeros_like(slopes),
            scored=jnp.zeros_like(slopes),
            few=few,
            in_place=in_place,
        )

    def about_levels(self) -> Start:
        """The same where X has levels from -1 to 1: without a slope of X if the farther end is rare."""
        rare = self.farthest_level > self.family.rare
        return dataclasses.replace(self, rare=rare, slopes=_without_last(self.slopes, rare))

    def about_numbers(self, mean, square, backwards, far) -> Start:
        """The same where X has numbers: clipped, and without a slope of X, if they seem piled up on one spot.

        mean, square: of X clipped, about its centre. backwards: -1 or 1, the side of its nearer bound. far: as the
        field.
        """
        off = (jnp.abs(mean) > OFF_CENTRE) | (backwards * mean > OFF_BACKWARDS) | (square < MIN_SQUARE)
        piled = far & off
        return dataclasses.replace(self, far=far, piled=piled, rare=piled, slopes=_without_last(self.slopes, piled))

    @property
    def farthest_level(self):
        """Sds from the mean of an X of levels from -1 to 1 to the farther of the two."""
        return (1.0 + jnp.abs(self.mean[-1])) * self.root[-1, -1]

    @property
    def steep(self):
        """Whether all columns together say more about Y than a start from moments can: rounds have moved it beyond."""
        return jnp.sqrt(jnp.sum(self.slopes[1:] ** 2)) > (1.0 + ROUNDING) * self.family.steepest

    @property
    def radius(self) -> float:
        """R."""
        return self.reach * radius(self.mean.shape[-1], self.euclidean)

    @property
    def farthest(self):
        """C."""
        return self.reach * FARTHEST

    @property
    def units(self):
        """How far one record moves the weighed scores, and the weighed row of information, at most (#sensitivity)."""
        largest = self.family.largest(self) * information_unit(self.mean.shape[-1], self.euclidean, self.reach)
        return self.family.score_unit(self), largest

    @property
    def unit_of_squares(self):
        """Largest square of X's weighed score (#sensitivity)."""
        return self.family.square_unit(self)

    @property
    def weights(self):
        """(p,): kappa, and 1 of X."""
        return jnp.full(self.slopes.shape[-1], OTHERS).at[-1].set(1.0)

    @property
    def _row_weights(self):
        """(p,): q kappa, and 1 of X; q is 1 where the bound is one in L2."""
        return self.weights if self.euclidean else (PER_OTHER * self.weights).at[-1].set(1.0)

    def of(self, values, response):
        """Scores and rows of information (n, 2 p) of columns v (n, d) and y (n,), weighed and in units.

        With one number more where the family has `squares`: of X's score.
        """
        held = values.at[:, -1].set(jnp.clip(values[:, -1], -1.0, 1.0))
        whitened = (jnp.where(self.piled, held, values) - self.mean[None]) @ self.root.T
        z = jnp.concatenate([jnp.ones((len(values), 1), whitened.dtype), whitened], axis=1)
        weighed = z * self.weights[None]
        square = jnp.sum(weighed**2, axis=1) if self.euclidean else jnp.sum(jnp.abs(weighed), axis=1) ** 2
        farthest = jnp.maximum(jnp.max(whitened**2, axis=1), self.radius**-2.0)
        kept = jnp.minimum(jnp.minimum(1.0, self.radius**2 / square), (self.reach * FARTHEST) ** 2 / farthest)
        about = self.family.prepared(self)
        off, steep = self.family.residuals(about, z @ self.slopes, response)
        of_scores, of_information = about.units
        off = self.family.limited(about, kept * off, jnp.sqrt(square), z[:, -1])
        scores = (off / of_scores)[:, None] * weighed
        information = (kept * steep * z[:, -1] / of_information)[:, None] * z * self._row_weights[None]
        squares = [(off * z[:, -1])[:, None] ** 2 / about.unit_of_squares] if self.family.squares else []
        return jnp.concatenate([scores, information, *squares], axis=1)


@frozen_pytree
class Sums:
    """Released sums about a start, with the scale of the noise in each number; all public.

    scores: S, (p,). information: the row of X, (p,). score_noise, information_noise: scales, (p,).
    variance_per_scale: variance of a noise of scale 1. squares, square_noise: of X's score, where the family has them.
    model: of normal columns at the start. fit: `_fitted`. Both stand here as a pivot needs them at every slope.
    """

    start: Start
    scores: Any
    information: Any
    score_noise: Any
    information_noise: Any
    variance_per_scale: Any
    num_records: Any
    squares: Any = None
    square_noise: Any = None
    model: Any = None
    fit: Any = None

    @classmethod
    def of(cls, start: Start, scores, information, scales, variance_per_scale, num_records, squares=None) -> Sums:
        """From the released numbers, in units and weighed; scales: of the noise in them, in the order of the numbers.

        squares: (), released where the family has them.
        """
        start = start.family.prepared(start)
        of_squares = () if squares is None else (squares * start.unit_of_squares, scales[2] * start.unit_of_squares)
        of_scores, of_information = start.units
        of_scores, of_information = of_scores / start.weights, of_information / start._row_weights
        found = cls(
            start=start,
            model=start.family.model(start),
            scores=scores * of_scores,
            information=information * of_information,
            score_noise=scales[0] * of_scores,
            information_noise=scales[1] * of_information,
            variance_per_scale=variance_per_scale,
            num_records=num_records,
            **dict(zip(("squares", "square_noise"), of_squares, strict=False)),
        )
        return dataclasses.replace(found, fit=found._fitted())

    @property
    def clear(self):
        """The information about X in sds of the noise in it."""
        return self.information[-1] / (self.information_noise[-1] * jnp.sqrt(self.variance_per_scale))

    @property
    def uneven(self):
        """Whether more records count than there are by far, beyond two sds of noise: none of normal columns do.

        Or far fewer: a few records far from all others vary X, and count little.
        """
        return self._more | self._rare | self.start.piled

    @property
    def _more(self):
        """Whether more records count than there are by far."""
        row = self.model[1][-1, -1]
        sd = self.information_noise[-1] * jnp.sqrt(self.variance_per_scale)
        return self.information[-1] - 2.0 * sd > self.start.family.uneven * self.num_records * row

    @property
    def _rare(self):
        """Whether a few records vary X: `Start.rare`, or less information than `family.few` of normal columns have."""
        sd = self.information_noise[-1] * jnp.sqrt(self.variance_per_scale)
        few = self.start.family.few * self.num_records * self.model[1][-1, -1]
        return self.start.rare | (self.information[-1] + 2.0 * sd < few)

    def _fitted(self):
        """(records that count, extra, own): information of this many normal records and, in the row of X, this more.

        The row's own entry says how many count, of those that there are; own is what it has beyond them. The others
        are shrunk (James-Stein), the last is 0. Where few records vary X, they alone count less, and all do for the
        other columns.
        """
        row = self.model[1][-1]
        seen = jnp.clip(self.information[-1] / row[-1], MIN_COUNT * self.num_records, self.num_records)
        count = jnp.where(self._rare, self.num_records, seen)
        off = (self.information - count * row)[:-1]
        noise = self.variance_per_scale * jnp.sum(self.information_noise[:-1] ** 2)
        own = self.information[-1] - count * row[-1]
        own = jnp.where(self._rare, own, jnp.maximum(own, 0.0))
        return count, jnp.append(_left_by(noise, off) * off, 0.0), own

    def _expected(self, slopes):
        """Of the scores, (p,), at these slopes, and its derivatives."""
        count, extra, own = self.fit
        value, products = self.start.family.away(self.start, self.model, slopes)
        last = jnp.asarray(np.arange(len(slopes)) == len(slopes) - 1, slopes.dtype)
        beyond = jnp.outer(last, extra) + jnp.outer(extra, last) + own * jnp.outer(last, last)
        off = count * value + beyond @ (slopes - self.start.slopes)
        return off, count * products + beyond

    def fitted(self, slope):
        """g (p,) with this slope of X, the others by their scores."""

        def step(_, others):
            value, products = self._expected(jnp.append(others, slope))
            moved = jnp.linalg.solve(products[:-1, :-1], self.scores[:-1] - value[:-1])
            size = jnp.sqrt(jnp.sum(moved**2))
            return jnp.clip(others + moved * jnp.minimum(1.0, 1.0 / (size + 1e-12)), -12.0, 12.0)

        begun = self.start.family.settled(self.start.slopes[:-1], self.start, slope)
        return jnp.append(jax.lax.fori_loop(0, STEPS, step, begun), slope)

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
        off_start = jnp.minimum(jnp.sum((slopes - self.start.slopes)[1:] ** 2), LONGEST**2)
        bend = 0.5 * self.start.family.skewness * own * off_start
        bent = self.start.family.bent * slope * information / self.start.reach**2
        beyond = self.start.family.excess * self.fit[2] * (slope - self.start.slopes[-1])
        wrong = MODELLED**2 * jnp.sum(off**2) + bend**2 + bent**2 + beyond**2
        wrong += self.start.missed * self.num_records * self.dispersion(slope) * information
        sampling = jnp.sqrt(self.dispersion(slope) * information + wrong)
        return sides @ (self.scores - value), sampling, noise, information

    def dispersion(self, slope):
        """Variance of X's score over its information: modelled, or as far above it as the squares say (#variance).

        A square that noise has made too small must not narrow an interval: an sd of noise is added, and taken off
        before more than `MAX_DISPERSION` times the model is believed.
        """
        modelled = self.start.dispersion * self.start.family.growth(slope)
        if self.squares is None:
            return modelled
        noise = jnp.sqrt(self.variance_per_scale) * self.square_noise
        information = jnp.maximum(self.information[-1], 1e-30)
        high, low = (self.squares + noise) / information, (self.squares - noise) / information
        return jnp.maximum(jnp.maximum(modelled, low), jnp.minimum(high, MAX_DISPERSION * modelled))

    @property
    def slope(self):
        """Of X per sd: where the pivot is 0, within +-`LIMIT`."""
        limit = jnp.full_like(self.scores[-1], self.start.family.limit)
        return bisected(lambda slope: self.pivot(slope)[0] > 0.0, -limit, limit, HALVINGS)[0]

    def improved(self, share: float = 0.0) -> Start:
        """A start one Newton step nearer to what these sums say, as far as that is more than noise (James-Stein).

        One step, and no longer than `LONGEST`: far from the start the sums' expectations are a model, and noise in the
        row of information sent a fit of that model to slopes of 3 and more. The same start where noise hides the
        information: about slopes that noise chose any record may look informative.
        share: how many times this round's budget the last one has, if it comes next: where its noise will be little,
        the weights of that round reach farther.
        """
        products = self._expected(self.start.slopes)[1]
        back = jnp.linalg.inv(products) / self._overshot(products)
        moved = back @ self.scores
        noise = self.variance_per_scale * jnp.sum((back * self.score_noise[None]) ** 2)
        moved = moved * _left_by(noise, moved)
        moved = moved * jnp.minimum(1.0, LONGEST / (jnp.sqrt(jnp.sum(moved**2)) + 1e-12))
        piled = self.start.piled | (self.start.far & self._more)
        rare = self._rare | piled
        slopes = _without_last(self.start.slopes + jnp.where(self.clear >= CLEAR, moved, 0.0), rare)
        reach = jnp.where(self._as_normal, self._reach(share), 1.0) if share else self.start.reach
        step = slopes - self.start.slopes
        changed = {"slopes": slopes, "reach": reach, "step": step, "scored": self.scores, "rare": rare}
        return dataclasses.replace(self.start, **changed, piled=piled, known=None)

    def _overshot(self, products):
        """By what factor the step before was too long, at least 1: how much more the scores changed than modelled.

        Columns far from normal have more information than normal ones, so that steps overshoot and come back. Only
        what is more than noise counts.
        """
        step = jnp.broadcast_to(self.start.step, self.scores.shape)
        modelled = jnp.maximum(step @ products @ step, 1e-30)
        noise = jnp.sqrt(2.0 * self.variance_per_scale * jnp.sum((self.score_noise * step) ** 2))
        changed = (self.start.scored - self.scores) @ step - SURELY * noise
        factor = jnp.clip(changed / modelled, 1.0, MAX_OVERSHOT)
        return jnp.where(factor > self.start.family.overshot, factor, 1.0)

    @property
    def _as_normal(self):
        """Whether the released row of the information is about what it would be for normal columns.

        Where it is not, wider weights would make the modelled information of the other columns still less true.
        """
        _, extra, _ = self.fit
        return jnp.sqrt(jnp.sum(extra**2)) <= self.start.family.unlike * self.information[-1]

    def _reach(self, share: float):
        """From 1 to the family's widest, what leaves the next round's noise below the family's, and `SURE`."""
        variance = self.variance_per_scale * self.score_noise[-1] ** 2 / (share if self.start.euclidean else share**2)
        clear = self.clear * (math.sqrt(share) if self.start.euclidean else share)
        least = jnp.minimum(
            self.start.family.noise * self.start.dispersion * self.information[-1] / variance, clear / SURE
        )
        return jnp.sqrt(jnp.clip(least, 1.0, self.start.family.widest**2))
