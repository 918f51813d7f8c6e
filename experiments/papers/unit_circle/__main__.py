"""python -m experiments.papers.unit_circle [--quick|--recorded|--full] [--figures table,families,...] [--out DIR]"""

import argparse
import pathlib

from experiments.papers.unit_circle import config, figures, plots
from experiments.record import Recorder


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.papers.unit_circle", description=__doc__)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="small sizes (default)")
    size.add_argument("--full", action="store_true", help="N to 2000, K to 10^6, 10^5 nulls; hours on 2 cores")
    size.add_argument("--recorded", action="store_true", help="the sizes of the committed results; minutes")
    parser.add_argument("--figures", default=",".join(figures.FIGURES), help="comma list, default all")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/unit_circle"))
    arguments = parser.parse_args()
    chosen = config.FULL if arguments.full else config.RECORDED if arguments.recorded else config.QUICK
    wanted = arguments.figures.split(",")
    unknown = sorted(set(wanted) - set(figures.FIGURES))
    if unknown:
        parser.error(f"unknown figures {', '.join(unknown)}; there are {', '.join(figures.FIGURES)}")
    recorder = Recorder(arguments.out, f"unit_circle_{chosen.name}")
    for name in wanted:
        start = len(recorder.rows)
        figures.FIGURES[name](recorder, chosen)
        for row in recorder.rows[start:]:
            print({key: value for key, value in row.items() if key not in recorder.facts}, flush=True)
    for path in plots.draw(recorder.rows, arguments.out):
        print(path)


if __name__ == "__main__":
    main()
