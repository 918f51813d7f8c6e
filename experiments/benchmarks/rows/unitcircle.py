"""Thresholds of the unit circle mechanism for 10^6 SNPs: all margins at once, exact, against Monte Carlo."""

import functools
import time

import jax
import jax.numpy as jnp
import numpy as np

from experiments.benchmarks.harness import Case, Peer
from jaxdp.independence.tables.gwas import Tables, decide
from jaxdp.independence.tables.unit_circle import UnitCircle
from jaxdp.noise import survival as tail
from jaxdp.published.unit_circle import margin_thresholds
from jaxdp.statistics.tables import binomial, unit_circle
from jaxdp.statistics.tables.unit_circle import Groups

LEVEL, EPSILON, DRAWS = 0.05, 1.0, 10_000
LOOP_SNPS, UNIQUE_MARGINS = 200, 60

CASES = {"snps1e6_n2000": {"snps": 1_000_000, "size": 2000}, "snps1e5_n400": {"snps": 100_000, "size": 400}}
QUICK = ("snps1e5_n400",)


def build(snps: int, size: int) -> Case:
    """Balanced groups; the table of thresholds by margin serves every SNP."""
    groups = Groups(size // 2, size // 2)
    test = UnitCircle(epsilon=EPSILON, num_cases=groups.cases, num_controls=groups.controls, level=LEVEL)
    scale = unit_circle.norm_sensitivity(groups, test.threshold) / EPSILON
    thresholds = jax.jit(functools.partial(margin_thresholds, groups, level=LEVEL, threshold=test.threshold))
    margins = np.random.default_rng(0).integers(size // 10, size - size // 10, LOOP_SNPS)

    return Case(
        ours=lambda scale: thresholds(scale),
        arguments=(jnp.asarray(scale, jnp.float32),),
        units=snps,
        unit="SNP threshold",
        agree=lambda: agreement(thresholds(jnp.asarray(scale, jnp.float32)), groups, scale, test.threshold),
        peers={
            "numpy_loop": Peer(monte_carlo, (margins, groups, scale, test.threshold), LOOP_SNPS, goal=1e3),
            # The peer with the trick of one threshold per distinct margin: a SNP costs it margins/snps of one.
            "numpy_unique_margins": Peer(
                monte_carlo,
                (margins[:UNIQUE_MARGINS], groups, scale, test.threshold),
                UNIQUE_MARGINS * snps / (0.9 * size),
                goal=4.0,
            ),
        },
        extra=lambda: cached_tests(test, snps),
    )


def agreement(thresholds, groups: Groups, scale: float, threshold: float) -> dict[str, float]:
    """Against bisection of the exact double sums in float64 at 25 margins; and Monte Carlo at 5, in standard errors."""
    margins = np.linspace(0, groups.total // 2, 25).astype(int)
    with jax.enable_x64(True):
        statistic = functools.partial(unit_circle.norm, groups=groups, threshold=threshold)
        survival = functools.partial(tail.laplace, scale=scale)
        exact = jax.jit(
            lambda p: binomial.critical_value(statistic, survival, LEVEL, groups, p[None], (0.0, 1.0 + 60.0 * scale))
        )
        reference = np.array([float(exact(jnp.asarray(m / groups.total))) for m in margins])
    error = float(np.max(np.abs(np.asarray(thresholds)[margins] - reference)))
    simulated = monte_carlo(margins[1::5], groups, scale, threshold, draws=400_000)
    return {
        "error": error,
        "tolerance": 1e-4,
        "largest_gap_to_monte_carlo_400000": float(np.max(np.abs(simulated - reference[1::5]))),
    }


def monte_carlo(margins, groups: Groups, scale: float, threshold: float, draws: int = DRAWS) -> np.ndarray:
    """A threshold per SNP from simulated tables with the SNP's margin."""
    rng = np.random.default_rng(1)
    rank = int(np.ceil((draws + 1) * (1 - LEVEL))) - 1
    found = []
    for margin in margins:
        rate = margin / groups.total
        c11, c10 = rng.binomial(groups.cases, rate, draws), rng.binomial(groups.controls, rate, draws)
        stretch = 2.0 * np.sqrt(groups.total / (threshold * groups.cases * groups.controls))
        excess = (c11 * groups.controls - c10 * groups.cases) / groups.total
        norm = np.hypot(1.0 - 2.0 * (c11 + c10) / groups.total, stretch * excess)
        found.append(np.partition(norm + rng.laplace(scale=scale, size=draws), rank)[rank])
    return np.array(found)


def cached_tests(test: UnitCircle, snps: int) -> dict[str, float]:
    """Seconds for one noisy decision per SNP once the threshold is known."""
    rng = np.random.default_rng(2)
    tables = Tables(
        jnp.asarray(rng.binomial(test.num_cases, 0.3, snps)), jnp.asarray(rng.binomial(test.num_controls, 0.3, snps))
    )
    critical, scale = test.critical_value(), test.mechanism_in_force().scale(test.sensitivity(test.groups.total))
    run = jax.jit(functools.partial(decide, test))
    seconds = []
    for key in jax.random.split(jax.random.key(0), 31):
        start = time.perf_counter()
        run(key, tables, critical, scale).block_until_ready()
        seconds.append(time.perf_counter() - start)
    return {
        "cached_tests_seconds": float(np.median(seconds[1:])),
        "cached_tests_seconds_fastest": float(np.min(seconds[1:])),
        "cached_tests_goal_seconds": 5e-3,
    }
