"""The columns of a description as small bar charts: noisy counts with intervals, quartiles as lines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxdp.report import figures

ACROSS, MAX_COLUMNS, MAX_BARS = 2, 30, 20  # two beside each other are legible on a telephone


def description(path: Path, columns: Sequence[Mapping[str, Any]], *, title: str, simulation: bool = False) -> Path:
    """Writes the PNG; of many columns the first 30."""
    shown = list(columns)[:MAX_COLUMNS]
    across = min(ACROSS, len(shown))
    down = math.ceil(len(shown) / across)
    figure, grid = figures.canvas(3.2 * across, 2.5 * down + 0.5, down, across, squeeze=False)
    for place, axes in enumerate(grid.flat):
        if place >= len(shown):
            axes.remove()
            continue
        (_bins if "bins" in shown[place] else _levels)(axes, shown[place])
        axes.set_title(figures.plain(shown[place]["name"])[:40], fontsize=9)
        axes.tick_params(labelsize=7)
    more = "" if len(shown) == len(columns) else f" The first {len(shown)} are shown."
    figure.suptitle(figures.plain(f"{title}{more} Noisy counts."), fontsize=10)
    return figures.save(figure, path, simulation)


def _bins(axes: Any, column: Mapping[str, Any]) -> None:
    """Counts of bins, and the quartiles with their intervals."""
    edges: list[Any] = [np.datetime64(edge) if isinstance(edge, str) else edge for edge in column["edges"]]
    axes.stairs(np.maximum(column["bins"], 0.0), edges, fill=True, color=figures.BLUE, alpha=0.45)
    for quantile in column["quantiles"]:
        low, value, high = (
            np.datetime64(end) if isinstance(end, str) else end
            for end in (quantile["low"], quantile["value"], quantile["high"])
        )
        axes.axvline(value, color=figures.RED, linewidth=1.2)
        axes.axvspan(low, high, color=figures.RED, alpha=0.08)
    if isinstance(edges[0], np.datetime64):
        axes.tick_params(axis="x", rotation=30)
    elif edges[0] > 0.0 and edges[-1] - edges[-2] > 1.001 * (edges[1] - edges[0]):  # they grow with their place
        axes.set_xscale("log")


def _levels(axes: Any, column: Mapping[str, Any]) -> None:
    """A bar for each level, with the interval of its count; and one for cells without a known level.

    Of more than `MAX_BARS` levels those with the largest noisy counts, in the schema's order; how many more there are
    is written below them.
    """
    levels = column["levels"]
    largest = sorted(range(len(levels)), key=lambda place: -levels[place]["count"])[:MAX_BARS]
    bars = [(levels[place]["level"], levels[place]) for place in sorted(largest)]
    bars += [(f"({key})", column[key]) for key in ("missing", "unknown") if key in column]
    counts = [bar["count"] for _, bar in bars]
    ends = [[max(b["count"] - b["low"], 0) for _, b in bars], [max(b["high"] - b["count"], 0) for _, b in bars]]
    axes.barh(range(len(bars)), counts, xerr=ends, color=figures.BLUE, alpha=0.6, error_kw={"elinewidth": 1.0})
    axes.set_yticks(range(len(bars)), [figures.plain(name[:18]) for name, _ in bars])
    axes.invert_yaxis()
    axes.set_xlim(left=0.0)
    left = len(levels) - len(largest)
    if left:
        told = "1 more level, of a smaller count, is" if left == 1 else f"{left} more levels, of smaller counts, are"
        axes.set_xlabel(f"{told} in columns.csv", fontsize=7)
