"""ChaCha20 as a JAX key type: RFC 8439 vector, golden bits, separated streams."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.randomness import chacha

pytestmark = pytest.mark.optimised

MATERIAL = bytes(range(32))


def reference_block(key: bytes, counter: int, nonce: tuple[int, int, int]) -> list[int]:
    """One block in plain Python integers, written from the RFC's pseudocode."""
    words = [int.from_bytes(b"expand 32-byte k"[4 * i : 4 * i + 4], "little") for i in range(4)]
    words += [int.from_bytes(key[4 * i : 4 * i + 4], "little") for i in range(8)]
    words += [counter, *nonce]
    state = list(words)

    def quarter(a, b, c, d):
        for target, other, mixed, count in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            state[target] = (state[target] + state[other]) % 2**32
            value = state[mixed] ^ state[target]
            state[mixed] = (value << count | value >> (32 - count)) % 2**32

    for _ in range(10):
        for column in range(4):
            quarter(column, 4 + column, 8 + column, 12 + column)
        for i in range(4):
            quarter(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    return [(a + b) % 2**32 for a, b in zip(words, state, strict=True)]


def test_block_of_rfc_8439_section_2_3_2():
    nonce = (0x09000000, 0x4A000000, 0x00000000)
    expected = [
        0xE4E7F110, 0x15593BD1, 0x1FDD0F50, 0xC47120A3, 0xC7F4D1C7, 0x0368C033, 0x9AAA2204, 0x4E6CD4C3,
        0x466482D2, 0x09AA9F07, 0x05D7C214, 0xA2028BD9, 0xD19C12B5, 0xB94E16DE, 0xE883D0CB, 0x4E3C50A2,
    ]  # fmt: skip
    key = jnp.asarray(np.frombuffer(MATERIAL, "<u4").astype(np.uint32))
    block = chacha.blocks(key, jnp.ones(1, jnp.uint32), [np.uint32(word) for word in nonce])
    assert block[:, 0].tolist() == expected
    assert reference_block(MATERIAL, 1, nonce) == expected


def test_golden_bits_of_every_stream():
    key = chacha.wrap(MATERIAL)
    with jax.debug_key_reuse(False):
        bits = np.asarray(jax.random.bits(key, (32,), np.uint32))
        children = np.asarray(jax.random.key_data(jax.random.split(key, 2)))
        folded = np.asarray(jax.random.key_data(jax.random.fold_in(key, 7)))
    # two blocks, laid out word by word: word w of block b stands at 2 w + b
    stream = [reference_block(MATERIAL, counter, (0x62697473, 32, 0)) for counter in (0, 1)]
    assert bits.tolist() == [stream[i % 2][i // 2] for i in range(32)]
    assert children.ravel().tolist() == reference_block(MATERIAL, 0, (0x73706C74, 0, 0))
    assert folded.tolist() == reference_block(MATERIAL, 0, (0x666F6C64, 7, 0))[:8]
    assert bits[:4].tolist() == [2629015627, 788693067, 3068996417, 3444683758]


def test_long_streams_run_in_chunks_without_repeats():
    key = chacha.wrap(MATERIAL)
    size = 16 * chacha._CHUNK + 5
    bits = np.asarray(jax.random.bits(key, (size,), np.uint32))
    assert bits[0] == reference_block(MATERIAL, 0, (0x62697473, 32, 0))[0]
    assert bits[16 * chacha._CHUNK] == reference_block(MATERIAL, chacha._CHUNK, (0x62697473, 32, 0))[0]
    # 2^18 words of 32 bits: 8 collisions expected, 60 would be 18 standard deviations
    assert size - np.unique(bits).size < 60


def test_streams_do_not_depend_on_jit_or_vmap():
    keys = jax.random.split(chacha.wrap(MATERIAL), 3)

    def draw(key):
        return jax.random.bits(key, (40,), np.uint32)

    with jax.debug_key_reuse(False):
        eager = np.stack([draw(key) for key in keys])
        assert np.array_equal(eager, jax.vmap(draw)(keys))
        assert np.array_equal(eager, jax.jit(jax.vmap(draw))(keys))
        assert np.array_equal(eager, jax.lax.map(draw, keys, batch_size=2))


def test_split_and_fold_in_are_different_children():
    key = chacha.wrap(MATERIAL)
    with jax.debug_key_reuse(False):
        split = jax.random.key_data(jax.random.split(key, 8))
        folded = jnp.stack([jax.random.key_data(jax.random.fold_in(key, i)) for i in range(8)])
    rows = {tuple(row) for row in np.concatenate([split, folded]).tolist()}
    assert len(rows) == 16


def test_bits_of_64_and_8():
    key = chacha.wrap(MATERIAL)
    with jax.debug_key_reuse(False), jax.enable_x64(True):
        wide = np.asarray(jax.random.bits(key, (1000,), np.uint64))
        narrow = np.asarray(jax.random.bits(key, (1000,), np.uint8))
    assert wide.dtype == np.uint64
    # each of 64 bit positions: 500 +- 8 sd of 15.8
    counts = ((wide[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)).sum(0)
    assert np.all(np.abs(counts - 500.0) < 8 * 15.9)
    assert abs(narrow.mean() - 127.5) < 8 * 73.9 / 1000**0.5


@pytest.mark.parametrize("seed", [0, 5, 2**31])
def test_no_key_from_a_seed(seed):
    with pytest.raises(TypeError, match="fresh_key"):
        jax.random.key(seed, impl=chacha.IMPLEMENTATION)
