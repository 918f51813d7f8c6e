"""`jaxdp report`: builds report.html again from the files of a results folder."""

from __future__ import annotations

import argparse
from pathlib import Path

from jaxdp.cli import options


def add_parser(subparsers) -> None:
    parser = subparsers.add_parser(
        "report",
        help="build report.html from the files of a results folder",
        description="Builds DIR/report.html from the JSON, PNG and CSV files in DIR and its direct subfolders.",
        epilog="example: jaxdp report out/demo",
    )
    parser.add_argument("folder", metavar="DIR", help="folder that another command wrote")
    parser.add_argument("--title", default="jaxdp report", help="title of the page")


def run(args: argparse.Namespace) -> int:
    from jaxdp.report.html import write_report

    folder = Path(args.folder)
    if not folder.is_dir():
        raise options.UserError(f"{args.folder} is not a folder: name one that another command wrote.")
    print(write_report(folder, args.title))
    return 0
