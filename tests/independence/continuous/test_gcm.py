"""GCM and PrivateGCM: against plain loops, level and its loss, several columns, all pairs."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxdp
from jaxdp import published
from jaxdp.independence.continuous.residual_products import residual_products
from jaxdp.simulate.designs.confounder import sine_confounder
from jaxdp.statistics.kernel_ridge.kernels import RBF


def window(replicates, level=0.05, alpha=1e-6):
    return stats.binom.ppf([alpha / 2, 1 - alpha / 2], replicates, level)


def rate(test, n, effect, replicates, seed=0):
    design = functools.partial(sine_confounder, n=n, effect=effect)
    return jaxdp.power.rejection_rate(test, design, jax.random.key(seed), replicates)


def data_of(seed, n=80, columns=1):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 2))
    x = np.sin(z[:, :1]) + rng.normal(size=(n, columns))
    return jaxdp.Data(x, x[:, ::-1] * 0.3 + rng.normal(size=(n, columns)), z)


def test_the_statistic_equals_sklearn_and_a_formula():
    from sklearn.kernel_ridge import KernelRidge

    data, ridge = data_of(0), 0.05
    with jax.enable_x64(True):
        test = jaxdp.GCM(ridge=ridge, kernel=RBF(lengthscale=1.0))
        got = jaxdp.run(test, jax.random.key(0), data)
    model = KernelRidge(alpha=len(data.x) * ridge / 2, kernel="rbf", gamma=0.5)
    rx = data.x[:, 0] - model.fit(data.z, data.x[:, 0]).predict(data.z)
    ry = data.y[:, 0] - model.fit(data.z, data.y[:, 0]).predict(data.z)
    product = rx * ry
    t = np.sqrt(product.size) * product.mean() / product.std()
    assert float(got.statistic) == pytest.approx(t, abs=1e-8)
    assert float(got.p_value) == pytest.approx(2 * stats.norm.sf(abs(t)), abs=1e-8)


@pytest.mark.full
def test_good_fits_have_level_and_power():
    test = jaxdp.GCM(ridge=0.003)
    assert rate(test, 200, 0.0, 2000).rejections <= window(2000)[1]
    assert rate(test, 200, 0.5, 300).rate > 0.95


def test_a_fixed_large_ridge_loses_the_level_without_noise():
    """docs/theory/private_gcm.md#fixed-ridge: type-I error 0.41 at n = 200 with ridge 10."""
    count = rate(jaxdp.GCM(ridge=10.0), 200, 0.0, 1000)
    assert count.rejections > window(1000)[1]


@pytest.mark.full
def test_private_gcm_is_at_its_level_at_small_n_and_loses_it_at_large_epsilon():
    small = jaxdp.PrivateGCM(epsilon=1.0, scale_x=4.0, scale_y=4.0)
    assert rate(small, 200, 0.0, 2000).rejections <= window(2000)[1]
    bare = jaxdp.PrivateGCM(epsilon=1e4, scale_x=4.0, scale_y=4.0)
    assert rate(bare, 400, 0.0, 500).rejections > window(500)[1]


def test_large_epsilon_approaches_the_test_without_noise():
    data = data_of(1)
    scaled = jaxdp.Data(np.clip(data.x / 5, -1, 1), np.clip(data.y / 5, -1, 1), data.z)
    kernel = RBF(lengthscale=1.0)
    private = jaxdp.run(jaxdp.PrivateGCM(epsilon=1e7, ridge=0.1, kernel=kernel), jax.random.key(0), scaled)
    exact = jaxdp.run(jaxdp.GCM(ridge=0.1, kernel=kernel), jax.random.key(0), scaled)
    np.testing.assert_allclose(private.statistic, exact.statistic, rtol=1e-2)


def test_the_paper_variant_carries_the_larger_noise():
    tight, paper = (form(epsilon=1.0).sensitivity(100).bound for form in (jaxdp.PrivateGCM, published.PaperGCM))
    assert float(tight) == pytest.approx(3.18, abs=0.01)
    assert float(paper) == pytest.approx(11.73, abs=0.01)


@pytest.mark.full
def test_several_columns_use_the_largest_statistic():
    data = data_of(2, columns=3)
    result = jaxdp.run(jaxdp.GCM(ridge=0.05, kernel=RBF(lengthscale=1.0)), jax.random.key(0), data)
    assert result.release.value["t"].shape == (9,)
    assert abs(float(result.statistic)) == pytest.approx(float(jnp.abs(result.release.value["t"]).max()))

    def null(key, n):
        key_z, key_x, key_y = jax.random.split(key, 3)
        z = jax.random.normal(key_z, (n,))

        def make(k):
            return 0.5 * z[:, None] + jax.random.normal(k, (n, 2))

        return jaxdp.Data(make(key_x), make(key_y), z)

    test = jaxdp.GCM(ridge=0.003, num_null=199)
    count = jaxdp.power.rejection_rate(test, functools.partial(null, n=150), jax.random.key(3), 1500)
    assert count.rejections <= window(1500)[1]


@pytest.mark.full
def test_weights_find_what_the_plain_test_cannot():
    def design(key, n):
        data = sine_confounder(key, n)
        return jaxdp.Data(data.x, data.y + jnp.sign(data.z) * data.x, data.z)

    def sign_weights(z):
        return jnp.concatenate([jnp.ones_like(z), jnp.sign(z)], axis=1)

    plain, weighted = (
        jaxdp.power.rejection_rate(
            jaxdp.GCM(ridge=0.003, weights=w), functools.partial(design, n=200), jax.random.key(4), 200
        ).rate
        for w in (None, sign_weights)
    )
    assert weighted > plain + 0.3


def test_residual_products_of_shapes():
    data = data_of(3, columns=2)
    products = residual_products(data, RBF(lengthscale=1.0), 0.1)
    assert products.shape == (80, 2, 2)
    np.testing.assert_allclose(
        products[:, 0, 1] * products[:, 1, 0], products[:, 0, 0] * products[:, 1, 1], rtol=1e-3, atol=1e-5
    )


def features(seed=0, n=600):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 1))
    table = np.sin(2 * z) * rng.normal(size=(1, 4)) + rng.normal(size=(n, 4))
    table[:, 1] += table[:, 0]
    return table, z


@pytest.mark.full
@pytest.mark.parametrize(
    "test",
    [
        jaxdp.PartitionGCM(epsilon=30.0),
        jaxdp.PartitionGCM(epsilon=30.0, num_regions=2),
        jaxdp.PartitionGCM(mechanism=jaxdp.Gaussian(20.0)),
        jaxdp.PrivateGCM(epsilon=1e4, ridge=1.0, scale_x=4.0, scale_y=4.0),
        jaxdp.GCM(ridge=0.01),
    ],
    ids=["partition", "regions", "zcdp", "private_gcm", "gcm"],
)
def test_all_pairs_find_the_dependent_pair(test):
    table, z = features()
    result = jaxdp.all_pairs(test, jax.random.key(0), table, z)
    p = np.asarray(result.p_values)
    assert p.shape == (4, 4)
    np.testing.assert_array_equal(np.isnan(p), np.eye(4, dtype=bool))
    np.testing.assert_array_equal(p, p.T)
    assert np.unravel_index(np.nanargmin(p), p.shape) == (0, 1)
    adjusted = np.asarray(result.holm())
    assert np.nanmin(adjusted) < 0.05
    assert np.all(
        np.asarray(result.benjamini_hochberg())[~np.eye(4, dtype=bool)] <= adjusted[~np.eye(4, dtype=bool)] + 1e-6
    )


def test_all_pairs_equal_one_pair_at_a_time_without_noise():
    table, z = features(1)
    together = jaxdp.all_pairs(jaxdp.GCM(ridge=0.01), jax.random.key(0), table, z).p_values
    for i, j in ((0, 1), (0, 2), (2, 3)):
        one = jaxdp.run(jaxdp.GCM(ridge=0.01), jax.random.key(0), jaxdp.Data(table[:, i], table[:, j], z)).p_value
        assert float(together[i, j]) == pytest.approx(float(one), abs=1e-4)


def test_all_pairs_of_a_private_test_divide_the_budget():
    table, z = features(2)
    result = jaxdp.all_pairs(jaxdp.PartitionGCM(epsilon=1.0), jax.random.key(0), table, z)
    assert float(result.cost.epsilon) == pytest.approx(1.0)
    assert float(result.releases[0].sensitivity["covariance"].bound) == pytest.approx(8.0 * 6)
    with pytest.raises(ValueError, match="d >= 2"):
        jaxdp.all_pairs(jaxdp.PartitionGCM(epsilon=1.0), jax.random.key(0), table[:, :1], z)


@pytest.mark.full
def test_adjusted_p_values_of_a_release_stay_float64():
    table = np.random.default_rng(3).uniform(-1, 1, (120, 4))
    released = jaxdp.all_pairs(jaxdp.PartitionGCM(epsilon=1.0), jaxdp.fresh_key(), table)
    for adjusted in (released.p_values, released.holm(), released.benjamini_hochberg()):
        assert isinstance(adjusted, np.ndarray)
        assert adjusted.dtype == np.float64
    pairs = np.triu_indices(4, k=1)
    ordered = np.sort(released.p_values[pairs])
    expected = np.minimum(1.0, np.maximum.accumulate(ordered * np.arange(6, 0, -1)))
    np.testing.assert_allclose(np.sort(released.holm()[pairs]), expected, rtol=1e-14)
