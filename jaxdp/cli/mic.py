"""`jaxdp mic`: how strongly are two columns related, or all pairs of columns? Private MIC of a CSV file."""

from __future__ import annotations

import argparse

from jaxdp.ask.calls import MICOptions
from jaxdp.cli import asking

EXAMPLE = """examples:
  jaxdp mic trial.csv --schema trial.toml --x dose --y response --epsilon 1 --out out/mic
  jaxdp mic trial.csv --schema trial.toml --all-pairs --epsilon 5 --delta 1e-6 --out out/pairs"""


def add_parser(subparsers) -> None:
    parser = asking.add_parser(
        subparsers,
        "mic",
        MICOptions,
        help="maximal information coefficient of two columns, or of all pairs",
        description="Releases maximal information coefficients (MICr, 0 = unrelated, near 1 = nearly a function).",
        epilog=EXAMPLE,
    )
    parser.add_argument("--all-pairs", action="store_true", help="every pair of columns, under one budget")


def run(args: argparse.Namespace) -> int:
    asking.require_one_kind(args, MICOptions, MICOptions)
    return asking.run(args, "jaxdp.ask.coefficients:MICQuery")
