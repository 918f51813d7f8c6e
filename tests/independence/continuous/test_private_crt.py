"""Conditional randomisation tests: bounds, exact level, and what the published noise would really cost."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from test_gcm import rate, window

import jaxdp
from jaxdp.independence.continuous import private_crt
from jaxdp.published import PaperCRT
from jaxdp.simulate.designs.confounder import SineLaw, sine_confounder
from jaxdp.statistics.kernel_ridge import ridge_bounds

pytestmark = pytest.mark.optimised

LAW = SineLaw(noise_sd=1.0, complexity=2.0)


@pytest.mark.full
@pytest.mark.parametrize(
    ("form", "fields"),
    [
        (jaxdp.PrivateCRT, {"num_resamples": 39}),
        (jaxdp.PrivateCRT, {"num_resamples": 39, "alternative": "greater"}),
        (jaxdp.CRTNormal, {}),
        (PaperCRT, {}),
    ],
    ids=["threshold", "threshold-greater", "normal", "paper"],
)
def test_type_one_error_at_ten_thousand_nulls(form, fields):
    test = form(epsilon=1.0, law=LAW, **fields)
    count = rate(test, 200, 0.0, 10_000)
    low, high = window(10_000)
    if form is PaperCRT:
        low = 0  # no level theorem: conservative is allowed, liberal is not
    assert low <= count.rejections <= high


def test_the_exact_level_holds_at_twenty_records():
    test = jaxdp.PrivateCRT(epsilon=1.0, law=LAW, num_resamples=19, level=0.05)
    count = rate(test, 20, 0.0, 10_000, seed=1)
    low, high = window(10_000)
    assert low <= count.rejections <= high


@pytest.mark.full
def test_power_beats_the_published_release():
    ours, normal, published = (
        rate(form(epsilon=1.0, law=LAW), 1000, 0.25, 300).rate for form in (jaxdp.PrivateCRT, jaxdp.CRTNormal, PaperCRT)
    )
    assert ours > 0.9
    assert normal > 0.9
    assert published < 0.5


@pytest.mark.parametrize(("part", "x", "ends"), [("statistic", 9.0, (1.0, -1.0)), ("variance", 0.0, (1.0, 0.0))])
def test_an_attack_reaches_the_bound(part, x, ends):
    test = jaxdp.CRTNormal(epsilon=1.0, law=LAW, winsorize=1.0)
    z = np.zeros(5)
    with jax.enable_x64(True):
        before, after = (
            float(test.statistic(None, jaxdp.Data(np.full(5, x), np.array([y, 1, 1, 1, 1.0]), z))[part]) for y in ends
        )
        bound = float(test.sensitivity(5)[part].bound)
    assert 0.9 * bound < abs(before - after) <= bound * (1 + 1e-12)
    assert test.sensitivity(5)["statistic"].bound == private_crt.PLAIN_BOUND


def test_rank_scores_move_by_twice_delta_and_no_more():
    """Sorted distances to T_0 when every statistic moves by Delta: Lemma 4.3, attained."""
    rng, worst = np.random.default_rng(0), 0.0
    for _ in range(2000):
        t = rng.normal(size=6) * 3
        moved = t + rng.choice([-1.0, 1.0], size=6)
        scores = [-np.abs(np.sort(v)[::-1] - v[0]) for v in (t, moved)]
        worst = max(worst, np.abs(scores[0] - scores[1]).max())
    assert 0.9 * 2.0 < worst <= 2.0 + 1e-12


def rank_losses(t, shifts, scale):
    """Log-ratios of P(rank of entry 0 = k) under t and t + shifts, Laplace noise on all, by quadrature."""
    grid = np.linspace(-60, 60, 24_001)

    def law(values):
        density = stats.laplace.pdf(grid, loc=values[0], scale=scale)
        counts = np.zeros((len(values), grid.size))
        counts[0] = 1.0
        for other in values[1:]:
            above = stats.laplace.sf(grid, loc=other, scale=scale)
            counts[1:] = counts[1:] * (1 - above) + counts[:-1] * above
            counts[0] *= 1 - above
        return np.trapezoid(counts * density, grid, axis=1)

    before, after = law(np.asarray(t)), law(np.asarray(t) + shifts)
    decisions = [np.cumsum(p)[:-1] for p in (before, after)]
    one_threshold = max(
        np.abs(np.log(decisions[0] / decisions[1])).max(), np.abs(np.log((1 - decisions[0]) / (1 - decisions[1]))).max()
    )
    return np.abs(np.log(before / after)).max(), one_threshold


def test_one_threshold_is_private_and_the_whole_rank_is_not():
    """With Laplace noise of scale 2 Delta/epsilon a decision costs epsilon, the rank 1.09 epsilon."""
    t = [-6.233, -0.316, 3.977, 3.788, -0.818, -0.42]
    shifts = np.array([1, -1, 1, 1, -1, -1.0])
    full, threshold = rank_losses(t, shifts, scale=2.0)
    assert full > 1.08
    assert threshold <= 1.0 + 1e-6
    rng = np.random.default_rng(1)
    worst = 0.0
    for _ in range(60):
        m = rng.integers(2, 9)
        losses = rank_losses(rng.normal(size=m) * 4, rng.choice([-1.0, 1.0], size=m), scale=2.0)
        worst = max(worst, losses[1])
    assert worst <= 1.0 + 1e-6
    # the decision's bound is tight: T_0 moves one way, its only rival the other
    assert rank_losses([-30.0, 0.0], np.array([1.0, -1.0]), scale=2.0)[1] > 0.9


def test_the_published_constant_is_larger_than_the_tight_one():
    with jax.enable_x64(True):
        for ridge, expected in ((10.0, 2.50), (1.0, 4.5), (0.1, 13.3)):
            assert float(ridge_bounds.delta_one(ridge)) == pytest.approx(expected, rel=0.01)


@pytest.mark.full
def test_non_private_crt_is_exact_and_two_sided():
    count = rate(jaxdp.CRT(law=LAW, num_resamples=19), 50, 0.0, 4000)
    low, high = window(4000)
    assert low <= count.rejections <= high
    for effect in (0.5, -0.5):
        assert rate(jaxdp.CRT(law=LAW, num_resamples=19), 200, effect, 100).rate > 0.9
    assert rate(jaxdp.CRT(law=LAW, num_resamples=19, alternative="less"), 200, 0.5, 100).rate < 0.05


def test_a_law_is_required_and_few_resamples_are_refused():
    with pytest.raises(ValueError, match="needs law="):
        jaxdp.PrivateCRT(epsilon=1.0)
    with pytest.raises(ValueError, match="can never reject"):
        jaxdp.PrivateCRT(epsilon=1.0, law=LAW, num_resamples=10)


@pytest.mark.full
def test_bernoulli_law_moments_match_simulation():
    law = jaxdp.BernoulliLaw(function=lambda z: 0.2 + 0.5 * (z > 0))
    z = jnp.array([-1.0, 1.0])
    mean, variance = law.clipped_moments(z, 0.6)
    keys = jax.random.split(jax.random.key(2), 40_000)
    draws = jax.vmap(lambda k: jnp.clip((law.sample(k, z) - law.mean(z)) / 0.6, -1, 1))(keys)
    np.testing.assert_allclose(draws.mean(0), mean, atol=5 * 0.8 / 200)
    np.testing.assert_allclose(draws.var(0), variance, atol=0.01)
    test = jaxdp.CRTNormal(epsilon=2.0, law=law)

    def design(key, n):
        key_z, key_x, key_y = jax.random.split(key, 3)
        z = jax.random.normal(key_z, (n,))
        return jaxdp.Data(law.sample(key_x, z), z + jax.random.normal(key_y, (n,)), z)

    count = jaxdp.power.rejection_rate(test, functools.partial(design, n=500), jax.random.key(3), 4000)
    assert count.rejections <= window(4000)[1]


@pytest.mark.full
@pytest.mark.parametrize("alternative", ["two-sided", "less"])
def test_statistics_of_given_resamples_are_those_of_drawn_ones(alternative):
    test = jaxdp.CRT(law=LAW, num_resamples=5, alternative=alternative)
    data, key = sine_confounder(jax.random.key(0), n=40, effect=0.5), jax.random.key(1)
    resamples = jnp.stack([LAW.sample(jax.random.fold_in(key, number), data.z) for number in range(5)])
    for drawn, given in zip(test.statistic(key, data), test.statistic_of_resamples(data, resamples), strict=True):
        np.testing.assert_allclose(given, drawn, rtol=1e-4)
    with pytest.raises(ValueError, match=r"resamples must have shape \(m, 40\)"):
        test.statistic_of_resamples(data, resamples[:, :10])
