"""Manhattan-style picture of released p-values along the genome."""

from pathlib import Path

import numpy as np

from jaxdp.report import figures


def draw(places, p_values, total: int, path: Path, level: float = 0.05, simulation: bool = False) -> Path:
    """-log10 of family-wise p-values (k,) at `places` (k,) out of `total` tables, as a PNG; returns the path.

    Everything drawn is released; what was not selected does not appear.
    """
    places, heights = np.asarray(places), -np.log10(np.maximum(np.asarray(p_values, float), 1e-300))
    figure, axes = figures.canvas(9.0, 3.6)
    rejected = heights >= -np.log10(level)
    for chosen, colour, label in ((rejected, figures.RED, "rejected"), (~rejected, figures.GREY, "not rejected")):
        axes.vlines(places[chosen], 0.0, heights[chosen], color=colour, alpha=0.5)
        axes.plot(places[chosen], heights[chosen], "o", color=colour, label=label)
    axes.axhline(-np.log10(level), color="0.3", linestyle="--", linewidth=0.8, label=f"level {level:g}")
    axes.set(xlim=(0, total), xlabel="table", ylabel="-log10 family-wise p-value")
    axes.set_ylim(bottom=0.0)
    figure.legend(loc="outside upper right", ncols=3, frameon=False, fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    return figures.save(figure, path, simulation)
