"""`jaxdp test`: is X independent of Y (given Z)? One private answer about a CSV file."""

from __future__ import annotations

import argparse

from jaxdp._base.quantities import COARSE_CELLS
from jaxdp.ask.calls import PairsOptions, TestOptions
from jaxdp.cli import asking

EXAMPLE = """examples:
  jaxdp test trial.csv --schema trial.toml --x dose --y response --given age,clinic --epsilon 1
  jaxdp test trial.csv --schema trial.toml --all-pairs --columns dose,response,age --adjust bh --epsilon 2"""


def add_parser(subparsers) -> None:
    parser = asking.add_parser(
        subparsers,
        "test",
        TestOptions,
        PairsOptions,
        help="test whether X is independent of Y (given Z) in a CSV file",
        description="Tests whether X is independent of Y given Z, or every pair of columns, at a stated privacy cost.",
        epilog=EXAMPLE,
    )
    parser.add_argument("--all-pairs", action="store_true", help="test every pair of columns under one total epsilon")
    coarse = ("accept_coarse_cells", True)  # a field of tests, as of --set
    parser.add_argument("--accept-coarse-cells", dest="fields", action="append_const", const=coarse, help=COARSE_CELLS)


def run(args: argparse.Namespace) -> int:
    asking.require_one_kind(args, TestOptions, PairsOptions)
    place = "jaxdp.ask.pairs:PairsQuery" if args.all_pairs else "jaxdp.ask.independence:Query"
    return asking.run(args, place)
