"""Bins of records on one axis: equal ranges of a public interval, or equal numbers of records."""

import jax.numpy as jnp

RANGE, MASS = "range", "mass"
MAX_RECORDS = 2**30  # ranked: what `share_of` computes stays within 32 bits
MAX_CELLS = 2**31 - 1  # of the tables of all pairs: they are numbered in 32 bits


def unit_position(values, lower, upper):
    """(value - lower)/(upper - lower) clipped to [0, 1]; NaN counts as the lower end. Any shapes that broadcast."""
    position = (values - lower) / (upper - lower)
    return jnp.clip(jnp.nan_to_num(position, nan=0.0, posinf=1.0, neginf=0.0), 0.0, 1.0)


def record_priority(num_records: int, stream: int):
    """A fixed public scrambling of the record numbers, uint32 (n,): breaks ties of values.

    Ties broken by it keep the sensitivity bound of distinct values, since a record's priority does not
    depend on any value. Two streams look independent, so that tied columns do not look related.
    """
    # The 32-bit finaliser of MurmurHash3: a bijection, so that no two records share a priority.
    bits = jnp.arange(num_records, dtype=jnp.uint32) * jnp.uint32(0x9E3779B1) + jnp.uint32(0x7F4A7C15 * stream % 2**32)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        bits = (bits ^ (bits >> shift)) * jnp.uint32(factor)
    return bits ^ (bits >> 16)


def ranks(values, priority):
    """Rank 0, ..., n - 1 of each value along axis 0, ties by priority; NaN is below everything. int32."""
    values = jnp.nan_to_num(values, nan=-jnp.inf, posinf=jnp.inf, neginf=-jnp.inf)
    order = jnp.lexsort((priority, values), axis=0)
    return jnp.argsort(order, axis=0).astype(jnp.int32)


def bins(feature, count, kind: str):
    """Bin 0, ..., count - 1 of each record; count may be traced.

    kind "range": feature is a unit position, bins are half-open and the last is closed.
    kind "mass": feature is a rank, bin floor(rank count / n), so bins hold floor or ceil of n/count records.
    """
    if kind == MASS:
        return share_of(feature, count, feature.shape[0])
    return jnp.clip(jnp.floor(feature * count).astype(jnp.int32), 0, count - 1)


def share_of(rank, count, total: int):
    """floor(rank count/total), exact in int32 for ranks below total <= MAX_RECORDS and count <= mic_grids.MAX_BINS.

    rank count itself passes 2^31. The proof of `mass_bound` needs bins that hold floor or ceil of n/count records.
    """
    if total > MAX_RECORDS:
        raise ValueError(f"at most {MAX_RECORDS} records can be ranked, got {total}.")
    rank, count = jnp.asarray(rank, jnp.int32), jnp.asarray(count, jnp.int32)
    # At most one off: four roundings of a number below MAX_BINS, each by a part of 2^-24.
    near = jnp.floor(rank.astype(float) * (count.astype(float) / total)).astype(jnp.int32)
    # Both products may wrap around; their difference lies in [-total, 2 total), so it is right.
    rest = rank * count - near * total
    return near + (rest >= total) - (rest < 0)


def table(master, fixed, num_master: int, num_fixed: int, dtype=float):
    """Counts (num_master, num_fixed, b) of bin numbers (n, b)."""
    lanes = master.shape[1]
    if num_master * num_fixed * lanes > MAX_CELLS:
        raise ValueError(
            f"tables of {num_master} by {num_fixed} bins of {lanes} pairs have more than {MAX_CELLS} cells; "
            "use fewer cells (max_cells) or a smaller c."
        )
    index = (master * num_fixed + fixed) * lanes + jnp.arange(lanes, dtype=master.dtype)[None]
    one = jnp.ones((), dtype)
    flat = jnp.zeros(num_master * num_fixed * lanes, dtype).at[index].add(one, mode="promise_in_bounds")
    return flat.reshape(num_master, num_fixed, lanes)


def short_counts(num_records: int):
    """The smallest type that holds every count: half the memory makes adding to a table twice as fast."""
    return jnp.int16 if num_records < 2**15 else jnp.int32
