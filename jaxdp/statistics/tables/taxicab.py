"""Distances on the lattice of tables: how many people must change until a decision flips.

Source: Johnson and Shmatikov 2013; docs/theory/table_tests.md#distance-score.
"""

import jax
import jax.numpy as jnp


def distance(members):
    """Taxicab (L1) distance of every lattice point to the set `members`, bool (..., a, b) to float.

    Two cumulative-minimum sweeps per axis, exact because the metric is separable; a huge number where
    the set is empty.
    """
    far = float(sum(members.shape[-2:]) + 1)
    steps = jnp.where(members, 0.0, far)
    for axis in (members.ndim - 1, members.ndim - 2):
        steps = _sweep(steps, axis)
    return steps


def flip_score(rejected):
    """Signed number of changes until the decision flips: bool (a, b) to float, 1-Lipschitz on the lattice.

    Positive d(point, accepted set) where rejected; 1 - d(point, rejected set), at most 0, where accepted.
    The offset 1 makes the step across the boundary 1 instead of 2 (docs/theory/table_tests.md#distance-score).
    """
    return jnp.where(rejected, distance(~rejected), 1.0 - distance(rejected))


def flip_scores_at(low, high, rows, row, column):
    """`flip_score` of some points, (k,), where the accepted ones of a column are an interval of its rows.

    low, high: its ends (b,), low > high for none. rows: number of rows. row, column: places of the points (k,).
    """
    low, high, row, column = (jnp.asarray(part, jnp.int32) for part in (low, high, row, column))
    size = low.shape[0]
    far = rows + size + 1

    def one(point):
        i, j = point
        across = jnp.abs(jnp.arange(size, dtype=jnp.int32) - j)
        up = jnp.where(low > 0, i - low + 1, far)  # rows to the nearest rejected one of each column
        down = jnp.where(high < rows - 1, high - i + 1, far)
        outside = jnp.where(low > high, 0, jnp.maximum(jnp.minimum(up, down), 0))
        inside = jnp.where(low > high, far, jnp.maximum(jnp.maximum(low - i, i - high), 0))
        to_accepted, to_rejected = (jnp.minimum(jnp.min(across + part), far) for part in (inside, outside))
        return jnp.where(to_accepted == 0, 1 - to_rejected, to_accepted)

    return jax.lax.map(one, (row, column), batch_size=256).astype(float)


def _sweep(steps, axis: int):
    """min over j of steps[j] + |i - j| along one axis."""
    size = steps.shape[axis]
    shape = [1] * steps.ndim
    shape[axis] = size
    place = jnp.arange(size, dtype=steps.dtype).reshape(shape)
    from_left = jax.lax.cummin(steps - place, axis=axis) + place
    from_right = jax.lax.cummin(steps + place, axis=axis, reverse=True) - place
    return jnp.minimum(from_left, from_right)
