"""`jaxdp discover`: which columns of a CSV file are directly related? One private causal graph."""

from __future__ import annotations

import argparse
import dataclasses

from jaxdp.cli import options

EXAMPLE = "example: jaxdp discover survey.csv --schema survey.toml --epsilon 1 --out out/graph"
AUTO = "auto"


def add_parser(subparsers) -> None:
    parser = subparsers.add_parser(
        "discover",
        help="find a causal graph of the columns of a CSV file",
        description="Searches for a causal graph (CPDAG) of the columns of the schema, at a stated privacy cost.",
        epilog=EXAMPLE,
    )
    options.add_data(parser)
    options.add_reading(parser)
    parser.add_argument(
        "--columns", type=options.names, metavar="A,B,C", help="columns to use (default: all of the schema)"
    )
    options.add_epsilon(parser)
    parser.add_argument(
        "--method",
        default=AUTO,
        metavar="M",
        help="search, such as table_pc, or a test for PC, package.module:Class too (default: what fits the columns)",
    )
    parser.add_argument(
        "--max-order", type=options.count, metavar="K", help="largest conditioning set (default: no limit)"
    )
    parser.add_argument(
        "--delta", type=options.probability, default=0.0, metavar="D", help="(epsilon, D)-DP (default: pure epsilon)"
    )
    parser.add_argument(
        "--directions",
        type=share,
        metavar="S",
        help="share of the budget for the arrows, 0 to below 1 (default: what the search chooses; 0 draws none)",
    )
    add_knowledge(parser)
    options.add_accept_coarse_cells(parser)
    parser.add_argument("--compare", "--truth", dest="truth", metavar="GRAPH.json", help="a graph to compare with")
    options.add_run(parser, "out/discover")


def share(text: str) -> float:
    """argparse type: a number from 0 to below 1."""
    value = float(text)
    if not 0.0 <= value < 1.0:
        raise argparse.ArgumentTypeError(f"must be at least 0 and below 1, got {text}")
    return value


def add_knowledge(parser: argparse.ArgumentParser) -> None:
    """--require, --forbid and --tiers: what is known before data are read."""
    for name, meaning in (("require", "are joined by an edge in any case"), ("forbid", "are joined by no edge")):
        parser.add_argument(
            f"--{name}",
            type=options.names,
            action="append",
            default=[],
            metavar="A,B",
            help=f"two columns that {meaning} (may be given again)",
        )
    parser.add_argument(
        "--tiers",
        type=tiers,
        default=[],
        metavar='"A,B;C"',
        help="groups of columns, earliest first: an edge between two groups points to the later one",
    )


def tiers(text: str) -> list[list[str]]:
    """argparse type: groups of column names, separated by semicolons."""
    return [options.names(part) for part in text.split(";")]


def knowledge_of(args: argparse.Namespace):
    """The background knowledge of the arguments; None if there is none."""
    from jaxdp.discovery import Knowledge

    if not (args.require or args.forbid or args.tiers):
        return None
    return Knowledge(required=args.require, forbidden=args.forbid, tiers=args.tiers)


def run(args: argparse.Namespace) -> int:
    options.require_known(args)
    from jaxdp import discovery
    from jaxdp.ask.graph import GraphQuery
    from jaxdp.cli import asking

    options.keep_programs()
    table = options.table(args)
    query = GraphQuery.of(
        table.schema,
        columns=args.columns and options.columns(table.schema, args.columns),
        epsilon=args.epsilon,
        method=args.method,
        max_order=args.max_order,
        accept_coarse_cells=args.accept_coarse_cells,
        delta=args.delta,
        knowledge=knowledge_of(args),
        directions=args.directions,
    )
    truth = discovery.read_graph(args.truth) if args.truth else None
    _require_same_columns(truth, list(query.names))
    return asking.ask(args, table, dataclasses.replace(query, truth=truth))


def _require_same_columns(truth, names: list[str]) -> None:
    if truth is not None and sorted(truth.names) != sorted(names):
        other = sorted(set(truth.names) ^ set(names))[0]
        raise options.UserError(f"--compare and the data have different columns: {other!r} is in one only.")
