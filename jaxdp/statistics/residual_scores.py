"""Slopes and correlations of residuals as sums of bounded scores, about nuisances that a noisy moment matrix gives.

Columns w (n, p) on [-1, 1]; W = (1, w). For columns x and y and a set G of others, u = a'W and v = b'W are x and y less
their fits on G and the constant, by the noisy matrix: a and b are public. The score of a record is the quadratic form
q_xy u v + q_xx u^2 + q_yy v^2. Theory: docs/theory/residual_scores.md.
"""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base.pytree import frozen_pytree
from jaxdp.statistics import moments

CLEAR = 3.0  # sds of its noise that a variance must have
SURE = 6.0  # sds of its noise from which on a variance is what it says, not what the noise made of it
UNSURE = 2.0  # times the noise of a variance that is counted below that: the largest of the noise has been chosen
FAR = 3.0  # times the ratio of noisy sds: no slope is larger
SLACK = 1e-5  # of the sizes of a form's terms: a hundred roundings of float32, in which ranges may be computed
HEAVINESS = 0.1
MAX_CORRELATION = 0.99  # about which the scores of a correlation are taken


@frozen_pytree
class Noisy:
    """The noisy second moments of W per record, (p + 1, p + 1), and the scale of the noise of each entry."""

    matrix: Any
    scales: Any
    variance_per_scale: Any

    @classmethod
    def of(cls, vector, num_records: int, num_columns: int, euclidean: bool, scale, variance_per_scale) -> Noisy:
        """From the released vector of `moments.vector`, whose numbers have noise of this scale."""
        entries = moments.means(vector, num_records, num_columns, euclidean)
        scales = scale / (jnp.asarray(moments.weights(num_columns, euclidean)) * num_records)
        return cls(
            matrix=_augmented(entries, num_columns, 1.0),
            scales=_augmented(scales, num_columns, 0.0),
            variance_per_scale=variance_per_scale,
        )

    def scale_of(self, a, b=None):
        """Root of the sum of squared scales of the noise in a'Mb (a'Ma)."""
        weight = jnp.outer(a, a) if b is None else 0.5 * (jnp.outer(a, b) + jnp.outer(b, a))
        upper = jnp.triu(weight + weight.T, k=1) + jnp.diag(jnp.diagonal(weight))
        return jnp.sqrt(jnp.sum((upper * self.scales) ** 2))

    def sd_of(self, a):
        """Sd of the noise in a'Ma."""
        return jnp.sqrt(self.variance_per_scale) * self.scale_of(a)


def _augmented(entries, num_columns: int, corner: float):
    rows, columns = np.triu_indices(num_columns)
    size = len(rows)
    made = jnp.zeros((num_columns + 1,) * 2, entries.dtype).at[0, 0].set(corner)
    made = made.at[rows + 1, columns + 1].set(entries[:size]).at[columns + 1, rows + 1].set(entries[:size])
    return made.at[0, 1:].set(entries[size:]).at[1:, 0].set(entries[size:])


@frozen_pytree
class Scores:
    """Public coefficients of the scores of one query, and what the errors of the nuisances can do to their mean.

    a, b: (p + 1,) of both residuals. form: (q_xx, q_xy, q_yy). offset: the slope or correlation about which the scores
    are taken, their mean is added to it. limits: ends of what is possible. range: largest score less the smallest on
    the box [-1, 1]^p; largest: |score|. noise: scale of the noise in the mean per unit that the true number is off the
    offset. bias, variance: mean and variance of the products of noises in the mean. hidden: whether the noise hides the
    columns given, so that they cannot be held fixed. unknown: whether there is no interval: that, or it hides the
    spread of a residual. The scores are then about 0, and a test of 0 needs no spread; likewise below `SURE` sds, where
    an interval counts `UNSURE` times the noise of the spread (docs/theory/residual_scores.md#selected).
    """

    a: Any
    b: Any
    form: Any
    offset: Any
    limits: Any
    range: Any
    largest: Any
    noise: Any
    bias: Any
    variance: Any
    hidden: Any
    unknown: Any

    heaviness: ClassVar[float] = HEAVINESS

    def of(self, values):
        """Scores (n,) of columns (n, p)."""
        first = self.a[0] + values @ self.a[1:]
        second = self.b[0] + values @ self.b[1:]
        q_xx, q_xy, q_yy = self.form
        return q_xx * first**2 + q_xy * first * second + q_yy * second**2

    def explained(self, off):
        """Variance of a score that comes from the true number's being so far off, at least."""
        return off**2

    def steep(self, num_records: int):
        """Scale of the noise in the mean score per unit off the offset."""
        del num_records
        return self.noise

    def products(self, num_records: int, variance_per_scale):
        """Mean and variance of products of noises in the mean score."""
        del num_records, variance_per_scale
        return self.bias, self.variance


def scores(noisy: Noisy, x, y, given, correlation: bool) -> Scores:
    """The scores of the slope of y on x (of their correlation) given a mask (p,) of columns; x, y: places, from 0."""
    p = len(given)
    inside = jnp.concatenate([jnp.ones(1, bool), jnp.asarray(given)])
    fit, hidden = _fitted(noisy, inside)
    a, b = (jnp.eye(p + 1)[place + 1] - fit @ noisy.matrix[:, place + 1] for place in (x, y))
    var_x, lost_x, unsure_x = _clear(a @ noisy.matrix @ a, noisy, a)
    var_y, lost_y, unsure_y = _clear(b @ noisy.matrix @ b, noisy, b)
    lost, unsure = (lost_x | lost_y, unsure_x | unsure_y) if correlation else (lost_x, unsure_x)
    counted = jnp.where(unsure, UNSURE, 1.0)
    ratio = jnp.where(unsure, 0.0, a @ noisy.matrix @ b / jnp.sqrt(var_x * var_y))
    if correlation:
        offset = jnp.clip(ratio, -MAX_CORRELATION, MAX_CORRELATION)
        form = (-0.5 * offset / var_x, 1.0 / jnp.sqrt(var_x * var_y), -0.5 * offset / var_y)
        both = noisy.scale_of(a) / var_x, noisy.scale_of(b) / var_y
        noise, far = 0.5 * counted * (both[0] + both[1]), (-jnp.ones(()), jnp.ones(()))
        # with variances off by relative errors r and s the correlation solves rho (r^2 + s^2)/8 away, to second order
        bent = noisy.variance_per_scale * (both[0] + both[1]) ** 2 * jnp.abs(offset) / 8.0
    else:
        offset = jnp.clip(ratio, -1.0, 1.0) * jnp.sqrt(var_y / var_x)
        form = (-offset / var_x, 1.0 / var_x, jnp.zeros_like(var_x))
        noise, bent = counted * noisy.scale_of(a) / var_x, 0.0
        # no slope is above the ratio of the sds; the noise may hide four fifths of one variance, and add to the other
        most = FAR * counted * jnp.sqrt((var_y + CLEAR * noisy.sd_of(b)) / var_x)
        far = (-most, most)
    coefficients = jnp.stack(form)
    low, high = extremes(a, b, coefficients)
    bias, variance = _products(noisy, inside, fit, a, b, coefficients)
    return Scores(
        a=a,
        b=b,
        form=coefficients,
        offset=offset,
        limits=far,
        range=high - low,
        largest=jnp.maximum(high, -low),
        noise=noise,
        bias=bias,
        variance=variance + bent**2,
        hidden=hidden,
        unknown=hidden | lost,
    )


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
    """A residual variance, floored, whether its noise hides it, and whether the noise may have made most of it."""
    least = noisy.sd_of(a)
    return jnp.maximum(variance, jnp.maximum(least, 1e-12)), variance < CLEAR * least, variance < SURE * least


def extremes(a, b, form):
    """Smallest and largest value of the form at (u, v) = (a'W, b'W) for w in the box [-1, 1]^p; 0 counted in.

    (u, v) runs over a zonogon: its edges are its generators in the order of their angles, there and back. On an edge
    the form is a parabola; inside it has no extremum but 0 at the origin.
    """
    centre = jnp.stack([a[0], b[0]])
    sides = jnp.stack([a[1:], b[1:]], axis=1)
    up = (sides[:, 1] > 0.0) | ((sides[:, 1] == 0.0) & (sides[:, 0] > 0.0))
    sides = jnp.where(up[:, None], sides, -sides)
    sides = sides[jnp.argsort(jnp.arctan2(sides[:, 1], sides[:, 0]))]
    offsets = jnp.cumsum(2.0 * sides, axis=0) - 2.0 * sides - jnp.sum(sides, axis=0)[None]
    starts = jnp.concatenate([centre[None] + offsets, centre[None] - offsets])
    steps = jnp.concatenate([2.0 * sides, -2.0 * sides])

    def at(points):
        q_xx, q_xy, q_yy = form
        return q_xx * points[:, 0] ** 2 + q_xy * points[:, 0] * points[:, 1] + q_yy * points[:, 1] ** 2

    curved, begin, end = at(steps), at(starts), at(starts + steps)
    slope = end - begin - curved
    top = jnp.clip(jnp.where(curved == 0.0, 0.0, -0.5 * slope / jnp.where(curved == 0.0, 1.0, curved)), 0.0, 1.0)
    found = jnp.concatenate([begin, end, at(starts + top[:, None] * steps), jnp.zeros(1)])
    far = jnp.abs(centre) + jnp.sum(jnp.abs(sides), axis=0)
    slack = SLACK * jnp.sum(jnp.abs(form) * jnp.stack([far[0] ** 2, far[0] * far[1], far[1] ** 2]))
    return jnp.min(found) - slack, jnp.max(found) + slack


def _products(noisy: Noisy, inside, fit, a, b, form):
    """Mean and variance of what the noises of both fits make together of the mean score.

    With r = N a and s = N b on the columns inside, the mean score moves by q_xy r'F s + q_xx r'F r + q_yy s'F s.
    """
    mask = inside.astype(a.dtype)
    squares = noisy.variance_per_scale * noisy.scales**2

    def covariance(first, second):
        crossed = squares * jnp.outer(second, first)
        shared = jnp.diag(squares @ (first * second) - jnp.diagonal(crossed))
        return (shared + crossed) * jnp.outer(mask, mask)

    q_xx, q_xy, q_yy = form
    joint = jnp.block([[covariance(a, a), covariance(a, b)], [covariance(b, a), covariance(b, b)]])
    moved = jnp.block([[q_xx * fit, 0.5 * q_xy * fit], [0.5 * q_xy * fit, q_yy * fit]]) @ joint
    return jnp.trace(moved), 2.0 * jnp.trace(moved @ moved)
