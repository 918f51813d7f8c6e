"""Power against the number of records, one curve per test."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jaxdp.report import figures

COLOURS = (figures.BLUE, "#c77d11", "#4f7f3a", "#7b4b94", figures.RED, "#3c9d9b", "#9c6b4e", "#5c6b8a")


def power_curve(
    path: Path,
    curves: Sequence[tuple[str, Sequence[float], Sequence[float]]],
    *,
    level: float,
    title: str,
    wanted: float | None = None,
    reference: tuple[Sequence[float], Sequence[float]] | None = None,
    measured: Sequence[tuple[float, float, tuple[float, float]]] = (),
    simulated: str = "",
) -> Path:
    """Writes the PNG. curves: (name, n, power). reference: the non-private test. measured: (n, rate, interval) of the
    test `simulated`."""
    figure, axes = figures.canvas(7.2, 4.4)
    for number, (name, n, power) in enumerate(curves):
        colour, dashed = COLOURS[number % len(COLOURS)], number >= len(COLOURS)
        axes.plot(n, power, color=colour, linestyle="--" if dashed else "-", label=name)
    if reference is not None:
        axes.plot(*reference, color=figures.GREY, linestyle="-.", label="not private")
    for size, rate, (low, high) in measured:
        told = f"{simulated}, simulated".removeprefix(", ")
        axes.errorbar([size], [rate], yerr=[[rate - low], [high - rate]], fmt="o", color="black", capsize=3, label=told)
    axes.axhline(level, color=figures.GREY, linewidth=0.8, linestyle=":")
    axes.annotate(f"level {level:g}", (1.0, level), xycoords=("axes fraction", "data"), va="bottom", ha="right")
    if wanted is not None:
        axes.axhline(wanted, color=figures.GREY, linewidth=0.8, linestyle="--")
        axes.annotate(f"wanted {wanted:g}", (1.0, wanted), xycoords=("axes fraction", "data"), va="bottom", ha="right")
    axes.set(xscale="log", ylim=(0.0, 1.02), xlabel="records n", ylabel="power", title=figures.plain(title))
    axes.legend(loc="upper left", framealpha=0.9, edgecolor="none", fontsize=8)
    return figures.save(figure, path)
