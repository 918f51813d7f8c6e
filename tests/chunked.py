"""Records in memory as chunks, as a reader of files hands them on."""

import jax
import numpy as np

from jaxdp.data import admit
from jaxdp.data.chunks import Chunks, shapes_of
from jaxdp.data.dataset import Data


def of_arrays(data: Data, rows: int) -> Chunks:
    """Records in memory, in chunks of so many rows."""
    data = admit.admitted(data)
    arrays = jax.tree.map(np.asarray, data)
    count = len(arrays.x)

    def read():
        for start in range(0, count, rows):
            yield jax.tree.map(lambda leaf, at=start: leaf[at : at + rows], arrays)

    return Chunks(shapes_of(arrays), read)
