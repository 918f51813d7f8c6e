"""Where to put the nodes of a graph: in layers, so that arrows point down and boxes never overlap."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np

SWEEPS = 12
NODE_GAP, BEND_GAP, BEND_WIDTH, LAYER_GAP = 0.36, 0.24, 0.06, 1.0
ALONE_GAP, ALONE_WIDTH = 0.6, 9.0  # between rows of nodes without an edge; how wide a row of them may be in any case


@dataclasses.dataclass(frozen=True)
class Layout:
    """places: (d, 2), y grows upwards. bends: (i, j) with i above j -> points (m, 2) that the edge passes between."""

    places: np.ndarray
    bends: dict[tuple[int, int], np.ndarray]


def layout(arcs: np.ndarray, widths: np.ndarray) -> Layout:
    """Layers by longest path, ordered by the medians of their neighbours; long edges bend around the nodes between.

    Nodes without an edge stand in rows below, which are as wide as the rest, or `ALONE_WIDTH`.

    arcs: bool (d, d), i -> j without j -> i, both for an undirected edge. widths: (d,) of the boxes, in units of x.
    """
    widths = np.asarray(widths, float)
    linked = np.flatnonzero((arcs | arcs.T).any(axis=1))
    found = _of_linked(arcs[np.ix_(linked, linked)], widths[linked])
    places = np.zeros((len(arcs), 2))
    places[linked] = found.places
    left, right = found.places[:, 0] - widths[linked] / 2, found.places[:, 0] + widths[linked] / 2
    room = max(ALONE_WIDTH, float(right.max() - left.min())) if len(linked) else ALONE_WIDTH
    below = float(found.places[:, 1].min()) - LAYER_GAP if len(linked) else 0.0
    for number, row in enumerate(_wrapped(np.setdiff1d(np.arange(len(arcs)), linked), widths, room)):
        x = _spread(row, np.zeros(len(row)), widths)
        places[row] = np.stack([x - (x[0] + x[-1]) / 2, np.full(len(row), below - ALONE_GAP * number)], axis=1)
    return Layout(places, {(int(linked[i]), int(linked[j])): points for (i, j), points in found.bends.items()})


def _wrapped(nodes: np.ndarray, widths: np.ndarray, room: float) -> list[list[int]]:
    """Rows of nodes, in order, that are no wider than the room where one node is not."""
    rows: list[list[int]] = []
    used = 0.0
    for node in nodes.tolist():
        needed = float(widths[node]) + NODE_GAP
        if not rows or used + needed > room:
            rows.append([])
            used = 0.0
        rows[-1].append(node)
        used += needed
    return rows


def _of_linked(arcs: np.ndarray, widths: np.ndarray) -> Layout:
    """The layers alone: every node has an edge."""
    count = len(arcs)
    if not count:
        return Layout(np.zeros((0, 2)), {})
    order = _order(arcs)
    rank = np.argsort(order)
    linked = arcs | arcs.T
    down = [(int(i), int(j)) for i in order for j in np.flatnonzero(linked[i]) if rank[i] < rank[j]]
    layer = np.zeros(count, int)
    for i, j in down:  # sorted by the upper end: its layer is final when it is used
        layer[j] = max(layer[j], layer[i] + 1)
    rows, chains, neighbours = _with_bends(layer, down)
    for sweep in range(SWEEPS):
        _sort(rows, neighbours, downwards=sweep % 2 == 0)
    size = np.concatenate([widths, np.full(len(neighbours) - count, BEND_WIDTH)])
    x = _positions(rows, neighbours, size)
    y = np.zeros(len(neighbours))
    for number, row in enumerate(rows):
        y[row] = -LAYER_GAP * number
    points = np.stack([x, y], axis=1)
    return Layout(points[:count], {edge: points[chain] for edge, chain in chains.items()})


def _order(arcs: np.ndarray) -> list[int]:
    """Nodes such that arrows point forward; a circle, which noise can leave, is cut at its lowest node."""
    strict = arcs & ~arcs.T
    left: set[int] = set(range(len(arcs)))
    order: list[int] = []
    while left:
        free = [node for node in sorted(left) if not any(strict[other, node] for other in left)]
        chosen = _nearest(free or sorted(left), order, arcs | arcs.T)
        order.append(chosen)
        left.remove(chosen)
    return order


def _nearest(free: list[int], order: list[int], linked: np.ndarray) -> int:
    """Of the nodes that may come next, the one with the most neighbours already placed; then the most linked one."""
    return max(free, key=lambda node: (linked[node, order].sum(), linked[node].sum(), -node))


def _with_bends(layer: np.ndarray, down: list[tuple[int, int]]):
    """Rows of nodes and bends, the bends of every edge, and the neighbours (above, below) of each."""
    rows: list[list[int]] = [[] for _ in range(int(layer.max()) + 1)]
    for node, number in enumerate(layer):
        rows[number].append(node)
    neighbours: list[tuple[list[int], list[int]]] = [([], []) for _ in layer]
    chains: dict[tuple[int, int], list[int]] = {}
    for i, j in down:
        chain = []
        for number in range(layer[i] + 1, layer[j]):
            chain.append(len(neighbours))
            rows[number].append(len(neighbours))
            neighbours.append(([], []))
        chains[i, j] = chain
        path = [i, *chain, j]
        for upper, lower in itertools.pairwise(path):
            neighbours[upper][1].append(lower)
            neighbours[lower][0].append(upper)
    return rows, chains, neighbours


def _sort(rows: list[list[int]], neighbours, downwards: bool) -> None:
    """Orders every row by the mean place of its neighbours in the row before it."""
    numbers = range(1, len(rows)) if downwards else range(len(rows) - 2, -1, -1)
    for number in numbers:
        before = {node: place for place, node in enumerate(rows[number - 1 if downwards else number + 1])}
        own = {node: place for place, node in enumerate(rows[number])}

        def place(node: int, before=before, own=own) -> float:
            known = [before[other] for other in neighbours[node][0 if downwards else 1] if other in before]
            return float(np.mean(known)) if known else float(own[node])

        rows[number].sort(key=place)


def _positions(rows: list[list[int]], neighbours, size: np.ndarray) -> np.ndarray:
    """x of every node: near the mean of its neighbours, in order, boxes apart."""
    x = np.zeros(len(size))
    for row in rows:
        x[row] = _spread(row, np.zeros(len(row)), size)
    for _ in range(SWEEPS):
        for row in rows:
            wanted = [
                np.mean(x[above + below]) if above + below else x[node]
                for node, (above, below) in ((node, neighbours[node]) for node in row)
            ]
            x[row] = _spread(row, np.asarray(wanted, float), size)
    return x - (x.min() + x.max()) / 2


def _spread(row: list[int], wanted: np.ndarray, size: np.ndarray) -> np.ndarray:
    """The places nearest to those wanted, in least squares, with the gaps that the boxes need (pooled violators)."""
    half = size[row] / 2
    gap = np.where(size[row] > BEND_WIDTH, NODE_GAP, BEND_GAP) / 2
    room = half + gap
    offsets = np.concatenate([[0.0], np.cumsum(room[:-1] + room[1:])]) if row else np.zeros(0)
    blocks: list[list[float]] = []  # mean, number
    for value in wanted - offsets:
        blocks.append([float(value), 1])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            mean, number = blocks.pop()
            last = blocks[-1]
            last[0] = (last[0] * last[1] + mean * number) / (last[1] + number)
            last[1] += number
    return np.repeat([mean for mean, _ in blocks], [int(number) for _, number in blocks]) + offsets
