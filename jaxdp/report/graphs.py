"""Pictures of graphs: nodes on a circle, matplotlib alone (no Graphviz, no layout library)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from jaxdp.report import figures

NODE_RADIUS = 0.13


def draw_graph(path: Path, names, arcs, *, truth=None, title: str = "", simulation: bool = False) -> Path:
    """Draws a partially directed graph as PNG; returns its path.

    names: node labels. arcs: bool (d, d), i -> j without j -> i, both for an undirected edge.
    truth: bool (d, d) true arcs, if known: edges that are not in it are dashed red, missing ones dotted grey.
    """
    figure, axes = figures.canvas(6.4, 6.0)
    places = _circle(len(names))
    found = arcs | arcs.T
    true = None if truth is None else truth | truth.T
    for i, j in np.argwhere(np.triu(found if true is None else found | true)):
        style = {"color": figures.BLUE, "linestyle": "-"}
        if true is not None and not true[i, j]:
            style = {"color": figures.RED, "linestyle": "--"}
        if not found[i, j]:
            style = {"color": figures.GREY, "linestyle": ":"}
        _edge(axes, places, int(i), int(j), arcs, style)
    for name, (x, y) in zip(names, places, strict=True):
        axes.text(
            x,
            y,
            figures.plain(name),
            ha="center",
            va="center",
            fontsize=9,
            bbox={"boxstyle": "round", "fc": "white", "ec": "black"},
        )
    axes.set(title=figures.plain(title), xlim=(-1.35, 1.35), ylim=(-1.25, 1.25), aspect="equal")
    axes.axis("off")
    if true is not None:
        figure.text(0.01, 0.005, "solid: in the true graph; dashed: not in it; dotted: missed", fontsize=8)
    return figures.save(figure, path, simulation)


def _circle(count: int) -> np.ndarray:
    angle = np.pi / 2 - 2 * np.pi * np.arange(count) / max(count, 1)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1) if count > 1 else np.zeros((count, 2))


def _edge(axes, places: np.ndarray, i: int, j: int, arcs: np.ndarray, style: dict) -> None:
    """A line, with an arrow head where the edge has one direction."""
    if arcs[j, i] and not arcs[i, j]:
        i, j = j, i
    start, stop = places[i], places[j]
    gap = NODE_RADIUS * (stop - start) / max(float(np.linalg.norm(stop - start)), 1e-9)
    start, stop = start + gap, stop - gap
    arrow = "-|>" if arcs[i, j] and not arcs[j, i] else "-"
    look = {"arrowstyle": arrow, "lw": 1.6, "mutation_scale": 16, **style}
    axes.annotate("", xy=tuple(stop), xytext=tuple(start), arrowprops=look)
