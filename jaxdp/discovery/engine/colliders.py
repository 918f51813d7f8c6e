"""Which columns between two others count as colliders, where one release answers any number of queries.

A set separates a pair also where the test lacks power. Read as a separating set it makes a collider of every common
neighbour that it leaves out, even of one that explains the dependence which was too weak to be found. So the query is
asked once more with that neighbour: where the pair is then clearly nearer to independence, it is no collider.
Post-processing of released numbers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from jaxdp.discovery.engine.orientation import unshielded
from jaxdp.discovery.engine.skeleton import CIQuery, Skeleton

CLEARLY = 1.0  # sds by which a common neighbour must bring a pair nearer to independence to belong to its separator

ARROWS = (
    "Arrows are read off pairs in which no dependence was found, and a search with little power finds none too often: "
    "they have no share of their own, and on small networks about three of ten pointed the wrong way or joined columns "
    "that are not neighbours."
)


def explained(search: Skeleton, scores: Callable[[list[CIQuery]], Sequence[float] | np.ndarray]) -> Skeleton:
    """The search, its separators with the common neighbours that separate better. scores: |z| of each query."""
    open_ones = [
        (i, j, k, tuple(search.separators[i, j]))
        for i, k, j in unshielded(search.adjacency)
        if k not in search.separators.get((i, j), (k,))
    ]
    if not open_ones:
        return search
    asked = [(i, j, tuple(sorted(given))) for i, j, k, less in open_ones for given in (less, (*less, k))]
    without, beside = np.asarray(scores(asked), float).reshape(-1, 2).T
    separators = dict(search.separators)
    for (i, j, k, _), nearer in zip(open_ones, beside + CLEARLY < without, strict=True):
        if nearer:
            separators[i, j] = (*separators[i, j], k)
    return dataclasses.replace(search, separators=separators)
