"""From a skeleton with separating sets to a CPDAG: v-structures, then Meek's rules. Post-processing only.

Arcs are a bool array (d, d): entry (i, j) without (j, i) is i -> j, both entries are i - j.
"""

import itertools
from collections.abc import Collection, Iterable, Mapping

import numpy as np


def orient(
    skeleton: np.ndarray,
    separators: Mapping[tuple[int, int], Collection[int]],
    against: np.ndarray | None = None,
) -> np.ndarray:
    """The CPDAG of a symmetric skeleton (d, d); separators: (i, j) with i < j -> the set that split the pair.

    Colliders i -> k <- j are set where k is not in the separator of the non-adjacent pair (i, j), in
    lexicographic order; an arc that an earlier collider reversed stays as it is. Pairs without a
    separator make no collider. against: bool (d, d), arcs that cannot be, such as those against time.
    """
    colliders = [
        (int(i), k, int(j))
        for k in range(len(skeleton))
        for i, j in itertools.combinations(np.flatnonzero(skeleton[k]), 2)
        if not skeleton[i, j] and (int(i), int(j)) in separators and k not in separators[int(i), int(j)]
    ]
    return orient_colliders(skeleton, colliders, against)


def orient_colliders(
    skeleton: np.ndarray, colliders: Iterable[tuple[int, int, int]], against: np.ndarray | None = None
) -> np.ndarray:
    """The CPDAG of a skeleton whose colliders i -> k <- j are named, those that count most first."""
    arcs = skeleton.copy() if against is None else skeleton & ~against
    for i, k, j in colliders:
        if arcs[i, k] and arcs[j, k]:
            arcs[k, i] = arcs[k, j] = False
    return meek(arcs)


def cpdag_of(dag: np.ndarray) -> np.ndarray:
    """The CPDAG of a directed acyclic graph (d, d): its Markov equivalence class."""
    skeleton = dag | dag.T
    arcs = skeleton.copy()
    for k in range(len(dag)):
        for i, j in itertools.combinations(np.flatnonzero(dag[:, k]), 2):
            if not skeleton[i, j]:
                arcs[k, i] = arcs[k, j] = False
    return meek(arcs)


def meek(arcs: np.ndarray) -> np.ndarray:
    """Closes a partially directed graph under Meek's rules 1 to 4 (Meek 1995)."""
    arcs = arcs.copy()
    changed = True
    while changed:
        changed = False
        for a, b in np.argwhere(arcs & arcs.T):
            if arcs[a, b] and arcs[b, a] and _implied(arcs, a, b):
                arcs[b, a] = False
                changed = True
    return arcs


def _implied(arcs: np.ndarray, a: int, b: int) -> bool:
    """Whether a - b must be a -> b."""
    into, out = arcs & ~arcs.T, (arcs & ~arcs.T).T
    adjacent, undirected = arcs | arcs.T, arcs & arcs.T
    if np.any(into[:, a] & ~adjacent[:, b]):  # rule 1: c -> a - b, c not adjacent to b
        return True
    if np.any(out[:, a] & into[:, b]):  # rule 2: a -> c -> b
        return True
    middle = np.flatnonzero(undirected[a] & into[:, b])  # rule 3: a - c -> b, a - e -> b, c and e not adjacent
    if any(not adjacent[c, e] for c, e in itertools.combinations(middle, 2)):
        return True
    # rule 4: a - c -> e -> b with a adjacent to e, c not adjacent to b
    outer = np.flatnonzero(undirected[a] & ~adjacent[b])
    return any(np.any(into[c] & into[:, b] & adjacent[a]) for c in outer)


def is_acyclic(arcs: np.ndarray) -> bool:
    """Whether a directed graph (no undirected edges) has no cycle."""
    remaining = arcs.copy()
    alive = np.ones(len(arcs), bool)
    while alive.any():
        roots = alive & ~np.any(remaining[alive], axis=0)
        if not roots.any():
            return False
        alive &= ~roots
        remaining[roots] = False
    return True
