"""Runs every experiment of every paper and writes one table: scripts/reproduce [--quick|--full] [paper ...]

Papers: priv_pc, dp_ci, unit_circle, mic; our own: residual_scale, tuning. Into --out go reproduce.csv and .md (the
paper's number or statement, ours, an interval, seconds, device, one line per cell) and reproduce_short.md (only where a
paper gives a number). --data names the folder with concrete.csv, baseball.csv and spellman.csv, which are not part of
the repository; what needs them is left out without it. Rows of an earlier run stay in --out, so papers can be run one
at a time.
"""

import argparse
import csv
import dataclasses
import json
import math
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent
LEVEL = 0.05
PAGE = "docs/evidence/reproduced.md"


@dataclasses.dataclass(frozen=True)
class Line:
    """One line of the table. paper: its number, or its statement. interval: (low, high) or None."""

    source: str
    figure: str
    cell: str
    method: str
    quantity: str
    paper: float | str
    ours: float
    interval: tuple[float, float] | None = None
    interval_kind: str = ""
    replicates: int | None = None
    note: str = ""


@dataclasses.dataclass(frozen=True)
class Experiment:
    """How an experiment runs and how its recorded rows become lines."""

    title: str
    lines: Callable[[dict[str, Any]], Iterator[Line]]
    data: tuple[str, ...] = ()  # arguments that need --data
    room: str = "papers"

    def command(self, name: str, size: str, folder: pathlib.Path, data: pathlib.Path | None) -> list[str]:
        extra = [part.format(data=data) for part in self.data] if data else []
        return [sys.executable, "-m", f"experiments.{self.room}.{name}", f"--{size}", "--out", str(folder), *extra]


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/reproduce", description=__doc__)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="small sizes, under 20 minutes on two cores (default)")
    size.add_argument("--full", action="store_true", help="the papers' grids as far as two cores allow; hours")
    parser.add_argument("paper", nargs="*", help=f"which ones (default all): {', '.join(EXPERIMENTS)}")
    parser.add_argument("--data", type=pathlib.Path, default=os.environ.get("JAXDP_DATA"), help="folder of data files")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/reproduce"))
    parser.add_argument("--table-only", action="store_true", help="build the table from rows that are there")
    parser.add_argument("--page", type=pathlib.Path, help=f"put the short table between this page's markers ({PAGE})")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.paper if name not in EXPERIMENTS]
    if unknown:
        parser.error(f"unknown paper {unknown[0]!r}; there are {', '.join(available())}")
    chosen, size_name = arguments.paper or available(), "full" if arguments.full else "quick"
    failed = [] if arguments.table_only else [n for n in chosen if not run(n, size_name, arguments)]
    lines = write_table(arguments.out, size_name)
    print(f"{lines} lines: {arguments.out / 'reproduce.csv'}, {arguments.out / 'reproduce.md'}")
    if arguments.page:
        insert(arguments.page, (arguments.out / "reproduce_short.md").read_text())
    for name in failed:
        print(f"{name} FAILED: {arguments.out / size_name / name / 'log.txt'}", file=sys.stderr)
    return 1 if failed else 0


def available() -> list[str]:
    """Experiments that this checkout has."""
    return [
        name
        for name, experiment in EXPERIMENTS.items()
        if (ROOT / "experiments" / experiment.room / name / "__main__.py").exists()
    ]


def run(name: str, size: str, arguments) -> bool:
    """Runs one experiment in a process of its own; whether it ended well."""
    folder = arguments.out / size / name
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.jsonl"):
        old.unlink()
    command = EXPERIMENTS[name].command(name, size, folder, arguments.data)
    environment = {"NPROC": "16", "OPENBLAS_NUM_THREADS": "1", **os.environ}
    print(f"{name}: {' '.join(command[1:])}", flush=True)
    began = time.monotonic()
    with (folder / "log.txt").open("w") as log:
        done = subprocess.run(command, cwd=ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT, check=False)
    seconds = time.monotonic() - began
    (folder / "run.json").write_text(json.dumps({"seconds": round(seconds, 1), "load": os.getloadavg()[0]}) + "\n")
    print(f"{name}: {seconds:.0f} s, exit code {done.returncode}", flush=True)
    return done.returncode == 0


def write_table(out: pathlib.Path, size: str) -> int:
    """reproduce.csv and reproduce.md from the recorded rows; returns the number of lines."""
    table, parts = [], []
    for name in available():
        folder, experiment = out / size / name, EXPERIMENTS[name]
        rows = [json.loads(text) for path in sorted(folder.glob("*.jsonl")) for text in path.read_text().splitlines()]
        lines = [(line, row) for row in rows for line in experiment.lines(row)]
        if not lines:
            continue
        table += [as_dict(line, row) for line, row in lines]
        parts += [f"## {experiment.title}", "", *described(folder, lines), "", *markdown(lines), ""]
    out.mkdir(parents=True, exist_ok=True)
    if table:
        with (out / "reproduce.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(table[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(table)
    head = [
        f"# Reproduced figures and tables (--{size})",
        "",
        "In quotes: the paper's statement where it gives no number. Empty: not in the paper.",
    ]
    (out / "reproduce.md").write_text("\n".join([*head, "", *parts]) + "\n")
    (out / "reproduce_short.md").write_text("\n".join([*run_times(out, size), "", *short(table)]) + "\n")
    return len(table)


def run_times(out: pathlib.Path, size: str) -> list[str]:
    """How long the last run of each experiment took."""
    spent = {name: out / size / name / "run.json" for name in available()}
    seconds = {name: json.loads(path.read_text())["seconds"] for name, path in spent.items() if path.exists()}
    if not seconds:
        return []
    each = ", ".join(f"{name} {value:.0f} s" for name, value in seconds.items())
    return [
        f"`scripts/reproduce --{size}` took {sum(seconds.values()) / 60:.1f} minutes on {os.cpu_count()} cores: {each}."
    ]


MARKERS = ("<!-- reproduced: begin -->", "<!-- reproduced: end -->")


def insert(page: pathlib.Path, text: str) -> None:
    """Replaces what stands between the two markers of a file."""
    before, found, rest = page.read_text().partition(MARKERS[0])
    _, closed, after = rest.partition(MARKERS[1])
    if not (found and closed):
        raise ValueError(f"{page} lacks the markers {MARKERS[0]} and {MARKERS[1]}; write them where the table belongs.")
    page.write_text(f"{before}{MARKERS[0]}\n{text}{MARKERS[1]}{after}")


def short(table: list[dict[str, Any]]) -> list[str]:
    """A table for `PAGE`: where a paper gives a number, the first cell of each figure, subject and method."""
    text = [
        "| paper | figure | cell | method | quantity | paper's number | ours | interval | seconds | device |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    seen = set()
    for line in table:
        kind = (line["source"], line["figure"], line["method"], line["quantity"])
        subject = line["cell"].split(" ")[0].partition("=")[0]  # of the cell: a network, a collection
        if (*kind, subject) in seen or not isinstance(line["paper"], float):
            continue
        seen.add((*kind, subject))
        interval = f"[{line['low']:.3g}, {line['high']:.3g}]" if line["low"] != "" else ""
        numbers = (f"{line['paper']:g}", f"{line['ours']:.3g}", interval, f"{line['seconds']:.1f}", line["device"])
        text.append("| " + " | ".join((*kind[:2], line["cell"], *kind[2:], *numbers)) + " |")
    return text


def described(folder: pathlib.Path, lines) -> list[str]:
    """One sentence about the run."""
    row = lines[0][1]
    facts = f"{row['device']}, jax {row['jax']}, commit {row['commit']}"
    path = folder / "run.json"
    if not path.exists():
        return [f"{facts}."]
    spent = json.loads(path.read_text())
    return [f"{spent['seconds']:.0f} s in all (load of the machine at the end: {spent['load']:.1f}); {facts}."]


def as_dict(line: Line, row: dict[str, Any]) -> dict[str, Any]:
    """A line of the CSV file."""
    low, high = line.interval or ("", "")
    fields = {key: value for key, value in dataclasses.asdict(line).items() if key != "interval"}
    return {
        **fields,
        "low": low,
        "high": high,
        "seconds": row["seconds"],
        "device": row["device"],
        "jax": row["jax"],
        "commit": row["commit"],
    }


def markdown(lines) -> list[str]:
    """A Markdown table."""
    text = [
        "| figure | cell | method | quantity | paper | ours | interval | seconds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for line, row in lines:
        told = f"{line.paper:g}" if isinstance(line.paper, float) else f'"{line.paper}"' if line.paper else ""
        interval = f"[{line.interval[0]:.3g}, {line.interval[1]:.3g}]" if line.interval else ""
        note = f" ({line.note})" if line.note else ""
        cells = (line.figure, line.cell, line.method + note, line.quantity, told, f"{line.ours:.3g}", interval)
        text.append("| " + " | ".join(cell.replace("|", "/") for cell in cells) + f" | {row['seconds']:.1f} |")
    return text


def cell_text(row: dict[str, Any], *keys: str) -> str:
    """The named parts of a row."""
    return " ".join(
        f"{key}={row[key]:g}" if isinstance(row[key], float) else f"{key}={row[key]}" for key in keys if key in row
    )


def dp_ci_lines(row: dict[str, Any]) -> Iterator[Line]:
    """Rates with Wilson intervals; under the null the paper's number is the level."""
    null = row.get("effect") == 0.0 and row["method"] in ("PrivGCM (paper)", "PrivCRT (paper)")
    interval = (row["low"], row["high"]) if "low" in row else None
    yield Line(
        "dp_ci",
        f"figure {row['figure']}" if row["figure"] else "power at n = 1000",
        cell_text(row, "n", "epsilon", "complexity", "dim", "effect", "num_resamples", "feature"),
        row["method"],
        row.get("quantity", "rejection rate"),
        LEVEL if null else row["claim"],
        row["rate"],
        interval,
        "Wilson 95 %" if interval else "",
        row.get("replicates"),
        row.get("note", ""),
    )


# Table 2: seconds at budget 1 per examination, on their machine.
SECONDS = {
    "earthquake": {"em_pc": 176.04, "svt_pc": 3.38, "priv_pc": 6.62},
    "cancer": {"em_pc": 64.62, "svt_pc": 2.94, "priv_pc": 6.09},
    "asia": {"em_pc": 531.80, "svt_pc": 10.06, "priv_pc": 16.19},
    "survey": {"em_pc": 68.13, "svt_pc": 1.21, "priv_pc": 2.13},
}
F1_CLAIM = "Priv-PC above SVT-PC always, above EM-PC where the budget is large"


def priv_pc_lines(row: dict[str, Any]) -> Iterator[Line]:
    """F1 scores, and running times where the paper gives one."""
    cell = f"{row['network']} budget={row['budget']:g} true epsilon={row['true_epsilon']:.3g}"
    half = 1.96 * row["f1_sd"] / math.sqrt(row["seeds"]) if "f1_sd" in row else None
    figure = str(row["figure"])
    claim = F1_CLAIM if figure == "figure 1" else ""
    interval = (row["f1"] - half, row["f1"] + half) if half is not None and row["seeds"] > 2 else None
    kind = "normal 95 % over seeds" if interval else ""
    yield Line("priv_pc", figure, cell, row["method"], "skeleton F1", claim, row["f1"], interval, kind, row["seeds"])
    name = "priv_pc" if row["method"].startswith("priv_pc as published") else row["method"]
    told = None if name.startswith("priv_pc,") else SECONDS.get(row["network"], {}).get(name)
    if told is not None and "search_seconds" in row and row["budget"] >= 1:
        note = "their machine, budget 1 an examination"
        yield Line(
            "priv_pc",
            "table 2",
            cell,
            row["method"],
            "seconds",
            told,
            row["search_seconds"],
            replicates=row["seeds"],
            note=note,
        )


def unit_circle_lines(row: dict[str, Any]) -> Iterator[Line]:
    """Sizes and powers of tables, exact or with a window; family-wise errors; the gamma bound (above 1: broken)."""
    cell = cell_text(row, "n", "epsilon", "frequency", "tables", "gamma")
    figure = row["figure"]
    if figure == "gamma":
        told, ours = 1.0, row["largest_share_of_paper_bound"]
        yield Line("unit_circle", figure, cell, "unit circle", "largest error / its bound", told, ours)
    elif figure == "families":
        error, found = row["family_wise_error"], row["found"]
        interval = wilson(error, row["replicates"])
        kind = "Wilson 95 %"
        many = row["replicates"]
        told = LEVEL if row["method"].endswith("UnitCircle") else ""
        yield Line("unit_circle", figure, cell, row["method"], "family-wise error", told, error, interval, kind, many)
        yield Line("unit_circle", figure, cell, row["method"], "share found", "", found, replicates=many)
    else:
        window = row.get("window")
        interval = tuple(window) if window else None
        kind = "window of a valid test, 1e-6" if window else ""
        note = f"true epsilon {row['true_epsilon']:.3g}" if "true_epsilon" in row else ""
        size, many = row["size"], row.get("replicates")
        told = LEVEL if row["method"] == "unit circle, paper" else ""
        yield Line("unit_circle", figure, cell, row["method"], "type-I error", told, size, interval, kind, many, note)
        if "power" in row:
            yield Line("unit_circle", figure, cell, row["method"], "power, exact", "", row["power"], note=note)


def wilson(rate: float, replicates: int) -> tuple[float, float]:
    """Wilson interval of a rate."""
    from jaxdp.simulate.engine.replicates import RejectionRate

    return RejectionRate(round(rate * replicates), replicates, LEVEL).interval()


MIC_CLAIM = {1.0: "figure 2: MICr-Geom and MICr-Lap have less error than MICe-Lap", 0.1: "figure 4: as figure 2"}


def mic_lines(row: dict[str, Any]) -> Iterator[Line]:
    """Medians of bias and variance, with quartiles over laws, and the paper's tables for the real collections."""
    if row["part"] == "real":
        cell = f"{row['collection']} epsilon={row['epsilon']:g} true epsilon={row['true_epsilon']:.3g}"
        figure = "table 1" if row["epsilon"] == 1.0 else "table 3"
        for name in ("bias", "variance", "absolute"):
            told = row.get(f"paper_{name}")
            told = "" if told is None else float(told)
            yield Line(
                "mic", figure, cell, row["mechanism"], f"median {name}", told, row[name], replicates=row["pairs"]
            )
    elif row["part"] == "accuracy":
        cell = f"n={row['n']} epsilon={row['epsilon']:g} true epsilon={row['true_epsilon']:.3g}"
        claim = MIC_CLAIM[row["epsilon"]]
        figure, method, laws = claim.split(":")[0], row["mechanism"], row["laws"]
        quartiles, kind = (row["bias"][1], row["bias"][3]), "quartiles over laws"
        yield Line("mic", figure, cell, method, "median bias", claim, row["bias"][2], quartiles, kind, laws)
        yield Line("mic", figure, cell, method, "mean absolute error", claim, row["mean"], replicates=laws)
    elif row["part"] == "scale":
        cell, seconds = cell_text(row, "n", "pairs"), row["second_wall"]
        yield Line("mic", "all pairs", cell, "MICrPairs, zCDP", "seconds without compilation", "", seconds)
    else:
        cell = cell_text(row, "n", "epsilon")
        yield Line(
            "mic", "heavy tails", cell, row["ranges"], "mean absolute error", "", row["mean"], replicates=row["laws"]
        )


def residual_scale_lines(row: dict[str, Any]) -> Iterator[Line]:
    """Our own: the public guess of the residual scale."""
    rate = row["rejections"] / row["replicates"]
    cell = cell_text(row, "n", "epsilon", "effect", "residual_sd", "guess")
    interval = wilson(rate, row["replicates"])
    many = row["replicates"]
    yield Line(
        "residual_scale", "ours", cell, "PartitionGCM", "rejection rate", "", rate, interval, "Wilson 95 %", many
    )


def tuning_lines(row: dict[str, Any]) -> Iterator[Line]:
    """Our own: every number of a tuning row that has a name of its own."""
    known = {"seconds", "commit", "python", "jax", "device", "platform"}
    numbers = {k: v for k, v in row.items() if isinstance(v, float) and k not in known}
    texts = " ".join(f"{k}={v}" for k, v in row.items() if isinstance(v, str | int) and k not in known)
    for name, value in numbers.items():
        yield Line("tuning", "ours", texts, "tuning", name, "", value)


EXPERIMENTS = {
    "priv_pc": Experiment("Differentially private causal graph discovery (Priv-PC)", priv_pc_lines),
    "dp_ci": Experiment(
        "Differentially private conditional independence testing (private GCM and CRT)",
        dp_ci_lines,
        ("--concrete", "{data}/concrete.csv"),
    ),
    "unit_circle": Experiment("Private chi-squared on the unit circle", unit_circle_lines),
    "mic": Experiment("Differentially private maximal information coefficients", mic_lines, ("--data", "{data}")),
    "residual_scale": Experiment("Our own: the residual scale of schema data", residual_scale_lines, room="evidence"),
    "tuning": Experiment("Our own: tuning", tuning_lines, room="evidence"),
}


if __name__ == "__main__":
    sys.exit(main())
