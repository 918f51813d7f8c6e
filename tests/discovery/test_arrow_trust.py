"""What of the share of an arrow is right, by the cycles of a graph and the dependence left in it; its record."""

import json
from pathlib import Path

import numpy as np
import pytest

from experiments.evidence.discovery import arrow_shares
from jaxdp.discovery.engine.directions import OFFSET, Rule, Shown, Trust, by_one_release, cycles, leftover
from jaxdp.discovery.engine.knowledge import Known
from jaxdp.discovery.methods import neighbour_pc
from jaxdp.discovery.spec import Setting

PAGE = Path(__file__).parents[2] / "docs" / "discovery.md"


def joined(count: int, *edges: tuple[int, int]) -> np.ndarray:
    skeleton = np.zeros((count, count), bool)
    for i, j in edges:
        skeleton[i, j] = skeleton[j, i] = True
    return skeleton


@pytest.mark.parametrize(
    ("skeleton", "per_column"),
    [
        (joined(5), 0.0),
        (joined(5, (0, 1), (1, 2), (3, 4)), 0.0),
        (joined(4, (0, 1), (1, 2), (2, 3), (0, 3)), 0.25),
        (joined(6, (0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)), 2.0 / 6.0),
    ],
)
def test_cycles_are_the_edges_beyond_a_spanning_forest(skeleton, per_column):
    assert cycles(skeleton) == pytest.approx(per_column)


def test_a_missing_edge_counts_and_not_how_strong_it_is():
    assert leftover(np.array([0.0, 1.0, 40.0])) == pytest.approx((0.0 + 1.0 + 16.0) / 3.0)
    assert leftover(np.array([])) is None


def test_more_cycles_and_more_dependence_left_lower_what_is_right():
    trust = Trust(2.0, 3.0, 1.0)
    assert trust.of(Shown(0.0)) == pytest.approx(1.0 / (1.0 + np.exp(-2.0)))
    assert trust.of(Shown(0.0)) > trust.of(Shown(0.4))
    assert trust.of(Shown(0.0, 1.0 - OFFSET)) == pytest.approx(trust.of(Shown(0.0)))
    assert trust.of(Shown(0.0, 0.2)) > trust.of(Shown(0.0, 4.0))


def test_few_columns_and_noise_lower_what_is_right_of_neighbour_pc():
    def right(columns, n):
        return neighbour_pc.trust(Setting((0,) * columns, n, 3.0, 0.0)).of(Shown(0.0))

    assert right(6, 2000) < right(6, 10_000) < right(12, 10_000)
    assert Trust(2.0, 3.0, 1.0).at(5, 1.0) == Trust(2.0, 3.0, 1.0)


def test_shares_fall_where_pairs_without_an_edge_stay_dependent():
    """A collider 0 -> 1 <- 2 beside a column 3 that nothing joins."""

    def found(apart: float):
        def sizes(queries):
            return np.array([apart if 3 in (i, j) else 8.0 if 1 in given else 0.1 for i, j, given in queries])

        rule = Rule(trust=Trust(2.0, per_leftover=1.0))
        return by_one_release(joined(4, (0, 1), (1, 2)), sizes, Known.nothing(4), None, rule).arrow_shares[0, 1]

    assert found(0.2) > found(3.0) + 0.1


def test_the_table_of_the_page_is_that_of_the_record_and_shares_are_right_as_often_as_they_say():
    rows = [json.loads(line) for line in arrow_shares.FILE.read_text().splitlines()]
    held = [row for row in rows if row["part"] == arrow_shares.HELD]
    assert arrow_shares.table(held) in PAGE.read_text()
    for search in arrow_shares.TRUSTS:
        own = [row for row in held if row["search"] == search]
        told = [(share * arrow_shares.trust_of(row), right) for row in own for share, right, _ in row["arrows"]]
        expected, right = np.mean(told, axis=0)
        assert abs(expected - right) < 0.1, search
