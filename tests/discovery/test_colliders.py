"""Common neighbours that separate a pair better are no colliders, where the pair was separated for lack of power."""

import numpy as np
import pytest

from jaxdp.discovery.engine import colliders
from jaxdp.discovery.engine.orientation import orient
from jaxdp.discovery.engine.skeleton import Skeleton


def path(separator=()):
    """0 - 1 - 2."""
    adjacency = np.zeros((3, 3), bool)
    for i, j in ((0, 1), (1, 2)):
        adjacency[i, j] = adjacency[j, i] = True
    return Skeleton(adjacency, {(0, 2): separator}, (), 0)


@pytest.mark.parametrize(("without", "beside", "is_collider"), [(3.4, 0.5, False), (0.3, 5.0, True), (1.2, 0.9, True)])
def test_a_neighbour_that_explains_a_weak_dependence_is_no_collider(without, beside, is_collider):
    def scores(queries):
        assert queries == [(0, 2, ()), (0, 2, (1,))]
        return [without, beside]

    found = colliders.explained(path(), scores)
    directed = orient(found.adjacency, found.separators)
    assert directed[0, 1]
    assert bool(directed[1, 0]) is not is_collider


def test_a_separating_neighbour_is_not_asked_about():
    search = path((1,))
    assert colliders.explained(search, lambda queries: pytest.fail("asked")) is search
