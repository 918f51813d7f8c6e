"""How hard to winsorise residuals before a noisy sum: the closed-form trade-off."""

import jax
import jax.numpy as jnp
from jax.scipy.stats import norm

_GOLDEN = 0.6180339887498949


def efficiency(tau, num_records, noise_variance):
    """Signal to noise of sum clip(x/tau) clip(y/tau) for standard normal residuals, up to a constant.

    docs/theory/partition_gcm.md#winsorising: n P^2 / sqrt(n v^2 + noise_variance tau^4), P = P(|xi| < tau),
    v = E clip(xi, -tau, tau)^2; noise_variance is that of the noise added to the sum for |x|, |y| <= 1.
    """
    inside = 1.0 - 2.0 * norm.sf(tau)
    second_moment = inside - 2.0 * tau * norm.pdf(tau) + 2.0 * tau**2 * norm.sf(tau)
    return num_records * inside**2 / jnp.sqrt(num_records * second_moment**2 + noise_variance * tau**4)


def best_level(num_records, noise_variance):
    """The tau in [0.02, 6] that maximises `efficiency`, by golden-section search on log tau."""

    # The optimum is flat, so its own gradient adds nothing (envelope theorem): treat it as a constant.
    noise_variance = jax.lax.stop_gradient(jnp.asarray(noise_variance, float))
    low, high = jnp.log(0.02) + 0.0 * noise_variance, jnp.log(6.0) + 0.0 * noise_variance
    setting = jnp.asarray(num_records, float) + 0.0 * noise_variance, noise_variance
    low, high, _ = jax.lax.fori_loop(0, 40, _narrow, (low, high, setting))
    return jnp.exp(0.5 * (low + high))


def _narrow(_, state):  # all it needs is in its state: a new function for every call would be compiled at every call
    low, high, (num_records, noise_variance) = state
    inner, outer = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    left = efficiency(jnp.exp(inner), num_records, noise_variance)
    right = efficiency(jnp.exp(outer), num_records, noise_variance)
    keep_left = left > right
    return jnp.where(keep_left, low, inner), jnp.where(keep_left, outer, high), (num_records, noise_variance)
