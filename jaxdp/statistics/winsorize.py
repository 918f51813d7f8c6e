"""How hard to winsorise residuals before a noisy sum: the closed-form trade-off."""

import jax
import jax.numpy as jnp
from jax.scipy.special import erf
from jax.scipy.stats import norm

LEAST, MOST = 0.02, 6.0  # levels that are searched
BISECTIONS = 26  # down to 1e-7 in log tau; a Newton step does the rest


def efficiency(tau, num_records, noise_variance):
    """Signal to noise of sum clip(x/tau) clip(y/tau) for standard normal residuals, up to a constant.

    docs/theory/partition_gcm.md#winsorising: n P^2 / sqrt(n v^2 + noise_variance tau^4), P = P(|xi| < tau),
    v = E clip(xi, -tau, tau)^2; noise_variance is that of the noise added to the sum for |x|, |y| <= 1.
    """
    inside, second_moment = _moments(tau)
    return num_records * inside**2 / jnp.sqrt(num_records * second_moment**2 + noise_variance * tau**4)


def best_level(num_records, noise_variance):
    """The tau in [0.02, 6] that maximises `efficiency`: the root of its derivative in log tau.

    Differentiable in both numbers by the implicit function theorem, with gradient 0 where the optimum is an end. The
    efficiency is flat at tau, but what else depends on tau (a p-value on data) is not, so that its gradient needs that
    of tau.
    """
    noise_variance = jnp.asarray(noise_variance, float)
    ratio = jnp.maximum(noise_variance / num_records, jnp.finfo(noise_variance.dtype).tiny)
    return jnp.exp(_log_level(jnp.log(ratio)))


@jax.custom_jvp
def _log_level(log_ratio):
    """log tau of the optimum, a function of log(noise_variance/n) alone."""
    low, high = (jnp.full_like(log_ratio, jnp.log(end)) for end in (LEAST, MOST))
    low, high, _ = jax.lax.fori_loop(0, BISECTIONS, _halve, (low, high, log_ratio))
    middle = 0.5 * (low + high)
    slope, bend, _ = _slope(middle, log_ratio)
    newton = middle - slope / bend
    return jnp.where((newton > low) & (newton < high), newton, middle)


@_log_level.defjvp
def _log_level_jvp(primals, tangents):
    (log_ratio,), (tangent,) = primals, tangents
    log_tau = _log_level(log_ratio)
    slope, bend, by_ratio = _slope(log_tau, log_ratio)
    at_an_end = jnp.abs(slope) > 1e-3 * jnp.abs(bend)  # no root between the ends
    return log_tau, jnp.where(at_an_end, 0.0, -by_ratio / bend) * tangent


def _halve(_, state):  # all it needs is in its state: a new function for every call would be compiled at every call
    low, high, log_ratio = state
    middle = 0.5 * (low + high)
    rises = _slope(middle, log_ratio)[0] > 0.0
    return jnp.where(rises, middle, low), jnp.where(rises, high, middle), log_ratio


def _slope(log_tau, log_ratio):
    """h, the derivative of log efficiency in log tau, and the derivatives of h in log tau and log(noise_variance/n).

    h = 2 (g - 1) + s (2 - a) with g = tau P'/P, a = tau v'/v and s the sampling variance's share of the whole, in
    terms that cancel nowhere: rounding would move the root.
    """
    tau = jnp.exp(log_tau)
    inside, second_moment = _moments(tau)
    gain = 2.0 * tau * norm.pdf(tau) / inside
    loss = 4.0 * tau**2 * norm.sf(tau) / second_moment
    share = 1.0 / (1.0 + jnp.exp(log_ratio) * (tau**2 / second_moment) ** 2)
    by_gain = gain * (1.0 - tau**2 - gain)
    by_loss = loss * (2.0 - tau * norm.pdf(tau) / norm.sf(tau) - loss)
    by_ratio = -share * (1.0 - share) * (2.0 - loss)
    bend = 2.0 * by_gain - share * by_loss + 2.0 * by_ratio * (2.0 - loss)
    return 2.0 * (gain - 1.0) + share * (2.0 - loss), bend, by_ratio


def _moments(tau):
    """P(|xi| < tau) and E clip(xi, -tau, tau)^2 of a standard normal xi."""
    inside = erf(tau / jnp.sqrt(2.0))
    return inside, inside - 2.0 * tau * norm.pdf(tau) + 2.0 * tau**2 * norm.sf(tau)
