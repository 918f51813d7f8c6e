"""Laws that the planning formulas share: winsorised normals, tables cut from normals, sums in noise.

NumPy float64 on the host, but for `released` and what is compiled.
"""

import dataclasses
import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import null_laws
from jaxdp._base.bisection import bisected
from jaxdp._base.kept_programs import kept_jit
from jaxdp.core import Cost, Release
from jaxdp.independence.continuous import score_law
from jaxdp.mechanisms import Gaussian
from jaxdp.noise import survival
from jaxdp.statistics.winsorize import best_level

REACH, POINTS = 8.0, 401  # trapezoid rule for a normal variable
NOISE_QUANTILES = 16  # of the noise of a released variance
STEPS = 48


@dataclasses.dataclass(frozen=True)
class Concentrated:
    """A budget of rho-zCDP, spent on Gaussian noise, in the place of an epsilon."""

    rho: float


def budget(epsilon: "float | Concentrated") -> dict[str, Any]:
    """The field of a test that holds it."""
    return {"mechanism": Gaussian(epsilon.rho)} if isinstance(epsilon, Concentrated) else {"epsilon": epsilon}


def released(query, bounds, key, value, num_records) -> Release:
    """A release of this statistic in a simulation. bounds: the sensitivity of the query."""
    mechanism = query.mechanism_in_force()
    if isinstance(value, dict):
        keys = dict(zip(value, jax.random.split(key, len(value)), strict=True))
        noise = {name: mechanism[name].noise(keys[name], bounds[name], jnp.shape(value[name])) for name in value}
    else:
        noise = mechanism.noise(key, bounds, jnp.shape(value))
    return Release(jax.tree.map(jnp.add, value, noise), bounds, Cost(1.0), num_records)


@dataclasses.dataclass(frozen=True)
class Noise:
    """Noise on one released number: Laplace of this scale, or normal of this sd; or of many, an array of scales."""

    scale: Any
    normal: bool = False

    @classmethod
    def of(cls, budget: "float | Concentrated", share: float, sensitivity: Any) -> "Noise":
        """What a share of the budget buys for a number that moves by `sensitivity`."""
        if isinstance(budget, Concentrated):
            return cls(sensitivity / float(np.sqrt(2.0 * share * budget.rho)), True)
        return cls(sensitivity / (share * budget))

    @property
    def variance(self) -> Any:
        return self.scale**2 if self.normal else 2.0 * self.scale**2

    def quantiles(self) -> np.ndarray:
        """`NOISE_QUANTILES` equally likely values, adjusted to the variance."""
        from scipy.special import ndtri

        place = (np.arange(NOISE_QUANTILES) + 0.5) / NOISE_QUANTILES
        values = -np.sign(place - 0.5) * np.log(2.0 * np.minimum(place, 1.0 - place))
        values = ndtri(place) if self.normal else values
        return values * np.sqrt(self.variance / np.mean(values**2))


@dataclasses.dataclass(frozen=True)
class Steps:
    """A column of levels on [-1, 1], cut from a normal variable at `edges` (levels - 1,)."""

    edges: np.ndarray
    values: np.ndarray

    @classmethod
    def equal(cls, levels: int, sd: float) -> "Steps":
        """Equally likely levels of a normal variable with this sd."""
        from scipy.special import ndtri

        return cls(sd * ndtri(np.arange(1, levels) / levels), np.linspace(-1.0, 1.0, levels))


def winsorised_moments(
    mean_x, mean_y, effect, limit_x, limit_y, shift=0.0, steps=(None, None)
) -> dict[str, np.ndarray]:
    """Moments of x = clip(X/limit_x, -1, 1), y = clip(Y/limit_y, -1, 1), X = mean_x + N, Y = mean_y + effect N + N'.

    mean_x, mean_y: (k,). shift: (2, k), taken off X and Y first. steps: `Steps` where a column is seen through levels
    only. Returns arrays (k,): means, variances, second moments, covariance, the mean and the variance of x y, and the
    variance of the product of the centred ones (`within_cells` adds what differs between places).
    """
    grid = np.linspace(-REACH, REACH, POINTS)[None, :]
    weight = _density(grid) / _density(grid).sum()
    mean_x, mean_y = (np.atleast_1d(np.asarray(m, float))[:, None] for m in (mean_x, mean_y))
    shift_x, shift_y = np.broadcast_to(np.asarray(shift, float), (2, mean_x.shape[0]))[..., None]
    x = mean_x + grid
    x = x if steps[0] is None else steps[0].values[np.searchsorted(steps[0].edges, x)]
    x = np.clip((x - shift_x) / limit_x, -1.0, 1.0)
    center = mean_y + effect * grid
    if steps[1] is None:
        y, square = _clipped_normal(center - shift_y, limit_y)
    else:
        y, square = _stepped_normal(center, shift_y, limit_y, steps[1])

    def mean(values):
        return np.sum(weight * values, axis=1)

    ex, ey, exy = mean(x), mean(y), mean(x * y)
    covariance = exy - ex * ey
    centred = (x - ex[:, None]) ** 2 * (square - 2.0 * y * ey[:, None] + ey[:, None] ** 2)
    return {
        "mean_x": ex,
        "mean_y": ey,
        "var_x": mean(x * x) - ex**2,
        "var_y": mean(square) - ey**2,
        "square_y": mean(square),
        "covariance": covariance,
        "product_variance": mean(centred) - covariance**2,
        "plain_mean": exy,
        "plain_variance": mean(x * x * square) - exy**2,
    }


def within_cells(moments: dict[str, np.ndarray], cell: np.ndarray) -> dict[str, np.ndarray]:
    """Moments of records of one cell, where means move between the places (k,) of that cell (k,)."""
    cell = np.unique(cell, return_inverse=True)[1]
    count = np.bincount(cell)

    def average(values):
        return (np.bincount(cell, values) / count)[cell]

    x, y = (moments[name] - average(moments[name]) for name in ("mean_x", "mean_y"))
    return {
        **moments,
        "var_x": moments["var_x"] + average(x * x),
        "var_y": moments["var_y"] + average(y * y),
        "covariance": moments["covariance"] + average(x * y),
    }


def _density(t):
    return np.exp(-0.5 * t * t) / np.sqrt(2.0 * np.pi)


def _clipped_normal(center, limit):
    """First two moments of clip(N(center, 1)/limit, -1, 1)."""
    from scipy.special import ndtr

    low, high = -limit - center, limit - center
    inside, above, below = ndtr(high) - ndtr(low), ndtr(-high), ndtr(low)
    slope = _density(low) - _density(high)
    first = (center * inside + slope + limit * (above - below)) / limit
    second = (center**2 + 1.0) * inside + 2.0 * center * slope + low * _density(low) - high * _density(high)
    return first, second / limit**2 + above + below


def _stepped_normal(center, shift, limit, steps: Steps):
    """First two moments of clip((level of N(center, 1) - shift)/limit, -1, 1)."""
    from scipy.special import ndtr

    below = [np.zeros_like(center), *(ndtr(edge - center) for edge in steps.edges), np.ones_like(center)]
    chance = np.diff(np.stack(below), axis=0)
    seen = np.clip((steps.values[:, None, None] - shift[None]) / limit, -1.0, 1.0)
    return np.sum(chance * seen, axis=0), np.sum(chance * seen**2, axis=0)


@functools.lru_cache(maxsize=256)
def normal_table(rows: int, columns: int, correlation: float) -> np.ndarray:
    """Cell probabilities (rows, columns) of two standard normals cut into equally likely levels."""
    effect = correlation / np.sqrt(max(1.0 - correlation**2, 1e-12))
    steps = Steps.equal(rows, 1.0), Steps.equal(columns, np.sqrt(1.0 + effect**2))
    return shifted_tables(np.zeros(1), np.zeros(1), effect, steps[0].edges, steps[1].edges)[0]


def shifted_tables(mean_x, mean_y, effect: float, edges_x, edges_y) -> np.ndarray:
    """Cell probabilities (k, rows, columns) of X = mean_x + N, Y = mean_y + effect N + N', cut at the edges."""
    from scipy.special import ndtr, ndtri

    mean_x, mean_y = np.asarray(mean_x, float)[:, None], np.asarray(mean_y, float)[:, None]
    ends = ndtr(np.concatenate([[-np.inf], edges_x, [np.inf]])[None, :] - mean_x)
    strips = max(8, STRIPS // (edges_x.size + 1))
    place = (np.arange(strips) + 0.5) / strips
    rows = []
    for low, high in zip(ends.T[:-1], ends.T[1:], strict=True):
        # a level of X is a range of the uniform variable Phi(N)
        own = ndtri(np.clip(low[:, None] + (high - low)[:, None] * place[None, :], 1e-12, 1.0 - 1e-12))
        below = [ndtr(edge - mean_y - effect * own).mean(axis=1) for edge in (-np.inf, *edges_y, np.inf)]
        rows.append((high - low)[:, None] * np.diff(np.stack(below, axis=1), axis=1))
    return np.stack(rows, axis=1)


STRIPS = 800  # over all levels of x


def occupied(expected):
    """E[(N - 1)^+]/E[N] for N ~ Poisson(expected): the share of records that centring within cells leaves."""
    expected = np.maximum(np.asarray(expected, float), 1e-9)
    return (expected + np.expm1(-expected)) / expected


def mean_of_counts(function, expected) -> np.ndarray:
    """E[function(N)]/E[N] for N ~ Poisson(expected (k,)); by its sum, by two terms of Taylor's series where large."""
    from scipy.special import gammaln

    expected = np.maximum(np.atleast_1d(np.asarray(expected, float)), 1e-9)
    count = np.arange(401.0)[None, :]
    small = np.minimum(expected, 200.0)[:, None]
    mass = np.exp(count * np.log(small) - small - gammaln(count + 1.0))
    summed = np.sum(mass * function(count), axis=1)
    step = 0.5 * np.sqrt(expected)
    curved = 0.5 * (function(expected + 2 * step) + function(expected - 2 * step))  # two points, variance `expected`
    return np.where(expected <= 200.0, summed, curved) / expected


def stratified_noise(cases: int, shape: tuple[int, ...], normal: bool = False) -> np.ndarray:
    """Standard Laplace or normal noise (cases, *shape): each coordinate takes equally likely values once, in a fixed
    order."""
    from scipy.special import ndtri

    random = np.random.default_rng(20_231)
    place = (np.arange(cases) + 0.5) / cases
    values = ndtri(place) if normal else -np.sign(place - 0.5) * np.log(2.0 * np.minimum(place, 1.0 - place))
    columns = [random.permutation(values) for _ in range(int(np.prod(shape)))]
    return np.stack(columns, axis=1).reshape(cases, *shape)


def noisy_sum_power(
    mean,
    sd,
    null_sds,
    noise: Noise,
    level: float,
    variance_noise: Any = 0.0,
    *,
    judged: Noise | None = None,
    scores: bool = False,
) -> float:
    """P(reject) where N(mean, sd^2) + noise is judged by its p-value, exact for the noise at the null sd.

    mean, sd: numbers, or equally likely values (s,). null_sds: the released null sd, a number or equally likely
    values (`NOISE_QUANTILES`,), for each of the s. variance_noise: for which the null sd is widened (`null_laws`).
    judged: the noise that the p-value counts, where it is another. scores: whether the sd is widened as for sums of
    scores (`score_law.widened`). Scales of noise, variance_noise: numbers, or arrays that broadcast against null_sds.
    """
    mean, sd = (np.atleast_1d(np.asarray(v, float))[:, None] for v in (mean, sd))
    null_sds = np.array(np.broadcast_to(np.asarray(null_sds, float), (mean.size, NOISE_QUANTILES)))
    critical = _critical(null_sds, judged or noise, level, variance_noise, scores)
    if noise.normal:
        from scipy.special import ndtr

        spread = np.hypot(sd, noise.scale)
        return float(np.mean(ndtr((mean - critical) / spread) + ndtr((-mean - critical) / spread)))
    sd = np.broadcast_to(sd, critical.shape)
    return float(np.mean(_upper_tail(critical - mean, sd, noise.scale) + _upper_tail(critical + mean, sd, noise.scale)))


def two_sided_tail(value, sd, scale):
    """`null_laws.normal_plus_laplace` on NumPy arrays (s, `NOISE_QUANTILES`), float64."""
    with np.errstate(all="ignore"):  # of the side of a choice that is not taken
        return null_laws.normal_plus_laplace(value, sd, np.float64(scale), xp=np)


def _critical(null_sds, noise: Noise, level, variance_noise, scores: bool):
    """|values| from which on the p-value is at most `level`, by bisection."""
    p_value: Any = _normal_p_value if noise.normal else _laplace_p_value
    if scores:
        p_value = functools.partial(_p_value_of_scores, normal=noise.normal)
    scale, spread = np.float64(noise.scale), np.float64(variance_noise)
    reach = np.sqrt(null_sds**2 + (2.5 if noise.normal else 0.25) * variance_noise / noise.scale**2) + noise.scale
    far = (40.0 + 2.0 * np.log(1.0 / level)) * reach
    with np.errstate(all="ignore"):  # of the side of a choice that is not taken
        ends = np.zeros_like(null_sds), far
        return bisected(lambda value: p_value(value, null_sds, scale, spread) > level, *ends, STEPS, xp=np)[1]


def _p_value_of_scores(value, sd, scale, variance_noise, *, normal: bool):
    wide = score_law.widened(value, sd**2, scale * (1.0 if normal else math.sqrt(2.0)), variance_noise, xp=np)
    if normal:
        return null_laws.normal(value, np.hypot(wide, scale), xp=np)
    return null_laws.normal_plus_laplace(value, wide, scale, xp=np)


def _laplace_p_value(value, sd, scale, variance_noise):
    wide = null_laws.widened_for_laplace(value, sd, scale, variance_noise, xp=np)
    return null_laws.normal_plus_laplace(value, wide, scale, xp=np)


def _normal_p_value(value, sd, scale, variance_noise):
    wide = null_laws.widened_for_normal(value, sd, scale, variance_noise, xp=np)
    return null_laws.normal(value, np.hypot(wide, scale), xp=np)


def _upper_tail(value, sd, scale):
    """P(N(0, sd^2) + Laplace(scale) >= value)."""
    half = 0.5 * two_sided_tail(value, sd, scale)
    return np.where(value >= 0.0, half, 1.0 - half)


def winsorising_level(num_records: float, noise_variance: float) -> float:
    """The default tau of the tests."""
    with jax.enable_x64(True):
        return float(_best_level(np.float64(num_records), np.float64(noise_variance)))


_best_level = kept_jit(best_level)


def normal_points() -> tuple[np.ndarray, np.ndarray]:
    """Values of a standard normal variable and their weights."""
    deviate = np.linspace(-8.0, 8.0, 801)
    mass = np.exp(-0.5 * deviate**2)
    return deviate, mass / mass.sum()


def two_sided_power(mean: float, level: float) -> float:
    """P(reject) where N(mean, 1) is judged by its two-sided p-value."""
    from scipy.special import ndtr, ndtri

    critical = -ndtri(level / 2.0)
    return float(ndtr(mean - critical) + ndtr(-mean - critical))


def folded_power(mean: float, sd: float, null_sd: float, scale: float, level: float) -> float:
    """P(|N(mean, sd^2)| + L >= t), t the (1 - level)-quantile of |N(0, null_sd^2)| + L, L ~ Laplace(scale)."""
    deviate, mass = normal_points()
    null = [(np.abs(null_sd * deviate), mass)]
    return largest_quantile_power(null, (np.abs(mean + sd * deviate), mass), scale, level)


def largest_quantile_power(null, other, scale: float, level: float) -> float:
    """P(V + L >= t) for the law `other` of V, t the largest (1 - level)-quantile of V + L over the laws `null`.

    A law is a pair (values, weights), numpy (k,).
    """

    def tail(law, t):
        return float(law[1] @ survival.laplace(t - law[0], scale, xp=np))

    reach = 60.0 * scale
    far = reach + max(float(values.max()) for values, _ in null)
    return tail(other, bisected(lambda t: max(tail(law, t) for law in null) > level, -reach, far, STEPS, xp=np)[1])


def two_noises_power(mean: float, sd: float, null_sd: float, scale: float, level: float) -> float:
    """P(|N(mean, sd^2) + L + L'| >= t), t the (1 - level)-quantile of |N(0, null_sd^2) + L + L'|."""

    def tail(x):  # of the sum of two Laplace variables of one scale
        size = np.abs(x) / scale
        beyond = 0.25 * (2.0 + size) * np.exp(-size)
        return np.where(x >= 0, beyond, 1.0 - beyond)

    deviate, mass = normal_points()

    def beyond(t, center, width):
        return float(mass @ (tail(t - center - width * deviate) + tail(t + center + width * deviate)))

    far = 10.0 * (null_sd + 6.0 * scale)
    return beyond(bisected(lambda t: beyond(t, 0.0, null_sd) > level, 0.0, far, STEPS, xp=np)[1], mean, sd)


def quadratic_power(signal, off, metric, n: int, table, noise_scale: float, level: float) -> float:
    """P(Q >= its null quantile), Q = w' metric w with w = off (signal + multinomial + Laplace per cell), in the limit.

    `DRAWS` fixed draws serve both laws: a deterministic function, smooth in n to the draws' resolution.
    """
    random = np.random.default_rng(20_170)
    size = table.size
    normal = random.standard_normal((DRAWS, size))
    noise = random.laplace(size=(DRAWS, size)) * noise_scale

    def values(law, shift):
        root = np.sqrt(law)
        counts = np.sqrt(n) * (normal * root - (normal @ root)[:, None] * law)
        moved = (shift + counts + noise) @ off.T
        return np.einsum("ri,ij,rj->r", moved, metric, moved)

    null = values(np.full(size, 1.0 / size), 0.0)
    return float(np.mean(values(table, signal) >= np.quantile(null, 1.0 - level)))


DRAWS = 20_000


def vote_power(blocks: int, block_level: float, chance: float, epsilon: float, level: float) -> float:
    """P(reject) of the randomised noisy vote: Binomial(blocks, chance) + two-sided geometric noise, exact."""
    from scipy.stats import binom

    reach = int(np.ceil(60.0 / epsilon)) + 2
    value = np.arange(-reach, blocks + reach + 1)
    step = np.exp(-epsilon)

    def noise(k):
        return (1.0 - step) / (1.0 + step) * step ** np.abs(k)

    count = np.arange(blocks + 1)

    def law(rate):
        return noise(value[:, None] - count[None, :]) @ binom.pmf(count, blocks, rate)

    null, other = law(block_level), law(chance)
    at_least = np.cumsum(null[::-1])[::-1]
    more = at_least - null
    share = np.clip((level - more) / np.maximum(null, 1e-300), 0.0, 1.0)
    return float(np.sum(other * share))


def median_power(blocks: int, mean: float, epsilon: float, level: float) -> float:
    """Power of the noisy median of squared N(mean, 1) over blocks: `MEDIAN_DRAWS` fixed draws, exact in the noise."""
    return float(_median_power(blocks, np.float32(mean), np.float32(epsilon), np.float32(level)))


MEDIAN_DRAWS = 1_000
MEDIAN_RANGE = (0.0, 10.0)  # of `SubsampleAggregate`


@functools.partial(jax.jit, static_argnums=0)
def _median_power(blocks, mean, epsilon, level):
    from jaxdp.mechanisms import smooth_sensitivity
    from jaxdp.noise.smooth.rungs import smooth_grid

    mechanism = smooth_sensitivity.SmoothCauchy(epsilon=epsilon)

    def one(key, shift):
        """Centre and scale of the Cauchy noise, both on their public ladders."""
        values = jnp.clip((shift + jax.random.normal(key, (blocks,))) ** 2, *MEDIAN_RANGE)
        smooth = smooth_sensitivity.smooth_sensitivity(values, mechanism.decay(), *MEDIAN_RANGE)
        centre = smooth_sensitivity.median(values)
        steps, rung, step, spread = smooth_grid(centre, smooth, *MEDIAN_RANGE, mechanism.ladder_decay())
        return step * steps, step * mechanism.width() * jnp.exp(rung * spread)

    keys = jax.random.split(jax.random.key(7), 2 * MEDIAN_DRAWS)

    def draw(part, shift):
        return jax.lax.map(lambda k: one(k, shift), part, batch_size=200)

    null, other = draw(keys[:MEDIAN_DRAWS], 0.0), draw(keys[MEDIAN_DRAWS:], mean)

    def tail(law, t):
        return jnp.mean(0.5 - jnp.arctan((t - law[0]) / law[1]) / jnp.pi)

    low, high = map(jnp.float32, MEDIAN_RANGE)
    critical = bisected(lambda t: tail(null, t) > level, low, high, STEPS // 2)[1]
    # the output is clipped to the range: where more than `level` of the nulls sit at its top, nothing rejects
    return jnp.where(tail(null, MEDIAN_RANGE[1]) > level, 0.0, tail(other, critical))
