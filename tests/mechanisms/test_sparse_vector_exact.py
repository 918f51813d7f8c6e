"""Sparse vector on the lattice: exact loss of transcripts, the sampler, the law of both modes, keys and tapes."""

import copy
import itertools
import math
import pickle
from fractions import Fraction

import exact_laws as laws
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binom
from test_lattice import key_of, primitives
from test_sparse_vector import transcript_probabilities

import jaxdp
from jaxdp.core import Norm, Relation, Sensitivity
from jaxdp.mechanisms.sparse_vector import ReleasedState, SparseVector
from jaxdp.noise import certificate, lattice, samplers
from jaxdp.noise.recorder import Tape
from jaxdp.noise.source import FloatNoise, LatticeNoise
from jaxdp.randomness.keys import RecordedKey

ESCAPE = 20
COINS = 2**ESCAPE


@pytest.fixture
def short_tables(monkeypatch):
    monkeypatch.setattr(certificate, "ESCAPE_BITS", ESCAPE)


def worst(law, moves, above):
    """Largest loss over neighbours near, above and below the threshold, for some no and then `yes` yes."""
    far = law.clip // 2
    loss = Fraction(0)
    for yes, silent in itertools.product(range(above + 1), (1, 6)):
        answers, repeat = (False, True), (silent, yes)
        for high, low in itertools.product((-2, 0, far, law.clip + 5), (3, 0, -far)):
            before = law.probability((high, low), answers, repeat)
            for up, down in itertools.product((-moves, 0, moves), repeat=2):
                after = law.probability((high + up, low + down), answers, repeat)
                loss = max(loss, laws.log(max(Fraction(before, after), Fraction(after, before))))
    return loss


@pytest.mark.parametrize(("noise", "above", "moves"), [("exponential", 1, 1), ("exponential", 2, 2), ("laplace", 1, 1)])
def test_exact_transcript_loss_is_at_most_the_claim_and_nearly_reached(short_tables, noise, above, moves):
    first, each = Fraction(1), Fraction(7, 5)
    facts, tables = certificate.sparse_vector(Fraction(moves), first, each, Fraction(1), above)
    law = laws.SparseVectorLaw(tables, noise == "laplace", ESCAPE)
    loss = worst(law, moves, above)
    assert loss <= facts.epsilon <= first + above * each
    assert loss >= Fraction(99 if noise == "exponential" else 90, 100) * facts.epsilon


def test_no_answers_are_free_however_many(short_tables):
    facts, tables = certificate.sparse_vector(Fraction(1), Fraction(1), Fraction(7, 5), Fraction(1), 1)
    law = laws.SparseVectorLaw(tables, False, ESCAPE)
    for times in (1, 60):
        for query in (-3, 6, law.clip):
            silent = [law.probability([q], [False], [times]) for q in (query, query + 1)]
            assert 0 <= laws.log(Fraction(*silent)) <= 1  # the threshold's budget
            spoken = [law.probability([q, p], [False, True], [times, 1]) for q, p in ((query, -3), (query + 1, -4))]
            assert laws.log(Fraction(*spoken)) <= facts.epsilon


def test_answers_beyond_the_cap_are_not_released():
    svt = SparseVector(epsilon=50.0, max_above=2)
    queries = np.full(6, 100.0)
    with jax.enable_x64(True):
        state, fired = svt.scan(svt.init(jaxdp.fresh_key()), queries)
        together = svt.answers(jaxdp.fresh_key(), queries)
    assert np.asarray(fired).tolist() == together.tolist() == [True, True, False, False, False, False]
    assert (int(state.above), int(state.asked)) == (2, 6)


@pytest.mark.parametrize("two_sided", [False, True])
def test_a_query_on_the_noisy_threshold_fires(two_sided):
    """Crafted bits: no noise at all, then one step of noise, then the coin."""
    table = certificate.geometric_digits(Fraction(1, 3), 7)
    thresholds = samplers.packed((*table.digits, *((table.zero,) if two_sided else ())))
    layout = samplers.layout_of(table.digits)
    rows = samplers.rows_of(layout) + (5 if two_sided else 2)
    high = np.full((rows, 1), 2**64 - 1, np.uint64)  # above every threshold: digits 0; two-sided: -1
    quiet = high.copy()
    if two_sided:
        quiet[samplers.rows_of(layout) : samplers.rows_of(layout) + 2] = 0  # the zero atom
    coin = quiet.copy()
    coin[-2] = 0

    def fires(bits, query):
        law = {"layout": layout, "two_sided_law": two_sided, "escape_bits": 50, "size": 1}
        return bool(samplers.crossed(bits.ravel(), np.array([query]), np.int64(7), thresholds, **law)[0])

    with jax.enable_x64(True):
        assert [fires(quiet, q) for q in (6, 7, 8)] == [False, True, True]
        assert [fires(high, q) for q in (6, 7, 8)] == ([False, False, True] if two_sided else [False, True, True])
        assert fires(coin, -100)
        coin[-1] = 0
        assert not fires(coin, 100)


def test_plan_rounds_moves_up_and_budgets_down():
    for bound, error, above, epsilon in ((1.0, 0.0, 1, 1.0), (0.3, 1e-4, 28, 0.1), (1.0, 1e-9, 666, 3.0)):
        svt = SparseVector(epsilon=epsilon, bound=bound, max_above=above, error=error)
        budgets = svt._exact_budgets()
        assert budgets[0] + above * budgets[1] <= Fraction(epsilon)
        plan = lattice.plan_sparse(Sensitivity(bound, Norm.LINF, Relation.REPLACE_ONE, error), budgets, above, False)
        reach, facts = Fraction(bound) + 2 * Fraction(error), plan.facts
        assert facts.moves > reach / facts.step
        assert (1 - Fraction(1, 10**8)) * Fraction(epsilon) < facts.epsilon <= Fraction(epsilon)
        spent = plan.tables.threshold.rate + above * 2 * facts.rate
        assert spent * facts.moves < facts.epsilon
        # the smaller noise still spans 2^20 steps, so that rounding changes no tail
        b1, b2 = (float(scale) for scale in svt.scales())
        assert min(b1, b2) >= 2**19 * float(facts.step)
        assert float(1 / facts.rate * facts.step) == pytest.approx(b2, rel=1e-5)


def test_threshold_noise_reaches_beyond_every_query(short_tables):
    for first, each in ((Fraction(1), Fraction(7, 5)), (Fraction(1, 10), Fraction(2)), (Fraction(3), Fraction(1, 9))):
        facts, tables = certificate.sparse_vector(Fraction(3), first, each, Fraction(1), 4)
        hopeless = tables.clip + 2 ** len(tables.query.digits)
        spare = 2 ** len(tables.threshold.digits) - 1 - hopeless - facts.moves
        assert spare * tables.threshold.rate >= (ESCAPE + 2) * math.log(2)
        law = laws.SparseVectorLaw(tables, False, ESCAPE)
        assert law.yes(hopeless + 1 - tables.clip) == law.one // (2 * COINS)


def test_far_queries_are_clipped_on_both_sides():
    svt = SparseVector(epsilon=1.0)
    plan = svt.plan()
    with jax.enable_x64(True):
        center, noisy = lattice.sparse_threshold(key_of(1), jnp.zeros(()), plan)
        far = jnp.array([1e300, jnp.inf, -1e300, jnp.nan, -jnp.inf])
        fired = lattice.sparse_answers(key_of(2), far, center, center + 2 * plan.tables.clip, plan)
        assert not np.any(fired)  # even infinity is cut to `clip` steps above the threshold
        fired = lattice.sparse_answers(key_of(3), far, center, noisy, plan)
    assert fired.tolist() == [True, True, False, False, False]


@pytest.mark.full
@pytest.mark.parametrize("noise", ["exponential", "laplace"])
@pytest.mark.parametrize("mode", ["simulation", "release"])
def test_both_modes_have_the_law_of_the_quadrature(noise, mode):
    svt, replicates = SparseVector(epsilon=1.0, max_above=2, noise=noise, bound=0.5), 20_000
    queries = np.array([0.5, -1.0, 1.5]) + 2.0
    with jax.enable_x64(True), jax.debug_key_reuse(False):
        keys = jax.random.split(key_of(4) if mode == "release" else jax.random.key(4), replicates)
        source = LatticeNoise if mode == "release" else FloatNoise
        answers = jax.vmap(lambda key: svt.answers_opened(source(key), jnp.asarray(queries), 2.0))
        seen = np.asarray(jax.jit(answers)(keys))
    b1, b2 = (float(s) for s in svt.scales())
    centred = queries - 2.0 - (b2 - b1 if noise == "exponential" else 0.0)
    for shown, p in transcript_probabilities(centred, (b1, b2), noise, 2).items():
        count = np.sum(np.all(seen[:, : len(shown)] == np.array(shown), axis=1))
        assert binom.ppf(1e-7, replicates, p) <= count <= binom.ppf(1 - 1e-7, replicates, p)


def test_steps_scans_and_released_bits_agree():
    svt = SparseVector(epsilon=1.0, max_above=2)
    queries = jnp.array([1.0, -2.0, 9.0, 0.0])
    source = LatticeNoise(key_of(5))
    with jax.enable_x64(True), jax.debug_key_reuse(False):
        queries = jnp.asarray(np.asarray(queries), float)
        stepped, answers, used = svt.init_opened(source), [], set()
        for query in queries:
            used.add(np.asarray(jax.random.key_data(stepped.source.key)).tobytes())
            stepped, fired = svt.step_opened(stepped, query)
            answers.append(bool(fired))
        _, looped = jax.lax.scan(svt.step_opened, svt.init_opened(source), queries)
        _, scanned = svt.scan_opened(svt.init_opened(source), queries)
        program = jax.make_jaxpr(lambda key, q: svt.answers_opened(LatticeNoise(key), q))(key_of(6), queries)
    assert answers == looped.tolist() == scanned.tolist()
    assert len(used) == queries.size
    assert not primitives(program.jaxpr) & {"while", "cond"}
    assert [facts.law for facts in source.certificates] == ["sparse_vector"] * 3
    assert source.certificates[0].epsilon <= 1


def test_every_draw_is_on_the_tape_and_plays_back():
    svt = SparseVector(epsilon=1.0, max_above=2)
    queries, frozen = jnp.array([5.0, -5.0, 5.0]), [jnp.float32(0.0), *(jnp.array(a) for a in (True, False, True))]

    def run(outputs):
        tape = Tape(outputs=outputs)
        state, answers = svt.init(RecordedKey(jax.random.key(3), tape)), []
        for query in queries:
            state, fired = svt.step(state, query)
            answers.append(bool(fired))
        svt.scan(svt.init(RecordedKey(jax.random.key(4), tape)), queries)
        return state, answers, tape.calls

    with jax.debug_key_reuse(False):
        state, answers, calls = run(frozen)
        drawn = [np.asarray(jax.random.key_data(call.key)).tobytes() for call in calls]
    assert [call.law.name for call in calls] == [
        "sparse_threshold",
        *["sparse_answer"] * 3,
        "sparse_threshold",
        "sparse_answer",
    ]
    assert answers == [True, False, True]
    assert int(state.above) == 2
    assert len(set(drawn)) == len(drawn)
    assert all(float(call.parameters[0]) == 1.0 for call in calls)


def test_release_keys_serve_once_and_mistakes_are_refused():
    key, svt = jaxdp.fresh_key(), SparseVector(epsilon=1.0)
    with jax.enable_x64(True):
        assert svt.init_opened(LatticeNoise(key_of(1))).threshold.dtype == np.int64
        state = svt.init(key)
        with pytest.raises(ValueError, match="already"):
            svt.init(key)
        with pytest.raises(ValueError, match="traced"):
            jax.jit(lambda epsilon: SparseVector(epsilon=epsilon).init_opened(LatticeNoise(key_of(1))).threshold)(1.0)
        with pytest.raises(TypeError, match="float64"):
            svt.step(state, jnp.float32(1.0))
    with pytest.raises(TypeError, match="float64"):
        svt.init(jaxdp.fresh_key())
    with pytest.raises(ValueError, match="must be"):
        SparseVector(epsilon=1.0, error=-1.0)


@pytest.mark.parametrize("ask", [SparseVector.step, lambda svt, state, query: svt.scan(state, query[None])])
def test_a_state_of_a_release_serves_once(ask):
    """A saved state would answer again with the same noise and a counter that stands still."""
    svt = SparseVector(epsilon=1.0, max_above=3)
    with jax.enable_x64(True), jax.debug_key_reuse(False):
        query = jnp.asarray(0.5)
        first = svt.init(jaxdp.fresh_key())
        second, _ = ask(svt, first, query)
        for again in (SparseVector.step, SparseVector.scan):
            with pytest.raises(ValueError, match="used already"):
                again(svt, first, query)
        third, _ = ask(svt, second, query)
        assert [int(state.asked) for state in (first, second, third)] == [0, 1, 2]
        assert (first.spent, second.spent, third.spent) == (True, True, False)


def test_mistakes_leave_a_state_of_a_release_unused():
    svt = SparseVector(epsilon=1.0)
    with jax.enable_x64(True):
        state, query = svt.init(jaxdp.fresh_key()), jnp.asarray(0.5)
        with pytest.raises(ValueError, match="other settings"):
            SparseVector(epsilon=50.0).step(state, query)
        with pytest.raises(TypeError, match="float64"):
            svt.step(state, jnp.float32(0.5))
        for traced in (jax.jit(lambda q: svt.step(state, q)[1]), jax.vmap(lambda q: svt.step(state, 0.5)[1])):
            with pytest.raises(RuntimeError, match="loop in Python"):
                traced(jnp.ones(2))
        with pytest.raises(TypeError, match="no array: go on with the state"):
            jax.lax.scan(svt.step, state, jnp.ones(2))
        assert not state.spent
        assert SparseVector(epsilon=1.0).step(state, query)[1].shape == ()


def test_a_state_of_a_release_is_secret_and_not_duplicated():
    svt = SparseVector(epsilon=1.0)
    with jax.enable_x64(True):
        inner = svt.init_opened(LatticeNoise(key_of(3)))
        state = ReleasedState(svt, inner)
    for act in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="go on with the state"):
            act(state)
    assert jax.tree.leaves(state) == [state]
    assert not hasattr(state, "__dict__")
    assert not hasattr(state, "threshold")
    assert str(int(inner.threshold)) not in repr(state) + f"{state}" + str([state])
    with pytest.raises(TypeError, match="taken out of a release key"):
        svt.step(inner, jnp.asarray(0.5))


def test_states_of_simulations_stay_plain():
    svt = SparseVector(epsilon=1.0)
    state = svt.init(jax.random.key(0))
    copies = state, copy.deepcopy(state), jax.tree.map(lambda leaf: leaf, state)
    with jax.debug_key_reuse(False):
        answers = [bool(svt.step(each, 0.0)[1]) for each in copies]
    assert len(set(answers)) == 1
