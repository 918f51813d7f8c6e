"""python -m experiments.papers.mic [--quick|--recorded|--full] [--parts accuracy,real,heavy,scale] [--sizes N,...]
[--data DIR] [--join FILES] [--out DIR]

Tables 1 and 3 and figures 3 and 5 need --data (or JAXDP_DATA), the folder with baseball.csv, spellman.csv and their
stored MICe values. Table 2 is `python -m experiments.papers.mic.tuning`.
"""

import argparse
import dataclasses
import json
import os
import pathlib

from experiments.papers.mic import config, figures, plots, real, scale, tables
from experiments.record import Recorder

PARTS = ("accuracy", "real", "heavy", "scale")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.papers.mic", description=__doc__)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="a few laws and pairs (default)")
    size.add_argument("--recorded", action="store_true", help="the sizes of the results committed here")
    size.add_argument("--full", action="store_true", help="all laws, pairs and sizes")
    parser.add_argument("--parts", default=",".join(PARTS), help="comma list of accuracy, real, heavy, scale")
    parser.add_argument(
        "--data",
        type=pathlib.Path,
        default=os.environ.get("JAXDP_DATA"),
        help="folder with the Baseball and Spellman files",
    )
    parser.add_argument("--sizes", default="", help="comma list of n for figures 2 and 4, default all")
    parser.add_argument("--join", type=pathlib.Path, nargs="*", default=[], help="JSONL files of earlier runs to add")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/mic"))
    arguments = parser.parse_args()
    chosen = config.FULL if arguments.full else config.RECORDED if arguments.recorded else config.QUICK
    sizes = tuple(int(part) for part in arguments.sizes.split(",") if part)
    chosen = dataclasses.replace(chosen, sizes=sizes or chosen.sizes)
    parts = [part for part in arguments.parts.split(",") if part]
    unknown = sorted(set(parts) - set(PARTS))
    if unknown:
        parser.error(f"--parts knows {', '.join(PARTS)}, not {', '.join(unknown)}")
    earlier = [json.loads(line) for path in arguments.join for line in path.read_text().splitlines()]
    recorder = Recorder(arguments.out, "_".join(["mic", chosen.name, *map(str, sizes)]))
    for epsilon in config.EPSILONS[::-1]:
        if "accuracy" in parts:
            figures.accuracy(recorder, chosen, epsilon)
        if "real" in parts and arguments.data:
            for read in real.COLLECTIONS.values():
                real.measure(recorder, chosen, read(arguments.data), epsilon)
    if "real" in parts and not arguments.data:
        print("tables 1 and 3, figures 3 and 5 skipped: give --data DIR")
    if "heavy" in parts:
        figures.heavy_tails(recorder, chosen)
    if "scale" in parts:
        scale.measure(recorder, chosen.seed)
    show(recorder.rows)
    rows = earlier + recorder.rows
    for path in tables.write(rows, arguments.out) + plots.draw(rows, arguments.out):
        print(path)


def show(rows) -> None:
    """One line per row, the paper's figures beside ours where it has them."""
    for row in rows:
        if row["part"] == "accuracy":
            where = f"n={row['n']} epsilon={row['epsilon']:g} (true {row['true_epsilon']:g})"
            found = f"error {row['weighted']:.3f}/{row['mean']:.3f} bias {row['bias'][2]:+.3f}"
            print(f"{row['mechanism']:28s} {where:40s} {found}")
        elif row["part"] == "real":
            told = "" if row["paper_bias"] is None else f"paper {row['paper_bias']:+.2f} ({row['paper_variance']:.2g})"
            where = f"{row['collection']} epsilon={row['epsilon']:g} (true {row['true_epsilon']:g})"
            ours = f"{row['bias']:+.3f} ({row['variance']:.2g}) abs {row['absolute']:.3f}"
            print(f"{row['mechanism']:28s} {where:44s} {ours:32s} {told}")
        elif row["part"] == "scale":
            print(f"{row['pairs']} pairs in {row['second_wall']:.2f} s ({row['first_wall']:.2f} s with compilation)")
        else:
            print(f"{row['ranges']:28s} n={row['n']} mean error {row['mean']:.3f}")


if __name__ == "__main__":
    main()
