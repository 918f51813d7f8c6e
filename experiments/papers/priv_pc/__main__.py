"""python -m experiments.papers.priv_pc [--quick|--recorded|--full] [--figures NAMES] [--out DIR]: F1, times, tables."""

import argparse
import csv
import pathlib

from experiments.papers.priv_pc import config, figures, plots, tables
from experiments.record import Recorder

CLAIM = (
    "the paper says: Priv-PC beats EM-PC and SVT-PC in F1 at equal budget and is 10.61 to 32.85 times faster than "
    "EM-PC. Its sensitivity is wrong (docs/claims.md): its row shows the budget it claims, true_epsilon in the "
    "JSON lines is what holds."
)

FIGURES = {
    "targets": tables.targets,
    "table_2": tables.table_2,
    "reference": tables.reference,
    "continuous": figures.continuous,
    "figure_1": figures.figure_1,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.papers.priv_pc", description=__doc__)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="two seeds, two budgets (default)")
    size.add_argument("--recorded", action="store_true", help="3 seeds, 22 budgets, the tables: what results/ holds")
    size.add_argument("--full", action="store_true", help="16 seeds, 22 budgets, the tables")
    parser.add_argument("--figures", default=",".join(FIGURES), help="comma list, default all")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/priv_pc"))
    arguments = parser.parse_args()
    chosen = config.FULL if arguments.full else config.RECORDED if arguments.recorded else config.QUICK
    wanted = arguments.figures.split(",")
    if unknown := sorted(set(wanted) - set(FIGURES)):
        parser.error(f"unknown figures {', '.join(unknown)}; there are {', '.join(FIGURES)}")
    recorder = Recorder(arguments.out, f"priv_pc_{chosen.name}")
    for name in wanted:
        FIGURES[name](recorder, chosen)
    print(CLAIM)
    for row in recorder.rows:
        detail = f"{row['tests']:6.0f} tests" if "tests" in row else ""
        detail += f" {row['search_seconds'] * 1e3:8.1f} ms" if "search_seconds" in row else ""
        reference = f"(reference {row['f1_reference']:.3f})" if "f1_reference" in row else ""
        print(
            f"  {row['network']:24s} {row['method']:52s} {row['budget']:7.2f} F1 {row['f1']:.3f} {reference} {detail}"
        )
    for path in [*write_csv(recorder.rows, arguments.out), *plots.draw(recorder.rows, arguments.out)]:
        print(path)


def write_csv(rows: list[dict], out: pathlib.Path) -> list[pathlib.Path]:
    """One CSV per figure or table, with the expected value beside ours where there is one."""
    paths = []
    for figure in dict.fromkeys(row["figure"] for row in rows):
        part = [row for row in rows if row["figure"] == figure]
        columns = list(dict.fromkeys(name for row in part for name in row))
        path = out / f"{str(figure).replace(' ', '_').replace('.', '_')}.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, columns)
            writer.writeheader()
            writer.writerows(part)
        paths.append(path)
    return paths


if __name__ == "__main__":
    main()
