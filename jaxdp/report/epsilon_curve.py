"""Power above, and the best guess of one record below, over the same epsilons."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jaxdp._base import risk
from jaxdp._base.amounts import spent
from jaxdp.report import figures

GREEN = "#4f7f3a"
TICKS = (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)


def epsilon_curve(path: Path, curve: Any) -> Path:
    """Writes the PNG of a `jaxdp.plan.epsilon_curve.EpsilonCurve`: public numbers and made-up data only."""
    figure, panels = figures.canvas(7.2, 6.6, down=2, sharex=True, height_ratios=(3, 2))
    power, guess = panels
    epsilons = [point.epsilon for point in curve.points]
    for axes in panels:
        for epsilon, colour, style, label in _marks(curve):
            axes.axvline(epsilon, color=colour, linestyle=style, linewidth=1.2, label=label if axes is power else None)
    _power(power, curve, epsilons)
    _guess(guess, curve, epsilons)
    shared = f", each of {curve.studies} studies that share epsilon" if curve.studies > 1 else ""
    power.set_title(figures.plain(f"{curve.method}: n = {curve.n}, effect {curve.effect:.3g}{shared}"))
    figure.legend(loc="outside lower left", ncols=2, frameon=False, fontsize=9)  # inside, lines would cross its words
    return figures.save(figure, path)


def _marks(curve: Any) -> Iterator[tuple[float, str, str, str]]:
    """Epsilon, colour, style and words of the vertical lines."""
    if curve.flat is not None and curve.flat != curve.knee:
        yield curve.flat, GREEN, "--", f"{spent(curve.flat, 3)}: 90 % of the non-private power from here on"
    if curve.knee is not None:
        too = " and 90 % of the non-private one" if curve.flat == curve.knee else ""
        yield curve.knee, "black", "-", f"knee {spent(curve.knee, 3)}: power {curve.wanted:g}{too} from here on"


def _power(axes: Any, curve: Any, epsilons: list[float]) -> None:
    rates = [point.power for point in curve.points]
    axes.axhline(curve.not_private, color=figures.GREY, linestyle="-.", label=f"not private: {curve.not_private:.2f}")
    axes.axhline(curve.level, color=figures.GREY, linewidth=0.8, linestyle=":", label=f"level {curve.level:g}")
    how: dict[str, Any] = {"color": figures.BLUE, "marker": "o", "markersize": 3.5}
    if curve.points[0].low is None:
        axes.plot(epsilons, rates, label="power", **how)
    else:
        bars = [[p.power - p.low for p in curve.points], [p.high - p.power for p in curve.points]]
        axes.errorbar(epsilons, rates, yerr=bars, capsize=2, label="power, simulated, 95 % intervals", **how)
    axes.set(ylabel="power", ylim=(0.0, 1.04))


def _guess(axes: Any, curve: Any, epsilons: list[float]) -> None:
    guesses = [point.best_guess for point in curve.points]
    household = [point.household for point in curve.points]
    axes.plot(epsilons, guesses, color=figures.RED, marker="o", markersize=3.5, label="best guess of one record")
    axes.plot(epsilons, household, color=figures.RED, linestyle="--", label="of a household of four")
    if curve.knee is not None:
        right = curve.at(curve.knee).best_guess
        axes.annotate(risk.shown(right), (curve.knee, right), xytext=(5, -12), textcoords="offset points", fontsize=9)
    axes.set(xscale="log", xlabel="total epsilon", ylabel="best guess of two", ylim=(0.49, 1.03))
    ticks = [tick for tick in TICKS if epsilons[0] <= tick <= epsilons[-1]] or epsilons
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
