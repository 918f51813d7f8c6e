"""P-values against SciPy, Monte Carlo, and each other's limits."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiled_programs import compiled
from scipy import integrate, stats

from jaxdp import null_laws


def reference(value, sd, scale):
    """P(|N(0, sd^2) + Laplace(scale)| >= value) by quadrature over the normal law, split at the Laplace kink."""

    def integrand(t):
        return stats.norm.pdf(t) * stats.laplace.sf(value - sd * t, scale=scale)

    kink, width = value / sd, 20 * scale / sd
    cuts = np.unique(
        np.clip([-12, kink - width, kink - width / 20, kink, kink + width / 20, kink + width, 12], -12, 12)
    )
    pieces = [
        integrate.quad(integrand, a, b, epsabs=0, epsrel=1e-10, limit=200)[0] for a, b in itertools.pairwise(cuts)
    ]
    return 2 * sum(pieces)


@pytest.mark.parametrize(("value", "expected"), [(0.5, 0.84688), (3.0, 0.28938), (8.0, 0.026839)])
def test_values_found_by_simulation(value, expected):
    assert float(null_laws.normal_plus_laplace(value, 1.3, 2.1)) == pytest.approx(expected, abs=6e-6)


def test_against_quadrature_over_a_grid():
    with jax.enable_x64(True):
        for sd in (0.05, 0.7, 5.0, 60.0):
            for scale in (0.3, 2.0, 9.0):
                for ratio in (0.1, 1.0, 3.0, 6.0):
                    value = ratio * np.hypot(sd, scale)
                    got = float(null_laws.normal_plus_laplace(value, sd, scale))
                    assert got == pytest.approx(reference(value, sd, scale), rel=1e-6, abs=1e-12)


def test_float32_is_close_to_float64_even_where_exponents_are_huge():
    sd, scale, value = 400.0, 2.0, np.array([1.0, 300.0, 900.0, 1600.0])
    with jax.enable_x64(True):
        exact = np.asarray(null_laws.normal_plus_laplace(value, sd, scale))
    rough = np.asarray(null_laws.normal_plus_laplace(jnp.asarray(value, jnp.float32), sd, scale))
    np.testing.assert_allclose(rough, exact, rtol=2e-4, atol=1e-7)


def test_limits_without_noise_and_without_spread():
    with jax.enable_x64(True):
        assert float(null_laws.normal_plus_laplace(2.0, 1.0, 1e-9)) == pytest.approx(2 * stats.norm.sf(2.0), rel=1e-5)
        assert float(null_laws.normal_plus_laplace(2.0, 0.0, 1.0)) == pytest.approx(np.exp(-2.0), rel=1e-5)


def test_a_wrong_scale_gives_another_p_value():
    right = float(null_laws.normal_plus_laplace(3.0, 1.3, 2.1))
    assert abs(float(null_laws.normal_plus_laplace(3.0, 1.3, 2.1 * 0.9)) - right) > 0.02


@pytest.mark.full
def test_finite_differences_match_the_gradient():
    with jax.enable_x64(True):
        for point in ((0.4, 1.3, 2.1), (3.0, 1.3, 2.1), (8.0, 5.0, 0.5), (2.0, 0.1, 3.0)):
            gradient = jax.grad(null_laws.normal_plus_laplace, argnums=(0, 1, 2))(*map(jnp.asarray, point))
            for i, slope in enumerate(gradient):
                step = np.zeros(3)
                step[i] = 1e-6
                up, down = (float(null_laws.normal_plus_laplace(*(np.array(point) + s))) for s in (step, -step))
                assert float(slope) == pytest.approx((up - down) / 2e-6, abs=1e-6)


def test_laws_on_the_host_are_those_of_programs():
    value, sd, scale, spread = np.random.default_rng(3).exponential(3.0, (4, 400)) * np.array(
        [[1.0], [1.0], [0.3], [1]]
    )
    with jax.enable_x64(True), np.errstate(all="ignore"):
        for law, numbers in (
            (null_laws.normal, (value, sd)),
            (null_laws.normal_plus_laplace, (value, sd, scale)),
            (null_laws.widened_for_normal, (value, sd, scale, spread)),
            (null_laws.widened_for_laplace, (value, sd, scale, spread)),
        ):
            with compiled() as asked:
                on_host = law(*numbers, xp=np)
            assert asked == []
            assert on_host.dtype == np.float64
            np.testing.assert_allclose(on_host, law(*map(jnp.asarray, numbers)), rtol=1e-9, atol=1e-15)


def test_mills_ratio():
    with jax.enable_x64(True):
        w = np.array([0.0, 1.0, 3.99, 4.01, 10.0, 200.0])
        expected = np.exp(stats.norm.logsf(w) + 0.5 * w**2)
        np.testing.assert_allclose(null_laws.mills(jnp.asarray(w)), expected, rtol=1e-9)


def test_monte_carlo_counts_ties_against_the_test():
    assert float(null_laws.monte_carlo(1.0, jnp.array([0.0, 1.0, 2.0]))) == pytest.approx(3 / 4)


def test_adjustments_against_scipy_and_by_hand():
    p = np.array([0.001, 0.04, 0.03, 0.2, 0.8], np.float32)
    np.testing.assert_allclose(
        null_laws.benjamini_hochberg(p), stats.false_discovery_control(p.astype(float)), rtol=1e-5
    )
    in_jax = jax.jit(null_laws.benjamini_hochberg)(jnp.array([*p, 0.04]))  # NumPy arrays stay on the host
    np.testing.assert_allclose(in_jax, null_laws.benjamini_hochberg(np.array([*p, np.float32(0.04)])), rtol=1e-6)
    np.testing.assert_allclose(null_laws.holm(p), [0.005, 0.12, 0.12, 0.4, 0.8], rtol=1e-5)
    assert float(null_laws.bonferroni(p)) == pytest.approx(0.005)


def test_maximum_of_correlated_normals():
    correlation = jnp.array([[1.0, 1.0], [1.0, 1.0]])
    draws = null_laws.max_normal(jax.random.key(0), correlation, 20_000)
    # both are one normal variable, so the maximum is half-normal
    assert stats.kstest(np.asarray(draws), stats.halfnorm.cdf).pvalue > 1e-4
    apart = null_laws.max_normal(jax.random.key(1), jnp.eye(2), 20_000)
    assert stats.kstest(np.asarray(apart), stats.halfnorm.cdf).pvalue < 1e-6


def level_with_noisy_variance(widened, variance, scale, variance_scale, level):
    """P(p <= level) for N(0, variance) + Laplace(scale), judged at variance + Laplace(variance_scale); quadrature."""
    noise = variance_scale * np.linspace(-14.0, 14.0, 1401)
    weight = np.exp(-np.abs(noise) / variance_scale)
    sd = np.sqrt(np.maximum(variance + noise, 1.0))
    p_value = jax.jit(
        lambda value, sd: null_laws.normal_plus_laplace(
            value, widened(value, sd, scale, 2.0 * variance_scale**2), scale
        )
    )
    low, high = np.zeros_like(sd), 60.0 * (sd + scale)
    for _ in range(50):
        middle = 0.5 * (low + high)
        small = np.asarray(p_value(middle, sd)) <= level
        low, high = np.where(small, low, middle), np.where(small, middle, high)
    tail = np.asarray(null_laws.normal_plus_laplace(high, np.sqrt(variance), scale))
    return float(np.sum(weight * tail) / np.sum(weight))


@pytest.mark.parametrize("level", [0.05, 0.01])
def test_widening_takes_out_what_a_noisy_variance_does_to_the_level(level):
    """PartitionGCM at n = 1000, epsilon = 1: variance 271, Laplace scales 9.41 and 40."""
    with jax.enable_x64(True):
        plain = level_with_noisy_variance(lambda value, sd, *rest: sd, 271.0, 9.41, 40.0, level)
        mended = level_with_noisy_variance(null_laws.widened_for_laplace, 271.0, 9.41, 40.0, level)
    assert plain > 1.03 * level
    assert mended == pytest.approx(level, rel=2e-3)


def test_widening_for_little_laplace_noise_is_that_for_none():
    with jax.enable_x64(True):
        for value in (1.0, 20.0, 60.0):
            laplace = null_laws.widened_for_laplace(value, 16.0, 0.5, 300.0)
            normal = null_laws.widened_for_normal(value, 16.0, 0.5 * np.sqrt(2.0), 300.0)
            assert float(laplace) ** 2 - 256.0 == pytest.approx(float(normal) ** 2 - 256.0, rel=0.03)
    far = null_laws.widened_for_laplace(np.float32([0.0, 1e3, 1e30]), 16.0, 9.0, 3200.0)
    np.testing.assert_allclose(far, np.sqrt(256.0 + 3200.0 / (4.0 * 81.0)), rtol=1e-6)
