"""Release noise on the lattice: steps, windows, refusals, reproducibility, fixed work."""

import functools
import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp import core
from jaxdp.core import Norm, Relation, Sensitivity
from jaxdp.mechanisms import ExponentialMechanism, Gaussian, Geometric, Laplace, MaxNorm, RankThreshold, ReportNoisyMax
from jaxdp.noise import certificate, lattice
from jaxdp.noise.source import LatticeNoise
from jaxdp.randomness import chacha

pytestmark = pytest.mark.optimised


def key_of(number: int):
    return chacha.wrap(number.to_bytes(32, "little"))


def sensitivity(bound=2.0, norm=Norm.L1, **others):
    return Sensitivity(bound, norm, Relation.REPLACE_ONE, **{"lower": -50.0, "upper": 50.0, **others})


RANK = (sensitivity(2.0, Norm.LINF), sensitivity(6.0, Norm.LINF))
RELEASES = {
    "laplace": (Laplace(0.7), jnp.linspace(-60.0, 60.0, 6), sensitivity(error=1e-9)),
    "geometric": (Geometric(0.7), np.arange(-2, 4), sensitivity()),
    "gaussian": (Gaussian(0.3), jnp.linspace(-60.0, 60.0, 6), sensitivity(norm=Norm.L2, error=1e-9)),
    "max norm": (MaxNorm(0.7), jnp.linspace(-60.0, 60.0, 6), sensitivity(norm=Norm.LINF, error=1e-9)),
    "noisy max": (ReportNoisyMax(epsilon=0.7), jnp.linspace(-3.0, 3.0, 6), sensitivity(1.0, Norm.LINF)),
    "exponential": (ExponentialMechanism(epsilon=0.7), jnp.linspace(-3.0, 3.0, 6), sensitivity(1.0, Norm.LINF)),
    "rank": (RankThreshold(epsilon=2.0, level=0.25), (jnp.float32(9.0), jnp.linspace(-9.0, 9.0, 19)), RANK),
}
NAMES = sorted(RELEASES)


def widened(value):
    def whole(leaf):
        return jnp.issubdtype(leaf.dtype, jnp.integer)

    return jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf, np.int64 if whole(leaf) else np.float64)), value)


def draw(name, key):
    mechanism, value, bound = RELEASES[name]
    return mechanism.perturb(LatticeNoise(key), widened(value), bound)


@pytest.mark.full
@pytest.mark.parametrize("name", NAMES)
def test_same_integers_under_jit_and_vmap(name):
    keys = jax.random.split(key_of(1), 3)
    with jax.enable_x64(True), jax.debug_key_reuse(False):
        eager = np.stack([draw(name, key) for key in keys])
        mapped = jax.vmap(functools.partial(draw, name))(keys)
        compiled = jax.jit(lambda keys: jax.lax.map(functools.partial(draw, name), keys))(keys)
    assert np.array_equal(eager, mapped)
    assert np.array_equal(eager, compiled)
    assert len(np.unique(eager.reshape(3, -1), axis=0)) > 1 or name == "rank"


def test_golden_release():
    with jax.enable_x64(True):
        value = lattice.laplace(key_of(7), jnp.zeros(3), sensitivity(), 1.0)[0]
        counts = lattice.geometric(key_of(8), jnp.arange(3), sensitivity(), 0.5)[0]
    assert (value * 2.0**12).tolist() == [2054.0, -1134.0, -2250.0]
    assert counts.tolist() == [1.0, 11.0, 6.0]


@pytest.mark.parametrize("name", NAMES)
def test_no_loop_depends_on_data(name):
    with jax.enable_x64(True):
        mechanism, value, bound = RELEASES[name]
        program = jax.make_jaxpr(lambda key, value: mechanism.perturb(LatticeNoise(key), value, bound))(
            key_of(1), widened(value)
        )
    used = primitives(program.jaxpr)
    assert not used & {"while", "cond"}
    assert "random_bits" in used


def primitives(jaxpr) -> set[str]:
    """Names of all primitives, inner programs included."""
    names = set()
    for equation in jaxpr.eqns:
        names.add(equation.primitive.name)
        for inner in jax.tree.leaves(equation.params, is_leaf=lambda leaf: hasattr(leaf, "eqns")):
            inner = getattr(inner, "jaxpr", inner)
            if hasattr(inner, "eqns"):
                names |= primitives(inner)
    return names


def test_loop_finder_sees_a_loop():
    looping = jax.make_jaxpr(jax.jit(lambda x: jax.lax.while_loop(lambda v: v < 3, lambda v: v + 1, x)))(0)
    assert "while" in primitives(looping.jaxpr)


@pytest.mark.parametrize("name", ["laplace", "geometric", "gaussian"])
def test_outputs_are_steps_inside_the_window(name):
    mechanism, _, bound = RELEASES[name]
    values = np.where(np.arange(50_000) % 2, 1e30, -1e30)
    values = np.where(values > 0, 2**60, -(2**60)) if name == "geometric" else values
    source = LatticeNoise(key_of(2))
    with jax.enable_x64(True):
        bound = Sensitivity(2.0 * values.size, bound.norm, bound.relation, lower=-50.0, upper=50.0)
        noisy = np.asarray(mechanism.perturb(source, jnp.asarray(values), bound))
    (facts,) = source.certificates
    steps = noisy / float(facts.step)
    assert np.array_equal(steps, np.round(steps))
    assert facts.low <= steps.min() <= steps.max() <= facts.high
    # half of the values stand on either end of the range, so noise goes beyond it on both sides
    assert noisy.min() < -50.0 < 50.0 < noisy.max()


def test_public_range_clips_each_coordinate():
    lower, upper = np.array([0.5, -5.0]), np.array([1.0, 5.0])
    bound = sensitivity(1e-6, lower=lower, upper=upper)
    with jax.enable_x64(True):
        noisy = lattice.laplace(key_of(3), jnp.array([9.0, -9.0]), bound, 8.0)[0]
        missing = lattice.laplace(key_of(4), jnp.array([jnp.nan, jnp.inf]), bound, 8.0)[0]
    assert np.allclose(noisy, [1.0, -5.0], atol=1e-4)
    assert np.allclose(missing, [0.5, 5.0], atol=1e-4)


def test_statistic_is_rounded_down_on_the_lattice():
    with jax.enable_x64(True):
        values = jnp.array([0.3, -0.3, 0.25, -0.25, 0.5, 1.5])
        steps = lattice._steps(values, -1, [-100], [100])
    assert steps.tolist() == [math.floor(2 * v) for v in (0.3, -0.3, 0.25, -0.25, 0.5, 1.5)]


@pytest.mark.parametrize("size", [1, 2, 3, 100, 1000, 40_000])
def test_vectors_of_every_length(size):
    with jax.enable_x64(True):
        noisy, facts = lattice.laplace(key_of(size), jnp.zeros(size), sensitivity(float(size)), 1.0)
    assert noisy.shape == (size,)
    assert facts.epsilon <= 1
    assert size == 1 or np.unique(noisy).size > size // 2
    # mean |noise| of scale `size`: mean 1, sd 1 per draw
    assert size < 100 or abs(np.abs(noisy).mean() / size - 1) < 6 / size**0.5


def test_shapes_are_kept():
    with jax.enable_x64(True):
        assert lattice.laplace(key_of(1), jnp.zeros((2, 3)), sensitivity(), 1.0)[0].shape == (2, 3)
        assert lattice.gaussian(key_of(1), jnp.zeros(()), sensitivity(norm=Norm.L2), 1.0)[0].shape == ()


def test_mechanisms_refuse_what_has_no_certificate():
    value, good = jnp.float32(0.0), sensitivity()
    with jax.enable_x64(True):
        value = jnp.zeros(())

        def release(bound=good, epsilon=1.0, v=value):
            return lattice.laplace(key_of(1), v, bound, epsilon)

        for bad in (sensitivity(lower=None), sensitivity(upper=None)):
            with pytest.raises(ValueError, match="public range"):
                release(bad)
        with pytest.raises(ValueError, match="lower must be <= upper"):
            release(sensitivity(lower=3.0, upper=1.0))
        with pytest.raises(ValueError, match="sensitivity > 0"):
            release(sensitivity(0.0))
        with pytest.raises(ValueError, match="finite"):
            release(sensitivity(math.inf))
        with pytest.raises(ValueError, match="narrower range"):
            release(sensitivity(1e-30))
        with pytest.raises(ValueError, match="one number"):
            release(epsilon=jnp.ones(2))
        with pytest.raises(TypeError, match="float64"):
            release(v=jnp.zeros((), jnp.float32))
        with pytest.raises(TypeError, match="whole numbers"):
            Geometric(1.0).perturb(LatticeNoise(key_of(1)), jnp.zeros(3), good)
        with pytest.raises(ValueError, match="jit"):
            jax.jit(lambda epsilon: release(epsilon=epsilon)[0])(1.0)
        with pytest.raises(ValueError, match="one vector"):
            lattice.argmax_exponential(key_of(1), jnp.zeros((2, 2)), sensitivity(norm=Norm.LINF), 1.0)
        with pytest.raises(ValueError, match="ReportNoisyMax"):
            lattice.argmax_gumbel(key_of(1), jnp.zeros(5000), sensitivity(norm=Norm.LINF), 1.0)
        with pytest.raises(ValueError, match="at least one value"):
            release(v=jnp.zeros(0))


def test_traced_budget_is_refused_with_a_way_out():
    data = jaxdp.Data(*jnp.zeros((3, 40)))

    def p_value(epsilon, source):
        return core.run_opened(jaxdp.PartitionGCM(epsilon=epsilon), source, data).p_value

    fixed = LatticeNoise(key_of(1))
    with jax.enable_x64(True), pytest.raises(ValueError, match="outside jit"):
        jax.jit(lambda epsilon, key: p_value(epsilon, LatticeNoise(key)))(1.0, key_of(1))
    with jax.enable_x64(True), pytest.raises(RuntimeError, match="traced value"):
        jax.jit(lambda epsilon: p_value(epsilon, fixed))(1.0)


@pytest.mark.parametrize("ratio", [1e2, 1e5, 1e9])
def test_delta_is_zero_however_wide_the_range(ratio):
    epsilon = Fraction(1, 10)
    facts, table = certificate.additive("laplace", Fraction(1024), epsilon, Fraction(1), 0, int(ratio * 10240), 1)
    # every output of the window has positive probability: 2^-50 of a law on at most 2^52 points
    assert facts.high - facts.low < 2**52
    assert facts.epsilon <= epsilon
    assert table.rate * 2 ** len(table.digits) >= (51 + (facts.high - facts.low).bit_length()) * Fraction(69, 100)


def test_release_carries_its_certificates():
    x, y, z = jax.random.normal(jax.random.key(0), (3, 100))
    result = jaxdp.run(jaxdp.PartitionGCM(epsilon=1.0), jaxdp.fresh_key(), jaxdp.Data(x, y, z))
    facts = result.release.certificates
    assert [fact.law for fact in facts] == ["laplace", "laplace"]
    assert 1 - 1e-9 < sum(fact.epsilon for fact in facts) <= 1
    assert result.release.value["covariance"] % float(facts[0].step) == 0
    assert result.mode == "release"
    assert "NOT PRIVATE" not in str(result)


def test_release_without_certified_noise_is_refused():
    @jax.tree_util.register_dataclass
    class HomeMade(Laplace):
        def perturb(self, source, value, sensitivity):
            return value + self.noise(source.key, sensitivity)

    test = jaxdp.PartitionGCM(mechanism=jaxdp.Split(parts={"covariance": HomeMade(1.0), "variance": HomeMade(1.0)}))
    with pytest.raises(ValueError, match="no certified noise"):
        jaxdp.run(test, jaxdp.fresh_key(), jaxdp.Data(*jnp.zeros((3, 40))))


def test_moves_cover_every_rounding():
    rng = np.random.default_rng(4)
    for size, reach in ((1, 2.0), (5, 1.0), (40, 3.0)):
        plan = lattice.plan_laplace(size, sensitivity(reach), 1.0)
        step = float(plan.facts.step)
        worst = 0
        for trial in range(200):
            change = rng.dirichlet(np.ones(size)) * reach * (1 - 1e-12) * rng.choice([-1, 1], size)
            # starting just below (or on) a step, every coordinate crosses one more boundary than its length
            base = rng.integers(-9, 9, size) * step - np.where(change > 0, 1e-13, 0) * (trial % 2)
            with jax.enable_x64(True):
                steps = [
                    lattice._steps(jnp.asarray(v), plan.exponent, [-(2**40)], [2**40]) for v in (base, base + change)
                ]
            worst = max(worst, int(np.abs(np.asarray(steps[0]) - np.asarray(steps[1])).sum()))
        assert worst <= plan.facts.moves
        assert worst >= plan.facts.moves - size + size // 3


def test_wide_ranges_do_not_wrap():
    with jax.enable_x64(True):
        bound = sensitivity(1.0, lower=-1e9, upper=1e9)
        noisy = lattice.laplace(key_of(5), jnp.array(9e8), bound, 1.0)[0]
    assert abs(float(noisy) - 9e8) < 100


def test_stages_are_charged():
    x, y, z = jax.random.normal(jax.random.key(0), (3, 100))
    result = jaxdp.run(jaxdp.PartitionGCM(epsilon=1.0, standardize=True), jaxdp.fresh_key(), jaxdp.Data(x, y, z))
    spent = sum(fact.epsilon for stage in (result.release, *result.release.earlier) for fact in stage.certificates)
    assert 1 - 1e-9 < spent <= 1
    assert float(result.cost.epsilon) == pytest.approx(1.0, rel=1e-12)
