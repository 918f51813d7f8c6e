"""Kernel ridge regression against scikit-learn, refitting, and extended precision."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge

from jaxdp.statistics.kernel_ridge import kernels, ridge, ridge_error


def sample(n, d, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, d))
    return z, np.clip(np.sin(2.0 * z[:, :1]) / 2.0 + 0.3 * rng.normal(size=(n, 2)), -1.0, 1.0)


def sklearn_model(kind, n, ridge_value, z):
    alpha = n * ridge_value / 2.0
    if kind == "rbf":
        return KernelRidge(alpha=alpha, kernel="rbf", gamma=0.5 / 0.49), kernels.RBF(lengthscale=0.7), z
    if kind == "laplace":

        def wrapped(a, b):
            return np.exp(-np.linalg.norm(a - b) / 0.7)

        return KernelRidge(alpha=alpha, kernel=wrapped), kernels.LaplaceKernel(lengthscale=0.7), z
    return KernelRidge(alpha=alpha, kernel="linear"), kernels.Linear(radius=9.0), z / 9.0


@pytest.mark.parametrize("kind", ["rbf", "laplace", "linear"])
@pytest.mark.parametrize("ridge_value", [0.01, 10.0])
@pytest.mark.parametrize("d", [1, 4])
def test_residuals_equal_scikit_learn(kind, ridge_value, d):
    z, targets = sample(120, d)
    model, kernel, z_model = sklearn_model(kind, 120, ridge_value, z)
    wanted = targets - model.fit(z_model, targets).predict(z_model)
    with jax.enable_x64(True):
        np.testing.assert_allclose(ridge.krr_residuals(kernel, ridge_value, z, targets), wanted, atol=1e-8, rtol=0)
    single = ridge.krr_residuals(kernel, ridge_value, z.astype(np.float32), targets.astype(np.float32))
    assert single.dtype == jnp.float32
    np.testing.assert_allclose(single, wanted, atol=1e-4, rtol=0)


@pytest.mark.full
@pytest.mark.parametrize(("ridge_value", "folds"), [(0.01, 5), (1.0, 7), (0.01, 53)])
def test_closed_form_cross_validation_equals_refitting(ridge_value, folds):
    z, targets = sample(53, 2)
    model, kernel, _ = sklearn_model("rbf", 53, ridge_value, z)
    wanted = np.empty_like(targets)
    for low, high in ridge.fold_bounds(53, folds):
        train = np.r_[0:low, high:53]
        wanted[low:high] = targets[low:high] - model.fit(z[train], targets[train]).predict(z[low:high])
    for dtype, tolerance in ((np.float64, 1e-8), (np.float32, 1e-4)):
        with jax.enable_x64(dtype is np.float64):
            arguments = (kernel, ridge_value, z.astype(dtype), targets.astype(dtype))
            np.testing.assert_allclose(ridge.k_fold_residuals(*arguments, folds), wanted, atol=tolerance, rtol=0)
            if folds == 53:
                np.testing.assert_allclose(ridge.leave_one_out_residuals(*arguments), wanted, atol=tolerance, rtol=0)


def test_shapes_one_program_gradients_and_vmap():
    z, targets = sample(40, 1)
    kernel = kernels.RBF(lengthscale=0.7)
    both = ridge.krr_residuals(kernel, 0.1, z, targets)
    np.testing.assert_allclose(ridge.krr_residuals(kernel, 0.1, z[:, 0], targets[:, 1]), both[:, 1], atol=1e-6)
    program = jax.jit(ridge.krr_residuals)
    for lengthscale, ridge_value in ((0.5, 0.01), (1.0, 0.1), (2.0, 1.0)):
        program(kernels.RBF(lengthscale=lengthscale), ridge_value, z, targets)
    assert program._cache_size() == 1
    stacked = kernels.RBF(lengthscale=jnp.array([0.5, 0.7]))
    swept = jax.vmap(program, in_axes=(0, None, None, None))(stacked, 0.1, z, targets)
    np.testing.assert_allclose(swept[1], both, atol=1e-6)

    @jax.jit
    def loss(kernel, value):
        return jnp.sum(ridge.leave_one_out_residuals(kernel, value, z, targets) ** 2)

    with jax.enable_x64(True):
        gradient = jax.jit(jax.grad(loss, argnums=1))(kernel, 0.1)
        np.testing.assert_allclose(gradient, (loss(kernel, 0.1001) - loss(kernel, 0.0999)) / 2e-4, rtol=1e-4)
    with pytest.raises(ValueError, match="ridge must be a finite number > 0, got 0"):
        ridge.krr_residuals(kernel, 0.0, z, targets)
    with pytest.raises(ValueError, match="num_folds must be at most"):
        ridge.k_fold_residuals(kernel, 0.1, z, targets, 41)


def extended_residuals(gram, alpha, targets):
    """Residuals in extended precision: conjugate gradients polish a float64 solve."""
    shifted = gram.astype(np.longdouble) + np.longdouble(alpha) * np.eye(len(gram), dtype=np.longdouble)
    inverse = np.linalg.inv(shifted.astype(float)).astype(np.longdouble)
    weights = np.zeros_like(targets, np.longdouble)
    for _ in range(6):
        weights = weights + inverse @ (targets - shifted @ weights)
    return np.longdouble(alpha) * weights


@pytest.mark.parametrize("ridge_value", [1e-4, 0.01, 1.0])
@pytest.mark.parametrize("spread", [1e-6, 0.3, 30.0])
def test_float64_errors_stay_below_the_stated_bounds(ridge_value, spread):
    rng = np.random.default_rng(5)
    n, kernel = 150, kernels.RBF(lengthscale=1.0)
    z = spread * rng.normal(size=(n, 2))
    targets = np.sign(rng.normal(size=(n, 2)))
    wide = z.astype(np.longdouble)
    gram = np.exp(-((wide[:, None] - wide[None]) ** 2).sum(-1) / 2)
    exact = extended_residuals(gram, np.longdouble(n) * np.longdouble(ridge_value) / 2, targets)
    with jax.enable_x64(True):
        computed = np.asarray(ridge.krr_residuals(kernel, ridge_value, z, targets)).astype(np.longdouble)
        entry = kernel.entry_error(2)
        error = float(ridge_error.residual_error(ridge_value, n, entry))
        bounds = [
            float(f(ridge_value, n, entry))
            for f in (ridge_error.sum_error, ridge_error.vector_error, ridge_error.one_sided_error)
        ]
    products = computed[:, 0] * computed[:, 1] - exact[:, 0] * exact[:, 1]
    assert np.sqrt((np.abs(computed - exact) ** 2).sum(0)).max() <= error * np.sqrt(n)
    assert abs(products.sum()) <= bounds[0]
    assert np.abs(products).max() <= bounds[1]
    assert abs((targets[:, 0] * (computed - exact)[:, 1]).sum()) <= bounds[2]
    assert bounds[0] < 1e-4  # small next to any sensitivity: noise grows by a negligible amount


def test_a_perturbed_solve_passes_the_error_bound():
    """The bound is not empty: a float32 solve exceeds it."""
    z, targets = sample(150, 2)
    kernel = kernels.RBF(lengthscale=1.0)
    with jax.enable_x64(True):
        exact = np.asarray(ridge.krr_residuals(kernel, 0.01, z, targets))
        error = float(ridge_error.residual_error(0.01, 150, kernel.entry_error(2)))
    rough = np.asarray(ridge.krr_residuals(kernel, 0.01, z.astype(np.float32), targets.astype(np.float32)))
    assert np.linalg.norm((rough - exact)[:, 0]) > error * np.sqrt(150)


def test_systems_that_float64_cannot_solve_are_refused_before_data_are_read():
    with jax.enable_x64(True):
        with pytest.raises(ValueError, match="too small to be solved reliably in float64 for n=100000"):
            ridge_error.sum_error(1e-7, 100_000, 5.0)
        assert jnp.isnan(jax.jit(lambda value: ridge_error.sum_error(value, 100_000, 5.0))(1e-7))
        assert jnp.isfinite(ridge_error.sum_error(0.01, 100_000, 5.0))
    assert jnp.isfinite(ridge_error.sum_error(1e-7, 100_000, 5.0))  # simulations go on
