"""Effect sizes and their 95 % intervals, from what a test releases anyway: post-processing, no further cost.

Theory: docs/theory/effect_sizes.md. A released sum carries noise of a known law; where its null variance is released
too, the interval draws both noises from their laws (a flat-prior pivot): coverage is measured, not proved. Correlations
are those of normal columns, clipped as the test clips them, that give the released numbers.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

from jaxdp.core import Norm

MISS = 0.05  # one minus the coverage
NODES = 48  # equally likely values of each noise
SERIES = 48  # Hermite terms
GRID = np.sin(0.5 * np.pi * np.linspace(-1.0, 1.0, 513))[1:-1]  # correlations, dense near -1 and 1
MIN_KEPT = 0.025  # share of the noise values that leave a variance > 0; below, nothing is known
WIDEST_CLIP = 8.0  # in residual sds: beyond, nothing is clipped
_POINTS = np.linspace(-8.0, 8.0, 801)


def noise_quantiles(mechanism, sensitivity):
    """Equally likely values of the noise, (NODES,): normal for mechanisms with an L2 bound, else Laplace."""
    share = (jnp.arange(NODES) + 0.5) / NODES
    sd = jnp.sqrt(mechanism.variance(sensitivity))
    if mechanism.norm is Norm.L2:
        return sd * norm.ppf(share)
    away = share - 0.5
    return -jnp.sqrt(0.5) * sd * jnp.sign(away) * jnp.log1p(-2.0 * jnp.abs(away))


def pivot(centres, spreads, kept, limits):
    """The central interval of an equal mixture of N(centre, spread^2) over the kept values, within limits.

    The limits themselves where next to nothing is kept.
    """
    weight = kept / jnp.maximum(jnp.sum(kept), 1.0)
    spreads = jnp.maximum(spreads, 1e-12)

    def below(t):
        return jnp.sum(weight * norm.cdf((t - centres) / spreads))

    low, high = limits
    start = (
        jnp.min(jnp.where(kept, centres - 6.0 * spreads, 0.0)),
        jnp.max(jnp.where(kept, centres + 6.0 * spreads, 0.0)),
    )
    ends = [jnp.clip(_solve(below, share, *start), low, high) for share in (MISS / 2, 1.0 - MISS / 2)]
    known = jnp.mean(kept) > MIN_KEPT
    return jnp.where(known, ends[0], low), jnp.where(known, ends[1], high)


def _solve(increasing, wanted, low, high):
    """Where an increasing function is `wanted`, by bisection."""

    def halve(_, ends):
        middle = 0.5 * (ends[0] + ends[1])
        return jax.lax.cond(increasing(middle) < wanted, lambda: (middle, ends[1]), lambda: (ends[0], middle))

    low, high = jax.lax.fori_loop(0, 50, halve, (low, high))
    return 0.5 * (low + high)


def ratio(released, noises, to_ratio, spread, *, least, limits):
    """(estimate, interval) of a ratio of a sum and a second sum (its variance, say), both released with noise (#ratio).

    released: both numbers. noises: quantiles of the noise of each. to_ratio: (first, second) -> the ratio.
    spread: (ratio, second) -> its sampling sd. least: of the second sum; below it nothing is known.
    """
    low, high = limits
    firsts, seconds = jnp.meshgrid(released[0] - noises[0], released[1] - noises[1], indexing="ij")
    kept = seconds.ravel() > least
    safe = jnp.where(kept, seconds.ravel(), least)
    centres = to_ratio(firsts.ravel(), safe)
    spreads = spread(jnp.clip(centres, low, high), safe)
    estimate = jnp.clip(to_ratio(released[0], jnp.maximum(released[1], least)), low, high)
    return estimate, pivot(centres, spreads, kept, limits)


# --- clipped normal columns


def hermite_moments(clip):
    """Coefficients of clip(t/clip)^p for p = 1, ..., 4 in normalised Hermite polynomials: (4, SERIES)."""
    points = jnp.asarray(_POINTS, float)
    weight = jnp.exp(-0.5 * points**2)
    weight = weight / jnp.sum(weight)
    basis = [jnp.ones_like(points), points]
    for q in range(2, SERIES):
        basis.append((points * basis[-1] - np.sqrt(q - 1.0) * basis[-2]) / np.sqrt(float(q)))
    values = jnp.clip(points / clip, -1.0, 1.0)
    powers = jnp.stack([values**p for p in (1, 2, 3, 4)])
    return jnp.matmul(powers * weight[None], jnp.stack(basis).T, precision="highest")


def _means(clip):
    """function (p, s) -> E x^p y^s of clipped normals over the correlations of `GRID`."""
    moments = hermite_moments(clip)
    powers = jnp.asarray(GRID, float)[:, None] ** jnp.arange(SERIES)[None]

    def mean(p: int, s: int):
        right = moments[s - 1] if s else jnp.zeros(SERIES).at[0].set(1.0)
        return jnp.matmul(powers, moments[p - 1] * right, precision="highest")

    return mean


def winsorised_correlation(covariance, variance, noises, *, count, inner, cells, clip):
    """(estimate, interval) of the correlation from S and V of `PartitionGCM` (#winsorised).

    noises: quantiles of the noise of S and of V. count: n. inner: degrees of freedom within cells. cells: K.
    clip: winsorising level in residual sds.
    """
    mean = _means(jnp.minimum(clip, WIDEST_CLIP))
    v, crossed = mean(2, 0), mean(2, 2)
    linear = mean(1, 1) / v
    seen = linear / jnp.sqrt(1.0 + cells / inner * (crossed / v**2 - 1.0))  # of S/root(inner V), at each correlation
    psi = crossed / v**2 - 2.0 * linear * mean(3, 1) / v**2
    psi = jnp.sqrt(jnp.maximum(psi + linear**2 * (mean(4, 0) + crossed) / (2.0 * v**2), 0.0))
    least = 1e-3 * count

    def found(ratio):
        return jnp.interp(ratio, seen, jnp.asarray(GRID, float))

    tops, variances = jnp.meshgrid(covariance - noises[0], variance - noises[1], indexing="ij")
    ratios = (tops / jnp.sqrt(inner * jnp.maximum(variances, least))).ravel()
    kept = (variances.ravel() > least) & (jnp.abs(ratios) < 1.0)
    spreads = jnp.interp(ratios, seen, psi) / jnp.sqrt(1.0 * inner)
    low, high = pivot(ratios, spreads, kept, (-1.0, 1.0))
    estimate = found(covariance / jnp.sqrt(inner * jnp.maximum(variance, least)))
    return estimate, tuple(jnp.where(jnp.abs(end) < 1.0, found(end), end) for end in (low, high))


def concordance_curve(clip):
    """E psi psi' of normal columns over `GRID`; clip in sds of the differences, None for signs."""
    if clip is None:
        return 2.0 / np.pi * jnp.arcsin(jnp.asarray(GRID, float))
    return _means(clip)(1, 1)


def band_spread(num_neighbors: int):
    """Variance of S of `BandGCM` for normal columns, over `GRID`, as a share of that at 0 (#neighbours)."""
    k, r = num_neighbors, jnp.asarray(GRID, float)
    tau = 2.0 / np.pi * jnp.arcsin(r)
    shared = 1.0 / 9.0 - (2.0 / np.pi * jnp.arcsin(0.5 * r)) ** 2
    found = (1.0 - tau**2) / (4 * k) + shared * (2 * k - 1) / (2 * k)
    return found / (1.0 / (4 * k) + (2 * k - 1) / (18 * k))


def inverted(value, expected, sd, mechanism, sensitivity):
    """(estimate, interval): the correlations of `GRID` that a two-sided test at level 0.05 does not reject (#inverted).

    expected, sd: of the sum without noise, over `GRID`.
    """
    grid = jnp.asarray(GRID, float)
    p_values = mechanism.null_p_value(value - expected, sd, sensitivity)
    inside = p_values >= jnp.minimum(MISS, jnp.max(p_values))
    first, last = jnp.argmax(inside), GRID.size - 1 - jnp.argmax(inside[::-1])
    low = jnp.where(first == 0, -1.0, _between(p_values, grid, first, -1))
    high = jnp.where(last == GRID.size - 1, 1.0, _between(p_values, grid, last, 1))
    return jnp.interp(value, expected, grid), (low, high)


def _between(p_values, grid, at, step: int):
    """Where the p-value passes 0.05 between a point inside and its neighbour outside, linearly."""
    other = jnp.clip(at + step, 0, GRID.size - 1)
    inside, outside = p_values[at], p_values[other]
    share = (inside - MISS) / jnp.maximum(inside - outside, 1e-12)
    return grid[at] + jnp.clip(share, 0.0, 1.0) * (grid[other] - grid[at])


def for_pairs(one, *values):
    """`one` for every pair of columns: scalars for one pair, else arrays of the pairs' shape."""
    shape = jnp.shape(values[0])
    if not shape:
        return one(*values)
    found = jax.vmap(one)(*(jnp.ravel(part) for part in values))
    return jax.tree.map(lambda part: part.reshape(shape), found)


def noisy_phi(table, noise, count):
    """(estimate, interval) of the phi coefficient of a noisy 2 x 2 table; noise: fresh draws (m, 2, 2) (#tables)."""

    def phi(table):
        rows, columns = jnp.sum(table, axis=-1), jnp.sum(table, axis=-2)
        margins = jnp.concatenate([rows, columns], axis=-1)
        kept = jnp.min(margins, axis=-1) >= 1.0
        scale = jnp.sqrt(jnp.prod(jnp.maximum(margins, 1.0), axis=-1))
        product = table[..., 0, 0] * table[..., 1, 1] - table[..., 0, 1] * table[..., 1, 0]
        return product / scale, kept

    centres, kept = phi(table[None] - noise)
    kept = kept & (jnp.abs(centres) <= 1.0)
    spreads = jnp.sqrt(jnp.maximum(1.0 - centres**2, 0.0) / count)
    return jnp.clip(phi(table)[0], -1.0, 1.0), pivot(centres, spreads, kept, (-1.0, 1.0))
