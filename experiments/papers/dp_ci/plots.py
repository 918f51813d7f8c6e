"""Pictures from the recorded rows only."""

import csv
import pathlib

DEFAULTS = pathlib.Path(__file__).parent / "results" / "defaults.csv"
AXES = {
    0: "effect",
    1: "complexity",
    3: "effect",
    4: "n",
    5: "effect",
    6: "epsilon",
    7: "n",
    8: "n",
    9: "num_resamples",
}
PANELS = {1: "dim", 3: "dim", 4: "effect", 5: "axis", 6: "effect", 7: "feature", 9: "effect"}
COLOURS = {  # of the tests in the picture of docs/evidence/power.md
    "BandGCM (default)": "black",
    "PrivGCM (paper)": "tab:blue",
    "PrivGCM (tight)": "tab:orange",
    "PartitionGCM": "tab:green",
    "GCM (good ridge, not private)": "0.6",
    "GCM (ridge 10, not private)": "0.6",
    "PrivCRT (paper)": "tab:red",
    "PrivCRT (threshold)": "tab:purple",
    "PrivCRT (normal)": "tab:brown",
    "CRT (not private)": "0.35",
    "PrivToT": "tab:pink",
    "Private Kendall (public bins)": "tab:cyan",
    "LocalPermutation": "tab:olive",
}


def draw(rows: list[dict], out: pathlib.Path) -> list[pathlib.Path]:
    """One PNG per figure."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    paths = []
    for figure in sorted({row["figure"] for row in rows}):
        mine = [row for row in rows if row["figure"] == figure]
        path = out / f"figure_{figure}.png"
        {0: _headline, 10: _histograms}.get(figure, _curves)(pyplot, figure, mine, path)
        paths.append(path)
    return paths


def _headline(pyplot, figure, rows, path):
    """All tests at one n: our releases in full lines, published ones dashed, those that are not private grey."""
    rows = [*_default_rows(), *(row for row in rows if row["n"] == 1000)]
    fig, axis = pyplot.subplots(figsize=(5.6, 5.6), layout="constrained")  # letters that a phone can show
    for method in dict.fromkeys(row["method"] for row in rows):
        mine = sorted((row for row in rows if row["method"] == method), key=lambda row: row["effect"])
        style = {"linestyle": "--" if "paper" in method or "ToT" in method else "-", "marker": "o", "markersize": 4}
        style |= {"color": COLOURS[method]}
        if "not private" in method:
            style |= {"linestyle": ":" if "ridge 10" in method else "-.", "marker": ""}
        if "default" in method:
            style |= {"linewidth": 2.2, "zorder": 3}
        if method == "PrivGCM (paper)":  # on the line of the tight one
            style |= {"zorder": 3, "dashes": (3, 5)}
        x = [row["effect"] for row in mine]
        line = axis.plot(x, [row["rate"] for row in mine], label=method, **style)[0]
        low, high = ([row[side] for row in mine] for side in ("low", "high"))
        axis.fill_between(x, low, high, alpha=0.15, color=line.get_color(), linewidth=0)
    axis.axhline(0.05, color="grey", linestyle=":", linewidth=1)
    axis.set(xlabel="effect of X on Y given Z", ylabel="share of rejections", xlim=(-0.01, 0.52), ylim=(-0.02, 1.02))
    fig.legend(fontsize=9, loc="outside lower left", ncols=2, frameon=False)
    fig.savefig(path, dpi=170)
    pyplot.close(fig)


def _default_rows() -> list[dict]:
    """The default test of one continuous Z on the same model, from its record."""
    with DEFAULTS.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["method"] == "band-gcm"]
    return [
        {"method": "BandGCM (default)"} | {name: float(row[name]) for name in ("effect", "rate", "low", "high")}
        for row in rows
    ]


def _curves(pyplot, figure, rows, path):
    panel_key = PANELS.get(figure)
    panels = sorted({row.get(panel_key) for row in rows}, key=str)
    fig, axes = pyplot.subplots(1, len(panels), figsize=(5.2 * len(panels), 4), squeeze=False, sharey=True)
    markers = "osD^vPX*<>"
    names = list(dict.fromkeys(row["method"] for row in rows))
    for axis, panel in zip(axes[0], panels, strict=True):
        inside = [row for row in rows if row.get(panel_key) == panel]
        x_key = "n" if (figure == 5 and panel == "n") else AXES[figure]
        for i, name in enumerate(names):
            mine = sorted((row for row in inside if row["method"] == name), key=lambda r: r[x_key])
            if not mine:
                continue
            if figure == 5 and panel == "n":
                mine = [row for row in mine if row["effect"] > 0]
            x = [row[x_key] for row in mine]
            axis.plot(x, [row["rate"] for row in mine], marker=markers[i % 10], label=name)
            if "low" in mine[0]:
                axis.fill_between(x, [r["low"] for r in mine], [r["high"] for r in mine], alpha=0.15)
        axis.axhline(0.05, color="grey", linestyle=":", linewidth=1)
        axis.set_xlabel(x_key)
        axis.set_title(f"figure {figure}" + (f", {panel_key} = {panel}" if panel_key else ""))
        axis.set_ylim(-0.03, 1.03)
        if x_key in ("n", "epsilon", "complexity", "num_resamples"):
            axis.set_xscale("log")
    axes[0][0].set_ylabel("rejection rate" if figure != 8 else "explained share of f")
    axes[0][-1].legend(fontsize=7, loc="center left", bbox_to_anchor=(1.01, 0.5))
    fig.savefig(path, dpi=110, bbox_inches="tight")
    pyplot.close(fig)


def _histograms(pyplot, figure, rows, path):
    fig, axes = pyplot.subplots(1, len(rows), figsize=(4 * len(rows), 3), squeeze=False)
    for axis, row in zip(axes[0], rows, strict=True):
        share = [count / sum(row["counts"]) for count in row["counts"]]
        axis.bar([0.05 + 0.1 * i for i in range(10)], share, width=0.095)
        axis.axhline(0.1, color="grey", linestyle=":")
        axis.set_title(f"figure {figure}, effect = {row['effect']}")
        axis.set_xlabel("p-value")
    fig.savefig(path, dpi=110, bbox_inches="tight")
    pyplot.close(fig)
