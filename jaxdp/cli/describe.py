"""`jaxdp describe`: what the columns of a file hold, as noisy counts and quartiles from one release."""

from __future__ import annotations

import argparse

from jaxdp.cli import options

EXAMPLE = """examples:
  jaxdp describe trial.csv --schema trial.toml --epsilon 0.5 --ledger study.db
  jaxdp describe trial.csv --schema trial.toml --columns age,clinic --epsilon 0.2 --out out/who"""


def add_parser(subparsers) -> None:
    parser = subparsers.add_parser(
        "describe",
        help="counts of levels, quartiles and missing values of columns",
        description=(
            "Releases noisy counts of all columns at once: of every level, of cells without a value and of unknown "
            "levels, and quartiles of numbers and dates, each with a 95 % interval for these records."
        ),
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_data(parser)
    options.add_reading(parser, sums=False, drops=False)
    parser.add_argument(
        "--columns", type=options.names, metavar="A,B,C", help="columns to describe, which share epsilon (default: all)"
    )
    options.add_epsilon(parser)
    parser.add_argument(
        "--delta", type=options.probability, metavar="D", help="Gaussian noise under (epsilon, D)-DP, for many columns"
    )
    options.add_run(parser, "out/describe")


def run(args: argparse.Namespace) -> int:
    options.require_known(args)
    from jaxdp.ask.describe import DescribeQuery
    from jaxdp.cli import asking

    options.keep_programs()
    table = options.table(args)
    columns = args.columns and options.columns(table.schema, args.columns)
    query = DescribeQuery.of(table.schema, columns=columns, epsilon=args.epsilon, delta=args.delta or 0.0)
    return asking.ask(args, table, query)
