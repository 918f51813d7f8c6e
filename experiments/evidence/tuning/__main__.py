"""python -m experiments.evidence.tuning [--quick|--full] [--figures gains,...] [--tests NAME,...] [--out DIR]"""

import argparse
import dataclasses
import pathlib

from experiments.evidence.tuning import config, figures, plots
from experiments.evidence.tuning.searches import SEARCHES
from experiments.record import Recorder


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.evidence.tuning", description=__doc__)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="one test, small sizes (default)")
    size.add_argument("--full", action="store_true", help="every test, 10^5 nulls a design; an hour on 2 cores")
    parser.add_argument("--figures", default=",".join(figures.FIGURES), help="comma list, default all")
    parser.add_argument("--tests", default="", help="comma list of cases, default those of the size")
    parser.add_argument("--nulls", type=int, help="replicates of each null, default those of the size")
    parser.add_argument("--replicates", type=int, help="replicates tuned on, default those of the size")
    parser.add_argument(
        "--tables", action="store_true", help="measure nothing: tables and pictures of the rows in --out"
    )
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/tuning"))
    arguments = parser.parse_args()
    chosen = config.FULL if arguments.full else config.QUICK
    if arguments.tests:
        chosen = dataclasses.replace(chosen, names=tuple(arguments.tests.split(",")))
    if arguments.nulls:
        chosen = dataclasses.replace(chosen, nulls=arguments.nulls)
    if arguments.replicates:
        chosen = dataclasses.replace(chosen, replicates=arguments.replicates)
    wanted = (arguments.figures.split(","), chosen.names)
    for names, known in zip(wanted, (figures.FIGURES, {case.name for case in (*config.CASES, *SEARCHES)}), strict=True):
        unknown = sorted(set(names) - set(known))
        if unknown:
            parser.error(f"unknown {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    if arguments.tables:
        print(*plots.write(plots.read(arguments.out), arguments.out), sep="\n")
        return
    recorder = Recorder(arguments.out, "_".join(["tuning", chosen.name, *chosen.names]))
    for name in arguments.figures.split(","):
        figures.FIGURES[name](recorder, chosen)
    for path in plots.write(recorder.rows, arguments.out):
        print(path)


if __name__ == "__main__":
    main()
