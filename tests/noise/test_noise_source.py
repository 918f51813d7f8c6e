"""Sources of noise: opened once, handed to mechanisms; what each kind refuses, and that a tape changes nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_lattice import key_of

import jaxdp
from jaxdp.core import Norm, PrivateQuery, Relation, Sensitivity
from jaxdp.discovery.engine.checkpoint import keeping
from jaxdp.mechanisms import MaxNorm
from jaxdp.mechanisms.law import Law
from jaxdp.mechanisms.selection import TopK
from jaxdp.mechanisms.sparse_vector import SparseVector
from jaxdp.noise.recorder import Tape
from jaxdp.noise.source import FloatNoise, LatticeNoise, RecordedNoise, source_from_key
from jaxdp.randomness.keys import RecordedKey

MECHANISMS = {
    "laplace": (jaxdp.Laplace(1.0), Norm.L1),
    "geometric": (jaxdp.Geometric(1.0), Norm.L1),
    "gaussian": (jaxdp.Gaussian(rho=0.5), Norm.L2),
    "max_norm": (MaxNorm(epsilon=1.0), Norm.LINF),
    "argmax_exponential": (jaxdp.ReportNoisyMax(epsilon=1.0), Norm.LINF),
    "argmax_gumbel": (jaxdp.ExponentialMechanism(epsilon=1.0), Norm.LINF),
    "largest_gumbel": (TopK(epsilon=1.0, count=2), Norm.LINF),
    "best_of_runs": (jaxdp.RandomStopping(epsilon=3.0), Norm.LINF),
}


class Coin(Law):
    """A law of another package, which leaves a certificate of its own; says nothing about keeping its outputs."""

    name, norm = "coin", Norm.L1

    def float_draw(self, key, value, sensitivity):
        return value + jax.random.bernoulli(key)

    def lattice_draw(self, key, value, sensitivity):
        return value + 2.0, "certificate of the coin"

    def parameters(self, sensitivity):
        return sensitivity.bound, 1.0


def test_a_law_of_another_package_is_drawn_taped_and_certified_but_its_outputs_are_not_kept(tmp_path):
    with jax.enable_x64(True):
        source, tape = LatticeNoise(key_of(1)), Tape()
        assert float(Coin().perturb(RecordedNoise(source, tape), 1.0, bound(Norm.L1))) == 3.0
    assert source.certificates == ("certificate of the coin",)
    assert [(call.law.name, call.parameters, call.output) for call in tape.calls] == [("coin", (1.0, 1.0), 3.0)]
    assert float(Coin().perturb(FloatNoise(jax.random.key(0)), 1.0, bound(Norm.L1))) in (1.0, 2.0)
    with pytest.raises(ValueError, match="Coin needs an L1 bound, got linf"):
        Coin().perturb(FloatNoise(jax.random.key(0)), 1.0, bound(Norm.LINF))
    with keeping(tmp_path / "answers") as kept:
        kept.begin({"search": "a"})
        source = RecordedNoise(FloatNoise(jax.random.key(0)), kept)
        for (law, norm), own in zip(MECHANISMS.values(), source.split(len(MECHANISMS)), strict=True):
            law.perturb(own, jnp.arange(4.0), bound(norm))
        assert len(kept.answers) == len(MECHANISMS)
        with pytest.raises(NotImplementedError, match="answers of coin"):
            Coin().perturb(source.fold_in(1), 1.0, bound(Norm.L1))
        with pytest.raises(NotImplementedError, match="answers of sparse_threshold"):
            SparseVector(epsilon=1.0).answers_opened(source.fold_in(2), jnp.zeros(3))
        assert len(kept.answers) == len(MECHANISMS)


def bound(norm):
    return Sensitivity(1.0, norm, Relation.REPLACE_ONE, lower=-10.0, upper=10.0)


@pytest.mark.parametrize("mode", ["simulation", "release"])
@pytest.mark.parametrize("law", sorted(MECHANISMS))
def test_a_tape_holds_every_draw_and_changes_none(law, mode):
    mechanism, norm = MECHANISMS[law]
    with jax.enable_x64(mode == "release"), jax.debug_key_reuse(False):
        source = LatticeNoise(key_of(1)) if mode == "release" else FloatNoise(jax.random.key(1))
        value, tape = jnp.arange(4) if law == "geometric" else jnp.arange(4.0), Tape()
        plain = mechanism.perturb(source, value, bound(norm))
        recorded = mechanism.perturb(RecordedNoise(source, tape), value, bound(norm))
        replaced = RecordedNoise(source, Tape(outputs=[plain * 0]))
        assert np.array_equal(mechanism.perturb(replaced, value, bound(norm)), plain * 0)
    assert np.array_equal(plain, recorded)
    assert [call.law.name for call in tape.calls] == [law]
    assert np.array_equal(tape.calls[0].value, value)
    assert float(tape.calls[0].parameters[0]) == 1.0


def test_a_release_collects_the_certificates_of_its_own_draws():
    with jax.enable_x64(True):
        source = source_from_key(jaxdp.fresh_key())
        first, second = source.split()
        jaxdp.Laplace(1.0).perturb(first, jnp.zeros(()), bound(Norm.L1))
        own = second.collecting()
        jaxdp.Laplace(0.5).perturb(own.fold_in(3), jnp.zeros(()), bound(Norm.L1))
    assert [facts.law for facts in source.certificates] == ["laplace"]
    assert [0.49 < facts.epsilon <= 0.5 for facts in own.certificates] == [True]
    assert source_from_key(jax.random.key(0)).certificates == ()


@pytest.mark.parametrize("law", sorted(MECHANISMS))
def test_exact_noise_of_a_fixed_key_is_not_compiled_into_a_program(law):
    """The program would add the same noise in every call: two values would be told apart exactly."""
    mechanism, norm = MECHANISMS[law]
    with jax.enable_x64(True), jax.debug_key_reuse(False):
        source, value = LatticeNoise(key_of(1)), np.arange(4, dtype=np.int64 if law == "geometric" else np.float64)

        def draw(v):
            return mechanism.perturb(source, v, bound(norm))

        for program, argument in ((jax.jit(draw), value), (jax.vmap(draw), value[None])):
            with pytest.raises(RuntimeError, match="traced value"):
                program(argument)


@jaxdp.private_test
class Compiling:
    """A mechanism that compiles its own draw around the source it was given."""

    epsilon: float = 1.0

    def perturb(self, source, value, sensitivity):
        return jax.jit(lambda v: jaxdp.Laplace(self.epsilon).perturb(source, v, sensitivity))(value)

    def cost(self, relation):
        return jaxdp.Cost(epsilon=self.epsilon, relation=relation)

    def share(self, fraction):
        return self


@jaxdp.private_test
class Total(PrivateQuery):
    """The sum of x, which moves by at most 1."""

    def mechanism_in_force(self):
        return self.mechanism

    def statistic(self, key, data):
        return jnp.sum(jnp.clip(data.x, 0.0, 1.0))

    def sensitivity(self, num_records):
        return bound(Norm.L1)


def test_a_mechanism_that_compiles_its_draw_simulates_and_releases_nothing():
    test, data = Total(mechanism=Compiling()), jaxdp.Data(*jax.random.normal(jax.random.key(0), (3, 40)))
    assert np.isfinite(jaxdp.release(test, jax.random.key(1), data).value)
    with pytest.raises(RuntimeError, match="traced value"):
        jaxdp.release(test, jaxdp.fresh_key(), data)


def test_each_kind_takes_its_own_keys():
    with pytest.raises(TypeError, match="simulations take a built-in key"):
        FloatNoise(key_of(1))
    with pytest.raises(TypeError, match="drawn with a release key"):
        LatticeNoise(jax.random.key(0))
    with pytest.raises(TypeError, match="source of noise"):
        jaxdp.Laplace(1.0).perturb(jax.random.key(0), jnp.zeros(()), bound(Norm.L1))


def test_what_holds_a_secret_prints_none():
    words = {str(word) for word in np.asarray(jax.random.key_data(key_of(123456789))).ravel() if word > 9}
    source = LatticeNoise(key_of(123456789))
    for text in (repr(source), str(source), repr(RecordedNoise(source, Tape()))):
        assert not [word for word in words if word in text]


def test_a_recorded_release_key_serves_once():
    key, tape = jaxdp.fresh_key(), Tape()
    data = jaxdp.Data(*jax.random.normal(jax.random.key(0), (3, 100)))
    result = jaxdp.run(jaxdp.PartitionGCM(epsilon=1.0), RecordedKey(key, tape), data)
    assert (result.mode, len(result.release.certificates), len(tape.calls)) == ("release", 2, 2)
    assert [float(call.output) for call in tape.calls] == [float(v) for _, v in sorted(result.release.value.items())]
    with pytest.raises(ValueError, match="used already"):
        jaxdp.run(jaxdp.PartitionGCM(epsilon=1.0), RecordedKey(key, Tape()), data)
