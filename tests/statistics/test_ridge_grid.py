"""Cross-validated grids against scikit-learn's GridSearchCV."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, KFold

from jaxdp.statistics.kernel_ridge import kernels, low_rank, ridge, ridge_grid

GAMMAS = np.array([0.1, 1.0, 10.0])


def sample(n, d, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, d))
    mean = np.exp(-(z[:, :1] ** 2) / 2.0) * np.sin(2.0 * z[:, :1])
    return z, (mean + 0.3 * rng.normal(size=(n, 2))) / 4.0


def grid_kernel(dtype):
    return kernels.RBF(lengthscale=jnp.asarray((2.0 * GAMMAS) ** -0.5, dtype))


def sklearn_grid(z, targets, ridges):
    """Errors (bandwidths, ridges, targets) and in-sample residuals of the best pairs."""
    alphas = list(len(z) * ridges / 2.0)
    errors, residuals = [], []
    for target in targets.T:
        search = GridSearchCV(
            KernelRidge(kernel="rbf"),
            {"gamma": list(GAMMAS), "alpha": alphas},
            scoring="neg_mean_squared_error",
            cv=KFold(5),
        ).fit(z, target)
        # parameters are enumerated in alphabetical order: alpha outside, gamma inside
        errors.append(-search.cv_results_["mean_test_score"].reshape(len(alphas), len(GAMMAS)).T)
        residuals.append(target - search.predict(z))
    return np.stack(errors, axis=-1), np.stack(residuals, axis=-1)


@functools.partial(jax.jit, static_argnames=("method", "steps"))
def cross_validate(ridges, z, targets, method="krylov", steps=None, tolerance=None):
    return ridge_grid.cross_validate(
        grid_kernel(z.dtype), ridges, z, targets, method=method, steps=steps, tolerance=tolerance
    )


@pytest.mark.full
@pytest.mark.parametrize(
    ("method", "dtype", "n", "d"),
    [
        ("krylov", np.float32, 103, 4),
        ("krylov", np.float64, 60, 1),
        ("low_rank", np.float32, 103, 1),
        ("low_rank", np.float64, 103, 1),
        ("auto", np.float32, 130, 1),  # rank 32 serves the wide bandwidths, Krylov the narrow one
        ("cholesky", np.float64, 103, 4),
    ],
)
@pytest.mark.parametrize("ridges", [(0.02, 0.1, 0.4), (0.01, 0.1, 1.0)], ids=["paper", "small"])
def test_grid_equals_scikit_learn(method, ridges, dtype, n, d):
    z, targets = sample(n, d)
    ridges = np.array(ridges)
    errors, residuals = sklearn_grid(z, targets, ridges)
    best = errors.reshape(-1, 2).argmin(0)
    limits = ridge_grid.TOLERANCE if method == "krylov" else ridge_grid.TRACE_TOLERANCE
    limit = limits[np.dtype(dtype).name]
    tolerance = 1e-9 if dtype is np.float64 else limit
    with jax.enable_x64(dtype is np.float64):
        fit = cross_validate(ridges.astype(dtype), z.astype(dtype), targets.astype(dtype), method=method)
    assert fit.errors.dtype == dtype
    np.testing.assert_allclose(fit.errors, errors, rtol=tolerance)
    np.testing.assert_array_equal(np.asarray(fit.kernel_index) * len(ridges) + np.asarray(fit.ridge_index), best)
    np.testing.assert_allclose(fit.residuals, residuals, atol=tolerance)
    assert (0.0 if method == "cholesky" else 1e-20) <= float(fit.certificate) <= limit


def test_certificate_bounds_the_error_and_a_missed_tolerance_falls_back_to_cholesky():
    z, targets = (part.astype(np.float32) for part in sample(60, 2))
    ridges = np.array([0.01, 0.1], np.float32)
    exact = cross_validate(ridges, z, targets, method="cholesky")
    rough = cross_validate(ridges, z, targets, steps=5, tolerance=1.0)
    gap = np.sqrt(np.mean((rough.residuals - exact.residuals) ** 2, axis=0)) / np.sqrt(np.mean(targets**2, axis=0))
    assert 1e-4 < gap.max() <= float(rough.certificate)
    saved = cross_validate(ridges, z, targets, steps=5, tolerance=1e-5)
    assert float(saved.certificate) == 0.0
    np.testing.assert_allclose(saved.residuals, exact.residuals, atol=1e-6)
    np.testing.assert_allclose(saved.errors, exact.errors, rtol=1e-5)


def test_pivoted_cholesky_leaves_a_positive_semidefinite_rest_of_known_trace():
    with jax.enable_x64(True):
        z, kernel = jnp.asarray(sample(60, 2)[0]), kernels.RBF(lengthscale=1.0)
        factor = low_rank.extend(low_rank.start(kernel, z), kernel, z, 10, 0.0)
        factor = low_rank.extend(factor, kernel, z, 20, 0.0)
        rest = np.asarray(kernel.gram(z) - factor.rows.T @ factor.rows)
    assert int(factor.rank) == 20
    eigenvalues = np.linalg.eigvalsh(rest)
    assert eigenvalues.min() > -1e-12
    assert 1e-4 < eigenvalues.max() <= float(factor.trace)
    np.testing.assert_allclose(factor.trace, np.trace(rest), rtol=1e-10)


def test_the_trace_bounds_the_error_of_low_rank_fits():
    """Records far apart, rank 4 of 5: the target lives on the record left out, where the bound is nearly attained."""
    z = 1e3 * np.arange(5.0, dtype=np.float32)
    target = np.array([0, 0, 0, 0, 1.0], np.float32)
    fit, exact = (
        cross_validate(np.array([4.0], np.float32), z, target, method=method, tolerance=0.5)
        for method in ("low_rank", "cholesky")
    )
    gap = np.linalg.norm(fit.residuals - exact.residuals)  # 1 - alpha/(1 + alpha), with alpha = 10
    assert float(fit.certificate) == pytest.approx(0.1)
    assert 0.9 * float(fit.certificate) < gap <= float(fit.certificate)


@pytest.mark.full
def test_rough_low_rank_fits_keep_their_certificate():
    z, targets = (part.astype(np.float32) for part in sample(200, 1))
    ridges = np.array([0.05], np.float32)
    alpha, m = 200 * 0.05 / 2, 40
    rough, exact = (
        cross_validate(ridges, z, targets, method=method, tolerance=5.0) for method in ("low_rank", "cholesky")
    )
    scale = np.sqrt(np.mean(targets**2, axis=0))
    bound = float(rough.certificate)
    gap = np.sqrt(np.mean((rough.residuals - exact.residuals) ** 2, axis=0)) / scale
    assert 1e-3 < gap.max() <= bound
    held_out = np.abs(np.sqrt(rough.errors) - np.sqrt(exact.errors)).max(axis=(0, 1)) / scale
    assert held_out.max() <= bound * np.sqrt(5.0) * np.sqrt(1.0 + m / (4.0 * alpha))


@pytest.mark.full
def test_kernels_without_low_rank_are_solved_by_cholesky_or_krylov():
    z, targets = (part.astype(np.float32) for part in sample(140, 5))
    ridges = np.array([0.01, 0.1], np.float32)
    low, exact, auto = (
        cross_validate(ridges, z, targets, method=method) for method in ("low_rank", "cholesky", "auto")
    )
    assert float(low.certificate) == 0.0
    np.testing.assert_array_equal(low.residuals, exact.residuals)
    assert 0.0 < float(auto.certificate) <= ridge_grid.TOLERANCE["float32"]
    np.testing.assert_allclose(auto.residuals, exact.residuals, atol=1e-6)


def test_degenerate_data_have_defined_values():
    z = np.zeros((20, 1), np.float32)
    targets = np.stack([np.zeros(20), np.ones(20)], axis=1).astype(np.float32)
    fit = cross_validate(np.array([0.1, 1.0], np.float32), z, targets)
    assert all(bool(jnp.isfinite(leaf).all()) for leaf in jax.tree.leaves(fit))
    np.testing.assert_array_equal(fit.residuals[:, 0], 0.0)
    np.testing.assert_allclose(fit.residuals[:, 1], 1.0 / 21.0, rtol=1e-5)  # alpha = 1: 1/(n + 1)


@pytest.mark.full
def test_mapped_and_batched_data_sets_give_the_single_answers():
    data = [sample(20, 1, seed) for seed in range(3)]
    z, targets = (np.stack(part).astype(np.float32) for part in zip(*data, strict=True))
    ridges = np.array([0.1, 1.0], np.float32)
    mapped = jax.jit(lambda *pair: jax.lax.map(lambda p: cross_validate(ridges, *p), pair))(z, targets)
    batched = jax.jit(jax.vmap(lambda *pair: cross_validate(ridges, *pair)))(z, targets)
    for index in range(3):
        alone = cross_validate(ridges, z[index], targets[index])
        for several in (mapped, batched):
            np.testing.assert_allclose(several.residuals[index], alone.residuals, atol=3e-6)
            np.testing.assert_array_equal(several.kernel_index[index], alone.kernel_index)


def test_wrong_arguments_raise():
    z, targets = sample(20, 1)
    with pytest.raises(ValueError, match="method must be one of"):
        ridge_grid.cross_validate(grid_kernel(float), jnp.array([0.1]), z, targets, method="fast")
    with pytest.raises(ValueError, match="num_folds must be at most"):
        ridge_grid.cross_validate(grid_kernel(float), jnp.array([0.1]), z, targets, num_folds=21)
    with pytest.raises(ValueError, match="ridge must be a finite number > 0"):
        ridge_grid.cross_validate(grid_kernel(float), jnp.array([0.1, 0.0]), z, targets)


@pytest.mark.parametrize("d", [1, 5])
def test_residuals_by_low_rank_or_exact(d):
    z, targets = (part.astype(np.float32) for part in sample(300, d))
    kernel = kernels.RBF.from_gamma(0.5)
    ours = jax.jit(low_rank.krr_residuals)(kernel, 0.02, z, targets)
    exact = ridge.krr_residuals(kernel, 0.02, z, targets)
    np.testing.assert_allclose(ours, exact, atol=1e-4 * np.sqrt(np.mean(targets**2)))
    assert low_rank.krr_residuals(kernel, 0.02, z[:20], targets[:20, 0]).shape == (20,)
