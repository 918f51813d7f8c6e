"""Exact laws of statistics of two binomial counts plus noise.

Under the null the exposed cases and controls are independent Binomial(N1, p) and Binomial(N0, p). The
tail of a noisy statistic is an exact double sum: over the whole lattice if it is small, otherwise over
a window of +-9 standard deviations (missing mass below 1e-17; probabilities are renormalised) in which
the larger group's counts are thinned.
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base.bisection import bisected
from jaxdp.statistics.tables.unit_circle import Groups

WHOLE_LATTICE = 2**21  # cells; above this, windows are cheaper
NODES = 80  # counts of the larger group in a window: a node every quarter of a standard deviation or closer
HALVINGS = 36  # between the ends of bins
REACH = 9.0  # half width of a window in standard deviations


def rates(groups: Groups, num: int = 96):
    """Null rates p in [0, 1/2] where the law is evaluated: 0, then geometric from 0.1/N, float64 (num,).

    The law of every statistic here is the same for p and 1 - p (swap the two values of X).
    """
    low = 0.1 / groups.total
    return np.concatenate([[0.0], low * (0.5 / low) ** np.linspace(0.0, 1.0, num - 1)])


@functools.lru_cache(maxsize=32)
def _saddle(trials: int):
    """log P(Binomial(n, c/n) = c) for every c, float64 (n + 1,), on the host."""
    count = np.arange(trials + 1, dtype=float)
    log_choose = math.lgamma(trials + 1) - _lgamma(count + 1) - _lgamma(trials - count + 1)
    rate = np.clip(count / trials, 1e-300, 1.0)
    other = np.clip(1.0 - count / trials, 1e-300, 1.0)
    return log_choose + count * np.log(rate) + (trials - count) * np.log(other)


def _lgamma(values):
    from scipy.special import gammaln

    return gammaln(values)


def _deviance(count, expected):
    """count log(count/expected) + expected - count without cancellation; 0 log 0 = 0."""
    safe = jnp.where(expected > 0, expected, 1.0)
    excess = (count - expected) / safe
    inner = jnp.where(count > 0, (1.0 + excess) * jnp.log1p(jnp.where(count > 0, excess, 0.0)), 0.0) - excess
    return jnp.where(expected > 0, safe * inner, jnp.where(count > 0, jnp.inf, 0.0))


def probabilities(trials: int, rate, count):
    """P(Binomial(trials, rate) = count), stable in float32; count integers (..., k), rate (...)."""
    rate = jnp.expand_dims(jnp.asarray(rate, float), -1)
    value = count.astype(rate.dtype)
    base = jnp.asarray(_saddle(trials), rate.dtype)[jnp.clip(count, 0, trials)]
    log_pmf = base - _deviance(value, trials * rate) - _deviance(trials - value, trials * (1.0 - rate))
    return jnp.where((count >= 0) & (count <= trials), jnp.exp(log_pmf), 0.0)


def window(trials: int, rate, nodes: int | None = None, reach: float = REACH):
    """Counts and probabilities (..., k) that hold all but 1e-17 of Binomial(trials, rate), for any rate.

    nodes: at most this many counts, evenly spaced, each standing for its neighbours. For the sum of a function
    that is smooth at the scale of the standard deviation this loses nothing visible. reach: half width in
    standard deviations.
    """
    rate = jnp.asarray(rate, float)
    widest = min(trials + 1, 2 * math.ceil(reach * math.sqrt(trials) / 2 + reach**2 / 4) + 1)
    width = widest if nodes is None else min(widest, nodes)
    wanted = 2.0 * (reach * jnp.sqrt(trials * rate * (1.0 - rate)) + reach**2 / 4) + 1.0
    stride = jnp.maximum(1.0, jnp.ceil(jnp.minimum(wanted, widest) / width))
    start = jnp.floor(trials * rate - stride * (width // 2))
    start = jnp.where(stride > 1.0, start, jnp.clip(start, 0, trials + 1 - width))
    # Without the barrier XLA recomputes the floors in several fusions, and roundings at whole numbers differ.
    start, stride = jax.lax.optimization_barrier((start.astype(jnp.int32), stride.astype(jnp.int32)))
    count = start[..., None] + stride[..., None] * jnp.arange(width, dtype=jnp.int32)
    mass = probabilities(trials, rate, count)
    return jnp.maximum(count, 0).astype(mass.dtype), mass / jnp.sum(mass, axis=-1, keepdims=True)


def windows(groups: Groups, rate, reach: float = REACH):
    """Windows of the two counts: (cases, their mass), (controls, their mass).

    The larger group is thinned: the sum over the other count has made the summand smooth in it.
    """
    thin_cases = groups.cases >= groups.controls
    return (
        window(groups.cases, rate, NODES if thin_cases else None, reach),
        window(groups.controls, rate, None if thin_cases else NODES, reach),
    )


def tail(statistic, survival, value, groups: Groups, rate):
    """P_p(statistic(c11, c10) + noise >= value) for every null rate p, (g,); `value` is a scalar.

    statistic: function of broadcasting counts. survival: x -> P(noise >= x).
    """
    rate = jnp.asarray(rate, float)
    if (groups.cases + 1) * (groups.controls + 1) <= WHOLE_LATTICE:
        return _tail_whole(statistic, survival, value, groups, rate)

    def one(p):
        (cases, mass_cases), (controls, mass_controls) = windows(groups, p)
        beyond = survival(value - statistic(cases[:, None], controls[None, :]))
        return mass_cases @ (beyond @ mass_controls)

    return jax.lax.map(one, rate)


def _tail_whole(statistic, survival, value, groups: Groups, rate):
    cases, controls = (jnp.arange(size + 1, dtype=jnp.int32) for size in groups)
    mass_cases = _normalised(probabilities(groups.cases, rate, cases[None, :]))
    mass_controls = _normalised(probabilities(groups.controls, rate, controls[None, :]))
    counts = cases.astype(rate.dtype)[:, None], controls.astype(rate.dtype)[None, :]
    beyond = survival(value - statistic(*counts))
    rows = jnp.matmul(mass_cases, beyond, precision=jax.lax.Precision.HIGHEST)
    return jnp.sum(rows * mass_controls, axis=-1)


def _normalised(mass):
    return mass / jnp.sum(mass, axis=-1, keepdims=True)


def largest_tail(statistic, survival, value, groups: Groups, rate):
    """max over the given null rates of `tail`: a p-value valid for every one of them."""
    return jnp.max(tail(statistic, survival, value, groups, rate))


def critical_value(statistic, survival, level, groups: Groups, rate, bracket, steps: int = 60):
    """Smallest t (to bisection) with max_p P_p(statistic + noise >= t) <= level, inside bracket = (low, high)."""
    low, high = (jnp.asarray(end, float) for end in bracket)
    return bisected(lambda t: largest_tail(statistic, survival, t, groups, rate) > level, low, high, steps)[1]


def quantiles(statistic, survival, level, groups: Groups, rate, reach, num_bins: int = 2048):
    """(1 - level)-quantile of statistic + noise at every null rate, (g,); statistic >= 0, noise within +-reach.

    The law of the statistic is folded into linearly weighted bins (error of the tail: the noise law's
    curvature times the squared bin width over 8), then the smoothed tail is bisected on the bins.
    """
    width = REACH if level < 1e-3 else 7.0  # missing mass 1e-17 or 3e-12, far below the level

    def one(p):
        (cases, mass_cases), (controls, mass_controls) = windows(groups, p, width)
        value = statistic(cases[:, None], controls[None, :])
        low = jnp.min(value)
        step = jnp.maximum(jnp.max(value) - low, 1e-12) / (num_bins - 2)
        position = ((value - low) / step).ravel()
        index = jnp.clip(position.astype(jnp.int32), 0, num_bins - 2)
        upper = (position - index) * (mass := (mass_cases[:, None] * mass_controls[None, :]).ravel())
        bins = jnp.zeros(num_bins, value.dtype).at[index].add(mass - upper).at[index + 1].add(upper)
        place = low + step * jnp.arange(num_bins)
        ends = low - reach, place[-1] + reach
        return bisected(lambda t: jnp.dot(bins, survival(t - place)) > level, *ends, HALVINGS)[1]

    return jax.lax.map(one, jnp.asarray(rate, float))
