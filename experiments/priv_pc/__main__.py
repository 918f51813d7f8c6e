"""python -m experiments.priv_pc [--quick|--full] [--out DIR]: F1 against the budget, running times, continuous data."""

import argparse
import pathlib

from experiments.priv_pc import config, figures, plots
from experiments.record import Recorder

CLAIM = (
    "the paper says: Priv-PC beats EM-PC and SVT-PC in F1 at equal budget and is 10.61 to 32.85 times faster than "
    "EM-PC. Its sensitivity is wrong (formula sheet, 3.1): its row shows the budget it claims, true_epsilon in the "
    "JSON lines is what holds."
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.priv_pc", description=__doc__)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="two seeds, four budgets (default)")
    size.add_argument("--full", action="store_true", help="16 seeds, 22 budgets")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/priv_pc"))
    arguments = parser.parse_args()
    chosen = config.FULL if arguments.full else config.QUICK
    recorder = Recorder(arguments.out, f"priv_pc_{chosen.name}")
    figures.figure_1(recorder, chosen)
    figures.continuous(recorder, chosen)
    print(CLAIM)
    for row in recorder.rows:
        detail = f"{row['tests']:6.0f} tests {row['search_seconds'] * 1e3:8.1f} ms" if "tests" in row else ""
        reference = f"(reference {row['f1_reference']:.3f})" if "f1_reference" in row else ""
        print(
            f"  {row['network']:24s} {row['method']:52s} {row['budget']:7.2f} F1 {row['f1']:.3f} {reference} {detail}"
        )
    for path in plots.draw(recorder.rows, arguments.out):
        print(path)


if __name__ == "__main__":
    main()
