"""Pictures and the table, from the rows alone."""

import csv
import pathlib

from jaxdp.report import figures

COLUMNS = (
    "test",
    "n",
    "epsilon",
    "design",
    "replicates",
    "default_rate",
    "tuned_rate",
    "only_tuned",
    "only_default",
    "accepted",
    "default",
    "tuned",
)


def write(rows: list[dict], out: pathlib.Path) -> list[pathlib.Path]:
    """gains.csv, gains.png and subsample.png, as far as there are rows."""
    paths = []
    gains = [row for row in rows if row.get("figure") == "gains"]
    if gains:
        paths += [_table(gains, out / "gains.csv"), _gains(gains, out / "gains.png")]
    rates = [row for row in rows if row.get("figure") == "subsample" and "rate" in row]
    if rates:
        paths.append(_subsample(rates, out / "subsample.png"))
    return paths


def _table(rows, path: pathlib.Path) -> pathlib.Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, COLUMNS, extrasaction="ignore")
        table.writeheader()
        table.writerows(rows)
    return path


def _gains(rows, path: pathlib.Path) -> pathlib.Path:
    figure, axes = figures.canvas(6.4, 5.6)
    for null, colour, label in ((False, figures.BLUE, "power, held out"), (True, figures.RED, "level")):
        chosen = [row for row in rows if row["design"].startswith("null") is null and row["design"] != "tuned on"]
        axes.plot(
            [r["default_rate"] for r in chosen], [r["tuned_rate"] for r in chosen], "o", color=colour, label=label
        )
    axes.plot([0, 1], [0, 1], color=figures.GREY, linewidth=0.8)
    axes.set(xlabel="rejection rate, default", ylabel="rejection rate, tuned", xlim=(0, 1), ylim=(0, 1))
    axes.legend(frameon=False)
    return figures.save(figure, path)


def _subsample(rows, path: pathlib.Path) -> pathlib.Path:
    figure, axes = figures.canvas(6.4, 3.6)
    epsilon = [row["epsilon"] for row in rows]
    for name, colour in (("noise_over_all_rows", figures.BLUE), ("noise_to_signal_over_all_rows", figures.RED)):
        axes.plot(epsilon, [row[name] for row in rows], "o-", color=colour, label=name.replace("_", " "))
    axes.axhline(1.0, color=figures.GREY, linewidth=0.8)
    axes.set(xlabel="epsilon of a round", ylabel="at the best rate")
    axes.legend(frameon=False)
    return figures.save(figure, path)
