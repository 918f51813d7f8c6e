"""Common neighbours that separate a pair better are no colliders, where the pair was separated for lack of power."""

import jax
import numpy as np
import pandas as pd
import pytest

import jaxdp
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


@pytest.mark.parametrize(
    ("method", "told"), [("table_pc", colliders.ARROWS), ("moment_pc", "of these arrows to be wrong")]
)
def test_the_note_of_a_graph_with_arrows_says_what_they_rest_on(method, told):
    rng = np.random.default_rng(0)
    causes = rng.integers(0, 2, (4000, 2))
    table = pd.DataFrame(
        {"a": causes[:, 0], "b": causes[:, 1], "both": causes.sum(1) + rng.integers(0, 2, 4000) > 1}, dtype=int
    )
    levels = {name: [0, 1] for name in table}
    for shown, columns in ((True, ["a", "b", "both"]), (False, ["a", "both"])):
        key = jax.random.key(int(shown))
        graph = jaxdp.discover(table, levels=levels, columns=columns, epsilon=4.0, key=key, method=method)
        assert bool(graph.directed) is shown
        assert (told in graph.note) is shown
