"""The public lattice and ladder on which a center and its private scale stand, and float draws of noise on it."""

import jax.numpy as jnp

from jaxdp.noise.smooth import ladder


def require_range(sensitivity) -> None:
    """Raises ValueError without the public range that the lattice follows from."""
    if sensitivity is None or sensitivity.lower is None or sensitivity.upper is None:
        raise ValueError("noise of private scale needs the public range: give Sensitivity(..., lower=, upper=).")


def smooth_draws(key, value, lower, upper, mechanism):
    """Float draws of the law of `Source.smooth`, for simulations and null distributions."""
    center, scale = value
    steps, rung, step, spread = smooth_grid(center, scale, lower, upper, mechanism.ladder_decay())
    noisy = steps + mechanism.noise(key, jnp.exp(rung * spread), jnp.shape(steps))
    low, high = jnp.floor(lower / step), jnp.ceil(upper / step)
    return step * jnp.clip(jnp.floor(noisy + 0.5), low, high)


def smooth_grid(center, smooth, lower, upper, decay):
    """(center in steps, rung of the scale, step, distance of two rungs).

    e^(rung distance) >= S/step + 1, and between neighbours the rung moves by at most decay/distance if log S moves
    by at most decay (1 - 2^-20); the margins cover rounding (docs/theory/smooth_sensitivity.md). A missing center
    counts as the lower end, a missing S as the whole range.
    """
    lower, upper = jnp.asarray(lower, float), jnp.asarray(upper, float)
    # frexp: the range is m 2^e with 1/2 <= m < 1, exactly
    step = jnp.ldexp(jnp.ones((), lower.dtype), jnp.frexp(upper - lower)[1] - 1 - ladder.RESOLUTION)
    low, high = jnp.floor(lower / step), jnp.ceil(upper / step)
    steps = jnp.clip(jnp.floor(jnp.where(jnp.isnan(center), lower, center) / step), low, high)
    spread = decay / jnp.maximum(1.0, jnp.ceil(decay / ladder.FINEST))
    reach = jnp.clip(jnp.nan_to_num(smooth, nan=jnp.inf) / step, 0.0, high - low) + 1.0
    rung = jnp.maximum(0.0, jnp.ceil((jnp.log(reach) + 2.0**-38) / spread))
    return steps, rung, step, spread
