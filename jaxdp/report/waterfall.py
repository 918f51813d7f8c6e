"""A privacy budget as a waterfall: every charge starts where the one before it ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from jaxdp._base import amounts
from jaxdp.report import figures

MAX_LABELS = 24


def waterfall(
    path: Path,
    labels: Sequence[str],
    amounts: Mapping[str, tuple[Sequence[float], float]],
    *,
    title: str = "privacy ledger",
    notes: Sequence[str] = (),
    simulation: bool = False,
) -> Path:
    """Draws the charges of a ledger and what is left of its budget.

    labels: one per charge. amounts: name of the amount, such as "epsilon" -> (charges in order, total); one panel each.
    notes: lines printed under the picture, such as composed totals.
    """
    figure, grid = figures.canvas(8.0, 2.4 + 2.2 * len(amounts), len(amounts), squeeze=False)
    panels = grid[:, 0]
    for panel, (name, (charges, total)) in zip(panels, amounts.items(), strict=True):
        _draw(panel, name, np.asarray(charges, float), total)
    _label(panels[-1], labels)
    panels[0].set_title(figures.plain(title))
    if notes:
        figure.supxlabel("\n".join(map(figures.plain, notes)), fontsize=8, color=figures.GREY, x=0.01, ha="left")
    return figures.save(figure, path, simulation)


def _draw(panel, name: str, charges: np.ndarray, total: float) -> None:
    """One bar per charge, the bar of what is left, and the line of the total."""
    count = charges.size
    after = np.cumsum(charges)
    spent = float(after[-1]) if count else 0.0
    panel.bar(np.arange(count), charges, bottom=after - charges, width=0.8, color=figures.BLUE, edgecolor=figures.BLUE)
    if count <= MAX_LABELS:
        starts = np.arange(count)
        panel.hlines(after, starts + 0.4, starts + 0.6, color=figures.GREY, linewidth=0.8)
    left = max(total - spent, 0.0)
    panel.bar(count, left, bottom=spent, width=0.8, color="none", edgecolor=figures.GREY, hatch="///", linewidth=0.8)
    panel.axhline(total, color=figures.RED, linewidth=1.2, linestyle="--")
    panel.text(-0.6, total, f"budget {amounts.left(total)}", color=figures.RED, fontsize=8, va="bottom", ha="left")
    panel.text(count + 0.6, total, f"left {amounts.left(left, 4)}", fontsize=8, va="bottom", ha="right")
    panel.set(ylabel=f"{name} spent", ylim=(0.0, 1.12 * total), xlim=(-0.7, count + 0.7))
    panel.set_xticks([])


def _label(panel, labels: Sequence[str]) -> None:
    if len(labels) <= MAX_LABELS:
        panel.set_xticks(
            range(len(labels)), [figures.plain(label) for label in labels], rotation=35, ha="right", fontsize=7
        )
    else:
        step = -(-len(labels) // 10)
        panel.set_xticks(range(0, len(labels), step), [str(number + 1) for number in range(0, len(labels), step)])
        panel.set_xlabel("charge")
