"""Keys along a Hilbert curve: records with near keys are near in the box.

Source: Skilling 2004, "Programming the Hilbert curve" (AIP Conference Proceedings 707), function AxestoTranspose.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

KEY_BITS = 60
WORD_BITS = 30
WORD = np.uint32(2**WORD_BITS - 1)


def hilbert_key(position, bits: int):
    """The key of points (n, d) in [0, 1], d `bits` bits, as two uint32 words (n,) of its upper and lower 30.

    bits: per axis, at most 30 and 60/d. The key's upper bits come first: unused lower ones are 0.
    """
    side = 2.0**bits
    cell = jnp.clip(jnp.floor(position * side), 0.0, side - 1.0).astype(jnp.uint32)
    return _interleaved(_transposed([cell[:, j] for j in range(position.shape[1])], bits), bits)


def _transposed(axes, bits: int):
    """Skilling's transposed index: the key's bits dealt out over the axes."""

    def undo(step, axes):
        axes, bit = list(axes), _bit(bits - 1 - step)
        for j in range(len(axes)):
            inverted = (axes[j] & bit) != 0
            swap = jnp.where(inverted, np.uint32(0), (axes[0] ^ axes[j]) & (bit - 1))
            axes[0] = axes[0] ^ jnp.where(inverted, bit - 1, swap)
            if j:
                axes[j] = axes[j] ^ swap
        return tuple(axes)

    # loops, not one long expression: a compiler needs seconds for that
    axes = list(jax.lax.fori_loop(0, bits - 1, undo, tuple(axes)))
    for j in range(1, len(axes)):
        axes[j] = axes[j] ^ axes[j - 1]

    def flipped(step, flip):
        bit = _bit(bits - 1 - step)
        return flip ^ jnp.where((axes[-1] & bit) != 0, bit - 1, np.uint32(0))

    flip = jax.lax.fori_loop(0, bits - 1, flipped, jnp.zeros_like(axes[0]))
    return [axis ^ flip for axis in axes]


def _interleaved(axes, bits: int):
    """The bits of the axes in turn, highest first, in two words of 30."""

    def shifted(step, words):
        high, low = words
        for axis in axes:
            digit = (axis & _bit(bits - 1 - step)) != 0
            high = (high << 1 | low >> np.uint32(WORD_BITS - 1)) & WORD
            low = (low << 1 | digit.astype(jnp.uint32)) & WORD
        return high, low

    high, low = jax.lax.fori_loop(0, bits, shifted, (jnp.zeros_like(axes[0]),) * 2)
    spare = KEY_BITS - len(axes) * bits
    if spare >= WORD_BITS:
        return (low << np.uint32(spare - WORD_BITS)) & WORD, jnp.zeros_like(low)
    return (high << np.uint32(spare) | low >> np.uint32(WORD_BITS - spare)) & WORD, (low << np.uint32(spare)) & WORD


def _bit(level):
    return np.uint32(1) << jnp.asarray(level, jnp.uint32)


@functools.cache
def public_motion(depth: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A rotation (d, d) and a shift (d,) in [0, 1], public constants of a test."""
    rng = np.random.default_rng([seed, depth])
    rotation, upper = np.linalg.qr(rng.normal(size=(depth, depth)))
    return rotation * np.sign(np.diag(upper)), rng.uniform(size=depth)


def moved(position, rotation, shift):
    """Points (n, d) of [0, 1] after a `public_motion`, in [0, 1] again."""
    depth = position.shape[1]
    columns = [position[:, j] - 0.5 for j in range(depth)]
    turned = [sum(rotation[i, j] * columns[j] for j in range(depth)) for i in range(depth)]
    return jnp.stack([(turned[i] / depth**0.5 + 0.5 + shift[i]) / 2.0 for i in range(depth)], axis=1)
