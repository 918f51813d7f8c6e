"""How hard to winsorise, and how to divide epsilon over sum and variance, tuned on the limit law of PartitionGCM.

Source: formula sheet on GCM, sections 2.2, 2.3 and 6. Symbols: tau = `level`, P = P(|xi| < tau), v = E clip(xi)^2;
S ~ N(n P^2 delta/tau^2, n v^2/tau^4) + Laplace(8/(s eps)), V~ = n v^2/tau^4 + Laplace(6/((1 - s) eps)), s = `split`.
"""

import functools

import jax
import jax.numpy as jnp

from jaxdp import _check, calibrate
from jaxdp.independence.conditional.partition_gcm import COVARIANCE_L1, SHARES, VARIANCE_ONE_REGION
from jaxdp.statistics.winsorize import best_level, efficiency
from jaxdp.tune import descent
from jaxdp.tune.objective import SoftPower

STEPS, SPLIT_STEPS = 40, 10
DRAWS = 2**13
EXPECTED_SIGNAL = 2.8  # noncentrality at the defaults: power about 0.8
START_LEVEL = 0.5


def winsorising_level(n, epsilon):
    """The tau that maximises the signal-to-noise ratio of the noisy sum, by gradient (optax L-BFGS); shapes broadcast.

    n: records. epsilon: budget of the whole test, 85 % of which the sum gets. Equals the golden-section search
    `jaxdp.statistics.winsorize.best_level` that the test itself uses. Public numbers only.
    """
    _check.positive(n=n, epsilon=epsilon)
    with jax.enable_x64(True):
        n, epsilon = jnp.broadcast_arrays(jnp.asarray(n, float), jnp.asarray(epsilon, float))
        noise = 2.0 * (COVARIANCE_L1 / (SHARES["covariance"] * epsilon)) ** 2
        found = _levels(n.ravel(), noise.ravel()).reshape(n.shape)
    return found.astype(jnp.result_type(float))


@jax.jit
def _levels(n, noise_variance):
    def one(n, noise_variance):
        score = lambda log_tau: jnp.log(efficiency(jnp.exp(log_tau), n, noise_variance))  # noqa: E731
        start = jnp.log(jnp.full((1,), START_LEVEL))
        return jnp.exp(descent.ascend(score, start, steps=STEPS)[0][0])

    return jax.vmap(one)(n, noise_variance)


def epsilon_split(n, epsilon, *, key, level: float = 0.05, price: float = 20.0) -> float:
    """Share of epsilon for the noisy sum (the rest buys the noisy variance) that maximises soft power, by gradient.

    On the limit law of the test at the default winsorising level, for an effect that the default share finds with
    power about 0.8. n, epsilon: numbers. key: simulation key of the common random numbers. False alarms above those of
    a valid test cost `price` each: a poorly known variance raises them. Power is flat in the share from n = 10^4 on.
    """
    _check.positive(n=n, epsilon=epsilon)
    with jax.enable_x64(True):
        return float(_split(jnp.asarray(n, float), jnp.asarray(epsilon, float), key, level, price))


@functools.partial(jax.jit, static_argnums=(3, 4))
def _split(n, epsilon, key, level, price):
    start = jnp.log(jnp.full((1,), SHARES["covariance"] / SHARES["variance"]))
    objective = split_objective(n, epsilon, key, level, price)
    return jax.nn.sigmoid(descent.ascend(objective, start, steps=SPLIT_STEPS)[0][0])


def split_objective(n, epsilon, key, level, price):
    """The objective of `epsilon_split`, a function of the share's logit."""
    draws = _draws(key)
    noise = 2.0 * (COVARIANCE_L1 / (SHARES["covariance"] * epsilon)) ** 2
    tau = best_level(n, noise)
    effect = EXPECTED_SIGNAL / efficiency(tau, n, noise)
    decide = SoftPower(level=level, softness=level, price=price)

    def objective(logit):
        rate = jax.vmap(lambda e: limit_rate((jnp.log(tau), logit), n, epsilon, e, draws, decide))
        power, alarms = rate(jnp.stack([effect, jnp.zeros_like(effect)]))
        return power - price * jax.nn.relu(alarms - decide.allowed())

    return objective


def _draws(key):
    """Standard normal, Laplace, Laplace; antithetic in all three, so that the null is exactly symmetric."""
    keys = jax.random.split(key, 3)
    half = (DRAWS // 2,)
    drawn = (jax.random.normal(keys[0], half), jax.random.laplace(keys[1], half), jax.random.laplace(keys[2], half))
    return tuple(jnp.concatenate([d, -d]) for d in drawn)


def limit_rate(point, n, epsilon, effect, draws, decide: SoftPower):
    """Mean soft decision of the limit law at (log tau, logit of the share), given standard draws."""
    log_tau, logit = point
    tau, share = jnp.exp(log_tau), jax.nn.sigmoid(logit)
    inside = 1.0 - 2.0 * jax.scipy.stats.norm.sf(tau)
    second = inside - 2.0 * tau * jax.scipy.stats.norm.pdf(tau) + 2.0 * tau**2 * jax.scipy.stats.norm.sf(tau)
    scale = COVARIANCE_L1 / (share * epsilon)
    variance_scale = VARIANCE_ONE_REGION / ((1.0 - share) * epsilon)
    variance = n * (second / tau**2) ** 2
    total = effect * n * (inside / tau) ** 2 + jnp.sqrt(variance) * draws[0] + scale * draws[1]
    sd = calibrate.noisy_sd(variance + variance_scale * draws[2], 2.0 * variance_scale**2, n)
    return jnp.mean(decide.decision(calibrate.normal_plus_laplace(total, sd, scale)))
