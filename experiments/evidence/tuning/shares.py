"""Where the best share of epsilon for the sum lies, and what lies between it and the default of 0.85.

By the limit law over the table of docs/theory/partition_gcm.md#winsorising, with and without the correction of the
p-value; then by replicates of the real test, which knows neither the limit law nor the soft decision.
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

import jaxdp
from experiments.evidence.tuning.config import Config
from jaxdp import tune
from jaxdp.independence.continuous.partition_gcm import COVARIANCE_L1, SHARES
from jaxdp.simulate import power
from jaxdp.simulate.designs.confounder import sine_confounder
from jaxdp.statistics.winsorize import best_level, efficiency
from jaxdp.tune import descent, winsorising
from jaxdp.tune.tunable import LEAVES

RECORDS, EPSILONS = (100, 300, 1000, 10_000, 100_000), (0.5, 1.0, 2.0, 7.0)
LEVEL, PRICE, STEPS = 0.05, 20.0, 20
HARD = 1e-4  # softness of a decision that is next to hard
RECORDS_DRAWN = 40_000_000  # of each cell: 10^5 replicates at most


def shares(recorder, config: Config) -> None:
    """One row for each n and epsilon of the table."""
    for n in RECORDS:
        replicates = min(config.nulls, RECORDS_DRAWN // n)
        for epsilon in EPSILONS:
            noise = 2.0 * (COVARIANCE_L1 / (SHARES["covariance"] * epsilon)) ** 2
            with jax.enable_x64(True):
                tau = float(best_level(float(n), noise))
                effect = winsorising.EXPECTED_SIGNAL / float(efficiency(tau, float(n), noise))
                both = _jointly(float(n), epsilon)
            tuned = tune.epsilon_split(n, epsilon)
            row = {"tuned": tuned, "uncorrected": tune.epsilon_split(n, epsilon, correct_level=False), "default": 0.85}
            points = {name: (tau, share) for name, share in row.items()} | {"both": both}
            limit = {
                f"limit_{name}": [_limit(n, epsilon, *point, e) for e in (effect, 0.0)]
                for name, point in points.items()
            }
            recorder.add(
                figure="shares",
                n=n,
                epsilon=epsilon,
                effect=effect,
                tau=tau,
                share=tuned,
                share_uncorrected=row["uncorrected"],
                tau_and_share=both,
                **limit,
                **_simulated(n, epsilon, effect, tuned, replicates, config.seed),
            )


def _jointly(n: float, epsilon: float) -> list[float]:
    """Winsorising level and share that maximise the objective together."""
    log_tau, share = _climb_both(jnp.float64(n), jnp.float64(epsilon))
    return [math.exp(float(log_tau)), float(share)]


@jax.jit
def _climb_both(n, epsilon):
    log_tau, objective = winsorising.joint_objective(n, epsilon, LEVEL, PRICE)
    starts = jnp.array(winsorising.START_SHARES)
    logits = jnp.log(starts / (1.0 - starts))
    points, values = descent.ascend(objective, (log_tau + 0.0 * logits, logits), steps=STEPS)
    best = jnp.argmax(values)
    return points[0][best], jax.nn.sigmoid(points[1][best])


def _limit(n, epsilon, tau, share, effect) -> float:
    """Rejection rate by the limit law."""
    with jax.enable_x64(True):
        logit = math.log(share) - math.log1p(-share)
        return float(_limit_rate(*(jnp.float64(v) for v in (math.log(tau), logit, n, epsilon, effect))))


@jax.jit
def _limit_rate(log_tau, logit, n, epsilon, effect):
    decide = tune.SoftPower(level=LEVEL, softness=HARD)
    return winsorising.limit_rate((log_tau, logit), n, epsilon, effect, decide)


def _simulated(n: int, epsilon: float, effect: float, share: float, replicates: int, seed: int) -> dict:
    """Counts of the real test at the tuned and at the default share, with and without the effect, same replicates."""
    default = LEAVES["split"].put(jaxdp.PartitionGCM(epsilon=epsilon), np.float32(0.85))
    tuned = LEAVES["split"].put(jaxdp.PartitionGCM(epsilon=epsilon), np.float32(share))
    found = {"replicates": replicates}
    for name, beta in (("power", effect), ("level", 0.0)):
        design = functools.partial(sine_confounder, n=n, effect=float(beta), complexity=0.0)
        key = jax.random.key(seed + n)
        values = [np.asarray(power.p_values(t, design, jax.random.clone(key), replicates)) for t in (tuned, default)]
        check = tune.LevelCheck.of(name, *values, LEVEL)
        found[name] = {
            "tuned": check.tuned.rejections,
            "default": check.default.rejections,
            "only_tuned": check.only_tuned,
            "only_default": check.only_default,
        }
    return found
