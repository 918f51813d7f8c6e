"""The record of the stress suite in one picture: one panel per d and n, one row per null."""

from pathlib import Path

import numpy as np

COLOURS = {"inside": "#dfe9df", "flagged": "#f0c36d", "refused": "#d0d4dc", "OUTSIDE": "#c0392b", "missing": "#ffffff"}
ORDER = list(COLOURS)


def draw(rows: list[dict], path: Path) -> None:
    """Writes the picture; numbers are rejections in per cent, and white is not measured."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    panels = sorted({(row["depth"], row["n"]) for row in rows})
    names = list(dict.fromkeys(row["null"] for row in rows))
    figure, axes = plt.subplots(1, len(panels), figsize=(3.4 * len(panels) + 1.5, 0.19 * len(names) + 2.6), sharey=True)
    for axis, (depth, n) in zip(np.atleast_1d(axes), panels, strict=True):
        found = [row for row in rows if (row["depth"], row["n"]) == (depth, n)]
        columns = sorted({(not row["default"], row["test"], row["epsilon"]) for row in found})
        columns = list(dict.fromkeys((test, epsilon) for _, test, epsilon in columns))
        table = np.full((len(names), len(columns)), ORDER.index("missing"))
        for row in found:
            place = names.index(row["null"]), columns.index((row["test"], row["epsilon"]))
            table[place] = ORDER.index(row["verdict"])
            if "rejections" in row:
                share = f"{100 * row['rejections'] / row['replicates']:.0f}"
                axis.text(place[1], place[0], share, ha="center", va="center", fontsize=4.5)
        axis.imshow(table, cmap=ListedColormap(list(COLOURS.values())), vmin=-0.5, vmax=len(ORDER) - 0.5, aspect="auto")
        labels = [f"{test}, {epsilon:g}" for test, epsilon in columns]
        axis.set_xticks(range(len(columns)), labels, rotation=90, fontsize=5)
        axis.set_title(f"d = {depth}, n = {n}", fontsize=8)
        axis.tick_params(length=0)
    np.atleast_1d(axes)[0].set_yticks(range(len(names)), names, fontsize=6)
    figure.legend(handles=[Patch(color=COLOURS[word], label=word) for word in ORDER[:4]], ncols=4, fontsize=7)
    figure.tight_layout(rect=(0, 0, 1, 0.96))
    figure.savefig(path, dpi=170)
    plt.close(figure)
