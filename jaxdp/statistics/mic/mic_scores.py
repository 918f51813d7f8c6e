"""Normalised scores of every grid size, for many pairs of features: one compiled program per bucket."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.statistics.mic import mic_axis, mic_bins, mic_grids

_WORKING_SET = 1e6  # bytes of cumulative counts and best gains of one tile


def bucket_scores(features, first, second, bucket: mic_grids.Bucket, kind: str):
    """I/log2 k of each grid of a bucket, -inf where k is not allowed: array (grids, parts - 1, 2, m).

    features: (n, d) unit positions ("range") or ranks ("mass"). first, second: column numbers (m,).
    Orientation 0 fixes the bins of `first` and segments `second`; orientation 1 the other way round.
    """
    sizes = jnp.asarray(np.array(bucket.grids, np.int32))
    return score_sizes(features, first, second, sizes, bucket[:3], kind)


@functools.partial(jax.jit, static_argnums=(4, 5))
def score_sizes(features, first, second, sizes, padded, kind):
    """As `bucket_scores`, with the grids as an int array (grids, 3) of fixed, parts, master."""
    fixed = features[:, jnp.concatenate([first, second])]
    master = features[:, jnp.concatenate([second, first])]
    dtype = features.dtype if jnp.issubdtype(features.dtype, jnp.floating) else jnp.result_type(float)

    def one(size):
        numbers = mic_bins.bins(master, size[2], kind), mic_bins.bins(fixed, size[0], kind)
        fixeds = -(-padded[1] // mic_axis.ROWS) * mic_axis.ROWS
        table = mic_bins.table(*numbers, padded[0], fixeds, mic_bins.short_counts(features.shape[0]))
        return normalised_sums(mic_axis.cumulative(table, dtype), size, padded[2])

    return jax.lax.map(one, sizes).reshape(sizes.shape[0], padded[2] - 1, 2, first.shape[0])


def normalised(table, used, most_parts: int):
    """I/log2 k for k = 2, ..., most_parts of tables (p, q, b): array (most_parts - 1, b).

    used: fixed bins, segments and master bins in use; -inf beyond the segments.
    """
    return normalised_sums(mic_axis.cumulative(mic_axis.pad_rows(table)), used, most_parts)


def normalised_sums(sums, used, most_parts: int):
    """As `normalised`, from cumulative tables (p + 1, q, b)."""
    information = mic_axis.best_information(sums, most_parts, used)
    segments = jnp.arange(2, most_parts + 1)
    scores = jnp.minimum(information / jnp.log2(segments.astype(sums.dtype))[:, None], 1.0)
    return jnp.where((segments <= used[1])[:, None], scores, -jnp.inf)


def all_scores(features, first, second, sizes, kind: str):
    """Every bucket's grids and scores: list of (grids, array (grids, parts - 1, 2, m))."""
    return [(bucket.grids, bucket_scores(features, first, second, bucket, kind)) for bucket in mic_grids.buckets(sizes)]


def lanes(bucket: mic_grids.Bucket) -> int:
    """Pairs per tile: as many as keep their tables in cache, a power of two."""
    bytes_each = 8.0 * (bucket.master + 1) * (bucket.fixed + bucket.parts + 2)
    return 2 ** int(min(7, max(4, math.log2(_WORKING_SET / bytes_each))))
