"""The seam between statistics and noise: one function per noise law, dispatched on the key's type.

A simulation key draws fast floats (`draw`); a release key draws exact lattice noise (`lattice`).
Both have the same law. `bound` and `error` come from the sensitivity: the computed statistic moves
by at most bound + 2 error between neighbours.
"""

import jax.numpy as jnp

from jaxdp.noise import draw, keys, lattice


def reach(sensitivity):
    """How far the computed statistic can move: the exact bound plus twice the numerical error."""
    return sensitivity.bound + 2.0 * jnp.asarray(sensitivity.error)


def laplace(key, value, sensitivity, epsilon):
    """value + Laplace noise of scale reach/epsilon, independent over coordinates (L1 bound)."""
    if keys.mode_of(key) == keys.RELEASE:
        return lattice.laplace(key, value, sensitivity, epsilon)
    value = jnp.asarray(value, float)
    return value + reach(sensitivity) / epsilon * draw.laplace(key, value.shape, value.dtype)


def geometric(key, value, sensitivity, epsilon):
    """Integer value + two-sided geometric noise of scale bound/epsilon (L1 bound)."""
    if keys.mode_of(key) == keys.RELEASE:
        return lattice.geometric(key, value, sensitivity, epsilon)
    value = jnp.asarray(value, float)
    return value + draw.two_sided_geometric(key, sensitivity.bound / epsilon, value.shape, value.dtype)


def gaussian(key, value, sensitivity, rho):
    """value + normal noise of sd reach/sqrt(2 rho), independent over coordinates (L2 bound)."""
    if keys.mode_of(key) == keys.RELEASE:
        return lattice.gaussian(key, value, sensitivity, rho)
    value = jnp.asarray(value, float)
    return value + reach(sensitivity) / jnp.sqrt(2.0 * rho) * draw.gaussian(key, value.shape, value.dtype)


def argmax_exponential(key, scores, sensitivity, epsilon):
    """argmax of scores + exponential noise of mean 2 reach/epsilon, over the last axis (Linf bound)."""
    if keys.mode_of(key) == keys.RELEASE:
        return lattice.argmax_exponential(key, scores, sensitivity, epsilon)
    noise = draw.exponential(key, jnp.shape(scores), jnp.asarray(scores).dtype)
    return jnp.argmax(scores + 2.0 * reach(sensitivity) / epsilon * noise, axis=-1)


def argmax_gumbel(key, scores, sensitivity, epsilon):
    """argmax of scores + Gumbel noise of scale 2 reach/epsilon: the exponential mechanism."""
    if keys.mode_of(key) == keys.RELEASE:
        return lattice.argmax_gumbel(key, scores, sensitivity, epsilon)
    noise = draw.gumbel(key, jnp.shape(scores), jnp.asarray(scores).dtype)
    return jnp.argmax(scores + 2.0 * reach(sensitivity) / epsilon * noise, axis=-1)


def rank_at_most(key, reference, others, scale_numerator, epsilon, count):
    """Whether at most `count` of the noisy `others` reach the noisy `reference` (scalar, vector).

    All values carry Laplace noise of scale scale_numerator/epsilon.
    """
    if keys.mode_of(key) == keys.RELEASE:
        return lattice.rank_at_most(key, reference, others, scale_numerator, epsilon, count)
    values = jnp.concatenate([jnp.atleast_1d(reference), others])
    noisy = values + scale_numerator / epsilon * draw.laplace(key, values.shape, values.dtype)
    return jnp.sum(noisy[1:] >= noisy[0]) <= count
