"""Fixed-work integer samplers: functions of random bits and thresholds, nothing else.

Every digit is a comparison of a uniform 64, 128 or 192-bit integer with a threshold, most significant
limb first. No loop, branch or address depends on a random or a private value.
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

_CHUNK = 1 << 13  # draws per pass, so that the bits of one pass stay in a CPU's cache


def limbs_of(number: int, count: int) -> list[int]:
    """A non-negative integer as `count` 64-bit limbs, most significant first."""
    return [number >> 64 * (count - 1 - i) & (2**64 - 1) for i in range(count)]


def packed(thresholds) -> np.ndarray:
    """Pairs (threshold, bits) as one flat uint64 array."""
    return np.array([limb for number, bits in thresholds for limb in limbs_of(number, bits // 64)], np.uint64)


def below(bits, threshold):
    """Whether integers given by limbs (L, n) lie below one threshold (L,); lexicographic, no early exit."""
    smaller = jnp.zeros(bits.shape[1:], bool)
    for i in range(bits.shape[0] - 1, -1, -1):
        smaller = (bits[i] < threshold[i]) | ((bits[i] == threshold[i]) & smaller)
    return smaller


def geometric(bits, thresholds, limbs: tuple[int, ...]):
    """Integers sum_i 2^i 1{bits of digit i < threshold i}; bits (sum of limbs, n)."""
    total, row = jnp.zeros(bits.shape[1:], np.int64), 0
    for i, width in enumerate(limbs):
        rows = slice(row, row + width)
        total = total + (below(bits[rows], thresholds[rows]).astype(np.int64) << np.int64(i))
        row += width
    return total


def two_sided(bits, thresholds, limbs: tuple[int, ...]):
    """Integers with P(k) proportional to exp(-rate |k|), from bits (sum of limbs + 3, n).

    The last three rows decide zero (two limbs) and the sign.
    """
    size = sum(limbs)
    zero = below(bits[size : size + 2], thresholds[size : size + 2])
    magnitude = 1 + geometric(bits, thresholds, limbs)
    negative = (bits[size + 2] >> np.uint64(63)).astype(bool)
    return jnp.where(zero, 0, jnp.where(negative, -magnitude, magnitude))


def escapes(bits, escape_bits: int):
    """Events of probability 2^-escape_bits, from one row of bits."""
    return bits >> np.uint64(64 - escape_bits) == 0


def uniform(bits, low, high, width: int):
    """A law on low..high that gives each point at least 2^-width; one row of bits, width <= 63."""
    offset = (bits & np.uint64(2**width - 1)).astype(np.int64)
    return low + jnp.minimum(offset, high - low)


def table_draw(bits, table):
    """Index of the first table entry above each uniform integer; bits (L, n), table (size, L) ascending.

    Binary search of a fixed number of steps.
    """
    size = table.shape[0]
    index = jnp.zeros(bits.shape[1:], np.int32)
    for step in range(math.ceil(math.log2(size + 1)) - 1, -1, -1):
        probe = jnp.minimum(index + (1 << step), size)
        entry = table[probe - 1]
        above = jnp.zeros(bits.shape[1:], bool)
        for i in range(bits.shape[0] - 1, -1, -1):
            above = (bits[i] < entry[..., i]) | ((bits[i] == entry[..., i]) & above)
        index = jnp.where((index + (1 << step) <= size) & ~above, probe, index)
    return index


def in_chunks(key, rows: int, size: int, draw):
    """draw(bits (rows, m)) over `size` draws in passes of fixed length; results (..., size) per leaf."""
    if size <= _CHUNK:
        return draw(jax.random.bits(key, (rows, size), np.uint64))
    chunks = -(-size // _CHUNK)
    parts = jax.lax.map(
        lambda part: draw(jax.random.bits(part, (rows, _CHUNK), np.uint64)), jax.random.split(key, chunks)
    )
    return jax.tree.map(lambda array: array.ravel()[:size], parts)


@functools.partial(jax.jit, static_argnames=("limbs", "escape_bits", "width", "size"))
def released(key, value, thresholds, low, high, *, limbs, escape_bits, width, size):
    """value + two-sided noise, integers (size,); with probability 2^-escape_bits a point of low..high."""

    def draw(bits):
        rows = sum(limbs) + 3
        noise = two_sided(bits[:rows], thresholds, limbs)
        return noise, escapes(bits[rows], escape_bits), uniform(bits[rows + 1], low, high, width)

    noise, escaped, anywhere = in_chunks(key, sum(limbs) + 5, size, draw)
    return jnp.where(escaped, anywhere, value + noise)


@functools.partial(jax.jit, static_argnames=("limbs", "escape_bits", "width", "size"))
def selected(key, scores, thresholds, *, limbs, escape_bits, width, size):
    """argmax of integer scores + one-sided geometric noise; with probability 2^-escape_bits any index."""
    key_noise, key_escape = jax.random.split(key)
    rows = sum(limbs)
    noise = in_chunks(key_noise, rows, size, lambda bits: geometric(bits, thresholds, limbs))
    spare = jax.random.bits(key_escape, (2,), np.uint64)
    anywhere = uniform(spare[1], np.int64(0), np.int64(size - 1), width)
    return jnp.where(escapes(spare[0], escape_bits), anywhere, jnp.argmax(scores + noise).astype(np.int64))


@functools.partial(jax.jit, static_argnames=("limbs", "escape_bits", "size", "count"))
def ranked(key, values, thresholds, *, limbs, escape_bits, size, count):
    """Whether at most `count` of noisy values[1:] reach noisy values[0]; with probability 2^-escape_bits a coin."""
    key_noise, key_escape = jax.random.split(key)
    noise = in_chunks(key_noise, sum(limbs) + 3, size, lambda bits: two_sided(bits, thresholds, limbs))
    spare = jax.random.bits(key_escape, (2,), np.uint64)
    noisy = values + noise
    decision = jnp.sum(noisy[1:] >= noisy[0]) <= count
    return jnp.where(escapes(spare[0], escape_bits), (spare[1] & np.uint64(1)).astype(bool), decision)


@functools.partial(jax.jit, static_argnames=("limbs", "escape_bits", "width", "rounds", "size"))
def proposed(key, deficits, thresholds, *, limbs, escape_bits, width, rounds, size):
    """Index i with probability proportional to prod over digits j of deficit i of P(threshold j).

    A fixed number of rounds proposes an index below 2^width and accepts it digit by digit; the first
    accepted proposal counts.
    """
    key_round, key_escape = jax.random.split(key)
    padded = jnp.concatenate([deficits, jnp.full(2**width - size, -1, np.int64)])

    def draw(bits):
        index = (bits[0] & np.uint64(2**width - 1)).astype(np.int64)
        deficit = padded[index]
        accepted, row = (deficit >= 0) & (deficit < 1 << len(limbs)), 1
        for i, limb in enumerate(limbs):
            rows = slice(row, row + limb)
            passed = below(bits[rows], thresholds[row - 1 : row - 1 + limb])
            accepted = accepted & (passed | ((deficit >> np.int64(i)) & 1 == 0))
            row += limb
        return index, accepted

    index, accepted = in_chunks(key_round, 1 + sum(limbs), rounds, draw)
    spare = jax.random.bits(key_escape, (2,), np.uint64)
    anywhere = uniform(spare[1], np.int64(0), np.int64(size - 1), width)
    failed = ~jnp.any(accepted) | escapes(spare[0], escape_bits)
    return jnp.where(failed, anywhere, index[jnp.argmax(accepted)])


@functools.partial(jax.jit, static_argnames=("bases", "escape_bits", "width", "size"))
def gaussian(key, value, tables, low, high, *, bases, escape_bits, width, size):
    """value + sum_j base_j x_j, x_j signed draws from the tables of |x|; escapes as in `released`."""
    limbs = tables[0].shape[1]

    def draw(bits):
        noise = jnp.zeros(bits.shape[1:], np.int64)
        for j, (table, base) in enumerate(zip(tables, bases, strict=True)):
            magnitude = table_draw(bits[j * limbs : (j + 1) * limbs], table).astype(np.int64)
            negative = ((bits[-1] >> np.uint64(63 - j)) & np.uint64(1)).astype(bool)
            noise = noise + base * jnp.where(negative, -magnitude, magnitude)
        row = limbs * len(bases)
        return noise, escapes(bits[row], escape_bits), uniform(bits[row + 1], low, high, width)

    noise, escaped, anywhere = in_chunks(key, limbs * len(bases) + 3, size, draw)
    return jnp.where(escaped, anywhere, value + noise)
