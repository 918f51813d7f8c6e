"""A value and a size of one column within a window of records, bounded together.

In a window with contrast a (symmetric form), in units of the scale: e = x less the window's mean, s = max(|e| - DEAD,
0), p = (a'x/VALUE, a's/SIZE), g = p/max(1, |p|_1): odd under the exchange of the two records of every pair
(docs/theory/contrast_features.md#statistic). Arrays (m, windows) hold the r-th record of every window in row r.
"""

import jax.numpy as jnp

from jaxdp.statistics.neighbours import contrasts
from jaxdp.statistics.neighbours.bands import products
from jaxdp.statistics.neighbours.soft_sign import GRID, on_grid

# In units of the residual scale (#tuning). A size below DEAD counts as none: trends within a window are no sizes.
VALUE, SIZE, DEAD = 0.75, 0.3, 0.75
INSIDE = 1.0 - 1.0 / GRID  # so that two rounded numbers add up to 1 at most


def feature_sums(x, y, z, scores, kept, scales):
    """Sum over windows of g(x) g(y)', (2, 2): x, y (n, 1), z (n, d), scores (n,), finite, in the order of the keys.

    scores: of the records' priorities. kept: weight of each window (n - m + 1,) in [0, 1]. scales: of x and y.
    """
    size = contrasts.window_size(z.shape[1], symmetric=True)
    axes = [contrasts.windows(z[:, j], size) for j in range(z.shape[1])]
    contrast = contrasts.symmetric_contrast(axes, contrasts.windows(scores, size))
    of_x, of_y = (
        features(contrast, contrasts.windows(values[:, 0], size), scale)
        for values, scale in zip((x, y), scales, strict=True)
    )
    return products(of_x * kept.astype(x.dtype)[:, None], of_y)


def features(contrast, values, scale):
    """g of each window, (windows, 2) on the grid with |g|_1 <= 1; contrast and values (m, windows)."""
    # divisions only: a product that is fused with the sum after it would depend on the window's place in the array
    value = contrasts.dot(contrast, values) / (VALUE * scale)
    far = jnp.maximum(jnp.abs(contrasts.less_mean(values)) / scale - DEAD, 0.0)
    size = contrasts.dot(contrast, far) / SIZE
    limit = jnp.maximum(jnp.abs(value) + jnp.abs(size), 1.0) / INSIDE
    return on_grid(jnp.nan_to_num(jnp.stack([value / limit, size / limit], axis=1), nan=0.0))
