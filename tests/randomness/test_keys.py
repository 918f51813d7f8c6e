"""Release keys: from the system's entropy, used once, secret."""

import copy
import logging
import multiprocessing
import pickle
import threading
import traceback

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Norm, Relation, Sensitivity
from jaxdp.randomness import keys
from jaxdp.randomness.keys import ReleaseKey
from jaxdp.simulate.engine import replicates

pytestmark = pytest.mark.optimised

SECRET = bytes(range(100, 132))


def words(key) -> list[int]:
    with jax.debug_key_reuse(False):
        return jax.random.key_data(key).tolist()


def data_of(num_records=64):
    x, y, z = jax.random.normal(jax.random.key(3), (3, num_records))
    return jaxdp.Data(x, y, z)


@pytest.mark.system_entropy
def test_fresh_keys_differ_and_come_from_the_system(monkeypatch):
    assert words(keys.open_key(jaxdp.fresh_key())) != words(keys.open_key(jaxdp.fresh_key()))
    asked = []

    def entropy(count):
        asked.append(count)
        return SECRET

    monkeypatch.setattr("secrets.token_bytes", entropy)
    assert words(keys.open_key(jaxdp.fresh_key())) == words(keys.open_key(ReleaseKey(SECRET)))
    assert asked == [32]


@pytest.mark.system_entropy
def test_no_fallback_if_entropy_fails(monkeypatch):
    def fail(count):
        raise NotImplementedError("no entropy")

    monkeypatch.setattr("secrets.token_bytes", fail)
    with pytest.raises(NotImplementedError):
        jaxdp.fresh_key()


@pytest.mark.parametrize("material", [5, "a" * 32, bytes(31), bytearray(32), None])
def test_release_keys_are_not_made_from_values(material):
    with pytest.raises(TypeError, match="fresh_key"):
        ReleaseKey(material)


def test_second_run_with_one_key_raises():
    key, test = jaxdp.fresh_key(), jaxdp.PartitionGCM(epsilon=1.0)
    jaxdp.run(test, key, data_of())
    for again in (jaxdp.run, jaxdp.release):
        with pytest.raises(ValueError, match="fresh_key"):
            again(test, key, data_of())


def test_split_gives_distinct_keys_and_spends_the_parent():
    key = ReleaseKey(SECRET)
    children = key.split(5)
    assert key.spent
    assert len({tuple(words(keys.open_key(child))) for child in children}) == 5
    with pytest.raises(ValueError, match="used already"):
        keys.open_key(key)
    with pytest.raises(ValueError, match="used already"):
        key.split(2)
    with pytest.raises(ValueError, match="count"):
        ReleaseKey(SECRET).split(0)


def test_threads_cannot_both_use_a_key():
    key, outcomes = jaxdp.fresh_key(), []

    def take():
        try:
            outcomes.append(keys.open_key(key) is not None)
        except ValueError:
            outcomes.append(False)

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == [False] * 7 + [True]


@pytest.mark.parametrize("act", [copy.copy, copy.deepcopy, pickle.dumps, lambda key: pickle.dumps(key, 0)])
def test_keys_cannot_be_duplicated(act):
    with pytest.raises(TypeError, match="fresh_key"):
        act(jaxdp.fresh_key())


def test_key_is_refused_in_another_process(monkeypatch):
    key = jaxdp.fresh_key()
    monkeypatch.setattr("os.getpid", lambda: -1)
    with pytest.raises(ValueError, match="process"):
        keys.open_key(key)


def test_key_does_not_reach_a_child_process():
    context = multiprocessing.get_context("spawn")
    with pytest.raises(TypeError, match="fresh_key"):
        context.Process(target=print, args=(jaxdp.fresh_key(),)).start()


def test_key_is_not_a_pytree_and_not_an_array():
    key = ReleaseKey(SECRET)
    assert jax.tree.leaves(key) == [key]
    assert not hasattr(key, "__dict__")
    for function, error in ((jnp.asarray, TypeError), (jax.jit(lambda key: key), RuntimeError)):
        with pytest.raises(error, match="this release key"):
            function(key)


def test_key_shows_in_no_text(caplog):
    key = ReleaseKey(SECRET)
    child = words(keys.open_key(ReleaseKey(SECRET)))
    forms = [SECRET.hex(), str(SECRET), str(list(SECRET)), *map(str, child), *(f"{word:x}" for word in child)]
    texts = [repr(key), str(key), f"{key}", f"{key:>40}", repr([key]), key.fingerprint]
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("jaxdp").warning("%s %r", key, key)
        result = jaxdp.run(jaxdp.PartitionGCM(epsilon=1.0), key, data_of())
    texts += [caplog.text, str(result), repr(result)]
    for act in (lambda: keys.open_key(key), lambda: pickle.dumps(key), lambda: jaxdp.run(None, key, None)):
        try:
            act()
        except Exception:
            texts.append(traceback.format_exc())
    assert len(texts) == 12
    assert not [(form, text) for form in forms for text in texts if form in text]


def test_an_opened_key_shows_its_words_in_no_text():
    inner = keys.open_key(ReleaseKey(SECRET))
    forms = [f"{word}" for word in words(inner)]
    children = jax.random.split(inner, 2)
    texts = [repr(inner), str(inner), f"{inner}", repr([inner]), repr(children)]
    with pytest.raises(TypeError) as refused:
        jaxdp.run(jaxdp.PartitionGCM(epsilon=1.0), inner, data_of())
    texts.append("".join(traceback.format_exception(refused.value)))
    forms += [f"{word}" for word in np.ravel(words(children))]
    assert not [(form, text) for form in forms for text in texts if form in text]
    with jax.debug_key_reuse(False):
        assert "0" in repr(jax.random.key(0)).partition("overlaying")[2]  # others print as ever


@pytest.mark.parametrize(
    "use",
    [jax.random.split, jax.random.normal, jnp.asarray, jax.vmap(lambda key: key), jax.random.key_data, jax.device_put],
)
def test_a_release_key_given_to_jax_says_where_it_belongs(use):
    key = jaxdp.fresh_key()
    with pytest.raises(TypeError, match=r"this release key is no array: give a jaxdp.fresh_key\(\) to jaxdp.run"):
        use(key)
    assert not key.spent


@pytest.mark.parametrize("arguments", [(), (jnp.zeros(3),)])
def test_a_release_key_given_to_a_compiled_function_says_where_it_belongs(arguments):
    key = jaxdp.fresh_key()
    with pytest.raises(
        RuntimeError, match=r"release key can't be an argument of jax.jit: give a jaxdp.fresh_key\(\) to"
    ):
        jax.jit(lambda *given: 1)(*arguments, key)
    assert not key.spent


def test_a_release_key_given_to_a_mechanism_says_where_it_belongs():
    key = jaxdp.fresh_key()
    for mechanism, norm in ((jaxdp.Laplace(1.0), Norm.L1), (jaxdp.RandomStopping(epsilon=1.0), Norm.LINF)):
        with pytest.raises(TypeError, match=r"opened by jaxdp\.run"):
            mechanism.perturb(key, jnp.zeros(3), Sensitivity(1.0, norm, Relation.REPLACE_ONE, lower=0.0, upper=1.0))
    assert not key.spent


def test_simulations_and_audits_take_no_release_key():
    for use in (
        lambda key: jaxdp.audit.audit("laplace", 1.0, key=key, runs=400),
        lambda key: replicates.p_values(jaxdp.PartitionGCM(epsilon=1.0), lambda k: data_of(), key, 2),
    ):
        with pytest.raises(TypeError, match="release keys are for releases"):
            use(jaxdp.fresh_key())


def test_fingerprint_names_the_key_without_telling_it():
    assert ReleaseKey(SECRET).fingerprint == ReleaseKey(SECRET).fingerprint
    assert ReleaseKey(SECRET).fingerprint != jaxdp.fresh_key().fingerprint
    assert len(ReleaseKey(SECRET).fingerprint) == 64


@pytest.mark.parametrize("key", [0, 5, np.uint32([1, 2]), "secret", None, b"x" * 32, 1.5])
def test_everything_else_is_refused(key):
    with pytest.raises(TypeError, match="fresh_key"):
        jaxdp.run(jaxdp.PartitionGCM(epsilon=1.0), key, data_of())


def test_legacy_keys_are_refused():
    with pytest.raises(TypeError, match=r"fresh_key.*jax.random.wrap_key_data\(key\) of a legacy key"):
        jaxdp.run(jaxdp.PartitionGCM(epsilon=1.0), jax.random.PRNGKey(0), data_of())
    assert keys.admit(jax.random.wrap_key_data(jax.random.PRNGKey(0))) == keys.SIMULATION


def test_modes():
    assert keys.admit(jax.random.key(0)) == keys.mode_of(jax.random.key(0)) == keys.SIMULATION
    assert keys.admit(jaxdp.fresh_key()) == keys.RELEASE
    assert keys.mode_of(keys.open_key(jaxdp.fresh_key())) == keys.RELEASE


def test_non_private_tests_are_refused():
    with pytest.raises(ValueError, match="adds no noise"):
        jaxdp.run(jaxdp.PartitionGCM(mechanism=jaxdp.mechanisms.Exact()), jaxdp.fresh_key(), data_of())


def test_releases_compute_in_float64_from_float32_data():
    @frozen_pytree
    class Probe(jaxdp.PartitionGCM):
        def statistic(self, key, data):
            assert data.x.dtype == data.z.dtype == jnp.float64
            return super().statistic(key, data)

    data = data_of()
    assert data.x.dtype == jnp.float32
    assert jaxdp.run(Probe(epsilon=1.0), jaxdp.fresh_key(), data).p_value.dtype == jnp.float64


@pytest.mark.parametrize(
    ("opened", "count"), [(False, 67), (True, 68)], ids=["cache not yet opened", "cache opened by a simulation"]
)
def test_nothing_of_a_release_lands_in_the_compilation_cache(tmp_path, own_programs, opened, count):
    """Unless `jaxdp.programs` keeps it, in a folder of its own (`test_programs.py`)."""
    values = np.full(count, 0.7853981633974483)  # sizes of their own: nothing is compiled before
    cells = jaxdp.PartitionGCM(epsilon=1.0, num_cells=3)
    if opened:
        jax.jit(lambda value: value + 1)(values)
    programs = set(tmp_path.rglob("*-cache"))
    assert bool(programs) == opened  # the cache of this test is the one in use
    jaxdp.run(cells, jaxdp.fresh_key(), jaxdp.Data(values, values, values))
    assert set(tmp_path.rglob("*-cache")) == programs
    assert {name: getattr(jax.config, name) for name in own_programs} == own_programs
