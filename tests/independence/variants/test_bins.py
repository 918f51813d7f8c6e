"""Scores within bins of a covariate: their bounds, what they are, when they are taken, and the level at steps."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binom
from test_score_test import check_reached

import jaxdp
from jaxdp.audit import bounds
from jaxdp.data.dataset import BINARY, CATEGORICAL, ORDINAL, Column, Data, Domain
from jaxdp.independence.variants import covariates, score_examples, score_test
from jaxdp.independence.variants.score_test import JUMPS, ScoreTest
from jaxdp.statistics import score_sums

LEVEL = 0.05


def about_bins(mechanism=None, count=50):
    """The last stage within bins, with lines and null model at zero."""
    budget = {"epsilon": 1.0} if mechanism is None else {"mechanism": mechanism}
    return ScoreTest(**{**score_examples.ABOUT_BINS, "bins": (0, count)}, **budget)


@pytest.mark.parametrize("mechanism", [None, jaxdp.Gaussian(0.5)], ids=["laplace", "gaussian"])
def test_scores_within_bins_reach_their_bounds_and_never_pass_them(mechanism):
    """A bound of nine tenths would be passed."""
    check_reached(about_bins(mechanism), score_examples.worst_pairs_in_bins())


@pytest.mark.parametrize("count", [1, 3])
def test_random_neighbours_never_pass_the_bounds_within_bins(count):
    starts = score_examples.worst_pairs_in_bins(4)
    found = bounds.search(about_bins(count=count), score_examples.null_cohort, 9, rounds=3, lanes=60, starts=starts)
    assert all(one.share <= 1.0 + 1e-9 for one in found.values())
    if count > 1:
        assert found["scores"].share > 0.75


def test_the_sums_are_those_of_deviations_from_the_means_of_bins():
    generator = np.random.default_rng(0)
    x, r = generator.uniform(-1, 1, (60, 3)), np.round(generator.uniform(-1, 1, 60) * 2**13) / 2**13
    bins = generator.integers(0, 7, 60)
    bins[bins == 4] = 5  # one bin is empty
    bins[0] = 6
    lines = jnp.zeros((3, 1))
    found = score_sums.scores(jnp.asarray(x), lines, jnp.ones((60, 1)), jnp.asarray(r), (jnp.asarray(bins), 7))
    products, squares = np.zeros(3), np.zeros(3)
    for one in set(bins):
        own = bins == one
        h, s = x[own] - x[own].mean(axis=0), r[own] - r[own].mean()
        products, squares = products + h.T @ s, squares + (h**2).sum(axis=0)
    np.testing.assert_allclose(found["scores"], products, atol=0.02)  # the grid of values
    np.testing.assert_allclose(found["spread"], squares, atol=0.02)
    assert np.all(np.abs(products - (x.T @ r)) > 0.05)


def test_bins_are_equal_parts_of_the_range_or_levels():
    z = jnp.array([[-1.0, 0.0], [-0.51, 1.0], [-0.49, 2.0], [0.0, 1.0], [0.49, 2.0], [1.0, 0.0], [jnp.nan, 1.0]])
    columns = (Column(), Column(ORDINAL, 3))
    assert covariates.cut(z, columns, 0, 4, 1.0).tolist() == [0, 0, 1, 2, 2, 3, 2]
    assert covariates.cut(z, columns, 1, 3, 1.0).tolist() == [0, 1, 2, 1, 2, 0, 1]


def started(columns, n=10_000, epsilon=4.0, **fields):
    domain = Domain((Column(ORDINAL, 3),), (Column(),), columns)
    return ScoreTest(epsilon=epsilon, **fields).started(
        Data(np.zeros((n, 1)), np.zeros(n), np.zeros((n, len(columns))), domain)
    )


def test_scores_are_within_bins_of_the_only_covariate_of_many_values_where_the_noise_allows_it():
    assert started((Column(),)).bins == (0, 1250)
    assert started((Column(BINARY, 2), Column(), Column(CATEGORICAL, 4))).bins == (1, 1250)
    assert started((Column(ORDINAL, 40),)).bins == (0, 40)
    none = [((Column(), Column()), {}), ((Column(BINARY, 2),), {}), ((Column(),), {"knots": 2})]
    none += [((Column(),), {"epsilon": 0.5}), ((Column(),), {"null_model": score_examples.zero_mean})]
    assert [started(columns, **fields).bins for columns, fields in none] == [None] * len(none)


def test_jumps_are_flagged_where_they_can_do_harm():
    def flags(columns, **fields):
        test = ScoreTest(epsilon=4.0, **fields)
        return test.validity(
            Data(
                np.zeros((50_000, 1)),
                np.zeros(50_000),
                np.zeros((50_000, len(columns))),
                Domain((Column(),), (Column(),), columns),
            )
        ).flags

    assert flags((Column(),)) == flags((Column(BINARY, 2),)) == flags((Column(), Column(BINARY, 2))) == ()
    assert JUMPS in flags((Column(), Column()))


def stepped(key, n):
    """x and y both jump at one value of a normal covariate, y by two residual sds, and nothing else joins them."""
    key_z, key_x, key_y = jax.random.split(key, 3)
    z = jnp.clip(jax.random.normal(key_z, (n,)) / 3.5, -1.0, 1.0)
    above = z > 0.1
    x = jnp.sum(jax.random.uniform(key_x, (2, n, 1)) < jnp.where(above, 0.45, 0.15)[None, :, None], axis=0) - 1.0
    return Data(x, 0.4 * above - 0.2 + 0.15 * jnp.clip(jax.random.normal(key_y, (n,)), -4.0, 4.0), z)


def stepped_with_sex(key, n):
    """The same with a second, binary covariate that both follow too."""
    key_z, key_data = jax.random.split(key)
    sex, data = jax.random.bernoulli(key_z, 0.5, (n,)).astype(float), stepped(key_data, n)
    columns = (Column(), Column(BINARY, 2))
    x = jnp.where((sex > 0.5)[:, None] & (data.x == 0.0), 1.0, data.x)
    return Data(
        x,
        jnp.clip(data.y + 0.2 * sex, -1.0, 1.0),
        jnp.stack([data.z, sex], 1),
        Domain((Column(),), (Column(),), columns),
    )


def rejections(draw, n, epsilon, replicates):
    def one(key):
        first, second = jax.random.split(key)
        return jaxdp.run(ScoreTest(epsilon=epsilon), second, draw(first, n)).p_value

    keys = jax.random.split(jax.random.key(11), replicates)
    found = jax.jit(lambda keys: jax.lax.map(one, keys, batch_size=20))(keys)
    return int(np.sum(np.asarray(found) <= LEVEL))


@pytest.mark.full
@pytest.mark.optimised
@pytest.mark.parametrize("draw", [stepped, stepped_with_sex])
def test_level_where_both_means_jump_at_one_value(draw, monkeypatch):
    assert rejections(draw, 4000, 4.0, 100) <= binom.ppf(1 - 1e-5, 100, LEVEL)
    monkeypatch.setattr(score_test, "AFFORDABLE", 0.0)
    assert rejections(draw, 4000, 4.0, 40) > binom.ppf(1 - 1e-5, 40, LEVEL)  # by hats alone
