"""Baselines on tables: noisy-table chi-squared, projected chi-squared, goodness of fit, noisy proportions."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binom, chi2, chi2_contingency, chisquare, laplace

import jaxdp
from jaxdp.core import Release
from jaxdp.independence.tables import noisy_table
from jaxdp.independence.tables.noisy_proportions import two_laplace_tail
from jaxdp.independence.tables.noisy_table import multinomial, project_to_simplex
from jaxdp.independence.tables.projected_chi2 import projected_metric
from jaxdp.mechanisms import Gaussian
from jaxdp.noise.source import FloatNoise

SHARES = np.outer([0.5, 0.3, 0.2], [0.6, 0.4])


def coded(table):
    """Records with this table."""
    table = np.asarray(table)
    x = np.repeat(np.arange(table.shape[0]), table.sum(1))
    y = np.concatenate([np.repeat(np.arange(table.shape[1]), row) for row in table])
    return jaxdp.Data(jnp.asarray(x, float), jnp.asarray(y, float))


def released(test, table):
    """A release of exactly this table."""
    test = test.specialize(jaxdp.Data(jnp.zeros(2), jnp.zeros(2)))
    sensitivity = test.sensitivity(int(np.sum(table)))
    return Release(
        jnp.asarray(table, float), sensitivity, test.mechanism_in_force().cost(sensitivity.relation), int(np.sum(table))
    )


def table_p_values(test, shares, total, replicates, seed):
    """P-values of noisy multinomial tables, by release objects: the data step is not repeated."""
    blank = released(test, np.full(np.shape(shares), total // np.size(shares)))

    def one(key):
        key_table, key_noise, key_null = jax.random.split(key, 3)
        table = multinomial(key_table, total, jnp.ravel(jnp.asarray(shares, float))).reshape(np.shape(shares))
        noisy = test.mechanism_in_force().perturb(FloatNoise(key_noise), table, blank.sensitivity)
        return test.p_value(key_null, Release(noisy, blank.sensitivity, blank.cost, total))

    keys = jax.random.split(jax.random.key(seed), replicates)
    return np.asarray(jax.jit(lambda k: jax.lax.map(one, k))(keys))


@pytest.mark.parametrize("kind", [jaxdp.NoisyTableChi2, jaxdp.ProjectedChi2])
def test_one_record_moves_the_table_by_two_and_never_more(kind):
    test = kind(epsilon=1.0, levels=(2, 3))
    base = jaxdp.Data(jnp.array([0.0, 1.0, 1.0]), jnp.array([2.0, 0.0, 1.0]))
    here = test.statistic(None, base)
    moves = []
    for x, y in itertools.product((-1.0, 0.0, 1.0, jnp.nan), (0.0, 1.0, 2.0, 9.0)):
        there = test.statistic(None, jaxdp.Data(base.x.at[0].set(x), base.y.at[0].set(y)))
        moves.append([float(jnp.sum(jnp.abs(there - here))), float(jnp.sqrt(jnp.sum((there - here) ** 2)))])
    for column, mechanism in ((0, jaxdp.Laplace(1.0)), (1, Gaussian(0.5))):
        bound = kind(mechanism=mechanism, levels=(2, 3)).sensitivity(3).bound
        assert 0.9 * bound < np.max(moves, axis=0)[column] <= bound * (1 + 1e-6)


@pytest.mark.full
def test_without_noise_the_statistics_are_pearsons():
    """Q of MCIndep orders tables as chi-squared does; the projected statistic tends to chi-squared itself."""
    table = np.array([[60, 90], [45, 40], [50, 15]])
    reference = chi2_contingency(table, correction=False)
    test = jaxdp.NoisyTableChi2(epsilon=1.0, levels=(3, 2))
    value, fitted = test._distance(jnp.asarray(table, float), 300.0)
    assert float(value) == pytest.approx(reference.statistic, rel=1e-5)
    np.testing.assert_allclose(300 * np.asarray(fitted), reference.expected_freq, rtol=1e-5)
    with jax.enable_x64(True):
        projected = jaxdp.ProjectedChi2(mechanism=Gaussian(1e9), levels=(3, 2))
        p_value = float(projected.p_value(jax.random.key(0), released(projected, table)))
        # The metric is fixed at the margins, where the minimum of Pearson's quadratic form lies.
        assert p_value == pytest.approx(reference.pvalue, rel=1e-3)
        fit = jaxdp.ProjectedGoodnessOfFit(mechanism=Gaussian(1e9), probabilities=[0.3, 0.3, 0.4])
        counts = np.array([25, 35, 40])
        expected = chisquare(counts, [30, 30, 40])
        statistic, _ = fit._distance(jnp.asarray(counts, float), released(fit, counts))
        assert float(statistic) == pytest.approx(expected.statistic, rel=1e-3)


def test_projected_minimum_beats_a_search():
    """Gauss-Newton reaches the smallest distance over product laws."""
    with jax.enable_x64(True):
        test = jaxdp.ProjectedChi2(mechanism=Gaussian(0.01), levels=(3, 2), min_expected=0.0)
        rng = np.random.default_rng(0)
        noisy = rng.multinomial(500, SHARES.ravel()).reshape(3, 2) + rng.normal(scale=10, size=(3, 2))
        release = released(test, np.full((3, 2), 100))
        release = Release(jnp.asarray(noisy), release.sensitivity, release.cost, 500)
        value, fitted = test._distance(jnp.asarray(noisy), release)
        clean = np.asarray(project_to_simplex(jnp.ravel(noisy), 500.0)).reshape(3, 2) / 500
        metric = np.asarray(projected_metric(np.outer(clean.sum(1), clean.sum(0)).ravel(), test._noise_share(release)))

        def distance(p):
            return 500 * (noisy.ravel() / 500 - p) @ metric @ (noisy.ravel() / 500 - p)

        rows, columns = np.asarray(fitted).sum(1), np.asarray(fitted).sum(0)
        assert distance(np.outer(rows, columns).ravel()) == pytest.approx(float(value), rel=1e-8)
        for scale in (1e-4, 1e-2):
            for _ in range(200):
                a, b = rows + rng.normal(scale=scale, size=3), columns + rng.normal(scale=scale, size=2)
                assert distance(np.outer(a / a.sum(), b / b.sum()).ravel()) >= float(value) * (1 - 1e-9)


@pytest.mark.parametrize("kind", [jaxdp.NoisyTableChi2, jaxdp.ProjectedChi2])
def test_an_answer_says_that_nothing_could_be_found_exactly_where_its_p_value_is_one_by_rule(kind):
    """Tables of a strong dependence whose rarest cell expects from nothing to ten records."""
    test = kind(epsilon=50.0, levels=(2, 3), num_null=39)
    rng = np.random.default_rng(4)
    shapes = jax.eval_shape(lambda: jaxdp.Data(jnp.zeros(2), jnp.zeros(2)))
    lost = []
    for rare in range(0, 24, 4):
        release = released(test, [[200 - rare, 20, rare], [20, 180, 0]])
        noisy = dataclasses.replace(release, value=release.value + rng.normal(scale=0.1, size=(2, 3)))
        told = test.effect_notes(shapes, noisy)
        lost.append(noisy_table.TOO_FEW in told)
        assert (float(test.p_value(jax.random.key(0), noisy)) == 1.0) == lost[-1]
        assert np.isinf(test.detectable_effect(shapes, noisy, 0.05)) == lost[-1]
    assert lost == sorted(lost, reverse=True)
    assert 1 < sum(lost) < 5


def test_projection_on_the_simplex():
    rng = np.random.default_rng(1)
    values = rng.normal(scale=3, size=7)
    ours = np.asarray(project_to_simplex(jnp.asarray(values), 4.0))
    assert ours.min() >= 0
    assert ours.sum() == pytest.approx(4.0, rel=1e-5)
    for other in rng.dirichlet(np.ones(7), 500) * 4:
        assert np.dot(values - ours, other - ours) <= 1e-4  # the variational inequality of a projection


def test_multinomial_law():
    counts = np.asarray(
        jax.vmap(lambda k: multinomial(k, 40, jnp.array([0.2, 0.5, 0.3])))(jax.random.split(jax.random.key(0), 20_000))
    )
    assert np.all(counts.sum(1) == 40)
    for j, p in enumerate((0.2, 0.5, 0.3)):
        expected = binom.pmf(np.arange(41), 40, p) * 20_000
        seen = np.bincount(counts[:, j].astype(int), minlength=41)
        keep = expected > 5
        statistic = np.sum((seen[keep] - expected[keep]) ** 2 / expected[keep])
        assert statistic < chi2.isf(1e-6, keep.sum())


def test_null_tables_of_many_records_have_the_multinomial_law():
    """Beyond `MANY_RECORDS` they are drawn cell by cell: mean and variance of each cell."""
    draws, total = 4000, 2 * noisy_table.MANY_RECORDS
    test = jaxdp.NoisyTableChi2(epsilon=1e3, levels=(3, 2), num_null=draws)
    with jax.enable_x64(True):
        release = released(test, np.round(SHARES * total))
        tables = np.asarray(test.null_tables(jax.random.key(1), release, jnp.asarray(SHARES)))
    np.testing.assert_allclose(tables.sum((1, 2)), release.num_records, atol=1.0)
    variance = release.num_records * SHARES * (1 - SHARES)
    assert np.all(np.abs(tables.mean(0) - release.num_records * SHARES) < 5 * np.sqrt(variance / draws))
    assert np.all(np.abs(tables.var(0) / variance - 1) < 5 * np.sqrt(2 / draws))


@pytest.mark.full
@pytest.mark.parametrize(
    ("test", "shares", "replicates"),
    [
        (jaxdp.NoisyTableChi2(epsilon=1.0, levels=(3, 2), num_null=99), SHARES, 800),
        (jaxdp.ProjectedChi2(mechanism=Gaussian(0.05), levels=(3, 2)), SHARES, 30_000),
        (jaxdp.ProjectedChi2(epsilon=1.0, levels=(3, 2), num_null=19), SHARES, 1000),
        pytest.param(
            jaxdp.ProjectedChi2(mechanism=Gaussian(0.05), levels=(3, 2)), SHARES, 100_000, marks=pytest.mark.nightly
        ),
        pytest.param(
            jaxdp.ProjectedChi2(epsilon=1.0, levels=(3, 2), num_null=39), SHARES, 100_000, marks=pytest.mark.nightly
        ),
        (
            jaxdp.ProjectedGoodnessOfFit(mechanism=Gaussian(0.05), probabilities=[0.3, 0.3, 0.4], num_null=19),
            [0.3, 0.3, 0.4],
            10_000,
        ),
    ],
)
def test_type_one_error_is_in_the_binomial_window(test, shares, replicates):
    """n = 500; the levels are asymptotic, so the window is 0.045-0.056 widened by sampling error."""
    p_values = table_p_values(test, shares, 500, replicates, seed=2)
    rejections = np.sum(p_values <= 0.05)
    assert binom.ppf(1e-6, replicates, 0.045) <= rejections <= binom.ppf(1 - 1e-6, replicates, 0.056)


@pytest.mark.full
def test_power_grows_with_dependence_and_scarce_cells_never_reject():
    tilted = SHARES + 0.06 * np.array([[1, -1], [0, 0], [-1, 1]])
    for test in (
        jaxdp.NoisyTableChi2(epsilon=1.0, levels=(3, 2), num_null=99),
        jaxdp.ProjectedChi2(mechanism=Gaussian(0.5), levels=(3, 2)),
    ):
        assert np.mean(table_p_values(test, tilted, 500, 40, seed=3) <= 0.05) > 0.9
        scarce = released(test, np.array([[400, 90], [4, 3], [2, 1]]))
        assert float(test.p_value(jax.random.key(4), scarce)) == 1.0


RARE = [0.997, 0.001, 0.001, 0.001]


@pytest.mark.full
@pytest.mark.parametrize(
    ("mechanism", "total"),
    [
        pytest.param(jaxdp.Laplace(1.0), 50, id="laplace-50"),
        pytest.param(Gaussian(0.5), 3000, id="gaussian-3000"),
        pytest.param(jaxdp.Laplace(1.0), 3000, id="laplace-3000", marks=pytest.mark.nightly),
        pytest.param(Gaussian(0.5), 50, id="gaussian-50", marks=pytest.mark.nightly),
    ],
)
def test_goodness_of_fit_of_rare_levels_has_its_level_and_power(mechanism, total):
    """Levels that expect 0.05 and 3 records: p was 1 whatever the counts. The null is simulated, so ranks are exact."""
    test = jaxdp.ProjectedGoodnessOfFit(mechanism=mechanism, probabilities=RARE, num_null=99)
    null = table_p_values(test, RARE, total, 400, seed=7)
    for level in (0.05, 0.01):
        assert np.sum(null <= level) <= binom.ppf(1 - 1e-6, 400, level)
    assert np.sum(null <= 0.05) >= binom.ppf(1e-6, 400, 0.05)
    assert np.all(table_p_values(test, [0.25] * 4, total, 20, seed=8) <= 0.01)


@pytest.mark.parametrize("probabilities", ["abc", 0.5, [0.5, 0.6], [1.0]])
def test_probabilities_that_are_no_law_are_refused(probabilities):
    with pytest.raises(ValueError, match="probabilities must be at least two numbers > 0 with sum 1"):
        jaxdp.ProjectedGoodnessOfFit(epsilon=1.0, probabilities=probabilities)


@pytest.mark.parametrize(("first", "second"), [(1.0, 0.4), (0.7, 0.7), (0.7, 0.7005)])
def test_sum_of_two_laplace_variables(first, second):
    with jax.enable_x64(True):
        x = np.linspace(-60, 60, 240_001)
        for value in (-1.0, 0.3, 4.0):
            expected = np.trapezoid(laplace.pdf(x, scale=first) * laplace.sf(value - x, scale=second), x)
            assert float(two_laplace_tail(value, first, second)) == pytest.approx(expected, abs=1e-4)


def test_noisy_proportions_size_power_and_effect():
    test = jaxdp.NoisyProportions(epsilon=0.5, num_cases=100, num_controls=150)
    sensitivity = test.sensitivity(250)

    def one(key, rate_cases, rate_controls):
        key_cases, key_controls, key_noise = jax.random.split(key, 3)
        cases = jnp.sum(jax.random.bernoulli(key_cases, rate_cases, (100,)), dtype=float)
        controls = jnp.sum(jax.random.bernoulli(key_controls, rate_controls, (150,)), dtype=float)
        noisy = test.mechanism_in_force().perturb(FloatNoise(key_noise), jnp.stack([cases, controls]), sensitivity)
        release = Release(noisy, sensitivity, test.mechanism_in_force().cost(sensitivity.relation), 250)
        return test.p_value(None, release), test.estimate(release)

    run = jax.jit(lambda keys, a, b: jax.lax.map(lambda key: one(key, a, b), keys, batch_size=20))
    null, _ = run(jax.random.split(jax.random.key(5), 1000), 0.3, 0.3)
    rejections = int(np.sum(np.asarray(null) <= 0.05))
    assert binom.ppf(1e-6, 1000, 0.045) <= rejections <= binom.ppf(1 - 1e-6, 1000, 0.059)
    far, effect = run(jax.random.split(jax.random.key(6), 100), 0.6, 0.3)
    assert np.mean(np.asarray(far) <= 0.05) > 0.9
    assert np.mean(np.asarray(effect)) == pytest.approx(0.3, abs=0.03)


@pytest.mark.full
def test_mistakes_are_named():
    data = coded([[60, 40], [50, 50]])
    with pytest.raises(ValueError, match=r"give levels=\(r, c\)"):
        jaxdp.run(jaxdp.NoisyTableChi2(epsilon=1.0), jax.random.key(0), data)
    with pytest.raises(ValueError, match="levels must be whole numbers >= 2"):
        jaxdp.NoisyTableChi2(epsilon=1.0, levels=(1, 2))
    with pytest.raises(ValueError, match="num_null must be"):
        jaxdp.NoisyTableChi2(epsilon=1.0, levels=(2, 2), num_null=5)
    with pytest.raises(ValueError, match="does not use z"):
        jaxdp.run(
            jaxdp.ProjectedChi2(epsilon=1.0, levels=(2, 2)), jax.random.key(0), jaxdp.Data(data.x, data.y, data.x)
        )
    with pytest.raises(ValueError, match="sum 1"):
        jaxdp.ProjectedGoodnessOfFit(epsilon=1.0, probabilities=[0.5, 0.6])
    with pytest.raises(TypeError, match="must be Laplace"):
        jaxdp.NoisyProportions(mechanism=Gaussian(0.5))
