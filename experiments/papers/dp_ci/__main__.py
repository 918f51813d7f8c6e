"""python -m experiments.papers.dp_ci [--quick|--full] [--figures 1,3] [--concrete concrete.csv] [--out DIR]

Figure 0 is the table of docs/evidence/power.md; it runs only when asked for.
"""

import argparse
import concurrent.futures
import multiprocessing
import os
import pathlib

from experiments.papers.dp_ci.worker import measure_group

# Two processes: most of a quick run is compilation, which uses one core. Figures that share programs stay together.
CRT_PART = 101  # of figure 1
GROUPS = ((1, 3, 4, 8, 0), (CRT_PART, 5, 6, 9, 10, 7))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.papers.dp_ci", description=__doc__)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="small sizes (default)")
    size.add_argument("--full", action="store_true", help="the paper's grid as far as 2 cores allow")
    parser.add_argument("--figures", default="1,3,4,5,6,7,8,9,10", help="comma list")
    parser.add_argument("--concrete", type=pathlib.Path, help="path of concrete.csv, for figure 7")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/dp_ci"))
    arguments = parser.parse_args()
    if not arguments.full:
        # small problems: compiling takes longer than computing
        os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")
    wanted = {int(part) for part in arguments.figures.split(",") if part}
    if 7 in wanted and not arguments.concrete:
        print("figure 7 skipped: give --concrete PATH of the Concrete Compressive Strength CSV")
        wanted.discard(7)
    measured = wanted | ({CRT_PART} if 1 in wanted else set())
    jobs = [(number, [n for n in group if n in measured], arguments) for number, group in enumerate(GROUPS)]
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(len(jobs), mp_context=context) as pool:
        rows = [row for part in pool.map(measure_group, jobs) for row in part]
    rows.sort(key=lambda row: row["figure"])
    merge(rows, arguments.out / f"dp_ci_{'full' if arguments.full else 'quick'}.jsonl")
    for number in sorted(wanted):
        show(number, [row for row in rows if row["figure"] == number])
    from experiments.papers.dp_ci import plots

    for path in plots.draw(rows, arguments.out):
        print(path)


def merge(rows: list[dict], path: pathlib.Path) -> None:
    """One file of all rows in place of the parts."""
    import json

    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for part in path.parent.glob("part_*.jsonl"):
        part.unlink()


def show(number: int, rows: list[dict]) -> None:
    """The paper's statement, then one line per cell."""
    from experiments.papers.dp_ci.figures import CLAIMS

    print(f"\nfigure {number}: the paper says: {CLAIMS[number]}")
    keys = ("n", "epsilon", "complexity", "dim", "effect", "num_resamples", "feature")
    for row in rows:
        cell = " ".join(f"{key}={row[key]}" for key in keys if key in row)
        interval = f" [{row['low']:.3f}, {row['high']:.3f}]" if "low" in row else ""
        print(f"  {row['method']:32s} {cell:52s} {row['rate']:.3f}{interval} {row.get('note', '')}", flush=True)


if __name__ == "__main__":
    main()
