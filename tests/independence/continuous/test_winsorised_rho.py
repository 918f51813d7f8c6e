"""Partial correlations, slopes and mean differences from one noisy moment matrix."""

import dataclasses
import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binom

import jaxdp
from jaxdp import null_laws
from jaxdp.data.dataset import Column
from jaxdp.independence.continuous.moment_examples import linear, linear_null, two_groups
from jaxdp.mechanisms import Exact
from jaxdp.statistics import clipped_normal, moments, partial_correlations

WEIGHT = moments.MEAN_WEIGHT


def change(first, second, euclidean=False):
    """How far the released vector moves between two records (..., p)."""
    rows, columns = np.triu_indices(first.shape[-1])

    def vector(w):
        return np.concatenate([w[..., rows] * w[..., columns], w], axis=-1)

    moved = (vector(first) - vector(second)) * moments.weights(first.shape[-1], euclidean)
    return np.linalg.norm(moved, axis=-1) if euclidean else np.abs(moved).sum(-1)


@pytest.mark.parametrize("columns", [2, 3, 4])
def test_enumeration_reaches_the_l1_bound_and_never_passes_it(columns):
    grid = (-1.0, -0.5, 0.0, 0.5, 1.0) if columns < 4 else (-1.0, 0.0, 1.0)
    records = np.array(list(itertools.product(grid, repeat=columns)))
    largest = max(change(record, records).max() for record in records)
    assert largest == pytest.approx(columns * (columns + 1) / 2 + WEIGHT * columns)
    assert 0.97 * moments.l1_bound(columns) < largest <= moments.l1_bound(columns)
    assert largest > columns**2 / 2 + WEIGHT * columns  # a bound that forgets the diagonal is passed


def test_orthogonal_records_reach_the_frobenius_bound():
    drawn = np.random.default_rng(0).uniform(-1.0, 1.0, (2, 20_000, 4))
    bound = moments.frobenius_bound(4)
    assert change(*drawn, euclidean=True).max() <= bound
    first, second = np.ones(4), np.array([1.0, 1.0, -1.0, -1.0])
    assert 0.995 * bound < change(first, second, euclidean=True) <= bound


@pytest.mark.full
def test_the_clip_is_read_off_the_moments():
    mu, log_tau = jnp.array([0.4, -0.9, 0.0]), jnp.log(jnp.array([0.6, 1.3, 2.0]))
    found = clipped_normal.law(*clipped_normal.clipped_moments(mu, log_tau), jnp.zeros(3, bool))
    np.testing.assert_allclose(found.mu, mu, atol=2e-3)
    np.testing.assert_allclose(found.log_tau, log_tau, atol=2e-3)


@pytest.mark.parametrize("correlation", [-0.8, 0.1, 0.6])
def test_correlations_of_clipped_columns_by_quadrature(correlation):
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    weights = weights / weights.sum()
    other = correlation * nodes[:, None] + np.sqrt(1 - correlation**2) * nodes[None, :]
    first, second = np.clip((nodes - 0.3) / 0.8, -1, 1), np.clip((other + 0.5) / 1.1, -1, 1)
    both = weights[:, None] * weights[None, :]
    covariance = (both * first[:, None] * second).sum() - (weights * first).sum() * (both * second).sum()
    mean, square = clipped_normal.clipped_moments(jnp.array([0.3, -0.5]), jnp.log(jnp.array([0.8, 1.1])))
    d = clipped_normal.law(mean, square, jnp.zeros(2, bool)).coefficients
    assert float(clipped_normal.correlation_of(jnp.array(covariance), d[0], d[1])) == pytest.approx(
        correlation, abs=5e-3
    )


def raw_estimates(theta, linear):
    return partial_correlations.raw_estimates(theta, partial_correlations.law_of(theta, linear))


@pytest.mark.full
@pytest.mark.parametrize("linear_columns", [(False, False, False), (True, False, False)])
def test_the_jacobian_is_that_of_the_estimates(linear_columns):
    with jax.enable_x64(True):
        theta = jnp.array([0.5, 0.1, 0.1, 0.5, 0.1, 0.5, 0.1, 0.05, -0.1])
        step = 1e-4 * jnp.eye(9)

        @jax.jit
        def flat(numbers):
            pairs, sds, _ = raw_estimates(numbers, linear_columns)
            return jnp.concatenate([pairs, sds])

        numeric = jnp.stack([(flat(theta + s) - flat(theta - s)) / 2e-4 for s in step], axis=1)
        np.testing.assert_allclose(raw_estimates(theta, linear_columns)[2], numeric, atol=2e-4)


@pytest.mark.full
def test_independent_columns_far_off_their_centres_have_no_correlation():
    means = np.array([-0.86, 0.9])
    products = np.array([0.95, means.prod(), 0.97])  # (1, 1), (1, 2), (2, 2)
    pairs, *_ = raw_estimates(jnp.asarray([*products, *means]), (False, False))
    np.testing.assert_allclose(pairs, 0.0, atol=1e-5)


def test_the_law_of_normal_plus_laplaces():
    values = jnp.array([0.0, 0.5, 2.0, 4.0])
    one = null_laws.normal_plus_laplaces(values, jnp.full(4, 0.7), jnp.full((4, 1), 0.9))
    np.testing.assert_allclose(one, null_laws.normal_plus_laplace(values, 0.7, 0.9), atol=2e-4)
    scales = np.array([0.2, 1.0, 0.5])
    drawn = np.random.default_rng(1).laplace(size=(400_000, 3)) @ scales
    drawn = np.abs(drawn + 0.4 * np.random.default_rng(2).normal(size=400_000))
    found = null_laws.normal_plus_laplaces(values, jnp.full(4, 0.4), jnp.broadcast_to(jnp.array(scales), (4, 3)))
    np.testing.assert_allclose(found, (drawn[:, None] >= np.asarray(values)).mean(0), atol=4e-3)
    far = null_laws.normal_plus_laplaces(jnp.array([12.0, 20.0, 40.0]), jnp.full(3, 0.4), jnp.array([scales] * 3))
    assert np.all(np.diff(far) < 0)
    assert 0.0 < far[2] < far[0] <= 1e-4


def residual_correlation(data):
    z = np.column_stack([np.ones(len(data.x)), data.z])
    x, y = (v - z @ np.linalg.lstsq(z, v, rcond=None)[0] for v in map(np.asarray, (data.x, data.y)))
    return np.corrcoef(x, y)[0, 1], x @ y / (x @ x)


@pytest.mark.full
def test_with_much_budget_the_estimates_are_those_of_least_squares():
    data = linear(jax.random.key(0), 20_000, dim=2)
    correlation, slope = residual_correlation(data)
    found = jaxdp.run(jaxdp.WinsorisedPartialCorrelation(epsilon=1e4, bound=8.0), jax.random.key(1), data)
    assert float(found.effect) == pytest.approx(correlation, abs=0.01)
    assert float(found.p_value) < 1e-4
    slopes = jaxdp.run(jaxdp.LinearRegression(epsilon=1e4, bound=8.0), jax.random.key(1), data)
    assert float(slopes.effect) == pytest.approx(slope, abs=0.02)
    low, high = slopes.interval
    assert float(low) < 0.4 < float(high)


def test_too_few_records_for_private_centres_are_refused_and_public_ones_are_not():
    """At n epsilon = 200 true nulls were rejected at 0.087 and 0.045 in the place of 0.05 and 0.01."""
    few = linear(jax.random.key(0), 200, dim=0)
    test = jaxdp.WinsorisedPartialCorrelation(epsilon=1.0, bound=5.0)
    with pytest.raises(ValueError, match="about 1000 records"):
        test.specialize(few)
    assert test.validity(few).verdict == "refuse"
    assert test.validity(linear(jax.random.key(0), 1000, dim=0)).verdict == "run"
    with pytest.raises(ValueError, match="records are needed"):
        jaxdp.WinsorisedPartialCorrelation(mechanism=jaxdp.Gaussian(rho=0.01), bound=5.0).specialize(few)
    public = jaxdp.WinsorisedPartialCorrelation(epsilon=1.0, bound=5.0, centres=0.0, scales=1.0)
    assert public.validity(few).verdict == "run"
    dataclasses.replace(test, enforce_rule=False).specialize(few)


def test_a_refusal_for_many_columns_of_z_names_the_way_out():
    z = jnp.zeros((2000, 6))
    with pytest.raises(ValueError, match="partial-correlation"):
        jaxdp.run(jaxdp.ContrastGCM(epsilon=1.0), jax.random.key(0), jaxdp.Data(jnp.zeros(2000), jnp.zeros(2000), z))


def table(n, dim):
    data = linear(jax.random.key(3), n, dim=dim)
    columns = {f"z{j}": np.asarray(data.z)[:, j] for j in range(dim)}
    return columns | {"x": 10.0 * np.asarray(data.x), "y": np.asarray(data.y)}


@pytest.mark.full
def test_a_table_with_seven_z_gives_an_effect_in_its_own_units():
    columns = table(20_000, 7)
    given = [name for name in columns if name.startswith("z")]
    bounds = {name: (-60.0, 60.0) if name == "x" else (-6.0, 6.0) for name in columns}
    asked = {"x": "x", "y": "y", "given": given, "epsilon": 50.0, "bounds": bounds, "key": jax.random.key(0)}
    found = jaxdp.test(columns, method="linear-regression", **asked)
    assert float(found.effect) == pytest.approx(0.04, abs=0.008)  # x is ten times as large as in the design
    low, high = map(float, found.interval)
    assert low < 0.04 < high


@pytest.mark.full
def test_two_groups_give_the_difference_in_their_own_units():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 5000)
    income = 50.0 + 8.0 * group + 10.0 * rng.normal(size=5000)
    columns = {"income": income, "arm": np.where(group, "b", "a")}
    public = {"bounds": {"income": (-200.0, 300.0)}, "levels": {"arm": ["a", "b"]}}
    found = jaxdp.test(
        columns, x="income", y="arm", epsilon=2.0, method="winsorised-mean-difference", key=jax.random.key(1), **public
    )
    assert float(found.effect) == pytest.approx(8.0, abs=1.5)
    assert float(found.interval[0]) < 8.0 < float(found.interval[1])
    assert float(found.p_value) < 1e-4


def test_groups_are_asked_for():
    with pytest.raises(ValueError, match="two levels"):
        jaxdp.run(jaxdp.WinsorisedMeanDifference(epsilon=1.0), jax.random.key(0), linear(jax.random.key(0), 50))


@functools.partial(jax.jit, static_argnums=(1, 2))
def answers(keys, n, epsilon):
    def one(key):
        key_data, key_test = jax.random.split(key)
        test = jaxdp.WinsorisedPartialCorrelation(epsilon=epsilon, bound=8.0, normal=True)
        result = jaxdp.run(test, key_test, linear_null(key_data, n))
        return result.p_value, *result.interval

    return jax.lax.map(one, keys, batch_size=25)


@pytest.mark.full
def test_level_and_coverage_with_private_centres():
    p_values, low, high = answers(jax.random.split(jax.random.key(0), 400), 1600, 1.0)
    assert 6 <= int(jnp.sum(p_values <= 0.05)) <= 38  # binomial window of 400 at 0.05, at 1e-3
    shown = ~jnp.isnan(low)
    assert int(jnp.sum(shown)) >= 390  # few contradict the p-value, which takes the null's variance
    assert int(jnp.sum((low <= 0.0) & (high >= 0.0))) >= 362


@pytest.mark.full
def test_an_error_law_without_the_noise_rejects_true_nulls():
    @jax.jit
    def p_value(key):
        key_data, key_test = jax.random.split(key)
        test = jaxdp.WinsorisedPartialCorrelation(epsilon=1.0, bound=8.0, centres=0.0, scales=1.0, clip=0.8)
        data = linear_null(key_data, 1000)
        test, released = test.specialize(data), jaxdp.release(test, key_test, data)
        null, _ = jax.tree.map(lambda leaf: leaf[0], test._asked(released))
        counted, ignored = (
            test.mechanism_in_force().combined_p_value(null.value, null.sd, share * null.noise) for share in (1.0, 0.0)
        )
        return counted, ignored

    counted, ignored = jax.lax.map(p_value, jax.random.split(jax.random.key(1), 300), batch_size=25)
    most = int(binom.isf(1e-6, 300, 0.05))  # of a test at its level
    assert int(jnp.sum(counted <= 0.05)) <= most < int(jnp.sum(ignored <= 0.05))


@pytest.mark.full
def test_all_pairs_come_from_one_release():
    drawn = jax.random.normal(jax.random.key(3), (3000, 3))
    chain = jnp.stack([drawn[:, 0], drawn[:, 0] + drawn[:, 1], drawn[:, 2]], axis=1)
    found = jaxdp.all_pairs(jaxdp.WinsorisedPartialCorrelation(epsilon=4.0, bound=8.0), jax.random.key(1), chain)
    assert float(found.cost.epsilon) == pytest.approx(4.0)
    assert len(found.releases) == 1
    assert float(found.p_values[0, 1]) < 1e-6
    assert min(float(found.p_values[0, 2]), float(found.p_values[1, 2])) > 1e-3


def test_an_answer_given_z_says_that_it_rests_on_normal_columns():
    """With a uniform Z and means linear in it, 0.139 of true nulls were rejected at n = 2000 without a word."""
    test = jaxdp.WinsorisedPartialCorrelation(epsilon=4.0, bound=8.0)
    given, alone = (linear(jax.random.key(0), 4000, dim=dim) for dim in (1, 0))
    assert test.validity(given).flags == ("margins",)
    assert test.validity(alone).flags == ()


@pytest.mark.parametrize(
    ("num_records", "num_given", "least"), [(1000, 1, 1.2), (5000, 1, 2.0), (20_000, 1, 3.0), (10_000, 5, 1.6)]
)
def test_columns_of_z_are_clipped_wider_where_the_noise_allows(num_records, num_given, least):
    shape = jax.ShapeDtypeStruct((num_records,), float)
    z = jax.ShapeDtypeStruct((num_records, num_given), float)
    test = jaxdp.WinsorisedPartialCorrelation(epsilon=1.0, centres=0.0, scales=1.0)
    made = test.specialize(jaxdp.Data(shape, shape, z))
    assert float(made.clip_z) >= max(least, float(made.clip))
    fixed = dataclasses.replace(test, clip=1.0).specialize(jaxdp.Data(shape, shape, z))
    assert float(fixed.clip_z) == 1.0
    asked = dataclasses.replace(test, clip_z=2.0).specialize(jaxdp.Data(shape, shape, z))
    assert float(asked.clip_z) == 2.0


def test_a_skewed_z_hardly_bends_partial_correlations():
    """Without noise: with slopes of 0.7 an exponential Z made -0.04 where it was clipped as X and Y are."""
    rng = np.random.default_rng(3)
    z = rng.exponential(size=200_000) - 1.0
    x, y = 0.7 * z + rng.standard_normal(200_000), -0.7 * z + rng.standard_normal(200_000)
    data = jaxdp.Data(*(jnp.asarray(part) for part in (x, y, z)))
    public = {
        "mechanism": Exact(),
        "bound": 20.0,
        "centres": np.array([-0.31, 0.0, 0.0]),
        "scales": np.array([0.71, 1.2, 1.2]),
    }
    with jax.enable_x64(True):
        narrow, wide = (
            float(
                jaxdp.run(
                    jaxdp.WinsorisedPartialCorrelation(clip=1.0, clip_z=of_z, **public), jax.random.key(0), data
                ).effect
            )
            for of_z in (1.0, 2.6)
        )
    assert abs(narrow) > 0.03
    assert abs(wide) < 0.012


def test_a_difference_of_groups_given_z_says_so_too():
    groups = two_groups(jax.random.key(0), 2000)
    test = jaxdp.WinsorisedMeanDifference(epsilon=4.0)
    assert test.validity(groups).flags == ()
    domain = dataclasses.replace(groups.domain, z=(Column(),))
    given = dataclasses.replace(groups, z=0.5 * groups.x, domain=domain)
    assert test.validity(given).flags == ("margins",)
