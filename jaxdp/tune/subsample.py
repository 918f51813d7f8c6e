"""Public parameters by gradient descent: how many rows a sub-sampled sieve should read.

Theory: docs/theory/priv_pc.md#rate-of-sub-sampling. Symbols: x = n/m, c = e^(epsilon/2) - 1, u = c x.
"""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdp._base import check
from jaxdp._base.types import Array

MIN_RATE = 1.0 / 20.0
# y* = 2 + W0(-2 e^-2) solves y = 2 (1 - e^-y); u* = e^(y*) - 1 = 3.92155...: the unclipped optimum has u = u*.
OPTIMAL_BUDGET = 1.5936242600400399
STEPS = 60


def noise_objective(log_ratio: ArrayLike, epsilon: ArrayLike) -> Array:
    """ln of sqrt(n/m)/ln(1 + (n/m)(e^(epsilon/2) - 1)), the sieve's noise; log_ratio = ln(n/m). Strictly convex."""
    rise = jnp.expm1(0.5 * epsilon) * jnp.exp(log_ratio)
    return 0.5 * log_ratio - jnp.log(jnp.log1p(rise))


def subsample_size(n: ArrayLike, epsilon: ArrayLike) -> Array:
    """Rows m of the sieve that minimise its absolute noise, clipped to [n/20, n]; floats, any shapes that broadcast.

    Gradient descent with line search (optax L-BFGS) on ln(n/m), compiled once and vmapped. Equals
    `subsample_size_closed_form` to 1e-6 of n. Compare `signal_to_noise`: absolute noise is smaller on a subset,
    but the signal shrinks more, so sub-sampling never helps accuracy; it saves time
    (docs/theory/priv_pc.md#rate-of-sub-sampling).
    n: number of records, > 0. epsilon: budget of one round of sieve and examine, > 0. Public numbers only.
    """
    check.positive(n=n, epsilon=epsilon)
    with jax.enable_x64(True):
        # From epsilon = 3.19 on all rows are best; larger budgets would only overflow the exponential.
        budget = jnp.minimum(jnp.asarray(epsilon, float), 20.0)
        records, budget = jnp.broadcast_arrays(jnp.asarray(n, float), budget)
        log_ratio = jax.vmap(_minimise)(budget.ravel()).reshape(budget.shape)
        size = records * jnp.exp(-jnp.clip(log_ratio, 0.0, -jnp.log(MIN_RATE)))
    return size.astype(jnp.result_type(float))


def subsample_size_closed_form(n: ArrayLike, epsilon: ArrayLike) -> Array:
    """The same in closed form: n clip((e^(epsilon/2) - 1)/(e^(y*) - 1), 1/20, 1), y* = 2 + W0(-2 e^-2)."""
    check.positive(n=n, epsilon=epsilon)
    rate = jnp.expm1(0.5 * jnp.asarray(epsilon, float)) / jnp.expm1(OPTIMAL_BUDGET)
    return n * jnp.clip(rate, MIN_RATE, 1.0)


def signal_to_noise(rate: ArrayLike, epsilon: ArrayLike) -> Array:
    """How much better all rows are than a subset of rate = m/n: noise-to-signal on it over that on all rows, >= 1."""
    check.positive(rate=rate, epsilon=epsilon)
    ratio, rise = 1.0 / jnp.asarray(rate, float), jnp.expm1(0.5 * jnp.asarray(epsilon, float))
    return ratio * jnp.log1p(rise) / jnp.log1p(rise * ratio)


@jax.jit
def _minimise(epsilon):
    """ln(n/m) at the unconstrained minimum. The start solves the small-epsilon limit."""
    import optax

    def objective(s):
        return noise_objective(s, epsilon)

    optimizer = optax.lbfgs()
    step_of = optax.value_and_grad_from_state(objective)

    def step(_, carry):
        point, state = carry
        value, gradient = step_of(point, state=state)
        updates, state = optimizer.update(gradient, state, point, value=value, grad=gradient, value_fn=objective)
        return optax.apply_updates(point, updates), state

    start = -jnp.log(jnp.expm1(0.5 * epsilon))
    return jax.lax.fori_loop(0, STEPS, step, (start, optimizer.init(start)))[0]
