"""Pictures as PNG files: matplotlib without its global state. Everything drawn is released or public."""

from __future__ import annotations

import dataclasses
import importlib.util
import re
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxdp._base import p_values

BLUE, RED, GREY, ORANGE = "#2a6f97", "#b3261e", "#8a8f98", "#c46a00"
NOTE_OF_SIMULATION = "NOT PRIVATE: simulation"
GRID_POINTS = 801
NO_BREAK = "\u00a0"  # a space at which no line ends
ROW, LINE = 0.4, 0.17  # inches of an effect beside others, and of a line of its label
MAX_LABELS = 40  # columns that a heat map names


@dataclasses.dataclass(frozen=True)
class Effect:
    """An effect as pictures show it: its value, the ends of its interval, its name, and a margin that was asked for.

    none: the effect where nothing depends. inner: ends and coverage of the interval that decides about the margin.
    """

    value: float
    low: float
    high: float
    name: str
    margin: float | None = None
    none: float = 0.0
    inner: tuple[float, float, float] | None = None


@dataclasses.dataclass(frozen=True)
class Effects:
    """Several effects on one scale, each by its own name.

    name: of them all. none: as of an `Effect`. together: whether their intervals hold together.
    """

    each: Sequence[Effect]
    name: str
    margin: float | None = None
    none: float = 0.0
    together: bool = False


def canvas(width: float = 6.0, height: float = 3.8, down: int = 1, across: int = 1, **settings: Any):
    """A figure and its axes, drawn off screen; of several panels as `Figure.subplots` gives them."""
    require_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(down, across, **settings)
    for axes in np.ravel(panels):
        axes.spines[["top", "right"]].set_visible(False)
    return figure, panels


def can_draw() -> bool:
    """Whether matplotlib is installed; commands answer without pictures where it is not."""
    return importlib.util.find_spec("matplotlib") is not None


def require_matplotlib() -> None:
    """ValueError if pictures cannot be drawn."""
    if not can_draw():
        raise ValueError("pictures need matplotlib: install jaxdp-dependence[plot].")


def plain(text: str) -> str:
    """Text as matplotlib should show it: wrapped, and with dollar signs that start no formula."""
    return textwrap.fill(text, 58).replace("$", r"\$")


def save(figure, path: Path, simulation: bool = False) -> Path:
    """Writes the PNG, marked if it shows a simulation; returns its path."""
    if simulation:
        marked = {"ha": "right", "color": RED, "fontsize": 8}
        if figure.get_supxlabel():
            figure.text(0.995, 0.005, NOTE_OF_SIMULATION, va="bottom", **marked)
        else:  # it has a place of its own, below the labels of axes
            figure.supxlabel(NOTE_OF_SIMULATION, x=0.995, **marked)
    figure.savefig(path)
    return Path(path)


def heat_map(
    path: Path,
    matrix: np.ndarray,
    names: Sequence[str],
    *,
    label: str,
    highest: float,
    colours: str,
    dots: Sequence[tuple[int, int]] = (),
    title: str = "",
    simulation: bool = False,
) -> Path:
    """A square of numbers (d, d) from 0 to `highest` about pairs of columns, dots on some; few columns are named."""
    figure, axes = canvas(6.4, 5.6)
    figure.colorbar(axes.imshow(matrix, vmin=0.0, vmax=highest, cmap=colours), ax=axes, label=label)
    if dots:
        axes.scatter(*np.array(dots).T, s=14, color="black")
    if len(names) <= MAX_LABELS:
        labels = [plain(name) for name in names]
        axes.set_xticks(range(len(labels)), labels, rotation=90)
        axes.set_yticks(range(len(labels)), labels)
    axes.set_title(plain(title))
    return save(figure, path, simulation)


def null_law(
    path: Path,
    statistic: float,
    tail: Callable[[np.ndarray], np.ndarray],
    *,
    level: float,
    p_value: float,
    title: str,
    label: str = "released statistic",
    effect: Effect | Effects | None = None,
    simulation: bool = False,
) -> Path:
    """The density of the statistic under independence, its critical region, the released value; below it the effect.

    tail: t (m,) -> P(|statistic| >= t), symmetric law, noise included.
    """
    critical = quantile(tail, level)
    reach = 1.15 * max(abs(statistic), 1.7 * critical)
    edges = np.linspace(0.0, reach, GRID_POINTS)
    density = -0.5 * np.diff(tail(edges)) / np.diff(edges)
    middle = 0.5 * (edges[1:] + edges[:-1])
    t, height = np.concatenate([-middle[::-1], middle]), np.concatenate([density[::-1], density])

    figure, axes = over_effect(4.4, effect)
    axes.plot(t, height, color=BLUE, label="law under independence, noise included")
    axes.fill_between(t, height, where=np.abs(t) < critical, color=BLUE, alpha=0.15)
    axes.fill_between(
        t, height, where=np.abs(t) >= critical, color=RED, alpha=0.35, label=f"critical region, level {level:g}"
    )
    for edge in (-critical, critical):
        axes.axvline(edge, color=RED, linewidth=0.8, linestyle=":")
    axes.axvline(
        statistic, color="black", linewidth=1.6, label=f"{label} {statistic:.4g}, {p_values.describe(p_value)}"
    )
    axes.set(
        title=plain(title), xlabel=plain(label), ylabel="density", ylim=(0.0, 1.08 * height.max()), xlim=(-reach, reach)
    )
    figure.legend(loc="outside lower left", frameon=False, fontsize=9)  # inside, lines would cross its words
    return save(figure, path, simulation)


def quantile(tail: Callable[[np.ndarray], np.ndarray], level: float) -> float:
    """The t > 0 where a decreasing tail falls to the level, by grids that narrow (one shape: one compilation)."""
    grid = np.geomspace(1e-6, 1e12, GRID_POINTS)
    for _ in range(3):
        above = tail(grid) > level
        last = int(np.flatnonzero(above)[-1]) if above.any() else 0
        grid = np.linspace(grid[last], grid[min(last + 1, GRID_POINTS - 1)], GRID_POINTS)
    return float(grid[0])


def p_value_scale(
    path: Path,
    *,
    p_value: float,
    level: float,
    title: str,
    effect: Effect | Effects | None = None,
    simulation: bool = False,
) -> Path:
    """The p-value on a logarithmic scale with its level, for statistics without a one-dimensional null law."""
    shown = p_values.floored(p_value)
    smallest = 10.0 ** np.floor(np.log10(min(shown, level)) - 1)  # a decade further: on the edge half a line is hidden
    figure, axes = over_effect(2.4, effect)
    axes.axvspan(smallest, level, color=RED, alpha=0.2, label=f"critical region, level {level:g}")
    axes.axvspan(level, 1.0, color=BLUE, alpha=0.12)
    axes.axvline(shown, color="black", linewidth=2.0, label=f"{p_values.describe(p_value)}")
    axes.set(xscale="log", xlim=(smallest, 1.0), yticks=[], title=plain(title), xlabel="p-value (noise included)")
    axes.xaxis.set_major_formatter("{x:g}")  # matplotlib's own are formulas, which take as long as all else
    axes.xaxis.set_minor_formatter("")
    axes.spines["left"].set_visible(False)
    figure.legend(loc="outside lower left", ncols=2, frameon=False, fontsize=8)
    return save(figure, path, simulation)


def over_effect(height: float, effect: Effect | Effects | None):
    """A figure and the axes of its upper part; the lower part shows the effect or the effects, where there are any."""
    if effect is None:
        return canvas(height=height)
    each = effect.each if isinstance(effect, Effects) else [effect]
    named = re.split(r"[;.] (?![^\[]*\])", effect.name)[0]  # with its direction: which group less which
    within = "" if effect.margin is None else f"; shaded: within the margin of {effect.margin:g}"
    inner = effect.inner if isinstance(effect, Effect) else None
    within += "" if inner is None else f"; thick: {100.0 * inner[2]:g} % interval, which decides about it"
    several = isinstance(effect, Effects)  # of which a picture may show one
    simultaneous = "simultaneous " * (isinstance(effect, Effects) and effect.together)
    told = f"{named}; {simultaneous}95 % interval{'s' * several}{within}"
    for pair in (" - ", " % "):
        told = told.replace(pair, pair.replace(" ", NO_BREAK))  # a difference, and a share, stay on one line
    label = plain(told)
    more = ROW * (len(each) - 1)
    whole = height + 1.3 + more + LINE * label.count("\n")
    figure, (axes, strip) = canvas(height=whole, down=2, height_ratios=(height - 1.0, 0.6 + more))
    strip.spines["left"].set_visible(False)
    if effect.margin is not None:
        strip.axvspan(effect.none - effect.margin, effect.none + effect.margin, color=BLUE, alpha=0.12)
    strip.axvline(effect.none, color=GREY, linewidth=1.0, linestyle=":")
    for place, one in enumerate(each):
        strip.plot([one.low, one.high], [-place, -place], color=BLUE, linewidth=3.0, solid_capstyle="butt")
        if inner is not None:
            strip.plot(inner[:2], [-place, -place], color=BLUE, linewidth=8.0, solid_capstyle="butt")
        strip.plot([one.value], [-place], "o", color="black", markersize=6.0)
        if len(each) > 1:
            where = {"transform": strip.get_yaxis_transform(), "fontsize": 8}
            strip.text(0.0, 0.25 - place, plain(one.name).replace("\n", " "), **where)
    strip.set(yticks=[], ylim=(-len(each), 1.0), xlabel=label)
    return figure, axes
