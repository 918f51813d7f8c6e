"""The log-rank test of more than two groups: p-value of all of them, log hazard ratios of each against the first.

Theory: docs/theory/log_rank.md#groups. All in orthogonal contrasts of the groups (`statistics/log_rank.py`), in events.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import chi2

from jaxdp import null_laws
from jaxdp.core import Norm
from jaxdp.statistics import log_rank
from jaxdp.statistics.log_rank import Curves

DRAWS, SEED = 8192, 41  # of the shape of Laplace noise; the same ones for every release
ROUGH = 1e-3  # p-values below are those of normal noise at least: too few draws lie so far out
FAR = 16.0  # of the squared length beyond its degrees of freedom: noise in V widens no further, so that p-values fall
STEPS, STEP, LIMIT = 25, 1.0, 3.0  # of Newton's method, the longest one, and of a log hazard ratio: one of 20
CLEAR = 5.0  # sds of the noise in the information about a group, below which nothing is said about its ratio
RUN = 8  # bins
RIDGE = 1e-9
MAX_SPREAD = 2.0  # times V at most, of the variance of U at ratios


def widest(scores, norm: Norm):
    """How far scores (S, K, BINS + 1, 2, C) of two cells are apart at most, in L1; a bound of it in L2.

    In L1 it is the largest range of s'L over signs s (docs/theory/log_rank.md#groups).
    """
    if norm is Norm.L2:
        return _widest_of_runs(scores)
    scores = scores.reshape(-1, scores.shape[-1])
    along = jax.lax.map(lambda one: jnp.ptp(scores @ one), jnp.asarray(_signs(scores.shape[1])))
    return jnp.max(along)


def _widest_of_runs(scores):
    """In L2: scores of `RUN` bins in a row lie in a ball about their mean; no two are farther apart than balls are."""
    inner = scores[:, :, :-1].reshape(*scores.shape[:2], -1, RUN, *scores.shape[3:])
    middle = jnp.mean(inner, axis=3)
    reach = jnp.max(jnp.linalg.norm(inner - middle[:, :, :, None], axis=-1), axis=3)
    ends = scores[:, :, -1].reshape(-1, scores.shape[-1])
    middle = jnp.concatenate([middle.reshape(-1, scores.shape[-1]), ends])
    reach = jnp.concatenate([reach.reshape(-1), jnp.zeros(len(ends))])

    def farthest(ball):
        centre, own = ball
        return own + jnp.max(jnp.linalg.norm(middle - centre[None], axis=1) + reach)

    return jnp.max(jax.lax.map(farthest, (middle, reach), batch_size=64))


def _signs(size: int) -> np.ndarray:
    """All signs but for the whole one, (2^(C - 1), C)."""
    places = np.arange(2 ** (size - 1))[:, None] >> np.arange(size)
    return 1.0 - 2.0 * (places & 1)


@functools.cache
def _draws(groups: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Squared scales of noise, of mean 1, (DRAWS, K); of a direction in 2 K dimensions K - 1 parts and the next K."""
    rng = np.random.default_rng(SEED)
    scales = rng.exponential(size=(DRAWS, groups))
    direction = rng.normal(size=(DRAWS, 2 * groups))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return scales, direction[:, : groups - 1], direction[:, groups - 1 : 2 * groups - 1]


@dataclasses.dataclass(frozen=True)
class SeveralGroups:
    """U as released in contrasts, less its mean, with what it is about.

    variance: of U without its noise, (K - 1, K - 1). squares: V. variance_noise: of the noise in V. unit: D.
    """

    curves: Curves
    value: Any
    variance: Any
    squares: Any
    variance_noise: Any
    unit: Any
    mechanism: Any
    sensitivity: Any

    @classmethod
    def of(cls, released, squares, curves, **about) -> SeveralGroups:
        """From sums over records as released: of the scores of all groups, and of their squared lengths (V)."""
        spread = curves.spread(jnp.zeros_like(curves.mean))
        value = jnp.asarray(log_rank.from_all(released.shape[0])) @ released - curves.mean
        variance = squares * spread / (jnp.trace(spread) + RIDGE) + curves.variance + RIDGE * jnp.eye(len(value))
        return cls(curves, value, variance, squares, **about)

    @property
    def groups(self) -> int:
        """K."""
        return self.value.shape[0] + 1

    @property
    def _mixed(self):
        """Contrasts of the noise in U, in events, (K - 1, K)."""
        return self.unit * jnp.asarray(log_rank.from_all(self.groups))

    def _total(self, variance):
        return variance + self.mechanism.variance(self.sensitivity) * self._mixed @ self._mixed.T

    def length(self):
        """U' T^-1 U, T the variance with the noise of U; the noise in V counts to second order."""
        total, freedom = self._total(self.variance), self.groups - 1
        # of all that the steps of the time leave open, what explains most of it
        coarse = self.curves.coarse
        explained = jnp.linalg.solve(total, coarse)
        much = jnp.clip(explained @ self.value / (explained @ coarse + RIDGE), -1.0, 1.0)
        value = self.value - much * coarse
        found = value @ jnp.linalg.solve(total, value)
        spread = self.curves.spread(jnp.zeros(freedom))
        steep = jnp.trace(jnp.linalg.solve(total, spread)) / (freedom * (jnp.trace(spread) + RIDGE))
        beyond = jnp.clip(jnp.minimum(found, FAR + freedom) + 2.0 - freedom, 0.0)
        return found / (1.0 + 0.25 * self.variance_noise * steep**2 * beyond)

    def p_value(self):
        """P(the squared length of N(0, variance) and the noise is at least this): chi-squared where noise is normal.

        Laplace noise is normal of a random variance: the mean over its draws of what that changes.
        """
        length, freedom = self.length(), self.groups - 1
        normal = chi2.sf(length, freedom)
        if self.mechanism.norm is not Norm.L1:
            return normal
        scales, of_sampling, of_noise = map(jnp.asarray, _draws(self.groups))
        total = jnp.linalg.cholesky(self._total(self.variance))
        noise_sd = jnp.sqrt(self.mechanism.variance(self.sensitivity))
        sampled = of_sampling @ jnp.linalg.cholesky(self.variance).T

        def stretched(scales):
            drawn = sampled + noise_sd * (jnp.sqrt(scales) * of_noise) @ self._mixed.T
            return jnp.sum(jax.scipy.linalg.solve_triangular(total, drawn.T, lower=True) ** 2, axis=0)

        change = self._tail(length / stretched(scales)) - self._tail(length / stretched(jnp.ones_like(scales)))
        return jnp.clip(normal + jnp.mean(change), jnp.minimum(normal, ROUGH), 1.0)

    def _tail(self, length):
        """Of chi-squared with 2 K degrees of freedom."""
        half = 0.5 * length
        terms = [half**power / math.factorial(power) for power in range(self.groups)]
        return jnp.exp(-half) * sum(terms)

    @property
    def unknown(self):
        """Whether noise hides the information about a group after the first, or about the first, (K - 1,)."""
        information, variance = self.curves.information
        hidden = information < CLEAR * jnp.sqrt(variance)
        return hidden[1:] | hidden[0]

    @property
    def departed(self):
        """Whether a group leaves at once (`Curves.departed`)."""
        return self.curves.departed(jnp.trace(self._total(self.variance)) / (self.groups - 1.0))

    def effect(self):
        """Log hazard ratios against the first group, (K - 1, 1), with intervals, each by itself."""
        freedom = self.groups - 1
        slope = jax.jacfwd(self.curves.expected)

        def solved(ratios):
            return jnp.linalg.inv(slope(ratios) + RIDGE * jnp.eye(freedom))

        def step(_, ratios):
            moved = solved(ratios) @ (self.value - self.curves.expected(ratios))
            return jnp.clip(ratios + jnp.clip(moved, -STEP, STEP), -LIMIT, LIMIT)

        ratios = jax.lax.fori_loop(0, STEPS, step, jnp.zeros(freedom))
        rows = solved(ratios)
        spread = self.curves.spread(ratios)  # of U where the null hypothesis is false; V is of its squares there
        counted = jnp.maximum(self.curves.expected_squares(ratios), jnp.trace(spread) / MAX_SPREAD)
        variance = self.squares * spread / (counted + RIDGE) + self.curves.variance
        variance = variance + self.curves.expected_variance(ratios) + RIDGE * jnp.eye(freedom)
        sd = jnp.sqrt(jnp.einsum("ka,ab,kb->k", rows, variance, rows))
        scales = jnp.abs(rows @ self._mixed) * self.mechanism.scale(self.sensitivity)
        spread = jnp.sqrt(
            sd**2 + jnp.sum((rows @ self._mixed) ** 2, axis=1) * self.mechanism.variance(self.sensitivity)
        )
        half = null_laws.two_sided_quantile(lambda off: self.mechanism.combined_p_value(off, sd, scales), spread)
        half = half + jnp.abs(rows @ self.curves.coarse)
        known = ~self.unknown & ~self.departed & (half < LIMIT) & (jnp.abs(ratios) < LIMIT)
        told = lambda part: jnp.where(known, part, jnp.nan)[:, None]  # noqa: E731
        return told(ratios), (told(ratios - half), told(ratios + half))
