"""A clipped response that is normal about the mean of its group, with one sd in both groups: means, sd, and errors.

The response as a whole is a mixture of two normals, not a normal; unclipping it as one bends every estimate once the
groups are an sd apart. Symbols: g = group, -1 or 1; w = response on its clip limits, clip(u, -1, 1) with u normal of
mean m_g and sd s. Everything is post-processing of a released vector (`moments`).
Theory: docs/theory/partial_correlation.md#two-groups.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

from jaxdp._base.bisection import bisected
from jaxdp.statistics import clipped_normal
from jaxdp.statistics.partial_correlations import Correlations, Estimate

MAX_BALANCE = 0.98  # of the mean of g: no group below one in a hundred
MAX_MEAN = 0.95  # of w within a group
MIN_SPREAD = 0.02  # of w within the groups, a variance
LOG_SPREAD = (-4.0, 2.0)  # of s
STEPS = 40
POINTS = np.linspace(-6.0, 6.0, 601, dtype=np.float32)  # by NumPy: an import compiles nothing


def _clipped(mean, log_sd):
    """(E w, E w^2) of a group."""
    return clipped_normal.clipped_moments(-mean * jnp.exp(-log_sd), -log_sd)


def moments_of(parameters):
    """(E g, E g w, E w, E w^2) of (E g, m of the second group, m of the first, log s)."""
    balance, second, first, log_sd = parameters
    shares = 0.5 * (1.0 + balance), 0.5 * (1.0 - balance)
    above, below = _clipped(second, log_sd), _clipped(first, log_sd)
    return jnp.stack(
        [
            balance,
            shares[0] * above[0] - shares[1] * below[0],
            shares[0] * above[0] + shares[1] * below[0],
            shares[0] * above[1] + shares[1] * below[1],
        ]
    )


def fitted(moments):
    """The parameters (`moments_of`) behind noisy moments: by bisection on log s, and on the means within."""
    balance = jnp.clip(moments[0], -MAX_BALANCE, MAX_BALANCE)
    shares = jnp.stack([0.5 * (1.0 + balance), 0.5 * (1.0 - balance)])
    sums = 0.5 * jnp.stack([moments[2] + moments[1], moments[2] - moments[1]])
    means = jnp.clip(sums / shares, -MAX_MEAN, MAX_MEAN)
    square = jnp.clip(moments[3], jnp.sum(shares * means**2) + MIN_SPREAD, 0.99)

    def centres(log_sd):
        reach = 1.0 + 6.0 * jnp.exp(log_sd)
        return _root(lambda at: _clipped(at, log_sd)[0] < means, -reach * jnp.ones(2), reach * jnp.ones(2))

    def too_small(log_sd):
        return jnp.sum(shares * _clipped(centres(log_sd), log_sd)[1]) < square

    log_sd = _root(too_small, jnp.asarray(LOG_SPREAD[0]), jnp.asarray(LOG_SPREAD[1]))
    second, first = centres(log_sd)
    return jnp.stack([balance, second, first, log_sd])


def _root(below: Callable, low, high):
    """Where an increasing function turns from `below` to not."""
    low, high = bisected(below, low, high, STEPS)
    return 0.5 * (low + high)


def _sampling(parameters):
    """Covariance (4, 4) of (g, g w, w, w^2) of one record."""
    balance, second, first, log_sd = parameters
    weights = norm.pdf(POINTS)
    weights = weights / jnp.sum(weights)
    total, outer = jnp.zeros(4), jnp.zeros((4, 4))
    for sign, share, mean in ((1.0, 0.5 * (1.0 + balance), second), (-1.0, 0.5 * (1.0 - balance), first)):
        w = jnp.clip(mean + jnp.exp(log_sd) * POINTS, -1.0, 1.0)
        features = jnp.stack([sign * jnp.ones_like(w), sign * w, w, w**2], axis=1)
        total = total + share * (weights @ features)
        outer = outer + share * (features.T @ (weights[:, None] * features))
    return outer - jnp.outer(total, total)


def estimate(found: Correlations, group: int, of: Callable) -> Estimate:
    """`of`, a function of the parameters, with its law. group: which of the two columns is the group."""
    # released mean products (0, 0), (0, 1), (1, 1) and means 0, 1
    response = 1 - group
    places = jnp.asarray([3 + group, 1, 3 + response, 2 * response])
    parameters = fitted(jax.lax.stop_gradient(found.moments)[places])
    by_moments = jnp.linalg.solve(jax.jacfwd(moments_of)(parameters).T, jax.grad(of)(parameters))
    variance = by_moments @ _sampling(parameters) @ by_moments / found.num_records
    direction = jnp.zeros_like(found.noise).at[places].set(by_moments)
    return Estimate(value=of(parameters), sd=jnp.sqrt(jnp.maximum(variance, 1e-12)), noise=direction * found.noise)


def difference(parameters):
    """Mean of the second group less that of the first, in clip limits."""
    return parameters[1] - parameters[2]


def correlation(parameters):
    """Of group and response."""
    balance, second, first, log_sd = parameters
    between = 0.25 * (1.0 - balance**2) * (second - first) ** 2
    return 0.5 * jnp.sqrt(1.0 - balance**2) * (second - first) / jnp.sqrt(jnp.exp(2.0 * log_sd) + between)
