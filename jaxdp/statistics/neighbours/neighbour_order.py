"""Orders of records in which a replaced record moves no other two past each other.

The place of a record depends on its own key and on a priority that belongs to its number. Priorities are drawn
independently of the data; they break ties (docs/theory/ordered_neighbours.md#order).
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erfinv

from jaxdp.randomness import threefry_words

PUBLIC_SEED = 20  # of the priorities where a caller has no key; privacy holds for any fixed priorities


def priorities(key, num_records: int):
    """Random priority of each record number, uint32 (n,)."""
    key = jax.random.key(PUBLIC_SEED) if key is None else key
    return threefry_words.random_words(key, (num_records,))


def normal_scores(priority, dtype=float):
    """Priorities as standard normal numbers, (n,)."""
    middle = ((priority >> np.uint32(9)).astype(dtype) + 0.5) * 2.0**-23
    return np.sqrt(2.0).astype(dtype) * erfinv(2.0 * middle - 1.0)


def classes(priority, count: int):
    """A class 0, ..., count - 1 for each record number, int32 (n,): of equal sizes, chosen by the priorities."""
    order = _order_of_operands(priority)
    return jnp.zeros_like(order).at[order].set(jnp.arange(order.shape[0], dtype=order.dtype) % count)


def order_by_value(values, priority, codes=None):
    """Record numbers sorted by (code, value, priority, number), int32 (n,).

    values: floats (n,) without NaN. priority: uint32 (n,). codes: int32 (n,), or None.
    """
    values = jnp.where(values == 0, 0.0, values)  # -0 and 0 are one value
    if codes is None and values.dtype == jnp.float32:
        with jax.enable_x64(True):
            return _order_of_packed(_ordered_word(values), 32, priority)
    leading = () if codes is None else (codes.astype(jnp.int32),)
    return _order_of_operands(*leading, values, priority)


def order_by_words(high, low, bits: int, priority, codes=None):
    """Record numbers sorted by (code, the 2 x 30-bit key (high, low), priority, number), int32 (n,).

    high, low: uint32 (n,), the upper and lower 30 bits of a key. bits: how many of its upper ones are not 0.
    """
    if codes is not None or bits + _number_bits(priority.shape[0]) > 62:
        return _order_of_operands(*(() if codes is None else (codes,)), high, low, priority)
    with jax.enable_x64(True):
        word = (high.astype(jnp.uint64) << np.uint64(34)) | (low.astype(jnp.uint64) << np.uint64(4))
        return _order_of_packed(word, bits, priority)


def _ordered_word(values):
    """The 32 bits of a float as an unsigned number of the same order, at the top of 64 bits."""
    bits = jax.lax.bitcast_convert_type(values, jnp.uint32)
    negative = bits >> np.uint32(31) == 1
    word = jnp.where(negative, ~bits, bits | np.uint32(1 << 31))
    return word.astype(jnp.uint64) << np.uint64(32)


def _order_of_packed(word, bits: int, priority):
    """The order of `word` (its upper `bits`), priority and number in one 64-bit key: one fast sort of integers."""
    count = priority.shape[0]
    width = _number_bits(count)
    spare = min(32, 64 - bits - width)
    upper = (priority >> np.uint32(32 - spare)).astype(jnp.uint64) << np.uint64(width)
    packed = jnp.sort(word | upper | jnp.arange(count, dtype=jnp.uint64))
    return (packed & np.uint64(2**width - 1)).astype(jnp.int32)


def _order_of_operands(*keys):
    number = jnp.arange(keys[0].shape[0], dtype=jnp.int32)
    return jax.lax.sort((*keys, number), num_keys=len(keys) + 1)[-1]


def in_order(order, *arrays):
    """The arrays with their rows in this order.

    Behind a barrier: XLA would gather them again for every shifted copy that enters a sum, at three times the cost.
    """
    return jax.lax.optimization_barrier(tuple(array.at[order].get(mode="promise_in_bounds") for array in arrays))


def spare_bits(num_records: int) -> int:
    """Bits of a key that share one 64-bit word with a record's number and 8 bits of its priority."""
    return 56 - _number_bits(num_records)


def _number_bits(count: int) -> int:
    return max(1, (count - 1).bit_length())
