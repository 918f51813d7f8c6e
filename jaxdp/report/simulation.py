"""Pictures of simulations: null p-values, rejection curves, two result folders side by side."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from jaxdp.report import figures

COLOURS = ("#2a6f97", "#b3261e", "#3a7d44", "#8f5db7", "#c77d0a", "#4d4d4d", "#17a2a2", "#d14d8b")
MAX_LINES = 16
BARS = 20


@dataclasses.dataclass(frozen=True)
class Nulls:
    """P-values of a null cell: counts on 100 equal bins, and the values where they were kept."""

    label: str
    histogram: np.ndarray
    p_values: np.ndarray

    @property
    def total(self) -> int:
        """Replicates with a p-value."""
        return int(np.sum(self.histogram))

    def kolmogorov(self) -> tuple[float, float]:
        """Statistic and p-value of the Kolmogorov-Smirnov test of uniformity.

        From counts alone the statistic is the largest deviation at the 100 edges, which errs towards acceptance.
        """
        from scipy import stats

        if not self.total:
            return 0.0, 1.0
        values = self.p_values[~np.isnan(self.p_values)]
        if values.size:
            found = stats.kstest(values.astype(float), "uniform")
            return float(found.statistic), float(found.pvalue)
        share = np.cumsum(self.histogram) / self.total
        distance = float(np.max(np.abs(share - np.arange(1, share.size + 1) / share.size)))
        return distance, float(stats.kstwo.sf(distance, self.total)) if distance > 0 else 1.0

    def quantiles(self) -> tuple[np.ndarray, np.ndarray]:
        """Points (expected, observed) of a QQ plot."""
        values = np.sort(self.p_values[~np.isnan(self.p_values)])
        if values.size:
            places = np.unique(np.linspace(0, values.size - 1, min(values.size, 500)).astype(int))
            return (places + 0.5) / values.size, values[places]
        return np.cumsum(self.histogram) / max(self.total, 1), np.arange(1, self.histogram.size + 1) / 100.0


@dataclasses.dataclass(frozen=True)
class Point:
    """One cell of a curve: where it stands, its rejection rate and interval."""

    x: float
    rate: float
    low: float
    high: float


def null_p_values(path: Path, nulls: Sequence[Nulls]) -> Path:
    """Histograms of null p-values on 20 bars, one line per cell, with the 99 % band of uniform ones."""
    from scipy import stats

    figure, axes = figures.canvas()
    edges = np.linspace(0.0, 1.0, BARS + 1)
    for colour, null in zip(COLOURS * 2, nulls[:MAX_LINES], strict=False):
        bars = null.histogram.reshape(BARS, -1).sum(axis=1) / max(null.total, 1) * BARS
        axes.stairs(bars, edges, color=colour, linewidth=1.3, label=_short(null.label))
    smallest = max(1, min(null.total for null in nulls))
    low, high = stats.binom.ppf([0.005, 0.995], smallest, 1 / BARS) / smallest * BARS
    axes.axhspan(low, high, color=figures.GREY, alpha=0.2, label=f"99 % of bars, uniform, {smallest} replicates")
    axes.axhline(1.0, color=figures.GREY, linewidth=0.8)
    axes.set(xlabel="p-value under the null", ylabel="density", xlim=(0, 1), title="null p-values")
    axes.set_ylim(bottom=0.0)
    axes.legend(frameon=False, fontsize=7, ncols=2 if len(nulls) > 6 else 1)
    return figures.save(figure, path, simulation=True)


def null_quantiles(path: Path, nulls: Sequence[Nulls]) -> Path:
    """QQ plot of null p-values against the uniform law, with the Kolmogorov-Smirnov p-value of each cell.

    Curves above the diagonal are conservative; those below reject too often.
    """
    figure, axes = figures.canvas(5.6, 5.0)
    for colour, null in zip(COLOURS * 2, nulls[:MAX_LINES], strict=False):
        expected, observed = null.quantiles()
        note = "KS p" if null.p_values.size else "KS p (100 bins)"
        axes.plot(expected, observed, color=colour, linewidth=1.3)
        axes.plot([], [], color=colour, label=f"{_short(null.label)}: {note} = {null.kolmogorov()[1]:.3g}")
    axes.plot([0, 1], [0, 1], color=figures.GREY, linewidth=0.8, linestyle="--")
    axes.set(xlabel="uniform quantile", ylabel="null p-value", xlim=(0, 1), ylim=(0, 1), title="null p-values, QQ")
    axes.legend(frameon=False, fontsize=7, loc="upper left")
    return figures.save(figure, path, simulation=True)


def power_curves(path: Path, axis: str, lines: Mapping[str, Sequence[Point]], level: float, title: str = "") -> Path:
    """Rejection rates along one axis, one line per configuration, Wilson 95 % bands, the level as a dotted line."""
    figure, axes = figures.canvas()
    for place, (label, points) in enumerate(list(lines.items())[:MAX_LINES]):
        colour, points = COLOURS[place % len(COLOURS)], sorted(points, key=lambda point: point.x)
        x = [point.x for point in points]
        axes.plot(x, [point.rate for point in points], "o-", color=colour, linewidth=1.4, label=_short(label))
        axes.fill_between(
            x, [point.low for point in points], [point.high for point in points], color=colour, alpha=0.18, linewidth=0
        )
    axes.axhline(level, color=figures.GREY, linestyle=":", label=f"level {level:g}")
    if axis in ("n", "epsilon"):
        axes.set_xscale("log")
    axes.set(xlabel=axis, ylabel="rejection rate", ylim=(0, 1.02), title=figures.plain(title))
    axes.legend(frameon=False, fontsize=7)
    if len(lines) > MAX_LINES:
        figure.text(0.01, 0.005, f"{len(lines) - MAX_LINES} more configurations are in results.csv", fontsize=7)
    return figures.save(figure, path, simulation=True)


def differences(path: Path, labels: Sequence[str], points: Sequence[Point], names: tuple[str, str]) -> Path:
    """Differences of rejection rates of the cells that two folders share, with 95 % intervals."""
    figure, axes = figures.canvas(7.2, 1.4 + 0.26 * len(labels))
    for row, point in enumerate(points):
        clear = point.low > 0 or point.high < 0
        colour = figures.RED if clear else figures.BLUE
        axes.plot([point.low, point.high], [row, row], color=colour)
        axes.plot([point.rate], [row], "o", color=colour, markersize=4)
    axes.axvline(0.0, color=figures.GREY, linewidth=0.8)
    axes.set_yticks(range(len(labels)), [_short(label, 60) for label in labels], fontsize=7)
    axes.set(xlabel=f"rejection rate of {names[0]} minus that of {names[1]}", ylim=(-0.7, len(labels) - 0.3))
    return figures.save(figure, path, simulation=True)


def _short(text: str, most: int = 70) -> str:
    text = text if len(text) <= most else text[: most - 1] + "…"
    return text.replace("$", r"\$")
