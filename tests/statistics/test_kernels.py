"""Kernels: values, bounds k(z, z) <= 1, records that are not finite, gradients, one program for every lengthscale."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.metrics import pairwise

from jaxdp.statistics.kernel_ridge import kernels

RNG = np.random.default_rng(3)
Z, OTHER = RNG.normal(size=(30, 3)), RNG.normal(size=(20, 3))
KERNELS = [kernels.RBF(lengthscale=0.7), kernels.LaplaceKernel(lengthscale=0.7), kernels.Linear(radius=2.0)]
IDS = [type(kernel).__name__ for kernel in KERNELS]


def test_values_equal_the_definitions():
    with jax.enable_x64(True):
        np.testing.assert_allclose(
            kernels.RBF(lengthscale=0.7).gram(Z, OTHER), pairwise.rbf_kernel(Z, OTHER, gamma=0.5 / 0.49), rtol=1e-12
        )
        distances = pairwise.euclidean_distances(Z, OTHER)
        np.testing.assert_allclose(
            kernels.LaplaceKernel(lengthscale=0.7).gram(Z, OTHER), np.exp(-distances / 0.7), rtol=1e-12
        )
        inside = Z / np.maximum(1.0, np.linalg.norm(Z, axis=1, keepdims=True) / 2.0) / 2.0
        np.testing.assert_allclose(kernels.Linear(radius=2.0).gram(Z), inside @ inside.T, atol=1e-12)
        np.testing.assert_allclose(kernels.RBF.from_gamma(0.3).gram(Z), pairwise.rbf_kernel(Z, gamma=0.3), rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=IDS)
def test_call_on_two_points_is_an_entry_of_the_gram_matrix(kernel):
    gram = kernel.gram(Z, OTHER)
    np.testing.assert_allclose(kernel(Z[4], OTHER[7]), gram[4, 7], rtol=1e-6)
    np.testing.assert_allclose(kernel(0.3, 0.5), kernel.gram(jnp.array([0.3]), jnp.array([0.5]))[0, 0], rtol=1e-6)


@pytest.mark.parametrize("kernel", KERNELS, ids=IDS)
def test_norm_of_every_point_is_at_most_one_and_bad_values_stay_in_their_record(kernel):
    bad = Z.copy()
    bad[0], bad[1, 1], bad[2, 2], bad[3] = np.nan, np.inf, -np.inf, 3e38
    for dtype in (np.float32, np.float64):
        with jax.enable_x64(dtype is np.float64):
            gram = np.asarray(kernel.gram(jnp.asarray(bad, dtype)))
            assert np.isfinite(gram).all()
            assert np.diag(gram).max() <= 1.0 + 8 * np.finfo(dtype).eps
            clean = np.asarray(kernel.gram(jnp.asarray(Z, dtype)))
            np.testing.assert_array_equal(gram[4:, 4:], clean[4:, 4:])
            assert np.linalg.eigvalsh(gram.astype(float)).min() > -1e-5


def test_near_neighbours_far_from_the_origin_keep_their_distance():
    z = jnp.array([[1000.0, 0.0], [1000.001, 0.0]])
    exact = float(np.float32(1000.001) - np.float32(1000.0)) ** 2
    np.testing.assert_allclose(kernels.squared_distances(z)[0, 1], exact, rtol=1e-6)


@pytest.mark.parametrize("kernel", KERNELS, ids=IDS)
def test_gradients_are_finite_at_equal_points(kernel):
    z = jnp.zeros((4, 2)).at[0].set(1.0)
    gradients = jax.grad(lambda kernel, z: jnp.sum(kernel.gram(z)), argnums=(0, 1))(kernel, z)
    assert all(bool(jnp.isfinite(leaf).all()) for leaf in jax.tree.leaves(gradients))


def test_one_program_serves_every_lengthscale_and_a_bad_one_raises_or_poisons():
    gram = jax.jit(lambda kernel, z: kernel.gram(z))
    for lengthscale in (0.1, 1.0, 10.0):
        gram(kernels.RBF(lengthscale=lengthscale), jnp.asarray(Z))
    assert gram._cache_size() == 1
    with pytest.raises(ValueError, match="lengthscale must be a finite number > 0, got -1"):
        kernels.RBF(lengthscale=-1.0)
    with pytest.raises(ValueError, match="radius must be"):
        kernels.Linear(radius=float("nan"))
    with pytest.raises(ValueError, match="same number of columns, got 3 and 2"):
        kernels.RBF().gram(Z, Z[:, :2])
    poisoned = jax.jit(lambda value: kernels.RBF(lengthscale=value).gram(Z))(-1.0)
    assert jnp.isnan(poisoned).all()


@pytest.mark.parametrize("kernel", KERNELS, ids=IDS)
@pytest.mark.parametrize("depth", [1, 6])
def test_entry_errors_hold_in_float64(kernel, depth):
    z = RNG.normal(size=(60, depth)) * 10.0 ** RNG.uniform(-3, 1, size=(60, 1))
    wide = z.astype(np.longdouble)
    if isinstance(kernel, kernels.Linear):
        norms = np.sqrt((wide**2).sum(1, keepdims=True))
        scaled = wide / np.maximum(norms, np.longdouble(2.0))
        exact = scaled @ scaled.T
    else:
        squared = ((wide[:, None] - wide[None]) ** 2).sum(-1)
        length = np.longdouble(0.7)
        exact = (
            np.exp(-squared / (2 * length**2))
            if isinstance(kernel, kernels.RBF)
            else np.exp(-np.sqrt(squared) / length)
        )
    with jax.enable_x64(True):
        computed = np.asarray(kernel.gram(z)).astype(np.longdouble)
    assert np.abs(computed - exact).max() <= kernel.entry_error(depth) * 2.0**-53
