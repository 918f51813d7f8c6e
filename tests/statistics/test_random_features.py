"""Random Fourier features: norms, stated errors, streaming equals the kernel form."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.statistics.kernel_ridge import kernels, random_features, ridge, ridge_bounds

RNG = np.random.default_rng(11)
Z = RNG.normal(size=(301, 3)).astype(np.float32)
TARGETS = np.clip(np.sin(2.0 * Z[:, :1]) / 2.0 + 0.3 * RNG.normal(size=(301, 2)), -1, 1).astype(np.float32)
FOURIER = random_features.fourier_features(jax.random.key(0), kernels.RBF(lengthscale=1.5), 3, 400)
MAPS = pytest.mark.parametrize("features", [FOURIER, kernels.Linear(radius=3.0)], ids=["fourier", "linear"])


def test_polynomial_sine_and_cosine():
    turns = np.linspace(-3.0, 3.0, 200_001).astype(np.float32)
    cosine, sine = random_features.cos_sin_of_turns(jnp.asarray(turns))
    exact = 2.0 * np.pi * turns.astype(float)
    assert np.abs(cosine - np.cos(exact)).max() < 1e-6
    assert np.abs(sine - np.sin(exact)).max() < 1e-6


@MAPS
def test_norm_never_exceeds_one_and_bad_records_stay_alone(features):
    extreme = np.concatenate([Z, 1e4 * Z, np.zeros((1, 3)), np.full((1, 3), np.nan), np.full((1, 3), np.inf)])
    for dtype in (np.float32, np.float64):
        with jax.enable_x64(dtype is np.float64):
            phi = np.asarray(features.features(extreme.astype(dtype)), float)
            assert np.isfinite(phi).all()
            assert (phi**2).sum(1).max() <= 1.0 + 4 * np.finfo(dtype).eps
            alone = np.asarray(features.features(Z.astype(dtype)), float)
            np.testing.assert_allclose(phi[:301], alone, atol=20 * np.finfo(dtype).eps)


@pytest.mark.full
@pytest.mark.parametrize("kernel", [kernels.RBF(lengthscale=1.5), kernels.LaplaceKernel(lengthscale=2.0)])
def test_fourier_gram_is_within_the_stated_error_and_the_error_is_not_idle(kernel):
    exact = np.asarray(kernel.gram(Z))
    for count in (100, 1000):
        features = random_features.fourier_features(jax.random.key(1), kernel, 3, count)
        gap = np.abs(np.asarray(features.gram(Z)) - exact).max()
        stated = random_features.fourier_error(count, len(Z))
        assert stated / 4.0 < gap <= stated
        np.testing.assert_allclose(features(Z[0], Z[1]), features.gram(Z[:2])[0, 1], atol=1e-6)


@pytest.mark.full
@MAPS
@pytest.mark.parametrize("batch_size", [64, 1000])
def test_streaming_equals_kernel_ridge_regression(features, batch_size):
    for dtype, tolerance in ((np.float32, 2e-4), (np.float64, 1e-8)):
        with jax.enable_x64(dtype is np.float64):
            z, targets = jnp.asarray(Z, dtype), jnp.asarray(TARGETS, dtype)
            streamed = random_features.feature_residuals(features, 0.05, z, targets, batch_size=batch_size)
            wanted = ridge.krr_residuals(features, 0.05, z, targets)
        assert streamed.shape == targets.shape
        assert streamed.dtype == dtype
        np.testing.assert_allclose(streamed, wanted, atol=tolerance)


@pytest.mark.full
def test_more_features_approach_the_kernel_fit():
    kernel = kernels.RBF(lengthscale=1.5)
    wanted = ridge.krr_residuals(kernel, 0.05, Z, TARGETS)
    gaps = []
    for count in (40, 2000):
        features = random_features.fourier_features(jax.random.key(2), kernel, 3, count)
        gaps.append(float(jnp.abs(random_features.feature_residuals(features, 0.05, Z, TARGETS) - wanted).max()))
    assert gaps[1] < 0.05 < gaps[0]


def test_replacing_a_record_stays_within_the_constants_of_ridge_regression():
    fit = jax.jit(lambda z, targets, value: random_features.feature_residuals(FOURIER, value, z, targets))
    for seed in range(30):
        rng = np.random.default_rng(seed)
        z = np.repeat(rng.normal(size=(5, 3)), 4, axis=0).astype(np.float32)
        targets = rng.choice([-1.0, 1.0], size=(20, 2)).astype(np.float32)
        z2, targets2 = z.copy(), targets.copy()
        z2[0], targets2[0] = rng.normal(size=3), rng.choice([-1.0, 1.0], size=2)
        for value in (0.05, 1.0):
            before, after = (np.prod(fit(*pair, value), axis=1) for pair in ((z, targets), (z2, targets2)))
            assert abs((before - after).sum()) <= float(ridge_bounds.delta_sum(value))
            assert np.abs(before - after).sum() <= float(ridge_bounds.delta_vector(value))


def test_memory_is_flat_in_the_number_of_records():
    def temporaries(n):
        lowered = jax.jit(lambda z, t: random_features.feature_residuals(FOURIER, 0.05, z, t)).lower(
            jax.ShapeDtypeStruct((n, 3), jnp.float32), jax.ShapeDtypeStruct((n, 2), jnp.float32)
        )
        return lowered.compile().memory_analysis().temp_size_in_bytes

    per_record = (temporaries(200_000) - temporaries(20_000)) / 180_000
    assert per_record <= 4 * 4 * 3 * 4  # a few copies of z and targets, never of 400 features


def test_wrong_arguments_raise():
    with pytest.raises(ValueError, match="num_features must be even"):
        random_features.fourier_features(jax.random.key(0), kernels.RBF(), 3, 5)
    with pytest.raises(TypeError, match="exist for RBF and LaplaceKernel, got Linear"):
        random_features.fourier_features(jax.random.key(0), kernels.Linear(), 3, 4)
    with pytest.raises(ValueError, match="batch_size must be a whole number >= 1"):
        random_features.feature_residuals(FOURIER, 0.1, Z, TARGETS, batch_size=0)
