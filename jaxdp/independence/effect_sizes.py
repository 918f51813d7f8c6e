"""Effect sizes and their 95 % intervals, from what a test releases anyway: post-processing, no further cost.

Theory: docs/theory/effect_sizes.md. A released sum carries noise of a known law; where its null variance is released
too, the interval draws both noises from their laws (a flat-prior pivot): coverage is measured, not proved. An effect is
what the released numbers estimate, on the test's own scale: no interval rests on a guess of the residuals' scale.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

from jaxdp.core import Norm

MISS = 0.05  # one minus the coverage
NODES = 48  # equally likely values of each noise
GRID = np.sin(0.5 * np.pi * np.linspace(-1.0, 1.0, 513))[1:-1]  # correlations, dense near -1 and 1
MIN_KEPT = 0.025  # share of the noise values that leave a variance > 0; below, nothing is known


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


def ratio(released, noises, to_ratio, spread, *, least, limits, within: bool = False, clear=-jnp.inf):
    """(estimate, interval) of a ratio of a sum and a second sum (its variance, say), both released with noise (#ratio).

    released: both numbers. noises: quantiles of the noise of each. to_ratio: (first, second) -> the ratio.
    spread: (ratio, second) -> its sampling sd. least: of the second sum; below it nothing is known.
    within: whether noises that give a ratio beyond the limits are left out, as impossible.
    clear: of the released second sum; below it the interval is everything.
    """
    low, high = limits
    firsts, seconds = jnp.meshgrid(released[0] - noises[0], released[1] - noises[1], indexing="ij")
    kept = seconds.ravel() > least
    safe = jnp.where(kept, seconds.ravel(), least)
    centres = to_ratio(firsts.ravel(), safe)
    kept = kept & (released[1] >= clear) & ((not within) | ((centres > low) & (centres < high)))
    spreads = spread(jnp.clip(centres, low, high), safe)
    estimate = jnp.clip(to_ratio(released[0], jnp.maximum(released[1], least)), low, high)
    return estimate, pivot(centres, spreads, kept, limits)


# --- mean kernel products


def concordance(value, most, variance, mechanism, sensitivity):
    """(estimate, interval) of the mean of a sum of kernel products in [-1, 1], whatever the laws (#concordance).

    The values of `GRID` that a two-sided test at level 0.05 does not reject. value: the noisy sum. most: its largest
    size. variance: bound on its variance where the mean is 0; at mean c, (1 - c^2) times that bounds it.
    """
    grid = jnp.asarray(GRID, float)
    p_values = mechanism.null_p_value(value - most * grid, jnp.sqrt(variance * (1.0 - grid**2)), sensitivity)
    inside = p_values >= jnp.minimum(MISS, jnp.max(p_values))
    first, last = jnp.argmax(inside), GRID.size - 1 - jnp.argmax(inside[::-1])
    low = jnp.where(first == 0, -1.0, _between(p_values, grid, first, -1))
    high = jnp.where(last == GRID.size - 1, 1.0, _between(p_values, grid, last, 1))
    return jnp.clip(value / most, -1.0, 1.0), (low, high)


def least_correlation(interval) -> float:
    """How far from 0 the correlation of normal columns is at least, if an interval of their concordance covers it."""
    low, high = (float(end) for end in interval)
    return float(np.sin(0.5 * np.pi * max(low, -high, 0.0)))


def told_concordance(test, x, y, interval) -> str:
    """Where differences are cut, in the columns' units, and what it says about the correlation of normal columns."""
    cuts = [float(c) * rule.half_range for c, rule in zip(test.widths(), (x[0], y[0]), strict=True)]
    units = " of their logarithms" if x[0].logarithmic or y[0].logarithmic else ""
    told = f" in X, cut at {cuts[0]:.3g}, and in Y, cut at {cuts[1]:.3g}{units}, divided by both"
    return told + told_correlation(test, x, y, interval)


def told_correlation(test, x, y, interval) -> str:
    """What an interval of a concordance says about the correlation of normal columns (#lower-bounds)."""
    del test
    return _told_least(least_correlation(interval), x, y)


def told_clipped(test, x, y, interval) -> str:
    """What an interval of a correlation of clipped columns says about that of normal columns (#lower-bounds)."""
    del test
    return _told_least(max(float(interval[0]), -float(interval[1]), 0.0), x, y)


def _told_least(least: float, x, y) -> str:
    if not least > 0.0 or not all(rule.is_continuous for rule in (*x, *y)):  # levels are never normal
        return ""
    return f"; where both are normal given Z, their correlation is at least {least:.2g} from 0"


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
