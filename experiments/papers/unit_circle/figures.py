"""The measurements: exact size and power of one table, families of tables, gamma error, r x c baselines."""

import functools
import math
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import binom, laplace, norm

import jaxdp
from experiments.papers.unit_circle.config import Config
from experiments.record import Recorder
from jaxdp.core import Release
from jaxdp.independence import noise_law
from jaxdp.independence.tables.noisy_table import multinomial
from jaxdp.noise.source import FloatNoise
from jaxdp.published import PaperUnitCircle
from jaxdp.statistics.tables import unit_circle
from jaxdp.statistics.tables.unit_circle import Groups

LEVEL = 0.05
# p1 - p0 of the alternatives, as in the table of docs/theory/margin_adaptive.md
SHIFT = {0.05: 0.09, 0.2: 0.13, 0.5: 0.15}
PLANTED, PLANTED_SHIFT, REPORTS = 5, 0.2, 10
SHARES = np.outer([0.5, 0.3, 0.2], [0.6, 0.4])


def one_table_methods(epsilon: float, groups: Groups, frequency: float) -> dict[str, object]:
    """Methods for one table; all have a score and a known noise law."""
    sizes = {"num_cases": groups.cases, "num_controls": groups.controls, "level": LEVEL}
    return {
        "margin-adaptive": jaxdp.MarginAdaptive(epsilon=epsilon, **sizes),
        "margin-adaptive, distance": jaxdp.MarginAdaptive(epsilon=epsilon, score_kind="distance", **sizes),
        "unit circle, sup p": jaxdp.UnitCircle(epsilon=epsilon, **sizes),
        "unit circle, public p": jaxdp.UnitCircle(epsilon=epsilon, null="public", rate=frequency, **sizes),
        "unit circle, paper": jaxdp.published.PaperUnitCircle(epsilon=epsilon, **sizes),
        "distance score": jaxdp.DistanceScore(epsilon=epsilon, **sizes),
        "chi-squared + Laplace": jaxdp.ChiSquaredLaplace(epsilon=epsilon, **sizes),
    }


def one_table(recorder: Recorder, config: Config) -> None:
    """Exact rejection probabilities, summed over all tables: nothing is simulated."""
    for size in config.sizes:
        groups = Groups(size // 2, size // 2)
        for epsilon in config.epsilons:
            for frequency in config.frequencies:
                shifted = frequency + SHIFT[frequency]
                null_rates = np.concatenate([np.geomspace(1e-3, 0.5, 40), [frequency]])
                base = {"figure": "one table", "n": size, "epsilon": epsilon, "frequency": frequency}
                for name, test in one_table_methods(epsilon, groups, frequency).items():
                    rejects, cost = rejection_table(test)
                    rates = [frequency] if "public" in name else null_rates
                    recorder.add(
                        **base,
                        method=name,
                        true_epsilon=cost,
                        size=max(rejection(rejects, groups, p, p) for p in rates),
                        power=rejection(rejects, groups, shifted, frequency),
                    )
                recorder.add(**base, method="not private", size=LEVEL, power=plain_power(groups, shifted, frequency))


def rejection_table(test) -> tuple[np.ndarray, float]:
    """P(reject) for every table (N1 + 1, N0 + 1), and the epsilon of the test."""
    with jax.enable_x64(True):
        test = test.prepared() if hasattr(test, "prepared") else test
        sensitivity = test.sensitivity(test.groups.total)
        survival = noise_law.survival(test.mechanism_in_force(), sensitivity, test.method)
        cases, controls = (jnp.arange(part + 1.0) for part in test.groups)
        critical = 0.0 if isinstance(test, PaperUnitCircle) else public_or_supremum(test)
        rejects = np.asarray(survival(critical - test.score(cases[:, None], controls[None, :])))
        return rejects, float(test.mechanism_in_force().cost(sensitivity.relation).epsilon)


def public_or_supremum(test):
    """The critical value at the public rate where there is one."""
    if getattr(test, "null", "") != "public":
        return test.critical_value()
    sensitivity = test.sensitivity(test.groups.total)
    low, high = float(sensitivity.lower), float(sensitivity.upper)
    for _ in range(50):
        middle = 0.5 * (low + high)
        tail = float(test.null_tail(middle, sensitivity, jnp.reshape(jnp.asarray(test.rate), (1,))))
        low, high = (middle, high) if tail > LEVEL else (low, middle)
    return high


def rejection(rejects: np.ndarray, groups: Groups, rate_cases: float, rate_controls: float) -> float:
    """Sum over all tables."""
    law_cases = binom.pmf(np.arange(groups.cases + 1), groups.cases, rate_cases)
    law_controls = binom.pmf(np.arange(groups.controls + 1), groups.controls, rate_controls)
    return float(law_cases @ rejects @ law_controls)


def plain_power(groups: Groups, rate_cases: float, rate_controls: float) -> float:
    """Chi-squared without noise."""
    with jax.enable_x64(True):
        cases, controls = (np.arange(part + 1.0) for part in groups)
        statistic = np.asarray(unit_circle.chi_squared(cases[:, None], controls[None, :], groups))
    rejects = (statistic > norm.isf(LEVEL / 2) ** 2).astype(float)
    return rejection(rejects, groups, rate_cases, rate_controls)


def families(recorder: Recorder, config: Config) -> None:
    """Algorithms 3 and 4 on K tables with 5 associated ones: errors over families, planted tables found."""
    half = config.family_size // 2
    sizes = {"num_cases": half, "num_controls": half, "count": REPORTS}
    for epsilon in config.family_epsilons:
        for tables, replicates in config.families:
            for form, kind in ((jaxdp.BestTables, "EM"), (jaxdp.FirstTables, "SVT")):
                for single in (jaxdp.MarginAdaptive, jaxdp.UnitCircle):
                    test = form(epsilon=epsilon, kind=single, **sizes)
                    outcome = [family(test, half, tables, config.seed + r) for r in range(replicates)]
                    errors, found = (float(np.mean(part)) for part in zip(*outcome, strict=True))
                    recorder.add(
                        figure="families",
                        n=config.family_size,
                        epsilon=epsilon,
                        tables=tables,
                        method=f"{kind}, {single.__name__}",
                        replicates=replicates,
                        family_wise_error=errors,
                        found=found,
                    )


def family(test, half: int, tables: int, seed: int) -> tuple[bool, float]:
    """(Any null table reported, share of the planted tables reported) of one family; planted ones at random places."""
    rng = np.random.default_rng(seed)
    frequency = rng.uniform(0.05, 0.5, tables)
    planted = rng.choice(tables, PLANTED, replace=False)
    shifted = frequency.copy()
    shifted[planted] += PLANTED_SHIFT
    data = jaxdp.Tables(jnp.asarray(rng.binomial(half, shifted)), jnp.asarray(rng.binomial(half, frequency)))
    result = jaxdp.run(test, jax.random.key(seed), data)
    rejected = np.asarray(result.p_value) <= LEVEL
    if result.release.earlier:
        reported = np.asarray(result.release.earlier[0].value)[rejected]
    else:
        reported = np.flatnonzero(rejected)
    return bool(np.setdiff1d(reported, planted).size), np.intersect1d(reported, planted).size / PLANTED


def gamma(recorder: Recorder, config: Config) -> None:
    """P(accept) of tables with chi-squared just above tau + gamma against the bounds."""
    groups = Groups(config.family_size // 2, config.family_size // 2)
    cases, controls = (np.arange(part + 1.0) for part in groups)
    exposed = cases[:, None] + controls[None, :]
    with jax.enable_x64(True):
        for epsilon in config.epsilons:
            test = jaxdp.UnitCircle(epsilon=epsilon, num_cases=groups.cases, num_controls=groups.controls, level=LEVEL)
            scale = float(test.mechanism_in_force().scale(test.sensitivity(groups.total)))
            critical = float(test.critical_value())
            u = np.asarray(test.score(cases[:, None], controls[None, :]))
            statistic = np.asarray(unit_circle.chi_squared(cases[:, None], controls[None, :], groups))
            accept = laplace.cdf(critical - u, scale=scale)
            for value in (1.0, 5.0, 20.0, 100.0):
                bound = functools.partial(unit_circle.gamma_error, value, exposed, groups, test.threshold)
                beyond = statistic > test.threshold + value
                recorder.add(
                    figure="gamma",
                    n=groups.total,
                    epsilon=epsilon,
                    gamma=value,
                    critical_value=critical,
                    largest_error=float(np.max(accept[beyond])),
                    largest_share_of_bound=float(np.max((accept / np.asarray(bound(critical, scale)))[beyond])),
                    largest_share_of_paper_bound=float(np.max((accept / np.asarray(bound(1.0, scale)))[beyond])),
                )


def contingency(recorder: Recorder, config: Config) -> None:
    """Type-I error of the r x c baselines: noisy multinomial tables, n = 500."""
    for name, test in contingency_tests(config.num_null):
        rejections = count_rejections(test, config.nulls, config.seed)
        rate = rejections / config.nulls
        half_width = 4.9 * math.sqrt(LEVEL * (1 - LEVEL) / config.nulls)  # two-sided 1e-6
        recorder.add(
            figure="r x c",
            method=name,
            n=500,
            replicates=config.nulls,
            size=rate,
            window=[LEVEL - half_width, LEVEL + half_width],
        )


def contingency_tests(num_null: int) -> Iterator[tuple[str, object]]:
    """Independence on 3 x 2 tables at epsilon 1 and rho 0.05."""
    noisy = {"levels": (3, 2), "num_null": num_null}
    gaussian = jaxdp.Gaussian(rho=0.05)
    yield "noisy table, Laplace", jaxdp.NoisyTableChi2(epsilon=1.0, **noisy)
    yield "noisy table, Gaussian", jaxdp.NoisyTableChi2(mechanism=gaussian, **noisy)
    yield "projected, Laplace", jaxdp.ProjectedChi2(epsilon=1.0, **noisy)
    yield "projected, Gaussian", jaxdp.ProjectedChi2(mechanism=gaussian, **noisy)


def count_rejections(test, replicates: int, seed: int, total: int = 500) -> int:
    """Rejections at 0.05 over null tables, in chunks."""
    sensitivity = test.sensitivity(total)
    cost = test.mechanism_in_force().cost(sensitivity.relation)
    shares = jnp.asarray(SHARES, float)

    def one(key):
        key_table, key_noise, key_null = jax.random.split(key, 3)
        table = multinomial(key_table, total, jnp.ravel(shares)).reshape(shares.shape)
        noisy = test.mechanism_in_force().perturb(FloatNoise(key_noise), table, sensitivity)
        return test.p_value(key_null, Release(noisy, sensitivity, cost, total)) <= LEVEL

    run = jax.jit(lambda keys: jnp.sum(jax.lax.map(one, keys), dtype=jnp.int32))
    root, chunk = jax.random.key(seed), min(replicates, 5000)
    return sum(int(run(jax.random.split(jax.random.fold_in(root, i), chunk))) for i in range(replicates // chunk))


FIGURES = {"table": one_table, "families": families, "gamma": gamma, "contingency": contingency}
