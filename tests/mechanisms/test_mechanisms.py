"""Mechanisms: the laws of their noise, both ways; selection probabilities; costs; public mistakes."""

import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxdp
from jaxdp import mechanisms
from jaxdp._base.rounding import as_fraction
from jaxdp.core import Cost, Norm, Relation, Sensitivity
from jaxdp.noise.source import FloatNoise, source_from_key

LAW = jaxdp.GaussianLaw(function=lambda z: z, noise_sd=1.0)

DRAWS = 40_000
ADDITIVE = {
    "laplace": (mechanisms.Laplace(0.5), Norm.L1, lambda: stats.laplace(scale=6.0)),
    "gaussian": (mechanisms.Gaussian(0.5), Norm.L2, lambda: stats.norm(scale=3.0)),
}


def sensitivity(norm, bound=3.0):
    return Sensitivity(bound, norm, Relation.REPLACE_ONE)


@pytest.mark.parametrize("name", ADDITIVE)
def test_additive_noise_has_its_law_and_no_other(name):
    mechanism, norm, law = ADDITIVE[name]
    noisy = mechanism.perturb(FloatNoise(jax.random.key(0)), jnp.full(DRAWS, 7.0), sensitivity(norm))
    noise = np.asarray(noisy) - 7.0
    assert stats.kstest(noise, law().cdf).pvalue > 1e-4
    for wrong in (0.5, 2.0):
        assert stats.kstest(noise * wrong, law().cdf).pvalue < 1e-9
    null = np.asarray(mechanism.noise(jax.random.key(1), sensitivity(norm), (DRAWS,)))
    assert stats.ks_2samp(noise, null).pvalue > 1e-4
    assert float(mechanism.variance(sensitivity(norm))) == pytest.approx(law().var(), rel=1e-6)


def test_geometric_noise_has_its_law_and_no_other():
    mechanism = mechanisms.Geometric(0.5)
    one = sensitivity(Norm.L1, 2.0)
    noise = np.asarray(mechanism.perturb(FloatNoise(jax.random.key(0)), jnp.full(DRAWS, 5.0), one)) - 5.0
    assert np.all(noise == np.round(noise))
    edges = np.arange(-10, 11)
    observed = np.array([(noise == k).sum() for k in edges])

    def p_value(scale):
        ratio = math.exp(-1 / scale)
        expected = DRAWS * (1 - ratio) / (1 + ratio) * ratio ** np.abs(edges)
        rest = DRAWS - expected.sum()
        return stats.chisquare([*observed, DRAWS - observed.sum()], [*expected, rest]).pvalue

    assert p_value(4.0) > 1e-4
    assert p_value(2.0) < 1e-9
    assert p_value(8.0) < 1e-9


@pytest.mark.parametrize("mode", ["simulation", "release"])
def test_max_norm_noise_has_its_law_and_no_other(mode):
    """Radius: gamma of d + 1 with the maximum of a uniform point, a gamma law of d; each coordinate symmetric."""
    size, draws, bound = 5, 400, Sensitivity(3.0, Norm.LINF, Relation.REPLACE_ONE, lower=-10.0, upper=10.0)
    mechanism = mechanisms.MaxNorm(0.5)
    with jax.enable_x64(True):
        sources = [source_from_key(jaxdp.fresh_key()) for _ in range(draws)] if mode == "release" else []
        sources = sources or [FloatNoise(key) for key in jax.random.split(jax.random.key(0), draws)]
        noise = np.stack([mechanism.perturb(source, jnp.zeros(size), bound) for source in sources])
        drawn = np.asarray(mechanism.noise(jax.random.key(1), bound, (4000, 2), among=size))
    law = stats.gamma(size, scale=6.0)
    norms = np.abs(noise).max(axis=1)
    assert stats.kstest(norms, law.cdf).pvalue > 1e-4
    for wrong in (0.8, 1.25):
        assert stats.kstest(norms * wrong, law.cdf).pvalue < 1e-6
    assert stats.ks_2samp(noise.ravel(), drawn.ravel()).pvalue > 1e-4
    assert float(np.sqrt(mechanism.variance(bound, size))) == pytest.approx(drawn.std(), rel=0.05)


def test_numerical_error_widens_the_noise():
    wide = Sensitivity(1.0, Norm.L1, Relation.REPLACE_ONE, error=0.5)
    assert float(mechanisms.Laplace(1.0).scale(wide)) == pytest.approx(2.0)


SCORES = np.array([0.0, -1.0, -3.0])


def permute_and_flip_probabilities(scores, factor):
    """Exact law of permute-and-flip by enumeration of the permutations (McKenna and Sheldon 2020)."""
    accept = np.exp(factor * (scores - scores.max()))
    total = np.zeros(len(scores))
    for order in itertools.permutations(range(len(scores))):
        alive = 1.0
        for item in order:
            total[item] += alive * accept[item]
            alive *= 1 - accept[item]
    return total / math.factorial(len(scores))


@pytest.mark.parametrize("kind", ["ReportNoisyMax", "PermuteAndFlip", "ExponentialMechanism"])
def test_selection_probabilities(kind):
    epsilon, bound = 2.0, 1.5
    mechanism = getattr(mechanisms, kind)(epsilon=epsilon)
    scores = jnp.tile(jnp.asarray(SCORES, jnp.float32), (DRAWS, 1))
    picks = mechanism.perturb(FloatNoise(jax.random.key(2)), scores, sensitivity(Norm.LINF, bound))
    counts = np.bincount(np.asarray(picks), minlength=3)
    factor = epsilon / (2 * bound)
    weights = np.exp(factor * SCORES)
    expected = (
        weights / weights.sum() if kind == "ExponentialMechanism" else permute_and_flip_probabilities(SCORES, factor)
    )
    assert stats.chisquare(counts, DRAWS * expected).pvalue > 1e-4
    wrong = np.exp(2 * factor * SCORES)
    assert stats.chisquare(counts, DRAWS * wrong / wrong.sum()).pvalue < 1e-9


def test_selection_keeps_its_epsilon_exactly():
    """Over all moves of the scores by +-bound: the loss is at most epsilon and reaches 0.9 of it."""
    epsilon, worst = 1.0, 0.0
    for moves in itertools.product((-1.0, 1.0), repeat=3):
        for start in (SCORES, 4 * SCORES):
            p, q = (permute_and_flip_probabilities(s, epsilon / 2) for s in (start, start + moves))
            worst = max(worst, np.abs(np.log(p / q)).max())
    assert 0.9 * epsilon < worst <= epsilon + 1e-9


def test_rank_threshold_compares_with_the_right_noise():
    mechanism = mechanisms.RankThreshold(epsilon=1.0, level=0.5)
    parts = (sensitivity(Norm.LINF, 2.0), sensitivity(Norm.LINF, 6.0))
    keys = jax.random.split(jax.random.key(3), DRAWS)
    decide = jax.jit(
        jax.vmap(lambda key: mechanism.perturb(FloatNoise(key), (jnp.array(8.0), jnp.array([0.0])), parts))
    )
    rate = float(jnp.mean(decide(keys)))
    # 1 + #{T_1 + Z_1 >= T_0 + Z_0} <= 1 iff Z_1 - Z_0 < 8, both Laplace of scale 8: F(1) = 1 - (2 + 1)/(4 e)
    expected = 1 - 3 / (4 * math.e)
    assert abs(rate - expected) < 5 * math.sqrt(expected * (1 - expected) / DRAWS)


def test_costs():
    relation = Relation.REPLACE_ONE
    assert mechanisms.Laplace(2.0).cost(relation).rho == pytest.approx(2.0)
    assert mechanisms.ExponentialMechanism(epsilon=2.0).cost(relation).rho == pytest.approx(0.5)
    assert np.isinf(mechanisms.Gaussian(0.5).cost(relation).epsilon)
    split = mechanisms.Split(parts={"a": mechanisms.Laplace(0.25), "b": mechanisms.Laplace(0.5)})
    assert split.cost(relation).epsilon == pytest.approx(0.75)
    with pytest.raises(ValueError, match="do not add up"):
        Cost(1.0) + Cost(1.0, relation=Relation.ADD_OR_REMOVE_ONE)


def test_split_draws_independent_noise():
    split = mechanisms.Split(parts={"a": mechanisms.Laplace(1.0), "b": mechanisms.Laplace(1.0)})
    one = sensitivity(Norm.L1, 1.0)
    zeros = {"a": jnp.zeros(DRAWS), "b": jnp.zeros(DRAWS)}
    noise = split.perturb(FloatNoise(jax.random.key(4)), zeros, {"a": one, "b": one})
    assert abs(stats.spearmanr(noise["a"], noise["b"]).statistic) < 5 / math.sqrt(DRAWS)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, 1e-45])
@pytest.mark.parametrize(
    "make",
    [
        mechanisms.Laplace,
        mechanisms.Gaussian,
        mechanisms.Geometric,
        lambda e: mechanisms.ReportNoisyMax(epsilon=e),
        lambda e: mechanisms.ExponentialMechanism(epsilon=e),
        lambda e: mechanisms.RankThreshold(epsilon=e),
        lambda e: jaxdp.PartitionGCM(epsilon=e),
        lambda e: jaxdp.PrivateGCM(epsilon=e),
        lambda e: jaxdp.LocalPermutation(epsilon=e),
    ],
)
def test_bad_budgets_raise_at_once(make, bad):
    with pytest.raises(ValueError, match="must be a finite number > 0"):
        make(bad)


def test_the_wrong_norm_is_refused():
    with pytest.raises(ValueError, match="L1 bound"):
        mechanisms.Laplace(1.0).scale(sensitivity(Norm.L2))
    with pytest.raises(ValueError, match="Linf bound"):
        mechanisms.ReportNoisyMax(epsilon=1.0).perturb(
            FloatNoise(jax.random.key(0)), jnp.zeros(3), sensitivity(Norm.L1)
        )


def test_a_budget_is_required_and_only_one():
    with pytest.raises(ValueError, match="needs a privacy budget"):
        jaxdp.PartitionGCM()
    with pytest.raises(ValueError, match="not both"):
        jaxdp.PartitionGCM(epsilon=1.0, mechanism=jaxdp.Laplace(1.0))


def test_shares_of_a_budget_never_add_up_to_more():
    rng = np.random.default_rng(0)
    for epsilon in (*np.round(rng.uniform(0.01, 9, 300), 2), 0.1, 1 / 3, 1.39):
        for make in (jaxdp.PartitionGCM, jaxdp.ConditionalKendall, functools.partial(jaxdp.CRTNormal, law=LAW)):
            parts = make(epsilon=float(epsilon)).mechanism_in_force().parts.values()
            assert sum(as_fraction(part.epsilon) for part in parts) <= as_fraction(float(epsilon))


@pytest.mark.parametrize(("mechanism", "budget"), [(jaxdp.Laplace(2.0), "epsilon"), (jaxdp.Gaussian(2.0), "rho")])
def test_shares_of_a_budget_can_be_differentiated(mechanism, budget):
    def amounts(share):
        parts = jaxdp.mechanisms.divide(mechanism, {"a": share, "b": 1.0 - share}).parts
        return getattr(parts["a"], budget), getattr(parts["b"], budget)

    values, slopes = amounts(0.25), jax.jacobian(amounts)(0.25)
    assert values == (0.5, 1.5)
    np.testing.assert_allclose(jax.jit(amounts)(0.25), values, rtol=1e-6)
    np.testing.assert_allclose(slopes, (2.0, -2.0), rtol=1e-6)

    def too_much(share):
        return getattr(jaxdp.mechanisms.divide(mechanism, {"a": share, "b": 1.0}).parts["a"], budget)

    assert float(jax.jit(too_much)(1.0)) == pytest.approx(1.0, rel=1e-6) == too_much(1.0)
    assert float(jax.grad(too_much)(1.0)) == pytest.approx(0.5, rel=1e-6)  # of 2 s / (1 + s)
    assert np.isnan(jax.jit(too_much)(-0.5))


def test_exact_shares_stay_exact():
    parts = jaxdp.mechanisms.divide(jaxdp.Laplace(0.1), {"a": 0.85, "b": 1 - 0.85}).parts
    assert all(isinstance(part.epsilon, float) for part in parts.values())
    assert sum(as_fraction(part.epsilon) for part in parts.values()) <= as_fraction(0.1)
