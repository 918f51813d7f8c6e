"""Pictures of graphs: nodes in layers, matplotlib alone (no Graphviz, no layout library)."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np

from jaxdp.report import figures
from jaxdp.report.layered import layout

CHARACTER, PADDING = 0.086, 0.16  # width of a letter and of a box's rim, in inches
ROW = 0.9  # inches between layers
HALF_BOX = 0.13
HEAD = 0.1  # the piece of a line that bears its head
LEGEND_ROOM = 0.8
MIN_SIZE, MAX_SIZE = (5.2, 3.2), (40.0, 40.0)
WIDTHS = (0.9, 3.2)  # points, of edges with the q-values of `Q_ENDS`
Q_ENDS = (0.05, 1e-6)  # the legend names the second
PLAIN = 1.5  # points, of an edge that has no q-value
LABEL_LENGTH = 24


def draw_graph(path: Path, names, arcs, *, simulation: bool = False, **options: Any) -> Path:
    """Draws a partially directed graph as PNG; returns its path. options: as of `picture`."""
    figure, _ = picture(names, arcs, **options)
    return figures.save(figure, path, simulation)


def picture(names, arcs, *, truth=None, q_values=None, required=None, settled=None, title: str = ""):
    """Figure and axes of a partially directed graph.

    names: node labels. arcs: bool (d, d), i -> j without j -> i, both for an undirected edge.
    truth: bool (d, d) true arcs, if known: edges that are not in it are dashed red, missing ones dotted grey, those
    whose arrow it does not have orange.
    q_values: (d, d) in [0, 1] or NaN, of the edges against chance, derived from what was released: lines narrow as
    their logarithms grow. required, settled: bool (d, d), edges that were required beforehand, and arrows whose
    direction was known.
    """
    labels = [figures.plain(label) for label in _short(list(names))]
    found = arcs | arcs.T
    nothing = np.zeros(arcs.shape, bool)
    q_values = np.full(arcs.shape, np.nan) if q_values is None else np.where(found, q_values, np.nan)
    required = nothing if required is None else required & found
    boxes = np.array([CHARACTER * max(map(len, label.split("\n"))) + PADDING for label in labels])
    placed = layout(arcs if truth is None else arcs | (truth & ~found), boxes)
    places, bends = placed.places * (1.0, ROW), {edge: p * (1.0, ROW) for edge, p in placed.bends.items()}
    figure, axes, scale = _canvas(places, boxes, np.concatenate([np.zeros((0, 2)), *bends.values()]))
    kinds = set()
    for (i, j), middle in bends.items():
        kind = _kind(i, j, arcs, truth)
        kinds.add(kind)
        points = _between([places[i], *middle, places[j]], boxes[[i, j]])
        _edge(axes, points, _heads(i, j, arcs, truth), kind, _width(float(q_values[i, j])))
        if required[i, j]:
            axes.plot(*(points[0] + points[1]) / 2, **REQUIRED, color=STYLES[kind][0])
    for label, (x, y) in zip(labels, places, strict=True):
        box = {"boxstyle": "round,pad=0.35", "fc": "white", "ec": figures.BLUE, "lw": 1.0}
        axes.text(x, y, label, ha="center", va="center", fontsize=9 * scale, bbox=box, zorder=3)
    axes.set_title(figures.plain(title))
    marks = {*kinds} if truth is not None else set()
    marks |= {"required"} if required.any() else set()
    marks |= {"width"} if np.isfinite(q_values).any() else set()
    _legend(axes, marks, arcs, nothing if settled is None else settled)
    return figure, axes


STYLES: dict[str, tuple[str, tuple[float, ...], str]] = {  # colour, dashes and gaps in points, meaning
    "found": (figures.BLUE, (), "found"),
    "true": (figures.BLUE, (), "found, in the true graph"),
    "false": (figures.RED, (5.0, 2.5), "found, not in the true graph"),
    "turned": (figures.ORANGE, (7.0, 2.5, 1.0, 2.5), "found, direction wrong"),
    "missed": (figures.GREY, (0.5, 2.0), "in the true graph, not found"),
}
REQUIRED: dict[str, Any] = {"marker": "o", "markersize": 6, "markerfacecolor": "white", "linestyle": "", "zorder": 2}


def _kind(i: int, j: int, arcs: np.ndarray, truth: np.ndarray | None) -> str:
    """How the edge compares; its direction is wrong where it has an arrow that the truth does not have."""
    if truth is None:
        return "found"
    found, true = ((bool(graph[i, j]), bool(graph[j, i])) for graph in (arcs, truth))
    if not any(found) or not any(true):
        return "false" if any(found) else "missed"
    return "turned" if found not in (true, (True, True)) else "true"


def _dashes(kind: str, width: float) -> Any:
    """The line style of an edge: as long on wide lines as on narrow ones, but for the round ends of dashes."""
    lengths = STYLES[kind][1]
    return (0, tuple(length / width + place % 2 for place, length in enumerate(lengths))) if lengths else "-"


def _width(q_value: float) -> float:
    """Points of a line: by the logarithm of the q-value, between the ends of `Q_ENDS`."""
    if math.isnan(q_value):
        return PLAIN
    largest, smallest = map(math.log, Q_ENDS)
    share = (largest - math.log(max(q_value, Q_ENDS[1]))) / (largest - smallest)
    return WIDTHS[0] + (WIDTHS[1] - WIDTHS[0]) * max(share, 0.0)


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
        low = np.array([min([*left, *bends[:, 0]]), places[:, 1].min() - 0.4 - LEGEND_ROOM])
        high = np.array([max([*right, *bends[:, 0]]), places[:, 1].max() + 0.4])
    span = high - low + (0.4, 0.0)
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


def _between(points, boxes: np.ndarray) -> list[np.ndarray]:
    """The points of a line from the middle of a node to that of another, cut where it leaves their boxes."""
    points = [np.asarray(point, float) for point in points]
    points[0] = _rim(points[0], points[1], boxes[0])
    points[-1] = _rim(points[-1], points[-2], boxes[1])
    return points


def _edge(axes, points: list[np.ndarray], heads: tuple[bool, bool], kind: str, width: float) -> None:
    """A line through its bends, with arrow heads where the edge has one direction."""
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path as Curve

    style: dict[str, Any] = {"lw": width, "color": STYLES[kind][0]}
    points = list(points)
    for end, inner in ((0, 1), (-1, -2)):
        if heads[end]:  # on a piece of its own, for the rim of a head would be dashed as the line is
            tip, way = points[end], points[inner] - points[end]
            points[end] = tip + HEAD * way / np.hypot(*way)
            piece = Curve([points[end], tip])
            axes.add_patch(FancyArrowPatch(path=piece, arrowstyle="-|>", mutation_scale=12, **style))
    codes = [Curve.MOVETO]
    vertices = [points[0]]
    for before, point, after in zip(points, points[1:], [*points[2:], None], strict=False):
        if after is None:
            vertices.append(point)
            codes.append(Curve.LINETO)
        else:  # rounded at the bend
            vertices += [point + 0.35 * (before - point), point, point + 0.35 * (after - point)]
            codes += [Curve.LINETO, Curve.CURVE3, Curve.CURVE3]
    line = Curve(vertices, codes)
    axes.add_patch(FancyArrowPatch(path=line, arrowstyle="-", linestyle=_dashes(kind, width), **style))


def _rim(start: np.ndarray, toward: np.ndarray, width: float) -> np.ndarray:
    """Where the line from a node's middle leaves its box."""
    step = toward - start
    reach = np.array([width / 2 + 0.03, HALF_BOX + 0.03])
    share = float(np.min(reach / np.maximum(np.abs(step), 1e-12)))
    return start + min(share, 0.45) * step


def _legend(axes, marks: set[str], arcs: np.ndarray, settled: np.ndarray) -> None:
    """What the lines mean; only what the picture shows."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=color, linestyle=_dashes(kind, PLAIN), lw=PLAIN, label=text, dash_capstyle="round")
        for kind, (color, _, text) in STYLES.items()
        if kind in marks
    ]
    if "required" in marks:
        handles.append(Line2D([], [], **REQUIRED, color=figures.BLUE, label="required, not tested"))
    directed, notes = arcs & ~arcs.T, []
    if directed.any():
        by = ("found", "found or known", "known beforehand")
        notes.append(f"arrow: direction {by[bool((directed & settled).any()) + (not (directed & ~settled).any())]}")
    if (arcs & arcs.T).any():
        notes.append("no arrow: direction open")
    if "width" in marks:
        notes.append("wider: smaller q-value (widest: 1e-6)")
    handles += [Line2D([], [], color="none", label=text) for text in notes]
    if handles:
        axes.legend(handles=handles, loc="lower left", ncols=2, frameon=False, fontsize=8, handlelength=1.8)
