"""`jaxdp discover`: which columns of a CSV file are directly related? One private causal graph."""

from __future__ import annotations

import argparse
import dataclasses
import re
from pathlib import Path
from typing import Any

from jaxdp._base import arguments
from jaxdp.ask.calls import SearchOptions
from jaxdp.cli import asking, options

_QUOTED = r'(?:^|(?<=[,;]))\s*"(?:[^"]|"")*"'  # a name that holds a mark which separates names or groups
EXAMPLE = "example: jaxdp discover survey.csv --schema survey.toml --epsilon 1 --out out/graph"


def add_parser(subparsers) -> None:
    parser = asking.add_parser(
        subparsers,
        "discover",
        SearchOptions,
        help="find a causal graph of the columns of a CSV file",
        description="Searches for a causal graph (CPDAG) of the columns of the schema, at a stated privacy cost.",
        epilog=EXAMPLE,
    )
    add_knowledge(parser)
    parser.add_argument(
        "--compare",
        "--truth",
        dest="truth",
        metavar="GRAPH.json",
        help="a graph to compare the result with; of an earlier run also its result.json",
    )


def add_knowledge(parser: argparse.ArgumentParser) -> None:
    """--require, --forbid and --tiers: what is known before data are read."""
    for name, meaning in (("require", "must be joined by an edge"), ("forbid", "must not be joined by an edge")):
        parser.add_argument(
            f"--{name}",
            type=arguments.names,
            action="append",
            default=[],
            metavar="A,B",
            help=f"two columns that {meaning}; may be repeated",
        )
    parser.add_argument(
        "--tiers",
        type=tiers,
        default=[],
        metavar='"A,B;C"',
        help="groups of columns, earliest first: an edge between two groups points to the later one",
    )


def tiers(text: str) -> list[list[str]]:
    """argparse type: groups of column names, separated by semicolons; a name that holds one stands in quotes."""
    parted = re.sub(f"{_QUOTED}|(;)", lambda found: "\0" if found[1] else found[0], text)
    return [arguments.names(part) for part in parted.split("\0")]


def knowledge_of(args: argparse.Namespace) -> dict[str, Any]:
    """The background knowledge of the arguments as a keyword, where there is any."""
    from jaxdp.discovery import Knowledge

    if not (args.require or args.forbid or args.tiers):
        return {}
    return {"knowledge": Knowledge(required=args.require, forbidden=args.forbid, tiers=args.tiers)}


def run(args: argparse.Namespace) -> int:
    options.require_known(args)
    from jaxdp import discovery

    table, query = asking.query_of(args, "jaxdp.ask.graph:GraphQuery", **knowledge_of(args))
    truth = discovery.read_graph(_graph_file(args.truth)) if args.truth else None
    _require_same_columns(truth, list(query.names))
    _require_acyclic(truth)
    return asking.ask(args, table, dataclasses.replace(query, truth=truth))


def _graph_file(path: str) -> Path:
    """The graph of an earlier run, for its result.json too, which lies beside it."""
    beside = Path(path).with_name("graph.json")
    return beside if Path(path).name == "result.json" and beside.is_file() else Path(path)


def _require_acyclic(truth) -> None:
    from jaxdp.discovery.engine.orientation import is_acyclic

    if truth is not None and not is_acyclic(truth.cpdag & ~truth.cpdag.T):
        raise options.UserError(
            "--compare holds a directed cycle, which no causal graph has: turn an arrow or leave it out."
        )


def _require_same_columns(truth, names: list[str]) -> None:
    if truth is not None and sorted(truth.names) != sorted(names):
        other = sorted(set(truth.names) ^ set(names))[0]
        raise options.UserError(f"--compare and the data have different columns: {other!r} is in one only.")
