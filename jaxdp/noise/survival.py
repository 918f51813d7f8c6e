"""Survival functions of the noise laws, for null distributions that carry the same noise."""

from typing import Any

import jax.numpy as jnp


def laplace(x, scale, *, xp: Any = jnp):
    """P(Laplace(scale) >= x); any shapes that broadcast."""
    beyond = 0.5 * xp.exp(-xp.abs(x) / scale)
    return xp.where(xp.asarray(x) >= 0, beyond, 1.0 - beyond)


def two_sided_geometric(k, scale):
    """P(G >= k) for integers k, where P(G = j) is proportional to exp(-|j|/scale)."""
    step = jnp.exp(-1.0 / scale)
    k = jnp.asarray(k, float)
    above = jnp.exp(-jnp.maximum(k, 1.0) / scale) / (1.0 + step)
    below = jnp.exp(-jnp.maximum(1.0 - k, 1.0) / scale) / (1.0 + step)
    return jnp.where(k >= 1.0, above, 1.0 - below)
