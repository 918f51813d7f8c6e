"""The seam between statistics and noise: one function per noise law, dispatched on the key's type.

A simulation key draws fast floats (`draw`); a release key draws exact lattice noise (`lattice`).
Both have the same law. `bound` and `error` come from the sensitivity: the computed statistic moves
by at most bound + 2 error between neighbours.
"""

import jax.numpy as jnp

from jaxdp.noise import draw, keys, lattice, tape


def reach(sensitivity):
    """How far the computed statistic can move: the exact bound plus twice the numerical error."""
    return sensitivity.bound + 2.0 * sensitivity.error


def laplace(key, value, sensitivity, epsilon):
    """value + Laplace noise of scale reach/epsilon, independent over coordinates (L1 bound)."""
    if keys.mode_of(key) == keys.RELEASE:
        output = _certified(lattice.laplace(key, value, sensitivity, epsilon))
    else:
        floats = jnp.asarray(value, float)
        output = floats + reach(sensitivity) / epsilon * draw.laplace(key, floats.shape, floats.dtype)
    return tape.play("laplace", value, (reach(sensitivity), epsilon), key, output)


def geometric(key, value, sensitivity, epsilon):
    """Integer value + two-sided geometric noise of scale bound/epsilon (L1 bound)."""
    if keys.mode_of(key) == keys.RELEASE:
        output = _certified(lattice.geometric(key, value, sensitivity, epsilon))
    else:
        floats = jnp.asarray(value, float)
        output = floats + draw.two_sided_geometric(key, sensitivity.bound / epsilon, floats.shape, floats.dtype)
    return tape.play("geometric", value, (reach(sensitivity), epsilon), key, output)


def gaussian(key, value, sensitivity, rho):
    """value + normal noise of sd reach/sqrt(2 rho), independent over coordinates (L2 bound)."""
    if keys.mode_of(key) == keys.RELEASE:
        output = _certified(lattice.gaussian(key, value, sensitivity, rho))
    else:
        floats = jnp.asarray(value, float)
        noise = draw.gaussian(key, floats.shape, floats.dtype)
        output = floats + reach(sensitivity) / jnp.sqrt(2.0 * rho) * noise
    return tape.play("gaussian", value, (reach(sensitivity), rho), key, output)


def argmax_exponential(key, scores, sensitivity, epsilon):
    """argmax of scores + exponential noise of mean 2 reach/epsilon, over the last axis (Linf bound)."""
    if keys.mode_of(key) == keys.RELEASE:
        output = _certified(lattice.argmax_exponential(key, scores, sensitivity, epsilon))
    else:
        noise = draw.exponential(key, jnp.shape(scores), jnp.asarray(scores).dtype)
        output = jnp.argmax(scores + 2.0 * reach(sensitivity) / epsilon * noise, axis=-1)
    return tape.play("argmax_exponential", scores, (reach(sensitivity), epsilon), key, output)


def argmax_gumbel(key, scores, sensitivity, epsilon):
    """argmax of scores + Gumbel noise of scale 2 reach/epsilon: the exponential mechanism."""
    if keys.mode_of(key) == keys.RELEASE:
        output = _certified(lattice.argmax_gumbel(key, scores, sensitivity, epsilon))
    else:
        noise = draw.gumbel(key, jnp.shape(scores), jnp.asarray(scores).dtype)
        output = jnp.argmax(scores + 2.0 * reach(sensitivity) / epsilon * noise, axis=-1)
    return tape.play("argmax_gumbel", scores, (reach(sensitivity), epsilon), key, output)


def rank_at_most(key, reference, others, scale_numerator, epsilon, count):
    """Whether at most `count` of the noisy `others` reach the noisy `reference` (scalar, vector).

    All values carry Laplace noise of scale scale_numerator/epsilon.
    """
    if keys.mode_of(key) == keys.RELEASE:
        output = _certified(lattice.rank_at_most(key, reference, others, scale_numerator, epsilon, count))
    else:
        values = jnp.concatenate([jnp.atleast_1d(reference), others])
        noisy = values + scale_numerator / epsilon * draw.laplace(key, values.shape, values.dtype)
        output = jnp.sum(noisy[1:] >= noisy[0]) <= count
    return tape.play("rank_at_most", (reference, others), (scale_numerator, epsilon), key, output)


def _certified(drawn):
    """The released value; its certificate goes into the release being made."""
    output, facts = drawn
    tape.certify(facts)
    return output
