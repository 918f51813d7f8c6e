"""Pictures of the Priv-PC experiments, drawn from the recorded rows alone."""

import math
import pathlib

from jaxdp.report import figures

STYLES = ("-o", "-s", "-^", "--v", ":x", "-.d", "--*", ":P", "-.h")

TICKS = (0.1, 0.3, 1, 3, 10, 30, 100)


def draw(rows: list[dict], out: pathlib.Path) -> list[pathlib.Path]:
    """One PNG per network (and for continuous data): skeleton F1 against the total budget."""
    rows = [row for row in rows if row["figure"] in ("figure 1", "continuous")]
    return [
        _draw_one([row for row in rows if row["network"] == name], name, out)
        for name in sorted({r["network"] for r in rows})
    ]


def _draw_one(rows: list[dict], name: str, out: pathlib.Path) -> pathlib.Path:
    figure, axes = figures.canvas(8.4, 4.6)
    methods = [method for method in dict.fromkeys(row["method"] for row in rows) if "no privacy" not in method]
    for row in rows:
        if "no privacy" in row["method"]:
            axes.axhline(row["f1"], color="black", linestyle=":", label=row["method"])
    for style, method in zip(STYLES, methods, strict=False):
        points = sorted((row["budget"], row["f1"]) for row in rows if row["method"] == method)
        axes.plot(*zip(*points, strict=True), style, markersize=4, linewidth=1.2, label=method)
    axes.set(
        xscale="log", ylim=(0.0, 1.05), xlabel="total budget epsilon", ylabel="skeleton F1 (true graph)", title=name
    )
    finite = [row["budget"] for row in rows if math.isfinite(row["budget"])]
    ticks = [tick for tick in TICKS if min(finite) <= tick <= max(finite)]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=7)
    return figures.save(figure, out / f"f1_{name.split(',')[0].replace(' ', '_')}.png", simulation=True)
