"""Manhattan-style picture of released p-values along the genome."""

import pathlib

import numpy as np


def draw(places, p_values, total: int, path, level: float = 0.05) -> pathlib.Path:
    """-log10 of family-wise p-values (k,) at `places` (k,) out of `total` tables, as a PNG; returns the path.

    Everything drawn is released; what was not selected does not appear.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    places, p_values = np.asarray(places), np.maximum(np.asarray(p_values, float), 1e-300)
    figure = Figure(figsize=(9, 3.6))
    FigureCanvasAgg(figure)
    axis = figure.add_subplot()
    rejected = p_values <= level
    for chosen, colour, label in ((rejected, "C3", "rejected"), (~rejected, "0.6", "not rejected")):
        axis.vlines(places[chosen], 0.0, -np.log10(p_values[chosen]), color=colour, alpha=0.5)
        axis.plot(places[chosen], -np.log10(p_values[chosen]), "o", color=colour, label=label)
    axis.axhline(-np.log10(level), color="0.3", linestyle="--", linewidth=0.8, label=f"level {level:g}")
    axis.set(xlim=(0, total), xlabel="table", ylabel="-log10 family-wise p-value")
    axis.set_ylim(bottom=0.0)
    axis.legend(loc="upper right", fontsize=8)
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    return path
