"""Mutants: planted faults in noise, keys, budgets, tests and the auditor, each killed by a named test of the suite.

A mutant that no test notices fails here. The killers also pass without the fault, as tests of their own files.
"""

import dataclasses
import functools
from decimal import Decimal
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import test_audit_epsilon
import test_audit_search
import test_certificate
import test_keys
import test_lattice
import test_person_rows
import test_smooth_release
import test_sparse_vector_exact
import test_stability
import test_traces

import jaxdp
from jaxdp import audit, core
from jaxdp.audit import epsilon as bounds
from jaxdp.audit import record, sensitivity
from jaxdp.data.person_rows import PersonRows
from jaxdp.independence.tables import noisy_table
from jaxdp.mechanisms import Split
from jaxdp.mechanisms.smooth_sensitivity import SmoothGaussian, SmoothLaplace
from jaxdp.mechanisms.sparse_vector import ReleasedState, SparseVector
from jaxdp.mechanisms.stability import StabilityThreshold
from jaxdp.noise import certificate, lattice, samplers
from jaxdp.noise.smooth import rungs, scaled_cauchy, scaled_normal
from jaxdp.randomness import keys, traces
from jaxdp.statistics.neighbours import bands

MUTANTS: dict[str, tuple] = {}


def mutant(name, killer, *arguments):
    """Registers a fault (a function of monkeypatch) and the test that must fail under it."""

    def register(plant):
        MUTANTS[name] = (plant, killer, arguments)
        return plant

    return register


enumeration = functools.partial(test_certificate.test_additive_release_is_pure_dp_for_every_pair_and_output, None)


def wrong_rate(monkeypatch, factor):
    real = certificate.geometric_digits.__wrapped__

    def table(rate, count):
        return dataclasses.replace(real(rate * factor, count), rate=rate)

    monkeypatch.setattr(certificate, "geometric_digits", table)


one_record = test_stability.test_a_level_of_one_record_is_released_with_probability_delta_at_most
one_more = test_stability.test_draws_of_neighbouring_counts_differ_by_epsilon_at_most


@mutant("threshold of levels cut by a tenth", one_record, lambda: jax.random.key(7))
def _(monkeypatch):
    whole = StabilityThreshold.threshold
    monkeypatch.setattr(StabilityThreshold, "threshold", lambda mechanism: round(0.9 * whole(mechanism)))


@mutant("noise on counts of levels cut by a tenth", one_more, jaxdp.fresh_key)
def _(monkeypatch):
    wrong_rate(monkeypatch, Fraction(10, 9))


@mutant("levels that nobody holds are released", one_record, jaxdp.fresh_key)
def _(monkeypatch):
    above = StabilityThreshold._above
    monkeypatch.setattr(StabilityThreshold, "_above", lambda own, counts, noisy: above(own, counts + 1, noisy))


@mutant("noise halved", enumeration, Fraction(1), 2)
def noise_halved(monkeypatch):
    wrong_rate(monkeypatch, 2)


@mutant("noise times 0.99", enumeration, Fraction(1), 2)
def noise_99(monkeypatch):
    wrong_rate(monkeypatch, Fraction(100, 99))


@mutant("zero atom doubled", test_certificate.test_enumerated_law_keeps_its_rate, Fraction(1), 6)
def zero_doubled(monkeypatch):
    real = certificate.geometric_digits.__wrapped__

    def table(rate, count):
        good = real(rate, count)
        return dataclasses.replace(good, zero=(min(2 * good.zero[0], 2**128 - 1), good.zero[1]))

    monkeypatch.setattr(certificate, "geometric_digits", table)


@mutant("too few digits for the escape law", enumeration, Fraction(1), 2)
def too_few_digits(monkeypatch):
    real = certificate.digits_needed
    monkeypatch.setattr(certificate, "digits_needed", lambda rate, bits: max(1, real(rate, bits) - 2))


@mutant("escape dropped", test_certificate.test_escape_and_window_masks)
def escape_dropped(monkeypatch):
    monkeypatch.setattr(samplers, "escapes", lambda bits, escape_bits: jnp.zeros(bits.shape, bool))


selections = functools.partial(test_certificate.test_selection_is_pure_dp_for_all_small_scores, None)


@mutant("selection pays once for two moves", selections, Fraction(1))
def selection_pays_once(monkeypatch):
    real = certificate.one_sided
    monkeypatch.setattr(certificate, "one_sided", lambda *a, **k: real(*a, **{**k, "factor": 1}))


@mutant("decision pays for one of two moves", test_certificate.test_rank_decision_is_pure_dp, None)
def decision_pays_half(monkeypatch):
    real = certificate.one_sided
    monkeypatch.setattr(certificate, "one_sided", lambda law, moves, *a, **k: real(law, moves / 2, *a, **k))


@mutant("sensitivity halved", test_certificate.test_certified_epsilon_is_just_below_the_budget)
def sensitivity_halved(monkeypatch):
    real = lattice.reach_of
    monkeypatch.setattr(lattice, "reach_of", lambda *a: real(*a) / 2)


@mutant("numerical error left out", test_certificate.test_error_is_counted_in_the_norm)
def error_left_out(monkeypatch):
    real = lattice.reach_of
    monkeypatch.setattr(lattice, "reach_of", lambda s, size: real(dataclasses.replace(s, error=0.0), size))


@mutant("rounding of coordinates left out", test_lattice.test_moves_cover_every_rounding)
def rounding_left_out(monkeypatch):
    real = certificate.additive

    def additive(law, moves, epsilon, step, low, high, coordinates):
        facts, table = real(law, moves, epsilon, step, low, high, coordinates)
        return dataclasses.replace(facts, moves=moves - coordinates), table

    monkeypatch.setattr(certificate, "additive", additive)


def change_steps(monkeypatch, change):
    """`lattice._steps` with its floor, clip or type changed."""

    def steps(value, exponent, low, high):
        low, high = (np.array(ends, np.float64) for ends in (low, high))
        low, high = (ends.reshape(value.shape) if ends.size == value.size else ends[0] for ends in (low, high))
        return change(jnp.ldexp(value, -exponent), low, high)

    monkeypatch.setattr(lattice, "_steps", steps)


@mutant("half-even rounding", test_lattice.test_statistic_is_rounded_down_on_the_lattice)
def half_even(monkeypatch):
    change_steps(monkeypatch, lambda x, low, high: jnp.clip(jnp.round(x), low, high).astype(np.int64))


@mutant("no clip", test_lattice.test_public_range_clips_each_coordinate)
def no_clip(monkeypatch):
    change_steps(monkeypatch, lambda x, low, high: jnp.floor(jnp.nan_to_num(x, posinf=1e6)).astype(np.int64))


@mutant("NaN kept", test_lattice.test_public_range_clips_each_coordinate)
def nan_kept(monkeypatch):
    change_steps(monkeypatch, lambda x, low, high: jnp.clip(jnp.floor(x), low, high).astype(np.int64))


@mutant("int32 wrap", test_lattice.test_wide_ranges_do_not_wrap)
def int32_wrap(monkeypatch):
    def narrow(x, low, high):
        return jnp.clip(jnp.floor(x), low, high).astype(np.int64).astype(np.int32).astype(np.int64)

    change_steps(monkeypatch, narrow)


@mutant("clip after the sum only", test_lattice.test_outputs_are_steps_inside_the_window, "laplace")
def clip_after(monkeypatch):
    real = lattice.add

    def add(key, value, plan):
        step = float(plan.facts.step)
        return jnp.clip(real(key, value, plan), min(plan.low) * step, max(plan.high) * step)

    monkeypatch.setattr(lattice, "add", add)


@mutant("float noise", test_lattice.test_outputs_are_steps_inside_the_window, "laplace")
def float_noise(monkeypatch):
    def add(key, value, plan):
        scale = float(plan.facts.step / plan.facts.rate)
        return value + scale * jax.random.laplace(key, value.shape, value.dtype)

    monkeypatch.setattr(lattice, "add", add)


@mutant("one draw for all coordinates", test_lattice.test_vectors_of_every_length, 100)
def shared_draw(monkeypatch):
    real = lattice.add

    def add(key, value, plan):
        return value + (real(key, value, plan) - value).ravel()[0]

    monkeypatch.setattr(lattice, "add", add)


@mutant("noise that ignores its key", test_lattice.test_same_integers_under_jit_and_vmap, "laplace")
def ignores_key(monkeypatch):
    real = lattice.add
    monkeypatch.setattr(lattice, "add", lambda key, *rest: real(test_lattice.key_of(0), *rest))


@mutant("budget spent twice", test_lattice.test_release_carries_its_certificates)
def budget_twice(monkeypatch):
    def divide(mechanism, shares):
        return Split(parts=dict.fromkeys(shares, mechanism))

    monkeypatch.setattr("jaxdp.independence.continuous.partition_gcm.divide", divide)


@mutant("a stage that is not charged", test_lattice.test_stages_are_charged)
def uncharged_stage(monkeypatch):
    real = core._execute_sequential

    def execute(test, key, data):
        resolved, released = real(test, key, data)
        return resolved, dataclasses.replace(
            released, cost=test.second.mechanism_in_force().cost(core.Relation.REPLACE_ONE)
        )

    monkeypatch.setattr(core, "_execute_sequential", execute)


@mutant("spent keys accepted", test_keys.test_second_run_with_one_key_raises)
def spent_accepted(monkeypatch):
    monkeypatch.setattr(keys.ReleaseKey, "spent", False)
    monkeypatch.setattr(keys.ReleaseKey, "_take", lambda self: bytes(32))


@mutant("a trace goes unseen", test_traces.test_a_map_over_devices_that_is_not_compiled_is_a_trace_too)
def unseen_trace(monkeypatch):
    monkeypatch.setattr(traces, "is_open", lambda: False)


@mutant("a callback goes unseen", test_traces.test_a_callback_is_no_plain_python)
def unseen_callback(monkeypatch):
    monkeypatch.setattr(traces, "in_callback", lambda: False)


@mutant(
    "the state of a release serves twice",
    test_sparse_vector_exact.test_a_state_of_a_release_serves_once,
    SparseVector.step,
)
def lasting_state(monkeypatch):
    kept = {}
    real = ReleasedState._take
    monkeypatch.setattr(ReleasedState, "require_unused", lambda self: None)
    monkeypatch.setattr(ReleasedState, "_take", lambda self: kept.setdefault(id(self), None) or keep(self))

    def keep(state):
        kept[id(state)] = real(state)
        return kept[id(state)]


@mutant("one fingerprint for all keys", test_keys.test_fingerprint_names_the_key_without_telling_it)
def constant_fingerprint(monkeypatch):
    monkeypatch.setattr(keys.ReleaseKey, "fingerprint", "0" * 64)


@mutant("float32 statistics released", test_keys.test_releases_compute_in_float64_from_float32_data)
def not_widened(monkeypatch):
    monkeypatch.setattr(keys, "widen", lambda mode, data: data)


transcripts = functools.partial(
    test_sparse_vector_exact.test_exact_transcript_loss_is_at_most_the_claim_and_nearly_reached,
    None,
    "exponential",
    1,
    1,
)


@mutant("sparse vector: queries pay for one move of two", transcripts)
def one_move_of_two(monkeypatch):
    real = certificate.sparse_vector

    def sparse_vector(moves, first, each, step, above):
        facts, tables = real(moves, first, each, step, above)
        return facts, dataclasses.replace(tables, query=real(moves, first, 2 * each, step, above)[1].query)

    monkeypatch.setattr(certificate, "sparse_vector", sparse_vector)


both_modes = test_sparse_vector_exact.test_both_modes_have_the_law_of_the_quadrature


@mutant("sparse vector: threshold without noise", both_modes, "exponential", "release")
def threshold_without_noise(monkeypatch):
    monkeypatch.setattr(lattice, "_one_sided_noise", lambda key, table, size: jnp.zeros(size, np.int64))


@mutant(
    "sparse vector: threshold noise too short",
    test_sparse_vector_exact.test_threshold_noise_reaches_beyond_every_query,
    None,
)
def threshold_too_short(monkeypatch):
    real = certificate.sparse_vector

    def sparse_vector(*arguments):
        facts, tables = real(*arguments)
        short = dataclasses.replace(tables.threshold, digits=tables.threshold.digits[:-1])
        return facts, dataclasses.replace(tables, threshold=short)

    monkeypatch.setattr(certificate, "sparse_vector", sparse_vector)


@mutant("sparse vector: floor of queries left out", test_sparse_vector_exact.test_plan_rounds_moves_up_and_budgets_down)
def sparse_rounding_left_out(monkeypatch):
    real = certificate.sparse_vector
    monkeypatch.setattr(lattice, "_plan_sparse", lattice._plan_sparse.__wrapped__)
    monkeypatch.setattr(certificate, "sparse_vector", lambda moves, *rest: real(moves - 1, *rest))


@mutant("sparse vector: answers beyond the cap", test_sparse_vector_exact.test_answers_beyond_the_cap_are_not_released)
def uncapped(monkeypatch):
    real = SparseVector._ask
    monkeypatch.setattr(
        SparseVector, "_ask", lambda self, state, query: real(self, state._replace(above=0 * state.above), query)
    )


@mutant("sparse vector: one query noise for all", test_sparse_vector_exact.test_steps_scans_and_released_bits_agree)
def one_query_noise(monkeypatch):
    real = SparseVector._ask

    def ask(self, state, query):
        after, fired, key = real(self, state, query)
        return after._replace(source=state.source), fired, key

    monkeypatch.setattr(SparseVector, "_ask", ask)


@mutant(
    "smooth sensitivity: width cut by a tenth",
    test_smooth_release.test_exact_loss_is_at_most_epsilon_and_nearly_reached,
    1.0,
    None,
)
def narrow_cauchy(monkeypatch):
    test_smooth_release.narrow(monkeypatch)


exact_delta = test_smooth_release.test_exact_delta_is_at_most_the_claim_and_nearly_reached


@mutant("smooth sensitivity: Laplace width cut by a tenth", exact_delta, SmoothLaplace, 1e-2)
def narrow_laplace(monkeypatch):
    test_smooth_release.narrow(monkeypatch)


@mutant("smooth sensitivity: Gaussian pays for equal scales alone", exact_delta, SmoothGaussian, 1e-2)
def equal_scales(monkeypatch):
    real = scaled_normal.GaussianLaw.divergence.__func__
    same = classmethod(lambda cls, shift, ratio, epsilon: real(cls, shift, Decimal(1), epsilon))
    monkeypatch.setattr(scaled_normal.GaussianLaw, "divergence", same)
    monkeypatch.setattr(scaled_normal.GaussianLaw, "widths", lambda self: [self.width * Fraction(9, 10)])


@mutant(
    "smooth sensitivity: Student pays for one degree of three",
    test_smooth_release.test_exact_loss_of_student_noise_is_the_certified_one,
    3.0,
)
def one_degree_of_three(monkeypatch):
    monkeypatch.setattr(scaled_cauchy.StudentLaw, "widths", lambda self: [Fraction(1)])
    monkeypatch.setattr(scaled_cauchy.StudentLaw, "spent", lambda self, width, table: (self.epsilon, Fraction(0)))


@mutant(
    "smooth sensitivity: scale rounded down",
    test_smooth_release.test_rungs_cover_the_sensitivity_and_climb_no_further_than_paid,
)
def scale_rounded_down(monkeypatch):
    real = rungs.smooth_grid

    def grid(*arguments):
        steps, rung, step, spread = real(*arguments)
        return steps, rung - 1, step, spread

    monkeypatch.setattr(rungs, "smooth_grid", grid)


@mutant(
    "smooth sensitivity: noise of the lowest rung", test_smooth_release.test_both_modes_have_the_exact_law, "release", 0
)
def lowest_rung(monkeypatch):
    real = samplers.laddered
    monkeypatch.setattr(samplers, "laddered", lambda bits, center, rung, *rest: real(bits, center, 0 * rung, *rest))


sound_replay = test_audit_search.test_replay_finds_nothing_in_sound_tests
faulty_replay = test_audit_search.test_replay_names_the_fault


@mutant("one key for all parts", sound_replay, jaxdp.PartitionGCM(epsilon=1.0), 1)
def parts_share_key(monkeypatch):
    def perturb(self, source, value, sensitivity):
        return {name: part.perturb(source, value[name], sensitivity[name]) for name, part in self.parts.items()}

    monkeypatch.setattr(Split, "perturb", perturb)
    monkeypatch.setattr(test_audit_search, "NUM_PAIRS", 2)


@mutant("auditor: limits swapped", test_audit_epsilon.test_limits_are_clopper_pearson)
def limits_swapped(monkeypatch):
    real = bounds.certain
    monkeypatch.setattr(bounds, "certain", lambda hits, sizes, alpha, delta=0.0: real(hits, sizes, 1 - alpha, delta))


@mutant("auditor: delta ignored", test_audit_epsilon.test_delta_is_subtracted_before_the_ratio)
def delta_ignored(monkeypatch):
    real = bounds.certain
    monkeypatch.setattr(bounds, "certain", lambda hits, sizes, alpha, delta=0.0: real(hits, sizes, alpha, 0.0))


@mutant("auditor: events chosen on the counted half", test_audit_epsilon.test_false_alarms_stay_below_alpha)
def same_half(monkeypatch):
    def best(events, rates, samples, alpha, delta):
        hits = [[int(np.sum(inside(sample))) for sample in samples] for _, inside in events]
        sizes = [sample.size for sample in samples]
        both = [max(bounds.certain(h, sizes, alpha / 2), bounds.certain(h[::-1], sizes, alpha / 2)) for h in hits]
        return bounds.Bound(max(both), alpha, "", sum(sizes))

    monkeypatch.setattr(bounds, "_best", best)


@mutant("auditor: low bits not looked at", test_audit_epsilon.test_low_bits_give_floating_point_noise_away, np.float64)
def blind_to_low_bits(monkeypatch):
    real = bounds._events
    monkeypatch.setattr(bounds, "_events", lambda sample, with_low_bits: real(sample, False))


@mutant("auditor: second neighbour is the first", test_audit_epsilon.test_too_little_noise_is_caught, 0.5)
def same_neighbour(monkeypatch):
    real = audit.lower_bound
    monkeypatch.setattr(audit, "lower_bound", lambda first, second, **k: real(first, first, **k))


@mutant("auditor: search never replaces a record", test_audit_search.test_search_under_add_or_remove)
def no_neighbour(monkeypatch):
    monkeypatch.setattr(sensitivity, "neighbour", lambda data, replacement, relation: data)


@mutant("auditor: replay compares no keys", faulty_replay, test_audit_search.OneKeyTwice, "key used twice")
def blind_to_keys(monkeypatch):
    monkeypatch.setattr(record, "_reused", lambda calls: iter(()))


@mutant("auditor: replay compares no scales", faulty_replay, test_audit_search.ScaleFromData, "noise parameters")
def blind_to_parameters(monkeypatch):
    real = record._compare

    def keep(found):
        return (d for d in found if d.what != "noise parameters")

    monkeypatch.setattr(record, "_compare", lambda *a: keep(real(*a)))


whole_lists = test_person_rows.test_a_list_of_rows_of_another_length_reaches_the_bound_of_the_second_moment


@mutant("rows of a person are added up", whole_lists, 1)
def no_weight(monkeypatch):
    mean, draws = PersonRows.mean, test_person_rows.DRAWS
    monkeypatch.setattr(
        PersonRows, "mean", lambda rows, *of: jax.tree.map(lambda value: draws * value, mean(rows, *of))
    )


@mutant(
    "the spread of persons is cut below what one of them adds",
    test_person_rows.test_a_replaced_person_moves_the_spread_by_its_bound_and_no_more,
    1.0,
)
def half_of_the_spread(monkeypatch):
    monkeypatch.setattr(noisy_table, "SPREAD", 2.0)


@mutant(
    "half sums of pairs are counted in full",
    test_person_rows.test_the_second_moment_of_pairs_is_that_of_the_mean_half_sum_of_each_person,
)
def whole_sums(monkeypatch):
    real = bands.half_sums
    monkeypatch.setattr(bands, "half_sums", lambda *arguments: 2.0 * real(*arguments))


def test_there_are_enough_mutants():
    assert len(MUTANTS) >= 20


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_mutant_is_killed(name, monkeypatch):
    plant, killer, arguments = MUTANTS[name]
    if "short" in str(getattr(killer, "func", killer).__code__.co_varnames[:1]):
        monkeypatch.setattr(certificate, "ESCAPE_BITS", test_certificate.ESCAPE)
    plant(monkeypatch)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        killer(*arguments)
