"""python -m experiments.dp_ci [--quick|--full] [--figures 1,3] [--concrete concrete.csv] [--out DIR]"""

import argparse
import pathlib

from experiments.dp_ci import concrete, config, figures, plots
from experiments.record import Recorder


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.dp_ci", description=__doc__)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="small sizes (default)")
    size.add_argument("--full", action="store_true", help="the paper's grid as far as 2 cores allow")
    parser.add_argument("--figures", default="", help="comma list, default all")
    parser.add_argument("--concrete", type=pathlib.Path, help="path of concrete.csv, for figure 7")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/dp_ci"))
    arguments = parser.parse_args()
    chosen = config.FULL if arguments.full else config.QUICK
    wanted = {int(part) for part in arguments.figures.split(",") if part} or {*figures.SIMULATED, 7}
    recorder = Recorder(arguments.out, f"dp_ci_{chosen.name}")
    for number in sorted(wanted):
        if number == 7:
            if arguments.concrete:
                concrete.figure_7(recorder, chosen, arguments.concrete)
            else:
                print("figure 7 skipped: give --concrete PATH of the Concrete Compressive Strength CSV")
        else:
            figures.SIMULATED[number](recorder, chosen)
        show(number, [row for row in recorder.rows if row["figure"] == number])
    for path in plots.draw(recorder.rows, arguments.out):
        print(path)


def show(number: int, rows: list[dict]) -> None:
    """The paper's statement, then one line per cell."""
    print(f"\nfigure {number}: the paper says: {figures.CLAIMS[number]}")
    keys = ("n", "epsilon", "complexity", "dim", "effect", "num_resamples", "feature")
    for row in rows:
        cell = " ".join(f"{key}={row[key]}" for key in keys if key in row)
        interval = f" [{row['low']:.3f}, {row['high']:.3f}]" if "low" in row else ""
        print(f"  {row['method']:32s} {cell:52s} {row['rate']:.3f}{interval} {row.get('note', '')}", flush=True)


if __name__ == "__main__":
    main()
