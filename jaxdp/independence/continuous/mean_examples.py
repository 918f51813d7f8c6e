"""Data and worst neighbours for `MeanDifference`."""

from __future__ import annotations

from jaxdp.examples import about_released
from jaxdp.independence.continuous.moment_examples import of_groups, two_groups, two_groups_null
from jaxdp.statistics.group_scores import Groups

PLACE = "jaxdp.independence.continuous.mean_examples"
UNKNOWN = "the pair that moves it most sits on released sizes, which no pair can know"
# the second stage alone, about groups of three tenths and a mean of -0.4
ABOUT_KNOWN_GROUPS = {"stage": "scores", "groups": Groups(share=0.3, centre=-0.4, count_noise=1.0, sum_noise=4.0)}


def worst_pairs():
    """A record that changes its group and goes from one end of the response to the other."""
    return [(of_groups(1.0, 1.0), of_groups(-1.0, -1.0))]


def worst_pairs_of_scores():
    """The scores move by their range where a record changes its group at the far end; squares from 0 to the largest."""
    return [
        (of_groups(1.0, 1.0), of_groups(-1.0, 1.0)),
        (of_groups(1.0, 1.0), of_groups(-0.4, 1.0)),
        (of_groups(1.0, 1.0), of_groups(1.0, -1.0)),
    ]


MEANS = about_released(
    two_groups, two_groups_null, PLACE, "MeanDifference", {"GroupSizes": 0.98}, ABOUT_KNOWN_GROUPS, UNKNOWN, 0.98
)
