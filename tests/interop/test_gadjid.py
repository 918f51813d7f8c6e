"""The structural intervention distance, by gadjid, against its definition: every pair and every path by hand."""

import itertools

import networkx
import numpy as np
import pytest

from jaxdp.discovery import cpdag_of, sid

pytestmark = pytest.mark.interop


def random_dag(seed, d=6):
    rng = np.random.default_rng(seed)
    moved = rng.permutation(d)
    return np.triu(rng.random((d, d)) < 0.4, 1)[np.ix_(moved, moved)]


def wrong_effects(found, true):
    """Pairs whose effect adjustment by the parents of x in `found` gives wrongly: Peters and Buehlmann (2015)."""
    graph, wrong = networkx.DiGraph(true.astype(int)), 0
    for x, y in itertools.permutations(range(len(true)), 2):
        parents = set(np.flatnonzero(found[:, x]).tolist())
        if y in parents:
            wrong += y in networkx.descendants(graph, x)
            continue
        on_the_way = [v for path in networkx.all_simple_paths(graph, x, y) for v in path[1:]]
        below = set(on_the_way).union(*(networkx.descendants(graph, v) for v in on_the_way))
        without = graph.copy()
        without.remove_edges_from([(x, v) for v in graph.successors(x) if v in on_the_way])
        wrong += bool(parents & below) or not networkx.is_d_separator(without, {x}, {y}, parents)
    return wrong


@pytest.mark.parametrize("seed", range(30))
def test_the_distance_counts_wrong_effects(seed):
    true, found = random_dag(seed), random_dag(1000 + seed)
    assert sid(found, true) == wrong_effects(found, true)
    empty = np.zeros(true.shape, bool)
    assert sid(empty, true) == wrong_effects(empty, true)
    assert sid(found, found) == 0


def test_open_edges_leave_effects_open():
    chain = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], bool)
    assert sid(chain, chain) == 0
    assert sid(cpdag_of(chain), chain) == 6  # no edge of the class has a direction: every effect is open
