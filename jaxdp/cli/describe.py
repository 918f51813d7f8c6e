"""`jaxdp describe`: what the columns of a file hold, as noisy counts and quartiles from one release."""

from __future__ import annotations

import argparse
from pathlib import Path

from jaxdp._base import csv_files
from jaxdp.cli import options

FILES = ("columns.png", "result.json", "columns.csv", "report.html")
HEADER = ("column", "what", "estimate", "low", "high")
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
    from jaxdp.one_call.describe import DescribeQuery

    options.keep_programs()
    table = options.table(args)
    columns = args.columns and options.columns(table.schema, args.columns)
    query = DescribeQuery.of(table.schema, columns=columns, epsilon=args.epsilon, delta=args.delta or 0.0)
    ledger = options.open_ledger(args.ledger, args.seed, args.epsilon)
    folder = options.result_folder(args, FILES)
    account = options.account(ledger, args.data, folder, query.short)
    found = query.ask(table, options.make_key(args.seed), account)
    content = write(found, folder, options.for_the_page(args, ledger))
    options.tell(args, content, screen(found, folder) + options.pictures() + options.left(ledger))
    return 0


def write(found, folder: Path, facts: dict) -> dict:
    """Writes result.json, columns.csv, columns.png and report.html; returns what result.json holds."""
    from jaxdp.one_call.describe import draw
    from jaxdp.report import written
    from jaxdp.report.html import write_report

    content = {**found.to_dict(), **facts}
    written.put(folder, "result.json", options.write_json, content)
    written.put(folder, "columns.csv", csv_files.write, HEADER, found.rows())
    written.put_picture(folder, "columns.png", draw, found)
    write_report(folder, "Private description of columns", FILES)
    return content


def screen(found, folder: Path) -> str:
    """One screen for people."""
    from jaxdp._base import amounts

    content = found.content
    lines = [
        content["title"],
        options.paragraph("noise", content["answer"]),
        f"  privacy    {amounts.cost(content, every=True)}, {content['relation']}, n = {content['n']}",
    ]
    if content["unit"]:
        lines.append(options.paragraph("records", content["unit"]))
    if content["cautions"]:
        lines.append(options.paragraph("caution", " ".join(content["cautions"])))
    if content["mode"] == "simulation":
        lines.append(f"  {options.NOT_PRIVATE}")
    table = "\n".join(f"  {line}" for line in found.table().splitlines())
    return "\n".join([*lines, "", table, "", f"  files      {folder}"])
