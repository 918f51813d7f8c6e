"""How hard to winsorise, and how to divide epsilon over sum and variance, tuned on the limit law of PartitionGCM.

Theory: docs/theory/partition_gcm.md#winsorising, #p-value, #tuning. Symbols: tau = `level`, P = P(|xi| < tau),
v = E clip(xi)^2; S ~ N(n P^2 delta/tau^2, n v^2/tau^4) + Laplace(8/(s eps)), s = `split`,
V~ = n v^2/tau^4 + Laplace(6/((1 - s) eps)).
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdp import null_laws
from jaxdp._base import check
from jaxdp.independence.continuous.partition_gcm import COVARIANCE_L1, SHARES, VARIANCE_ONE_REGION
from jaxdp.statistics.winsorize import best_level, efficiency
from jaxdp.tune import descent
from jaxdp.tune.objective import SoftPower

STEPS, SPLIT_STEPS = 40, 12
EXPECTED_SIGNAL = 2.8  # noncentrality at the defaults: power about 0.8
START_LEVEL = 0.5
START_SHARES = (0.7, 0.85, 0.93)
POINTS, NORMAL_REACH, LAPLACE_REACH = 301, 6.0, 14.0  # trapezoid rule for N + Laplace, in units of each
NOISE_NODES = 16  # equally likely values of the noise of V


def winsorising_level(n: ArrayLike, epsilon: ArrayLike) -> jax.Array:
    """The tau that maximises the signal-to-noise ratio of the noisy sum, by gradient (optax L-BFGS); shapes broadcast.

    n: records. epsilon: budget of the whole test, 85 % of which the sum gets. Equals the golden-section search
    `jaxdp.statistics.winsorize.best_level` that the test itself uses. Public numbers only.
    """
    check.positive(n=n, epsilon=epsilon)
    with jax.enable_x64(True):
        n, epsilon = jnp.broadcast_arrays(jnp.asarray(n, float), jnp.asarray(epsilon, float))
        noise = 2.0 * (COVARIANCE_L1 / (SHARES["covariance"] * epsilon)) ** 2
        found = _levels(n.ravel(), noise.ravel()).reshape(n.shape)
    return found.astype(jnp.result_type(float))


@jax.jit
def _levels(n, noise_variance):
    def one(n, noise_variance):
        def score(log_tau):
            return jnp.log(efficiency(jnp.exp(log_tau), n, noise_variance))

        start = jnp.log(jnp.full((1,), START_LEVEL))
        return jnp.exp(descent.ascend(score, start, steps=STEPS)[0][0])

    return jax.vmap(one)(n, noise_variance)


def epsilon_split(
    n: float, epsilon: float, *, level: float = 0.05, price: float = 20.0, correct_level: bool = True
) -> float:
    """Share of epsilon for the noisy sum (the rest buys the noisy variance) that maximises soft power, by gradient.

    On the limit law of the test at the default winsorising level, for an effect that the default share finds with
    power about 0.8. n, epsilon: numbers. Soft power is integrated, not drawn: no seed, one answer. False alarms above
    those of a valid test cost `price` each: a poorly known variance raises them, the more the larger epsilon is.
    correct_level: the p-value, as in `PartitionGCM`; without it is the one for which the default share was found.
    Within a tenth of the default 0.85 up to n = 1000 and for large epsilon; from n = 10^4 on up to 0.96, where it gains
    1.3 points of power at most. Without the correction the variance needs much more where epsilon is large.
    """
    check.positive(n=n, epsilon=epsilon)
    with jax.enable_x64(True):
        return float(_split(jnp.asarray(n, float), jnp.asarray(epsilon, float), level, price, correct_level))


@functools.partial(jax.jit, static_argnums=(2, 3, 4))
def _split(n, epsilon, level, price, correct_level):
    shares = jnp.array(START_SHARES)
    objective = split_objective(n, epsilon, level, price, correct_level)
    points, values = descent.ascend(objective, jnp.log(shares / (1.0 - shares)), steps=SPLIT_STEPS)
    return jax.nn.sigmoid(points[jnp.argmax(values)])


def split_objective(n, epsilon, level, price, correct_level=True):
    """The objective of `epsilon_split`, a function of the share's logit."""
    log_tau, objective = joint_objective(n, epsilon, level, price, correct_level)
    return lambda logit: objective((log_tau, logit))


def joint_objective(n, epsilon, level, price, correct_level=True):
    """ln of the default winsorising level, and the objective as a function of (log tau, logit of the share).

    The effect is the one that the default level finds with power about 0.8.
    """
    noise = 2.0 * (COVARIANCE_L1 / (SHARES["covariance"] * epsilon)) ** 2
    tau = best_level(n, noise)
    effect = EXPECTED_SIGNAL / efficiency(tau, n, noise)
    decide = SoftPower(level=level, softness=level, price=price)

    def objective(point):
        rate = jax.vmap(lambda e: limit_rate(point, n, epsilon, e, decide, correct_level))
        power, alarms = rate(jnp.stack([effect, jnp.zeros_like(effect)]))
        return power - price * jax.nn.relu(alarms - decide.allowed())

    return jnp.log(tau), objective


def limit_rate(point, n, epsilon, effect, decide: SoftPower, correct_level: bool = True):
    """Mean soft decision of the limit law at (log tau, logit of the share), by quadrature; smooth in all arguments."""
    log_tau, logit = point
    tau, share = jnp.exp(log_tau), jax.nn.sigmoid(logit)
    inside = 1.0 - 2.0 * jax.scipy.stats.norm.sf(tau)
    second = inside - 2.0 * tau * jax.scipy.stats.norm.pdf(tau) + 2.0 * tau**2 * jax.scipy.stats.norm.sf(tau)
    scale = COVARIANCE_L1 / (share * epsilon)
    variance_scale = VARIANCE_ONE_REGION / ((1.0 - share) * epsilon)
    variance = n * (second / tau**2) ** 2
    centred, weight = _sum_law(jnp.sqrt(variance), scale)
    total = effect * n * (inside / tau) ** 2 + centred
    noisy = variance + variance_scale * noise_quantiles(NOISE_NODES)
    sds = null_laws.noisy_sd(noisy, 2.0 * variance_scale**2, n)
    total, sds = total[:, None], sds[None, :]
    if correct_level:
        sds = null_laws.widened_for_laplace(total, sds, scale, 2.0 * variance_scale**2)
    p_values = null_laws.normal_plus_laplace(total, sds, scale)
    return weight @ jnp.mean(decide.decision(p_values), axis=1)


def _sum_law(sd, scale):
    """Places (POINTS,) and weights of N(0, sd^2) + Laplace(scale)."""
    place = jnp.linspace(-1.0, 1.0, POINTS) * (NORMAL_REACH * sd + LAPLACE_REACH * scale)
    u, r = jnp.abs(place) / sd, sd / scale

    def side(sign):
        return jnp.exp(0.5 * r * r - sign * u * r + jax.scipy.special.log_ndtr(sign * u - r))

    density = side(1.0) + side(-1.0)
    return place, density / jnp.sum(density)


def noise_quantiles(count: int):
    """Equally likely values of Laplace noise of scale 1, adjusted to its variance; array (count,)."""
    place = (np.arange(count) + 0.5) / count
    values = -np.sign(place - 0.5) * np.log(2.0 * np.minimum(place, 1.0 - place))
    return jnp.asarray(values * np.sqrt(2.0 / np.mean(values**2)))
