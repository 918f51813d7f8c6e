"""The record of the stress suite's defaults in one picture: one panel per d and n, one row per null."""

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

    rows = [row for row in rows if row["default"]]
    panels = sorted({(row["depth"], row["n"]) for row in rows})
    names = list(dict.fromkeys(row["null"] for row in rows))
    figure, axes = plt.subplots(1, len(panels), figsize=(1.0 * len(panels) + 2.2, 0.16 * len(names) + 1.3), sharey=True)
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
                axis.text(place[1], place[0], share, ha="center", va="center", fontsize=5)
        axis.imshow(table, cmap=ListedColormap(list(COLOURS.values())), vmin=-0.5, vmax=len(ORDER) - 0.5, aspect="auto")
        axis.set_xticks(range(len(columns)), [f"{epsilon:g}" for _, epsilon in columns], fontsize=6)
        axis.set_xlabel("epsilon", fontsize=6)
        axis.set_title(f"{depth} columns of Z\nn = {n}" if depth != 1 else f"1 column of Z\nn = {n}", fontsize=7)
        axis.tick_params(length=0)
    np.atleast_1d(axes)[0].set_yticks(range(len(names)), names, fontsize=6)
    patches = [Patch(color=COLOURS[word], label=word) for word in ORDER[:4]]
    figure.legend(handles=patches, ncols=4, fontsize=7, loc="upper center")
    figure.tight_layout(rect=(0, 0, 1, 0.96))
    figure.savefig(path, dpi=170)
    plt.close(figure)
