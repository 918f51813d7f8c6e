"""Random words: those of the built-in generator, bit for bit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.randomness.threefry_words import random_words


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
@pytest.mark.parametrize("shape", [(), (7,), (0,), (2, 3, 4)])
def test_words_are_those_of_the_built_in_generator(impl, shape):
    def word(make):
        return np.asarray(make(jax.random.key(3, impl=impl), shape))

    np.testing.assert_array_equal(word(random_words), word(lambda key, s: jax.random.bits(key, s, jnp.uint32)))


def test_words_of_many_keys_and_a_key_used_twice():
    def keys():
        return jax.random.split(jax.random.key(1), 4)

    built_in = jax.vmap(lambda key: jax.random.bits(key, (5,), jnp.uint32))(keys())
    np.testing.assert_array_equal(jax.vmap(lambda key: random_words(key, (5,)))(keys()), built_in)
    np.testing.assert_array_equal(jax.lax.map(lambda key: random_words(key, (5,)), keys()), built_in)
    key = jax.random.key(2)
    random_words(key, (2,))
    with pytest.raises(jax.errors.KeyReuseError):
        random_words(key, (2,))
