"""The record of the stress suite's defaults in one picture: a panel per number of columns of Z, one row per null."""

from pathlib import Path

import numpy as np

COLOURS = {"inside": "#dfe9df", "flagged": "#f0c36d", "refused": "#d0d4dc", "OUTSIDE": "#c0392b", "missing": "#ffffff"}
ORDER = list(COLOURS)
DEPTHS = (1, 2, 3, 4, 5)  # without Z hardly anything can go wrong, six columns are refused
UNITS = {200: "200", 1000: "1000", 10_000: "10⁴", 100_000: "10⁵", 1_000_000: "10⁶"}


def draw(rows: list[dict], path: Path) -> None:
    """Writes the picture: the largest rejection rate of the budgets in per cent; white is not measured."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    rows = [row for row in rows if row["default"] and row["depth"] in DEPTHS]
    names = list(dict.fromkeys(row["null"] for row in rows))
    sizes = sorted({row["n"] for row in rows})
    figure, axes = plt.subplots(1, len(DEPTHS), figsize=(10.5, 0.17 * len(names) + 1.3), sharey=True)
    for axis, depth in zip(axes, DEPTHS, strict=True):
        table = np.full((len(names), len(sizes)), ORDER.index("missing"))
        for i, name in enumerate(names):
            for j, n in enumerate(sizes):
                found = [row for row in rows if (row["null"], row["depth"], row["n"]) == (name, depth, n)]
                if not found:
                    continue
                table[i, j] = max((ORDER.index(row["verdict"]) for row in found), key=_weight)
                shares = [row["rejections"] / row["replicates"] for row in found if "rejections" in row]
                if shares:
                    axis.text(j, i, f"{100 * max(shares):.0f}", ha="center", va="center", fontsize=6)
        axis.imshow(table, cmap=ListedColormap(list(COLOURS.values())), vmin=-0.5, vmax=len(ORDER) - 0.5, aspect="auto")
        axis.set_xticks(range(len(sizes)), [UNITS.get(n, str(n)) for n in sizes], fontsize=7)
        axis.set_xlabel("records", fontsize=7)
        axis.set_title(f"{depth} columns of Z" if depth != 1 else "1 column of Z", fontsize=8)
        axis.tick_params(length=0)
    axes[0].set_yticks(range(len(names)), names, fontsize=7)
    patches = [Patch(color=COLOURS[word], label=word) for word in ORDER[:4]]
    figure.legend(handles=patches, ncols=4, fontsize=8, loc="upper center")
    figure.tight_layout(rect=(0, 0, 1, 0.96))
    figure.savefig(path, dpi=170)
    plt.close(figure)


def _weight(place: int) -> int:
    """How bad a verdict is: the worst of the budgets is shown."""
    return ("refused", "inside", "flagged", "OUTSIDE").index(ORDER[place])
