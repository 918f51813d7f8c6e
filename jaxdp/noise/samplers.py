"""Fixed-work integer samplers: functions of random bits and thresholds, nothing else.

Every digit is a comparison of a uniform 64, 128 or 192-bit integer with a threshold, most significant
limb first. No loop, branch or address depends on a random or a private value, except addresses within
the small Gaussian tables.

Shapes: `bits` is a flat uint64 array, `value` integers (size,); a layout counts the digits of 1, 2, ... limbs.
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base.kept_programs import kept_jit

LARGEST = 1 << 14  # draws per pass: the bits of one pass stay in a CPU's cache
_SMALLEST = 1 << 9


def limbs_of(number: int, count: int) -> list[int]:
    """A non-negative integer as `count` 64-bit limbs, most significant first."""
    return [number >> 64 * (count - 1 - i) & (2**64 - 1) for i in range(count)]


def layout_of(thresholds) -> tuple[int, ...]:
    """How many thresholds (number, bits) have 1, 2, ... limbs; they must come in this order."""
    widths = [bits // 64 for _, bits in thresholds]
    if widths != sorted(widths):
        raise ValueError("thresholds must be ordered by their number of limbs.")
    return tuple(widths.count(width) for width in range(1, max(widths) + 1))


def packed(thresholds) -> np.ndarray:
    """Thresholds (number, bits) as one flat uint64 array."""
    return np.array([limb for number, bits in thresholds for limb in limbs_of(number, bits // 64)], np.uint64)


def rows_of(layout: tuple[int, ...]) -> int:
    """Limbs of all digits."""
    return sum(count * width for width, count in enumerate(layout, 1))


@functools.partial(kept_jit, quickly=True, static_argnums=1)
def _bits(key, count: int):
    return jax.random.bits(key, (count,), np.uint64)


def random_bits(key, count: int):
    """At least `count` random 64-bit words; lengths are rounded up so that few programs are compiled."""
    unit = max(_SMALLEST, 1 << max(0, count.bit_length() - 4))
    return _bits(key, -(-count // unit) * unit)


def below(bits, threshold):
    """Whether integers of L limbs lie below thresholds, both (..., L, size); lexicographic, no early exit."""
    smaller = bits[..., -1, :] < threshold[..., -1, :]
    for i in range(bits.shape[-2] - 2, -1, -1):
        first, other = bits[..., i, :], threshold[..., i, :]
        smaller = (first < other) | ((first == other) & smaller)
    return smaller


def digits(bits, thresholds, layout: tuple[int, ...]):
    """Digit by digit, whether the random integer lies below its threshold; list of (position, bool (count, size)).

    bits: (rows, size), thresholds: (rows,), rows in the order of the layout.
    """
    found, row, position = [], 0, 0
    for width, count in enumerate(layout, 1):
        if count:
            rows = slice(row, row + count * width)
            shape = (count, width, bits.shape[-1])
            limit = jnp.broadcast_to(thresholds[rows].reshape(count, width, 1), shape)
            found.append((position, below(bits[rows].reshape(shape), limit)))
        row, position = row + count * width, position + count
    return found


def geometric(bits, thresholds, layout: tuple[int, ...]):
    """Integers sum_i 2^i 1{digit i lies below its threshold}, (size,)."""
    total = jnp.zeros(bits.shape[-1:], np.int64)
    for position, one in digits(bits, thresholds, layout):
        place = np.int64(position) + np.arange(one.shape[0], dtype=np.int64)[:, None]
        total = total + jnp.sum(one.astype(np.int64) << jnp.broadcast_to(place, one.shape), axis=0)
    return total


def two_sided(bits, thresholds, layout: tuple[int, ...]):
    """Integers with P(k) proportional to exp(-rate |k|); three more rows of bits decide zero and the sign."""
    rows = rows_of(layout)
    limit = jnp.broadcast_to(thresholds[rows : rows + 2, None], (2, bits.shape[-1]))
    zero = below(bits[rows : rows + 2], limit)
    magnitude = 1 + geometric(bits, thresholds, layout)
    negative = (bits[rows + 2] >> np.uint64(63)).astype(bool)
    return jnp.where(zero, 0, jnp.where(negative, -magnitude, magnitude))


def escapes(bits, escape_bits: int):
    """Events of probability 2^-escape_bits, one per word."""
    return bits >> np.uint64(64 - escape_bits) == 0


def anywhere(bits, low, high, mask):
    """A law on low..high that gives each point at least 1/(mask + 1); mask + 1 a power of two > high - low."""
    return low + jnp.minimum((bits & mask).astype(np.int64), high - low)


def table_draw(bits, table):
    """How many table entries each random integer reaches; bits (L, size), table (entries, L) ascending.

    Binary search of a fixed number of steps.
    """
    entries, index = table.shape[0], jnp.zeros(bits.shape[-1:], np.int32)
    for step in range(math.ceil(math.log2(entries + 1)) - 1, -1, -1):
        probe = index + np.int32(1 << step)
        entry = table[jnp.minimum(probe, entries) - 1].T
        index = jnp.where((probe <= entries) & ~below(bits, entry), probe, index)
    return index


@functools.partial(kept_jit, static_argnames=("layout", "escape_bits", "size"))
def released(bits, value, thresholds, window, *, layout, escape_bits, size):
    """value + two-sided noise; with probability 2^-escape_bits a point of the window (low, high, mask)."""
    rows = rows_of(layout) + 5
    bits = bits[: rows * size].reshape(rows, size)
    noise = two_sided(bits[:-2], thresholds, layout)
    return jnp.where(escapes(bits[-2], escape_bits), anywhere(bits[-1], *window), value + noise)


@functools.partial(kept_jit, static_argnames=("layout", "size"))
def one_sided_noise(bits, thresholds, *, layout, size):
    """Geometric integers (size,)."""
    rows = rows_of(layout)
    return geometric(bits[: rows * size].reshape(rows, size), thresholds, layout)


@functools.partial(kept_jit, static_argnames=("layout", "size"))
def two_sided_noise(bits, thresholds, *, layout, size):
    """Two-sided geometric integers (size,)."""
    rows = rows_of(layout) + 3
    return two_sided(bits[: rows * size].reshape(rows, size), thresholds, layout)


_HALF = np.uint64(32)
_LOW = np.uint64(2**32 - 1)


def scaled_down(bits, count):
    """floor(U count/2^128), int64 (size,), for U of two words (2, size) and count < 2^32."""
    high, low = bits
    carry = jnp.zeros_like(low)
    for part in (low & _LOW, low >> _HALF, high & _LOW, high >> _HALF):
        carry = (part * count + carry) >> _HALF
    return carry.astype(np.int64)


@functools.partial(kept_jit, static_argnames=("escape_bits", "size"))
def in_cube(bits, spare, value, radius, window, *, escape_bits, size):
    """value + a uniform point of the cube {-r, ..., r}^size; escapes, all coordinates at once, as in `released`.

    radius: (r, whether r is in reach); bits: three words a coordinate.
    """
    r, reached = radius
    bits = bits[: 3 * size].reshape(3, size)
    point = scaled_down(bits[:2], (2 * r + 1).astype(np.uint64)) - r
    escaped = escapes(spare[0], escape_bits) | ~reached
    return jnp.where(escaped, anywhere(bits[2], *window), value + point)


@functools.partial(kept_jit, static_argnames=("escape_bits",))
def selected(spare, scores, noise, mask, *, escape_bits):
    """argmax of scores + noise; with probability 2^-escape_bits any index. spare: two random words."""
    last = np.int64(scores.shape[0] - 1)
    other = anywhere(spare[1], np.int64(0), last, mask)
    return jnp.where(escapes(spare[0], escape_bits), other, jnp.argmax(scores + noise).astype(np.int64))


@functools.partial(kept_jit, static_argnames=("count", "escape_bits"))
def ranked(spare, values, noise, *, count, escape_bits):
    """Whether at most `count` of noisy values[1:] reach noisy values[0]; rarely a fair coin."""
    noisy = values + noise
    decision = jnp.sum(noisy[1:] >= noisy[0]) <= count
    return jnp.where(escapes(spare[0], escape_bits), (spare[1] & np.uint64(1)).astype(bool), decision)


@functools.partial(kept_jit, static_argnames=("layout", "two_sided_law", "escape_bits", "size"))
def crossed(bits, value, limit, thresholds, *, layout, two_sided_law, escape_bits, size):
    """Whether value + noise reaches the limit, bool (size,); with probability 2^-escape_bits a fair coin."""
    rows = rows_of(layout) + (5 if two_sided_law else 2)
    bits = bits[: rows * size].reshape(rows, size)
    noise = (two_sided if two_sided_law else geometric)(bits[:-2], thresholds, layout)
    coin = (bits[-1] & np.uint64(1)).astype(bool)
    return jnp.where(escapes(bits[-2], escape_bits), coin, value + noise >= limit)


@kept_jit
def laddered(bits, center, rung, table, window):
    """center + noise of the law in row `rung` (private) of a table (rungs, entries) of |noise|, clipped to the window.

    Every row is read whatever the rung is.
    """
    chosen = np.arange(table.shape[0]) == rung
    row = jnp.sum(jnp.where(chosen[:, None], table, np.uint64(0)), axis=0)
    magnitude = table_draw(bits[:1, None], row[:, None])[0].astype(np.int64)
    noisy = center + jnp.where((bits[1] >> np.uint64(63)).astype(bool), -magnitude, magnitude)
    return jnp.clip(noisy, *window)


@functools.partial(kept_jit, static_argnames=("layout", "size"))
def proposals(bits, deficits, thresholds, mask, *, layout, size):
    """Uniform indices and whether each is accepted: all digits set in its deficit pass their thresholds.

    deficits: (mask + 1,), negative for indices that don't exist.
    """
    rows = rows_of(layout) + 1
    bits = bits[: rows * size].reshape(rows, size)
    index = (bits[-1] & mask).astype(np.int64)
    deficit = deficits[index]
    accepted = (deficit >= 0) & (deficit < np.int64(1) << np.int64(sum(layout)))
    for position, passed in digits(bits[:-1], thresholds, layout):
        place = np.int64(position) + np.arange(passed.shape[0], dtype=np.int64)[:, None]
        asked = (deficit[None, :] >> place) & np.int64(1) == 1
        accepted = accepted & jnp.all(passed | ~asked, axis=0)
    return index, accepted


@functools.partial(kept_jit, static_argnames=("bases", "escape_bits", "size"))
def gaussian(bits, value, tables, window, *, bases, escape_bits, size):
    """value + sum_j base_j x_j, x_j signed draws from the tables of |x|; escapes as in `released`."""
    limbs = tables[0].shape[1]
    rows = limbs * len(bases) + 3
    bits = bits[: rows * size].reshape(rows, size)
    noise = jnp.zeros((size,), np.int64)
    for j, (table, base) in enumerate(zip(tables, bases, strict=True)):
        magnitude = table_draw(bits[j * limbs : (j + 1) * limbs], table).astype(np.int64)
        negative = ((bits[-3] >> np.uint64(j)) & np.uint64(1)).astype(bool)
        noise = noise + base * jnp.where(negative, -magnitude, magnitude)
    return jnp.where(escapes(bits[-2], escape_bits), anywhere(bits[-1], *window), value + noise)
