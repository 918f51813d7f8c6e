"""Ordinary tests as functions of the records of one block, for the test of tests; JAX, as blocks run under `vmap`."""

import dataclasses

import jax.numpy as jnp
from jax.scipy.special import betainc, erfc, gammaincc


def _student(statistic, freedom):
    """Two-sided p-value of Student's law."""
    return betainc(freedom / 2.0, 0.5, freedom / (freedom + statistic**2))


def _of_correlation(x, y, freedom):
    x, y = x - jnp.mean(x), y - jnp.mean(y)
    found = x @ y / jnp.sqrt(jnp.maximum((x @ x) * (y @ y), 1e-30))
    return _student(found * jnp.sqrt(freedom / jnp.maximum(1.0 - found**2, 1e-12)), freedom)


def pearson(data):
    """Of the correlation; with a Y of two levels the score test of logistic regression, nearly."""
    return _of_correlation(data.x, data.y, data.x.shape[0] - 2.0)


def partial_correlation(data):
    """Of the correlation of the residuals on a line in Z."""
    line = jnp.stack([jnp.ones_like(data.z), data.z], axis=1)
    x, y = (side - line @ jnp.linalg.lstsq(line, side)[0] for side in (data.x, data.y))
    return _of_correlation(x, y, data.x.shape[0] - 3.0)


partial_correlation.uses_z = True  # as a test of tests asks a function


def welch(data):
    """Of two groups of unequal variances, y in {-1, 1}; 1 where a group has no two records."""
    means, errors, counts = [], [], []
    for group in (data.y < 0, data.y > 0):
        count = jnp.sum(group)
        mean = jnp.sum(jnp.where(group, data.x, 0.0)) / jnp.maximum(count, 1)
        spread = jnp.sum(jnp.where(group, (data.x - mean) ** 2, 0.0)) / jnp.maximum(count - 1, 1)
        means.append(mean), errors.append(spread / jnp.maximum(count, 1)), counts.append(count)
    total = errors[0] + errors[1]
    freedom = total**2 / sum(error**2 / jnp.maximum(n - 1, 1) for error, n in zip(errors, counts, strict=True))
    found = _student((means[0] - means[1]) / jnp.sqrt(total), freedom)
    return jnp.where(jnp.minimum(*counts) < 2, 1.0, found)


def chi2(data):
    """Of a table of three by three levels; 1 where a margin is empty."""
    cells = jnp.zeros((3, 3)).at[data.x, data.y].add(1.0)
    expected = jnp.outer(jnp.sum(cells, 1), jnp.sum(cells, 0)) / jnp.sum(cells)
    found = jnp.sum((cells - expected) ** 2 / jnp.maximum(expected, 1e-9))
    return jnp.where(jnp.min(expected) > 0.0, gammaincc(2.0, found / 2.0), 1.0)


def thirds(data):
    """Of the table of three by three thirds of two continuous columns."""
    x, y = (3 * jnp.argsort(jnp.argsort(side)) // side.shape[0] for side in (data.x, data.y))
    return chi2(dataclasses.replace(data, x=x, y=y))


def kruskal(data):
    """Kruskal and Wallis' test, groups x in {0, 1, 2}, no ties; 1 where a group is empty."""
    n = data.y.shape[0]
    ranks = jnp.argsort(jnp.argsort(data.y)) - 0.5 * (n - 1.0)
    sizes = jnp.zeros(3).at[data.x].add(1.0)
    sums = jnp.zeros(3).at[data.x].add(ranks)
    found = 12.0 / (n * (n + 1.0)) * jnp.sum(sums**2 / jnp.maximum(sizes, 1.0))
    return jnp.where(jnp.min(sizes) > 0.0, gammaincc(1.0, found / 2.0), 1.0)


def log_rank(data):
    """Of two groups x in {0, 1}; y holds times without ties, and whether the event came."""
    order = jnp.argsort(data.y[:, 0])
    second, event = data.x[order], data.y[order, 1]
    share = jnp.cumsum(second[::-1])[::-1] / jnp.arange(second.shape[0], 0, -1)
    difference, variance = jnp.sum(event * (second - share)), jnp.sum(event * share * (1.0 - share))
    return jnp.where(variance > 0.0, erfc(jnp.abs(difference) / jnp.sqrt(2.0 * jnp.maximum(variance, 1e-12))), 1.0)
