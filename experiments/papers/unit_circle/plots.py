"""Pictures from the recorded rows only."""

import pathlib


def draw(rows: list[dict], out: pathlib.Path) -> list[pathlib.Path]:
    """One PNG per figure that has rows."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    panels = {"one table": ("frequency", "n", "power"), "families": ("epsilon", "tables", "found")}
    paths = []
    for figure, (panel, x, y) in panels.items():
        mine = [row for row in rows if row["figure"] == figure]
        if mine:
            paths.append(_curves(pyplot, mine, panel, x, y, out / f"{figure.replace(' ', '_')}.png"))
    return paths


def _curves(pyplot, rows, panel, x, y, path):
    """One panel per (epsilon, value of `panel`), one line per method."""
    cells = sorted({(row["epsilon"], row[panel]) for row in rows})
    figure, axes = pyplot.subplots(1, len(cells), figsize=(4.2 * len(cells), 3.8), squeeze=False, sharey=True)
    for axis, cell in zip(axes[0], cells, strict=True):
        inside = [row for row in rows if (row["epsilon"], row[panel]) == cell]
        for name in dict.fromkeys(row["method"] for row in inside):
            line = sorted((row[x], row[y]) for row in inside if row["method"] == name)
            axis.plot(*zip(*line, strict=True), marker="o", label=name)
        axis.set(xlabel=x, ylabel=y, xscale="log", ylim=(-0.02, 1.02))
        axis.set_title(f"epsilon {cell[0]}" + (f", {panel} {cell[1]}" if panel != "epsilon" else ""))
    axes[0][-1].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
    return path
