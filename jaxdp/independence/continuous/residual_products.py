"""Products of kernel ridge residuals of X and Y given Z: what the GCM tests are made of."""

import jax.numpy as jnp

from jaxdp.statistics import partition
from jaxdp.statistics.kernel_ridge import ridge


def residual_products(data, kernel, ridge_parameter, scales=(None, None), residuals: str = "in_sample"):
    """R[i, j, k] = (residual of x_j)_i (residual of y_k)_i, shape (n, p, q).

    scales: divide x (y) by this and clip to [-1, 1]; None leaves the values alone. Without z the residuals
    are deviations from the mean. One factorisation serves all columns.
    """
    x, y = (
        partition.as_matrix(values) if scale is None else partition.clip_to(partition.as_matrix(values), scale)
        for values, scale in zip((data.x, data.y), scales, strict=True)
    )
    targets = jnp.concatenate([x, y], axis=1)
    fitted = residuals_of(data.z, targets, kernel, ridge_parameter, residuals)
    return fitted[:, : x.shape[1], None] * fitted[:, None, x.shape[1] :]


def residuals_of(z, targets, kernel, ridge_parameter, residuals: str = "in_sample"):
    """Residuals of each target column, (n, t)."""
    if z is None:
        return targets - jnp.mean(targets, axis=0, keepdims=True)
    z = partition.as_matrix(z)
    if residuals == "leave_one_out":
        return ridge.leave_one_out_residuals(kernel, ridge_parameter, z, targets)
    return ridge.krr_residuals(kernel, ridge_parameter, z, targets)
