"""Pictures of graphs: nodes in layers, matplotlib alone (no Graphviz, no layout library)."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np

from jaxdp.report import figures
from jaxdp.report.layered import layout

CHARACTER, PADDING = 0.086, 0.16  # width of a letter and of a box's rim, in inches
ROW = 0.9  # inches between layers
HALF_BOX = 0.13
LEGEND_ROOM = 0.8
MIN_SIZE, MAX_SIZE = (5.2, 3.2), (40.0, 40.0)
WIDTHS = (0.9, 3.2)  # points, of the least and the most certain edge
LABEL_LENGTH = 24


def draw_graph(
    path: Path, names, arcs, *, truth=None, q_values=None, title: str = "", simulation: bool = False
) -> Path:
    """Draws a partially directed graph as PNG; returns its path. Arguments: as of `picture`."""
    figure, _ = picture(names, arcs, truth=truth, q_values=q_values, title=title)
    return figures.save(figure, path, simulation)


def picture(names, arcs, *, truth=None, q_values=None, title: str = ""):
    """Figure and axes of a partially directed graph.

    names: node labels. arcs: bool (d, d), i -> j without j -> i, both for an undirected edge.
    truth: bool (d, d) true arcs, if known: edges that are not in it are dashed red, missing ones dotted grey.
    q_values: (d, d) in [0, 1], of the edges against chance, derived from what was released: lines narrow as they grow.
    """
    labels = [figures.plain(label) for label in _short(list(names))]
    found = arcs | arcs.T
    true = None if truth is None else truth | truth.T
    boxes = np.array([CHARACTER * max(map(len, label.split("\n"))) + PADDING for label in labels])
    placed = layout(arcs if truth is None else arcs | (truth & ~found), boxes)
    places, bends = placed.places * (1.0, ROW), {edge: p * (1.0, ROW) for edge, p in placed.bends.items()}
    figure, axes, scale = _canvas(places, boxes, np.concatenate([np.zeros((0, 2)), *bends.values()]))
    kinds = set()
    for (i, j), middle in bends.items():
        kind = _kind(i, j, found, true)
        kinds.add(kind)
        certain = None if q_values is None or not found[i, j] else 1.0 - float(q_values[i, j])
        _edge(axes, [places[i], *middle, places[j]], boxes[[i, j]], _heads(i, j, arcs, truth), kind, certain)
    for label, (x, y) in zip(labels, places, strict=True):
        box = {"boxstyle": "round,pad=0.35", "fc": "white", "ec": figures.BLUE, "lw": 1.0}
        axes.text(x, y, label, ha="center", va="center", fontsize=9 * scale, bbox=box, zorder=3)
    axes.set_title(figures.plain(title))
    _legend(axes, kinds if true is not None else set(), arcs, q_values is not None)
    return figure, axes


STYLES: dict[str, tuple[str, Any, str]] = {
    "found": (figures.BLUE, "-", "found"),
    "true": (figures.BLUE, "-", "found, in the true graph"),
    "false": (figures.RED, "--", "found, not in the true graph"),
    "missed": (figures.GREY, ":", "in the true graph, not found"),
}


def _kind(i: int, j: int, found: np.ndarray, true: np.ndarray | None) -> str:
    if true is None:
        return "found"
    return "missed" if not found[i, j] else "true" if true[i, j] else "false"


def _heads(i: int, j: int, arcs: np.ndarray, truth) -> tuple[bool, bool]:
    """Whether the edge has an arrow head at i and at j."""
    shown = arcs if arcs[i, j] or arcs[j, i] or truth is None else truth
    directed = shown[i, j] != shown[j, i]
    return bool(directed and shown[j, i]), bool(directed and shown[i, j])


def _short(names: list[str]) -> list[str]:
    """Names that fit a box: long ones lose their middle; of those that would then read alike, what they share."""
    head, tail = LABEL_LENGTH // 2, LABEL_LENGTH - LABEL_LENGTH // 2 - 1
    cut = [name if len(name) <= LABEL_LENGTH else f"{name[:head]}…{name[-tail:]}" for name in names]
    for alike in {short for short in cut if cut.count(short) > 1}:
        places = [place for place, short in enumerate(cut) if short == alike]
        letters = zip(*(names[place] for place in places), strict=False)
        shared = sum(1 for _ in itertools.takewhile(lambda found: len(set(found)) == 1, letters))
        for place in places:
            start = names[place][: min(head, shared)]
            cut[place] = f"{start}…{names[place][shared:][:tail]} ({place + 1})"
    return cut


def _canvas(places: np.ndarray, boxes: np.ndarray, bends: np.ndarray):
    """A figure in which one unit is one inch, shrunk only where it would be larger than a page can show."""
    low, high = np.zeros(2), np.zeros(2)
    if len(places):
        left, right = places[:, 0] - boxes / 2, places[:, 0] + boxes / 2
        low = np.array([min([*left, *bends[:, 0]]), places[:, 1].min() - 0.4])
        high = np.array([max([*right, *bends[:, 0]]), places[:, 1].max() + 0.4])
    span = high - low + (0.4, LEGEND_ROOM)
    wanted = np.maximum(span, MIN_SIZE)
    scale = float(min(1.0, *(np.asarray(MAX_SIZE) / wanted)))
    figure, axes = figures.canvas(*(wanted * scale))
    middle = (low + high) / 2
    axes.set(
        xlim=(middle[0] - wanted[0] / 2, middle[0] + wanted[0] / 2),
        ylim=(middle[1] - wanted[1] / 2, middle[1] + wanted[1] / 2),
    )
    axes.axis("off")
    return figure, axes, scale


def _edge(axes, points, boxes: np.ndarray, heads: tuple[bool, bool], kind: str, certain: float | None) -> None:
    """A line through its bends, from box to box, with arrow heads where the edge has one direction."""
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path as Curve

    points = [np.asarray(point, float) for point in points]
    points[0] = _rim(points[0], points[1], boxes[0])
    points[-1] = _rim(points[-1], points[-2], boxes[1])
    codes = [Curve.MOVETO]
    vertices = [points[0]]
    for before, point, after in zip(points, points[1:], [*points[2:], None], strict=False):
        if after is None:
            vertices.append(point)
            codes.append(Curve.LINETO)
        else:  # rounded at the bend
            vertices += [point + 0.35 * (before - point), point, point + 0.35 * (after - point)]
            codes += [Curve.LINETO, Curve.CURVE3, Curve.CURVE3]
    color, line, _ = STYLES[kind]
    least, most = WIDTHS
    width = 1.5 if certain is None else least + (most - least) * min(max(certain, 0.0), 1.0)
    style = ("<|-" if heads[0] else "-") if not heads[1] else "-|>"
    patch = FancyArrowPatch(path=Curve(vertices, codes), arrowstyle=style, mutation_scale=12, lw=width)
    patch.set(color=color, linestyle=line, zorder=1)
    axes.add_patch(patch)


def _rim(start: np.ndarray, toward: np.ndarray, width: float) -> np.ndarray:
    """Where the line from a node's middle leaves its box."""
    step = toward - start
    reach = np.array([width / 2 + 0.03, HALF_BOX + 0.03])
    share = float(np.min(reach / np.maximum(np.abs(step), 1e-12)))
    return start + min(share, 0.45) * step


def _legend(axes, kinds: set[str], arcs: np.ndarray, certain: bool) -> None:
    """What the lines mean; only what the picture shows."""
    from matplotlib.lines import Line2D

    entries = [(STYLES[kind][0], STYLES[kind][1], STYLES[kind][2]) for kind in STYLES if kind in kinds]
    handles = [Line2D([], [], color=color, linestyle=line, lw=1.5, label=text) for color, line, text in entries]
    notes = []
    if (arcs & ~arcs.T).any():
        notes.append("arrow: direction found")
    if (arcs & arcs.T).any():
        notes.append("no arrow: direction open")
    if certain:
        notes.append("wider: smaller q-value (less likely to be chance)")
    handles += [Line2D([], [], color="none", label=text) for text in notes]
    if handles:
        axes.legend(handles=handles, loc="lower left", ncols=2, frameon=False, fontsize=8, handlelength=1.8)
