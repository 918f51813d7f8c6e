"""Names for what signatures take."""

import jax
import numpy as np

type Array = jax.Array | np.ndarray
