"""Other ways to a private test, re-enacted from their published description and source; NumPy, for simulations.

dpHSIC, dpMMD: Kim and Schrab 2023 (arXiv 2310.19043), package dpkernel; DPrivStats: its R functions `dp_t_test` and
`dp_chisq_test`, which refer noisy statistics to laws without noise; synthetic data: a noisy histogram, MST
(`experiments.evidence.discovery.synthetic`) or AIM (`aim.py`), records drawn from it, and an ordinary test of them.
Each with the noise of epsilon under replacement of one record, or it says so.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from experiments.evidence.compared.aim import adaptive
from jaxdp import null_laws
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Norm, PrivateTest, Relation, Sensitivity
from jaxdp.data.dataset import ORDINAL, Column
from jaxdp.data.records import Records
from jaxdp.mechanisms import RankThreshold

BINS = 8  # a side of the histogram that synthetic records are drawn from


@frozen_pytree
class DpHSIC(PrivateTest):
    """dpHSIC: the root of the biased HSIC and of its permutations, with the noise of `RankThreshold` on all of them.

    Sensitivity of each: 4 (n - 1)/n^2 for kernels in [0, 1]. bandwidth: of both kernels exp(-d^2/bandwidth^2), public.
    """

    level: float = jax.tree.static(default=0.05)
    num_permutations: int = jax.tree.static(default=99)
    bandwidth: float = 0.25

    def mechanism_in_force(self):
        return RankThreshold(epsilon=self.epsilon, level=self.level)

    def statistic(self, key, data):
        """(T_0, T of shape (m,))."""
        first, second = (self._gram(side) for side in (data.x, data.y))
        centred = second - jnp.mean(second, 0) - jnp.mean(second, 1)[:, None] + jnp.mean(second)
        count = data.x.shape[0]

        def value(order):
            return jnp.sqrt(jnp.maximum(jnp.sum(first[order][:, order] * centred), 0.0)) / count

        keys = jax.random.split(key, self.num_permutations)
        copies = jax.lax.map(lambda one: value(jax.random.permutation(one, count)), keys)
        return value(jnp.arange(count)), copies

    def _gram(self, values):
        return jnp.exp(-(((values[:, None] - values[None, :]) / self.bandwidth) ** 2))

    def sensitivity(self, num_records):
        move = 4.0 * (num_records - 1) / num_records**2
        return (Sensitivity(move, Norm.LINF, Relation.REPLACE_ONE, 0.0, 0.0, 1.0),) * 2

    def p_value(self, key, release):
        return null_laws.decision(release.value, self.level)

    def non_private(self, key, data):
        """The same permutation test without noise."""
        observed, copies = self.statistic(key, data)
        return null_laws.monte_carlo(observed, copies)


@frozen_pytree
class DpMMD(DpHSIC):
    """dpMMD: the root of the biased MMD of the two groups of y and of its permutations, with the noise of dpHSIC.

    Sensitivity of each: sqrt(2) over the smaller group, as published: who is in which group is public, in its favour.
    group: records of the smaller one.
    """

    group: int = jax.tree.static(default=0)

    def statistic(self, key, data):
        """(T_0, T of shape (m,))."""
        gram, second = self._gram(data.x), data.y > 0
        weights = jnp.where(second, 1.0 / jnp.sum(second), -1.0 / jnp.sum(~second))
        keys = jax.random.split(key, self.num_permutations)
        orders = jax.vmap(lambda one: jax.random.permutation(one, weights))(keys)

        def value(weighed):
            return jnp.sqrt(jnp.maximum(jnp.sum(weighed * (weighed @ gram), axis=-1), 0.0))

        return value(weights), value(orders)

    def sensitivity(self, num_records):
        move = 2.0**0.5 / self.group
        return (Sensitivity(move, Norm.LINF, Relation.REPLACE_ONE, 0.0, 0.0, 2.0**0.5),) * 2


@dataclasses.dataclass(frozen=True)
class Groups:
    """Responses of two groups, clipped to public bounds."""

    first: np.ndarray
    second: np.ndarray
    bounds: tuple[float, float] = (-5.0, 5.0)


def dprivstats_t(rng, groups: Groups, epsilon: float) -> float:
    """P-value of `dp_t_test`: a third of epsilon each for counts, means and variances; Student's law, without noise."""
    first, second, error, freedom = dprivstats_means(rng, groups, epsilon)
    t = (first - second) / error if error > 0 else 0.0
    return float(2 * stats.t.sf(abs(t), freedom))


def dprivstats_means(rng, groups: Groups, epsilon: float) -> tuple[float, float, float, float]:
    """What else `dp_t_test` returns: both noisy means, the standard error, the degrees of freedom."""
    third, width = epsilon / 3, groups.bounds[1] - groups.bounds[0]
    released = []
    for values in (groups.first, groups.second):
        n, clipped = len(values), np.clip(values, *groups.bounds)
        count = max(n + rng.laplace(scale=1 / third), 2.0)
        mean = clipped.mean() + rng.laplace(scale=width / n / third)
        centre = clipped.mean() + rng.laplace(scale=width / n / (third / 2))
        square = np.mean(clipped**2) + rng.laplace(scale=width**2 / n / (third / 2))
        released.append((count, mean, max(square - centre**2, 0.0)))
    (n_x, mean_x, var_x), (n_y, mean_y, var_y) = released
    return mean_x, mean_y, np.sqrt(var_x / n_x + var_y / n_y), n_x + n_y - 2


def dprivstats_chi2(rng, table: np.ndarray, epsilon: float) -> float:
    """P-value of `dp_chisq_test`: noisy cells, cut at 0 and rounded; the chi-squared law, without noise.

    The package adds Laplace noise of scale 1/epsilon, which is epsilon for one record added; here 2/epsilon, for one
    replaced.
    """
    return chi2(np.round(dprivstats_cells(rng, table, 2 / epsilon)))


def dprivstats_cells(rng, table: np.ndarray, scale: float) -> np.ndarray:
    """The noisy table that `dp_chisq_test` returns (`observed_private`)."""
    return np.maximum(table + rng.laplace(scale=scale, size=table.shape), 0.0)


def synthetic(rng, x: np.ndarray, y: np.ndarray, epsilon: float):
    """As many records as there are, drawn from a noisy histogram of `BINS` x `BINS` cells of [-1, 1]^2."""
    edges = np.linspace(-1, 1, BINS + 1)
    counts = np.histogram2d(np.clip(x, -1, 1), np.clip(y, -1, 1), (edges, edges))[0]
    noisy = np.maximum(counts + rng.laplace(scale=2 / epsilon, size=counts.shape), 0.0).ravel()
    cell = rng.choice(BINS**2, len(x), p=noisy / noisy.sum())
    inside = rng.uniform(size=(2, len(x)))
    return tuple(
        edges[place] + inside[k] * (edges[1] - edges[0]) for k, place in enumerate((cell // BINS, cell % BINS))
    )


def mst(seed: int, columns, epsilon: float, delta: float, levels=None):
    """As many records of MST on columns in [-1, 1], each in `BINS` equal bins; even within bins. Needs `mbi`.

    levels: of each column, None for one in [-1, 1]; a column of levels holds 0, 1, ... and stays so.
    """
    from experiments.evidence.discovery import synthetic as spanning

    return _through(spanning.tree, seed, columns, epsilon, delta, levels)


def aim(seed: int, columns, epsilon: float, delta: float, levels=None):
    """As `mst`, of AIM."""
    return _through(adaptive, seed, columns, epsilon, delta, levels)


def _through(maker, seed, columns, epsilon, delta, levels):
    levels = levels or (None,) * len(columns)
    codes = [
        np.clip((0.5 * (side + 1) * BINS).astype(int), 0, BINS - 1) if many is None else side.astype(int)
        for side, many in zip(columns, levels, strict=True)
    ]
    kinds = tuple(Column(ORDINAL, many or BINS, f"c{j}") for j, many in enumerate(levels))
    made = np.asarray(maker(Records(np.stack(codes, axis=1), kinds), epsilon, delta, seed).values)
    inside = np.random.default_rng(seed).uniform(size=made.shape)
    return tuple(
        (made[:, j] + inside[:, j]) / BINS * 2 - 1 if many is None else made[:, j] for j, many in enumerate(levels)
    )


def pearson(x, y) -> float:
    """Ordinary p-value of the correlation."""
    return float(stats.pearsonr(x, y)[1])


def partial_pearson(x, y, z) -> float:
    """Ordinary p-value of the correlation of the residuals of x and y on lines in z."""
    lines = np.stack([np.ones_like(z), z], axis=1)
    x, y = (side - lines @ np.linalg.lstsq(lines, side, rcond=None)[0] for side in (x, y))
    found, freedom = np.corrcoef(x, y)[0, 1], len(z) - 3
    return float(2 * stats.t.sf(abs(found) * np.sqrt(freedom / (1 - found**2)), freedom))


def chi2_of_quartiles(x, y) -> float:
    """Ordinary chi-squared test of the 4 x 4 table of quartiles."""
    codes = [np.searchsorted(np.quantile(side, (0.25, 0.5, 0.75)), side) for side in (x, y)]
    table = np.zeros((4, 4))
    np.add.at(table, tuple(codes), 1)
    return chi2(table)


def chi2(table) -> float:
    """Ordinary chi-squared test of independence; 1 where a margin is empty."""
    if min(table.sum(0).min(), table.sum(1).min()) <= 0:
        return 1.0
    return float(stats.chi2_contingency(table, correction=False)[1])


def welch(groups: Groups) -> float:
    """Ordinary t-test of unequal variances."""
    return float(stats.ttest_ind(groups.first, groups.second, equal_var=False)[1])
