"""Standard normals for simulated data, at about 0.4 of the cost of JAX's own; a release never draws them.

Words: Threefry-2x32 with all its 20 rounds (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2,
3", SC 2011, who report that it passes TestU01's BigCrush), the block cipher behind JAX's own keys. A block gives two
words here, where JAX keeps one, and its rounds are written out, so that XLA fuses them with what follows.
Normals: Box and Muller (1958) from all 64 bits of a block, two a block: an angle of 32 bits (an octant and the angle
within it), and the root of -2 log u, u on a grid of 2^-32. So values reach 6.7, where 23 bits end at 5.2.

The key's type asks for them: `for_data(key)` is the same key as a type of its own, whose other draws, splits and folds
are those of the key it came from.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import random as extended

from jaxdp.randomness import threefry_words

NAME = "jaxdp_simulated_data"
PREFIX = 32  # length of a block of cumulative sums
TAG = 0x6E6F726D  # first word of the counter: JAX counts its own draws from a key with 0 there

_THREEFRY = extended.threefry_prng_impl
_DATA = extended.define_prng_impl(
    key_shape=_THREEFRY.key_shape,
    seed=_THREEFRY.seed,
    split=_THREEFRY.split,
    random_bits=_THREEFRY.random_bits,
    fold_in=_THREEFRY.fold_in,
    name=NAME,
    tag="jsim",
)


def for_data(key: jax.Array) -> jax.Array:
    """The key from which simulated data are drawn fast; keys that are not JAX's default stay as they are."""
    if str(jax.random.key_impl(key)) != "threefry2x32":
        return key
    return jax.random.wrap_key_data(jax.random.key_data(key), impl=_DATA)


def are_fast(key: jax.Array) -> bool:
    """Whether `normal` draws fast from this key."""
    return jax.random.key_impl(key) == _DATA and jnp.result_type(float) == jnp.float32


def normal(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Standard normals: fast ones from a key of `for_data`, else (and in 64 bits) those of `jax.random.normal`."""
    if not are_fast(key):
        return jax.random.normal(key, shape)
    count = math.prod(shape)
    # behind a barrier: XLA would encrypt again for each half
    words = lax.optimization_barrier(threefry(jax.random.key_data(key), -(-count // 2)))
    return jnp.concatenate(box_muller(*words))[:count].reshape(shape)


def ordered(key: jax.Array, count: int) -> jax.Array:
    """`count` standard normals in increasing order, up to rounding: as `count` sorted ones, and nothing is sorted.

    Sums of the first i of count + 1 exponentials over the sum of all are ordered uniforms (Devroye, Non-Uniform Random
    Variate Generation, 1986, V.2); their quantiles are ordered normals. In 32 bits within about 5.2.
    """
    spacings = _exponentials(key, count + 1)
    sums = _prefix_sums(spacings)
    last = 1.0 - jnp.finfo(sums.dtype).eps
    return math.sqrt(2.0) * lax.erf_inv(jnp.clip(2.0 * sums[:-1] / sums[-1] - 1.0, -last, last))


def _exponentials(key, count: int):
    if not are_fast(key):
        return jax.random.exponential(key, (count,))
    words = jnp.concatenate(lax.optimization_barrier(threefry(jax.random.key_data(key), -(-count // 2))))[:count]
    return -jnp.log((words.astype(jnp.float32) + 0.5) * np.float32(2.0**-32))


def _prefix_sums(values):
    """Cumulative sums, (n,), of blocks and then of their totals, at two thirds of the cost of one long sum."""
    count = values.shape[0]
    width = min(PREFIX, count)
    blocks = jnp.pad(values, (0, -count % width)).reshape(-1, width)
    within = blocks @ jnp.triu(jnp.ones((width, width), values.dtype))
    before = jnp.cumsum(within[:, -1]) - within[:, -1]
    return (within + before[:, None]).reshape(-1)[:count]


def threefry(key_words, blocks: int) -> tuple[jax.Array, jax.Array]:
    """Both words of the blocks 0, ..., blocks - 1 under a key of two words; arrays (blocks,) of uint32."""
    first = jnp.full((blocks,), np.uint32(TAG))
    return threefry_words.threefry(key_words[0], key_words[1], first, lax.iota(jnp.uint32, blocks))


def box_muller(first, second) -> tuple[jax.Array, jax.Array]:
    """Two independent standard normals from each pair of words.

    The last three bits of `second` choose the octant: whether sine and cosine change places, and both signs. The other
    29 are the angle within [0, pi/4], where short polynomials serve (error below 1e-7).
    """
    radius = jnp.sqrt(-2.0 * jnp.log((first.astype(jnp.float32) + 0.5) * np.float32(2.0**-32)))
    angle = ((second >> 3).astype(jnp.float32) + 0.5) * np.float32(2.0**-29 * math.pi / 4)
    square = angle * angle
    sine = angle * (1.0 + square * (-1 / 6 + square * (1 / 120 + square * (-1 / 5040 + square * (1 / 362880)))))
    cosine = 1.0 + square * (-0.5 + square * (1 / 24 + square * (-1 / 720 + square * (1 / 40320))))
    swap = (second & 1) == 1
    one, other = jnp.where(swap, sine, cosine), jnp.where(swap, cosine, sine)
    return _signed(radius * one, second << 30), _signed(radius * other, second << 29)


def _signed(value, bits):
    """value >= 0 with the first of the bits as its sign."""
    return lax.bitcast_convert_type(
        lax.bitcast_convert_type(value, jnp.uint32) | (bits & np.uint32(0x80000000)), jnp.float32
    )
