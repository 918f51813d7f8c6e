"""`jaxdp mic`: how strongly are two columns related, or all pairs of columns? Private MIC of a CSV file."""

from __future__ import annotations

import argparse
from pathlib import Path

from jaxdp._base import csv_files
from jaxdp.cli import options

TOP_PAIRS = 20
FILES_OF_ONE = ("picture.png", "result.json", "report.html")
FILES_OF_ALL = ("heatmap.png", "result.json", "matrix.csv", "top_pairs.csv", "report.html")
EXAMPLE = """examples:
  jaxdp mic trial.csv --schema trial.toml --x dose --y response --epsilon 1 --out out/mic
  jaxdp mic trial.csv --schema trial.toml --all-pairs --epsilon 5 --delta 1e-6 --out out/pairs"""


def add_parser(subparsers) -> None:
    parser = subparsers.add_parser(
        "mic",
        help="maximal information coefficient of two columns, or of all pairs",
        description="Releases maximal information coefficients (MICr, 0 = unrelated, 1 = one determines the other).",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_data(parser)
    options.add_reading(parser, sums=False)  # grids are searched over all records
    parser.add_argument("--x", metavar="A", help="first column")
    parser.add_argument("--y", metavar="B", help="second column")
    parser.add_argument("--all-pairs", action="store_true", help="every pair of columns, under one budget")
    parser.add_argument("--columns", type=options.names, metavar="A,B,C", help="columns of --all-pairs (default: all)")
    options.add_epsilon(parser)
    parser.add_argument(
        "--delta",
        type=options.probability,
        metavar="D",
        help="with --all-pairs: Gaussian noise under (epsilon, D)-DP, far less noise for many pairs",
    )
    parser.add_argument("--cells", type=options.positive_number, metavar="B", help="grid cells allowed, >= 4")
    parser.add_argument(
        "--range-share",
        type=options.probability,
        metavar="S",
        help="with --x and --y: share of the budget for private ranges, for heavy tails (0.3 is good)",
    )
    options.add_run(parser, "out/mic")


def run(args: argparse.Namespace) -> int:
    from jaxdp.one_call.mic import MICQuery

    options.keep_programs()
    _require_consistent(args)
    table = options.table(args)
    query = MICQuery.of(
        table.schema,
        x=args.x,
        y=args.y,
        columns=args.columns and options.columns(table.schema, args.columns),
        epsilon=args.epsilon,
        delta=args.delta or 0.0,
        max_cells=args.cells,
        range_share=args.range_share or 0.0,
    )
    ledger = options.open_ledger(args.ledger, args.seed, args.epsilon)
    folder = options.result_folder(args, FILES_OF_ALL if args.all_pairs else FILES_OF_ONE)
    account = options.account(ledger, args.data, folder, query.short)
    found = query.ask(table, options.make_key(args.seed), account)
    content = write(found, folder, options.for_the_page(args, ledger))
    options.tell(args, content, _screen(content, folder) + options.pictures() + options.left(ledger))
    return 0


def write(found, folder: Path, facts: dict) -> dict:
    """Writes result.json, the picture, report.html and, for all pairs, the tables; returns what result.json holds."""
    from jaxdp.one_call.mic import draw
    from jaxdp.report import written
    from jaxdp.report.html import write_report

    content = {**found.to_dict(), **facts}
    written.put(folder, "result.json", options.write_json, content)
    if found.p_value is None:
        write_tables(folder, found.names, found.matrix, found.pairs)
        written.put_picture(folder, "heatmap.png", draw, found)
        write_report(folder, "Private maximal information coefficients", FILES_OF_ALL)
    else:
        written.put_picture(folder, "picture.png", draw, found)
        write_report(folder, "Private maximal information coefficient", FILES_OF_ONE)
    return content


def _require_consistent(args) -> None:
    if args.all_pairs and (args.x or args.y):
        raise options.UserError("give --x and --y, or --all-pairs, not both.")
    if args.columns and not args.all_pairs:
        raise options.UserError("--columns goes with --all-pairs: give both, or --x A and --y B for one pair.")
    if not args.all_pairs and not (args.x and args.y):
        raise options.UserError("give --x A and --y B, or --all-pairs.")


def write_tables(folder: Path, names, matrix, found) -> None:
    """matrix.csv, all coefficients (d, d), and top_pairs.csv, the largest of `found`."""
    from jaxdp.report import written

    square = [[name, *row] for name, row in zip(names, matrix.round(6).tolist(), strict=True)]
    written.put(folder, "matrix.csv", csv_files.write, ["", *names], square)
    top = [[pair["x"], pair["y"], round(pair["mic"], 6)] for pair in found[:TOP_PAIRS]]
    written.put(folder, "top_pairs.csv", csv_files.write, ["x", "y", "mic"], top)


def _screen(content: dict, folder: Path) -> str:
    """One screen for people."""
    from jaxdp._base import amounts
    from jaxdp.one_call.mic import DROWNED, NOISY

    lines = [
        content["title"],
        f"  answer     {content['answer']}",
        f"  noise      sd {content['noise_sd']:.3g} on each coefficient",
        f"  privacy    {amounts.cost(content, every=True)}, {content['relation']}, n = {content['n']}",
    ]
    if "unit" in content:
        lines.append(f"  records    {content['unit']}")
    if content["noise_sd"] > NOISY:
        lines.append(f"  warning    {DROWNED}")
    if content["cautions"]:
        lines.append(options.paragraph("caution", " ".join(content["cautions"])))
    if content["mode"] == "simulation":
        lines.append(f"  {options.NOT_PRIVATE}")
    return "\n".join([*lines, f"  files      {folder}"])
