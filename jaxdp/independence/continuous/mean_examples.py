"""Data and worst neighbours for `MeanDifference`."""

from __future__ import annotations

import functools

from jaxdp.examples import BestKnown, Example, PairSearch, in_stages, in_zcdp
from jaxdp.independence.continuous.moment_examples import of_groups, two_groups
from jaxdp.statistics.group_scores import Groups

PUBLISHED = BestKnown(0.5, "the pair that moves it most sits on released sizes, which no pair can know")
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


WHOLE = Example(
    two_groups,
    null=functools.partial(two_groups, effect=0.0),
    attack_tightness={"GroupSizes": 0.98, "MeanDifference.scores": PUBLISHED, "MeanDifference.squares": PUBLISHED},
    worst_pairs=worst_pairs,
    search=PairSearch(records=9),
)
ALONE = dict.fromkeys(("scores", "squares"), 0.98)
MEANS = (*in_stages(WHOLE, ABOUT_KNOWN_GROUPS, ALONE, worst_pairs_of_scores), in_zcdp(WHOLE))
