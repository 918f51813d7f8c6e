"""Releases with Cauchy noise of private scale: exact loss, the ladder, the tables, the law of both modes."""

import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binom
from test_lattice import key_of, primitives

import jaxdp
from jaxdp.core import Norm, Relation, Sensitivity
from jaxdp.independence.subsample_aggregate import SubsampleAggregate
from jaxdp.mechanisms.smooth_sensitivity import SmoothCauchy, SmoothStudent, smooth_sensitivity
from jaxdp.noise import add, cauchy_tables, tape


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
    worst, split = 0.0, cauchy_tables.rungs_per_decay(float(decay))
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
    decay = Fraction(math.log(2 * math.cosh(epsilon) - 1) if smoothness is None else smoothness)
    found = cauchy_tables.ladder.__wrapped__(Fraction(epsilon), decay, 0, 0, entries)
    assert np.allclose(law_of(found, entries).sum(axis=2), 1.0, atol=1e-12)
    loss = worst_loss(found, entries, decay)
    assert loss <= float(found.facts.epsilon) + 1e-9
    assert found.facts.epsilon <= Fraction(epsilon)
    assert loss >= 0.95 * epsilon


def test_a_width_cut_by_a_tenth_is_caught(monkeypatch):
    real = cauchy_tables._table
    monkeypatch.setattr(cauchy_tables, "_table", lambda width, *rest: real(width * Fraction(9, 10), *rest))
    decay = Fraction(math.log(2 * math.cosh(1.0) - 1))
    found = cauchy_tables.ladder.__wrapped__(Fraction(1), decay, 0, 0, 60)
    assert worst_loss(found, 60, decay) > 1.02


def test_arctangents_are_good_to_100_bits():
    one = 1 << cauchy_tables.FIXED
    pi = cauchy_tables._arctan_nodes()[1]
    assert pi / one == math.pi
    rng = np.random.default_rng(0)
    ratios = [Fraction(x) for x in (*rng.uniform(0, 1, 40), *rng.uniform(1, 50, 40), 1e-6, 3e5, 1.0)]
    fixed = np.array([int(r * one) for r in ratios], dtype=object)
    angles = cauchy_tables._arctan(fixed)
    assert max(abs(int(a) / one - math.atan(r)) for a, r in zip(angles, ratios, strict=True)) <= 1e-15
    # arctan x - arctan y = arctan((x - y)/(1 + x y)): an error of any of the three would show
    x, y = ratios[1:], ratios[:-1]
    for a, b, first, second in zip(x, y, angles[1:], angles[:-1], strict=True):
        third = (a - b) / (1 + a * b)
        (angle,) = cauchy_tables._arctan(np.array([int(abs(third) * one)], dtype=object))
        assert abs(int(first - second) - int(angle) * (1 if third > 0 else -1)) <= 2**12


def test_rungs_cover_the_sensitivity_and_climb_no_further_than_paid():
    law, upper = SmoothCauchy(epsilon=1.0), 5.0
    rng = np.random.default_rng(0)
    values = np.sort(rng.exponential(size=(3000, 9)).clip(0, 5), axis=1)
    moved = values.copy()
    moved[np.arange(3000), rng.integers(0, 9, 3000)] = rng.choice([0.0, 5.0], 3000)
    with jax.enable_x64(True):
        decay, ladder = float(law.decay()), float(law._ladder_decay())
        found = []
        for sample in (values, moved):
            smooth = jax.vmap(lambda x: smooth_sensitivity(x, decay, 0.0, upper))(jnp.asarray(sample))
            center = jnp.sort(jnp.asarray(sample), axis=1)[:, 4]
            steps, rung, step, spread = add.smooth_grid(center, smooth, 0.0, upper, ladder)
            assert float(step) == 2.0**-9
            assert np.all(np.exp(np.asarray(rung) * float(spread)) >= np.asarray(smooth) / float(step) + 1.0)
            assert np.all(np.exp((np.asarray(rung) - 1) * float(spread)) <= np.asarray(smooth) / float(step) + 1.0001)
            found.append((np.asarray(steps), np.asarray(rung)))
    climbed = np.abs(found[0][1] - found[1][1])
    split = cauchy_tables.rungs_per_decay(ladder)
    assert climbed.max() == split == 8
    reach = np.exp(np.minimum(found[0][1], found[1][1]) * float(spread))
    assert np.all(np.abs(found[0][0] - found[1][0]) <= reach)


RANGE = Sensitivity(10.0, Norm.L1, Relation.REPLACE_ONE, 0.0, 0.0, 10.0)


@pytest.mark.parametrize("mode", ["simulation", "release"])
def test_both_modes_have_the_exact_law(mode):
    law, center, smooth, draws = SmoothCauchy(epsilon=1.0), 4.0, 0.5, 20_000
    with jax.enable_x64(True):
        keys = jax.random.split(key_of(3) if mode == "release" else jax.random.key(3), draws)
        perturb = jax.jit(lambda keys: jax.lax.map(lambda key: law.perturb(key, (center, smooth), RANGE), keys))
        found = np.asarray(perturb(keys))
    step = 2.0**-8
    assert np.array_equal(found / step, np.round(found / step))
    assert 0.0 <= found.min() <= found.max() <= 10.0
    spread = math.log(2 * math.cosh(1.0) - 1) / 8
    scale = step / (2 * math.sinh(0.5)) * math.exp(math.ceil(math.log(smooth / step + 1) / spread) * spread)
    for edge in (0.0, 2.0, 3.7, 4.0, 4.2, 6.0, 10.0 - step):
        p = 0.5 + math.atan((edge + step / 2 - center) / scale) / math.pi
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
        program = jax.make_jaxpr(lambda key, v: SmoothCauchy(epsilon=1.0).perturb(key, (v, v), RANGE))(
            key_of(1), jnp.zeros(())
        )
    assert not primitives(program.jaxpr) & {"while", "cond"}
    with pytest.raises(ValueError, match="use SmoothCauchy"):
        jaxdp.run(
            SubsampleAggregate(mechanism=SmoothStudent(epsilon=1.0), statistic_of=test.statistic_of, num_blocks=15),
            jaxdp.fresh_key(),
            data,
        )


def test_missing_values_and_refusals():
    with jax.enable_x64(True):
        steps, rung, _, spread = add.smooth_grid(jnp.nan, jnp.nan, 0.0, 10.0, 0.7)
        assert (float(steps), math.exp(float(rung * spread)) >= 2561) == (0.0, True)
        with tape.recording() as found:
            release = lambda law, bound=RANGE, v=1.0: law.perturb(key_of(1), (v, v), bound)  # noqa: E731
            release(SmoothCauchy(epsilon=1.0))
            assert [call.law for call in found.calls] == ["smooth_cauchy"]
        with pytest.raises(ValueError, match="smoothness"):
            release(SmoothCauchy(epsilon=0.03))
        with pytest.raises(ValueError, match="too small"):
            release(SmoothCauchy(epsilon=0.1, smoothness=1e-4))
        with pytest.raises(ValueError, match="public range"):
            release(SmoothCauchy(epsilon=1.0), Sensitivity(10.0, Norm.L1, Relation.REPLACE_ONE))
        with pytest.raises(ValueError, match="one number"):
            release(SmoothCauchy(epsilon=1.0), v=jnp.zeros(2))
