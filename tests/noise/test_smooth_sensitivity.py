"""Smooth sensitivity of the median, its noise laws, and subsample-and-aggregate."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binom, chi2, laplace, norm

import jaxdp
from jaxdp.independence.meta.subsample_aggregate import SubsampleAggregate
from jaxdp.mechanisms.smooth_sensitivity import (
    SmoothCauchy,
    SmoothGaussian,
    SmoothLaplace,
    SmoothStudent,
    median,
    smooth_sensitivity,
)
from jaxdp.statistics.tables.association import ContingencyTest, CorrelationTest, chi_squared, g_statistic


def brute_force(count, grid, decay):
    """S(x) = max over y of (largest move of the median at y) exp(-decay Hamming(x, y)), by enumeration."""
    points = np.array(list(itertools.product(grid, repeat=count)), float)
    medians = np.sort(points, axis=1)[:, (count + 1) // 2 - 1]
    apart = np.sum(points[:, None, :] != points[None, :, :], axis=2)
    local = np.max(np.where(apart <= 1, np.abs(medians[:, None] - medians[None, :]), 0.0), axis=1)
    return points, np.max(local[None, :] * np.exp(-decay * apart), axis=1)


@pytest.mark.parametrize(("count", "grid"), [(3, (0, 1, 3, 4)), (5, (0, 2, 3)), (4, (0, 1, 4))])
@pytest.mark.parametrize("decay", [0.1, 0.7])
def test_smooth_sensitivity_equals_brute_force(count, grid, decay):
    points, expected = brute_force(count, grid, decay)
    ours = jax.vmap(lambda x: smooth_sensitivity(x, decay, grid[0], grid[-1]))(jnp.asarray(points, jnp.float32))
    np.testing.assert_allclose(ours, expected, rtol=1e-6)
    assert len(np.unique(expected)) >= 3


def test_smoothness_and_local_bound_hold_on_random_neighbours():
    """log S moves by `decay` at most (and by 0.9 of it somewhere); the median moves by S at most."""
    rng = np.random.default_rng(0)
    decay = 0.4
    values = np.sort(rng.exponential(size=(4000, 9)).clip(0, 5), axis=1)
    moved = values.copy()
    moved[np.arange(4000), rng.integers(0, 9, 4000)] = rng.choice([0.0, 5.0], 4000)
    smooth = jax.vmap(lambda x: smooth_sensitivity(x, decay, 0.0, 5.0))
    before, after = (np.asarray(smooth(jnp.asarray(v, jnp.float32))) for v in (values, moved))
    change = np.abs(np.log(before / after))
    assert 0.9 * decay < change.max() <= decay * (1 + 1e-5)
    step = np.abs(np.asarray(jax.vmap(median)(jnp.asarray(values)) - jax.vmap(median)(jnp.asarray(moved))))
    assert np.all(step <= np.minimum(before, after) * (1 + 1e-5))
    assert np.max(step / np.minimum(before, after)) > 0.9


def cauchy_loss(shift, ratio):
    """sup over x of |log p/q| for p = Cauchy(0, 1), q = Cauchy(shift, ratio), on a fine tangent grid."""
    x = np.tan(np.linspace(-np.pi / 2 + 1e-7, np.pi / 2 - 1e-7, 400_001))
    return np.abs(np.log((1 + ((x - shift) / ratio) ** 2) * ratio) - np.log1p(x**2)).max()


@pytest.mark.parametrize(("part", "decay", "expected"), [(0.5, 0.5, 0.6275), (0.8, 0.2, 0.7801)])
def test_cauchy_loss_equals_the_closed_form(part, decay, expected):
    """The worst pair: S' = e^-decay S, median apart by S' (in units of the first law's scale: s e^-decay)."""
    ratio = math.exp(-decay)
    worst = max(cauchy_loss(part * ratio, ratio), cauchy_loss(part, 1.0))
    closed = math.acosh(max(1 + part**2 / 2, math.cosh(decay) + part**2 * math.exp(-decay) / 2))
    assert worst == pytest.approx(closed, abs=1e-5)
    assert closed == pytest.approx(expected, abs=2e-4)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("smoothness", [None, 0.15])
def test_cauchy_calibration_reaches_epsilon_and_never_passes_it(epsilon, smoothness):
    law = SmoothCauchy(epsilon=epsilon, smoothness=smoothness)
    with jax.enable_x64(True):
        decay, part = float(law.decay()), 1.0 / float(law.width())
    pairs = [(s * min(1.0, r), r) for r in np.exp(decay * np.linspace(-1, 1, 5)) for s in (0.0, 0.5, 1.0)]
    worst = max(cauchy_loss(part * shift, ratio) for shift, ratio in pairs)
    assert 0.999 * epsilon < worst <= epsilon * (1 + 1e-5)
    thinner = max(cauchy_loss(part / 0.9 * shift, ratio) for shift, ratio in pairs)
    assert thinner > 1.02 * epsilon  # a width cut by a tenth is caught
    if smoothness is None:
        assert decay == pytest.approx(math.log(2 * math.cosh(epsilon) - 1))
        assert part == pytest.approx(2 * math.sinh(epsilon / 2))


def test_student_budget_bounds_the_loss():
    """Translation and dilation losses of the t law by quadrature stay below the two halves of epsilon."""
    law = SmoothStudent(epsilon=1.0, degrees=3.0)
    x = np.linspace(-300, 300, 600_001)

    def log_density(v, s):
        return -2.0 * np.log1p((v / s) ** 2 / 3.0) - np.log(s)

    shift = 1.0 / float(law.width())
    assert np.abs(log_density(x, 1.0) - log_density(x - shift, 1.0)).max() <= 0.5 * (1 + 1e-6)
    dilation = np.abs(log_density(x, 1.0) - log_density(x, math.exp(float(law.decay())))).max()
    assert 0.99 * 0.5 < dilation <= 0.5 * (1 + 1e-6)


@pytest.mark.parametrize(("law", "density"), [(SmoothLaplace, laplace), (SmoothGaussian, norm)])
def test_hockey_stick_equals_quadrature(law, density):
    x = np.linspace(-80, 80, 800_001)
    for shift, ratio, epsilon in ((0.7, 1.05, 0.5), (0.3, 0.9, 0.5), (1.5, 0.5, 1.0), (0.0, 1.4, 0.1), (1.0, 1.0, 0.3)):
        gap = np.maximum(density.pdf(x) - math.exp(epsilon) * density.pdf(x, shift, ratio), 0.0)
        exact = float(law.hockey_stick(np.array(shift), np.array(ratio), epsilon))
        assert exact == pytest.approx(np.trapezoid(gap, x), abs=1e-7)


def test_approximate_laws_have_their_widths():
    assert SmoothLaplace(epsilon=1.0, delta=1e-6).width() == pytest.approx(1.44, abs=0.01)
    assert SmoothLaplace(epsilon=0.5, delta=1e-6).width() == pytest.approx(2.78, abs=0.01)
    assert SmoothGaussian(epsilon=1.0, delta=1e-6).width() == pytest.approx(5.90, abs=0.01)
    assert SmoothGaussian(epsilon=1.0, delta=1e-6, smoothness=0.0362).width() == pytest.approx(12.0, abs=0.1)
    for law in (SmoothLaplace, SmoothGaussian):
        test = law(epsilon=1.0, delta=1e-6)
        assert law.true_delta(test.width(), test.decay(), 1.0) <= 1e-6
        assert law.true_delta(0.9 * test.width(), test.decay(), 1.0) > 1e-6


def test_published_parameters_are_refused_with_their_true_delta():
    with pytest.raises(ValueError, match=r"has delta=0\.99\d at epsilon=1"):
        SmoothLaplace.paper(1.0, 1e-6)
    with pytest.raises(ValueError, match=r"has delta=0\.0005\d+ at epsilon=1"):
        SmoothGaussian.paper(1.0, 1e-6)
    with pytest.raises(ValueError, match="smoothness must be < epsilon"):
        SmoothCauchy(epsilon=0.5, smoothness=0.5)
    with pytest.raises(ValueError, match="no width works"):
        SmoothLaplace(epsilon=0.1, delta=1e-6, smoothness=0.1).width()


def coded(key, n, effect):
    key_x, key_flip, key_y = jax.random.split(key, 3)
    x = jax.random.bernoulli(key_x, 0.5, (n,))
    y = jnp.where(jax.random.bernoulli(key_flip, effect, (n,)), x, jax.random.bernoulli(key_y, 0.5, (n,)))
    return jaxdp.Data(x.astype(float), y.astype(float))


@pytest.mark.full
def test_median_test_keeps_its_level_and_finds_strong_dependence():
    test = SubsampleAggregate(epsilon=1.0, statistic_of=ContingencyTest().value, num_blocks=15, num_null=99)

    def p_value(key, effect):
        key_data, key_run = jax.random.split(key)
        return jaxdp.run(test, key_run, coded(key_data, 600, effect)).p_value

    run = jax.jit(lambda keys, effect: jax.lax.map(lambda key: p_value(key, effect), keys, batch_size=20))
    null = np.asarray(run(jax.random.split(jax.random.key(1), 200), 0.0))
    assert np.sum(null <= 0.05) <= binom.ppf(1 - 1e-6, 200, 0.05)
    strong = np.asarray(run(jax.random.split(jax.random.key(2), 40), 0.8))
    assert np.mean(strong <= 0.05) > 0.7


def test_summary_is_the_clipped_median():
    test = SubsampleAggregate(epsilon=1.0, statistic_of=lambda block: jnp.max(block.x), num_blocks=3, shuffle=False)
    x = jnp.array([1.0, 2.0, 50.0, 3.0, jnp.nan, 0.0])
    center, smooth = test.statistic(jax.random.key(0), jaxdp.Data(x, x))
    assert float(center) == 2.0  # blocks: 2, 50 (clipped to 10), missing (0)
    assert float(smooth) == 8.0  # one replaced block moves the median from 2 to 10


def test_any_statistic_can_be_wrapped():
    data = coded(jax.random.key(3), 900, 0.7)
    for statistic, null in (
        (ContingencyTest(kind="g").value, "chi-squared-1"),
        (CorrelationTest().value, "half-normal"),
    ):
        test = SubsampleAggregate(epsilon=2.0, statistic_of=statistic, num_blocks=15, null=null, num_null=99)
        result = jaxdp.run(test, jax.random.key(4), data)
        assert float(result.statistic) > 1.0
    vote = jaxdp.TestOfTests(epsilon=2.0, test=ContingencyTest(kind="g"))
    assert float(jaxdp.run(vote, jax.random.key(5), data).p_value) < 0.05


def test_block_statistics_equal_scipy():
    from scipy.stats import chi2_contingency

    table = np.array([[12, 5, 9], [3, 14, 8]])
    reference = chi2_contingency(table, correction=False)
    assert float(chi_squared(jnp.asarray(table, float))) == pytest.approx(reference.statistic, rel=1e-5)
    likelihood = chi2_contingency(table, correction=False, lambda_="log-likelihood")
    assert float(g_statistic(jnp.asarray(table, float))) == pytest.approx(likelihood.statistic, rel=1e-4)
    x, y = np.repeat(np.arange(2), table.sum(1)), np.concatenate([np.repeat(np.arange(3), row) for row in table])
    p_value = ContingencyTest(levels=(2, 3))(jaxdp.Data(jnp.asarray(x), jnp.asarray(y)))
    assert float(p_value) == pytest.approx(reference.pvalue, rel=1e-4)
    assert float(ContingencyTest(levels=(2, 3)).degrees) == 2
    assert chi2.sf(reference.statistic, 2) == pytest.approx(reference.pvalue)
