"""Simulation and release noise have one law; the same tests reject noise that is 2 % too wide or narrow."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from jaxdp.core import Norm, Relation, Sensitivity
from jaxdp.mechanisms import ExponentialMechanism, Gaussian, Geometric, Laplace, RankThreshold, ReportNoisyMax
from jaxdp.noise import lattice
from jaxdp.noise.source import FloatNoise, LatticeNoise
from jaxdp.randomness import chacha, keys

pytestmark = pytest.mark.optimised

SIZE = 200_000
ALPHA = 1e-6
PURE = {"laplace": Laplace, "geometric": Geometric}
SELECTIONS = {"argmax_exponential": ReportNoisyMax, "argmax_gumbel": ExponentialMechanism}
DRAWS = 300_000


def sensitivity(bound, norm=Norm.L1):
    return Sensitivity(bound, norm, Relation.REPLACE_ONE, lower=-1.0 * bound, upper=1.0 * bound)


def release_key(number: int):
    return chacha.wrap((1000 + number).to_bytes(32, "little"))


def source_of(release: bool):
    """What draws from a key in this mode."""
    return LatticeNoise if release else FloatNoise


@functools.lru_cache
def released(law: str, size: int = DRAWS):
    """Release noise of scale 3 (Laplace, geometric) or sd 3 (Gaussian), `size` draws."""
    with jax.enable_x64(True):
        if law == "gaussian":
            bound = sensitivity(3.0 * size**0.5, Norm.L2)
            return np.asarray(Gaussian(size / 2.0).perturb(LatticeNoise(release_key(1)), jnp.zeros(size), bound))
        bound, zeros = sensitivity(3.0 * size), jnp.zeros(size, int if law == "geometric" else float)
        return np.asarray(PURE[law](1.0 * size).perturb(LatticeNoise(release_key(2)), zeros, bound))


@functools.lru_cache
def simulated(law: str, size: int = DRAWS):
    source = FloatNoise(jax.random.key(5))
    if law == "gaussian":
        return np.asarray(Gaussian(0.5).perturb(source, jnp.zeros(size), sensitivity(3.0, Norm.L2)))
    return np.asarray(PURE[law](1.0).perturb(source, jnp.zeros(size), sensitivity(3.0)))


LAWS = {"laplace": scipy.stats.laplace(scale=3.0), "gaussian": scipy.stats.norm(scale=3.0)}


def binned_p_value(sample, law, scale=1.0):
    """Chi-square p-value over 40 bins of equal probability."""
    edges = law.ppf(np.linspace(0, 1, 41))
    counts = np.histogram(np.clip(scale * sample, -1e9, 1e9), np.clip(edges, -2e9, 2e9))[0]
    return scipy.stats.chisquare(counts).pvalue


@pytest.mark.parametrize("source", [released, simulated])
@pytest.mark.parametrize("law", sorted(LAWS))
def test_continuous_laws(law, source):
    sample = source(law)
    assert scipy.stats.kstest(sample, LAWS[law].cdf).pvalue > ALPHA
    assert binned_p_value(sample, LAWS[law]) > ALPHA
    for scale in (0.98, 1.02):
        assert binned_p_value(sample, LAWS[law], scale) < ALPHA


@pytest.mark.parametrize("law", sorted(LAWS))
def test_the_two_modes_agree(law):
    assert scipy.stats.ks_2samp(released(law), simulated(law)).pvalue > ALPHA
    for scale in (0.95, 1.05):
        assert scipy.stats.ks_2samp(scale * released(law), simulated(law)).pvalue < ALPHA


def geometric_counts(sample, limit=25):
    return np.array(
        [np.sum(sample <= -limit), *(np.sum(sample == k) for k in range(1 - limit, limit)), np.sum(sample >= limit)]
    )


def geometric_law(scale, limit=25):
    k = np.arange(1 - limit, limit)
    step = np.exp(-1 / scale)
    atoms = (1 - step) / (1 + step) * step ** np.abs(k)
    tail = step**limit / (1 + step)
    return np.array([tail, *atoms, tail])


@pytest.mark.parametrize("source", [released, simulated])
def test_geometric_law(source):
    counts = geometric_counts(source("geometric"))
    assert scipy.stats.chisquare(counts, counts.sum() * geometric_law(3.0)).pvalue > ALPHA
    for scale in (2.94, 3.06):
        assert scipy.stats.chisquare(counts, counts.sum() * geometric_law(scale)).pvalue < ALPHA


def permute_and_flip_law(scores, epsilon, bound):
    """Exact selection probabilities of exponential noise of mean 2 bound/epsilon, by quadrature."""
    rate = epsilon / (2 * bound)
    top = np.arange(0.0, 80.0 / rate, 1e-3 / rate) + max(scores)
    cdf = 1 - np.exp(-rate * (top[:, None] - np.array(scores)))
    density = rate * np.exp(-rate * (top[:, None] - np.array(scores)))
    others = np.prod(cdf, axis=1, keepdims=True) / np.where(cdf > 0, cdf, 1)
    others[0] = [np.prod(np.delete(cdf[0], i)) for i in range(len(scores))]
    return np.trapezoid(density * others, top, axis=0)


SCORES, EPSILON = (0.0, 1.3, 1.0, -2.0), 1.4


def selections(law: str, release: bool, size: int):
    """Selected indices of `size` runs."""
    scores = jnp.array(SCORES)
    bound = sensitivity(1.0, Norm.LINF)

    def one(key):
        return SELECTIONS[law](epsilon=EPSILON).perturb(source_of(release)(key), scores, bound)

    key = release_key(3) if release else jax.random.key(3)
    return np.asarray(jax.jit(lambda key: jax.lax.map(one, jax.random.split(key, size), batch_size=500))(key))


@pytest.mark.parametrize("release", [True, False])
@pytest.mark.parametrize("law", sorted(SELECTIONS))
def test_selection_laws(law, release):
    size = 6_000 if release else 20_000
    with jax.enable_x64(release):
        chosen = selections(law, release, size)
    if law == "argmax_gumbel":
        wanted = np.exp(EPSILON / 2 * np.array(SCORES))
        wanted, other = wanted / wanted.sum(), permute_and_flip_law(SCORES, EPSILON, 1.0)
    else:
        wanted = permute_and_flip_law(SCORES, EPSILON, 1.0)
        other = np.exp(EPSILON / 2 * np.array(SCORES)) / np.sum(np.exp(EPSILON / 2 * np.array(SCORES)))
    counts = np.bincount(chosen, minlength=4)
    assert abs(wanted.sum() - 1) < 1e-6
    assert scipy.stats.chisquare(counts, size * wanted / wanted.sum()).pvalue > ALPHA
    assert scipy.stats.chisquare(counts, size * other / other.sum()).pvalue < ALPHA


@pytest.mark.parametrize("release", [True, False])
def test_rank_decision_law(release):
    size, scale = 20_000, 2.0
    decision, bounds = RankThreshold(epsilon=1.0, level=0.25), [sensitivity(1.0, Norm.LINF)] * 2
    reference, others = jnp.asarray(3.0), jnp.array([0.0, 1.0, 2.5])
    key = release_key(4) if release else jax.random.key(4)

    def one(key):
        return decision.perturb(source_of(release)(key), (reference, others), bounds)

    with jax.enable_x64(release):
        reference, others = jnp.asarray(3.0, float), jnp.array([0.0, 1.0, 2.5], float)
        rejected = jax.jit(lambda key: jax.lax.map(one, jax.random.split(key, size), batch_size=500))(key)
    noise = np.random.default_rng(0).laplace(scale=scale, size=(4, 2_000_000))
    wanted = np.mean(np.all(np.array([0.0, 1.0, 2.5])[:, None] + noise[1:] < 3.0 + noise[0], axis=0))
    sd = (wanted * (1 - wanted) * (1 / size + 1 / 2e6)) ** 0.5
    assert abs(float(np.mean(rejected)) - wanted) < 5 * sd


def test_modes_use_their_own_generator():
    assert keys.mode_of(release_key(1)) == keys.RELEASE
    assert keys.mode_of(jax.random.key(1)) == keys.SIMULATION


@pytest.mark.nightly
@pytest.mark.parametrize("law", ["laplace", "geometric", "gaussian"])
def test_no_draw_leaves_lattice_or_window_in_1e8(law):
    for number in range(100):
        size = 1_000_000
        with jax.enable_x64(True):
            bound = sensitivity(3.0 * size, Norm.L2 if law == "gaussian" else Norm.L1)
            draw = getattr(lattice, law)
            zeros = jnp.zeros(size, int if law == "geometric" else float)
            noisy, facts = draw(release_key(10 + number), zeros, bound, 1.0 * size)
        steps = np.asarray(noisy) / float(facts.step)
        assert np.array_equal(steps, np.round(steps))
        assert facts.low <= steps.min() <= steps.max() <= facts.high
