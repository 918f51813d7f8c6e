"""MICe by minepy 1.2.6's grids: tied values share a bin, and master bins are whole clumps of records.

An independent statement of the rule, for comparison with published values. A clump is a run of neighbouring records
in one fixed bin. What is wrong: where values tie the sensitivity is not bounded, and theorem 3.1 of the paper is
false (docs/theory/mic.md#ties), so no private mechanism uses it. Values differ from `jaxdp.statistics.mic_e` by about
0.01 either way (docs/mic.md).
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base.layout import automatic_layout
from jaxdp._base.types import Array
from jaxdp.statistics.mic import coefficients, mic_axis, mic_bins, mic_grids

__all__ = ["characteristic_matrix_e", "mic_e", "sizes"]


@automatic_layout
def mic_e(x: Array, y: Array, *, budget: float, c: float) -> jax.Array:
    """minepy's MICe in [0, 1]; arguments as `jaxdp.statistics.mic_e`, which has the bounded sensitivity."""
    return jnp.nanmax(characteristic_matrix_e(x, y, budget=budget, c=c))


@automatic_layout
def characteristic_matrix_e(x: Array, y: Array, *, budget: float, c: float) -> jax.Array:
    """minepy's equicharacteristic matrix, laid out as `jaxdp.statistics.characteristic_matrix_r`."""
    return _matrix(*coefficients.as_columns(x, y), sizes(budget, c))


def sizes(budget: float, c: float) -> tuple[mic_grids.Grid, ...]:
    """minepy's grids: c floor(B/l) master bins for every l."""
    return tuple(
        grid._replace(master=max(math.floor(c * math.floor(budget / grid.fixed)), 2))
        for grid in mic_grids.grids(budget, c)
    )


@functools.partial(jax.jit, static_argnums=2)
def _matrix(x, y, grids):
    return coefficients.assembled(grids, _scores(x, y, grids), both=False)


def _scores(x, y, grids):
    """Scores by bucket: list of (grids, (grids, most parts - 1, 2)), orientation 0 with the bins of x fixed."""
    values = jnp.nan_to_num(jnp.stack([x, y]), nan=-jnp.inf, posinf=jnp.inf, neginf=-jnp.inf)
    found = []
    for bucket in mic_grids.buckets(grids):
        table = jnp.asarray(np.array([(g.fixed, g.parts, g.master) for g in bucket.grids], np.int32))
        both = [_one_axis(values[i], values[1 - i], table, *bucket[:3]) for i in (0, 1)]
        found.append((bucket.grids, jnp.stack(both, -1)))
    return found


@functools.partial(jax.jit, static_argnums=(3, 4, 5))
def _one_axis(fixed_values, values, sizes, masters: int, fixeds: int, parts: int):
    """Scores (grids, parts - 1) with the bins of `fixed_values` fixed and `values` segmented."""
    by_fixed, by_value = jnp.argsort(fixed_values), jnp.argsort(values)
    runs_fixed, runs_value = _runs(fixed_values[by_fixed]), _runs(values[by_value])

    def one(size):
        rows = _equal_parts(runs_fixed, size[0])
        rows = jnp.zeros_like(rows).at[by_fixed].set(rows)[by_value]
        clumps = _clumps(rows, runs_value)
        joined = _equal_parts(_runs(clumps), size[2])
        master = jnp.where(clumps[-1] >= size[2], joined, clumps)
        table = mic_bins.table(master[:, None], rows[:, None], masters, fixeds, values.dtype)
        sums = mic_axis.cumulative(mic_axis.pad_rows(table))
        information = mic_axis.best_information(sums, parts, (size[0], size[1], None))[:, 0]
        # Ties may leave fewer rows than asked for, and minepy normalises by those that remain.
        segments = jnp.arange(2, parts + 1)
        bins = jnp.minimum(segments, jnp.max(rows) + 1).astype(values.dtype)
        score = information / jnp.log2(jnp.maximum(bins, 2.0))
        return jnp.where(segments <= size[1], score, -jnp.inf)

    return jax.lax.map(one, sizes)


def _runs(ordered):
    """Length of the run that starts at each position of an ordered array, 0 elsewhere; int32 (n,)."""
    count = ordered.shape[0]
    starts = jnp.concatenate([jnp.ones(1, bool), ordered[1:] != ordered[:-1]])
    number = jnp.cumsum(starts, dtype=jnp.int32) - 1
    lengths = jnp.zeros(count, jnp.int32).at[number].add(1)
    return jnp.where(starts, lengths[number], 0)


def _equal_parts(runs, wanted):
    """Bins of about n/wanted records that never split a run: a greedy pass with a target that adapts."""
    count = runs.shape[0]
    dtype = jnp.result_type(float)

    def place(carry, item):
        number, held, target = carry
        position, length = item
        overshoot = jnp.abs((held + length).astype(dtype) - target)
        close = (length > 0) & (held != 0) & (overshoot >= jnp.abs(held.astype(dtype) - target))
        number = jnp.where(close, number + 1, number)
        left = jnp.maximum(wanted - number, 1).astype(dtype)
        target = jnp.where(close, (count - position).astype(dtype) / left, target)
        return (number, jnp.where(close, 0, held) + length, target), number

    zero = jnp.zeros((), jnp.int32)
    start = (zero, zero, jnp.asarray(count, dtype) / wanted.astype(dtype))
    return jax.lax.scan(place, start, (jnp.arange(count, dtype=jnp.int32), runs))[1]


def _clumps(rows, runs):
    """Neighbouring records of one row share a clump; tied records of several rows form one of their own."""
    number = jnp.cumsum(runs > 0, dtype=jnp.int32) - 1
    first = jnp.full(rows.shape, jnp.iinfo(jnp.int32).max).at[number].min(rows)
    last = jnp.full(rows.shape, -1).at[number].max(rows)
    mixed = (first != last)[number]
    label = jnp.where(mixed, -1 - number, rows)
    return jnp.cumsum(jnp.concatenate([jnp.zeros(1, bool), label[1:] != label[:-1]]), dtype=jnp.int32)
