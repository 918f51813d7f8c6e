"""Data and worst neighbours for `MeanDifference`."""

from __future__ import annotations

import numpy as np

from jaxdp.data.dataset import Data
from jaxdp.examples import AuditSettings, BestKnown, Example, PairSearch, with_gaussian_noise
from jaxdp.independence.continuous.moment_examples import TWO_GROUPS, two_groups, two_groups_null
from jaxdp.statistics.group_scores import Groups

PLACE = "jaxdp.independence.continuous.mean_examples"
SEARCH = PairSearch(records=9)
PUBLISHED = BestKnown(0.5, "the pair that moves it most sits on released sizes, which no pair can know")
# the second stage alone, about groups of three tenths and a mean of -0.4
ABOUT_KNOWN_GROUPS = {"stage": "scores", "groups": Groups(share=0.3, centre=-0.4, count_noise=1.0, sum_noise=4.0)}


def _made(x, y):
    return Data(np.array([x, 0.5, -0.5, 0.25]), np.array([y, 1.0, -1.0, 1.0]), None, TWO_GROUPS)


def worst_pairs():
    """A record that changes its group and goes from one end of the response to the other."""
    return [(_made(1.0, 1.0), _made(-1.0, -1.0))]


def worst_pairs_of_scores():
    """The scores move by their range where a record changes its group at the far end; squares from 0 to the largest."""
    return [
        (_made(1.0, 1.0), _made(-1.0, 1.0)),
        (_made(1.0, 1.0), _made(-0.4, 1.0)),
        (_made(1.0, 1.0), _made(1.0, -1.0)),
    ]


def first_worst_pair():
    """For an audit: one pair."""
    return worst_pairs_of_scores()[0]


MEANS = (
    Example(
        two_groups,
        null=two_groups_null,
        reaches={"GroupSizes": 0.98, "MeanDifference.scores": PUBLISHED, "MeanDifference.squares": PUBLISHED},
        worst_pairs=f"{PLACE}:worst_pairs",
        search=SEARCH,
        audit=AuditSettings(fields=ABOUT_KNOWN_GROUPS, neighbours=f"{PLACE}:first_worst_pair"),
    ),
    Example(
        two_groups,
        without_null="its level is that of the first example",
        fields=ABOUT_KNOWN_GROUPS,
        label="scores",
        reaches={"scores": 0.98, "squares": 0.98},
        worst_pairs=f"{PLACE}:worst_pairs_of_scores",
        search=SEARCH,
        bounds_only=True,
    ),
    Example(
        two_groups,
        null=two_groups_null,
        make=with_gaussian_noise,
        label="zcdp",
        reaches={"GroupSizes": 0.98, "MeanDifference.scores": PUBLISHED, "MeanDifference.squares": PUBLISHED},
        worst_pairs=f"{PLACE}:worst_pairs",
        search=SEARCH,
    ),
)
