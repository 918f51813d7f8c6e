"""Private estimates with intervals, and tests of them, written again from papers and published code; NumPy.

KW_abs: Couch, Kazan, Shi, Bray, Groce 2019. DP F-test: Alabi and Vadhan 2022, its linear tester of one slope. Noisy
Gram matrix: Wang, Kifer, Lee 2019 with the asymptotic interval, and the bootstrap of Ferrando, Wang, Sheldon 2022, as
the study of a validation server for the IRS has both (Barrientos, Williams, Snoke, Bowen 2021). PASS-GLM: Huggins,
Adams, Broderick 2017, on sums with noise, as Kulkarni and others 2021 have it; their posterior is replaced by its
normal limit. Noisy survival counts: Gondara and Wang 2020, then an ordinary log-rank test.
Each answer is (p-value, lower end, upper end); ends are NaN where the method gives none. Noise is simulated.
"""

import functools

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial
from scipy import special, stats

Z95 = float(stats.norm.ppf(0.975))
NONE = (np.nan, np.nan)
DRAWS = 200  # of the F-test's null law: 10/0.05, as its authors take
BOOTSTRAPS = 2000  # of the noisy Gram matrix; its authors take 10 000
FLOOR = 2e-3  # of its eigenvalues, as published
BINS = 32  # of the noisy survival counts; as published there is one for each time


def wald(estimate: float, deviation: float):
    """The two-sided normal p-value and the 95 % interval."""
    if not deviation > 0:
        return 1.0, *NONE
    return 2 * stats.norm.sf(abs(estimate) / deviation), estimate - Z95 * deviation, estimate + Z95 * deviation


def least_squares(x, y):
    """The slope of y on x without privacy."""
    found = stats.linregress(x, y)
    half = stats.t.ppf(0.975, len(x) - 2) * found.stderr
    return found.pvalue, found.slope - half, found.slope + half


def logistic(x, y):
    """The log odds ratio by maximum likelihood without privacy; y in {0, 1}."""
    design, slopes = np.stack([np.ones_like(x), x], axis=1), np.zeros(2)
    for _ in range(25):
        chance = special.expit(design @ slopes)
        information = (design * (chance * (1 - chance))[:, None]).T @ design
        slopes = slopes + np.linalg.solve(information, design.T @ (y - chance))
    return wald(slopes[1], np.linalg.inv(information)[1, 1] ** 0.5)


# ---------------------------------------------------------------------------------------------------------- rank sums


def _rank_sum(ranks, groups, count: int):
    """KW_abs of one or many rows of ranks."""
    n = ranks.shape[-1]
    sums = [np.abs(np.sum(np.where(groups == g, ranks - 0.5 * (n + 1), 0.0), axis=-1)) for g in range(count)]
    return (n - 1) * np.sum(sums, axis=0) / (n * n // 4)


@functools.cache
def _rank_sum_null(n: int, count: int) -> np.ndarray:
    """KW_abs of random orders of equal groups, without noise."""
    rng = np.random.default_rng(n)
    orders = rng.permuted(np.tile(np.arange(1, n + 1), (2000, 1)), axis=1)
    return _rank_sum(orders, np.arange(n) % count, count)


def kw_abs(rng, group, values, epsilon: float, count: int = 3):
    """The noisy statistic against its law for equal groups, with as much noise."""
    null = _rank_sum_null(len(group), count)
    null = null + rng.laplace(scale=8 / epsilon, size=null.shape)
    observed = _rank_sum(stats.rankdata(values), group, count) + rng.laplace(scale=8 / epsilon)
    return (1 + np.sum(null >= observed)) / (1 + len(null)), *NONE


# -------------------------------------------------------------------------------------------------------------- slopes


def _moments(rng, x, y, rho: float, bound: float):
    """Noisy means of x, y, x^2, x y, y^2 (rows of many data sets, or one); a fifth of rho each."""
    n, share = x.shape[-1], rho / 5
    x, y = np.clip(x, -bound, bound), np.clip(y, -bound, bound)
    exact = [np.mean(part, axis=-1) for part in (x, y, x * x, x * y, y * y)]
    moves = np.array([2 * bound, 2 * bound, bound**2, 2 * bound**2, bound**2]) / n
    return [
        mean + rng.normal(scale=move / np.sqrt(2 * share), size=np.shape(mean))
        for mean, move in zip(exact, moves, strict=True)
    ]


def _f_statistic(n: int, x, y, xx, xy, yy):
    """The F statistic of a slope of 0 from five means; NaN where a noisy variance is not positive."""
    spread = xx - x * x
    slope = (xy - x * y) / spread
    constant = y - slope * x
    left = n * (yy + constant**2 - 2 * y * constant - 2 * xy * slope + 2 * x * slope * constant + xx * slope**2)
    return np.where((spread > 0) & (left > 0), (n - 2) * slope**2 * n * spread / left, np.nan)


def f_test(rng, x, y, rho: float, bound: float):
    """Monte Carlo test: the same noisy statistic of normal data made from the released means; no finding if broken."""
    n = len(x)
    found = _moments(rng, x, y, rho, bound)
    observed = _f_statistic(n, *found)
    spread, residual = found[2] - found[0] ** 2, found[4] - found[1] ** 2
    if not (np.isfinite(observed) and spread > 0 and residual > 0):
        return 1.0, *NONE
    made = (rng.normal(found[k], sd**0.5, (DRAWS, n)) for k, sd in enumerate((spread, residual)))
    null = _f_statistic(n, *_moments(rng, *made, rho, bound))
    return (1 + np.sum(~(null < observed))) / (1 + DRAWS), *NONE


def _lifted(matrix):
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.maximum(values, FLOOR)) @ vectors.T


def noisy_gram(rng, x, y, epsilon: float, bound: float):
    """{"asymptotic", "bootstrap"} -> answer, both from one noisy Gram matrix of (1, x, y) in [0, 1], over root 3."""
    rows = np.stack([np.ones_like(x), *(0.5 * (np.clip(side, -bound, bound) / bound + 1) for side in (x, y))], axis=1)

    def noise(count):
        """Spherical Laplace noise of all nine entries, made symmetric."""
        direction = rng.normal(size=(count, 9))
        length = rng.gamma(9, 1 / epsilon, size=(count, 1))
        drawn = (direction / np.linalg.norm(direction, axis=1, keepdims=True) * length).reshape(-1, 3, 3)
        return 0.5 * (drawn + np.swapaxes(drawn, 1, 2))

    gram = _lifted(rows.T @ rows / 3 + noise(1)[0])
    inner, n = gram[:2, :2], 3 * gram[0, 0]
    inverse = np.linalg.inv(inner)
    slopes = inverse @ gram[:2, 2]
    variance = (gram[2, 2] - gram[:2, 2] @ slopes) / (n - 4)
    if not (n > 4 and variance > 0):
        return {"asymptotic": (1.0, *NONE), "bootstrap": (1.0, *NONE)}
    drawn = noise(BOOTSTRAPS)
    scores = rng.multivariate_normal(np.zeros(2), variance * inner, BOOTSTRAPS) + drawn[:, :2, 2]
    made = ((inner - drawn[:, :2, :2]) @ slopes + scores) @ inverse.T
    low, high = np.quantile(made[:, 1], (0.025, 0.975))
    return {
        "asymptotic": wald(slopes[1], (variance * inverse[1, 1]) ** 0.5),
        "bootstrap": (0.0 if low > 0 or high < 0 else 1.0, low, high),  # says only whether 0 lies within
    }


# ---------------------------------------------------------------------------------------------------------- log odds


@functools.cache
def _quadratic(radius: float) -> tuple[float, float]:
    """Coefficients of s and s^2 of the Chebyshev quadratic of log sigmoid(s) on [-radius, radius]."""
    found = Chebyshev.interpolate(special.log_expit, 2, domain=[-radius, radius]).convert(kind=Polynomial).coef
    return float(found[1]), float(found[2])


def pass_glm(rng, x, y, rho: float, bound: float, radius: float = 4.0):
    """{"posterior", "with noise"} -> answer for the log odds ratio per unit of x; y in {0, 1}.

    Sums of y (1, u), u and u^2 with y in {-1, 1}, u = x/bound: one record moves them by at most root 8 together.
    """
    u, sign, n = np.clip(x, -bound, bound) / bound, 2 * y - 1, len(x)
    scale = (8 / (2 * rho)) ** 0.5
    signed, signed_u, total, square = (np.sum(part) + rng.normal(scale=scale) for part in (sign, sign * u, u, u * u))
    first, second = _quadratic(radius)
    sums = np.array([[n, total], [total, square]])
    if np.linalg.eigvalsh(sums)[0] <= 0:
        return {"posterior": (1.0, *NONE), "with noise": (1.0, *NONE)}
    inverse = np.linalg.inv(-2 * second * sums)
    slopes = inverse @ (first * np.array([signed, signed_u]))
    a, b = -2 * second * slopes
    moved = scale**2 * (first**2 * np.eye(2) + np.array([[b * b, a * b], [a * b, a * a + b * b]]))
    answers = {}
    for name, covariance in (("posterior", inverse), ("with noise", inverse + inverse @ moved @ inverse)):
        p, *ends = wald(slopes[1], covariance[1, 1] ** 0.5)
        answers[name] = (p, *(end / bound for end in ends))
    return answers


# ---------------------------------------------------------------------------------------------------------- survival


def log_rank_of_counts(events, gone):
    """The ordinary log-rank p-value of counts (2, bins) of events and of censored records."""
    left = np.cumsum((events + gone)[:, ::-1], axis=1)[:, ::-1]
    risk, died = left.sum(0), events.sum(0)
    use = (risk > 1) & (died > 0)
    risk, died, second, seen = risk[use], died[use], left[1][use], events[1][use]
    share = second / risk
    variance = np.sum(died * share * (1 - share) * np.maximum(risk - died, 0) / (risk - 1))
    return float(2 * stats.norm.sf(abs(np.sum(seen - died * share)) / variance**0.5)) if variance > 0 else 1.0


def survival_counts(group, time, event):
    """Counts (2, BINS) of events and of censored records in equal bins of [0, 1]."""
    place = np.minimum((time * BINS).astype(int), BINS - 1)
    tables = np.zeros((2, 2, BINS))
    np.add.at(tables, (event.astype(int), group.astype(int), place), 1)
    return tables[1], tables[0]


def noisy_log_rank(rng, group, time, event, epsilon: float):
    """Counts with Laplace noise of scale 2/epsilon, negative ones cut; the ordinary test of them."""
    events, gone = (
        np.maximum(part + rng.laplace(scale=2 / epsilon, size=part.shape), 0.0)
        for part in survival_counts(group, time, event)
    )
    return log_rank_of_counts(events, gone), *NONE
