"""A normal variable seen through a clip: which mean and sd its clipped moments belong to, and what clipping does to
correlations.

A column u is released as w = clip((u - m)/(T s), -1, 1) (`moments`). With u normal, w = clip((xi - mu)/tau, -1, 1) for
a standard normal xi; mu and tau follow from the mean and the mean square of w, so that m and s need not be accurate.
Then E w w' - E w E w' = H(r) = sum_q d_q d'_q r^q for two columns of correlation r, d_q the normalised Hermite
coefficients. Theory: docs/theory/partial_correlation.md#unclipping.
"""

import jax
import jax.numpy as jnp
from jax.scipy.stats import norm

from jaxdp._base.bisection import bisected
from jaxdp._base.pytree import frozen_pytree

TERMS = 24
MAX_CORRELATION = 0.98
SQUARES = (0.03, 0.97)  # a mean square outside says that the clip is not where the records are
MAX_MEAN = 0.7
LOG_TAU = (-4.0, 4.0)
OUTER, INNER, BISECTIONS = 28, 4, 30


@frozen_pytree
class ClipLaw:
    """Columns seen through a clip, arrays (p,): mean, square of w; mu, log_tau; coefficients d (p, TERMS).

    A column that no clip touches (public levels) has d_1 = sd of w and no others: covariances are linear in r.
    by_mean, by_square: derivatives of (d (p, TERMS), log sd (p,)) by the mean and by the mean square.
    """

    mean: jax.Array
    mu: jax.Array
    log_tau: jax.Array
    coefficients: jax.Array
    log_sd: jax.Array
    by_mean: tuple[jax.Array, jax.Array]
    by_square: tuple[jax.Array, jax.Array]


def clipped_moments(mu, log_tau):
    """E w and E w^2 of w = clip((xi - mu)/tau, -1, 1), xi standard normal."""
    mean, square, _ = _moments(mu, log_tau)
    return mean, square


def _moments(mu, log_tau):
    """`clipped_moments` and P(|w| < 1). One distribution function of all ends: most of a program is its expansion."""
    tau = jnp.exp(log_tau)
    low, high = mu - tau, mu + tau
    below, up_to, above = norm.cdf(jnp.stack([low, high, -high]))
    at_low, at_high = norm.pdf(jnp.stack([low, high]))
    inside = up_to - below
    first = at_low - at_high
    second = inside + low * at_low - high * at_high
    mean = (first - mu * inside) / tau + above - below
    square = (second - 2.0 * mu * first + mu**2 * inside) / tau**2 + above + below
    return mean, square, inside


def law(mean, square, linear) -> ClipLaw:
    """The laws behind noisy means and mean squares (p,). linear (p,) bool: columns that no clip touches."""
    bounded_mean = jnp.clip(mean, -MAX_MEAN, MAX_MEAN)
    bounded = jnp.clip(square, jnp.maximum(SQUARES[0], bounded_mean**2 + SQUARES[0]), SQUARES[1])
    mu, log_tau = _solve(bounded_mean, bounded)
    hermite, slopes = _with_slopes(mu, log_tau)
    variance = jnp.clip(square - mean**2, 1e-2, 1.0)
    sd = jnp.sqrt(variance)
    nothing = jnp.zeros_like(hermite)
    by_mean, by_square = (
        (
            jnp.where(linear[:, None], nothing.at[:, 0].set(of_variance * sd / (2.0 * variance)), of_clip[0]),
            jnp.where(linear, of_variance / (2.0 * variance), of_clip[1]),
        )
        for of_variance, of_clip in zip((-2.0 * mean, jnp.ones_like(mean)), slopes, strict=True)
    )
    return ClipLaw(
        mean=mean,  # not the bounded one: independent columns have no covariance about their own means alone
        mu=mu,
        log_tau=log_tau,
        coefficients=jnp.where(linear[:, None], nothing.at[:, 0].set(sd), hermite),
        log_sd=jnp.where(linear, 0.5 * jnp.log(variance), -log_tau),
        by_mean=by_mean,
        by_square=by_square,
    )


def _solve(mean, square):
    """mu and log tau by bisection on log tau, with Newton steps for mu inside."""

    def centre(_, state):
        log_tau, mu = state
        found, _, inside = _moments(mu, log_tau)
        slope = inside / jnp.exp(log_tau)  # -d mean/d mu
        off = found - mean
        return log_tau, jnp.clip(mu + jnp.clip(off / jnp.maximum(slope, 1e-3), -1.0, 1.0), -6.0, 6.0)

    def narrow(_, state):
        low, high, mu = state
        middle = 0.5 * (low + high)
        mu = jax.lax.fori_loop(0, INNER, centre, (middle, mu))[1]
        too_narrow = clipped_moments(mu, middle)[1] > square  # a narrower clip has larger squares
        return jnp.where(too_narrow, middle, low), jnp.where(too_narrow, high, middle), mu

    start = jnp.full_like(mean, LOG_TAU[0]), jnp.full_like(mean, LOG_TAU[1]), jnp.zeros_like(mean)
    low, high, mu = jax.lax.fori_loop(0, OUTER, narrow, start)
    return mu, 0.5 * (low + high)


def _with_slopes(mu, log_tau):
    """Coefficients, and derivatives of (coefficients, log sd) by the mean and by the square, through (mu, log tau)."""
    one, zero = jnp.ones_like(mu), jnp.zeros_like(mu)

    def everything(mu, log_tau):
        return _coefficients(mu, log_tau), clipped_moments(mu, log_tau)

    def along(by_mu, by_tau):
        return jax.jvp(everything, (mu, log_tau), (by_mu, by_tau))

    directions = jnp.stack([one, zero]), jnp.stack([zero, one])
    (coefficients, _), (of_both, ((a, b), (c, d))) = jax.vmap(along, out_axes=(None, 0))(*directions)
    determinant = a * d - b * c
    determinant = jnp.where(jnp.abs(determinant) < 1e-4, -1e-4, determinant)  # it is negative

    def through(mu_slope, tau_slope):
        by_both = mu_slope[:, None] * of_both[0] + tau_slope[:, None] * of_both[1]
        return by_both, -tau_slope

    return coefficients, (through(d / determinant, -c / determinant), through(-b / determinant, a / determinant))


def _coefficients(mu, log_tau):
    """d_q, q = 1, ..., TERMS, as (p, TERMS): E w He_q(xi)/sqrt(q!)."""
    tau = jnp.exp(log_tau)
    ends = jnp.stack([mu - tau, mu + tau])
    densities = norm.pdf(ends)

    def climb(state, k):  # at: He_k/sqrt(k!) at both ends
        before, at = state
        row = (at[0] * densities[0] - at[1] * densities[1]) / (tau * jnp.sqrt((k + 2.0) * (k + 1.0)))
        return (at, (ends * at - jnp.sqrt(k) * before) / jnp.sqrt(k + 1.0)), row

    start = jnp.zeros_like(ends), jnp.ones_like(ends)
    rows = jax.lax.scan(climb, start, jnp.arange(TERMS - 1.0))[1]
    below = norm.cdf(ends)
    first = (below[1] - below[0]) / tau
    return jnp.concatenate([first[None], rows]).T


def covariance_of(correlation, first, second):
    """H(r) for coefficients (..., TERMS) of two columns: the covariance of the clipped values."""
    return jnp.sum(_powers(correlation) * first * second, axis=-1)


def slope_of(correlation, first, second):
    """H'(r), at least a hundredth of H'(0)."""
    powers = jnp.concatenate([jnp.ones_like(correlation)[..., None], _powers(correlation)[..., :-1]], axis=-1)
    orders = jnp.broadcast_to(jnp.arange(1.0, TERMS + 1.0), powers.shape)
    total = jnp.sum(powers * orders * first * second, axis=-1)
    return jnp.maximum(total, 0.01 * first[..., 0] * second[..., 0])


def _powers(correlation):
    """r^q, q = 1, ..., TERMS, on a new last axis."""
    doubled = correlation[..., None]
    while doubled.shape[-1] < TERMS:
        doubled = jnp.concatenate([doubled, doubled * doubled[..., -1:]], axis=-1)
    return doubled[..., :TERMS]


def correlation_of(covariance, first, second):
    """H^-1 of a noisy covariance, within +-`MAX_CORRELATION`, by bisection."""
    ends = jnp.full_like(covariance, -MAX_CORRELATION), jnp.full_like(covariance, MAX_CORRELATION)
    low, high = bisected(lambda r: covariance_of(r, first, second) < covariance, *ends, BISECTIONS)
    return 0.5 * (low + high)
