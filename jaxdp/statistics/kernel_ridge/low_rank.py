"""Low-rank factor of a Gram matrix by pivoted Cholesky, with the exact trace of what it leaves out.

K = L L' + E. Pivoted Cholesky keeps E positive semidefinite, so its spectral norm is at most its trace, which is
free: sum k(z_i, z_i) - |L|_F^2. What that means for ridge regression: `ridge_grid`.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.statistics.kernel_ridge import kernels, ridge

MIN_PIVOT = {"float32": 1e-6, "float64": 1e-14}  # of the largest k(z, z): below, a pivot is rounding

TOLERANCE = {"float32": 1e-4, "float64": 1e-10}  # of alpha: trace up to which a fit is certified
MAX_RANK = 64
WORTH_EXTENDING = {16: 0.3, 32: 5e-3}  # of the trace of K: more than this left at a rank, and it stops


class PivotedCholesky(NamedTuple):
    """rows: L', shape (most rows, n), unused rows 0. diagonal: that of E, (n,). trace: its sum. rank: rows in use."""

    rows: Any
    diagonal: Any
    trace: Any
    rank: Any


def start(kernel, z) -> PivotedCholesky:
    """The factor of rank 0 of kernel.gram(z); z: (n, d), finite."""
    diagonal = jax.vmap(kernel)(z, z)
    empty = jnp.zeros((0, z.shape[0]), diagonal.dtype)
    return PivotedCholesky(empty, diagonal, jnp.sum(diagonal), jnp.int32(0))


def extend(factor: PivotedCholesky, kernel, z, most: int, wanted_trace, allowed=None) -> PivotedCholesky:
    """Adds rows (kernel columns of the records with the largest diagonal) until the trace is small enough.

    most: rank at which it stops in any case, at least the rows of `factor`. wanted_trace: stops at or below this.
    allowed: rank -> largest trace with which going on from that rank is worth it. Also stops when every pivot left is
    rounding. Time: rank n (most + d); never forms the Gram matrix.
    """
    room = jnp.zeros((most - factor.rows.shape[0], z.shape[0]), factor.rows.dtype)
    factor = factor._replace(rows=jnp.concatenate([factor.rows, room]))
    floor = MIN_PIVOT[factor.diagonal.dtype.name]

    def unfinished(factor: PivotedCholesky):
        going = (factor.rank < most) & (factor.trace > wanted_trace) & (jnp.max(factor.diagonal) > floor)
        for rank, trace in (allowed or {}).items():
            going &= (factor.rank != rank) | (factor.trace <= trace)
        return going

    def advance(factor: PivotedCholesky) -> PivotedCholesky:
        pivot = jnp.argmax(factor.diagonal)
        there = jax.lax.dynamic_index_in_dim(z, pivot, keepdims=True)
        explained = jnp.matmul(factor.rows[:, pivot], factor.rows, precision=kernels.HIGHEST)
        row = (kernel.gram(there, z)[0] - explained) / jnp.sqrt(factor.diagonal[pivot])
        diagonal = jnp.maximum(factor.diagonal - row**2, 0.0).at[pivot].set(0.0)
        rows = jax.lax.dynamic_update_index_in_dim(factor.rows, row, factor.rank, 0)
        return PivotedCholesky(rows, diagonal, jnp.sum(diagonal), factor.rank + 1)

    return jax.lax.while_loop(unfinished, advance, factor)


def krr_residuals(kernel, ridge_level, z, targets):
    """In-sample residuals of kernel ridge regression: by a low-rank factor where it is certified, else exact.

    Arguments and shapes as in `ridge.krr_residuals`, and the same answer within 1e-4 (float64: 1e-10) of the root mean
    square of the targets: the error is at most trace(E)/alpha of it (proof: `ridge_grid.cross_validate`). NOT for
    private statistics, whose rounding bounds (`ridge_error`) are those of the exact solve.
    No reverse-mode gradient (it loops); under vmap both run.
    """
    z = kernels.as_points(z)

    def exact(_):
        return ridge.krr_residuals(kernel, ridge_level, z, targets)

    if z.shape[0] < 4 * MAX_RANK:
        return exact(None)
    alpha = ridge.alpha_of(ridge_level, z.shape[0])
    factor = start(kernel, z)
    limit = (TOLERANCE[factor.trace.dtype.name] * alpha).astype(factor.trace.dtype)
    allowed = {rank: share * factor.trace for rank, share in WORTH_EXTENDING.items()}
    factor = extend(factor, kernel, z, MAX_RANK, 0.2 * limit, allowed)
    columns = ridge.as_columns(targets, z.dtype)

    def on_features(rows):
        system = jnp.matmul(rows, rows.T, precision=kernels.HIGHEST)
        right = jnp.matmul(rows, columns, precision=kernels.HIGHEST)
        weights = jax.scipy.linalg.cho_solve((ridge.cholesky(system, alpha), True), right)
        return (columns - jnp.matmul(rows.T, weights, precision=kernels.HIGHEST)).reshape(jnp.shape(targets))

    return jax.lax.cond(factor.trace <= limit, on_features, exact, factor.rows)
