"""Worst neighbours of tests along the order of Z, made by hand from the proof (docs/theory/ordered_neighbours.md)."""

from jaxdp.independence.continuous.worst_pairs_partition import several_columns
from jaxdp.simulate.examples import FAR, two_data_sets


def between(n=13, shape=None):
    """`BandGCM`, one neighbour (docs/theory/ordered_neighbours.md): three pairs of signs change by 1/2 each, twice.

    A record that is concordant with both its neighbours in z, themselves discordant, moves between two concordant ones
    and is discordant with both.
    """
    far, quiet = FAR, [(FAR, FAR, 2.0 + k) for k in range(n - 5)]
    kept = [*quiet, (0.0, 0.0, 0.0), (far, -far, 0.2), (0.0, 0.0, 1.0), (far, far, 1.2)]
    return [two_data_sets([*kept, (2 * far, 2 * far, 0.1)], [*kept, (2 * far, -far, 1.1)], shape)]


def between_columns():
    """The same in several columns of x and y."""
    return between(shape=several_columns)
