"""Worst neighbours of tests of residuals, made by hand from the proofs (docs/theory/kernel_ridge.md, crt.md)."""

import numpy as np

from jaxdp.data.dataset import Data
from jaxdp.simulate.examples import FAR, two_data_sets


def clusters(n=241):
    """Kernel ridge residuals, ridge 1 (docs/theory/kernel_ridge.md): two far clusters, x = 1, y = 1 on one, else -1.

    The fits are orthogonal and as long as they can be; a record with residuals (-3/2, 3/2) in one cluster becomes one
    with (-3/2, -3/2) in the other. One cluster is larger, so that the sum keeps its sign.
    """
    m = (n - 1) // 2
    found = []
    for shift in (12, -12):
        sides = [(FAR, FAR, -FAR)] * (m + shift) + [(FAR, -FAR, FAR)] * (n - 1 - m - shift)
        found.append(two_data_sets([*sides, (-FAR, FAR, FAR)], [*sides, (-FAR, -FAR, -FAR)]))
    return found


def rows_turned(n=13):
    """Randomisation tests without regression: y of one record turns from 1 to -1; every record in turn."""
    x, z = np.full(n, FAR), np.zeros(n)
    found = []
    for row in range(n):
        y = np.full(n, FAR)
        y[row] = -FAR
        found.append((Data(x, np.full(n, FAR), z), Data(x, y, z)))
    return found
