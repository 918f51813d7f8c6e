"""Scores of every ordered pair of columns of a table, in blocks of pairs that share bit maps of their bins."""

import functools
import math

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxdp.statistics.mic import mic_axis, mic_bins, mic_grids, mic_scores

_WORD = 32
_VECTOR = 16  # words that a processor handles at once
_MAX_VECTORS = 4
_RUN = 12  # words whose counts are unrolled
_WORKING_SET = 6e5  # bytes of cumulative counts and best gains of one block
_MAX_PAIRS, _FEWEST_PAIRS = 512, 128
_WORDS_BELOW = 2000  # cells of a table below which counting bits beats adding the records one by one


def shape(bucket: mic_grids.Bucket, columns: int) -> tuple[int, int]:
    """Fixed and optimised columns per block: as many as stay in a core's cache, in blocks of equal size."""
    vectors = math.ceil(columns / _VECTOR)
    width = _VECTOR * math.ceil(vectors / math.ceil(vectors / _MAX_VECTORS))
    bytes_each = 4.0 * (bucket.master + 1) * (bucket.fixed + bucket.parts + 2)
    most = int(min(_MAX_PAIRS, max(_FEWEST_PAIRS, _WORKING_SET / bytes_each))) // width
    return math.ceil(columns / math.ceil(columns / most)), width


def corners(bucket: mic_grids.Bucket, columns: int) -> np.ndarray:
    """First fixed and first optimised column of every block, (blocks, 2)."""
    rows, width = shape(bucket, columns)
    starts = np.meshgrid(np.arange(0, columns, rows), np.arange(0, columns, width), indexing="ij")
    return np.stack(starts, -1).reshape(-1, 2).astype(np.int32)


def joined(scores, bucket: mic_grids.Bucket, columns: int):
    """The better orientation of each pair, (columns, columns), from the scores of all `corners` in order."""
    rows, width = shape(bucket, columns)
    down, across = -(-columns // rows), -(-columns // width)
    matrix = jnp.swapaxes(scores.reshape(down, across, rows, width), 1, 2).reshape(down * rows, across * width)
    matrix = matrix[:columns, :columns]
    return jnp.maximum(matrix, matrix.T)


def padded(features, bucket: mic_grids.Bucket):
    """Features (n, d) with columns appended to fill the last blocks."""
    columns = features.shape[1]
    filled = max(-(-columns // size) * size for size in shape(bucket, columns))
    return jnp.pad(features, ((0, 0), (0, filled - columns)))


def block_scores(features, corner, sizes, padding, kind: str, block: tuple[int, int]):
    """The largest score over the grids of a bucket, (blocks, rows width): entry i width + j fixes column i, segments j.

    features: as `padded`. corner: (blocks, 2), rows of `corners`. sizes, padding: as `mic_scores.score_sizes`.
    block: `shape`.
    """
    dtype = features.dtype if jnp.issubdtype(features.dtype, jnp.floating) else jnp.result_type(float)
    words = padding[0] * padding[1] <= _WORDS_BELOW
    fixeds = -(-padding[1] // mic_axis.ROWS) * mic_axis.ROWS

    def grid(best, size):
        known = mic_bins.bins(features, size[2], kind), mic_bins.bins(features, size[0], kind)
        if words:
            known = _maps_of(known[0], known[1], padding[0], fixeds)

        def one(first):
            master = lax.dynamic_slice_in_dim(known[0], first[1], block[1], axis=-1)
            fixed = lax.dynamic_slice_in_dim(known[1], first[0], block[0], axis=-1)
            if words:
                sums = _by_words(master, fixed, size[0], dtype)
            else:
                sums = _by_records(master, fixed, padding[0], fixeds, dtype)
            return jnp.max(mic_scores.normalised_sums(sums, size, padding[2]), axis=0)

        return jnp.maximum(best, lax.map(one, corner)), None

    start = jnp.full((corner.shape[0], block[0] * block[1]), -jnp.inf, dtype)
    return lax.scan(grid, start, sizes)[0]


def _maps_of(master, fixed, masters: int, fixeds: int):
    """Bits of the records with master bin < t, t = 0, ..., masters, and with fixed bin q: (sets, words, d) each."""
    master, fixed = lax.optimization_barrier((master, fixed))
    below = _maps(master, masters, lambda number: number[None] < jnp.arange(masters + 1)[:, None, None])
    equal = _maps(fixed, fixeds, lambda number: number[None] == jnp.arange(fixeds)[:, None, None])
    return lax.optimization_barrier((below, equal))  # fused into the counts, they would be made once per pair


def _maps(bins, outside: int, holds):
    """Bits of the records for which a bin is in each set, (sets, words, d); `outside` is in none."""
    words = -(-bins.shape[0] // _WORD)
    runs = -(-words // _RUN)
    words = runs * -(-words // runs)
    padded = jnp.pad(bins, ((0, words * _WORD - bins.shape[0]), (0, 0)), constant_values=outside)
    padded = padded.reshape(words, _WORD, -1)
    bits = [holds(padded[:, j]).astype(jnp.uint32) << j for j in range(_WORD)]
    return functools.reduce(jnp.bitwise_or, bits)


def _by_words(below, equal, fixed, dtype):
    """Counts of the records in both sets: maps (s, w, width) and (q, w, rows) to (s, q, rows width); q < `fixed`."""
    sets, words, width = below.shape
    bins, _, rows = equal.shape
    run = words // -(-words // _RUN)

    def count(number, sums):
        q, i = number // rows, number % rows
        row = lax.dynamic_slice(equal, mic_axis.whole(q, 0, i), (1, words, 1)).reshape(words)

        def add(k, found):
            left, right = (
                lax.dynamic_slice_in_dim(below, k * run, run, axis=1),
                lax.dynamic_slice(row, (k * run,), (run,)),
            )
            common = [lax.population_count(left[:, w] & right[w]) for w in range(run)]
            return functools.reduce(jnp.add, common, found)

        found = lax.fori_loop(0, words // run, add, jnp.zeros((sets, width), jnp.uint32))
        counts = found.astype(jnp.int32).astype(dtype)[:, None, None]
        return lax.dynamic_update_slice(sums, counts, mic_axis.whole(0, q, i, 0))

    sums = jnp.zeros((sets, bins, rows, width), dtype)
    return lax.fori_loop(0, fixed * rows, count, sums).reshape(sets, bins, rows * width)


def _by_records(master, fixed, masters: int, fixeds: int, dtype):
    """Cumulative counts of bins (n, width) and (n, rows), by adding the records one by one."""
    shape = fixed.shape[0], fixed.shape[1], master.shape[1]
    masters_of, fixeds_of = (
        jnp.broadcast_to(v, shape).reshape(shape[0], -1) for v in (master[:, None, :], fixed[:, :, None])
    )
    table = mic_bins.table(masters_of, fixeds_of, masters, fixeds, mic_bins.short_counts(shape[0]))
    return mic_axis.cumulative(table, dtype)
