"""Pictures of the recorded rows: figures 2 to 5."""

import pathlib

from jaxdp.report import figures


def draw(rows, out: pathlib.Path) -> list[pathlib.Path]:
    """Writes the PNG files that the rows allow; returns their paths."""
    paths = []
    for epsilon, number in ((1.0, 2), (0.1, 4)):
        chosen = [row for row in rows if row["part"] == "accuracy" and row["epsilon"] == epsilon]
        if chosen:
            paths += [_by_size(chosen, key, out / f"figure_{number}_{key}.png") for key in ("bias", "variance")]
    for epsilon, number in ((1.0, 3), (0.1, 5)):
        for name in ("spellman4381", "baseball"):
            chosen = [r for r in rows if r["part"] == "real" and r["epsilon"] == epsilon and r["collection"] == name]
            if chosen:
                paths += [
                    _by_bin(chosen, key, out / f"figure_{number}_{name}_{key}.png") for key in ("bias", "variance")
                ]
    return paths


def _by_size(rows, key: str, path: pathlib.Path) -> pathlib.Path:
    sizes = sorted({row["n"] for row in rows})
    labels = [f"n = {n}" for n in sizes]
    boxes = {(row["mechanism"], sizes.index(row["n"])): row[key] for row in rows}
    return _boxes(boxes, labels, f"{key} over laws, epsilon = {rows[0]['epsilon']:g}", path)


def _by_bin(rows, key: str, path: pathlib.Path) -> pathlib.Path:
    count = len(rows[0][f"{key}_by_bin"])
    labels = [f"bin {i + 1}" for i in range(count)]
    boxes = {(row["mechanism"], i): row[f"{key}_by_bin"][i] for row in rows for i in range(count)}
    title = f"{key} by MICe bin, {rows[0]['collection']}, epsilon = {rows[0]['epsilon']:g}"
    return _boxes({place: box for place, box in boxes.items() if box}, labels, title, path)


def _boxes(boxes, labels, title: str, path: pathlib.Path) -> pathlib.Path:
    figure, axes = figures.canvas(9.0, 4.5)
    mechanisms = list(dict.fromkeys(mechanism for mechanism, _ in boxes))
    names = ("whislo", "q1", "med", "q3", "whishi")
    for i, mechanism in enumerate(mechanisms):
        mine = [(at, box) for (name, at), box in boxes.items() if name == mechanism]
        drawn = axes.bxp(
            [dict(zip(names, box, strict=True)) | {"fliers": []} for _, box in mine],
            positions=[at + 0.8 * (i + 0.5) / len(mechanisms) - 0.4 for at, _ in mine],
            widths=0.6 / len(mechanisms),
            patch_artist=True,
            showfliers=False,
        )
        for box in drawn["boxes"]:
            box.set_facecolor(f"C{i}")
        axes.plot([], [], color=f"C{i}", linewidth=6, label=mechanism)
    axes.set_xticks(range(len(labels)), labels)
    axes.axhline(0.0, color=figures.GREY, linewidth=0.7)
    axes.set_title(title)
    axes.legend(fontsize=7)
    return figures.save(figure, path, simulation=True)
