"""Worst neighbours of local permutation, made by hand from the proof (docs/theory/local_permutation.md)."""

import numpy as np

from jaxdp.simulate.examples import FAR, two_data_sets


def permutations(n=21):
    """`LocalPermutation`: delete and insert, 3 each, for about every permutation (docs/theory/local_permutation.md).

    Copies of neighbours are coupled, not equal-keyed: sorted copies are a coupling, and the attack compares those.
    """
    m = (n - 1) // 2
    crowd = [(FAR, FAR, -FAR)] * m + [(FAR, -FAR, FAR)] * m
    moved = two_data_sets([*crowd, (-FAR, -FAR, -FAR)], [*crowd, (-FAR, FAR, FAR)])
    return [moved, two_data_sets([*crowd, (FAR, FAR, -FAR)], [*crowd, (FAR, -FAR, -FAR)])]


def sorted_copies(values):
    """A rank does not depend on the order of the copies: sorted ones move no further under any coupling."""
    return {side: (reference, np.sort(copies, axis=-1)) for side, (reference, copies) in values.items()}
