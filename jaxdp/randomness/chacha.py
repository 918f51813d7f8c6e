"""ChaCha20 (RFC 8439) as a JAX key type, for releases.

A key is 8 words of 32 bits. Random bits, splits and folds read blocks under different nonces, so no
value of one is ever a value of another. There is no way from an integer seed to a key.
"""

import functools
from typing import Any

import jax
import jax.extend.random
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxdp._base.kept_programs import kept_jit

NAME, TAG = "chacha20", "cc20"

_CONSTANTS = np.frombuffer(b"expand 32-byte k", dtype="<u4").astype(np.uint32)
_BITS, _SPLIT, _FOLD = (np.uint32(tag) for tag in (0x62697473, 0x73706C74, 0x666F6C64))
_CHUNK = 1 << 8  # blocks per pass: the state of one pass, 16 kB, stays in the nearest cache
_WORDS = 16
# Row r of the 4 x 4 state turns left by r, so that diagonals become columns; and back.
_TO_DIAGONALS = np.array([4 * row + (column + row) % 4 for row in range(4) for column in range(4)], np.int32)
_TO_COLUMNS = np.argsort(_TO_DIAGONALS).astype(np.int32)


def _rotate(x, count: int):
    return (x << np.uint32(count)) | (x >> np.uint32(32 - count))


def _quarter_rounds(state):
    """Four quarter rounds at once, one per column of the state (16, n) read as 4 rows of 4 words."""
    a, b, c, d = (state[4 * i : 4 * i + 4] for i in range(4))
    a = a + b
    d = _rotate(d ^ a, 16)
    c = c + d
    b = _rotate(b ^ c, 12)
    a = a + b
    d = _rotate(d ^ a, 8)
    c = c + d
    b = _rotate(b ^ c, 7)
    return jnp.concatenate([a, b, c, d])


def _double_round(_, state):
    return _quarter_rounds(_quarter_rounds(state)[_TO_DIAGONALS])[_TO_COLUMNS]


def blocks(key, counters, nonce):
    """Key stream blocks, uint32 array (16, n).

    key: (8,) uint32; counters: (n,) uint32; nonce: three words, arrays () or (n,).
    """
    zero = jnp.zeros_like(counters)
    words = [*(zero + word for word in _CONSTANTS), *(zero + key[i] for i in range(8)), counters]
    state = jnp.stack([*words, *(zero + jnp.asarray(word, np.uint32) for word in nonce)])
    return lax.fori_loop(0, 10, _double_round, state) + state


@functools.partial(kept_jit, quickly=True, static_argnums=1)
def _stream(key, count: int, nonce):
    """`count` words of key stream."""
    needed = max(1, -(-count // _WORDS))
    if needed <= _CHUNK:
        return blocks(key, lax.iota(np.uint32, needed), nonce).ravel()[:count]
    if needed >= 1 << 32:
        raise ValueError(f"one key gives at most 2^36 words, asked for {count}; split the key.")
    chunks = -(-needed // _CHUNK)
    start = lax.iota(np.uint32, chunks) * np.uint32(_CHUNK)

    def part(first):
        return blocks(key, first + lax.iota(np.uint32, _CHUNK), nonce)

    return lax.map(part, start).ravel()[:count]


def _random_bits(key, bit_width: int, shape):
    size = int(np.prod(shape, dtype=np.int64))
    nonce = (_BITS, np.uint32(bit_width), np.uint32(0))
    if bit_width == 64:
        low, high = jnp.split(_stream(key, 2 * size, nonce), 2)
        return (low.astype(np.uint64) | (high.astype(np.uint64) << np.uint64(32))).reshape(shape)
    words = _stream(key, size, nonce).reshape(shape)
    return words.astype({8: np.uint8, 16: np.uint16, 32: np.uint32}[bit_width])


def _split(key, shape):
    count = int(np.prod(shape, dtype=np.int64))
    return _stream(key, 8 * count, (_SPLIT, np.uint32(0), np.uint32(0))).reshape(*shape, 8)


def _fold_in(key, data):
    return _stream(key, 8, (_FOLD, jnp.asarray(data, np.uint32), np.uint32(0)))


def _refuse_seed(seed):
    raise TypeError("a release key comes from the operating system, never from a seed: use jaxdp.fresh_key().")


IMPLEMENTATION = jax.extend.random.define_prng_impl(
    key_shape=(8,), seed=_refuse_seed, split=_split, random_bits=_random_bits, fold_in=_fold_in, name=NAME, tag=TAG
)


def wrap(material: bytes):
    """The typed JAX key of 32 secret bytes."""
    if len(material) != 32:
        raise ValueError(f"a release key has 32 bytes, got {len(material)}.")
    words = jnp.asarray(np.frombuffer(material, "<u4").astype(np.uint32))
    key = jax.random.wrap_key_data(words, impl=IMPLEMENTATION)
    _hide_words(type(key))
    return key


def _hide_words(kind: type) -> None:
    """Keys of this implementation print without their words: JAX's own text of a key array shows them."""
    if getattr(kind.__repr__, "hides_words", False):
        return
    shown: Any = kind.__repr__

    def hidden(key) -> str:
        if jax.random.key_impl(key) == IMPLEMENTATION:
            return f"Array({key.shape}, dtype={key.dtype.name}) <secret>"
        return shown(key)

    hidden.hides_words = True  # type: ignore[attr-defined]
    kind.__repr__ = hidden  # type: ignore[method-assign,assignment]
