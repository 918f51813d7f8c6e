"""Sparse vector: loss of every transcript by quadrature, the noise law, amplification, corrected error bounds."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binom

from jaxdp.accounting.amplification import amplified, before_amplification
from jaxdp.core import Relation
from jaxdp.discovery.methods import priv_pc
from jaxdp.mechanisms.sparse_vector import SparseVector, exponential_gap_tail

GRID = 20_001


def tail(x, scale, kind):
    """P(noise >= x) of uncentred query noise."""
    if kind == "exponential":
        return np.exp(-np.maximum(x, 0.0) / scale)
    return np.where(x >= 0, 0.5 * np.exp(-np.abs(x) / scale), 1.0 - 0.5 * np.exp(-np.abs(x) / scale))


def transcript_probabilities(queries, scales, kind, max_above, patterns=None):
    """P(each pattern of answers), integrating over the threshold noise; stops after max_above yes-answers."""
    threshold_scale, query_scale = scales
    reach = 60.0 * max(scales)
    rho, step = np.linspace(0.0 if kind == "exponential" else -reach, reach, GRID, retstep=True)
    density = np.exp(-np.abs(rho) / threshold_scale) / threshold_scale / (1.0 if kind == "exponential" else 2.0)
    weights = np.full(GRID, step)
    weights[[0, -1]] /= 2
    fires = [tail(rho - query, query_scale, kind) for query in queries]
    result = {}
    for pattern in patterns or itertools.product([False, True], repeat=len(queries)):
        cut = [k for k in range(len(pattern)) if sum(pattern[: k + 1]) == max_above]
        shown = pattern[: cut[0] + 1] if cut else pattern
        terms = [fires[k] if yes else 1.0 - fires[k] for k, yes in enumerate(shown)]
        result[shown] = float(np.sum(weights * density * np.prod(terms, axis=0)))
    return result


def worst_loss(svt, scales=None, num_queries=4):
    """Largest log ratio of any transcript over neighbours at, above and far below the threshold."""
    worst = 0.0
    scales = tuple(float(s) for s in svt.scales()) if scales is None else scales
    # No-answers at or above the threshold push the threshold noise up, yes-answers below it push it down.
    high, low = (0.0, 2.0, 5.0, 8.0), (0.0, -6.0, -12.0)
    starts = [
        max(scales) * np.array([up] * (num_queries - yes) + [down] * yes)
        for up in high
        for down in low
        for yes in range(svt.max_above + 1)
    ]
    for start in starts:
        for signs in itertools.product([-1.0, 1.0], repeat=num_queries):
            before = transcript_probabilities(start, scales, svt.noise, svt.max_above)
            after = transcript_probabilities(
                start + np.array(signs) * float(svt.bound), scales, svt.noise, svt.max_above
            )
            for shown, p in before.items():
                if p > 1e-25 and after[shown] > 1e-25:
                    worst = max(worst, abs(math.log(p / after[shown])))
    return worst


@pytest.mark.parametrize(("kind", "max_above"), [("exponential", 1), ("exponential", 2), ("laplace", 1)])
def test_transcript_loss_is_at_most_epsilon_and_nearly_reached(kind, max_above):
    loss = worst_loss(SparseVector(epsilon=1.0, max_above=max_above, noise=kind))
    assert loss <= 1.0 + 1e-3
    assert loss >= 0.99


@pytest.mark.parametrize("shrink", [1.0, 0.9])
def test_a_whole_round_of_sieve_and_examine_spends_its_epsilon(shrink):
    """Exponential noise in the sieve, Laplace to examine: no-answers above, a yes far below that fails or passes."""
    plan = priv_pc.corrected_round(1.0, 1.0, 1.0, 1.0)
    scales = (plan.scale_threshold, shrink * plan.scale_query)
    starts = [np.array([up] * 3 + [down]) for up in (0.0, 20.0, 60.0) for down in (0.0, -40.0, -90.0)]
    shown, worst = (False, False, False, True), 0.0
    for queries in starts:
        moved = queries + np.array([1.0, 1.0, 1.0, -1.0])
        sieved = [transcript_probabilities(q, scales, "exponential", 1, [shown])[shown] for q in (queries, moved)]
        passed = [float(tail(-q[-1], plan.scale_examine, "laplace")) for q in (queries, moved)]
        for examined in (passed, [1.0 - p for p in passed]):
            worst = max(worst, abs(math.log(sieved[0] * examined[0] / (sieved[1] * examined[1]))))
    if shrink == 1.0:
        assert 0.99 <= worst <= 1.0 + 1e-3
    else:
        assert worst > 1.01


def test_halved_query_noise_is_caught():
    svt = SparseVector(epsilon=1.0)
    threshold_scale, query_scale = (float(s) for s in svt.scales())
    assert worst_loss(svt, (threshold_scale, query_scale / 2)) > 1.5
    assert worst_loss(svt, (threshold_scale, query_scale * 0.9)) > 1.0 + 1e-3


@pytest.mark.parametrize(("scales", "loss"), [((4.0, 8.0), 0.5), ((2.0, 8.0), 0.75)])
def test_printed_threshold_noise_exceeds_its_claim(scales, loss):
    """Algorithm 1 at m = n, epsilon = 1, half of it for the sieve: 2 and 4 over epsilon' = 1/2 spend that half.

    As printed the threshold has 2/epsilon, and the sieve spends .75. Worst transcript: no-answers far above the
    threshold, then one yes far below, all moving the wrong way.
    """
    queries = np.array([30.0] * 8 + [-60.0])
    moved = queries + np.array([1.0] * 8 + [-1.0])
    shown = (False,) * 8 + (True,)
    before, after = (transcript_probabilities(q, scales, "laplace", 1, [shown])[shown] for q in (queries, moved))
    assert math.log(before / after) == pytest.approx(loss, abs=0.01)


def test_budgets_add_up_and_follow_the_optimal_split():
    for above in (1, 5, 28):
        svt = SparseVector(epsilon=0.8, max_above=above, bound=3.0)
        threshold, each = svt.budgets()
        assert threshold + above * each == pytest.approx(0.8, rel=1e-12)
        assert above * each / threshold == pytest.approx((2 * above) ** (2 / 3), rel=1e-12)
        b1, b2 = svt.scales()
        assert (b1, b2) == pytest.approx((3.0 / threshold, 6.0 / each))
        assert float(svt.cost(Relation.REPLACE_ONE).epsilon) == 0.8


def test_steps_have_the_law_of_the_quadrature():
    svt, replicates = SparseVector(epsilon=1.0, max_above=2), 20_000
    queries = jnp.array([1.0, -2.0, 3.0])

    def transcript(key):
        _, fired = jax.lax.scan(svt.step, svt.init(key), queries)
        return fired

    seen = np.asarray(jax.jit(jax.vmap(transcript))(jax.random.split(jax.random.key(1), replicates)))
    b1, b2 = (float(s) for s in svt.scales())
    # The centred noise is the uncentred one with the threshold moved by b2 - b1.
    expected = transcript_probabilities(np.asarray(queries) - b2 + b1, (b1, b2), "exponential", 2)
    for shown, p in expected.items():
        count = np.sum(np.all(seen[:, : len(shown)] == np.array(shown), axis=1))
        assert binom.ppf(1e-7, replicates, p) <= count <= binom.ppf(1 - 1e-7, replicates, p)


def test_above_threshold_answers_stop_at_the_cap():
    svt = SparseVector(epsilon=50.0, max_above=2)
    state, fired = jax.lax.scan(svt.step, svt.init(jax.random.key(0)), jnp.full(6, 100.0))
    assert np.asarray(fired).tolist() == [True, True, False, False, False, False]
    assert (int(state.above), int(state.asked)) == (2, 6)


def test_bad_settings_are_refused():
    for settings in ({"epsilon": 0.0}, {"epsilon": 1.0, "max_above": 0}, {"epsilon": 1.0, "noise": "normal"}):
        with pytest.raises(ValueError, match="must be"):
            SparseVector(**settings)


def test_amplification_is_exact_on_a_counting_example():
    """n = 10 records, m = 4 of them, randomised response on whether a marked record was drawn: loss attained."""
    epsilon, m, n = 1.3, 4, 10
    drawn, yes = m / n, math.exp(epsilon) / (1 + math.exp(epsilon))
    loss = math.log((drawn * yes + (1 - drawn) * (1 - yes)) / (1 - yes))
    assert amplified(epsilon, m / n) == pytest.approx(loss, rel=1e-12)
    assert before_amplification(amplified(epsilon, m / n), m / n) == pytest.approx(epsilon, rel=1e-12)
    with pytest.raises(ValueError, match="rate"):
        amplified(1.0, 1.5)


def laplace_gap_tail(x, b1, b2):
    """P(nu - rho >= x), Laplace noise of scales b1 (threshold), b2 (query): docs/theory/sparse_vector.md#gap-tails."""
    size = np.abs(x)
    tail = (b2**2 * np.exp(-size / b2) - b1**2 * np.exp(-size / b1)) / (2.0 * (b2**2 - b1**2))
    return float(np.where(x >= 0, tail, 1.0 - tail))


def centred_gap_tail(x, b1, b2):
    """The same for exponential noise with its means taken off."""
    return float(exponential_gap_tail(x + b2 - b1, b1, b2))


def type_one(gap_tail, excess, b1, b2, b3, tweak=0.0):
    """Bound on P(no) of a query that lies `excess` above the threshold: docs/theory/priv_pc.md#errors."""
    return gap_tail(excess + tweak, b2, b1) + 0.5 * math.exp(-excess / b3)


def type_two(gap_tail, shortfall, b1, b2, b3, tweak=0.0):
    """Bound on P(yes) of a query that lies `shortfall` >= tweak below the threshold."""
    return gap_tail(shortfall - tweak, b1, b2) * 0.5 * math.exp(-shortfall / b3)


def test_gap_tail_and_corrected_error_bounds():
    b1, b2 = 2.0, 4.0
    key_rho, key_nu = jax.random.split(jax.random.key(3))
    gap = b2 * jax.random.laplace(key_nu, (200_000,)) - b1 * jax.random.laplace(key_rho, (200_000,))
    for x in (-3.0, 0.0, 5.0, 12.0):
        p = laplace_gap_tail(x, b1, b2)
        assert binom.ppf(1e-6, 200_000, p) <= int(np.sum(np.asarray(gap) >= x)) <= binom.ppf(1 - 1e-6, 200_000, p)
    assert laplace_gap_tail(0.0, b1, b2) == pytest.approx(2 / 3 - 1 / 6)
    examined = np.asarray(jax.random.laplace(jax.random.key(4), (200_000,)))  # of scale b3 = 1
    no = np.mean((np.asarray(gap) < -2.0) | (examined < -2.0))  # a query that lies 2 above the threshold
    yes = np.mean((np.asarray(gap) >= 2.0) & (examined >= 2.0))
    assert 0.9 * type_one(laplace_gap_tail, 2.0, b1, b2, 1.0) < no < type_one(laplace_gap_tail, 2.0, b1, b2, 1.0)
    assert yes == pytest.approx(type_two(laplace_gap_tail, 2.0, b1, b2, 1.0), rel=0.05)


def test_error_bounds_with_exponential_noise_in_the_sieve():
    """The examination is sharp here (b3 -> 0), so both bounds are probabilities of the sieve alone."""
    b1, b2, draws = 2.0, 5.0, 400_000
    rng = np.random.default_rng(5)
    gap = b2 * (rng.exponential(size=draws) - 1.0) - b1 * (rng.exponential(size=draws) - 1.0)
    for distance in (1.0, 4.0, 12.0):
        p = type_one(centred_gap_tail, distance, b1, b2, 1e-3, tweak=0.5)
        assert binom.ppf(1e-6, draws, p) <= int(np.sum(gap < -distance - 0.5)) <= binom.isf(1e-6, draws, p)
        p = 2.0 * type_two(centred_gap_tail, distance, b1, b2, 1e9, tweak=0.5)
        assert binom.ppf(1e-6, draws, p) <= int(np.sum(gap >= distance - 0.5)) <= binom.isf(1e-6, draws, p)
    for x in (-4.0, 0.0, 9.0):
        p = centred_gap_tail(x, b1, b2)
        assert binom.ppf(1e-6, draws, p) <= int(np.sum(gap >= x)) <= binom.isf(1e-6, draws, p)
