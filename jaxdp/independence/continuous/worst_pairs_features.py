"""Worst neighbours of `FeatureGCM`, made by hand from the proof (docs/theory/feature_gcm.md#sensitivity)."""

import numpy as np

from jaxdp.data.dataset import Column, Data, Domain
from jaxdp.simulate.examples import FAR, two_data_sets


def between(n=13, shape=None):
    """Sums: (1, 1) leaves its place between two (-1, -1), and (1, -1) arrives between two (-1, 1); 4 each, one way.

    Squares: a record whose four squares are 1 becomes one whose squares are nearly 0.
    """
    far, quiet = FAR, [(FAR, FAR, 2.0 + k) for k in range(n - 5)]
    sums = [*quiet, (-far, -far, 0.0), (-far, -far, 0.2), (-far, far, 1.0), (-far, far, 1.2)]
    squares = [*quiet, (far, far, 0.0), (far, far, 0.2), (far, far, 1.0), (far, far, 1.2)]
    return [
        two_data_sets([*sums, (far, far, 0.1)], [*sums, (far, -far, 1.1)], shape),
        two_data_sets([*squares, (far, far, 0.1)], [*squares, (0.55, 0.55, 0.1)], shape),
    ]


def between_in_a_schema():
    """The same within the bounds of a schema, near in z, about centres in the middle of the bounds."""

    def shape(x, y, z):
        columns = (Column(),), (Column(),), (Column(),)
        return Data(np.clip(x, -1, 1), np.clip(y, -1, 1), z / 100, Domain(*columns))

    return between(shape=shape)
