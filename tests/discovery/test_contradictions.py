"""Decisions that noise has made contradict each other: arrows stay acyclic, and the graph says that they do."""

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp.discovery.engine import session
from jaxdp.discovery.engine.orientation import directed, extension, is_acyclic, orient, orient_colliders, unshielded

RING = {(0, 1), (1, 2), (2, 3), (0, 3), (0, 7), (1, 4), (2, 5), (3, 6)}  # a ring of four, a pendant at each


def adjacency(edges, count):
    found = np.zeros((count, count), bool)
    for i, j in edges:
        found[i, j] = found[j, i] = True
    return found


def test_colliders_that_would_close_a_cycle_are_left_out():
    """The sets that separate each column of the ring from the next one's pendant say 0 -> 1 -> 2 -> 3 -> 0."""
    ring, empty = adjacency(RING, 8), {(0, 4): (), (1, 5): (), (2, 6): (), (3, 7): ()}
    assert not is_acyclic(directed(orient_colliders(ring, [(0, 1, 4), (1, 2, 5), (2, 3, 6), (3, 0, 7)])))
    found = orient(ring, empty)
    assert is_acyclic(directed(found))
    assert {(i, j) for i, j in np.argwhere(directed(found)).tolist() if i < 4} == {(3, 0), (0, 1), (1, 2)}


@pytest.mark.parametrize("tiers", [False, True])
def test_no_separators_make_a_cycle(tiers):
    random, cyclic = np.random.default_rng(0), 0
    for _ in range(150):
        skeleton = np.triu(random.random((7, 7)) < 0.4, 1)
        skeleton |= skeleton.T
        pairs = [(i, j) for i in range(7) for j in range(i + 1, 7) if not skeleton[i, j]]
        separators = {pair: tuple(np.flatnonzero(random.random(7) < 0.4)) for pair in pairs}
        against = np.outer(np.arange(7) == 6, np.arange(7) < 6) & tiers  # the last comes last
        colliders = [(i, k, j) for i, k, j in unshielded(skeleton) if k not in separators[i, j]]
        cyclic += not is_acyclic(directed(orient_colliders(skeleton, colliders, against)))
        found = orient(skeleton, separators, against)
        assert is_acyclic(directed(found))
        assert np.array_equal(found | found.T, skeleton)
        assert not (found & against & ~against.T).any()
    assert cyclic >= 5  # of the arrows of all colliders


@pytest.mark.full
def test_a_graph_whose_decisions_contradict_each_other_says_so():
    """Of seven binary columns, as they come from networks: some answers of `priv_pc` are such graphs."""
    said = set()
    for seed in range(12):
        random = np.random.default_rng(seed)
        columns = random.integers(0, 2, (2000, 7))
        for child in range(7):
            for parent in [other for other in range(child) if random.random() < 1.5 / child][:2]:
                copied = random.random(2000) < 0.5
                columns[copied, child] = columns[copied, parent]
        graph = jaxdp.discovery.priv_pc(jax.random.key(seed), columns, epsilon=4.0, levels=(2,) * 7)
        assert is_acyclic(directed(graph.cpdag))
        contradicts = directed(graph.cpdag).any() and extension(graph.cpdag) is None
        assert (session.CONTRADICTION in graph.note) == contradicts
        said.add(contradicts)
    assert said == {False, True}
