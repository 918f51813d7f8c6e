"""Effect sizes and their 95 % intervals, from what a test releases anyway: post-processing, no further cost.

Theory: docs/theory/effect_sizes.md. An interval inverts the test that gave the p-value, with the same null variance and
the same noise, so that it leaves out 0 exactly where p <= 0.05. Where the second number of a ratio is noisy too, its
noise is integrated over its law. An effect is what the released numbers estimate, on the test's own scale: no interval
rests on a guess of the residuals' scale.
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

from jaxdp import null_laws
from jaxdp._base.bisection import bisected
from jaxdp._base.bounded import bounded_jit
from jaxdp.core import Norm
from jaxdp.results import bare

MISS = 0.05  # one minus the coverage
OPEN = 1e-6  # relative: a p-value so little above `miss` is one of it
MISSED = 0.2  # one minus the power of a detectable effect
NODES = 48  # equally likely values of a noise
GRID = 121  # effects between the limits, beyond which a one-sided p-value may rise again
HALVINGS = 32
EVERYTHING = 0.98  # of what is possible: an interval this wide says nothing, and is not given
NEAREST_LOGARITHM, FURTHEST_LOGARITHM = 1e-5, 700.0  # of a ratio that is written out
MIN_SIZE = 2.0**-20  # of its limit: that of a finding; it must be seen beside 1/2 in float32
MIN_REST = 1e-4  # of a null variance is left at effects next to the limits
UNCROWDED, MAX_CROWDED = 0.25, 20.0  # (sd/distance from a bound)^2 of columns that do not crowd there; the most taken
ASSUMED_SPREADS = "; its interval assumes that the spread of neither column follows the other"  # at effect 0 (#pivot)
NOTHING = "Nothing could be found: "  # begins the note of an answer whose p-value is 1 whatever the data hold
CLEAR = 3.0  # noise sds of a second number, from which an estimate divides by it as it is


def settled_program(method):
    """A method (release, ...) of a test's final stage as one (shapes, release, ...) of the test as given to `run`.

    Compiled, and cached: run by itself, its loops would be compiled anew for every answer.
    """
    program = bounded_jit(method, quickly=True)

    @functools.wraps(method)
    def of_given(self, shapes, release, *more):
        return program(self.settled(shapes, release), bare(release), *more)

    return of_given


def noise_quantiles(mechanism, sensitivity):
    """Equally likely values of the noise, (NODES,): normal for mechanisms with an L2 bound, else Laplace."""
    share = (jnp.arange(NODES) + 0.5) / NODES
    sd = jnp.sqrt(mechanism.variance(sensitivity))
    if mechanism.norm is Norm.L2:
        return sd * norm.ppf(share)
    away = share - 0.5
    return -jnp.sqrt(0.5) * sd * jnp.sign(away) * jnp.log1p(-2.0 * jnp.abs(away))


def keeps_none(p_value, miss=MISS):
    """Whether an interval of this p-value holds the effect of independence: a p-value of `miss` itself is a finding.

    P-values that are ranks have that value once in a while, and may be a rounding above it.
    """
    return p_value > miss * (1.0 + OPEN)


def inverted(p_value, null_p_value, estimate, limits, miss=MISS):
    """The effects that a two-sided test does not reject at level `miss`, (low, high); NaN where that is all or none.

    p_value: effect -> p-value, largest at the estimate. null_p_value: that of effect 0, as the test gives it: 0 lies in
    the interval exactly where this is above `miss`. estimate: within the limits. limits: (low, high) about 0.
    """
    kept = jnp.asarray(keeps_none(null_p_value, miss))[None]
    low, high, estimate = jnp.broadcast_arrays(*limits, estimate)
    limits, beyond = jnp.stack([low, high]), jnp.stack([estimate > 0.0, estimate < 0.0])  # 0 is between it and a limit

    def halve(step, found):
        """The limits first, then the estimate, then halvings: of all by one program, in which the law stands once."""
        inside, outside, *seen = found
        looked = (step == 0, step == 1)
        at = jnp.select(looked, (limits, jnp.broadcast_to(estimate, limits.shape)), 0.5 * (inside + outside))
        values = jax.vmap(p_value)(at)
        halved, held = step > 1, values >= miss
        inside, outside = jnp.where(halved & held, at, inside), jnp.where(halved & ~held, at, outside)
        return inside, outside, *(jnp.where(now, values, old) for now, old in zip(looked, seen, strict=True))

    inside, outside = jnp.where(kept & beyond, 0.0, estimate[None]), jnp.where(~kept & beyond, 0.0, limits)
    found, _, at_limits, at_estimate = jax.lax.fori_loop(
        0, HALVINGS + 2, halve, (inside, outside, jnp.zeros_like(inside), jnp.zeros_like(inside))
    )
    low, high = jnp.where((at_limits >= miss) & (kept | ~beyond), limits, found)
    nothing = (high - low >= EVERYTHING * (limits[1] - limits[0])) | (at_estimate[0] < miss)
    return jnp.where(nothing, jnp.nan, low), jnp.where(nothing, jnp.nan, high)


def credible(one_sided, effect, limit, lost):
    """One-sided p-values that do not fall the further an effect is: "at most this" and "at least this".

    The largest of each over the effect and those on a grid from there to the limit (docs/theory/equivalence.md); 1
    where there is no interval. one_sided: effect -> both, of a pivot. lost: whether there is none.
    """
    effect = jnp.clip(effect, -limit, limit)  # one beyond is judged as the limit
    places = jnp.append(jnp.linspace(-limit, limit, GRID), effect)
    at_most, at_least = jax.vmap(one_sided)(places)
    at_most = jnp.max(jnp.where(places <= effect, at_most, 0.0))
    at_least = jnp.max(jnp.where(places >= effect, at_least, 0.0))
    return tuple(jnp.where(lost, 1.0, side) for side in (at_most, at_least))


def size_interval(null_p_value, at_least, at_most, limit, clear, miss=MISS):
    """(low, high) of a size, a number from 0 to `limit`, from the two one-sided p-values of every size.

    null_p_value: that of size 0, as the test gives it. at_least: size -> P(the statistic is at least what was
    released), rising from there. at_most: the other tail, falling; an upper bound of it may be given. clear: size from
    which either tail is judged at half of `miss`; below, the part of the second grows in proportion from none at 0, so
    that 0 lies in the interval exactly where the p-value is above `miss` (docs/theory/kruskal_wallis.md#several).
    NaN where that is all.
    """

    def part(size):
        return 0.5 * miss * jnp.minimum(size / clear, 1.0)

    ends = 1.0 * limit, 0.0 * limit  # rising conditions: they hold at the limit, if at all
    least, _ = bisected(lambda size: at_least(size) >= miss - part(size), *ends, HALVINGS)
    low = jnp.where(keeps_none(null_p_value, miss), 0.0, jnp.maximum(least, MIN_SIZE * limit))
    high, _ = bisected(lambda size: at_most(size) < part(size), *ends, HALVINGS)
    nothing = high - low >= EVERYTHING * limit
    return jnp.where(nothing, jnp.nan, low), jnp.where(nothing, jnp.nan, jnp.maximum(high, low))


def shrunk(variance, effect):
    """A null variance at an effect in [-1, 1]: (1 - effect^4) of it, which columns of many laws keep to (#ratio)."""
    return variance * jnp.maximum(1.0 - effect**4, MIN_REST)


def heaped(untied):
    """s = p(1 - p) of two columns with a share 1 - p of equal values each, p at most 1/2 (#ties).

    untied: the product over both columns of 1 - sum of p_v^3, p_v the shares of their values.
    """
    heap = jnp.cbrt(1.0 - jnp.sqrt(jnp.clip(untied, 1e-6, 1.0 - 1e-6)))  # at 1 its gradient is infinite
    rest = jnp.minimum(1.0 - heap, 0.5)
    return rest * (1.0 - rest)


def count_growth(g, s, order):
    """The variance of U about a mean that goes as V^order, in variances of U at g = 0, of rare levels (#ties); >= 1.

    s: as of `heaped`, or the root of V/n of two binary columns. g: U/V at the effect. order: power of V in the mean.
    """
    g = jnp.minimum(jnp.abs(g), 1.0 / s)  # beyond it no table has these margins
    return 1.0 + g * (1.0 - 4.0 * s) * (1.0 - (4.0 * order - 2.0 * order**2) * g * s + 2.0 * order**2 * (g * s) ** 2)


def crowded_growth(effect, ratio):
    """The variance of a correlation of columns that crowd at a bound, in variances of uncrowded ones (#crowded); >= 1.

    ratio: sd over the mean's distance from the nearest bound, of both columns; negative where they crowd at bounds of
    unlike sign.
    """
    crowd = jnp.clip(ratio**2 - UNCROWDED, 0.0, MAX_CROWDED)
    size = jnp.where(effect * ratio > 0.0, jnp.abs(effect), 0.0)
    return 1.0 + 2.0 * size * (1.0 - size) * crowd


def with_interval(estimate, interval):
    """(estimate, interval); both NaN where nothing is known."""
    return jnp.where(jnp.isnan(interval[0]), jnp.nan, estimate), tuple(interval)


def agreeing(interval, p_value, miss=MISS):
    """The interval of a test that does not come from its p-value, NaN where one leaves out 0 and the other does not."""
    low, high = interval
    agrees = ((low > 0.0) | (high < 0.0)) != keeps_none(p_value, miss)
    return jnp.where(agrees, low, jnp.nan), jnp.where(agrees, high, jnp.nan)


def ratio(released, null_p_value, noise, expected, tail, *, limits, miss=MISS):
    """(estimate, interval) of a ratio of a sum and a second sum, both released with noise (#ratio).

    released: both numbers. null_p_value: that of effect 0, as the test gives it. noise: equally likely values of the
    noise of the second. expected: (effect, second) -> the first, in proportion to the effect. tail: (what the first is
    from that, effect) -> its two-sided p-value, noise of the first counted. Errors of the second are integrated:
    p(g) = 2 min(m, 1 - m) of the mean m of the one-sided p-values of first - expected(g, second - noise), negative
    seconds counting as 0. Nothing is known where noise hides the second (below `CLEAR` sds of it).
    """
    first, second = released
    seconds = jnp.maximum(second - noise, 0.0)

    def p_value(effect):
        left = first - expected(effect, seconds)
        two_sided = tail(left, effect)
        above = jnp.mean(jnp.where(left >= 0.0, 0.5 * two_sided, 1.0 - 0.5 * two_sided))
        return 2.0 * jnp.minimum(above, 1.0 - above)

    low, high = limits
    clear = CLEAR * jnp.sqrt(jnp.mean(noise**2))
    found = jnp.clip(first / expected(1.0, jnp.maximum(second, clear)), low, high)
    ends = inverted(p_value, null_p_value, found, limits, miss)
    return with_interval(found, [jnp.where(second >= clear, end, jnp.nan) for end in ends])


def detectable(tail, spread, level):
    """The mean of a noisy sum that a test at this level finds with power 0.8; tail: value -> its null p-value."""
    return null_laws.two_sided_quantile(tail, spread, level) + null_laws.two_sided_quantile(tail, spread, 2.0 * MISSED)


# --- mean kernel products


def concordance(value, null_p_value, most, variance, mechanism, sensitivity, miss=MISS):
    """(estimate, interval) of the mean of a sum of kernel products in [-1, 1] (#concordance).

    value: the noisy sum. null_p_value: that of mean 0, as the test gives it. most: its largest size. variance: of the
    sum under the null hypothesis, as the p-value takes it; at mean c, (1 - c^4) times that.
    """

    def p_value(mean):
        return mechanism.null_p_value(value - most * mean, jnp.sqrt(shrunk(variance, mean)), sensitivity)

    found = jnp.clip(value / most, -1.0, 1.0)
    return with_interval(found, inverted(p_value, null_p_value, found, (-1.0, 1.0), miss))


def detectable_concordance(most, variance, mechanism, sensitivity, level):
    """The concordance that would have been found with power 0.8: that of `concordance`, public."""
    sd = jnp.sqrt(variance)
    spread = jnp.sqrt(variance + mechanism.variance(sensitivity))
    return detectable(lambda value: mechanism.null_p_value(value, sd, sensitivity), spread, level) / most


def least_correlation(interval) -> float:
    """The end nearer 0 of what the correlation of normal columns can be, if an interval of their concordance holds it.

    0 where the interval holds 0; negative where all of it is.
    """
    return float(np.sin(0.5 * np.pi * _nearest_to_zero(interval)))


def _nearest_to_zero(interval) -> float:
    low, high = (float(end) for end in interval)
    return low if low > 0.0 else min(high, 0.0)


def describe_correlation(test, x, y, interval) -> str:
    """What an interval of a concordance says about the correlation of normal columns (#lower-bounds)."""
    return _told_least(0.0 if interval is None else least_correlation(interval), x, y)


def describe_clipped(test, x, y, interval) -> str:
    """What an interval of a correlation of clipped columns says about that of normal columns (#lower-bounds)."""
    told = _told_least(0.0 if interval is None else _nearest_to_zero(interval), x, y)
    return told + describe_assumption(x[0], y[0], interval)


def _told_least(least: float, x, y) -> str:
    if least == 0.0 or not all(rule.is_continuous for rule in (*x, *y)):  # levels are never normal
        return ""
    bound = f"at least {least:.2g}" if least > 0.0 else f"at most {least:.2g}"
    return f"; where both are normal given Z, their correlation is {bound}"


def describe_direction(x, y, interval) -> str:
    """What goes with what, where an interval leaves out 0; x, y: the rules of ordered or binary columns."""
    if interval is None or not (interval[0] > 0.0 or interval[1] < 0.0):
        return ""
    rises = interval[0] > 0.0
    subject = f"{x.name} = {x.levels[1]}" if is_binary(x) else f"Higher {x.name}"
    if is_binary(y):
        return f". {subject} goes with {y.name} = {y.levels[1]} {'more' if rises else 'less'} often"
    return f". {subject} goes with {'higher' if rises else 'lower'} {y.name}"


def describe_assumption(x, y, interval) -> str:
    """What an interval by the null variance assumes where 0 does not mean independence: not of two binary columns."""
    return "" if interval is None or (is_binary(x) and is_binary(y)) else ASSUMED_SPREADS


def describe_ratio(name: str, interval, limit: float = math.inf) -> str:
    """The interval of a logarithm as one of the ratio itself; empty where there is no interval.

    limit: on either side of 0, where the search for an end stopped: a ratio beyond is not excluded.
    """
    if interval is None:
        return ""
    low, high = (_ratio_of(float(end)) for end in interval)
    open_ones = [
        f"; the {end} end is where the search stops: {more} ratios are not excluded"
        for end, more, at in (("lower", "smaller", -interval[0]), ("upper", "larger", interval[1]))
        if float(at) >= limit * (1.0 - 1e-4)
    ]
    return f" ({name} {low} to {high}{''.join(open_ones)})"


def _ratio_of(logarithm: float) -> str:
    """Beyond what a float holds, per a unit far larger than what the column spans, the power of e.

    Per a unit far smaller, how far it lies from 1.
    """
    if 0.0 < abs(logarithm) < NEAREST_LOGARITHM:
        return f"1 {'+' if logarithm > 0.0 else '-'} {abs(math.expm1(logarithm)):.3g}"
    return _beside_one(math.exp(logarithm)) if abs(logarithm) < FURTHEST_LOGARITHM else f"e^{logarithm:.3g}"


def _beside_one(ratio: float) -> str:
    """With enough digits that a ratio which is not 1 does not read as 1: the p-value beside it would contradict it."""
    return next((told for digits in range(3, 7) if float(told := f"{ratio:.{digits}g}") != 1.0), "1")


def is_binary(rule) -> bool:
    """Whether a column of a schema has two levels."""
    return not rule.is_continuous and len(rule.levels) == 2


def for_pairs(one, *values):
    """`one` for every pair of columns: scalars for one pair, else arrays of the pairs' shape."""
    shape = jnp.shape(values[0])
    if not shape:
        return one(*values)
    found = jax.vmap(one)(*(jnp.ravel(part) for part in values))
    return jax.tree.map(lambda part: part.reshape(shape), found)
