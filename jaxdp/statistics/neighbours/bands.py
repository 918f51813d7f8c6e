"""Sums over pairs of records that are close in the order of z.

Symbols: k = `num_neighbors`, psi = `soft_sign.odd`, w = weight of a pair, S = (1/2k) sum w psi_x psi_y,
Q = (1/k) sum w psi_x^2 psi_y^2 (docs/theory/ordered_neighbours.md#band).
"""

import jax
import jax.numpy as jnp

from jaxdp.statistics.neighbours.soft_sign import odd, on_grid

UNIT_ROUNDOFF = 2.0**-53


def band_sum(x, y, near, num_neighbors: int, widths, kernel: str = "soft"):
    """S for all pairs of columns: (p, q). x (n, p), y (n, q): finite, in the order of z.

    near: (first, second) -> weights (m, 1) of the pairs (first, second), two slices of the sorted records.
    widths: of x and y, the c of psi(t) = clip(t/c, -1, 1).
    """
    total = 0.0
    for psi_x, psi_y, weight in _passes(x, y, near, num_neighbors, widths, kernel):
        total = total + products(psi_x * weight, psi_y)
    return total / (2 * num_neighbors)


def band_squares(x, y, near, num_neighbors: int, widths, kernel: str = "soft"):
    """Q for all pairs of columns: (p, q); arguments as in `band_sum`."""
    total = 0.0
    for psi_x, psi_y, weight in _passes(x, y, near, num_neighbors, widths, kernel):
        total = total + products(on_grid(psi_x**2) * weight, on_grid(psi_y**2))
    return total / num_neighbors


def half_sums(x, y, near, num_neighbors: int, widths, kernel: str = "soft"):
    """What the pairs of each record add to 2 S: (n, p, q), each at most 1; arguments as in `band_sum`."""
    total = jnp.zeros((x.shape[0], x.shape[1], y.shape[1]), x.dtype)
    for distance, (psi_x, psi_y, weight) in enumerate(_passes(x, y, near, num_neighbors, widths, kernel), start=1):
        pairs = (psi_x * weight)[:, :, None] * psi_y[:, None, :]
        total = total.at[:-distance].add(pairs).at[distance:].add(pairs)
    return total / (2 * num_neighbors)


def products(left, right):
    """left' right, (p, q): exact in float64, in any order, for values on the grid (fewer than 2^33 of size 1)."""
    if left.shape[1] == right.shape[1] == 1:
        # behind a barrier: inside the loop of a sum XLA computes one value at a time, at five times the cost
        return jnp.sum(jax.lax.optimization_barrier(left * right))[None, None]
    return jnp.matmul(left.T, right, precision="highest")


def _passes(x, y, near, num_neighbors, widths, kernel):
    """psi_x, psi_y and weights of the pairs 1, ..., k ranks apart."""
    count = x.shape[0]
    if kernel == "plain":
        x, y = on_grid(x), on_grid(y)
    for distance in range(1, min(num_neighbors, count - 1) + 1):
        first, second = slice(0, count - distance), slice(distance, count)
        psi_x = odd(x[second] - x[first], widths[0], kernel)
        psi_y = odd(y[second] - y[first], widths[1], kernel)
        yield psi_x, psi_y, near(first, second).astype(x.dtype)


def null_variance(num_records: int, num_neighbors: int) -> float:
    """Bound on the null variance of S for odd kernels in [-1, 1]: n (1/9 + 7/(36 k)) (#variance)."""
    return num_records * (1.0 / 9.0 + 7.0 / (36.0 * num_neighbors))
