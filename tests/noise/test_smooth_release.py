"""Releases with noise of private scale: exact losses, the ladder, the tables, the law of both modes."""

import functools
import itertools
import math
from decimal import Decimal
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binom, laplace, norm
from scipy.stats import t as student
from test_lattice import key_of, primitives

import jaxdp
from jaxdp.core import Norm, Relation, Sensitivity
from jaxdp.independence.meta.subsample_aggregate import SubsampleAggregate
from jaxdp.mechanisms.smooth_sensitivity import (
    SmoothCauchy,
    SmoothGaussian,
    SmoothLaplace,
    SmoothStudent,
    smooth_sensitivity,
)
from jaxdp.noise.recorder import Tape
from jaxdp.noise.smooth import ladder as smooth_ladder
from jaxdp.noise.smooth import rungs, scaled_cauchy, scaled_normal
from jaxdp.noise.source import FloatNoise, LatticeNoise, RecordedNoise


def law_of(found, entries):
    """P(output | center, rung) of all outputs, float64 (rungs, centers, outputs)."""
    below = np.concatenate([np.zeros((found.table.shape[0], 1)), found.table.astype(float) / 2.0**64], axis=1)
    atoms = np.diff(below, axis=1) / 2.0
    atoms[:, 0] *= 2.0
    tails = np.concatenate([np.ones((below.shape[0], 1)), (1.0 - below[:, 1:]) / 2.0], axis=1)  # P(N >= i), i > 0
    law = np.empty((below.shape[0], entries + 1, entries + 1))
    for center in range(entries + 1):
        gap = np.arange(entries + 1) - center
        law[:, center] = atoms[:, np.minimum(np.abs(gap), entries - 1)]
        if center > 0:
            law[:, center, 0] = tails[:, center]
        if center < entries:
            law[:, center, -1] = tails[:, entries - center]
        if center in (0, entries):
            law[:, center, center] = (1.0 + atoms[:, 0]) / 2.0
    return law


def worst_loss(found, entries, decay):
    """Largest |log ratio| over centers and rungs that neighbours can have, and all outputs."""
    loss, rungs = np.log(law_of(found, entries)), found.table.shape[0]
    worst, split = 0.0, smooth_ladder.rungs_per_decay(float(decay))
    for apart in range(split + 1):
        first, other = loss[: rungs - apart], loss[apart:]
        reach = np.floor(np.exp(found.rung * np.arange(rungs - apart)) * (1 + 1e-9))
        for shift in range(entries + 1):
            allowed = reach >= shift
            if not allowed.any():
                break
            left, right = slice(0, entries + 1 - shift), slice(shift, entries + 1)
            for a, b in ((left, right), (right, left)):
                worst = max(worst, float(np.abs(first[allowed][:, a] - other[allowed][:, b]).max()))
    return worst


@pytest.mark.parametrize(("epsilon", "smoothness"), [(1.0, None), (0.5, 0.3), (2.0, None)])
def test_exact_loss_is_at_most_epsilon_and_nearly_reached(epsilon, smoothness):
    entries = 60
    law = SmoothCauchy(epsilon=epsilon, smoothness=smoothness).law()
    decay, found = law.decay, smooth_ladder.ladder.__wrapped__(law, 0, 0, entries)
    assert np.allclose(law_of(found, entries).sum(axis=2), 1.0, atol=1e-12)
    loss = worst_loss(found, entries, decay)
    assert loss <= float(found.facts.epsilon) + 1e-9
    assert found.facts.epsilon <= Fraction(epsilon)
    assert loss >= 0.95 * epsilon


def test_a_width_cut_by_a_tenth_is_caught(monkeypatch):
    narrow(monkeypatch)
    law = SmoothCauchy(epsilon=1.0).law()
    assert worst_loss(smooth_ladder.ladder.__wrapped__(law, 0, 0, 60), 60, law.decay) > 1.02


def narrow(monkeypatch):
    """Tables of nine tenths of the certified width."""
    real = smooth_ladder._table
    monkeypatch.setattr(smooth_ladder, "_table", lambda law, width, *rest: real(law, width * Fraction(9, 10), *rest))


@pytest.mark.parametrize("degrees", [1.0, 3.0])
def test_exact_loss_of_student_noise_is_the_certified_one(degrees):
    """The formula for the width adds the worst shift and the worst ratio, which don't meet: less is spent."""
    law = SmoothStudent(epsilon=1.0, degrees=degrees).law()
    found = smooth_ladder.ladder.__wrapped__(law, 0, 0, 120)
    loss = worst_loss(found, 120, law.decay)
    assert 0.98 * float(found.facts.epsilon) <= loss <= float(found.facts.epsilon) + 1e-9
    assert 0.5 <= found.facts.epsilon <= 1


def test_student_loss_equals_a_search():
    x = np.linspace(-400.0, 400.0, 800_001)
    for nu, shift, ratio in ((3, 0.4, 1.2), (3, 0.4, 0.8), (5, 1.5, 1.0), (1, 0.2, 1.5)):
        law = scaled_cauchy.StudentLaw(Fraction(1), Fraction(1, 10), nu)
        with smooth_ladder.context(50):
            found = float(law.loss(Decimal(shift), Decimal(ratio)))
        searched = np.abs(student.logpdf(x, nu) - student.logpdf(x, nu, shift, ratio)).max()
        assert found == pytest.approx(searched, rel=1e-6)


def test_few_degrees_pay_for_the_whole_ratio_of_scales():
    """At degrees 1/2 the densities at the centre are apart by e^decay, not by e^(decay/2)."""
    mechanism = SmoothStudent(epsilon=1.0, degrees=0.5)
    grow, shift = math.exp(float(mechanism.decay())), 1.0 / float(mechanism.width())
    x = np.linspace(-200.0, 200.0, 400_001)
    loss = student.logpdf(x, 0.5) - student.logpdf(x, 0.5, shift, grow)
    assert 0.5 < np.abs(loss).max() <= 1.0
    assert np.abs(student.logpdf(0.0, 0.5) - student.logpdf(0.0, 0.5, 0.0, math.exp(1.0))) > 0.99  # decay = epsilon


def worst_delta(found, entries, law, inside=slice(None)):
    """Largest hockey-stick divergence at law.epsilon over the pairs that neighbours can have, by enumeration."""
    probabilities, grow = law_of(found, entries), math.exp(float(law.epsilon))
    rungs, split, worst = found.table.shape[0], smooth_ladder.rungs_per_decay(float(law.decay)), 0.0
    for apart in range(-split, split + 1):
        first = probabilities[max(0, -apart) : rungs - max(0, apart)]
        other = probabilities[max(0, apart) : rungs - max(0, -apart)]
        lower = np.arange(max(0, -apart), rungs - max(0, apart)) + min(0, apart)
        reach = np.floor(np.exp(found.rung * lower) * (1 + 1e-9)).astype(int)
        for row, shift in enumerate(reach[inside]):
            for step in {0, shift // 2, shift}:
                if step > entries:
                    continue
                near, far = slice(0, entries + 1 - step), slice(step, entries + 1)
                for a, b in ((near, far), (far, near)):
                    gap = np.maximum(first[row][a] - grow * other[row][b], 0.0).sum(axis=1)
                    worst = max(worst, float(gap.max()))
    return worst


APPROXIMATE = [(SmoothLaplace, 1e-2), (SmoothLaplace, 1e-4), (SmoothGaussian, 1e-2), (SmoothGaussian, 1e-4)]


@pytest.mark.parametrize(("kind", "delta"), APPROXIMATE)
def test_exact_delta_is_at_most_the_claim_and_nearly_reached(kind, delta):
    entries = 120
    law = kind(epsilon=1.0, delta=delta).law()
    found = smooth_ladder.ladder.__wrapped__(law, 0, 0, entries)
    facts = found.facts
    assert (facts.epsilon, facts.rho) == (1, None)
    assert np.allclose(law_of(found, entries).sum(axis=2), 1.0, atol=1e-12)
    worst = worst_delta(found, entries, law)
    assert worst <= float(facts.delta) <= delta
    assert worst >= 0.8 * delta


@pytest.mark.parametrize("kind", [SmoothLaplace, SmoothGaussian])
def test_an_approximate_width_cut_by_a_tenth_is_caught(kind, monkeypatch):
    narrow(monkeypatch)
    law = kind(epsilon=1.0, delta=1e-2).law()
    assert worst_delta(smooth_ladder.ladder.__wrapped__(law, 0, 0, 120), 120, law) > 1.02e-2


def test_divergences_grow_with_the_shift():
    """The certificate looks at the largest shift alone; envelope argument in the proof."""
    shifts = [Decimal(k) / 40 for k in range(1, 60)]
    with smooth_ladder.context(40):
        for law in (scaled_normal.LaplaceLaw, scaled_normal.GaussianLaw):
            for ratio in ("0.8", "0.97", "1", "1.03", "1.3"):
                for epsilon in ("0.05", "0.3"):
                    found = [law.divergence(t, Decimal(ratio), Decimal(epsilon)) for t in shifts]
                    assert all(a <= b + Decimal(10) ** -35 for a, b in itertools.pairwise(found))


@pytest.mark.parametrize(
    ("exact", "kind"), [(scaled_normal.LaplaceLaw, SmoothLaplace), (scaled_normal.GaussianLaw, SmoothGaussian)]
)
def test_divergences_in_decimals_equal_the_floating_ones(exact, kind):
    rng = np.random.default_rng(4)
    for shift, ratio, epsilon in rng.uniform((0.0, 0.6, 0.0), (1.5, 1.6, 1.0), (50, 3)):
        with smooth_ladder.context(40):
            found = float(exact.divergence(Decimal(shift), Decimal(ratio), Decimal(epsilon)))
        assert found == pytest.approx(float(kind.hockey_stick(np.array(shift), np.array(ratio), epsilon)), abs=1e-13)


LAWS = [
    (scaled_normal.LaplaceLaw(Fraction(1), Fraction(1), Fraction(1), Fraction(1)), laplace()),
    (scaled_normal.GaussianLaw(Fraction(1), Fraction(1), Fraction(1), Fraction(1)), norm()),
    *((scaled_cauchy.StudentLaw(Fraction(1), Fraction(1), nu), student(nu)) for nu in (1, 3, 5, 9)),
]


@pytest.mark.parametrize(("law", "reference"), LAWS)
@pytest.mark.parametrize("scale", ["0.7", "40", "3000"])
def test_tables_equal_scipy(law, reference, scale):
    with smooth_ladder.context():
        row = law.row(Decimal(scale), 2000).astype(float) / 2.0**64
    x = (np.arange(2000) + 0.5) / float(scale)
    np.testing.assert_allclose(row, 1.0 - 2.0 * reference.sf(x), atol=4e-15)


def test_the_normal_integral_is_good_to_95_bits():
    one = 1 << smooth_ladder.FIXED
    points = [Decimal(k) * Decimal("9.5") / 997 for k in range(998)]
    with smooth_ladder.context(60):
        found = scaled_normal.normal_integral(np.array([int(x * one) for x in points], object))
        gap = max(abs(Decimal(int(v)) / one - scaled_normal._integral(x)) for v, x in zip(found, points, strict=True))
    assert gap <= Decimal(2) ** -95
    assert float(scaled_normal._integral(Decimal(1))) == pytest.approx(math.erf(math.sqrt(0.5)), rel=1e-15)


def test_arctangents_are_good_to_100_bits():
    one = 1 << scaled_cauchy.FIXED
    pi = scaled_cauchy._arctan_nodes()[1]
    assert pi / one == math.pi
    rng = np.random.default_rng(0)
    ratios = [Fraction(x) for x in (*rng.uniform(0, 1, 40), *rng.uniform(1, 50, 40), 1e-6, 3e5, 1.0)]
    fixed = np.array([int(r * one) for r in ratios], dtype=object)
    angles = scaled_cauchy.arctan(fixed)
    assert max(abs(int(a) / one - math.atan(r)) for a, r in zip(angles, ratios, strict=True)) <= 1e-15
    # arctan x - arctan y = arctan((x - y)/(1 + x y)): an error of any of the three would show
    x, y = ratios[1:], ratios[:-1]
    for a, b, first, second in zip(x, y, angles[1:], angles[:-1], strict=True):
        third = (a - b) / (1 + a * b)
        (angle,) = scaled_cauchy.arctan(np.array([int(abs(third) * one)], dtype=object))
        assert abs(int(first - second) - int(angle) * (1 if third > 0 else -1)) <= 2**12


def test_rungs_cover_the_sensitivity_and_climb_no_further_than_paid():
    law, upper = SmoothCauchy(epsilon=1.0), 5.0
    rng = np.random.default_rng(0)
    values = np.sort(rng.exponential(size=(3000, 9)).clip(0, 5), axis=1)
    moved = values.copy()
    moved[np.arange(3000), rng.integers(0, 9, 3000)] = rng.choice([0.0, 5.0], 3000)
    with jax.enable_x64(True):
        decay, ladder = float(law.decay()), float(law.ladder_decay())
        found = []
        for sample in (values, moved):
            smooth = jax.vmap(lambda x: smooth_sensitivity(x, decay, 0.0, upper))(jnp.asarray(sample))
            center = jnp.sort(jnp.asarray(sample), axis=1)[:, 4]
            steps, rung, step, spread = rungs.smooth_grid(center, smooth, 0.0, upper, ladder)
            assert float(step) == 2.0**-9
            assert np.all(np.exp(np.asarray(rung) * float(spread)) >= np.asarray(smooth) / float(step) + 1.0)
            assert np.all(np.exp((np.asarray(rung) - 1) * float(spread)) <= np.asarray(smooth) / float(step) + 1.0001)
            found.append((np.asarray(steps), np.asarray(rung)))
    climbed = np.abs(found[0][1] - found[1][1])
    split = smooth_ladder.rungs_per_decay(ladder)
    assert climbed.max() == split == 8
    reach = np.exp(np.minimum(found[0][1], found[1][1]) * float(spread))
    assert np.all(np.abs(found[0][0] - found[1][0]) <= reach)


RANGE = Sensitivity(10.0, Norm.L1, Relation.REPLACE_ONE, 0.0, 0.0, 10.0)


BOTH = [
    SmoothCauchy(epsilon=1.0),
    SmoothStudent(epsilon=1.0),
    SmoothLaplace(epsilon=1.0, delta=1e-4),
    SmoothGaussian(epsilon=1.0, delta=1e-2),
]
STANDARD = [student(1), student(3), laplace(), norm()]


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("mode", ["simulation", "release"])
def test_both_modes_have_the_exact_law(mode, number):
    law, center, smooth, draws = BOTH[number], 4.0, 0.5, 20_000
    with jax.enable_x64(True):
        keys = jax.random.split(key_of(3) if mode == "release" else jax.random.key(3), draws)
        source = LatticeNoise if mode == "release" else FloatNoise
        once = functools.partial(law.perturb, value=(center, smooth), sensitivity=RANGE)
        found = np.asarray(jax.jit(lambda keys: jax.lax.map(lambda key: once(source(key)), keys))(keys))
        decay, width = float(law.ladder_decay()), float(law.width())
    step = 2.0**-8
    assert np.array_equal(found / step, np.round(found / step))
    assert 0.0 <= found.min() <= found.max() <= 10.0
    spread = decay / math.ceil(decay / 0.1)
    scale = step * width * math.exp(math.ceil(math.log(smooth / step + 1) / spread) * spread)
    for edge in (0.0, 2.0, 3.7, 4.0, 4.2, 6.0, 10.0 - step):
        p = STANDARD[number].cdf((edge + step / 2 - center) / scale)
        assert binom.ppf(1e-7, draws, p) <= np.sum(found <= edge) <= binom.ppf(1 - 1e-7, draws, p)


def test_median_test_releases_on_the_lattice():
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    data = jaxdp.Data(x, x + rng.normal(size=300))
    test = SubsampleAggregate(
        epsilon=1.0, statistic_of=lambda block: 5.0 + jnp.mean(block.x), num_blocks=15, num_null=19
    )
    result = jaxdp.run(test, jaxdp.fresh_key(), data)
    assert result.mode == "release"
    (facts,) = result.release.certificates
    assert (facts.law, float(facts.step)) == ("smooth_cauchy", 2.0**-8)
    assert 1 - 1e-8 < facts.epsilon <= 1
    assert result.release.value % 2.0**-8 == 0
    assert 0.0 <= float(result.p_value) <= 1.0
    with jax.enable_x64(True):
        perturb = SmoothCauchy(epsilon=1.0).perturb
        program = jax.make_jaxpr(lambda key, v: perturb(LatticeNoise(key), (v, v), RANGE))(key_of(1), jnp.zeros(()))
    assert not primitives(program.jaxpr) & {"while", "cond"}


@pytest.mark.parametrize("mechanism", BOTH[1:])
def test_every_law_releases_through_the_test_with_its_cost(mechanism):
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    test = SubsampleAggregate(
        mechanism=mechanism, statistic_of=lambda block: 5.0 + jnp.mean(block.x), num_blocks=15, num_null=19
    )
    result = jaxdp.run(test, jaxdp.fresh_key(), jaxdp.Data(x, x))
    (facts,) = result.release.certificates
    assert facts.epsilon <= 1
    assert facts.delta <= Fraction(float(result.cost.delta))
    assert (facts.delta == 0) == isinstance(mechanism, SmoothStudent)
    assert float(result.cost.epsilon) == 1.0


def test_missing_values_and_refusals():
    with jax.enable_x64(True):
        steps, rung, _, spread = rungs.smooth_grid(jnp.nan, jnp.nan, 0.0, 10.0, 0.7)
        assert (float(steps), math.exp(float(rung * spread)) >= 2561) == (0.0, True)
        tape = Tape()

        def release(law, bound=RANGE, v=1.0):
            return law.perturb(RecordedNoise(LatticeNoise(key_of(1)), tape), (v, v), bound)

        release(SmoothCauchy(epsilon=1.0))
        assert [call.law.name for call in tape.calls] == ["smooth"]
        with pytest.raises(ValueError, match="smoothness"):
            release(SmoothCauchy(epsilon=0.03))
        with pytest.raises(ValueError, match="too small"):
            release(SmoothCauchy(epsilon=0.1, smoothness=1e-4))
        with pytest.raises(ValueError, match="public range"):
            release(SmoothCauchy(epsilon=1.0), Sensitivity(10.0, Norm.L1, Relation.REPLACE_ONE))
        with pytest.raises(ValueError, match="one number"):
            release(SmoothCauchy(epsilon=1.0), v=jnp.zeros(2))
        with pytest.raises(ValueError, match="odd whole number of degrees"):
            release(SmoothStudent(epsilon=1.0, degrees=4.0))
        with pytest.raises(ValueError, match="needs a table of"):
            release(SmoothGaussian(epsilon=0.1, delta=1e-6))


def test_a_delta_below_the_rounding_of_the_table_has_no_certificate():
    law = SmoothLaplace(epsilon=1.0, delta=1e-17, smoothness=0.01, noise_width=5.0).law()
    assert all(law.spent(width, np.zeros((1, 2560), np.uint64)) is None for width in law.widths())
    roomy = SmoothLaplace(epsilon=1.0, delta=1e-12, smoothness=0.01, noise_width=5.0).law()
    assert roomy.spent(next(iter(roomy.widths())), np.zeros((1, 2560), np.uint64)) is not None


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.7])
def test_a_float32_budget_keeps_the_ladder_above_the_smoothness(epsilon):
    """Inside a compiled statistic the budget may be a float32 number: smoothness computed from it stays below."""
    mechanism = SmoothCauchy(epsilon=np.float32(epsilon))
    values = jnp.linspace(0.0, 5.0, 9)
    with jax.enable_x64(True):
        decay = float(jax.jit(lambda law: law.decay())(mechanism))
        assert decay <= float(mechanism.ladder_decay()) * (1.0 - 2.0**-21)
        wide = jnp.asarray(np.asarray(values, np.float64))
        found = jax.jit(lambda law, x: smooth_sensitivity(x, law.decay(), 0.0, 5.0))(mechanism, wide)
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, smooth_sensitivity(wide, decay, 0.0, 5.0), rtol=1e-15)
