"""Companions of the maximal information coefficient, read off its characteristic matrix.

All take the matrix of `characteristic_matrix_e` or `characteristic_matrix_r`, (s, s) with NaN where a grid is
not allowed; entry [k - 2, l - 2] belongs to k rows and l columns. Reshef et al. 2011, section S1; 2016.
"""

import jax
import jax.numpy as jnp

from jaxdp._base.types import Array

_SLACK = 1e-4  # a guard against overestimating the complexity


def total_information(matrix: Array, *, normalised: bool = False) -> jax.Array:
    """TIC: the sum of all entries; normalised: their mean."""
    return (jnp.nanmean if normalised else jnp.nansum)(matrix)


def maximum_asymmetry(matrix: Array) -> jax.Array:
    """MAS: the largest |M[k, l] - M[l, k]|, how far the relation is from monotone."""
    return jnp.nanmax(jnp.abs(matrix - matrix.T))


def maximum_edge_value(matrix: Array) -> jax.Array:
    """MEV: the largest entry with two rows or two columns, how close to a function the relation is."""
    return jnp.maximum(jnp.nanmax(matrix[0]), jnp.nanmax(matrix[:, 0]))


def minimum_cell_number(matrix: Array, *, slack: float = 0.0) -> jax.Array:
    """MCN: log2 of the fewest cells k l whose entry is at least (1 - slack) times the coefficient (minus 1e-4)."""
    sizes = jnp.arange(2, matrix.shape[0] + 2)
    cells = jnp.log2((sizes[:, None] * sizes[None, :]).astype(matrix.dtype))
    reaches = matrix + _SLACK >= (1.0 - slack) * jnp.nanmax(matrix)
    return jnp.min(jnp.where(reaches, cells, jnp.inf))
