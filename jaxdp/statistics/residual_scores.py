"""Slopes and correlations of residuals as sums of bounded scores, about nuisances that a noisy moment matrix gives.

Columns w (n, p) on [-1, 1]; W = (1, w). For columns x and y and a set G of others, u = a'W and v = b'W are x and y less
their fits on G and the constant, by the noisy matrix: a and b are public. The score of a record is the quadratic form
q_xy u v + q_xx u^2 + q_yy v^2; its spread, u^2/s_u^2 or the mean of that and v^2/s_v^2, says what a score moves by per
unit of the slope or correlation. Theory: docs/theory/residual_scores.md.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base.pytree import frozen_pytree
from jaxdp.statistics import moments

CLEAR = 3.0  # sds of its noise that a variance must have
SEEN = 2.0  # the same of a residual: it only decides whether there is an interval
SURE = 12.0  # sds of its noise that a residual variance must have before scores are about a slope by it
MAX_LEVELS = 256  # of a column up to which the bound of moments of codes is worked out
MAX_PAIRS = 1024  # of levels of two columns, the same
MAX_CENTRES = 256  # of zonogons; beyond them indicators of further columns count as any numbers within their box
SPREAD = 0.35  # of a score's range: what the range of the spread counts that is released with it
LEAST = 0.02  # of a residual variance: what a noisy spread leaves of it at least
FAR = 3.0  # times the ratio of noisy sds: no slope is larger
SLACK = 1e-5  # of the sizes of a form's terms: a hundred roundings of float32, in which ranges may be computed
HEAVINESS = 0.1
MAX_CORRELATION = 0.99  # about which the scores of a correlation are taken


@frozen_pytree
class Noisy:
    """The noisy second moments of W per record, (p + 1, p + 1), and the scale of the noise of each entry.

    With indicators of several levels (#codes) the noise is that of the codes: basis (p + 1, p + 1) takes (1, codes) to
    W. scales: of the entries of the codes, 0 where an entry follows from the shares of levels. codes (l, p): of these
    levels, 0 in other columns. shared (l, l): the covariance of the noise in their shares, in squared scales.
    """

    matrix: Any
    scales: Any
    variance_per_scale: Any
    basis: Any = None
    codes: Any = None
    shared: Any = None

    @classmethod
    def of(
        cls,
        vector,
        num_records: int,
        num_columns: int,
        euclidean: bool,
        scale,
        variance_per_scale,
        of_one_level: tuple[int, ...] = (),
    ) -> Noisy:
        """From the released vector of `moments.vector`, whose numbers have noise of this scale.

        of_one_level: as in `scores`, of columns that were `coded` before.
        """
        entries = moments.means(vector, num_records, num_columns, euclidean)
        scales = scale / (jnp.asarray(moments.weights(num_columns, euclidean)) * num_records)
        found = cls(
            matrix=_augmented(entries, num_columns, 1.0),
            scales=_augmented(scales, num_columns, 0.0),
            variance_per_scale=variance_per_scale,
        )
        groups = several_levels(of_one_level)
        return found._decoded(groups, basis_of(of_one_level)) if groups else found

    def _decoded(self, groups, basis) -> Noisy:
        """Moments of indicators from those of codes, whose own ones all follow from the shares of the levels.

        These are estimated from all of them by least squares in the scales of their noise.
        """
        top, matrix, known = jnp.max(self.scales), self.matrix, np.zeros(self.matrix.shape, bool)
        relative, codes, shared = self.scales / jnp.where(top > 0.0, top, 1.0), [], []
        for group in groups:
            at = np.flatnonzero(group) + 1
            code = codes_of(len(at) + 1)
            rows, columns = np.triu_indices(len(at))
            seen = np.concatenate([code, code[:, rows] * code[:, columns]], axis=1).T  # of one record of each level
            places = np.concatenate([0 * at, at[rows]]), np.concatenate([at, at[columns]])
            weights = jnp.where(top > 0.0, 1.0 / jnp.maximum(relative[places], 1e-6) ** 2, 1.0)
            by_shares = seen[:, 1:] - seen[:, :1]  # the first level has what the others leave
            covariance = jnp.linalg.inv((by_shares.T * weights[None]) @ by_shares)
            found = covariance @ (by_shares.T @ (weights * (matrix[places] - seen[:, 0])))
            every = np.concatenate([-np.ones((1, len(at))), np.eye(len(at))])
            shares = every @ found + np.eye(len(at) + 1)[0]
            block = np.ix_(at, at)
            matrix = matrix.at[block].set((code.T * shares[None]) @ code)
            matrix = matrix.at[0, at].set(code.T @ shares).at[at, 0].set(code.T @ shares)
            known[block], known[0, at], known[at, 0] = True, True, True
            codes.append(np.zeros((len(at) + 1, len(group))))
            codes[-1][:, at - 1] = code
            shared.append(every @ covariance @ every.T * top**2)
        return Noisy(
            matrix=basis @ matrix @ basis.T,
            scales=jnp.where(known, 0.0, self.scales),
            variance_per_scale=self.variance_per_scale,
            basis=jnp.asarray(basis, matrix.dtype),
            codes=jnp.asarray(np.concatenate(codes), matrix.dtype),
            shared=jax.scipy.linalg.block_diag(*shared),
        )

    def scale_of(self, a, b=None):
        """Root of the sum of squared scales of the noise in a'Mb (a'Ma)."""
        b = a if b is None else b
        if self.basis is not None:
            a, b = a @ self.basis, b @ self.basis
        weight = 0.5 * (jnp.outer(a, b) + jnp.outer(b, a))
        upper = jnp.triu(weight + weight.T, k=1) + jnp.diag(jnp.diagonal(weight))
        squared = jnp.sum((upper * self.scales) ** 2)
        if self.basis is not None:
            moved = a @ self._by_shares(b)
            squared = squared + moved @ self.shared @ moved
        return jnp.sqrt(squared)

    def _by_shares(self, a):
        """What Na of the codes moves by per unit of the noise in the shares of levels, (p + 1, l)."""
        told = self.codes @ a[1:]
        return jnp.concatenate([told[None], self.codes.T * (a[0] + told)[None]])

    def covariance(self, first, second):
        """Of the noises N first and N second, (p + 1, p + 1)."""
        if self.basis is not None:
            first, second = first @ self.basis, second @ self.basis
        squares = self.variance_per_scale * self.scales**2
        crossed = squares * jnp.outer(second, first)
        found = jnp.diag(squares @ (first * second) - jnp.diagonal(crossed)) + crossed
        if self.basis is None:
            return found
        by_shares = self._by_shares(first) @ self.shared @ self._by_shares(second).T
        return self.basis @ (found + self.variance_per_scale * by_shares) @ self.basis.T

    def sd_of(self, a):
        """Sd of the noise in a'Ma."""
        return jnp.sqrt(self.variance_per_scale) * self.scale_of(a)


def _augmented(entries, num_columns: int, corner: float):
    rows, columns = np.triu_indices(num_columns)
    size = len(rows)
    made = jnp.zeros((num_columns + 1,) * 2, entries.dtype).at[0, 0].set(corner)
    made = made.at[rows + 1, columns + 1].set(entries[:size]).at[columns + 1, rows + 1].set(entries[:size])
    return made.at[0, 1:].set(entries[size:]).at[1:, 0].set(entries[size:])


def several_levels(of_one_level) -> list[np.ndarray]:
    """Masks (p,) of the indicators of each column of the data that has several: more than two unordered levels."""
    numbers = np.asarray(of_one_level, int)
    groups = [numbers == number for number in np.unique(numbers[numbers > 0])]
    return [group for group in groups if group.sum() > 1]


@functools.lru_cache(maxsize=64)
def codes_of(levels: int) -> np.ndarray:
    """Of so many unordered levels, (levels, levels - 1), within [-1, 1]: orthogonal to the constant, and all even.

    Cosines, rounded to the grid of the moments.
    """
    found = np.cos(np.pi * np.outer(np.arange(levels) + 0.5, np.arange(1, levels)) / levels)
    return np.round(found / np.abs(found).max(axis=0) * moments.GRID) / moments.GRID


def basis_of(of_one_level) -> np.ndarray:
    """The matrix (p + 1, p + 1) that takes (1, codes) to (1, indicators on [-1, 1])."""
    basis = np.eye(len(of_one_level) + 1)
    for group in several_levels(of_one_level):
        at = np.flatnonzero(group) + 1
        code = codes_of(len(at) + 1)
        of_levels = np.linalg.inv(np.concatenate([np.ones((len(at) + 1, 1)), code], axis=1).T)[1:]
        basis[at, 0] = 2.0 * of_levels[:, 0] - 1.0
        basis[np.ix_(at, at)] = 2.0 * of_levels[:, 1:]
    return basis


@functools.lru_cache(maxsize=64)
def moments_bound(of_one_level: tuple[int, ...], euclidean: bool) -> float:
    """How far replacing one record moves the vector of moments of `coded` columns, at most: a record has one of the
    levels of each column, and their codes do not fill their box (docs/theory/residual_scores.md#sensitivity).
    """
    codes = [codes_of(1 + int(group.sum())) for group in several_levels(of_one_level)]
    others = len(of_one_level) - sum(code.shape[1] for code in codes)
    if euclidean:
        return moments.frobenius_bound(others + sum(float(np.max(np.sum(code**2, axis=1))) for code in codes))
    in_box = moments.l1_bound(len(of_one_level))
    pairs = [len(code) * len(other) for code, other in itertools.combinations(codes, 2)]
    if max(map(len, codes), default=0) > MAX_LEVELS or max(pairs, default=0) > MAX_PAIRS:
        return in_box
    bound = moments.l1_bound(others)
    for code in codes:
        rows, columns = np.triu_indices(code.shape[1])
        own = _distances(np.concatenate([code[:, rows] * code[:, columns], moments.MEAN_WEIGHT * code], axis=1))
        bound += float(np.max(own + others * np.maximum(_distances(code), _distances(code, -code))))
    for code, other in itertools.combinations(codes, 2):
        products = code[:, None, :, None] * other[None, :, None, :]
        bound += float(np.max(_distances(products.reshape(len(code) * len(other), -1))))
    return min((1.0 + 1e-12) * bound, in_box)


def _distances(rows, others=None):
    """In L1, of rows (m, k) to rows (m, k), (m, m)."""
    from scipy.spatial.distance import cdist  # takes a quarter of the time that the import of JAX does

    return cdist(rows, rows if others is None else others, "cityblock")


def coded(columns, of_one_level):
    """Columns (n, p) with codes in place of the indicators of several levels, of which noise hides less (#codes)."""
    return moments.on_grid(with_codes(columns, of_one_level)) if several_levels(of_one_level) else columns


def with_codes(columns, of_one_level):
    """The same where columns need not be within [-1, 1]; not on the grid."""
    if not several_levels(of_one_level):
        return columns
    back = np.linalg.inv(basis_of(of_one_level))[1:]
    return back[None, :, 0] + jnp.matmul(columns, jnp.asarray(back[:, 1:].T, columns.dtype), precision="highest")


@frozen_pytree
class Scores:
    """Public coefficients of the scores of one query, and what the errors of the nuisances can do to their mean.

    a, b: (p + 1,) of both residuals. form: (q_xx, q_xy, q_yy). offset: the slope or correlation about which the scores
    are taken, their mean is added to it; 0 below `SURE` sds, where a test of 0 needs no spread. limits: ends of what is
    possible. largest: |score|. rest: the form of the spread less `tilt` scores, which is released with the scores.
    range, widest: units of both, in which one record moves them by 1 together, in L1. bias, variance: mean and variance
    of the products of noises in the mean score. of_spread: the same of the spread. hidden: whether the noise hides the
    columns given, so that they cannot be held fixed. unknown: whether there is no interval: that, or it hides the
    spread of a residual. rare: mask (p,) of levels given that are not held fixed, since the noise hides that any record
    has them. in_place: mask (p,) of those that are not since they stand in for the first level of their column, of
    which the noise hides the same. uncompared: whether that is the first level of x.
    """

    a: Any
    b: Any
    form: Any
    offset: Any
    limits: Any
    range: Any
    largest: Any
    rest: Any
    tilt: Any
    widest: Any
    of_spread: Any
    bias: Any
    variance: Any
    hidden: Any
    unknown: Any
    rare: Any
    in_place: Any
    uncompared: Any

    heaviness: ClassVar[float] = HEAVINESS

    def of(self, values):
        """Scores and what is released of spreads, (n,) each, of columns (n, p)."""
        first = self.a[0] + values @ self.a[1:]
        second = self.b[0] + values @ self.b[1:]
        return _form(self.form, first, second), _form(self.rest, first, second)

    def explained(self, off):
        """Variance of a score that comes from the true number's being so far off, at least."""
        return off**2

    def products(self, num_records: int, variance_per_scale):
        """Mean and variance of products of noises in the mean score."""
        return self.bias, self.variance


def _form(form, first, second):
    q_xx, q_xy, q_yy = form
    return q_xx * first**2 + q_xy * first * second + q_yy * second**2


def scores(noisy: Noisy, x, y, given, correlation: bool, of_one_level=None, levelled=None) -> Scores:
    """The scores of the slope of y on x (of their correlation) given a mask (p,) of columns; x, y: places, from 0.

    of_one_level: (p,), of the columns that say of one level who has it, the number of the column of the data; else 0.
    levelled: (p,), whether a column has levels, of which the farthest counts for the records of a rare level of Z.
    A level whose variance the noise hides is not held fixed: its records, if there are any, count as having the first
    level, or the one in its place (`RareLevels`).
    """
    p = len(given)
    numbers = np.zeros(p, int) if of_one_level is None else np.asarray(of_one_level, int)
    levels = RareLevels.of(noisy, numbers, given)
    same = (jnp.asarray(numbers) == jnp.asarray(numbers)[x]) & jnp.asarray(numbers > 0)  # levels of the column of x
    uncompared = jnp.any(same & levels.first)  # without an effect; under the null hypothesis it misses nothing
    rare = levels.rare & jnp.asarray(given)
    unheld = jnp.where(same, jnp.where(rare, levels.shares, 0.0), levels.together)
    inside = jnp.concatenate([jnp.ones(1, bool), jnp.asarray(given) & ~rare & ~levels.in_place])
    fit, hidden = _fitted(noisy, inside)
    a, b = (jnp.eye(p + 1)[place + 1] - fit @ noisy.matrix[:, place + 1] for place in (x, y))
    var_x, lost_x, unsure_x = _clear(a @ noisy.matrix @ a, noisy, a)
    var_y, lost_y, unsure_y = _clear(b @ noisy.matrix @ b, noisy, b)
    lost, unsure = (lost_x | lost_y, unsure_x | unsure_y) if correlation else (lost_x, unsure_x)
    ratio = jnp.where(unsure, 0.0, a @ noisy.matrix @ b / jnp.sqrt(var_x * var_y))
    if correlation:
        offset = jnp.clip(ratio, -MAX_CORRELATION, MAX_CORRELATION)
        form = (-0.5 * offset / var_x, 1.0 / jnp.sqrt(var_x * var_y), -0.5 * offset / var_y)
        both = noisy.scale_of(a) / var_x, noisy.scale_of(b) / var_y
        spreads = 0.5 / var_x, 0.0, 0.5 / var_y
        far = (-jnp.ones(()), jnp.ones(()))
        # with variances off by relative errors r and s the correlation solves rho (r^2 + s^2)/8 away, to second order
        bent = noisy.variance_per_scale * (both[0] + both[1]) ** 2 * jnp.abs(offset) / 8.0
        unit = 1.0
    else:
        offset = jnp.clip(ratio, -1.0, 1.0) * jnp.sqrt(var_y / var_x)
        form = (-offset / var_x, 1.0 / var_x, jnp.zeros_like(var_x))
        spreads, bent, unit = (1.0 / var_x, 0.0, 0.0), 0.0, var_y / var_x
        # no slope is above the ratio of the sds; the noise may hide four fifths of one variance, and add to the other
        most = FAR * jnp.sqrt((var_y + CLEAR * noisy.sd_of(b)) / var_x)
        far = (-most, most)
    coefficients, spread = jnp.stack(form), jnp.stack(spreads)
    edges = Edges.of(a, b, tuple(several_levels(numbers)))
    ends_of_levels = edges.far / jnp.sqrt(jnp.stack([var_x, var_y]))
    with_levels = jnp.zeros(p, bool) if levelled is None else jnp.asarray(levelled)
    missed = missed_variance(unheld, *jnp.where(with_levels[jnp.stack([x, y])], ends_of_levels, 1.0))
    ends = edges.places(coefficients)
    tilt = _tilt(ends, coefficients, spread)
    rest = spread - tilt * coefficients
    (low, high), (least, most) = edges.extremes_at(ends, coefficients), edges.extremes(rest)
    joint = _joint(noisy, inside, a, b)
    (bias, variance), of_spread = (_products(joint, fit, one) for one in (coefficients, spread))
    wide = jnp.maximum(most - least, 1e-6 * jnp.max(spread))  # nothing is left where y is a multiple of x
    parts = coefficients / (high - low), SPREAD * rest / wide
    lower, upper = jax.vmap(edges.extremes)(jnp.stack([parts[0] + parts[1], parts[0] - parts[1]]))
    moved = jnp.max(upper - lower)
    return Scores(
        a=a,
        b=b,
        form=coefficients,
        offset=offset,
        limits=far,
        range=(high - low) * moved,
        largest=jnp.maximum(high, -low),
        rest=rest,
        tilt=tilt,
        widest=wide / SPREAD * moved,
        of_spread=of_spread,
        bias=bias,
        variance=variance + bent**2 + missed * unit,
        hidden=hidden,
        unknown=hidden | lost | uncompared,
        rare=rare,
        in_place=levels.in_place,
        uncompared=uncompared,
    )


def missed_variance(shares, far_x, far_y):
    """Variance of a correlation for levels of Z that are not held fixed: shares (m,) of the records may have them.

    far_x, far_y: sds from the mean of each column that such records can be. No farther than 1/sqrt(share): they are
    part of the column's variance.
    """
    most = 1.0 / jnp.sqrt(jnp.maximum(shares, 1e-12))
    moved = [jnp.minimum(jnp.maximum(far, 1.0), most) for far in (far_x, far_y)]
    return jnp.minimum(jnp.sum((shares * moved[0] * moved[1]) ** 2), 1.0)


@frozen_pytree
class RareLevels:
    """Which levels the noise hides; all public.

    rare: mask (p,) of the columns of one level whose variance is within its noise. shares: (p,), of the records that
    may have such a level, by the variance and two sds of its noise; else 0. first, first_shares: (p,), the same of the
    first level of an unordered column together with its rare ones, at the place of its first indicator; the share is 0
    where none of its levels is given. in_place: mask (p,) of the level that stands in for such a first one, the most
    frequent of those given: without it the rest and the constant would determine one another. together: (p,), the
    shares of all levels given that are not held fixed, of each column at its first indicator: such levels of one column
    may all move two others the same way, so they count as one.
    """

    rare: Any
    shares: Any
    first: Any
    first_shares: Any
    in_place: Any
    together: Any

    @classmethod
    def of(cls, noisy: Noisy, of_one_level, given) -> RareLevels:
        """of_one_level: (p,), numbers of the columns of the data, else 0; known when this is compiled. given: (p,)."""
        numbers, p = np.asarray(of_one_level, int), len(of_one_level)
        means = noisy.matrix[0, 1:]
        rare, shares = _within_noise(noisy, jnp.eye(p, dtype=means.dtype), jnp.asarray(numbers > 0))
        groups = [numbers == number for number in np.unique(numbers[numbers > 0]) if np.sum(numbers == number) > 1]
        first, first_shares, in_place = jnp.zeros(p, bool), jnp.zeros(p, means.dtype), jnp.zeros(p, bool)
        together = jnp.where(rare & jnp.asarray(given), shares, 0.0)
        for group in groups:
            seen = jnp.asarray(group) & ~rare
            hidden, share = _within_noise(noisy, jnp.where(seen, -1.0, 0.0)[None], jnp.any(seen)[None])
            place, candidates = int(np.argmax(group)), seen & jnp.asarray(given)
            first = first.at[place].set(hidden[0])
            first_shares = first_shares.at[place].set(jnp.where(jnp.any(candidates), share[0], 0.0))
            most = jnp.arange(p) == jnp.argmax(jnp.where(candidates, means, -jnp.inf))
            in_place = in_place | (hidden[0] & candidates & most)
            of_rare = jnp.where(jnp.asarray(group) & jnp.asarray(given) & rare, 1.0, 0.0)
            nearly_all = (of_rare > 0.0) & (means > 0.0)  # hardly varies since most records have it
            of_others = (hidden[0] & jnp.any(candidates)) | jnp.any(nearly_all)
            signs = jnp.where(of_others, jnp.where(seen | nearly_all, -1.0, 0.0), of_rare)
            left_out = _counted(noisy, signs, of_others)
            together = jnp.where(jnp.asarray(group), 0.0, together).at[place].set(left_out)
        return cls(
            rare=rare, shares=shares, first=first, first_shares=first_shares, in_place=in_place, together=together
        )


def _within_noise(noisy: Noisy, sides, asked):
    """Of sums of columns of levels, (m, p), of which one record has one level: whether noise hides their variance.

    And the shares of records that may have that level, (m,). asked: mask (m,); no others are hidden.
    """
    about_means = jnp.concatenate([-(sides @ noisy.matrix[0, 1:])[:, None], sides], axis=1)
    variance = jnp.sum((about_means @ noisy.matrix) * about_means, axis=1)
    noise = jax.vmap(noisy.sd_of)(about_means)
    hidden = asked & (variance < CLEAR * noise)
    return hidden, jnp.where(hidden, 0.25 * (jnp.maximum(variance, 0.0) + 2.0 * noise), 0.0)


def _counted(noisy: Noisy, signs, of_others):
    """Share of the records that have these levels, or (of_others) that have others, and two sds of its noise.

    signs: (p,), 1 of the levels, or -1 of those that the others leave; 0 of none.
    """
    share = jnp.where(of_others, 1.0, 0.0) + 0.5 * (signs @ noisy.matrix[0, 1:] + jnp.sum(signs))
    constant, levels = jnp.eye(len(signs) + 1)[0], jnp.concatenate([jnp.zeros(1), signs])
    sd = 0.5 * jnp.sqrt(noisy.variance_per_scale) * noisy.scale_of(constant, levels)
    return jnp.where(jnp.any(signs != 0.0), jnp.clip(share, 0.0, 1.0) + 2.0 * sd, 0.0)


def _fitted(noisy: Noisy, inside):
    """Inverse moments F (p + 1, p + 1) of the columns inside, 0 elsewhere, and whether noise hides one of their sides.

    F M[:, x] are the coefficients of x on them. inside: mask (p + 1,) with the constant.
    """
    mask = inside.astype(noisy.matrix.dtype).at[0].set(0.0)
    means, both = noisy.matrix[0] * mask, jnp.outer(mask, mask)
    centred = noisy.matrix * both - jnp.outer(means, means)
    values, vectors = jnp.linalg.eigh(centred + jnp.diag(4.0 * (1.0 - mask)))  # others: more than any variance
    sides = (vectors * mask[:, None]).at[0].set(-means @ vectors)  # of W, centred
    least = CLEAR * jax.vmap(noisy.sd_of)(sides.T)
    hidden = jnp.any(values < least)
    inverse = (vectors / jnp.maximum(values, least)[None, :]) @ vectors.T * both
    lean = inverse @ means
    return inverse.at[0].set(-lean).at[:, 0].set(-lean).at[0, 0].set(1.0 + means @ lean), hidden


def _clear(variance, noisy: Noisy, a):
    """A residual variance, floored, whether its noise hides it, and whether it is far from sure."""
    least = noisy.sd_of(a)
    return jnp.maximum(variance, jnp.maximum(least, 1e-12)), variance < SEEN * least, variance < SURE * least


@frozen_pytree
class Edges:
    """The edges of the zonogons of (u, v) = (a'W, b'W), W of any record: their generators by their angles.

    A record lies in the box [-1, 1]^p, and of a column of several unordered levels has one: a zonogon of the other
    columns about each choice of levels. Edges run there and back, and serve every form of (u, v). starts, steps:
    (m, 2).
    far: bounds of |u| and |v|. terms: sums of the sizes of what they are added up from, which their roundings follow.
    """

    starts: Any
    steps: Any
    far: Any
    terms: Any

    @classmethod
    def of(cls, a, b, groups: Sequence[np.ndarray] = ()) -> Edges:
        """a, b: (p + 1,), the constant first. groups: as of `several_levels`; public, known when this is compiled."""
        free, centres = np.ones(len(a) - 1, bool), jnp.stack([a[0], b[0]])[None]
        both = jnp.stack([a[1:], b[1:]], axis=1)
        for group in sorted(groups, key=np.sum):
            levels = 1 + int(group.sum())
            if len(centres) * levels > MAX_CENTRES:
                break
            of_levels = 2.0 * np.eye(levels)[:, 1:] - 1.0
            centres = (centres[:, None] + (jnp.asarray(of_levels, both.dtype) @ both[group])[None]).reshape(-1, 2)
            free &= ~group
        sides = both[free] if free.any() else jnp.zeros((1, 2), both.dtype)
        up = (sides[:, 1] > 0.0) | ((sides[:, 1] == 0.0) & (sides[:, 0] > 0.0))
        sides = jnp.where(up[:, None], sides, -sides)
        sides = sides[jnp.argsort(jnp.arctan2(sides[:, 1], sides[:, 0]))]
        offsets = jnp.cumsum(2.0 * sides, axis=0) - 2.0 * sides - jnp.sum(sides, axis=0)[None]
        there, back = centres[:, None] + offsets[None], centres[:, None] - offsets[None]
        starts = jnp.concatenate([there, back], axis=1)
        steps = jnp.broadcast_to(jnp.concatenate([2.0 * sides, -2.0 * sides]), starts.shape)
        far = jnp.max(jnp.abs(centres), axis=0) + jnp.sum(jnp.abs(sides), axis=0)
        terms = jnp.stack([jnp.sum(jnp.abs(a)), jnp.sum(jnp.abs(b))])
        return cls(starts=starts.reshape(-1, 2), steps=steps.reshape(-1, 2), far=far, terms=terms)

    def places(self, form):
        """0 and points (u, v), among them those of the smallest and largest form.

        On an edge the form is a parabola; inside of a zonogon it has no extremum but 0 at the origin.
        """
        starts, steps = self.starts, self.steps
        curved, begin, end = (_form(form, *points.T) for points in (steps, starts, starts + steps))
        slope = end - begin - curved
        top = jnp.clip(jnp.where(curved == 0.0, 0.0, -0.5 * slope / jnp.where(curved == 0.0, 1.0, curved)), 0.0, 1.0)
        return jnp.concatenate([starts, starts + steps, starts + top[:, None] * steps, jnp.zeros((1, 2))])

    def extremes(self, form):
        """Smallest and largest value of the form over the zonogons; 0 counted in."""
        return self.extremes_at(self.places(form), form)

    def extremes_at(self, places, form):
        """The same from `places` of this form."""
        found, (first, second) = _form(form, *places.T), self.terms
        slack = SLACK * jnp.sum(jnp.abs(form) * jnp.stack([first**2, first * second, second**2]))
        return jnp.min(found) - slack, jnp.max(found) + slack


def _tilt(places, form, spread):
    """How far the spread moves per unit of the form from where the form is smallest to where it is largest.

    places: of this form.
    """
    values = _form(form, *places.T)
    low, high = (places[find(values)] for find in (jnp.argmin, jnp.argmax))
    moved = _form(form, *high) - _form(form, *low)
    return (_form(spread, *high) - _form(spread, *low)) / jnp.maximum(moved, 1e-12)


def _joint(noisy: Noisy, inside, a, b):
    """The covariance of r = N a and s = N b, the noises of both fits on the columns inside, (2 (p + 1), 2 (p + 1))."""
    both = jnp.outer(inside, inside)

    def covariance(first, second):
        return jnp.where(both, noisy.covariance(first, second), 0.0)

    return jnp.block([[covariance(a, a), covariance(a, b)], [covariance(b, a), covariance(b, b)]])


def _products(joint, fit, form):
    """Mean and variance of what the noises of both fits make together of the mean score.

    It moves by q_xy r'F s + q_xx r'F r + q_yy s'F s. joint: `_joint`.
    """
    q_xx, q_xy, q_yy = form
    moved = jnp.block([[q_xx * fit, 0.5 * q_xy * fit], [0.5 * q_xy * fit, q_yy * fit]]) @ joint
    return jnp.trace(moved), 2.0 * jnp.trace(moved @ moved)
