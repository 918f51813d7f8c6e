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
    """The CPDAG of a symmetric skeleton (d, d). separators: (i, j) with i < j -> the set that separates the pair.

    Colliders i -> k <- j are set where k is not in the separator of the non-adjacent pair (i, j), in
    lexicographic order; an arc that an earlier collider reversed stays as it is. Pairs without a
    separator make no collider. against: bool (d, d), arcs that cannot be, such as those against time.
    Separators that noise has chosen may contradict each other: a collider that closes a directed cycle with those
    before it is left out, and Meek's rules are where their conclusions close one, as they may in a ring without chords.
    """
    colliders = [(i, k, j) for i, k, j in unshielded(skeleton) if k not in separators.get((i, j), (k,))]
    kept: list[tuple[int, int, int]] = []
    for collider in colliders:
        if is_acyclic(directed(with_colliders(skeleton, [*kept, collider], against))):
            kept.append(collider)
    arcs = with_colliders(skeleton, kept, against)
    closed = meek(arcs)
    return closed if is_acyclic(directed(closed)) else arcs


def directed(arcs: np.ndarray) -> np.ndarray:
    """The arrows alone, without the undirected edges."""
    return arcs & ~arcs.T


def unshielded(skeleton: np.ndarray) -> list[tuple[int, int, int]]:
    """Triples (i, k, j), i < j, whose middle is joined to two columns that no edge joins."""
    return [
        (int(i), k, int(j))
        for k in range(len(skeleton))
        for i, j in itertools.combinations(np.flatnonzero(skeleton[k]), 2)
        if not skeleton[i, j]
    ]


def colliders_of(dag: np.ndarray) -> list[tuple[int, int, int]]:
    """The unshielded colliders i -> k <- j of a directed acyclic graph (d, d), i < j."""
    return [(i, k, j) for i, k, j in unshielded(dag | dag.T) if dag[i, k] and dag[j, k]]


def orient_colliders(
    skeleton: np.ndarray, colliders: Iterable[tuple[int, int, int]], against: np.ndarray | None = None
) -> np.ndarray:
    """The CPDAG of a skeleton whose colliders i -> k <- j are named, those that count most first."""
    return meek(with_colliders(skeleton, colliders, against))


def with_colliders(
    skeleton: np.ndarray, colliders: Iterable[tuple[int, int, int]], against: np.ndarray | None = None
) -> np.ndarray:
    """The skeleton with the arrows of these colliders, where no earlier one has reversed an arrow, and of no others."""
    arcs = skeleton.copy() if against is None else skeleton & ~against
    for i, k, j in colliders:
        if arcs[i, k] and arcs[j, k]:
            arcs[k, i] = arcs[k, j] = False
    return arcs


def cpdag_of(dag: np.ndarray) -> np.ndarray:
    """The CPDAG of a directed acyclic graph (d, d): its Markov equivalence class."""
    return orient_colliders(dag | dag.T, colliders_of(dag))


def compelled(dag: np.ndarray) -> set[tuple[int, int]]:
    """Arcs of a directed acyclic graph (d, d) that every member of its equivalence class has (Chickering 1995)."""
    parents = [set(np.flatnonzero(column).tolist()) for column in dag.T]
    label: dict[tuple[int, int], bool] = {}
    place = {node: number for number, node in enumerate(_sources_first(parents))}
    for y in place:
        for x in sorted(parents[y], key=lambda node: -place[node]):
            if (x, y) in label:
                continue
            forcing = [w for w in parents[x] if label[w, x]]
            if all(w in parents[y] for w in forcing):
                label |= {(w, y): True for w in forcing}
                known = bool(parents[y] - parents[x] - {x})
            else:
                known = True
                label |= {(z, y): True for z in parents[y]}
            label |= {(z, y): known for z in parents[y] if (z, y) not in label}
    return {arc for arc, points in label.items() if points}


def _sources_first(parents: list[set[int]]) -> list[int]:
    """The nodes of an acyclic graph, each after its parents."""
    order: list[int] = []
    left, placed = list(range(len(parents))), set[int]()
    while left:
        ready = [node for node in left if parents[node] <= placed]
        order += ready
        placed |= set(ready)
        left = [node for node in left if node not in placed]
    return order


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


def extension(arcs: np.ndarray) -> np.ndarray | None:
    """A directed acyclic graph with these arcs, these edges and no other collider; None if there is none.

    Dor and Tarsi (1992): nodes go one by one, each a sink whose undirected neighbours are joined to all of its others.
    """
    dag, left = arcs & ~arcs.T, arcs.copy()
    alive = set(range(len(arcs)))
    while alive:
        found = next((node for node in sorted(alive) if _may_go(left, node)), None)
        if found is None:
            return None
        dag[left[:, found], found] = True
        left[found] = left[:, found] = False
        alive.discard(found)
    return dag


def _may_go(arcs: np.ndarray, node: int) -> bool:
    """Whether all edges of a node may point to it without a new collider."""
    if np.any(arcs[node] & ~arcs[:, node]):
        return False
    adjacent = arcs | arcs.T
    around = np.flatnonzero(adjacent[node])
    return all(adjacent[other, around].sum() == len(around) - 1 for other in np.flatnonzero(arcs[node]))


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
