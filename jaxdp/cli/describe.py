"""`jaxdp describe`: what the columns of a file hold, as noisy counts and quartiles from one release."""

from __future__ import annotations

import argparse

from jaxdp.ask.calls import DescribeOptions
from jaxdp.cli import asking

EXAMPLE = """examples:
  jaxdp describe trial.csv --schema trial.toml --epsilon 0.5 --ledger study.db
  jaxdp describe trial.csv --schema trial.toml --columns age,clinic --epsilon 0.2 --out out/who"""


def add_parser(subparsers) -> None:
    asking.add_parser(
        subparsers,
        "describe",
        DescribeOptions,
        help="counts of levels, quartiles and missing values of columns",
        description=(
            "Releases noisy counts for all columns at once: of each level, of cells without a value and of cells with "
            "an unknown level; also the quartiles of numbers and dates. Each has a 95 % interval for these records."
        ),
        epilog=EXAMPLE,
    )


def run(args: argparse.Namespace) -> int:
    return asking.run(args, "jaxdp.ask.describe:DescribeQuery")
