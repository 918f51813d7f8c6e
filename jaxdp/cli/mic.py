"""`jaxdp mic`: how strongly are two columns related, or all pairs of columns? Private MIC of a CSV file."""

from __future__ import annotations

import argparse

from jaxdp.cli import options

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
    _require_consistent(args)
    options.require_known(args)
    from jaxdp.ask.coefficients import MICQuery
    from jaxdp.cli import asking

    options.keep_programs()
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
    return asking.ask(args, table, query)


def _require_consistent(args) -> None:
    if args.all_pairs and (args.x or args.y):
        raise options.UserError("give --x and --y, or --all-pairs, not both.")
    if args.columns and not args.all_pairs:
        raise options.UserError("--columns goes with --all-pairs: give both, or --x A and --y B for one pair.")
    if not args.all_pairs and not (args.x and args.y):
        raise options.UserError("give --x A and --y B, or --all-pairs.")
