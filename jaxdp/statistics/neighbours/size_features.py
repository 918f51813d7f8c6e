"""A number and its size, as two bounded features that together move no farther than the number alone.

Symbols: u = clip((x - centre)/tau, -1, 1), phi = (u, |u|), r = (u^2, (2|u| - 1)^2)
(docs/theory/feature_gcm.md#features).
"""

import jax.numpy as jnp
import numpy as np

from jaxdp.statistics.neighbours.soft_sign import on_grid

DIAMETER = 2.0  # of the curve phi, in L1 and in L2
SPREADS = np.array([[1.0, 0.25], [0.25, 0.0625]], np.float32)  # of products of squares that r has scaled to [0, 1]


def features(values, centre, width):
    """phi of each value, (n, 2), on the grid; a missing or undefined value counts as u = 0."""
    position = on_grid(jnp.clip(jnp.nan_to_num((values - centre) / width, nan=0.0), -1.0, 1.0))
    return jnp.stack([position, jnp.abs(position)], axis=1)


def squares(phi):
    """r of features (n, 2): squared distances of u from 0 and of |u| from 1/2, each scaled to [0, 1], on the grid."""
    return on_grid(jnp.stack([phi[:, 0] ** 2, (2.0 * phi[:, 1] - 1.0) ** 2], axis=1))
