"""Kernel ridge regression: residuals of several targets from one Cholesky factor.

Objective: J(w) = ridge/2 |w|^2 + (1/n) sum_i (w.phi(z_i) - x_i)^2. With alpha = n ridge/2 and Gram matrix K, the
fit is K (K + alpha I)^-1 x and the in-sample residual alpha (K + alpha I)^-1 x. scikit-learn's
KernelRidge(alpha=n*ridge/2) is the same regression. Theory: docs/theory/kernel_ridge.md#fit.

In float64 the solves are refined exactly twice, so that the error bound of `ridge_error` holds.
"""

import itertools

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_solve, solve_triangular
from jax.typing import ArrayLike

from jaxdp._base import check
from jaxdp._base.layout import automatic_layout
from jaxdp._base.types import Array
from jaxdp.statistics.kernel_ridge.kernels import HIGHEST, Kernel

REFINEMENT_STEPS = 2


def alpha_of(ridge, num_records: int):
    """The diagonal shift n ridge/2 (scikit-learn's alpha) of a ridge in the objective's units."""
    check.positive(ridge=ridge)
    return num_records * check.positive_or_nan(ridge) / 2.0


@automatic_layout
def krr_residuals(kernel: Kernel, ridge: ArrayLike, z: Array, targets: Array) -> jax.Array:
    """In-sample residuals of kernel ridge regression, one solve for all targets.

    kernel: see `kernels`. ridge: > 0, in the objective's units (fixed ridge: alpha grows with n). z: (n,) or (n, d).
    targets: (n,) or (n, q), not centred. Returns an array of the shape of targets. Memory: 2 n^2 floats.
    Sensitivity of sums of products of two such residuals: `ridge_bounds`, for targets in [-1, 1].
    """
    return residuals_of_gram(kernel.gram(z), ridge, targets)


def residuals_of_gram(gram, ridge, targets):
    """`krr_residuals` for a given Gram matrix (n, n)."""
    alpha = alpha_of(ridge, gram.shape[0])
    factor = cholesky(gram, alpha)
    columns = as_columns(targets, gram.dtype)
    weights = solve_refined(gram, alpha, factor, columns)
    return (alpha * weights).reshape(jnp.shape(targets))


@automatic_layout
def leave_one_out_residuals(kernel: Kernel, ridge: ArrayLike, z: Array, targets: Array) -> jax.Array:
    """Residual of each record under the fit without it, in closed form; alpha stays n ridge/2.

    Shapes as in `krr_residuals`. Equals refitting n times with the same alpha.
    """
    gram = kernel.gram(z)
    alpha = alpha_of(ridge, gram.shape[0])
    factor = cholesky(gram, alpha)
    weights = solve_refined(gram, alpha, factor, as_columns(targets, gram.dtype))
    half = solve_triangular(factor, jnp.eye(gram.shape[0], dtype=gram.dtype), lower=True)
    return (weights / jnp.sum(half**2, axis=0)[:, None]).reshape(jnp.shape(targets))


@automatic_layout
def k_fold_residuals(kernel: Kernel, ridge: ArrayLike, z: Array, targets: Array, num_folds: int = 5) -> jax.Array:
    """Residual of each record under the fit without its fold, in closed form; alpha stays n ridge/2.

    Folds are contiguous, the first n mod num_folds one record longer (scikit-learn's KFold).
    Shapes as in `krr_residuals`. Equals refitting num_folds times with the same alpha.
    """
    gram = kernel.gram(z)
    alpha = alpha_of(ridge, gram.shape[0])
    bounds = fold_bounds(gram.shape[0], num_folds)
    factor = cholesky(gram, alpha)
    weights = solve_refined(gram, alpha, factor, as_columns(targets, gram.dtype))
    half = solve_triangular(factor, jnp.eye(gram.shape[0], dtype=gram.dtype), lower=True)
    held_out = []
    for low, high in bounds:
        # the fold's block of (K + alpha I)^-1 maps held-out residuals to the weights
        block = jnp.matmul(half[:, low:high].T, half[:, low:high], precision=HIGHEST)
        held_out.append(cho_solve((jnp.linalg.cholesky(block), True), weights[low:high]))
    return jnp.concatenate(held_out).reshape(jnp.shape(targets))


def fold_bounds(num_records: int, num_folds: int) -> list[tuple[int, int]]:
    """First and one-past-last record of each contiguous fold."""
    check.at_least(2, num_folds=num_folds)
    if num_folds > num_records:
        raise ValueError(f"num_folds must be at most the number of records {num_records}, got {num_folds}.")
    size, longer = divmod(num_records, num_folds)
    starts = [fold * size + min(fold, longer) for fold in range(num_folds + 1)]
    return list(itertools.pairwise(starts))


def as_columns(targets, dtype):
    """Targets (n,) or (n, q) as a matrix (n, q) of this dtype or a wider one."""
    targets = jnp.asarray(targets)
    targets = targets.astype(jnp.result_type(targets, dtype))
    return targets[:, None] if targets.ndim == 1 else targets


def cholesky(gram, alpha):
    """Lower Cholesky factor of K + alpha I."""
    shifted = gram + alpha * jnp.eye(gram.shape[0], dtype=gram.dtype)
    return jax.lax.linalg.cholesky(shifted, symmetrize_input=False)


def solve_refined(gram, alpha, factor, columns):
    """(K + alpha I)^-1 columns; in float64 with exactly two steps of iterative refinement."""
    weights = cho_solve((factor, True), columns)
    if gram.dtype == jnp.float64:
        for _ in range(REFINEMENT_STEPS):
            left = columns - (jnp.matmul(gram, weights, precision=HIGHEST) + alpha * weights)
            weights = weights + cho_solve((factor, True), left)
    return weights
